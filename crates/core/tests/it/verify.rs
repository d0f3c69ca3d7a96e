//! The verifier on small plans made by hand: the sound ones pass, and each of the others breaks
//! one rule and is told so.

use std::collections::BTreeSet;

use opticoll::collective::Collective;
use opticoll::fabric::{Direction, Fabric};
use opticoll::plan::{CONVERTED, Plan};
use opticoll::schedule::{Action, Schedule, Transfer};
use opticoll::verify::{Link, Violation, ViolationKind, verify};

/// A plan from lines such as `3 copy 5+2 0>1 cw 0.7`: in slot 3 the chunks 5 and 6 go from rank 0
/// to rank 1, clockwise on fibre 0 and wavelength 7. Each slot is a step of its own, but for lines
/// that begin with step and slot, such as `1:3`. `collective` is `kind ranks root pieces`, the last
/// two optional.
pub(crate) fn by_hand(fabric: &str, collective: &str, lines: &str) -> Plan {
    let words: Vec<&str> = collective.split_whitespace().collect();
    let number = |word: usize, default: u32| words.get(word).map_or(default, |word| parse(word));
    let collective = Collective::new(words[0].parse().unwrap(), number(1, 0))
        .and_then(|collective| collective.with_root(number(2, 0)))
        .and_then(|collective| collective.with_pieces(number(3, 1)))
        .unwrap();
    let mut plan = Plan {
        fabric: Fabric::parse(fabric).unwrap(),
        schedule: Schedule::new(collective),
        algorithm: "by hand".into(),
        size: None,
        direction: Vec::new(),
        fibre: Vec::new(),
        wavelength: Vec::new(),
        slot: Vec::new(),
        step_slots: Vec::new(),
    };
    for line in lines.lines() {
        let [time, action, chunks, ends, way, channel] =
            line.split_whitespace().collect::<Vec<_>>().try_into().expect(line);
        let (step, slot) = time.split_once(':').unwrap_or((time, time));
        let (chunk, count) = chunks.split_once('+').unwrap_or((chunks, "1"));
        let (source, destination) = ends.split_once('>').expect(line);
        let (fibre, wavelength) = channel.split_once('.').expect(line);
        while plan.schedule.steps() <= parse::<usize>(step) {
            plan.schedule.begin_step();
        }
        plan.schedule.push(Transfer {
            chunk: parse(chunk),
            count: parse(count),
            source: parse(source),
            destination: parse(destination),
            action: match action {
                "copy" => Action::Copy,
                "reduce" => Action::Reduce,
                _ => panic!("{line}"),
            },
        });
        plan.slot.push(parse(slot));
        plan.direction.push(match way {
            "cw" => Direction::Clockwise,
            "ccw" => Direction::CounterClockwise,
            _ => panic!("{line}"),
        });
        plan.fibre.push(parse(fibre));
        plan.wavelength.push(if wavelength == "*" { CONVERTED } else { parse(wavelength) });
    }
    plan.step_slots = slots_of_steps(&plan);
    plan
}

fn parse<Number: std::str::FromStr>(word: &str) -> Number
where
    Number::Err: std::fmt::Debug,
{
    word.parse().unwrap_or_else(|error| panic!("{word}: {error:?}"))
}

/// The slots of each step: up to the last in which it has a transfer.
pub(crate) fn slots_of_steps(plan: &Plan) -> Vec<std::ops::Range<u32>> {
    let mut next = 0;
    (0..plan.schedule.steps())
        .map(|step| {
            let start = next;
            let last = plan.schedule.step(step).map(|index| plan.slot[index] + 1).max();
            next = next.max(last.unwrap_or(next));
            start..next
        })
        .collect()
}

/// The names of the kinds of violations, in the order of the report.
pub(crate) fn kinds(plan: &Plan) -> String {
    let names: Vec<&str> = verify(plan).iter().map(|violation| violation.kind.name()).collect();
    names.join(" ")
}

/// A claim, a fabric, a collective, the lightpaths, and the kinds of the violations.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

fn check(rows: &[Row]) {
    for (claim, fabric, collective, lines, expected) in rows {
        let plan = by_hand(fabric, collective, lines);
        assert_eq!(&kinds(&plan), expected, "{claim}: {:#?}", verify(&plan));
    }
}

const PAIR: &str = "wdm_ring:ranks=2,wavelengths=1";
const THREE: &str = "wdm_ring:ranks=3,wavelengths=1";
const FOUR: &str = "wdm_ring:ranks=4,wavelengths=1";
const WIDE: &str = "wdm_ring:ranks=4,wavelengths=4,fibres=2";

const SOUND: &[Row] = &[
    ("one rank has nothing to do", "wdm_ring:ranks=1,wavelengths=1", "all_gather 1", "", ""),
    ("one rank has nothing to reduce", "wdm_ring:ranks=1,wavelengths=1", "all_reduce 1", "", ""),
    (
        "a ring of three gathers",
        THREE,
        "all_gather 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 1 1>2 cw 0.0
         0 copy 2 2>0 cw 0.0
         1 copy 2 0>1 cw 0.0
         1 copy 0 1>2 cw 0.0
         1 copy 1 2>0 cw 0.0",
        "",
    ),
    (
        "a broadcast may relay in the next step",
        THREE,
        "broadcast 3 1",
        "0 copy 0 1>2 cw 0.0
         1 copy 0 2>0 cw 0.0",
        "",
    ),
    (
        "a chunk in pieces may travel in parts",
        PAIR,
        "broadcast 2 0 5",
        "0 copy 0+3 0>1 cw 0.0
         0 copy 3+2 0>1 ccw 0.0",
        "",
    ),
    (
        "relays may keep what they pass on",
        FOUR,
        "scatter 4",
        "0 copy 1 0>1 cw 0.0
         0 copy 3 0>3 ccw 0.0
         1 copy 2 0>1 cw 0.0
         2 copy 2 1>2 cw 0.0",
        "",
    ),
    (
        "a gather ends at its root",
        THREE,
        "gather 3 2",
        "0 copy 0 0>2 ccw 0.0
         0 copy 1 1>2 cw 0.0",
        "",
    ),
    (
        "two ranks swap blocks",
        PAIR,
        "all_to_all 2",
        "0 copy 1 0>1 cw 0.0
         0 copy 2 1>0 cw 0.0",
        "",
    ),
    (
        "several reductions may reach a rank at once",
        THREE,
        "reduce 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>0 cw 0.0",
        "",
    ),
    (
        "two ranks may reduce into each other at once",
        PAIR,
        "all_reduce 2",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 1>0 cw 0.0",
        "",
    ),
    (
        "two ranks may reduce into each other one after the other in a step",
        PAIR,
        "all_reduce 2",
        "0:0 reduce 0 0>1 cw 0.0
         0:1 reduce 0 1>0 cw 0.0",
        "",
    ),
    (
        "a result may be copied over its parts",
        THREE,
        "all_reduce 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>0 cw 0.0
         1 copy 0 0>1 cw 0.0
         1 copy 0 0>2 ccw 0.0",
        "",
    ),
    (
        "each rank may end with its own part",
        PAIR,
        "reduce_scatter 2",
        "0 reduce 0 1>0 cw 0.0
         0 reduce 1 0>1 cw 0.0",
        "",
    ),
    (
        "a reduction sends what was there at the start of the step",
        // Rank 1 sends {1}, not {1, 2}, so that {2} is still wanted.
        THREE,
        "reduce 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>1 ccw 0.0
         1 reduce 0 2>0 cw 0.0",
        "",
    ),
    (
        "arcs that only touch share a wavelength",
        FOUR,
        "all_to_all 4",
        "0 copy 2 0>2 cw 0.0
         0 copy 8 2>0 cw 0.0
         0 copy 7 1>3 ccw 0.0
         0 copy 13 3>1 ccw 0.0
         1 copy 1 0>1 cw 0.0
         1 copy 6 1>2 cw 0.0
         1 copy 11 2>3 cw 0.0
         1 copy 12 3>0 cw 0.0
         1 copy 3 0>3 ccw 0.0
         1 copy 4 1>0 ccw 0.0
         1 copy 9 2>1 ccw 0.0
         1 copy 14 3>2 ccw 0.0",
        "",
    ),
    (
        "fibres and wavelengths keep light apart",
        WIDE,
        "gather 4 0",
        "0 copy 1 1>0 cw 0.0
         0 copy 2 2>0 cw 0.3
         0 copy 3 3>0 cw 1.0",
        "",
    ),
    (
        "converters leave only the number of lightpaths",
        "wdm_ring:ranks=4,wavelengths=2,converters=full",
        "gather 4 0",
        "0 copy 1 1>0 ccw 0.*
         0 copy 2 2>0 ccw 0.*
         1 copy 3 3>0 ccw 0.1",
        "",
    ),
    (
        "ports may all be in use",
        "wdm_ring:ranks=3,wavelengths=1,ports=2",
        "gather 3 0",
        "0 copy 1 1>0 ccw 0.0
         0 copy 2 2>0 cw 0.0",
        "",
    ),
];

#[test]
fn what_is_sound_passes() {
    check(SOUND);
}

const DATA: &[Row] = &[
    (
        "an empty plan leaves every rank without the others' blocks",
        PAIR,
        "all_gather 2",
        "",
        "missing missing",
    ),
    (
        "an empty plan leaves every rank without the others' contributions",
        THREE,
        "all_reduce 3",
        "",
        "missing missing missing",
    ),
    ("an empty plan leaves the root without contributions", THREE, "reduce 3", "", "missing"),
    (
        "a block that does not arrive is missing",
        THREE,
        "gather 3 2",
        "0 copy 0 0>2 ccw 0.0",
        "missing",
    ),
    (
        "a rank cannot send what it does not hold",
        THREE,
        "broadcast 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 2>1 ccw 0.0
         1 copy 0 1>2 cw 0.0",
        "not_held duplicate",
    ),
    (
        "a rank cannot send what it receives later",
        THREE,
        "broadcast 3",
        "0 copy 0 1>2 cw 0.0
         1 copy 0 0>1 cw 0.0",
        "not_held",
    ),
    (
        "a rank cannot pass on in the step of arrival",
        THREE,
        "broadcast 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 1>2 cw 0.0",
        "same_step_forward",
    ),
    (
        "a rank cannot pass on in the step of arrival, not even in a later slot",
        THREE,
        "broadcast 3",
        "0:0 copy 0 0>1 cw 0.0
         0:1 copy 0 1>2 cw 0.0",
        "same_step_forward",
    ),
    (
        "a rank cannot pass on in the step of arrival, however the lines are ordered",
        THREE,
        "broadcast 3",
        "0 copy 0 1>2 cw 0.0
         0 copy 0 0>1 cw 0.0",
        "same_step_forward",
    ),
    (
        "what is not held is reported once, not for all that follows",
        FOUR,
        "broadcast 4",
        "1 copy 0 1>2 cw 0.0
         2 copy 0 2>3 cw 0.0",
        "not_held missing",
    ),
    (
        "a second arrival is a duplicate",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.0
         1 copy 0 0>1 cw 0.0",
        "duplicate",
    ),
    (
        "two arrivals in one step are a duplicate",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>1 ccw 0.0",
        "duplicate",
    ),
    (
        "the origin needs no copy of its own block",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.0
         1 copy 0 1>0 cw 0.0",
        "duplicate",
    ),
    (
        "each chunk of a range counts",
        PAIR,
        "broadcast 2 0 4",
        "0 copy 0+3 0>1 cw 0.0
         1 copy 2+2 0>1 cw 0.0",
        "duplicate",
    ),
    (
        "nothing is reduced in a collective that combines nothing",
        PAIR,
        "broadcast 2",
        "0 reduce 0 0>1 cw 0.0",
        "wrong_action",
    ),
    (
        "no contribution counts twice",
        THREE,
        "reduce 3",
        "0 reduce 0 2>1 ccw 0.0
         1 reduce 0 1>0 ccw 0.0
         1 reduce 0 2>0 cw 0.0",
        "double_reduction",
    ),
    (
        "a doubled reduction counts twice",
        PAIR,
        "reduce 2",
        "0 reduce 0 1>0 cw 0.0
         0 reduce 0 1>0 ccw 0.0",
        "double_reduction",
    ),
    (
        "what was there at the start of the step is what is sent",
        THREE,
        "reduce 3",
        "0 reduce 0 2>1 ccw 0.0
         0 reduce 0 1>0 ccw 0.0",
        "missing",
    ),
    (
        "a copy must not drop what the receiver had",
        PAIR,
        "all_reduce 2",
        "0 copy 0 0>1 cw 0.0",
        "lost_contribution missing missing",
    ),
    (
        "a copy of the same is a duplicate",
        PAIR,
        "all_reduce 2",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 1>0 cw 0.0
         1 copy 0 0>1 cw 0.0",
        "duplicate",
    ),
    (
        "a copy arrives alone",
        FOUR,
        "all_reduce 4",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 3>2 ccw 0.0
         1 reduce 0 2>0 cw 0.0
         2 copy 0 0>1 cw 0.0
         2 copy 0 0>3 ccw 0.0
         3 copy 0 1>2 cw 0.0
         3 copy 0 3>2 ccw 0.0",
        "copy_conflict",
    ),
    (
        "a copy and a reduction do not arrive together",
        THREE,
        "all_reduce 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>0 cw 0.0
         1 copy 0 0>1 cw 0.0
         1 copy 0 0>2 ccw 0.0
         1 reduce 0 1>2 cw 0.0",
        "copy_conflict",
    ),
];

#[test]
fn every_rank_must_end_with_what_the_collective_demands() {
    check(DATA);
}

const RESOURCES: &[Row] = &[
    (
        "two lightpaths on one wavelength collide",
        FOUR,
        "gather 4 3",
        "0 copy 0 0>3 cw 0.0
         0 copy 1 1>3 cw 0.0
         1 copy 2 2>3 cw 0.0",
        "collision",
    ),
    (
        "they collide where arcs wrap around",
        FOUR,
        "gather 4 1",
        "0 copy 2 2>1 cw 0.0
         0 copy 0 0>1 cw 0.0
         1 copy 3 3>1 cw 0.0",
        "collision",
    ),
    (
        "they collide counter-clockwise where arcs wrap around",
        FOUR,
        "gather 4 2",
        "0 copy 1 1>2 ccw 0.0
         0 copy 3 3>2 ccw 0.0
         0 copy 0 0>2 ccw 0.0",
        "collision collision collision",
    ),
    (
        "each pair that meets is one collision",
        FOUR,
        "gather 4 3",
        "0 copy 0 0>3 cw 0.0
         0 copy 1 1>3 cw 0.0
         0 copy 2 2>3 cw 0.0",
        "collision collision collision",
    ),
    (
        "light may not use more ports than a rank has to send",
        "wdm_ring:ranks=3,wavelengths=2,ports=1",
        "broadcast 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 ccw 0.0",
        "ports",
    ),
    (
        "light may not use more ports than a rank has to receive",
        "wdm_ring:ranks=3,wavelengths=2,ports=1",
        "gather 3 0",
        "0 copy 1 1>0 ccw 0.0
         0 copy 2 2>0 cw 0.0",
        "ports",
    ),
    (
        "light keeps its wavelength where nothing converts it",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.*",
        "conversion",
    ),
    (
        "converted light needs a free wavelength on every link",
        "wdm_ring:ranks=4,wavelengths=2,converters=full",
        "gather 4 0",
        "0 copy 1 1>0 ccw 0.*
         0 copy 2 2>0 ccw 0.*
         0 copy 3 3>0 ccw 0.1",
        "overload",
    ),
    (
        "converted light is counted where it wraps around",
        "wdm_ring:ranks=4,wavelengths=1,converters=full",
        "gather 4 1",
        "0 copy 2 2>1 cw 0.*
         0 copy 0 0>1 cw 0.*
         0 copy 3 3>1 ccw 0.*",
        "overload",
    ),
];

#[test]
fn light_needs_a_channel_of_its_own_and_ports_at_its_ends() {
    check(RESOURCES);
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
    ] {
        let plan = by_hand(
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

const FORM: &[Row] = &[
    (
        "a source must be a rank",
        PAIR,
        "broadcast 2",
        "0 copy 0 2>1 cw 0.0
         0 copy 0 0>1 cw 0.0",
        "rank_range",
    ),
    (
        "a destination must be a rank",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>4294967295 cw 0.0
         0 copy 0 0>1 cw 0.0",
        "rank_range",
    ),
    (
        "the collective and the fabric have the same ranks",
        THREE,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.0",
        "rank_count",
    ),
    (
        "a lightpath goes somewhere else",
        PAIR,
        "broadcast 2",
        "0 copy 0 1>1 cw 0.0
         0 copy 0 0>1 cw 0.0",
        "self_transfer",
    ),
    (
        "a chunk must exist",
        PAIR,
        "broadcast 2 0 3",
        "0 copy 0+3 0>1 cw 0.0
         1 copy 3 0>1 cw 0.0
         2 copy 4294967295 0>1 cw 0.0
         3 copy 1+4294967295 0>1 cw 0.0
         4 copy 0+0 0>1 cw 0.0",
        "chunk_range chunk_range chunk_range chunk_range",
    ),
    ("a fibre must exist", PAIR, "broadcast 2", "0 copy 0 0>1 cw 1.0", "fibre_range"),
    ("a wavelength must exist", PAIR, "broadcast 2", "0 copy 0 0>1 cw 0.1", "wavelength_range"),
    (
        "dark lightpaths collide with nothing",
        PAIR,
        "broadcast 2 0 2",
        "0 copy 0 0>1 cw 255.65534
         0 copy 1 0>1 cw 255.65534",
        "fibre_range wavelength_range fibre_range wavelength_range",
    ),
];

#[test]
fn every_entry_must_be_in_range() {
    check(FORM);
}

/// A sound plan, changed.
type Change = (&'static str, fn(&mut Plan), &'static str);

/// Two steps of two slots: rank 0 hands two chunks to rank 1, which hands them to rank 2.
fn relay() -> Plan {
    by_hand(
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
    ("a step may take no slot", |plan| plan.schedule.begin_step(), "step_order"),
    (
        "an empty step may take no slot",
        |plan| {
            plan.schedule.begin_step();
            plan.step_slots.push(4..4);
        },
        "",
    ),
    ("an empty slot does no harm", |plan| plan.step_slots[1] = 2..5, ""),
    ("steps leave no gap", |plan| plan.step_slots[1] = 3..4, "step_order step_order"),
    ("steps start at 0", |plan| plan.step_slots[0] = 1..2, "step_order step_order"),
    (
        "steps do not end before they start",
        |plan| plan.step_slots = vec![0..2, 2..0],
        // Without slots no transfer has a place in time, and nothing arrives.
        "step_order slot_range slot_range slot_range slot_range \
         missing missing missing missing",
    ),
    ("steps do not overlap", |plan| plan.step_slots = vec![0..3, 2..4], "step_order"),
    ("a transfer stays in its step", |plan| plan.slot[2] = 1, "step_order"),
    ("a slot must exist", |plan| plan.slot[3] = 4, "slot_range missing"),
    ("the last slot of all does not exist", |plan| plan.slot[3] = u32::MAX, "slot_range missing"),
    ("slots are as long as the schedule", |plan| plan.slot.truncate(3), "columns missing"),
    ("fibres are as long as the schedule", |plan| plan.fibre.truncate(3), "columns missing"),
    ("directions are as long as the schedule", |plan| plan.direction.clear(), NOTHING_LEFT),
    ("wavelengths are as long as the schedule", |plan| plan.wavelength.push(0), "columns"),
    ("neighbours only is true", |plan| plan.schedule.claims.neighbours_only = true, ""),
    ("two steps are true", |plan| plan.schedule.claims.schedule_steps = Some(2), ""),
    ("three steps are false", |plan| plan.schedule.claims.schedule_steps = Some(3), "claim"),
    ("two chunks are true", |plan| plan.schedule.claims.chunks_sent_per_rank = Some(2), ""),
    ("one chunk is false", |plan| plan.schedule.claims.chunks_sent_per_rank = Some(1), "claim"),
    ("three chunks are false", |plan| plan.schedule.claims.chunks_sent_per_rank = Some(3), "claim"),
    ("the paper's steps are not enforced", |plan| plan.schedule.claims.paper_steps = Some(99), ""),
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
    let mut plan = by_hand(FOUR, "gather 4 0", "0 copy 1 1>0 ccw 0.0\n0 copy 3 3>0 cw 0.0");
    plan.schedule.push(Transfer {
        chunk: 2,
        count: 1,
        source: 2,
        destination: 0,
        action: Action::Copy,
    });
    plan.slot.push(1);
    plan.direction.push(Direction::Clockwise);
    plan.fibre.push(0);
    plan.wavelength.push(0);
    plan.step_slots = slots_of_steps(&plan);
    assert_eq!(kinds(&plan), "");
    plan.schedule.claims.neighbours_only = true;
    let violations = verify(&plan);
    assert_eq!(violations.len(), 1);
    assert_eq!((violations[0].kind, &violations[0].transfers[..]), (ViolationKind::Claim, &[2][..]));
}

#[test]
fn a_plan_too_large_to_replay_is_not_proved() {
    // 17 times the 2^32 - 1 chunks are more than 2^36.
    let lines = "0 copy 0+4294967295 0>1 cw 0.0\n".repeat(17);
    let kinds: BTreeSet<ViolationKind> = verify(&by_hand(PAIR, "broadcast 2 0 4294967295", &lines))
        .iter()
        .map(|violation| violation.kind)
        .collect();
    assert_eq!(kinds, [ViolationKind::Collision, ViolationKind::TooLarge].into());
}

#[test]
fn violations_beyond_number_are_counted() {
    // 2^20 - 1 ranks lack the block of each of 2^20: more than fit, and more than anyone reads.
    let fabric = "wdm_ring:ranks=1048576,wavelengths=1";
    let violations = verify(&by_hand(fabric, "all_gather 1048576", ""));
    let missing: u64 = (1 << 20) * ((1 << 20) - 1);
    assert_eq!(violations.len(), 100_001);
    assert_eq!(
        violations[100_000].sentence,
        format!("and at least {} more violations of the kind missing", missing - 100_000)
    );
}

#[test]
fn every_kind_is_named_and_tested() {
    let mut tested: BTreeSet<&str> = [SOUND, DATA, RESOURCES, FORM]
        .into_iter()
        .flatten()
        .flat_map(|row| row.4.split_whitespace())
        .chain(CHANGES.iter().flat_map(|change| change.2.split_whitespace()))
        .collect();
    // By a_plan_too_large_to_replay_is_not_proved.
    tested.insert(ViolationKind::TooLarge.name());
    let names: BTreeSet<&str> = ViolationKind::ALL.into_iter().map(ViolationKind::name).collect();
    assert_eq!(names.len(), ViolationKind::ALL.len());
    let untested: Vec<&&str> = names.difference(&tested).collect();
    assert!(untested.is_empty(), "no table breaks {untested:?}");
}

#[test]
fn a_violation_names_what_it_is_about() {
    let plan = by_hand(
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
    let link = |rank, direction| Some(Link { rank, direction, fibre: 0 });
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
    assert!([3, 4].map(|rank| link(rank, Direction::CounterClockwise)).contains(&collisions[1].link));
    assert_eq!(collisions.len(), 2);
}

#[test]
fn sentences_say_which_rank_lacks_what() {
    let plan = by_hand(
        FOUR,
        "all_reduce 4",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 3>0 cw 0.0
         1 copy 0 0>1 cw 0.0",
    );
    let sentences: Vec<String> =
        verify(&plan).into_iter().map(|violation| violation.sentence).collect();
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
