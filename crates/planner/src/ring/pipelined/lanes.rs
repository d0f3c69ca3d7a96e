//! Assignment of the pieces of a scatter to channels and circuits.

use super::sides::{RootSides, Side};
use opticoll_fabric::family::wdm_ring::Direction;

/// Pieces that a channel carries from the root, and the circuits on this channel. A rank is
/// identified by its distance from the root in links.
pub(super) struct Lane {
    pub(super) direction: Direction,
    pub(super) channel: u32,
    /// Destinations of the pieces that the channel carries. Each entry is the distance of the
    /// destination from the root, in links, and the indices of the pieces in the destination's
    /// block. Distances are ascending.
    ranks: Vec<(u32, Vec<u32>)>,
    /// Distances from the root, in links, at which the circuits of the channel end, ascending.
    stops: Vec<u32>,
}

impl Lane {
    /// Returns the ends of the circuits from the root to the rank that is `distance` links away.
    /// Each end is a distance from the root in links.
    pub(super) fn stops_to(&self, distance: u32) -> impl Iterator<Item = u32> + '_ {
        self.stops
            .iter()
            .copied()
            .take_while(move |&stop| stop <= distance)
    }

    /// Returns the pieces in the order in which the root sends them. Each entry is the distance of
    /// the destination from the root in links, the index of the piece in its block, and the number
    /// of circuits on the piece's route.
    pub(super) fn sent_pieces(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let ranks = self.ranks.iter().rev();
        ranks.flat_map(|(distance, pieces)| {
            let hops = self.stops_to(*distance).count() as u64;
            pieces.iter().map(move |piece| (*distance, *piece, hops))
        })
    }

    pub(super) fn transfers(&self) -> u64 {
        self.sent_pieces().map(|(.., hops)| hops).sum()
    }

    pub(super) fn slots(&self) -> u64 {
        let sent = (0..).zip(self.sent_pieces());
        let arrival_slots = sent.map(|(slot, (.., hops))| slot + hops);
        arrival_slots.max().unwrap_or(0)
    }

    pub(super) fn longest(&self) -> u32 {
        let first = self.stops.first().copied();
        let others = self.stops.windows(2).map(|pair| pair[1] - pair[0]);
        others.chain(first).max().unwrap_or(1)
    }
}

/// Creates the lanes of all channels of both directions. Blocks have `pieces` pieces. All pieces
/// that the root sends in a direction are divided equally among the channels of this direction.
pub(super) fn assign(root_sides: &RootSides, pieces: u32) -> impl Iterator<Item = Lane> + use<> {
    let reaches = root_sides.farthest() <= root_sides.reach;
    root_sides.sides.into_iter().flat_map(move |side| {
        (0..side.channels).map(move |channel| match reaches {
            true => consecutive_ranks(side, channel, pieces),
            false => hop_by_hop(side, channel, pieces),
        })
    })
}

/// Creates the lane of a channel that carries pieces for consecutive ranks only. The first circuit
/// leads from the root to the nearest of these ranks.
fn consecutive_ranks(side: Side, channel: u32, pieces: u32) -> Lane {
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

/// Creates the lane of a channel whose circuits connect neighbouring ranks. In a direction with c
/// channels, each channel carries every c-th piece.
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
