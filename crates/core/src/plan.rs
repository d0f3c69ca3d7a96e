//! How it moves: a schedule with a route, a wavelength and a slot for every transfer. Types only,
//! so that the verifier and the simulators read plans without seeing how they were made.
//!
//! A *slot* is a time slot in which lightpaths are up side by side; it is what the papers count as
//! a communication step. A step of the schedule that needs more wavelengths than exist spreads
//! over several slots. Every transfer is one lightpath: one wavelength of one fibre, along its
//! direction from source to destination.
//!
//! On a grid of tunable circuits a lightpath leaves its source by fibre 0, to the switch of its row, or
//! fibre 1, to that of its column, and goes no way around anything: the column of directions is empty.
//! A transfer between ranks that share no switch is received and sent on by [`Relay`]s.
//!
//! On a grid of light paths a lightpath leaves its source by the port that stands as its fibre and comes to
//! its destination by the port that stands as its wavelength: (source, fibre) and (destination, wavelength)
//! are the two ends of a path that serves both ways. Transfers over one path in one slot and direction are
//! one message.
//!
//! A plan on an electrical fabric has no light: its columns of directions, fibres and wavelengths are
//! empty, its slots are the steps of the schedule, and a transfer may carry a range of chunks.

mod any;
pub mod folded;
mod switches;
pub mod text;

use std::ops::Range;

use crate::fabric::{Direction, Fabric};
use crate::schedule::{Schedule, Transfer};
use crate::units::Bytes;
pub use any::{AnyPlan, PlanRef};
pub use folded::{FoldedPlan, fold};

/// The wavelength of a lightpath that converters may change at every rank.
pub const CONVERTED: u16 = u16::MAX;

/// The circuit that carries a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Circuit {
    /// The way around the ring.
    pub direction: Direction,
    /// The fibre of that direction, 0..fibres.
    pub fibre: u8,
    /// The wavelength on that fibre, 0..wavelengths, or [`CONVERTED`].
    pub wavelength: u16,
}

impl Circuit {
    /// What stands for a circuit where there is no light.
    pub const NONE: Circuit = Circuit {
        direction: Direction::Clockwise,
        fibre: 0,
        wavelength: 0,
    };
}

/// A transfer with its circuit and slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lightpath {
    /// The time slot, 0..slots.
    pub slot: u32,
    /// The circuit.
    pub circuit: Circuit,
    /// What it carries, from where to where.
    pub transfer: Transfer,
}

/// A schedule with routes, wavelengths and slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The machine it is for.
    pub fabric: Fabric,
    /// What moves.
    pub schedule: Schedule,
    /// The algorithm that made it, as spelled.
    pub algorithm: String,
    /// The size it was made for, as a default for simulations.
    pub size: Option<Bytes>,
    /// The way around the ring, per transfer. Empty where there is no ring.
    pub direction: Vec<Direction>,
    /// The fibre, per transfer. Empty on an electrical fabric, like the next.
    pub fibre: Vec<u8>,
    /// The wavelength, per transfer.
    pub wavelength: Vec<u16>,
    /// The slot, per transfer.
    pub slot: Vec<u32>,
    /// For each step of the schedule, its first slot and the one after its last.
    pub step_slots: Vec<Range<u32>>,
    /// Ranks that receive a transfer and send it on, by transfer and then in the order of the way.
    /// Only on grids of tunable circuits.
    pub relays: Vec<Relay>,
}

/// A rank on the way of a transfer that receives it and sends it on with light of its own, storing
/// it from slot to slot. The data is none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relay {
    /// The transfer, as an index into the plan.
    pub transfer: u32,
    /// The rank that sends it on.
    pub rank: u32,
    /// The fibre by which it does.
    pub fibre: u8,
    /// The wavelength on that fibre.
    pub wavelength: u16,
    /// The slot, later than that in which the transfer came to it.
    pub slot: u32,
}

/// One light of a transfer's way: from a rank to the next, in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// The fibre by which the light leaves its sender.
    pub fibre: u8,
    /// The wavelength.
    pub wavelength: u16,
    /// The slot.
    pub slot: u32,
}

impl Plan {
    /// A schedule as it runs on an electrical fabric: a slot for each step, and no light.
    pub fn without_light(fabric: &Fabric, schedule: Schedule, algorithm: String) -> Plan {
        let steps = schedule.steps();
        let slot = (0..steps).flat_map(|step| schedule.step(step).map(move |_| step as u32));
        Plan {
            fabric: fabric.clone(),
            algorithm,
            size: None,
            direction: Vec::new(),
            fibre: Vec::new(),
            wavelength: Vec::new(),
            slot: slot.collect(),
            step_slots: (0..steps as u32).map(|slot| slot..slot + 1).collect(),
            relays: Vec::new(),
            schedule,
        }
    }

    /// Whether its transfers are lightpaths, with a fibre and a wavelength each.
    pub fn has_light(&self) -> bool {
        self.fabric.has_light()
    }

    /// Whether its lightpaths go one way or the other around a ring.
    pub fn has_directions(&self) -> bool {
        self.fabric.ring().is_some()
    }

    /// The relays of a transfer, in the order of its way.
    pub fn relays_of(&self, transfer: usize) -> &[Relay] {
        let transfer = transfer as u32;
        let start = self.relays.partition_point(|one| one.transfer < transfer);
        let count = self.relays[start..].partition_point(|one| one.transfer == transfer);
        &self.relays[start..start + count]
    }

    /// The way of a transfer, hop by hop; one where nothing relays it.
    pub fn way(&self, transfer: usize) -> impl Iterator<Item = Hop> + '_ {
        let relays = self.relays_of(transfer);
        let (source, destination) = self.schedule.ends(transfer);
        let circuit = self.circuit(transfer);
        (0..=relays.len()).map(move |place| {
            let to = relays.get(place).map_or(destination, |relay| relay.rank);
            match place.checked_sub(1).map(|before| relays[before]) {
                None => Hop {
                    from: source,
                    to,
                    fibre: circuit.fibre,
                    wavelength: circuit.wavelength,
                    slot: self.slot[transfer],
                },
                Some(relay) => Hop {
                    from: relay.rank,
                    to,
                    fibre: relay.fibre,
                    wavelength: relay.wavelength,
                    slot: relay.slot,
                },
            }
        })
    }

    /// The number of time slots: what the papers call communication steps.
    pub fn slots(&self) -> u32 {
        self.step_slots.last().map_or(0, |slots| slots.end)
    }

    /// The number of lightpaths, one per transfer.
    pub fn len(&self) -> usize {
        self.schedule.len()
    }

    /// Whether nothing moves.
    pub fn is_empty(&self) -> bool {
        self.schedule.is_empty()
    }

    /// The same fabric, collective, claims and slots, without a step or lightpath.
    pub fn without_lightpaths(&self) -> Plan {
        let mut schedule = Schedule::new(self.schedule.collective);
        schedule.claims = self.schedule.claims.clone();
        Plan {
            fabric: self.fabric.clone(),
            schedule,
            algorithm: self.algorithm.clone(),
            size: self.size,
            direction: Vec::new(),
            fibre: Vec::new(),
            wavelength: Vec::new(),
            slot: Vec::new(),
            step_slots: self.step_slots.clone(),
            relays: Vec::new(),
        }
    }

    /// Makes room for `lightpaths` more.
    pub fn reserve(&mut self, lightpaths: usize) {
        self.schedule.reserve(lightpaths);
        self.slot.reserve_exact(lightpaths);
        if self.has_directions() {
            self.direction.reserve_exact(lightpaths);
        }
        if self.has_light() {
            self.fibre.reserve_exact(lightpaths);
            self.wavelength.reserve_exact(lightpaths);
        }
    }

    /// Adds a lightpath to the open step of the schedule; on an electrical fabric without its circuit.
    pub fn push(&mut self, lightpath: Lightpath) {
        self.schedule.push(lightpath.transfer);
        self.slot.push(lightpath.slot);
        if self.has_directions() {
            self.direction.push(lightpath.circuit.direction);
        }
        if self.has_light() {
            self.fibre.push(lightpath.circuit.fibre);
            self.wavelength.push(lightpath.circuit.wavelength);
        }
    }

    /// The circuit of a transfer; [`Circuit::NONE`] on an electrical fabric.
    pub fn circuit(&self, index: usize) -> Circuit {
        if !self.has_light() {
            return Circuit::NONE;
        }
        let direction = match self.has_directions() {
            true => self.direction[index],
            false => Circuit::NONE.direction,
        };
        Circuit {
            direction,
            fibre: self.fibre[index],
            wavelength: self.wavelength[index],
        }
    }

    /// The lightpath of a transfer.
    pub fn lightpath(&self, index: usize) -> Lightpath {
        Lightpath {
            slot: self.slot[index],
            circuit: self.circuit(index),
            transfer: self.schedule.transfer(index),
        }
    }

    /// All lightpaths, in the order of the schedule.
    pub fn lightpaths(&self) -> impl Iterator<Item = Lightpath> + '_ {
        (0..self.len()).map(|index| self.lightpath(index))
    }
}
