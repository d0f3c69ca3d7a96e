//! Lower bounds of any fabric with circuits: calls the module of the fabric's family.

use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::fabric::circuits::Paths;
use opticoll_fabric::fabric::{Fabric, circuits};
use opticoll_fabric::families::CircuitMachine::{
    CircuitSwitch, LightpathGrid, PassiveStar, ServersOnLight, WdmGraph, WdmRing, WssGrid,
};
use opticoll_fabric::family::gpu_servers::ServersOnLight as Servers;
use opticoll_fabric::family::wdm_graph::{RingAndGraph, WdmGraph as Graph};
use opticoll_fabric::family::wdm_ring::WdmRing as Ring;
use opticoll_plan::collective::Collective;

use crate::electrical::{self, WitnessedBound};
use crate::{Bound, TimeBound};
use crate::{circuit_switch, lightpath_grid, passive_star, servers, wdm_graph, wdm_ring, wss_grid};

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
    if let Some(ServersOnLight(machine)) = fabric.circuit_machine() {
        let merged = servers::merged(machine, collective)?;
        return slots_bound(&merged.fabric, &merged.collective, false);
    }
    let views = views(fabric, collective);
    let bounds = views
        .iter()
        .filter_map(|fabric| slots(fabric, collective, single));
    let first = |best: Bound, next: Bound| if next.steps > best.steps { next } else { best };
    bounds.reduce(first)
}

fn slots(fabric: &Fabric, collective: &Collective, single: bool) -> Option<Bound> {
    match fabric.circuit_machine()? {
        CircuitSwitch(switch) => Some(circuit_switch::slots(switch, collective)),
        WssGrid(grid) => Some(wss_grid::slots(grid, collective)),
        PassiveStar(star) if single => Some(passive_star::slots(star, collective)),
        PassiveStar(star) => Some(passive_star::slots_for_any_load(star, collective)),
        LightpathGrid(_) | ServersOnLight(_) => None,
        _ if collective.demand().is_some() => None,
        WdmRing(ring) if single => Some(wdm_ring::best(ring, collective)),
        WdmRing(ring) => Some(wdm_ring::slots_for_any_load(ring, collective)),
        WdmGraph(graph) => Some(wdm_graph::best_slots(graph, collective, single)),
    }
}

/// Maximum number of ranks of a ring without cuts for which the bounds of graphs are computed.
const MAX_RANKS_OF_GRAPH: u32 = 1024;

/// Returns the fabrics whose bounds hold for `fabric`: the ring and the graph of fibres with the
/// same lightpaths, or `fabric` only. On rings whose ranks all take part, without cuts and slower
/// links, the bounds of the graph may be greater only if the data have a root.
fn views(fabric: &Fabric, collective: &Collective) -> Vec<Fabric> {
    let is_alike = |ring: &Ring| {
        let has_root =
            wdm_graph::root_and_direction(collective).is_some() && ring.ranks <= MAX_RANKS_OF_GRAPH;
        ring.has_all_links() && !has_root
    };
    let ring = fabric.downcast::<Ring>();
    let pair = match ring.is_some_and(is_alike) {
        true => None,
        false => RingAndGraph::of(fabric),
    };
    match pair {
        None => vec![fabric.clone()],
        Some(pair) if is_alike(pair.machine()) => vec![pair.ring],
        Some(pair) => vec![pair.ring, pair.graph],
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
    if let Some(ServersOnLight(machine)) = fabric.circuit_machine() {
        return on_merged(machine, problem, time_bounds);
    }
    let (collective, charge) = (problem.collective, problem.charge.into());
    let mut bounds = Vec::new();
    for fabric in views(fabric, collective) {
        let graph = fabric.downcast::<Graph>();
        match graph.filter(|_| collective.demand().is_none()) {
            Some(graph) => {
                let of_graph = wdm_graph::time::bounds(graph, collective, problem.size, charge)?;
                // Of two bounds with one name, the greater one says all.
                let is_less = |one: &WitnessedBound, others: &[WitnessedBound]| {
                    let (name, time) = (one.bound.name, one.bound.time);
                    let mut others = others.iter().map(|other| other.bound);
                    others.any(|other| other.name == name && other.time >= time)
                };
                bounds.retain(|one| !is_less(one, &of_graph));
                let added = of_graph.into_iter().filter(|one| !is_less(one, &bounds));
                bounds.extend(added.collect::<Vec<_>>());
            }
            None => bounds.extend(best_time(&fabric, problem)?.map(WitnessedBound::from)),
        }
    }
    Ok(bounds)
}

/// Returns the greatest known lower bound on the time of every plan on a fabric with circuits.
/// `None` if no bound is known. Fails if a time exceeds 64 bits of picoseconds.
pub fn time_bound(
    fabric: &Fabric,
    problem: &CircuitProblem<'_>,
) -> Result<Option<TimeBound>, UnitError> {
    if let Some(ServersOnLight(machine)) = fabric.circuit_machine() {
        return on_merged(machine, problem, time_bound);
    }
    let mut bounds = Vec::new();
    for fabric in views(fabric, problem.collective) {
        bounds.extend(best_time(&fabric, problem)?.map(WitnessedBound::from));
    }
    Ok(electrical::greatest(bounds))
}

/// Returns the greatest bound on time that the module of the fabric's family computes.
fn best_time(
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
    let Some(machine) = fabric.circuit_machine() else {
        return Ok(None);
    };
    match machine {
        WdmRing(ring) if has_demand => wdm_ring::demanded::best(ring, collective, size, least),
        WdmRing(ring) => wdm_ring::time::best(ring, collective, size, least),
        CircuitSwitch(switch) => circuit_switch::best(switch, collective, size, charge),
        WdmGraph(graph) if has_demand => wdm_graph::demanded::best(graph, collective, size, least),
        ServersOnLight(_) => return Ok(None),
        WdmGraph(graph) => wdm_graph::time::best(graph, collective, size, least),
        WssGrid(grid) => wss_grid::best(grid, collective, size, least),
        LightpathGrid(grid) => lightpath_grid::best(grid, collective, size, (charge, paths).into()),
        PassiveStar(star) => passive_star::best(star, collective, size, least),
    }
    .map(Some)
}

/// Computes bounds of the merged machine. Returns no bounds if there is no merged machine.
fn on_merged<B: Default>(
    machine: &Servers,
    problem: &CircuitProblem<'_>,
    bounds: impl Fn(&Fabric, &CircuitProblem<'_>) -> Result<B, UnitError>,
) -> Result<B, UnitError> {
    let Some(merged) = servers::merged(machine, problem.collective) else {
        return Ok(B::default());
    };
    let merged_problem = CircuitProblem {
        collective: &merged.collective,
        size: servers::merged_size(machine, problem.collective, problem.size)?,
        ..*problem
    };
    bounds(&merged.fabric, &merged_problem)
}
