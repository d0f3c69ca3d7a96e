//! How it moves: a schedule with a route, a wavelength and a slot for every transfer. Types only,
//! so that the verifier and the simulators read plans without seeing how they were made.
//!
//! A *slot* is a time slot in which lightpaths are up side by side; it is what the papers count as
//! a communication step. A step of the schedule that needs more wavelengths than exist spreads
//! over several slots. Every transfer is one lightpath: one wavelength of one fibre, along its
//! direction from source to destination.
//!
//! Which light carries a transfer is one word, [`Light`], whose fields the fabric's kind of circuit names
//! ([`Machine::light`](opticoll_fabric::fabric::Machine::light)); families have typed views of them, such as [`opticoll_fabric::family::wdm_ring::WdmLight`].
//! On a grid of tunable circuits a transfer between ranks that share no switch is received and sent on
//! by [`Relay`]s. On a grid of lightpaths transfers over one path in one slot and direction are one message.
//!
//! A plan on an electrical fabric has no light: that column is empty, its slots are the steps of the
//! schedule, and a transfer may carry a range of chunks. It goes by the fabric's route from source to destination unless
//! the plan names another ([`NamedRoutes`]).

mod messages;
pub mod repetition;
pub mod routes;
mod same;
pub mod text;

use std::ops::Range;

use crate::schedule::{Schedule, Transfer};
pub use messages::StepMessages;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::{Fabric, Hop, Light};
pub use repetition::{Repetition, fold};
pub use routes::NamedRoutes;

/// A transfer with its light and slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lightpath {
    /// The time slot, 0..slots.
    pub slot: u32,
    /// The light; [`Light::NONE`] on an electrical fabric.
    pub light: Light,
    /// What it carries, from where to where.
    pub transfer: Transfer,
}

/// A schedule with routes, wavelengths and slots: a row for each transfer, or for all transfers that are its copies
/// ([`Repetition`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The machine it is for.
    pub fabric: Fabric,
    /// What moves.
    pub schedule: Schedule,
    /// The algorithm that made it, as named.
    pub algorithm: String,
    /// The size it was made for, as a default for simulations.
    pub size: Option<Bytes>,
    /// The light, per transfer. Empty on an electrical fabric.
    pub light: Vec<Light>,
    /// The slot, per transfer.
    pub slot: Vec<u32>,
    /// For each step of the schedule, its first slot and the one after its last.
    pub step_slots: Vec<Range<u32>>,
    /// Ranks that receive a transfer and send it on, by transfer and then in the order of the way.
    /// Only on grids of tunable circuits.
    pub relays: Vec<Relay>,
    /// Routes that are not the fabric's. Only on fabrics with links.
    pub routes: NamedRoutes,
    /// How the rows repeat.
    pub repetition: Repetition,
}

/// A rank on the way of a transfer that receives it and sends it on with light of its own, storing
/// it from slot to slot. The data is none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relay {
    /// The transfer, as an index into the plan.
    pub transfer: u32,
    /// The rank that sends it on.
    pub rank: u32,
    /// The light with which it does.
    pub light: Light,
    /// The slot, later than that in which the transfer came to it.
    pub slot: u32,
}

// A plan of 10^8 transfers fits into memory because a transfer takes eight bytes beside its schedule.
const _: () = assert!(size_of::<Light>() + size_of::<u32>() == 8 && size_of::<Relay>() == 16);

impl Plan {
    /// A schedule as it runs on an electrical fabric: a slot for each step, and no light.
    pub fn without_light(fabric: &Fabric, schedule: Schedule, algorithm: String) -> Plan {
        let steps = schedule.steps();
        let slot = (0..steps).flat_map(|step| schedule.step(step).map(move |_| step as u32));
        Plan {
            fabric: fabric.clone(),
            algorithm,
            size: None,
            light: Vec::new(),
            slot: slot.collect(),
            step_slots: (0..steps as u32).map(|slot| slot..slot + 1).collect(),
            relays: Vec::new(),
            routes: NamedRoutes::default(),
            repetition: Repetition::NONE,
            schedule,
        }
    }

    /// Whether its transfers have light each.
    pub fn has_light(&self) -> bool {
        self.fabric.has_light()
    }

    /// The relays of a transfer, in the order in which they come.
    pub fn relays_of(&self, transfer: usize) -> &[Relay] {
        let transfer = transfer as u32;
        let start = self.relays.partition_point(|one| one.transfer < transfer);
        let count = self.relays[start..].partition_point(|one| one.transfer == transfer);
        &self.relays[start..start + count]
    }

    /// The hops of a transfer in order; one where nothing relays it.
    pub fn hops_of(&self, transfer: usize) -> impl Iterator<Item = Hop> + '_ {
        let relays = self.relays_of(transfer);
        let (source, destination) = self.schedule.ends(transfer);
        let light = self.light_of(transfer);
        (0..=relays.len()).map(move |place| {
            let to = relays.get(place).map_or(destination, |relay| relay.rank);
            match place.checked_sub(1).map(|before| relays[before]) {
                None => Hop {
                    from: source,
                    to,
                    light,
                    slot: self.slot[transfer],
                },
                Some(relay) => Hop {
                    from: relay.rank,
                    to,
                    light: relay.light,
                    slot: relay.slot,
                },
            }
        })
    }

    /// The number of time slots: what the papers call communication steps.
    pub fn slots(&self) -> u32 {
        self.step_slots.last().map_or(0, |slots| slots.end)
    }

    /// The number of rows: of lightpaths, where these do not repeat.
    pub fn len(&self) -> usize {
        self.schedule.len()
    }

    /// Whether every lightpath carries one chunk in its slot: no transfer has several, and none shares the lightpath of
    /// another.
    pub fn has_one_chunk_per_lightpath(&self) -> bool {
        self.schedule.is_in_single_chunks() && !(self.has_light() && self.shares_lightpaths())
    }

    /// Whether two transfers of a slot have the same ends and light.
    fn shares_lightpaths(&self) -> bool {
        let mut of_step = Vec::new();
        (0..self.schedule.steps()).any(|step| {
            of_step.clear();
            of_step.extend(self.schedule.step(step).map(|index| {
                (
                    self.slot[index],
                    self.schedule.ends(index),
                    self.light_of(index),
                )
            }));
            of_step.sort_unstable();
            of_step.windows(2).any(|pair| pair[0] == pair[1])
        })
    }

    /// Whether nothing moves.
    pub fn is_empty(&self) -> bool {
        self.schedule.is_empty()
    }

    /// The same fabric, collective, claims and slots, without a step or lightpath, and without repetition.
    pub fn without_lightpaths(&self) -> Plan {
        let mut schedule = Schedule::new(self.schedule.collective);
        schedule.claims = self.schedule.claims.clone();
        Plan {
            fabric: self.fabric.clone(),
            schedule,
            algorithm: self.algorithm.clone(),
            size: self.size,
            light: Vec::new(),
            slot: Vec::new(),
            step_slots: self.step_slots.clone(),
            relays: Vec::new(),
            routes: NamedRoutes::default(),
            repetition: Repetition::NONE,
        }
    }

    /// Makes room for `lightpaths` more.
    pub fn reserve(&mut self, lightpaths: usize) {
        self.schedule.reserve(lightpaths);
        self.slot.reserve_exact(lightpaths);
        if self.has_light() {
            self.light.reserve_exact(lightpaths);
        }
    }

    /// Adds a lightpath to the open step of the schedule; on an electrical fabric without its light.
    pub fn push(&mut self, lightpath: Lightpath) {
        self.schedule.push(lightpath.transfer);
        self.slot.push(lightpath.slot);
        if self.has_light() {
            self.light.push(lightpath.light);
        }
    }

    /// The light of a transfer; [`Light::NONE`] on an electrical fabric.
    pub fn light_of(&self, index: usize) -> Light {
        match self.has_light() {
            true => self.light[index],
            false => Light::NONE,
        }
    }

    /// The lightpath of a row.
    pub fn lightpath(&self, index: usize) -> Lightpath {
        Lightpath {
            slot: self.slot[index],
            light: self.light_of(index),
            transfer: self.schedule.transfer(index),
        }
    }

    /// The lightpaths of all rows, in the order of the schedule.
    pub fn lightpaths(&self) -> impl Iterator<Item = Lightpath> + '_ {
        (0..self.len()).map(|index| self.lightpath(index))
    }
}
