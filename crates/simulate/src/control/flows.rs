//! Flows of a plan: the data from one transmitter to one receiver in a slot, and the arrivals that
//! each flow needs.
//!
//! Hops of one slot over the same circuit form one flow, wherever their transfers come from and
//! lead to. A transfer sends the data that its source held when the transfer's step began. A flow
//! therefore needs, for each transfer that begins with it, all flows that brought the transfer's
//! chunks to the source in earlier steps; and for each transfer that it relays, the flow of the hop
//! before. A *join* is a set of arrivals that flows need together; flows of one rank and step that
//! need the same arrivals share a join.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::SimulationError;
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::{Circuits, Hop};
use opticoll_fabric::family::wss_grid::TunedLight;
use opticoll_plan::plan::Plan;

/// Data that one transmitter sends to one receiver in a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransceiverFlow {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) light: TunedLight,
    pub(super) slot: u32,
    pub(super) bytes: Bytes,
    /// First of the transfers.
    pub(super) transfer: u32,
    /// True if the transmitter uses the same circuit in the next slot.
    pub(super) keeps: bool,
}

impl TransceiverFlow {
    /// Returns the number of the sending transceiver: 2 rank + plane.
    pub(super) fn transmitter(&self) -> u32 {
        2 * self.source + u32::from(self.light.plane)
    }

    /// Returns the number of the receiving transceiver: 2 rank + plane.
    pub(super) fn receiver(&self) -> u32 {
        2 * self.destination + u32::from(self.light.plane)
    }
}

/// Lists of numbers, one list for each number from 0 on, in two columns.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Lists {
    /// Creates `count` lists from pairs of a list and a member; members keep their order.
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

    /// Returns the members of a list.
    pub(super) fn members(&self, list: u32) -> &[u32] {
        let list = list as usize;
        &self.members[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}

/// Maximum number of flows that brought a chunk, for adding them to the join of all chunks of a
/// flow. A chunk that more flows brought has a join of its own.
const MAX_INLINE_ARRIVALS: u32 = 16;

/// Pairs from which the lists are built when all flows are known.
#[derive(Default)]
struct FlowPairs {
    /// Flow, and join that contains its arrival.
    feeds: Vec<(u32, u32)>,
    /// Join, and flow that needs the join.
    waiters: Vec<(u32, u32)>,
    /// Per join, the last flow added to those that need it.
    last_waiter: Vec<u32>,
}

/// Flows of a plan.
#[derive(Debug, Clone, Default)]
pub(super) struct TransceiverFlows {
    pub(super) flows: Vec<TransceiverFlow>,
    /// Per transmitter, its flows in the order of slots.
    pub(super) flows_of_transmitter: Vec<Vec<u32>>,
    /// Per join, its number of arrivals.
    pub(super) join_needs: Vec<u32>,
    /// Per join, the flows that need it.
    pub(super) waiters: Lists,
    /// Per flow, the joins that contain its arrival.
    pub(super) feeds: Lists,
    /// Per flow, the number of joins that it needs.
    pub(super) needs: Vec<u32>,
}

impl TransceiverFlows {
    /// Builds the flows of a plan whose slots and relays are in order.
    pub(super) fn new(
        plan: &Plan,
        size: Bytes,
        circuits: &dyn Circuits,
    ) -> Result<TransceiverFlows, SimulationError> {
        let ranks = plan.fabric.ranks() as usize;
        let mut flows = TransceiverFlows {
            flows_of_transmitter: vec![Vec::new(); 2 * ranks],
            ..TransceiverFlows::default()
        };
        let mut arrived = Arrivals::new(plan);
        let mut pairs = FlowPairs::default();
        for step in 0..plan.schedule.steps() {
            interrupt::check();
            let transfers = plan.schedule.step(step);
            let mut hops: Vec<(Hop, usize)> = Vec::with_capacity(transfers.len());
            for transfer in transfers {
                hops.extend(plan.hops_of(transfer).map(|hop| (hop, transfer)));
            }
            let step_hops: Vec<Hop> = hops.iter().map(|&(hop, _)| hop).collect();
            crate::measure_circuits(circuits, &step_hops, &mut Vec::new(), |hop| {
                hops[hop].1 as u32
            })?;
            let mut order: Vec<usize> = (0..hops.len()).collect();
            order.sort_by_key(|&place| hops[place].0);
            let flow_of = flows.add(plan, size, &hops, &order)?;
            flows.join_step(plan, &hops, &order, &flow_of, &arrived, &mut pairs);
            // The arrivals of a step count from the step's end.
            for (place, &(_, transfer)) in hops.iter().enumerate() {
                if hops.get(place + 1).is_none_or(|next| next.1 != transfer) {
                    let moved = plan.schedule.transfer(transfer);
                    let chunks = moved.chunk..moved.chunk + moved.count;
                    arrived.insert(moved.destination, chunks, flow_of[place]);
                }
            }
        }
        flows.waiters = Lists::new(flows.join_needs.len(), &pairs.waiters);
        flows.feeds = Lists::new(flows.flows.len(), &pairs.feeds);
        flows.keep_circuits();
        Ok(flows)
    }

    /// Adds the flows of hops: all hops of one circuit and slot become one flow. `hops` gives the
    /// transfer of each hop, `order` sorts the hops. Returns the flow of every hop.
    fn add(
        &mut self,
        plan: &Plan,
        size: Bytes,
        hops: &[(Hop, usize)],
        order: &[usize],
    ) -> Result<Vec<u32>, SimulationError> {
        let collective = plan.schedule.collective;
        let mut flow_of = vec![0; hops.len()];
        for hops_of_flow in order.chunk_by(|&first, &second| hops[first].0 == hops[second].0) {
            interrupt::check();
            let (hop, transfer) = hops[hops_of_flow[0]];
            let mut bytes = Bytes::new(0);
            for &place in hops_of_flow {
                let moved = plan.schedule.transfer(hops[place].1);
                let end = moved.chunk.checked_add(moved.count);
                if end.is_none_or(|end| end > collective.chunks()) {
                    return Err(crate::missing_chunks(hops[place].1));
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

    /// Adds the joins that the flows of a step need: one join for all chunks that few flows
    /// brought, and one for each other chunk. Flows of a rank that need the same arrivals share the
    /// join.
    fn join_step(
        &mut self,
        plan: &Plan,
        hops: &[(Hop, usize)],
        order: &[usize],
        flow_of: &[u32],
        arrived: &Arrivals,
        pairs: &mut FlowPairs,
    ) {
        let mut join_of_chunks: FxHashMap<u32, u32> = FxHashMap::default();
        let mut needed = Vec::new();
        let mut before: (Vec<u32>, Option<u32>) = (Vec::new(), None);
        for hops_of_flow in order.chunk_by(|&first, &second| flow_of[first] == flow_of[second]) {
            interrupt::check();
            let flow = flow_of[hops_of_flow[0]];
            needed.clear();
            for &place in hops_of_flow {
                let (hop, transfer) = hops[place];
                if place > 0 && hops[place - 1].1 == transfer {
                    needed.push(flow_of[place - 1]);
                    continue;
                }
                let moved = plan.schedule.transfer(transfer);
                let chunks = moved.chunk..moved.chunk + moved.count;
                arrived.each_last(hop.from, chunks, |last| {
                    if arrived.arrivals[last as usize].number <= MAX_INLINE_ARRIVALS {
                        needed.extend(arrived.flows(last));
                        return;
                    }
                    let join = *join_of_chunks.entry(last).or_insert_with(|| {
                        let flows: Vec<u32> = arrived.flows(last).collect();
                        self.join(&flows, pairs)
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

    /// Orders the flows of each transmitter by slot, and marks flows whose circuit the next flow
    /// uses.
    pub(super) fn keep_circuits(&mut self) {
        for (index, flow) in self.flows.iter().enumerate() {
            interrupt::check();
            self.flows_of_transmitter[flow.transmitter() as usize].push(index as u32);
        }
        for flows in &mut self.flows_of_transmitter {
            flows.sort_by_key(|&flow| self.flows[flow as usize].slot);
            for pair in flows.windows(2) {
                let (first, next) = (self.flows[pair[0] as usize], self.flows[pair[1] as usize]);
                self.flows[pair[0] as usize].keeps = first.slot + 1 == next.slot
                    && first.destination == next.destination
                    && first.light.wavelength == next.light.wavelength;
            }
        }
    }
}

/// Number that refers to no arrival.
const NONE: u32 = u32::MAX;

/// Arrivals of chunks at ranks.
struct Arrivals {
    arrivals: Vec<Arrival>,
    last: LastArrivals,
}

/// Arrival of some chunks at a rank.
struct Arrival {
    flow: u32,
    /// Arrival of the same chunks before this one; `NONE` for the first.
    before: u32,
    /// Number of arrivals of these chunks up to this one.
    number: u32,
}

/// Number of chunks of a rank whose last arrivals are stored in one page.
const PAGE_SIZE: u32 = 16;

/// Mean number of chunks per transfer above which arrivals are stored by ranges of chunks.
const MAX_PAGED_CHUNKS: u64 = 4;

/// Last arrival of every chunk at every rank.
enum LastArrivals {
    /// Per rank and page of chunks, the index of the page.
    Pages {
        page_of: FxHashMap<(u32, u32), u32>,
        pages: Vec<[u32; PAGE_SIZE as usize]>,
    },
    /// Per rank and first chunk of a range, the chunk after the range and its last arrival. Ranges
    /// do not overlap.
    Ranges(Vec<BTreeMap<u32, (u32, u32)>>),
}

impl Arrivals {
    fn new(plan: &Plan) -> Arrivals {
        let paged_chunks = (plan.schedule.len() as u64).saturating_mul(MAX_PAGED_CHUNKS);
        Arrivals {
            arrivals: Vec::new(),
            last: match plan.schedule.deliveries() > paged_chunks {
                true => LastArrivals::Ranges(vec![BTreeMap::new(); plan.fabric.ranks() as usize]),
                false => LastArrivals::Pages {
                    page_of: FxHashMap::default(),
                    pages: Vec::new(),
                },
            },
        }
    }

    /// Calls `tell` with the index of the last arrival of each chunk at a rank, once for chunks
    /// that are stored as one range.
    fn each_last(&self, rank: u32, chunks: Range<u32>, mut tell: impl FnMut(u32)) {
        match &self.last {
            LastArrivals::Pages { page_of, pages } => {
                for chunk in chunks {
                    if let Some(&page) = page_of.get(&(rank, chunk / PAGE_SIZE)) {
                        let last = pages[page as usize][(chunk % PAGE_SIZE) as usize];
                        if last != NONE {
                            tell(last);
                        }
                    }
                }
            }
            LastArrivals::Ranges(ranges_of_rank) => {
                let begun = ranges_of_rank[rank as usize].range(..chunks.end).rev();
                let overlapping = begun.take_while(|(_, (end, _))| *end > chunks.start);
                overlapping.for_each(|(_, &(_, last))| tell(last));
            }
        }
    }

    /// Returns the flows of an arrival and of the arrivals before it.
    fn flows(&self, last: u32) -> impl Iterator<Item = u32> {
        let arrival = |index: u32| self.arrivals.get(index as usize);
        let all = std::iter::successors(arrival(last), move |later| arrival(later.before));
        all.map(|arrival| arrival.flow)
    }

    /// Adds a flow that brings chunks to a rank.
    fn insert(&mut self, rank: u32, chunks: Range<u32>, flow: u32) {
        let arrivals = &mut self.arrivals;
        match &mut self.last {
            LastArrivals::Pages { page_of, pages } => {
                for chunk in chunks {
                    let next = pages.len() as u32;
                    let page = *page_of.entry((rank, chunk / PAGE_SIZE)).or_insert(next);
                    if page == next {
                        pages.push([NONE; PAGE_SIZE as usize]);
                    }
                    append_arrival(
                        arrivals,
                        &mut pages[page as usize][(chunk % PAGE_SIZE) as usize],
                        flow,
                    );
                }
            }
            LastArrivals::Ranges(ranges_of_rank) => {
                let ranges = &mut ranges_of_rank[rank as usize];
                split(ranges, chunks.start);
                split(ranges, chunks.end);
                let mut next = chunks.start;
                let mut gaps = Vec::new();
                for (&start, (end, last)) in ranges.range_mut(chunks.clone()) {
                    if next < start {
                        gaps.push(next..start);
                    }
                    append_arrival(arrivals, last, flow);
                    next = *end;
                }
                if next < chunks.end {
                    gaps.push(next..chunks.end);
                }
                for gap in gaps {
                    let mut last = NONE;
                    append_arrival(arrivals, &mut last, flow);
                    ranges.insert(gap.start, (gap.end, last));
                }
            }
        }
    }
}

/// Appends a flow to the arrivals of some chunks.
fn append_arrival(arrivals: &mut Vec<Arrival>, last: &mut u32, flow: u32) {
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

/// Splits the range that contains chunk `at` so that a range begins there.
fn split(ranges: &mut BTreeMap<u32, (u32, u32)>, at: u32) {
    if let Some((_, (end, last))) = ranges.range_mut(..at).next_back()
        && *end > at
    {
        let rest = (*end, *last);
        *end = at;
        ranges.insert(at, rest);
    }
}
