//! Ranks whose ports an optical circuit switch joins.

pub mod bound; // what no plan goes below
pub mod demanded; // the same where blocks differ
pub mod machine; // its type, its light, what its circuits cost
pub mod placement; // from a schedule to a plan
mod presets; // machines that were built or proposed
pub(crate) mod ways; // over which ranks messages go

use super::{CircuitPlans, Family, distinct_wavelengths, only_auto};
pub use machine::*;

/// The family's entry in the list.
pub(crate) const FAMILY: Family = Family {
    record: &machine::RECORD,
    presets: presets::PRESETS,
    plans: Some(CircuitPlans {
        place: |schedule, fabric, assignment, algorithm| {
            let reason = "joins ports and has no wavelengths to assign";
            only_auto(assignment, fabric.family(), reason)?;
            placement::place(schedule, fabric, algorithm)
        },
        slots_bound: |fabric, collective, _| {
            let switch = fabric.downcast::<CircuitSwitch>()?;
            Some(bound::slots(switch, collective))
        },
        bounds_demands: true,
        direct_bound: Some(|fabric, asked| {
            let switch = fabric.downcast::<CircuitSwitch>();
            let direct =
                |switch| demanded::direct(switch, asked.collective, asked.size, asked.charge);
            Ok(switch.map(direct).transpose()?.flatten())
        }),
        time_bound: |fabric, asked| {
            let switch = fabric.downcast::<CircuitSwitch>();
            let best = |switch| bound::best(switch, asked.collective, asked.size, asked.charge);
            switch.map(best).transpose()
        },
        wavelengths_used: distinct_wavelengths,
    }),
};
