//! Refusals of faulty plans, and of plans that do not fit an electrical fabric.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::{Fabric, Light};
use opticoll::plan::{Plan, text};
use opticoll::verify::{ViolationKind, verify};

use super::proved;

#[test]
fn a_mutant_is_refused_for_the_right_reason() {
    let fabric = Fabric::parse("torus:dims=3x3").unwrap();
    let plan = proved(CollectiveKind::AllReduce, "ring", &fabric);
    type Mutation = fn(&mut Plan);
    let mutations: &[(ViolationKind, Mutation)] = &[
        (ViolationKind::Columns, |plan| {
            plan.light = vec![Light::NONE; plan.len()]
        }),
        (ViolationKind::Columns, |plan| plan.light.push(Light::NONE)),
        (ViolationKind::Columns, |plan| {
            plan.slot.pop();
        }),
        (ViolationKind::StepOrder, |plan| plan.slot[0] += 1),
        (ViolationKind::StepOrder, |plan| {
            let last = plan.step_slots.last_mut().unwrap();
            last.end += 1;
        }),
        (ViolationKind::SlotRange, |plan| plan.slot[0] = 1000),
        (ViolationKind::RankCount, |plan| {
            plan.fabric = Fabric::parse("crossbar:ranks=8").unwrap();
        }),
        (ViolationKind::Claim, |plan| {
            plan.schedule.claims.schedule_steps = Some(3);
        }),
    ];
    for (number, (kind, mutate)) in mutations.iter().enumerate() {
        let mut mutant = plan.clone();
        mutate(&mut mutant);
        let found = verify(&mutant);
        let kinds: Vec<_> = found.iter().map(|violation| violation.kind).collect();
        assert!(kinds.contains(kind), "{number}: {found:?}");
    }
}

#[test]
fn statements_of_light_are_refused_in_a_plan_without() {
    let fabric = Fabric::parse("crossbar:ranks=4").unwrap();
    let plan = proved(CollectiveKind::AllGather, "ring", &fabric);
    let written = text::write(&plan);
    assert!(
        written.contains("copy 0 0>1 x4 chunk+1 rank+1\n"),
        "{written}"
    );
    for (from, to, hint) in [
        ("0>1 x4", "0>1 cw 0.0 x4", "expected a repetition"),
        (
            "x4 chunk+1",
            "x4 wavelength+1 chunk+1",
            "expected a shift of one of chunk, rank",
        ),
    ] {
        let error = text::read(&written.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
}
