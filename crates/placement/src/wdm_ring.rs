//! The bidirectional WDM ring: lightpaths around it, each on a channel of its own.

pub mod placement;
pub mod route;

use super::CircuitPlacement;
use opticoll_fabric::family::wdm_ring::RECORD;

/// How plans on it come to be.
pub(crate) const PLACEMENT: CircuitPlacement = CircuitPlacement {
    family: RECORD.name,
    place: placement::place_by_name,
    wavelengths_used: placement::wavelengths_used,
};
