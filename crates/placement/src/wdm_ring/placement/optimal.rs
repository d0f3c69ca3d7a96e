//! Optimal construction for a one-stage all-to-all. Each circle of lightpaths that covers the ring
//! once uses one wavelength (see [`crate::wdm_ring::route::all_to_all`]).
//!
//! A step may contain several all-to-alls among disjoint sets of members (stage 1 of OpTree), and
//! several transfers for each ordered pair of members. Each all-to-all, and each repetition of a
//! transfer, uses wavelengths of its own. The result is used only if the number of wavelengths
//! equals the maximum number of lightpaths on a link, so the result is optimal for the step.

use rustc_hash::FxHashMap;

use crate::wdm_ring::route::{Arc, all_to_all, loads};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::schedule::StepColumns;

/// Returns the channel of each transfer of a step, indexed by transfer. Channels have consecutive
/// numbers over all slots. Returns `None` in two cases: the step is not a set of disjoint uniform
/// all-to-alls over the paths of [`all_to_all::circle`], or the number of wavelengths exceeds the
/// maximum number of lightpaths on a link.
pub(super) fn channels(step: StepColumns<'_>, arcs: &[Arc], ring: &WdmRing) -> Option<Vec<u32>> {
    let groups = all_to_all::groups(step, ring.ranks)?;
    let places = all_to_all::member_indices(&groups, ring.ranks);
    // Channel of each circle, for each direction. The key is (group, round, index of the circle),
    // and channels are numbered in the order in which the circles first appear.
    let mut numbers: [FxHashMap<(usize, u32, u32), u32>; 2] = Default::default();
    let mut rounds_seen: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut channels = Vec::with_capacity(arcs.len());
    for (arc, (source, destination)) in arcs.iter().zip(step.ends()) {
        interrupt::check();
        let (number, from) = places[source as usize];
        let (_, to) = places[destination as usize];
        let group = &groups[number];
        let (direction, circle) = all_to_all::circle(from, to, group.members.len() as u32);
        if direction.is_some_and(|direction| direction != arc.direction) {
            return None;
        }
        let round = if group.rounds == 1 {
            0
        } else {
            let seen = rounds_seen.entry((source, destination)).or_insert(0);
            *seen += 1;
            *seen - 1
        };
        let numbers = &mut numbers[arc.direction as usize];
        let next = numbers.len() as u32;
        channels.push(*numbers.entry((number, round, circle)).or_insert(next));
    }
    let is_optimal = Direction::BOTH.into_iter().all(|direction| {
        let greatest = loads(direction, arcs, ring.ranks)
            .into_iter()
            .max()
            .unwrap_or(0);
        numbers[direction as usize].len() == greatest as usize
    });
    is_optimal.then_some(channels)
}
