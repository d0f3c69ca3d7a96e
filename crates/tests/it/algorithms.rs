//! Every algorithm: the number of its steps against theory, and its refusals, each with a reason.

use opticoll::algorithms::records;
use opticoll::collective::CollectiveKind;
use opticoll::collective::CollectiveKind::*;

use crate::{plan_with, rows, verified};

#[test]
fn baselines_of_table_1_constructed() {
    // One block per wavelength and slot: what the paper prints as steps, except for the one-stage
    // algorithm, where its 128 should be 1024^2 / (8 * 64) = 2048.
    for (algorithm, slots) in [
        ("ring", 1023),
        ("neighbour_exchange", 512),
        ("ring_bidirectional", 512),
        ("one_stage", 2048),
    ] {
        assert_eq!(
            verified(AllGather, algorithm, 1024, 64).slots(),
            slots,
            "{algorithm}"
        );
    }
}

#[test]
fn small_examples_of_the_paper_and_what_beats_them() {
    for (algorithm, slots) in [
        ("one_stage", 16),
        ("optree", 12),
        ("neighbour_exchange", 8),
        ("ring_bidirectional", 8),
    ] {
        assert_eq!(
            verified(AllGather, algorithm, 16, 2).slots(),
            slots,
            "{algorithm}"
        );
    }
    // With one wavelength the two blocks of a neighbour-exchange step need two slots.
    assert_eq!(verified(AllGather, "neighbour_exchange", 16, 1).slots(), 15);
}

#[test]
fn names_are_one_whatever_their_case_and_hyphens() {
    for spelling in ["one_stage", "one-stage", "One_Stage", "ONESTAGE"] {
        let fabric = "WDM-Ring:ranks=4,wavelengths=2";
        let plan = plan_with(AllGather, spelling, fabric, "First-Fit").unwrap();
        assert_eq!(plan.schedule.steps(), 1, "{spelling}");
    }
    assert!("every-step".parse::<opticoll::simulate::Policy>().is_ok());
}

#[test]
fn pieces_are_the_algorithms_choice() {
    let fabric = opticoll::fabric::Fabric::parse("wdm_ring:ranks=4,wavelengths=1").unwrap();
    let collective = opticoll::collective::Collective::new(AllGather, 4).unwrap();
    let collective = collective.with_pieces(2).unwrap();
    let refused = opticoll::algorithms::build(&"ring".parse().unwrap(), collective, &fabric);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("request one piece")
    );
}

/// A collective, an algorithm, ranks of a ring on which it does not run, and words of the error.
const REFUSED: &str = r"
all_gather | neighbour_exchange | 7 | must be even; ring_bidirectional runs on any
all_gather | wrht:group_size=1 | 7 | from 2
all_reduce | wrht:striping=maybe | 7 | true or false
all_reduce | optree | 7 | unknown algorithm `optree` for all_reduce
all_gather | rign | 7 | did you mean `ring`
all_gather | ring:k=3 | 7 | known are order, seed
all_gather | ring_bidirectional:k=3 | 7 | it has none
all_gather | ring | 100000 | 9999900000 transfers among 100000 ranks are too many
all_reduce | ring | 100000 | too many
all_to_all | direct | 20000 | too many
all_to_all | pairwise:order=xor | 6 | order=shift runs on any
all_to_all | pairwise:order=ring | 6 | must be shift or xor
all_reduce | halving_doubling:order=up | 8 | must be near or far
all_gather | direct:order=xor | 8 | must be shift or at_once
broadcast | chain:segments=0 | 8 | must be from 1
broadcast | double_tree:segments=x | 8 | must be a whole number
broadcast | chain:segments=4294967295 | 8 | too many
all_reduce | double_binary_tree:segments=4294967295 | 8 | too many
all_to_all | bruck | 20000 | too many
barrier | ring | 8 | unknown algorithm `ring` for barrier
all_gather | optree:k=11 | 1024 | too many stages
all_gather | optree:k=0 | 1024 | from 1 to
all_gather | optree:k=two | 1024 | auto, paper or a whole number
all_gather | optree:radices=4x4 | 1024 | makes 16 leaves
all_gather | optree:radices=4x1x4 | 1024 | whole numbers from 2
all_gather | optree:radices=32x32x2 | 1024 | suffice
all_gather | optree:radices=4x4x4x4x4,k=5 | 1024 | one of both
all_gather | optree:radix=4 | 1024 | did you mean `radices`
all_gather | optre | 1024 | did you mean `optree`
all_gather | optree:depth=paper | 7 | undefined for 7 ranks
";

#[test]
fn refusals_say_why_and_what_would_do() {
    for [kind, algorithm, ranks, hint] in rows(REFUSED) {
        let fabric = format!("wdm_ring:ranks={ranks},wavelengths=2");
        let error = plan_with(kind.parse().unwrap(), algorithm, &fabric, "auto").unwrap_err();
        assert!(error.contains(hint), "{algorithm}: {error}");
    }
}

#[test]
fn every_collective_has_an_algorithm_and_every_record_is_complete() {
    for kind in CollectiveKind::ALL {
        assert!(
            crate::general_algorithms().any(|record| record.collective == kind),
            "{kind}"
        );
    }
    for record in records() {
        let texts = [record.name, record.label, record.summary, record.citation];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", record.name);
        let same = |other: &&opticoll::algorithms::Algorithm| {
            (other.name, other.collective) == (record.name, record.collective)
        };
        assert_eq!(
            records().iter().filter(same).count(),
            1,
            "{} is declared once",
            record.name
        );
    }
}
