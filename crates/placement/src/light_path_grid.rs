//! Lightpaths that are set up when they are needed: the grid over an optical burst-switched network.

pub mod placement;

use super::{CircuitPlacement, distinct_wavelengths, only_auto};
use opticoll_fabric::family::light_path_grid::RECORD;

/// How plans on it come to be.
pub(crate) const PLACEMENT: CircuitPlacement = CircuitPlacement {
    family: RECORD.name,
    place: |schedule, fabric, assignment, algorithm| {
        let reason = "models ports only, not wavelengths";
        only_auto(assignment, fabric.family(), reason)?;
        Ok(placement::assign_ports(schedule, fabric, algorithm)?)
    },
    wavelengths_used: distinct_wavelengths,
};
