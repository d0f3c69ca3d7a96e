//! Flows in steps against the same flows with explicit dependencies, for which the simulator uses
//! neither its replay of steps nor its shortcut for flows that never meet.

use opticoll::fabric::Fabric;
use opticoll::network::{Link, Network, Routed, Sharing};
use opticoll::simulate::fluid::{
    Flow, FlowOptions, Flows, StartRule, StepFlow, Steps, simulate_flows, simulate_steps,
};
use opticoll::simulate::outcome::{FluidOutcome, NONE, Profile};
use opticoll::units::{Bytes, Rate, Time, UnitError};
use proptest::prelude::*;

use super::networks::{self, Pattern};

/// Converts steps into flows that wait for all flows of earlier steps that the start rule names.
fn as_flows(network: &dyn Network, steps: &dyn Steps, rule: StartRule) -> Flows {
    let mut flows = Flows::default();
    let mut before: Vec<StepFlow> = Vec::new();
    let route = |flow: &StepFlow| {
        let mut route = Vec::new();
        network.route(flow.source, flow.destination, &mut route);
        route
    };
    for step in 0..steps.steps() {
        let mut now = Vec::new();
        steps.step(step, &mut now).unwrap();
        // Under `link`, flows of a step go in the order in which their sources have what came
        // before.
        let ends = simulate_flows(network, &flows, &FlowOptions::default())
            .unwrap()
            .flows
            .end;
        let turn = |place: usize| {
            let flow = &now[place];
            let came = before.iter().zip(&ends);
            let came = came.filter(|(earlier, _)| earlier.destination == flow.source);
            let came = came.map(|(_, end)| *end).max().unwrap_or_default();
            (came, flow.source, flow.destination, place)
        };
        for (place, flow) in now.iter().enumerate() {
            let own = route(flow);
            let on_links = |other: &StepFlow| route(other).iter().any(|link| own.contains(link));
            let meets =
                |rank: u32, other: &StepFlow| [other.source, other.destination].contains(&rank);
            let waits = |other: &StepFlow| match rule {
                StartRule::Step => true,
                StartRule::Sender => meets(flow.source, other),
                StartRule::Rendezvous => {
                    meets(flow.source, other) || meets(flow.destination, other)
                }
                StartRule::Link => other.destination == flow.source || on_links(other),
            };
            let of_step = now.iter().enumerate();
            let of_step = of_step.filter(|(other, _)| turn(*other) < turn(place));
            let of_step = of_step.map(|(other, flow)| ((before.len() + other) as u32, flow));
            let after: Vec<u32> = (0u32..)
                .zip(&before)
                .filter(|(_, earlier)| waits(earlier))
                .chain(of_step.filter(|(_, other)| rule == StartRule::Link && on_links(other)))
                .map(|(index, _)| index)
                .collect();
            let bytes = Bytes::new(flow.bytes);
            flows.push(Flow::new(flow.source, flow.destination, bytes), &after);
        }
        before.append(&mut now);
    }
    flows
}

/// Runs steps and the same flows with dependencies. All agrees to one picosecond: instants that are
/// one to the engine are a thousandth of that apart at these times.
fn agree(network: &dyn Network, steps: &dyn Steps, rule: StartRule, case: &str) -> FluidOutcome {
    let options = FlowOptions::default();
    let got = simulate_steps(network, steps, rule, &options).unwrap();
    let flows = as_flows(network, steps, rule);
    let expected = simulate_flows(network, &flows, &options).unwrap();
    let near = |got: &[Time], expected: &[Time]| {
        let mut pairs = got.iter().zip(expected);
        got.len() == expected.len() && pairs.all(|(one, other)| one.ps().abs_diff(other.ps()) <= 1)
    };
    assert!(near(&[got.time], &[expected.time]), "{case}");
    assert!(near(&got.flows.start, &expected.flows.start), "{case}");
    assert!(near(&got.flows.end, &expected.flows.end), "{case}");
    assert_eq!(got.links.bytes, expected.links.bytes, "{case}");
    assert!(near(&got.links.busy, &expected.links.busy), "{case}");
    assert_eq!(got.ranks.sent, expected.ranks.sent, "{case}");
    assert_eq!(got.ranks.received, expected.ranks.received, "{case}");
    assert!(near(&got.ranks.finish, &expected.ranks.finish), "{case}");
    assert_eq!(got.most_loaded_link, expected.most_loaded_link, "{case}");
    let bin = got.profile.bin.max(expected.profile.bin);
    let used = [&got.profile, &expected.profile].map(|profile| binned(profile, bin));
    for at in 0..used[0].len().max(used[1].len()) {
        let [one, other] = [0, 1].map(|of| used[of].get(at).copied().unwrap_or(0.0));
        assert!((one - other).abs() < 1e-6, "{case}: {one}, {other}");
    }
    let path = &got.critical_path;
    assert_eq!(
        path.last().map(|one| one.end),
        expected.critical_path.last().map(|one| one.end),
        "{case}"
    );
    let whole = path.windows(2).all(|pair| pair[0].end == pair[1].start);
    assert!(
        whole && path.first().is_none_or(|one| one.start == Time::ZERO),
        "{case}"
    );
    for pair in path.windows(2) {
        let waited_for = got.flows.waited_for[pair[1].transfer];
        assert_eq!(waited_for as usize, pair[0].transfer, "{case}");
    }
    if got.disjoint {
        never_meet(network, &flows, &got, case);
    }
    got
}

/// Returns a profile in longer bins. (The bins of a run depend on the run's last use of a link,
/// which may be only what rounding has left of a rate.)
fn binned(profile: &Profile, bin: Time) -> Vec<f64> {
    let count = (bin.ps() / profile.bin.ps()) as usize;
    let bins = profile.share.chunks(count);
    bins.map(|bins| bins.iter().sum::<f64>() / count as f64)
        .collect()
}

/// Checks that no two flows use a link at the same time, and that a slowest link of its route
/// bounds each flow.
fn never_meet(network: &dyn Network, flows: &Flows, outcome: &FluidOutcome, case: &str) {
    let mut uses: Vec<Vec<(u64, u64)>> = vec![Vec::new(); network.links().len()];
    for at in 0..flows.len() {
        let (flow, mut route) = (flows.flow(at), Vec::new());
        network.route(flow.source, flow.destination, &mut route);
        let latency = route
            .iter()
            .map(|&link| network.links()[link as usize].latency.ps());
        let rate = |link: u32| network.links()[link as usize].rate;
        let bounding = outcome.flows.bottleneck[at];
        if flow.bytes.get() == 0 {
            assert_eq!(bounding, NONE, "{case}");
        } else {
            let slowest = route.iter().map(|&link| rate(link)).min();
            assert_eq!(Some(rate(bounding)), slowest, "{case}");
            assert!(route.contains(&bounding), "{case}");
        }
        let join = outcome.flows.start[at].ps() + latency.sum::<u64>();
        for link in route {
            uses[link as usize].push((join, outcome.flows.end[at].ps()));
        }
    }
    for spans in &mut uses {
        spans.sort_unstable();
        let apart = spans.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1);
        assert!(apart, "{case}");
    }
}

const PATTERNS: &[&str] = &[
    "ag_ring",
    "ar_ring",
    "ag_shift",
    "a2a_pair",
    "ag_bruck",
    "ar_rab",
    "ar_rabnear",
];

#[test]
fn steps_and_replayed_steps_are_the_same_as_flows_with_dependencies() {
    let (mut replayed, mut disjoint, mut both) = (0, 0, 0);
    for name in PATTERNS {
        for latency in [0, 400_000] {
            let pattern = Pattern {
                name: (*name).into(),
                ranks: 16,
                bytes: 1 << 20,
            };
            for (platform, parameters) in [
                ("star", None),
                ("fat_tree", Some("2;4,4;1,2;1,1")),
                ("dragonfly", Some("2,1;1,1;4,1;2")),
            ] {
                let network = networks::platform(platform, 16, parameters, Time::from_ps(latency));
                for rule in StartRule::ALL {
                    let case = format!("{name} on {platform}, {rule:?}, {latency} ps");
                    let got = agree(&*network, &pattern, rule, &case);
                    disjoint += u32::from(got.disjoint);
                    both += if got.disjoint { got.replayed_steps } else { 0 };
                }
            }
            // Where one wire has both directions, flows meet in every step, and steps repeat.
            let fabric = format!("crossbar:ranks=16,duplex=half,latency={latency}ps");
            let fabric = Fabric::parse(&fabric).unwrap();
            for rule in StartRule::ALL {
                let case = format!("{name} on {fabric}, {rule:?}");
                let got = agree(fabric.network().unwrap(), &pattern, rule, &case);
                assert!(!got.disjoint, "{case}");
                replayed += got.replayed_steps;
            }
        }
    }
    assert!(replayed > 100, "steps were replayed: {replayed}");
    assert!(disjoint > 50, "cases without a solver: {disjoint}");
    assert!(both > 100, "steps that came again without a solver: {both}");
}

/// Steps that are written down.
#[derive(Debug)]
struct Listed(Vec<Vec<StepFlow>>);

impl Steps for Listed {
    fn steps(&self) -> usize {
        self.0.len()
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        flows.extend_from_slice(&self.0[step]);
        Ok(())
    }
}

/// Draws a switch whose cables have rates and latencies of their own; some pairs of ranks also
/// cross one more link.
fn uneven_star() -> impl Strategy<Value = Routed> {
    let cable = (1u64..8, 0u64..4, 0..8u8).prop_map(|(rate, latency, kind)| Link {
        rate: Rate::from_bits_per_second(rate * 1_000_000_000).unwrap(),
        latency: Time::from_ps(latency * 300_001),
        sharing: if kind == 0 {
            Sharing::PerFlow
        } else {
            Sharing::Shared
        },
    });
    (2u32..8).prop_flat_map(move |ranks| {
        let cables = prop::collection::vec(cable.clone(), 2 * ranks as usize + 1);
        let detours = prop::collection::vec(0..6u8, (ranks * ranks) as usize);
        (cables, detours).prop_map(move |(cables, detours)| {
            let routes = (0u32..).zip(detours).map(|(at, detour)| {
                let (source, destination) = (at / ranks, at % ranks);
                let mut route = vec![2 * source];
                route.extend((detour == 0).then_some(2 * ranks));
                route.push(2 * destination + 1);
                ((source, destination), route)
            });
            Routed::new(ranks, cables, routes)
        })
    })
}

/// The distance over which each rank sends; the bytes of each rank and a number that is 0 if the
/// rank does not send; other flows by source, distance and bytes, which exist if the last number is
/// 0.
type RandomStep = (u32, Vec<(u64, u8)>, Vec<(u32, u32, u64)>, u8);

/// Draws steps in which the sending ranks all send over the same distance, perhaps followed by
/// other flows.
fn stepped() -> impl Strategy<Value = (Routed, Listed)> {
    uneven_star().prop_flat_map(|network| {
        let ranks = network.ranks();
        let bytes = prop_oneof![Just(0u64), 1u64..5000, 100_000u64..100_009];
        let step = (
            prop_oneof![4 => Just(1), 1 => 1..ranks],
            prop::collection::vec((bytes, 0..8u8), ranks as usize),
            prop::collection::vec((0..ranks, 1..ranks, 1u64..5000), 0..2),
            0..4u8,
        );
        let steps = prop::collection::vec(step, 1..10).prop_map(move |steps| {
            let step = |(away, sizes, others, odd): RandomStep| {
                let sent = (0..ranks).zip(sizes).filter(|(_, (_, absent))| *absent > 0);
                let regular = sent.map(|(source, (bytes, _))| (source, away, bytes));
                let others = others.into_iter().filter(|_| odd == 0);
                let flows = regular.chain(others).map(|(source, away, bytes)| StepFlow {
                    source,
                    destination: (source + away) % ranks,
                    bytes,
                });
                flows.collect()
            };
            Listed(steps.into_iter().map(step).collect())
        });
        (Just(network), steps)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_steps_are_the_same_as_flows_with_dependencies((network, steps) in stepped()) {
        for rule in StartRule::ALL {
            agree(&network, &steps, rule, &format!("{rule:?}"));
        }
    }
}

/// A table of the steps whose flows never meet, by the definition of each start rule.
#[test]
fn flows_that_never_meet_are_known() {
    use StartRule::{Rendezvous, Sender, Step};
    let bytes = 1000;
    let to = |away: u32| {
        (0..4)
            .map(move |rank| (rank, (rank + away) % 4))
            .collect::<Vec<_>>()
    };
    for (fabric, steps, disjoint) in [
        // Neighbours always: a cable has one sender and one receiver.
        (
            "crossbar:ranks=4",
            vec![to(1); 3],
            &[Rendezvous, Sender, Step][..],
        ),
        (
            "electrical_ring:ranks=4",
            vec![to(1); 3],
            &[Rendezvous, Sender, Step],
        ),
        // Another sender each time: it may begin before the receiver is free.
        (
            "crossbar:ranks=4",
            vec![to(1), to(2), to(3)],
            &[Rendezvous, Step],
        ),
        // Cables of a ring that pairs without a common rank use one after the other.
        (
            "electrical_ring:ranks=4",
            vec![vec![(0, 2)], vec![(1, 3)]],
            &[Step],
        ),
        // Two flows of a step from one rank; and the same pair twice.
        ("crossbar:ranks=4", vec![vec![(0, 1), (0, 2)]], &[]),
        ("crossbar:ranks=4", vec![to(1), vec![(0, 1), (0, 1)]], &[]),
        (
            "crossbar:ranks=4,sharing=per_flow",
            vec![vec![(0, 1), (0, 2)]],
            &[],
        ),
        ("crossbar:ranks=4,duplex=half", vec![to(1)], &[]),
        ("crossbar:ranks=4", vec![], &[Rendezvous, Sender, Step]),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let flow = |(source, destination)| StepFlow {
            source,
            destination,
            bytes,
        };
        let step = |pairs: &Vec<(u32, u32)>| pairs.iter().copied().map(flow).collect();
        let listed = Listed(steps.iter().map(step).collect());
        for rule in StartRule::ALL {
            let case = format!("{steps:?} on {fabric}, {rule:?}");
            let got = agree(fabric.network().unwrap(), &listed, rule, &case);
            assert_eq!(got.disjoint, disjoint.contains(&rule), "{case}");
        }
    }
}

/// Chunks of two sizes that go round a ring of cables with two latencies, as a vector of 17 bytes
/// more than a multiple of N is cut: no step is like another. The slow flow from each leaf is
/// waited for by its neighbours in every step.
#[test]
fn a_ring_of_uneven_chunks_and_cables_takes_its_maxima_and_sums() {
    let ranks = 64u64;
    let fabric = Fabric::parse("fat_tree:down=8x8,up=1x4,rate=8Gb/s,latency=500ns").unwrap();
    let size = |rank: u64, step: u64| 1000 + u64::from((rank + 2 * ranks - step) % ranks < 17);
    let step = |step: u64| {
        let flow = |rank: u64| StepFlow {
            source: rank as u32,
            destination: ((rank + 1) % ranks) as u32,
            bytes: size(rank, step),
        };
        (0..ranks).map(flow).collect()
    };
    let steps = Listed((0..2 * (ranks - 1)).map(step).collect());
    let got = agree(
        fabric.network().unwrap(),
        &steps,
        StartRule::Rendezvous,
        "uneven",
    );
    assert!(got.disjoint);
    // In whole picoseconds, at 1000 for a byte.
    let mut free = vec![0u64; ranks as usize];
    for step in 0..2 * (ranks - 1) {
        let end = |rank: u64| {
            let next = (rank + 1) % ranks;
            let cables = if rank / 8 == next / 8 { 2 } else { 4 };
            let start = free[rank as usize].max(free[next as usize]);
            start + cables * 500_000 + 1000 * size(rank, step)
        };
        let ends: Vec<u64> = (0..ranks).map(end).collect();
        let later =
            |rank: u64| ends[rank as usize].max(ends[((rank + ranks - 1) % ranks) as usize]);
        free = (0..ranks).map(later).collect();
    }
    let expected: Vec<Time> = free.into_iter().map(Time::from_ps).collect();
    assert_eq!(got.ranks.finish, expected);
}

/// Steps without flows, once and twice, between steps that come again: in number and order the
/// flows are those of the other steps.
#[test]
fn steps_without_flows_are_passed_over() {
    let fabric = Fabric::parse("crossbar:ranks=4,latency=1us").unwrap();
    let ring = |bytes| -> Vec<StepFlow> {
        let to = |source| StepFlow {
            source,
            destination: (source + 1) % 4,
            bytes,
        };
        (0..4).map(to).collect()
    };
    let (one, other, none) = (ring(1000), ring(2000), Vec::new());
    for steps in [
        vec![&none, &none, &one, &one, &one],
        vec![&one, &one, &none, &none, &one, &one],
        vec![&one, &none, &none, &none, &other, &other, &none, &none],
    ] {
        let listed = Listed(steps.iter().map(|&step| step.clone()).collect());
        for rule in StartRule::ALL {
            let case = format!("{steps:?}, {rule:?}");
            let got = agree(fabric.network().unwrap(), &listed, rule, &case);
            let one_by_one = rule == StartRule::Link;
            assert!(
                one_by_one || (got.disjoint && got.replayed_steps > 0),
                "{case}"
            );
        }
    }
}

/// Under the rule `step` a repeated step takes as long as before, whatever steps lie between.
/// Alternating steps must be replayed, because only then does their record not grow with the number
/// of flows.
#[test]
fn steps_that_alternate_are_replayed() {
    let fabric = Fabric::parse("crossbar:ranks=8,latency=1us").unwrap();
    let exchange = |first: u32| -> Vec<StepFlow> {
        let to = |rank: u32| StepFlow {
            source: rank,
            destination: (((rank + first) ^ 1) + 8 - first) % 8,
            bytes: 1000,
        };
        (0..8).map(to).collect()
    };
    let steps = Listed((0..60).map(|step| exchange(step % 2)).collect());
    let network = fabric.network().unwrap();
    let got = agree(network, &steps, StartRule::Step, "alternating");
    // The first two of each kind are simulated.
    assert_eq!(got.replayed_steps, 56);
}
