//! The steps of an algorithm over a circuit switch, its setting changed where that pays.
//!
//! A message of a step goes over one circuit where the setting in force joins its ranks, and over
//! several where it does not; or the setting is changed first. What is cheaper depends on all
//! steps: with T(i, g) the time of step i on setting g, R that of a change, the least time C(i, g)
//! up to step i with setting g at its end is
//!
//! C(i, g) = T(i, g) + min(C(i - 1, g), R + min over h of C(i - 1, h)),
//!
//! a shortest path over steps and settings. The settings tried (`graphs`) are what runs of steps
//! need as long as ports last, and a cycle through all ranks. What a step takes on a setting, and
//! over which circuits its messages go: `routes`.
//!
//! Where there is a network beside the switch, a step may go over that instead, while the setting
//! stays: T(i, g) is then the lesser of both times.
//!
//! Where a rank sends on what still arrives, all messages of a step go in one slot and share
//! circuits.
//!
//! Halving and doubling along a cycle is `cyclic_doubling`; on 64 ranks with one port of 800 Gb/s,
//! alpha = delta = 100 ns and R = 1 us it changes the setting six times for 1 MiB, and takes
//! 31,082.24 ns.

mod graphs;
mod routes;
mod steps;

use std::collections::BTreeMap;

use crate::selection::evaluation::{Built, Candidate, Evaluation, EvaluationOutcome};
use crate::{
    OnMachine, Planned, Planner, PlannerError, PlanningProblem, Scope, ensure,
    selection::lower_bound,
};
use graphs::Setting;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::fabric::circuits::{Charge, Circuits};
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstSetting, SwitchedLight};
use opticoll_placement::circuit_switch::placement::HeldCircuits;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::Schedule;
use opticoll_simulate::default_policy;
use routes::Route;
use steps::Step;

/// The planner of settings.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("algorithm", "algorithm whose steps are carried out")
            .range("any of the collective")
            .default("the fastest"),
        OptionRecord::new(
            "settings",
            "setting of each step: best, as cheap as all steps together can be; one, the same for \
             all; each, circuits for all messages of the step; beside, no circuits, but the \
             network beside the switch",
        )
        .range("best, one, each, beside")
        .default("best"),
    ],
    by_size: true,
    takes_demands: true,
    ..Planner::new(
        NAME,
        "Settings",
        &CollectiveKind::ALL,
        "Steps of an algorithm over a circuit switch, the setting changed where that pays and \
         shared by several hops where not",
        "opticoll; for halving and doubling as in Short-circuiting Rings, arXiv 2510.03491",
        Scope::Switches(OnMachine {
            applies: |switch| switch.planes == 1 || switch.beside_rate.is_some(),
            ..OnMachine::new(plan, candidates)
        }),
    )
};

const NAME: &str = "settings";

/// Which settings are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Best,
    One,
    Each,
    Beside,
}

impl Choice {
    const ALL: [(&'static str, Choice); 4] = [
        ("best", Choice::Best),
        ("one", Choice::One),
        ("each", Choice::Each),
        ("beside", Choice::Beside),
    ];
}

fn plan(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
) -> Result<Planned, PlannerError> {
    if problem.collective.ranks() < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
    let choice = opticoll_algorithms::choice(spec, "settings", &Choice::ALL)?;
    let kind = problem.collective.kind();
    if let Some(name) = spec.option("algorithm") {
        let record = opticoll_algorithms::find(kind, name)
            .map_err(|error| spec.refuse("algorithm", error))?;
        let plan = carry_out(problem, switch, record.name, choice)?;
        return Ok(plan.into());
    }
    let evaluation = Evaluation::new(problem)?;
    let EvaluationOutcome {
        fastest,
        candidates,
        ..
    } = evaluation.run(offers(problem, switch, choice)?, Vec::new())?;
    let (plan, _) = fastest?;
    Ok(Planned {
        plan,
        candidates,
        reasons: Vec::new(),
        outcome: None,
    })
}

fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    switch: &'a CircuitSwitch,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let is_charged = switch.planes > 1 || switch.first_setting == FirstSetting::Charged;
    let mut all = Vec::new();
    for choice in [Choice::Best, Choice::Beside] {
        // The best steps are beside the switch where those are cheaper, but where its first setting
        // costs, too.
        let is_new = match choice {
            Choice::Best => switch.planes == 1,
            _ => switch.beside_rate.is_some() && is_charged,
        };
        if is_new {
            all.extend(offers(problem, switch, choice)?);
        }
    }
    Ok(all)
}

/// The plans of all algorithms.
fn offers<'a>(
    problem: &PlanningProblem<'a>,
    switch: &'a CircuitSwitch,
    choice: Choice,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let least = problem.least()?;
    let (kind, ranks) = (problem.collective.kind(), problem.collective.ranks());
    let known = opticoll_algorithms::records_for(problem.fabric).filter(|record| {
        record.collective == kind
            && (record.accepts)(ranks).is_ok()
            && (record.transfers)(ranks) <= problem.most_transfers
    });
    let offers = known.map(|record| {
        let problem = *problem;
        let transfers = (record.transfers)(ranks);
        let (of_steps, slots) =
            lower_bound::formula_bound(record, &Spec::new(record.name), &problem)?;
        let least = least.max(of_steps);
        Ok(Candidate {
            name: named(record.name, choice).to_string(),
            slots: slots.max(1),
            least,
            // Of those that may be as fast the smallest come first.
            estimate: least.plus(Time::from_ps(transfers))?,
            transfers,
            make: Box::new(move |_| {
                let plan = carry_out(&problem, switch, record.name, choice)?;
                Ok(Built::Plan(Box::new(plan)))
            }),
        })
    });
    offers.collect()
}

fn named(algorithm: &str, choice: Choice) -> Spec {
    let spec = Spec::new(NAME).with("algorithm", algorithm);
    match Choice::ALL.iter().find(|(_, one)| *one == choice) {
        Some((name, _)) if choice != Choice::Best => spec.with("settings", *name),
        _ => spec,
    }
}

/// Refuses a switch of several planes; for steps beside it, one without a network there.
fn check(switch: &CircuitSwitch, choice: Choice) -> Result<(), AlgorithmError> {
    let (fits, reason) = match choice {
        Choice::Beside => (
            switch.beside_rate.is_some(),
            "it needs a circuit_switch with a network beside it (beside_rate)",
        ),
        _ => (
            switch.planes == 1,
            "it sets the ports of a circuit_switch with planes=1",
        ),
    };
    ensure(fits, NAME, switch.ranks, reason)
}

/// The plan of an algorithm's steps.
fn carry_out(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    name: &'static str,
    choice: Choice,
) -> Result<Plan, PlannerError> {
    check(switch, choice)?;
    let schedule =
        opticoll_algorithms::build(&Spec::new(name), problem.collective, problem.fabric)?;
    problem.fits(schedule.len() as u64)?;
    let steps: Vec<Step> = (0..schedule.steps())
        .map(|step| Step::of(&schedule, step, problem.size, switch.ranks))
        .collect::<Result<_, _>>()?;
    let routed = routed(problem, switch, &steps, name, choice)?;
    Ok(placed(
        problem,
        switch,
        schedule,
        &steps,
        &routed,
        named(name, choice).to_string(),
    ))
}

/// The routes of a step, in the order of its messages.
struct RoutedStep {
    /// Whether they are beside the switch.
    is_beside: bool,
    routes: Vec<Route>,
}

/// The routes of all steps.
fn routed(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    steps: &[Step],
    name: &str,
    choice: Choice,
) -> Result<Vec<RoutedStep>, PlannerError> {
    let straight = |step: &Step| RoutedStep {
        is_beside: true,
        routes: routes::straight(step),
    };
    if choice == Choice::Beside {
        return Ok(steps.iter().map(straight).collect());
    }
    let unfit = |sentence: String| PlacementError::new(PlacementProblem::Unfit, sentence);
    let settings = graphs::settings(switch, steps);
    let taken = cheapest(problem, switch, steps, &settings, choice)?.ok_or_else(|| {
        let spec = problem.fabric.spec();
        unfit(format!("no setting of {spec} carries out a step of {name}"))
    })?;
    let one = |(step, setting): (&Step, Option<usize>)| {
        let Some(setting) = setting else {
            return Some(straight(step));
        };
        Some(RoutedStep {
            is_beside: false,
            routes: routes::routes(step, &settings[setting], switch)?,
        })
    };
    let routed: Option<Vec<RoutedStep>> = steps.iter().zip(taken).map(one).collect();
    Ok(routed.ok_or_else(|| unfit(format!("{name} would be relayed too often")))?)
}

/// Picoseconds that each slot costs, and each change of the setting.
pub(crate) fn prices(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
) -> Result<(u64, u64), PlannerError> {
    let set_up = switch.reconfiguration.time()?.ps();
    let policy = problem.method.policy;
    let policy = policy.unwrap_or(default_policy(problem.fabric));
    Ok(match switch.charge(policy.name()) {
        Ok(Charge::EverySlot) => (set_up, 0),
        Ok(Charge::Never) => (0, 0),
        _ => (0, set_up),
    })
}

/// The settings of all steps that take the least time together, none for steps beside the switch;
/// `None` where a step has neither.
fn cheapest(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    steps: &[Step],
    settings: &[Setting],
    choice: Choice,
) -> Result<Option<Vec<Option<usize>>>, PlannerError> {
    let (per_slot, change) = prices(problem, switch)?;
    let first = match switch.first_setting {
        FirstSetting::Free => 0,
        FirstSetting::Charged => change,
    };
    // With whether it is beside the switch.
    let times = |step: &Step| -> Vec<Option<(u64, bool)>> {
        let beside = match choice {
            Choice::Best => routes::beside(step, switch, per_slot),
            _ => None,
        };
        let time = |setting: &Setting| {
            let direct = choice != Choice::Each || setting.joins_all(step);
            let own = direct.then(|| routes::time(step, setting, switch, per_slot));
            let both = [own.flatten().zip(Some(false)), beside.zip(Some(true))];
            both.into_iter().flatten().min()
        };
        settings.iter().map(time).collect()
    };
    let change = match choice {
        Choice::One => None,
        _ => Some(change),
    };
    // By setting: the least time up to a step, and the setting of the step before, with whether the
    // step is beside the switch.
    let mut least: Vec<Option<u64>> = vec![Some(first); settings.len()];
    let mut before = Vec::with_capacity(steps.len());
    for step in steps {
        interrupt::check();
        let cheapest = (0..settings.len()).filter_map(|one| Some((least[one]?, one)));
        let changed = cheapest.min().filter(|_| !before.is_empty());
        let changed = changed.and_then(|(time, one)| Some((time.saturating_add(change?), one)));
        let mut next = Vec::with_capacity(settings.len());
        let mut came = Vec::with_capacity(settings.len());
        for (one, time) in times(step).into_iter().enumerate() {
            let kept = least[one].map(|time| (time, one));
            let best = [kept, changed]
                .into_iter()
                .flatten()
                .min_by_key(|best| best.0);
            next.push(best.and_then(|(least, _)| Some(least.saturating_add(time?.0))));
            let is_beside = time.is_some_and(|(_, is_beside)| is_beside);
            came.push((best.map_or(one, |(_, from)| from), is_beside));
        }
        least = next;
        before.push(came);
    }
    let end = (0..settings.len()).filter_map(|one| Some((least[one]?, one)));
    let Some((_, mut at)) = end.min() else {
        return Ok(None);
    };
    let mut taken = Vec::with_capacity(steps.len());
    for came in before.iter().rev() {
        let (from, is_beside) = came[at];
        taken.push((!is_beside).then_some(at));
        at = from;
    }
    taken.reverse();
    Ok(Some(taken))
}

/// The plan of steps whose messages have their routes.
fn placed(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    schedule: Schedule,
    steps: &[Step],
    routed: &[RoutedStep],
    name: String,
) -> Plan {
    let mut plan = Plan::without_light(problem.fabric, schedule, name);
    plan.light = vec![Light::NONE; plan.len()];
    let mut circuits = HeldCircuits::new(switch);
    let mut start = 0;
    for (number, (step, routed)) in steps.iter().zip(routed).enumerate() {
        let RoutedStep { is_beside, routes } = routed;
        let mut used: BTreeMap<u32, BTreeMap<[u32; 2], Light>> = BTreeMap::new();
        for route in routes {
            interrupt::check();
            for hop in &route.hops {
                let slot = used.entry(start + hop.slot).or_default();
                slot.insert([hop.from, hop.to], Light::NONE);
            }
        }
        for (slot, lights) in &mut used {
            if *is_beside {
                lights
                    .values_mut()
                    .for_each(|light| *light = SwitchedLight::BESIDE);
                continue;
            }
            let ends: Vec<(u32, [u32; 2])> = lights.keys().map(|ends| (0, *ends)).collect();
            for (light, given) in lights.values_mut().zip(circuits.enter(*slot, &ends)) {
                *light = given;
            }
        }
        let mut relays = Vec::new();
        for (message, route) in step.messages.iter().zip(routes) {
            for &transfer in &message.transfers {
                for (place, hop) in route.hops.iter().enumerate() {
                    let slot = start + hop.slot;
                    let light = used[&slot][&[hop.from, hop.to]];
                    if place == 0 {
                        plan.slot[transfer as usize] = slot;
                        plan.light[transfer as usize] = light;
                    } else {
                        relays.push(Relay {
                            transfer,
                            rank: hop.from,
                            light,
                            slot,
                        });
                    }
                }
            }
        }
        relays.sort_by_key(|relay| (relay.transfer, relay.slot));
        plan.relays.extend(relays);
        // A step of nothing has a slot of its own, as everywhere.
        let end = used.last_key_value().map_or(start, |(slot, _)| *slot) + 1;
        plan.step_slots[number] = start..end;
        start = end;
    }
    plan
}
