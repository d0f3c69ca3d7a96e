//! Routes around the ring: a direction for every transfer. Routes do not change the data.
//!
//! A transfer uses the shorter arc. The two arcs of an antipodal transfer (distance N/2) are
//! equally long. The transfers from u to v and from v to u form a couple. The couples of a step,
//! ordered by their lower rank, alternate between clockwise and counter-clockwise, so that both
//! directions have the same load. In a one-stage all-to-all of n ranks, the load is n^2/8
//! lightpaths per link. If all antipodal transfers were clockwise, the load would be n^2/8 + n/4.
//!
//! If the members of a one-stage all-to-all are unevenly spaced, the load of the shorter arcs may
//! exceed the minimum. The step then uses the circles of [`all_to_all`] if their load is lower.
//!
//! A transfer that would cross a broken link uses the other direction, if that one is intact.
//!
//! ```
//! use opticoll_fabric::family::wdm_ring::Direction;
//! use opticoll_placement::wdm_ring::route::shorter_direction;
//! assert_eq!(shorter_direction(0, 3, 8), Some(Direction::Clockwise));
//! assert_eq!(shorter_direction(0, 5, 8), Some(Direction::CounterClockwise));
//! assert_eq!(shorter_direction(0, 4, 8), None);
//! ```

pub mod all_to_all;

use std::cmp::Ordering;

use opticoll_base::interrupt;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_plan::schedule::{Schedule, StepColumns};

/// Path in one direction of the ring. The path consists of the links `first, first + 1, ...` modulo
/// N, `hops` links in total. Link i joins ranks i and i + 1: clockwise link i starts at rank i, and
/// counter-clockwise link i ends at rank i.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arc {
    /// Direction of the path.
    pub direction: Direction,
    /// Index of the first link.
    pub first: u32,
    /// Number of links.
    pub hops: u32,
}

impl Arc {
    /// Returns the path from `source` to `destination`. Returns `None` if these ranks are equal or
    /// one of them does not exist.
    pub fn new(ring: &WdmRing, source: u32, destination: u32, direction: Direction) -> Option<Arc> {
        if source == destination || source >= ring.ranks || destination >= ring.ranks {
            return None;
        }
        let first = match direction {
            Direction::Clockwise => source,
            Direction::CounterClockwise => destination,
        };
        Some(Arc {
            direction,
            first,
            hops: ring.hops(source, destination, direction),
        })
    }
}

/// Returns the number of arcs in `direction` that cross each link, indexed by link.
pub fn loads(direction: Direction, arcs: &[Arc], ranks: u32) -> Vec<u32> {
    let mut change = vec![0u32; ranks as usize + 1];
    for arc in arcs.iter().filter(|arc| arc.direction == direction) {
        interrupt::check();
        let (first, end) = (arc.first as usize, (arc.first + arc.hops) as usize);
        let wraps = end > ranks as usize;
        let end = if wraps { end - ranks as usize } else { end };
        change[first] = change[first].wrapping_add(1);
        change[end] = change[end].wrapping_sub(1);
        change[0] = change[0].wrapping_add(u32::from(wraps));
    }
    change.pop();
    let mut load = 0u32;
    for link in &mut change {
        load = load.wrapping_add(*link);
        *link = load;
    }
    change
}

/// Returns the direction of the shorter arc from `source` to `destination` on a ring of `ranks`
/// ranks, or `None` if both arcs are equally long.
pub fn shorter_direction(source: u32, destination: u32, ranks: u32) -> Option<Direction> {
    let clockwise = if destination >= source {
        destination - source
    } else {
        destination + ranks - source
    };
    match clockwise.cmp(&(ranks - clockwise)) {
        Ordering::Less => Some(Direction::Clockwise),
        Ordering::Greater => Some(Direction::CounterClockwise),
        Ordering::Equal => None,
    }
}

/// Returns the direction of the shorter arc for every transfer of the schedule, as [`Light`] in
/// which only the direction is set. Transfers between opposite ranks are divided evenly between the
/// directions. A transfer from or to a rank that does not exist is clockwise; the assignment of
/// channels later refuses the transfer.
pub fn shortest_arcs(schedule: &Schedule, ring: &WdmRing) -> Vec<Light> {
    let mut light = Vec::with_capacity(schedule.len());
    let (mut directions, mut antipodal) = (Vec::new(), Vec::new());
    for step in 0..schedule.steps() {
        interrupt::check();
        directions.clear();
        antipodal.clear();
        let columns = schedule.columns(step);
        for (index, (source, destination)) in columns.ends().enumerate() {
            interrupt::check();
            let shorter = if source.max(destination) < ring.ranks {
                shorter_direction(source, destination, ring.ranks)
            } else {
                Some(Direction::Clockwise)
            };
            directions.push(shorter.unwrap_or(Direction::Clockwise));
            if shorter.is_none() {
                antipodal.push(index);
            }
        }
        balance_antipodal(&mut antipodal, columns, &mut directions);
        if ring.broken.is_empty() && ring.longest() + 1 >= ring.ranks {
            use_circles_if_lower(columns, ring, &mut directions);
        }
        if !ring.broken.is_empty() {
            avoid_broken_links(columns, ring, &mut directions);
        }
        light.extend(directions.iter().copied().map(WdmLight::towards));
    }
    light
}

/// Reverses each transfer that would cross a broken link, if the other direction is intact.
fn avoid_broken_links(step: StepColumns<'_>, ring: &WdmRing, directions: &mut [Direction]) {
    for ((source, destination), direction) in step.ends().zip(directions) {
        interrupt::check();
        let other = direction.opposite();
        if source.max(destination) < ring.ranks
            && !ring.is_whole(source, destination, *direction)
            && ring.is_whole(source, destination, other)
        {
            *direction = other;
        }
    }
}

/// Routes a one-stage all-to-all over the circles of [`all_to_all`] if this reduces the load.
fn use_circles_if_lower(step: StepColumns<'_>, ring: &WdmRing, directions: &mut [Direction]) {
    let Some(groups) = all_to_all::groups(step, ring.ranks) else {
        return;
    };
    // If there are several all-to-alls, each one must stay on the links that its shorter arcs use.
    let [group] = &groups[..] else {
        return;
    };
    let members = group.members.len() as u32;
    let places = all_to_all::member_indices(&groups, ring.ranks);
    let circled: Vec<Direction> = step
        .ends()
        .map(|(source, destination)| {
            let (_, from) = places[source as usize];
            let (_, to) = places[destination as usize];
            let facing = Direction::BOTH[(from.min(to) % 2) as usize];
            all_to_all::circle(from, to, members).0.unwrap_or(facing)
        })
        .collect();
    if greatest_load(step, ring, &circled) < greatest_load(step, ring, directions) {
        directions.copy_from_slice(&circled);
    }
}

fn greatest_load(step: StepColumns<'_>, ring: &WdmRing, directions: &[Direction]) -> u32 {
    let arcs: Vec<Arc> = step
        .ends()
        .zip(directions)
        .filter_map(|((source, destination), &direction)| {
            Arc::new(ring, source, destination, direction)
        })
        .collect();
    let greatest = Direction::BOTH.map(|direction| {
        loads(direction, &arcs, ring.ranks)
            .into_iter()
            .max()
            .unwrap_or(0)
    });
    greatest[0].max(greatest[1])
}

/// Routes transfers between opposite ranks (`antipodal`, indices of transfers). Each couple is a
/// transfer and a transfer in return, which have the same direction. The couples are alternately
/// clockwise and counter-clockwise.
fn balance_antipodal(antipodal: &mut [usize], step: StepColumns<'_>, directions: &mut [Direction]) {
    let source = |index: usize| step.source()[index];
    let lower = |index: usize| source(index).min(step.destination()[index]);
    antipodal.sort_by_key(|&index| (lower(index), source(index)));
    let mut couples = 0;
    for pair in antipodal.chunk_by(|&first, &second| lower(first) == lower(second)) {
        interrupt::check();
        let split = pair.partition_point(|&index| source(index) == lower(index));
        let (forth, back) = pair.split_at(split);
        for couple in 0..forth.len().max(back.len()) {
            let direction = Direction::BOTH[couples % 2];
            for side in [forth, back] {
                if let Some(&index) = side.get(couple) {
                    directions[index] = direction;
                }
            }
            couples += 1;
        }
    }
}
