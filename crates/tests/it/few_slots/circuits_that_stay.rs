//! Plans whose circuits stay up: each circuit is charged once and is always busy.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::Policy;

use super::check;

/// Returns the plan of a specification, and its time under `on_change` at 1 ns per byte and 1 us
/// per setting.
fn stays_up(spec: &str, kind: CollectiveKind, options: &str, size: &str) -> (Plan, u64) {
    let fabric = format!("wdm_ring:{options},rate=8Gb/s,reconfiguration=1us");
    let fabric = Fabric::parse(&fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let plan = check(spec, &fabric, collective, size, Policy::OnChange);
    assert_eq!(simulate::circuit::configurations(&plan), 1, "{spec}");
    let size = size.parse().unwrap();
    let outcome = simulate::simulate(&plan, size, Policy::OnChange, "circuit").unwrap();
    (plan.into_expanded(), outcome.time.ps() / 1000)
}

#[test]
fn circuits_that_stay_up_are_paid_once_and_always_busy() {
    for (ranks, wavelengths, pieces) in [(2, 1, 3), (5, 2, 1), (16, 4, 8), (9, 3, 40)] {
        let options = format!("ranks={ranks},wavelengths={wavelengths}");
        let spec = format!("pipelined:pieces={pieces}");
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            // A piece has 100 B; the last one leaves the root in slot p and makes N - 1 hops.
            let size = format!("{}B", 100 * pieces * 2 * wavelengths);
            let (_, time) = stays_up(&spec, kind, &options, &size);
            assert_eq!(time, 1000 + 100 * (pieces + ranks - 2), "{spec} {options}");
        }
        for kind in [CollectiveKind::Scatter, CollectiveKind::Gather] {
            // Half of the others' blocks leave the root on each side, none of its channels ever
            // waits.
            let size = format!("{}B", 100 * pieces);
            let (_, time) = stays_up(&spec, kind, &options, &size);
            let side = (ranks - 1u64).div_ceil(2) * pieces;
            assert_eq!(
                time,
                1000 + 100 * side.div_ceil(wavelengths),
                "{spec} {options}"
            );
        }
    }
}

#[test]
fn scatters_hop_from_neighbour_to_neighbour_where_light_reaches_no_farther() {
    for (ranks, wavelengths, pieces) in [(16, 4, 4), (9, 2, 6), (16, 3, 9)] {
        let options = format!("ranks={ranks},wavelengths={wavelengths},reach=1");
        let spec = format!("pipelined:pieces={pieces}");
        for kind in [CollectiveKind::Scatter, CollectiveKind::Gather] {
            let size = format!("{}B", 100 * pieces);
            let (_, time) = stays_up(&spec, kind, &options, &size);
            // The farther half of the others' pieces leaves the root over all channels of its side
            // without a gap.
            let side = (ranks - 1u64).div_ceil(2) * pieces;
            assert_eq!(time, 1000 + 100 * side / wavelengths, "{spec} {options}");
        }
    }
}

#[test]
fn chains_next_to_a_cut_take_what_crosses_into_the_last_rank() {
    // The root is rank 0, and the cut is next to rank `before`: `before` ranks lie on one side of
    // the root, the `behind` others on the other side.
    for (ranks, before, wavelengths, pieces) in [(16u64, 3, 4, 8), (9, 2, 1, 5), (12, 0, 2, 3)] {
        let behind = ranks - 1 - before;
        for cut in ["", "cw"] {
            let next = before + 1;
            let options =
                format!("ranks={ranks},wavelengths={wavelengths},broken={before}-{next}{cut}");
            let spec = format!("pipelined:pieces={pieces}");
            let share = format!("{}B", 100 * pieces * wavelengths);
            let (_, time) = stays_up(&spec, CollectiveKind::Broadcast, &options, &share);
            assert_eq!(time, 1000 + 100 * (pieces + behind - 1), "{options}");
            let (_, time) = stays_up(&spec, CollectiveKind::AllReduce, &options, &share);
            assert_eq!(
                time,
                1000 + 100 * (pieces + 2 * (ranks - 1) - 1),
                "{options}"
            );
            let size = format!("{}B", 100 * pieces);
            let (_, time) = stays_up(&spec, CollectiveKind::Scatter, &options, &size);
            assert_eq!(
                time,
                1000 + 100 * (behind * pieces).div_ceil(wavelengths),
                "{options}"
            );
            // Turned round the cut is on the other side.
            let turned = options.replace("cw", "ccw");
            let (_, time) = stays_up(&spec, CollectiveKind::Reduce, &turned, &share);
            assert_eq!(time, 1000 + 100 * (pieces + behind - 1), "{turned}");
            let (_, time) = stays_up(&spec, CollectiveKind::Gather, &turned, &size);
            assert_eq!(
                time,
                1000 + 100 * (behind * pieces).div_ceil(wavelengths),
                "{turned}"
            );
        }
    }
}

#[test]
fn blocks_that_hop_from_relay_to_relay_take_the_cut_and_what_is_rounded_up() {
    for (ranks, wavelengths, pieces) in [(2u64, 1, 1), (5, 2, 1), (16, 2, 2), (9, 3, 4), (21, 4, 2)]
    {
        let options = format!("ranks={ranks},wavelengths={wavelengths}");
        let spec = format!("store_and_forward:stride=1,pieces={pieces}");
        let size = format!("{}B", 60 * pieces * ranks);
        let (plan, time) = stays_up(&spec, CollectiveKind::AllToAll, &options, &size);
        assert_eq!(u64::from(plan.slots()), ranks / 2, "{options}");
        // In far step t the blocks for the ranks t and more links away make a hop; ranges that
        // would go on from rank N - 1 to rank 0 are two, one of which may leave a channel nearly
        // dark.
        let far = |channels: u64| {
            let steps = (1..=ranks / 2).map(|blocks| (blocks * pieces).div_ceil(channels));
            1000 + 60 * steps.sum::<u64>()
        };
        let between = far(wavelengths)..=far((wavelengths - 1).max(1));
        assert!(between.contains(&time), "{options}: {time} ns, {between:?}");
    }
    for (stride, lanes) in [(2, 3), (3, 2), (4, 1), (5, 1), (6, 1)] {
        let spec = format!("store_and_forward:stride={stride},lanes={lanes}");
        for ranks in [60, 120] {
            let options = format!("ranks={ranks},wavelengths=14");
            stays_up(&spec, CollectiveKind::AllToAll, &options, "10KiB");
        }
    }
}
