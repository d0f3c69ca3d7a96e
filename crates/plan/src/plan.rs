//! Plans: schedules with a route, a wavelength and a slot for every transfer. This module has only
//! types, so that the verifier and the simulators read plans without knowing how they were made.
//!
//! A *slot* is a time slot in which lightpaths are up side by side; the papers count slots as
//! communication steps. A step of the schedule that needs more wavelengths than exist takes several
//! slots. Every transfer is one lightpath: one wavelength of one fibre, along its direction from
//! source to destination.
//!
//! The light of a transfer is one word, [`Light`], whose fields the fabric's kind of circuit names
//! ([`Machine::light`](opticoll_fabric::fabric::Machine::light)). Families have typed views of the
//! word, such as [`opticoll_fabric::family::wdm_ring::WdmLight`]. On a grid of tunable circuits
//! [`Relay`]s forward a transfer between ranks that share no switch. On a grid of lightpaths
//! transfers over one path in one slot and direction are one message.
//!
//! A plan on an electrical fabric has no light: that column is empty, its slots are the steps of
//! the schedule, and a transfer may carry a range of chunks. A transfer takes the fabric's route
//! from source to destination unless the plan names another route ([`NamedRoutes`]).

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

/// Transfer with its light and slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lightpath {
    /// Time slot, 0..slots.
    pub slot: u32,
    /// Light; [`Light::NONE`] on an electrical fabric.
    pub light: Light,
    /// Chunks, source, destination and action.
    pub transfer: Transfer,
}

/// Schedule with routes, wavelengths and slots. A row stands for a transfer, or for all transfers
/// that are its copies ([`Repetition`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Machine on which the plan runs.
    pub fabric: Fabric,
    /// Transfers in steps.
    pub schedule: Schedule,
    /// Name of the algorithm that made the plan.
    pub algorithm: String,
    /// Size for which the plan was made, the default of simulations.
    pub size: Option<Bytes>,
    /// Light of each transfer; empty on an electrical fabric.
    pub light: Vec<Light>,
    /// Slot of each transfer.
    pub slot: Vec<u32>,
    /// Slots of each step of the schedule, as a range.
    pub step_slots: Vec<Range<u32>>,
    /// Relays by transfer and then in the order of the route. Only on fabrics whose kind of light
    /// has relays.
    pub relays: Vec<Relay>,
    /// Routes other than the fabric's. Only on fabrics with links.
    pub routes: NamedRoutes,
    /// Repetition of the rows.
    pub repetition: Repetition,
}

/// Rank on the route of a transfer that receives it, stores it and sends it on with light of its
/// own in a later slot. The rank does not keep the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relay {
    /// Index of the transfer in the plan.
    pub transfer: u32,
    /// Rank that sends the transfer on.
    pub rank: u32,
    /// Light with which the rank sends.
    pub light: Light,
    /// Slot in which the rank sends, later than the slot in which it received.
    pub slot: u32,
}

// A plan of 10^8 transfers fits into memory, because a transfer takes eight bytes in addition to
// its schedule.
const _: () = assert!(size_of::<Light>() + size_of::<u32>() == 8 && size_of::<Relay>() == 16);

impl Plan {
    /// Returns the plan of a schedule on an electrical fabric: a slot for each step, and no light.
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

    /// Returns whether each transfer has light.
    pub fn has_light(&self) -> bool {
        self.fabric.has_light()
    }

    /// Returns the relays of a transfer, in the order of its route.
    pub fn relays_of(&self, transfer: usize) -> &[Relay] {
        let transfer = transfer as u32;
        let start = self.relays.partition_point(|one| one.transfer < transfer);
        let count = self.relays[start..].partition_point(|one| one.transfer == transfer);
        &self.relays[start..start + count]
    }

    /// Returns the hops of a transfer in order; a single hop if no rank relays the transfer.
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

    /// Returns the number of time slots, which the papers call communication steps.
    pub fn slots(&self) -> u32 {
        self.step_slots.last().map_or(0, |slots| slots.end)
    }

    /// Returns the number of rows, which is the number of lightpaths if the rows do not repeat.
    pub fn len(&self) -> usize {
        self.schedule.len()
    }

    /// Returns whether every lightpath carries one chunk in its slot: no transfer has several
    /// chunks, and no two transfers share a lightpath.
    pub fn has_one_chunk_per_lightpath(&self) -> bool {
        self.schedule.has_single_chunks() && !(self.has_light() && self.shares_lightpaths())
    }

    /// Returns whether two transfers of a slot have the same ends and light.
    fn shares_lightpaths(&self) -> bool {
        let mut lightpaths = Vec::new();
        (0..self.schedule.steps()).any(|step| {
            lightpaths.clear();
            lightpaths.extend(self.schedule.step(step).map(|index| {
                (
                    self.slot[index],
                    self.schedule.ends(index),
                    self.light_of(index),
                )
            }));
            lightpaths.sort_unstable();
            lightpaths.windows(2).any(|pair| pair[0] == pair[1])
        })
    }

    /// Returns whether the plan has no transfers.
    pub fn is_empty(&self) -> bool {
        self.schedule.is_empty()
    }

    /// Returns a plan with the same fabric, collective, claims and slots, but without steps,
    /// lightpaths and repetition.
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

    /// Reserves memory for `lightpaths` more lightpaths.
    pub fn reserve(&mut self, lightpaths: usize) {
        self.schedule.reserve(lightpaths);
        self.slot.reserve_exact(lightpaths);
        if self.has_light() {
            self.light.reserve_exact(lightpaths);
        }
    }

    /// Adds a lightpath to the open step of the schedule; on an electrical fabric without its
    /// light.
    pub fn push(&mut self, lightpath: Lightpath) {
        self.schedule.push(lightpath.transfer);
        self.slot.push(lightpath.slot);
        if self.has_light() {
            self.light.push(lightpath.light);
        }
    }

    /// Returns the light of a transfer; [`Light::NONE`] on an electrical fabric.
    pub fn light_of(&self, index: usize) -> Light {
        match self.has_light() {
            true => self.light[index],
            false => Light::NONE,
        }
    }

    /// Returns the lightpath of a row.
    pub fn lightpath(&self, index: usize) -> Lightpath {
        Lightpath {
            slot: self.slot[index],
            light: self.light_of(index),
            transfer: self.schedule.transfer(index),
        }
    }

    /// Returns the lightpaths of all rows, in the order of the schedule.
    pub fn lightpaths(&self) -> impl Iterator<Item = Lightpath> + '_ {
        (0..self.len()).map(|index| self.lightpath(index))
    }
}
