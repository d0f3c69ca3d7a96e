//! Which way around: a direction for every transfer. A route never changes which data moves.
//!
//! Transfers take the shorter arc. Antipodal ones (distance N/2) have two: they go in couples
//! (u to v with v to u), and the couples of a step, by their lower rank, go alternately clockwise
//! and counter-clockwise, so that both directions carry the same. All clockwise would load that
//! direction n^2/8 + n/4 in a one-stage all-to-all, instead of n^2/8.
//!
//! ```
//! use opticoll::fabric::Direction;
//! assert_eq!(opticoll::route::shorter_way(0, 3, 8), Some(Direction::Clockwise));
//! assert_eq!(opticoll::route::shorter_way(0, 5, 8), Some(Direction::CounterClockwise));
//! assert_eq!(opticoll::route::shorter_way(0, 4, 8), None);
//! ```

use std::cmp::Ordering;

use crate::fabric::{Direction, WdmRing};
use crate::schedule::Schedule;

/// The way of the shorter arc from `source` to `destination` on a ring of `ranks` ranks; `None`
/// where both are equally long.
pub fn shorter_way(source: u32, destination: u32, ranks: u32) -> Option<Direction> {
    let clockwise =
        if destination >= source { destination - source } else { destination + ranks - source };
    match clockwise.cmp(&(ranks - clockwise)) {
        Ordering::Less => Some(Direction::Clockwise),
        Ordering::Greater => Some(Direction::CounterClockwise),
        Ordering::Equal => None,
    }
}

/// A direction for every transfer of the schedule: the shorter arc, antipodal couples balanced.
pub fn shortest_arcs(schedule: &Schedule, ring: &WdmRing) -> Vec<Direction> {
    let (sources, destinations) = (schedule.source(), schedule.destination());
    let mut directions = Vec::with_capacity(schedule.len());
    let mut antipodal = Vec::new();
    for step in 0..schedule.steps() {
        antipodal.clear();
        for index in schedule.step(step) {
            let way = shorter_way(sources[index], destinations[index], ring.ranks);
            directions.push(way.unwrap_or(Direction::Clockwise));
            if way.is_none() {
                antipodal.push(index);
            }
        }
        balance(&mut antipodal, sources, destinations, &mut directions);
    }
    directions
}

/// Sends the couples among the antipodal transfers of one step alternately both ways.
fn balance(
    antipodal: &mut [usize],
    sources: &[u32],
    destinations: &[u32],
    directions: &mut [Direction],
) {
    let lower = |index: usize| sources[index].min(destinations[index]);
    antipodal.sort_by_key(|&index| (lower(index), sources[index]));
    let mut couples = 0;
    for pair in antipodal.chunk_by(|&one, &other| lower(one) == lower(other)) {
        let split = pair.partition_point(|&index| sources[index] == lower(index));
        let (there, back) = pair.split_at(split);
        for couple in 0..there.len().max(back.len()) {
            let direction = Direction::BOTH[couples % 2];
            for side in [there, back] {
                if let Some(&index) = side.get(couple) {
                    directions[index] = direction;
                }
            }
            couples += 1;
        }
    }
}
