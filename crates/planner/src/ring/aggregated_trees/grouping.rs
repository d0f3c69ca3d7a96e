//! Division of a ring into groups of neighbouring ranks, and the lengths of lightpaths.

use opticoll_fabric::family::wdm_ring::WdmRing;

/// Division of a ring's ranks into groups of neighbouring ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grouping {
    pub(super) ranks: u32,
    /// Number of ranks of a group; a divisor of `ranks`.
    pub(super) group: u32,
    pub(super) pieces: u32,
    /// Number of channels of each part, if the channels of a direction are divided into parts. Each
    /// of these numbers divides the number of groups ([`super::closed_walks`] requires this).
    pub(super) parts: Vec<u32>,
    /// Maximum number of links of a lightpath.
    pub(super) longest: u32,
}

impl Grouping {
    /// Divides the ranks of a ring into groups of `group` ranks, with blocks of one piece.
    pub(super) fn new(ring: &WdmRing, group: u32) -> Grouping {
        let ranks = ring.ranks;
        let groups = ranks / group;
        let mut parts = Vec::new();
        let mut unassigned = ring.channels();
        while unassigned > 0 {
            let part = (1..=unassigned.min(groups)).rfind(|part| groups % part == 0);
            let part = part.unwrap_or(1);
            parts.push(part);
            unassigned -= part;
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

    pub(super) fn with_pieces(&self, pieces: u32) -> Grouping {
        Grouping {
            pieces,
            ..self.clone()
        }
    }

    pub(super) fn pieces_of_group(&self) -> u32 {
        self.group * self.pieces
    }

    /// Returns the maximum total length, in links, of the tree edges of a slot with up to `volume`
    /// pieces on a lightpath. If a tree edge needs n parallel lightpaths, the capacity ignores the
    /// last c mod n of c channels.
    pub(super) fn capacity(&self, volume: u32) -> f32 {
        let bundle = self.pieces_of_group();
        let lightpaths = if bundle % volume == 0 {
            bundle / volume
        } else {
            1
        };
        let channels = self.channels();
        let used = channels - channels % lightpaths;
        2.0 * used as f32 * volume as f32 / self.pieces as f32
    }

    /// Returns the maximum total length, in links, of the tree edges of a slot in which each
    /// lightpath carries one block.
    pub(super) fn capacity_per_block(&self) -> f32 {
        (2 * self.channels()) as f32
    }

    /// Returns the [position](Grouping::position) of `rank` modulo the number of ranks of a group.
    pub(super) fn residue(&self, rank: u32, clockwise: bool) -> u32 {
        self.position(rank, clockwise) % self.group
    }

    /// Returns the number of links from rank 0 to `rank` in the given direction.
    pub(super) fn position(&self, rank: u32, clockwise: bool) -> u32 {
        let rank = rank % self.ranks;
        match clockwise {
            true => rank,
            false => (self.ranks - rank) % self.ranks,
        }
    }
}

/// Returns the lengths of lightpaths that the search tries, in links, ascending: all lengths up to
/// 21 links, then lengths that grow by about a tenth.
pub(super) fn lengths(grouping: &Grouping) -> Vec<u32> {
    let widest = grouping.parts.iter().max().copied().unwrap_or(1);
    let longest = (widest * grouping.group)
        .min(grouping.ranks / 2)
        .min(grouping.longest)
        .max(1);
    let grow = |length: &u32| Some((length + 1).max(length * 12 / 11));
    let lengths = std::iter::successors(Some(1), grow);
    lengths.take_while(|length| *length <= longest).collect()
}

/// Returns the direction (true if clockwise) and the number of links of the shorter route between
/// two ranks.
pub(super) fn shorter_route(ranks: u32, from: u32, to: u32) -> (bool, u32) {
    let clockwise = (to + ranks - from) % ranks;
    match 2 * clockwise <= ranks {
        true => (true, clockwise),
        false => (false, ranks - clockwise),
    }
}
