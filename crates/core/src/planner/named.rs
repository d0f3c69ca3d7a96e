//! The named all_gather algorithms, as what a planner must not fall behind.

use super::{PlannerError, striped};
use crate::algorithm;
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::{Circuits, Fabric};
use crate::families;
use crate::family::wdm_ring::WdmRing;
use crate::plan::AnyPlan;
use crate::spec::Spec;

/// The all_gather algorithm of the fewest slots by its loads, and the slots that it is not below.
///
/// Bruck's and recursive doubling's lightpaths are at least as long as those of one stage, and WRHT's
/// all_gather sends every block to half of a group over single channels; none is ever the first.
pub(super) fn fewest_slots(ring: &WdmRing) -> Option<(&'static str, u32)> {
    let gathering = algorithm::records()
        .iter()
        .filter(|record| record.collective == CollectiveKind::AllGather);
    let slots =
        gathering.filter_map(|record| Some((record, (record.least_slots)(ring.ring_shape()?)?)));
    let (record, slots) = slots.min_by_key(|(_, slots)| *slots)?;
    Some((record.name, u32::try_from(slots).unwrap_or(u32::MAX)))
}

/// The option of every named algorithm on a ring of wavelengths: [`striped`].
pub(super) const STRIPES: &str = "stripes";

/// The plan of a named algorithm, with the default routes and wavelengths; on an electrical fabric
/// without light. On a ring its option `stripes` cuts what each lightpath carries over several wavelengths.
///
/// # Errors
/// What the algorithm or the assignment refuses.
pub(super) fn plan(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
) -> Result<AnyPlan, PlannerError> {
    if fabric.downcast::<WdmRing>().is_none() {
        let schedule = algorithm::build(spec, collective, fabric)?;
        let plan = families::place_by_default(schedule, fabric, spec.to_string())?;
        return Ok(AnyPlan::Full(plan));
    }
    let whole = spec.without(STRIPES);
    let schedule = algorithm::build(&whole, collective, fabric)?;
    let plan = families::place_by_default(schedule, fabric, spec.to_string())?;
    let stripes = match spec.option(STRIPES) {
        Some("all") => striped::most(&plan),
        _ => spec.count(STRIPES, 1, u32::MAX)?.unwrap_or(1),
    };
    striped::plan(plan, stripes)
}
