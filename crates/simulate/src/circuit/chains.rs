//! Transfers that use several circuits in one slot, because relays forward bytes that are still
//! arriving.
//!
//! Consecutive hops of a transfer in one slot form a *chain*, and their circuits start together.
//! The last byte has passed a circuit of the chain after the sum of three times: the start-up time,
//! if the transfer begins in the slot; the delays of all circuits up to this circuit; and the
//! longest transmission time of these circuits.

use super::block::{Message, MessageBlock};
use opticoll_base::units::{Time, UnitError};

/// Hop of a transfer that may be part of a chain (consecutive hops of the transfer in one slot).
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainHop {
    pub(super) transfer: u32,
    /// Index in the block of the message that contains the hop.
    pub(super) message: u32,
    /// True if this hop is the first hop of the transfer.
    pub(super) begins: bool,
}

/// Returns the chains: the runs of two or more consecutive hops of one transfer.
fn chains(hops: &[ChainHop]) -> impl Iterator<Item = &[ChainHop]> {
    let chains = hops.chunk_by(|one, next| one.transfer == next.transfer);
    chains.filter(|chain| chain.len() > 1)
}

/// Returns one pair of message index and delay for each hop of a chain. A message with hops of
/// several chains occurs several times.
pub(super) fn delays(
    hops: &[ChainHop],
    startup: Time,
    block: &MessageBlock,
) -> Result<Vec<(u32, Time)>, UnitError> {
    let mut delays = Vec::new();
    for chain in chains(hops) {
        let mut delay = match chain[0].begins {
            true => startup,
            false => Time::ZERO,
        };
        let mut longest = Time::ZERO;
        for hop in chain {
            let Message { sending, .. } = block.messages[hop.message as usize];
            delay = delay.plus(block.circuits[hop.message as usize].delay)?;
            longest = longest.max(sending);
            let waits = Time::from_ps(longest.ps() - sending.ps());
            delays.push((hop.message, delay.plus(waits)?));
        }
    }
    Ok(delays)
}

/// Returns the sets of messages that start together, as in [`MessageBlock::start_sets`].
pub(super) fn start_sets(hops: &[ChainHop], messages: usize) -> Vec<(u32, u32)> {
    if chains(hops).next().is_none() {
        return Vec::new();
    }
    let mut roots: Vec<u32> = (0..messages as u32).collect();
    for pair in chains(hops).flat_map(|chain| chain.windows(2)) {
        let [one, other] = [pair[0].message, pair[1].message].map(|index| root(&mut roots, index));
        roots[one.max(other) as usize] = one.min(other);
    }
    let places = 0..messages as u32;
    let mut sets: Vec<(u32, u32)> = places
        .map(|index| (root(&mut roots, index), index))
        .collect();
    sets.sort_unstable();
    sets
}

/// Returns the root of an index in a union-find forest, with path halving.
fn root(roots: &mut [u32], mut index: u32) -> u32 {
    while roots[index as usize] != index {
        roots[index as usize] = roots[roots[index as usize] as usize];
        index = roots[index as usize];
    }
    index
}
