//! Lanes of a scatter: the assignment of the pieces of all ranks to channels and circuits.

use super::sides::{RootSides, Side};
use opticoll_fabric::family::wdm_ring::Direction;

/// Pieces that a channel carries to one side of the root, and the circuits of the channel. Ranks
/// are given by their distance from the root in links.
pub(super) struct Lane {
    pub(super) direction: Direction,
    pub(super) channel: u32,
    /// Ranks with their pieces, the nearest first.
    ranks: Vec<(u32, Vec<u32>)>,
    /// Distances from the root at which the circuits end, the nearest first.
    stops: Vec<u32>,
}

impl Lane {
    /// Returns the ends of the circuits on the way to a rank.
    pub(super) fn stops_to(&self, distance: u32) -> impl Iterator<Item = u32> + '_ {
        self.stops
            .iter()
            .copied()
            .take_while(move |&stop| stop <= distance)
    }

    /// Returns the pieces in the order in which they leave the root, those of the farthest rank
    /// first: the rank, the piece, and the number of circuits on the way.
    pub(super) fn leaving(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let ranks = self.ranks.iter().rev();
        ranks.flat_map(|(distance, pieces)| {
            let hops = self.stops_to(*distance).count() as u64;
            pieces.iter().map(move |piece| (*distance, *piece, hops))
        })
    }

    /// Returns the number of transfers.
    pub(super) fn transfers(&self) -> u64 {
        self.leaving().map(|(.., hops)| hops).sum()
    }

    /// Returns the number of slots until all pieces have arrived.
    pub(super) fn slots(&self) -> u64 {
        let arriving = (0..).zip(self.leaving());
        let arriving = arriving.map(|(leaves, (.., hops))| leaves + hops);
        arriving.max().unwrap_or(0)
    }

    /// Returns the number of links of the longest circuit.
    pub(super) fn longest(&self) -> u32 {
        let first = self.stops.first().copied();
        let others = self.stops.windows(2).map(|pair| pair[1] - pair[0]);
        others.chain(first).max().unwrap_or(1)
    }
}

/// Returns the lanes of all channels of both sides, each with an equal part of the pieces of its
/// side.
pub(super) fn assign(root_sides: &RootSides, pieces: u32) -> impl Iterator<Item = Lane> + use<> {
    let reaches = root_sides.farthest() <= root_sides.reach;
    root_sides.sides.into_iter().flat_map(move |side| {
        (0..side.channels).map(move |channel| match reaches {
            true => neighbouring(side, channel, pieces),
            false => hop_by_hop(side, channel, pieces),
        })
    })
}

/// Returns the lane with the pieces of neighbouring ranks, and a circuit from the root to the first
/// of them.
fn neighbouring(side: Side, channel: u32, pieces: u32) -> Lane {
    let (channels, pieces) = (u64::from(side.channels), u64::from(pieces));
    let total = u64::from(side.ranks) * pieces;
    let index = u64::from(channel);
    let (first, end) = (total * index / channels, total * (index + 1) / channels);
    let ranks = (first / pieces..end.div_ceil(pieces)).filter(|_| first < end);
    let pieces_of_rank = |rank: u64| {
        let from = first.saturating_sub(rank * pieces);
        let to = (end - rank * pieces).min(pieces);
        (rank as u32 + 1, (from as u32..to as u32).collect())
    };
    let ranks: Vec<(u32, Vec<u32>)> = ranks.map(pieces_of_rank).collect();
    Lane {
        direction: side.direction,
        channel,
        stops: ranks.iter().map(|&(distance, _)| distance).collect(),
        ranks,
    }
}

/// Returns the lane with every piece whose number is congruent to the channel modulo the number of
/// channels, and circuits between neighbours.
fn hop_by_hop(side: Side, channel: u32, pieces: u32) -> Lane {
    let pieces_of_rank = |distance: u32| {
        let number = |piece: &u32| u64::from(distance - 1) * u64::from(pieces) + u64::from(*piece);
        let is_in_lane =
            |piece: &u32| number(piece) % u64::from(side.channels) == u64::from(channel);
        (distance, (0..pieces).filter(is_in_lane).collect())
    };
    Lane {
        direction: side.direction,
        channel,
        ranks: (1..=side.ranks).map(pieces_of_rank).collect(),
        stops: (1..=side.ranks).collect(),
    }
}
