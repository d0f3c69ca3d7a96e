//! Quotients against the engine that simulates each flow by itself.

use proptest::prelude::*;

use super::super::schedule::ScheduledSteps;
use super::super::{FluidOutcome, Options, StartRule, Weights, log_each_flow, outcome, with_flows};
use super::{Partition, StepFlows, Worth, run};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Fabric;
use crate::network::Network;
use crate::outcome::NONE;
use crate::planner;
use crate::schedule::Schedule;
use crate::simulate::Method;
use crate::units::{Bytes, Time};

/// However few flows there are and however little alike.
const ANY: Worth = Worth {
    flows: 0,
    flows_per_step: 0,
    flows_per_colour: 1,
};

const FABRICS: &[&str] = &[
    "torus:dims=4x4",
    "torus:dims=5x3",
    "torus:dims=6",
    "torus:dims=3x3,terminals=2",
    "crossbar:ranks=8",
    "crossbar:ranks=8,duplex=half",
    "fat_tree:down=4x4,up=1x2",
    "fat_tree:arity=4,levels=3",
    "fully_connected:ranks=8",
    "electrical_ring:ranks=9",
    "electrical_ring:ranks=16",
    "dragonfly:terminals_per_router=1,routers_per_group=4,global_per_router=1",
    "dragonfly:terminals_per_router=2,routers_per_group=2,groups=4,global_per_router=2",
];

const ALGORITHMS: &[(CollectiveKind, &str)] = &[
    (CollectiveKind::AllToAll, "direct"),
    (CollectiveKind::AllToAll, "pairwise"),
    (CollectiveKind::AllToAll, "bruck"),
    (CollectiveKind::AllReduce, "direct"),
    (CollectiveKind::AllReduce, "halving_doubling"),
    (CollectiveKind::AllGather, "bruck"),
    (CollectiveKind::ReduceScatter, "direct"),
];

fn schedule(kind: CollectiveKind, algorithm: &str, fabric: &Fabric) -> Option<Schedule> {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let spec = algorithm.parse().unwrap();
    let method = Method::default();
    let planned = planner::plan(&spec, fabric, collective, Bytes::new(1 << 20), &method);
    // Some algorithms ask for a number of ranks that is a power of two.
    Some(planned.ok()?.plan.unfold().schedule)
}

fn near(one: Time, other: Time) -> bool {
    one.ps().abs_diff(other.ps()) as f64 <= 1.0 + 1e-12 * other.ps() as f64
}

/// The same schedule by its quotient and flow by flow.
fn both(
    network: &dyn Network,
    schedule: &Schedule,
    size: Bytes,
    rule: StartRule,
    options: &Options,
) -> [FluidOutcome; 2] {
    let steps = ScheduledSteps::new(schedule, size).unwrap();
    let (ledger, flows) = run(network, &steps, rule, options, &ANY).unwrap().unwrap();
    let by_quotient = outcome(network, options, rule.name(), ledger, (flows, 0));
    let flow_by_flow = log_each_flow(network, &steps, rule, options);
    [by_quotient, flow_by_flow].map(|outcome| with_flows(outcome.unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_quotient_does_what_its_flows_do(
        fabric in prop::sample::select(FABRICS),
        (kind, algorithm) in prop::sample::select(ALGORITHMS),
        rule in prop::sample::select(&StartRule::ALL[..]),
        size in prop_oneof![Just(1u64), 1u64..5000, 1u64 << 16..1 << 30],
        latency in prop::sample::select(&["0s", "100ns", "3us"][..]),
        by_latency in any::<bool>(),
    ) {
        let fabric = Fabric::parse(&format!("{fabric},latency={latency}")).unwrap();
        let Some(schedule) = schedule(kind, algorithm, &fabric) else {
            return Ok(());
        };
        let options = Options {
            weights: if by_latency { Weights::InverseLatency } else { Weights::Equal },
            ..Options::default()
        };
        let network = fabric.network().unwrap();
        let [found, expected] = both(network, &schedule, Bytes::new(size), rule, &options);
        prop_assert!(near(found.time, expected.time), "{} and {}", found.time, expected.time);
        prop_assert_eq!(found.flow_count, expected.flow_count);
        prop_assert_eq!(&found.links.bytes, &expected.links.bytes);
        prop_assert_eq!(&found.ranks.sent, &expected.ranks.sent);
        prop_assert_eq!(&found.ranks.received, &expected.ranks.received);
        for (found, expected) in [
            (&found.flows.start, &expected.flows.start),
            (&found.flows.end, &expected.flows.end),
            (&found.links.busy, &expected.links.busy),
            (&found.ranks.finish, &expected.ranks.finish),
        ] {
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                prop_assert!(near(*found, *expected), "{} and {}", found, expected);
            }
        }
        for (found, expected) in found.utilisation.iter().zip(&expected.utilisation) {
            prop_assert!((found - expected).abs() <= 1e-9 * expected);
        }
        prop_assert_eq!(found.profile.bin, expected.profile.bin);
        for (found, expected) in found.profile.share.iter().zip(&expected.profile.share) {
            prop_assert!((found - expected).abs() <= 1e-6, "{} and {}", found, expected);
        }
        // Of the flows that end last, either may be the one that others wait for.
        let end = |flow: u32| expected.flows.end.get(flow as usize).copied();
        for (found, expected) in found.flows.waited_for.iter().zip(&expected.flows.waited_for) {
            prop_assert_eq!(end(*found), end(*expected));
        }
        prop_assert_eq!(found.critical_path.last().unwrap().end, found.time);
        prop_assert_eq!(found.critical_path[0].start, Time::ZERO);
        let steps = ScheduledSteps::new(&schedule, Bytes::new(size)).unwrap();
        let flows = StepFlows::collect(&steps, &ANY).unwrap().unwrap();
        let bottlenecks = found.flows.bottleneck.iter().zip(&expected.flows.bottleneck);
        for (flow, (&found, &expected)) in flows.flows.iter().zip(bottlenecks) {
            prop_assert_eq!(found == NONE, expected == NONE);
            let mut route = Vec::new();
            network.route(flow.source, flow.destination, &mut route);
            prop_assert!(found == NONE || route.contains(&found));
        }
    }
}

#[test]
fn what_bounds_alike_flows_is_full() {
    // Flows between neighbours start at once and keep their rates, which links on their way set.
    let fabric = Fabric::parse("torus:dims=6x6,latency=0s").unwrap();
    let network = fabric.network().unwrap();
    let schedule = schedule(CollectiveKind::AllToAll, "direct", &fabric).unwrap();
    let size = Bytes::new(36 << 20);
    let options = Options::default();
    let [found, _] = both(network, &schedule, size, StartRule::Rendezvous, &options);
    for link in found.flows.bottleneck {
        assert_eq!(found.links.busy[link as usize], found.time);
    }
}

#[test]
fn colours_are_as_few_as_the_symmetry_allows() {
    for (fabric, flows, links) in [
        // A cable into the switch carries as many flows as one out of it.
        ("crossbar:ranks=12", 1, 1),
        // Pairs in one pod and in two; cables of hosts and of the tops.
        ("fat_tree:down=4x4,up=1x2", 2, 2),
        ("fully_connected:ranks=7", 1, 1),
        // By distance: of an odd ring both directions carry the same.
        ("electrical_ring:ranks=9", 4, 1),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let schedule = schedule(CollectiveKind::AllToAll, "direct", &fabric).unwrap();
        // All messages are of one size.
        let size = Bytes::new(u64::from(fabric.ranks()).pow(2) * 1000);
        let steps = ScheduledSteps::new(&schedule, size).unwrap();
        let all = StepFlows::collect(&steps, &ANY).unwrap().unwrap();
        let network = fabric.network().unwrap();
        let partition = Partition::refine(network, &all, all.flows.len()).unwrap();
        let colours = |colours: &[u32]| colours.iter().max().unwrap() + 1;
        assert_eq!(colours(&partition.flows), flows, "{fabric}");
        assert_eq!(colours(&partition.links), links, "{fabric}");
        assert_eq!(colours(&partition.ranks), 1, "{fabric}");
        assert!(Partition::refine(network, &all, flows as usize - 1).is_none());
    }
}

#[test]
fn colours_that_are_not_even_are_refused() {
    let fabric = Fabric::parse("torus:dims=4x4").unwrap();
    let network = fabric.network().unwrap();
    let schedule = schedule(CollectiveKind::AllToAll, "direct", &fabric).unwrap();
    let steps = ScheduledSteps::new(&schedule, Bytes::new(1 << 20)).unwrap();
    let flows = StepFlows::collect(&steps, &ANY).unwrap().unwrap();
    let good = || Partition::refine(network, &flows, flows.flows.len()).unwrap();
    assert!(good().quotient(network, &flows).is_some());
    // Two colours of flows as one, two of links as one, and a rank of a colour of its own.
    let mut flows_merged = good();
    flows_merged
        .flows
        .iter_mut()
        .for_each(|colour| *colour = colour.saturating_sub(1));
    let mut links_merged = good();
    links_merged.links.fill(0);
    let mut rank_apart = good();
    rank_apart.ranks[15] = 1;
    for wrong in [flows_merged, links_merged, rank_apart] {
        assert!(wrong.quotient(network, &flows).is_none());
    }
}
