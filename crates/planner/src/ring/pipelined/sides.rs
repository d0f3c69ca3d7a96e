//! Division of a ring's channels and ranks between the two directions from the root, also on rings
//! with cuts.

use crate::building::time_reversal::copying;
use crate::ring::relay_tree::{irregular_ring, reachable};
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Ranks and channels in one direction from the root.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) direction: Direction,
    pub(super) channels: u32,
    /// Number of ranks that receive data in this direction.
    pub(super) ranks: u32,
    /// Index of the stream that the first channel carries. The vector is divided into streams, and
    /// channel i carries stream `first_stream` + i.
    pub(super) first_stream: u32,
}

/// Ranks and channels in both directions from the root.
pub(super) struct RootSides {
    /// Ranks and channels in each direction. In an all_reduce, sums use the first direction and
    /// results use the second direction.
    pub(super) sides: [Side; 2],
    /// Rank at which the chains of circuits begin: the root or, in an all_reduce, the first rank of
    /// the line.
    pub(super) start: u32,
    /// Maximum number of links of a lightpath.
    pub(super) reach: u32,
}

impl RootSides {
    /// Divides the ranks and channels of the ring between the two directions. Returns `None` on a
    /// ring of one rank, and if cuts or too few ports leave no channels.
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

    /// Returns the number of streams. (A stream is a part of the vector. Streams are sent at the
    /// same time on separate channels.)
    pub(super) fn streams(&self) -> u32 {
        let ends = self.sides.iter().filter(|side| side.ranks > 0);
        let ends = ends.map(|side| side.first_stream + side.channels);
        ends.max().unwrap_or(0)
    }

    /// Returns the number of channels of each direction if a plan may store only the transfers of
    /// the first piece on the first channel. The collective must be a broadcast on a ring without
    /// faults. Both directions must use the same number of channels, which fill part of one fibre
    /// or whole fibres. Otherwise returns `None`.
    pub(super) fn stripes(&self, ring: &WdmRing, kind: CollectiveKind) -> Option<u32> {
        let used = self.sides.iter().filter(|side| side.channels > 0);
        let channels = used.clone().next()?.channels;
        let is_alike = used.clone().all(|side| side.channels == channels);
        let fills = channels <= ring.wavelengths || channels % ring.wavelengths == 0;
        let is_whole = kind == CollectiveKind::Broadcast && ring.is_intact();
        (is_whole && is_alike && fills).then_some(channels)
    }

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

    /// Returns the distance from the root to the farthest rank, in links.
    pub(super) fn farthest(&self) -> u32 {
        let ranks = self.sides.iter().map(|side| side.ranks);
        ranks.max().unwrap_or(0)
    }
}

/// Returns the maximum number of lightpaths that a rank can send at the same time in both
/// directions together. A rank can receive the same number of lightpaths.
fn channels(ring: &WdmRing) -> u32 {
    let channels = 2 * ring.channels();
    ring.ports.map_or(channels, |ports| ports.min(channels))
}

/// Divides the channels of a ring without faults between the two directions. For a scatter, also
/// divides the ranks. Other collectives send to all ranks in both directions.
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

/// Divides the ranks of a ring with cuts between the two directions. Each direction ends before the
/// first cut and carries the whole vector. Returns `None` if a rank is unreachable or no channel is
/// available.
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

/// Returns both directions of a line of all ranks, and the first rank of the line. The line begins
/// and ends at the cut. Returns `None` if links at several positions are cut, or if no channel is
/// available.
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
