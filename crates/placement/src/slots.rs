//! Use of resources, such as ports of ranks, in the slots of a step.
//!
//! A message reserves one unit of each resource that it needs, in the first slot in which all of
//! these resources have a free unit.

use opticoll_base::interrupt;

/// Number of reserved units of each resource in each slot of a step.
pub(crate) struct SlotTable {
    /// Number of units that each resource has in every slot, indexed by resource.
    units: Vec<u32>,
    /// Number of reserved units, indexed by resource and slot. The list of a resource ends with the
    /// last slot in which units are reserved.
    used: Vec<Vec<u32>>,
    /// First slot in which each resource has a free unit, indexed by resource.
    first: Vec<u32>,
    count: u32,
}

impl SlotTable {
    /// Creates an empty table. `units` is the number of units of each resource in every slot.
    pub(crate) fn new(units: Vec<u32>) -> SlotTable {
        SlotTable {
            used: vec![Vec::new(); units.len()],
            first: vec![0; units.len()],
            count: 0,
            units,
        }
    }

    /// Returns the number of slots in use, at least 1, because an empty step needs a slot.
    pub(crate) fn count(&self) -> u32 {
        self.count.max(1)
    }

    /// Returns the number of reserved units of a resource in a slot.
    pub(crate) fn used(&self, resource: usize, slot: u32) -> u32 {
        let used = self.used[resource].get(slot as usize);
        used.copied().unwrap_or(0)
    }

    /// Reserves one unit of each of `resources` in the first slot in which all of them have a free
    /// unit. Returns the index of this slot.
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
