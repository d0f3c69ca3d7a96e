//! Which slots of a step have room for a message.
//!
//! A message takes one unit of each of its resources, such as ports of ranks, in the first slot in which all of them
//! have one left.

use opticoll_base::interrupt;

/// The units in use of each resource, slot by slot.
pub(crate) struct SlotTable {
    /// By resource: its units in a slot.
    units: Vec<u32>,
    /// By resource and slot: the units in use, up to the last slot with any.
    used: Vec<Vec<u32>>,
    /// By resource: the first slot with a unit left.
    first: Vec<u32>,
    count: u32,
}

impl SlotTable {
    /// Slots in which a resource has so many units, none of them in use.
    pub(crate) fn new(units: Vec<u32>) -> SlotTable {
        SlotTable {
            used: vec![Vec::new(); units.len()],
            first: vec![0; units.len()],
            count: 0,
            units,
        }
    }

    /// The slots that are in use; at least one, as a step of nothing has a slot of its own.
    pub(crate) fn count(&self) -> u32 {
        self.count.max(1)
    }

    /// The units of a resource that are in use in a slot.
    pub(crate) fn used(&self, resource: usize, slot: u32) -> u32 {
        let used = self.used[resource].get(slot as usize);
        used.copied().unwrap_or(0)
    }

    /// Takes a unit of each of some resources in one slot. Returns the slot.
    pub(crate) fn take(&mut self, resources: &[usize]) -> u32 {
        let is_full = |table: &SlotTable, resource: usize, slot: u32| {
            table.used(resource, slot) >= table.units[resource]
        };
        let first = resources.iter().map(|&resource| self.first[resource]);
        let mut slot = first.max().unwrap_or(0);
        while resources.iter().any(|&one| is_full(self, one, slot)) {
            interrupt::check();
            slot += 1;
        }
        for &resource in resources {
            let used = &mut self.used[resource];
            used.resize(used.len().max(slot as usize + 1), 0);
            used[slot as usize] += 1;
            while is_full(self, resource, self.first[resource]) {
                self.first[resource] += 1;
            }
        }
        self.count = self.count.max(slot + 1);
        slot
    }
}
