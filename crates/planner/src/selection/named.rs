//! The named all_gather algorithms, as what a planner must not fall behind.

use crate::PlannerError;
use crate::ring::striped::{self, STRIPES};
use opticoll_core::algorithm::{self, Algorithm};
use opticoll_core::collective::{Collective, CollectiveKind};
use opticoll_core::fabric::{Circuits, Fabric};
use opticoll_core::families;
use opticoll_core::family::AUTO;
use opticoll_core::family::wdm_ring::WdmRing;
use opticoll_core::plan::Plan;
use opticoll_core::spec::{OptionRecord, Spec};

/// The all_gather algorithm of the fewest slots by its loads, and the slots that it is not below.
///
/// Bruck's and recursive doubling's lightpaths are at least as long as those of one stage, and WRHT's
/// all_gather sends every block to half of a group over single channels; none is ever the first.
pub(crate) fn fewest_slots(ring: &WdmRing) -> Option<(&'static str, u32)> {
    let gathering = algorithm::records()
        .iter()
        .filter(|record| record.collective == CollectiveKind::AllGather);
    let slots = gathering.filter_map(|record| {
        let plain = Spec::new(record.name);
        let loads = (record.least_loads)(&plain, ring.ring_shape()?);
        Some((record, loads.ok()??.slots))
    });
    let (record, slots) = slots.min_by_key(|(_, slots)| *slots)?;
    Some((record.name, u32::try_from(slots).unwrap_or(u32::MAX)))
}

/// The options of an algorithm where its plan is asked for: its own, and `stripes` where rings run it.
pub fn options(record: &Algorithm) -> Vec<OptionRecord> {
    let stripes = record.families.is_empty().then_some(STRIPES);
    record.options.iter().copied().chain(stripes).collect()
}

/// The plan of a named algorithm, with a named assignment of wavelengths; on an electrical fabric
/// without light. On a ring its option `stripes` cuts what each lightpath carries over several wavelengths.
///
/// # Errors
/// What the algorithm refuses, and as [`PlannerError::Assignment`] what the assignment does.
pub(crate) fn plan(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    assignment: &str,
) -> Result<Plan, PlannerError> {
    spec.only_declared(&options(algorithm::find(collective.kind(), spec.name())?))?;
    let ring = fabric.downcast::<WdmRing>();
    if ring.is_none() && spec.option(STRIPES.name).is_some() {
        let problem = format!(
            "stripes are wavelengths of a wdm_ring, and {} is {}; leave the option out",
            fabric.family(),
            fabric.nature()
        );
        return Err(spec.refuse(STRIPES.name, problem).into());
    }
    let whole = spec.without(STRIPES.name);
    let schedule = algorithm::build(&whole, collective, fabric)?;
    let plan = families::place(schedule, fabric, assignment, spec.to_string());
    let plan = plan.map_err(|problem| match assignment {
        AUTO => PlannerError::Placement(problem),
        _ => PlannerError::Assignment(problem),
    })?;
    let stripes = match spec.option(STRIPES.name) {
        Some("all") => None,
        _ => Some(spec.count(STRIPES.name, 1, u32::MAX)?.unwrap_or(1)),
    };
    striped::plan(plan, stripes)
}
