//! Lower bounds of any fabric with circuits: calls the module of the fabric's family.

use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::fabric::circuits::Paths;
use opticoll_fabric::fabric::{Fabric, circuits};
use opticoll_fabric::families::CircuitMachine::{
    CircuitSwitch, LightpathGrid, PassiveStar, WdmGraph, WdmRing, WssGrid,
};
use opticoll_fabric::family::wdm_graph::WdmGraph as Graph;
use opticoll_plan::collective::Collective;

use crate::electrical::{self, WitnessedBound};
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
    if let Some((ring, is_whole)) = ring_of(fabric) {
        let of_ring = slots_bound(&ring, collective, single)?;
        let of_graph = graph_of(fabric).filter(|_| !is_whole);
        let of_graph = of_graph.map(|graph| wdm_graph::best_slots(graph, collective, single));
        return of_graph
            .filter(|bound| bound.steps > of_ring.steps)
            .or(Some(of_ring));
    }
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

/// Returns the ring that a graph of fibres forms, which has the same lightpaths, and whether all of
/// its links and ranks take part at the same rate. Lines are rings with a broken link, for which
/// the bounds of the graph may be greater than those of the ring.
fn ring_of(fabric: &Fabric) -> Option<(Fabric, bool)> {
    let ring = graph_of(fabric)?.as_ring()?;
    let of_ring = ring.ring();
    let is_whole = of_ring.broken.is_empty()
        && of_ring.nodes == of_ring.ranks
        && !of_ring.degraded.has_slower_parts();
    Some((ring.fabric, is_whole))
}

/// Returns the graph of fibres of a fabric; `None` for another fabric.
fn graph_of(fabric: &Fabric) -> Option<&Graph> {
    match fabric.circuit_machine()? {
        WdmGraph(graph) => Some(graph),
        _ => None,
    }
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
/// witnesses. Graphs of fibres have several bounds, other fabrics only the greatest. Fails if a
/// time exceeds 64 bits of picoseconds.
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
    let (ring, is_whole) = ring_of(fabric).unzip();
    let graph = graph_of(fabric).filter(|_| collective.demand().is_none());
    let graph = graph.filter(|_| is_whole != Some(true));
    let Some(graph) = graph else {
        return Ok(time_bound(fabric, problem)?.into_iter().map(bare).collect());
    };
    let of_ring = ring.map(|ring| time_bound(&ring, problem)).transpose()?;
    let mut bounds: Vec<_> = of_ring.flatten().into_iter().map(bare).collect();
    bounds.extend(wdm_graph::time::bounds(
        graph,
        collective,
        size,
        charge.into(),
    )?);
    Ok(bounds)
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
    if let Some((ring, is_whole)) = ring_of(fabric) {
        let of_ring = time_bound(&ring, problem)?;
        let graph = graph_of(fabric).filter(|_| !is_whole && !has_demand);
        let of_graph = graph.map(|graph| wdm_graph::time::best(graph, collective, size, least));
        let of_both = of_ring.into_iter().chain(of_graph.transpose()?);
        return Ok(electrical::greatest(of_both.map(bare).collect()));
    }
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

fn bare(bound: TimeBound) -> WitnessedBound {
    WitnessedBound {
        bound,
        witness: None,
    }
}
