//! Wavelength assignment: loads that theory gives exactly, and rules that always give valid plans.

use opticoll::algorithms::one_stage::{line_wavelengths, paper_ring_wavelengths, ring_wavelengths};
use opticoll::collective::CollectiveKind::{AllGather, AllReduce, AllToAll};
use opticoll::family::wdm_ring::WdmRing;

use crate::{verified, verified_with};

#[test]
fn wavelengths_of_a_one_stage_all_to_all() {
    let exact = [1, 1, 2, 3, 5, 6, 8, 10, 13, 15, 18, 21, 25, 28, 32];
    let paper = [1, 2, 2, 4, 5, 7, 8, 11, 13, 16, 18, 22, 25, 29, 32];
    for (ranks, (exact, paper)) in (2..).zip(exact.into_iter().zip(paper)) {
        assert_eq!(ring_wavelengths(ranks), exact, "{ranks}");
        assert_eq!(paper_ring_wavelengths(ranks), paper, "{ranks}");
    }
    assert_eq!(line_wavelengths(7), 12);
}

#[test]
fn the_optimal_construction_meets_the_bound_for_every_number_of_ranks() {
    for ranks in 2..=66 {
        let bound = ring_wavelengths(ranks) as u32;
        // With as many wavelengths as the bound says, one slot is enough; with one fewer it is not.
        let plan = verified_with(
            AllGather,
            "one_stage",
            &format!("wdm_ring:ranks={ranks},wavelengths={bound}"),
            "optimal",
        );
        assert_eq!(plan.slots(), 1, "{ranks}");
        if bound > 1 {
            assert_eq!(
                verified(AllToAll, "direct", ranks, bound - 1).slots(),
                2,
                "{ranks}"
            );
        }
    }
}

#[test]
fn first_fit_needs_slightly_more_than_the_bound() {
    // Bound and what another first-fit, with another order among equal lengths, needed.
    for (ranks, bound, others) in [(16, 32, 34), (64, 512, 525), (256, 8192, 8272)] {
        let fabric = format!("wdm_ring:ranks={ranks},wavelengths=1");
        let plan = verified_with(AllGather, "one_stage", &fabric, "first_fit");
        let slots = plan.slots();
        assert!(bound < slots && slots <= others, "{ranks}: {slots}");
    }
}

#[test]
fn every_assignment_gives_a_verified_plan() {
    for assignment in ["auto", "first_fit", "best_fit"] {
        for fabric in [
            "wdm_ring:ranks=13,wavelengths=3",
            "wdm_ring:ranks=12,wavelengths=70",
            "wdm_ring:ranks=12,wavelengths=3,fibres=2",
            "wdm_ring:ranks=12,wavelengths=5,ports=2",
            "wdm_ring:ranks=12,wavelengths=5,converters=full",
            "wdm_ring:ranks=9,wavelengths=2,converters=full,ports=1,fibres=2",
        ] {
            for (kind, algorithm) in [
                (AllGather, "optree"),
                (AllGather, "one_stage"),
                (AllReduce, "recursive_doubling"),
            ] {
                verified_with(kind, algorithm, fabric, assignment);
            }
        }
    }
}

#[test]
fn a_line_of_groups_needs_exactly_its_load() {
    // 16 ranks in four segments of four, blocks of four: 16 wavelengths, the load.
    for rule in ["first_fit", "best_fit"] {
        let fabric = "wdm_ring:ranks=16,wavelengths=16";
        let plan = verified_with(AllGather, "optree:radices=4x4", fabric, rule);
        assert_eq!(plan.slots(), 2, "{rule}");
    }
}

#[test]
fn more_fibres_are_more_channels() {
    // w = 2: 12 slots with one fibre per direction, 6 with two (the same colours, halved).
    let slots =
        |fabric: &str| verified_with(AllGather, "optree:radices=4x4", fabric, "auto").slots();
    assert_eq!(slots("wdm_ring:ranks=16,wavelengths=2"), 12);
    assert_eq!(slots("wdm_ring:ranks=16,wavelengths=2,fibres=2"), 6);
}

#[test]
fn converters_need_no_more_slots_than_the_load() {
    // First-fit without converters needs 34 wavelengths for 16 ranks; with them the load, 32, is
    // enough whatever the order.
    let plan = verified_with(
        AllGather,
        "one_stage",
        "wdm_ring:ranks=16,wavelengths=32,converters=full",
        "first_fit",
    );
    assert_eq!(plan.slots(), 1);
}

#[test]
fn ports_limit_what_a_rank_sends_and_receives_at_once() {
    // 15 blocks to receive through 4 ports: at least 4 slots.
    let plan = verified_with(
        AllGather,
        "one_stage",
        "wdm_ring:ranks=16,wavelengths=64,ports=4",
        "auto",
    );
    assert!((4..=8).contains(&plan.slots()), "{}", plan.slots());
}

#[test]
fn what_only_looks_like_an_all_to_all_is_not_coloured_as_one() {
    use opticoll::collective::Collective;
    use opticoll::fabric::Fabric;
    use opticoll::placement::wdm_ring::placement::{Assignment, assign};
    use opticoll::schedule::{Schedule, Transfer};
    use opticoll::verify::{ViolationKind, verify};
    // Rank 5 receives from two ranks and sends nothing: no all-to-all among 5, 7 and 9.
    let fabric = Fabric::parse("wdm_ring:ranks=16,wavelengths=4").unwrap();
    let ring = fabric.downcast::<WdmRing>().unwrap();
    let mut schedule = Schedule::new(Collective::new(AllGather, 16).unwrap());
    for (source, destination) in [(7, 5), (9, 5), (1, 2), (2, 1)] {
        schedule.push(Transfer::copy(source, source, destination));
    }
    let light = opticoll::placement::wdm_ring::route::shortest_arcs(&schedule, ring);
    let plan = assign(schedule, light, &fabric, Assignment::AUTO, "by hand".into()).unwrap();
    let collides =
        |violation: &opticoll::verify::Violation| violation.kind == ViolationKind::Collision;
    assert!(!verify(&plan).iter().any(collides));
}

#[test]
fn converters_are_never_worse_than_none() {
    for ranks in [16, 50, 100] {
        let slots = |fabric: String| verified_with(AllGather, "one_stage", &fabric, "auto").slots();
        let none = slots(format!("wdm_ring:ranks={ranks},wavelengths=2"));
        let full = slots(format!(
            "wdm_ring:ranks={ranks},wavelengths=2,converters=full"
        ));
        assert!(full <= none, "{ranks}: {full} against {none}");
    }
}

#[test]
fn a_transfer_to_nowhere_is_refused() {
    use opticoll::collective::Collective;
    use opticoll::fabric::Fabric;
    use opticoll::placement::wdm_ring::placement::{Assignment, assign};
    use opticoll::schedule::{Action, Schedule, Transfer};
    let fabric = Fabric::parse("wdm_ring:ranks=4,wavelengths=1").unwrap();
    let ring = fabric.downcast::<WdmRing>().unwrap();
    for (source, destination) in [(0, 4), (4, 0), (2, 2), (u32::MAX, 0)] {
        let mut schedule = Schedule::new(Collective::new(AllGather, 4).unwrap());
        schedule.push(Transfer {
            chunk: 0,
            count: 1,
            source,
            destination,
            action: Action::Copy,
        });
        let light = opticoll::placement::wdm_ring::route::shortest_arcs(&schedule, ring);
        let made = assign(schedule, light, &fabric, Assignment::AUTO, "by hand".into());
        let error = made.unwrap_err().to_string();
        assert!(error.contains("transfer 0"), "{error}");
    }
}
