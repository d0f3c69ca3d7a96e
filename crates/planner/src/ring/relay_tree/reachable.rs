//! How far a block goes each way around a ring with broken links.
//!
//! A block needs to reach N - 1 ranks: `a` of them clockwise, the others counter-clockwise. Without
//! cuts a = floor(N / 2); light crosses no cut, so that a is at most the number of ranks before the
//! first clockwise cut, and N - 1 - a at most that before the first counter-clockwise one.

use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};

/// How many ranks a block of `origin` reaches clockwise, and counter-clockwise, N - 1 in all; `None`
/// where cuts leave some rank out.
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

/// How many ranks light from a rank meets in a direction before the first cut, N - 1 at most.
pub(crate) fn room(ring: &WdmRing, rank: u32, direction: Direction) -> u32 {
    let ranks = ring.ranks;
    let cuts = ring
        .broken
        .iter()
        .filter(|link| link.direction == direction);
    let before = cuts.map(|link| match direction {
        Direction::Clockwise => (link.position + ranks - rank) % ranks,
        Direction::CounterClockwise => (rank + ranks - 1 - link.position) % ranks,
    });
    before.min().unwrap_or(ranks - 1).min(ranks - 1)
}
