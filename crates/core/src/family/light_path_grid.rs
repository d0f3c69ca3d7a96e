//! Lightpaths that are set up when they are needed: the grid over an optical burst-switched network.

pub mod bound;
pub mod machine;
pub mod placement;

use super::{CircuitPlans, Family, distinct_wavelengths, only_auto};
pub use machine::*;

/// The family's entry in the list.
pub(crate) const FAMILY: Family = Family {
    record: &machine::RECORD,
    presets: &[],
    plans: Some(CircuitPlans {
        place: |schedule, fabric, assignment, algorithm| {
            let reason = "models ports only, not wavelengths";
            only_auto(assignment, fabric.family(), reason)?;
            Ok(placement::assign_ports(schedule, fabric, algorithm)?)
        },
        slots_bound: |_, _, _| None,
        bounds_demands: false,
        direct_bound: None,
        time_bound: |fabric, asked| {
            let grid = fabric.downcast::<LightPathGrid>();
            let set_ups = bound::SetUps::from((asked.charge, asked.paths));
            let best = |grid| bound::best(grid, asked.collective, asked.size, set_ups);
            grid.map(best).transpose()
        },
        wavelengths_used: distinct_wavelengths,
    }),
};
