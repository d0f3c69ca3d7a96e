//! The named all_gather algorithms, as what a planner must not fall behind.

use super::{PlannerError, striped};
use crate::algorithm::optree::tree;
use crate::algorithm::{self};
use crate::collective::Collective;
use crate::fabric::{Fabric, WdmRing};
use crate::plan::{AnyPlan, Plan};
use crate::route;
use crate::schedule::Schedule;
use crate::spec::Spec;
use crate::wavelength::light_path_grid::assign_ports;
use crate::wavelength::wss_grid::assign_on_grid;
use crate::wavelength::{Assignment, assign};

/// The named algorithms that may be the best somewhere, each with a number of slots that it is not
/// below (by its loads, which no assignment of wavelengths can beat) and one of settings of circuits.
///
/// Bruck's and recursive doubling's lightpaths are at least as long as those of one stage, and WRHT's
/// all_gather sends every block to half of a group over single channels; none is ever the first.
pub(super) fn estimates(ring: &WdmRing) -> Vec<(&'static str, u64, u64)> {
    let (ranks, channels) = (u64::from(ring.ranks), u64::from(ring.channels()));
    if ranks < 2 {
        return vec![("ring", 0, 0)];
    }
    let hop_by_hop = ("ring_bidirectional", (ranks - 1).div_ceil(2), 1);
    if ring.longest() < ring.ranks / 2 {
        return vec![hop_by_hop];
    }
    let one_stage = (ranks * ranks / 4).div_ceil(2).div_ceil(channels);
    let radices = tree::best_radices(ring.ranks, ring.channels());
    let loads = tree::stage_loads(ring.ranks, &radices);
    let optree = loads.iter().map(|load| load.div_ceil(channels)).sum();
    vec![
        ("one_stage", one_stage, one_stage),
        ("optree", optree, loads.len() as u64),
        hop_by_hop,
    ]
}

/// The named algorithm with the fewest slots, and a number that these are not below.
pub(super) fn fewest_slots(ring: &WdmRing) -> (&'static str, u32) {
    let estimates = estimates(ring);
    let fewest = estimates.into_iter().min_by_key(|(_, slots, _)| *slots);
    let (name, slots, _) = fewest.unwrap_or(("ring", 0, 0));
    (name, u32::try_from(slots).unwrap_or(u32::MAX))
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
    if fabric.ring().is_none() {
        let schedule = algorithm::build(spec, collective, fabric)?;
        return lay_out(schedule, fabric, spec.to_string()).map(AnyPlan::Full);
    }
    let whole = spec.without(STRIPES);
    let schedule = algorithm::build(&whole, collective, fabric)?;
    let plan = lay_out(schedule, fabric, spec.to_string())?;
    let stripes = match spec.option(STRIPES) {
        Some("all") => striped::most(&plan),
        _ => spec.count(STRIPES, 1, u32::MAX)?.unwrap_or(1),
    };
    striped::plan(plan, stripes)
}

/// The plan of a schedule, with the default routes and wavelengths or ports.
///
/// # Errors
/// What the assignment refuses.
pub(super) fn lay_out(
    schedule: Schedule,
    fabric: &Fabric,
    algorithm: String,
) -> Result<Plan, PlannerError> {
    if fabric.wss_grid().is_some() {
        return Ok(assign_on_grid(schedule, fabric, algorithm)?);
    }
    if fabric.light_path_grid().is_some() {
        return Ok(assign_ports(schedule, fabric, algorithm)?);
    }
    let Some(ring) = fabric.ring() else {
        return Ok(Plan::without_light(fabric, schedule, algorithm));
    };
    let directions = route::shortest_arcs(&schedule, ring);
    let assignment = Assignment::AUTO;
    Ok(assign(schedule, directions, fabric, assignment, algorithm)?)
}
