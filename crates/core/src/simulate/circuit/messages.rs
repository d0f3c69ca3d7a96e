//! The messages of a plan, slot by slot.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::trees::Trees;
use crate::fabric::circuits::{Circuits, Message, Sharing};
use crate::fabric::{Hop, Light};
use crate::plan::{Plan, Relay};
use crate::schedule::Transfer;
use crate::simulate::SimulationError;
use crate::units::{Bytes, Rate, Time, UnitError};

/// The hops of each slot, in the plan's order: a transfer by its index, then its relays, numbered on
/// from the last transfer.
pub(super) struct Slots {
    starts: Vec<u32>,
    hops: Vec<u32>,
}

impl Slots {
    /// Those of the transfers and of some of a plan's relays.
    pub(super) fn of(plan: &Plan, relays: &[Relay]) -> Slots {
        let mut starts = vec![0u32; plan.slots() as usize + 1];
        let mut count = |slot: u32| {
            if let Some(count) = starts.get_mut(slot as usize + 1) {
                *count += 1;
            }
        };
        plan.slot.iter().for_each(|&slot| count(slot));
        relays.iter().for_each(|relay| count(relay.slot));
        for slot in 1..starts.len() {
            starts[slot] += starts[slot - 1];
        }
        let mut next = starts.clone();
        let mut hops = vec![0; starts.last().map_or(0, |&end| end as usize)];
        let mut put = |slot: u32, hop: usize| {
            if slot < plan.slots() {
                hops[next[slot as usize] as usize] = hop as u32;
                next[slot as usize] += 1;
            }
        };
        if relays.is_empty() {
            plan.slot
                .iter()
                .zip(0..)
                .for_each(|(&slot, hop)| put(slot, hop));
            return Slots { starts, hops };
        }
        let mut relays = relays.iter().enumerate().peekable();
        for (transfer, &slot) in plan.slot.iter().enumerate() {
            put(slot, transfer);
            while let Some((index, relay)) =
                relays.next_if(|(_, relay)| relay.transfer as usize == transfer)
            {
                put(relay.slot, plan.len() + index);
            }
        }
        Slots { starts, hops }
    }

    pub(super) fn of_slot(&self, slot: u32) -> &[u32] {
        &self.hops[self.range(slot)]
    }

    /// The places of a slot's hops among those of all slots.
    pub(super) fn range(&self, slot: u32) -> Range<usize> {
        let slot = slot as usize;
        self.starts[slot] as usize..self.starts[slot + 1] as usize
    }

    /// The hops of all slots, slot by slot.
    pub(super) fn hops(&self) -> &[u32] {
        &self.hops
    }
}

/// A hop by its number in [`Slots`], and the transfer that it is part of.
pub(super) fn hop(plan: &Plan, index: u32) -> (Hop, u32) {
    let Some(relay) = (index as usize).checked_sub(plan.len()) else {
        let (from, to) = plan.schedule.ends(index as usize);
        let to = match plan.relays.is_empty() {
            true => to,
            false => plan
                .relays_of(index as usize)
                .first()
                .map_or(to, |relay| relay.rank),
        };
        let (light, slot) = (plan.light[index as usize], plan.slot[index as usize]);
        let hop = Hop {
            from,
            to,
            light,
            slot,
        };
        return (hop, index);
    };
    let Relay {
        transfer,
        rank,
        light,
        slot,
    } = plan.relays[relay];
    let next = plan.relays.get(relay + 1);
    let next = next.filter(|next| next.transfer == transfer);
    let to = next.map_or_else(|| plan.schedule.ends(transfer as usize).1, |next| next.rank);
    let hop = Hop {
        from: rank,
        to,
        light,
        slot,
    };
    (hop, transfer)
}

/// The time of some bytes; that computed last is known.
#[inline]
fn transmission(latest: &mut (Bytes, Time), rate: Rate, bytes: Bytes) -> Result<Time, UnitError> {
    if latest.0 != bytes {
        *latest = (bytes, rate.transmission(bytes)?);
    }
    Ok(latest.1)
}

/// What is taken for the bytes of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sizes {
    /// Its own.
    Own,
    /// The most of any rotation; chunks move by so many per rank.
    MostOfRotations(u32),
}

/// Among so few messages the one on a circuit is looked for one by one.
const FEW: usize = 16;

/// The messages of one slot after the other.
pub(super) struct Messages<'a> {
    plan: &'a Plan,
    circuits: &'a dyn Circuits,
    pub(super) trees: &'a Trees,
    size: Bytes,
    sizes: Sizes,
    uniform: Option<Bytes>,
    rate: Rate,
    joined: bool,
    /// The transmission time computed last: most messages are of one size.
    latest: (Bytes, Time),
    of_slot: Vec<Message>,
    /// The place of the message on a circuit. Looked up only.
    places: FxHashMap<(u32, u32, Light), usize>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        circuits: &'a dyn Circuits,
        trees: &'a Trees,
        size: Bytes,
        sizes: Sizes,
    ) -> Messages<'a> {
        Messages {
            plan,
            circuits,
            trees,
            size,
            sizes,
            uniform: plan.schedule.collective.uniform_chunk_bytes(size),
            rate: circuits.rate(),
            joined: circuits.sharing() == Sharing::SameCircuit,
            latest: (Bytes::new(0), Time::ZERO),
            of_slot: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    /// How many hops of a slot are taken at once: all where they may be on one circuit, otherwise so many
    /// that their messages stay in the nearest memory.
    pub(super) fn block(&self) -> usize {
        match self.joined {
            true => usize::MAX,
            false => 64,
        }
    }

    /// The messages that a block of hops makes up.
    pub(super) fn of(&mut self, hops: &[u32]) -> Result<&[Message], SimulationError> {
        self.of_slot.clear();
        if self.joined {
            self.join(hops)?;
        } else {
            // Asking for a transfer checks for interrupts.
            for &index in hops {
                let mut message = self.of_hop(index)?;
                message.sending = transmission(&mut self.latest, self.rate, message.bytes)?;
                self.of_slot.push(message);
            }
        }
        self.circuits.measure(&mut self.of_slot)?;
        Ok(&self.of_slot)
    }

    /// Adds up what goes over the same circuit.
    fn join(&mut self, hops: &[u32]) -> Result<(), UnitError> {
        self.places.clear();
        for &index in hops {
            let message = self.of_hop(index)?;
            let place = self.place(&message.hop, hops.len());
            match self.of_slot.get_mut(place) {
                Some(other) => other.bytes = other.bytes.plus(message.bytes)?,
                None => self.of_slot.push(message),
            }
        }
        for message in &mut self.of_slot {
            message.sending = transmission(&mut self.latest, self.rate, message.bytes)?;
        }
        Ok(())
    }

    /// The message that a transfer is alone.
    pub(super) fn of_transfer(
        &mut self,
        transfer: u32,
        circuits: &impl Circuits,
    ) -> Result<Message, UnitError> {
        let mut message = self.of_hop(transfer)?;
        message.sending = transmission(&mut self.latest, self.rate, message.bytes)?;
        circuits.measure(std::slice::from_mut(&mut message))?;
        Ok(message)
    }

    /// The place of the message on a circuit; behind the last where there is none yet.
    fn place(&mut self, hop: &Hop, hops: usize) -> usize {
        let next = self.of_slot.len();
        if hops <= FEW {
            let mut messages = self.of_slot.iter();
            return messages.position(|one| one.hop == *hop).unwrap_or(next);
        }
        *self
            .places
            .entry((hop.from, hop.to, hop.light))
            .or_insert(next)
    }

    /// What a hop carries; nothing measured yet.
    #[inline(always)]
    fn of_hop(&self, index: u32) -> Result<Message, UnitError> {
        let (hop, transfer, moved) = match self.plan.relays.is_empty() {
            true => {
                let moved = self.plan.schedule.transfer(index as usize);
                let hop = Hop {
                    from: moved.source,
                    to: moved.destination,
                    light: self.plan.light[index as usize],
                    slot: self.plan.slot[index as usize],
                };
                (hop, index, moved)
            }
            false => {
                let (hop, transfer) = hop(self.plan, index);
                (
                    hop,
                    transfer,
                    self.plan.schedule.transfer(transfer as usize),
                )
            }
        };
        let leader = self.trees.leader(index);
        let reaches = match leader == index {
            true => hop.to,
            false => self.plan.schedule.ends(leader as usize).1,
        };
        Ok(Message {
            hop: Hop { to: reaches, ..hop },
            leads: leader == index,
            ..Message::new(hop, transfer, self.bytes(moved)?)
        })
    }

    #[inline]
    fn bytes(&self, Transfer { chunk, count, .. }: Transfer) -> Result<Bytes, UnitError> {
        let collective = self.plan.schedule.collective;
        match (self.uniform, self.sizes) {
            (Some(bytes), _) if count == 1 => Ok(bytes),
            (_, Sizes::Own) => collective.range_bytes(self.size, chunk, count),
            (_, Sizes::MostOfRotations(step)) => {
                collective.most_range_bytes(self.size, chunk, count, step)
            }
        }
    }
}
