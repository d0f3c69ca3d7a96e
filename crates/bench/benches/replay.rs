//! Replays of traces, on one thread. LogGOPSim was measured on one core of a like machine.
//!
//! | bench | what | LogGOPSim | goal |
//! |---|---|---|---|
//! | `mg` | 34,720 calls of NAS MG, class A, 16 ranks, as text: read, expanded, replayed | - | 0.2 s |
//! | `cg` | 141,376 calls of CG | - | 1 s |
//! | `goal_ring_1024` | ring all_gather of 1024 ranks as binary GOAL: 2,095,104 operations, which are 3.1 million events of LogGOPSim, read and replayed | 0.76 s, 101 MB | 1.0 s, 100 bytes an operation |
//!
//! Before the benches, what the last one keeps in memory is printed, by operation: all there is, as the file is
//! read part by part.

// Criterion's macro makes a public function without docs.
#![allow(missing_docs)]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use opticoll::units::{Rate, Time};
use opticoll::workload::cost::{Hockney, Zero};
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::program::Program;
use opticoll::workload::replay::{ReplaySettings, replay};
use opticoll::workload::{csv, goal_binary};

fn table(application: &str) -> String {
    let name = format!("../tests/data/traces/{application}.A.16.csv.zst");
    let packed = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let mut text = String::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&packed[..]).unwrap();
    decoder.read_to_string(&mut text).unwrap();
    text
}

fn calls(text: &str) -> Time {
    let program = expand(&csv::read(text).unwrap(), &Algorithms::default()).unwrap();
    let replayed = replay(&program, &mut Zero, ReplaySettings::default()).unwrap();
    replayed.time
}

/// A ring all_gather: in each step a rank sends to the next and receives from the one before, when both
/// messages of the step before have ended. A tag for each step.
fn ring(ranks: u32, goal: &mut impl Write) -> io::Result<()> {
    let steps = ranks - 1;
    let nodes = 2 * steps;
    let rank_bytes = 8 + 4 * 2 + 39 * u64::from(nodes) + 4 * 4 * u64::from(steps - 1);
    goal.write_all(&4223u64.to_le_bytes())?;
    goal.write_all(&ranks.to_le_bytes())?;
    goal.write_all(&[0, 0])?;
    let first = 14 + 16 * u64::from(ranks) - 8;
    for rank in 0..u64::from(ranks) {
        goal.write_all(&(first + rank * rank_bytes).to_le_bytes())?;
        goal.write_all(&(first + (rank + 1) * rank_bytes).to_le_bytes())?;
    }
    for rank in 0..ranks {
        goal.write_all(&nodes.to_le_bytes())?;
        for word in [2, 0, 1] {
            goal.write_all(&u32::to_le_bytes(word))?;
        }
        for step in 0..steps {
            let later = if step + 1 < steps { 2u32 } else { 0 };
            for (index, (kind, peer)) in
                [(1u8, (rank + 1) % ranks), (2, (rank + ranks - 1) % ranks)]
                    .into_iter()
                    .enumerate()
            {
                let waits: u32 = if step > 0 { 2 } else { 0 };
                goal.write_all(&waits.to_le_bytes())?;
                goal.write_all(&[kind])?;
                goal.write_all(&peer.to_le_bytes())?;
                goal.write_all(&8u64.to_le_bytes())?;
                goal.write_all(&step.to_le_bytes())?;
                goal.write_all(&[0, 0])?;
                goal.write_all(&later.to_le_bytes())?;
                let first = if later > 0 {
                    4 * step + 2 * index as u32
                } else {
                    0
                };
                goal.write_all(&first.to_le_bytes())?;
                goal.write_all(&[0; 8])?;
            }
        }
        for step in 1..steps {
            for _ in 0..2 {
                goal.write_all(&(2 * step).to_le_bytes())?;
                goal.write_all(&(2 * step + 1).to_le_bytes())?;
            }
        }
    }
    Ok(())
}

fn goal(bytes: &[u8]) -> u64 {
    replayed(&goal_binary::read(bytes).unwrap())
}

fn replayed(program: &Program) -> u64 {
    let mut model = Hockney {
        latency: Time::ZERO,
        rate: Rate::from_bits_per_second(8_000_000_000).unwrap(),
    };
    let replayed = replay(program, &mut model, ReplaySettings::default()).unwrap();
    replayed.events
}

/// The most memory that the process has held so far, in KiB.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Bytes for each operation, from a file that is written and read part by part.
fn memory(ranks: u32) {
    let path = std::env::temp_dir().join(format!("opticoll-bench-{}.goal", std::process::id()));
    let mut file = BufWriter::new(File::create(&path).unwrap());
    ring(ranks, &mut file).unwrap();
    drop(file);
    let before = peak();
    let mut file = BufReader::new(File::open(&path).unwrap());
    let events = replayed(&goal_binary::read_from(&mut file).unwrap());
    if let (Some(before), Some(after)) = (before, peak()) {
        let operations = 2 * u64::from(ranks) * u64::from(ranks - 1);
        let each = (after - before) as f64 * 1024.0 / operations as f64;
        println!("goal_ring_{ranks}: {each:.1} bytes an operation, {events} events of our own");
    }
    fs::remove_file(&path).unwrap();
}

fn bench(criterion: &mut Criterion) {
    memory(1024);
    let mut bytes = Vec::new();
    ring(1024, &mut bytes).unwrap();
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10);
    let (mg, cg) = (table("mg"), table("cg"));
    group.bench_function("mg", |bencher| bencher.iter(|| calls(black_box(&mg))));
    group.bench_function("cg", |bencher| bencher.iter(|| calls(black_box(&cg))));
    group.bench_function("goal_ring_1024", |bencher| {
        bencher.iter(|| goal(black_box(&bytes)))
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
