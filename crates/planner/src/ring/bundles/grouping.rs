//! Groups of neighbouring ranks on a ring, and lengths of lightpaths.

use opticoll_fabric::family::wdm_ring::WdmRing;

/// A ring with groups of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grouping {
    pub(super) ranks: u32,
    /// Ranks of a group, a divisor of those of the ring.
    pub(super) group: u32,
    /// Pieces of a block, which may take different lightpaths.
    pub(super) pieces: u32,
    /// Channels side by side, so many in each part: divisors of the number of groups.
    pub(super) parts: Vec<u32>,
    /// The most links of a lightpath.
    pub(super) longest: u32,
}

impl Grouping {
    /// Groups of so many ranks.
    pub(super) fn new(ring: &WdmRing, group: u32) -> Grouping {
        let ranks = ring.ranks;
        let groups = ranks / group;
        let mut parts = Vec::new();
        let mut left = ring.channels();
        while left > 0 {
            let part = (1..=left.min(groups)).rfind(|part| groups % part == 0);
            let part = part.unwrap_or(1);
            parts.push(part);
            left -= part;
        }
        Grouping {
            ranks,
            group,
            pieces: 1,
            parts,
            longest: ring.longest(),
        }
    }

    pub(super) fn channels(&self) -> u32 {
        self.parts.iter().sum()
    }

    /// The same groups with blocks in so many pieces.
    pub(super) fn in_pieces(&self, pieces: u32) -> Grouping {
        Grouping {
            pieces,
            ..self.clone()
        }
    }

    /// The pieces of a bundle.
    pub(super) fn bundle(&self) -> u32 {
        self.group * self.pieces
    }

    /// Links that lightpaths of a tree with so many pieces may have in all. Where a bundle goes over lightpaths side by side,
    /// channels that are too few for a bundle stay dark.
    pub(super) fn room(&self, volume: u32) -> f32 {
        let bundle = self.bundle();
        let together = if bundle % volume == 0 {
            bundle / volume
        } else {
            1
        };
        let all = self.channels();
        let used = all - all % together;
        2.0 * used as f32 * volume as f32 / self.pieces as f32
    }

    /// The same of lightpaths with a whole block.
    pub(super) fn room_of_blocks(&self) -> f32 {
        (2 * self.channels()) as f32
    }

    /// The class of a rank, seen along a direction.
    pub(super) fn class(&self, rank: u32, clockwise: bool) -> u32 {
        self.along(rank, clockwise) % self.group
    }

    /// The number of a rank along a direction: counter-clockwise the ring is its mirror image.
    pub(super) fn along(&self, rank: u32, clockwise: bool) -> u32 {
        let rank = rank % self.ranks;
        match clockwise {
            true => rank,
            false => (self.ranks - rank) % self.ranks,
        }
    }
}

/// Returns the lengths that lightpaths may have: all up to 21, and then each a tenth more than the one before.
pub(super) fn lengths(grouping: &Grouping) -> Vec<u32> {
    let widest = grouping.parts.iter().max().copied().unwrap_or(1);
    let most = (widest * grouping.group)
        .min(grouping.ranks / 2)
        .min(grouping.longest);
    let most = most.max(1);
    let grow = |length: &u32| Some((length + 1).max(length * 12 / 11));
    let lengths = std::iter::successors(Some(1), grow);
    lengths.take_while(|length| *length <= most).collect()
}

/// The shorter way from one rank to another: whether it is clockwise, and its length.
pub(super) fn distance(ranks: u32, from: u32, to: u32) -> (bool, u32) {
    let clockwise = (to + ranks - from) % ranks;
    match 2 * clockwise <= ranks {
        true => (true, clockwise),
        false => (false, ranks - clockwise),
    }
}
