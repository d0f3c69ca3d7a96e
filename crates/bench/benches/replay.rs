//! Replays of traces, on one thread. LogGOPSim was measured on one core of a like machine.
//!
//! | bench | what | LogGOPSim | goal |
//! |---|---|---|---|
//! | `mg` | 34,720 calls of NAS MG, class A, 16 ranks, as text: read, expanded, replayed | - | 0.2 s |
//! | `cg` | 141,376 calls of CG | - | 1 s |
//! | `goal_ring_1024` | ring all_gather of 1024 ranks as GOAL: 2,095,104 operations, which are 3.1 million events of LogGOPSim, replayed | 0.76 s | 1.0 s |

// Criterion's macro makes a public function without docs.
#![allow(missing_docs)]

use std::fs;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use opticoll::units::{Rate, Time};
use opticoll::workload::cost::{Hockney, Zero};
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::program::Program;
use opticoll::workload::replay::{ReplaySettings, replay};
use opticoll::workload::{csv, goal_text};

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

/// Returns a ring all_gather: in each step, which has its own tag, a rank sends to the next rank
/// and receives from the one before after both messages of the step before have ended.
fn ring(ranks: u32) -> String {
    let mut goal = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        goal += &format!("rank {rank} {{\n");
        for step in 0..ranks - 1 {
            goal += &format!("s{step}: send 8b to {next} tag {step}\n");
            goal += &format!("r{step}: recv 8b from {before} tag {step}\n");
            if let Some(earlier) = step.checked_sub(1) {
                for (later, ended) in [("s", "s"), ("s", "r"), ("r", "s"), ("r", "r")] {
                    goal += &format!("{later}{step} requires {ended}{earlier}\n");
                }
            }
        }
        goal += "}\n";
    }
    goal
}

fn replayed(program: &Program) -> u64 {
    let mut model = Hockney {
        latency: Time::ZERO,
        rate: Rate::from_bits_per_second(8_000_000_000).unwrap(),
    };
    let replayed = replay(program, &mut model, ReplaySettings::default()).unwrap();
    replayed.events
}

fn bench(criterion: &mut Criterion) {
    let program = goal_text::read(&ring(1024)).unwrap();
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10);
    let (mg, cg) = (table("mg"), table("cg"));
    group.bench_function("mg", |bencher| bencher.iter(|| calls(black_box(&mg))));
    group.bench_function("cg", |bencher| bencher.iter(|| calls(black_box(&cg))));
    group.bench_function("goal_ring_1024", |bencher| {
        bencher.iter(|| replayed(black_box(&program)))
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
