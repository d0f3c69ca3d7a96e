//! Groups of slots in which no port changes its circuit.
//!
//! A group is as long a run of slots as that holds, hence one in which no rank holds circuits to more
//! others than it has ports; or each slot with messages by itself. By the setting `paths`, circuits are
//! - `released`: set up before their group and released after it;
//! - `kept` until a port is needed for another: before a group they are set up if one of it is missing, and
//!   some are released before that if one must go for it. Ports are given to circuits by their last use, so
//!   that each rank keeps those that it used last;
//! - `warm`: kept, and there are at first those that an earlier run of the same plan has left;
//! - `predicted`: set up before the plan begins, and replaced between groups; nobody waits for the last release.

use super::slots::{SlotHops, hop};
use crate::{Paths, SimulationError};
use opticoll_base::interrupt;
use opticoll_base::ports::Ports;
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::{Circuits, Tuning};
use opticoll_plan::plan::Plan;

/// What is done before a slot: how often circuits are released, and how often set up.
#[derive(Clone, Copy, Default)]
pub(super) struct Before {
    pub(super) releases: u64,
    pub(super) set_ups: u64,
}

/// Which circuits are there, slot by slot.
pub(super) struct CircuitGroups<'a> {
    plan: &'a Plan,
    circuits: &'a dyn Circuits,
    slots: &'a SlotHops,
    paths: Paths,
    /// For each slot with messages, whether it is the first of its group, and the last.
    bounds: Vec<(bool, bool)>,
    /// The slots of the group that begins at each slot; that slot itself elsewhere.
    group_end: Vec<u32>,
    held: Ports<()>,
    /// Whether a group was entered.
    has_begun: bool,
    /// Of the slot looked at.
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
        groups.find(each_slot)?;
        if paths == Paths::Warm {
            (0..count).for_each(|slot| _ = groups.enter(slot));
        }
        Ok(groups)
    }

    /// Looks at the ports of a slot.
    fn look_at(&mut self, slot: u32) {
        let hops = self.slots.of_slot(slot).iter();
        self.hops.clear();
        self.hops.extend(hops.map(|&one| hop(self.plan, one).0));
        self.tunings.clear();
        self.circuits.tune(&self.hops, &mut self.tunings);
    }

    /// Forms groups: each goes on until a port would change its circuit.
    fn find(&mut self, each_slot: bool) -> Result<(), SimulationError> {
        // With the slot in which they were used last.
        let mut used: Ports<u32> = Ports::default();
        let (mut first, mut last) = (None, 0);
        for slot in 0..self.bounds.len() as u32 {
            interrupt::check();
            self.look_at(slot);
            if self.tunings.iter().all(|one| one.is_fixed) {
                continue;
            }
            let ends = self
                .tunings
                .iter()
                .map(|one| [one.transmitter, one.receiver]);
            let fits = ends.clone().flatten().all(|port| {
                let taken = used.take(port, |slot| slot);
                taken.holds || taken.before.is_none_or(|(_, slot)| Some(slot) < first)
            });
            for (place, ports) in ends.enumerate() {
                for port in ports {
                    let taken = used.take(port, |slot| slot);
                    if !taken.holds && taken.before.is_some_and(|(_, used)| used == slot) {
                        let (_, transfer) = hop(self.plan, self.slots.of_slot(slot)[place]);
                        return Err(SimulationError::Transfer {
                            transfer: transfer as usize,
                            problem: "a port of it holds another path in its slot",
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

    /// Goes on to a slot: what is done before it.
    pub(super) fn enter(&mut self, slot: u32) -> Before {
        let (first, _) = self.bounds[slot as usize];
        match (first, self.paths) {
            (false, _) => Before::default(),
            (true, Paths::Released) => Before {
                releases: 0,
                set_ups: 1,
            },
            (true, Paths::Kept | Paths::Warm) => self.replace(slot),
            (true, Paths::Predicted) => {
                let replaced = u64::from(std::mem::replace(&mut self.has_begun, true));
                Before {
                    releases: replaced,
                    set_ups: replaced,
                }
            }
        }
    }

    /// Whether circuits are released after a slot.
    pub(super) fn releases_after(&self, slot: u32) -> bool {
        self.bounds[slot as usize].1 && self.paths == Paths::Released
    }

    /// Holds the circuits of the group that begins at a slot, and lets go those whose ports they need.
    fn replace(&mut self, first: u32) -> Before {
        let mut before = Before::default();
        for slot in first..self.group_end[first as usize] {
            self.look_at(slot);
            for tuning in &self.tunings {
                if tuning.is_fixed || self.held.take(tuning.transmitter, |()| ()).holds {
                    continue;
                }
                before.set_ups = 1;
                for port in [tuning.transmitter, tuning.receiver] {
                    let taken = self.held.take(port, |()| ());
                    self.held.set(port, taken.place, ());
                    if let Some((other, ())) = taken.before {
                        before.releases = 1;
                        if other != port.state {
                            self.held.clear(other, 0);
                        }
                    }
                }
            }
        }
        before
    }
}
