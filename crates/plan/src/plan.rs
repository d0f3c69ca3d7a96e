//! Plans: schedules with a route, a wavelength and a slot for every transfer. This module defines
//! only types, so that the verifier and the simulators do not depend on the code that makes plans.
//!
//! A *slot* is an interval of time with the same lightpaths; papers call slots communication steps.
//! If a step of the schedule needs more wavelengths than the fabric has, the step has several
//! slots. Every transfer is one lightpath: one wavelength of one fibre, on the route from source to
//! destination.
//!
//! The light of a transfer is one word, [`Light`]. The fabric's kind of light names the fields of
//! this word ([`Machine::light`](opticoll_fabric::fabric::Machine::light)), and each family has a
//! typed view of it, such as [`opticoll_fabric::family::wdm_ring::WdmLight`]. On a grid of tunable
//! circuits, [`Relay`]s forward a transfer between ranks that share no switch. On a grid of
//! lightpaths, all transfers over one lightpath in one slot and direction are one message.
//!
//! A plan on an electrical fabric has no light: its column of light is empty, its slots are the
//! steps of the schedule, and a transfer may carry a range of chunks. A transfer uses the fabric's
//! route from source to destination, unless the plan names another route ([`NamedRoutes`]).

mod margin;
mod messages;
pub mod repetition;
mod same;
pub mod text;

use std::ops::Range;

use crate::schedule::{Schedule, Transfer};
pub use margin::LightMargin;
pub use messages::StepMessages;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::{Fabric, Hop, Light};
pub use opticoll_fabric::network::named_routes::{self as routes, NamedRoutes};
pub use repetition::{Repetition, fold};

/// Transfer with its light and its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lightpath {
    /// Slot, counted from 0.
    pub slot: u32,
    /// Light; [`Light::NONE`] on an electrical fabric.
    pub light: Light,
    /// Chunks, source, destination and action.
    pub transfer: Transfer,
}

/// Schedule with light, slots and routes. A row of the plan is a transfer with its light and slot,
/// and stands for this transfer or for several copies of it ([`Repetition`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Fabric on which the plan runs.
    pub fabric: Fabric,
    /// Transfers in steps.
    pub schedule: Schedule,
    /// Name of the algorithm that made the plan.
    pub algorithm: String,
    /// Size for which the plan was made. Simulations use this size by default.
    pub size: Option<Bytes>,
    /// Light of each transfer, indexed by transfer; empty on an electrical fabric.
    pub light: Vec<Light>,
    /// Slot of each transfer, indexed by transfer.
    pub slot: Vec<u32>,
    /// Range of slots of each step, indexed by step.
    pub step_slots: Vec<Range<u32>>,
    /// Relays, sorted by transfer and position on the route; empty unless the kind of light has
    /// relays.
    pub relays: Vec<Relay>,
    /// Named routes of transfers that do not use the fabric's route. Only on fabrics with links.
    pub routes: NamedRoutes,
    /// Numbers of copies that each row stands for.
    pub repetition: Repetition,
}

/// Rank on the route of a transfer that receives and stores the data, and sends them in a later
/// slot with light of its own. The rank does not keep the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relay {
    /// Index of the transfer in the plan.
    pub transfer: u32,
    /// Rank that relays the transfer.
    pub rank: u32,
    /// Light with which this rank sends.
    pub light: Light,
    /// Slot in which this rank sends, later than the slot in which it received the data.
    pub slot: u32,
}

// In addition to its schedule, a transfer needs eight bytes, so that 10^8 transfers fit into
// memory.
const _: () = assert!(size_of::<Light>() + size_of::<u32>() == 8 && size_of::<Relay>() == 16);

impl Plan {
    /// Returns the plan of `schedule` on an electrical fabric: one slot per step, no light.
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

    /// Returns whether the transfers of this plan have light.
    pub fn has_light(&self) -> bool {
        self.fabric.has_light()
    }

    /// Returns the relays of `transfer`, in the order of its route.
    pub fn relays_of(&self, transfer: usize) -> &[Relay] {
        let transfer = transfer as u32;
        let start = self.relays.partition_point(|one| one.transfer < transfer);
        let count = self.relays[start..].partition_point(|one| one.transfer == transfer);
        &self.relays[start..start + count]
    }

    /// Returns the hops of `transfer` in order. Without relays there is a single hop.
    pub fn hops_of(&self, transfer: usize) -> impl Iterator<Item = Hop> + '_ {
        let relays = self.relays_of(transfer);
        let (source, destination) = self.schedule.ends(transfer);
        let light = self.light_of(transfer);
        (0..=relays.len()).map(move |hop| {
            let to = relays.get(hop).map_or(destination, |relay| relay.rank);
            match hop.checked_sub(1).map(|before| relays[before]) {
                None => Hop {
                    from: source,
                    to,
                    light,
                    slot: self.slot[transfer],
                    route: self.routes.number(transfer),
                },
                Some(relay) => Hop {
                    from: relay.rank,
                    to,
                    light: relay.light,
                    slot: relay.slot,
                    route: routes::FABRIC_ROUTE,
                },
            }
        })
    }

    /// Returns the number of slots, which papers call communication steps.
    pub fn slots(&self) -> u32 {
        self.step_slots.last().map_or(0, |slots| slots.end)
    }

    /// Returns the number of rows. Without repetition, this is the number of lightpaths.
    pub fn len(&self) -> usize {
        self.schedule.len()
    }

    /// Returns whether every lightpath carries a single chunk in its slot: no transfer has several
    /// chunks, and no two transfers share a lightpath.
    pub fn has_one_chunk_per_lightpath(&self) -> bool {
        self.schedule.has_single_chunks() && !(self.has_light() && self.shares_lightpaths())
    }

    /// Returns whether two transfers of one slot have the same source, destination, light and
    /// route.
    fn shares_lightpaths(&self) -> bool {
        let mut lightpaths = Vec::new();
        (0..self.schedule.steps()).any(|step| {
            lightpaths.clear();
            lightpaths.extend(self.schedule.step(step).map(|index| {
                (
                    self.slot[index],
                    self.schedule.ends(index),
                    self.light_of(index),
                    self.routes.number(index),
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

    /// Returns a plan with the same fabric, collective, claims, algorithm, size and slots, but
    /// without steps, lightpaths and repetition.
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

    /// Reserves memory for `lightpaths` more rows.
    pub fn reserve(&mut self, lightpaths: usize) {
        self.schedule.reserve(lightpaths);
        self.slot.reserve_exact(lightpaths);
        if self.has_light() {
            self.light.reserve_exact(lightpaths);
        }
    }

    /// Adds a row to the last step of the schedule. Ignores the light on an electrical fabric.
    pub fn push(&mut self, lightpath: Lightpath) {
        self.schedule.push(lightpath.transfer);
        self.slot.push(lightpath.slot);
        if self.has_light() {
            self.light.push(lightpath.light);
        }
    }

    /// Returns the light of the row `index`; [`Light::NONE`] on an electrical fabric.
    pub fn light_of(&self, index: usize) -> Light {
        match self.has_light() {
            true => self.light[index],
            false => Light::NONE,
        }
    }

    /// Returns the transfer, light and slot of the row `index`.
    pub fn lightpath(&self, index: usize) -> Lightpath {
        Lightpath {
            slot: self.slot[index],
            light: self.light_of(index),
            transfer: self.schedule.transfer(index),
        }
    }

    /// Returns all rows in the order of the schedule.
    pub fn lightpaths(&self) -> impl Iterator<Item = Lightpath> + '_ {
        (0..self.len()).map(|index| self.lightpath(index))
    }
}
