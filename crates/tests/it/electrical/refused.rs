//! What is wrong with a plan, or does not fit an electrical fabric, is refused.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Light};
use opticoll::plan::{Plan, text};
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::fluid::StartRule;
use opticoll::simulate::{Method, Policy, Simulator};
use opticoll::units::Bytes;
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
fn what_does_not_fit_the_fabric_is_refused_with_a_hint() {
    let fabric = Fabric::parse("crossbar:ranks=16").unwrap();
    let plan = proved(CollectiveKind::AllGather, "ring", &fabric);
    let lit = crate::verified(CollectiveKind::AllGather, "ring", 16, 1);
    let method = |simulator: Option<&str>, policy, start| Method {
        simulator: simulator.map(|name| Simulator::named(name).unwrap()),
        policy,
        start,
        ..Method::default()
    };
    let every = Some(Policy::EveryStep);
    let sender = Some(StartRule::Sender);
    for (plan, method, hint) in [
        (&plan, method(None, every, None), "leave the policy out"),
        (&plan, method(Some("circuit"), None, None), "use fluid"),
        (&lit, method(Some("fluid"), None, None), "use circuit"),
        (&lit, method(Some("fluid"), every, sender), "use circuit"),
        (&lit, method(None, None, sender), "leave the start out"),
    ] {
        let error = simulate::run(plan, Bytes::new(1), &method)
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
    let collective = Collective::new(CollectiveKind::AllGather, 16).unwrap();
    for (algorithm, hint) in [
        ("relay_tree", "relay_tree needs a wdm_ring; got crossbar"),
        ("grouped", "grouped needs a wdm_ring"),
        ("wrht", "wrht needs a wdm_ring"),
        ("rnig", "did you mean `ring`"),
        ("auto:transfers=1", "every plan has more than 1 transfers"),
    ] {
        let spec = algorithm.parse().unwrap();
        let method = Method::default();
        let error = planner::plan(&spec, &fabric, collective, Bytes::new(1), &method);
        let error = error.err().unwrap().to_string();
        assert!(error.contains(hint), "{error}");
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
            "what shifts is one of chunk, rank",
        ),
    ] {
        let error = text::read(&written.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
}
