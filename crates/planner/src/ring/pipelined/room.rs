//! What of a ring chains take: the sides of the root, their channels and ranks, also around cuts.

use crate::ring::relay_tree::{capability, reachable};
use crate::time_reversal::copying;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// One side of the root.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) direction: Direction,
    /// The channels that leave the root there.
    pub(super) channels: u32,
    /// The ranks that are reached there.
    pub(super) ranks: u32,
    /// The part of the vector that the first of its channels carries.
    pub(super) first_stream: u32,
}

/// What of a ring the chains of a collective take.
pub(super) struct Room {
    /// Both sides of the root; of an all_reduce, the way there and the way back.
    pub(super) sides: [Side; 2],
    /// The rank at which they begin.
    pub(super) start: u32,
    /// The most links of a lightpath.
    pub(super) reach: u32,
}

impl Room {
    pub(super) fn new(ring: &WdmRing, collective: Collective) -> Option<Room> {
        if ring.ranks < 2 {
            return None;
        }
        let backwards;
        let (root, kind) = (collective.root(), copying(collective.kind()));
        let ring = match kind == collective.kind() {
            true => ring,
            false => {
                backwards = capability::backwards(ring);
                &backwards
            }
        };
        let (sides, start) = match (kind, ring.broken.is_empty()) {
            (CollectiveKind::AllReduce, _) => along_line(ring)?,
            (_, true) => (both_ways(ring, kind), root),
            (_, false) => (up_to_cuts(ring, root)?, root),
        };
        let reach = ring.longest();
        Some(Room {
            sides,
            start,
            reach,
        })
    }

    /// The parts of the vector that go side by side.
    pub(super) fn streams(&self) -> u32 {
        let ends = self.sides.iter().filter(|side| side.ranks > 0);
        let ends = ends.map(|side| side.first_stream + side.channels);
        ends.max().unwrap_or(0)
    }

    /// The channels of each side, where the first chunk of the first channel stands for all chunks of a broadcast: on a ring that is the
    /// same on all channels, which fill whole fibres or a part of one.
    pub(super) fn stripes(&self, ring: &WdmRing, kind: CollectiveKind) -> Option<u32> {
        let used = self.sides.iter().filter(|side| side.channels > 0);
        let channels = used.clone().next()?.channels;
        let is_alike = used.clone().all(|side| side.channels == channels);
        let fills = channels <= ring.wavelengths || channels % ring.wavelengths == 0;
        let is_whole = kind == CollectiveKind::Broadcast && ring.is_intact();
        (is_whole && is_alike && fills).then_some(channels)
    }

    /// The same with one channel on each side.
    pub(super) fn of_first_chunks(&self) -> Room {
        let one = |side: Side| Side {
            channels: side.channels.min(1),
            ..side
        };
        Room {
            sides: self.sides.map(one),
            ..*self
        }
    }

    pub(super) fn farthest(&self) -> u32 {
        let ranks = self.sides.iter().map(|side| side.ranks);
        ranks.max().unwrap_or(0)
    }
}

/// The channels on which a rank can send, and receive, at once in all.
fn channels(ring: &WdmRing) -> u32 {
    let both = 2 * ring.channels();
    ring.ports.map_or(both, |ports| ports.min(both))
}

/// Parts of the vector that go all around, each over a channel; or blocks to the ranks of either half.
fn both_ways(ring: &WdmRing, kind: CollectiveKind) -> [Side; 2] {
    let (all, others) = (channels(ring), ring.ranks - 1);
    let clockwise = all.div_ceil(2);
    let share = (u64::from(others) * u64::from(clockwise)).div_ceil(all.max(1).into()) as u32;
    let ranks = match kind {
        CollectiveKind::Scatter => [share, others - share],
        _ => [others, others],
    };
    let [first, second] = ranks;
    [
        Side {
            direction: Direction::Clockwise,
            channels: clockwise,
            ranks: first,
            first_stream: 0,
        },
        Side {
            direction: Direction::CounterClockwise,
            channels: all - clockwise,
            ranks: second,
            first_stream: clockwise,
        },
    ]
}

/// The ranks before the cuts on either side, each side with the whole vector.
fn up_to_cuts(ring: &WdmRing, root: u32) -> Option<[Side; 2]> {
    let (clockwise, counter) = reachable::sides(ring, root)?;
    let ways = u32::from(clockwise > 0) + u32::from(counter > 0);
    let own = ring.channels().min(channels(ring) / ways.max(1));
    let side = |direction, ranks| Side {
        direction,
        channels: if ranks > 0 { own } else { 0 },
        ranks,
        first_stream: 0,
    };
    let sides = [
        side(Direction::Clockwise, clockwise),
        side(Direction::CounterClockwise, counter),
    ];
    (own > 0).then_some(sides)
}

/// The way from one side of the cut clockwise to the other, and back; with the rank at which it begins.
fn along_line(ring: &WdmRing) -> Option<([Side; 2], u32)> {
    let cut = ring
        .broken
        .first()
        .map_or(ring.ranks - 1, |link| link.position);
    let own = ring.channels().min(channels(ring) / 2);
    let side = |direction| Side {
        direction,
        channels: own,
        ranks: ring.ranks - 1,
        first_stream: 0,
    };
    let is_line = ring.broken.iter().all(|link| link.position == cut);
    let start = (cut + 1) % ring.ranks;
    (own > 0 && is_line).then(|| (Direction::BOTH.map(side), start))
}
