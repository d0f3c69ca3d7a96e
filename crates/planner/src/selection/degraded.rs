//! Plans for machines of which some parts have reduced rates or one broken direction.
//!
//! Two kinds of plans are compared: plans made as if all parts had full rates, and plans that do
//! not use the slower parts. If a cable is broken in one direction, plans that do not use its other
//! direction are compared as well.
//!
//! Planners of rings know a single rate, and some planners of graphs need the whole machine. A plan
//! for the whole machine remains correct if a part is slower; the slowest transfer then determines
//! the length of a slot. A plan without the slower part has fewer resources at full rates. All
//! plans are simulated on the actual machine, and the fastest plan is returned. On electrical
//! fabrics, planners know links with different rates, so a plan for the actual machine is compared,
//! too.

use crate::selection::evaluation::CandidateResult;
use crate::selection::ring_and_graph::faster;
use crate::{Planned, PlannerError, PlanningProblem, find};
use opticoll_base::interrupt;
use opticoll_base::names::plural;
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::{NamedRoutes, Plan};

use opticoll_base::spec::Spec;

/// Returns the fastest plan of a specification. A plan is made for each of `planning_alternatives`
/// (see [`opticoll_fabric::fabric::Machine::planning_alternatives`]), and simulated on the actual
/// machine.
pub(crate) fn plan(
    problem: &PlanningProblem<'_>,
    spec: &Spec,
    mut planning_alternatives: Vec<Fabric>,
) -> Result<Planned, PlannerError> {
    if problem.fabric.network().is_some() {
        planning_alternatives.push(problem.fabric.clone());
    }
    let mut built: Vec<(CandidateResult, Plan)> = Vec::new();
    let mut refused = None;
    for fabric in &planning_alternatives {
        let intact = PlanningProblem { fabric, ..*problem };
        let planned = intact.solve_undegraded(spec);
        let planned = match planned.and_then(|planned| faster(spec, &intact, planned)) {
            Ok(planned) => planned,
            Err(error) => {
                refused.get_or_insert(error);
                continue;
            }
        };
        let mut plan = planned.plan.into_expanded();
        let routes = routes_on(problem.fabric, &plan);
        plan.fabric = problem.fabric.clone();
        plan.routes = routes
            .filter(|_| problem.may_name_routes || plan.fabric.has_light())
            .unwrap_or_default();
        let mut outcome = opticoll_simulate::run(&plan, problem.size, problem.method);
        if outcome.is_err() && !plan.routes.is_empty() {
            // Some simulators support only the default routes of the fabric.
            plan.routes = NamedRoutes::default();
            outcome = opticoll_simulate::run(&plan, problem.size, problem.method);
        }
        let outcome = outcome?;
        let candidate = CandidateResult {
            name: plan.algorithm.clone(),
            slots: plan.slots().into(),
            time: outcome.time,
            left_out: None,
        };
        built.push((candidate, plan));
    }
    built.sort_by_key(|(candidate, _)| candidate.time);
    let (candidates, mut plans): (Vec<CandidateResult>, Vec<Plan>) = built.into_iter().unzip();
    if plans.is_empty() {
        return Err(refused.unwrap_or(PlannerError::CutOff));
    }
    let planned = Planned::from(plans.swap_remove(0));
    let chooses =
        find(problem.collective.kind(), spec.name()).is_some_and(|planner| planner.chooses);
    Ok(match chooses {
        false => planned,
        true => Planned {
            reasons: vec![format!(
                "{} takes {}, the shortest time of {} for the fabric as it is, at full rates, and \
                 without slower parts and links of one direction",
                candidates[0].name,
                candidates[0].time,
                plural(candidates.len(), "plan")
            )],
            candidates,
            ..planned
        },
    })
}

/// Converts the routes of a plan for the whole machine to routes over the links of the fabric
/// `part`. A route is named if it differs from the default route of `part`, or if light takes it.
/// Returns `None` on fabrics whose plans name no routes, and if `part` lacks a link that a route
/// uses.
fn routes_on(part: &Fabric, plan: &Plan) -> Option<NamedRoutes> {
    let (part_network, network) = (part.routed_links()?, plan.fabric.routed_links()?);
    let mut routes = NamedRoutes::default();
    let (mut wanted_route, mut default_route) = (Vec::new(), Vec::new());
    for (number, transfer) in plan.schedule.transfers().enumerate() {
        interrupt::check();
        let (source, destination) = (transfer.source, transfer.destination);
        wanted_route.clear();
        match plan.routes.of(number) {
            Some(links) => wanted_route.extend_from_slice(links),
            None => network.route(source, destination, &mut wanted_route),
        }
        for link in &mut wanted_route {
            *link = part.link_in_part(plan.fabric.link_of_whole(*link))?;
        }
        default_route.clear();
        part_network.route(source, destination, &mut default_route);
        if default_route != wanted_route || part.has_light() {
            routes.assign(number, &wanted_route);
        }
    }
    Some(routes)
}
