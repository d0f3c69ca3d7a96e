//! The switch grid of the ODDL paper: tunable circuits through wavelength-selective switches.

pub mod bound;
pub mod machine;
pub mod placement;
pub(crate) mod route;
pub mod switches;

use super::{CircuitPlans, Family, distinct_wavelengths, only_auto};
pub use machine::*;

/// The family's entry in the list.
pub(crate) const FAMILY: Family = Family {
    record: &machine::RECORD,
    presets: &[],
    plans: Some(CircuitPlans {
        place: |schedule, fabric, assignment, algorithm| {
            let reason = "assigns wavelengths by its wavelength plan";
            only_auto(assignment, fabric.family(), reason)?;
            Ok(placement::assign_on_grid(schedule, fabric, algorithm)?)
        },
        slots_bound: |fabric, collective, _| {
            let grid = fabric.downcast::<WssGrid>()?;
            Some(bound::slots(grid, collective))
        },
        bounds_demands: false,
        direct_bound: None,
        time_bound: |fabric, asked| {
            let grid = fabric.downcast::<WssGrid>();
            let best = |grid| bound::best(grid, asked.collective, asked.size, asked.least());
            grid.map(best).transpose()
        },
        wavelengths_used: distinct_wavelengths,
    }),
};
