//! Sets of ranks that form one-stage all-to-alls, and the circles of lightpaths that carry an
//! all-to-all.
//!
//! Let n members be numbered in ring order, and h = floor(n / 2). Members A_t = t and B_t = t + h
//! (t < h) form couple t; for odd n, member C = 2h is in no couple. The lightpaths between all
//! members form circles, each of which covers every link of the ring once:
//!
//! * for each pair s < t, clockwise A_t -> B_s -> B_t -> A_s -> A_t, and counter-clockwise A_t ->
//!   A_s -> B_t -> B_s -> A_t: all lightpaths between couple s and couple t;
//! * even n: A_t -> B_t -> A_t, half the couples each way;
//! * odd n: clockwise A_t -> B_t -> C -> A_t, counter-clockwise A_t -> C -> B_t -> A_t.
//!
//! The number of circles per direction, which is the load of every link, is h(h-1)/2 + ceil(h/2)
//! for even n and h(h-1)/2 + h for odd n; both equal ceil(floor(n^2/4)/2). This is the least
//! possible load for any positions of the members (theorem R3; Opatrny, Theoretical Computer
//! Science 2003). Evenly spaced members use their shorter arcs.

use rustc_hash::FxHashMap;

use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::Direction;
use opticoll_plan::schedule::StepColumns;

/// Returns the direction and the number of the circle that carries the lightpath from member `from`
/// to member `to`. The direction is `None` if the two members form a couple of an even number of
/// members, in which case both directions are possible.
pub fn circle(from: u32, to: u32, members: u32) -> (Option<Direction>, u32) {
    use Direction::{Clockwise, CounterClockwise};
    let half = members / 2;
    let pairs = half * half.saturating_sub(1) / 2;
    let odd_one = |member: u32| member == 2 * half;
    if odd_one(from) || odd_one(to) {
        let (facing, to_odd) = if odd_one(to) {
            (from, true)
        } else {
            (to, false)
        };
        // Clockwise: B_t -> C -> A_t. Counter-clockwise: A_t -> C -> B_t.
        let direction = if (facing < half) == to_odd {
            CounterClockwise
        } else {
            Clockwise
        };
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
    let direction = if to == next_clockwise {
        Clockwise
    } else {
        CounterClockwise
    };
    (Some(direction), high * (high - 1) / 2 + low)
}

/// Members of one all-to-all.
pub struct AllToAllGroup {
    /// Members in ring order.
    pub members: Vec<u32>,
    /// Maximum number of transfers of an ordered pair.
    pub rounds: u32,
}

/// Divides the transfers of a step into all-to-alls among disjoint sets of ranks. Returns `None` if
/// this is impossible, because a pair of a set has no transfer or a transfer joins two sets.
pub fn groups(step: StepColumns<'_>, ranks: u32) -> Option<Vec<AllToAllGroup>> {
    // Name of each rank's set: the lowest rank that the rank sends to, or the rank itself.
    let mut set: Vec<u32> = (0..ranks).collect();
    for (source, destination) in step.ends() {
        interrupt::check();
        let destination = Some(destination).filter(|&destination| destination < ranks)?;
        let name = set.get_mut(source as usize)?;
        *name = destination.min(*name);
    }
    // Most steps are not all-to-alls, which the first transfer between two sets shows.
    let name = |rank: u32| set[rank as usize];
    let mut ends = step.ends();
    if ends.any(|(source, destination)| name(source) != name(destination)) {
        return None;
    }
    let mut pairs: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    pairs.reserve(step.len());
    let mut rounds: Vec<u32> = vec![0; ranks as usize];
    let mut sent_to: Vec<u32> = vec![0; ranks as usize];
    for (source, destination) in step.ends() {
        interrupt::check();
        let count = pairs.entry((source, destination)).or_insert(0);
        sent_to[source as usize] += u32::from(*count == 0);
        *count += 1;
        let rounds = &mut rounds[name(source) as usize];
        *rounds = (*rounds).max(*count);
    }
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); ranks as usize];
    for rank in (0..ranks).filter(|&rank| sent_to[rank as usize] > 0) {
        members[set[rank as usize] as usize].push(rank);
    }
    members
        .into_iter()
        .zip(rounds)
        .enumerate()
        .filter(|(_, (members, _))| !members.is_empty())
        .map(|(name, (members, rounds))| {
            let others = members.len() as u32 - 1;
            // The rank that names the set is a member only if it sends as well.
            let complete = members[0] as usize == name
                && members
                    .iter()
                    .all(|&member| sent_to[member as usize] == others);
            complete.then_some(AllToAllGroup { members, rounds })
        })
        .collect()
}

/// Returns the number of each rank's group and the index of the rank among its members.
pub fn member_indices(groups: &[AllToAllGroup], ranks: u32) -> Vec<(usize, u32)> {
    let mut places = vec![(0, 0); ranks as usize];
    for (number, group) in groups.iter().enumerate() {
        interrupt::check();
        for (index, &member) in group.members.iter().enumerate() {
            places[member as usize] = (number, index as u32);
        }
    }
    places
}
