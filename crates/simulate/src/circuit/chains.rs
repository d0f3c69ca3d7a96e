//! Transfers that go over several circuits in one slot, where ranks send on what still arrives.
//!
//! Bytes flow through such a *chain*: a transfer takes the start-up where it begins in the slot, the delays of all circuits
//! so far, and the time of the most bytes that one of them carries in the slot. Circuits that chains join start together.

use super::block::{Message, MessageBlock};
use opticoll_base::units::{Time, UnitError};

/// A hop of a transfer in a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainHop {
    pub(super) transfer: u32,
    /// The message that it is part of.
    pub(super) place: u32,
    /// Whether the transfer begins here.
    pub(super) begins: bool,
}

/// The chains of hops in the order of their transfers.
fn chains(hops: &[ChainHop]) -> impl Iterator<Item = &[ChainHop]> {
    let chains = hops.chunk_by(|one, next| one.transfer == next.transfer);
    chains.filter(|chain| chain.len() > 1)
}

/// What messages take beside their own bytes, for the chains that they are on: by place, several times.
///
/// # Errors
/// A time beyond 64 bits.
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

/// Each message behind the first of those that start together with it, in order; empty where each starts by itself.
pub(super) fn together(hops: &[ChainHop], messages: usize) -> Vec<(u32, u32)> {
    if chains(hops).next().is_none() {
        return Vec::new();
    }
    let mut roots: Vec<u32> = (0..messages as u32).collect();
    for pair in chains(hops).flat_map(|chain| chain.windows(2)) {
        let [one, other] = [pair[0].place, pair[1].place].map(|place| root(&mut roots, place));
        roots[one.max(other) as usize] = one.min(other);
    }
    let places = 0..messages as u32;
    let mut together: Vec<(u32, u32)> = places
        .map(|place| (root(&mut roots, place), place))
        .collect();
    together.sort_unstable();
    together
}

/// The root of a place, with shorter ways to it.
fn root(roots: &mut [u32], mut place: u32) -> u32 {
    while roots[place as usize] != place {
        roots[place as usize] = roots[roots[place as usize] as usize];
        place = roots[place as usize];
    }
    place
}
