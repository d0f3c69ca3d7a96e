//! The order in which a step's transfers are placed.

use crate::wdm_ring::route::{Arc, loads};
use opticoll_fabric::family::wdm_ring::Direction;

/// The order in which a step's transfers are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `Left` for a direction with an idle link, `Longest` otherwise.
    Auto,
    /// As the schedule lists them.
    Given,
    /// The longest path first, then by starting rank.
    Longest,
    /// By the first link along the direction, counted from the least loaded link on.
    Left,
}

/// The offsets of `arcs` in the order of placing. Equal arcs keep the schedule's order and stand
/// side by side (except in `Given`), which makes the search for the second one short.
pub(super) fn order(order: Order, arcs: &[Arc], ranks: u32) -> Vec<usize> {
    let mut offsets: Vec<usize> = (0..arcs.len()).collect();
    if order == Order::Given {
        return offsets;
    }
    let cuts = Direction::BOTH.map(|direction| cut(direction, arcs, ranks));
    let left = Direction::BOTH.map(|direction| match order {
        Order::Left => true,
        Order::Auto => cuts[direction as usize].idle,
        Order::Longest | Order::Given => false,
    });
    // One key per arc: direction, then (start after the cut) or (longest first, start).
    let key = |arc: &Arc| {
        let direction = arc.direction as usize;
        let start = (arc.first + ranks - cuts[direction].link) % ranks;
        if left[direction] {
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
