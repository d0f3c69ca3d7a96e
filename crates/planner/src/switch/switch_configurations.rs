//! Steps of an algorithm over a circuit switch, with changes of the setting where they pay.
//!
//! A message of a step passes one circuit if the current setting connects its ranks, or several
//! circuits if not; or the setting is changed first. The cheapest choice depends on all steps. Let
//! T(i, g) be the time of step i on setting g, and R the time of a change. The least time C(i, g)
//! up to step i with setting g at its end is
//!
//! C(i, g) = T(i, g) + min(C(i - 1, g), R + min over h of C(i - 1, h)),
//!
//! a shortest path over steps and settings. The settings to try ([`graphs`]) hold the circuits of
//! runs of steps as long as the ports suffice, and a cycle through all ranks. [`routes`] computes
//! the time of a step on a setting and the circuits of its messages.
//!
//! With a network beside the switch, a step may use the network instead, while the setting stays:
//! T(i, g) is then the lesser of both times.
//!
//! With cut-through, all messages of a step share a slot and the circuits.
//!
//! Halving and doubling along a cycle is the algorithm `cyclic_doubling`; on 64 ranks with one port
//! of 800 Gb/s, alpha = delta = 100 ns and R = 1 us the plan changes the setting six times for 1
//! MiB, and takes 31,082.24 ns.

mod graphs;
mod routes;
mod steps;

use std::collections::BTreeMap;

use crate::selection::evaluation::{Built, Candidate, Evaluation};
use crate::{
    FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope, ensure,
    selection::candidate_bound,
};
use graphs::Setting;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstConfiguration, SwitchedLight};
use opticoll_placement::circuit_switch::placement::HeldCircuits;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::Schedule;
use routes::Route;
use steps::Step;

/// Declaration of the planner of settings.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("algorithm", "algorithm whose steps are executed")
            .range("any algorithm of the collective")
            .default("the fastest"),
        OptionRecord::new(
            "configurations",
            "settings of the steps: best, those with the least cost for all steps together; one, \
             the same setting for all steps; each, circuits for all messages of each step; packet, \
             the network beside the switch, without circuits",
        )
        .range("best, one, each, packet")
        .default("best"),
    ],
    by_size: true,
    takes_demands: true,
    ..Planner::new(
        NAME,
        "Settings",
        &CollectiveKind::ALL,
        "Steps of an algorithm over a circuit switch, which changes its setting where a change \
         saves time, and otherwise relays messages over several circuits",
        "opticoll; for halving and doubling as in Short-circuiting Rings, arXiv 2510.03491",
        Scope::Switches(FamilyFunctions {
            applies: |switch| switch.planes == 1 || switch.packet_rate.is_some(),
            ..FamilyFunctions::new(plan, candidates)
        }),
    )
};

const NAME: &str = "switch_configurations";

/// Settings to use.
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
        ("packet", Choice::Beside),
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
    let choice = opticoll_algorithms::choice(spec, "configurations", &Choice::ALL)?;
    let kind = problem.collective.kind();
    if let Some(name) = spec.option("algorithm") {
        let record = opticoll_algorithms::find(kind, name)
            .map_err(|error| spec.refuse("algorithm", error))?;
        let plan = build(problem, switch, record.name, choice)?;
        return Ok(plan.into());
    }
    Evaluation::new(problem)?.choose(offers(problem, switch, choice)?)
}

fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    switch: &'a CircuitSwitch,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let is_charged = switch.planes > 1 || switch.first_configuration == FirstConfiguration::Charged;
    let mut candidates = Vec::new();
    for choice in [Choice::Best, Choice::Beside] {
        // The best steps use the network beside the switch where this is cheaper, except if the
        // first setting is charged.
        let is_candidate = match choice {
            Choice::Best => switch.planes == 1,
            _ => switch.packet_rate.is_some() && is_charged,
        };
        if is_candidate {
            candidates.extend(offers(problem, switch, choice)?);
        }
    }
    Ok(candidates)
}

/// Returns the plans of all algorithms as candidates.
fn offers<'a>(
    problem: &PlanningProblem<'a>,
    switch: &'a CircuitSwitch,
    choice: Choice,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let least = problem.least()?;
    let (kind, ranks) = (problem.collective.kind(), problem.collective.ranks());
    let records = opticoll_algorithms::records_for(problem.fabric).filter(|record| {
        record.collective == kind
            && (record.accepts)(ranks).is_ok()
            && (record.transfers)(ranks) <= problem.max_transfers
    });
    let offers = records.map(|record| {
        let problem = *problem;
        let transfers = (record.transfers)(ranks);
        let (formula_least, slots) =
            candidate_bound::formula_bound(record, &Spec::new(record.name), &problem)?;
        let least = least.max(formula_least);
        Ok(Candidate {
            name: spec_of(record.name, choice).to_string(),
            slots: slots.max(1),
            least,
            // Among plans with the same bound the smallest comes first.
            estimate: least.plus(Time::from_ps(transfers))?,
            transfers,
            make: Box::new(move |_| {
                let plan = build(&problem, switch, record.name, choice)?;
                Ok(Built::Plan(Box::new(plan)))
            }),
        })
    });
    offers.collect()
}

fn spec_of(algorithm: &str, choice: Choice) -> Spec {
    let spec = Spec::new(NAME).with("algorithm", algorithm);
    match Choice::ALL.iter().find(|(_, known)| *known == choice) {
        Some((name, _)) if choice != Choice::Best => spec.with("configurations", *name),
        _ => spec,
    }
}

/// Refuses a switch with several planes; for steps beside the switch, a switch without such a
/// network.
fn check(switch: &CircuitSwitch, choice: Choice) -> Result<(), AlgorithmError> {
    let (fits, reason) = match choice {
        Choice::Beside => (
            switch.packet_rate.is_some(),
            "it needs a circuit_switch with a network beside it (packet_rate)",
        ),
        _ => (
            switch.planes == 1,
            "it sets the ports of a circuit_switch with planes=1",
        ),
    };
    ensure(fits, NAME, switch.ranks, reason)
}

/// Builds the plan of the steps of an algorithm.
fn build(
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
    let routed = route_steps(problem, switch, &steps, name, choice)?;
    Ok(place(
        problem,
        switch,
        schedule,
        &steps,
        &routed,
        spec_of(name, choice).to_string(),
    ))
}

/// Routes of a step, in the order of its messages.
struct RoutedStep {
    /// True if the routes use the network beside the switch.
    is_beside: bool,
    routes: Vec<Route>,
}

/// Returns the routes of all steps.
fn route_steps(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    steps: &[Step],
    name: &str,
    choice: Choice,
) -> Result<Vec<RoutedStep>, PlannerError> {
    let beside_switch = |step: &Step| RoutedStep {
        is_beside: true,
        routes: routes::direct(step),
    };
    if choice == Choice::Beside {
        return Ok(steps.iter().map(beside_switch).collect());
    }
    let unfit = |sentence: String| PlacementError::new(PlacementProblem::Unfit, sentence);
    let settings = graphs::settings(switch, steps);
    let chosen = cheapest(problem, switch, steps, &settings, choice)?.ok_or_else(|| {
        let spec = problem.fabric.spec();
        unfit(format!("no setting of {spec} can carry a step of {name}"))
    })?;
    let route_step = |(step, setting): (&Step, Option<usize>)| {
        let Some(setting) = setting else {
            return Some(beside_switch(step));
        };
        Some(RoutedStep {
            is_beside: false,
            routes: routes::routes(step, &settings[setting], switch)?,
        })
    };
    let routed: Option<Vec<RoutedStep>> = steps.iter().zip(chosen).map(route_step).collect();
    Ok(
        routed
            .ok_or_else(|| unfit(format!("the messages of {name} would be relayed too often")))?,
    )
}

/// Returns the settings of all steps that take the least time together; `None` for a step beside
/// the switch. Returns `None` if neither is possible for some step.
fn cheapest(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    steps: &[Step],
    settings: &[Setting],
    choice: Choice,
) -> Result<Option<Vec<Option<usize>>>, PlannerError> {
    let (per_slot, change) = problem.switch_cost(switch)?;
    let first = match switch.first_configuration {
        FirstConfiguration::Free => 0,
        FirstConfiguration::Charged => change,
    };
    // Time of the step on each setting, and whether it uses the network beside the switch.
    let times = |step: &Step| -> Vec<Option<(u64, bool)>> {
        let beside = match choice {
            Choice::Best => routes::beside(step, switch, per_slot),
            _ => None,
        };
        let time = |setting: &Setting| {
            let direct = choice != Choice::Each || setting.joins_all(step);
            let time = direct.then(|| routes::time(step, setting, switch, per_slot));
            let options = [time.flatten().zip(Some(false)), beside.zip(Some(true))];
            options.into_iter().flatten().min()
        };
        settings.iter().map(time).collect()
    };
    let change = match choice {
        Choice::One => None,
        _ => Some(change),
    };
    // Least time up to a step for each setting; the setting of the step before, and whether the
    // step uses the network beside the switch.
    let mut least: Vec<Option<u64>> = vec![Some(first); settings.len()];
    let mut before = Vec::with_capacity(steps.len());
    for step in steps {
        interrupt::check();
        let cheapest = (0..settings.len()).filter_map(|setting| Some((least[setting]?, setting)));
        let changed = cheapest.min().filter(|_| !before.is_empty());
        let changed =
            changed.and_then(|(time, setting)| Some((time.saturating_add(change?), setting)));
        let mut next = Vec::with_capacity(settings.len());
        let mut previous = Vec::with_capacity(settings.len());
        for (setting, time) in times(step).into_iter().enumerate() {
            let kept = least[setting].map(|time| (time, setting));
            let best = [kept, changed]
                .into_iter()
                .flatten()
                .min_by_key(|best| best.0);
            next.push(best.and_then(|(least, _)| Some(least.saturating_add(time?.0))));
            let is_beside = time.is_some_and(|(_, is_beside)| is_beside);
            previous.push((best.map_or(setting, |(_, from)| from), is_beside));
        }
        least = next;
        before.push(previous);
    }
    let end = (0..settings.len()).filter_map(|setting| Some((least[setting]?, setting)));
    let Some((_, mut at)) = end.min() else {
        return Ok(None);
    };
    let mut chosen = Vec::with_capacity(steps.len());
    for previous in before.iter().rev() {
        let (from, is_beside) = previous[at];
        chosen.push((!is_beside).then_some(at));
        at = from;
    }
    chosen.reverse();
    Ok(Some(chosen))
}

/// Builds the plan of steps whose messages have their routes.
fn place(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    schedule: Schedule,
    steps: &[Step],
    routed_steps: &[RoutedStep],
    name: String,
) -> Plan {
    let mut plan = Plan::without_light(problem.fabric, schedule, name);
    plan.light = vec![Light::NONE; plan.len()];
    let mut circuits = HeldCircuits::new(switch);
    let mut start = 0;
    for (number, (step, routed_step)) in steps.iter().zip(routed_steps).enumerate() {
        let RoutedStep { is_beside, routes } = routed_step;
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
        // A step without messages has a slot of its own, as in all plans.
        let end = used.last_key_value().map_or(start, |(slot, _)| *slot) + 1;
        plan.step_slots[number] = start..end;
        start = end;
    }
    plan
}
