//! Placement of schedules on a grid of lightpaths: slots and ports.
//!
//! **Slots.** The transfers of a step between two ranks, in both directions, need one lightpath.
//! Pairs of ranks are placed in the order of the schedule. Each pair is assigned the first slot of
//! the step in which both ranks have a free port. If each rank has at most d partners and k ports,
//! the step needs at most ceil((2 d - 1) / k) slots. Transfers around a ring need one slot with two
//! ports per rank, or two slots with one port (three if the length of the ring is odd).
//!
//! **Ports.** Every rank keeps the lightpaths that it used most recently. A pair of ranks uses its
//! lightpath if the lightpath is up. Otherwise, each of the two ranks uses its lowest free port. If
//! no port is free, the rank tears down the lightpath of its least recently used port, which frees
//! the port at the other end too. Therefore, a port changes its lightpath only if the rank has more
//! than k partners. Consider consecutive slots in which no rank has more than k partners. After its
//! first use in these slots, no port changes, because the lightpaths of these slots were used more
//! recently than the lightpaths that they replace.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::PlacementError;
use crate::error::check_ends;
use crate::slots::SlotTable;
use opticoll_base::interrupt;
use opticoll_base::ports::{Port, Ports, SelectedPort};
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::lightpath_grid::{LightpathGrid, PortsLight};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;

/// Assigns a slot and ports to every transfer of a schedule.
///
/// # Errors
/// A transfer does not go from one rank of the grid to a different rank.
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

/// Returns the slot of each transfer, indexed by transfer, and the range of slots of each step.
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

struct PathPorts {
    ports: u32,
    port_states: Ports<PathUse>,
}

/// Values that a port stores about its lightpath: the last slot in which the lightpath was used,
/// and the port at the other end.
#[derive(Clone, Copy, Default)]
struct PathUse {
    slot: u32,
    peer_port: usize,
}

impl PathPorts {
    fn new(grid: &LightpathGrid) -> PathPorts {
        PathPorts {
            ports: grid.ports,
            port_states: Ports::default(),
        }
    }

    /// Returns the port that a lightpath from `rank` to `peer` needs at `rank`.
    fn port(&self, (rank, peer): (u32, u32)) -> Port {
        Port {
            pool: rank.into(),
            size: self.ports,
            state: peer.into(),
        }
    }

    /// Returns the port of `ends.0` for a lightpath to `ends.1`: the port of the existing
    /// lightpath, or the port that a new lightpath would use.
    fn take(&self, ends: (u32, u32)) -> SelectedPort<PathUse> {
        self.port_states
            .take(self.port(ends), |port_use| port_use.slot)
    }

    /// Returns the indices of the ports at `ends.0` and `ends.1` of an existing lightpath.
    fn path_ports(&self, ends: (u32, u32)) -> (usize, usize) {
        let selected = self.take(ends);
        (
            selected.place,
            selected
                .before
                .map_or(0, |(_, port_use)| port_use.peer_port),
        )
    }

    /// Sets up the lightpaths that a slot needs between `pairs` of ranks. Existing lightpaths are
    /// marked as used first, so that no new lightpath replaces them.
    fn enter(&mut self, slot: u32, pairs: &[(u32, u32)]) {
        for &(rank_a, rank_b) in pairs {
            interrupt::check();
            for ends in [(rank_a, rank_b), (rank_b, rank_a)] {
                let own = self.take(ends);
                if let Some((_, port_use)) = own.before.filter(|_| own.holds) {
                    let port_use = PathUse { slot, ..port_use };
                    self.port_states.set(self.port(ends), own.place, port_use);
                }
            }
        }
        for &(rank_a, rank_b) in pairs {
            let (forth, back) = ((rank_a, rank_b), (rank_b, rank_a));
            if !self.take(forth).holds {
                let (own, peer) = (self.free(forth), self.free(back));
                for (ends, place, peer_port) in [(forth, own, peer), (back, peer, own)] {
                    let port_use = PathUse { slot, peer_port };
                    self.port_states.set(self.port(ends), place, port_use);
                }
            }
        }
    }

    /// Frees a port of `ends.0` for a new lightpath to `ends.1`, and returns the index of the port.
    /// If the port has a lightpath, the port at the other end of this lightpath is freed too.
    fn free(&mut self, ends: (u32, u32)) -> usize {
        let selected = self.take(ends);
        if let Some((peer, port_use)) = selected.before {
            self.port_states.clear(ends.0.into(), selected.place);
            self.port_states.clear(peer, port_use.peer_port);
        }
        selected.place
    }
}
