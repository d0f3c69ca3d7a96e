//! The algorithms for dragonflies: verified on many shapes, from every root, at the cost of their
//! formulas.

use opticoll::algorithms;
use opticoll::algorithms::{Algorithm, AlgorithmError, records, records_for};
use opticoll::collective::CollectiveKind::*;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::schedule::Schedule;
use opticoll::spec::Spec;
use opticoll::verify::verify;

use super::formula::{Variables, agrees};
use super::most;

/// Groups, routers per group, terminals per router, global ports per router, arrangement.
const SHAPES: &[(u32, u32, u32, u32, &str)] = &[
    (1, 1, 1, 1, "absolute"),
    (1, 1, 6, 1, "absolute"),
    (1, 5, 2, 1, "absolute"),
    (2, 1, 1, 1, "absolute"),
    (3, 2, 1, 1, "absolute"),
    (2, 4, 3, 2, "absolute"),
    (7, 4, 3, 2, "absolute"),
    (9, 4, 2, 2, "absolute"),
    (10, 3, 1, 3, "absolute"),
    (4, 6, 2, 1, "simgrid"),
    (6, 6, 1, 1, "simgrid"),
];

fn dragonfly(shape: (u32, u32, u32, u32, &str)) -> Fabric {
    let (groups, routers, terminals, ports, arrangement) = shape;
    let spelling = format!(
        "dragonfly:groups={groups},routers_per_group={routers},terminals_per_router={terminals},\
         global_per_router={ports},arrangement={arrangement}"
    );
    Fabric::parse(&spelling).unwrap()
}

/// Returns the schedule, verified as a plan on the fabric itself.
pub(super) fn proved(kind: CollectiveKind, spec: &str, fabric: &Fabric, root: u32) -> Schedule {
    let collective = Collective::new(kind, fabric.ranks())
        .and_then(|collective| collective.with_root(root))
        .unwrap();
    let schedule = algorithms::build(&spec.parse().unwrap(), collective, fabric)
        .unwrap_or_else(|error| panic!("{kind} {spec}: {error}"));
    let plan = Plan::without_light(fabric, schedule, spec.into());
    assert_eq!(verify(&plan), [], "{kind} {spec} on {fabric} from {root}");
    plan.schedule
}

fn roots(kind: CollectiveKind, fabric: &Fabric) -> Vec<u32> {
    match kind {
        Broadcast | Reduce | Gather | Scatter => (0..fabric.ranks()).collect(),
        _ => vec![0],
    }
}

fn values(fabric: &Fabric) -> Variables {
    let dragonfly = fabric.groups().unwrap();
    let groups = dragonfly.groups();
    let below = (0..32)
        .map(|bit| 1 << bit)
        .take_while(|power| *power < groups);
    Variables::from([
        ('N', f64::from(fabric.ranks())),
        ('G', f64::from(groups)),
        ('A', f64::from(dragonfly.routers_per_group())),
        ('T', f64::from(dragonfly.terminals_per_router())),
        ('B', f64::from(below.last().unwrap_or(0_u32))),
    ])
}

pub(super) fn check_costs(record: &Algorithm, schedule: &Schedule, values: &Variables) -> usize {
    let unit = f64::from(schedule.collective.pieces());
    let sent = most(schedule, |one| one.source) as f64 / unit;
    let received = most(schedule, |one| one.destination) as f64 / unit;
    let mut formulas = 0;
    for (what, formula, number) in [
        ("steps", record.costs.steps, schedule.steps() as f64),
        ("sent", record.costs.sent, sent),
        ("received", record.costs.received, received),
    ] {
        let Some(formula) = formula else { continue };
        formulas += 1;
        assert!(
            agrees(number, formula, values),
            "{} {}: {what} {number}, not {formula} with {values:?}",
            record.collective,
            record.name
        );
    }
    formulas
}

#[test]
fn every_algorithm_for_dragonflies_is_proved_and_costs_what_it_says() {
    let mut formulas = 0;
    for &shape in SHAPES {
        let fabric = dragonfly(shape);
        let values = values(&fabric);
        for record in records()
            .iter()
            .filter(|record| record.families == ["dragonfly"])
        {
            for root in roots(record.collective, &fabric) {
                let schedule = proved(record.collective, record.name, &fabric, root);
                let empty = (0..schedule.steps()).find(|&step| schedule.step(step).is_empty());
                assert_eq!(empty, None, "{} on {fabric}", record.name);
                assert_eq!(
                    schedule.claims.schedule_steps,
                    Some(schedule.steps() as u32)
                );
                if fabric.ranks() > 1 {
                    formulas += check_costs(record, &schedule, &values);
                }
            }
        }
    }
    assert!(formulas > 1000, "the test looks at formulas: {formulas}");
}

#[test]
fn options_and_halves_are_proved_on_every_shape() {
    for &shape in SHAPES {
        let fabric = dragonfly(shape);
        for root in roots(Scatter, &fabric) {
            for kind in [Scatter, Gather, Broadcast, Reduce] {
                proved(kind, "llf:groups=flat", &fabric, root);
            }
            for scatter in ["linear", "glf", "llf"] {
                let spec = format!("scatter_all_gather:scatter={scatter},all_gather=tar");
                proved(Broadcast, &spec, &fabric, root);
            }
            proved(
                Broadcast,
                "scatter_all_gather:all_gather=bruck",
                &fabric,
                root,
            );
        }
    }
}

#[test]
fn sent_straight_each_block_crosses_one_global_link() {
    for (spec, once) in [("llf:groups=flat", true), ("llf", false), ("glf", false)] {
        let fabric = dragonfly((13, 4, 2, 3, "absolute"));
        let schedule = proved(Scatter, spec, &fabric, 3);
        let mut crossings = vec![0; fabric.ranks() as usize];
        for transfer in schedule.transfers() {
            if transfer.source / 8 != transfer.destination / 8 {
                let blocks = transfer.chunk..transfer.chunk + transfer.count;
                blocks.for_each(|block| crossings[block as usize] += 1);
            }
        }
        assert!(crossings[..8].iter().all(|count| *count == 0), "{spec}");
        let single = crossings[8..].iter().all(|count| *count == 1);
        assert_eq!(single, once, "{spec}: {crossings:?}");
    }
}

#[test]
fn the_aware_ring_is_a_ring_in_its_own_order() {
    for &shape in SHAPES {
        let fabric = dragonfly(shape);
        let dragonfly = fabric.groups().unwrap();
        let order: Vec<String> = opticoll::algorithms::tar::order(dragonfly)
            .iter()
            .map(u32::to_string)
            .collect();
        for kind in [AllGather, ReduceScatter, AllReduce] {
            let given = format!("ring:order={}", order.join("-"));
            assert_eq!(
                proved(kind, "tar", &fabric, 0),
                proved(kind, &given, &fabric, 0)
            );
        }
    }
}

#[test]
fn rings_go_through_the_ranks_in_any_order() {
    for ranks in [1, 2, 3, 8, 13] {
        let fabric = Fabric::parse(&format!("crossbar:ranks={ranks}")).unwrap();
        for kind in [AllGather, ReduceScatter, AllReduce] {
            for seed in [0, 1, 7] {
                let spec = format!("ring:order=shuffled,seed={seed}");
                let schedule = proved(kind, &spec, &fabric, 0);
                let order = opticoll::hash::shuffled(ranks, seed);
                let list: Vec<String> = order.iter().map(u32::to_string).collect();
                let given = format!("ring:order={}", list.join("-"));
                assert_eq!(proved(kind, &given, &fabric, 0), schedule);
                // Every hop leads to the next in the order.
                for transfer in schedule.transfers().filter(|_| kind == AllGather) {
                    let place = order.iter().position(|rank| *rank == transfer.source);
                    let next = order[(place.unwrap() + 1) % order.len()];
                    assert_eq!(transfer.destination, next, "{spec}");
                }
            }
            let natural = proved(kind, "ring:order=natural", &fabric, 0);
            assert_eq!(natural, proved(kind, "ring", &fabric, 0));
        }
    }
}

#[test]
fn orders_that_are_none_are_refused() {
    let fabric = Fabric::parse("crossbar:ranks=4").unwrap();
    for (options, reason) in [
        ("order=0-1-2", "0 to 3 once each"),
        ("order=0-1-2-2", "0 to 3 once each"),
        ("order=0-1-2-4", "0 to 3 once each"),
        ("order=backwards", "natural, shuffled"),
        ("seed=3", "order=shuffled"),
        ("order=natural,seed=3", "order=shuffled"),
        ("order=shuffled,seed=-1", "whole number"),
    ] {
        for kind in [AllGather, AllReduce, ReduceScatter] {
            let spec: Spec = format!("ring:{options}").parse().unwrap();
            let collective = Collective::new(kind, 4).unwrap();
            let error = algorithms::build(&spec, collective, &fabric).unwrap_err();
            assert!(error.to_string().contains(reason), "{options}: {error}");
        }
    }
}

#[test]
fn on_other_fabrics_algorithms_for_dragonflies_are_refused_and_not_offered() {
    for spelling in [
        "crossbar:ranks=8",
        "wdm_ring:ranks=8,wavelengths=2",
        "torus:dims=2x4",
    ] {
        let fabric = Fabric::parse(spelling).unwrap();
        for record in records()
            .iter()
            .filter(|record| record.families == ["dragonfly"])
        {
            let collective = Collective::new(record.collective, 8).unwrap();
            let spec = record.name.parse().unwrap();
            let error = algorithms::build(&spec, collective, &fabric).unwrap_err();
            assert!(
                matches!(error, AlgorithmError::NoGroups { .. }),
                "{spelling} {}: {error}",
                record.name
            );
            let same = |other: &&Algorithm| {
                (other.name, other.collective) == (record.name, record.collective)
            };
            assert!(!records_for(&fabric).any(|other| same(&other)));
            let dragonfly = dragonfly(SHAPES[1]);
            assert_eq!(records_for(&dragonfly).filter(same).count(), 1);
        }
    }
}

#[test]
fn the_papers_name_is_understood() {
    for kind in [Scatter, Gather, Broadcast, Reduce] {
        assert_eq!(algorithms::find(kind, "LIN").unwrap().name, "linear");
    }
    let error = algorithms::find(AllGather, "lin").err().unwrap();
    assert!(matches!(error, AlgorithmError::Unknown { .. }));
}
