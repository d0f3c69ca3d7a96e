//! Comparison of quotients with the engine that simulates each flow by itself.

use proptest::prelude::*;

use super::super::{FlowOptions, FluidOutcome, StartRule, Weights, log_each_flow, with_flows};
use super::{Partition, QuotientLimits, StepFlow, StepFlows, Steps, run};
use crate::outcome::{NONE, Profile};
use opticoll_base::units::Time;
use opticoll_base::units::UnitError;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::Network;

/// Limits that admit any number of flows and colours.
const ANY: QuotientLimits = QuotientLimits {
    min_flows: 0,
    min_flows_per_step: 0,
    min_flows_per_colour: 1,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepPattern {
    /// Each rank sends to all other ranks in one step.
    Direct,
    /// `Direct` twice, as in a reduction and a collection.
    DirectTwice,
    /// Rank r sends to r + s in step s.
    Pairwise,
    /// Rank r sends to r + 2^k in step k. Of the blocks with indices from 1 to `ranks` - 1, the
    /// message contains those whose index has bit k.
    Bruck,
    /// Rank r exchanges half of its data in step k with the rank that differs in bit k.
    HalvingDoubling,
    /// As `Bruck`, with two changes in each step: half of the ranks also send to their neighbours,
    /// and one flow has an additional byte.
    Uneven,
}

const PATTERNS: [StepPattern; 6] = [
    StepPattern::Direct,
    StepPattern::DirectTwice,
    StepPattern::Pairwise,
    StepPattern::Bruck,
    StepPattern::HalvingDoubling,
    StepPattern::Uneven,
];

#[derive(Default)]
struct Listed(Vec<Vec<StepFlow>>);

impl Steps for Listed {
    fn steps(&self) -> usize {
        self.0.len()
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        flows.extend(&self.0[step]);
        Ok(())
    }
}

impl StepPattern {
    /// Returns the flows among `ranks` ranks, with `bytes` bytes for each pair of ranks.
    fn steps(self, ranks: u32, bytes: u64) -> Listed {
        let mut listed = Listed::default();
        let shifted = |shift: u32, bytes: u64| {
            let flow = move |source| StepFlow {
                source,
                destination: (source + shift) % ranks,
                bytes,
            };
            (0..ranks).map(flow)
        };
        let rounds = || {
            (0..)
                .map(|round| 1u32 << round)
                .take_while(|&far| far < ranks)
        };
        match self {
            StepPattern::Direct | StepPattern::DirectTwice => {
                let flows: Vec<StepFlow> =
                    (1..ranks).flat_map(|shift| shifted(shift, bytes)).collect();
                let times = if self == StepPattern::Direct { 1 } else { 2 };
                listed.0 = vec![flows; times];
            }
            StepPattern::Pairwise => {
                listed.0 = (1..ranks)
                    .map(|shift| shifted(shift, bytes).collect())
                    .collect();
            }
            StepPattern::Bruck | StepPattern::Uneven => {
                for far in rounds() {
                    let blocks = (1..ranks).filter(|block| block & far != 0).count() as u64;
                    listed.0.push(shifted(far, bytes * blocks).collect());
                }
            }
            StepPattern::HalvingDoubling => {
                for far in rounds() {
                    let exchange = |source: u32| StepFlow {
                        source,
                        destination: source ^ far,
                        bytes: bytes * u64::from(ranks / 2 / far),
                    };
                    let inside = |flow: &StepFlow| flow.destination < ranks;
                    listed
                        .0
                        .push((0..ranks).map(exchange).filter(inside).collect());
                }
            }
        }
        if self == StepPattern::Uneven {
            for step in &mut listed.0 {
                step.extend(shifted(1, bytes).take(ranks as usize / 2));
                step[0].bytes += 1;
            }
        }
        listed
    }
}

fn near(one: Time, other: Time) -> bool {
    one.ps().abs_diff(other.ps()) as f64 <= 1.0 + 1e-12 * other.ps() as f64
}

/// Converts two profiles of the same run to bins of the same length. The length of bins doubles if
/// the end exceeds the range of the bins, and rounding may move an end across this limit.
fn with_equal_bins(profiles: [&Profile; 2]) -> [Profile; 2] {
    let longest = profiles
        .map(|profile| profile.bin)
        .into_iter()
        .max()
        .unwrap();
    profiles.map(|profile| {
        if profile.bin.ps() * 2 != longest.ps() {
            return profile.clone();
        }
        let pairs = profile.share.chunks(2);
        Profile {
            bin: longest,
            share: pairs.map(|pair| pair.iter().sum::<f64>() / 2.0).collect(),
        }
    })
}

/// Simulates the same steps by their quotient and flow by flow.
fn both(
    network: &dyn Network,
    steps: &Listed,
    rule: StartRule,
    options: &FlowOptions,
) -> [FluidOutcome; 2] {
    let (ledger, flows) = run(network, steps, rule, options, &ANY).unwrap().unwrap();
    let by_quotient = ledger.close(network, options, rule.name(), (flows, 0));
    let flow_by_flow = log_each_flow(network, steps, rule, options);
    [by_quotient, flow_by_flow].map(|outcome| with_flows(outcome.unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..Default::default()
    })]

    #[test]
    fn a_quotient_does_what_its_flows_do(
        fabric in prop::sample::select(FABRICS),
        pattern in prop::sample::select(&PATTERNS[..]),
        rule in prop::sample::select(&StartRule::ALL[..]),
        bytes in prop_oneof![Just(1u64), 1u64..5000, 1u64 << 16..1 << 30],
        latency in prop::sample::select(&["0s", "100ns", "3us"][..]),
        by_latency in any::<bool>(),
    ) {
        let fabric = Fabric::parse(&format!("{fabric},latency={latency}")).unwrap();
        let options = FlowOptions {
            weights: if by_latency { Weights::InverseLatency } else { Weights::Equal },
            ..FlowOptions::default()
        };
        let network = fabric.network().unwrap();
        let steps = pattern.steps(network.ranks(), bytes);
        let [found, expected] = both(network, &steps, rule, &options);
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
        let profiles = [&found.profile, &expected.profile];
        let [found_profile, expected_profile] = with_equal_bins(profiles);
        prop_assert_eq!(found_profile.bin, expected_profile.bin);
        for bin in 0..found_profile.share.len().max(expected_profile.share.len()) {
            let [found, expected] = [&found_profile, &expected_profile]
                .map(|profile| profile.share.get(bin).copied().unwrap_or(0.0));
            prop_assert!((found - expected).abs() <= 1e-6, "{} and {}", found, expected);
        }
        // If several flows end last, other flows may wait for any of them.
        let end = |flow: u32| expected.flows.end.get(flow as usize).copied();
        for (found, expected) in found.flows.waited_for.iter().zip(&expected.flows.waited_for) {
            prop_assert_eq!(end(*found), end(*expected));
        }
        prop_assert_eq!(found.critical_path.last().unwrap().end, found.time);
        prop_assert_eq!(found.critical_path[0].start, Time::ZERO);
        let bottlenecks = found.flows.bottleneck.iter().zip(&expected.flows.bottleneck);
        for (flow, (&found, &expected)) in steps.0.iter().flatten().zip(bottlenecks) {
            prop_assert_eq!(found == NONE, expected == NONE);
            let mut route = Vec::new();
            network.route(flow.source, flow.destination, &mut route);
            prop_assert!(found == NONE || route.contains(&found));
        }
    }
}

#[test]
fn what_bounds_alike_flows_is_full() {
    // A host has 15 flows on its cable. The two cables between a pod and the top switches have 4 x
    // 12 flows, so each flow gets 1/24 of a cable; the other 3 flows of a host get 1/6 of a cable
    // each.
    let fabric = Fabric::parse("fat_tree:down=4x4,up=1x2,rate=8Gb/s,latency=0s").unwrap();
    let network = fabric.network().unwrap();
    let steps = StepPattern::Direct.steps(16, 1_000_000);
    let [found, _] = both(
        network,
        &steps,
        StartRule::Rendezvous,
        &FlowOptions::default(),
    );
    for (flow, place) in steps.0[0].iter().zip(0..) {
        let in_one_pod = flow.source / 4 == flow.destination / 4;
        let ends = network.ends(found.flows.bottleneck[place]).unwrap();
        let is_of_a_host = ends.0.min(ends.1) < network.ranks();
        assert_eq!(is_of_a_host, in_one_pod, "{flow:?}");
        let end = if in_one_pod { 6 } else { 24 };
        assert!(near(
            found.flows.end[place],
            Time::from_ps(end * 1_000_000_000)
        ));
    }
}

#[test]
fn colours_are_as_few_as_the_symmetry_allows() {
    for (fabric, flows, links) in [
        // A cable into the switch carries as many flows as a cable out of it.
        ("crossbar:ranks=12", 1, 1),
        // Pairs within one pod and between pods; cables of hosts and of the top switches.
        ("fat_tree:down=4x4,up=1x2", 2, 2),
        ("fully_connected:ranks=7", 1, 1),
        // Colours by distance. On an odd ring both directions carry the same number of flows.
        ("electrical_ring:ranks=9", 4, 1),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let network = fabric.network().unwrap();
        let all = all_to_all(network.ranks());
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
    // On an even ring the farthest flows go upwards, so upward cables carry more flows.
    let fabric = Fabric::parse("electrical_ring:ranks=6").unwrap();
    let network = fabric.network().unwrap();
    let flows = all_to_all(6);
    let good = || Partition::refine(network, &flows, flows.flows.len()).unwrap();
    assert!(good().quotient(network, &flows).is_some());
    let mut flows_merged = good();
    for colour in &mut flows_merged.flows {
        *colour = colour.saturating_sub(1);
    }
    let mut links_merged = good();
    links_merged.links.fill(0);
    let mut rank_apart = good();
    rank_apart.ranks[5] = 1;
    for wrong in [flows_merged, links_merged, rank_apart] {
        assert!(wrong.quotient(network, &flows).is_none());
    }
}

#[test]
fn few_or_small_steps_are_left_to_the_plain_engine() {
    let collect = |steps: &Listed| StepFlows::collect(steps, &QuotientLimits::DEFAULT).unwrap();
    assert!(collect(&StepPattern::Direct.steps(128, 1)).is_none());
    assert!(collect(&StepPattern::Direct.steps(130, 1)).is_some());
    assert!(collect(&StepPattern::Pairwise.steps(130, 1)).is_none());
}

fn all_to_all(ranks: u32) -> StepFlows {
    let steps = StepPattern::Direct.steps(ranks, 1000);
    StepFlows::collect(&steps, &ANY).unwrap().unwrap()
}
