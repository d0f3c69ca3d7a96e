//! The bidirectional WDM ring: lightpaths around it, each on a channel of its own.

pub mod bound;
pub mod machine;
pub mod placement;
pub mod route;

use super::{CircuitPlans, Family};
pub use machine::*;

/// The family's entry in the list.
pub(crate) const FAMILY: Family = Family {
    record: &machine::RECORD,
    presets: machine::PRESETS,
    plans: Some(CircuitPlans {
        place: placement::place_by_name,
        slots_bound: |fabric, collective, single| {
            let ring = fabric.downcast::<WdmRing>()?;
            Some(match single {
                true => bound::best(ring, collective),
                false => bound::any_load(ring, collective),
            })
        },
        bounds_demands: true,
        direct_bound: None,
        time_bound: |fabric, asked| {
            let ring = fabric.downcast::<WdmRing>();
            let best = |ring| match asked.collective.demand() {
                Some(_) => bound::demanded::best(ring, asked.collective, asked.size, asked.least()),
                None => bound::time::best(ring, asked.collective, asked.size, asked.least()),
            };
            ring.map(best).transpose()
        },
        wavelengths_used: placement::wavelengths_used,
    }),
};
