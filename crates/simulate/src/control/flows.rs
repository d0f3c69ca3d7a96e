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

use crate::SimulationError;
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::{Circuits, Hop};
use opticoll_fabric::family::wss_grid::TunedLight;
use opticoll_plan::plan::Plan;

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

/// A chunk that more flows brought has a join of its own.
const FEW: u32 = 16;

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
        let mut held = Held::of(plan);
        let mut pairs = FlowPairs::default();
        for step in 0..plan.schedule.steps() {
            interrupt::check();
            let transfers = plan.schedule.step(step);
            let mut hops: Vec<(Hop, usize)> = Vec::with_capacity(transfers.len());
            for transfer in transfers {
                hops.extend(plan.hops_of(transfer).map(|hop| (hop, transfer)));
            }
            let alone: Vec<Hop> = hops.iter().map(|&(hop, _)| hop).collect();
            crate::measure(circuits, &alone, &mut Vec::new(), |hop| hops[hop].1 as u32)?;
            let mut order: Vec<usize> = (0..hops.len()).collect();
            order.sort_by_key(|&place| hops[place].0);
            let flow_of = flows.add(plan, size, &hops, &order)?;
            flows.join_step(plan, &hops, &order, &flow_of, &held, &mut pairs);
            // What a step brings counts from its end.
            for (place, &(_, transfer)) in hops.iter().enumerate() {
                if hops.get(place + 1).is_none_or(|next| next.1 != transfer) {
                    let moved = plan.schedule.transfer(transfer);
                    let chunks = moved.chunk..moved.chunk + moved.count;
                    held.insert(moved.destination, chunks, flow_of[place]);
                }
            }
        }
        flows.waiters = Lists::new(flows.join_needs.len(), &pairs.waiters);
        flows.feeds = Lists::new(flows.flows.len(), &pairs.feeds);
        flows.keep_circuits();
        Ok(flows)
    }

    /// Adds the flows of hops, each with the transfer that it belongs to, and all of one circuit in one
    /// slot as one flow; returns the flow of every hop. `order` sorts the hops.
    fn add(
        &mut self,
        plan: &Plan,
        size: Bytes,
        hops: &[(Hop, usize)],
        order: &[usize],
    ) -> Result<Vec<u32>, SimulationError> {
        let collective = plan.schedule.collective;
        let mut flow_of = vec![0; hops.len()];
        for together in order.chunk_by(|&one, &other| hops[one].0 == hops[other].0) {
            interrupt::check();
            let (hop, transfer) = hops[together[0]];
            let mut bytes = Bytes::new(0);
            for &place in together {
                let moved = plan.schedule.transfer(hops[place].1);
                let end = moved.chunk.checked_add(moved.count);
                if end.is_none_or(|end| end > collective.chunks()) {
                    return Err(crate::no_chunks(hops[place].1));
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

    /// Joins what every flow of a step needs: one join for all chunks that few flows brought, and one for every other chunk. Flows of a rank
    /// that need the same share the join.
    fn join_step(
        &mut self,
        plan: &Plan,
        hops: &[(Hop, usize)],
        order: &[usize],
        flow_of: &[u32],
        held: &Held,
        pairs: &mut FlowPairs,
    ) {
        let mut of_chunks: FxHashMap<u32, u32> = FxHashMap::default();
        let mut needed = Vec::new();
        let mut before: (Vec<u32>, Option<u32>) = (Vec::new(), None);
        for together in order.chunk_by(|&one, &other| flow_of[one] == flow_of[other]) {
            interrupt::check();
            let flow = flow_of[together[0]];
            needed.clear();
            for &place in together {
                let (hop, transfer) = hops[place];
                if place > 0 && hops[place - 1].1 == transfer {
                    needed.push(flow_of[place - 1]);
                    continue;
                }
                let moved = plan.schedule.transfer(transfer);
                let chunks = moved.chunk..moved.chunk + moved.count;
                held.each_last(hop.from, chunks, |last| {
                    if held.arrivals[last as usize].number <= FEW {
                        needed.extend(held.flows(last));
                        return;
                    }
                    let join = *of_chunks.entry(last).or_insert_with(|| {
                        let several: Vec<u32> = held.flows(last).collect();
                        self.join(&several, pairs)
                    });
                    self.wait(flow, join, pairs);
                });
            }
            needed.sort_unstable();
            needed.dedup();
            if needed.is_empty() {
                continue;
            }
            let join = match &before {
                (same, Some(join)) if *same == needed => *join,
                _ => self.join(&needed, pairs),
            };
            self.wait(flow, join, pairs);
            before.0.clone_from(&needed);
            before.1 = Some(join);
        }
    }

    fn join(&mut self, needed: &[u32], pairs: &mut FlowPairs) -> u32 {
        let join = self.join_needs.len() as u32;
        pairs.feeds.extend(needed.iter().map(|&flow| (flow, join)));
        self.join_needs.push(needed.len() as u32);
        pairs.last_waiter.push(u32::MAX);
        join
    }

    fn wait(&mut self, flow: u32, join: u32, pairs: &mut FlowPairs) {
        if pairs.last_waiter[join as usize] != flow {
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

/// No arrival.
const NONE: u32 = u32::MAX;

/// What arrived where.
struct Held {
    arrivals: Vec<Arrival>,
    last: LastArrivals,
}

/// Some chunks at a rank.
struct Arrival {
    flow: u32,
    /// The arrival of the same chunks before it.
    before: u32,
    /// How many there are with this one.
    number: u32,
}

/// Chunks whose last arrivals are kept side by side.
const PAGE: u32 = 16;

/// Where transfers carry more chunks on average, ranges of chunks are kept.
const MOST_ALONE: u64 = 4;

/// The last arrival of every chunk at every rank.
enum LastArrivals {
    /// By rank and page of chunks, where the page is.
    Pages {
        page_of: FxHashMap<(u32, u32), u32>,
        pages: Vec<[u32; PAGE as usize]>,
    },
    /// By rank and first chunk of a range: the chunk after its last one, and the arrival. Ranges do not overlap.
    Ranges(Vec<BTreeMap<u32, (u32, u32)>>),
}

impl Held {
    fn of(plan: &Plan) -> Held {
        let alone = (plan.schedule.len() as u64).saturating_mul(MOST_ALONE);
        Held {
            arrivals: Vec::new(),
            last: match plan.schedule.deliveries() > alone {
                true => LastArrivals::Ranges(vec![BTreeMap::new(); plan.fabric.ranks() as usize]),
                false => LastArrivals::Pages {
                    page_of: FxHashMap::default(),
                    pages: Vec::new(),
                },
            },
        }
    }

    /// Tells the last arrivals of chunks at a rank.
    fn each_last(&self, rank: u32, chunks: Range<u32>, mut tell: impl FnMut(u32)) {
        match &self.last {
            LastArrivals::Pages { page_of, pages } => {
                for chunk in chunks {
                    if let Some(&page) = page_of.get(&(rank, chunk / PAGE)) {
                        let last = pages[page as usize][(chunk % PAGE) as usize];
                        if last != NONE {
                            tell(last);
                        }
                    }
                }
            }
            LastArrivals::Ranges(of_rank) => {
                let begun = of_rank[rank as usize].range(..chunks.end).rev();
                let overlapping = begun.take_while(|(_, (end, _))| *end > chunks.start);
                overlapping.for_each(|(_, &(_, last))| tell(last));
            }
        }
    }

    /// The flows of an arrival and of those before it.
    fn flows(&self, last: u32) -> impl Iterator<Item = u32> {
        let arrival = |index: u32| self.arrivals.get(index as usize);
        let all = std::iter::successors(arrival(last), move |own| arrival(own.before));
        all.map(|own| own.flow)
    }

    /// Adds a flow that brings chunks to a rank.
    fn insert(&mut self, rank: u32, chunks: Range<u32>, flow: u32) {
        let arrivals = &mut self.arrivals;
        match &mut self.last {
            LastArrivals::Pages { page_of, pages } => {
                for chunk in chunks {
                    let next = pages.len() as u32;
                    let page = *page_of.entry((rank, chunk / PAGE)).or_insert(next);
                    if page == next {
                        pages.push([NONE; PAGE as usize]);
                    }
                    arrive(
                        arrivals,
                        &mut pages[page as usize][(chunk % PAGE) as usize],
                        flow,
                    );
                }
            }
            LastArrivals::Ranges(of_rank) => {
                let own = &mut of_rank[rank as usize];
                split(own, chunks.start);
                split(own, chunks.end);
                let mut next = chunks.start;
                let mut gaps = Vec::new();
                for (&start, (end, last)) in own.range_mut(chunks.clone()) {
                    if next < start {
                        gaps.push(next..start);
                    }
                    arrive(arrivals, last, flow);
                    next = *end;
                }
                if next < chunks.end {
                    gaps.push(next..chunks.end);
                }
                for gap in gaps {
                    let mut last = NONE;
                    arrive(arrivals, &mut last, flow);
                    own.insert(gap.start, (gap.end, last));
                }
            }
        }
    }
}

/// Puts a flow after the last arrival of some chunks.
fn arrive(arrivals: &mut Vec<Arrival>, last: &mut u32, flow: u32) {
    let before = arrivals.get(*last as usize);
    if before.is_some_and(|before| before.flow == flow) {
        return;
    }
    let arrival = Arrival {
        flow,
        before: *last,
        number: before.map_or(1, |before| before.number + 1),
    };
    *last = arrivals.len() as u32;
    arrivals.push(arrival);
}

/// Lets a range end where another is to begin.
fn split(ranges: &mut BTreeMap<u32, (u32, u32)>, at: u32) {
    if let Some((_, (end, last))) = ranges.range_mut(..at).next_back()
        && *end > at
    {
        let rest = (*end, *last);
        *end = at;
        ranges.insert(at, rest);
    }
}
