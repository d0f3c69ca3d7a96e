//! Schedules on a grid of lightpaths: slots and ports.
//!
//! **Slots.** The transfers of a step between two ranks, either way, need one path. Pair of ranks by pair,
//! in the order of the schedule, each takes the first slot of the step in which both have a port left: no
//! more than ceil((2 d - 1) / k) slots where a rank has at most d partners. A ring takes two with one port,
//! three if its length is odd, and one with two.
//!
//! **Ports.** Every rank keeps the paths that it used last. A pair that has a path uses it. Otherwise each
//! of the two takes its lowest free port, or else the port that was used least recently, whose path goes:
//! the port at that path's other end is then free. So a port changes its path only where the rank meets
//! more than k others, and in any run of slots in which no rank meets more than k, no port that was used
//! changes at all: what the run uses was used later than what it replaces.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::PlacementError;
use crate::error::check_ends;
use crate::slots::SlotTable;
use opticoll_base::interrupt;
use opticoll_base::ports::{Port, Ports, TakenPort};
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::light_path_grid::{LightPathGrid, PortsLight};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;

/// Gives every transfer its slot and its ports.
///
/// # Errors
/// A transfer that does not join two of its ranks.
pub fn assign_ports(
    schedule: Schedule,
    fabric: &Fabric,
    grid: &LightPathGrid,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    check_ends(&schedule, grid.ranks)?;
    let (slot_of, step_slots) = place(&schedule, grid);
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut ports = PathPorts::new(grid);
    for step in 0..plan.schedule.steps() {
        let mut slots: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for transfer in plan.schedule.step(step) {
            interrupt::check();
            slots.entry(slot_of[transfer]).or_default().push(transfer);
        }
        for (slot, transfers) in slots {
            let pairs = transfers
                .iter()
                .map(|&transfer| plan.schedule.ends(transfer));
            ports.enter(slot, &pairs.collect::<Vec<_>>());
            for transfer in transfers {
                interrupt::check();
                let (source, destination) = plan.schedule.ends(transfer);
                let (own, other) = ports.of_path((source, destination));
                plan.light[transfer] = Light::from(PortsLight {
                    source_port: own as u8,
                    destination_port: other as u16,
                });
            }
        }
    }
    plan.slot = slot_of;
    plan.step_slots = step_slots;
    Ok(plan)
}

/// The slot of each transfer, and the slots of each step.
fn place(schedule: &Schedule, grid: &LightPathGrid) -> (Vec<u32>, Vec<Range<u32>>) {
    let mut slot_of = vec![0; schedule.len()];
    let mut step_slots = Vec::with_capacity(schedule.steps());
    let mut start = 0;
    for step in 0..schedule.steps() {
        let mut slots = SlotTable::new(vec![grid.ports; grid.ranks as usize]);
        let mut slot_of_pair: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for transfer in schedule.step(step) {
            interrupt::check();
            let (source, destination) = schedule.ends(transfer);
            let pair = [source.min(destination), source.max(destination)];
            let slot = slot_of_pair.entry(pair.into());
            slot_of[transfer] =
                start + *slot.or_insert_with(|| slots.take(&pair.map(|rank| rank as usize)));
        }
        let end = start + slots.count();
        step_slots.push(start..end);
        start = end;
    }
    (slot_of, step_slots)
}

/// The paths that every rank holds.
struct PathPorts {
    ports: u32,
    held: Ports<PathEnd>,
}

/// What is known of a path at one of its ends.
#[derive(Clone, Copy, Default)]
struct PathEnd {
    /// The slot in which it was used last.
    slot: u32,
    /// The port of the other end.
    peer_port: usize,
}

impl PathPorts {
    fn new(grid: &LightPathGrid) -> PathPorts {
        PathPorts {
            ports: grid.ports,
            held: Ports::default(),
        }
    }

    /// The port of a rank for a path to another.
    fn port(&self, (rank, peer): (u32, u32)) -> Port {
        Port {
            pool: rank.into(),
            size: self.ports,
            state: peer.into(),
        }
    }

    /// Which port of a rank has the path to another, or takes it.
    fn take(&self, ends: (u32, u32)) -> TakenPort<PathEnd> {
        self.held.take(self.port(ends), |held| held.slot)
    }

    /// The ports at both ends of a path that is there.
    fn of_path(&self, ends: (u32, u32)) -> (usize, usize) {
        let own = self.take(ends);
        (own.place, own.before.map_or(0, |(_, held)| held.peer_port))
    }

    /// Holds the paths that a slot needs. Those that are there come first, so that none of them goes.
    fn enter(&mut self, slot: u32, pairs: &[(u32, u32)]) {
        for &(one, other) in pairs {
            interrupt::check();
            for ends in [(one, other), (other, one)] {
                let own = self.take(ends);
                if let Some((_, held)) = own.before.filter(|_| own.holds) {
                    let held = PathEnd { slot, ..held };
                    self.held.set(self.port(ends), own.place, held);
                }
            }
        }
        for &(one, other) in pairs {
            let (there, back) = ((one, other), (other, one));
            if !self.take(there).holds {
                let (own, peer) = (self.free(there), self.free(back));
                for (ends, place, peer_port) in [(there, own, peer), (back, peer, own)] {
                    let held = PathEnd { slot, peer_port };
                    self.held.set(self.port(ends), place, held);
                }
            }
        }
    }

    /// A port of a rank for a new path to another; a path that it holds goes, at both ends.
    fn free(&mut self, ends: (u32, u32)) -> usize {
        let own = self.take(ends);
        if let Some((peer, held)) = own.before {
            self.held.clear(ends.0.into(), own.place);
            self.held.clear(peer, held.peer_port);
        }
        own.place
    }
}
