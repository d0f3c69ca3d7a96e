//! Bursts on the 2 x 5 ladder with ten hosts at each node and 28 wavelengths, and requests on NSFNET
//! with five routes for each pair of nodes, on one thread.
//!
//! Goal: 3 million bursts per second on the ladder with whole paths and first fit; 1 million requests
//! per second on NSFNET with 16 and with 80 wavelengths. The others are watched.

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

/// Offered loads at which 0.4 % and 2.6 % of the requests are blocked.
fn nsfnet(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("burst_nsfnet");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(BURSTS));
    for (wavelengths, erlang) in [(16, 150.0), (80, 1120.0)] {
        let fabric = format!("nsfnet_22:wavelengths={wavelengths},ties=first");
        let network = BurstNetwork::of(&Medium::parse(&fabric).unwrap()).unwrap();
        let texts = [
            ("source", "poisson"),
            ("length", "exponential"),
            ("size", "1.25TB"),
            ("routes", "5"),
        ];
        let settings = BurstSettings {
            offered_load: erlang / f64::from(network.hosts()),
            bursts: BURSTS,
            replications: 1,
            ..BurstSettings::from_texts(texts).unwrap()
        };
        let run = || burst::simulate(&network, &BurstWork::Random, &settings, 1, |_| true).unwrap();
        let name = format!("first_fit_5_routes_{wavelengths}_wavelengths");
        group.bench_function(name, |bencher| bencher.iter(|| black_box(run())));
    }
    group.finish();
}

criterion_group!(benches, ladder, nsfnet);
criterion_main!(benches);
