//! Networks in parts, each on its own thread: the outcome equals that of one part, bit by bit.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::hash::shuffled;
use opticoll::simulate::packet;
use opticoll::simulate::packet::{
    Arbitration, Buffers, Issue, Overheads, PacketError, PacketOptions, PacketOutcome,
    PacketRouting, PacketWork, Pattern, RouterDelay, Traffic,
};
use opticoll::units::{Bytes, Time};

use super::{balanced, cut, kib, sends};
use crate::placed;

/// Runs work on one core and on more; returns the outcome of one.
fn check(
    name: &str,
    fabric: &Fabric,
    work: &PacketWork<'_>,
    options: &PacketOptions,
) -> Result<PacketOutcome, PacketError> {
    let run = |cores| {
        let options = PacketOptions {
            cores,
            ..options.clone()
        };
        packet::simulate(fabric, work, &options)
    };
    let whole = run(1);
    for cores in [2, 3] {
        assert!(run(cores) == whole, "{name}: {cores} cores differ from one");
    }
    whole
}

const ROUTINGS: [PacketRouting; 4] = [
    PacketRouting::Minimal,
    PacketRouting::NonMinimal,
    PacketRouting::Adaptive,
    PacketRouting::Progressive,
];

/// Returns traffic alone: `messages` messages of 2 KiB from each terminal, one every `period`
/// nanoseconds.
fn alone(pattern: Pattern, period: u64, messages: u32) -> PacketWork<'static> {
    let period = Time::from_ps(1000 * period);
    PacketWork {
        collective: None,
        traffic: vec![Traffic {
            pattern,
            ..Traffic::uniform(Bytes::new(2048), period, messages)
        }],
    }
}

#[test]
fn traffic_is_the_same_on_any_number_of_cores() {
    let fabric = balanced(2);
    let (tiny, small): (Buffers, Buffers) = (kib(1, 1, 1), kib(4, 8, 2));
    let cases = [
        // Far from full; crowded, so that chunks wait for credits of other groups; hardly anything.
        (Pattern::Uniform, 1000, 20, small),
        (Pattern::Uniform, 400, 20, tiny),
        (Pattern::Shift(8), 500, 10, tiny),
        (Pattern::Nearest, 100_000, 5, small),
    ];
    let mut left_out = crate::leaves_out(4);
    for (pattern, period, messages, buffers) in cases {
        for routing in ROUTINGS {
            for (arbitration, jitter) in [
                (Arbitration::Ahead, None),
                (Arbitration::Strict, Some(3)),
                (Arbitration::RoundRobin, None),
            ] {
                if left_out() {
                    continue;
                }
                let options = PacketOptions {
                    routing,
                    arbitration,
                    jitter,
                    buffers,
                    timeline_bin: Some(Time::from_ps(1_000_000)),
                    ..cut(2048, 512)
                };
                let work = alone(pattern.clone(), period, messages);
                let name = format!("{pattern:?} {period} {routing:?} {arbitration:?}");
                let outcome = check(&name, &fabric, &work, &options).unwrap();
                assert_eq!(
                    outcome.message_latency.count(),
                    72 * u64::from(messages),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn every_delay_and_length_may_be_the_one_that_parts_go_by() {
    let fabric = |latency: &str| {
        let spelling = format!(
            "dragonfly:terminals_per_router=3,routers_per_group=4,global_per_router=2,groups=7,\
             rate=1GB/s,global_latency={latency}"
        );
        Fabric::parse(&spelling).unwrap()
    };
    let none = Overheads::NONE;
    for (latency, delay, credit, overheads) in [
        ("0ns", 50_000, 1_420, Overheads::CODES),
        ("0ns", 0, 1_420, none),
        ("300ns", 0, 0, none),
        // A credit comes at once, and then there is one part only.
        ("0ns", 50_000, 0, none),
    ] {
        for rule in [RouterDelay::Pipelined, RouterDelay::OccupiesPort] {
            let options = PacketOptions {
                overheads,
                router_delay: Time::from_ps(delay),
                router_delay_rule: rule,
                credit_delay: Time::from_ps(credit),
                buffers: kib(2, 2, 2),
                ..cut(1000, 300)
            };
            let fabric = fabric(latency);
            // Chunks of every length, down to none.
            for bytes in [0, 1, 1700] {
                let mut work = alone(Pattern::Uniform, 2000, 20);
                work.traffic[0].size = Bytes::new(bytes);
                let name = format!("{latency} {delay} {credit} {rule:?} {bytes} B");
                check(&name, &fabric, &work, &options).unwrap();
            }
        }
    }
}

#[test]
fn credits_may_take_longer_than_chunks() {
    let bytes = Bytes::new(512);
    for fabric in [balanced(1), balanced(2)] {
        for routing in ROUTINGS {
            for rule in [RouterDelay::Pipelined, RouterDelay::OccupiesPort] {
                let options = PacketOptions {
                    routing,
                    router_delay: Time::from_ps(1),
                    router_delay_rule: rule,
                    credit_delay: Time::from_ps(60_000),
                    buffers: Buffers {
                        local: bytes,
                        global: bytes,
                        terminal: bytes,
                    },
                    ..cut(2048, 512)
                };
                let mut work = alone(Pattern::Uniform, 266, 100);
                work.traffic[0].size = Bytes::new(1);
                let name = format!("{fabric} {routing:?} {rule:?}");
                check(&name, &fabric, &work, &options).unwrap();
            }
        }
    }
}

#[test]
fn collectives_end_at_the_same_event_on_any_number_of_cores() {
    let fabric = balanced(2);
    for (turn, (kind, algorithm)) in [
        (CollectiveKind::AllGather, "ring"),
        (CollectiveKind::AllGather, "bruck"),
        (CollectiveKind::Scatter, "glf"),
        (CollectiveKind::Scatter, "lin"),
    ]
    .into_iter()
    .enumerate()
    {
        let schedule = placed(kind, algorithm, &fabric.to_string()).schedule;
        // What goes on beside a collective is counted until that has ended.
        for (place, (bytes, issue, beside)) in [
            (64, Issue::Sequential, true),
            (700, Issue::Together, true),
            (1500, Issue::Together, false),
        ]
        .into_iter()
        .enumerate()
        {
            // Each algorithm in three ways of routing, each way with three algorithms.
            let options = PacketOptions {
                routing: ROUTINGS[(turn + place) % 4],
                ..cut(512, 512)
            };
            let mut collective = packet::PacketCollective::new(&schedule, Bytes::new(bytes));
            collective.placement = (bytes > 64).then(|| shuffled(72, 1));
            collective.issue = issue;
            let background = Traffic::background(Bytes::new(2048), Time::from_ps(2_000_000));
            let work = PacketWork {
                collective: Some(collective),
                traffic: beside.then_some(background).into_iter().collect(),
            };
            let routing = options.routing;
            let name = format!("{algorithm} {bytes} B, {issue:?}, {routing:?}, beside {beside}");
            let outcome = check(&name, &fabric, &work, &options).unwrap();
            let messages = outcome.steps.messages.iter().sum::<u64>();
            assert_eq!(outcome.message_latency.count(), messages, "{name}");
            assert_eq!(outcome.background_latency.count() > 0, beside, "{name}");
        }
    }
}

#[test]
fn a_deadlock_is_the_same_circle_on_any_number_of_cores() {
    let fabric = balanced(2);
    let options = PacketOptions {
        routing: PacketRouting::NonMinimal,
        virtual_channels: Some(1),
        buffers: kib(1, 1, 1),
        ..cut(2048, 512)
    };
    // Traffic alone stops; beside a collective that goes on it is found by a look at the buffers.
    let mut stopping = alone(Pattern::Shift(8), 100, 100);
    stopping.traffic[0].size = Bytes::new(8192);
    let schedule = sends(72, &[(0, 71)]);
    let mut going_on = stopping.clone();
    going_on.collective = Some(packet::PacketCollective::new(
        &schedule,
        Bytes::new(1 << 28),
    ));
    going_on.traffic.push(Traffic {
        pattern: Pattern::Nearest,
        ..Traffic::background(Bytes::new(8192), Time::from_ps(10_000_000))
    });
    for (name, work) in [("alone", stopping), ("beside", going_on)] {
        let outcome = check(name, &fabric, &work, &options);
        assert!(
            matches!(outcome, Err(PacketError::Deadlock { .. })),
            "{name}: {outcome:?}"
        );
    }
}

#[test]
fn long_silences_cost_nothing() {
    // A message each 100 s: clocks that rise by microseconds would take hours.
    let fabric = balanced(2);
    let work = alone(Pattern::Uniform, 100_000_000_000, 20);
    check("seldom", &fabric, &work, &cut(2048, 512)).unwrap();
    // A burst of everything at once, then silence.
    let mut work = alone(Pattern::Uniform, 1, 50);
    work.traffic.push(Traffic {
        start: Time::from_ps(1_000_000_000_000_000),
        ..work.traffic[0].clone()
    });
    check("bursts", &fabric, &work, &cut(2048, 512)).unwrap();
}
