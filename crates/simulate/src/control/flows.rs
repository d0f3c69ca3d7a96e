//! Flows of a plan, and the arrivals for which each flow waits. A *flow* is all data that one
//! transmitter sends to one receiver in one slot.
//!
//! Hops in one slot over one circuit form one flow, even if their transfers have different sources
//! and destinations. A transfer sends the data that its source had at the beginning of the
//! transfer's step. A flow therefore waits for two kinds of arrivals. For each transfer whose first
//! hop is in the flow, the flow waits for all flows of earlier steps that brought the transfer's
//! chunks to its source. For each transfer that the flow relays, the flow waits for the flow of the
//! transfer's previous hop. A *join* is a set of arrivals, all of which a flow needs before the
//! flow can start. Flows of one rank and step that need the same arrivals share a join.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::SimulationError;
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::{Circuits, Hop};
use opticoll_fabric::family::wss_grid::TunedLight;
use opticoll_plan::plan::Plan;

/// All data that one transmitter sends to one receiver in one slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransceiverFlow {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) light: TunedLight,
    pub(super) slot: u32,
    pub(super) bytes: Bytes,
    /// Index in the plan of the flow's first transfer.
    pub(super) transfer: u32,
    /// True if the transmitter keeps the circuit because it needs the circuit in the next slot.
    pub(super) keeps: bool,
}

impl TransceiverFlow {
    /// Returns the number of the sending transceiver: 2 * rank + plane.
    pub(super) fn transmitter(&self) -> u32 {
        2 * self.source + u32::from(self.light.plane)
    }

    /// Returns the number of the receiving transceiver: 2 * rank + plane.
    pub(super) fn receiver(&self) -> u32 {
        2 * self.destination + u32::from(self.light.plane)
    }
}

/// Lists of numbers. List i contains `members[starts[i]..starts[i + 1]]`.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Lists {
    /// Creates `count` lists from pairs of a list's index and a member, in the order of the pairs.
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

    pub(super) fn members(&self, list: u32) -> &[u32] {
        let list = list as usize;
        &self.members[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}

/// Maximum number of arrivals of a chunk that is part of the common join of a flow (the set of
/// arrivals for which the flow waits). A chunk with more arrivals has a join of its own.
const MAX_INLINE_ARRIVALS: u32 = 16;

/// Pairs of a flow and a join (a set of arrivals for which flows wait). The lists of
/// [`TransceiverFlows`] are built from these pairs at the end.
#[derive(Default)]
struct FlowPairs {
    /// Pairs of a flow and a join that contains the flow's arrival.
    feeds: Vec<(u32, u32)>,
    /// Pairs of a join and a flow that waits for the join.
    waiters: Vec<(u32, u32)>,
    /// Index of the last flow that was added to the waiters of each join, indexed by join.
    last_waiter: Vec<u32>,
}

/// All flows of a plan, and the joins (sets of arrivals) for which the flows wait.
#[derive(Debug, Clone, Default)]
pub(super) struct TransceiverFlows {
    pub(super) flows: Vec<TransceiverFlow>,
    /// Flows of each transmitter in the order of their slots, indexed by transceiver number.
    pub(super) flows_of_transmitter: Vec<Vec<u32>>,
    /// Number of arrivals in each join, indexed by join.
    pub(super) join_needs: Vec<u32>,
    /// Flows that wait for each join, indexed by join.
    pub(super) waiters: Lists,
    /// Joins that contain each flow's arrival, indexed by flow.
    pub(super) feeds: Lists,
    /// Number of joins for which each flow waits, indexed by flow.
    pub(super) needs: Vec<u32>,
}

impl TransceiverFlows {
    /// Builds the flows of a plan. The slots of the plan must exist, and its relays must be in the
    /// order of transfers and slots.
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
            crate::measure_circuits(circuits, &step_hops, &plan.routes, &mut Vec::new(), |hop| {
                hops[hop].1 as u32
            })?;
            let mut order: Vec<usize> = (0..hops.len()).collect();
            order.sort_by_key(|&place| hops[place].0);
            let flow_of = flows.add(plan, size, &hops, &order)?;
            flows.add_joins_of_step(plan, &hops, &order, &flow_of, &arrived, &mut pairs);
            // Only later steps may send the chunks that this step delivered.
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

    /// Adds the flows of a step: all hops over one circuit in one slot become one flow. `order`
    /// contains the indices of `hops`, sorted by hop. Returns the index of the flow of each hop,
    /// indexed like `hops`.
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

    /// Adds the joins for which the flows of a step wait. A flow has one join for all chunks that
    /// have at most `MAX_INLINE_ARRIVALS` arrivals, and one join for each other chunk. Flows of one
    /// rank that wait for the same arrivals share a join.
    fn add_joins_of_step(
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
                arrived.for_each_last(hop.from, chunks, |last| {
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

    /// Sorts the flows of each transmitter by slot, and marks flows whose circuit is kept.
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

const NONE: u32 = u32::MAX;

/// Arrivals of chunks at ranks, and the last arrival of every chunk at every rank.
struct Arrivals {
    arrivals: Vec<Arrival>,
    last: LastArrivals,
}

/// Arrival of a flow that brings some chunks to a rank.
struct Arrival {
    flow: u32,
    /// Index of the previous arrival of these chunks; `NONE` for the first arrival.
    before: u32,
    /// Number of arrivals of these chunks, from the first arrival to this arrival.
    number: u32,
}

/// Number of chunks per page. A page stores the last arrivals of consecutive chunks at one rank.
const PAGE_SIZE: u32 = 16;

/// Mean number of chunks per transfer above which arrivals are stored as `Ranges`.
const MAX_PAGED_CHUNKS: u64 = 4;

/// Last arrival of every chunk at every rank, as an index into `Arrivals::arrivals`.
enum LastArrivals {
    /// Pages of `PAGE_SIZE` chunks; `page_of` maps a rank and a page number to an index of `pages`.
    Pages {
        page_of: FxHashMap<(u32, u32), u32>,
        pages: Vec<[u32; PAGE_SIZE as usize]>,
    },
    /// Last arrivals of ranges of chunks, indexed by rank. A key is the first chunk of a range, and
    /// a value is the chunk after the range and its last arrival.
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

    /// Calls `report` with the index of the last arrival of each of `chunks` at `rank`, but only
    /// once for chunks that are stored as one range.
    fn for_each_last(&self, rank: u32, chunks: Range<u32>, mut report: impl FnMut(u32)) {
        match &self.last {
            LastArrivals::Pages { page_of, pages } => {
                for chunk in chunks {
                    if let Some(&page) = page_of.get(&(rank, chunk / PAGE_SIZE)) {
                        let last = pages[page as usize][(chunk % PAGE_SIZE) as usize];
                        if last != NONE {
                            report(last);
                        }
                    }
                }
            }
            LastArrivals::Ranges(ranges_of_rank) => {
                let begun = ranges_of_rank[rank as usize].range(..chunks.end).rev();
                let overlapping = begun.take_while(|(_, (end, _))| *end > chunks.start);
                overlapping.for_each(|(_, &(_, last))| report(last));
            }
        }
    }

    /// Returns the flows of the arrival `last` and of all arrivals before it.
    fn flows(&self, last: u32) -> impl Iterator<Item = u32> {
        let arrival = |index: u32| self.arrivals.get(index as usize);
        let all = std::iter::successors(arrival(last), move |later| arrival(later.before));
        all.map(|arrival| arrival.flow)
    }

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

/// Appends an arrival of `flow`; `last` becomes the index of this arrival. Appends nothing if
/// `last` is already an arrival of `flow`.
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

/// Splits the range that contains chunk `at`, so that a range begins at this chunk.
fn split(ranges: &mut BTreeMap<u32, (u32, u32)>, at: u32) {
    if let Some((_, (end, last))) = ranges.range_mut(..at).next_back()
        && *end > at
    {
        let upper = (*end, *last);
        *end = at;
        ranges.insert(at, upper);
    }
}
