//! Messages of a plan, formed slot by slot.

use super::block::{Message, MessageBlock};
use super::chains::{self, ChainHop};
use super::side_network;
use super::slots::hop;
use super::trees;
use crate::SimulationError;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::{Circuits, LightSharing};
use opticoll_fabric::fabric::{Hop, Light, Transmission};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Transfer;
use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Copy)]
pub(super) enum Sizes {
    /// Bytes of the transfer's own chunks.
    Exact,
    /// Maximum number of bytes of any rotation of the transfer. A rotation by one rank adds the
    /// given number to the indices of the transfer's chunks.
    MaxOfRotations(u32),
}

/// Maximum number of hops of a slot for which linear search is faster than a hash table.
const MAX_HOPS_OF_LINEAR_SEARCH: usize = 16;

/// Generator of messages, which forms the messages of one slot at a time.
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
    /// Last computed transmission time, with its number of bytes.
    latest: Option<(Bytes, Time)>,
    block: MessageBlock,
    /// Light and transmission of the side network (see `side_network`), if the fabric has one.
    side_network: Option<(Light, Transmission)>,
    /// True if the messages of a rank over the side network are sent one after another. If false,
    /// the messages of a slot share the rank's port.
    one_by_one: bool,
    /// Hops of the current slot; `None` if no transfer uses several circuits in one slot.
    chained: Option<Vec<ChainHop>>,
    /// Index of the message on each circuit; the key is source, destination and light.
    places: FxHashMap<(u32, u32, Light, u32), u32>,
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
            side_network: circuits.side_network(),
            one_by_one: false,
            chained: (circuits.cuts_through() && !plan.relays.is_empty()).then(Vec::new),
            places: FxHashMap::default(),
        }
    }

    pub(super) fn send_one_by_one(&mut self) {
        self.one_by_one = true;
    }

    fn uses_side_network(&self, light: Light) -> bool {
        self.side_network.is_some_and(|(other, _)| other == light)
    }

    /// Returns the messages that the hops of one slot form. `hops` are indices of hops, as in
    /// [`hop`].
    ///
    /// # Errors
    /// Returns an error for a hop without a circuit, for chunks that do not exist, or for a time or
    /// size that exceeds 64 bits.
    pub(super) fn block(&mut self, hops: &[u32]) -> Result<&MessageBlock, SimulationError> {
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
        let routes = &self.plan.routes;
        crate::measure_circuits(self.circuits, hops, routes, circuits, |hop| {
            messages[hop].transfer
        })?;
        if let Some(network) = self.side_network.filter(|_| !self.one_by_one) {
            side_network::share(network, &mut self.block)?;
        }
        let startup = self.circuits.startup();
        let delays = match &self.chained {
            Some(chained) => chains::delays(chained, startup, &self.block)?,
            None => Vec::new(),
        };
        self.add_startup(startup)?;
        for (message_index, delay) in delays {
            let known = &mut self.block.circuits[message_index as usize].delay;
            *known = delay.max(*known);
        }
        if let LightSharing::Tree { light, branches } = self.sharing {
            let packet = self.side_network.map(|(packet, _)| packet);
            trees::join(self.plan, (light, branches), packet, &mut self.block);
        }
        Ok(&self.block)
    }

    /// Forms the messages: hops over the same circuit become one message.
    fn join(&mut self, hops: &[u32]) -> Result<(), SimulationError> {
        self.places.clear();
        self.chained.iter_mut().for_each(Vec::clear);
        for &index in hops {
            let (hop, mut message) = self.read_hop(index)?;
            let message_index = self.message_index(&hop, hops.len());
            if let Some(chained) = &mut self.chained {
                chained.push(ChainHop {
                    transfer: message.transfer,
                    message: message_index as u32,
                    begins: message.begins
                        && self
                            .side_network
                            .is_none_or(|(other, _)| other != hop.light),
                });
            }
            match self.block.messages.get_mut(message_index) {
                Some(other) => {
                    other.bytes = other.bytes.plus(message.bytes)?;
                    self.block.joined.push((message_index as u32, message));
                }
                None => {
                    message.leader = message_index as u32;
                    self.block.hops.push(hop);
                    self.block.messages.push(message);
                }
            }
        }
        for (hop, message) in self.block.hops.iter().zip(&mut self.block.messages) {
            message.sending = match self.side_network {
                Some((light, transmission)) if light == hop.light => {
                    transmission.time(message.bytes)?
                }
                _ if self.is_degraded => {
                    let transmission = self.circuits.transmission_of(hop, &self.plan.routes);
                    transmission.time(message.bytes)?
                }
                _ => time(&mut self.latest, self.transmission, message.bytes)?,
            };
        }
        self.block
            .joined
            .sort_by_key(|(message_index, _)| *message_index);
        if let Some(chained) = &self.chained {
            self.block.start_sets = chains::start_sets(chained, self.block.messages.len());
        }
        Ok(())
    }

    /// Adds the start-up time to the delay of every message that contains the first hop of a
    /// transfer. Messages over the side network have no start-up time.
    fn add_startup(&mut self, startup: Time) -> Result<(), UnitError> {
        if startup == Time::ZERO {
            return Ok(());
        }
        for message_index in 0..self.block.messages.len() {
            let in_side_network = self.uses_side_network(self.block.hops[message_index].light);
            if !in_side_network
                && self
                    .block
                    .parts_of(message_index as u32)
                    .any(|part| part.begins)
            {
                let delay = &mut self.block.circuits[message_index].delay;
                *delay = delay.plus(startup)?;
            }
        }
        Ok(())
    }

    /// Returns the index of the message on the circuit of `hop`, or the next free index if there is
    /// no such message. `hops` is the number of hops of the slot.
    fn message_index(&mut self, hop: &Hop, hops: usize) -> usize {
        let next = self.block.hops.len();
        if !self.circuits.has_channel(hop.light) {
            return next;
        }
        if hops <= MAX_HOPS_OF_LINEAR_SEARCH {
            let mut known = self.block.hops.iter();
            return known.position(|other| other == hop).unwrap_or(next);
        }
        let circuit = (hop.from, hop.to, hop.light, hop.route);
        *self.places.entry(circuit).or_insert(next as u32) as usize
    }

    /// Returns the hop with the given index, and its bytes as a message. `Schedule::transfer`,
    /// which this function calls, checks for interrupts.
    #[inline(always)]
    fn read_hop(&self, index: u32) -> Result<(Hop, Message), SimulationError> {
        let plan = self.plan;
        let (hop, transfer, moved, arrives) = match plan.relays.is_empty() {
            true => {
                let moved = plan.schedule.transfer(index as usize);
                let hop = Hop {
                    from: moved.source,
                    to: moved.destination,
                    light: plan.light[index as usize],
                    slot: plan.slot[index as usize],
                    route: plan.routes.number(index as usize),
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
            return Err(crate::missing_chunks(transfer as usize));
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
            (_, Sizes::Exact) => collective.range_bytes(self.size, chunk, count),
            (_, Sizes::MaxOfRotations(step)) => {
                collective.max_range_bytes(self.size, chunk, count, step)
            }
        }
    }
}

/// Returns the transmission time of `bytes`; `latest` caches the last result.
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
