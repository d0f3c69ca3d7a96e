//! The bounds of every family with circuits.

use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::fabric::circuits::Paths;
use opticoll_fabric::fabric::{Fabric, circuits};
use opticoll_fabric::families::CircuitMachine::{
    CircuitSwitch, LightPathGrid, PassiveStar, WdmRing, WssGrid,
};
use opticoll_plan::collective::Collective;

use crate::{Bound, TimeBound};
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

/// The greatest bound on the slots of any plan of a collective, where light is placed in slots and a bound is
/// known: of plans whose circuits carry one chunk in a slot (`single`), or of any.
pub fn slots_bound(fabric: &Fabric, collective: &Collective, single: bool) -> Option<Bound> {
    match fabric.circuit_machine()? {
        CircuitSwitch(switch) => Some(circuit_switch::slots(switch, collective)),
        _ if collective.demand().is_some() => None,
        WdmRing(ring) if single => Some(wdm_ring::best(ring, collective)),
        WdmRing(ring) => Some(wdm_ring::any_load(ring, collective)),
        WssGrid(grid) => Some(wss_grid::slots(grid, collective)),
        LightPathGrid(_) => None,
        PassiveStar(star) if single => Some(passive_star::slots(star, collective)),
        PassiveStar(star) => Some(passive_star::any_load(star, collective)),
    }
}

/// Of an all_to_all with a demand on a fabric with circuits: the greatest bound on the time of plans in which no rank relays;
/// `None` where none is known.
///
/// # Errors
/// A time beyond 64 bits.
pub fn direct_bound(fabric: &Fabric, asked: &Charged<'_>) -> Result<Option<TimeBound>, UnitError> {
    let Charged {
        collective,
        size,
        charge,
        ..
    } = *asked;
    match fabric.circuit_machine() {
        Some(CircuitSwitch(switch)) if collective.demand().is_some() => {
            circuit_switch::demanded::direct(switch, collective, size, charge)
        }
        _ => Ok(None),
    }
}

/// The greatest bound on the time of any plan on a fabric with circuits; `None` where none is known.
///
/// # Errors
/// A time beyond 64 bits.
pub fn time_bound(fabric: &Fabric, asked: &Charged<'_>) -> Result<Option<TimeBound>, UnitError> {
    let Charged {
        collective,
        size,
        charge,
        paths,
    } = *asked;
    let (least, has_demand) = (charge.into(), collective.demand().is_some());
    let Some(machine) = fabric.circuit_machine() else {
        return Ok(None);
    };
    match machine {
        WdmRing(ring) if has_demand => wdm_ring::demanded::best(ring, collective, size, least),
        WdmRing(ring) => wdm_ring::time::best(ring, collective, size, least),
        CircuitSwitch(switch) => circuit_switch::best(switch, collective, size, charge),
        WssGrid(_) | LightPathGrid(_) | PassiveStar(_) if has_demand => return Ok(None),
        WssGrid(grid) => wss_grid::best(grid, collective, size, least),
        LightPathGrid(grid) => {
            light_path_grid::best(grid, collective, size, (charge, paths).into())
        }
        PassiveStar(star) => passive_star::best(star, collective, size, least),
    }
    .map(Some)
}
