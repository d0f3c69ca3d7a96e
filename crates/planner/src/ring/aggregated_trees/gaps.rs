//! Gaps between the ranks that have a bundle: runs of consecutive ranks that the bundle has not
//! reached yet.

/// Gap between two ranks that have the bundle. The *near* end is the rank before the gap, the *far*
/// end the rank behind it.
#[derive(Debug, Clone)]
pub(super) struct OpenGap {
    /// The rank at the near end.
    start: u32,
    /// Ranks in the gap.
    pub(super) size: u32,
    /// Lengths of the lightpaths that leave the near end in the current slot, in links, ascending.
    pub(super) near: Vec<u32>,
    /// Lengths of the lightpaths that leave the far end in the current slot, in links, ascending.
    pub(super) far: Vec<u32>,
}

impl OpenGap {
    pub(super) fn new(start: u32, size: u32) -> OpenGap {
        OpenGap {
            start,
            size,
            near: Vec::new(),
            far: Vec::new(),
        }
    }

    /// Returns the rank at an end.
    pub(super) fn end(&self, near: bool) -> u32 {
        match near {
            true => self.start,
            false => self.start + self.size + 1,
        }
    }

    /// Returns by how much another lightpath of `length` links from an end lowers the cost of the
    /// gap in later slots. `later` is the cost of a gap by its size. `None` if the lightpath leaves
    /// the gap, crosses one from the other end, or saves nothing.
    pub(super) fn saved(&self, near: bool, length: u32, later: &[f32]) -> Option<f32> {
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
        let cost = |size: u32| later[size as usize];
        let saved = cost(above - below - 1) - cost(length - below - 1) - cost(above - length - 1);
        Some(saved).filter(|saved| *saved > 0.0)
    }

    /// Returns the gaps that remain after the slot.
    pub(super) fn remaining(&self) -> impl Iterator<Item = OpenGap> + '_ {
        let far = self.far.iter().rev().map(|length| self.size + 1 - length);
        let mut before = 0;
        let ends = self.near.iter().copied().chain(far).chain([self.size + 1]);
        ends.filter_map(move |end| {
            let (start, size) = (self.start + before, end - before - 1);
            before = end;
            (size > 0).then(|| OpenGap::new(start, size))
        })
    }
}

/// Returns the gaps between `holders` around the ring, given in ascending order.
pub(super) fn gaps_between(ranks: u32, holders: &[u32]) -> Vec<OpenGap> {
    let next = holders.iter().skip(1).copied();
    let around = holders.first().map(|first| first + ranks);
    let pairs = holders.iter().zip(next.chain(around));
    let gaps = pairs.map(|(&start, end)| OpenGap::new(start, end - start - 1));
    gaps.filter(|gap| gap.size > 0).collect()
}
