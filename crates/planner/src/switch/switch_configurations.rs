//! Steps of an algorithm over a circuit switch, which changes its configuration when a change saves
//! time.
//!
//! A message of a step uses one circuit if the current configuration connects its ranks, and
//! several circuits otherwise. Alternatively, the configuration is changed before the step. The
//! cheapest choice depends on all steps. Let T(i, g) be the time of step i with configuration g,
//! and R the time of a change. The minimum time C(i, g) of all steps up to step i, if step i uses
//! configuration g, is
//!
//! C(i, g) = T(i, g) + min(C(i - 1, g), R + min over h of C(i - 1, h)),
//!
//! which is a shortest path over steps and configurations. The configurations to try ([`graphs`])
//! contain the circuits of as many consecutive steps as the ports permit; one configuration is a
//! cycle through all ranks. [`routes`] computes the time of a step with a configuration and the
//! circuits of the step's messages.
//!
//! If there is a packet network beside the switch (`packet_rate`), a step may use it while the
//! configuration stays up. T(i, g) is then the minimum of both times.
//!
//! With cut-through, all messages of a step share the circuits in a single slot.
//!
//! The algorithm `cyclic_doubling` is halving and doubling along a cycle. For 1 MiB on 64 ranks
//! with one port of 800 Gb/s, alpha = delta = 100 ns and R = 1 us, its plan changes the
//! configuration six times and takes 31,082.24 ns.

mod graphs;
mod routes;
mod steps;

use std::collections::BTreeMap;

use crate::selection::evaluation::{Built, Candidate, Evaluation};
use crate::{
    FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope, ensure,
    selection::candidate_bound,
};
use graphs::Configuration;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstConfiguration, SwitchedLight};
use opticoll_placement::circuit_switch::placement::PortStates;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::Schedule;
use routes::Route;
use steps::Step;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("algorithm", "algorithm whose steps are executed")
            .range("any algorithm of the collective")
            .default("the fastest"),
        OptionRecord::new(
            "configurations",
            "configurations of the steps: best, the configurations with the lowest cost for all \
             steps together; one, the same configuration for all steps; each, circuits for all \
             messages of each step; beside, the network beside the switch (packet_rate), without \
             circuits",
        )
        .range("best, one, each, packet")
        .default("best"),
    ],
    depends_on_size: true,
    takes_demands: true,
    ..Planner::new(
        "switch_configurations",
        "Switch configurations",
        &CollectiveKind::ALL,
        "Steps of an algorithm over a circuit switch, which changes its configuration if this \
        saves time; otherwise ranks relay messages over several circuits",
        "opticoll; for halving and doubling as in Short-circuiting Rings, arXiv 2510.03491",
        Scope::Switches(FamilyFunctions {
            applies: |switch| switch.planes == 1 || switch.packet_rate.is_some(),
            ..FamilyFunctions::new(plan, candidates)
        }),
    )
};

/// Choice of the configurations: the value of the option `settings`.
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
        // `Choice::Best` also uses the network beside the switch where this is cheaper, unless the
        // first configuration is charged.
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
            lower_bound: least,
            // Among candidates with equal bounds, the candidate with the fewest transfers comes
            // first.
            estimate: least.plus(Time::from_ps(transfers))?,
            transfers,
            build: Box::new(move |_| {
                let plan = build(&problem, switch, record.name, choice)?;
                Ok(Built::Plan(Box::new(plan)))
            }),
        })
    });
    offers.collect()
}

fn spec_of(algorithm: &str, choice: Choice) -> Spec {
    let spec = Spec::new(PLANNER.name).with("algorithm", algorithm);
    match Choice::ALL.iter().find(|(_, known)| *known == choice) {
        Some((name, _)) if choice != Choice::Best => spec.with("configurations", *name),
        _ => spec,
    }
}

/// Fails if the switch has several planes or, with `Choice::Beside`, if there is no network beside
/// the switch.
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
    ensure(fits, PLANNER.name, switch.ranks, reason)
}

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

/// Routes of a step's messages, in the order of the messages.
struct RoutedStep {
    uses_side_network: bool,
    routes: Vec<Route>,
}

fn route_steps(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    steps: &[Step],
    name: &str,
    choice: Choice,
) -> Result<Vec<RoutedStep>, PlannerError> {
    let over_side_network = |step: &Step| RoutedStep {
        uses_side_network: true,
        routes: routes::direct(step),
    };
    if choice == Choice::Beside {
        return Ok(steps.iter().map(over_side_network).collect());
    }
    let unfit = |sentence: String| PlacementError::new(PlacementProblem::Unfit, sentence);
    let configurations = graphs::configurations(switch, steps);
    let chosen = cheapest(problem, switch, steps, &configurations, choice)?.ok_or_else(|| {
        let spec = problem.fabric.spec();
        unfit(format!(
            "no configuration of {spec} can carry a step of {name}"
        ))
    })?;
    let route_step = |(step, configuration): (&Step, Option<usize>)| {
        let Some(configuration) = configuration else {
            return Some(over_side_network(step));
        };
        Some(RoutedStep {
            uses_side_network: false,
            routes: routes::routes(step, &configurations[configuration], switch)?,
        })
    };
    let routed: Option<Vec<RoutedStep>> = steps.iter().zip(chosen).map(route_step).collect();
    Ok(
        routed
            .ok_or_else(|| unfit(format!("the messages of {name} would be relayed too often")))?,
    )
}

/// Returns the fastest sequence of configurations: for each step the index of its configuration, or
/// `None` if the step uses the network beside the switch. Returns `None` if neither is possible for
/// some step.
fn cheapest(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    steps: &[Step],
    configurations: &[Configuration],
    choice: Choice,
) -> Result<Option<Vec<Option<usize>>>, PlannerError> {
    let (per_slot, change) = problem.switch_cost(switch)?;
    let first = match switch.first_configuration {
        FirstConfiguration::Free => 0,
        FirstConfiguration::Charged => change,
    };
    // Time of the step with each configuration in picoseconds, and whether the step uses the
    // network beside the switch.
    let times = |step: &Step| -> Vec<Option<(u64, bool)>> {
        let side_network_time = match choice {
            Choice::Best => routes::side_network_time(step, switch),
            _ => None,
        };
        let time = |configuration: &Configuration| {
            let direct = choice != Choice::Each || configuration.joins_all(step);
            let time = direct.then(|| routes::time(step, configuration, switch, per_slot));
            let options = [
                time.flatten().zip(Some(false)),
                side_network_time.zip(Some(true)),
            ];
            options.into_iter().flatten().min()
        };
        configurations.iter().map(time).collect()
    };
    let change = match choice {
        Choice::One => None,
        _ => Some(change),
    };
    // `least` is the minimum time up to a step that uses each configuration. `before` has, for each
    // step and configuration, the configuration of the previous step, and whether the step uses the
    // network beside the switch.
    let mut least: Vec<Option<u64>> = vec![Some(first); configurations.len()];
    let mut before = Vec::with_capacity(steps.len());
    for step in steps {
        interrupt::check();
        let cheapest = (0..configurations.len())
            .filter_map(|configuration| Some((least[configuration]?, configuration)));
        let changed = cheapest.min().filter(|_| !before.is_empty());
        let changed = changed
            .and_then(|(time, configuration)| Some((time.saturating_add(change?), configuration)));
        let mut next = Vec::with_capacity(configurations.len());
        let mut previous = Vec::with_capacity(configurations.len());
        for (configuration, time) in times(step).into_iter().enumerate() {
            let kept = least[configuration].map(|time| (time, configuration));
            let cheaper = [kept, changed]
                .into_iter()
                .flatten()
                .min_by_key(|cheaper| cheaper.0);
            next.push(cheaper.and_then(|(least, _)| Some(least.saturating_add(time?.0))));
            let uses_side_network = time.is_some_and(|(_, uses_side_network)| uses_side_network);
            previous.push((
                cheaper.map_or(configuration, |(_, from)| from),
                uses_side_network,
            ));
        }
        least = next;
        before.push(previous);
    }
    let end = (0..configurations.len())
        .filter_map(|configuration| Some((least[configuration]?, configuration)));
    let Some((_, mut at)) = end.min() else {
        return Ok(None);
    };
    let mut chosen = Vec::with_capacity(steps.len());
    for previous in before.iter().rev() {
        let (from, uses_side_network) = previous[at];
        chosen.push((!uses_side_network).then_some(at));
        at = from;
    }
    chosen.reverse();
    Ok(Some(chosen))
}

/// Builds the plan of steps whose messages have routes.
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
    let mut circuits = PortStates::new(switch);
    let mut start = 0;
    for (number, (step, routed_step)) in steps.iter().zip(routed_steps).enumerate() {
        let RoutedStep {
            uses_side_network,
            routes,
        } = routed_step;
        let mut used: BTreeMap<u32, BTreeMap<[u32; 2], Light>> = BTreeMap::new();
        for route in routes {
            interrupt::check();
            for hop in &route.hops {
                let slot = used.entry(start + hop.slot).or_default();
                slot.insert([hop.from, hop.to], Light::NONE);
            }
        }
        for (slot, lights) in &mut used {
            if *uses_side_network {
                lights
                    .values_mut()
                    .for_each(|light| *light = SwitchedLight::PACKET);
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
