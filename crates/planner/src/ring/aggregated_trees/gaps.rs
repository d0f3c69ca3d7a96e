//! Gaps: runs of consecutive ranks that the blocks of a group have not reached yet.

/// Gap: a run of consecutive ranks that do not have the blocks of group 0 yet. The rank before the
/// gap (its *near* end) and the rank behind the gap (its *far* end) have the blocks.
#[derive(Debug, Clone)]
pub(super) struct OpenGap {
    near_end: u32,
    pub(super) size: u32,
    /// Lengths of the lightpaths that leave the near end in the current slot, in links, ascending.
    pub(super) near: Vec<u32>,
    /// Lengths of the lightpaths that leave the far end in the current slot, in links, ascending.
    pub(super) far: Vec<u32>,
}

impl OpenGap {
    pub(super) fn new(near_end: u32, size: u32) -> OpenGap {
        OpenGap {
            near_end,
            size,
            near: Vec::new(),
            far: Vec::new(),
        }
    }

    /// Returns the rank at the near end or at the far end of the gap. The result may exceed N - 1;
    /// the rank is the result modulo N.
    pub(super) fn end(&self, near: bool) -> u32 {
        match near {
            true => self.near_end,
            false => self.near_end + self.size + 1,
        }
    }

    /// Returns the amount by which another lightpath of `length` links lowers the price of later
    /// slots. The lightpath leaves the near end (if `near`) or the far end of the gap. Returns
    /// `None` if the gap has no place for the lightpath, or if the price stays equal.
    /// `later_prices` is the price of reaching n consecutive ranks in later slots, indexed by n.
    pub(super) fn saved(&self, near: bool, length: u32, later_prices: &[f32]) -> Option<f32> {
        let (same_end, other_end) = match near {
            true => (&self.near, &self.far),
            false => (&self.far, &self.near),
        };
        let reached = other_end.last().copied().unwrap_or(0);
        if length + reached > self.size {
            return None;
        }
        let at = same_end.partition_point(|shorter| *shorter < length);
        if same_end.get(at) == Some(&length) {
            return None;
        }
        let below = if at == 0 { 0 } else { same_end[at - 1] };
        let above = same_end.get(at).copied().unwrap_or(self.size + 1 - reached);
        let price = |size: u32| later_prices[size as usize];
        let saved =
            price(above - below - 1) - price(length - below - 1) - price(above - length - 1);
        Some(saved).filter(|saved| *saved > 0.0)
    }

    /// Returns the gaps of unreached ranks that remain after the current slot.
    pub(super) fn remaining(&self) -> impl Iterator<Item = OpenGap> + '_ {
        let far = self.far.iter().rev().map(|length| self.size + 1 - length);
        let mut before = 0;
        let ends = self.near.iter().copied().chain(far).chain([self.size + 1]);
        ends.filter_map(move |end| {
            let (near_end, size) = (self.near_end + before, end - before - 1);
            before = end;
            (size > 0).then(|| OpenGap::new(near_end, size))
        })
    }
}

/// Returns the gaps on a ring of `ranks` ranks. `reached` lists the ranks that have the blocks,
/// ascending.
pub(super) fn gaps_between(ranks: u32, reached: &[u32]) -> Vec<OpenGap> {
    let next = reached.iter().skip(1).copied();
    let around = reached.first().map(|first| first + ranks);
    let pairs = reached.iter().zip(next.chain(around));
    let gaps = pairs.map(|(&near_end, end)| OpenGap::new(near_end, end - near_end - 1));
    gaps.filter(|gap| gap.size > 0).collect()
}
