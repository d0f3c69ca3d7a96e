//! Pieces that follow one another over lightpaths: slots and times by theory.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::planner;
use opticoll::simulate::{self, Method};
use opticoll::units::Bytes;
use opticoll::verify::verify;

/// 100 us, 8 ns a byte, 5 ms and 5 ms in ps.
const A: u64 = 100_000_000;
const B: u64 = 8_000;
const E: u64 = 5_000_000_000;

/// The slots and the time of a plan that is proved.
fn timed(fabric: &str, kind: CollectiveKind, name: &str, bytes: u64, policy: &str) -> (u64, u64) {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks())
        .unwrap()
        .with_root(2)
        .unwrap();
    let method = Method::from_settings(vec![("policy", policy)]).unwrap();
    let (size, spec) = (Bytes::new(bytes), name.parse().unwrap());
    let planned = planner::plan(&spec, &fabric, collective, size, &method).unwrap();
    assert_eq!(verify(&planned.plan), [], "{kind} by {name} on {fabric}");
    let time = simulate::run(&planned.plan, size, &method).unwrap().time;
    let bound = planner::time_bound(&fabric, &collective, size, &method)
        .unwrap()
        .unwrap();
    assert!(
        bound.time <= time,
        "{kind} by {name} on {fabric}: {time} {}",
        bound.time
    );
    (planned.plan.slots().into(), time.ps())
}

#[test]
fn pieces_go_along_all_dimensions_of_a_hypercube() {
    for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
        for (ranks, ports, parts) in [
            (4, 1, 1),
            (8, 1, 1),
            (8, 2, 2),
            (8, 3, 3),
            (8, 5, 3),
            (64, 1, 1),
            (64, 4, 4),
        ] {
            let fabric = format!("light_path_grid:ranks={ranks},ports={ports}");
            let name = "pipelined:pieces=9,shape=hypercube";
            let slots = 9 + u64::from(u32::ilog2(ranks));
            for (policy, set_up) in [("every_step", 2 * E), ("free", 0)] {
                // Pieces of 1,000 bytes.
                let (made, time) = timed(&fabric, kind, name, 9000 * parts, policy);
                assert_eq!(made, slots, "{kind} on {fabric}");
                assert_eq!(time, slots * (set_up + A + 1000 * B), "{kind} on {fabric}");
            }
        }
    }
}

#[test]
fn both_ways_around_a_ring_lightpaths_stay_up() {
    for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
        for ranks in [3, 6, 8] {
            let fabric = format!("light_path_grid:ranks={ranks},ports=2");
            let name = "pipelined:pieces=9,shape=ring";
            let slots = 9 + ranks - 2;
            let (made, time) = timed(&fabric, kind, name, 18_000, "establish_release");
            assert_eq!(
                (made, time),
                (slots, 2 * E + slots * (A + 1000 * B)),
                "{kind} on {fabric}"
            );
        }
    }
}

#[test]
fn one_port_and_no_power_of_two_is_refused() {
    let fabric = Fabric::parse("light_path_grid:ranks=6").unwrap();
    let collective = Collective::new(CollectiveKind::Broadcast, 6).unwrap();
    let spec = "pipelined".parse().unwrap();
    let refused = planner::plan(
        &spec,
        &fabric,
        collective,
        Bytes::new(1),
        &Method::default(),
    );
    let error = refused.err().unwrap().to_string();
    assert!(
        error.contains("on 6 ranks") && error.contains("two ports"),
        "{error}"
    );
}
