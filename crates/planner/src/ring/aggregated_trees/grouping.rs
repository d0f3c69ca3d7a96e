//! Groups of neighbouring ranks on a ring, and lengths of lightpaths.

use opticoll_fabric::family::wdm_ring::WdmRing;

/// Ring whose ranks are divided into groups of neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grouping {
    pub(super) ranks: u32,
    /// Ranks of a group; divides the number of ranks of the ring.
    pub(super) group: u32,
    /// Pieces of a block, which may use different lightpaths.
    pub(super) pieces: u32,
    /// Numbers of channels into which the channels of a direction are divided. Each number divides
    /// the number of groups, as closed walks require.
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

    /// Returns the number of channels in one direction.
    pub(super) fn channels(&self) -> u32 {
        self.parts.iter().sum()
    }

    /// Returns the same groups with `pieces` pieces per block.
    pub(super) fn with_pieces(&self, pieces: u32) -> Grouping {
        Grouping {
            pieces,
            ..self.clone()
        }
    }

    /// Returns the number of pieces of a bundle.
    pub(super) fn pieces_of_bundle(&self) -> u32 {
        self.group * self.pieces
    }

    /// Returns the room of a slot of `volume` pieces: the maximum sum of the lengths of its tree
    /// edges, in links. If a bundle uses several parallel lightpaths, channels that are too few for
    /// another bundle stay dark.
    pub(super) fn room(&self, volume: u32) -> f32 {
        let bundle = self.pieces_of_bundle();
        let lightpaths = if bundle % volume == 0 {
            bundle / volume
        } else {
            1
        };
        let channels = self.channels();
        let used = channels - channels % lightpaths;
        2.0 * used as f32 * volume as f32 / self.pieces as f32
    }

    /// Returns the room of a slot whose lightpaths carry one whole block.
    pub(super) fn room_per_block(&self) -> f32 {
        (2 * self.channels()) as f32
    }

    /// Returns the residue modulo g of a rank's position along a direction.
    pub(super) fn residue(&self, rank: u32, clockwise: bool) -> u32 {
        self.position(rank, clockwise) % self.group
    }

    /// Returns the position of a rank along a direction. Counter-clockwise positions are those of
    /// the mirrored ring.
    pub(super) fn position(&self, rank: u32, clockwise: bool) -> u32 {
        let rank = rank % self.ranks;
        match clockwise {
            true => rank,
            false => (self.ranks - rank) % self.ranks,
        }
    }
}

/// Returns the lengths that lightpaths may have, in links: all lengths up to 21, then each about a
/// tenth more than the one before.
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

/// Returns the shorter route between two ranks: whether it is clockwise, and its length in links.
pub(super) fn shorter_route(ranks: u32, from: u32, to: u32) -> (bool, u32) {
    let clockwise = (to + ranks - from) % ranks;
    match 2 * clockwise <= ranks {
        true => (true, clockwise),
        false => (false, ranks - clockwise),
    }
}
