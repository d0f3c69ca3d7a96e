//! The fluid simulator against closed forms, one for each limit of a flow and each option.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::network::{Link, Network, Routed, Sharing};
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate::fluid::{
    Endpoint, Flow, FlowOptions, Flows, FluidError, LinkBin, StartRule, StepFlow, Steps,
    simulate_flows, simulate_schedule, simulate_steps,
};
use opticoll::simulate::outcome::{FluidOutcome, NONE};
use opticoll::units::{Bytes, Rate, Time, UnitError};

use crate::{number, rows};

use super::networks::platform;

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

fn link_of(rate: &str, latency: &str) -> Link {
    Link {
        rate: rate.parse().unwrap(),
        latency: time(latency),
        sharing: Sharing::Shared,
    }
}

/// Returns N ranks on a clockwise ring of links: link r leads from r to r + 1.
fn ring(ranks: u32, link: Link) -> Routed {
    let routes = (0..ranks).flat_map(|source| {
        (1..ranks).map(move |hops| {
            let links = (0..hops).map(|hop| (source + hop) % ranks).collect();
            ((source, (source + hops) % ranks), links)
        })
    });
    Routed::new(ranks, vec![link; ranks as usize], routes)
}

/// Returns the schedule of the neighbour ring: in step s, rank r passes on the block of rank r - s.
fn ring_all_gather(ranks: u32) -> Schedule {
    let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
    let mut schedule = Schedule::new(collective);
    for step in 0..ranks - 1 {
        schedule.begin_step();
        for rank in 0..ranks {
            let block = (rank + ranks - step) % ranks;
            schedule.push(Transfer::copy(block, rank, (rank + 1) % ranks));
        }
    }
    schedule
}

fn check(got: Time, expected: Time, slack_ps: u64, case: &str) {
    let difference = got.ps().abs_diff(expected.ps());
    assert!(difference <= slack_ps, "{case}: {got}, {expected} expected");
}

#[test]
fn a_ring_all_gather_takes_n_minus_1_latencies_and_transmissions() {
    for (ranks, size, rate, latency) in [
        (2, "1B", "1b/s", "0s"),
        (3, "1MiB", "10Gb/s", "1us"),
        (16, "3MB", "7Gb/s", "0s"),
        (64, "1MiB", "50GiB/s", "500ns"),
    ] {
        let link = link_of(rate, latency);
        let size: Bytes = size.parse().unwrap();
        let transmission = link.rate.transmission(size).unwrap();
        let step = link.latency.plus(transmission).unwrap();
        let expected = step.times(u64::from(ranks) - 1).unwrap();
        for rule in StartRule::ALL {
            let network = ring(ranks, link);
            let options = FlowOptions::default();
            let schedule = ring_all_gather(ranks);
            let outcome = simulate_schedule(&network, &schedule, size, rule, &options).unwrap();
            // The closed form rounds up in every step.
            check(
                outcome.time,
                expected,
                u64::from(ranks),
                &format!("{ranks} ranks, {rule:?}"),
            );
            let moved = u64::from(ranks - 1) * size.get();
            assert_eq!(outcome.links.bytes, vec![moved; ranks as usize]);
            assert_eq!(outcome.ranks.sent, vec![moved; ranks as usize]);
            assert_eq!(outcome.critical_path.len(), ranks as usize - 1);
        }
    }
}

/// Runs flows of two ranks that send to a third rank and to each other, over links with given
/// sharing.
fn run(
    flows: &[(Flow, impl AsRef<[u32]>)],
    links: Vec<Link>,
    options: &FlowOptions,
) -> FluidOutcome {
    // 0 -> 2 over link 0; 1 -> 2 and 2 -> 1 over links 1 and 0 (half duplex); 0 -> 1 over none.
    let routes = [
        ((0, 2), vec![0]),
        ((1, 2), vec![1, 0]),
        ((2, 1), vec![0, 1]),
    ];
    let network = Routed::new(3, links, routes);
    let mut list = Flows::default();
    for (flow, after) in flows {
        list.push(*flow, after.as_ref());
    }
    simulate_flows(&network, &list, options).unwrap()
}

/// A case, both links, flows as `source-destination-bytes` with options, and their ends.
const SHARED: &str = "
alone | full full | 0-2-1000 | 1us
two halves, then all | full full | 0-2-1000, 0-2-3000 | 2us, 4us
half duplex: both directions on one link | full full | 1-2-1000, 2-1-1000 | 2us, 2us
one bounded elsewhere leaves the rest | full full | 0-2-1000 cap=2Gb/s, 0-2-3000 | 4us, 4us
a cap above the link's rate is none | full full | 0-2-1000 cap=80Gb/s | 1us
a link that flows do not share | private full | 0-2-1000, 0-2-3000 | 1us, 3us
latency first, at half the rate after | full slow | 1-2-1000 | 2.1us
released later | full full | 0-2-1000 teardown=500ns, 0-2-1000 | 2us, 1.5us
one after the other, and a last one without bytes | full full
    | 0-2-1000 after=1, 0-2-500, 0-2-0 after=0+1 | 1.5us, 500ns, 1.5us
no link at all | full full | 0-1-1000 | 0s
";

/// Reads a flow such as `0-2-1000 cap=2Gb/s after=0+1`, and the flows that it waits for.
fn flow_of(text: &str) -> (Flow, Vec<u32>) {
    let mut words = text.split(' ');
    let ends: Vec<u32> = words.next().unwrap().split('-').map(number).collect();
    let mut flow = Flow::new(ends[0], ends[1], Bytes::new(ends[2].into()));
    let mut after = Vec::new();
    for (key, value) in words.map(|word| word.split_once('=').unwrap()) {
        match key {
            "cap" => flow.rate_cap = Some(value.parse().unwrap()),
            "teardown" => flow.release = time(value),
            "after" => after.extend(value.split('+').map(number::<u32>)),
            _ => panic!("{text}"),
        }
    }
    (flow, after)
}

#[test]
fn flows_share_wait_and_are_capped_as_told() {
    // 8 Gb/s: a byte takes a nanosecond.
    let full = link_of("8Gb/s", "0s");
    let slow = link_of("4Gb/s", "100ns");
    let private = Link {
        sharing: Sharing::PerFlow,
        ..full
    };
    for [case, links, flows, ends] in rows(SHARED) {
        let links = links.split(' ').map(|link| match link {
            "full" => full,
            "slow" => slow,
            _ => private,
        });
        let flows: Vec<(Flow, Vec<u32>)> = flows.split(", ").map(flow_of).collect();
        let outcome = run(&flows, links.collect(), &FlowOptions::default());
        let ends: Vec<Time> = ends.split(", ").map(time).collect();
        assert_eq!(outcome.flows.end, ends, "{case}");
        assert_eq!(outcome.time, ends.iter().copied().max().unwrap(), "{case}");
        assert_eq!(outcome.settings, [], "{case}");
        let carried: u64 = flows.iter().map(|(flow, _)| flow.bytes.get()).sum();
        assert_eq!(
            outcome.ranks.received.iter().sum::<u64>(),
            carried,
            "{case}"
        );
    }
}

/// Two flows share a link of 1 byte per ns: 1000 bytes until 2000 ns, when the other has 2000 of
/// its 3000 left, until 4000 ns; then a third one of 500 bytes, from 5000 ns on.
#[test]
fn a_links_use_over_time_is_a_step_function() {
    let link = |gigabits: u64| Link {
        rate: Rate::from_bits_per_second(gigabits * 1_000_000_000).unwrap(),
        latency: Time::ZERO,
        sharing: Sharing::Shared,
    };
    let routes = [((0, 2), vec![0, 1]), ((1, 2), vec![2, 1])];
    let network = Routed::new(3, vec![link(8); 3], routes);
    let mut flows = Flows::default();
    flows.push(Flow::new(0, 2, Bytes::new(1000)), &[]);
    flows.push(Flow::new(1, 2, Bytes::new(3000)), &[]);
    let late = Flow::new(0, 2, Bytes::new(500));
    flows.push(
        Flow {
            release: Time::from_ps(5_000_000),
            ..late
        },
        &[],
    );
    let options = FlowOptions {
        link_bin: Some(LinkBin::Length(Time::from_ps(1_000_000))),
        ..FlowOptions::default()
    };
    let used = simulate_flows(&network, &flows, &options)
        .unwrap()
        .link_use
        .unwrap();
    assert_eq!((used.bin.ps(), used.bins), (1_000_000, 6));
    let expected = [
        [500.0, 500.0, 0.0, 0.0, 0.0, 500.0],
        [1000.0, 1000.0, 1000.0, 1000.0, 0.0, 500.0],
        [500.0, 500.0, 1000.0, 1000.0, 0.0, 0.0],
    ];
    for (got, expected) in used.bytes.iter().zip(expected.as_flattened()) {
        assert!((got - expected).abs() < 1e-6, "{:?}", used.bytes);
    }
    // 5.5 us in at most 400 bins of a power of two of picoseconds.
    let fitted = FlowOptions {
        link_bin: Some(LinkBin::Fitted),
        ..FlowOptions::default()
    };
    let outcome = simulate_flows(&network, &flows, &fitted).unwrap();
    let used = outcome.link_use.unwrap();
    assert_eq!((used.bin.ps(), used.bins), (1 << 14, 336));
    for (link, expected) in used.bytes.chunks(used.bins).zip(expected) {
        let (got, expected): (f64, f64) = (link.iter().sum(), expected.iter().sum());
        assert!((got - expected).abs() < 1e-6, "{got}");
    }
    let none = FlowOptions {
        link_bin: Some(LinkBin::Length(Time::ZERO)),
        ..FlowOptions::default()
    };
    let error = simulate_flows(&network, &flows, &none)
        .unwrap_err()
        .to_string();
    assert!(error.contains("such as 1us"), "{error}");
}

#[test]
fn endpoints_cost_what_loggp_says() {
    let endpoint = Endpoint {
        latency: time("700ns"),
        send_overhead: time("100ns"),
        receive_overhead: time("200ns"),
        gap: time("300ns"),
        rate: Some("8Gb/s".parse().unwrap()),
        eager_threshold: Bytes::new(5000),
    };
    let fast = link_of("800Gb/s", "0s");
    let flow = |bytes| (Flow::new(0, 2, Bytes::new(bytes)), &[][..]);
    // o + L + k G + o; the next message leaves a gap later; above the threshold 2 L more.
    for (flows, ends) in [
        (vec![flow(1000)], vec!["2us"]),
        (vec![flow(1000), flow(1000)], vec!["2us", "2.3us"]),
        (vec![flow(1000), flow(1)], vec!["2us", "1.301us"]),
        (vec![flow(6000)], vec!["8.4us"]),
        (vec![flow(0)], vec!["1us"]),
    ] {
        let options = FlowOptions {
            endpoint: Some(endpoint),
            ..FlowOptions::default()
        };
        let outcome = run(&flows, vec![fast; 2], &options);
        let ends: Vec<Time> = ends.into_iter().map(time).collect();
        assert_eq!(outcome.flows.end, ends);
        assert_eq!(outcome.settings.len(), 6);
    }
}

/// Steps as they are.
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

fn step_flow(source: u32, destination: u32, bytes: u64) -> StepFlow {
    StepFlow {
        source,
        destination,
        bytes,
    }
}

#[test]
fn start_rules_differ_where_ranks_are_not_equally_fast() {
    // Step 0: 0 -> 1 takes 1 us, 2 -> 3 takes 3 us. Step 1: 0 -> 2, 1 us. Step 2: 1 -> 0, 1 us.
    let steps = Listed(vec![
        vec![step_flow(0, 1, 12_500), step_flow(2, 3, 37_500)],
        vec![step_flow(0, 2, 12_500)],
        vec![step_flow(1, 0, 12_500)],
    ]);
    let network = platform("star", 4, None, Time::ZERO);
    for (rule, starts, waited_for) in [
        (
            StartRule::Rendezvous,
            ["0s", "0s", "3us", "4us"],
            [NONE, NONE, 1, 2],
        ),
        (
            StartRule::Sender,
            ["0s", "0s", "1us", "1us"],
            [NONE, NONE, 0, 0],
        ),
        (
            StartRule::Step,
            ["0s", "0s", "3us", "4us"],
            [NONE, NONE, 1, 2],
        ),
    ] {
        let outcome = simulate_steps(&*network, &steps, rule, &FlowOptions::default()).unwrap();
        assert_eq!(outcome.flows.start, starts.map(time), "{rule:?}");
        assert_eq!(outcome.flows.waited_for, waited_for, "{rule:?}");
    }
    // Up to the threshold, a message does not wait for its receiver.
    let options = FlowOptions {
        endpoint: Some(Endpoint {
            latency: Time::ZERO,
            send_overhead: Time::ZERO,
            receive_overhead: Time::ZERO,
            gap: Time::ZERO,
            rate: None,
            eager_threshold: Bytes::new(12_500),
        }),
        ..FlowOptions::default()
    };
    let eager = simulate_steps(&*network, &steps, StartRule::Rendezvous, &options).unwrap();
    assert_eq!(
        eager.flows.start[2],
        Time::ZERO,
        "sent at once, as rank 0 is free of its message"
    );
}

#[test]
fn bad_flows_are_refused_with_their_place() {
    let network = platform("star", 3, None, Time::ZERO);
    let flow = |source, destination| Flow::new(source, destination, Bytes::new(1));
    for (flows, expected) in [
        (
            vec![(flow(0, 1), vec![]), (flow(1, 3), vec![])],
            FluidError::Rank {
                flow: 1,
                rank: 3,
                ranks: 3,
            },
        ),
        (
            vec![(flow(2, 2), vec![])],
            FluidError::SelfFlow { flow: 0, rank: 2 },
        ),
        (
            vec![(flow(0, 1), vec![7])],
            FluidError::UnknownDependency {
                flow: 0,
                after: 7,
                flows: 1,
            },
        ),
        (vec![(flow(0, 1), vec![0])], FluidError::Cycle { flow: 0 }),
        (
            vec![
                (flow(0, 1), vec![1]),
                (flow(0, 1), vec![2]),
                (flow(0, 1), vec![1]),
            ],
            FluidError::Cycle { flow: 1 },
        ),
    ] {
        let mut list = Flows::default();
        for (flow, after) in &flows {
            list.push(*flow, after);
        }
        let refused = simulate_flows(&*network, &list, &FlowOptions::default()).unwrap_err();
        assert_eq!(refused, expected);
    }
    let steps = Listed(vec![vec![step_flow(0, 1, 1)], vec![step_flow(1, 1, 1)]]);
    for rule in StartRule::ALL {
        let refused = simulate_steps(&*network, &steps, rule, &FlowOptions::default()).unwrap_err();
        assert_eq!(refused, FluidError::SelfFlow { flow: 1, rank: 1 });
    }
    let schedule = ring_all_gather(4);
    let (size, rule, options) = (Bytes::new(1), StartRule::Step, FlowOptions::default());
    let refused = simulate_schedule(&*network, &schedule, size, rule, &options).unwrap_err();
    assert_eq!(
        refused,
        FluidError::Ranks {
            schedule: 4,
            network: 3
        }
    );
    let beyond = Routed::new(2, vec![], [((0, 1), vec![0])]);
    let mut list = Flows::default();
    list.push(flow(0, 1), &[]);
    let refused = simulate_flows(&beyond, &list, &options).unwrap_err();
    assert_eq!(
        refused,
        FluidError::Link {
            link: 0,
            source_rank: 0,
            destination: 1
        }
    );
    let crawling = Link {
        rate: Rate::from_bits_per_second(1).unwrap(),
        ..link_of("1b/s", "0s")
    };
    let mut list = Flows::default();
    list.push(Flow::new(0, 1, Bytes::new(u64::MAX)), &[]);
    let network = Routed::new(2, vec![crawling], [((0, 1), vec![0])]);
    let refused = simulate_flows(&network, &list, &options).unwrap_err();
    assert!(
        matches!(refused, FluidError::Unit(UnitError::Overflow { .. })),
        "{refused}"
    );
    assert_eq!(network.ranks(), 2);
}
