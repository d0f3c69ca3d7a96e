//! The packet simulator: closed forms, laws of conservation, and CODES's measured values.

mod limits;
mod networks;
mod orders;
mod parts;
mod peer;
mod plans;

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::fabric::Groups;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate::packet;
use opticoll::simulate::packet::{
    Arbitration, Buffers, Overheads, PacketError, PacketOptions, PacketOutcome, PacketRouting,
    PacketWork, Pattern, RouterDelay, Traffic,
};
use opticoll::units::{Bytes, Time};

/// Returns the balanced dragonfly with p terminals per router: a = 2 p, h = p, g = a h + 1.
pub(crate) fn balanced(p: u32) -> Fabric {
    let spelling = format!(
        "dragonfly:terminals_per_router={p},routers_per_group={},global_per_router={p},\
         rate=5.25GiB/s,global_rate=40372692582b/s,latency=0ns",
        2 * p
    );
    Fabric::parse(&spelling).unwrap()
}

pub(crate) fn shape(fabric: &Fabric) -> &dyn Groups {
    fabric.groups().unwrap()
}

fn kib(local: u64, global: u64, terminal: u64) -> Buffers {
    Buffers {
        local: Bytes::new(local << 10),
        global: Bytes::new(global << 10),
        terminal: Bytes::new(terminal << 10),
    }
}

fn cut(packet: u64, chunk: u64) -> PacketOptions {
    PacketOptions {
        packet: Bytes::new(packet),
        chunk: Bytes::new(chunk),
        buffers: kib(16, 32, 16),
        ..PacketOptions::default()
    }
}

/// Runs one schedule alone.
fn collective(
    fabric: &Fabric,
    schedule: &Schedule,
    bytes: u64,
    options: &PacketOptions,
) -> PacketOutcome {
    let work = PacketWork {
        collective: Some(packet::PacketCollective::new(schedule, Bytes::new(bytes))),
        traffic: Vec::new(),
    };
    packet::simulate(fabric, &work, options).unwrap()
}

fn traffic(fabric: &Fabric, traffic: Traffic, options: &PacketOptions) -> PacketOutcome {
    let work = PacketWork {
        collective: None,
        traffic: vec![traffic],
    };
    packet::simulate(fabric, &work, options).unwrap()
}

/// Blocks sent straight from rank to rank, all in one step; a block is the destination's of a
/// scatter, whoever sends it.
fn sends(ranks: u32, pairs: &[(u32, u32)]) -> Schedule {
    let mut schedule = Schedule::new(Collective::new(CollectiveKind::Scatter, ranks).unwrap());
    schedule.begin_step();
    for &(source, destination) in pairs {
        schedule.push(Transfer::copy(destination, source, destination));
    }
    schedule
}

/// Returns the time (ps) of the bytes at a rate in hundredths of GiB/s, rounded up.
fn wire(bytes: u64, hundredths_of_gib: u64) -> u64 {
    (bytes * 100 * 1_000_000_000_000).div_ceil(hundredths_of_gib << 30)
}

#[test]
fn a_message_alone_takes_the_sum_of_its_parts() {
    // Destination, local links, global links; terminal 0 of 5256.
    let cases = [(1, 0, 0), (6, 1, 0), (72, 1, 1), (78, 2, 1)];
    let fabric = balanced(6);
    for overheads in [Overheads::NONE, Overheads::CODES] {
        let none = overheads == Overheads::NONE;
        let (ends, send, handover) = if none { (0, 0, 0) } else { (13_500, 505, 750) };
        for bytes in [1, 8, 100, 512] {
            for (destination, local, global) in cases {
                let options = PacketOptions {
                    overheads,
                    ..cut(512, 512)
                };
                let schedule = sends(5256, &[(0, destination)]);
                let outcome = collective(&fabric, &schedule, bytes, &options);
                let routers = 1 + local + global;
                let wires = (2 + local) * wire(bytes, 525)
                    + global * (bytes * 8_000_000_000_000).div_ceil(40_372_692_582);
                let expected = ends + wires + (routers + 1) * send + routers * (50_000 + handover);
                let latency = outcome.message_latency.max().ps();
                assert_eq!(latency, expected, "{bytes} B to {destination}");
                assert_eq!(outcome.routers_passed, routers);
            }
        }
    }
}

#[test]
fn latency_of_links_counts_once_per_link() {
    let fabric = "dragonfly:terminals_per_router=1,routers_per_group=2,global_per_router=1,\
                  rate=1GB/s,terminal_latency=3ns,local_latency=7ns,global_latency=100ns";
    let fabric = Fabric::parse(fabric).unwrap();
    let options = PacketOptions {
        overheads: Overheads::NONE,
        ..cut(512, 512)
    };
    // 3 groups of 2 routers: from group 0 to 1 the cable is at router 1 of 0 and router 0 of 1.
    for (destination, links, routers) in [(1, 7, 2), (2, 107, 3), (3, 114, 4)] {
        let outcome = collective(&fabric, &sends(6, &[(0, destination)]), 100, &options);
        let expected = 1000 * (2 * 3 + links + routers * 50 + (routers + 1) * 100);
        assert_eq!(
            outcome.message_latency.max().ps(),
            expected,
            "{destination}"
        );
    }
}

#[test]
fn senders_to_one_receiver_share_its_link() {
    let spelling = "dragonfly:terminals_per_router=9,routers_per_group=1,global_per_router=1,\
                    groups=1,rate=1GB/s,latency=0ns";
    let fabric = Fabric::parse(spelling).unwrap();
    for arbitration in [
        Arbitration::Ahead,
        Arbitration::Strict,
        Arbitration::RoundRobin,
    ] {
        for (rule, delay) in [(RouterDelay::Pipelined, 0), (RouterDelay::OccupiesPort, 50)] {
            for senders in 1..=8 {
                for chunks in [1, 5, 100] {
                    let pairs: Vec<(u32, u32)> = (1..=senders).map(|sender| (sender, 0)).collect();
                    let options = PacketOptions {
                        overheads: Overheads::NONE,
                        credit_delay: Time::ZERO,
                        router_delay_rule: rule,
                        arbitration,
                        buffers: kib(8, 8, 8),
                        ..cut(100, 100)
                    };
                    let outcome = collective(&fabric, &sends(9, &pairs), 100 * chunks, &options);
                    // The first chunk comes to the router after 100 ns. Then the receiver's link
                    // is never idle; the last chunk's router delay comes on top, once.
                    let total = u64::from(senders) * chunks;
                    let expected = 100 + total * 100 + (total - 1) * delay + 50;
                    let name = format!("{senders} x {chunks} {rule:?} {arbitration:?}");
                    let latency = outcome.message_latency.max();
                    assert_eq!(latency, Time::from_ps(1000 * expected), "{name}");
                    assert_eq!(outcome.bottleneck_busy.ps(), 100_000 * total);
                }
            }
        }
    }
}

/// Laws that hold at the end of any run of traffic alone.
fn check_laws(name: &str, fabric: &Fabric, outcome: &PacketOutcome) {
    let network = fabric.network().unwrap();
    assert_eq!(outcome.bytes_sent, outcome.bytes_delivered, "{name}");
    let vertices = (0..network.links().len() as u32)
        .map(|link| network.ends(link).unwrap())
        .map(|(from, to)| from.max(to))
        .max()
        .unwrap();
    let mut balance = vec![(0_i64, 0_i64); vertices as usize + 1];
    let channels = &outcome.channels;
    for (row, &link) in channels.link.iter().enumerate() {
        let (from, to) = network.ends(link).unwrap();
        let (bytes, chunks) = (channels.bytes[row] as i64, channels.chunks[row] as i64);
        balance[from as usize].0 -= bytes;
        balance[from as usize].1 -= chunks;
        balance[to as usize].0 += bytes;
        balance[to as usize].1 += chunks;
        assert!(
            channels.peak_chunks[row] <= channels.capacity_chunks[row],
            "{name}: {} holds {}",
            network.link_name(link),
            channels.peak_chunks[row]
        );
    }
    let routers = &balance[network.ranks() as usize..];
    assert!(routers.iter().all(|sums| *sums == (0, 0)), "{name}");
    assert_eq!(
        outcome.chunk_latency.count(),
        outcome.minimal_chunks + outcome.detoured_chunks
    );
    assert_eq!(outcome.routers_passed, outcome.router_forwards, "{name}");
}

#[test]
fn nothing_is_lost_and_no_buffer_overflows() {
    let patterns = [
        Pattern::Uniform,
        Pattern::Shift(8),
        Pattern::Permutation,
        Pattern::Nearest,
        Pattern::HotSpot {
            terminal: 3,
            percent: 20,
        },
    ];
    let fabric = balanced(2);
    for pattern in patterns {
        for routing in [
            PacketRouting::Minimal,
            PacketRouting::NonMinimal,
            PacketRouting::Adaptive,
            PacketRouting::Progressive,
        ] {
            for arbitration in [
                Arbitration::Ahead,
                Arbitration::Strict,
                Arbitration::RoundRobin,
            ] {
                for (buffers, jitter) in [(kib(1, 1, 1), None), (kib(4, 8, 2), Some(3))] {
                    let options = PacketOptions {
                        routing,
                        arbitration,
                        buffers,
                        jitter,
                        ..cut(1000, 300)
                    };
                    let sent = Traffic {
                        pattern: pattern.clone(),
                        ..Traffic::uniform(Bytes::new(1700), Time::from_ps(400_000), 30)
                    };
                    let outcome = traffic(&fabric, sent, &options);
                    let name = format!("{pattern:?} {routing:?} {arbitration:?} {jitter:?}");
                    check_laws(&name, &fabric, &outcome);
                    assert_eq!(outcome.message_latency.count(), 72 * 30, "{name}");
                    // 1700 B are packets of 1000 and 700 B: chunks of 300, 300, 300, 100; 300, 300,
                    // 100.
                    assert_eq!(outcome.chunk_latency.count(), 72 * 30 * 7, "{name}");
                }
            }
        }
    }
}

#[test]
fn the_same_run_twice_is_the_same_and_another_seed_is_not() {
    let fabric = balanced(2);
    let run = |seed, jitter| {
        let options = PacketOptions {
            routing: PacketRouting::Adaptive,
            seed,
            jitter,
            timeline_bin: Some(Time::from_ps(1_000_000)),
            ..cut(2048, 512)
        };
        let sent = Traffic::uniform(Bytes::new(2048), Time::from_ps(1_000_000), 20);
        traffic(&fabric, sent, &options)
    };
    assert_eq!(run(1, None), run(1, None));
    assert_eq!(run(1, Some(7)), run(1, Some(7)));
    assert_ne!(run(1, None), run(2, None));
    assert_ne!(run(1, Some(7)), run(1, Some(8)));
}

/// Runs traffic in which every group sends to the next group by way of all other groups, through
/// small buffers.
fn crowded(
    routing: PacketRouting,
    virtual_channels: Option<u32>,
) -> Result<PacketOutcome, PacketError> {
    let fabric = balanced(2);
    let options = PacketOptions {
        routing,
        virtual_channels,
        buffers: kib(1, 1, 1),
        ..cut(2048, 512)
    };
    let shift = Traffic {
        pattern: Pattern::Shift(8),
        ..Traffic::uniform(Bytes::new(8192), Time::from_ps(100_000), 100)
    };
    let work = PacketWork {
        collective: None,
        traffic: vec![shift],
    };
    packet::simulate(&fabric, &work, &options)
}

#[test]
fn one_channel_deadlocks_and_the_cycle_is_named() {
    let fabric = balanced(2);
    let network = fabric.network().unwrap();
    for routing in [PacketRouting::NonMinimal, PacketRouting::Progressive] {
        let Err(PacketError::Deadlock {
            chunks,
            cycle,
            names,
        }) = crowded(routing, Some(1))
        else {
            panic!("{routing:?} did not deadlock");
        };
        assert!(chunks > 0 && cycle.len() > 1, "{cycle:?}");
        for (place, &(link, channel)) in cycle.iter().enumerate() {
            let next = cycle[(place + 1) % cycle.len()].0;
            assert_eq!(channel, 0);
            // A chunk that came over the one waits for the other: they meet at a router.
            let met = network.ends(link).unwrap().1;
            assert_eq!(met, network.ends(next).unwrap().0, "{cycle:?}");
            assert!(met >= network.ranks());
            assert!(names.contains(&network.link_name(link)), "{names}");
        }
        assert!(crowded(routing, None).is_ok(), "{routing:?}");
    }
}

#[test]
fn traffic_that_never_ends_does_not_hide_a_deadlock() {
    // Terminals beside the crowd go on sending within their routers; the look at the buffers finds
    // it.
    let fabric = balanced(2);
    let schedule = sends(72, &[(0, 71)]);
    let mut work = PacketWork {
        collective: Some(packet::PacketCollective::new(
            &schedule,
            Bytes::new(1 << 28),
        )),
        traffic: Vec::new(),
    };
    for pattern in [Pattern::Shift(8), Pattern::Nearest] {
        work.traffic.push(Traffic {
            pattern,
            ..Traffic::background(Bytes::new(8192), Time::from_ps(10_000_000))
        });
    }
    work.traffic[0].period = Time::from_ps(200_000);
    work.traffic[0].messages = Some(200);
    let options = PacketOptions {
        routing: PacketRouting::NonMinimal,
        virtual_channels: Some(1),
        buffers: kib(1, 1, 1),
        ..cut(2048, 512)
    };
    let outcome = packet::simulate(&fabric, &work, &options);
    assert!(
        matches!(outcome, Err(PacketError::Deadlock { .. })),
        "{outcome:?}"
    );
}

#[test]
fn non_minimal_ways_pass_a_random_group() {
    let fabric = balanced(4);
    let network = fabric.network().unwrap();
    let (ranks, per_group) = (network.ranks(), 32);
    let sent = || Traffic {
        pattern: Pattern::Shift(per_group),
        ..Traffic::uniform(Bytes::new(512), Time::from_ps(10_000_000), 50)
    };
    let group = |vertex: u32| (vertex - ranks) / 8;
    for routing in [PacketRouting::Minimal, PacketRouting::NonMinimal] {
        let options = PacketOptions {
            routing,
            ..cut(512, 512)
        };
        let outcome = traffic(&fabric, sent(), &options);
        let (mut crossings, mut straight, mut out_of_first) = (0, 0, [0; 33]);
        for (row, &link) in outcome.channels.link.iter().enumerate() {
            let (from, to) = network.ends(link).unwrap();
            if from < ranks || to < ranks || group(from) == group(to) {
                continue;
            }
            let chunks = outcome.channels.chunks[row];
            crossings += chunks;
            if group(to) == (group(from) + 1) % 33 {
                straight += chunks;
            }
            // Channel 0 of a global link carries first crossings.
            if group(from) == 0 && outcome.channels.channel[row] == 0 {
                out_of_first[group(to) as usize] += chunks;
            }
        }
        let chunks = u64::from(ranks) * 50;
        if routing == PacketRouting::Minimal {
            assert_eq!((crossings, straight), (chunks, chunks));
            continue;
        }
        // One way in 32 meets the destination's group at once and crosses once, the others twice.
        // 52 800 draws: a deviation of 5 standard deviations is 1 percent of the crossings saved.
        let once = 2 * chunks - crossings;
        let expected = chunks as f64 / 32.0;
        assert!(
            (once as f64 - expected).abs() < 5.0 * expected.sqrt(),
            "{once}"
        );
        assert_eq!(out_of_first[0], 0);
        let each = f64::from(per_group) * 50.0 / 32.0;
        for count in &out_of_first[1..] {
            assert!((*count as f64 - each).abs() < 5.0 * each.sqrt(), "{count}");
        }
    }
}

#[test]
fn adaptive_ways_are_minimal_until_links_fill() {
    let fabric = balanced(4);
    for routing in [PacketRouting::Adaptive, PacketRouting::Progressive] {
        let options = PacketOptions {
            routing,
            ..cut(512, 512)
        };
        // One chunk each 10 us: every buffer is empty, equal loads go minimally.
        let calm = Traffic::uniform(Bytes::new(512), Time::from_ps(10_000_000), 1);
        let shape = sends(1056, &[(0, 500)]);
        let alone = collective(&fabric, &shape, 512, &options);
        assert_eq!(alone.detoured_chunks, 0);
        let adverse = Traffic {
            pattern: Pattern::Shift(32),
            ..Traffic::uniform(Bytes::new(2048), Time::from_ps(1_000_000), 20)
        };
        let outcome = traffic(&fabric, adverse, &options);
        assert!(outcome.detoured_chunks > outcome.minimal_chunks);
        let calm = traffic(&fabric, calm, &options);
        assert!(calm.detoured_chunks * 10 < calm.minimal_chunks);
    }
}

#[test]
fn arbitration_decides_who_waits() {
    // Two streams of 4 MiB meet on the local link of group 1 from router 0 to router 1: from within
    // the group in channel 0, and from group 0 in channel 1.
    let spelling = "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1,\
                    rate=1GB/s,latency=0ns";
    let fabric = Fabric::parse(spelling).unwrap();
    let dragonfly = shape(&fabric);
    // The cable from group 0 to 1 lands on this router of group 1.
    let landing = dragonfly.gateway(1, 0).0;
    let first = |router: u32| (2 + router) * 2;
    let (inside, target) = (first(landing), first(1 - landing));
    let schedule = sends(12, &[(0, target), (inside, target + 1)]);
    let run = |arbitration| {
        let options = PacketOptions {
            arbitration,
            ..cut(512, 512)
        };
        let outcome = collective(&fabric, &schedule, 4 << 20, &options);
        let seconds = |rank: u32| outcome.ranks.finish[rank as usize].seconds();
        (seconds(target), seconds(target + 1))
    };
    let alone = f64::from(4 << 20) / 1e9;
    let (outside, inside) = run(Arbitration::Strict);
    assert!(
        outside < 1.05 * alone && inside > 1.9 * alone,
        "{outside} {inside}"
    );
    for arbitration in [Arbitration::RoundRobin, Arbitration::Ahead] {
        let (outside, inside) = run(arbitration);
        assert!(
            outside > 1.9 * alone && inside > 1.9 * alone,
            "{arbitration:?}"
        );
    }
}

#[test]
fn a_rank_sends_one_message_after_the_other_or_all_at_once() {
    // 8 messages of one chunk from one rank: when the last has left its terminal is the same either
    // way but for the time of sequencing, which overlaps only where they are handed over together.
    let fabric = balanced(2);
    let pairs: Vec<(u32, u32)> = (1..=8).map(|rank| (0, rank)).collect();
    let schedule = sends(72, &pairs);
    let options = PacketOptions {
        overheads: Overheads {
            sequencing: Time::from_ps(1_000_000),
            ..Overheads::NONE
        },
        router_delay: Time::ZERO,
        ..cut(512, 512)
    };
    let chunk = wire(512, 525);
    for (issue, overhead, expected) in [
        // Each message waits for its sequencing when the one before has begun to leave.
        (packet::Issue::Sequential, 0, 8 * 1_000_000),
        (packet::Issue::Sequential, 250_000, 8 * 1_250_000),
        (packet::Issue::Together, 0, 8 * 1_000_000),
    ] {
        let mut collective = packet::PacketCollective::new(&schedule, Bytes::new(512));
        collective.issue = issue;
        collective.overhead = Time::from_ps(overhead);
        let work = PacketWork {
            collective: Some(collective),
            traffic: Vec::new(),
        };
        let outcome = packet::simulate(&fabric, &work, &options).unwrap();
        // Rank 8 is in the next group, whose cable is at router 1: one local, one global hop at
        // least.
        let last = outcome.ranks.finish[1..=7].iter().max().unwrap().ps() - 1000;
        assert!(last >= 7 * (expected / 8) + 2 * chunk, "{issue:?} {last}");
        assert!(last <= 7 * (expected / 8) + 3 * chunk, "{issue:?} {last}");
        // The last send begins when its sequencing ends.
        assert_eq!(outcome.ranks.finish[0].ps(), 1000 + expected, "{issue:?}");
    }
}

#[test]
fn occupancy_over_time_adds_up() {
    // One message of 4 chunks within a router, no overheads and no router delay: a chunk holds the
    // injection buffer for its time on the wire, and the ejection buffer likewise.
    let fabric = balanced(2);
    let bin = 10_000;
    let options = PacketOptions {
        overheads: Overheads::NONE,
        router_delay: Time::ZERO,
        credit_delay: Time::ZERO,
        timeline_bin: Some(Time::from_ps(bin)),
        ..cut(2048, 512)
    };
    let outcome = collective(&fabric, &sends(72, &[(0, 1)]), 2048, &options);
    let bins = outcome.timeline.mean_bytes.len() / 4;
    let held = |class: usize| -> u64 {
        outcome.timeline.mean_bytes[class * bins..][..bins]
            .iter()
            .sum()
    };
    let expected = 4 * 512 * wire(512, 525) / bin;
    for sum in [held(0), held(1)] {
        assert!(
            sum <= expected && expected - sum <= bins as u64,
            "{sum} {expected}"
        );
    }
    assert_eq!((held(2), held(3)), (0, 0));
}

#[test]
fn distributions_keep_quantiles_within_a_64th() {
    let fabric = balanced(2);
    let sent = Traffic::uniform(Bytes::new(2048), Time::from_ps(1_000_000), 50);
    let outcome = traffic(&fabric, sent, &cut(2048, 512));
    let latency = &outcome.message_latency;
    let counted: u64 = latency.bins().map(|(_, _, count)| count).sum();
    assert_eq!(counted, latency.count());
    let (mut below, mut last) = (0, None);
    for (first, end, count) in latency.bins() {
        assert!(first <= end && last.is_none_or(|last| last < first));
        assert!(end.ps() - first.ps() <= first.ps() / 64);
        below += count;
        last = Some(end);
        let share = (1000 * below / counted) as u32;
        assert!(latency.percentile(share) <= end);
    }
    assert!(latency.percentile(1000) == latency.max() && latency.percentile(500) < latency.max());
    assert!(last.unwrap() >= latency.max());
}

#[test]
fn options_out_of_range_are_refused_with_a_reason() {
    let fabric = balanced(2);
    let uniform = Traffic::uniform(Bytes::new(2048), Time::from_ps(1_000_000), 1);
    let works = |traffic: Traffic| PacketWork {
        collective: None,
        traffic: vec![traffic],
    };
    let good = works(uniform.clone());
    let shift = |places| Traffic {
        pattern: Pattern::Shift(places),
        ..uniform.clone()
    };
    let endless = Traffic::background(Bytes::new(1), Time::from_ps(1_000_000));
    let cases = [
        (good.clone(), cut(2048, 0), "chunk"),
        (good.clone(), cut(100, 512), "packet"),
        (good.clone(), cut(1 << 21, 1 << 21), "chunk"),
        (good.clone(), cut(1 << 20, 1 << 20), "buffer"),
        (works(shift(72)), cut(2048, 512), "oneself"),
        (works(endless), cut(2048, 512), "until a collective ends"),
        (
            good.clone(),
            PacketOptions {
                seed: 2,
                ..cut(2048, 512)
            },
            "minimal routing draws no groups",
        ),
        (
            good.clone(),
            PacketOptions {
                jitter: Some(1),
                overheads: packet::Overheads::NONE,
                ..cut(2048, 512)
            },
            "has no effect",
        ),
        (
            good,
            PacketOptions {
                router_delay: Time::from_ps(u64::MAX),
                ..cut(2048, 512)
            },
            "router_delay",
        ),
    ];
    for (work, options, reason) in cases {
        let error = packet::simulate(&fabric, &work, &options).unwrap_err();
        assert!(error.to_string().contains(reason), "{reason}: {error}");
    }
}
