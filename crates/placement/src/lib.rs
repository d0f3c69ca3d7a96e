#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod circuit_switch;
mod error;
pub mod light_path_grid;
pub mod passive_star;
pub mod wdm_ring;
pub mod wss_grid;

use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;

pub use error::{PlacementError, PlacementProblem};

/// Places the schedules of one family with circuits.
pub(crate) struct CircuitPlacement {
    /// The name of the family.
    family: &'static str,
    /// Returns the plan of a schedule; the third argument names an assignment of channels, such as `first_fit`, or is [`AUTO`], the
    /// fourth the algorithm.
    place: fn(Schedule, &Fabric, &str, String) -> Result<Plan, PlacementError>,
    /// Counts the distinct wavelengths that a plan lights anywhere.
    wavelengths_used: fn(&Plan) -> u32,
}

/// The families whose plans have light.
const FAMILIES: &[CircuitPlacement] = &[
    wdm_ring::PLACEMENT,
    wss_grid::PLACEMENT,
    light_path_grid::PLACEMENT,
    passive_star::PLACEMENT,
    circuit_switch::PLACEMENT,
];

/// Returns the placement of a fabric's family; `None` on fabrics without circuits.
fn of_family(fabric: &Fabric) -> Option<&'static CircuitPlacement> {
    FAMILIES
        .iter()
        .find(|placement| placement.family == fabric.family())
}

/// The plan of a schedule with a named assignment of channels, such as `first_fit:order=longest`.
///
/// # Errors
/// An assignment that is unknown or not for this fabric, or a schedule that does not fit.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    assignment: &str,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    match of_family(fabric) {
        Some(placement) => (placement.place)(schedule, fabric, assignment, algorithm),
        None if fabric.has_light() => {
            let family = fabric.family();
            let sentence = format!("no placement is known for the circuits of {family}");
            Err(PlacementError::new(PlacementProblem::Family, sentence))
        }
        None => {
            let reason = "is an electrical fabric without wavelengths";
            only_auto(assignment, fabric.family(), reason)?;
            Ok(Plan::without_light(fabric, schedule, algorithm))
        }
    }
}

/// The plan of a schedule with the default routes and channels, or without light on an electrical fabric.
///
/// # Errors
/// A schedule that does not fit.
pub fn place_by_default(
    schedule: Schedule,
    fabric: &Fabric,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    place(schedule, fabric, AUTO, algorithm)
}

/// How many distinct wavelengths a plan lights anywhere; where a ring has converters, the most lightpaths on
/// one fibre of one link in one slot.
pub fn wavelengths_used(plan: &Plan) -> u32 {
    let placement = of_family(&plan.fabric);
    placement.map_or(0, |placement| (placement.wavelengths_used)(plan))
}

/// The assignment of channels that a family takes where none is named.
pub const AUTO: &str = "auto";

/// How many values the field `wavelength` of a plan's light has; 0 where there is no such field.
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
    let mut lit = vec![false; kind.fields[field].most() as usize + 1];
    let mut light_up = |light| lit[kind.value(light, field) as usize] = true;
    for row in 0..plan.len() {
        interrupt::check();
        let channels = match plan.repetition.is_folded() {
            true => plan.span(row),
            false => plan.repetition.stripes,
        };
        (0..channels).for_each(|beside| light_up(plan.copy(row, beside, 0).light));
    }
    plan.relays.iter().for_each(|relay| light_up(relay.light));
    lit.iter().filter(|&&lit| lit).count() as u32
}

/// Refuses an assignment of channels where there is none to choose.
fn only_auto(assignment: &str, family: &str, reason: &str) -> Result<(), PlacementError> {
    if assignment == AUTO {
        return Ok(());
    }
    let sentence = format!("{family} {reason}: leave the assignment `{assignment}` out");
    Err(PlacementError::new(PlacementProblem::Assignment, sentence))
}
