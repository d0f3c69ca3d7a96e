//! Placement of schedules on a circuit switch: slots, planes and ports.
//!
//! **Slots.** The transfers of a step from one rank to another form one message over one circuit.
//! Let n be the number of ranks. Messages are placed in the order of (destination - source) modulo
//! n. Each message is assigned the first slot of its step in which, on some plane, the source has a
//! free output port and the destination has a free input port. Suppose that there is one plane, and
//! every rank has d ports. If every rank sends to at most d ranks and receives from at most d
//! ranks, the step needs one slot. If every rank sends to all others, the step needs ceil((n - 1) /
//! d) slots.
//!
//! **Routes.** A switch may have too few ports for all ranks, or ports may be dead. If no switch
//! joins the ranks of a message, other ranks relay the message (`routes`). Each circuit of the
//! route is assigned a later slot than the previous circuit, or with cut-through the same slot or
//! later.
//!
//! **Planes.** A message prefers a plane on which its circuit is already up, then the plane with
//! the most free ports. Among several such planes, the message uses the plane that its source used
//! least recently, so that this plane can be reconfigured while the others carry data.
//!
//! **Ports.** A message uses the circuit between its ranks if the circuit is already up. Otherwise,
//! each rank uses its least recently used port among the ports that are free in the slot. Circuits
//! therefore stay up as long as possible.

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

/// Assigns slots and ports to every transfer of a schedule.
///
/// # Errors
/// A transfer does not go from one rank of the switch to a different rank.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    switch: &CircuitSwitch,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    check_ends(&schedule, switch.ranks)?;
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut circuits = PortStates::new(switch);
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
                    if hop.is_first {
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
        // An empty step needs a slot.
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

/// Returns the messages of a step in the order in which they are placed.
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

struct SlotsOfStep<'a> {
    circuits: &'a PortStates<'a>,
    slots: Vec<Slot>,
    /// First slot in which each rank has a free port, `[direction][rank]` (direction 0: out, 1:
    /// in).
    first_open: [Vec<usize>; 2],
}

impl<'a> SlotsOfStep<'a> {
    fn new(circuits: &'a PortStates<'a>) -> SlotsOfStep<'a> {
        SlotsOfStep {
            circuits,
            slots: Vec::new(),
            first_open: [0, 1].map(|_| vec![0usize; circuits.switch.ranks as usize]),
        }
    }

    /// Assigns slots to the circuits of a message. `route` contains the ranks from the source to
    /// the destination. Each circuit is assigned a later slot than the previous circuit; with
    /// cut-through, the slot may be the same.
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
                is_first: place == 0,
            });
            self.skip_full_slots(ends);
            first = slot + usize::from(stores);
        }
    }

    /// Returns the first slot, at or after `first`, in which both ranks of a circuit have a free
    /// port on the same plane, and the index of this plane.
    fn place(&mut self, ends: [u32; 2], first: usize) -> (usize, u32) {
        let first_open =
            self.first_open[0][ends[0] as usize].max(self.first_open[1][ends[1] as usize]);
        let mut slot = first_open.max(first);
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

    /// Updates `first_open` of both ranks: skips slots in which all ports of the rank are in use.
    fn skip_full_slots(&mut self, ends: [u32; 2]) {
        for (direction, &rank) in ends.iter().enumerate() {
            let ports = self.circuits.switch.ports_alive(rank);
            let first = &mut self.first_open[direction][rank as usize];
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

struct SlotHop {
    plane: u32,
    ends: [u32; 2],
    /// Index of the message in the list of the step's messages.
    message: usize,
    /// True if the circuit is the first circuit on the route of the message.
    is_first: bool,
}

/// Circuits and ports that are used in one slot of a step.
#[derive(Default)]
struct Slot {
    hops: Vec<SlotHop>,
    /// Number of ports in use. The key is (direction, rank, plane); direction 0 is out, 1 is in.
    /// The plane `u32::MAX` stands for all planes together. The map is never iterated over.
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

    /// Returns a plane on which both ranks of a circuit have free ports, or `None`.
    fn plane(&self, circuits: &PortStates<'_>, ends: [u32; 2]) -> Option<u32> {
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

#[derive(Clone, Copy, Default)]
struct PortState {
    /// Rank and port at the other end of the circuit; `None` if no circuit is up at this port.
    other: Option<(u32, u32)>,
    /// 1 + the index of the last slot in which the port was used; 0 if the port was never used.
    used: u32,
    is_dead: bool,
}

/// State of all ports of a switch: the circuits that are up.
pub struct PortStates<'a> {
    switch: &'a CircuitSwitch,
    /// State of each port, `[direction][rank * ports + port]`; direction 0 is out, 1 is in.
    ports: [Vec<PortState>; 2],
}

impl PortStates<'_> {
    /// Creates the state in which no circuit is up.
    pub fn new(switch: &CircuitSwitch) -> PortStates<'_> {
        let count = switch.ranks as usize * switch.ports as usize;
        let mut circuits = PortStates {
            switch,
            ports: [0, 1].map(|_| vec![PortState::default(); count]),
        };
        for dead in &switch.dead_ports {
            for direction in [0, 1] {
                circuits.at(direction, (dead.rank, dead.port)).is_dead = true;
            }
        }
        circuits
    }

    fn held(&self, direction: usize, (rank, port): (u32, u32)) -> PortState {
        self.ports[direction][(rank * self.switch.ports + port) as usize]
    }

    fn at(&mut self, direction: usize, (rank, port): (u32, u32)) -> &mut PortState {
        &mut self.ports[direction][(rank * self.switch.ports + port) as usize]
    }

    /// Returns all ports of `rank` on `plane`, as pairs of rank and port.
    fn ports_of(&self, plane: u32, rank: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let ports_of_plane = self.switch.ports_of_plane();
        (plane * ports_of_plane..(plane + 1) * ports_of_plane).map(move |port| (rank, port))
    }

    /// Finds a circuit from `source` to `destination` that is up on `plane` and not in use in
    /// `slot`. Returns the (rank, port) pairs of its two ends.
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

    /// Returns whether a circuit between two ranks is up on `plane`, and 1 + the index of the last
    /// slot in which the source used the plane (0 if the source never used it). If the switch has
    /// one plane, returns (false, 0).
    fn on_plane(&self, plane: u32, ends: [u32; 2]) -> (bool, u32) {
        if self.switch.planes == 1 {
            return (false, 0);
        }
        let ports = self.ports_of(plane, ends[0]);
        let used = ports.map(|end| self.held(0, end).used).max();
        (self.up(u32::MAX, plane, ends).is_some(), used.unwrap_or(0))
    }

    /// Sets up the circuits of a slot. Each circuit is a pair (plane, ranks). Returns the two ports
    /// of each circuit as [`Light`], in the order of `circuits`. Ports of circuits that are already
    /// up are reserved first.
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

    /// Returns, for each of the two ranks, the least recently used port on `plane` that is free in
    /// `slot`, as a (rank, port) pair. Returns `None` if one of the ranks has no such port.
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

    /// Marks a circuit as used in `slot`, and returns its two ports as [`Light`]. `ends` contains
    /// the (rank, port) pairs of the sender and the receiver.
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
