//! The optimal construction for one-stage all-to-all on a ring of n members.
//!
//! Let h = floor(n / 2). Members A_t = t and B_t = t + h (t < h) face each other; for odd n member
//! C = 2h is left over. Every wavelength carries lightpaths that tile the whole circle:
//!
//! * for each pair s < t, clockwise A_t -> B_s -> B_t -> A_s -> A_t, and counter-clockwise
//!   A_t -> A_s -> B_t -> B_s -> A_t: all lightpaths between couple s and couple t;
//! * even n: A_t -> B_t -> A_t, in the direction that the couple's paths have, half the couples
//!   each way where antipodal ties are balanced;
//! * odd n: clockwise A_t -> B_t -> C -> A_t, counter-clockwise A_t -> C -> B_t -> A_t.
//!
//! That is h(h-1)/2 + ceil(h/2) wavelengths per direction for even n and h(h-1)/2 + h for odd n:
//! ceil(floor(n^2/4)/2) in both cases, the load of a link (Opatrny 2003), hence optimal. Every
//! ordered pair appears once, and on its shorter arc when members are evenly spaced.
//!
//! A step may hold several such all-to-alls, each among members of its own (stage 1 of OpTree), and
//! several transfers per ordered pair; each gets wavelengths of its own. The result is used only if
//! it needs exactly as many wavelengths as the greatest load: then it is optimal for the step.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Arc;
use super::order::loads;
use crate::fabric::{Direction, WdmRing};
use crate::schedule::Schedule;

/// The channel of each transfer of a step, counted on over slots; `None` if the step does not
/// consist of uniform all-to-alls among disjoint member sets with the paths of the construction, or
/// fewer channels might do.
pub(super) fn all_to_all(
    schedule: &Schedule,
    step: Range<usize>,
    arcs: &[Arc],
    ring: &WdmRing,
) -> Option<Vec<u32>> {
    let groups = groups(schedule, step.clone(), ring.ranks)?;
    // Where each rank stands: (group, index among its members).
    let mut place = vec![(0usize, 0u32); ring.ranks as usize];
    for (number, group) in groups.iter().enumerate() {
        for (index, &member) in group.members.iter().enumerate() {
            place[member as usize] = (number, index as u32);
        }
    }
    // Circles are numbered as they are met: (group, round, circle) to channel, per direction.
    let mut numbers: [FxHashMap<(usize, u32, u32), u32>; 2] = Default::default();
    let mut rounds_seen: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut colours = Vec::with_capacity(arcs.len());
    for (arc, index) in arcs.iter().zip(step) {
        let (source, destination) = (schedule.source()[index], schedule.destination()[index]);
        let (number, from) = place[source as usize];
        let (_, to) = place[destination as usize];
        let group = &groups[number];
        let (direction, circle) = circle(from, to, group.members.len() as u32);
        if direction.is_some_and(|direction| direction != arc.direction) {
            return None;
        }
        let round = if group.rounds == 1 {
            0
        } else {
            let seen = rounds_seen.entry((source, destination)).or_insert(0);
            *seen += 1;
            *seen - 1
        };
        let numbers = &mut numbers[arc.direction as usize];
        let next = numbers.len() as u32;
        colours.push(*numbers.entry((number, round, circle)).or_insert(next));
    }
    let optimal = Direction::BOTH.into_iter().all(|direction| {
        let greatest = loads(direction, arcs, ring.ranks).into_iter().max().unwrap_or(0);
        numbers[direction as usize].len() == greatest as usize
    });
    optimal.then_some(colours)
}

/// The number of the circle that carries the lightpath from member `from` to member `to`, and its
/// direction, or `None` where two members face each other and either way will do.
fn circle(from: u32, to: u32, members: u32) -> (Option<Direction>, u32) {
    use Direction::{Clockwise, CounterClockwise};
    let half = members / 2;
    let pairs = half * half.saturating_sub(1) / 2;
    let odd_one = |member: u32| member == 2 * half;
    if odd_one(from) || odd_one(to) {
        let (facing, to_odd) = if odd_one(to) { (from, true) } else { (to, false) };
        // Clockwise B_t -> C -> A_t, counter-clockwise A_t -> C -> B_t.
        let direction = if (facing < half) == to_odd { CounterClockwise } else { Clockwise };
        return (Some(direction), pairs + facing % half);
    }
    let (from_couple, to_couple) = (from % half, to % half);
    if from_couple == to_couple {
        let direction = match (members % 2 == 1, from < half) {
            (true, true) => Some(Clockwise),
            (true, false) => Some(CounterClockwise),
            (false, _) => None,
        };
        return (direction, pairs + from_couple);
    }
    let (low, high) = (from_couple.min(to_couple), from_couple.max(to_couple));
    // Clockwise: A_high -> B_low -> B_high -> A_low -> A_high.
    let next_clockwise = match (from_couple == high, from < half) {
        (true, true) => low + half,
        (false, false) => high + half,
        (true, false) => low,
        (false, true) => high,
    };
    let direction = if to == next_clockwise { Clockwise } else { CounterClockwise };
    (Some(direction), high * (high - 1) / 2 + low)
}

/// Members of one all-to-all, in ring order, and how many transfers each ordered pair has.
struct Group {
    members: Vec<u32>,
    rounds: u32,
}

/// The step's transfers as uniform all-to-alls among disjoint sets of ranks, if they are.
fn groups(schedule: &Schedule, step: Range<usize>, ranks: u32) -> Option<Vec<Group>> {
    let (sources, destinations) = (schedule.source(), schedule.destination());
    // The lowest rank that each rank exchanges with, or itself: the name of its set.
    let mut set: Vec<u32> = (0..ranks).collect();
    for index in step.clone() {
        let (source, destination) = (sources[index] as usize, destinations[index]);
        set[source] = set[source].min(destination);
    }
    let mut sent: Vec<u32> = vec![0; ranks as usize];
    for index in step.clone() {
        let (source, destination) = (sources[index], destinations[index]);
        if set[source as usize] != set[destination as usize] {
            return None;
        }
        sent[source as usize] += 1;
    }
    let mut members: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for rank in 0..ranks {
        if sent[rank as usize] > 0 {
            members.entry(set[rank as usize]).or_default().push(rank);
        }
    }
    let mut groups = Vec::with_capacity(members.len());
    for members in members.into_values() {
        let others = members.len() as u32 - 1;
        let each = sent[members[0] as usize];
        if others == 0 || each % others != 0 {
            return None;
        }
        if members.iter().any(|&member| sent[member as usize] != each) {
            return None;
        }
        groups.push(Group { members, rounds: each / others });
    }
    groups.sort_by_key(|group| group.members[0]);
    uniform(schedule, step, &groups, &set).then_some(groups)
}

/// Whether every ordered pair inside a group has the group's number of transfers. With the right
/// total per source it is enough that none has more.
fn uniform(schedule: &Schedule, step: Range<usize>, groups: &[Group], set: &[u32]) -> bool {
    let rounds: FxHashMap<u32, u32> =
        groups.iter().map(|group| (set[group.members[0] as usize], group.rounds)).collect();
    let mut count: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    count.reserve(step.len());
    step.into_iter().all(|index| {
        let pair = (schedule.source()[index], schedule.destination()[index]);
        let seen = count.entry(pair).or_insert(0);
        *seen += 1;
        *seen <= rounds[&set[pair.0 as usize]]
    })
}
