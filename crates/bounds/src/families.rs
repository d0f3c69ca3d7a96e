//! The bounds of every family with circuits, by the name of the family.

use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::fabric::circuits::Paths;
use opticoll_fabric::fabric::{Fabric, circuits};
use opticoll_fabric::family::circuit_switch::{self as switches, CircuitSwitch};
use opticoll_fabric::family::light_path_grid::{self as path_grids, LightPathGrid};
use opticoll_fabric::family::passive_star::{self as stars, PassiveStar};
use opticoll_fabric::family::wdm_ring::{self as rings, WdmRing};
use opticoll_fabric::family::wss_grid::{self as grids, WssGrid};
use opticoll_plan::collective::Collective;

use crate::{Bound, LeastCharge, TimeBound};
use crate::{circuit_switch, light_path_grid, passive_star, wdm_ring, wss_grid};

/// A collective, its size, and what circuits cost: the question that a bound on time answers.
pub struct Charged<'a> {
    /// The collective.
    pub collective: &'a Collective,
    /// Its size.
    pub size: Bytes,
    /// What the policy charges for changes of circuits.
    pub charge: circuits::Charge,
    /// Which circuits stay up after their slots.
    pub paths: Paths,
}

impl Charged<'_> {
    /// Returns what any plan pays for reconfiguration at least.
    fn least(&self) -> LeastCharge {
        self.charge.into()
    }
}

/// A bound on the time of plans on the machine of a family.
type Time = fn(&Fabric, &Charged<'_>) -> Result<Option<TimeBound>, UnitError>;

/// The bounds that a family with circuits knows.
struct CircuitBounds {
    /// The name of the family.
    family: &'static str,
    /// The greatest bound on the slots of any plan; where the flag says so, of plans whose circuits carry one chunk each in a slot.
    slots: fn(&Fabric, &Collective, bool) -> Option<Bound>,
    /// The greatest bound on the time of any plan.
    time: Time,
    /// Whether `time` holds of an all_to_all with a demand.
    bounds_demands: bool,
    /// Of an all_to_all with a demand: the greatest bound on the time of plans in which no rank relays.
    direct: Option<Time>,
}

const FAMILIES: &[CircuitBounds] = &[
    CircuitBounds {
        family: rings::RECORD.name,
        slots: |fabric, collective, single| {
            let ring = fabric.downcast::<WdmRing>()?;
            Some(match single {
                true => wdm_ring::best(ring, collective),
                false => wdm_ring::any_load(ring, collective),
            })
        },
        time: |fabric, asked| {
            let ring = fabric.downcast::<WdmRing>();
            let best = |ring| match asked.collective.demand() {
                Some(_) => {
                    wdm_ring::demanded::best(ring, asked.collective, asked.size, asked.least())
                }
                None => wdm_ring::time::best(ring, asked.collective, asked.size, asked.least()),
            };
            ring.map(best).transpose()
        },
        bounds_demands: true,
        direct: None,
    },
    CircuitBounds {
        family: grids::RECORD.name,
        slots: |fabric, collective, _| {
            let grid = fabric.downcast::<WssGrid>()?;
            Some(wss_grid::slots(grid, collective))
        },
        time: |fabric, asked| {
            let grid = fabric.downcast::<WssGrid>();
            let best = |grid| wss_grid::best(grid, asked.collective, asked.size, asked.least());
            grid.map(best).transpose()
        },
        bounds_demands: false,
        direct: None,
    },
    CircuitBounds {
        family: path_grids::RECORD.name,
        slots: |_, _, _| None,
        time: |fabric, asked| {
            let grid = fabric.downcast::<LightPathGrid>();
            let set_ups = light_path_grid::SetUps::from((asked.charge, asked.paths));
            let best = |grid| light_path_grid::best(grid, asked.collective, asked.size, set_ups);
            grid.map(best).transpose()
        },
        bounds_demands: false,
        direct: None,
    },
    CircuitBounds {
        family: stars::RECORD.name,
        slots: |fabric, collective, single| {
            let star = fabric.downcast::<PassiveStar>()?;
            Some(match single {
                true => passive_star::slots(star, collective),
                false => passive_star::any_load(star, collective),
            })
        },
        time: |fabric, asked| {
            let star = fabric.downcast::<PassiveStar>();
            let best = |star| passive_star::best(star, asked.collective, asked.size, asked.least());
            star.map(best).transpose()
        },
        bounds_demands: false,
        direct: None,
    },
    CircuitBounds {
        family: switches::RECORD.name,
        slots: |fabric, collective, _| {
            let switch = fabric.downcast::<CircuitSwitch>()?;
            Some(circuit_switch::slots(switch, collective))
        },
        time: |fabric, asked| {
            let switch = fabric.downcast::<CircuitSwitch>();
            let best =
                |switch| circuit_switch::best(switch, asked.collective, asked.size, asked.charge);
            switch.map(best).transpose()
        },
        bounds_demands: true,
        direct: Some(|fabric, asked| {
            let Some(switch) = fabric.downcast::<CircuitSwitch>() else {
                return Ok(None);
            };
            circuit_switch::demanded::direct(switch, asked.collective, asked.size, asked.charge)
        }),
    },
];

/// Returns the bounds of a fabric's family; `None` on fabrics without circuits.
fn of_family(fabric: &Fabric) -> Option<&'static CircuitBounds> {
    FAMILIES
        .iter()
        .find(|bounds| bounds.family == fabric.family())
}

/// The greatest bound on the slots of any plan of a collective, where light is placed in slots and a bound is
/// known: of plans whose circuits carry one chunk in a slot (`single`), or of any.
pub fn slots_bound(fabric: &Fabric, collective: &Collective, single: bool) -> Option<Bound> {
    let bounds = of_family(fabric)?;
    let knows = bounds.direct.is_some() || collective.demand().is_none();
    knows.then(|| (bounds.slots)(fabric, collective, single))?
}

/// Of an all_to_all with a demand on a fabric with circuits: the greatest bound on the time of plans in which no rank relays;
/// `None` where none is known.
///
/// # Errors
/// A time beyond 64 bits.
pub fn direct_bound(fabric: &Fabric, asked: &Charged<'_>) -> Result<Option<TimeBound>, UnitError> {
    match of_family(fabric).and_then(|bounds| bounds.direct) {
        Some(bound) if asked.collective.demand().is_some() => bound(fabric, asked),
        _ => Ok(None),
    }
}

/// The greatest bound on the time of any plan on a fabric with circuits; `None` where none is known.
///
/// # Errors
/// A time beyond 64 bits.
pub fn time_bound(fabric: &Fabric, asked: &Charged<'_>) -> Result<Option<TimeBound>, UnitError> {
    match of_family(fabric) {
        Some(bounds) if bounds.bounds_demands || asked.collective.demand().is_none() => {
            (bounds.time)(fabric, asked)
        }
        _ => Ok(None),
    }
}
