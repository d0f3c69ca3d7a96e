//! Plans for graphs of fibres that are rings.
//!
//! Such a graph has the same lightpaths as a `wdm_ring`. Algorithms and planners that support the
//! ring plan on the ring, and the plan is written with the routes of the graph.

use crate::{Planned, PlannerError, find};
use opticoll_base::spec::Spec;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::families::CircuitMachine;
use opticoll_placement::wdm_graph::plan_of_graph;
use opticoll_plan::collective::CollectiveKind;

/// Returns the plan of a specification, made by `plan_on`. If the fabric is a graph that forms a
/// ring, `plan_on` receives this ring, unless only the graph is supported.
pub(crate) fn plan(
    spec: &Spec,
    kind: CollectiveKind,
    fabric: &Fabric,
    plan_on: impl FnOnce(&Fabric) -> Result<Planned, PlannerError>,
) -> Result<Planned, PlannerError> {
    let ring = match fabric.circuit_machine() {
        Some(CircuitMachine::WdmGraph(graph)) => graph.as_ring(),
        _ => None,
    };
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
