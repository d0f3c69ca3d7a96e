//! Plans of algorithms by name, and specifications inside option values of other specifications.

use crate::building::striping::{self, STRIPES};
use crate::{PlannerError, ring_of};
use opticoll_algorithms::Algorithm;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::fabric::{Circuits, Fabric};
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_placement::AUTO;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

/// Returns the all_gather algorithm with the fewest slots according to the link loads in its
/// record, with a lower bound on its number of slots.
///
/// The algorithms whose records have no link loads need at least as many slots as the result. In
/// Bruck's algorithm and in recursive doubling, lightpaths are at least as long as in `one_stage`.
/// WRHT's all_gather sends every block to half of a group over single channels.
pub(crate) fn fewest_slots(ring: &WdmRing) -> Option<(&'static str, u32)> {
    let gathering = opticoll_algorithms::records()
        .iter()
        .filter(|record| record.collective == CollectiveKind::AllGather);
    let slots = gathering.filter_map(|record| {
        let plain = Spec::new(record.name);
        let loads = (record.link_load_bound)(&plain, ring.ring_shape()?);
        Some((record, loads.ok()??.slots))
    });
    let (record, slots) = slots.min_by_key(|(_, slots)| *slots)?;
    Some((record.name, u32::try_from(slots).unwrap_or(u32::MAX)))
}

/// Returns the options that a request may give for an algorithm: the options of its record, and
/// `stripes` if the algorithm runs on WDM rings.
pub fn options(record: &Algorithm) -> Vec<OptionRecord> {
    let stripes = record.families.is_empty().then_some(STRIPES);
    record.options.iter().copied().chain(stripes).collect()
}

/// Returns the plan of an algorithm with the wavelength assignment `assignment`, or without light
/// on an electrical fabric. On a WDM ring, the option `stripes` divides each chunk among several
/// wavelengths.
pub(crate) fn plan(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    assignment: &str,
) -> Result<Plan, PlannerError> {
    spec.only_declared(&options(opticoll_algorithms::find(
        collective.kind(),
        spec.name(),
    )?))?;
    if ring_of(fabric).is_none() && spec.option(STRIPES.name).is_some() {
        let reason = format!(
            "stripes are wavelengths of a wdm_ring, and {} is {}; leave the option out",
            fabric.family(),
            fabric.nature()
        );
        return Err(spec.refuse(STRIPES.name, reason).into());
    }
    let whole = spec.without(STRIPES.name);
    let schedule = opticoll_algorithms::build(&whole, collective, fabric)?;
    let plan = opticoll_placement::place(schedule, fabric, assignment, spec.to_string());
    let plan = plan.map_err(|error| match assignment {
        AUTO => PlannerError::Placement(error),
        _ => PlannerError::Assignment(error),
    })?;
    let stripes = match spec.option(STRIPES.name) {
        Some("all") => None,
        _ => Some(spec.count(STRIPES.name, 1, u32::MAX)?.unwrap_or(1)),
    };
    striping::plan(plan, stripes)
}
