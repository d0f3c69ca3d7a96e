//! The ranks that a bundle has not reached yet: gaps between its holders.

/// A gap between holders, with the lengths that leave its ends in a slot.
#[derive(Debug, Clone)]
pub(super) struct OpenGap {
    start: u32,
    pub(super) size: u32,
    pub(super) near: Vec<u32>,
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

    /// The rank at an end.
    pub(super) fn end(&self, near: bool) -> u32 {
        match near {
            true => self.start,
            false => self.start + self.size + 1,
        }
    }

    /// What another lightpath from an end saves of what is to be paid later.
    pub(super) fn saved(&self, near: bool, length: u32, later: &[f32]) -> Option<f32> {
        let (own, other) = match near {
            true => (&self.near, &self.far),
            false => (&self.far, &self.near),
        };
        let reached = other.last().copied().unwrap_or(0);
        if length + reached > self.size {
            return None;
        }
        let at = own.partition_point(|known| *known < length);
        if own.get(at) == Some(&length) {
            return None;
        }
        let below = if at == 0 { 0 } else { own[at - 1] };
        let above = own.get(at).copied().unwrap_or(self.size + 1 - reached);
        let value = |size: u32| later[size as usize];
        let saved =
            value(above - below - 1) - value(length - below - 1) - value(above - length - 1);
        Some(saved).filter(|saved| *saved > 0.0)
    }

    /// The gaps that are left.
    pub(super) fn rest(&self) -> impl Iterator<Item = OpenGap> + '_ {
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

/// Gaps between holders around the ring; holders ascend.
pub(super) fn gaps_between(ranks: u32, holders: &[u32]) -> Vec<OpenGap> {
    let next = holders.iter().skip(1).copied();
    let around = holders.first().map(|first| first + ranks);
    let pairs = holders.iter().zip(next.chain(around));
    let gaps = pairs.map(|(&start, end)| OpenGap::new(start, end - start - 1));
    gaps.filter(|gap| gap.size > 0).collect()
}

/// How many gaps there are of each size.
pub(super) fn census(gaps: &[OpenGap]) -> Vec<(usize, u32)> {
    let mut sizes: Vec<u32> = gaps.iter().map(|gap| gap.size).collect();
    sizes.sort_unstable();
    let runs = sizes.chunk_by(|one, other| one == other);
    runs.map(|same| (same[0] as usize, same.len() as u32))
        .collect()
}
