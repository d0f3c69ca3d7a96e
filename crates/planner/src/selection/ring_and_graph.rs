//! Plans for rings and for graphs of fibres that are rings.
//!
//! A ring and its graph have the same lightpaths. Algorithms and planners that support the ring
//! plan on the ring, all others on the graph. If that is not the fabric of the problem, the plan is
//! converted. On a ring with cuts, such as a line, `auto` compares the plan of the ring with those
//! of the planners that need the graph.

use crate::selection::auto;
use crate::{Planned, PlannerError, PlanningProblem, find, ring_of};
use opticoll_base::spec::Spec;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_graph::RingAndGraph;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_placement::wdm_graph::{plan_of_graph, plan_of_ring};
use opticoll_plan::collective::CollectiveKind;

/// Returns the plan of a specification, made by `plan_on` for `fabric`, or for the ring or graph
/// with the same lightpaths.
pub(crate) fn plan(
    spec: &Spec,
    kind: CollectiveKind,
    fabric: &Fabric,
    plan_on: impl FnOnce(&Fabric) -> Result<Planned, PlannerError>,
) -> Result<Planned, PlannerError> {
    let planner = find(kind, spec.name());
    let applies = |fabric: &Fabric| planner.is_none_or(|planner| planner.applies(fabric));
    let is_ring = ring_of(fabric).is_some();
    if is_ring && applies(fabric) {
        return plan_on(fabric);
    }
    match RingAndGraph::of(fabric) {
        Some(pair) if is_ring && applies(&pair.graph) => {
            Ok(planned_on(fabric, plan_on(&pair.graph)?, &pair))
        }
        Some(pair) if !is_ring && (applies(&pair.ring) || !applies(fabric)) => {
            Ok(planned_on(fabric, plan_on(&pair.ring)?, &pair))
        }
        _ => plan_on(fabric),
    }
}

/// Converts a plan to a plan of `fabric`, which has the same lightpaths.
fn planned_on(fabric: &Fabric, planned: Planned, pair: &RingAndGraph) -> Planned {
    let plan = match (ring_of(fabric), ring_of(&planned.plan.fabric)) {
        (Some(_), None) => plan_of_ring(planned.plan, pair),
        (None, Some(_)) => plan_of_graph(planned.plan, pair),
        _ => planned.plan,
    };
    Planned {
        plan,
        outcome: None,
        ..planned
    }
}

/// Returns the faster of `on_ring`, a plan that `auto` made on a ring, and the plan that it makes
/// on the graph. Returns `on_ring` if the fabric is no ring, or a ring without cuts.
pub(crate) fn faster(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    on_ring: Planned,
) -> Result<Planned, PlannerError> {
    let planner = find(problem.collective.kind(), spec.name());
    let chooses = planner.is_some_and(|planner| planner.chooses);
    let Some(fastest) = on_ring.candidates.first().map(|candidate| candidate.time) else {
        return Ok(on_ring);
    };
    let has_cuts = |ring: &WdmRing| !ring.cuts.is_empty();
    if !chooses || ring_of(problem.fabric).is_some_and(|ring| !has_cuts(ring)) {
        return Ok(on_ring);
    }
    let pair = RingAndGraph::of(problem.fabric);
    let Some(pair) = pair.filter(|pair| has_cuts(pair.machine())) else {
        return Ok(on_ring);
    };
    let limit = Some(problem.limit.map_or(fastest, |limit| limit.min(fastest)));
    let on_graph = PlanningProblem {
        fabric: &pair.graph,
        tried: Some(&pair.ring),
        limit,
        ..*problem
    };
    let on_graph = match on_graph.solve_on_circuits(spec) {
        Err(PlannerError::NothingFits { .. }) => return Ok(on_ring),
        on_graph => planned_on(problem.fabric, on_graph?, &pair),
    };
    let (mut chosen, others) = match on_graph.candidates[0].time < fastest {
        true => (on_graph, on_ring.candidates),
        false => (on_ring, on_graph.candidates),
    };
    chosen.candidates.extend(others);
    chosen
        .candidates
        .sort_by_key(|result| (result.left_out.is_some(), result.time));
    Ok(Planned {
        reasons: auto::reasons(&chosen.candidates, problem)?,
        ..chosen
    })
}
