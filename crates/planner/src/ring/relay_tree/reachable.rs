//! Number of ranks to which a block is sent in each direction of a ring with broken links.
//!
//! A *cut* is a broken link. In each direction, a block reaches at most the ranks before the first
//! cut. The block must reach N - 1 ranks in both directions together. The number of ranks that the
//! block reaches clockwise is as close to floor(N / 2) as the cuts permit.

use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};

/// Returns the numbers of ranks to which the block of rank `origin` is sent clockwise and
/// counter-clockwise. Returns `None` if cuts separate some rank from `origin`.
pub(crate) fn sides(ring: &WdmRing, origin: u32) -> Option<(u32, u32)> {
    let others = ring.ranks - 1;
    let clockwise = ranks_before_cut(ring, origin, Direction::Clockwise);
    let counter = ranks_before_cut(ring, origin, Direction::CounterClockwise);
    if clockwise + counter < others {
        return None;
    }
    let side = (ring.ranks / 2).clamp(others.saturating_sub(counter), clockwise);
    Some((side, others - side))
}

/// Returns the number of ranks between `rank` and the first cut in `direction`, at most N - 1.
pub(crate) fn ranks_before_cut(ring: &WdmRing, rank: u32, direction: Direction) -> u32 {
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
