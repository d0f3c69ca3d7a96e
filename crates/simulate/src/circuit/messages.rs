//! The messages of a plan, slot by slot.

use super::beside;
use super::block::{Message, MessageBlock};
use super::chains::{self, ChainHop};
use super::slots::hop;
use super::trees;
use crate::SimulationError;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::{Circuits, LightSharing};
use opticoll_fabric::fabric::{Hop, Light, Transmission};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Transfer;
use rustc_hash::FxHashMap;

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
pub(super) struct SlotMessages<'a> {
    plan: &'a Plan,
    circuits: &'a dyn Circuits,
    sharing: LightSharing,
    size: Bytes,
    sizes: Sizes,
    uniform: Option<Bytes>,
    chunks: u32,
    transmission: Transmission,
    is_degraded: bool,
    /// The transmission time computed last: most messages are of one size.
    latest: Option<(Bytes, Time)>,
    block: MessageBlock,
    /// The light of messages beside the circuits, and what their bytes take.
    beside: Option<(Light, Transmission)>,
    /// Whether the messages of a rank beside the circuits follow one another; otherwise those of a slot share its port.
    one_by_one: bool,
    /// The hops of the slot, where transfers may go over several circuits in it.
    chained: Option<Vec<ChainHop>>,
    /// The place of the message on a circuit, by its ends and its light.
    places: FxHashMap<(u32, u32, Light), u32>,
}

impl<'a> SlotMessages<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        circuits: &'a dyn Circuits,
        size: Bytes,
        sizes: Sizes,
    ) -> SlotMessages<'a> {
        SlotMessages {
            plan,
            circuits,
            sharing: circuits.sharing(),
            size,
            sizes,
            uniform: plan.schedule.collective.uniform_chunk_bytes(size),
            chunks: plan.schedule.collective.chunks(),
            transmission: circuits.transmission(),
            is_degraded: circuits.is_degraded(),
            latest: None,
            block: MessageBlock::default(),
            beside: circuits.side_network(),
            one_by_one: false,
            chained: (circuits.cuts_through() && !plan.relays.is_empty()).then(Vec::new),
            places: FxHashMap::default(),
        }
    }

    /// Lets the messages of a rank beside the circuits follow one another.
    pub(super) fn go_one_by_one(&mut self) {
        self.one_by_one = true;
    }

    fn is_beside(&self, light: Light) -> bool {
        self.beside.is_some_and(|(beside, _)| beside == light)
    }

    /// The messages that hops of one slot make up.
    pub(super) fn of(&mut self, hops: &[u32]) -> Result<&MessageBlock, SimulationError> {
        self.block.hops.clear();
        self.block.messages.clear();
        self.block.circuits.clear();
        self.block.joined.clear();
        self.join(hops)?;
        let MessageBlock {
            hops,
            messages,
            circuits,
            ..
        } = &mut self.block;
        crate::measure(self.circuits, hops, circuits, |hop| messages[hop].transfer)?;
        if let Some(beside) = self.beside.filter(|_| !self.one_by_one) {
            beside::share(beside, &mut self.block)?;
        }
        let startup = self.circuits.startup();
        let delays = match &self.chained {
            Some(chained) => chains::delays(chained, startup, &self.block)?,
            None => Vec::new(),
        };
        self.start_up(startup)?;
        for (place, delay) in delays {
            let own = &mut self.block.circuits[place as usize].delay;
            *own = delay.max(*own);
        }
        if let LightSharing::Tree { light } = self.sharing {
            trees::join(self.plan, light, &mut self.block);
        }
        Ok(&self.block)
    }

    /// Adds up what goes over the same circuit.
    fn join(&mut self, hops: &[u32]) -> Result<(), SimulationError> {
        self.places.clear();
        self.chained.iter_mut().for_each(Vec::clear);
        for &index in hops {
            let (hop, mut message) = self.of_hop(index)?;
            let place = self.place(&hop, hops.len());
            if let Some(chained) = &mut self.chained {
                chained.push(ChainHop {
                    transfer: message.transfer,
                    place: place as u32,
                    begins: message.begins
                        && self.beside.is_none_or(|(beside, _)| beside != hop.light),
                });
            }
            match self.block.messages.get_mut(place) {
                Some(other) => {
                    other.bytes = other.bytes.plus(message.bytes)?;
                    self.block.joined.push((place as u32, message));
                }
                None => {
                    message.leader = place as u32;
                    self.block.hops.push(hop);
                    self.block.messages.push(message);
                }
            }
        }
        for (hop, message) in self.block.hops.iter().zip(&mut self.block.messages) {
            message.sending = match self.beside {
                Some((beside, transmission)) if beside == hop.light => {
                    transmission.time(message.bytes)?
                }
                _ if self.is_degraded => {
                    let own = self.circuits.transmission_of(hop);
                    own.time(message.bytes)?
                }
                _ => time(&mut self.latest, self.transmission, message.bytes)?,
            };
        }
        self.block.joined.sort_by_key(|(place, _)| *place);
        if let Some(chained) = &self.chained {
            self.block.together = chains::together(chained, self.block.messages.len());
        }
        Ok(())
    }

    /// Adds what a message takes once to its first circuit.
    fn start_up(&mut self, startup: Time) -> Result<(), UnitError> {
        if startup == Time::ZERO {
            return Ok(());
        }
        for place in 0..self.block.messages.len() {
            let is_beside = self.is_beside(self.block.hops[place].light);
            if !is_beside && self.block.parts_of(place as u32).any(|part| part.begins) {
                let delay = &mut self.block.circuits[place].delay;
                *delay = delay.plus(startup)?;
            }
        }
        Ok(())
    }

    /// The place of the message on a circuit; behind the last where there is none yet.
    fn place(&mut self, hop: &Hop, hops: usize) -> usize {
        let next = self.block.hops.len();
        if !self.circuits.has_channel(hop.light) {
            return next;
        }
        if hops <= FEW {
            let mut before = self.block.hops.iter();
            return before.position(|one| one == hop).unwrap_or(next);
        }
        let circuit = (hop.from, hop.to, hop.light);
        *self.places.entry(circuit).or_insert(next as u32) as usize
    }

    /// What a hop carries, alone so far. Asking for a transfer checks for interrupts.
    #[inline(always)]
    fn of_hop(&self, index: u32) -> Result<(Hop, Message), SimulationError> {
        let plan = self.plan;
        let (hop, transfer, moved, arrives) = match plan.relays.is_empty() {
            true => {
                let moved = plan.schedule.transfer(index as usize);
                let hop = Hop {
                    from: moved.source,
                    to: moved.destination,
                    light: plan.light[index as usize],
                    slot: plan.slot[index as usize],
                };
                (hop, index, moved, true)
            }
            false => {
                let (hop, transfer) = hop(plan, index);
                let moved = plan.schedule.transfer(transfer as usize);
                (hop, transfer, moved, hop.to == moved.destination)
            }
        };
        let Transfer { chunk, count, .. } = moved;
        if chunk.checked_add(count).is_none_or(|end| end > self.chunks) {
            return Err(crate::no_chunks(transfer as usize));
        }
        let message = Message {
            transfer,
            leader: 0,
            bytes: self.bytes(chunk, count)?,
            sending: Time::ZERO,
            begins: transfer == index,
            arrives,
        };
        Ok((hop, message))
    }

    #[inline(always)]
    fn bytes(&self, chunk: u32, count: u32) -> Result<Bytes, UnitError> {
        let collective = &self.plan.schedule.collective;
        match (self.uniform, self.sizes) {
            (Some(bytes), _) if count == 1 => Ok(bytes),
            (_, Sizes::Own) => collective.range_bytes(self.size, chunk, count),
            (_, Sizes::MostOfRotations(step)) => {
                collective.most_range_bytes(self.size, chunk, count, step)
            }
        }
    }
}

/// The time of some bytes; that computed last is known.
#[inline]
fn time(
    latest: &mut Option<(Bytes, Time)>,
    transmission: Transmission,
    bytes: Bytes,
) -> Result<Time, UnitError> {
    match *latest {
        Some((known, time)) if known == bytes => Ok(time),
        _ => {
            let time = transmission.time(bytes)?;
            *latest = Some((bytes, time));
            Ok(time)
        }
    }
}
