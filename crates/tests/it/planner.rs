//! Plans of the planners: verified, and compared with bounds and named algorithms.

use crate::reconfiguration_cost;
use opticoll::bounds::wdm_ring;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::plan::Plan;
use opticoll::planner::{self, PlannerError};
use opticoll::simulate;
use opticoll::simulate::Policy;
use opticoll::verify::verify;

use itertools::iproduct;

use crate::{general_algorithms, plan_with, proved_plan, refusal, some_of};

/// Returns a verified plan that is not below the bound; panics otherwise.
fn planned(fabric: &str) -> Plan {
    let parsed = Fabric::parse(fabric).unwrap();
    let ring = parsed.downcast::<WdmRing>().unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, ring.ranks).unwrap();
    let plan = planner::relay_tree(&parsed, collective).unwrap();
    let violations = verify(&plan);
    assert!(
        violations.is_empty(),
        "{fabric}: {} violations, first: {}",
        violations.len(),
        violations[0].sentence
    );
    assert!(u64::from(plan.slots()) >= wdm_ring::best(ring, &collective).steps);
    let plan = plan.into_expanded();
    assert_eq!(verify(&plan), [], "{fabric}");
    plan
}

fn slots(ranks: u32, wavelengths: u32) -> u32 {
    planned(&format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}")).slots()
}

#[test]
fn all_gathers_meet_their_goals() {
    // (N, w, lower bound, most slots allowed): the goals are at or next to the bound.
    for (ranks, wavelengths, bound, most) in [
        (16, 2, 5, 5),
        (16, 4, 3, 3),
        (64, 8, 7, 7),
        (64, 16, 5, 5),
        (128, 8, 15, 15),
        (256, 16, 15, 15),
        (512, 16, 31, 31),
        (512, 64, 11, 11),
        (1024, 16, 61, 61),
        (1024, 64, 19, 19),
        (1024, 128, 11, 11),
        (2048, 64, 32, 32),
    ] {
        let slots = slots(ranks, wavelengths);
        assert!(
            (bound..=most).contains(&slots),
            "N = {ranks}, w = {wavelengths}: {slots} slots"
        );
    }
}

#[test]
fn rings_that_no_length_divides_take_a_slot_more_than_the_bound_at_most() {
    for (ranks, wavelengths) in [
        (31, 2),
        (63, 2),
        (101, 2),
        (255, 2),
        (13, 3),
        (101, 4),
        (251, 4),
        (17, 8),
        (127, 8),
        (61, 64),
        (509, 16),
    ] {
        let fabric =
            Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}")).unwrap();
        let ring = fabric.downcast::<WdmRing>().unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
        let bound = wdm_ring::best(ring, &collective).steps;
        let slots = u64::from(slots(ranks, wavelengths));
        assert!(
            slots <= bound + 1,
            "N = {ranks}, w = {wavelengths}: {slots} slots, bound {bound}"
        );
    }
}

#[test]
fn no_named_algorithm_takes_fewer_slots() {
    for ranks in [2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 24, 31, 37, 48, 64] {
        for wavelengths in [1, 2, 3, 5, 8, 20, 70, 600] {
            let fabric = format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}");
            let ours = planned(&fabric).slots();
            for record in general_algorithms() {
                if record.collective != CollectiveKind::AllGather
                    || (record.accepts)(ranks).is_err()
                {
                    continue;
                }
                let named =
                    plan_with(CollectiveKind::AllGather, record.name, &fabric, "auto").unwrap();
                assert!(
                    ours <= named.slots(),
                    "{fabric}: {ours} slots, {} takes {}",
                    record.name,
                    named.slots()
                );
            }
        }
    }
}

#[test]
fn planning_twice_gives_the_same_plan() {
    let fabric = "wdm_ring:ranks=101,wavelengths=9";
    assert_eq!(planned(fabric), planned(fabric));
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let fabric = Fabric::parse("wdm_ring:ranks=8,wavelengths=2").unwrap();
    let gather = Collective::new(CollectiveKind::Gather, 8).unwrap();
    let result = planner::relay_tree(&fabric, gather);
    assert!(matches!(result, Err(PlannerError::Collective { .. })));
    let huge = Fabric::parse("wdm_ring:ranks=1048576,wavelengths=64").unwrap();
    let of_huge = Collective::new(CollectiveKind::AllGather, 1 << 20).unwrap();
    let of_huge = of_huge.with_pieces(1024).unwrap();
    let result = planner::relay_tree(&huge, of_huge);
    assert!(matches!(result, Err(PlannerError::TooLarge { .. })));
    let larger = Collective::new(CollectiveKind::AllGather, 9).unwrap();
    let result = planner::relay_tree(&fabric, larger);
    assert!(matches!(result, Err(PlannerError::Ranks { .. })));
}

#[test]
fn blocks_in_pieces_meet_the_bound() {
    // P blocks' worth of trees share the channels; with P = c every channel carries a piece to the
    // neighbour in every slot, and (N - 1) / 2 slots are what a rank's 2c channels need.
    for (ranks, wavelengths, pieces) in
        [(64, 8, 2), (64, 8, 4), (64, 8, 8), (17, 4, 3), (100, 8, 4)]
    {
        let fabric =
            Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}")).unwrap();
        let ring = fabric.downcast::<WdmRing>().unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
        let collective = collective.with_pieces(pieces).unwrap();
        let plan = planner::relay_tree(&fabric, collective).unwrap();
        assert_eq!(verify(&plan), []);
        let bound = wdm_ring::best(ring, &collective).steps;
        assert_eq!(u64::from(plan.slots()), bound, "{fabric}, {pieces} pieces");
    }
}

#[test]
fn large_blocks_come_close_to_the_bound_on_time() {
    let fabric = Fabric::parse("wdm_ring:ranks=64,wavelengths=8").unwrap();
    let ring = fabric.downcast::<WdmRing>().unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, 64).unwrap();
    let (spec, size) = ("auto:transfers=3000000", "4MiB".parse().unwrap());
    for policy in Policy::ALL {
        let planned = proved_plan(spec, &fabric, collective, size, &policy.into());
        let took = simulate::simulate(&planned.plan, size, policy, "circuit").unwrap();
        let charge = reconfiguration_cost(ring, policy);
        let bound = wdm_ring::time::best(ring, &collective, size, charge).unwrap();
        let gap = took.time.seconds() / bound.time.seconds();
        assert!((1.0..1.25).contains(&gap), "{policy:?}: {gap}");
    }
}

#[test]
fn circuits_to_neighbours_are_set_once_for_the_whole_of_an_all_reduce() {
    // Every channel of both directions to the next rank, from the first slot to the last.
    for (ranks, wavelengths) in [(16, 2), (17, 3), (64, 8), (3, 1)] {
        let fabric =
            Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}")).unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, ranks)
            .and_then(|collective| collective.with_pieces(wavelengths))
            .unwrap();
        let gather = planner::relay_tree(&fabric, collective).unwrap();
        let whole = planner::all_reduce(&gather).unwrap();
        assert_eq!(verify(&whole), [], "{fabric}");
        assert_eq!(whole.slots(), 2 * (ranks / 2), "{fabric}");
        assert_eq!(simulate::circuit::configurations(&whole), 1, "{fabric}");
    }
}

#[test]
fn run_backwards_a_gather_reduces_and_there_and_back_it_is_an_all_reduce() {
    for (ranks, wavelengths, pieces) in [(2, 1, 1), (16, 2, 1), (37, 5, 1), (16, 4, 3)] {
        let fabric =
            Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}")).unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
        let collective = collective.with_pieces(pieces).unwrap();
        let gather = planner::relay_tree(&fabric, collective).unwrap();
        let scatter = planner::reduce_scatter(&gather).unwrap();
        assert_eq!(verify(&scatter), []);
        assert_eq!(scatter.slots(), gather.slots());
        let reduce = planner::all_reduce(&gather).unwrap();
        assert_eq!(verify(&reduce), []);
        assert_eq!(reduce.slots(), 2 * gather.slots());
        assert!(planner::all_reduce(&reduce).is_err(), "it is no all_gather");
    }
}

#[test]
fn all_reduces_of_four_networks_beat_twenty_one_steps_each_way() {
    // 42 steps of M / N at (1024, 64), 40 Gb/s, 25 us take 1.87, 3.09, 5.58 and 1.27 ms for the
    // gradients of ResNet50, AlexNet, VGG16 and GoogLeNet; with 2 x 19 steps each must be below.
    let fabric = Fabric::parse("optree_paper").unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, 1024).unwrap();
    let gather = planner::relay_tree(&fabric, collective).unwrap();
    let reduce = planner::all_reduce(&gather).unwrap();
    for (size, milliseconds) in [
        ("100MB", 1.87),
        ("249MB", 3.09),
        ("552MB", 5.58),
        ("27MB", 1.27),
    ] {
        let size = size.parse().unwrap();
        let outcome = simulate::simulate(&reduce, size, Policy::EveryStep, "circuit").unwrap();
        assert!(outcome.time.seconds() * 1e3 < milliseconds, "{size}");
    }
}

/// Returns the verified plan of a specification on a fabric.
fn named_plan(kind: CollectiveKind, spec: &str, fabric: &str, size: &str, policy: Policy) -> Plan {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let planned = proved_plan(
        spec,
        &fabric,
        collective,
        size.parse().unwrap(),
        &policy.into(),
    );
    planned.plan.into_expanded()
}

#[test]
fn auto_is_never_slower_than_a_named_algorithm() {
    let rings = [(16, 2), (24, 4)];
    let policies = [Policy::EveryStep, Policy::OnChange, Policy::Free];
    let sizes = ["1KiB", "1MiB", "64MiB"];
    let cases = iproduct!(rings, CollectiveKind::ALL, policies, sizes);
    for ((ranks, wavelengths), kind, policy, size) in some_of(cases, 11) {
        let fabric = &format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}");
        let chosen = named_plan(kind, "auto", fabric, size, policy);
        let time = |plan: &Plan| {
            simulate::simulate(plan, size.parse().unwrap(), policy, "circuit")
                .unwrap()
                .time
        };
        for record in general_algorithms() {
            if record.collective == kind && (record.accepts)(ranks).is_ok() {
                let named = plan_with(kind, record.name, fabric, "auto").unwrap();
                let name = record.name;
                assert!(
                    time(&chosen) <= time(&named),
                    "{kind} {size} {policy:?}: {name}"
                );
            }
        }
    }
}

#[test]
fn the_planner_is_asked_by_name() {
    use CollectiveKind::{AllGather, Broadcast};
    let fabric = "wdm_ring:ranks=16,wavelengths=2";
    let check = |kind, spec: &str, slots: u32| {
        let plan = named_plan(kind, spec, fabric, "1MiB", Policy::EveryStep);
        assert_eq!(
            (plan.slots(), plan.algorithm.as_str()),
            (slots, spec),
            "{kind}"
        );
    };
    check(CollectiveKind::AllGather, "relay_tree", 5);
    check(CollectiveKind::ReduceScatter, "relay_tree", 5);
    check(CollectiveKind::AllReduce, "relay_tree", 10);
    // What is not the planner's is a named algorithm's: two stages of 4 + 8 slots.
    check(CollectiveKind::AllGather, "optree:radices=4x4", 12);
    let fabric = Fabric::parse(fabric).unwrap();
    let unknown = "unknown algorithm `relay_tree` for broadcast";
    for (kind, spec, hint) in [
        (Broadcast, "relay_tree", unknown),
        (AllGather, "relay_tree:piece=2", "did you mean `pieces`"),
        (AllGather, "relay_tree:pieces=0", "from 1 to"),
        (AllGather, "relay_treee", "unknown algorithm"),
    ] {
        let collective = Collective::new(kind, 16).unwrap();
        let error = refusal(spec, &fabric, collective, Some(Policy::EveryStep));
        assert!(error.contains(hint), "{error}");
    }
}
