//! Groups of slots in which no port changes its circuit.
//!
//! A group is as long a run of slots as that holds, hence one in which no rank holds circuits to more
//! others than it has ports; or each slot with messages by itself. By the setting `paths`, circuits are
//! - `released`: set up before their group and released after it;
//! - `kept` until a port is needed for another: before a group they are set up if one of it is missing, and
//!   some are released before that if one must go for it. Ports are given to circuits by their last use, so
//!   that each rank keeps those that it used last;
//! - `warm`: kept, and there are at first those that an earlier run of the same plan has left.

use rustc_hash::FxHashMap;

use super::messages::{Slots, hop};
use crate::fabric::{Circuits, Hop};
use crate::interrupt;
use crate::plan::Plan;
use crate::simulate::Paths;

/// A port of a rank: the rank and the number.
type Port = (u32, u32);

/// What is done before a slot: how often circuits are released, and how often set up.
#[derive(Clone, Copy, Default)]
pub(super) struct Before {
    pub(super) releases: u64,
    pub(super) set_ups: u64,
}

/// Which circuits are there, slot by slot.
pub(super) struct Groups<'a> {
    slots: &'a Slots,
    /// Both ends of the circuit of each hop, slot by slot.
    ends: Vec<[Port; 2]>,
    paths: Paths,
    /// For each slot with messages, whether it is the first of its group, and the last.
    bounds: Vec<(bool, bool)>,
    /// The slots of the group that begins at each slot; that slot itself elsewhere.
    group_end: Vec<u32>,
    /// The other end of the circuit that each port holds. Looked up only.
    held: FxHashMap<Port, Port>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(
        plan: &Plan,
        circuits: &dyn Circuits,
        slots: &'a Slots,
        each_slot: bool,
        paths: Paths,
    ) -> Groups<'a> {
        let count = plan.slots();
        let mut groups = Groups {
            slots,
            ends: Vec::new(),
            paths,
            bounds: vec![(false, false); count as usize],
            group_end: (1..=count).collect(),
            held: FxHashMap::default(),
        };
        let hops: Vec<Hop> = slots.hops().iter().map(|&one| hop(plan, one).0).collect();
        groups.ends = circuits.ports(&hops);
        groups.find(each_slot);
        if paths == Paths::Warm {
            (0..count).for_each(|slot| _ = groups.enter(slot));
        }
        groups
    }

    /// Forms groups: each goes on until a port would change its circuit.
    fn find(&mut self, each_slot: bool) {
        let mut used: FxHashMap<Port, Port> = FxHashMap::default();
        let (mut first, mut last) = (None, 0);
        for slot in 0..self.bounds.len() as u32 {
            interrupt::check();
            let ends = &self.ends[self.slots.range(slot)];
            if ends.is_empty() {
                continue;
            }
            let fits = ends.iter().all(|[one, other]| {
                used.get(one).is_none_or(|end| end == other)
                    && used.get(other).is_none_or(|end| end == one)
            });
            let begins = !fits || each_slot || first.is_none();
            if begins {
                used.clear();
            }
            for &[one, other] in ends {
                used.insert(one, other);
                used.insert(other, one);
            }
            if begins {
                self.close(first, last);
                first = Some(slot);
            }
            last = slot;
        }
        self.close(first, last);
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
        }
    }

    /// Whether circuits are released after a slot.
    pub(super) fn releases_after(&self, slot: u32) -> bool {
        self.bounds[slot as usize].1 && self.paths == Paths::Released
    }

    /// Holds the circuits of the group that begins at a slot, and lets go those whose ports they need.
    fn replace(&mut self, first: u32) -> Before {
        let mut before = Before::default();
        let end = self.slots.range(self.group_end[first as usize] - 1).end;
        for &[one, other] in &self.ends[self.slots.range(first).start..end] {
            if self.held.get(&one) == Some(&other) {
                continue;
            }
            before.set_ups = 1;
            for (end, opposite) in [(one, other), (other, one)] {
                if let Some(gone) = self.held.insert(end, opposite) {
                    before.releases = 1;
                    if gone != opposite {
                        self.held.remove(&gone);
                    }
                }
            }
        }
        before
    }
}
