//! Estimated cost of slots.
//!
//! A slot costs its reconfiguration (if the policy charges one), the propagation over the hops of
//! its longest lightpath, and the transmission of the largest number of bytes on a channel,
//! including conversion.

use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::{Circuits, Transmission};
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_simulate::Policy;

/// Cost of slots on a ring under a policy, in picoseconds. Costs that exceed 64 bits are
/// `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotCost {
    per_slot: u64,
    per_hop: u64,
    transmission: Transmission,
}

impl SlotCost {
    /// Returns the cost of slots whose circuits all differ from those of the slot before.
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

    /// Returns the cost of slots whose circuits can all be up at the same time, and the cost in
    /// picoseconds that is paid once.
    pub(crate) fn with_lasting_circuits(ring: &WdmRing, policy: Policy) -> (SlotCost, u64) {
        match policy {
            Policy::OnChange | Policy::PerPort => {
                (SlotCost::new(ring, Policy::Free), ring.reconfiguration.ps())
            }
            _ => (SlotCost::new(ring, policy), 0),
        }
    }

    /// Returns the cost in picoseconds of `slots` slots whose longest lightpath carries `bytes`
    /// bytes over `hops` hops.
    pub(crate) fn slots(&self, slots: u64, bytes: Bytes, hops: u64) -> u64 {
        let sending = self.transmission.ps(bytes);
        let slot = sending
            .saturating_add(u128::from(self.per_slot))
            .saturating_add(u128::from(self.per_hop).saturating_mul(hops.into()));
        u64::try_from(slot.saturating_mul(slots.into())).unwrap_or(u64::MAX)
    }
}

/// Returns an ascending selection of the numbers from 2 to `max`: all up to 24, then each about 9 %
/// larger than the one before, and `max`.
pub(crate) fn spread(max: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut number = 2;
    while number < max {
        numbers.push(number);
        number += (number / 11).max(1);
    }
    if max >= 2 {
        numbers.push(max);
    }
    numbers
}
