//! The packet simulator, on one thread unless the name says two, without a time-line. CODES was
//! measured on one core of a like machine.
//!
//! | bench | forwards | CODES | goal |
//! |---|---|---|---|
//! | `uniform_1056` (100 messages of 2 KiB from each terminal, minimal) | 1.56 million | 4.7 s, 695 MB | 0.5 s |
//! | `uniform_1056_adaptive` | 1.91 million | - | 0.6 s |
//! | `ring_342_64KiB` (all_gather, chunks of 4 KiB) | 2.6 million | - | 0.7 s |
//! | `ring_1056_1KiB` (all_gather, chunks of 1 KiB) | 1.45 million | - | 0.8 s |
//! | `uniform_5256` | 8.01 million | 41.5 s, 3.3 GB | 2.5 s, 300 MB |
//! | `uniform_5256_two` | 8.01 million | - | two thirds of the time of one |
//! | `ring_1056_64KiB` | 23.2 million | 117 s | 6 s |
//! | `ring_5256_1KiB` | 32.9 million | 312 s, 930 MB | 20 s, 1 GB |
//!
//! The last four take minutes, ten samples each, and run only where `OPTICOLL_BENCH_FULL` is set;
//! the goals of the others are their shares of the same work.

// Criterion's macro makes a public function without docs.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::schedule::Schedule;
use opticoll::simulate::packet;
use opticoll::simulate::packet::{Buffers, PacketOptions, PacketRouting, PacketWork, Traffic};
use opticoll::units::{Bytes, Time};

/// Returns the dragonfly with p terminals per router, 2 p routers per group and 2 p^2 + 1 groups.
fn balanced(p: u32) -> Fabric {
    Fabric::parse(&format!(
        "dragonfly:terminals_per_router={p},routers_per_group={},global_per_router={p},\
         rate=5.25GiB/s,global_rate=40372692582b/s,latency=0ns",
        2 * p
    ))
    .unwrap()
}

fn uniform(fabric: &Fabric, routing: PacketRouting, cores: u32) -> Time {
    let period = Time::from_ps(1_000_000);
    let work = PacketWork {
        traffic: vec![Traffic::uniform(Bytes::new(2048), period, 100)],
        ..PacketWork::default()
    };
    let options = PacketOptions {
        routing,
        cores,
        ..PacketOptions::default()
    };
    packet::simulate(fabric, &work, &options).unwrap().time
}

/// Simulates a ring all_gather whose messages are cut into chunks of `chunk` bytes.
fn ring(fabric: &Fabric, schedule: &Schedule, bytes: u64, chunk: u64) -> Time {
    let work = PacketWork {
        collective: Some(packet::PacketCollective::new(schedule, Bytes::new(bytes))),
        ..PacketWork::default()
    };
    let [packet, chunk] = [Bytes::new(chunk); 2];
    let mut options = PacketOptions {
        packet,
        chunk,
        ..PacketOptions::default()
    };
    if bytes == 64 << 10 {
        let [local, global, terminal] = [Bytes::new(64 << 10); 3];
        options.buffers = Buffers {
            local,
            global,
            terminal,
        };
    }
    packet::simulate(fabric, &work, &options).unwrap().time
}

fn benches(criterion: &mut Criterion) {
    let full = std::env::var_os("OPTICOLL_BENCH_FULL").is_some();
    let mut group = criterion.benchmark_group("packet");
    group.sample_size(10);
    for (bench, p, routing, cores, long) in [
        ("uniform_1056", 4, PacketRouting::Minimal, 1, false),
        (
            "uniform_1056_adaptive",
            4,
            PacketRouting::Adaptive,
            1,
            false,
        ),
        ("uniform_5256", 6, PacketRouting::Minimal, 1, true),
        ("uniform_5256_two", 6, PacketRouting::Minimal, 2, true),
    ] {
        if long && !full {
            continue;
        }
        let fabric = balanced(p);
        group.bench_function(bench, |bencher| {
            bencher.iter(|| black_box(uniform(&fabric, routing, cores)));
        });
    }
    for (bench, p, bytes, chunk, long) in [
        ("ring_342_64KiB", 3, 64 << 10, 4096, false),
        ("ring_1056_1KiB", 4, 1 << 10, 1024, false),
        ("ring_1056_64KiB", 4, 64 << 10, 4096, true),
        ("ring_5256_1KiB", 6, 1 << 10, 1024, true),
    ] {
        if long && !full {
            continue;
        }
        let fabric = balanced(p);
        let collective = Collective::new(CollectiveKind::AllGather, fabric.ranks()).unwrap();
        let schedule = algorithms::build(&"ring".parse().unwrap(), collective, &fabric).unwrap();
        group.bench_function(bench, |bencher| {
            bencher.iter(|| black_box(ring(&fabric, &schedule, bytes, chunk)));
        });
    }
    group.finish();
}

criterion_group!(packet_simulator, benches);
criterion_main!(packet_simulator);
