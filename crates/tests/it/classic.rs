//! The named algorithms that run on any fabric: the messages of each step, and their steps and
//! volumes against theory.

mod dragonfly;
mod formula;
mod levels;
mod patterns;
mod table;

use opticoll::family::wdm_ring::WdmRing;
use std::collections::{BTreeMap, BTreeSet};

use opticoll::algorithms;
use opticoll::algorithms::Algorithm;
use opticoll::collective::CollectiveKind::*;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::placement::wdm_ring::placement::{Assignment, assign};
use opticoll::plan::Plan;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate::{Policy, simulate};
use opticoll::units::Bytes;
use opticoll::verify::verify;

use crate::{plan_with, verified};
use formula::{Variables, agrees};
use opticoll::algorithms::formula::rank_variables;

/// Returns the verified schedule of an algorithm, in ranges of chunks, from a root.
fn ranges_from(kind: CollectiveKind, spec: &str, ranks: u32, root: u32) -> Schedule {
    let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths=64")).unwrap();
    let collective = Collective::new(kind, ranks)
        .and_then(|collective| collective.with_root(root))
        .unwrap();
    let spec = spec.parse().unwrap();
    let schedule = algorithms::build_ranges(&spec, collective, &fabric)
        .unwrap_or_else(|error| panic!("{kind} {spec} on {ranks}: {error}"));
    let ring = fabric.downcast::<WdmRing>().unwrap();
    let light = opticoll::placement::wdm_ring::route::shortest_arcs(&schedule, ring);
    let name = spec.to_string();
    let plan = assign(schedule, light, &fabric, Assignment::AUTO, name).unwrap();
    assert_eq!(verify(&plan), [], "{kind} {spec} on {ranks} from {root}");
    plan.schedule
}

fn ranges(kind: CollectiveKind, spec: &str, ranks: u32) -> Schedule {
    ranges_from(kind, spec, ranks, 0)
}

/// Returns the most chunks that one rank sends, or receives, as `rank_of` selects.
fn most(schedule: &Schedule, rank_of: fn(&Transfer) -> u32) -> u64 {
    let mut sums = vec![0u64; schedule.collective.ranks() as usize];
    for transfer in schedule.transfers() {
        sums[rank_of(&transfer) as usize] += u64::from(transfer.count);
    }
    sums.into_iter().max().unwrap_or(0)
}

/// Returns the values of the variables of formulas.
fn values(record: &Algorithm, ranks: u32) -> Variables {
    let mut values = rank_variables(ranks);
    let segments = record
        .options
        .iter()
        .find(|option| option.name == "segments");
    if let Some(option) = segments {
        values.insert('K', option.default.parse().unwrap());
    }
    values
}

#[test]
fn every_algorithm_costs_what_its_formulas_say_and_has_no_empty_step() {
    let mut formulas = 0;
    for record in crate::general_algorithms() {
        for ranks in (2..=64).chain([100, 127, 128]) {
            if (record.accepts)(ranks).is_err() {
                continue;
            }
            let schedule = ranges(record.collective, record.name, ranks);
            let place = format!("{} {} on {ranks}", record.collective, record.name);
            let empty = (0..schedule.steps()).find(|&step| schedule.step(step).is_empty());
            assert_eq!(empty, None, "{place}");
            let unit = f64::from(schedule.collective.pieces());
            let sent = most(&schedule, |one| one.source);
            let received = most(&schedule, |one| one.destination);
            let values = values(record, ranks);
            for (what, formula, number) in [
                ("steps", record.costs.steps, schedule.steps() as f64),
                ("sent", record.costs.sent, sent as f64 / unit),
                ("received", record.costs.received, received as f64 / unit),
            ] {
                let Some(formula) = formula else { continue };
                formulas += 1;
                let holds = agrees(number, formula, &values);
                assert!(holds, "{place}: {what} {number}, not {formula}");
            }
        }
    }
    assert!(formulas > 5000, "the test looks at formulas: {formulas}");
}

#[test]
fn claims_say_what_formulas_say() {
    for record in crate::general_algorithms().filter(|record| record.costs.steps.is_some()) {
        for ranks in (1..=17).filter(|&ranks| (record.accepts)(ranks).is_ok()) {
            let schedule = ranges(record.collective, record.name, ranks);
            let claims = &schedule.claims;
            let place = format!("{} {} on {ranks}", record.collective, record.name);
            assert_eq!(
                claims.schedule_steps,
                Some(schedule.steps() as u32),
                "{place}"
            );
            // Backwards, what was sent is received.
            if record.reversed_from.is_none() {
                let sent = most(&schedule, |one| one.source);
                assert_eq!(claims.chunks_sent_per_rank, Some(sent), "{place}");
            }
        }
    }
}

#[test]
fn a_single_rank_has_nothing_to_do() {
    for record in crate::general_algorithms().filter(|record| (record.accepts)(1).is_ok()) {
        let schedule = ranges(record.collective, record.name, 1);
        assert_eq!(
            (schedule.steps(), schedule.len()),
            (0, 0),
            "{}",
            record.name
        );
    }
}

#[test]
fn every_option_is_correct_on_every_number_of_ranks() {
    for (kind, name, options) in [
        (AllGather, "direct", &["order=shift", "order=at_once"][..]),
        (AllReduce, "halving_doubling", &["order=near", "order=far"]),
        (AllToAll, "pairwise", &["order=shift"]),
        (ReduceScatter, "pairwise", &["order=shift"]),
        (
            Broadcast,
            "chain",
            &["segments=1", "segments=2", "segments=19"],
        ),
        (Reduce, "chain", &["segments=3"]),
        (
            Broadcast,
            "double_tree",
            &["segments=1", "segments=2", "segments=7"],
        ),
        (Reduce, "double_tree", &["segments=5"]),
        (
            AllReduce,
            "double_binary_tree",
            &["segments=1", "segments=2", "segments=9"],
        ),
    ] {
        for options in options {
            for ranks in 1..=64 {
                ranges(kind, &format!("{name}:{options}"), ranks);
            }
            verified(kind, &format!("{name}:{options}"), 21, 3);
        }
    }
    for ranks in [1, 2, 4, 8, 16, 32, 64] {
        ranges(AllToAll, "pairwise:order=xor", ranks);
        ranges(ReduceScatter, "pairwise:order=xor", ranks);
        ranges(AllReduce, "swing:minimize=steps", ranks);
    }
}

#[test]
fn every_root_is_respected() {
    for record in crate::general_algorithms() {
        if !matches!(record.collective, Broadcast | Reduce | Gather | Scatter) {
            continue;
        }
        for ranks in [2, 3, 6, 8, 13] {
            for root in 0..ranks {
                ranges_from(record.collective, record.name, ranks, root);
            }
        }
    }
}

/// Returns the most sends, or receives, of one rank in a step.
fn busiest(schedule: &Schedule) -> usize {
    let mut busiest = 0;
    for step in 0..schedule.steps() {
        let mut uses = BTreeMap::new();
        for index in schedule.step(step) {
            let transfer = schedule.transfer(index);
            *uses.entry((transfer.source, "sends")).or_insert(0) += 1;
            *uses.entry((transfer.destination, "receives")).or_insert(0) += 1;
        }
        busiest = busiest.max(uses.into_values().max().unwrap_or(0));
    }
    busiest
}

#[test]
fn two_trees_use_all_ports_all_the_time() {
    for ranks in 2..=64u32 {
        for segments in [2u32, 8, 32, 33] {
            let depth = (ranks - 1).ilog2();
            // An odd piece more waits for the next turn of its tree.
            let rounds = segments + segments % 2;
            let down = ranges(
                Broadcast,
                &format!("double_tree:segments={segments}"),
                ranks,
            );
            assert_eq!(busiest(&down), 1, "{ranks}");
            assert!(
                down.steps() as u32 <= rounds + 2 * depth,
                "{ranks}, {segments}"
            );
            // No broadcast from one port takes fewer than K - 1 + ceil(log2 N).
            assert!(down.steps() as u32 >= segments - 1 + ranks.next_power_of_two().ilog2());
            let spec = format!("double_binary_tree:segments={segments}");
            let both = ranges(AllReduce, &spec, ranks);
            assert!(busiest(&both) <= 2, "{ranks}");
            assert!(
                both.steps() as u32 <= rounds + 4 * depth + 2,
                "{ranks}, {segments}"
            );
        }
    }
}

#[test]
fn a_rank_talks_to_one_at_a_time_in_most_algorithms() {
    for (kind, name) in [
        (AllGather, "ring"),
        (AllGather, "direct"),
        (AllReduce, "ring"),
        (AllToAll, "pairwise"),
        (ReduceScatter, "pairwise"),
        (Broadcast, "scatter_all_gather"),
        (Broadcast, "chain"),
        (Broadcast, "binomial"),
        (Broadcast, "linear"),
        (Scatter, "linear"),
        (Barrier, "dissemination"),
        (Barrier, "recursive_doubling"),
        (AllReduce, "recursive_doubling"),
        (AllReduce, "halving_doubling"),
        (AllReduce, "swing"),
    ] {
        let record = algorithms::find(kind, name).unwrap();
        for ranks in (2..=40).filter(|&ranks| (record.accepts)(ranks).is_ok()) {
            assert_eq!(
                busiest(&ranges(kind, name, ranks)),
                1,
                "{kind} {name} on {ranks}"
            );
        }
    }
}

#[test]
fn ranges_keep_transfers_few() {
    // Messages: N log2 N for powers of two; Bruck's wrap around the end of the chunks.
    for ranks in [2u32, 16, 64] {
        let exchanges = (ranks * ranks.ilog2()) as usize;
        assert_eq!(
            ranges(AllGather, "recursive_doubling", ranks).len(),
            exchanges
        );
        assert_eq!(
            ranges(ReduceScatter, "recursive_halving", ranks).len(),
            exchanges
        );
        assert_eq!(
            ranges(AllReduce, "halving_doubling", ranks).len(),
            2 * exchanges
        );
        assert!(ranges(AllGather, "bruck", ranks).len() <= 2 * exchanges);
        let edges = ranks as usize - 1;
        assert!(ranges(AllGather, "gather_broadcast", ranks).len() <= 3 * edges);
        assert_eq!(ranges(Scatter, "binomial", ranks).len(), edges);
    }
    let build = |kind, name: &str, ranks: u32| {
        let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths=1")).unwrap();
        let collective = Collective::new(kind, ranks).unwrap();
        algorithms::build_ranges(&name.parse().unwrap(), collective, &fabric).unwrap()
    };
    let many = build(AllGather, "recursive_doubling", 65_536);
    assert_eq!((many.len(), many.steps()), (65_536 * 16, 16));
    assert_eq!(
        build(AllReduce, "halving_doubling", 65_536).len(),
        2 * 65_536 * 16
    );
    assert_eq!(build(Barrier, "dissemination", 65_536).len(), 65_536 * 16);
}

#[test]
fn on_wavelengths_a_range_is_cut_into_chunks() {
    for record in crate::general_algorithms() {
        for ranks in [2, 6, 16]
            .into_iter()
            .filter(|&ranks| (record.accepts)(ranks).is_ok())
        {
            let Plan { schedule, .. } = verified(record.collective, record.name, ranks, 64);
            assert!(schedule.has_single_chunks(), "{}", record.name);
            let whole = ranges(record.collective, record.name, ranks);
            let deliveries: u32 = whole.transfers().map(|one| one.count).sum();
            assert_eq!(schedule.len() as u32, deliveries, "{}", record.name);
            assert_eq!(schedule.claims, whole.claims, "{}", record.name);
        }
    }
}

#[test]
fn everybody_hears_from_everybody_in_a_barrier() {
    for record in crate::general_algorithms().filter(|record| record.collective == Barrier) {
        for ranks in 1..=200u32 {
            let schedule = ranges(Barrier, record.name, ranks);
            let mut heard: Vec<BTreeSet<u32>> = (0..ranks).map(|rank| [rank].into()).collect();
            for step in 0..schedule.steps() {
                let before = heard.clone();
                for index in schedule.step(step) {
                    let signal = schedule.transfer(index);
                    heard[signal.destination as usize].extend(&before[signal.source as usize]);
                }
            }
            let silent = heard.iter().find(|heard| heard.len() as u32 != ranks);
            assert_eq!(silent, None, "{} on {ranks}", record.name);
        }
    }
}

#[test]
fn a_barrier_takes_as_long_whatever_its_size() {
    let fabric = "wdm_ring:ranks=12,wavelengths=4,conversion=10ns,propagation=5ns";
    for name in ["dissemination", "recursive_doubling"] {
        let plan = plan_with(Barrier, name, fabric, "auto").unwrap();
        assert_eq!(verify(&plan), []);
        for policy in Policy::ALL {
            let time = |bytes| {
                simulate(&plan, Bytes::new(bytes), policy, "circuit")
                    .unwrap()
                    .time
            };
            assert_eq!(time(0), time(1 << 30), "{name}");
        }
        // Every signal takes a slot of its longest lightpath: nothing but conversion and distance.
        let free = simulate(&plan, Bytes::new(1), Policy::Free, "circuit")
            .unwrap()
            .time;
        let least = 10 * plan.schedule.steps() as u64 * 1000;
        assert!(free.ps() > least, "{name}: {free}");
    }
    let barrier = Collective::new(Barrier, 12).unwrap();
    assert_eq!(
        barrier.range_bytes(Bytes::new(100), 0, 1),
        Ok(Bytes::new(0))
    );
    assert_eq!(barrier.chunk_bytes(Bytes::new(100), 0), Bytes::new(0));
}
