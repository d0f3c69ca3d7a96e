//! Times of plans against SimGrid and against theory, and the facts that a simulation reports about
//! them.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::simulate::fluid::{FlowOptions, StartRule, Weights};
use opticoll::simulate::outcome::Flowing;
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;

use crate::fluid::networks::spelled;
use crate::rows;
use serde_json::Value;

use super::proved;

fn seconds(plan: &Plan, bytes: u64, start: StartRule, options: FlowOptions) -> f64 {
    let method = TimingModel {
        start: Some(start),
        fluid: options,
        ..TimingModel::default()
    };
    let outcome = simulate::run(plan, Bytes::new(bytes), &method).unwrap();
    assert_eq!(outcome.simulator, "fluid");
    outcome.time.seconds()
}

/// Collectives of the reference, with their kind and algorithm here, and the divisor of a size.
const NAMED: &str = "
ag_ring | all_gather | ring | ranks
ag_rdb | all_gather | recursive_doubling | ranks
ag_bruck | all_gather | bruck | ranks
ar_ring | all_reduce | ring | 1
ar_rdb | all_reduce | recursive_doubling | 1
ar_rabnear | all_reduce | halving_doubling | 1
ar_rab | all_reduce | halving_doubling:order=far | 1
a2a_pair | all_to_all | pairwise | 1
";

/// Compares the times of the reference's rows; how many there were.
fn agree(table: &str, latency: &str, weights: Weights) -> usize {
    let reference: Value = serde_json::from_str(include_str!("../../data/simgrid.json")).unwrap();
    let mut compared = 0;
    for case in reference[table]["rows"].as_array().unwrap() {
        let ranks = case[1].as_u64().unwrap();
        let named = rows(NAMED).find(|named: &[&str; 4]| case[2] == named[0]);
        let name = case[0].as_str().unwrap();
        let parameters = reference[name][ranks.to_string()].as_str();
        let platform = spelled(name, ranks, parameters, latency);
        let (Some([_, kind, algorithm, divisor]), Some(platform)) = (named, platform) else {
            continue;
        };
        if ranks > 256 {
            continue;
        }
        let fabric = Fabric::parse(&platform).unwrap();
        let plan = proved(kind.parse().unwrap(), algorithm, &fabric);
        let bytes = case[3].as_u64().unwrap() / if divisor == "ranks" { ranks } else { 1 };
        let options = FlowOptions {
            weights,
            ..FlowOptions::default()
        };
        let start = case[4].as_str().unwrap().parse().unwrap();
        let (got, expected) = (
            seconds(&plan, bytes, start, options),
            case[5].as_f64().unwrap(),
        );
        assert!((got - expected).abs() <= 1e-6 * expected, "{case}: {got}");
        compared += 1;
    }
    compared
}

#[test]
fn named_algorithms_take_as_long_as_in_simgrid() {
    assert!(agree("collectives", "0s", Weights::Equal) >= 60);
}

#[test]
fn named_algorithms_take_as_long_as_in_simgrid_with_latencies_and_their_weights() {
    assert!(agree("latencies", "1us", Weights::InverseLatency) >= 10);
}

/// On a switch of rate B without latency, a vector of M bytes.
#[test]
fn times_on_a_switch_are_those_of_theory() {
    let fabric = Fabric::parse("crossbar:ranks=8,rate=8Gb/s").unwrap();
    let size = 8_000_000;
    // M / B is 8 ms.
    for (kind, algorithm, expected) in [
        (CollectiveKind::AllGather, "ring", 56e-3),
        (CollectiveKind::AllGather, "direct", 56e-3),
        (CollectiveKind::AllReduce, "ring", 14e-3),
        (CollectiveKind::AllReduce, "halving_doubling", 14e-3),
        (CollectiveKind::AllReduce, "recursive_doubling", 24e-3),
        (CollectiveKind::AllToAll, "pairwise", 7e-3),
        (CollectiveKind::Broadcast, "binomial", 24e-3),
        (CollectiveKind::Barrier, "dissemination", 0.0),
    ] {
        let plan = proved(kind, algorithm, &fabric);
        for rule in StartRule::ALL {
            let got = seconds(&plan, size, rule, FlowOptions::default());
            assert!(
                (got - expected).abs() <= 1e-9 * expected,
                "{algorithm}: {got}"
            );
        }
    }
}

/// Swing on a ring of N = 16 ranks. In the step of the odd distance d, messages go in both
/// directions at once; those of one direction start at every second rank, so that (d + 1) / 2
/// messages share each link. The halving of a vector M takes M / B times 1/2 + 1/4 + 2/8 + 3/16,
/// and the doubling takes as long again. Halving with partners at distances 1, 2, 4 and 8, where d
/// messages share a link, takes 1/2 + 2/4 + 4/8 for the first three steps alone.
#[test]
fn swing_takes_less_on_a_ring_than_halving() {
    let fabric = Fabric::parse("electrical_ring:ranks=16,rate=1GB/s").unwrap();
    let time = |algorithm| {
        let plan = proved(CollectiveKind::AllReduce, algorithm, &fabric);
        seconds(&plan, 8_000_000, StartRule::Step, FlowOptions::default())
    };
    let expected = 2.0 * 8e-3 * (1.0 / 2.0 + 1.0 / 4.0 + 2.0 / 8.0 + 3.0 / 16.0);
    assert!((time("swing") - expected).abs() <= 1e-9 * expected);
    assert!(time("halving_doubling") > 2.0 * 8e-3 * 1.5);
    // Whole vectors: 1 + 1 + 2 + 3.
    let whole = 7.0 * 8e-3;
    assert!((time("swing:minimize=steps") - whole).abs() <= 1e-9 * whole);
}

/// Bruck sends ranges of chunks that wrap around after the last chunk: two transfers, but one
/// message. Two flows would take twice the share of a link that other messages get.
#[test]
fn transfers_with_the_same_ends_are_one_message() {
    let fabric = Fabric::parse("crossbar:ranks=8,latency=1us").unwrap();
    let plan = proved(CollectiveKind::AllGather, "bruck", &fabric);
    let outcome = simulate::run(&plan, Bytes::new(1000), &TimingModel::default()).unwrap();
    assert!(plan.len() > 24, "{}", plan.len());
    assert_eq!(outcome.slots.lightpaths, [8, 8, 8]);
    let single = Plan::without_light(
        &fabric,
        plan.schedule.clone().into_single_chunks(),
        "bruck".into(),
    );
    assert_eq!(verify(&single), []);
    let other = simulate::run(&single, Bytes::new(1000), &TimingModel::default()).unwrap();
    assert_eq!((other.time, &other.slots), (outcome.time, &outcome.slots));
    assert_eq!(other.links, outcome.links);
}

#[test]
fn a_simulation_says_what_bounds_the_plan() {
    // The slow link is half as fast as the others, and every block crosses it.
    let fabric = Fabric::parse("custom:ranks=3,switches=1,links=0-3+1-3+2-3@4Gb/s,rate=8Gb/s");
    let fabric = fabric.unwrap();
    let plan = proved(CollectiveKind::AllGather, "direct", &fabric);
    let outcome = simulate::run(&plan, Bytes::new(1_000_000), &TimingModel::default()).unwrap();
    let flowing = outcome.details.get::<Flowing>().unwrap();
    // Two blocks of 1 MB at 4 Gb/s.
    assert_eq!(outcome.time, "4ms".parse::<Time>().unwrap());
    assert_eq!(outcome.policy, None);
    let network = fabric.network().unwrap();
    let is_slow = |link: Option<u32>| {
        let link = link.unwrap();
        let name = network.link_name(link);
        assert!(name.contains('2'), "{name}");
        network.links()[link as usize].rate == "4Gb/s".parse().unwrap()
    };
    assert!(is_slow(flowing.bottleneck) && is_slow(flowing.most_loaded_link));
    assert_eq!(outcome.links.bytes.iter().sum::<u64>(), 12_000_000);
    let last = outcome.critical_path.last().unwrap();
    assert_eq!(last.end, outcome.time);
    // Two steps, one after the other.
    let half: Time = "2ms".parse().unwrap();
    assert_eq!(outcome.slots.start, [Time::ZERO, half]);
    assert_eq!(outcome.slots.end, [half, outcome.time]);
    assert!(outcome.settings.is_empty());
    assert!(
        (flowing
            .links
            .utilisation
            .iter()
            .cloned()
            .fold(0.0, f64::max)
            - 1.0)
            .abs()
            < 1e-9
    );
}

#[test]
fn auto_takes_the_fastest_of_all_that_it_names() {
    for (fabric, size, fastest) in [
        ("crossbar:ranks=16,rate=100Gb/s,latency=1us", 8, "direct"),
        (
            "electrical_ring:ranks=16,rate=100Gb/s",
            1 << 30,
            "matching:chunks=2",
        ),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(CollectiveKind::AllReduce, 16).unwrap();
        let size = Bytes::new(size);
        let auto = Spec::new("auto");
        let planned =
            planner::plan(&auto, &fabric, collective, size, &TimingModel::default()).unwrap();
        let plan = planned.plan.into_expanded();
        assert_eq!(verify(&plan), []);
        assert_eq!(plan.algorithm, fastest, "{:?}", planned.candidates);
        let time = simulate::run(&plan, size, &TimingModel::default())
            .unwrap()
            .time;
        assert_eq!(planned.candidates[0].name, fastest);
        assert!(planned.candidates.len() >= 5);
        for candidate in &planned.candidates {
            let spec = candidate.name.parse().unwrap();
            let other = planner::plan(&spec, &fabric, collective, size, &TimingModel::default());
            let other = other.unwrap().plan;
            assert_eq!(verify(&other), []);
            let other = simulate::run(&other, size, &TimingModel::default())
                .unwrap()
                .time;
            // Of what was left out the least time is said.
            let said = match candidate.left_out.is_none() {
                true => candidate.time == other,
                false => candidate.time <= other,
            };
            assert!(said && time <= other, "{candidate:?} {other}");
        }
        assert!(planned.reasons[0].contains(fastest));
    }
}
