//! Plans for graphs of fibres that are rings.
//!
//! Such a graph has the same lightpaths as a `wdm_ring`. Algorithms and planners that support the
//! ring plan on the ring, and the plan is written with the routes of the graph. Most planners of
//! rings need rings without cuts. On a ring with cuts, such as a line, `auto` compares the plan of
//! the ring with that of the planners of graphs.

use crate::selection::auto;
use crate::{Planned, PlannerError, PlanningProblem, find};
use opticoll_base::spec::Spec;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wdm_graph::RingOfGraph;
use opticoll_placement::wdm_graph::plan_of_graph;
use opticoll_plan::collective::CollectiveKind;
use rustc_hash::FxHashSet;

/// Returns the plan of a specification, made by `plan_on`. If the fabric is a graph that forms a
/// ring, `plan_on` receives this ring, unless only the graph is supported.
pub(crate) fn plan(
    spec: &Spec,
    kind: CollectiveKind,
    fabric: &Fabric,
    plan_on: impl FnOnce(&Fabric) -> Result<Planned, PlannerError>,
) -> Result<Planned, PlannerError> {
    let ring = ring_of_graph(fabric);
    let planner = find(kind, spec.name());
    let needs_graph = |ring: &Fabric| {
        planner.is_some_and(|planner| planner.applies(fabric) && !planner.applies(ring))
    };
    match ring.filter(|ring| !needs_graph(&ring.fabric)) {
        None => plan_on(fabric),
        Some(ring) => {
            let planned = plan_on(&ring.fabric)?;
            Ok(Planned {
                plan: plan_of_graph(planned.plan, fabric, &ring),
                outcome: None,
                ..planned
            })
        }
    }
}

/// Returns the faster of `on_ring`, a plan that `auto` made on the ring that the graph forms, and
/// the plan that it makes on the graph. Returns `on_ring` if the ring has no cuts.
pub(crate) fn faster(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    on_ring: Planned,
) -> Result<Planned, PlannerError> {
    let has_cuts = |ring: RingOfGraph| !ring.ring().cuts.is_empty();
    let planner = find(problem.collective.kind(), spec.name());
    let chooses = planner.is_some_and(|planner| planner.chooses);
    let Some(fastest) = on_ring.candidates.first().map(|candidate| candidate.time) else {
        return Ok(on_ring);
    };
    if !chooses || !ring_of_graph(problem.fabric).is_some_and(has_cuts) {
        return Ok(on_ring);
    }
    let limit = Some(problem.limit.map_or(fastest, |limit| limit.min(fastest)));
    let on_graph = PlanningProblem { limit, ..*problem }.solve_on_circuits(spec);
    let on_graph = match on_graph {
        Err(PlannerError::NothingFits { .. }) => return Ok(on_ring),
        on_graph => on_graph?,
    };
    let (mut chosen, others) = match on_graph.candidates[0].time < fastest {
        true => (on_graph, on_ring.candidates),
        false => (on_ring, on_graph.candidates),
    };
    let mut known: FxHashSet<String> = FxHashSet::default();
    chosen.candidates.extend(others);
    chosen
        .candidates
        .sort_by_key(|result| (result.left_out.is_some(), result.time));
    chosen
        .candidates
        .retain(|result| known.insert(result.name.clone()));
    Ok(Planned {
        reasons: auto::reasons(&chosen.candidates, problem)?,
        ..chosen
    })
}

fn ring_of_graph(fabric: &Fabric) -> Option<RingOfGraph> {
    match fabric.circuit_machine() {
        Some(CircuitMachine::WdmGraph(graph)) => graph.as_ring(),
        _ => None,
    }
}
