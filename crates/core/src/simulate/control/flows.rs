//! From a plan to flows: what one transmitter sends to one receiver in a slot, and what it needs.
//!
//! Hops of one slot over the same circuit are one flow, wherever their transfers come from and go on to.
//! A transfer sends what its source held when its step began. So a flow needs, of each transfer that
//! begins with it, all that arrived at its source, in earlier steps, of the chunks carried; and of each
//! that is relayed there, the hop before. What flows of one rank need for the same chunks in one step is
//! kept once, as a join.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::fabric::{Circuits, Hop};
use crate::family::wss_grid::TunedLight;
use crate::interrupt;
use crate::plan::Plan;
use crate::simulate::{self, SimulationError};
use crate::units::Bytes;

/// What one transmitter sends to one receiver in a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransceiverFlow {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) light: TunedLight,
    pub(super) slot: u32,
    pub(super) bytes: Bytes,
    /// The first of its transfers.
    pub(super) transfer: u32,
    /// Whether its transmitter uses the same circuit in the next slot.
    pub(super) keeps: bool,
}

impl TransceiverFlow {
    /// The transceiver that sends, 2 rank + plane.
    pub(super) fn transmitter(&self) -> u32 {
        2 * self.source + u32::from(self.light.plane)
    }

    /// The transceiver that receives.
    pub(super) fn receiver(&self) -> u32 {
        2 * self.destination + u32::from(self.light.plane)
    }
}

/// Lists of numbers, one list for each number from 0 on, in one column.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Lists {
    /// The lists of so many, from pairs of a list and a member of it; members keep their order.
    pub(super) fn new(count: usize, pairs: &[(u32, u32)]) -> Lists {
        let mut starts = vec![0; count + 1];
        for &(list, _) in pairs {
            starts[list as usize + 1] += 1;
        }
        for list in 0..count {
            starts[list + 1] += starts[list];
        }
        let mut next = starts.clone();
        let mut members = vec![0; pairs.len()];
        for &(list, member) in pairs {
            let place = &mut next[list as usize];
            members[*place as usize] = member;
            *place += 1;
        }
        Lists { starts, members }
    }

    /// A list.
    pub(super) fn of(&self, list: u32) -> &[u32] {
        let list = list as usize;
        &self.members[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}

/// The join of what needs no arrival.
const NOTHING: u32 = u32::MAX;

/// What becomes lists when all is known.
#[derive(Default)]
struct FlowPairs {
    /// Flow and join that its arrival is part of.
    feeds: Vec<(u32, u32)>,
    /// Join and flow that needs it.
    waiters: Vec<(u32, u32)>,
    /// By join, the flow that came last among those that need it.
    last_waiter: Vec<u32>,
}

/// The flows of a plan.
#[derive(Debug, Clone, Default)]
pub(super) struct TransceiverFlows {
    pub(super) flows: Vec<TransceiverFlow>,
    /// By transmitter, in the order of slots.
    pub(super) of_transmitter: Vec<Vec<u32>>,
    /// By join, arrivals that are needed together: how many.
    pub(super) join_needs: Vec<u32>,
    /// By join: the flows that need it.
    pub(super) waiters: Lists,
    /// By flow: the joins that its arrival is part of.
    pub(super) feeds: Lists,
    /// By flow: how many joins it needs.
    pub(super) needs: Vec<u32>,
}

impl TransceiverFlows {
    /// The flows of a plan whose slots and relays are in order.
    pub(super) fn of(
        plan: &Plan,
        size: Bytes,
        circuits: &dyn Circuits,
    ) -> Result<TransceiverFlows, SimulationError> {
        let ranks = plan.fabric.ranks() as usize;
        let mut flows = TransceiverFlows {
            of_transmitter: vec![Vec::new(); 2 * ranks],
            ..TransceiverFlows::default()
        };
        let mut held: Vec<Segments> = vec![Segments::default(); ranks];
        let mut pairs = FlowPairs::default();
        for step in 0..plan.schedule.steps() {
            interrupt::check();
            let transfers = plan.schedule.step(step);
            let hops: Vec<(Hop, usize)> = transfers
                .clone()
                .flat_map(|transfer| plan.hops_of(transfer).map(move |hop| (hop, transfer)))
                .collect();
            let alone: Vec<Hop> = hops.iter().map(|&(hop, _)| hop).collect();
            simulate::measure(circuits, &alone, &mut Vec::new(), |hop| hops[hop].1 as u32)?;
            let flow_of = flows.add(plan, size, &hops)?;
            let (mut joins, mut relayed) = (FxHashMap::default(), FxHashMap::default());
            for (place, &(_, transfer)) in hops.iter().enumerate() {
                interrupt::check();
                let join = match place.checked_sub(1) {
                    Some(before) if hops[before].1 == transfer => {
                        let before = flow_of[before];
                        let join = relayed.entry(before);
                        *join.or_insert_with(|| flows.join(&[before], &mut pairs))
                    }
                    _ => flows.data_of(plan, transfer, &held, &mut joins, &mut pairs),
                };
                flows.wait(flow_of[place], join, &mut pairs);
            }
            // What a step brings counts from its end.
            for (place, &(_, transfer)) in hops.iter().enumerate() {
                if hops.get(place + 1).is_none_or(|next| next.1 != transfer) {
                    let moved = plan.schedule.transfer(transfer);
                    let chunks = moved.chunk..moved.chunk + moved.count;
                    held[moved.destination as usize].insert(chunks, flow_of[place]);
                }
            }
        }
        flows.waiters = Lists::new(flows.join_needs.len(), &pairs.waiters);
        flows.feeds = Lists::new(flows.flows.len(), &pairs.feeds);
        flows.keep_circuits();
        Ok(flows)
    }

    /// Adds the flows of hops, each with the transfer that it belongs to, and all of one circuit in one
    /// slot as one flow; returns the flow of every hop.
    fn add(
        &mut self,
        plan: &Plan,
        size: Bytes,
        hops: &[(Hop, usize)],
    ) -> Result<Vec<u32>, SimulationError> {
        let collective = plan.schedule.collective;
        let mut order: Vec<usize> = (0..hops.len()).collect();
        order.sort_by_key(|&place| hops[place].0);
        let mut flow_of = vec![0; hops.len()];
        for together in order.chunk_by(|&one, &other| hops[one].0 == hops[other].0) {
            interrupt::check();
            let (hop, transfer) = hops[together[0]];
            let mut bytes = Bytes::new(0);
            for &place in together {
                let moved = plan.schedule.transfer(hops[place].1);
                let end = moved.chunk.checked_add(moved.count);
                if end.is_none_or(|end| end > collective.chunks()) {
                    return Err(simulate::no_chunks(hops[place].1));
                }
                bytes = bytes.plus(collective.range_bytes(size, moved.chunk, moved.count)?)?;
                flow_of[place] = self.flows.len() as u32;
            }
            self.flows.push(TransceiverFlow {
                source: hop.from,
                destination: hop.to,
                light: TunedLight::from(hop.light),
                slot: hop.slot,
                bytes,
                transfer: transfer as u32,
                keeps: false,
            });
            self.needs.push(0);
        }
        Ok(flow_of)
    }

    /// The join of what a transfer needs at its source; `joins` has those of its step.
    fn data_of(
        &mut self,
        plan: &Plan,
        transfer: usize,
        held: &[Segments],
        joins: &mut FxHashMap<(u32, u32, u32), u32>,
        pairs: &mut FlowPairs,
    ) -> u32 {
        let moved = plan.schedule.transfer(transfer);
        if held[moved.source as usize].segments.is_empty() {
            return NOTHING;
        }
        let key = (moved.source, moved.chunk, moved.count);
        if let Some(&join) = joins.get(&key) {
            return join;
        }
        let needed = held[moved.source as usize].find(moved.chunk..moved.chunk + moved.count);
        let join = self.join(&needed, pairs);
        joins.insert(key, join);
        join
    }

    fn join(&mut self, needed: &[u32], pairs: &mut FlowPairs) -> u32 {
        if needed.is_empty() {
            return NOTHING;
        }
        let join = self.join_needs.len() as u32;
        pairs.feeds.extend(needed.iter().map(|&flow| (flow, join)));
        self.join_needs.push(needed.len() as u32);
        pairs.last_waiter.push(u32::MAX);
        join
    }

    fn wait(&mut self, flow: u32, join: u32, pairs: &mut FlowPairs) {
        if join != NOTHING && pairs.last_waiter[join as usize] != flow {
            pairs.last_waiter[join as usize] = flow;
            pairs.waiters.push((join, flow));
            self.needs[flow as usize] += 1;
        }
    }

    /// Puts the flows of each transmitter in order, and marks those whose circuit the next one uses.
    pub(super) fn keep_circuits(&mut self) {
        for (index, flow) in self.flows.iter().enumerate() {
            interrupt::check();
            self.of_transmitter[flow.transmitter() as usize].push(index as u32);
        }
        for own in &mut self.of_transmitter {
            own.sort_by_key(|&flow| self.flows[flow as usize].slot);
            for pair in own.windows(2) {
                let (one, next) = (self.flows[pair[0] as usize], self.flows[pair[1] as usize]);
                self.flows[pair[0] as usize].keeps = one.slot + 1 == next.slot
                    && one.destination == next.destination
                    && one.light.wavelength == next.light.wavelength;
            }
        }
    }
}

/// What arrived at a rank, by chunk: ranges of chunks that do not overlap, each with its flows.
#[derive(Debug, Clone, Default)]
struct Segments {
    /// By first chunk: the chunk after the last, and the flows.
    segments: BTreeMap<u32, (u32, Vec<u32>)>,
}

impl Segments {
    /// All flows that brought some of the chunks, in order.
    fn find(&self, chunks: Range<u32>) -> Vec<u32> {
        let before = self.segments.range(..chunks.start).next_back();
        let before = before.filter(|(_, (end, _))| *end > chunks.start);
        let inside = self.segments.range(chunks);
        let mut found: Vec<u32> = before
            .into_iter()
            .chain(inside)
            .flat_map(|(_, (_, flows))| flows.iter().copied())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Adds a flow that brings chunks.
    fn insert(&mut self, chunks: Range<u32>, flow: u32) {
        let before = self.segments.range(..chunks.end).next_back();
        if before.is_none_or(|(_, (end, _))| *end <= chunks.start) {
            self.segments.insert(chunks.start, (chunks.end, vec![flow]));
            return;
        }
        self.split(chunks.start);
        self.split(chunks.end);
        let mut next = chunks.start;
        let mut gaps = Vec::new();
        for (&start, (end, flows)) in self.segments.range_mut(chunks.clone()) {
            if next < start {
                gaps.push(next..start);
            }
            flows.push(flow);
            next = *end;
        }
        if next < chunks.end {
            gaps.push(next..chunks.end);
        }
        for gap in gaps {
            self.segments.insert(gap.start, (gap.end, vec![flow]));
        }
    }

    fn split(&mut self, at: u32) {
        let Some((_, (end, flows))) = self.segments.range_mut(..at).next_back() else {
            return;
        };
        if *end > at {
            let rest = (*end, flows.clone());
            *end = at;
            self.segments.insert(at, rest);
        }
    }
}
