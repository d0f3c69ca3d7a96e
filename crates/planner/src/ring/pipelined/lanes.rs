//! The lanes of a scatter: which pieces of which ranks go over a channel, and over which circuits.

use super::room::{Room, Side};
use opticoll_fabric::family::wdm_ring::Direction;

/// What a channel brings to one side of the root: so many pieces of each of these ranks, given by how far they
/// are from the root, and the circuits on its way.
pub(super) struct Lane {
    pub(super) direction: Direction,
    pub(super) channel: u32,
    /// The nearest first, with their pieces.
    ranks: Vec<(u32, Vec<u32>)>,
    /// How far from the root the circuits end, the nearest first.
    stops: Vec<u32>,
}

impl Lane {
    /// The circuits on the way to a rank.
    pub(super) fn stops_to(&self, far: u32) -> impl Iterator<Item = u32> + '_ {
        self.stops
            .iter()
            .copied()
            .take_while(move |&stop| stop <= far)
    }

    /// The ranks whose pieces leave the root one after the other, the farthest first, with the circuits on their way.
    pub(super) fn leaving(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let ranks = self.ranks.iter().rev();
        ranks.flat_map(|(far, own)| {
            let hops = self.stops_to(*far).count() as u64;
            own.iter().map(move |piece| (*far, *piece, hops))
        })
    }

    pub(super) fn transfers(&self) -> u64 {
        self.leaving().map(|(.., hops)| hops).sum()
    }

    pub(super) fn slots(&self) -> u64 {
        let arriving = (0..).zip(self.leaving());
        let arriving = arriving.map(|(leaves, (.., hops))| leaves + hops);
        arriving.max().unwrap_or(0)
    }

    pub(super) fn longest(&self) -> u32 {
        let first = self.stops.first().copied();
        let others = self.stops.windows(2).map(|pair| pair[1] - pair[0]);
        others.chain(first).max().unwrap_or(1)
    }
}

/// The channels of both sides, each with an equal part of its side's pieces.
pub(super) fn of(room: &Room, pieces: u32) -> impl Iterator<Item = Lane> + use<> {
    let reaches = room.farthest() <= room.reach;
    room.sides.into_iter().flat_map(move |side| {
        (0..side.channels).map(move |channel| match reaches {
            true => neighbouring(side, channel, pieces),
            false => hop_by_hop(side, channel, pieces),
        })
    })
}

/// The pieces of neighbouring ranks, with a circuit to the first of them.
fn neighbouring(side: Side, channel: u32, pieces: u32) -> Lane {
    let (channels, pieces) = (u64::from(side.channels), u64::from(pieces));
    let all = u64::from(side.ranks) * pieces;
    let place = u64::from(channel);
    let (first, end) = (all * place / channels, all * (place + 1) / channels);
    let ranks = (first / pieces..end.div_ceil(pieces)).filter(|_| first < end);
    let own = |rank: u64| {
        let from = first.saturating_sub(rank * pieces);
        let to = (end - rank * pieces).min(pieces);
        (rank as u32 + 1, (from as u32..to as u32).collect())
    };
    let ranks: Vec<(u32, Vec<u32>)> = ranks.map(own).collect();
    Lane {
        direction: side.direction,
        channel,
        stops: ranks.iter().map(|&(far, _)| far).collect(),
        ranks,
    }
}

/// Every piece whose number has the channel's remainder, with circuits between neighbours.
fn hop_by_hop(side: Side, channel: u32, pieces: u32) -> Lane {
    let own = |far: u32| {
        let number = |piece: &u32| u64::from(far - 1) * u64::from(pieces) + u64::from(*piece);
        let is_own = |piece: &u32| number(piece) % u64::from(side.channels) == u64::from(channel);
        (far, (0..pieces).filter(is_own).collect())
    };
    Lane {
        direction: side.direction,
        channel,
        ranks: (1..=side.ranks).map(own).collect(),
        stops: (1..=side.ranks).collect(),
    }
}
