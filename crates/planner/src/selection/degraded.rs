//! Plans for machines of which parts are slower: plans made as if these were not slower, and plans that leave them out. Where a
//! cable is broken in one direction, also plans that leave the other one out.
//!
//! Planners of rings know one rate, and some of graphs want the machine whole. A plan for the whole
//! machine stays correct where a part is slower; its slots last as long as their slowest transfer.
//! A plan that leaves the part out has fewer resources, at their full rate. Both are timed on the
//! machine as it is, with links beside the plan for it, and the fastest one is taken.

use crate::selection::contest::Candidate;
use crate::{Planned, PlannerError, Question, find};
use opticoll_base::interrupt;
use opticoll_base::names::plural;
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::{NamedRoutes, Plan};

use opticoll_base::spec::Spec;

/// The fastest plan by a spec on machines without degraded parts ([`opticoll_fabric::fabric::Machine::undegraded`]), timed on the one of
/// a question.
///
/// # Errors
/// What the first of them refuses, where all do.
pub(crate) fn plan(
    question: &Question<'_>,
    spec: &Spec,
    mut undegraded: Vec<Fabric>,
) -> Result<Planned, PlannerError> {
    // Planners of links know different rates, too.
    if question.fabric.network().is_some() {
        undegraded.push(question.fabric.clone());
    }
    let mut made: Vec<(Candidate, Plan)> = Vec::new();
    let mut refused = None;
    for fabric in &undegraded {
        let planned = match (Question {
            fabric,
            ..*question
        })
        .answer_on_whole(spec)
        {
            Ok(planned) => planned,
            Err(problem) => {
                refused.get_or_insert(problem);
                continue;
            }
        };
        let mut plan = planned.plan.into_written_out();
        let routes = routes_on(question.fabric, &plan);
        plan.fabric = question.fabric.clone();
        plan.routes = routes.filter(|_| question.names_routes).unwrap_or_default();
        let mut outcome = opticoll_simulate::run(&plan, question.size, question.method);
        if outcome.is_err() && !plan.routes.is_empty() {
            // Some simulators know the routes of the fabric alone.
            plan.routes = NamedRoutes::default();
            outcome = opticoll_simulate::run(&plan, question.size, question.method);
        }
        let outcome = outcome?;
        let candidate = Candidate {
            name: plan.algorithm.clone(),
            slots: plan.slots().into(),
            time: outcome.time,
            left_out: None,
        };
        made.push((candidate, plan));
    }
    made.sort_by_key(|(candidate, _)| candidate.time);
    let (candidates, mut plans): (Vec<Candidate>, Vec<Plan>) = made.into_iter().unzip();
    if plans.is_empty() {
        return Err(refused.unwrap_or(PlannerError::CutOff));
    }
    let planned = Planned::from(plans.swap_remove(0));
    let chooses = find(question.collective.kind(), spec.name()).is_some_and(|one| one.chooses);
    Ok(match chooses {
        false => planned,
        true => Planned {
            reasons: vec![format!(
                "{} takes {}, the least of {} for the fabric as it is, at full rates, and without slower parts and links of one direction",
                candidates[0].name,
                candidates[0].time,
                plural(candidates.len(), "plan")
            )],
            candidates,
            ..planned
        },
    })
}

/// The routes of a plan on a part of its fabric: named where those of the part are others. None
/// without links, and where a route uses a link that the part has lost.
fn routes_on(part: &Fabric, plan: &Plan) -> Option<NamedRoutes> {
    let (own, network) = (part.network()?, plan.fabric.network()?);
    let mut routes = NamedRoutes::default();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for (number, transfer) in plan.schedule.transfers().enumerate() {
        interrupt::check();
        let (source, destination) = (transfer.source, transfer.destination);
        theirs.clear();
        match plan.routes.of(number) {
            Some(links) => theirs.extend_from_slice(links),
            None => network.route(source, destination, &mut theirs),
        }
        for link in &mut theirs {
            *link = part.link_in_part(plan.fabric.link_of_whole(*link))?;
        }
        ours.clear();
        own.route(source, destination, &mut ours);
        if ours != theirs {
            routes.assign(number, &theirs);
        }
    }
    Some(routes)
}
