//! All families of fabrics, and the one way from a specification to a fabric and from a schedule to its plan.
//!
//! A new family is a folder in [`family`](crate::family), a line here and a line in the list of each verifier.

pub mod medium;

use crate::bound::{Bound, TimeBound};
use crate::collective::Collective;
use crate::fabric::part::{DEGRADED, WITHOUT};
use crate::fabric::{Fabric, FabricError, PresetRecord};
use crate::family::{
    AUTO, Charged, CircuitPlans, Family, circuit_switch, crossbar, custom, dragonfly, fat_tree,
    fully_connected, gpu_servers, light_path_grid, message_cost, ocs_torus, only_auto,
    passive_star, torus, wdm_ring, wss_grid,
};
use crate::place::PlacementError;
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::spec::{Role, Spec};
use crate::units::UnitError;
pub use medium::{Bursts, Medium};

/// All families.
pub const FAMILIES: &[Family] = &[
    wdm_ring::FAMILY,
    Family {
        presets: crossbar::PRESETS,
        ..Family::of_links(&crossbar::RECORD)
    },
    Family::of_links(&fat_tree::RECORD),
    Family::of_links(&dragonfly::RECORD),
    Family::of_links(&torus::TORUS),
    Family::of_links(&torus::MESH),
    Family::of_links(&torus::LADDER),
    Family::of_links(&torus::RING),
    Family {
        presets: ocs_torus::PRESETS,
        ..Family::of_links(&ocs_torus::RECORD)
    },
    Family::of_links(&fully_connected::RECORD),
    Family::of_links(&custom::RECORD),
    Family {
        presets: gpu_servers::PRESETS,
        ..Family::of_links(&gpu_servers::RECORD)
    },
    wss_grid::FAMILY,
    light_path_grid::FAMILY,
    passive_star::FAMILY,
    circuit_switch::FAMILY,
    Family::of_links(&message_cost::ZERO),
    Family::of_links(&message_cost::HOCKNEY),
    Family::of_links(&message_cost::LOGGP),
];

/// All presets.
pub fn presets() -> impl Iterator<Item = &'static PresetRecord> {
    FAMILIES.iter().flat_map(|family| family.presets)
}

/// What the family of a fabric with circuits knows of plans.
fn circuit_plans(fabric: &Fabric) -> Option<&'static CircuitPlans> {
    let name = fabric.family();
    let family = FAMILIES.iter().find(|family| family.record.name == name);
    family?.plans.as_ref()
}

impl Fabric {
    /// Reads a specification such as `wdm_ring:ranks=16,wavelengths=2` or `optree_paper:ranks=512`;
    /// options given to a preset replace its own.
    ///
    /// # Errors
    /// An unknown name, an option that is wrong or missing.
    pub fn parse(text: &str) -> Result<Fabric, FabricError> {
        Medium::parse(text)?.fabric()
    }
}

/// What is left of a fabric after failures: options that say what is broken, such as `without=0>1`, in addition to what
/// was broken before. On a grid of tunable circuits also `leaving`, for nodes.
///
/// # Errors
/// Options that do not say what is broken, or places that the fabric does not have.
pub fn after(fabric: &Fabric, failures: &str) -> Result<Fabric, FabricError> {
    // A name alone is that of a part which is broken, or slower where it has a rate.
    let named = match (failures.contains('='), failures.contains('@')) {
        (true, _) => failures.to_owned(),
        (false, true) => format!("{}={failures}", DEGRADED.name),
        (false, false) => format!("{}={failures}", WITHOUT.name),
    };
    if let Some(left) = fabric.after(&named) {
        return Ok(left?);
    }
    let failures: Spec = format!("{}:{named}", fabric.family()).parse()?;
    let options = fabric.record().all_options();
    let options = options.iter().map(|option| option.record);
    let options: Vec<_> = options
        .filter(|one| matches!(one.role, Role::Broken | Role::Left))
        .collect();
    failures.only_declared(&options)?;
    let mut spec = fabric.spec();
    for (key, value) in failures.options() {
        let is_left = options
            .iter()
            .any(|one| one.name == key && one.role == Role::Left);
        let together = match spec.option(key).filter(|_| !is_left) {
            Some(earlier) => format!("{earlier}+{value}"),
            None => value.into(),
        };
        spec = spec.without(key).with(key, together);
    }
    Fabric::parse(&spec.to_string())
}

/// The plan of a schedule with a named assignment of channels, such as `first_fit:order=longest`.
///
/// # Errors
/// An assignment that is unknown or not for this fabric, or a schedule that does not fit.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    assignment: &str,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    match circuit_plans(fabric) {
        Some(plans) => (plans.place)(schedule, fabric, assignment, algorithm),
        None => {
            let reason = "is an electrical fabric without wavelengths";
            only_auto(assignment, fabric.family(), reason)?;
            Ok(Plan::without_light(fabric, schedule, algorithm))
        }
    }
}

/// The plan of a schedule with the default routes and channels; on a fabric with links without light.
///
/// # Errors
/// A schedule that does not fit.
pub fn place_by_default(
    schedule: Schedule,
    fabric: &Fabric,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    place(schedule, fabric, AUTO, algorithm)
}

/// The greatest bound on the slots of any plan of a collective, where light is placed in slots and a bound is
/// known: of plans whose circuits carry one chunk in a slot (`single`), or of any.
pub fn slots_bound(fabric: &Fabric, collective: &Collective, single: bool) -> Option<Bound> {
    let plans = circuit_plans(fabric)?;
    let knows = plans.direct_bound.is_some() || collective.demand().is_none();
    knows.then(|| (plans.slots_bound)(fabric, collective, single))?
}

/// How many distinct wavelengths a plan lights anywhere; where a ring has converters, the most lightpaths on
/// one fibre of one link in one slot.
pub fn wavelengths_used(plan: &Plan) -> u32 {
    circuit_plans(&plan.fabric).map_or(0, |plans| (plans.wavelengths_used)(plan))
}

/// Of an all_to_all with a demand on a fabric with circuits: the greatest bound on the time of plans in which no rank relays;
/// `None` where none is known.
///
/// # Errors
/// A time beyond 64 bits.
pub fn direct_bound(fabric: &Fabric, asked: &Charged<'_>) -> Result<Option<TimeBound>, UnitError> {
    match circuit_plans(fabric).and_then(|plans| plans.direct_bound) {
        Some(bound) if asked.collective.demand().is_some() => bound(fabric, asked),
        _ => Ok(None),
    }
}

/// The greatest bound on the time of any plan on a fabric with circuits; `None` where none is known.
///
/// # Errors
/// A time beyond 64 bits.
pub fn time_bound(fabric: &Fabric, asked: &Charged<'_>) -> Result<Option<TimeBound>, UnitError> {
    match circuit_plans(fabric) {
        Some(plans) if plans.bounds_demands || asked.collective.demand().is_none() => {
            (plans.time_bound)(fabric, asked)
        }
        _ => Ok(None),
    }
}
