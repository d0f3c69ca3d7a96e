//! The fluid simulator, on one thread, flows not recorded. SimGrid 4.1 was measured on two virtual
//! processors, one thread, machine idle.
//!
//! | bench | flows | SimGrid | goal |
//! |---|---|---|---|
//! | `ring_1024_fat_tree` (neighbour-ring all_gather) | 1 047 552 | 2.65 s, 28 MB | 0.1 s, 60 MB |
//! | `ring_4096_fat_tree` | 16 773 120 | 119 s, 82 MB | 2 s, 200 MB |
//! | `recursive_doubling_65536_fat_tree` (network built too) | 1 048 576 | 51.5 s, 2.9 GB | 3 s, 1 GB |
//! | `shift_1024_fat_tree` (all_gather) | 1 047 552 | 8.4 s | 0.5 s, 200 MB |
//! | `pairwise_1024_fat_tree` (all_to_all) | 1 047 552 | 8.0 s | 0.5 s, 200 MB |
//! | `shift_1024_dragonfly` | 1 047 552 | 20 s | 1 s |
//! | `pairwise_1024_dragonfly` | 1 047 552 | 8.3 s | 1 s |
//! | `random_8192_fat_tree` (closed loop, 8192 at a time) | 32 768 | 180.6 s | 2 s |
//! | `random_1024_dragonfly` (closed loop, 1024 at a time) | 16 384 | 8.7 s | 0.3 s |
//! | `uneven_ring_4096_fat_tree` (all_reduce, 500 ns per cable, chunks of two sizes: no step repeats) | 33 546 240 | | 2 s |

// Criterion's macro makes a public function without docs.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use opticoll::simulate::fluid::{
    Flow, FlowOptions, Flows, StartRule, StepFlow, Steps, simulate_flows, simulate_steps,
};
use opticoll::units::{Bytes, Time, UnitError};

#[path = "../../tests/it/fluid/networks.rs"]
#[allow(unreachable_pub)]
mod networks;

const FAT_TREE_1024: &str = "3;16,8,8;1,8,8;1,1,1";
const FAT_TREE_4096: &str = "3;16,16,16;1,8,8;1,1,1";
const FAT_TREE_65536: &str = "3;32,32,64;1,16,16;1,1,1";
const DRAGONFLY_1024: &str = "16,2;1,1;16,1;4";

fn totals() -> FlowOptions {
    FlowOptions {
        record_flows: false,
        ..FlowOptions::default()
    }
}

fn collective(platform: &str, parameters: &str, name: &str, ranks: u32) -> Time {
    let network = networks::platform(platform, ranks, Some(parameters), Time::ZERO);
    let pattern = networks::Pattern {
        name: name.into(),
        ranks,
        bytes: 100 << 20,
    };
    let rule = StartRule::Rendezvous;
    let outcome = simulate_steps(&*network, &pattern, rule, &totals()).unwrap();
    outcome.time
}

/// A ring whose vector does not divide by its ranks: the chunks that are a byte longer go round.
struct UnevenRing {
    ranks: u32,
    bytes: u64,
}

impl Steps for UnevenRing {
    fn steps(&self) -> usize {
        2 * (self.ranks as usize - 1)
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        let (ranks, long) = (self.ranks, (self.bytes % u64::from(self.ranks)) as u32);
        flows.extend((0..ranks).map(|source| {
            let chunk = (source + 2 * ranks - step as u32) % ranks;
            StepFlow {
                source,
                destination: (source + 1) % ranks,
                bytes: self.bytes / u64::from(ranks) + u64::from(chunk < long),
            }
        }));
        Ok(())
    }
}

fn uneven_ring() -> Time {
    let latency = Time::from_ps(500_000);
    let network = networks::platform("fat_tree", 4096, Some(FAT_TREE_4096), latency);
    // The gradient of a network of 62.3 million parameters.
    let ring = UnevenRing {
        ranks: 4096,
        bytes: 249_200_000,
    };
    let rule = StartRule::Rendezvous;
    simulate_steps(&*network, &ring, rule, &totals())
        .unwrap()
        .time
}

fn random(platform: &str, parameters: &str, chains: u32, per_chain: u32) -> Time {
    let network = networks::platform(platform, 1024, Some(parameters), Time::ZERO);
    let mut flows = Flows::default();
    for (chain, list) in (0u32..).zip(networks::random_chains(1024, chains, per_chain, 1)) {
        for (at, (destination, size)) in list.into_iter().enumerate() {
            let before = flows.len() as u32;
            let after = if at == 0 { vec![] } else { vec![before - 1] };
            let flow = Flow::new(chain / chains, destination, Bytes::new(size));
            flows.push(flow, &after);
        }
    }
    simulate_flows(&*network, &flows, &totals()).unwrap().time
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fluid");
    group.sample_size(10);
    for (bench, platform, parameters, name, ranks) in [
        (
            "ring_1024_fat_tree",
            "fat_tree",
            FAT_TREE_1024,
            "ag_ring",
            1024,
        ),
        (
            "ring_4096_fat_tree",
            "fat_tree",
            FAT_TREE_4096,
            "ag_ring",
            4096,
        ),
        (
            "recursive_doubling_65536_fat_tree",
            "fat_tree",
            FAT_TREE_65536,
            "ag_rdb",
            65_536,
        ),
        (
            "shift_1024_fat_tree",
            "fat_tree",
            FAT_TREE_1024,
            "ag_shift",
            1024,
        ),
        (
            "pairwise_1024_fat_tree",
            "fat_tree",
            FAT_TREE_1024,
            "a2a_pair",
            1024,
        ),
        (
            "shift_1024_dragonfly",
            "dragonfly",
            DRAGONFLY_1024,
            "ag_shift",
            1024,
        ),
        (
            "pairwise_1024_dragonfly",
            "dragonfly",
            DRAGONFLY_1024,
            "a2a_pair",
            1024,
        ),
    ] {
        group.bench_function(bench, |bencher| {
            bencher.iter(|| black_box(collective(platform, parameters, name, ranks)));
        });
    }
    group.bench_function("uneven_ring_4096_fat_tree", |bencher| {
        bencher.iter(|| black_box(uneven_ring()));
    });
    for (bench, platform, parameters, chains, per_chain) in [
        ("random_8192_fat_tree", "fat_tree", FAT_TREE_1024, 8, 4),
        ("random_1024_dragonfly", "dragonfly", DRAGONFLY_1024, 1, 16),
    ] {
        group.bench_function(bench, |bencher| {
            bencher.iter(|| black_box(random(platform, parameters, chains, per_chain)));
        });
    }
    group.finish();
}

criterion_group!(fluid, benches);
criterion_main!(fluid);
