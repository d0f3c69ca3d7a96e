//! The named all_gather algorithms, as what a planner must not fall behind.

use super::PlannerError;
use crate::algorithm::optree::tree;
use crate::algorithm::{self};
use crate::collective::Collective;
use crate::fabric::{Fabric, WdmRing};
use crate::plan::Plan;
use crate::route;
use crate::spec::Spec;
use crate::wavelength::{Assignment, assign};

/// The named algorithm with the fewest slots, and these or a little fewer: by its loads, which no
/// assignment of wavelengths can beat.
///
/// Bruck's and recursive doubling's lightpaths are at least as long as those of one stage, and WRHT's
/// all_gather sends every block to half of a group over single channels; none is ever the first.
pub(super) fn fewest_slots(ring: &WdmRing) -> (&'static str, u32) {
    let (ranks, channels) = (u64::from(ring.ranks), u64::from(ring.channels()));
    let one_stage = (ranks * ranks / 4).div_ceil(2).div_ceil(channels);
    let radices = tree::best_radices(ring.ranks, ring.channels());
    let loads = tree::stage_loads(ring.ranks, &radices);
    let optree = loads.iter().map(|load| load.div_ceil(channels)).sum();
    let (name, slots) = [
        ("one_stage", one_stage),
        ("optree", optree),
        ("ring_bidirectional", (ranks - 1).div_ceil(2)),
    ]
    .into_iter()
    .min_by_key(|(_, slots)| *slots)
    .unwrap_or(("ring", ranks - 1));
    (name, u32::try_from(slots).unwrap_or(u32::MAX))
}

/// The plan of a named algorithm, with the default routes and wavelengths.
///
/// # Errors
/// What the algorithm or the assignment refuses.
pub(super) fn plan(
    name: &str,
    fabric: &Fabric,
    collective: Collective,
) -> Result<Plan, PlannerError> {
    let Fabric::WdmRing(ring) = fabric;
    let schedule = algorithm::build(&Spec::new(name), collective, fabric)?;
    let directions = route::shortest_arcs(&schedule, ring);
    let assignment = Assignment::AUTO;
    Ok(assign(
        schedule,
        directions,
        fabric,
        assignment,
        name.into(),
    )?)
}
