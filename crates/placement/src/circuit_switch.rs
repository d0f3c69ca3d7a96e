//! Ranks whose ports an optical circuit switch joins.

pub mod placement; // from a schedule to a plan
pub mod ways; // over which ranks messages go

use super::{CircuitPlacement, distinct_wavelengths, only_auto};
use opticoll_fabric::family::circuit_switch::RECORD;

/// How plans on it come to be.
pub(crate) const PLACEMENT: CircuitPlacement = CircuitPlacement {
    family: RECORD.name,
    place: |schedule, fabric, assignment, algorithm| {
        let reason = "joins ports and has no wavelengths to assign";
        only_auto(assignment, fabric.family(), reason)?;
        placement::place(schedule, fabric, algorithm)
    },
    wavelengths_used: distinct_wavelengths,
};
