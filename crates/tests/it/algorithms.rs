//! Every algorithm: its steps from theory, and refusals with a reason.

use opticoll::algorithms::records;
use opticoll::collective::CollectiveKind;
use opticoll::collective::CollectiveKind::*;
use opticoll::family::wdm_ring::WdmRing;

use crate::{plan_with, verified};

/// Checks the steps of the schedule (not slots) against theory.
fn check_steps(kind: CollectiveKind, algorithm: &str, cases: &[(u32, usize)]) {
    for &(ranks, steps) in cases {
        let plan = verified(kind, algorithm, ranks, 64);
        assert_eq!(
            plan.schedule.steps(),
            steps,
            "{kind} {algorithm} on {ranks}"
        );
    }
}

#[test]
fn steps_of_the_all_gathers() {
    check_steps(AllGather, "ring", &[(1, 0), (2, 1), (7, 6), (16, 15)]);
    check_steps(
        AllGather,
        "ring_bidirectional",
        &[(1, 0), (2, 1), (7, 3), (16, 8)],
    );
    check_steps(AllGather, "neighbour_exchange", &[(2, 1), (6, 3), (16, 8)]);
    check_steps(AllGather, "one_stage", &[(1, 0), (2, 1), (16, 1)]);
    check_steps(
        AllGather,
        "bruck",
        &[(1, 0), (2, 1), (7, 3), (16, 4), (17, 5)],
    );
    check_steps(
        AllGather,
        "recursive_doubling",
        &[(1, 0), (2, 1), (7, 4), (16, 4), (17, 6)],
    );
}

#[test]
fn steps_of_the_all_reduces() {
    check_steps(AllReduce, "ring", &[(1, 0), (2, 2), (7, 12), (16, 30)]);
    check_steps(
        AllReduce,
        "recursive_doubling",
        &[(1, 0), (2, 1), (7, 4), (16, 4), (17, 6)],
    );
    check_steps(
        AllReduce,
        "binary_tree",
        &[(1, 0), (2, 2), (7, 6), (16, 8), (17, 10)],
    );
}

#[test]
fn steps_of_the_rooted_collectives() {
    for kind in [Broadcast, Reduce, Gather, Scatter] {
        check_steps(
            kind,
            "binomial",
            &[(1, 0), (2, 1), (7, 3), (16, 4), (17, 5)],
        );
        check_steps(kind, "direct", &[(1, 0), (2, 1), (7, 1), (16, 1)]);
    }
}

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
fn everyone_receives_each_block_once() {
    for record in crate::general_algorithms().filter(|record| record.collective == AllGather) {
        let sizes = [2, 6, 16, 30].into_iter();
        for ranks in sizes.filter(|&ranks| (record.accepts)(ranks).is_ok()) {
            let plan = verified(AllGather, record.name, ranks, 3);
            assert_eq!(
                plan.len() as u32,
                ranks * (ranks - 1),
                "{} on {ranks}",
                record.name
            );
        }
    }
}

#[test]
fn roots_are_respected() {
    for (kind, name) in [
        (Broadcast, "binomial"),
        (Reduce, "direct"),
        (Gather, "binomial"),
        (Scatter, "binomial"),
    ] {
        for root in 0..7 {
            let fabric = opticoll::fabric::Fabric::parse("wdm_ring:ranks=7,wavelengths=2").unwrap();
            let ring = fabric.downcast::<WdmRing>().unwrap();
            let collective = opticoll::collective::Collective::new(kind, 7)
                .unwrap()
                .with_root(root)
                .unwrap();
            let schedule =
                opticoll::algorithms::build(&name.parse().unwrap(), collective, &fabric).unwrap();
            let light = opticoll::placement::wdm_ring::route::shortest_arcs(&schedule, ring);
            let plan = opticoll::placement::wdm_ring::placement::assign(
                schedule,
                light,
                &fabric,
                opticoll::placement::wdm_ring::placement::Assignment::AUTO,
                name.into(),
            )
            .unwrap();
            assert_eq!(
                opticoll::verify::verify(&plan),
                [],
                "{kind} {name} from {root}"
            );
        }
    }
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
    assert!(refused.unwrap_err().to_string().contains("ask for one"));
}

#[test]
fn refusals_say_why_and_what_would_do() {
    for (kind, algorithm, ranks, hint) in [
        (
            AllGather,
            "neighbour_exchange",
            7,
            "must be even; ring_bidirectional runs on any",
        ),
        (AllGather, "wrht:group_size=1", 7, "from 2"),
        (AllReduce, "wrht:striping=maybe", 7, "true or false"),
        (
            AllReduce,
            "optree",
            7,
            "unknown algorithm `optree` for all_reduce",
        ),
        (AllGather, "rign", 7, "did you mean `ring`"),
        (AllGather, "ring:k=3", 7, "known are order, seed"),
        (AllGather, "ring_bidirectional:k=3", 7, "it has none"),
        (
            AllGather,
            "ring",
            100_000,
            "9999900000 transfers among 100000 ranks are too many",
        ),
        (AllReduce, "ring", 100_000, "too many"),
        (AllToAll, "direct", 20_000, "too many"),
    ] {
        let fabric = format!("wdm_ring:ranks={ranks},wavelengths=2");
        let error = plan_with(kind, algorithm, &fabric, "auto").unwrap_err();
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
