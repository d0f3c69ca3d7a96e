//! Numbers of ranks that a block reaches in each direction of a ring with broken links.
//!
//! A block must reach N - 1 ranks: a of them clockwise, the others counter-clockwise. Without cuts
//! a = floor(N / 2). Light crosses no cut, so that a is at most the number of ranks before the
//! first clockwise cut, and N - 1 - a at most that before the first counter-clockwise cut.

use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};

/// Returns the numbers of ranks that a block of `origin` reaches clockwise and counter-clockwise,
/// N - 1 in total. `None` if cuts separate some rank.
pub(crate) fn sides(ring: &WdmRing, origin: u32) -> Option<(u32, u32)> {
    let others = ring.ranks - 1;
    let clockwise = room(ring, origin, Direction::Clockwise);
    let counter = room(ring, origin, Direction::CounterClockwise);
    if clockwise + counter < others {
        return None;
    }
    let side = (ring.ranks / 2).clamp(others.saturating_sub(counter), clockwise);
    Some((side, others - side))
}

/// Returns the number of ranks before the first cut in a direction from a rank, at most N - 1.
pub(crate) fn room(ring: &WdmRing, rank: u32, direction: Direction) -> u32 {
    let ranks = ring.ranks;
    let cuts = ring
        .broken
        .iter()
        .filter(|link| link.direction == direction);
    let distances = cuts.map(|link| match direction {
        Direction::Clockwise => (link.position + ranks - rank) % ranks,
        Direction::CounterClockwise => (rank + ranks - 1 - link.position) % ranks,
    });
    distances.min().unwrap_or(ranks - 1).min(ranks - 1)
}
