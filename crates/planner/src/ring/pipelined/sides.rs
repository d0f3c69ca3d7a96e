//! Sides of the root on a ring: the channels and ranks that the chains of a collective use, also
//! around cuts.

use crate::building::time_reversal::copying;
use crate::ring::relay_tree::{irregular_ring, reachable};
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Side of the root.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) direction: Direction,
    /// Number of channels that leave the root on this side.
    pub(super) channels: u32,
    /// Number of ranks that are reached on this side.
    pub(super) ranks: u32,
    /// Index of the part of the vector that the first of the channels carries.
    pub(super) first_stream: u32,
}

/// Both sides of the root.
pub(super) struct RootSides {
    /// Both sides of the root; for an all_reduce, the way of the sums and the way of the results.
    pub(super) sides: [Side; 2],
    /// Rank at which the chains begin.
    pub(super) start: u32,
    /// Maximum number of links of a lightpath.
    pub(super) reach: u32,
}

impl RootSides {
    /// Returns the sides of the root; `None` for a single rank, or if cuts or a lack of ports leave
    /// no channels.
    pub(super) fn new(ring: &WdmRing, collective: Collective) -> Option<RootSides> {
        if ring.ranks < 2 {
            return None;
        }
        let reversed;
        let (root, kind) = (collective.root(), copying(collective.kind()));
        let ring = match kind == collective.kind() {
            true => ring,
            false => {
                reversed = irregular_ring::reversed(ring);
                &reversed
            }
        };
        let (sides, start) = match (kind, ring.broken.is_empty()) {
            (CollectiveKind::AllReduce, _) => along_line(ring)?,
            (_, true) => (whole_ring(ring, kind), root),
            (_, false) => (up_to_cuts(ring, root)?, root),
        };
        let reach = ring.longest();
        Some(RootSides {
            sides,
            start,
            reach,
        })
    }

    /// Returns the number of parts of the vector that travel in parallel.
    pub(super) fn streams(&self) -> u32 {
        let ends = self.sides.iter().filter(|side| side.ranks > 0);
        let ends = ends.map(|side| side.first_stream + side.channels);
        ends.max().unwrap_or(0)
    }

    /// Returns the number of channels of each side if the first chunk of the first channel can
    /// represent all chunks of a broadcast: on a ring on which all channels are equal, with
    /// channels that fill whole fibres or a part of one fibre. Otherwise `None`.
    pub(super) fn stripes(&self, ring: &WdmRing, kind: CollectiveKind) -> Option<u32> {
        let used = self.sides.iter().filter(|side| side.channels > 0);
        let channels = used.clone().next()?.channels;
        let is_alike = used.clone().all(|side| side.channels == channels);
        let fills = channels <= ring.wavelengths || channels % ring.wavelengths == 0;
        let is_whole = kind == CollectiveKind::Broadcast && ring.is_intact();
        (is_whole && is_alike && fills).then_some(channels)
    }

    /// Returns the same sides with one channel each.
    pub(super) fn with_single_channels(&self) -> RootSides {
        let single = |side: Side| Side {
            channels: side.channels.min(1),
            ..side
        };
        RootSides {
            sides: self.sides.map(single),
            ..*self
        }
    }

    /// Returns the number of ranks of the larger side.
    pub(super) fn farthest(&self) -> u32 {
        let ranks = self.sides.iter().map(|side| side.ranks);
        ranks.max().unwrap_or(0)
    }
}

/// Returns the number of lightpaths that a rank can send (and receive) at the same time.
fn channels(ring: &WdmRing) -> u32 {
    let channels = 2 * ring.channels();
    ring.ports.map_or(channels, |ports| ports.min(channels))
}

/// Returns the sides on a ring without faults. A scatter divides the ranks among the sides; any
/// other collective sends parts of the vector all the way around on both.
fn whole_ring(ring: &WdmRing, kind: CollectiveKind) -> [Side; 2] {
    let (total, others) = (channels(ring), ring.ranks - 1);
    let clockwise = total.div_ceil(2);
    let share = (u64::from(others) * u64::from(clockwise)).div_ceil(total.max(1).into()) as u32;
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
            channels: total - clockwise,
            ranks: second,
            first_stream: clockwise,
        },
    ]
}

/// Returns the sides up to the cuts, each with the whole vector; `None` if no channel remains.
fn up_to_cuts(ring: &WdmRing, root: u32) -> Option<[Side; 2]> {
    let (clockwise, counter) = reachable::sides(ring, root)?;
    let directions = u32::from(clockwise > 0) + u32::from(counter > 0);
    let per_side = ring.channels().min(channels(ring) / directions.max(1));
    let side = |direction, ranks| Side {
        direction,
        channels: if ranks > 0 { per_side } else { 0 },
        ranks,
        first_stream: 0,
    };
    let sides = [
        side(Direction::Clockwise, clockwise),
        side(Direction::CounterClockwise, counter),
    ];
    (per_side > 0).then_some(sides)
}

/// Returns the way clockwise from one side of the cut to the other and the way back, with the rank
/// at which the first begins; `None` if the ring is cut at several places, or if no channel
/// remains.
fn along_line(ring: &WdmRing) -> Option<([Side; 2], u32)> {
    let cut = ring
        .broken
        .first()
        .map_or(ring.ranks - 1, |link| link.position);
    let per_side = ring.channels().min(channels(ring) / 2);
    let side = |direction| Side {
        direction,
        channels: per_side,
        ranks: ring.ranks - 1,
        first_stream: 0,
    };
    let is_line = ring.broken.iter().all(|link| link.position == cut);
    let start = (cut + 1) % ring.ranks;
    (per_side > 0 && is_line).then(|| (Direction::BOTH.map(side), start))
}
