//! Transfers that go over several circuits in one slot, because ranks forward bytes that are still
//! arriving.
//!
//! Bytes flow through such a *chain*. A transfer takes the start-up time (if it begins in the
//! slot), the delays of all circuits so far, and the longest transmission time of a circuit so far.
//! Circuits that belong to the same chain start together.

use super::block::{Message, MessageBlock};
use opticoll_base::units::{Time, UnitError};

/// Hop of a transfer in a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainHop {
    pub(super) transfer: u32,
    /// Index of the message that contains the hop.
    pub(super) place: u32,
    /// True if the transfer begins with this hop.
    pub(super) begins: bool,
}

/// Returns the runs of two or more hops that belong to one transfer.
fn chains(hops: &[ChainHop]) -> impl Iterator<Item = &[ChainHop]> {
    let chains = hops.chunk_by(|one, next| one.transfer == next.transfer);
    chains.filter(|chain| chain.len() > 1)
}

/// Returns the time that messages take in addition to their own bytes because of their chains, as
/// pairs of index and time; an index occurs once for each chain.
///
/// # Errors
/// A time that exceeds 64 bits.
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
            let Message { sending, .. } = block.messages[hop.place as usize];
            delay = delay.plus(block.circuits[hop.place as usize].delay)?;
            longest = longest.max(sending);
            let waits = Time::from_ps(longest.ps() - sending.ps());
            delays.push((hop.place, delay.plus(waits)?));
        }
    }
    Ok(delays)
}

/// Returns pairs of the first message of a set that starts together and a message of that set,
/// sorted; empty if every message starts by itself.
pub(super) fn start_sets(hops: &[ChainHop], messages: usize) -> Vec<(u32, u32)> {
    if chains(hops).next().is_none() {
        return Vec::new();
    }
    let mut roots: Vec<u32> = (0..messages as u32).collect();
    for pair in chains(hops).flat_map(|chain| chain.windows(2)) {
        let [one, other] = [pair[0].place, pair[1].place].map(|place| root(&mut roots, place));
        roots[one.max(other) as usize] = one.min(other);
    }
    let places = 0..messages as u32;
    let mut sets: Vec<(u32, u32)> = places
        .map(|place| (root(&mut roots, place), place))
        .collect();
    sets.sort_unstable();
    sets
}

/// Returns the root of an index in a union-find forest, with path halving.
fn root(roots: &mut [u32], mut place: u32) -> u32 {
    while roots[place as usize] != place {
        roots[place as usize] = roots[roots[place as usize] as usize];
        place = roots[place as usize];
    }
    place
}
