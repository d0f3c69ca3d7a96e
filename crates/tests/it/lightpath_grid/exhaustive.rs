//! The least times of all plans of three and four ranks with one port, by exhaustive search: no
//! bound is above the least time, and no plan of as many pieces is below it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;

use crate::proved_plan;

/// A slot without bytes, and a byte, in ps.
const SLOT: u64 = 100_000_000;
const BYTE: u64 = 8_000;

/// Returns the least cost from a state to an end state, over all states and costs that `next`
/// returns (Dijkstra).
fn least<State: Ord + Clone>(
    start: State,
    is_end: impl Fn(&State) -> bool,
    next: impl Fn(&State) -> Vec<(State, u64)>,
) -> u64 {
    let mut known = BTreeMap::from([(start.clone(), 0)]);
    let mut ahead = BinaryHeap::from([Reverse((0, start))]);
    while let Some(Reverse((time, state))) = ahead.pop() {
        if is_end(&state) {
            return time;
        }
        if known[&state] < time {
            continue;
        }
        for (state, cost) in next(&state) {
            let time = time + cost;
            if known.get(&state).is_none_or(|&before| time < before) {
                known.insert(state.clone(), time);
                ahead.push(Reverse((time, state)));
            }
        }
    }
    panic!("no end is reached");
}

/// Lists all sets of disjoint pairs of ranks.
fn matchings(ranks: &[usize]) -> Vec<Vec<(usize, usize)>> {
    let Some((&first, rest)) = ranks.split_first() else {
        return vec![Vec::new()];
    };
    let mut all = matchings(rest);
    for &other in rest {
        let left: Vec<usize> = rest.iter().copied().filter(|&one| one != other).collect();
        for mut pairs in matchings(&left) {
            pairs.push((first, other));
            all.push(pairs);
        }
    }
    all
}

/// Lists the subsets of a set of bits that have `count` members, or the set itself if it has fewer.
fn subsets(set: u32, count: u32) -> Vec<u32> {
    let count = count.min(set.count_ones());
    (0..=set)
        .filter(|one| one & !set == 0 && one.count_ones() == count)
        .collect()
}

/// Returns the least time of a broadcast in `pieces` pieces. A state is the set of pieces of each
/// rank.
fn broadcast(ranks: usize, pieces: u32, piece: u64) -> u64 {
    let all = (1u32 << pieces) - 1;
    let mut start = vec![0; ranks];
    start[0] = all;
    let pairs = matchings(&(0..ranks).collect::<Vec<usize>>());
    least(
        start,
        |state: &Vec<u32>| state.iter().all(|&own| own == all),
        |state| {
            let mut found = Vec::new();
            // More pieces in the same time are never worse.
            for most in 1..=pieces {
                for pairs in &pairs {
                    let mut states = vec![state.clone()];
                    for &(one, other) in pairs {
                        let there = subsets(state[one] & !state[other], most);
                        let back = subsets(state[other] & !state[one], most);
                        let sent = |state: &Vec<u32>, there: u32, back: u32| {
                            let mut state = state.clone();
                            state[other] |= there;
                            state[one] |= back;
                            state
                        };
                        let each = states.iter().flat_map(|state| {
                            let ways = there
                                .iter()
                                .flat_map(|&there| back.iter().map(move |&back| (there, back)));
                            ways.map(move |(there, back)| sent(state, there, back))
                        });
                        states = each.collect();
                    }
                    found.extend(
                        states
                            .into_iter()
                            .map(|state| (state, SLOT + u64::from(most) * piece)),
                    );
                }
            }
            found
        },
    )
}

/// Returns the least time of an all_to_all among three ranks. A state is the place of each of the
/// six blocks.
fn exchange(block: u64) -> u64 {
    let blocks: Vec<(u8, u8)> = (0..3)
        .flat_map(|from| (0..3).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    let start: Vec<u8> = blocks.iter().map(|block| block.0).collect();
    let end: Vec<u8> = blocks.iter().map(|block| block.1).collect();
    least(
        start,
        |state| *state == end,
        |state| {
            let mut found = Vec::new();
            for (one, other) in [(0, 1), (0, 2), (1, 2)] {
                for moved in 0u32..1 << blocks.len() {
                    let mut next = state.clone();
                    let mut sent = [0u64; 2];
                    let mut exists = true;
                    let chosen = next
                        .iter_mut()
                        .enumerate()
                        .filter(|(index, _)| moved >> index & 1 == 1);
                    for (_, place) in chosen {
                        match *place {
                            at if at == one => (*place, sent[0]) = (other, sent[0] + 1),
                            at if at == other => (*place, sent[1]) = (one, sent[1] + 1),
                            _ => exists = false,
                        }
                    }
                    if exists && moved > 0 {
                        found.push((next, SLOT + sent[0].max(sent[1]) * block));
                    }
                }
            }
            found
        },
    )
}

/// Returns the bound and the time of a named plan, in ps, under the policy `free`.
fn bound_and_time(ranks: u32, kind: CollectiveKind, name: &str, bytes: u64) -> (u64, u64) {
    let fabric = Fabric::parse(&format!("lightpath_grid:ranks={ranks}")).unwrap();
    let collective = Collective::new(kind, ranks).unwrap();
    let method = TimingModel::from_settings(vec![("policy", "free")]).unwrap();
    let size = Bytes::new(bytes);
    let planned = proved_plan(name, &fabric, collective, size, &method);
    let time = simulate::run(&planned.plan, size, &method).unwrap().time;
    let bound = planner::time_bound(&fabric, &collective, size, &method)
        .unwrap()
        .unwrap();
    (bound.time.ps(), time.ps())
}

#[test]
fn no_bound_is_above_the_least_broadcast() {
    for (ranks, pieces) in [(3, 3), (4, 1), (4, 2), (4, 3)] {
        for bytes in [10, 1000, 5000, 12_500, 100_000] {
            let least = broadcast(ranks, pieces, bytes * BYTE);
            for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
                let (bound, _) =
                    bound_and_time(ranks as u32, kind, "binomial", u64::from(pieces) * bytes);
                assert!(
                    bound <= least,
                    "{kind}, {ranks} ranks, {pieces} pieces of {bytes} bytes: {bound} {least}"
                );
            }
            if ranks == 4 {
                let name = format!("pipelined:pieces={pieces}");
                let kind = CollectiveKind::Broadcast;
                let (_, time) = bound_and_time(4, kind, &name, u64::from(pieces) * bytes);
                assert!(
                    least <= time,
                    "{pieces} pieces of {bytes} bytes: {time} {least}"
                );
            }
        }
    }
}

#[test]
fn the_bound_of_an_all_to_all_of_three_ranks_is_below_the_least_and_auto_meets_it() {
    for bytes in [10, 1000, 12_500, 100_000] {
        let least = exchange(bytes * BYTE);
        let (bound, time) = bound_and_time(3, CollectiveKind::AllToAll, "auto", 3 * bytes);
        assert!(bound <= least, "{bytes} bytes: {bound} {least}");
        // Three ranks with one port: while two exchange the third waits.
        assert!(
            least <= time && time <= least + least / 2,
            "{bytes} bytes: {time} {least}"
        );
    }
}
