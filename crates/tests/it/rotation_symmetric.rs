//! Rotation-symmetric plans: the verdict and the times from rank 0's lightpaths equal those from
//! all lightpaths. The reference verifier judges mutants, transfer by transfer
//! (tests/test_reference_agrees.py).

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::family::wdm_ring::{CONVERTED, WdmLight};
use opticoll::plan::{Lightpath, Plan, fold, text};
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::outcome::Outcome;
use opticoll::simulate::{Policy, circuit};
use opticoll::units::Bytes;
use opticoll::verify::{ViolationKind, verify};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::{change_light, plan_with, rows};

/// Fabrics and pieces for which relay trees have lengths that divide N.
const CASES: &[(&str, u32)] = &[
    ("wdm_ring:ranks=2,wavelengths=1", 1),
    ("wdm_ring:ranks=6,wavelengths=2", 1),
    ("wdm_ring:ranks=12,wavelengths=3", 2),
    ("wdm_ring:ranks=16,wavelengths=2", 1),
    ("wdm_ring:ranks=16,wavelengths=3,fibres=3", 1),
    ("wdm_ring:ranks=16,wavelengths=4", 3),
    ("wdm_ring:ranks=20,wavelengths=1,fibres=7", 2),
    ("wdm_ring:ranks=24,wavelengths=5,propagation=7ns", 1),
    ("wdm_ring:ranks=32,wavelengths=8,converters=full", 1),
    ("wdm_ring:ranks=36,wavelengths=4", 1),
    ("wdm_ring:ranks=48,wavelengths=8,conversion=100ns", 2),
    ("wdm_ring:ranks=60,wavelengths=12", 1),
    ("wdm_ring:ranks=64,wavelengths=8", 8),
];

/// Returns rotation-symmetric plans on a fabric: relay trees of whole blocks and of pieces, to the
/// root, from the root, and both.
fn folded_plans(fabric: &str, pieces: u32) -> Vec<Plan> {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, fabric.ranks()).unwrap();
    let mut plans = Vec::new();
    for pieces in [1, pieces] {
        let collective = collective.with_pieces(pieces).unwrap();
        let gather = planner::relay_tree(&fabric, collective).unwrap();
        plans.push(planner::reduce_scatter(&gather).unwrap());
        plans.push(planner::all_reduce(&gather).unwrap());
        plans.push(gather);
    }
    plans.retain(|plan| plan.repetition.is_rotation_symmetric());
    plans
}

fn all_folded_plans() -> Vec<Plan> {
    let cases = CASES.iter();
    let plans: Vec<Plan> = cases
        .flat_map(|(fabric, pieces)| folded_plans(fabric, *pieces))
        .collect();
    assert!(plans.len() > 3 * CASES.len(), "{}", plans.len());
    let converted: Vec<Plan> = plans.iter().filter_map(all_converted).collect();
    assert!(!converted.is_empty());
    [plans, converted, all_to_alls()].concat()
}

/// Rings, and options of `store_and_forward`.
const ALL_TO_ALLS: &str = "
wdm_ring:ranks=66,wavelengths=4 | stride=1,lanes=3,pieces=2
wdm_ring:ranks=72,wavelengths=12 | stride=4,lanes=2
wdm_ring:ranks=68,wavelengths=4,fibres=3 | stride=2,lanes=4
wdm_ring:ranks=75,wavelengths=12 | stride=5,lanes=1
";

/// Blocks from relay to relay, which turn with both of their ranks.
fn all_to_alls() -> Vec<Plan> {
    let plan = |[fabric, options]: [&str; 2]| {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(CollectiveKind::AllToAll, fabric.ranks()).unwrap();
        let spec = format!("store_and_forward:{options}").parse().unwrap();
        let method = simulate::TimingModel::default();
        let planned = planner::plan(&spec, &fabric, collective, Bytes::new(1 << 20), &method);
        match planned.unwrap().plan {
            plan if plan.repetition.is_rotation_symmetric() => Some(plan),
            // Lengths up to half the stride must divide the ring.
            _ if fabric.ranks() == 75 => None,
            other => panic!("{fabric}: {other:?}"),
        }
    };
    rows(ALL_TO_ALLS).filter_map(plan).collect()
}

/// Returns the same plan with every lightpath converted, on a fabric of one fibre that can convert.
fn all_converted(plan: &Plan) -> Option<Plan> {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let mut plan = plan.clone();
    for light in &mut plan.light {
        change_light(light, |light: &mut WdmLight| light.wavelength = CONVERTED);
    }
    (ring.converters && ring.fibres == 1).then_some(plan)
}

/// Returns the lightpaths with their steps, sorted.
fn sorted(plan: &Plan) -> Vec<(usize, Lightpath)> {
    let steps = (0..plan.schedule.steps())
        .flat_map(|step| plan.schedule.step(step).map(move |index| (step, index)));
    let mut lightpaths: Vec<_> = steps
        .map(|(step, index)| (step, plan.lightpath(index)))
        .collect();
    lightpaths.sort_unstable();
    lightpaths
}

#[test]
fn folding_what_was_unfolded_gives_the_same_and_both_are_proved() {
    for plan in all_folded_plans() {
        let name = format!("{} {}", plan.fabric, plan.algorithm);
        assert_eq!(verify(&plan), [], "{name}");
        let whole = plan.expanded();
        assert_eq!(whole.len() as u64, plan.transfers());
        assert_eq!(verify(&whole), [], "{name}");
        assert_eq!(fold(&whole), Some(plan), "{name}");
    }
}

#[test]
fn a_plan_is_folded_only_if_it_is_its_own_rotation() {
    let (mut folded, mut not) = (0, 0);
    for record in crate::general_algorithms() {
        for (ranks, wavelengths) in [(1, 1), (2, 1), (8, 2), (9, 4), (12, 3), (16, 40)] {
            if (record.accepts)(ranks).is_err() {
                continue;
            }
            let plan = crate::verified(record.collective, record.name, ranks, wavelengths);
            let Some(found) = fold(&plan) else {
                not += 1;
                continue;
            };
            folded += 1;
            assert_eq!(sorted(&found.expanded()), sorted(&plan), "{}", record.name);
            assert_eq!(verify(&found), [], "{}", record.name);
        }
    }
    assert!(folded > 10 && not > 10, "{folded} {not}");
}

#[test]
fn one_lightpath_changed_anywhere_and_a_plan_does_not_fold() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for plan in folded_plans("wdm_ring:ranks=12,wavelengths=3", 2) {
        let whole = plan.expanded();
        for _ in 0..50 {
            let mut changed = Plan::clone(&whole);
            let at = random.random_range(0..changed.len());
            match random.random_range(0..3) {
                0 => change_light(&mut changed.light[at], |light: &mut WdmLight| {
                    light.wavelength = (light.wavelength + 1) % 3
                }),
                1 => change_light(&mut changed.light[at], |light: &mut WdmLight| {
                    light.direction = light.direction.opposite()
                }),
                _ => changed.slot[at] = (changed.slot[at] + 1) % changed.slots(),
            }
            if changed != *whole {
                assert_eq!(fold(&changed), None);
            }
        }
    }
}

#[test]
fn only_some_collectives_look_the_same_from_every_rank() {
    let plan = plan_with(
        CollectiveKind::Broadcast,
        "binary_tree",
        "wdm_ring:ranks=8,wavelengths=2",
        "auto",
    );
    let plan = plan
        .or_else(|_| {
            plan_with(
                CollectiveKind::Broadcast,
                "binomial",
                "wdm_ring:ranks=8,wavelengths=2",
                "auto",
            )
        })
        .unwrap();
    assert_eq!(fold(&plan), None);
    let violations = verify(&plan.with_all_rotations());
    assert_eq!(violations[0].kind, ViolationKind::Symmetry);
}

// Text.

#[test]
fn folded_plans_are_written_without_unfolding_and_read_back_folded() {
    for plan in all_folded_plans() {
        let written = text::write(&plan);
        // A statement for each orbit, and one more for each fibre that it goes on to.
        let lines = written.lines().count();
        let ring = plan.fabric.downcast::<WdmRing>().unwrap();
        let most = plan.len() * ring.fibres as usize + plan.slots() as usize + 10;
        assert!(lines <= most, "{lines} lines for {} orbits", plan.len());
        let read = text::read_any(&written).unwrap();
        assert_eq!(read, plan);
        assert_eq!(text::write(&read), written);
        // Any reader of the format sees all lightpaths.
        assert_eq!(
            sorted(&text::read(&written).unwrap()),
            sorted(&plan.expanded())
        );
    }
}

#[test]
fn files_that_are_no_orbits_are_read_lightpath_by_lightpath() {
    for plan in folded_plans("wdm_ring:ranks=12,wavelengths=3", 2) {
        let whole = plan.expanded();
        let written = text::write(&whole);
        let read = text::read_any(&written).unwrap();
        assert_eq!(
            text::write(&read),
            written,
            "reading then writing is identity"
        );
        assert_eq!(sorted(&read.expanded()), sorted(&whole));
    }
    let head = "opticoll plan 1\ncollective all_gather ranks=4 root=0 pieces=1\n\
                fabric wdm_ring:ranks=4,wavelengths=2\nalgorithm by hand\nsteps 1\nslot 0\n";
    for (body, folded) in [
        ("copy 0 0>1 cw 0.0 x4 chunk+1 rank+1\nend 4\n", true),
        (
            "copy 0 0>2 cw 0.0 x2 chunk+2 rank+2 x2 chunk+1 rank+1 wavelength+1\nend 4\n",
            true,
        ),
        ("copy 0 0>1 cw 0.0 x3 chunk+1 rank+1\nend 3\n", false),
        ("copy 0 0>1 cw 0.0 x4 chunk+1 rank+1 x1\nend 4\n", false),
        ("copy 1 1>2 cw 0.0 x4 chunk+1 rank+1\nend 4\n", false),
        ("copy 0 0>1 cw 0.0 x4 rank+1\nend 4\n", false),
        ("copy 0 0>2 cw 0.0 x4 chunk+1 rank+1\nend 4\n", false),
        ("copy 0 0>3 cw 0.0 x4 chunk+1 rank+1\nend 4\n", false),
        ("copy 0 0>2 cw 0.0 x2 chunk+2 rank+2\nend 2\n", false),
    ] {
        let read = text::read_any(&format!("{head}{body}")).unwrap();
        assert_eq!(read.repetition.is_rotation_symmetric(), folded, "{body}");
    }
    let error = text::read_any(&format!(
        "{head}copy 0 0>1 cw 0.0 x4 chunk+1 rank+1\nend 5\n"
    ));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("holds 4 transfers, not 5")
    );
}

// Simulation.

fn simulated(plan: &Plan, size: u64, policy: Policy) -> Option<Outcome> {
    simulate::simulate(plan, Bytes::new(size), policy, "circuit").ok()
}

/// Returns the outcome without its critical path, because several chains of transfers take the same
/// time.
fn without_path(outcome: Outcome) -> Outcome {
    Outcome {
        critical_path: Vec::new(),
        ..outcome
    }
}

#[test]
fn folded_plans_take_the_time_of_all_lightpaths_under_every_policy() {
    for plan in all_folded_plans() {
        let whole = plan.expanded();
        let name = format!("{} {}", plan.fabric, plan.algorithm);
        assert_eq!(
            circuit::configurations(&plan),
            circuit::configurations(&whole)
        );
        // Sizes that are a multiple of the chunks.
        for size in [1, 1000, 1 << 20] {
            let size = size * u64::from(plan.schedule.collective.chunks());
            for policy in Policy::ALL {
                let (one, all) = (
                    simulated(&plan, size, policy),
                    simulated(&whole, size, policy),
                );
                assert_eq!(one.is_some(), all.is_some(), "{name} {policy:?}");
                if let (Some(one), Some(all)) = (one, all) {
                    check_path(&one, &whole);
                    assert_eq!(
                        without_path(one),
                        without_path(all),
                        "{name} {policy:?} {size}"
                    );
                }
            }
        }
    }
}

/// Checks that the critical path ends when the plan ends, and consists of transfers of the plan.
fn check_path(outcome: &Outcome, whole: &Plan) {
    assert_eq!(
        outcome.critical_path.last().map(|last| last.end),
        Some(outcome.time)
    );
    for pair in outcome.critical_path.windows(2) {
        assert!(whole.slot[pair[0].transfer] < whole.slot[pair[1].transfer]);
    }
}

#[test]
fn sizes_that_do_not_divide_take_the_same_time_with_barriers() {
    let mut left_out = crate::leaves_out(5);
    for plan in all_folded_plans() {
        let whole = plan.expanded();
        for size in [1, 1001, 123_457, 999_983] {
            for policy in [Policy::EveryStep, Policy::OnChange, Policy::Free] {
                if left_out() {
                    continue;
                }
                let one = simulated(&plan, size, policy).unwrap();
                let all = simulated(&whole, size, policy).unwrap();
                if whole.has_one_chunk_per_lightpath() {
                    assert_eq!(
                        (one.time, &one.slots),
                        (all.time, &all.slots),
                        "{size} {policy:?}"
                    );
                }
                // Chunks that share a lightpath are all taken to be the largest.
                let chunks = u64::from(whole.schedule.collective.chunks());
                let larger = simulated(&whole, size.next_multiple_of(chunks), policy).unwrap();
                assert!(
                    one.time >= all.time && one.time <= larger.time,
                    "{size} {policy:?}"
                );
                let most = |of: &Outcome| of.ranks.sent.iter().copied().max();
                assert!(most(&one) >= most(&all));
            }
            // Which port of several is taken hangs on single bytes.
            let ring = plan.fabric.downcast::<WdmRing>().unwrap();
            if ring.ports.is_none()
                && let Some(one) = simulated(&plan, size, Policy::PerPort)
            {
                let all = simulated(&whole, size, Policy::PerPort).unwrap();
                assert!(one.time >= all.time, "{}", plan.fabric);
            }
        }
    }
}

#[test]
fn the_most_bytes_of_any_rotation_are_those_of_the_largest() {
    for (ranks, pieces, kind) in [
        (6, 4, CollectiveKind::AllGather),
        (6, 4, CollectiveKind::ReduceScatter),
        (6, 12, CollectiveKind::AllReduce),
        (5, 15, CollectiveKind::AllReduce),
    ] {
        let collective = Collective::new(kind, ranks)
            .unwrap()
            .with_pieces(pieces)
            .unwrap();
        let (chunks, step) = (collective.chunks(), collective.chunks() / ranks);
        for size in (0..200).chain([1 << 40, u64::MAX / 64]) {
            let size = Bytes::new(size);
            for chunk in 0..chunks {
                for count in 1..=step - chunk % step {
                    let of = |turn: u32| {
                        let chunk = (chunk + turn * step) % chunks;
                        collective.range_bytes(size, chunk, count).unwrap()
                    };
                    let largest = (0..ranks).map(of).max().unwrap();
                    let most = collective
                        .max_range_bytes(size, chunk, count, step)
                        .unwrap();
                    assert_eq!(most, largest, "{collective:?} {size} {chunk}+{count}");
                }
            }
        }
    }
}

#[test]
fn an_orbit_must_leave_rank_0() {
    for plan in folded_plans("wdm_ring:ranks=6,wavelengths=2", 1) {
        let mut orbits = plan.without_lightpaths();
        for step in 0..plan.schedule.steps() {
            orbits.schedule.begin_step();
            for index in plan.schedule.step(step) {
                orbits.push(plan.copy(index, 2, 0));
            }
        }
        let kinds: Vec<ViolationKind> = verify(&orbits.with_all_rotations())
            .iter()
            .map(|violation| violation.kind)
            .collect();
        assert!(kinds.contains(&ViolationKind::Symmetry), "{kinds:?}");
    }
}

#[test]
fn folded_plans_with_columns_of_different_lengths_are_refused() {
    for mut plan in folded_plans("wdm_ring:ranks=6,wavelengths=2", 1) {
        plan.slot.pop();
        assert_eq!(verify(&plan)[0].kind, ViolationKind::Columns);
    }
}

#[test]
fn plans_of_65536_ranks_are_written_proved_and_timed_through_their_symmetry() {
    // Each half of a block on a wavelength of its own, to both neighbours: N / 2 slots, never
    // reset.
    let fabric = Fabric::parse("wdm_ring:ranks=65536,wavelengths=2").unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, 65_536)
        .and_then(|collective| collective.with_pieces(2))
        .unwrap();
    let gather = &planner::relay_tree(&fabric, collective).unwrap();
    assert_eq!(
        (gather.slots(), gather.transfers()),
        (32_768, 2 * 65_536 * 65_535)
    );
    assert_eq!(circuit::configurations(gather), 1);
    let reduced = planner::reduce_scatter(gather).unwrap();
    for plan in [gather, &reduced] {
        assert_eq!(verify(plan), []);
        assert_eq!(&text::read_any(&text::write(plan)).unwrap(), plan);
        // Half blocks of 5000 bytes take 1 us.
        let size = 10_000
            * if std::ptr::eq(plan, gather) {
                1
            } else {
                65_536
            };
        let outcome = simulated(plan, size, Policy::Free).unwrap();
        assert_eq!(outcome.time, "32768us".parse().unwrap());
        assert_eq!(outcome.ranks.sent[65_535], 65_535 * 10_000);
        assert_eq!(
            simulated(plan, size, Policy::PerPort).unwrap().time,
            "32793us".parse().unwrap()
        );
    }
}
