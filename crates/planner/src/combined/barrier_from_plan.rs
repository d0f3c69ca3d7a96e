//! Barriers that use the lightpaths of another collective's plan for signals instead of data.
//!
//! Each lightpath carries a signal: the set of ranks from which its sender has heard. A rank hears
//! from at least all ranks whose data it would have after the original plan. After an all_reduce or
//! an all_gather, every rank has data from all ranks. After a reduce followed by a broadcast, every
//! rank also has data from all ranks. At the end, every rank has therefore heard from all ranks,
//! which is a barrier. Lightpaths of a step with the same source and destination are combined to
//! one signal. Signals that tell their receivers nothing new are left out.

use crate::building::{SEARCHED_TRANSFERS, claim_steps};
use crate::selection::evaluation::{Built, Candidate, Evaluation, EvaluationOutcome};
use crate::{Planned, Planner, PlannerError, PlanningProblem, Scope};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec, flat, nested};
use opticoll_base::units::{Bytes, Time};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, Plan, Relay};
use opticoll_plan::schedule::{Schedule, Transfer};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "collective",
            "collective whose plan carries the signals; a broadcast is preceded by a reduce",
        )
        .range("all_reduce, all_gather, broadcast")
        .default("all_reduce"),
        OptionRecord::new(
            "plan",
            "algorithm of that collective, such as hierarchical/groups=17",
        )
        .range("algorithms of that collective")
        .default("the fastest found"),
        OptionRecord::new("first", "algorithm of the reduce before a broadcast")
            .range("algorithms of reduce")
            .default("the fastest found"),
    ],
    depends_on_size: true,
    ..Planner::new(
        "barrier_from_plan",
        "Barrier from plan",
        &[CollectiveKind::Barrier],
        "Uses the lightpaths of the fastest all_reduce, all_gather, or reduce and broadcast \
        for signals",
        "opticoll",
        Scope::Any(|fabric| fabric.has_light(), plan, candidates),
    )
};

/// Collectives whose plans may be used for a barrier. (The plan of a broadcast is used after the
/// plan of a reduce.)
const CARRIERS: [CollectiveKind; 3] = [
    CollectiveKind::Broadcast,
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
];

/// Maximum number of transfers per rank that are simulated in the search for a plan. The larger of
/// this limit and [`SEARCHED_TRANSFERS`] applies.
const MAX_TRANSFERS_PER_RANK: u64 = 1 << 6;

/// Returns three candidates for `auto`: barriers along the fastest plans of an all_reduce, an
/// all_gather and a broadcast. `auto` builds these candidates just before the algorithms that it
/// tries last.
fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let ranks = u64::from(problem.fabric.ranks());
    if ranks < 2 {
        return Ok(Vec::new());
    }
    let candidate = |kind: CollectiveKind| {
        let spec = Spec::new(PLANNER.name).with("collective", kind);
        let problem = PlanningProblem {
            max_work: problem
                .max_work
                .min(problem.work(SEARCHED_TRANSFERS.max(MAX_TRANSFERS_PER_RANK * ranks))),
            ..*problem
        };
        Candidate {
            name: spec.to_string(),
            slots: 0,
            lower_bound: Time::ZERO,
            estimate: Time::from_ps(u64::MAX - 2),
            transfers: match kind {
                CollectiveKind::AllGather => ranks * ranks,
                _ => 2 * ranks,
            },
            build: Box::new(move |_| Ok(Built::from(barrier_along(&spec, kind, &problem)?))),
        }
    };
    // The switches of a grid have one configuration, which cannot serve two plans.
    let joins_plans = problem.fabric.planes().is_none();
    let carriers = CARRIERS
        .into_iter()
        .filter(|kind| joins_plans || *kind != CollectiveKind::Broadcast);
    Ok(carriers.map(candidate).collect())
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    if spec.options().next().is_none() {
        let candidates = candidates(problem)?;
        let least = Time::ZERO;
        let evaluation = Evaluation {
            problem,
            lower_bound: least,
        };
        let EvaluationOutcome { fastest, .. } = evaluation.run(candidates, Vec::new())?;
        return Ok(fastest?.0.into());
    }
    let of = spec.option("collective").unwrap_or("all_reduce");
    let Some(kind) = CARRIERS.into_iter().find(|kind| kind.name() == of) else {
        return Err(spec
            .refuse("collective", "must be all_reduce, all_gather or broadcast")
            .into());
    };
    if kind != CollectiveKind::Broadcast && spec.option("first").is_some() {
        let rule = "applies to collective=broadcast only";
        return Err(spec.refuse("first", rule).into());
    }
    barrier_along(spec, kind, problem).map(Planned::from)
}

/// Builds the barrier along a plan of `kind`; before a broadcast, also along a plan of a reduce.
/// The options `plan` and `first` of `spec` name the two plans. A plan that is not named is the
/// fastest plan.
fn barrier_along(
    spec: &Spec,
    kind: CollectiveKind,
    problem: &PlanningProblem<'_>,
) -> Result<Plan, PlannerError> {
    let carrier = |kind: CollectiveKind, key: &str| -> Result<Plan, PlannerError> {
        let inner = PlanningProblem {
            collective: Collective::new(kind, problem.collective.ranks())?,
            size: Bytes::new(0),
            may_name_routes: false,
            ..*problem
        };
        let planned = match spec.option(key) {
            Some(text) => inner.solve(&nested(text)?)?,
            None => inner.fastest()?,
        };
        Ok(planned.plan.into_expanded())
    };
    let ranks = problem.collective.ranks();
    let mut named = Spec::new(PLANNER.name).with("collective", kind);
    let mut carriers = Vec::new();
    if kind == CollectiveKind::AllGather {
        problem.fits(u64::from(ranks).pow(2))?;
    }
    if kind == CollectiveKind::Broadcast {
        if problem.fabric.planes().is_some() {
            return Err(AlgorithmError::refused(
                PLANNER.name,
                ranks,
                "collective=broadcast joins two plans, but the switches of a wss_grid \
                 have one configuration for all slots",
            )
            .into());
        }
        carriers.push(carrier(CollectiveKind::Reduce, "first")?);
        named = named.with("first", flat(&carriers[0].algorithm));
    }
    carriers.push(carrier(kind, "plan")?);
    named = named.with("plan", flat(&carriers[carriers.len() - 1].algorithm));
    build_barrier(problem, &carriers, named.to_string())
}

/// Builds the barrier along the lightpaths of the plans `carriers`, one plan after the other.
fn build_barrier(
    problem: &PlanningProblem<'_>,
    carriers: &[Plan],
    algorithm: String,
) -> Result<Plan, PlannerError> {
    let ranks = problem.collective.ranks();
    problem.fits(carriers.iter().map(|plan| plan.len() as u64).sum())?;
    let mut barrier = Plan {
        fabric: problem.fabric.clone(),
        schedule: Schedule::new(problem.collective),
        algorithm,
        step_slots: Vec::new(),
        ..carriers[0].without_lightpaths()
    };
    let steps = |plan: &Plan| 0..plan.schedule.steps();
    let first: Vec<(&Plan, Vec<usize>)> = carriers
        .iter()
        .flat_map(|plan| steps(plan).map(move |step| (plan, first_signals(plan, step))))
        .collect();
    let ends = |(plan, signals): &(&Plan, Vec<usize>)| {
        let ends = signals.iter().map(|&index| plan.schedule.ends(index));
        ends.collect()
    };
    let informative = find_informative(ranks, &first.iter().map(ends).collect::<Vec<_>>());
    for ((plan, signals), informative) in first.iter().zip(informative) {
        let informed = signals.iter().zip(informative);
        let informed: Vec<usize> = informed
            .filter(|(_, informative)| *informative)
            .map(|(&index, _)| index)
            .collect();
        add_step(&mut barrier, plan, &informed);
    }
    barrier.schedule.claims = claim_steps(&barrier.schedule);
    Ok(barrier)
}

/// Adds a step to the barrier. The step has a signal for each transfer of `plan` with an index in
/// `informed`. Slots without signals are left out.
fn add_step(barrier: &mut Plan, plan: &Plan, informed: &[usize]) {
    if informed.is_empty() {
        return;
    }
    let hops = informed.iter().flat_map(|&index| plan.hops_of(index));
    let used_slots: BTreeSet<u32> = hops.map(|hop| hop.slot).collect();
    let used_slots: Vec<u32> = used_slots.into_iter().collect();
    let start = barrier.slots();
    let placed = |slot: u32| start + used_slots.partition_point(|&used| used < slot) as u32;
    barrier.schedule.begin_step();
    for &index in informed {
        let (source, destination) = plan.schedule.ends(index);
        let transfer = barrier.len() as u32;
        barrier.push(Lightpath {
            slot: placed(plan.slot[index]),
            light: plan.light_of(index),
            transfer: Transfer::reduce(0, source, destination),
        });
        if let Some(links) = plan.routes.of(index) {
            barrier.routes.assign(transfer as usize, links);
        }
        let relays = plan.relays_of(index).iter().map(|relay| Relay {
            transfer,
            slot: placed(relay.slot),
            ..*relay
        });
        barrier.relays.extend(relays);
    }
    barrier
        .step_slots
        .push(start..start + used_slots.len() as u32);
}

/// Returns one transfer of a step for each pair (source, destination): the index of the first
/// transfer of this pair.
fn first_signals(plan: &Plan, step: usize) -> Vec<usize> {
    let mut pairs = FxHashSet::default();
    let mut signals: Vec<usize> = plan.schedule.step(step).collect();
    signals.sort_by_key(|&index| plan.slot[index]);
    signals.retain(|&index| pairs.insert(plan.schedule.ends(index)));
    signals.sort_unstable();
    signals
}

/// Number of ranks that [`find_informative`] processes at the same time, to save memory.
const GROUP_RANKS: usize = 1024;

/// Returns, for each signal (source and destination) of each step, whether the signal is
/// informative: the sender has heard from a rank from which the receiver has not heard.
pub(crate) fn find_informative(ranks: u32, steps: &[Vec<(u32, u32)>]) -> Vec<Vec<bool>> {
    let ranks = ranks as usize;
    let mut informative: Vec<Vec<bool>> =
        steps.iter().map(|step| vec![false; step.len()]).collect();
    for first in (0..ranks).step_by(GROUP_RANKS) {
        let mut heard = vec![[0u64; GROUP_RANKS / 64]; ranks];
        for (column, rank) in (first..ranks.min(first + GROUP_RANKS)).enumerate() {
            heard[rank][column / 64] |= 1 << (column % 64);
        }
        for (step, informative) in steps.iter().zip(&mut informative) {
            interrupt::check();
            let before: Vec<_> = step.iter().map(|&(from, _)| heard[from as usize]).collect();
            for ((&(_, to), informed), informative) in
                step.iter().zip(&before).zip(informative.iter_mut())
            {
                let receiver_heard = heard[to as usize];
                *informative |= informed
                    .iter()
                    .zip(receiver_heard)
                    .any(|(informed, heard)| informed & !heard != 0);
            }
            for (&(_, to), informed) in step.iter().zip(&before) {
                let receiver_heard = heard[to as usize].iter_mut();
                receiver_heard
                    .zip(informed)
                    .for_each(|(heard, informed)| *heard |= informed);
            }
        }
    }
    informative
}
