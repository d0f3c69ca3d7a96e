//! Estimated time of slots.
//!
//! The time of a slot is the sum of three terms: the reconfiguration (if the policy charges one),
//! the propagation over the longest lightpath of the slot, and the transmission (including
//! conversion) of the bytes on the busiest channel.

use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::{Circuits, Transmission};
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_simulate::Policy;

/// Time model of slots on a ring under a policy. Times that exceed 64 bits are `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotCost {
    /// Reconfiguration time of a slot, in picoseconds.
    per_slot: u64,
    /// Propagation time of one link, in picoseconds.
    per_hop: u64,
    transmission: Transmission,
}

impl SlotCost {
    /// Creates the time model of slots that share no circuit with the previous slot.
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

    /// Creates the time model of slots whose circuits can all be up at the same time. Also returns
    /// the reconfiguration time, in picoseconds, that is charged once for all slots.
    pub(crate) fn with_lasting_circuits(ring: &WdmRing, policy: Policy) -> (SlotCost, u64) {
        match policy {
            Policy::OnChange | Policy::PerPort => {
                (SlotCost::new(ring, Policy::Free), ring.reconfiguration.ps())
            }
            _ => (SlotCost::new(ring, policy), 0),
        }
    }

    /// Returns the total time of `slots` slots in picoseconds. In each slot, the longest lightpath
    /// has `hops` links, and each lightpath carries up to `bytes` bytes.
    pub(crate) fn slots(&self, slots: u64, bytes: Bytes, hops: u64) -> u64 {
        let sending = self.transmission.ps(bytes);
        let slot = sending
            .saturating_add(u128::from(self.per_slot))
            .saturating_add(u128::from(self.per_hop).saturating_mul(hops.into()));
        u64::try_from(slot.saturating_mul(slots.into())).unwrap_or(u64::MAX)
    }
}

/// Returns some of the numbers from 2 to `max`, ascending: all numbers up to 24, then numbers that
/// grow by about 9 %, and `max` itself.
pub(crate) fn sample_sizes(max: u32) -> Vec<u32> {
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
