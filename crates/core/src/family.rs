//! The families of fabrics, a folder or file each.
//!
//! A family with links is its machine. One with circuits has in its folder:
//!
//! | file | what |
//! |---|---|
//! | `machine` | the type, its options, its light, what its circuits cost ([`Circuits`](crate::fabric::Circuits)) |
//! | `route`, `placement` | from a schedule to a plan: routes, channels, slots |
//! | `bound` | what no plan goes below |
//!
//! The rules that its plans keep are in `verify`, and share nothing with placement.

pub mod circuit_switch;
pub mod crossbar;
pub mod custom;
pub mod dragonfly;
#[cfg(test)]
#[expect(unreachable_pub, reason = "written as families of the list are")]
mod example;
pub mod fat_tree;
pub mod fully_connected;
pub mod gpu_servers;
pub mod light_path_grid;
pub mod message_cost;
pub mod ocs_torus;
pub mod passive_star;
pub mod torus;
pub mod wdm_ring;
pub mod wss_grid;

use crate::bound::{Bound, LeastCharge, TimeBound};
use crate::collective::Collective;
use crate::fabric::circuits::Paths;
use crate::fabric::{Fabric, FamilyRecord, PresetRecord, circuits};
use crate::interrupt;
use crate::place::{PlacementError, PlacementProblem};
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::units::{Bytes, UnitError};

/// A family as the list has it: its machine, and where light is placed in slots, how plans come to be.
pub struct Family {
    /// The machine: name, options, how it is built.
    pub record: &'static FamilyRecord,
    /// Named machines of it.
    pub presets: &'static [PresetRecord],
    /// Plans of circuits; `None` where plans have steps only and flows share links.
    pub plans: Option<CircuitPlans>,
}

/// A bound of plans in which no rank relays.
type DirectBound = fn(&Fabric, &Charged<'_>) -> Result<Option<TimeBound>, UnitError>;

/// How the plans of a family with circuits come to be, and what they cannot go below.
pub struct CircuitPlans {
    /// The plan of a schedule; the third argument names an assignment of channels, such as `first_fit`, or
    /// is [`AUTO`].
    pub place: fn(Schedule, &Fabric, &str, String) -> Result<Plan, PlacementError>,
    /// The greatest bound on the slots of any plan of a collective; where the flag says so, of plans whose
    /// circuits carry one chunk each in a slot.
    pub slots_bound: fn(&Fabric, &Collective, bool) -> Option<Bound>,
    /// Whether `time_bound` holds of an all_to_all with a demand.
    pub bounds_demands: bool,
    /// Of an all_to_all with a demand: the greatest bound on the time of plans in which no rank relays.
    pub direct_bound: Option<DirectBound>,
    /// The greatest bound on the time of any plan of a collective.
    pub time_bound: fn(&Fabric, &Charged<'_>) -> Result<Option<TimeBound>, UnitError>,
    /// How many distinct wavelengths a plan lights anywhere.
    pub wavelengths_used: fn(&Plan) -> u32,
}

/// What a bound on time is asked for.
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
    /// What a plan pays for reconfiguration at least.
    pub fn least(&self) -> LeastCharge {
        self.charge.into()
    }
}

/// The assignment of channels that a family takes where none is named.
pub const AUTO: &str = "auto";

impl Family {
    /// A family whose ranks are joined by links.
    pub const fn of_links(record: &'static FamilyRecord) -> Family {
        Family {
            record,
            presets: &[],
            plans: None,
        }
    }
}

/// How many values the field `wavelength` of a plan's light has; 0 where there is no such field.
pub fn distinct_wavelengths(plan: &Plan) -> u32 {
    let Some(kind) = plan.fabric.light() else {
        return 0;
    };
    let Some(field) = kind
        .fields
        .iter()
        .position(|field| field.name == "wavelength")
    else {
        return 0;
    };
    let mut lit = vec![false; kind.fields[field].most() as usize + 1];
    let mut light_up = |light| lit[kind.value(light, field) as usize] = true;
    for row in 0..plan.len() {
        interrupt::check();
        let channels = match plan.repetition.is_folded() {
            true => plan.span(row),
            false => plan.repetition.stripes,
        };
        (0..channels).for_each(|beside| light_up(plan.copy(row, beside, 0).light));
    }
    plan.relays.iter().for_each(|relay| light_up(relay.light));
    lit.iter().filter(|&&lit| lit).count() as u32
}

/// Refuses an assignment of channels where there is none to choose.
pub fn only_auto(assignment: &str, family: &str, reason: &str) -> Result<(), PlacementError> {
    if assignment == AUTO {
        return Ok(());
    }
    let sentence = format!("{family} {reason}: leave the assignment `{assignment}` out");
    Err(PlacementError::new(PlacementProblem::Assignment, sentence))
}
