//! Placement of schedules on a grid of lightpaths: slots and ports.
//!
//! **Slots.** The transfers of a step between two ranks, in both directions, need one lightpath. In
//! the order of the schedule, each pair of ranks takes the first slot of the step in which both
//! ranks have a free port. If a rank has at most d partners, the step takes at most ceil((2 d - 1)
//! / k) slots. A ring of ranks takes two slots with one port (three if its length is odd) and one
//! slot with two ports.
//!
//! **Ports.** Every rank keeps the lightpaths that it used most recently. A pair of ranks that has
//! a lightpath uses it. Otherwise each of the two ranks takes its lowest free port, or else its
//! least recently used port, whose lightpath is released; the port at the other end of that
//! lightpath is then free. Therefore a port changes its lightpath only if the rank meets more than
//! k other ranks. In a run of slots in which no rank meets more than k other ranks, no port changes
//! after its first use in the run, because the lightpaths of the run were used more recently than
//! those that they replace.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::PlacementError;
use crate::error::check_ends;
use crate::slots::SlotTable;
use opticoll_base::interrupt;
use opticoll_base::ports::{Port, Ports, TakenPort};
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::lightpath_grid::{LightpathGrid, PortsLight};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;

/// Assigns a slot and ports to every transfer.
///
/// # Errors
/// A transfer does not go from one rank of the grid to another.
pub fn assign_ports(
    schedule: Schedule,
    fabric: &Fabric,
    grid: &LightpathGrid,
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
                let (source_port, destination_port) = ports.path_ports((source, destination));
                plan.light[transfer] = Light::from(PortsLight {
                    source_port: source_port as u8,
                    destination_port: destination_port as u16,
                });
            }
        }
    }
    plan.slot = slot_of;
    plan.step_slots = step_slots;
    Ok(plan)
}

/// Returns the slot of each transfer, and the slots of each step.
fn place(schedule: &Schedule, grid: &LightpathGrid) -> (Vec<u32>, Vec<Range<u32>>) {
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

/// Lightpaths that every rank holds.
struct PathPorts {
    ports: u32,
    held: Ports<PathEnd>,
}

/// State of a lightpath at one of its ends.
#[derive(Clone, Copy, Default)]
struct PathEnd {
    /// Slot of the last use.
    slot: u32,
    /// Port at the other end.
    peer_port: usize,
}

impl PathPorts {
    fn new(grid: &LightpathGrid) -> PathPorts {
        PathPorts {
            ports: grid.ports,
            held: Ports::default(),
        }
    }

    /// Describes the port that a rank needs for a lightpath to another rank.
    fn port(&self, (rank, peer): (u32, u32)) -> Port {
        Port {
            pool: rank.into(),
            size: self.ports,
            state: peer.into(),
        }
    }

    /// Returns the port of a rank that has the lightpath to another rank, or the port that such a
    /// lightpath would take.
    fn take(&self, ends: (u32, u32)) -> TakenPort<PathEnd> {
        self.held.take(self.port(ends), |held| held.slot)
    }

    /// Returns the ports at both ends of an existing lightpath.
    fn path_ports(&self, ends: (u32, u32)) -> (usize, usize) {
        let taken = self.take(ends);
        (
            taken.place,
            taken.before.map_or(0, |(_, held)| held.peer_port),
        )
    }

    /// Sets up the lightpaths that a slot needs. Existing lightpaths are marked as used first, so
    /// that none of them is replaced.
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
            let (forth, back) = ((one, other), (other, one));
            if !self.take(forth).holds {
                let (own, peer) = (self.free(forth), self.free(back));
                for (ends, place, peer_port) in [(forth, own, peer), (back, peer, own)] {
                    let held = PathEnd { slot, peer_port };
                    self.held.set(self.port(ends), place, held);
                }
            }
        }
    }

    /// Returns a port of a rank for a new lightpath. If the port holds a lightpath, frees the ports
    /// at both of its ends.
    fn free(&mut self, ends: (u32, u32)) -> usize {
        let taken = self.take(ends);
        if let Some((peer, held)) = taken.before {
            self.held.clear(ends.0.into(), taken.place);
            self.held.clear(peer, held.peer_port);
        }
        taken.place
    }
}
