//! Parts that the data of a plan pass, and how long transmitters are lit, for the energy of a plan.

use crate::outcome::Outcome;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::bill::{Bill, MovedBytes};
use opticoll_plan::plan::Plan;

/// Use of the parts of a fabric by a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedParts {
    /// Bytes that pass the parts of each kind, in halves of bytes
    /// ([`bill_of_bytes`](opticoll_fabric::fabric::Machine::bill_of_bytes)).
    pub halves_of_bytes: Bill,
    /// Sum of the times for which the transmitters of circuits are lit, in picoseconds. A circuit
    /// is lit from the start of its slot, with the setup, to the end of the slot. `None` on a
    /// network of links, where all transmitters are always lit.
    pub lit_ps: Option<u128>,
}

/// Returns what `plan` needed of the parts of its fabric, in a simulation that moved `size` bytes.
///
/// # Errors
/// The bytes of a transfer exceed 64 bits.
pub fn passed_parts(plan: &Plan, size: Bytes, outcome: &Outcome) -> Result<PassedParts, UnitError> {
    let fabric = &plan.fabric;
    if fabric.network().is_some() {
        let links = &outcome.links.bytes;
        let moved = MovedBytes {
            links,
            ..MovedBytes::default()
        };
        return Ok(PassedParts {
            halves_of_bytes: fabric.bill_of_bytes(&moved),
            lit_ps: None,
        });
    }
    let side_network = fabric
        .circuits()
        .and_then(|circuits| circuits.side_network());
    let mut packets = 0;
    let mut lit_ps = 0;
    for slot in 0..outcome.slots.start.len() {
        interrupt::check();
        let mut circuits = outcome.slots.lightpaths[slot];
        if let Some((packet, _)) = side_network {
            for (_, message) in plan.lightpaths_in_slot(slot as u32) {
                if message.light == packet {
                    circuits -= 1;
                    let (first, count) = (message.transfer.chunk, message.transfer.count);
                    let collective = &plan.schedule.collective;
                    packets += collective.range_bytes(size, first, count)?.get();
                }
            }
        }
        let time = outcome.slots.end[slot].ps() - outcome.slots.start[slot].ps();
        lit_ps += u128::from(circuits) * u128::from(time);
    }
    let [sent, received] = [&outcome.ranks.sent, &outcome.ranks.received];
    let over_circuits = |bytes: &[u64]| bytes.iter().sum::<u64>() - packets;
    let moved = MovedBytes {
        sent: over_circuits(sent),
        received: over_circuits(received),
        packets,
        ..MovedBytes::default()
    };
    Ok(PassedParts {
        halves_of_bytes: fabric.bill_of_bytes(&moved),
        lit_ps: Some(lit_ps),
    })
}
