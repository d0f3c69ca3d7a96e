//! Groups of slots in which no port changes its circuit.
//!
//! A group is the longest such run of slots, or each slot with messages by itself. In a group no
//! rank therefore has circuits to more ranks than it has ports. The setting `paths` defines when
//! circuits are set up and torn down:
//! - `released`: circuits are set up before their group and torn down after it.
//! - `kept`: circuits stay until their port is needed for another circuit. Before a group, missing
//!   circuits are set up, and if one of them needs a port of another circuit, that circuit is torn
//!   down first. A circuit takes the least recently used port, so that each rank keeps the circuits
//!   that it used last.
//! - `warm`: as `kept`, but the circuits of an earlier run of the same plan are up at the
//!   beginning.
//! - `predicted`: circuits are set up before the plan begins and replaced between groups; the last
//!   release costs no time.

use super::slots::{SlotHops, hop};
use crate::{Paths, SimulationError};
use opticoll_base::interrupt;
use opticoll_base::ports::Ports;
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::{Circuits, Tuning};
use opticoll_plan::plan::Plan;

/// Numbers of releases and of set-ups before a slot.
#[derive(Clone, Copy, Default)]
pub(super) struct CircuitChanges {
    pub(super) releases: u64,
    pub(super) setups: u64,
}

/// Circuits that are up, slot by slot.
pub(super) struct CircuitGroups<'a> {
    plan: &'a Plan,
    circuits: &'a dyn Circuits,
    slots: &'a SlotHops,
    paths: Paths,
    /// Flags of each slot with messages: the first of its group, and the last of its group.
    bounds: Vec<(bool, bool)>,
    /// End of the group that begins at each slot; the next slot if no group begins there.
    group_end: Vec<u32>,
    held: Ports<()>,
    /// True if a group has been entered.
    has_begun: bool,
    /// Hops and ports of the current slot.
    hops: Vec<Hop>,
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
            held: Ports::default(),
            has_begun: false,
            hops: Vec::new(),
            tunings: Vec::new(),
        };
        groups.form(each_slot)?;
        if paths == Paths::Warm {
            (0..count).for_each(|slot| _ = groups.enter(slot));
        }
        Ok(groups)
    }

    /// Reads the hops and ports of a slot.
    fn read_slot(&mut self, slot: u32) {
        let hops = self.slots.hops(slot).iter();
        self.hops.clear();
        self.hops.extend(hops.map(|&index| hop(self.plan, index).0));
        self.tunings.clear();
        self.circuits.tune(&self.hops, &mut self.tunings);
    }

    /// Forms the groups: each continues until a port changes its circuit.
    fn form(&mut self, each_slot: bool) -> Result<(), SimulationError> {
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
            for (place, ports) in ends.enumerate() {
                for port in ports {
                    let taken = used.take(port, |slot| slot);
                    if !taken.holds && taken.before.is_some_and(|(_, used)| used == slot) {
                        let (_, transfer) = hop(self.plan, self.slots.hops(slot)[place]);
                        return Err(SimulationError::Transfer {
                            transfer: transfer as usize,
                            problem: "one of its ports has another circuit in this slot",
                        });
                    }
                    used.set(port, taken.place, slot);
                }
            }
            if !fits || each_slot || first.is_none() {
                self.close(first, last);
                first = Some(slot);
            }
            last = slot;
        }
        self.close(first, last);
        Ok(())
    }

    fn close(&mut self, first: Option<u32>, last: u32) {
        if let Some(first) = first {
            self.bounds[first as usize].0 = true;
            self.bounds[last as usize].1 = true;
            self.group_end[first as usize] = last + 1;
        }
    }

    /// Advances to a slot and returns the changes before it.
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

    /// Returns whether circuits are released after a slot.
    pub(super) fn releases_after(&self, slot: u32) -> bool {
        self.bounds[slot as usize].1 && self.paths == Paths::Released
    }

    /// Sets up the circuits of the group that begins at slot `first`, and tears down circuits whose
    /// ports they need.
    fn replace(&mut self, first: u32) -> CircuitChanges {
        let mut changes = CircuitChanges::default();
        for slot in first..self.group_end[first as usize] {
            self.read_slot(slot);
            for tuning in &self.tunings {
                if tuning.is_fixed || self.held.take(tuning.transmitter, |()| ()).holds {
                    continue;
                }
                changes.setups = 1;
                for port in [tuning.transmitter, tuning.receiver] {
                    let taken = self.held.take(port, |()| ());
                    self.held.set(port, taken.place, ());
                    if let Some((other, ())) = taken.before {
                        changes.releases = 1;
                        if other != port.state {
                            self.held.clear(other, 0);
                        }
                    }
                }
            }
        }
        changes
    }
}
