//! The bound on the time of an all_reduce under `every_step`, against plans of `auto` and against
//! values that a separate search found.

use opticoll::bounds::ReconfigurationCost;
use opticoll::bounds::wdm_ring::time;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::Bytes;

fn ring(ranks: u32, wavelengths: u32, more: &str) -> Fabric {
    Fabric::parse(&format!(
        "wdm_ring:ranks={ranks},wavelengths={wavelengths}{more}"
    ))
    .unwrap()
}

fn least(fabric: &Fabric, size: Bytes) -> f64 {
    let ring = fabric.downcast::<WdmRing>().unwrap();
    let collective = Collective::new(CollectiveKind::AllReduce, ring.ranks).unwrap();
    let bound = time::best(ring, &collective, size, ReconfigurationCost::EverySlot);
    bound.unwrap().time.seconds() * 1e6
}

#[test]
fn no_plan_by_auto_is_faster_than_the_bound() {
    let mut left_out = crate::leaves_out(4);
    for (ranks, wavelengths, more) in [
        (4, 1, ""),
        (4, 2, ""),
        (5, 1, ""),
        (5, 3, ""),
        (6, 1, ""),
        (6, 2, ""),
        (7, 1, ""),
        (7, 4, ""),
        (8, 1, ""),
        (8, 4, ""),
        (8, 2, ",ports=1"),
        (9, 2, ",broken=0-1"),
        (11, 2, ""),
        (12, 3, ",reach=3"),
        (13, 1, ""),
        (16, 1, ""),
        (16, 2, ""),
        (16, 8, ""),
        (16, 4, ",ports=2"),
        (24, 2, ""),
        (24, 5, ""),
        (32, 1, ""),
        (32, 4, ""),
        (33, 6, ""),
        (48, 8, ""),
        (64, 2, ""),
        (64, 8, ""),
    ] {
        let fabric = ring(ranks, wavelengths, more);
        let collective = Collective::new(CollectiveKind::AllReduce, ranks).unwrap();
        for size in [100, 10_000, 300_000, 3_000_000, 100_000_000] {
            if left_out() {
                continue;
            }
            let size = Bytes::new(size);
            let method = TimingModel::from(Policy::EveryStep);
            let spec = "auto".parse().unwrap();
            let planned = planner::plan(&spec, &fabric, collective, size, &method).unwrap();
            let plan = planned.plan.into_expanded();
            let simulated = simulate::simulate(&plan, size, Policy::EveryStep, "circuit").unwrap();
            let time = simulated.time.seconds() * 1e6;
            let least = least(&fabric, size);
            assert!(
                time >= least,
                "{fabric}, {size}: {time} us are below {least} us"
            );
        }
    }
}

#[test]
fn times_of_large_rings() {
    // In us: what a program of its own found, which searches for weights for seconds.
    for (ranks, wavelengths, size, long) in [
        (64, 8, "100MB", 3986.0),
        (64, 8, "1GiB", 27_999.0),
        (256, 32, "100MB", 1707.0),
        (256, 32, "1GiB", 11_419.0),
        (1024, 64, "100MB", 1272.0),
        (1024, 64, "1GiB", 6839.0),
    ] {
        let found = least(&ring(ranks, wavelengths, ""), size.parse().unwrap());
        assert!(
            found >= 0.965 * long && found <= 1.02 * long,
            "{ranks}, {size}: {found} us of {long} us"
        );
    }
}
