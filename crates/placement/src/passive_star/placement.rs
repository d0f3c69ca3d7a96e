//! Placement of schedules on a passive star: slots and wavelengths.
//!
//! A *light* is the data that one rank sends on one wavelength in one slot. Transfers of the same
//! chunks from one rank share one light, which all of their destinations receive. Each light is
//! assigned the first slot of its step in which a wavelength, a transmitter of the source and a
//! receiver of each destination are free. Let w be the number of wavelengths, t and r the numbers
//! of transmitters and receivers of a rank, and N the number of ranks. Lights are ordered by piece,
//! then by the distance from the source to the first destination, then by source:
//!
//! - An all_gather in one step has min(w, r) lights in every slot except the last. If N - 1 <= r
//!   and N <= w, all N lights are in one slot. If r >= w, the number of slots equals its lower
//!   bound. If r < w, the number of slots is ceil(N / r), which exceeds the bound ceil((N - 1) / r)
//!   by at most one.
//! - An all_to_all in one step with t = r = 1 and w <= N has w lights in every slot except the
//!   last. If w = N, all lights of a slot have the same distance. If w < N, no two of w consecutive
//!   lights have the same source or destination.

use crate::PlacementError;
use crate::error::check_ends;
use crate::slots::SlotTable;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::passive_star::{PassiveStar, StarLight};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;

/// Assigns a slot and a wavelength to every transfer of a schedule.
///
/// # Errors
/// A transfer does not go from one rank of the star to a different rank.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    star: &PassiveStar,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    check_ends(&schedule, star.ranks)?;
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut start = 0;
    for step in 0..plan.schedule.steps() {
        let ranks = star.ranks as usize;
        // Resources: wavelengths (index 0), then the transmitters and the receivers of each rank.
        let mut units = vec![star.wavelengths];
        units.resize(1 + ranks, star.transmitters);
        units.resize(1 + 2 * ranks, star.receivers);
        let mut slots = SlotTable::new(units);
        for light in lights(&plan.schedule, step, star) {
            interrupt::check();
            let receivers = light.destinations.iter();
            let receivers = receivers.map(|&rank| 1 + ranks + rank as usize);
            let transmitter = 1 + light.source as usize;
            let resources: Vec<usize> = [0, transmitter].into_iter().chain(receivers).collect();
            let slot = slots.take(&resources);
            let wavelength = slots.used(0, slot) as u16 - 1;
            for transfer in light.transfers {
                plan.slot[transfer] = start + slot;
                plan.light[transfer] = Light::from(StarLight { wavelength });
            }
        }
        let end = start + slots.count();
        plan.step_slots[step] = start..end;
        start = end;
    }
    Ok(plan)
}

struct OneLight {
    source: u32,
    destinations: Vec<u32>,
    transfers: Vec<usize>,
}

/// Returns the lights of a step in the order in which they are placed.
fn lights(schedule: &Schedule, step: usize, star: &PassiveStar) -> Vec<OneLight> {
    let mut keyed = Vec::with_capacity(schedule.step(step).len());
    for transfer in schedule.step(step) {
        let moved = schedule.transfer(transfer);
        let (source, destination) = (moved.source, moved.destination);
        let after = (destination + star.ranks - source) % star.ranks;
        keyed.push(((source, moved.chunk, moved.count), after, transfer));
    }
    keyed.sort_unstable();
    let mut lights: Vec<(u32, OneLight)> = Vec::new();
    for alike_transfers in keyed.chunk_by(|first, second| first.0 == second.0) {
        let transfers: Vec<usize> = alike_transfers
            .iter()
            .map(|(.., transfer)| *transfer)
            .collect();
        let destination = |&transfer: &usize| schedule.ends(transfer).1;
        let light = OneLight {
            source: alike_transfers[0].0.0,
            destinations: transfers.iter().map(destination).collect(),
            transfers,
        };
        lights.push((alike_transfers[0].1, light));
    }
    lights.sort_by_key(|(after, light)| (*after, light.source));
    // First pieces of all sources and distances precede all second pieces.
    let mut pieces = Vec::with_capacity(lights.len());
    let mut piece = 0u32;
    for place in 0..lights.len() {
        let alike = |place: usize| (lights[place].0, lights[place].1.source);
        piece = match place > 0 && alike(place - 1) == alike(place) {
            true => piece + 1,
            false => 0,
        };
        pieces.push(piece);
    }
    let mut ordered: Vec<(u32, OneLight)> = pieces
        .into_iter()
        .zip(lights.into_iter().map(|(_, light)| light))
        .collect();
    ordered.sort_by_key(|(piece, _)| *piece);
    ordered.into_iter().map(|(_, light)| light).collect()
}
