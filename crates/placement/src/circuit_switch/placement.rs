//! Placement of schedules on a circuit switch: slots, planes and ports.
//!
//! **Slots.** The transfers of a step from one rank to another form one message over one circuit.
//! In the order of (destination - source) modulo n, each message takes the first slot of its step
//! in which, on some plane, its source has a free output port and its destination a free input
//! port. On one plane, a step in which every rank sends to at most d ranks and receives from at
//! most d ranks takes one slot; a step in which every rank sends to all others takes ceil((n - 1) /
//! d) slots.
//!
//! **Routes.** If no switch joins the ranks of a message, because switches have too few ports or
//! ports are dead, the message is relayed by other ranks (`routes`). Each circuit of the route
//! takes a later slot than the circuit before; with cut-through, the same slot or a later slot.
//!
//! **Planes.** A message takes a plane on which its circuit is already up; otherwise the plane with
//! the most free ports; among several, the plane that its source used least recently, so that a
//! plane can change while the others send.
//!
//! **Ports.** A message uses the circuit between its ranks that is already up. Otherwise each end
//! takes the least recently used of the ports of the plane that are free in the slot, so that
//! circuits stay up as long as possible.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::PlacementError;
use crate::circuit_switch::routes::RankRoutes;
use crate::error::check_ends;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, Forwarding, SwitchedLight};
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::Schedule;

/// Assigns a slot and ports to every transfer.
///
/// # Errors
/// A transfer does not go from one rank of the switch to another.
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
    let mut routes = RankRoutes::new(switch);
    let mut start = 0;
    for step in 0..plan.schedule.steps() {
        let messages = messages(&plan.schedule, step, switch.ranks);
        let mut slots = SlotsOfStep::new(&circuits);
        for (number, message) in messages.iter().enumerate() {
            slots.enter(number, &routes.route([message.source, message.destination]));
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
        // An empty step takes a slot.
        let end = start + (slots.len() as u32).max(1);
        plan.step_slots[step] = start..end;
        start = end;
    }
    plan.relays
        .sort_by_key(|relay| (relay.transfer, relay.slot));
    Ok(plan)
}

/// Transfers of a step from one rank to another.
struct OneMessage {
    source: u32,
    destination: u32,
    transfers: Vec<u32>,
}

/// Returns the messages of a step in the order of their placement.
fn messages(schedule: &Schedule, step: usize, ranks: u32) -> Vec<OneMessage> {
    let mut keyed = Vec::with_capacity(schedule.step(step).len());
    for transfer in schedule.step(step) {
        let (source, destination) = schedule.ends(transfer);
        let after = (destination + ranks - source) % ranks;
        keyed.push(((after, source), transfer as u32));
    }
    keyed.sort_unstable();
    let message = |transfers: &[((u32, u32), u32)]| {
        let (after, source) = transfers[0].0;
        OneMessage {
            source,
            destination: (source + after) % ranks,
            transfers: transfers.iter().map(|(_, transfer)| *transfer).collect(),
        }
    };
    keyed.chunk_by(|a, b| a.0 == b.0).map(message).collect()
}

/// Slots of a step.
struct SlotsOfStep<'a> {
    circuits: &'a HeldCircuits<'a>,
    slots: Vec<Slot>,
    /// First slot with a free port, for each direction (0 out, 1 in) and rank.
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

    /// Assigns slots to the circuits of a message's route: each circuit follows the circuit before
    /// in a later slot, or with cut-through in the same slot or a later slot.
    fn enter(&mut self, message: usize, route: &[u32]) {
        let stores = self.circuits.switch.forwarding == Forwarding::Store;
        let mut first = 0;
        for (place, ends) in route.windows(2).enumerate() {
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

    /// Returns the first slot from `first` on in which a plane has free ports at both ends, and the
    /// plane.
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

    /// Advances the first free slot of two ranks past slots in which all of their ports are in use.
    fn close(&mut self, ends: [u32; 2]) {
        for (direction, &rank) in ends.iter().enumerate() {
            let ports = self.circuits.switch.ports_alive(rank);
            let first = &mut self.open[direction][rank as usize];
            let slots = &self.slots;
            while slots
                .get(*first)
                .is_some_and(|slot| slot.used(direction, rank) == ports)
            {
                *first += 1;
            }
        }
    }
}

/// Circuit in a slot.
struct SlotHop {
    plane: u32,
    ends: [u32; 2],
    /// Index of the message among those of the step.
    message: usize,
    /// True if the circuit is the first of its message's route.
    begins: bool,
}

/// Circuits and ports in use in a slot of a step.
#[derive(Default)]
struct Slot {
    hops: Vec<SlotHop>,
    /// Number of ports in use, for each direction (0 out, 1 in), rank and plane. Only looked up,
    /// never iterated over.
    used: FxHashMap<(usize, u32, u32), u32>,
}

impl Slot {
    fn used_of(&self, direction: usize, rank: u32, plane: u32) -> u32 {
        self.used
            .get(&(direction, rank, plane))
            .copied()
            .unwrap_or(0)
    }

    fn used(&self, direction: usize, rank: u32) -> u32 {
        self.used
            .get(&(direction, rank, u32::MAX))
            .copied()
            .unwrap_or(0)
    }

    /// Returns the plane for a circuit, or `None` if no plane joins its ranks with free ports at
    /// both ends.
    fn plane(&self, circuits: &HeldCircuits<'_>, ends: [u32; 2]) -> Option<u32> {
        let switch = circuits.switch;
        let room = |plane: u32| {
            let [out, into] = [0, 1].map(|direction| {
                switch.ports_alive_on(plane, ends[direction])
                    - self.used_of(direction, ends[direction], plane)
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
        for (direction, rank) in hop.ends.into_iter().enumerate() {
            for place in [hop.plane, u32::MAX] {
                *self.used.entry((direction, rank, place)).or_default() += 1;
            }
        }
        self.hops.push(hop);
    }
}

/// Port of a rank.
#[derive(Clone, Copy, Default)]
struct HeldPort {
    /// Rank and port at the other end of the circuit; `None` if no circuit is up.
    other: Option<(u32, u32)>,
    /// Number of slots up to and including the last use.
    used: u32,
    is_dead: bool,
}

/// Circuits that are up.
pub struct HeldCircuits<'a> {
    switch: &'a CircuitSwitch,
    /// Ports for each direction (0 out, 1 in), rank by rank.
    ports: [Vec<HeldPort>; 2],
}

impl HeldCircuits<'_> {
    /// Creates the state without circuits.
    pub fn new(switch: &CircuitSwitch) -> HeldCircuits<'_> {
        let count = switch.ranks as usize * switch.ports as usize;
        let mut circuits = HeldCircuits {
            switch,
            ports: [0, 1].map(|_| vec![HeldPort::default(); count]),
        };
        for dead in &switch.dead_ports {
            for direction in [0, 1] {
                circuits.at(direction, (dead.rank, dead.port)).is_dead = true;
            }
        }
        circuits
    }

    fn held(&self, direction: usize, (rank, port): (u32, u32)) -> HeldPort {
        self.ports[direction][(rank * self.switch.ports + port) as usize]
    }

    fn at(&mut self, direction: usize, (rank, port): (u32, u32)) -> &mut HeldPort {
        &mut self.ports[direction][(rank * self.switch.ports + port) as usize]
    }

    /// Returns the ports of a rank on a plane.
    fn ports_of(&self, plane: u32, rank: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let ports_of_plane = self.switch.ports_of_plane();
        (plane * ports_of_plane..(plane + 1) * ports_of_plane).map(move |port| (rank, port))
    }

    /// Returns the ports of a circuit between two ranks that is up on a plane and not in use in a
    /// slot.
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

    /// Returns whether a circuit between two ranks is up on a plane, and the last use of the plane
    /// by its source.
    fn on_plane(&self, plane: u32, ends: [u32; 2]) -> (bool, u32) {
        if self.switch.planes == 1 {
            return (false, 0);
        }
        let ports = self.ports_of(plane, ends[0]);
        let used = ports.map(|end| self.held(0, end).used).max();
        (self.up(u32::MAX, plane, ends).is_some(), used.unwrap_or(0))
    }

    /// Sets up the circuits of a slot, given as planes and ranks, and returns their light. Circuits
    /// that are already up take their ports first.
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
            for (direction, end) in ends.into_iter().enumerate() {
                if let Some(other) = self.at(direction, end).other.take() {
                    self.at(1 - direction, other).other = None;
                }
                self.at(direction, end).other = Some(ends[1 - direction]);
            }
            lights[place] = self.take(slot, ends);
        }
        lights
    }

    /// Returns the least recently used ports at both ends that are free in a slot.
    fn free(&self, slot: u32, plane: u32, ends: [u32; 2]) -> Option<[(u32, u32); 2]> {
        let [out, into] = [0, 1].map(|direction| {
            let ports = self.ports_of(plane, ends[direction]);
            let held = ports.map(|end| (self.held(direction, end), end));
            let free = held.filter(|(held, _)| !held.is_dead && held.used <= slot);
            let free = free.map(|(held, end)| (held.used, end));
            free.min().map(|(_, end)| end)
        });
        Some([out?, into?])
    }

    /// Marks a circuit as used in a slot and returns its light.
    fn take(&mut self, slot: u32, ends: [(u32, u32); 2]) -> Light {
        for (direction, end) in ends.into_iter().enumerate() {
            self.at(direction, end).used = slot + 1;
        }
        let [(_, source_port), (_, destination_port)] = ends;
        Light::from(SwitchedLight {
            source_port: source_port as u16,
            destination_port: destination_port as u16,
        })
    }
}
