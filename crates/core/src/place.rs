//! The way from a schedule to a plan: routes, channels and slots as the fabric has them.

use thiserror::Error;

use crate::fabric::Fabric;
use crate::plan::Plan;
use crate::route;
use crate::schedule::Schedule;
use crate::wavelength::light_path_grid::{PortError, assign_ports};
use crate::wavelength::wss_grid::{GridError, assign_on_grid};
use crate::wavelength::{Assignment, WavelengthError, assign};

/// Why a schedule has no place on a fabric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlacementError {
    /// Wavelengths could not be assigned.
    #[error(transparent)]
    Wavelength(#[from] WavelengthError),
    /// A schedule does not fit a grid of tunable circuits.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A schedule does not fit a grid of light paths.
    #[error(transparent)]
    Ports(#[from] PortError),
    /// A wavelength assignment for a fabric that takes none.
    #[error("{family} {reason}: leave the assignment `{assignment}` out")]
    Unassigned {
        /// The family of the fabric.
        family: &'static str,
        /// Why it takes none.
        reason: &'static str,
        /// The assignment.
        assignment: String,
    },
}

/// The plan of a schedule with a named wavelength assignment, such as `first_fit:order=longest`.
///
/// # Errors
/// An assignment that is unknown or not for this fabric, or a schedule that does not fit.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    assignment: &str,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let chosen = Assignment::parse(assignment)?;
    if let Some(ring) = fabric.ring() {
        let light = route::shortest_arcs(&schedule, ring);
        return Ok(assign(schedule, light, fabric, chosen, algorithm)?);
    }
    if chosen == Assignment::AUTO {
        return by_default(schedule, fabric, algorithm);
    }
    Err(PlacementError::Unassigned {
        family: fabric.family(),
        reason: match (fabric.wss_grid(), fabric.light_path_grid()) {
            (Some(_), _) => "assigns wavelengths by its wavelength plan",
            (_, Some(_)) => "has light paths whose wavelengths nothing says",
            _ => "is an electrical fabric without wavelengths",
        },
        assignment: assignment.into(),
    })
}

/// The plan of a schedule with the default routes, wavelengths or ports; on an electrical fabric without light.
///
/// # Errors
/// A schedule that does not fit.
pub fn by_default(
    schedule: Schedule,
    fabric: &Fabric,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    if let Some(ring) = fabric.ring() {
        let light = route::shortest_arcs(&schedule, ring);
        let assignment = Assignment::AUTO;
        return Ok(assign(schedule, light, fabric, assignment, algorithm)?);
    }
    if fabric.wss_grid().is_some() {
        return Ok(assign_on_grid(schedule, fabric, algorithm)?);
    }
    if fabric.light_path_grid().is_some() {
        return Ok(assign_ports(schedule, fabric, algorithm)?);
    }
    Ok(Plan::without_light(fabric, schedule, algorithm))
}
