//! Groups of consecutive slots in which no port changes its circuit.
//!
//! A group is the longest such run of slots. Under some policies, each slot with messages is a
//! group. Within a group, no rank has circuits to more ranks than it has ports. The setting `paths`
//! defines when circuits are set up and torn down:
//! - `released`: Circuits are set up before their group and torn down after it.
//! - `kept`: A circuit stays up until one of its ports is needed for another circuit. Before a
//!   group, the circuits that are not up are set up; circuits that occupy their ports are torn down
//!   first. A new circuit uses the least recently used port, so that each rank keeps its most
//!   recently used circuits.
//! - `warm`: As `kept`, but at the start the circuits of an earlier run of the same plan are up.
//! - `predicted`: The circuits of the first group are set up before the plan begins. Circuits are
//!   replaced between groups. The last release costs no time.

use super::slots::{SlotHops, hop};
use crate::{Paths, SimulationError};
use opticoll_base::interrupt;
use opticoll_base::ports::Ports;
use opticoll_fabric::fabric::circuits::{Circuits, Tuning};
use opticoll_plan::plan::Plan;

/// Number of releases and number of setups before a slot. Simultaneous releases count once, and so
/// do simultaneous setups.
#[derive(Clone, Copy, Default)]
pub(super) struct CircuitChanges {
    pub(super) releases: u64,
    pub(super) setups: u64,
}

/// Circuits that are up in the current slot, and the groups of slots in which no port changes its
/// circuit.
pub(super) struct CircuitGroups<'a> {
    plan: &'a Plan,
    circuits: &'a dyn Circuits,
    slots: &'a SlotHops,
    paths: Paths,
    /// Two flags per slot: first slot of its group, and last slot of its group.
    bounds: Vec<(bool, bool)>,
    /// Slot after the group, for each slot at which a group begins; for other slots, the next slot.
    group_end: Vec<u32>,
    ports: Ports<()>,
    has_begun: bool,
    tunings: Vec<Tuning>,
}

impl<'a> CircuitGroups<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        circuits: &'a dyn Circuits,
        slots: &'a SlotHops,
        each_slot: bool,
        paths: Paths,
    ) -> Result<CircuitGroups<'a>, SimulationError> {
        let count = plan.slots();
        let mut groups = CircuitGroups {
            plan,
            circuits,
            slots,
            paths,
            bounds: vec![(false, false); count as usize],
            group_end: (1..=count).collect(),
            ports: Ports::default(),
            has_begun: false,
            tunings: Vec::new(),
        };
        groups.form_groups(each_slot)?;
        if paths == Paths::Warm {
            (0..count).for_each(|slot| _ = groups.enter(slot));
        }
        Ok(groups)
    }

    fn read_slot(&mut self, slot: u32) {
        let hops = self.slots.hops(slot).iter();
        let hops = hops.map(|&index| hop(self.plan, index).0);
        self.tunings.clear();
        self.tunings
            .extend(hops.map(|hop| self.circuits.tuning(&hop, &self.plan.routes)));
    }

    /// Forms the groups. A group ends when a port changes its circuit. If `each_slot` is true,
    /// every slot whose circuits are not fixed is a group.
    fn form_groups(&mut self, each_slot: bool) -> Result<(), SimulationError> {
        // Slot in which each port was used last.
        let mut used: Ports<u32> = Ports::default();
        let (mut first, mut last) = (None, 0);
        for slot in 0..self.bounds.len() as u32 {
            interrupt::check();
            self.read_slot(slot);
            if self.tunings.iter().all(|tuning| tuning.is_fixed) {
                continue;
            }
            let ends = self
                .tunings
                .iter()
                .map(|tuning| [tuning.transmitter, tuning.receiver]);
            let fits = ends.clone().flatten().all(|port| {
                let taken = used.take(port, |slot| slot);
                taken.holds || taken.before.is_none_or(|(_, slot)| Some(slot) < first)
            });
            for (hop_index, ports) in ends.enumerate() {
                for port in ports {
                    let taken = used.take(port, |slot| slot);
                    if !taken.holds && taken.before.is_some_and(|(_, used)| used == slot) {
                        let (_, transfer) = hop(self.plan, self.slots.hops(slot)[hop_index]);
                        return Err(SimulationError::Transfer {
                            transfer: transfer as usize,
                            problem: "one of its ports has another circuit in this slot",
                        });
                    }
                    used.set(port, taken.place, slot);
                }
            }
            if !fits || each_slot || first.is_none() {
                self.close_group(first, last);
                first = Some(slot);
            }
            last = slot;
        }
        self.close_group(first, last);
        Ok(())
    }

    fn close_group(&mut self, first: Option<u32>, last: u32) {
        if let Some(first) = first {
            self.bounds[first as usize].0 = true;
            self.bounds[last as usize].1 = true;
            self.group_end[first as usize] = last + 1;
        }
    }

    /// Advances to a slot and returns the number of releases and the number of setups before the
    /// slot.
    pub(super) fn enter(&mut self, slot: u32) -> CircuitChanges {
        let (is_first, _) = self.bounds[slot as usize];
        match (is_first, self.paths) {
            (false, _) => CircuitChanges::default(),
            (true, Paths::Released) => CircuitChanges {
                releases: 0,
                setups: 1,
            },
            (true, Paths::Kept | Paths::Warm) => self.replace(slot),
            (true, Paths::Predicted) => {
                let replaced = u64::from(std::mem::replace(&mut self.has_begun, true));
                CircuitChanges {
                    releases: replaced,
                    setups: replaced,
                }
            }
        }
    }

    pub(super) fn releases_after(&self, slot: u32) -> bool {
        self.bounds[slot as usize].1 && self.paths == Paths::Released
    }

    /// Sets up the circuits of the group that begins at slot `first`, and tears down the circuits
    /// that occupy their ports.
    fn replace(&mut self, first: u32) -> CircuitChanges {
        let mut changes = CircuitChanges::default();
        for slot in first..self.group_end[first as usize] {
            self.read_slot(slot);
            for tuning in &self.tunings {
                if tuning.is_fixed || self.ports.take(tuning.transmitter, |()| ()).holds {
                    continue;
                }
                changes.setups = 1;
                for port in [tuning.transmitter, tuning.receiver] {
                    let taken = self.ports.take(port, |()| ());
                    self.ports.set(port, taken.place, ());
                    if let Some((other, ())) = taken.before {
                        changes.releases = 1;
                        if other != port.state {
                            self.ports.clear(other, 0);
                        }
                    }
                }
            }
        }
        changes
    }
}
