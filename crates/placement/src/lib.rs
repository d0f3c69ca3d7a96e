#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod circuit_switch;
mod error;
pub mod lightpath_grid;
pub mod passive_star;
pub mod servers;
mod slots;
pub mod wdm_graph;
pub mod wdm_ring;
pub mod wss_grid;

use lightpath_grid::placement::assign_ports;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::families::CircuitMachine::{
    CircuitSwitch, LightpathGrid, PassiveStar, ServersOnLight, WdmGraph, WdmRing, WssGrid,
};
use opticoll_fabric::family::wdm_graph::RingAndGraph;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;
use wss_grid::placement::assign_on_grid;

pub use error::{PlacementError, PlacementProblem};

/// Converts a schedule to a plan: assigns a route, a channel and a slot on `fabric` to each
/// transfer. `assignment` is the name of the rule that selects channels, such as `first_fit`.
///
/// # Errors
/// The assignment is unknown or does not apply to this fabric, or the schedule does not fit.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    assignment: &str,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let only_auto = |reason: &str| {
        let family = fabric.family();
        let sentence = format!("{family} {reason}: leave the assignment `{assignment}` out");
        match assignment == AUTO {
            true => Ok(()),
            false => Err(PlacementError::new(PlacementProblem::Assignment, sentence)),
        }
    };
    match fabric.circuit_machine() {
        Some(WdmRing(ring)) => {
            wdm_ring::placement::place_by_name(schedule, fabric, ring, assignment, algorithm)
        }
        Some(WdmGraph(graph)) => {
            if let Some(pair) = RingAndGraph::of(fabric) {
                let plan = place(schedule, &pair.ring, assignment, algorithm)?;
                return Ok(wdm_graph::plan_of_graph(plan, &pair));
            }
            wdm_graph::place(schedule, fabric, graph, assignment, algorithm)
        }
        Some(WssGrid(grid)) => {
            only_auto("assigns wavelengths by its wavelength plan")?;
            assign_on_grid(schedule, fabric, grid, algorithm)
        }
        Some(LightpathGrid(grid)) => {
            only_auto("models ports only, not wavelengths")?;
            assign_ports(schedule, fabric, grid, algorithm)
        }
        Some(PassiveStar(star)) => {
            only_auto("takes the first wavelength that is free")?;
            passive_star::placement::place(schedule, fabric, star, algorithm)
        }
        Some(CircuitSwitch(switch)) => {
            only_auto("joins ports and has no wavelengths to assign")?;
            circuit_switch::placement::place(schedule, fabric, switch, algorithm)
        }
        Some(ServersOnLight(servers)) => {
            servers::place(schedule, fabric, servers, assignment, algorithm)
        }
        None => {
            only_auto("is an electrical fabric without wavelengths")?;
            Ok(Plan::without_light(fabric, schedule, algorithm))
        }
    }
}

/// Converts a schedule to a plan with default routes and channels. The plan for an electrical
/// fabric has no [`Light`](opticoll_fabric::fabric::Light).
///
/// # Errors
/// The fabric cannot carry the schedule.
pub fn place_by_default(
    schedule: Schedule,
    fabric: &Fabric,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    place(schedule, fabric, AUTO, algorithm)
}

/// Returns the number of distinct wavelengths that a plan uses. On a ring with converters, returns
/// the maximum number of lightpaths on one fibre of one link in one slot.
pub fn wavelengths_used(plan: &Plan) -> u32 {
    match plan.fabric.circuit_machine() {
        Some(WdmRing(ring)) => wdm_ring::placement::wavelengths_used(plan, ring),
        _ => distinct_wavelengths(plan),
    }
}

/// Name of the default assignment of channels.
pub const AUTO: &str = "auto";

/// Returns the number of distinct wavelengths that a plan uses; 0 if the fabric has no wavelengths.
fn distinct_wavelengths(plan: &Plan) -> u32 {
    let Some(kind) = plan.fabric.light() else {
        return 0;
    };
    let Some(field) = kind
        .fields
        .iter()
        .position(|field| field.name == "wavelength")
    else {
        return 0;
    };
    let mut lit = vec![false; kind.fields[field].max_value() as usize + 1];
    let mut light_up = |light| lit[kind.value(light, field) as usize] = true;
    for row in 0..plan.len() {
        interrupt::check();
        let channels = match plan.repetition.is_rotation_symmetric() {
            true => plan.span(row),
            false => plan.repetition.stripes,
        };
        (0..channels).for_each(|beside| light_up(plan.copy(row, beside, 0).light));
    }
    plan.relays.iter().for_each(|relay| light_up(relay.light));
    lit.iter().filter(|&&lit| lit).count() as u32
}
