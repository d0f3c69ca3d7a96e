//! The passive star coupler: a wavelength is sent by one rank at a time and heard by all that tune to it.

pub mod placement; // from a schedule to a plan

use super::{CircuitPlacement, distinct_wavelengths, only_auto};
use opticoll_fabric::family::passive_star::RECORD;

/// How plans on it come to be.
pub(crate) const PLACEMENT: CircuitPlacement = CircuitPlacement {
    family: RECORD.name,
    place: |schedule, fabric, assignment, algorithm| {
        only_auto(
            assignment,
            fabric.family(),
            "takes the first wavelength that is free",
        )?;
        placement::place(schedule, fabric, algorithm)
    },
    wavelengths_used: distinct_wavelengths,
};
