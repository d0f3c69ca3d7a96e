//! Pipelined plans over lightpaths: their slots and times against theory.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;

use crate::{proved_plan, refusal};

/// 100 us, 8 ns a byte, 5 ms and 5 ms in ps.
const A: u64 = 100_000_000;
const B: u64 = 8_000;
const E: u64 = 5_000_000_000;

/// Returns the slots and the time of a verified plan.
fn timed(fabric: &str, kind: CollectiveKind, name: &str, bytes: u64, policy: &str) -> (u64, u64) {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks())
        .unwrap()
        .with_root(2)
        .unwrap();
    let method = TimingModel::from_settings(vec![("policy", policy)]).unwrap();
    let size = Bytes::new(bytes);
    let planned = proved_plan(name, &fabric, collective, size, &method);
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
            let fabric = format!("lightpath_grid:ranks={ranks},ports={ports}");
            let name = "pipelined:pieces=9,shape=hypercube";
            let slots = 9 + u64::from(u32::ilog2(ranks)) - 1;
            for (policy, setup) in [("every_step", 2 * E), ("free", 0)] {
                // Pieces of 1,000 bytes.
                let (made, time) = timed(&fabric, kind, name, 9000 * parts, policy);
                assert_eq!(made, slots, "{kind} on {fabric}");
                assert_eq!(time, slots * (setup + A + 1000 * B), "{kind} on {fabric}");
            }
        }
    }
}

#[test]
fn the_last_pieces_take_no_slot_more_than_they_must() {
    // K pieces leave one after the other, and the last one needs as many slots as ranks have
    // dimensions.
    for dimensions in 2..=6u64 {
        let fabric = format!("lightpath_grid:ranks={}", 1 << dimensions);
        for pieces in 1..=2 * dimensions {
            let name = format!("pipelined:pieces={pieces},shape=hypercube");
            for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
                let (slots, time) = timed(&fabric, kind, &name, 1000 * pieces, "free");
                assert_eq!(slots, pieces + dimensions - 1, "{kind} on {fabric}");
                assert_eq!(time, slots * (A + 1000 * B), "{kind} on {fabric}");
            }
        }
    }
}

#[test]
fn halves_are_exchanged_along_some_dimensions() {
    let kind = CollectiveKind::AllReduce;
    for dimensions in 2..=6u64 {
        let fabric = format!("lightpath_grid:ranks={}", 1 << dimensions);
        for halvings in 0..=dimensions {
            let name = format!("halving_doubling:halvings={halvings}");
            let (slots, time) = timed(&fabric, kind, &name, 64_000, "every_step");
            assert_eq!(slots, dimensions + halvings);
            let left = 64_000 >> halvings;
            let bytes = 2 * (64_000 - left) + (dimensions - halvings) * left;
            assert_eq!(
                time,
                slots * (2 * E + A) + bytes * B,
                "{halvings} on {fabric}"
            );
        }
        // Without halvings, and with all of them, slots and bytes are those of the algorithms
        // known.
        for (halvings, known) in [(0, "recursive_doubling"), (dimensions, "halving_doubling")] {
            let name = format!("halving_doubling:halvings={halvings}");
            let own = timed(&fabric, kind, &name, 64_000, "free");
            assert_eq!(own, timed(&fabric, kind, known, 64_000, "free"));
        }
    }
}

#[test]
fn both_ways_around_a_ring_lightpaths_stay_up() {
    for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
        for ranks in [3, 6, 8] {
            let fabric = format!("lightpath_grid:ranks={ranks},ports=2");
            let name = "pipelined:pieces=9,shape=ring";
            let slots = 9 + ranks - 2;
            let (made, time) = timed(&fabric, kind, name, 18_000, "setup_teardown");
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
    let fabric = Fabric::parse("lightpath_grid:ranks=6").unwrap();
    let collective = Collective::new(CollectiveKind::Broadcast, 6).unwrap();
    let error = refusal("pipelined", &fabric, collective, None);
    assert!(
        error.contains("on 6 ranks") && error.contains("two ports"),
        "{error}"
    );
}
