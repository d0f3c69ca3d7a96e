//! Parts that the data of a plan pass, for the energy of the plan.

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
    /// Bytes that ranks send over circuits. `None` on a network of links.
    pub lit_bytes: Option<u128>,
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
            lit_bytes: None,
        });
    }
    let packets = packet_bytes(plan, size)?;
    let sum = |bytes: &[u64]| bytes.iter().copied().map(u128::from).sum::<u128>();
    let moved = MovedBytes {
        sent: sum(&outcome.ranks.sent) - packets,
        received: sum(&outcome.ranks.received) - packets,
        packets,
        ..MovedBytes::default()
    };
    Ok(PassedParts {
        halves_of_bytes: fabric.bill_of_bytes(&moved),
        lit_bytes: Some(moved.sent),
    })
}

/// Returns the bytes of messages that use no circuit, on a fabric with circuits.
fn packet_bytes(plan: &Plan, size: Bytes) -> Result<u128, UnitError> {
    let circuits = plan.fabric.circuits();
    let Some((packet, _)) = circuits.and_then(|circuits| circuits.side_network()) else {
        return Ok(0);
    };
    let mut bytes = 0;
    for message in plan.lightpaths() {
        interrupt::check();
        if message.light == packet {
            let (first, count) = (message.transfer.chunk, message.transfer.count);
            let of_message = plan.schedule.collective.range_bytes(size, first, count)?;
            bytes += u128::from(of_message.get());
        }
    }
    Ok(bytes * u128::from(plan.repetition.copies()))
}
