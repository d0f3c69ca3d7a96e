//! The passive star coupler: a wavelength is sent by one rank at a time and heard by all that tune to it.

pub mod bound; // what no plan goes below
pub mod machine; // its type, its light, what its circuits cost
pub mod placement; // from a schedule to a plan

use super::{CircuitPlans, Family, distinct_wavelengths, only_auto};
pub use machine::*;

/// The family's entry in the list.
pub(crate) const FAMILY: Family = Family {
    record: &machine::RECORD,
    presets: &[],
    plans: Some(CircuitPlans {
        place: |schedule, fabric, assignment, algorithm| {
            only_auto(
                assignment,
                fabric.family(),
                "takes the first wavelength that is free",
            )?;
            placement::place(schedule, fabric, algorithm)
        },
        slots_bound: |fabric, collective, single| {
            let star = fabric.downcast::<PassiveStar>()?;
            Some(match single {
                true => bound::slots(star, collective),
                false => bound::any_load(star, collective),
            })
        },
        bounds_demands: false,
        direct_bound: None,
        time_bound: |fabric, asked| {
            let star = fabric.downcast::<PassiveStar>();
            let best = |star| bound::best(star, asked.collective, asked.size, asked.least());
            star.map(best).transpose()
        },
        wavelengths_used: distinct_wavelengths,
    }),
};
