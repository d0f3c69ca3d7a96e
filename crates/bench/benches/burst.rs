//! Bursts on the 2 x 5 ladder with ten hosts at each node and 28 wavelengths, on one thread.
//!
//! Goal: 3 million bursts per second with whole paths and first fit; the others are watched.

// Criterion's macro makes a public function without docs.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use opticoll::families::Medium;
use opticoll::simulate::burst;
use opticoll::simulate::burst::{BurstNetwork, BurstSettings, BurstWork};

const BURSTS: u64 = 1_000_000;

fn ladder(criterion: &mut Criterion) {
    let spelling = "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s";
    let network = BurstNetwork::of(&Medium::parse(spelling).unwrap()).unwrap();
    let mut group = criterion.benchmark_group("burst_ladder");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(BURSTS));
    for (name, signalling, assignment) in [
        ("two_way_first_fit", "two_way", "first_fit"),
        ("two_way_random", "two_way", "random"),
        ("jet_random", "jet", "random"),
        ("jet_lauc_vf", "jet", "lauc_vf"),
        ("jet_pwa", "jet", "pwa"),
    ] {
        let settings = BurstSettings {
            bursts: BURSTS,
            warm_up: Some(0),
            replications: 1,
            ..BurstSettings::from_texts([("signalling", signalling), ("assignment", assignment)])
                .unwrap()
        };
        let run = || burst::simulate(&network, &BurstWork::Random, &settings, 1, |_| true).unwrap();
        group.bench_function(name, |bencher| bencher.iter(|| black_box(run())));
    }
    group.finish();
}

criterion_group!(benches, ladder);
criterion_main!(benches);
