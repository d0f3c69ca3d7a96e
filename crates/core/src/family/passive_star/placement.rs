//! Schedules on a passive star: slots and wavelengths.
//!
//! The copies of the same chunks from one rank are one light. Light by light, each takes the first slot of its
//! step in which a wavelength, a transmitter of its source and a receiver of each destination are free. They
//! come by how far after its source their first destination is, then by source, so that one after the other
//! goes from and to different ranks:
//!
//! - An all_gather in one step has min(w, r) lights in a slot (where N t are no fewer): none has a destination
//!   that hears more. It meets its bound where r >= w. Elsewhere ceil(N / r) slots are at most one more than
//!   ceil((N - 1) / r).
//! - An all_to_all in one step with t = r = 1 and w <= N has w lights in every slot but the last: of w that
//!   follow one another no two have the same source or destination.

use std::collections::VecDeque;

use crate::fabric::{Fabric, Light};
use crate::family::passive_star::{PassiveStar, StarLight};
use crate::interrupt;
use crate::place::{PlacementError, PlacementProblem};
use crate::plan::Plan;
use crate::schedule::{Action, Schedule};

/// Gives every transfer its slot and its wavelength.
///
/// # Errors
/// Another fabric, or a transfer that does not join two of its ranks.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let star = fabric.needed::<PassiveStar>("a wavelength of a coupler");
    let star = star.map_err(|error| PlacementError::new(PlacementProblem::Family, error))?;
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut start = 0;
    for step in 0..plan.schedule.steps() {
        let lights = lights(&plan.schedule, step, star)?;
        let mut slots = Slots::new(star);
        for light in lights {
            interrupt::check();
            let (slot, wavelength) = slots.take(&light);
            for transfer in light.transfers {
                plan.slot[transfer] = start + slot;
                plan.light[transfer] = Light::from(StarLight { wavelength });
            }
        }
        // A step of nothing has a slot of its own, as everywhere.
        let end = start + slots.count().max(1);
        plan.step_slots[step] = start..end;
        start = end;
    }
    Ok(plan)
}

/// What one rank sends on a wavelength.
struct OneLight {
    source: u32,
    destinations: Vec<u32>,
    transfers: Vec<usize>,
}

/// The lights of a step in the order in which they are placed.
fn lights(
    schedule: &Schedule,
    step: usize,
    star: &PassiveStar,
) -> Result<Vec<OneLight>, PlacementError> {
    let mut keyed = Vec::with_capacity(schedule.step(step).len());
    for transfer in schedule.step(step) {
        let moved = schedule.transfer(transfer);
        let (source, destination) = (moved.source, moved.destination);
        if source == destination || source.max(destination) >= star.ranks {
            let sentence = format!(
                "transfer {transfer} goes from rank {source} to rank {destination}, but light goes from \
                 one of {} ranks, counted from 0, to another",
                star.ranks
            );
            return Err(PlacementError::new(PlacementProblem::Path, sentence));
        }
        let after = (destination + star.ranks - source) % star.ranks;
        // Each reduction is a light of its own.
        let alone = (moved.action == Action::Reduce).then_some(transfer);
        keyed.push(((source, moved.chunk, moved.count, alone), after, transfer));
    }
    keyed.sort_unstable();
    let mut lights: Vec<(u32, OneLight)> = Vec::new();
    for together in keyed.chunk_by(|one, other| one.0 == other.0) {
        let transfers: Vec<usize> = together.iter().map(|(.., transfer)| *transfer).collect();
        let destination = |&transfer: &usize| schedule.ends(transfer).1;
        let light = OneLight {
            source: together[0].0.0,
            destinations: transfers.iter().map(destination).collect(),
            transfers,
        };
        lights.push((together[0].1, light));
    }
    lights.sort_by_key(|(after, light)| (*after, light.source));
    Ok(lights.into_iter().map(|(_, light)| light).collect())
}

/// The slots of a step, from the first on that has a wavelength left.
struct Slots<'a> {
    star: &'a PassiveStar,
    /// How many slots before these have no wavelength left.
    full: u32,
    open: VecDeque<Slot>,
}

/// How many of what there is a slot uses.
struct Slot {
    wavelengths: u32,
    /// By rank.
    transmitters: Vec<u16>,
    receivers: Vec<u16>,
}

impl Slots<'_> {
    fn new(star: &PassiveStar) -> Slots<'_> {
        Slots {
            star,
            full: 0,
            open: VecDeque::new(),
        }
    }

    fn count(&self) -> u32 {
        self.full + self.open.len() as u32
    }

    /// The first slot that has room for a light, and the light's wavelength there.
    fn take(&mut self, light: &OneLight) -> (u32, u16) {
        let star = self.star;
        let has_room = |slot: &Slot| {
            slot.wavelengths < star.wavelengths
                && u32::from(slot.transmitters[light.source as usize]) < star.transmitters
                && light
                    .destinations
                    .iter()
                    .all(|&rank| u32::from(slot.receivers[rank as usize]) < star.receivers)
        };
        let place = self.open.iter().position(has_room).unwrap_or_else(|| {
            self.open.push_back(Slot {
                wavelengths: 0,
                transmitters: vec![0; star.ranks as usize],
                receivers: vec![0; star.ranks as usize],
            });
            self.open.len() - 1
        });
        let taken = self.full + place as u32;
        let slot = &mut self.open[place];
        let wavelength = slot.wavelengths as u16;
        slot.wavelengths += 1;
        slot.transmitters[light.source as usize] += 1;
        for &rank in &light.destinations {
            slot.receivers[rank as usize] += 1;
        }
        let is_full = |slot: &Slot| slot.wavelengths == star.wavelengths;
        while self.open.front().is_some_and(is_full) {
            self.open.pop_front();
            self.full += 1;
        }
        (taken, wavelength)
    }
}
