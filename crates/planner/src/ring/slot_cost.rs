//! What a slot costs, for estimates: reconfiguration if it is charged, propagation over the hops of
//! its longest lightpath, and its most bytes on a channel with their conversion.

use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::{Circuits, Transmission};
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_simulate::Policy;

/// The cost of slots on a ring under a policy, in picoseconds; too long counts as `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotCost {
    per_slot: u64,
    per_hop: u64,
    transmission: Transmission,
}

impl SlotCost {
    /// For slots whose circuits all differ from those before.
    pub(crate) fn new(ring: &WdmRing, policy: Policy) -> SlotCost {
        let reconfiguration = match policy {
            Policy::EveryStep | Policy::OnChange | Policy::PerPort => ring.reconfiguration.ps(),
            _ => 0,
        };
        SlotCost {
            per_slot: reconfiguration,
            per_hop: ring.least_propagation().map_or(u64::MAX, Time::ps),
            transmission: ring.transmission(),
        }
    }

    /// For slots whose circuits can all be up together, with what is paid once.
    pub(crate) fn of_circuits_that_stay(ring: &WdmRing, policy: Policy) -> (SlotCost, u64) {
        match policy {
            Policy::OnChange | Policy::PerPort => {
                (SlotCost::new(ring, Policy::Free), ring.reconfiguration.ps())
            }
            _ => (SlotCost::new(ring, policy), 0),
        }
    }

    /// `slots` slots with lightpaths of up to `bytes` bytes and `hops` hops.
    pub(crate) fn slots(&self, slots: u64, bytes: Bytes, hops: u64) -> u64 {
        let sending = self.transmission.ps(bytes);
        let slot = sending
            .saturating_add(u128::from(self.per_slot))
            .saturating_add(u128::from(self.per_hop).saturating_mul(hops.into()));
        u64::try_from(slot.saturating_mul(slots.into())).unwrap_or(u64::MAX)
    }
}

/// Numbers from 2 to `most`: all up to 24, then each some 9 % more than the one before, and the last.
pub(crate) fn spread(most: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut number = 2;
    while number < most {
        numbers.push(number);
        number += (number / 11).max(1);
    }
    if most >= 2 {
        numbers.push(most);
    }
    numbers
}
