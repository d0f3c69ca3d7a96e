//! Schedules on a circuit switch: slots and ports.
//!
//! **Slots.** The transfers of a step from one rank to another are one message over one circuit. Message by message, in the
//! order of (destination - source) modulo n, each takes the first slot of its step in which, on some plane, its source has a
//! port out left and its destination a port in. A step in which every rank sends to d others at most and hears d takes
//! one slot where there is one plane; one in which every rank sends to all others ceil((n - 1) / d).
//!
//! **Ways.** Where no switch joins the ranks of a message, because it has too few ports or ports are dead, the message goes over
//! other ranks (`ways`): each takes a later slot than the one before, or with cut-through no earlier one.
//!
//! **Planes.** A message takes a plane on which its circuit is up, else that with the most ports left, and of several the one
//! that its source used longest ago: then a plane can change while the others send.
//!
//! **Ports.** A message takes the circuit between its ranks that is up already. Otherwise both ends take, of the ports of
//! its plane that are free in the slot, the one used longest ago, so that circuits stay up as long as they can.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::PlacementError;
use crate::circuit_switch::ways::RankWays;
use crate::error::check_ends;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, Forwarding, SwitchedLight};
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::Schedule;

/// Gives every transfer its slot and its ports.
///
/// # Errors
/// Another fabric, or a transfer that does not join two of its ranks.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    switch: &CircuitSwitch,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    check_ends(&schedule, switch.ranks)?;
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut circuits = HeldCircuits::new(switch);
    let mut ways = RankWays::new(switch);
    let mut start = 0;
    for step in 0..plan.schedule.steps() {
        let messages = messages(&plan.schedule, step, switch.ranks);
        let mut slots = SlotsOfStep::new(&circuits);
        for (number, message) in messages.iter().enumerate() {
            slots.enter(number, &ways.way([message.source, message.destination]));
        }
        let slots = slots.slots;
        for (number, slot) in (start..).zip(&slots) {
            let ends: Vec<(u32, [u32; 2])> =
                slot.hops.iter().map(|hop| (hop.plane, hop.ends)).collect();
            for (hop, light) in slot.hops.iter().zip(circuits.enter(number, &ends)) {
                for &transfer in &messages[hop.message].transfers {
                    if hop.begins {
                        plan.slot[transfer as usize] = number;
                        plan.light[transfer as usize] = light;
                        continue;
                    }
                    plan.relays.push(Relay {
                        transfer,
                        rank: hop.ends[0],
                        light,
                        slot: number,
                    });
                }
            }
        }
        // A step of nothing has a slot of its own, as everywhere.
        let end = start + (slots.len() as u32).max(1);
        plan.step_slots[step] = start..end;
        start = end;
    }
    plan.relays
        .sort_by_key(|relay| (relay.transfer, relay.slot));
    Ok(plan)
}

/// What goes from one rank to another in a step.
struct OneMessage {
    source: u32,
    destination: u32,
    transfers: Vec<u32>,
}

/// The messages of a step in the order in which they are placed.
fn messages(schedule: &Schedule, step: usize, ranks: u32) -> Vec<OneMessage> {
    let mut keyed = Vec::with_capacity(schedule.step(step).len());
    for transfer in schedule.step(step) {
        let (source, destination) = schedule.ends(transfer);
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
    keyed
        .chunk_by(|one, other| one.0 == other.0)
        .map(one)
        .collect()
}

/// The slots of a step.
struct SlotsOfStep<'a> {
    circuits: &'a HeldCircuits<'a>,
    slots: Vec<Slot>,
    /// By way (0 out, 1 in) and rank: the first slot in which it has a port left.
    open: [Vec<usize>; 2],
}

impl<'a> SlotsOfStep<'a> {
    fn new(circuits: &'a HeldCircuits<'a>) -> SlotsOfStep<'a> {
        SlotsOfStep {
            circuits,
            slots: Vec::new(),
            open: [0, 1].map(|_| vec![0usize; circuits.switch.ranks as usize]),
        }
    }

    /// Gives each circuit on the way of a message a slot after that of the one before, or with cut-through that slot.
    fn enter(&mut self, message: usize, way: &[u32]) {
        let stores = self.circuits.switch.forwarding == Forwarding::Store;
        let mut first = 0;
        for (place, ends) in way.windows(2).enumerate() {
            let ends = [ends[0], ends[1]];
            let (slot, plane) = self.place(ends, first);
            self.slots[slot].enter(SlotHop {
                plane,
                ends,
                message,
                begins: place == 0,
            });
            self.close(ends);
            first = slot + usize::from(stores);
        }
    }

    /// The first slot from one on in which a plane has ports left at both ends; and the plane.
    fn place(&mut self, ends: [u32; 2], first: usize) -> (usize, u32) {
        let open = self.open[0][ends[0] as usize].max(self.open[1][ends[1] as usize]);
        let mut slot = open.max(first);
        loop {
            interrupt::check();
            while slot >= self.slots.len() {
                self.slots.push(Slot::default());
            }
            match self.slots[slot].plane(self.circuits, ends) {
                Some(plane) => return (slot, plane),
                None => slot += 1,
            }
        }
    }

    /// Passes the slots in which all ports of two ranks are in use.
    fn close(&mut self, ends: [u32; 2]) {
        for (way, &rank) in ends.iter().enumerate() {
            let all = self.circuits.switch.ports_alive(rank);
            let first = &mut self.open[way][rank as usize];
            let slots = &self.slots;
            while slots
                .get(*first)
                .is_some_and(|slot| slot.used(way, rank) == all)
            {
                *first += 1;
            }
        }
    }
}

/// A circuit of a slot.
struct SlotHop {
    plane: u32,
    ends: [u32; 2],
    /// Among those of the step.
    message: usize,
    /// Whether it is the first on the way of its message.
    begins: bool,
}

/// What a slot of a step uses.
#[derive(Default)]
struct Slot {
    hops: Vec<SlotHop>,
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

    /// The plane for a circuit, if one joins its ranks and has ports left at both ends.
    fn plane(&self, circuits: &HeldCircuits<'_>, ends: [u32; 2]) -> Option<u32> {
        let switch = circuits.switch;
        let room = |plane: u32| {
            let [out, into] = [0, 1].map(|way| {
                switch.ports_alive_on(plane, ends[way]) - self.used_of(way, ends[way], plane)
            });
            out.min(into)
        };
        let joins = |plane: &u32| switch.is_one_switch() || switch.joins_on(*plane, ends);
        let planes = (0..switch.planes).filter(|plane| joins(plane) && room(*plane) > 0);
        planes.max_by_key(|&plane| {
            let (is_up, used) = circuits.on_plane(plane, ends);
            (is_up, room(plane), Reverse(used), Reverse(plane))
        })
    }

    fn enter(&mut self, hop: SlotHop) {
        for (way, rank) in hop.ends.into_iter().enumerate() {
            for place in [hop.plane, u32::MAX] {
                *self.used.entry((way, rank, place)).or_default() += 1;
            }
        }
        self.hops.push(hop);
    }
}

/// A port of a rank.
#[derive(Clone, Copy, Default)]
struct HeldPort {
    /// The rank and port at the other end.
    other: Option<(u32, u32)>,
    /// The number of slots up to its last use.
    used: u32,
    is_dead: bool,
}

/// Which circuits are up.
pub struct HeldCircuits<'a> {
    switch: &'a CircuitSwitch,
    /// By way (0 out, 1 in), then rank by rank.
    ports: [Vec<HeldPort>; 2],
}

impl HeldCircuits<'_> {
    /// No circuits.
    pub fn new(switch: &CircuitSwitch) -> HeldCircuits<'_> {
        let all = switch.ranks as usize * switch.ports as usize;
        let mut circuits = HeldCircuits {
            switch,
            ports: [0, 1].map(|_| vec![HeldPort::default(); all]),
        };
        for dead in &switch.dead_ports {
            for way in [0, 1] {
                circuits.at(way, (dead.rank, dead.port)).is_dead = true;
            }
        }
        circuits
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

    /// A circuit from one rank to another that is up on a plane, and not in use in a slot.
    fn up(
        &self,
        slot: u32,
        plane: u32,
        [source, destination]: [u32; 2],
    ) -> Option<[(u32, u32); 2]> {
        self.ports_of(plane, source).find_map(|end| {
            let held = self.held(0, end);
            let other = held.other?;
            (other.0 == destination && held.used <= slot).then_some([end, other])
        })
    }

    /// Whether a circuit is up on a plane, and the last use of the plane by its source.
    fn on_plane(&self, plane: u32, ends: [u32; 2]) -> (bool, u32) {
        if self.switch.planes == 1 {
            return (false, 0);
        }
        let ports = self.ports_of(plane, ends[0]);
        let used = ports.map(|end| self.held(0, end).used).max();
        (self.up(u32::MAX, plane, ends).is_some(), used.unwrap_or(0))
    }

    /// The light of a slot's circuits, each with its plane; those that are up take their ports first.
    pub fn enter(&mut self, slot: u32, circuits: &[(u32, [u32; 2])]) -> Vec<Light> {
        let mut lights = vec![Light::NONE; circuits.len()];
        let mut missing = Vec::new();
        for (place, &(plane, ends)) in circuits.iter().enumerate() {
            match self.up(slot, plane, ends) {
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
            let held = ports.map(|end| (self.held(way, end), end));
            let free = held.filter(|(held, _)| !held.is_dead && held.used <= slot);
            let free = free.map(|(held, end)| (held.used, end));
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
            source_port: source_port as u16,
            destination_port: destination_port as u16,
        })
    }
}
