//! Runs the dragonfly workloads of which CODES's results are known, and prints both side by side.
//!
//! `cargo run --release --example dragonfly_peer [CASE...]`: all cases whose name contains one of
//! the words; without words all of at most 1056 terminals. SEED and JITTER in the environment are
//! seeds of the choices of routing and of drawn delays.

use std::time::Instant;

use opticoll::algorithms;
use opticoll::algorithms::tar;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::fabric::Groups;
use opticoll::hash::shuffled;
use opticoll::schedule::Schedule;
use opticoll::simulate::packet;
use opticoll::simulate::packet::{
    Buffers, PacketOptions, PacketOutcome, PacketRouting, PacketWork, Pattern, RouterDelay, Traffic,
};
use opticoll::units::{Bytes, Time};

fn dragonfly(p: u32) -> Fabric {
    let spelling = format!(
        "dragonfly:terminals_per_router={p},routers_per_group={},global_per_router={p},\
         rate=5.25GiB/s,global_rate=40372692582b/s,latency=0ns",
        2 * p
    );
    Fabric::parse(&spelling).expect("a dragonfly")
}

fn shape(fabric: &Fabric) -> &dyn Groups {
    fabric.groups().expect("made by dragonfly()")
}

fn options(packet: u64, chunk: u64, kib: [u64; 3]) -> PacketOptions {
    PacketOptions {
        packet: Bytes::new(packet),
        chunk: Bytes::new(chunk),
        buffers: Buffers {
            local: Bytes::new(kib[0] << 10),
            global: Bytes::new(kib[1] << 10),
            terminal: Bytes::new(kib[2] << 10),
        },
        seed: from_environment("SEED").unwrap_or(1),
        jitter: from_environment("JITTER"),
        ..PacketOptions::default()
    }
}

fn named(kind: CollectiveKind, name: &str, fabric: &Fabric) -> Schedule {
    let collective = Collective::new(kind, fabric.ranks()).expect("ranks");
    algorithms::build(&name.parse().expect("a name"), collective, fabric).expect("a schedule")
}

struct Report {
    asked: Vec<String>,
}

impl Report {
    fn wanted(&self, name: &str) -> bool {
        if self.asked.is_empty() {
            return !name.contains("5256");
        }
        self.asked.iter().any(|word| name.contains(word))
    }

    fn run(
        &self,
        name: &str,
        fabric: &Fabric,
        work: &PacketWork<'_>,
        options: &PacketOptions,
    ) -> PacketOutcome {
        let start = Instant::now();
        let outcome = packet::simulate(fabric, work, options).expect("a result");
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{name}: {seconds:.2} s, {:.2} M events ({:.1} M/s), {:.2} M forwards ({:.1} M/s)",
            outcome.events as f64 / 1e6,
            outcome.events as f64 / 1e6 / seconds,
            outcome.router_forwards as f64 / 1e6,
            outcome.router_forwards as f64 / 1e6 / seconds,
        );
        outcome
    }
}

/// Prints a value beside the value of CODES.
fn line(what: &str, ours: f64, peer: f64) {
    let off = 100.0 * (ours / peer - 1.0);
    println!("    {what:<34} {ours:>12.4} {peer:>12.4} {off:>+8.2} %");
}

fn us(time: Time) -> f64 {
    time.ps() as f64 / 1e6
}

/// Reads a number from the environment: SEED for the choices of routing, JITTER for drawn delays.
fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn calibration(report: &Report) {
    if !report.wanted("single") {
        return;
    }
    let fabric = dragonfly(6);
    let peer = [
        (8, [69.5, 122.3, 174.5, 226.9]),
        (512, [248.3, 390.5, 542.6, 684.4]),
        (1024, [339.8, 482.2, 644.7, 786.4]),
    ];
    for (bytes, row) in peer {
        for (destination, peer) in [1, 6, 72, 78].into_iter().zip(row) {
            let mut schedule =
                Schedule::new(Collective::new(CollectiveKind::Scatter, 5256).expect("ranks"));
            schedule.push(opticoll::schedule::Transfer::copy(
                destination,
                0,
                destination,
            ));
            let collective = packet::PacketCollective::new(&schedule, Bytes::new(bytes));
            let work = PacketWork {
                collective: Some(collective),
                ..PacketWork::default()
            };
            let mut options = options(512, 512, [16, 32, 16]);
            let outcome = packet::simulate(&fabric, &work, &options).expect("a result");
            let (mut least, mut most) = (f64::MAX, 0.0_f64);
            for seed in 0..100 {
                options.jitter = Some(seed << 32);
                let drawn = packet::simulate(&fabric, &work, &options).expect("a result");
                let nanoseconds = 1e3 * us(drawn.message_latency.max());
                (least, most) = (least.min(nanoseconds), most.max(nanoseconds));
            }
            let name = format!("{bytes} B to {destination} ns [{least:.1}, {most:.1}]");
            line(&name, 1e3 * us(outcome.message_latency.max()), peer);
        }
    }
}

fn traffic(report: &Report) {
    // p, routing, last, mean finish, mean and max message, mean and max chunk, routers, minimal
    type Row = (u32, PacketRouting, [f64; 7], u64);
    let rows: &[Row] = &[
        (
            2,
            PacketRouting::Minimal,
            [101.932, 100.158, 1.2509, 3.2465, 0.9749, 3.2341, 3.349],
            28_800,
        ),
        (
            2,
            PacketRouting::Adaptive,
            [101.514, 100.223, 1.3324, 3.0214, 1.0144, 3.0090, 4.018],
            18_896,
        ),
        (
            2,
            PacketRouting::NonMinimal,
            [101.815, 100.508, 1.6747, 3.9568, 1.3086, 3.9447, 4.810],
            0,
        ),
        (
            4,
            PacketRouting::Minimal,
            [102.441, 100.354, 1.4012, 5.2871, 1.0983, 5.2751, 3.695],
            422_400,
        ),
        (
            4,
            PacketRouting::Adaptive,
            [101.973, 100.436, 1.4871, 3.8386, 1.1403, 3.8265, 4.520],
            244_900,
        ),
        (
            4,
            PacketRouting::NonMinimal,
            [102.952, 100.936, 2.0078, 7.8019, 1.5712, 7.7896, 5.483],
            0,
        ),
        (
            6,
            PacketRouting::Minimal,
            [102.974, 100.421, 1.4553, 5.5266, 1.1442, 5.5147, 3.808],
            2_102_400,
        ),
    ];
    for (p, routing, peer, minimal) in rows {
        let fabric = dragonfly(*p);
        let name = format!("W1 {} {routing:?}", fabric.ranks());
        if !report.wanted(&name) {
            continue;
        }
        let work = PacketWork {
            traffic: vec![Traffic::uniform(
                Bytes::new(2048),
                Time::from_ps(1_000_000),
                100,
            )],
            ..PacketWork::default()
        };
        let options = PacketOptions {
            routing: *routing,
            ..options(2048, 512, [16, 32, 16])
        };
        let outcome = report.run(&name, &fabric, &work, &options);
        let ours = [
            us(outcome.time),
            us(outcome.mean_finish),
            us(outcome.message_latency.mean()),
            us(outcome.message_latency.max()),
            us(outcome.chunk_latency.mean()),
            us(outcome.chunk_latency.max()),
            outcome.mean_hops,
        ];
        let names = [
            "last delivery us",
            "mean finish us",
            "mean message us",
            "max message us",
            "mean chunk us",
            "max chunk us",
            "routers per chunk",
        ];
        for ((name, ours), peer) in names.into_iter().zip(ours).zip(peer) {
            line(name, ours, *peer);
        }
        line(
            "minimal chunks",
            outcome.minimal_chunks as f64,
            *minimal as f64,
        );
    }
    for (routing, peer) in [
        (PacketRouting::Minimal, [653.3, 304.3, 603.6, 3.750]),
        (PacketRouting::NonMinimal, [99.2, 28.5, 87.9, 5.680]),
    ] {
        let fabric = dragonfly(4);
        let name = format!("W4 1056 {routing:?}");
        if !report.wanted(&name) {
            continue;
        }
        let uniform = Traffic::uniform(Bytes::new(2048), Time::from_ps(1_000_000), 50);
        let shift = Traffic {
            pattern: Pattern::Shift(32),
            ..uniform
        };
        let work = PacketWork {
            traffic: vec![shift],
            ..PacketWork::default()
        };
        let options = PacketOptions {
            routing,
            ..options(2048, 512, [16, 32, 16])
        };
        let outcome = report.run(&name, &fabric, &work, &options);
        line("last delivery us", us(outcome.time), peer[0]);
        line(
            "mean message us",
            us(outcome.message_latency.mean()),
            peer[1],
        );
        line("max message us", us(outcome.message_latency.max()), peer[2]);
        line("routers per chunk", outcome.mean_hops, peer[3]);
    }
}

fn rings(report: &Report) {
    let fabric = dragonfly(4);
    let natural = named(CollectiveKind::AllGather, "ring", &fabric);
    let tar = named(CollectiveKind::AllGather, "tar", &fabric);
    for (name, schedule, peer) in [
        (
            "natural",
            natural,
            [24548.9, 19317.0, 12.969, 93.853, 1.303],
        ),
        ("TAR", tar, [13710.6, 13704.6, 12.990, 26.432, 1.250]),
    ] {
        let name = format!("W2 1056 {name}");
        if !report.wanted(&name) {
            continue;
        }
        let collective = packet::PacketCollective::new(&schedule, Bytes::new(64 << 10));
        let work = PacketWork {
            collective: Some(collective),
            ..PacketWork::default()
        };
        let outcome = report.run(&name, &fabric, &work, &options(4096, 4096, [64, 64, 64]));
        line("finish us", us(outcome.time), peer[0]);
        line("mean finish us", us(outcome.mean_finish), peer[1]);
        line(
            "mean message us",
            us(outcome.message_latency.mean()),
            peer[2],
        );
        line("max message us", us(outcome.message_latency.max()), peer[3]);
        line("routers per chunk", outcome.mean_hops, peer[4]);
    }
    if report.wanted("W3 5256") {
        let fabric = dragonfly(6);
        let schedule = named(CollectiveKind::AllGather, "ring", &fabric);
        let collective = packet::PacketCollective::new(&schedule, Bytes::new(1024));
        let work = PacketWork {
            collective: Some(collective),
            ..PacketWork::default()
        };
        let outcome = report.run(
            "W3 5256",
            &fabric,
            &work,
            &options(1024, 1024, [16, 32, 16]),
        );
        println!("    finish {:.1} us", us(outcome.time));
    }
}

fn sweep(report: &Report) {
    // p, bytes, background, then natural ring, TAR, shuffled ring, Bruck natural, shuffled;
    // adaptive Bruck
    type Row = (u32, u64, bool, [f64; 6]);
    let rows: &[Row] = &[
        (2, 64, false, [9.28, 8.53, 16.66, 6.56, 4.70, 0.0]),
        (2, 1 << 10, false, [31.25, 29.39, 59.80, 80.31, 38.29, 0.0]),
        (2, 4 << 10, false, [111.9, 69.16, 235.4, 370.0, 139.1, 0.0]),
        (
            2,
            64 << 10,
            false,
            [1676.8, 926.9, 3706.9, 6843.0, 2385.8, 0.0],
        ),
        (2, 64, true, [17.36, 17.61, 0.0, 8.23, 0.0, 0.0]),
        (4, 64, false, [113.0, 109.5, 273.5, 236.5, 51.2, 0.0]),
        (4, 1 << 10, false, [404.2, 396.0, 0.0, 4132.5, 795.3, 758.3]),
    ];
    for &(p, bytes, background, peer) in rows {
        let fabric = dragonfly(p);
        let ranks = fabric.ranks();
        let ring = named(CollectiveKind::AllGather, "ring", &fabric);
        let bruck = named(CollectiveKind::AllGather, "bruck", &fabric);
        let shuffled = shuffled(ranks, 1);
        let order = tar::order(shape(&fabric));
        let cases: [(&str, &Schedule, Option<&Vec<u32>>, PacketRouting); 6] = [
            ("ring natural", &ring, None, PacketRouting::Minimal),
            ("ring TAR", &ring, Some(&order), PacketRouting::Minimal),
            (
                "ring shuffled",
                &ring,
                Some(&shuffled),
                PacketRouting::Minimal,
            ),
            ("bruck natural", &bruck, None, PacketRouting::Minimal),
            (
                "bruck shuffled",
                &bruck,
                Some(&shuffled),
                PacketRouting::Minimal,
            ),
            ("bruck adaptive", &bruck, None, PacketRouting::Adaptive),
        ];
        for ((name, schedule, placement, routing), peer) in cases.into_iter().zip(peer) {
            let name = format!("sweep {ranks} {bytes} B {name} background={background}");
            if peer == 0.0 || !report.wanted(&name) {
                continue;
            }
            let mut collective = packet::PacketCollective::new(schedule, Bytes::new(bytes));
            collective.placement = placement.cloned();
            let period = Time::from_ps(2_000_000);
            let beside = Traffic::background(Bytes::new(2048), period);
            let work = PacketWork {
                collective: Some(collective),
                traffic: background.then_some(beside).into_iter().collect(),
            };
            let options = PacketOptions {
                routing,
                ..options(512, 512, [16, 32, 16])
            };
            let outcome = report.run(&name, &fabric, &work, &options);
            line("finish us", us(outcome.time), peer);
        }
    }
}

fn scatters(report: &Report) {
    use RouterDelay::{OccupiesPort, Pipelined};
    // p, chunk, small buffers, background, rule, then LIN, TREE, GLF, LLF
    type Row = (u32, u64, bool, bool, RouterDelay, [f64; 4]);
    let rows: &[Row] = &[
        (
            6,
            256,
            false,
            false,
            Pipelined,
            [972.1, 1066.2, 1065.6, 993.7],
        ),
        (
            6,
            256,
            false,
            false,
            OccupiesPort,
            [1131.7, 2103.7, 2097.8, 2015.8],
        ),
        (
            6,
            512,
            false,
            false,
            Pipelined,
            [969.6, 1062.7, 1061.5, 987.2],
        ),
        (
            6,
            512,
            false,
            false,
            OccupiesPort,
            [976.8, 1581.1, 1577.4, 1490.0],
        ),
        (
            6,
            512,
            true,
            false,
            Pipelined,
            [1040.9, 1074.9, 1073.8, 991.1],
        ),
        (
            6,
            512,
            true,
            false,
            OccupiesPort,
            [1534.3, 1599.4, 1597.7, 1514.2],
        ),
        (4, 256, false, true, Pipelined, [240.1, 281.7, 281.7, 269.1]),
        (
            4,
            256,
            false,
            true,
            OccupiesPort,
            [248.9, 563.6, 563.6, 568.7],
        ),
    ];
    for &(p, chunk, small, background, rule, peer) in rows {
        let fabric = dragonfly(p);
        let ranks = fabric.ranks();
        let schedules = [
            ("LIN", named(CollectiveKind::Scatter, "lin", &fabric)),
            ("TREE", named(CollectiveKind::Scatter, "binomial", &fabric)),
            ("GLF", named(CollectiveKind::Scatter, "glf", &fabric)),
            ("LLF", named(CollectiveKind::Scatter, "llf", &fabric)),
        ];
        for ((name, schedule), peer) in schedules.iter().zip(peer) {
            let name = format!(
                "scatter {ranks} {name} chunk={chunk} small={small} {rule:?} \
                 background={background}"
            );
            if !report.wanted(&name) {
                continue;
            }
            let period = Time::from_ps(2_000_000);
            let beside = Traffic {
                messages: Some(150),
                ..Traffic::background(Bytes::new(2048), period)
            };
            let work = PacketWork {
                collective: Some(packet::PacketCollective::new(schedule, Bytes::new(1024))),
                traffic: background.then_some(beside).into_iter().collect(),
            };
            let buffers = if small { [1, 2, 1] } else { [16, 32, 16] };
            let options = PacketOptions {
                router_delay_rule: rule,
                ..options(512, chunk, buffers)
            };
            let outcome = report.run(&name, &fabric, &work, &options);
            line("finish us", us(outcome.time), peer);
        }
    }
}

fn main() {
    let report = Report {
        asked: std::env::args().skip(1).collect(),
    };
    println!("    {:<34} {:>12} {:>12}", "", "here", "CODES");
    calibration(&report);
    traffic(&report);
    rings(&report);
    sweep(&report);
    scatters(&report);
}
