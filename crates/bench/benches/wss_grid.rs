//! Halving and doubling on grids of tunable circuits: planned, verified, and simulated under
//! control. The goal for one all_reduce on 4096 ranks, 98 304 flows, is a second.

// Criterion's macro makes a public function without docs.
#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::placement::wss_grid::placement::assign_on_grid;
use opticoll::plan::Plan;
use opticoll::simulate::control;
use opticoll::units::Bytes;
use opticoll::verify::verify;

fn planned(side: u32) -> Plan {
    let spec = format!("wss_grid:rows={side},columns={side},rate=100Gb/s,control=1us");
    let fabric = Fabric::parse(&spec).unwrap();
    let collective = Collective::new(CollectiveKind::AllReduce, fabric.ranks()).unwrap();
    let spec = "halving_doubling".parse().unwrap();
    let schedule = algorithms::build(&spec, collective, &fabric).unwrap();
    let grid = fabric.downcast().unwrap();
    assign_on_grid(schedule, &fabric, grid, "halving_doubling".into()).unwrap()
}

fn grids(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wss_grid");
    group.sample_size(10);
    for side in [32u32, 64] {
        let ranks = side * side;
        group.bench_function(format!("plan/{ranks}"), |bencher| {
            bencher.iter(|| planned(side))
        });
        let plan = planned(side);
        // 2 log2 N flows for each rank: 98 304 of 4096 ranks.
        assert_eq!(plan.len() as u32, ranks * 2 * ranks.ilog2());
        let size = Bytes::new(4 * 25_557_032);
        group.bench_function(format!("control/{ranks}"), |bencher| {
            bencher.iter(|| control::simulate(&plan, size).unwrap());
        });
    }
    let plan = planned(32);
    group.bench_function("verify/1024", |bencher| bencher.iter(|| verify(&plan)));
    group.finish();
}

criterion_group!(benches, grids);
criterion_main!(benches);
