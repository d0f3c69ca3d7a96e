//! The named all_gather algorithms, as what a planner must not fall behind.

use super::PlannerError;
use crate::algorithm::optree::tree;
use crate::algorithm::{self};
use crate::collective::Collective;
use crate::fabric::{Fabric, WdmRing};
use crate::plan::Plan;
use crate::route;
use crate::spec::Spec;
use crate::wavelength::light_path_grid::assign_ports;
use crate::wavelength::wss_grid::assign_on_grid;
use crate::wavelength::{Assignment, WavelengthError, assign};

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

/// Whether an error says that an algorithm's lightpaths do not fit the ring: too long, or cut.
pub(super) fn does_not_fit(error: &PlannerError) -> bool {
    matches!(
        error,
        PlannerError::Wavelength(WavelengthError::Broken { .. } | WavelengthError::TooFar { .. })
    )
}

/// The plan of a named algorithm, with the default routes and wavelengths; on an electrical fabric
/// without light.
///
/// # Errors
/// What the algorithm or the assignment refuses.
pub(super) fn plan(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
) -> Result<Plan, PlannerError> {
    let schedule = algorithm::build(spec, collective, fabric)?;
    if fabric.wss_grid().is_some() {
        return Ok(assign_on_grid(schedule, fabric, spec.to_string())?);
    }
    if fabric.light_path_grid().is_some() {
        return Ok(assign_ports(schedule, fabric, spec.to_string())?);
    }
    let Some(ring) = fabric.ring() else {
        return Ok(Plan::without_light(fabric, schedule, spec.to_string()));
    };
    let directions = route::shortest_arcs(&schedule, ring);
    let assignment = Assignment::AUTO;
    Ok(assign(
        schedule,
        directions,
        fabric,
        assignment,
        spec.to_string(),
    )?)
}
