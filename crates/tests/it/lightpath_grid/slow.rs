//! A slow simulation without ports, in which every rank has a list of the ranks to which it has a
//! lightpath. The circuit simulator must give the same times for every algorithm and every rule for
//! keeping lightpaths.

use std::collections::{BTreeMap, BTreeSet};

use opticoll::collective::CollectiveKind;
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;

use super::{algorithms, proved};

/// Two ranks, the lower one first.
type Pair = (u32, u32);

/// 100 us, 1 Gb/s, and 7 ms and 3 ms, which differ so that they are not confused.
const LATENCY: u64 = 100_000_000;
const PER_BYTE: u64 = 8_000;
const ESTABLISH: u64 = 7_000_000_000;
const RELEASE: u64 = 3_000_000_000;

/// Lists, for each slot, the pairs that communicate and the time of the longest message.
fn slots(plan: &Plan, size: u64) -> Vec<(Vec<Pair>, u64)> {
    let collective = plan.schedule.collective;
    let mut slots = vec![BTreeMap::<(u32, u32), u64>::new(); plan.slots() as usize];
    for transfer in 0..plan.len() {
        let moved = plan.schedule.transfer(transfer);
        let bytes: u64 = (moved.chunk..moved.chunk + moved.count)
            .map(|chunk| collective.chunk_bytes(Bytes::new(size), chunk).get())
            .sum();
        let slot = &mut slots[plan.slot[transfer] as usize];
        *slot.entry((moved.source, moved.destination)).or_insert(0) += bytes;
    }
    let finished = slots.into_iter().map(|messages| {
        let longest = messages
            .values()
            .max()
            .map(|bytes| LATENCY + bytes * PER_BYTE);
        let pairs = messages
            .keys()
            .map(|&(one, other)| (one.min(other), one.max(other)));
        let pairs: BTreeSet<Pair> = pairs.collect();
        (pairs.into_iter().collect(), longest.unwrap_or(0))
    });
    finished.collect()
}

/// Divides the slots into runs, each as long as no rank has more than `ports` partners in it.
fn groups(slots: &[(Vec<Pair>, u64)], ports: usize) -> Vec<Vec<Pair>> {
    let mut groups: Vec<BTreeSet<Pair>> = Vec::new();
    for (pairs, _) in slots.iter().filter(|(pairs, _)| !pairs.is_empty()) {
        let together = groups.last().map(|group| {
            let mut together = group.clone();
            together.extend(pairs);
            together
        });
        match together.filter(|together| most_partners(together) <= ports) {
            Some(together) => *groups.last_mut().unwrap() = together,
            None => groups.push(pairs.iter().copied().collect()),
        }
    }
    groups
        .into_iter()
        .map(|group| group.into_iter().collect())
        .collect()
}

fn most_partners(pairs: &BTreeSet<Pair>) -> usize {
    let mut partners: BTreeMap<u32, usize> = BTreeMap::new();
    for &(one, other) in pairs {
        *partners.entry(one).or_insert(0) += 1;
        *partners.entry(other).or_insert(0) += 1;
    }
    partners.values().copied().max().unwrap_or(0)
}

/// Returns the cost of the groups in the last of `runs` runs, where every rank keeps the lightpaths
/// that it used last. Within a group, the function looks at lightpaths slot by slot, in the order
/// in which a plan received its ports.
fn kept(plan: &Plan, size: u64, ports: usize, runs: usize) -> u64 {
    let slots = slots(plan, size);
    let groups = groups(&slots, ports);
    // Each rank's partners, the one used longest ago first.
    let mut partners: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut cost = 0;
    for _ in 0..runs {
        cost = 0;
        for group in &groups {
            let there =
                |&(one, other): &Pair| partners.get(&one).is_some_and(|list| list.contains(&other));
            let missing: Vec<Pair> = group.iter().filter(|pair| !there(pair)).copied().collect();
            for &(one, other) in group.iter().filter(|pair| !missing.contains(pair)) {
                use_last(&mut partners, one, other);
            }
            cost += if missing.is_empty() { 0 } else { ESTABLISH };
            let mut gone = false;
            for (one, other) in missing {
                for rank in [one, other] {
                    let list = partners.entry(rank).or_default();
                    if list.len() == ports {
                        let loser = list.remove(0);
                        partners
                            .get_mut(&loser)
                            .unwrap()
                            .retain(|&peer| peer != rank);
                        gone = true;
                    }
                }
                use_last(&mut partners, one, other);
            }
            cost += if gone { RELEASE } else { 0 };
        }
    }
    cost
}

fn use_last(partners: &mut BTreeMap<u32, Vec<u32>>, one: u32, other: u32) {
    for (rank, peer) in [(one, other), (other, one)] {
        let list = partners.entry(rank).or_default();
        list.retain(|&known| known != peer);
        list.push(peer);
    }
}

#[test]
fn times_are_those_of_a_simulation_that_knows_no_ports() {
    let size = 9_000;
    for ranks in [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17] {
        for (kind, algorithm) in algorithms(ranks) {
            for ports in [1, 2, 3, 4, 6] {
                let fabric =
                    format!("lightpath_grid:ranks={ranks},ports={ports},setup=7ms,teardown=3ms");
                let plan = proved(kind, algorithm, &fabric);
                let time = |settings: &[(&str, &str)]| {
                    let method = TimingModel::from_settings(settings.iter().copied()).unwrap();
                    let outcome = simulate::run(&plan, Bytes::new(size), &method).unwrap();
                    let slots = &outcome.slots;
                    let follows = slots.start.iter().skip(1).zip(&slots.end);
                    assert!(follows.into_iter().all(|(start, end)| start == end));
                    outcome.time.ps()
                };
                let slots = slots(&plan, size);
                let sending: u64 = slots.iter().map(|(_, longest)| longest).sum();
                let groups = groups(&slots, ports).len() as u64;
                let busy = slots.iter().filter(|(pairs, _)| !pairs.is_empty()).count() as u64;
                let case = format!("{kind} by {algorithm} on {fabric}");
                let both = ESTABLISH + RELEASE;
                assert_eq!(time(&[]), sending + groups * both, "{case}");
                assert_eq!(time(&[("policy", "free")]), sending, "{case}, free");
                let naive = time(&[("policy", "every_step")]);
                assert_eq!(naive, sending + busy * both, "{case}, every_step");
                assert!(time(&[("paths", "kept")]) <= time(&[]), "{case}, kept");
                assert!(
                    time(&[("paths", "warm")]) <= sending + groups * both,
                    "{case}, warm"
                );
            }
        }
    }
}

#[test]
fn kept_paths_are_those_used_last() {
    let size = 9_000;
    for ranks in [2, 3, 4, 5, 7, 8, 9, 16, 17, 32] {
        for (kind, algorithm) in [
            (CollectiveKind::AllGather, "ring"),
            (CollectiveKind::AllReduce, "ring"),
            (CollectiveKind::AllReduce, "recursive_doubling"),
            (CollectiveKind::AllGather, "recursive_doubling"),
            (CollectiveKind::Broadcast, "binomial"),
            (CollectiveKind::Broadcast, "linear"),
        ] {
            for ports in 1..=6 {
                let fabric =
                    format!("lightpath_grid:ranks={ranks},ports={ports},setup=7ms,teardown=3ms");
                let plan = proved(kind, algorithm, &fabric);
                let sending: u64 = slots(&plan, size).iter().map(|(_, longest)| longest).sum();
                for (paths, runs) in [("kept", 1), ("warm", 2)] {
                    let method = TimingModel::from_settings([("paths", paths)]).unwrap();
                    let found = simulate::run(&plan, Bytes::new(size), &method).unwrap();
                    let expected = sending + kept(&plan, size, ports, runs);
                    let case = format!("{kind} by {algorithm} on {fabric}, {paths}");
                    assert_eq!(found.time.ps(), expected, "{case}");
                }
            }
        }
    }
}
