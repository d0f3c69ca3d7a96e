//! Order in which the transfers of a step are placed.

use crate::wdm_ring::route::{Arc, loads};
use opticoll_fabric::family::wdm_ring::Direction;

/// Returns the indices of `arcs` in the order of placement. If a direction has an idle link, the
/// arcs of this direction are ordered by first link, counted from the idle link. Otherwise, longer
/// arcs come first, and arcs of equal length are ordered by first link. Equal arcs are adjacent, so
/// that the search for the second arc starts at the slot of the first arc.
pub(super) fn order(arcs: &[Arc], ranks: u32) -> Vec<usize> {
    let mut offsets: Vec<usize> = (0..arcs.len()).collect();
    let cuts = Direction::BOTH.map(|direction| cut(direction, arcs, ranks));
    // Sort key: direction, then (first link after the cut) or (longest first, first link).
    let key = |arc: &Arc| {
        let direction = arc.direction as usize;
        let start = (arc.first + ranks - cuts[direction].link) % ranks;
        if cuts[direction].idle {
            (direction, start, ranks - arc.hops)
        } else {
            (direction, ranks - arc.hops, arc.first)
        }
    };
    offsets.sort_by_cached_key(|&offset| key(&arcs[offset]));
    offsets
}

/// Link at which the ring is cut into a line, for one direction.
struct Cut {
    /// Index of the link after the least loaded link.
    link: u32,
    /// True if no lightpath uses the least loaded link.
    idle: bool,
}

fn cut(direction: Direction, arcs: &[Arc], ranks: u32) -> Cut {
    let (least_load, link) = loads(direction, arcs, ranks)
        .into_iter()
        .zip(0..)
        .min()
        .unwrap_or((0, 0));
    Cut {
        link: (link + 1) % ranks,
        idle: least_load == 0,
    }
}
