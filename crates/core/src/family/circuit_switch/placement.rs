//! Schedules on a circuit switch: slots and ports.
//!
//! **Slots.** The transfers of a step from one rank to another are one message over one circuit. Message by message, in the
//! order of (destination - source) modulo n, each takes the first slot of its step in which, on some plane, its source has a
//! port out left and its destination a port in. A step in which every rank sends to d others at most and hears d takes
//! one slot where there is one plane; one in which every rank sends to all others ceil((n - 1) / d).
//!
//! **Planes.** A message takes a plane on which its circuit is up, else that with the most ports left, and of several the one
//! that its source used longest ago: then a plane can change while the others send.
//!
//! **Ports.** A message takes the circuit between its ranks that is up already. Otherwise both ends take, of the ports of
//! its plane that are free in the slot, the one used longest ago, so that circuits stay up as long as they can.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::fabric::{Fabric, Light};
use crate::family::circuit_switch::{CircuitSwitch, SwitchedLight};
use crate::interrupt;
use crate::place::{PlacementError, PlacementProblem};
use crate::plan::Plan;
use crate::schedule::Schedule;

/// Gives every transfer its slot and its ports.
///
/// # Errors
/// Another fabric, or a transfer that does not join two of its ranks.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let switch = fabric.needed::<CircuitSwitch>("a circuit between two ports");
    let switch = switch.map_err(|error| PlacementError::new(PlacementProblem::Family, error))?;
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut circuits = HeldCircuits::new(switch);
    let mut start = 0;
    for step in 0..plan.schedule.steps() {
        let mut slots: Vec<Slot> = Vec::new();
        let mut open = [0, 1].map(|_| vec![0usize; switch.ranks as usize]);
        for message in messages(&plan.schedule, step, switch)? {
            interrupt::check();
            let ends = [message.source, message.destination];
            let first = (open[0][ends[0] as usize]).max(open[1][ends[1] as usize]);
            let mut slot = first;
            let plane = loop {
                interrupt::check();
                if slot == slots.len() {
                    slots.push(Slot::default());
                }
                match slots[slot].plane(&circuits, ends) {
                    Some(plane) => break plane,
                    None => slot += 1,
                }
            };
            slots[slot].enter(plane, message);
            for (way, &rank) in ends.iter().enumerate() {
                let first = &mut open[way][rank as usize];
                while slots
                    .get(*first)
                    .is_some_and(|slot| slot.used(way, rank) == switch.ports)
                {
                    *first += 1;
                }
            }
        }
        for (number, slot) in (start..).zip(&slots) {
            let ends: Vec<(u32, [u32; 2])> = slot
                .messages
                .iter()
                .map(|(plane, message)| (*plane, [message.source, message.destination]))
                .collect();
            let light = circuits.enter(number, &ends);
            for ((_, message), light) in slot.messages.iter().zip(light) {
                for &transfer in &message.transfers {
                    plan.slot[transfer as usize] = number;
                    plan.light[transfer as usize] = light;
                }
            }
        }
        // A step of nothing has a slot of its own, as everywhere.
        let end = start + (slots.len() as u32).max(1);
        plan.step_slots[step] = start..end;
        start = end;
    }
    Ok(plan)
}

/// What goes from one rank to another in a step.
struct OneMessage {
    source: u32,
    destination: u32,
    transfers: Vec<u32>,
}

/// The messages of a step in the order in which they are placed.
fn messages(
    schedule: &Schedule,
    step: usize,
    switch: &CircuitSwitch,
) -> Result<Vec<OneMessage>, PlacementError> {
    let ranks = switch.ranks;
    let mut keyed = Vec::with_capacity(schedule.step(step).len());
    for transfer in schedule.step(step) {
        let (source, destination) = schedule.ends(transfer);
        if source == destination || source.max(destination) >= ranks {
            let sentence = format!(
                "transfer {transfer} goes from rank {source} to rank {destination}, but a circuit goes from one of {ranks} \
                 ranks, counted from 0, to another"
            );
            return Err(PlacementError::new(PlacementProblem::Path, sentence));
        }
        let after = (destination + ranks - source) % ranks;
        keyed.push(((after, source), transfer as u32));
    }
    keyed.sort_unstable();
    let one = |together: &[((u32, u32), u32)]| {
        let (after, source) = together[0].0;
        OneMessage {
            source,
            destination: (source + after) % ranks,
            transfers: together.iter().map(|(_, transfer)| *transfer).collect(),
        }
    };
    Ok(keyed
        .chunk_by(|one, other| one.0 == other.0)
        .map(one)
        .collect())
}

/// What a slot of a step uses.
#[derive(Default)]
struct Slot {
    /// With the plane of each.
    messages: Vec<(u32, OneMessage)>,
    /// By way (0 out, 1 in), rank and plane: ports in use. Looked up only.
    used: FxHashMap<(usize, u32, u32), u32>,
}

impl Slot {
    fn used_of(&self, way: usize, rank: u32, plane: u32) -> u32 {
        self.used.get(&(way, rank, plane)).copied().unwrap_or(0)
    }

    fn used(&self, way: usize, rank: u32) -> u32 {
        self.used.get(&(way, rank, u32::MAX)).copied().unwrap_or(0)
    }

    /// The plane for a circuit, if one has ports left at both ends.
    fn plane(&self, circuits: &HeldCircuits<'_>, ends: [u32; 2]) -> Option<u32> {
        let switch = circuits.switch;
        let most = switch.ports_of_plane();
        let room = |plane: u32| {
            let used = [0, 1].map(|way| self.used_of(way, ends[way], plane));
            most - used[0].max(used[1])
        };
        let planes = (0..switch.planes).filter(|&plane| room(plane) > 0);
        planes.max_by_key(|&plane| {
            let (is_up, used) = circuits.on_plane(plane, ends);
            (is_up, room(plane), Reverse(used), Reverse(plane))
        })
    }

    fn enter(&mut self, plane: u32, message: OneMessage) {
        for (way, rank) in [message.source, message.destination]
            .into_iter()
            .enumerate()
        {
            for place in [plane, u32::MAX] {
                *self.used.entry((way, rank, place)).or_default() += 1;
            }
        }
        self.messages.push((plane, message));
    }
}

/// A port of a rank.
#[derive(Clone, Copy, Default)]
struct HeldPort {
    /// The rank and port at the other end.
    other: Option<(u32, u32)>,
    /// The number of slots up to its last use.
    used: u32,
}

/// Which circuits are up.
pub(crate) struct HeldCircuits<'a> {
    switch: &'a CircuitSwitch,
    /// By way (0 out, 1 in), then rank by rank.
    ports: [Vec<HeldPort>; 2],
}

impl HeldCircuits<'_> {
    pub(crate) fn new(switch: &CircuitSwitch) -> HeldCircuits<'_> {
        let all = switch.ranks as usize * switch.ports as usize;
        HeldCircuits {
            switch,
            ports: [0, 1].map(|_| vec![HeldPort::default(); all]),
        }
    }

    fn held(&self, way: usize, (rank, port): (u32, u32)) -> HeldPort {
        self.ports[way][(rank * self.switch.ports + port) as usize]
    }

    fn at(&mut self, way: usize, (rank, port): (u32, u32)) -> &mut HeldPort {
        &mut self.ports[way][(rank * self.switch.ports + port) as usize]
    }

    /// The ports of a rank on a plane.
    fn ports_of(&self, plane: u32, rank: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let own = self.switch.ports_of_plane();
        (plane * own..(plane + 1) * own).map(move |port| (rank, port))
    }

    /// The circuit from one rank to another that is up on a plane.
    fn up(&self, plane: u32, [source, destination]: [u32; 2]) -> Option<[(u32, u32); 2]> {
        self.ports_of(plane, source).find_map(|end| {
            let other = self.held(0, end).other?;
            (other.0 == destination).then_some([end, other])
        })
    }

    /// Whether a circuit is up on a plane, and the last use of the plane by its source.
    fn on_plane(&self, plane: u32, ends: [u32; 2]) -> (bool, u32) {
        if self.switch.planes == 1 {
            return (false, 0);
        }
        let ports = self.ports_of(plane, ends[0]);
        let used = ports.map(|end| self.held(0, end).used).max();
        (self.up(plane, ends).is_some(), used.unwrap_or(0))
    }

    /// The light of a slot's circuits, no two between the same ranks; those that are up take their ports first.
    pub(crate) fn enter(&mut self, slot: u32, circuits: &[(u32, [u32; 2])]) -> Vec<Light> {
        let mut lights = vec![Light::NONE; circuits.len()];
        let mut missing = Vec::new();
        for (place, &(plane, ends)) in circuits.iter().enumerate() {
            match self.up(plane, ends) {
                Some(ends) => lights[place] = self.take(slot, ends),
                None => missing.push(place),
            }
        }
        for place in missing {
            let (plane, ends) = circuits[place];
            let Some(ends) = self.free(slot, plane, ends) else {
                continue;
            };
            for (way, end) in ends.into_iter().enumerate() {
                if let Some(other) = self.at(way, end).other.take() {
                    self.at(1 - way, other).other = None;
                }
                self.at(way, end).other = Some(ends[1 - way]);
            }
            lights[place] = self.take(slot, ends);
        }
        lights
    }

    /// The ports at both ends that are free in a slot and were used longest ago.
    fn free(&self, slot: u32, plane: u32, ends: [u32; 2]) -> Option<[(u32, u32); 2]> {
        let [out, into] = [0, 1].map(|way| {
            let ports = self.ports_of(plane, ends[way]);
            let used = ports.map(|end| (self.held(way, end).used, end));
            let free = used.filter(|(used, _)| *used <= slot);
            free.min().map(|(_, end)| end)
        });
        Some([out?, into?])
    }

    /// Uses a circuit: its light.
    fn take(&mut self, slot: u32, ends: [(u32, u32); 2]) -> Light {
        for (way, end) in ends.into_iter().enumerate() {
            self.at(way, end).used = slot + 1;
        }
        let [(_, source_port), (_, destination_port)] = ends;
        Light::from(SwitchedLight {
            source_port: source_port as u8,
            destination_port: destination_port as u8,
        })
    }
}
