//! The named all_gather algorithms, as what a planner must not fall behind.

use crate::building::striping::{self, STRIPES};
use crate::{PlannerError, ring_of};
use opticoll_algorithms::Algorithm;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::fabric::{Circuits, Fabric};
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_placement::AUTO;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

/// The all_gather algorithm of the fewest slots by its loads, and the slots that it is not below.
///
/// Bruck's and recursive doubling's lightpaths are at least as long as those of one stage, and WRHT's
/// all_gather sends every block to half of a group over single channels; none is ever the first.
pub(crate) fn fewest_slots(ring: &WdmRing) -> Option<(&'static str, u32)> {
    let gathering = opticoll_algorithms::records()
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
    spec.only_declared(&options(opticoll_algorithms::find(
        collective.kind(),
        spec.name(),
    )?))?;
    if ring_of(fabric).is_none() && spec.option(STRIPES.name).is_some() {
        let problem = format!(
            "stripes are wavelengths of a wdm_ring, and {} is {}; leave the option out",
            fabric.family(),
            fabric.nature()
        );
        return Err(spec.refuse(STRIPES.name, problem).into());
    }
    let whole = spec.without(STRIPES.name);
    let schedule = opticoll_algorithms::build(&whole, collective, fabric)?;
    let plan = opticoll_placement::place(schedule, fabric, assignment, spec.to_string());
    let plan = plan.map_err(|problem| match assignment {
        AUTO => PlannerError::Placement(problem),
        _ => PlannerError::Assignment(problem),
    })?;
    let stripes = match spec.option(STRIPES.name) {
        Some("all") => None,
        _ => Some(spec.count(STRIPES.name, 1, u32::MAX)?.unwrap_or(1)),
    };
    striping::plan(plan, stripes)
}

/// `ring:order=natural,seed=1` as `ring/order=natural/seed=1`, and back; a stroke that is there already is doubled.
pub(crate) fn flat(spec: &str) -> String {
    spec.replace('/', "//").replace([':', ','], "/")
}

/// The spec that such a text names.
pub(crate) fn nested(text: &str) -> Result<Spec, PlannerError> {
    let levels = text.split("//").map(|level| level.replace('/', ","));
    let spec: Vec<String> = levels.collect();
    Ok(spec.join("/").replacen(',', ":", 1).parse()?)
}
