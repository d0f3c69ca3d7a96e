//! Bounds on grids of lightpaths: equal to theory where theory meets them, below every plan, and
//! with the fewest phases that a search finds.

use opticoll::bounds::lightpath_grid::{Setups, best, least_slots};
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Light};
use opticoll::family::lightpath_grid::LightpathGrid;
use opticoll::family::lightpath_grid::PortsLight;
use opticoll::plan::Plan;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate;
use opticoll::simulate::{Paths, Policy, TimingModel};
use opticoll::units::Bytes;
use opticoll::verify::verify;
use proptest::prelude::*;

use super::{algorithms, proved};
use crate::auto::auto_is_not_below_its_bound;

fn bound(fabric: &Fabric, kind: CollectiveKind, bytes: u64, setups: Setups) -> u64 {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let grid = fabric.downcast::<LightpathGrid>().unwrap();
    let bound = best(grid, &collective, Bytes::new(bytes), setups).unwrap();
    bound.time.ps()
}

/// 100 us, 8 ns a byte, 5 ms and 5 ms in ps.
const A: u64 = 100_000_000;
const B: u64 = 8_000;
const E: u64 = 5_000_000_000;

#[test]
fn recursive_doubling_of_an_all_gather_with_one_port_cannot_be_beaten() {
    for rounds in 1..=6u64 {
        let ranks = 1u64 << rounds;
        let text = format!("lightpath_grid:ranks={ranks},ports=1");
        let plan = proved(CollectiveKind::AllGather, "recursive_doubling", &text);
        let sending = (ranks - 1) * 1000 * B;
        for (settings, setups, expected) in [
            (vec![], Setups::Released, rounds * (A + 2 * E) + sending),
            (
                vec![("policy", "every_step")],
                Setups::EverySlot,
                rounds * (A + 2 * E) + sending,
            ),
            (
                vec![("policy", "free")],
                Setups::Never,
                rounds * A + sending,
            ),
        ] {
            let method = TimingModel::from_settings(settings).unwrap();
            let time = simulate::run(&plan, Bytes::new(1000), &method)
                .unwrap()
                .time;
            assert_eq!(time.ps(), expected);
            let least = bound(&plan.fabric, CollectiveKind::AllGather, 1000, setups);
            assert_eq!(least, expected, "{ranks} ranks, {setups:?}");
        }
    }
}

#[test]
fn phases_and_slots_are_weighed_against_each_other() {
    use CollectiveKind::{AllGather, Barrier, Broadcast};
    use Setups::{Kept, Released, Warm};
    for (ranks, ports, kind, setups, expected) in [
        // Two ports: a ring of 9 needs 4 slots and one set-up, a tree two of both: 4 x 0.1 ms is
        // less than 10 ms.
        (9, 2, Barrier, Released, 2 * E + 4 * A),
        (9, 2, Barrier, Kept, E + 4 * A),
        (9, 2, Barrier, Warm, 4 * A),
        // 8 of 9 blocks by two ports.
        (9, 2, AllGather, Released, 2 * E + 4 * A + 4 * 1000 * B),
        // Three ports, trees of degree 3: within 1, 2, 3 edges are 4, 10, 22 ranks.
        (22, 3, Barrier, Released, 2 * E + 3 * A),
        (23, 3, Barrier, Released, 2 * E + 4 * A),
        // More ports than others: several paths to the same one. The root sends the vector to
        // three, and times are rounded down.
        (
            4,
            9,
            Broadcast,
            Released,
            2 * E + A + 3 * (1000 * B / 9) - 1,
        ),
    ] {
        let fabric = format!("lightpath_grid:ranks={ranks},ports={ports}");
        let fabric = Fabric::parse(&fabric).unwrap();
        assert_eq!(
            bound(&fabric, kind, 1000, setups),
            expected,
            "{fabric} {kind}"
        );
    }
    // With slow messages and fast switches it is the other way round: two phases of one slot.
    let fast = "lightpath_grid:ranks=9,ports=2,latency=10ms,setup=1ms,teardown=0s";
    let fabric = Fabric::parse(fast).unwrap();
    assert_eq!(bound(&fabric, Barrier, 0, Released), 2 * 11_000_000_000);
}

#[test]
fn blocks_take_more_hops_in_fewer_slots() {
    // With one port and S slots there are C(S, h) ways of h hops. 7 blocks of 1 MB over 3 slots
    // take 3 + 2 * 3 + 3 = 12 hops, over 4 slots 4 + 2 * 3 = 10, over 7 slots one each; a slot
    // takes 0.1 ms, with set-ups 10.1 ms, a block 8 ms.
    let fabric = Fabric::parse("lightpath_grid:ranks=8").unwrap();
    let least = |slot: u64, bytes: u64| {
        let slots = [(3, 12), (4, 10), (5, 9), (6, 8), (7, 7)];
        let times = slots.map(|(slots, hops)| slots * slot + hops * bytes * B);
        times.into_iter().min().unwrap()
    };
    for bytes in [1000, 20_000, 1_000_000, 2_000_000] {
        for (setups, slot) in [
            (Setups::Never, A),
            (Setups::EverySlot, A + 2 * E),
            (Setups::Released, A + 2 * E),
        ] {
            let least = least(slot, bytes);
            assert_eq!(
                bound(&fabric, CollectiveKind::AllToAll, 8 * bytes, setups),
                least
            );
        }
    }
}

#[test]
fn a_vector_in_the_fewest_slots_is_sent_whole_in_each() {
    // 2^3 ranks in 3 slots: who has a byte sends it in every slot. Set-ups of 5 s leave no time for
    // a fourth slot.
    let slow = "lightpath_grid:ranks=8,setup=5s,teardown=0s";
    let fabric = Fabric::parse(slow).unwrap();
    for (kind, algorithm) in [
        (CollectiveKind::Broadcast, "binomial"),
        (CollectiveKind::Reduce, "binomial"),
    ] {
        let plan = proved(kind, algorithm, slow);
        let method = TimingModel::from_settings(vec![("policy", "every_step")]).unwrap();
        let time = simulate::run(&plan, Bytes::new(1_000_000), &method)
            .unwrap()
            .time;
        assert_eq!(time.ps(), 3 * (1000 * E + A + 1_000_000 * B));
        let least = bound(&fabric, kind, 1_000_000, Setups::EverySlot);
        assert!(
            (time.ps() - 100..=time.ps()).contains(&least),
            "{kind}: {least} {time}"
        );
    }
}

/// Returns the most ranks that `phases` phases of `slots` slots in all can reach, by trying all
/// divisions of the slots.
fn most(ports: u64, slots: u64, phases: u64) -> u64 {
    if phases == 0 {
        return 1;
    }
    let each = (1..=slots - (phases - 1)).map(|own| {
        // Level by level of a tree in which every rank has as many neighbours as ports.
        let (mut all, mut level) = (1, ports);
        for _ in 0..own {
            all += level;
            level *= ports - 1;
        }
        all * most(ports, slots - own, phases - 1)
    });
    each.max().unwrap()
}

#[test]
fn no_other_division_into_phases_reaches_more() {
    for ports in 1..=5 {
        for ranks in 2..=70 {
            for phases in 1..=4 {
                let slots = least_slots(ranks, ports, phases);
                if ports == 1 && 1 << phases < ranks {
                    // However long, a phase with one port doubles.
                    assert_eq!(slots, None);
                    continue;
                }
                let slots = slots.unwrap();
                let case = format!("{ranks} ranks, {ports} ports, {phases} phases: {slots}");
                assert!(
                    slots >= phases && most(ports, slots, phases) >= ranks,
                    "{case}"
                );
                assert!(
                    slots == phases || most(ports, slots - 1, phases) < ranks,
                    "{case}"
                );
            }
        }
    }
}

/// Returns the specification of a grid whose latency, establishing time and releasing time are
/// given in microseconds.
fn grid(ranks: u32, ports: u32, (latency, setup, teardown): (u64, u64, u64)) -> String {
    format!(
        "lightpath_grid:ranks={ranks},ports={ports},latency={latency}us,\
         setup={setup}us,teardown={teardown}us"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_plan_is_faster(
        ranks in 2u32..33,
        ports in 1u32..6,
        bytes in 0u64..1_000_000,
        microseconds in (0u64..2000, 0u64..2000, 0u64..2000),
    ) {
        let text = grid(ranks, ports, microseconds);
        for (kind, algorithm) in algorithms(ranks) {
            let plan = proved(kind, algorithm, &text);
            for (policy, paths) in [
                (Policy::SetupTeardown, Paths::Released),
                (Policy::SetupTeardown, Paths::Kept),
                (Policy::SetupTeardown, Paths::Warm),
                (Policy::SetupTeardown, Paths::Predicted),
                (Policy::PerPort, Paths::Released),
                (Policy::EveryStep, Paths::Released),
                (Policy::Free, Paths::Released),
            ] {
                let method = TimingModel {
                    policy: Some(policy),
                    paths: (paths != Paths::Released).then_some(paths),
                    ..TimingModel::default()
                };
                let time = simulate::run(&plan, Bytes::new(bytes), &method).unwrap().time;
                let charge = plan.fabric.circuits().unwrap().charge(policy.name()).unwrap();
                let least = bound(&plan.fabric, kind, bytes, (charge, paths).into());
                prop_assert!(
                    time.ps() >= least,
                    "{} by {} on {}: {} below {}", kind, algorithm, text, time.ps(), least
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_plan_of_auto_is_faster(
        ranks in 2u32..34,
        ports in 1u32..5,
        bytes in 0u64..3_000_000,
        microseconds in (0u64..2000, 0u64..9000, 0u64..2000),
        kind in 0..CollectiveKind::ALL.len(),
        policy in 0usize..4,
    ) {
        let text = grid(ranks, ports, microseconds);
        let policies =
            [Policy::SetupTeardown, Policy::EveryStep, Policy::PerPort, Policy::Free];
        let policy = policies[policy];
        auto_is_not_below_its_bound(&text, CollectiveKind::ALL[kind], policy, Bytes::new(bytes))?;
    }
}

/// Half of a block over each of two paths between the same two ranks, which the verifier lets pass.
#[test]
fn paths_side_by_side_are_not_below_the_bound() {
    let fabric = Fabric::parse("lightpath_grid:ranks=2,ports=2").unwrap();
    let whole = Collective::new(CollectiveKind::AllGather, 2).unwrap();
    let mut schedule = Schedule::new(whole.with_pieces(2).unwrap());
    schedule.begin_step();
    for (chunk, source) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        schedule.push(Transfer::copy(chunk, source, 1 - source));
    }
    let plan = Plan {
        light: [0, 1, 0, 1]
            .map(|port| {
                Light::from(PortsLight {
                    source_port: port,
                    destination_port: port.into(),
                })
            })
            .to_vec(),
        slot: vec![0; 4],
        step_slots: std::iter::once(0..1).collect(),
        ..Plan::without_light(&fabric, schedule, "by hand".into())
    };
    assert_eq!(verify(&plan), []);
    let time = simulate::run(&plan, Bytes::new(1000), &TimingModel::default());
    let expected = 2 * E + A + 500 * B;
    assert_eq!(time.unwrap().time.ps(), expected);
    let least = bound(&fabric, CollectiveKind::AllGather, 1000, Setups::Released);
    assert_eq!(least, expected);
}
