//! The whole way of a plan on a WDM ring: schedule, routes, wavelengths, proof, time.
//!
//! Goals, on one thread:
//!
//! | bench | goal |
//! |---|---|
//! | `optree_1024` (4x4x4x4x4, w = 64; 1 047 552 deliveries) | 0.5 s |
//! | `optree_4096` (4x4x4x4x4x4, w = 64; 16.8 million deliveries) | 10 s, 2 GiB |
//! | `one_stage_1024` (w = 64) | 3 s |
//! | `one_stage_1024_first_fit` (w = 64; no goal, watched) | - |
//! | `relay_tree_1024` (w = 64; planned and verified) | 2 s |
//! | `relay_tree_4096` (w = 64; planned and verified) | 20 s |

// Criterion's macro makes a public function without docs.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::simulate::{Policy, simulate};
use opticoll::units::Time;
use opticoll::wavelength::Assignment;
use opticoll::{algorithm, planner, route, verify, wavelength};

/// Builds, routes, assigns, verifies and simulates an all_gather of 4 MiB blocks.
fn all_gather(ranks: u32, algorithm: &str, assignment: &str) -> Time {
    let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths=64")).unwrap();
    let Fabric::WdmRing(ring) = &fabric;
    let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
    let spec = algorithm.parse().unwrap();
    let schedule = algorithm::build(&spec, collective, &fabric).unwrap();
    let directions = route::shortest_arcs(&schedule, ring);
    let assignment = Assignment::parse(assignment).unwrap();
    let plan =
        wavelength::assign(schedule, directions, &fabric, assignment, algorithm.into()).unwrap();
    assert!(verify::verify(&plan).is_empty());
    let size = "4MiB".parse().unwrap();
    simulate(&plan, size, Policy::EveryStep, "circuit")
        .unwrap()
        .time
}

/// Plans and verifies an all_gather along relay trees.
fn relay_tree(ranks: u32) -> u32 {
    let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths=64")).unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
    let plan = planner::relay_tree(&fabric, collective).unwrap();
    assert!(verify::verify(&plan).is_empty());
    plan.slots()
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring");
    group.sample_size(10);
    for (name, ranks, algorithm, assignment) in [
        ("optree_1024", 1024, "optree:radices=4x4x4x4x4", "auto"),
        ("optree_4096", 4096, "optree:radices=4x4x4x4x4x4", "auto"),
        ("one_stage_1024", 1024, "one_stage", "auto"),
        ("one_stage_1024_first_fit", 1024, "one_stage", "first_fit"),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(all_gather(ranks, algorithm, assignment)));
        });
    }
    for (name, ranks) in [("relay_tree_1024", 1024), ("relay_tree_4096", 4096)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(relay_tree(ranks)))
        });
    }
    group.finish();
}

criterion_group!(ring, benches);
criterion_main!(ring);
