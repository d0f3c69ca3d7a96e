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
//! | `relay_tree_1024` (w = 64; planned) | 2 s |
//! | `relay_tree_1024_verify` (folded) | 0.1 s |
//! | `relay_tree_1024_verify_in_full` | 1 s |
//! | `relay_tree_4096` (w = 64; planned) | 20 s |
//! | `relay_tree_65536` (w = 64; planned) | 8 s with its proof, 4 GiB |
//! | `relay_tree_1048576` (w = 64; planned) | 60 s with its proof, 4 GiB |
//! | `relay_tree_65536_verify` (folded) | 1 s |
//! | `auto_1024` (w = 64, 4 MiB, every_step; planned) | 5 s |

// Criterion's macro makes a public function without docs.
#![allow(missing_docs)]

use opticoll::family::wdm_ring::WdmRing;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::placement::wdm_ring::placement::Assignment;
use opticoll::placement::wdm_ring::{placement, route};
use opticoll::plan::Plan;
use opticoll::simulate::{Policy, simulate};
use opticoll::units::Time;
use opticoll::{algorithms, planner, verify};

/// Builds, routes, assigns, verifies and simulates an all_gather of 4 MiB blocks.
fn all_gather(ranks: u32, algorithm: &str, assignment: &str) -> Time {
    let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths=64")).unwrap();
    let ring = fabric.downcast::<WdmRing>().unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
    let spec = algorithm.parse().unwrap();
    let schedule = algorithms::build(&spec, collective, &fabric).unwrap();
    let light = route::shortest_arcs(&schedule, ring);
    let assignment = Assignment::parse(assignment).unwrap();
    let plan = placement::assign(schedule, light, &fabric, assignment, algorithm.into()).unwrap();
    assert!(verify::verify(&plan).is_empty());
    let size = "4MiB".parse().unwrap();
    simulate(&plan, size, Policy::EveryStep, "circuit")
        .unwrap()
        .time
}

/// Plans an all_gather of 4 MiB blocks by what the planner knows by name.
fn planned(ranks: u32, algorithm: &str) -> Plan {
    let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths=64")).unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
    let size = "4MiB".parse().unwrap();
    let spec = algorithm.parse().unwrap();
    planner::plan(&spec, &fabric, collective, size, &Policy::EveryStep.into())
        .unwrap()
        .plan
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
    for (name, ranks, algorithm) in [
        ("relay_tree_1024", 1024, "relay_tree"),
        ("relay_tree_4096", 4096, "relay_tree"),
        ("relay_tree_65536", 65_536, "relay_tree"),
        ("relay_tree_1048576", 1_048_576, "relay_tree"),
        ("auto_1024", 1024, "auto"),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(planned(ranks, algorithm).slots()));
        });
    }
    for ranks in [1024, 65_536] {
        let plan = planned(ranks, "relay_tree");
        group.bench_function(format!("relay_tree_{ranks}_verify"), |bencher| {
            bencher.iter(|| assert!(verify::verify(black_box(&plan)).is_empty()));
        });
    }
    let full = planned(1024, "relay_tree").into_expanded();
    group.bench_function("relay_tree_1024_verify_in_full", |bencher| {
        bencher.iter(|| assert!(verify::verify(black_box(&full)).is_empty()));
    });
    group.finish();
}

criterion_group!(ring, benches);
criterion_main!(ring);
