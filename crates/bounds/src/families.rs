//! Lower bounds of any fabric with circuits: calls the module of the fabric's family.

use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::fabric::circuits::Paths;
use opticoll_fabric::fabric::{Fabric, circuits};
use opticoll_fabric::families::CircuitMachine::{
    CircuitSwitch, LightpathGrid, PassiveStar, WdmGraph, WdmRing, WssGrid,
};
use opticoll_plan::collective::Collective;

use crate::electrical::WitnessedBound;
use crate::{Bound, TimeBound};
use crate::{circuit_switch, lightpath_grid, passive_star, wdm_graph, wdm_ring, wss_grid};

/// Collective whose time is bounded, with its size and the cost of its circuits.
pub struct CircuitProblem<'a> {
    /// Collective.
    pub collective: &'a Collective,
    /// Size of a block or of the vector, as the collective defines its size.
    pub size: Bytes,
    /// Rule by which the policy charges reconfigurations.
    pub charge: circuits::ReconfigurationCharge,
    /// Lifetime of lightpaths under the policy `setup_teardown`.
    pub paths: Paths,
}

/// Returns the greatest known lower bound on the number of slots. `None` if no bound is known or
/// the fabric has no slots. If `single` is true, the bound assumes that each circuit carries at
/// most one chunk per slot; otherwise the bound holds for every plan.
pub fn slots_bound(fabric: &Fabric, collective: &Collective, single: bool) -> Option<Bound> {
    let fabric = &as_ring(fabric);
    match fabric.circuit_machine()? {
        CircuitSwitch(switch) => Some(circuit_switch::slots(switch, collective)),
        _ if collective.demand().is_some() => None,
        WdmRing(ring) if single => Some(wdm_ring::best(ring, collective)),
        WdmRing(ring) => Some(wdm_ring::slots_for_any_load(ring, collective)),
        WdmGraph(graph) => Some(wdm_graph::best_slots(graph, collective, single)),
        WssGrid(grid) => Some(wss_grid::slots(grid, collective)),
        LightpathGrid(_) => None,
        PassiveStar(star) if single => Some(passive_star::slots(star, collective)),
        PassiveStar(star) => Some(passive_star::slots_for_any_load(star, collective)),
    }
}

/// Returns the ring that a graph of fibres forms, which has the same lightpaths. Returns any other
/// fabric itself.
fn as_ring(fabric: &Fabric) -> Fabric {
    let ring = match fabric.circuit_machine() {
        Some(WdmGraph(graph)) => graph.as_ring(),
        _ => None,
    };
    ring.map_or_else(|| fabric.clone(), |ring| ring.fabric)
}

/// Returns the greatest known lower bound on the time of an all_to_all with a demand, over plans in
/// which no rank relays. `None` if no bound is known. Fails if a time exceeds 64 bits of
/// picoseconds.
pub fn direct_bound(
    fabric: &Fabric,
    problem: &CircuitProblem<'_>,
) -> Result<Option<TimeBound>, UnitError> {
    let CircuitProblem {
        collective,
        size,
        charge,
        ..
    } = *problem;
    match fabric.circuit_machine() {
        Some(CircuitSwitch(switch)) if collective.demand().is_some() => {
            circuit_switch::demanded::direct(switch, collective, size, charge)
        }
        _ => Ok(None),
    }
}

/// Returns the known lower bounds on the time of every plan on a fabric with circuits, with their
/// witnesses. Graphs of fibres have several bounds, other fabrics only the greatest. Fails if a time
/// exceeds 64 bits of picoseconds.
pub fn time_bounds(
    fabric: &Fabric,
    problem: &CircuitProblem<'_>,
) -> Result<Vec<WitnessedBound>, UnitError> {
    let CircuitProblem {
        collective,
        size,
        charge,
        ..
    } = *problem;
    let fabric = &as_ring(fabric);
    match fabric.circuit_machine() {
        Some(WdmGraph(graph)) if collective.demand().is_none() => {
            wdm_graph::time::bounds(graph, collective, size, charge.into())
        }
        _ => {
            let bare = |bound| WitnessedBound {
                bound,
                witness: None,
            };
            Ok(time_bound(fabric, problem)?.into_iter().map(bare).collect())
        }
    }
}

/// Returns the greatest known lower bound on the time of every plan on a fabric with circuits.
/// `None` if no bound is known. Fails if a time exceeds 64 bits of picoseconds.
pub fn time_bound(
    fabric: &Fabric,
    problem: &CircuitProblem<'_>,
) -> Result<Option<TimeBound>, UnitError> {
    let CircuitProblem {
        collective,
        size,
        charge,
        paths,
    } = *problem;
    let (least, has_demand) = (charge.into(), collective.demand().is_some());
    let fabric = as_ring(fabric);
    let Some(machine) = fabric.circuit_machine() else {
        return Ok(None);
    };
    match machine {
        WdmRing(ring) if has_demand => wdm_ring::demanded::best(ring, collective, size, least),
        WdmRing(ring) => wdm_ring::time::best(ring, collective, size, least),
        CircuitSwitch(switch) => circuit_switch::best(switch, collective, size, charge),
        WdmGraph(graph) if has_demand => wdm_graph::demanded::best(graph, collective, size, least),
        WssGrid(_) | LightpathGrid(_) | PassiveStar(_) if has_demand => {
            return Ok(None);
        }
        WdmGraph(graph) => wdm_graph::time::best(graph, collective, size, least),
        WssGrid(grid) => wss_grid::best(grid, collective, size, least),
        LightpathGrid(grid) => lightpath_grid::best(grid, collective, size, (charge, paths).into()),
        PassiveStar(star) => passive_star::best(star, collective, size, least),
    }
    .map(Some)
}
