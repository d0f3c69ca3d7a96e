//! What the verifier sees on a grid. The reference judges the same plans by hand, and mutants of the same plans
//! (tests/test_reference_grid.py).

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wss_grid::TunedLight;
use opticoll::plan::Plan;
use opticoll::schedule::Schedule;
use opticoll::verify::{ViolationKind, tasks, verify};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::proved;
use crate::change_light;

#[test]
fn tasks_on_the_same_nodes_or_other_machines_do_not_get_along() {
    let task = |nodes: &str| {
        let fabric = format!("wss_grid:rows=2,columns=4{nodes}");
        proved(CollectiveKind::AllReduce, "halving_doubling", &fabric)
    };
    let (left, right) = (task(",nodes=0-1+4-5"), task(",nodes=2-3+6-7"));
    assert_eq!(tasks(&[&left, &right]), []);
    let both = tasks(&[&left, &right, &task(",nodes=1-2")]);
    let kinds: Vec<ViolationKind> = both.iter().map(|violation| violation.kind).collect();
    assert_eq!(kinds, [ViolationKind::Allocation; 2]);
    assert!(both[0].sentence.contains("node 1"), "{both:?}");
    let faster = task(",nodes=2-3,rate=400Gb/s");
    assert_eq!(tasks(&[&left, &faster]).len(), 1);
    let ring = Plan::without_light(
        &Fabric::parse("crossbar:ranks=2").unwrap(),
        Schedule::new(Collective::new(CollectiveKind::Barrier, 2).unwrap()),
        "none".into(),
    );
    assert_eq!(tasks(&[&left, &ring]).len(), 1);
}

/// Plans to change.
fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (kind, algorithm, fabric) in [
        (
            CollectiveKind::AllReduce,
            "halving_doubling",
            "rows=2,columns=4,plan=xor",
        ),
        (
            CollectiveKind::AllReduce,
            "dual_plane_halving_doubling",
            "rows=2,columns=2,wavelengths=2",
        ),
        (
            CollectiveKind::AllReduce,
            "halving_doubling",
            "rows=3,columns=3,wavelengths=3",
        ),
        (
            CollectiveKind::AllGather,
            "ring",
            "rows=2,columns=3,plan=cyclic",
        ),
        (CollectiveKind::AllToAll, "direct", "rows=2,columns=3"),
        (
            CollectiveKind::Broadcast,
            "binomial",
            "rows=2,columns=4,dead_transceivers=1.row",
        ),
        (
            CollectiveKind::AllGather,
            "direct",
            "rows=2,columns=3,nodes=0-1+3-5",
        ),
    ] {
        plans.push(proved(kind, algorithm, &format!("wss_grid:{fabric}")));
    }
    plans
}

/// The plan with another circuit to the output of one on the wavelength of that one; `None` where there is
/// no other.
fn with_shared_output(plan: &Plan, random: &mut Pcg64Mcg) -> Option<Plan> {
    let one = random.random_range(0..plan.len());
    let to = |index: usize| {
        (
            plan.schedule.ends(index).1,
            TunedLight::from(plan.light[index]).plane,
        )
    };
    let from = |index: usize| plan.schedule.ends(index).0;
    let direct = |index: usize| plan.relays_of(index).is_empty();
    let other = (0..plan.len()).find(|&index| {
        to(index) == to(one) && from(index) != from(one) && direct(index) && direct(one)
    })?;
    let mut next = plan.clone();
    let taken = TunedLight::from(plan.light[one]).wavelength;
    change_light(&mut next.light[other], |light: &mut TunedLight| {
        light.wavelength = taken;
    });
    Some(next)
}

#[test]
fn two_inputs_on_one_wavelength_of_an_output_are_always_rejected() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut mutants = 0;
    for plan in plans() {
        for _ in 0..60 {
            if let Some(mutant) = with_shared_output(&plan, &mut random) {
                let of = format!("{} on {}", plan.algorithm, plan.fabric);
                assert!(!verify(&mutant).is_empty(), "{of}");
                mutants += 1;
            }
        }
    }
    assert!(mutants > 100, "{mutants}");
}
