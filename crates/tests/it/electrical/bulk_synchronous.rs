//! The simulator `bulk_synchronous` against times by hand, and against `fluid` under the start rule
//! `step`.

use opticoll::algorithms;
use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::outcome::{Flowing, Outcome};
use opticoll::simulate::{SimulationError, TimingModel};
use opticoll::units::Bytes;

use super::{FABRICS, proved};

fn outcome(plan: &Plan, simulator: &str, bytes: u64) -> Outcome {
    let start = ("start", "step");
    let settings = [("simulator", simulator), start];
    let known = if simulator == "fluid" { 2 } else { 1 };
    let method = TimingModel::from_settings(settings.into_iter().take(known)).unwrap();
    simulate::run(plan, Bytes::new(bytes), &method).unwrap()
}

fn micros(plan: &Plan, simulator: &str, bytes: u64) -> f64 {
    outcome(plan, simulator, bytes).time.ps() as f64 / 1e6
}

#[test]
fn a_step_takes_its_latency_and_its_most_loaded_link() {
    // On a line of four, neighbours exchange whole vectors of 1 ms, then ranks at distance 2: two
    // messages each way on the cable in the middle.
    let line = Fabric::parse("mesh:dims=4,rate=1GB/s,latency=1us").unwrap();
    let plan = proved(CollectiveKind::AllReduce, "recursive_doubling", &line);
    let found = outcome(&plan, "bulk_synchronous", 1_000_000);
    let ends: Vec<u64> = found.slots.end.iter().map(|end| end.ps()).collect();
    assert_eq!(ends, [1_001_000_000, 3_003_000_000]);
    assert_eq!(found.time.ps(), 3_003_000_000);
    assert_eq!(found.ranks.sent, [2_000_000; 4]);
    let flowing = found.details.get::<Flowing>().unwrap();
    let bounded = flowing
        .bottleneck
        .map(|link| line.network().unwrap().link_name(link));
    assert_eq!(bounded.as_deref(), Some("rank 1 -> rank 2"));
}

/// Four steps, of 3 us each and of 1 us and 1 ms for the block of a neighbour.
#[test]
fn each_step_takes_its_overhead_once() {
    let ring = Fabric::parse("electrical_ring:ranks=5,rate=1GB/s,latency=1us").unwrap();
    let plan = proved(CollectiveKind::AllGather, "ring", &ring);
    let settings = [("simulator", "bulk_synchronous"), ("step_overhead", "3us")];
    let method = TimingModel::from_settings(settings).unwrap();
    let found = simulate::run(&plan, Bytes::new(1_000_000), &method).unwrap();
    assert_eq!(found.time.ps(), 4 * (3_000_000 + 1_000_000 + 1_000_000_000));
    assert_eq!(found.settings[0].name, "step_overhead");
    assert_eq!(found.critical_path.last().unwrap().end, found.time);
}

/// On a line of three ranks, every rank sends its block of 1 ms to both others in one step: two
/// blocks cross each link. A message over one hop begins 1 us before a message over two hops, and
/// `fluid` gives the link to the first message until then.
#[test]
fn latencies_that_differ_are_the_most_that_it_takes_longer_than_flows() {
    let line = Fabric::parse("mesh:dims=3,rate=1GB/s,latency=1us").unwrap();
    let plan = proved(CollectiveKind::AllGather, "direct:order=at_once", &line);
    assert_eq!(micros(&plan, "bulk_synchronous", 1_000_000), 2002.0);
    assert!((micros(&plan, "fluid", 1_000_000) - 2001.0).abs() < 1e-6);
}

#[test]
fn on_links_that_flows_do_not_share_each_is_alone() {
    for (sharing, expected) in [("shared", 3000.0), ("per_flow", 1000.0)] {
        let fabric = format!("crossbar:ranks=4,rate=1GB/s,latency=0s,sharing={sharing}");
        let fabric = Fabric::parse(&fabric).unwrap();
        let plan = proved(CollectiveKind::AllGather, "direct:order=at_once", &fabric);
        for simulator in ["bulk_synchronous", "fluid"] {
            let found = micros(&plan, simulator, 1_000_000);
            assert!(
                (found - expected).abs() < 1e-6,
                "{simulator} {sharing}: {found}"
            );
        }
    }
}

/// Sums over steps the difference between the largest and the least latency of a step's messages
/// (ps).
fn spreads(plan: &Plan) -> u64 {
    let network = plan.fabric.network().unwrap();
    let mut route = Vec::new();
    let mut latency = |(source, destination)| -> u64 {
        route.clear();
        network.route(source, destination, &mut route);
        let links = route
            .iter()
            .map(|&link| network.links()[link as usize].latency.ps());
        links.sum()
    };
    (0..plan.schedule.steps())
        .map(|step| {
            let ends = plan.schedule.columns(step).ends();
            let latencies: Vec<u64> = ends.map(&mut latency).collect();
            latencies.iter().max().unwrap_or(&0) - latencies.iter().min().unwrap_or(&0)
        })
        .sum()
}

#[test]
fn no_step_takes_longer_than_flows_but_for_latencies() {
    let mut alike = 0;
    for fabric in FABRICS {
        let fabric = Fabric::parse(fabric).unwrap();
        for record in algorithms::records_for(&fabric) {
            if matches!(record.name, "optree" | "one_stage" | "wrht") {
                continue;
            }
            let plan = proved(record.collective, record.name, &fabric);
            for bytes in [16, 1 << 20] {
                let place = format!("{} {} on {fabric}, {bytes}", record.collective, record.name);
                let (own, flows) = (
                    outcome(&plan, "bulk_synchronous", bytes),
                    outcome(&plan, "fluid", bytes),
                );
                // Each step of `fluid` is rounded to a picosecond, by less than a share of 1e-9.
                let rounding = plan.schedule.steps() as u64 + flows.time.ps() / 1_000_000_000;
                let most = flows.time.ps() + spreads(&plan) + rounding;
                assert!(
                    own.time.ps() <= most,
                    "{place}: {} {}",
                    own.time,
                    flows.time
                );
                assert_eq!(own.links.bytes, flows.links.bytes, "{place}");
                assert_eq!(own.ranks.sent, flows.ranks.sent, "{place}");
                assert_eq!(own.ranks.received, flows.ranks.received, "{place}");
                alike += usize::from(own.time.ps().abs_diff(flows.time.ps()) <= rounding);
            }
        }
    }
    assert!(alike > 100, "{alike}");
}

#[test]
fn light_and_transfers_to_nowhere_are_refused() {
    let ring = Fabric::parse("wdm_ring:ranks=4,wavelengths=1").unwrap();
    let plan = proved(CollectiveKind::AllGather, "ring", &ring);
    let method = TimingModel::from_settings([("simulator", "bulk_synchronous")]).unwrap();
    let refused = simulate::run(&plan, Bytes::new(8), &method).unwrap_err();
    assert!(refused.to_string().contains("use circuit"), "{refused}");
    let switch = Fabric::parse("crossbar:ranks=5").unwrap();
    let mut plan = proved(CollectiveKind::AllGather, "ring", &switch);
    plan.fabric = Fabric::parse("crossbar:ranks=4").unwrap();
    let refused = simulate::run(&plan, Bytes::new(8), &method).unwrap_err();
    assert!(
        matches!(refused, SimulationError::Transfer { .. }),
        "{refused}"
    );
}
