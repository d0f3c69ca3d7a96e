//! Slots of a step, with the resources in use.
//!
//! A message takes one unit of each of its resources, such as ports of ranks, in the first slot in
//! which each of them has a free unit.

use opticoll_base::interrupt;

/// Units in use of each resource in each slot.
pub(crate) struct SlotTable {
    /// Number of units of each resource in a slot.
    units: Vec<u32>,
    /// Units in use of each resource in each slot, up to the last slot with any.
    used: Vec<Vec<u32>>,
    /// First slot in which each resource has a free unit.
    first: Vec<u32>,
    count: u32,
}

impl SlotTable {
    /// Creates a table without units in use. `units` is the number of units of each resource in a
    /// slot.
    pub(crate) fn new(units: Vec<u32>) -> SlotTable {
        SlotTable {
            used: vec![Vec::new(); units.len()],
            first: vec![0; units.len()],
            count: 0,
            units,
        }
    }

    /// Returns the number of slots in use, at least 1, because an empty step takes a slot.
    pub(crate) fn count(&self) -> u32 {
        self.count.max(1)
    }

    /// Returns the number of units of a resource in use in a slot.
    pub(crate) fn used(&self, resource: usize, slot: u32) -> u32 {
        let used = self.used[resource].get(slot as usize);
        used.copied().unwrap_or(0)
    }

    /// Takes a unit of each resource in the first slot in which all of them are free. Returns the
    /// slot.
    pub(crate) fn take(&mut self, resources: &[usize]) -> u32 {
        let is_full = |table: &SlotTable, resource: usize, slot: u32| {
            table.used(resource, slot) >= table.units[resource]
        };
        let first = resources.iter().map(|&resource| self.first[resource]);
        let mut slot = first.max().unwrap_or(0);
        while resources
            .iter()
            .any(|&resource| is_full(self, resource, slot))
        {
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
