//! The verifier on small handwritten plans: it accepts the sound plans, and names the one rule that
//! each other plan breaks.

pub(crate) mod handwritten;

use std::collections::{BTreeMap, BTreeSet};

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Circuits, Fabric, FamilyRecord, Light, Machine};
use opticoll::families::FAMILIES;
use opticoll::family::wdm_ring;
use opticoll::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll::plan::Plan;
use opticoll::schedule::{Action, Schedule, Transfer};
use opticoll::spec::Spec;
use opticoll::verify::{RingLink, Violation, ViolationKind, verify};

use crate::verified;
use handwritten::{cases, plan_of_lines};

const PAIR: &str = "wdm_ring:ranks=2,wavelengths=1";
const THREE: &str = "wdm_ring:ranks=3,wavelengths=1";
const FOUR: &str = "wdm_ring:ranks=4,wavelengths=1";

/// Returns the names of the kinds of violations, in the order of the report.
fn kinds(plan: &Plan) -> String {
    let names: Vec<&str> = verify(plan)
        .iter()
        .map(|violation| violation.kind.name())
        .collect();
    names.join(" ")
}

#[test]
fn plans_by_hand_break_the_rules_that_they_say() {
    for case in cases() {
        let plan = case.plan();
        let violations = verify(&plan);
        assert_eq!(kinds(&plan), case.kinds, "{}: {violations:#?}", case.claim);
        if let Some(sentence) = case.sentence {
            assert_eq!(violations[0].sentence, sentence, "{}", case.claim);
        }
    }
}

#[test]
fn a_lightpath_of_several_chunks_is_no_light_tree() {
    let ring = "wdm_ring:ranks=3,wavelengths=1,multicast=drop_and_continue";
    let several = plan_of_lines(
        ring,
        "broadcast 3 0 2",
        "0 copy 0 0>1 cw 0.0
         0 copy 1 0>1 cw 0.0
         0 copy 0 0>2 ccw 0.0
         0 copy 1 0>2 ccw 0.0",
    );
    let tree = plan_of_lines(
        ring,
        "broadcast 3 0 1",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 cw 0.0",
    );
    for (plan, is_single) in [(several, false), (tree, true)] {
        assert_eq!(verify(&plan), []);
        assert_eq!(plan.has_one_chunk_per_lightpath(), is_single);
    }
}

#[test]
fn long_arcs_collide_only_where_they_meet() {
    let ring = "wdm_ring:ranks=200,wavelengths=1";
    for (one, two, collisions) in [
        ("60>199 cw", "130>199 cw", 1),
        ("60>130 cw", "130>199 cw", 0),
        ("60>129 cw", "128>199 cw", 1),
        ("60>128 cw", "128>10 cw", 0),
        ("190>64 cw", "63>65 cw", 1),
        ("190>64 cw", "64>190 cw", 0),
        ("190>64 cw", "64>191 cw", 1),
        ("199>64 ccw", "63>0 ccw", 0),
        ("199>64 ccw", "65>0 ccw", 1),
        ("10>127 ccw", "128>9 ccw", 1),
        ("10>127 ccw", "127>10 ccw", 0),
        ("10>127 ccw", "100>120 cw", 0),
        ("80>81 cw", "10>190 cw", 1),
        ("10>190 cw", "80>81 cw", 1),
        ("64>63 cw", "63>64 cw", 0),
        ("63>64 cw", "62>65 cw", 1),
    ] {
        let plan = plan_of_lines(
            ring,
            "all_gather 200",
            &format!("0 copy 0 {one} 0.0\n0 copy 1 {two} 0.0"),
        );
        let found = verify(&plan)
            .iter()
            .filter(|violation| violation.kind == ViolationKind::Collision)
            .count();
        assert_eq!(found, collisions, "{one} and {two}");
    }
}

/// A sound plan, changed.
type Change = (&'static str, fn(&mut Plan), &'static str);

/// Returns a plan of two steps of two slots: rank 0 sends two chunks to rank 1, which sends them to
/// rank 2.
fn relay() -> Plan {
    plan_of_lines(
        THREE,
        "broadcast 3 0 2",
        "0:0 copy 0 0>1 cw 0.0
         0:1 copy 1 0>1 cw 0.0
         1:2 copy 0 1>2 cw 0.0
         1:3 copy 1 1>2 cw 0.0",
    )
}

const CHANGES: &[Change] = &[
    ("nothing changed", |_| (), ""),
    (
        "a step may take no slot",
        |plan| plan.schedule.begin_step(),
        "step_order",
    ),
    (
        "an empty step may take no slot",
        |plan| {
            plan.schedule.begin_step();
            plan.step_slots.push(4..4);
        },
        "",
    ),
    (
        "an empty slot does no harm",
        |plan| plan.step_slots[1] = 2..5,
        "",
    ),
    (
        "steps leave no gap",
        |plan| plan.step_slots[1] = 3..4,
        "step_order step_order",
    ),
    (
        "steps start at 0",
        |plan| plan.step_slots[0] = 1..2,
        "step_order step_order",
    ),
    (
        "steps do not end before they start",
        |plan| plan.step_slots[1].end = 0,
        // Without slots no transfer has a place in time, and nothing arrives.
        "step_order slot_range slot_range slot_range slot_range \
         missing missing missing missing",
    ),
    (
        "steps do not overlap",
        |plan| plan.step_slots = vec![0..3, 2..4],
        "step_order",
    ),
    (
        "a transfer stays in its step",
        |plan| plan.slot[2] = 1,
        "step_order",
    ),
    (
        "a slot must exist",
        |plan| plan.slot[3] = 4,
        "slot_range missing",
    ),
    (
        "the last slot of all does not exist",
        |plan| plan.slot[3] = u32::MAX,
        "slot_range missing",
    ),
    (
        "slots are as long as the schedule",
        |plan| plan.slot.truncate(3),
        "columns missing",
    ),
    (
        "light is as long as the schedule",
        |plan| plan.light.truncate(3),
        "columns missing",
    ),
    ("there is light", |plan| plan.light.clear(), NOTHING_LEFT),
    (
        "light is for nothing beyond the schedule",
        |plan| plan.light.push(Light::NONE),
        "columns",
    ),
    (
        "neighbours only is true",
        |plan| plan.schedule.claims.neighbours_only = true,
        "",
    ),
    (
        "two steps are true",
        |plan| plan.schedule.claims.schedule_steps = Some(2),
        "",
    ),
    (
        "three steps are false",
        |plan| plan.schedule.claims.schedule_steps = Some(3),
        "claim",
    ),
    (
        "two chunks are true",
        |plan| plan.schedule.claims.chunks_sent_per_rank = Some(2),
        "",
    ),
    (
        "one chunk is false",
        |plan| plan.schedule.claims.chunks_sent_per_rank = Some(1),
        "claim",
    ),
    (
        "three chunks are false",
        |plan| plan.schedule.claims.chunks_sent_per_rank = Some(3),
        "claim",
    ),
    (
        "the paper's steps are not enforced",
        |plan| plan.schedule.claims.paper_steps = Some(99),
        "",
    ),
];

const NOTHING_LEFT: &str = "columns missing missing missing missing";

#[test]
fn steps_columns_and_claims_must_agree_with_the_schedule() {
    for (claim, change, expected) in CHANGES {
        let mut plan = relay();
        change(&mut plan);
        assert_eq!(&kinds(&plan), expected, "{claim}: {:#?}", verify(&plan));
    }
}

#[test]
fn a_transfer_to_no_neighbour_breaks_the_claim() {
    let mut plan = plan_of_lines(
        FOUR,
        "gather 4 0",
        "0 copy 1 1>0 ccw 0.0\n0 copy 3 3>0 cw 0.0",
    );
    plan.schedule.push(Transfer {
        chunk: 2,
        count: 1,
        source: 2,
        destination: 0,
        action: Action::Copy,
    });
    plan.slot.push(1);
    plan.light.push(WdmLight::towards(Direction::Clockwise));
    plan.step_slots[0].end = 2;
    assert_eq!(kinds(&plan), "");
    plan.schedule.claims.neighbours_only = true;
    let violations = verify(&plan);
    assert_eq!(violations.len(), 1);
    assert_eq!(
        (violations[0].kind, &violations[0].transfers[..]),
        (ViolationKind::Claim, &[2][..])
    );
}

#[test]
fn chunks_that_are_always_sent_together_are_judged_by_one() {
    // 17 times 2^32 - 1 chunks; what is sent again breaks a rule.
    let lines = "0 copy 0+4294967295 0>1 cw 0.0\n".repeat(17);
    let kinds: BTreeSet<ViolationKind> =
        verify(&plan_of_lines(PAIR, "broadcast 2 0 4294967295", &lines))
            .iter()
            .map(|violation| violation.kind)
            .collect();
    assert_eq!(kinds, [ViolationKind::Duplicate].into());
}

#[test]
fn violations_beyond_number_are_counted() {
    // 2^20 - 1 ranks lack the block of each of 2^20: more than fit, and more than anyone reads.
    let fabric = "wdm_ring:ranks=1048576,wavelengths=1";
    let violations = verify(&plan_of_lines(fabric, "all_gather 1048576", ""));
    let missing: u64 = (1 << 20) * ((1 << 20) - 1);
    assert_eq!(violations.len(), 100_001);
    assert_eq!(
        violations[100_000].sentence,
        format!(
            "and at least {} more violations of the kind missing",
            missing - 100_000
        )
    );
}

/// Counts the violations of each kind, including those counted but not listed.
fn tally(plan: &Plan) -> BTreeMap<ViolationKind, u64> {
    let mut found = BTreeMap::new();
    for violation in verify(plan) {
        let words: Vec<&str> = violation.sentence.split(' ').collect();
        let count = match words[..] {
            ["and", "at", "least", more, ..] => more.parse().unwrap(),
            _ => 1,
        };
        *found.entry(violation.kind).or_default() += count;
    }
    found
}

#[test]
fn millions_of_chunks_are_each_accounted_for() {
    use ViolationKind::{Duplicate, Missing};
    let (million, all): (u64, u64) = (1 << 20, u32::MAX.into());
    for (pieces, lines, expected) in [
        (all, String::new(), vec![(Missing, all)]),
        (
            10 * million,
            format!("0 copy 0+{} 0>1 cw 0.0", 10 * million),
            vec![],
        ),
        (
            10 * million,
            format!(
                "0 copy 0+{} 0>1 cw 0.0\n1 copy {}+{} 0>1 cw 0.0",
                7 * million,
                7 * million - 3,
                3 * million - 4
            ),
            vec![(Duplicate, 3), (Missing, 7)],
        ),
        // All that is sent is in a small part of the chunks, six times over.
        (
            all,
            (0..6)
                .map(|slot| format!("{slot} copy {million}+{million} 0>1 cw 0.0\n"))
                .collect(),
            vec![(Duplicate, 5 * million), (Missing, all - million)],
        ),
        (
            all,
            (0..6)
                .map(|slot| format!("{slot} copy 77+{million} 0>1 cw 0.0\n"))
                .collect(),
            vec![(Duplicate, 5 * million), (Missing, all - million)],
        ),
    ] {
        let plan = plan_of_lines(PAIR, &format!("broadcast 2 0 {pieces}"), &lines);
        assert_eq!(
            tally(&plan),
            expected.into_iter().collect(),
            "{pieces} pieces, {lines}"
        );
    }
}

#[test]
fn every_family_with_circuits_has_rules() {
    for family in FAMILIES {
        let Ok(fabric) = Fabric::parse(family.example) else {
            continue;
        };
        if fabric.has_light() {
            let collective = Collective::new(CollectiveKind::Barrier, fabric.ranks()).unwrap();
            let plan = Plan::without_light(&fabric, Schedule::new(collective), "none".into());
            let kinds = verify(&plan).into_iter().map(|one| one.kind);
            assert!(
                !kinds
                    .collect::<Vec<_>>()
                    .contains(&ViolationKind::Unchecked),
                "{fabric}"
            );
        }
    }
}

/// A ring of wavelengths by another name.
#[derive(Debug, PartialEq)]
struct Stranger(WdmRing);

impl Machine for Stranger {
    fn record(&self) -> &'static FamilyRecord {
        const RECORD: FamilyRecord = FamilyRecord {
            name: "stranger",
            ..wdm_ring::RECORD
        };
        &RECORD
    }

    fn spec(&self) -> Spec {
        self.0.spec()
    }

    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        self.0.circuits()
    }
}

#[test]
fn circuits_of_a_family_without_rules_are_not_proved() {
    let mut plan = verified(CollectiveKind::AllGather, "optree", 8, 2);
    let ring = plan.fabric.downcast::<WdmRing>().unwrap().clone();
    plan.fabric = Fabric::new(Stranger(ring));
    let kinds: Vec<ViolationKind> = verify(&plan).iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [ViolationKind::Unchecked]);
}

#[test]
fn every_kind_is_named_and_tested() {
    let mut tested: BTreeSet<&str> = cases()
        .flat_map(|case| case.kinds.split_whitespace())
        .chain(
            CHANGES
                .iter()
                .flat_map(|change| change.2.split_whitespace()),
        )
        .collect();
    // By a_plan_too_large_to_replay_is_not_proved.
    tested.insert(ViolationKind::TooLarge.name());
    // By wss_grid::tasks::tasks_on_the_same_nodes_or_other_machines_do_not_get_along.
    tested.insert(ViolationKind::Allocation.name());
    // By circuits_of_a_family_without_rules_are_not_proved.
    tested.insert(ViolationKind::Unchecked.name());
    // By routes::a_route_must_lead_from_end_to_end_over_links_that_exist.
    tested.insert(ViolationKind::Route.name());
    // By electrical::in_network::only_switches_that_can_multicast_or_add.
    tested.insert(ViolationKind::Multicast.name());
    tested.insert(ViolationKind::Aggregation.name());
    // By rotation_symmetric::an_orbit_must_leave_rank_0.
    tested.insert(ViolationKind::Symmetry.name());
    let names: BTreeSet<&str> = ViolationKind::ALL
        .into_iter()
        .map(ViolationKind::name)
        .collect();
    assert_eq!(names.len(), ViolationKind::ALL.len());
    let untested: Vec<&&str> = names.difference(&tested).collect();
    assert!(untested.is_empty(), "no table breaks {untested:?}");
}

#[test]
fn a_violation_names_what_it_is_about() {
    let plan = plan_of_lines(
        "wdm_ring:ranks=6,wavelengths=2",
        "all_to_all 6",
        "3 copy 4 0>4 cw 0.1
         3 copy 17 2>5 cw 0.1
         4 copy 4 4>0 ccw 0.0
         4 copy 17 5>2 ccw 0.0",
    );
    let collisions: Vec<Violation> = verify(&plan)
        .into_iter()
        .filter(|violation| violation.kind == ViolationKind::Collision)
        .collect();
    let link = |rank, direction| {
        Some(RingLink {
            rank,
            direction,
            fibre: 0,
        })
    };
    assert_eq!(
        collisions[0],
        Violation {
            kind: ViolationKind::Collision,
            transfers: vec![0, 1],
            link: link(2, Direction::Clockwise),
            wavelength: Some(1),
            slot: Some(3),
            rank: None,
            chunk: None,
            sentence: "slot 3: transfers 0 (rank 0 to 4) and 1 (rank 2 to 5) share wavelength 1 \
                       on the clockwise fibre 0 between ranks 2 and 3"
                .into(),
        }
    );
    // 4 to 0 takes the links that start at 4, 3, 2, 1; 5 to 2 those at 5, 4, 3.
    assert_eq!(collisions[1].transfers, [2, 3]);
    assert!(
        [3, 4]
            .map(|rank| link(rank, Direction::CounterClockwise))
            .contains(&collisions[1].link)
    );
    assert_eq!(collisions.len(), 2);
}

#[test]
fn sentences_say_which_rank_lacks_what() {
    let plan = plan_of_lines(
        FOUR,
        "all_reduce 4",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 3>0 cw 0.0
         1 copy 0 0>1 cw 0.0",
    );
    let sentences: Vec<String> = verify(&plan)
        .into_iter()
        .map(|violation| violation.sentence)
        .collect();
    assert_eq!(
        sentences,
        [
            "at the end rank 0 holds chunk 0 without 1 contribution of 4",
            "at the end rank 1 holds chunk 0 without 1 contribution of 4",
            "at the end rank 2 holds chunk 0 without 3 contributions of 4",
            "at the end rank 3 holds chunk 0 without 3 contributions of 4",
        ]
    );
}
