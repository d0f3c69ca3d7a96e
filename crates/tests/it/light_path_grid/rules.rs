//! What the verifier sees on a grid of light paths: each rule with a plan that breaks it, and mutants of
//! plans that hold, judged by a second, naive checker.

use opticoll::family::light_path_grid::LightPathGrid;
use std::collections::BTreeSet;

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::family::light_path_grid::PortsLight;
use opticoll::placement::light_path_grid::placement::assign_ports;
use opticoll::plan::Plan;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::verify::{ViolationKind, verify};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{algorithms, proved};
use crate::change_light;
use crate::verify::by_hand::cases;

/// Whether some rank holds paths to too many others in a slot, or one port does not lead to one port.
fn breaks_the_rule(plan: &Plan) -> bool {
    let ports = plan.fabric.downcast::<LightPathGrid>().unwrap().ports;
    for slot in 0..plan.slots() {
        let mut paths = BTreeSet::new();
        for index in (0..plan.len()).filter(|&index| plan.slot[index] == slot) {
            let moved = plan.schedule.transfer(index);
            let light = PortsLight::from(plan.light[index]);
            let source = (moved.source, u32::from(light.source_port));
            let destination = (moved.destination, u32::from(light.destination_port));
            paths.extend([(source, destination), (destination, source)]);
        }
        for (end, other) in &paths {
            let leads_to = paths.iter().filter(|(one, _)| one == end).count();
            let peers: BTreeSet<u32> = paths
                .iter()
                .filter(|(one, _)| one.0 == end.0)
                .map(|(_, two)| two.0)
                .collect();
            if end.1 >= ports || other.1 >= ports || leads_to > 1 || peers.len() > ports as usize {
                return true;
            }
        }
    }
    false
}

#[test]
fn ports_of_plans_by_hand_break_the_rule_where_a_naive_checker_says_so() {
    for case in cases().filter(|case| case.fabric.starts_with("light_path_grid")) {
        let of_ports = case.kinds.contains("ports");
        assert_eq!(of_ports, breaks_the_rule(&case.plan()), "{}", case.claim);
    }
}

#[test]
fn mutants_are_seen_as_a_naive_checker_sees_them() {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let (mut seen, mut held) = (0, 0);
    for ranks in [4, 7, 8] {
        for (kind, algorithm) in algorithms(ranks) {
            for ports in 1..=3u32 {
                let fabric = format!("light_path_grid:ranks={ranks},ports={ports}");
                let plan = proved(kind, algorithm, &fabric);
                assert!(!breaks_the_rule(&plan), "{kind} by {algorithm} on {fabric}");
                for _ in 0..12 {
                    let mut mutant = plan.clone();
                    let index = random.random_range(0..mutant.len());
                    match random.random_range(0..4) {
                        0 => change_light(&mut mutant.light[index], |light: &mut PortsLight| {
                            light.source_port = random.random_range(0..=ports as u8);
                        }),
                        1 => change_light(&mut mutant.light[index], |light: &mut PortsLight| {
                            light.destination_port = random.random_range(0..=ports as u16);
                        }),
                        2 => mutant.slot[index] = random.random_range(0..mutant.slots()),
                        _ => {
                            let other = random.random_range(0..mutant.len());
                            mutant.light.swap(index, other);
                        }
                    }
                    let violations = verify(&mutant);
                    let found = violations
                        .iter()
                        .any(|one| one.kind == ViolationKind::Ports);
                    let case = format!("{kind} by {algorithm} on {fabric}, transfer {index}");
                    assert_eq!(found, breaks_the_rule(&mutant), "{case}: {violations:?}");
                    if found {
                        seen += 1;
                    } else {
                        held += 1;
                    }
                }
            }
        }
    }
    assert!(
        seen > 100 && held > 100,
        "{seen} of {} break the rule",
        seen + held
    );
}

/// With fewer ports than partners in a step, the step is cut into as few slots as a ring allows.
#[test]
fn a_ring_takes_two_halves_with_one_port_and_three_where_it_is_odd() {
    for ranks in 2..=64 {
        for ports in 1..=3 {
            let fabric = format!("light_path_grid:ranks={ranks},ports={ports}");
            let plan = proved(CollectiveKind::AllGather, "ring", &fabric);
            let parts = match (ports, ranks) {
                (1, 3..) => 2 + ranks % 2,
                _ => 1,
            };
            assert_eq!(plan.slots(), parts * (ranks - 1), "{fabric}");
        }
    }
}

#[test]
fn schedules_that_join_no_two_ranks_are_refused() {
    let fabric = Fabric::parse("light_path_grid:ranks=3").unwrap();
    let grid = fabric.downcast().unwrap();
    let whole = opticoll::collective::Collective::new(CollectiveKind::Broadcast, 3).unwrap();
    for (source_rank, destination) in [(1, 1), (0, 3), (4, 0)] {
        let mut schedule = Schedule::new(whole);
        schedule.push(Transfer::copy(0, source_rank, destination));
        let refused = assign_ports(schedule, &fabric, grid, "by hand".into()).unwrap_err();
        let said = format!("transfer 0 goes from rank {source_rank} to rank {destination}");
        assert!(refused.to_string().starts_with(&said), "{refused}");
    }
}

#[test]
fn fabrics_are_spelled_in_full_and_read_back() {
    for (given, expected) in [
        (
            "light_path_grid:ranks=64",
            "light_path_grid:ranks=64,ports=1,latency=100us,rate=1Gb/s,establish=5ms",
        ),
        (
            "Light-Path-Grid:ports=4,ranks=2,release=1us,establish=2us,rate=10Gb/s,latency=0s",
            "light_path_grid:ranks=2,ports=4,latency=0s,rate=10Gb/s,establish=2us,release=1us",
        ),
    ] {
        let fabric = Fabric::parse(given).unwrap();
        assert_eq!(fabric.to_string(), expected);
        assert_eq!(Fabric::parse(expected).unwrap(), fabric);
    }
    for (wrong, problem) in [
        ("light_path_grid", "needs ranks="),
        ("light_path_grid:ranks=4,ports=0", "ports=0"),
        ("light_path_grid:ranks=4,ports=257", "ports=257"),
        ("light_path_grid:ranks=4,rate=1", "rate=1"),
        (
            "light_path_grid:ranks=4,wavelengths=2",
            "has no option `wavelengths`",
        ),
    ] {
        let error = Fabric::parse(wrong).unwrap_err().to_string();
        assert!(error.contains(problem), "{wrong}: {error}");
    }
}
