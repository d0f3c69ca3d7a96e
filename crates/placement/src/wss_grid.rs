//! The switch grid of the ODDL paper: tunable circuits through wavelength-selective switches.

pub mod placement;
pub mod route;
pub mod switches;

use super::{CircuitPlacement, distinct_wavelengths, only_auto};
use opticoll_fabric::family::wss_grid::RECORD;

/// How plans on it come to be.
pub(crate) const PLACEMENT: CircuitPlacement = CircuitPlacement {
    family: RECORD.name,
    place: |schedule, fabric, assignment, algorithm| {
        let reason = "assigns wavelengths by its wavelength plan";
        only_auto(assignment, fabric.family(), reason)?;
        Ok(placement::assign_on_grid(schedule, fabric, algorithm)?)
    },
    wavelengths_used: distinct_wavelengths,
};
