//! Pipelined plans: the verdict, the times and the text from their first chunks equal those from
//! all chunks.

use itertools::iproduct;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::{WdmLight, WdmRing};
use opticoll::plan::{Lightpath, Plan, Repetition, text};
use opticoll::planner;
use opticoll::schedule::Action;
use opticoll::simulate;
use opticoll::simulate::outcome::Outcome;
use opticoll::simulate::{Policy, TimingModel, circuit};
use opticoll::units::Bytes;
use opticoll::verify::{Violation, ViolationKind, verify};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::{change_light, number, rows};

/// Fabrics, the root, and pieces: fewer than hops, and more.
const CASES: &str = "
wdm_ring:ranks=2,wavelengths=1 | 0 | 3
wdm_ring:ranks=3,wavelengths=2 | 1 | 2
wdm_ring:ranks=5,wavelengths=3 | 4 | 7
wdm_ring:ranks=8,wavelengths=2,fibres=2 | 3 | 4
wdm_ring:ranks=8,wavelengths=4,ports=4 | 0 | 20
wdm_ring:ranks=6,wavelengths=3,propagation=7ns | 5 | 9
wdm_ring:ranks=6,wavelengths=3,conversion=100ns | 2 | 16
wdm_ring:ranks=12,wavelengths=8,reach=1 | 0 | 5
wdm_ring:ranks=4,wavelengths=2,converters=full | 0 | 5
wdm_ring:ranks=6,wavelengths=3,ports=4,multicast=drop_and_continue | 1 | 9
wdm_ring:ranks=7,wavelengths=2,fibres=2,multicast=drop_and_continue,reach=2 | 3 | 4
wdm_ring:ranks=4,wavelengths=2,reconfiguration=0s | 0 | 5
";

/// Cases with more lightpaths than the verifier expands.
const UNEXPANDED_CASES: &str = "
wdm_ring:ranks=3,wavelengths=2 | 1 | 20000
wdm_ring:ranks=5,wavelengths=2,fibres=2,ports=4 | 4 | 5000
";

/// Chains, there and back.
fn pipelined_plans() -> Vec<Plan> {
    plans_of(CASES)
}

fn plans_of(cases: &str) -> Vec<Plan> {
    let kinds = [CollectiveKind::Broadcast, CollectiveKind::Reduce];
    let plan = |([fabric, root, pieces], kind): ([&str; 3], CollectiveKind)| {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(kind, fabric.ranks()).unwrap();
        let collective = collective.with_root(number(root)).unwrap();
        let spec = format!("pipelined:pieces={pieces}").parse().unwrap();
        let method = TimingModel::default();
        let planned = planner::plan(&spec, &fabric, collective, Bytes::new(1 << 20), &method);
        let plan = planned.unwrap().plan;
        assert!(plan.repetition.is_pipelined(), "{fabric}: {plan:?}");
        plan
    };
    iproduct!(rows(cases), kinds).map(plan).collect()
}

fn name(plan: &Plan) -> String {
    let kind = plan.schedule.collective.kind();
    format!("{kind} {} {}", plan.fabric, plan.algorithm)
}

#[test]
fn the_first_chunks_prove_what_all_chunks_prove() {
    for plan in pipelined_plans() {
        assert_eq!(verify(&plan), [], "{}", name(&plan));
        let whole = plan.expanded();
        assert_eq!(verify(&whole), [], "{}", name(&plan));
        assert_eq!(whole.len() as u64, plan.transfers());
        assert_eq!(whole.slots(), plan.slots());
        for index in 0..whole.len() {
            let one = plan.numbered(index as u64);
            assert_eq!(one, Some(whole.lightpath(index)), "{}", name(&plan));
        }
        assert_eq!(plan.numbered(whole.len() as u64), None);
        for slot in 0..whole.slots() {
            let of_whole: Vec<_> = whole.lightpaths_in_slot(slot).collect();
            let of_slot: Vec<_> = plan.lightpaths_in_slot(slot).collect();
            assert_eq!(of_slot, of_whole, "{}", name(&plan));
        }
        for first in 0..plan.len() {
            let (stripe, piece) = (plan.repetition.stripes - 1, plan.repetition.pieces / 2);
            let index = plan.number(first, stripe, piece) as usize;
            assert_eq!(whole.lightpath(index), plan.copy(first, stripe, piece));
        }
        assert!(plan.is_same(&whole));
    }
}

#[test]
fn a_pipelined_plan_is_written_in_a_line_for_each_first_lightpath() {
    for plan in pipelined_plans() {
        let written = text::write(&plan);
        let statements = written
            .lines()
            .filter(|line| line.starts_with("copy") || line.starts_with("reduce"));
        assert_eq!(statements.count(), plan.len(), "{written}");
        let read = text::read_any(&written).unwrap();
        assert_eq!(text::write(&read), written);
        assert_eq!(read, plan, "{written}");
        // Any reader of the format sees all lightpaths.
        let whole = text::read(&written).unwrap();
        assert!(whole.is_same(&plan.expanded()), "{written}");
    }
}

#[test]
fn repetitions_over_slots_that_are_no_pipeline_are_written_out() {
    let head = "opticoll plan 1\ncollective broadcast ranks=3 root=0 pieces=2\n\
                fabric wdm_ring:ranks=3,wavelengths=2\nalgorithm by hand\n";
    for (body, pipelined) in [
        (
            "steps 1 1 1\nslot 0\ncopy 0 0>1 cw 0.0 x2 chunk+1 slot+1\nslot 1\ncopy 0 1>2 cw 0.0 \
             x2 chunk+1 slot+1\nend 4\n",
            true,
        ),
        (
            "steps 1 1 1\nslot 0\ncopy 0 0>1 cw 0.0 x2 chunk+1 slot+1\nslot 1\ncopy 0 1>2 cw \
             0.0\nslot 2\ncopy 1 1>2 cw 0.0\nend 4\n",
            false,
        ),
        (
            "steps 2 1\nslot 0\ncopy 0 0>1 cw 0.0 x2 chunk+1 slot+1\nslot 2\ncopy 0 1>2 cw 0.0 \
             x2 chunk+1 wavelength+1\nend 4\n",
            false,
        ),
        (
            "steps 1 1 1\nslot 0\ncopy 0 0>1 cw 0.0 x2 chunk+1 slot+1\ncopy 0 0>2 ccw 0.0 x2 \
             slot+2 chunk+1\nend 4\n",
            false,
        ),
        // The same chunks by other numbers, and chunks that are none of a first one.
        (
            "steps 1 1 1\nslot 0\ncopy 1 0>1 cw 0.0 x2 chunk+1 slot+1\nslot 1\ncopy 1 1>2 cw 0.0 \
             x2 chunk+1 slot+1\nend 4\n",
            false,
        ),
    ] {
        let written = format!("{head}{body}");
        let read = text::read_any(&written).unwrap();
        assert_eq!(read.repetition.is_pipelined(), pipelined, "{body}");
        assert_eq!(verify(&read), [], "{body}");
        assert_eq!(verify(&read.expanded()), [], "{body}");
    }
    let error = format!("{head}steps 1 1\nslot 1\ncopy 0 0>1 cw 0.0 x2 chunk+1 slot+1\nend 2\n");
    let error = text::read_any(&error).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 7, column 30: `slot+1`: the last of 2 copies would be in slot 2, but the slots of \
         the plan are 0 to 1: write at most x1 instead of x2, or more slots in the line `steps`"
    );
}

#[test]
fn shared_light_is_no_pipeline() {
    // A light tree for each chunk, which is judged as written out; and two streams whose stripes
    // meet on wavelength 1, where one lightpath carries a chunk of either.
    for (head, body, expected) in [
        (
            "collective broadcast ranks=3 root=0 pieces=2\n\
             fabric wdm_ring:ranks=3,wavelengths=2,multicast=drop_and_continue\n",
            "copy 0 0>1 cw 0.0 x2 chunk+1 slot+1\ncopy 0 0>2 cw 0.0 x2 chunk+1 slot+1\nend 4\n",
            &[][..],
        ),
        (
            "collective broadcast ranks=2 root=0 pieces=8\nfabric wdm_ring:ranks=2,wavelengths=3\n",
            "copy 0 0>1 cw 0.0 x2 chunk+2 wavelength+1 x2 chunk+1 slot+1\n\
             copy 4 0>1 cw 0.1 x2 chunk+2 wavelength+1 x2 chunk+1 slot+1\nend 8\n",
            &[ViolationKind::Symmetry],
        ),
    ] {
        let head = format!("opticoll plan 1\n{head}algorithm by hand\nsteps 1 1\nslot 0\n");
        let whole = text::read_any(&format!("{head}{body}")).unwrap();
        assert_eq!(whole.repetition, Repetition::NONE, "{body}");
        assert_eq!(verify(&whole), [], "{body}");
        let firsts = body.lines().filter(|line| !line.starts_with("end"));
        let firsts: Vec<&str> = firsts
            .map(|line| line.split_once(" x").unwrap().0)
            .collect();
        let first = format!("{head}{}\nend {}\n", firsts.join("\n"), firsts.len());
        let mut first = text::read(&first).unwrap();
        first.step_slots.truncate(1);
        let stripes = whole.len() as u32 / 4;
        let plan = first.with_stripes_and_pieces(stripes, 2);
        assert!(plan.is_same(&whole));
        let kinds: Vec<ViolationKind> = verify(&plan).iter().map(|one| one.kind).collect();
        assert_eq!(kinds, expected, "{body}");
    }
}

fn simulated(plan: &Plan, size: u64, policy: Policy) -> Outcome {
    simulate::simulate(plan, Bytes::new(size), policy, "circuit").unwrap()
}

const POLICIES: [Policy; 4] = [
    Policy::EveryStep,
    Policy::OnChange,
    Policy::PerPort,
    Policy::Free,
];

#[test]
fn the_first_chunks_take_the_time_of_all_chunks_under_every_policy() {
    for plan in pipelined_plans() {
        let whole = plan.expanded();
        let chunks = u64::from(plan.schedule.collective.chunks());
        assert_eq!(
            circuit::configurations(&plan),
            circuit::configurations(&whole)
        );
        assert_eq!(circuit::utilisation(&plan), circuit::utilisation(&whole));
        for size in [chunks, 1000 * chunks, 1, 1001, 123_457, 999_983] {
            // Converted lightpaths have no wavelength of their own.
            let ring = plan.fabric.downcast::<WdmRing>().unwrap();
            let known = |policy: &Policy| !(ring.converters && *policy == Policy::PerPort);
            for policy in POLICIES.into_iter().filter(known) {
                let one = simulated(&plan, size, policy);
                let all = simulated(&whole, size, policy);
                let case = format!("{} {policy:?} {size}", name(&plan));
                check_path(&one, &whole, &case);
                if policy == Policy::PerPort && size % chunks != 0 {
                    assert!(one.time >= all.time, "{case}");
                    let larger = simulated(&whole, size.next_multiple_of(chunks), policy);
                    assert!(one.time <= larger.time, "{case}");
                    assert_eq!(one.links, all.links, "{case}");
                    continue;
                }
                if policy != Policy::PerPort {
                    assert_eq!(one.critical_path, all.critical_path, "{case}");
                }
                let without_path = |outcome: Outcome| Outcome {
                    critical_path: Vec::new(),
                    ..outcome
                };
                assert_eq!(without_path(one), without_path(all), "{case}");
            }
        }
    }
}

/// Checks that the critical path ends when the plan ends, has no gap, and consists of transfers of
/// the plan.
fn check_path(outcome: &Outcome, whole: &Plan, case: &str) {
    let last = outcome.critical_path.last().map(|last| last.end);
    assert_eq!(last, Some(outcome.time), "{case}");
    for pair in outcome.critical_path.windows(2) {
        assert!(pair[1].start <= pair[0].end, "{case}");
        assert!(
            whole.slot[pair[0].transfer] < whole.slot[pair[1].transfer],
            "{case}"
        );
    }
}

/// Changes something about the first lightpaths, or how many stripes and pieces there are.
fn mutated(plan: &Plan, random: &mut Pcg64Mcg) -> Plan {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let mut changed = plan.clone();
    let mut lightpaths: Vec<Lightpath> = plan.lightpaths().collect();
    let at = random.random_range(0..lightpaths.len());
    let chunks = plan.schedule.collective.chunks();
    let one = &mut lightpaths[at];
    match random.random_range(0..12) {
        0 => drop(lightpaths.remove(at)),
        1 => lightpaths.push(lightpaths[at]),
        2 => one.transfer.destination = random.random_range(0..ring.ranks + 1),
        3 => one.transfer.source = random.random_range(0..ring.ranks + 1),
        4 => one.transfer.chunk = random.random_range(0..chunks + 1),
        5 => one.transfer.count = random.random_range(0..3),
        6 => one.slot = random.random_range(0..plan.slots()),
        7 => {
            let next = one.transfer.action as usize + random.random_range(1..Action::ALL.len());
            one.transfer.action = Action::ALL[next % Action::ALL.len()];
        }
        8 => change_light(&mut one.light, |light: &mut WdmLight| {
            light.wavelength = random.random_range(0..ring.wavelengths as u16 + 1);
        }),
        9 => change_light(&mut one.light, |light: &mut WdmLight| {
            light.direction = light.direction.opposite();
        }),
        10 => changed.repetition.stripes = random.random_range(1..2 * ring.channels() + 1),
        _ => changed.repetition.pieces = random.random_range(1..2 * plan.repetition.pieces + 2),
    }
    // Steps are slots.
    lightpaths.sort_by_key(|one| one.slot);
    let mut first = plan.without_lightpaths();
    let mut next = lightpaths.into_iter().peekable();
    for slot in 0..plan.slots() {
        first.schedule.begin_step();
        while let Some(one) = next.next_if(|one| one.slot == slot) {
            first.push(one);
        }
    }
    Plan {
        repetition: changed.repetition,
        ..first
    }
}

#[test]
fn every_mutation_of_a_small_plan_is_judged_as_written_out() {
    let mut random = Pcg64Mcg::seed_from_u64(22);
    let (mut sound, mut wrong, mut refused) = (0, 0, 0);
    for plan in pipelined_plans() {
        for _ in 0..300 {
            let changed = mutated(&plan, &mut random);
            let violations = verify(&changed);
            if has_no_such_form(&changed, &violations) {
                refused += 1;
                continue;
            }
            let of_whole = verify(&changed.expanded());
            assert_eq!(violations, of_whole, "{}", name(&plan));
            match of_whole.is_empty() {
                true => sound += 1,
                false => wrong += 1,
            }
        }
    }
    assert!(
        sound > 300 && wrong > 2000 && refused > 300,
        "{sound} {wrong} {refused}"
    );
}

/// Returns whether no file describes such a pipelined plan, because a copy has no slot or the
/// copies are not of one form.
fn has_no_such_form(plan: &Plan, violations: &[Violation]) -> bool {
    let last = plan.slot.iter().max().copied().unwrap_or(0);
    let leaves = u64::from(last) + u64::from(plan.repetition.pieces) > u64::from(plan.slots());
    let is_symmetry = |one: &Violation| one.kind == ViolationKind::Symmetry;
    let no_form = leaves || violations.iter().any(is_symmetry);
    assert!(!no_form || !violations.is_empty(), "{}", name(plan));
    no_form
}

#[test]
fn every_mutation_that_spoils_a_large_plan_is_rejected_by_its_first_chunks() {
    let mut random = Pcg64Mcg::seed_from_u64(22);
    let (mut rejected, mut said) = (0, 0);
    for plan in plans_of(UNEXPANDED_CASES) {
        for _ in crate::some_of(0..60, 4) {
            let changed = mutated(&plan, &mut random);
            let violations = verify(&changed);
            let is_small = changed.transfers() <= 1 << 16;
            if is_small || has_no_such_form(&changed, &violations) {
                continue;
            }
            let of_whole = verify(&changed.expanded());
            said += are_those_of_the_whole(&changed, &violations, &of_whole);
            if !of_whole.is_empty() {
                assert!(!violations.is_empty(), "{} {of_whole:?}", name(&plan));
                rejected += 1;
            }
        }
    }
    assert!(
        rejected > crate::share(60, 4) && said > crate::share(60, 4),
        "{rejected} {said}"
    );
}

/// Checks that each violation found in the first chunks is also found, with the same numbers, in
/// the expanded plan; returns how many were compared.
fn are_those_of_the_whole(plan: &Plan, of_firsts: &[Violation], of_whole: &[Violation]) -> usize {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    // What only the form has; all circuits of a rank, in place of those of a slot; light that is
    // shared in no pipeline.
    let differs = |one: &&Violation| match one.kind {
        ViolationKind::Symmetry | ViolationKind::WavelengthRange | ViolationKind::Ports => true,
        ViolationKind::Collision => ring.multicast || one.slot.is_none(),
        _ => false,
    };
    let same = of_firsts.iter().filter(|one| !differs(one));
    let same = same.inspect(|one| {
        let sentence = one.sentence.split(" (and likewise").next().unwrap();
        let said = Violation {
            sentence: sentence.into(),
            ..(*one).clone()
        };
        assert!(
            of_whole.contains(&said),
            "{} {said:?} {of_whole:?}",
            name(plan)
        );
    });
    same.count()
}

#[test]
fn what_is_wrong_with_a_large_pipelined_plan_is_said_in_plain_words() {
    let plan = |fabric: &str, pieces, lines: &str| {
        let head = format!(
            "opticoll plan 1\ncollective broadcast ranks=3 root=0 pieces={pieces}\nfabric {fabric}"
        );
        let count = lines.matches("copy").count();
        let text = format!("{head}\nalgorithm by hand\nsteps 1 1\nslot 0\n{lines}\nend {count}\n");
        text::read(&text).unwrap()
    };
    let chain = "copy 0 0>1 cw 0.0\nslot 1\ncopy 0 1>2 cw 0.0";
    let tree = "copy 0 0>1 cw 0.0\ncopy 0 0>2 cw 0.0";
    let around = "copy 0 0>2 cw 0.0\nslot 1\ncopy 0 2>1 cw 0.0";
    let ring = "wdm_ring:ranks=3,wavelengths=2";
    for (first, stripes, pieces, expected) in [
        (
            plan(ring, 10, chain),
            2,
            4,
            "each transfer of the plan stands for 8 chunks, a piece in each of 4 slots on each \
             of 2 wavelengths, but a block has \
             10 chunks, which is not a multiple of 8; give the collective `pieces=16`",
        ),
        (
            plan(ring, 120_000, chain),
            3,
            40_000,
            "slot 0: transfer 0 (rank 0 to 1) is not on the first of 3 consecutive wavelengths (and likewise for \
             all pieces on all wavelengths)",
        ),
        // In slot 1 two transfers of each: the second chunk around the ring and the first one on.
        (
            plan(ring, 80_000, around),
            2,
            40_000,
            "slot 1: transfers 2 (rank 0 to 2) and 4 (rank 2 to 1) share wavelength 0 on the \
             clockwise fibre 0 between ranks \
             0 and 1 (and likewise for other pieces)",
        ),
        (
            plan(
                "wdm_ring:ranks=3,wavelengths=4096,fibres=10",
                40_960,
                around,
            ),
            40_960,
            1,
            "from slot 0 to 1: transfers 0 (rank 0 to 2) and 40960 (rank 2 to 1) share \
             wavelength 0 on the clockwise fibre 0 \
             between ranks 0 and 1, and all circuits of a pipelined plan stay up; write the \
             transfers without `slot+`",
        ),
        (
            plan(&format!("{ring},multicast=drop_and_continue"), 40_000, tree),
            1,
            40_000,
            "slot 0: transfers 0 (rank 0 to 1) and 1 (rank 0 to 2) share wavelength 0 on the \
             clockwise fibre 0 between ranks \
             0 and 1 (and likewise for other pieces)",
        ),
        (
            plan(ring, 160_000, chain),
            2,
            40_000,
            "at the end rank 1 does not hold chunk 80000 (and likewise for all pieces on all \
             wavelengths)",
        ),
    ] {
        let plan = first.with_stripes_and_pieces(stripes, pieces);
        let said = verify(&plan)[0].sentence.clone();
        assert_eq!(said, expected);
    }
}

#[test]
fn circuits_of_a_small_plan_that_are_never_up_together_may_share_a_channel() {
    // Two pieces go around the ring of three in slots 0 and 1, and on from there in slots 2 and 3,
    // over the same link.
    let written = "opticoll plan 1\ncollective broadcast ranks=3 root=0 pieces=2\nfabric \
                   wdm_ring:ranks=3,wavelengths=1\n\
                   algorithm by hand\nsteps 1 1 1 1\nslot 0\ncopy 0 0>2 cw 0.0 x2 chunk+1 slot+1\n\
                   slot 2\ncopy 0 2>1 cw 0.0 x2 chunk+1 slot+1\nend 4\n";
    let plan = text::read_any(written).unwrap();
    assert!(plan.repetition.is_pipelined());
    assert_eq!(verify(&plan), []);
    // A slot earlier, the second hop of the first piece meets the first hop of the second piece.
    let plan = text::read_any(&written.replace("slot 2", "slot 1")).unwrap();
    let kinds: Vec<ViolationKind> = verify(&plan).iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [ViolationKind::Collision]);
}
