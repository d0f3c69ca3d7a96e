//! The order in which a step's transfers are placed.

use crate::wdm_ring::route::{Arc, loads};
use opticoll_fabric::family::wdm_ring::Direction;

/// The offsets of `arcs` in the order of placing: by the first link along a direction, counted from its idle link on,
/// where it has one; the longest path first elsewhere, then by starting rank. Equal arcs keep the schedule's order and
/// stand side by side, which makes the search for the second one short.
pub(super) fn order(arcs: &[Arc], ranks: u32) -> Vec<usize> {
    let mut offsets: Vec<usize> = (0..arcs.len()).collect();
    let cuts = Direction::BOTH.map(|direction| cut(direction, arcs, ranks));
    // One key per arc: direction, then (start after the cut) or (longest first, start).
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

/// Where a direction's circle of links is best cut into a line.
struct Cut {
    /// The link after the least loaded one.
    link: u32,
    /// Whether the link cut carries nothing.
    idle: bool,
}

fn cut(direction: Direction, arcs: &[Arc], ranks: u32) -> Cut {
    let (least, link) = loads(direction, arcs, ranks)
        .into_iter()
        .zip(0..)
        .min()
        .unwrap_or((0, 0));
    Cut {
        link: (link + 1) % ranks,
        idle: least == 0,
    }
}
