//! `auto` is never slower than any specification that can be named, and every candidate that it
//! names can be named in a request.

use opticoll::family::wdm_ring::WdmRing;
use std::collections::BTreeSet;

use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::planner::{self, LeftOut, Planned, PlannerError, PlanningTask};
use opticoll::simulate;
use opticoll::simulate::fluid::StartRule;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;
use proptest::prelude::*;

use crate::{proved_plan, share, some_of};

/// Fails if the plan of `auto` is wrong, or faster than the bound on its time.
pub(crate) fn auto_is_not_below_its_bound(
    fabric: &str,
    kind: CollectiveKind,
    policy: Policy,
    size: Bytes,
) -> Result<(), TestCaseError> {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let method = TimingModel::from(policy);
    let planned = proved_plan("auto", &fabric, collective, size, &method);
    let time = simulate::run(&planned.plan, size, &method).unwrap().time;
    let least = planner::time_bound(&fabric, &collective, size, &method).unwrap();
    let least = least.unwrap().time;
    prop_assert!(
        time >= least,
        "{collective:?} on {fabric} in {time}, below {least}"
    );
    Ok(())
}

/// A planning problem that `auto` solves.
struct Question {
    fabric: Fabric,
    collective: Collective,
    size: Bytes,
    method: TimingModel,
}

impl Question {
    fn new(fabric: &str, kind: CollectiveKind, size: &str, method: &TimingModel) -> Question {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(kind, fabric.ranks()).unwrap();
        Question {
            fabric,
            collective,
            size: size.parse().unwrap(),
            method: method.clone(),
        }
    }

    fn plan(&self, spec: &str) -> Result<Planned, PlannerError> {
        let spec = spec.parse()?;
        planner::plan(
            &spec,
            &self.fabric,
            self.collective,
            self.size,
            &self.method,
        )
    }

    fn time(&self, planned: &Planned) -> Time {
        let outcome = simulate::run(&planned.plan, self.size, &self.method);
        outcome.unwrap().time
    }

    /// Lists all names for the collective, with every value of an option that the records suggest.
    fn listed(&self) -> Vec<String> {
        let kind = self.collective.kind();
        let records = algorithms::records_for(&self.fabric);
        let of_kind = records.filter(|record| record.collective == kind);
        let mut names: Vec<String> = of_kind
            .filter(|record| (record.accepts)(self.fabric.ranks()).is_ok())
            .flat_map(|record| record.variants(&self.fabric))
            .filter(|spec| !self.cuts_bytes(spec))
            .map(|spec| spec.to_string())
            .collect();
        if let Some(ring) = self.fabric.downcast::<WdmRing>() {
            let stripes = |name: &String| {
                let spec: Spec = name.parse().unwrap();
                spec.with("stripes", "all").to_string()
            };
            names.extend(names.clone().iter().map(stripes));
            let pieces = 1..=ring.channels().min(16);
            names.extend(pieces.map(|pieces| format!("relay_tree:pieces={pieces}")));
        }
        let planners = planner::PLANNERS.iter();
        let planners = planners
            .filter(|record| record.collectives.contains(&kind) && record.applies(&self.fabric));
        names.extend(planners.map(|record| record.name.to_owned()));
        names
    }

    /// Returns whether a pipeline has at least twice as many pieces as the vector has bytes; half
    /// as many pieces give the same plan.
    fn cuts_bytes(&self, spec: &Spec) -> bool {
        let segments = spec.option("segments").map(|value| value.parse::<u64>());
        segments.is_some_and(|segments| segments.unwrap() / 2 >= self.size.get())
    }

    fn described(&self) -> String {
        let (policy, start) = (self.method.policy, self.method.start);
        format!(
            "{} on {}, {}, {policy:?} {start:?}",
            self.collective.kind(),
            self.fabric,
            self.size
        )
    }
}

/// Lists the questions about some optical and electrical fabrics, under every policy or start rule.
fn questions() -> Vec<Question> {
    let light = [
        "wdm_ring:ranks=12,wavelengths=3",
        "wdm_ring:ranks=8,wavelengths=8,propagation=1us,conversion=1us",
        "wdm_ring:ranks=6,wavelengths=2,conversion=5ns,flit=32B,packet=message",
        "wdm_ring:ranks=9,wavelengths=4,broken=2-3",
        "wdm_ring:ranks=8,wavelengths=2,multicast=drop_and_continue",
    ];
    let links = [
        "crossbar:ranks=8,latency=1us",
        "torus:dims=3x4,latency=500ns",
        "fat_tree:down=4x4,up=1x2,latency=1us",
        "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1,latency=1us",
    ];
    let others = [
        "wss_grid:rows=3,columns=4",
        "wss_grid:rows=4,columns=4,control=2ns,latency=3ns",
        "lightpath_grid:ranks=8,ports=2",
    ];
    let policies: Vec<TimingModel> = Policy::ALL.into_iter().map(TimingModel::from).collect();
    let starts: Vec<TimingModel> = StartRule::ALL
        .into_iter()
        .map(|start| TimingModel {
            start: Some(start),
            ..TimingModel::default()
        })
        .collect();
    let mut questions = Vec::new();
    let plain = [TimingModel::default()];
    for (fabrics, methods) in [
        (&light[..], &policies[..]),
        (&links, &starts),
        (&others, &plain),
    ] {
        for fabric in fabrics {
            for kind in CollectiveKind::ALL {
                for size in ["100B", "1MB"] {
                    for method in methods {
                        questions.push(Question::new(fabric, kind, size, method));
                    }
                }
            }
        }
    }
    // Messages of no bytes are eager at any limit, and wait for no receiver.
    let endpoint = [("endpoint", "loggp:eager=0B,overhead=300ns")];
    let method = TimingModel::from_settings(endpoint).unwrap();
    for kind in CollectiveKind::ALL {
        let crossbar = "crossbar:ranks=5,rate=100Gb/s,latency=1us";
        questions.push(Question::new(crossbar, kind, "0B", &method));
    }
    questions
}

/// `make test` asks every 23rd question, `make validate` all of them.
const STEP: usize = 23;

/// Counts the names that have a plan, verifies each plan, and returns the plans that are more than
/// 1 % faster than the plan of `auto`.
fn faster_than_auto(
    question: &Question,
    names: impl IntoIterator<Item = String>,
) -> (usize, BTreeSet<String>) {
    let what = question.described();
    let auto = question.plan("auto");
    let auto = auto.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(verify(&auto.plan), [], "{what}");
    let (time, chosen) = (question.time(&auto), &auto.plan.algorithm);
    let (mut compared, mut faster) = (0, BTreeSet::new());
    for name in names {
        let Ok(planned) = question.plan(&name) else {
            continue;
        };
        assert_eq!(verify(&planned.plan), [], "{name}: {what}");
        compared += 1;
        let other = question.time(&planned);
        // `auto` leaves out plans of many transfers that save less than a hundredth of the time.
        if u128::from(other.ps()) * 100 < u128::from(time.ps()) * 99 {
            faster.insert(format!("{what}: {chosen} {time}, {name} {other}"));
        }
    }
    (compared, faster)
}

#[test]
fn auto_is_never_slower_than_anything_listed() {
    let (mut compared, mut faster) = (0, BTreeSet::new());
    for question in some_of(questions(), STEP) {
        let (more, found) = faster_than_auto(&question, question.listed());
        compared += more;
        faster.extend(found);
    }
    assert!(faster.is_empty(), "of {compared}: {faster:#?}");
    assert!(compared >= share(10_000, STEP), "{compared}");
}

#[test]
fn every_candidate_can_be_named_and_takes_the_time_that_was_said_or_more() {
    for question in some_of(questions(), STEP) {
        let auto = question.plan("auto").unwrap();
        let excluded = auto
            .candidates
            .iter()
            .filter(|one| one.left_out == Some(LeftOut::Slower));
        for candidate in excluded {
            let what = question.described();
            let planned = question.plan(&candidate.name);
            let planned = planned.unwrap_or_else(|error| panic!("{what}: {candidate:?}: {error}"));
            assert!(
                question.time(&planned) >= candidate.time,
                "{what}: {candidate:?}"
            );
            assert!(
                u64::from(planned.plan.slots()) >= candidate.slots,
                "{what}: {candidate:?}"
            );
        }
        for candidate in auto.candidates.iter().filter(|one| one.left_out.is_none()) {
            let planned = question.plan(&candidate.name);
            let planned = planned.unwrap_or_else(|error| {
                panic!("{}: {}: {error}", question.described(), candidate.name)
            });
            assert_eq!(
                question.time(&planned),
                candidate.time,
                "{}: {}",
                question.described(),
                candidate.name
            );
        }
    }
}

/// The collectives of two phases, with those of their halves.
const TWO_PHASES: [(CollectiveKind, CollectiveKind, CollectiveKind); 3] = [
    (
        CollectiveKind::AllReduce,
        CollectiveKind::ReduceScatter,
        CollectiveKind::AllGather,
    ),
    (
        CollectiveKind::Broadcast,
        CollectiveKind::Scatter,
        CollectiveKind::AllGather,
    ),
    (
        CollectiveKind::Reduce,
        CollectiveKind::ReduceScatter,
        CollectiveKind::Gather,
    ),
];

#[test]
fn auto_is_not_slower_than_two_algorithms_one_after_the_other() {
    let (mut compared, mut faster) = (0, BTreeSet::new());
    for question in some_of(questions(), STEP) {
        let kind = question.collective.kind();
        let Some((_, first, second)) = TWO_PHASES.into_iter().find(|(whole, ..)| *whole == kind)
        else {
            continue;
        };
        let names = |kind| {
            let records = algorithms::records_for(&question.fabric);
            let of_kind = records.filter(move |record| record.collective == kind);
            of_kind.map(|record| record.name).collect::<Vec<_>>()
        };
        let (first, second) = (names(first), names(second));
        let pairs = first
            .iter()
            .flat_map(|one| second.iter().map(move |other| (one, other)));
        let spelled = pairs.map(|(one, other)| format!("two_phases:first={one},second={other}"));
        let (more, found) = faster_than_auto(&question, spelled);
        compared += more;
        faster.extend(found);
    }
    assert!(faster.is_empty(), "of {compared}: {faster:#?}");
    assert!(compared >= share(1_000, STEP), "{compared}");
}

#[test]
fn what_algorithms_refuse_leaves_others_to_choose_from() {
    // Named algorithms cut vectors by themselves: pieces are left to planners.
    let fabric = Fabric::parse("wdm_ring:ranks=8,wavelengths=2").unwrap();
    let collective = Collective::new(CollectiveKind::Broadcast, 8).unwrap();
    let collective = collective.with_pieces(2).unwrap();
    let (size, method) = (Bytes::new(1 << 16), TimingModel::default());
    let planned = proved_plan("auto", &fabric, collective, size, &method);
    let mut refused = planned.candidates.iter();
    let chain = refused.find(|one| one.name == "chain").unwrap();
    assert!(matches!(chain.left_out, Some(LeftOut::Refused(_))));
}

#[test]
fn a_condition_leaves_the_fastest_of_the_plans_that_meet_it() {
    let method = TimingModel::default();
    let size = Bytes::new(1 << 16);
    let spec = "auto:effort=full";
    for (fabric, kind) in [
        ("wdm_ring:ranks=8,wavelengths=2", CollectiveKind::AllGather),
        ("dgx_h100:boxes=2", CollectiveKind::AllReduce),
        ("crossbar:ranks=8", CollectiveKind::Broadcast),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(kind, fabric.ranks()).unwrap();
        let free = proved_plan(spec, &fabric, collective, size, &method);
        let fastest = free.candidates[0].name.as_str();
        let ask = |spec: &str, condition: &dyn Fn(&Plan) -> Result<(), String>| {
            let task = PlanningTask {
                fabric: &fabric,
                collective,
                size: Some(size),
                method: &method,
                assignment: "auto",
                watch: &|_| {},
                condition: Some(condition),
            };
            planner::plan_task(&spec.parse().unwrap(), &task)
        };
        let is_other = |plan: &Plan| {
            // The plans of which a candidate consists are not tested.
            let tested = plan.schedule.collective;
            assert_eq!((tested.kind(), tested.ranks()), (kind, fabric.ranks()));
            match plan.algorithm == fastest {
                true => Err("this one not".to_owned()),
                false => Ok(()),
            }
        };
        let next = ask(spec, &is_other).unwrap();
        assert_eq!(verify(&next.plan), []);
        let time = |plan: &Plan| simulate::run(plan, size, &method).unwrap().time;
        let names = free.candidates.iter().map(|one| one.name.as_str());
        let others = names.filter(|&name| name != fastest).filter_map(|name| {
            let planned = planner::plan(&name.parse().unwrap(), &fabric, collective, size, &method);
            let plan = planned.ok()?.plan;
            (plan.algorithm != fastest).then(|| time(&plan))
        });
        assert_eq!(Some(time(&next.plan)), others.min(), "{fabric}");
        let left = next.candidates.iter().find(|one| one.name == fastest);
        let reason = left.and_then(|one| one.left_out.as_ref());
        assert_eq!(reason.unwrap().to_string(), "this one not");
        // What is named is not chosen, so the condition does not apply.
        assert_eq!(ask(fastest, &is_other).unwrap().plan.algorithm, fastest);
        let none = ask(spec, &|plan| Err(plan.algorithm.clone())).err();
        assert_eq!(none, Some(PlannerError::Unmet(fastest.to_owned())));
    }
}
