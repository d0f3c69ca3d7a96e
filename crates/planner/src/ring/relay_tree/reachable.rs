//! Division of the receivers of a block between the two directions of a ring with broken links.
//!
//! A block must reach N - 1 ranks: x ranks clockwise and N - 1 - x ranks counter-clockwise. On a
//! ring without cuts, x = floor(N / 2). On a ring with cuts, x is at most the number of ranks
//! before the first cut in the clockwise direction. The number N - 1 - x has the same limit in the
//! counter-clockwise direction.

use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};

/// Returns two numbers of ranks: the ranks to which the block of rank `origin` is sent clockwise,
/// and counter-clockwise. Returns `None` if cuts separate some rank from `origin`.
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

/// Returns the number of ranks after `rank` and before the first cut in `direction`. On a ring of N
/// ranks without such a cut, returns N - 1.
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
