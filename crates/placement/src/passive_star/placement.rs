//! Schedules on a passive star: slots and wavelengths.
//!
//! The same chunks from one rank are one light, whoever hears it. Light by light, each takes the first slot of its
//! step in which a wavelength, a transmitter of its source and a receiver of each destination are free. They
//! come piece by piece; of one piece by how far after its source their first destination is, then by source:
//!
//! - An all_gather in one step has min(w, r) lights in every slot but the last, and all N where N - 1 <= r and
//!   N <= w. It meets its bound where r >= w. Elsewhere ceil(N / r) slots are at most one more than
//!   ceil((N - 1) / r).
//! - An all_to_all in one step with t = r = 1 and w <= N has w lights in every slot but the last. With w = N a slot
//!   has one distance for all sources; with w < N no two of w that follow one another have the same source or
//!   destination.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::{PlacementError, PlacementProblem};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::passive_star::{PassiveStar, StarLight};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;

/// Gives every transfer its slot and its wavelength.
///
/// # Errors
/// A transfer that does not join two of its ranks.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    star: &PassiveStar,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut start = 0;
    for step in 0..plan.schedule.steps() {
        let lights = lights(&plan.schedule, step, star)?;
        let mut slots = StarSlots::new(star);
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
        keyed.push(((source, moved.chunk, moved.count), after, transfer));
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
    // The first piece of each comes before the second of any.
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
    Ok(ordered.into_iter().map(|(_, light)| light).collect())
}

/// The slots of a step, from the first on that has a wavelength left.
struct StarSlots<'a> {
    star: &'a PassiveStar,
    /// How many slots before these have no wavelength left.
    full: u32,
    open: VecDeque<Slot>,
    /// By rank, the first slot in which it has a transmitter left, and a receiver.
    first: [Vec<u32>; 2],
}

/// How much of what there is a slot uses.
#[derive(Default)]
struct Slot {
    wavelengths: u32,
    /// By rank, transmitters and receivers. Looked up only.
    ports: [FxHashMap<u32, u32>; 2],
}

const TRANSMITTERS: usize = 0;
const RECEIVERS: usize = 1;

impl StarSlots<'_> {
    fn new(star: &PassiveStar) -> StarSlots<'_> {
        let none = || vec![0; star.ranks as usize];
        StarSlots {
            star,
            full: 0,
            open: VecDeque::new(),
            first: [none(), none()],
        }
    }

    fn count(&self) -> u32 {
        self.full + self.open.len() as u32
    }

    /// Whether a rank has a transmitter or a receiver left in an open slot.
    fn is_free(&self, place: usize, ports: usize, rank: u32) -> bool {
        let used = self.open[place].ports[ports]
            .get(&rank)
            .copied()
            .unwrap_or(0);
        used < [self.star.transmitters, self.star.receivers][ports]
    }

    /// The first slot that has room for a light, and the light's wavelength there.
    fn take(&mut self, light: &OneLight) -> (u32, u16) {
        let ends = || {
            let destinations = light.destinations.iter().map(|&rank| (RECEIVERS, rank));
            std::iter::once((TRANSMITTERS, light.source)).chain(destinations)
        };
        let free_from = ends().map(|(ports, rank)| self.first[ports][rank as usize]);
        let earliest = free_from.fold(self.full, u32::max);
        let mut place = (earliest - self.full) as usize;
        let has_room = |slots: &StarSlots<'_>, place: usize| {
            slots.open[place].wavelengths < slots.star.wavelengths
                && ends().all(|(ports, rank)| slots.is_free(place, ports, rank))
        };
        while place < self.open.len() && !has_room(self, place) {
            interrupt::check();
            place += 1;
        }
        while self.open.len() <= place {
            self.open.push_back(Slot::default());
        }
        let wavelength = self.open[place].wavelengths as u16;
        self.open[place].wavelengths += 1;
        for (ports, rank) in ends() {
            *self.open[place].ports[ports].entry(rank).or_default() += 1;
            let first = &mut self.first[ports][rank as usize];
            *first = (*first).max(self.full);
            while self.first[ports][rank as usize] < self.count() {
                let next = (self.first[ports][rank as usize] - self.full) as usize;
                if self.is_free(next, ports, rank) {
                    break;
                }
                self.first[ports][rank as usize] += 1;
            }
        }
        let taken = self.full + place as u32;
        let wavelengths = self.star.wavelengths;
        let is_full = |slot: &Slot| slot.wavelengths == wavelengths;
        while self.open.front().is_some_and(is_full) {
            self.open.pop_front();
            self.full += 1;
        }
        (taken, wavelength)
    }
}
