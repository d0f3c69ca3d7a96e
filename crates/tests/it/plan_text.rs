//! The text form of plans: it is read back exactly, and refused with the place of an error.

use opticoll::collective::CollectiveKind::{AllGather, AllReduce};
use opticoll::family::wdm_ring::WdmLight;
use opticoll::plan::{Lightpath, Plan, fold, text};

use crate::{rows, verified, verified_with};

/// Returns the lightpaths sorted, because their order within a slot has no meaning.
fn sorted(plan: &Plan) -> Vec<Lightpath> {
    let mut lightpaths: Vec<Lightpath> = plan.lightpaths().collect();
    lightpaths.sort_unstable();
    lightpaths
}

fn check_round_trip(plan: &Plan) {
    let written = text::write(plan);
    let read = text::read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(sorted(&read), sorted(plan), "{written}");
    assert_eq!(read.step_slots, plan.step_slots);
    assert_eq!(read.fabric, plan.fabric);
    assert_eq!(read.algorithm, plan.algorithm);
    assert_eq!(read.size, plan.size);
    assert_eq!(read.schedule.claims, plan.schedule.claims);
    assert_eq!(read.schedule.collective, plan.schedule.collective);
    assert_eq!(text::write(&read), written, "writing is canonical");
    assert_eq!(opticoll::verify::verify(&read), []);
}

#[test]
fn every_algorithm_is_read_back_exactly() {
    for record in crate::general_algorithms() {
        for (ranks, wavelengths) in [(1, 1), (2, 1), (8, 2), (12, 3), (13, 2)] {
            if (record.accepts)(ranks).is_ok() {
                check_round_trip(&verified(
                    record.collective,
                    record.name,
                    ranks,
                    wavelengths,
                ));
            }
        }
    }
}

#[test]
fn sizes_converters_and_fibres_are_read_back() {
    let fabric = "wdm_ring:ranks=12,wavelengths=2,fibres=3,converters=full";
    let mut plan = verified_with(AllGather, "one_stage", fabric, "auto");
    plan.size = Some("4MiB".parse().unwrap());
    check_round_trip(&plan);
    check_round_trip(&verified_with(
        AllReduce,
        "wrht:group_size=3,striping=true",
        "wdm_ring:ranks=12,wavelengths=5,fibres=2,ports=7",
        "best_fit",
    ));
}

#[test]
fn a_rotated_step_is_one_line() {
    let written = text::write(&verified(AllGather, "ring", 64, 4));
    // 63 steps of 64 transfers: a line for the slot and one for its transfers.
    assert_eq!(
        written
            .lines()
            .filter(|line| line.starts_with("copy"))
            .count(),
        63
    );
    assert!(
        written.contains("copy 0 0>1 cw 0.0 x64 chunk+1 rank+1"),
        "{written}"
    );
}

#[test]
fn a_plan_of_a_million_transfers_stays_small() {
    let written = text::write(&verified(AllGather, "optree", 1024, 64));
    assert!(written.len() < 100_000, "{} bytes", written.len());
}

const GOOD: &str = "opticoll plan 1
collective all_gather ranks=4 root=0 pieces=1
fabric wdm_ring:ranks=4,wavelengths=1
algorithm ring
size 4MiB
claim neighbours_only
steps 1 1 1
slot 0  # the first
copy 0 0>1 cw 0.0 x4 chunk+1 rank+1
slot 1
copy 3 0>1 cw 0.0 x4 chunk+1 rank+1

slot 2
copy 2 0>1 cw 0.0 x4 chunk+1 rank+1
end 12
";

#[test]
fn a_plan_written_by_hand_is_read_and_verified() {
    let plan = text::read(GOOD).unwrap();
    assert_eq!((plan.len(), plan.slots()), (12, 3));
    assert_eq!(opticoll::verify::verify(&plan), []);
}

#[test]
fn repetitions_of_equal_lightpaths_are_limited() {
    let equal = |repetition: &str, count: u32| {
        GOOD.replace("x4 chunk+1 rank+1", repetition)
            .replace("end 12", &format!("end {count}"))
    };
    // Four chunks and four ranks: no more than 64 copies differ.
    for repetition in [
        "x134217728",
        "x65536 x2048",
        "x134217728 chunk+4",
        "x134217728 rank+1",
    ] {
        let refused = text::read(&equal(repetition, 134_217_728)).unwrap_err();
        assert!(refused.to_string().contains("differ"), "{refused}");
    }
    let first = GOOD.replacen("x4 chunk+1 rank+1", "x3", 1);
    let read = text::read(&first.replace("end 12", "end 11")).unwrap();
    assert_eq!(read.len(), 11);
}

#[test]
fn repetitions_nest_from_the_inside_out() {
    let written = GOOD
        .replace("ranks=4,wavelengths=1", "ranks=4,wavelengths=2")
        .replace(
            "copy 0 0>1 cw 0.0 x4 chunk+1 rank+1",
            "copy 0 0>1 cw 0.0 x2 destination+1 wavelength+1 x4 rank+1 chunk+1",
        )
        .replace("end 12", "end 16");
    let plan = text::read(&written).unwrap();
    let ends: Vec<(u32, u32, u16)> = plan
        .lightpaths()
        .filter(|path| path.slot == 0)
        .map(|path| {
            (
                path.transfer.source,
                path.transfer.destination,
                WdmLight::from(path.light).wavelength,
            )
        })
        .collect();
    let expected = [
        (0, 1, 0),
        (0, 2, 1),
        (1, 2, 0),
        (1, 3, 1),
        (2, 3, 0),
        (2, 0, 1),
        (3, 0, 0),
        (3, 1, 1),
    ];
    assert_eq!(ends, expected);
}

/// Words of the file above, their replacement, the line and column of the error, and words of the
/// error.
const WRONG: &str = r"
opticoll plan 1 | opticoll plan 2 | 1 | 1 | begins with `opticoll plan 1`
all_gather | all_gatter | 2 | 12 | did you mean `all_gather`
ranks=4 root | ranks=0 root | 2 | 23 | at least one rank
root=0 | root=4 | 2 | 31 | does not exist
wdm_ring:ranks=4 | wdm_ring:ranks=5 | 3 | 8 | the fabric has 5 ranks
size 4MiB | size 4M | 5 | 6 | 4MB or 4MiB
neighbours_only | neighbors_only | 6 | 7 | known claims are
size 4MiB | size 4MiB\nsize 5MiB | 6 | 6 | one size
claim neighbours_only | claim neighbours_only\nclaim neighbours_only | 7 | 7 | occurs twice
steps 1 1 1 | steps 1 -1 1 | 7 | 9 | not a number, or is too large
slot 1 | slot 7 | 10 | 6 | 3 slots, counted from 0
slot 1 | slot 0 | 10 | 6 | increasing order
slot 0  # the first\n |  | 8 | 1 | needs a line `slot NUMBER`
copy 0 0>1 | move 0 0>1 | 9 | 1 | expected slot, copy, reduce, multicast, aggregate or end
copy 0 0>1 | copy 0 0-1 | 9 | 8 | SOURCE>DESTINATION
copy 0 0>1 | copy 0 0>4 | 9 | 8 | rank 4 does not exist
copy 0 0>1 | copy 4 0>1 | 9 | 6 | chunk 4 does not exist
copy 0 0>1 | copy +1 0>1 | 9 | 6 | not a number, or is too large
0>1 cw 0.0 | 0>1 up 0.0 | 9 | 12 | expected cw or ccw
0>1 cw 0.0 | 0>1 cw 0 | 9 | 15 | FIBRE.WAVELENGTH
0>1 cw 0.0 | 0>1 cw 0.99999 | 9 | 15 | wavelength must be at most 65534
0>1 cw 0.0 | 0>1 cw 0.65535 | 9 | 15 | wavelength must be at most 65534
cw 0.0 x4 | cw 0.0 x4294967295 | 9 | 19 | says 12 transfers
end 12 | end 9999999999 | 15 | 5 | at most 134217728
x4 chunk+1 rank+1\nslot 1 | x0 chunk+1 rank+1\nslot 1 | 9 | 19 | at least one lightpath
x4 chunk+1 rank+1\nslot 1 | x4 chunk+1 rnk+1\nslot 1 | 9 | 30 | one of chunk, rank
x4 chunk+1 rank+1\nslot 1 | x4 chunk+1 rank-1\nslot 1 | 9 | 30 | expected a shift
x4 chunk+1 rank+1\nslot 1 | x4 chunk+1 turn+9\nslot 1 | 9 | 30
    | `turn+9`: a turn on 4 ranks is 0 to 3; turn+1 leads to the same ranks
x4 chunk+1 rank+1\nslot 1 | x4 chunk+1 slot+1\nslot 1 | 9 | 30
    | the last of 4 copies would be in slot 3, but the slots of the plan are 0 to 2: write at most x3
end 12 | end 13 | 15 | 5 | holds 12 transfers
end 12\n |  | 15 | 1 | cut short
end 12\n | end 12\ncopy 0 0>1 cw 0.0\n | 16 | 1 | nothing may follow
";

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for [from, to, line, column, problem] in rows(WRONG) {
        let [from, to] = [from, to].map(|words| words.replace(r"\n", "\n"));
        let broken = GOOD.replacen(&from, &to, 1);
        assert_ne!(broken, GOOD, "`{from}` is in the file");
        let error = text::read(&broken).expect_err(&to);
        let place = [error.line, error.column].map(|number| number.to_string());
        assert_eq!(place, [line, column], "{from} -> {to}: {error}");
        assert!(error.problem.contains(problem), "{from} -> {to}: {error}");
    }
}

#[test]
fn hostile_files_are_refused_quickly() {
    let deep = GOOD.replace(
        "x4 chunk+1 rank+1\nslot 1",
        &format!("{}\nslot 1", "x1 ".repeat(100_000)),
    );
    let error = text::read(&deep).unwrap_err();
    assert!(
        error.problem.contains("at most 32 repetitions"),
        "{}",
        error.problem
    );
    let wide = GOOD.replace(
        "steps 1 1 1",
        &format!("steps 1 1 1{}", " 0".repeat(200_000)),
    );
    assert_eq!(text::read(&wide).unwrap().slots(), 3);
}

#[test]
fn an_algorithm_cannot_forge_the_head() {
    let mut plan = verified(AllGather, "ring", 4, 1);
    plan.algorithm = "mine # or not\nclaim paper_steps 1".into();
    let read = text::read(&text::write(&plan)).unwrap();
    assert_eq!(read.algorithm, "mine   or not claim paper_steps 1");
    assert_eq!(read.schedule.claims, plan.schedule.claims);
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let written = text::write(&verified(AllGather, "optree", 16, 2));
    for length in 0..written.trim_end().len() {
        assert!(
            text::read(&written[..length]).is_err(),
            "cut after {length} bytes"
        );
    }
}

#[test]
fn plans_are_the_same_in_whatever_order_a_step_is_stored() {
    let plan = verified(AllGather, "ring_bidirectional", 12, 3);
    let whole = plan.clone();
    let read = text::read(&text::write(&plan)).unwrap();
    assert!(whole.is_same(&read));
    let folded = fold(&plan).unwrap();
    assert!(whole.is_same(&folded) && folded.is_same(&whole));
    // Other light, another size or algorithm is another plan.
    let other = |change: &dyn Fn(&mut Plan)| {
        let mut other = read.clone();
        change(&mut other);
        !whole.is_same(&other)
    };
    let lights = &read.light;
    let another = *lights.iter().find(|one| **one != lights[0]).unwrap();
    assert!(other(&|plan| plan.light[0] = another));
    assert!(other(&|plan| plan.size = Some("1MiB".parse().unwrap())));
    assert!(other(&|plan| plan.algorithm = "by hand".into()));
    assert!(!whole.is_same(&verified(AllGather, "ring", 12, 3)));
}
