//! Sets of ranks that form one-stage all-to-alls, and the circles of lightpaths that carry the data
//! of an all-to-all. A circle is a sequence of lightpaths that covers every link of the ring once.
//!
//! Let n members be numbered in ring order, and h = floor(n / 2). Couple t (t < h) consists of the
//! members A_t = t and B_t = t + h. If n is odd, member C = 2h belongs to no couple. The lightpaths
//! between all members form these circles:
//!
//! * for each pair s < t, clockwise A_t -> B_s -> B_t -> A_s -> A_t, and counter-clockwise A_t ->
//!   A_s -> B_t -> B_s -> A_t: all lightpaths between couple s and couple t;
//! * even n: A_t -> B_t -> A_t, half of the couples in each direction;
//! * odd n: clockwise A_t -> B_t -> C -> A_t, counter-clockwise A_t -> C -> B_t -> A_t.
//!
//! The number of circles per direction, which is the load of every link, is h(h-1)/2 + ceil(h/2)
//! for even n and h(h-1)/2 + h for odd n. Both numbers equal ceil(floor(n^2/4)/2). No routes have a
//! lower load, whatever the positions of the members (theorem R3; Opatrny, Theoretical Computer
//! Science 2003). If the members are evenly spaced, all lightpaths follow the shorter arcs.

use rustc_hash::FxHashMap;

use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::Direction;
use opticoll_plan::schedule::StepColumns;

/// Returns the direction and the index of the circle that contains the lightpath from member `from`
/// to member `to`. The direction is `None` if both directions are possible: the two members form a
/// couple, and `members` is even.
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

/// Set of ranks that exchange data in one all-to-all.
pub struct AllToAllGroup {
    /// Member ranks in ring order.
    pub members: Vec<u32>,
    /// Maximum number of transfers from one member to another member.
    pub rounds: u32,
}

/// Divides the transfers of a step into all-to-alls among disjoint sets of ranks. Returns `None` if
/// this is impossible, because two ranks of a set have no transfer or a transfer joins two sets.
pub fn groups(step: StepColumns<'_>, ranks: u32) -> Option<Vec<AllToAllGroup>> {
    // Name of each rank's set, indexed by rank: the lowest of the rank itself and its destinations.
    let mut set: Vec<u32> = (0..ranks).collect();
    for (source, destination) in step.ends() {
        interrupt::check();
        let destination = Some(destination).filter(|&destination| destination < ranks)?;
        let name = set.get_mut(source as usize)?;
        *name = destination.min(*name);
    }
    // In most steps, which are not all-to-alls, some transfer joins ranks with different names.
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
            // The rank whose number names the set must send too.
            let complete = members[0] as usize == name
                && members
                    .iter()
                    .all(|&member| sent_to[member as usize] == others);
            complete.then_some(AllToAllGroup { members, rounds })
        })
        .collect()
}

/// Returns, indexed by rank, the index of the group that contains the rank and the position of the
/// rank among the members of this group.
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
