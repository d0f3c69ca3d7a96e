//! CODES's values for the same workloads; CODES adds random delays of its own.

use opticoll::algorithms;
use opticoll::algorithms::tar;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::hash::shuffled;
use opticoll::schedule::Schedule;
use opticoll::simulate::packet;
use opticoll::simulate::packet::{
    Arbitration, DelayRange, Overheads, PacketOptions, PacketOutcome, PacketRouting, PacketWork,
    Pattern, RouterDelay, Traffic,
};
use opticoll::units::{Bytes, Time};

use crate::{number, rows};

use super::{balanced, collective, cut, kib, sends, shape, traffic};

fn close(name: &str, ours: f64, peer: f64, percent: f64) {
    let off = 100.0 * (ours / peer - 1.0);
    assert!(
        off.abs() <= percent,
        "{name}: {ours} against {peer}, {off:+.2} %"
    );
}

fn us(time: Time) -> f64 {
    time.ps() as f64 / 1e6
}

fn named(kind: CollectiveKind, name: &str, fabric: &Fabric) -> Schedule {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    algorithms::build(&name.parse().unwrap(), collective, fabric).unwrap()
}

/// Returns CODES's small delays, all at their minimum (0) or their maximum (1).
fn ends(which: u64) -> Overheads {
    let end = |range: DelayRange| DelayRange {
        min: Time::from_ps(range.min.ps() + which * range.width.ps()),
        width: Time::ZERO,
    };
    let Overheads {
        sequencing,
        handover,
        send,
        notice,
        credit,
    } = Overheads::CODES;
    Overheads {
        sequencing,
        handover: end(handover),
        send: end(send),
        notice: end(notice),
        credit: end(credit),
    }
}

#[test]
fn single_messages_take_what_they_take_in_codes() {
    let fabric = balanced(6);
    let cells = [
        (8, [69.5, 122.3, 174.5, 226.9]),
        (512, [248.3, 390.5, 542.6, 684.4]),
        (1024, [339.8, 482.2, 644.7, 786.4]),
    ];
    for (bytes, row) in cells {
        for (destination, peer) in [1, 6, 72, 78].into_iter().zip(row) {
            let name = format!("{bytes} B to {destination}");
            let schedule = sends(5256, &[(0, destination)]);
            let latency = |overheads, jitter| {
                let options = PacketOptions {
                    overheads,
                    jitter,
                    ..cut(512, 512)
                };
                let outcome = collective(&fabric, &schedule, bytes, &options);
                1e3 * us(outcome.message_latency.max())
            };
            // CODES's value is one draw of 13 to 20 small delays, each within 0.5 or 1 ns. Where
            // that is more than a percent of the whole, it must lie between the least and the most.
            let (least, most) = (latency(ends(0), None), latency(ends(1), None));
            assert!(
                least <= peer && peer <= most,
                "{name}: {peer} in {least}..{most}"
            );
            for seed in 0..20 {
                let drawn = latency(Overheads::CODES, Some(seed << 32));
                assert!(least <= drawn && drawn <= most, "{name}: {drawn}");
            }
            if bytes > 8 || destination >= 72 {
                close(&name, latency(Overheads::CODES, None), peer, 1.0);
            }
        }
    }
}

/// CODES's values: p, routing, mean latency of messages and of chunks (us), routers per chunk, last
/// delivery (us), chunks on shortest routes.
const UNIFORM: &str = "
2 | minimal | 1.2509 | 0.9749 | 3.349 | 101.932 | 28800
2 | adaptive | 1.3324 | 1.0144 | 4.018 | 101.514 | 18896
2 | valiant | 1.6747 | 1.3086 | 4.810 | 101.815 | 0
4 | minimal | 1.4012 | 1.0983 | 3.695 | 102.441 | 422400
4 | adaptive | 1.4871 | 1.1403 | 4.520 | 101.973 | 244900
4 | valiant | 2.0078 | 1.5712 | 5.483 | 102.952 | 0
";

#[test]
fn uniform_traffic_meets_codes() {
    for [p, routing, measured @ ..] in rows::<7>(UNIFORM) {
        let routing = *PacketRouting::ALL
            .iter()
            .find(|one| one.name() == routing)
            .unwrap();
        let [message, chunk, routers, last, minimal] = measured.map(number::<f64>);
        let fabric = balanced(number(p));
        let options = PacketOptions {
            routing,
            ..cut(2048, 512)
        };
        let sent = Traffic::uniform(Bytes::new(2048), Time::from_ps(1_000_000), 100);
        let outcome = traffic(&fabric, sent, &options);
        let name = format!("p = {p}, {routing:?}");
        let percent = if routing == PacketRouting::Minimal {
            1.0
        } else {
            3.0
        };
        close(&name, us(outcome.message_latency.mean()), message, percent);
        close(&name, us(outcome.chunk_latency.mean()), chunk, percent);
        close(&name, outcome.mean_hops, routers, 0.5);
        close(&name, us(outcome.time), last, 1.0);
        if minimal > 0.0 {
            close(&name, outcome.minimal_chunks as f64, minimal, 1.0);
        }
    }
}

#[test]
fn adversarial_traffic_meets_codes() {
    let fabric = balanced(4);
    let shift = || Traffic {
        pattern: Pattern::Shift(32),
        ..Traffic::uniform(Bytes::new(2048), Time::from_ps(1_000_000), 50)
    };
    let outcome = traffic(&fabric, shift(), &cut(2048, 512));
    close("last", us(outcome.time), 653.3, 1.0);
    close("mean", us(outcome.message_latency.mean()), 304.3, 1.0);
    close("max", us(outcome.message_latency.max()), 603.6, 1.0);
    close("routers", outcome.mean_hops, 3.750, 0.1);
    // One global link per group carries all: 32 x 50 x 2048 B at 4.7 GiB/s.
    let (link, busy) = (outcome.bottleneck.unwrap(), outcome.bottleneck_busy);
    close("bound", us(busy), 649.3, 0.1);
    let name = fabric.network().unwrap().link_name(link);
    assert!(name.matches("group").count() == 2, "{name}");
    let options = PacketOptions {
        routing: PacketRouting::NonMinimal,
        ..cut(2048, 512)
    };
    // Random groups make the most loaded of the links; draws differ by some percent.
    let outcome = traffic(&fabric, shift(), &options);
    close("non-minimal last", us(outcome.time), 99.2, 5.0);
    close(
        "non-minimal mean",
        us(outcome.message_latency.mean()),
        28.5,
        1.0,
    );
    close("non-minimal routers", outcome.mean_hops, 5.680, 0.5);
}

#[test]
fn long_rings_meet_codes() {
    let fabric = balanced(4);
    let options = PacketOptions {
        buffers: kib(64, 64, 64),
        ..cut(4096, 4096)
    };
    let natural = named(CollectiveKind::AllGather, "ring", &fabric);
    let aware = named(CollectiveKind::AllGather, "tar", &fabric);
    for (name, schedule, [finish, mean, message, longest, routers]) in [
        (
            "natural",
            natural,
            [24548.9, 19317.0, 12.969, 93.853, 1.303],
        ),
        ("TAR", aware, [13710.6, 13704.6, 12.990, 26.432, 1.250]),
    ] {
        let outcome = collective(&fabric, &schedule, 64 << 10, &options);
        close(name, us(outcome.time), finish, 0.1);
        close(name, us(outcome.mean_finish), mean, 0.1);
        close(name, us(outcome.message_latency.mean()), message, 0.1);
        close(name, us(outcome.message_latency.max()), longest, 0.5);
        close(name, outcome.mean_hops, routers, 0.1);
    }
}

/// Runs a ring or Bruck all_gather on placed ranks, with or without background traffic.
fn gathered(
    fabric: &Fabric,
    schedule: &Schedule,
    placement: Option<&Vec<u32>>,
    bytes: u64,
    background: bool,
    options: &PacketOptions,
) -> PacketOutcome {
    let mut collective = packet::PacketCollective::new(schedule, Bytes::new(bytes));
    collective.placement = placement.cloned();
    let beside = Traffic::background(Bytes::new(2048), Time::from_ps(2_000_000));
    let work = PacketWork {
        collective: Some(collective),
        traffic: background.then_some(beside).into_iter().collect(),
    };
    packet::simulate(fabric, &work, options).unwrap()
}

#[test]
fn all_gathers_meet_codes() {
    // p; bytes; background; us of ring natural, TAR, shuffled; Bruck natural, shuffled.
    let rows = [
        (2, 64, false, [9.28, 8.53, 16.66, 6.56, 4.70]),
        (2, 1 << 10, false, [31.25, 29.39, 59.80, 80.31, 38.29]),
        (2, 4 << 10, false, [0.0, 69.16, 235.4, 370.0, 139.1]),
        (2, 64 << 10, false, [1676.8, 926.9, 3706.9, 6843.0, 2385.8]),
        (2, 64, true, [17.36, 17.61, 0.0, 8.23, 0.0]),
        (4, 64, false, [113.0, 109.5, 273.5, 236.5, 0.0]),
    ];
    for (p, bytes, background, peers) in rows {
        let fabric = balanced(p);
        let ranks = fabric.ranks();
        let ring = named(CollectiveKind::AllGather, "ring", &fabric);
        let bruck = named(CollectiveKind::AllGather, "bruck", &fabric);
        let shuffled = shuffled(ranks, 1);
        let aware = tar::order(shape(&fabric));
        let cases = [
            ("ring", &ring, None),
            ("TAR", &ring, Some(&aware)),
            ("shuffled ring", &ring, Some(&shuffled)),
            ("Bruck", &bruck, None),
            ("shuffled Bruck", &bruck, Some(&shuffled)),
        ];
        for ((name, schedule, placement), peer) in cases.into_iter().zip(peers) {
            if peer == 0.0 {
                continue;
            }
            let options = cut(512, 512);
            let outcome = gathered(&fabric, schedule, placement, bytes, background, &options);
            let name = format!("{name}, {ranks} x {bytes} B, background {background}");
            let percent = if background { 5.0 } else { 2.0 };
            close(&name, us(outcome.time), peer, percent);
        }
    }
}

#[test]
fn drawn_delays_break_ties_as_codes_does() {
    // Shuffled Bruck with 64 B: chunks of many ranks come to routers at one instant, in an order
    // that is random with draws. CODES's value is one draw of that as well.
    let fabric = balanced(4);
    let bruck = named(CollectiveKind::AllGather, "bruck", &fabric);
    let placement = shuffled(1056, 1);
    let drawn: Vec<f64> = (1..=20)
        .map(|seed| {
            let options = PacketOptions {
                jitter: Some(seed),
                ..cut(512, 512)
            };
            us(gathered(&fabric, &bruck, Some(&placement), 64, false, &options).time)
        })
        .collect();
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    close("shuffled Bruck", mean, 51.2, 2.0);
    assert!(
        drawn.iter().any(|time| *time <= 51.2) && drawn.iter().any(|time| *time >= 51.2),
        "{drawn:?}"
    );
}

#[test]
fn where_two_streams_of_chunks_meet_a_link_decides_when_it_is_free() {
    // Natural ring, 72 x 4 KiB: CODES took 111.9 us. On the twice used link either all chunks are
    // decided as they come (104.5 us), or, once two come within a hand-over, when the link is free,
    // and then those of one stream go before all others (111 to 115 us). Most draws bring two
    // together.
    let fabric = balanced(2);
    let ring = named(CollectiveKind::AllGather, "ring", &fabric);
    let drawn = |arbitration| -> Vec<f64> {
        (1..=40)
            .map(|seed| {
                let options = PacketOptions {
                    jitter: Some(seed * 1_000_003),
                    arbitration,
                    ..cut(512, 512)
                };
                us(gathered(&fabric, &ring, None, 4096, false, &options).time)
            })
            .collect()
    };
    let ahead = drawn(Arbitration::Ahead);
    let (late, early): (Vec<f64>, Vec<f64>) = ahead.iter().partition(|time| **time > 108.0);
    assert!(late.len() > early.len() && !early.is_empty(), "{ahead:?}");
    close(
        "early",
        early.iter().sum::<f64>() / early.len() as f64,
        104.5,
        0.2,
    );
    close(
        "late",
        late.iter().sum::<f64>() / late.len() as f64,
        111.9,
        1.5,
    );
    // Where every decision waits for the link, nothing hangs on the draws.
    for time in drawn(Arbitration::Strict) {
        close("strict", time, 111.9, 0.5);
    }
}

#[test]
fn scatters_to_5256_terminals_meet_codes() {
    use RouterDelay::{OccupiesPort, Pipelined};
    let fabric = balanced(6);
    let schedules = [
        named(CollectiveKind::Scatter, "lin", &fabric),
        named(CollectiveKind::Scatter, "binomial", &fabric),
        named(CollectiveKind::Scatter, "glf", &fabric),
        named(CollectiveKind::Scatter, "llf", &fabric),
    ];
    // Bytes of a chunk; buffers in KiB; rule; us of LIN, TREE, GLF, LLF with 1 KiB per terminal.
    let (large, small) = (kib(16, 32, 16), kib(1, 2, 1));
    let rows = [
        (256, large, Pipelined, [972.1, 1066.2, 1065.6, 993.7]),
        (256, large, OccupiesPort, [1131.7, 2103.7, 2097.8, 2015.8]),
        (512, large, Pipelined, [969.6, 1062.7, 1061.5, 987.2]),
        (512, large, OccupiesPort, [976.8, 1581.1, 1577.4, 1490.0]),
        (512, small, Pipelined, [1040.9, 1074.9, 1073.8, 991.1]),
        (512, small, OccupiesPort, [1534.3, 1599.4, 1597.7, 1514.2]),
    ];
    for (chunk, buffers, router_delay_rule, peers) in rows {
        for (schedule, peer) in schedules.iter().zip(peers) {
            let options = PacketOptions {
                router_delay_rule,
                buffers,
                ..cut(512, chunk)
            };
            let outcome = collective(&fabric, schedule, 1024, &options);
            close("scatter", us(outcome.time), peer, 1.0);
        }
    }
}

#[test]
fn scatters_under_background_traffic_meet_codes() {
    let fabric = balanced(4);
    let schedules = [
        named(CollectiveKind::Scatter, "lin", &fabric),
        named(CollectiveKind::Scatter, "binomial", &fabric),
        named(CollectiveKind::Scatter, "glf", &fabric),
        named(CollectiveKind::Scatter, "llf", &fabric),
    ];
    for (router_delay_rule, peers) in [
        (RouterDelay::Pipelined, [240.1, 281.7, 281.7, 269.1]),
        (RouterDelay::OccupiesPort, [248.9, 563.6, 563.6, 568.7]),
    ] {
        for (schedule, peer) in schedules.iter().zip(peers) {
            let beside = Traffic {
                messages: Some(150),
                ..Traffic::background(Bytes::new(2048), Time::from_ps(2_000_000))
            };
            let work = PacketWork {
                collective: Some(packet::PacketCollective::new(schedule, Bytes::new(1024))),
                traffic: vec![beside],
            };
            let options = PacketOptions {
                router_delay_rule,
                ..cut(512, 256)
            };
            let outcome = packet::simulate(&fabric, &work, &options).unwrap();
            close("scatter", us(outcome.time), peer, 2.0);
        }
    }
}
