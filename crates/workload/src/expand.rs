//! Expansion of MPI calls into programs of messages. Each collective is replaced by the messages of
//! an algorithm.
//!
//! Each call starts with its local work, which requires the previous call. The messages of a
//! collective's step require all messages of the rank's previous step; messages of one step run
//! concurrently. On a fabric, both ends of a message must be ready regardless of the eager limit,
//! because plans are timed with the start rule `rendezvous`. The transfers of a step with the same
//! sender, receiver and action form one message. Messages without bytes are sent as well (signals
//! of a barrier, empty blocks). A collective on a communicator with one member does nothing.
//!
//! If messages need lightpaths ([`Setup`]), each rank sets up the lightpaths for a call before the
//! messages of the call, and tears them down afterwards. The verifier checks the schedule of every
//! collective before its messages are used.
//!
//! On a fabric with circuits, a separate plan executes each collective, and the members wait for
//! each other before it starts (`planned.rs`).
//!
//! Messages of the program never match messages of a collective or of another communicator.

mod agree;
mod alike;
mod choice;
mod held_paths;
mod parts;
mod planned;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::error::{Place, TraceError};
use super::program::{Call, FOLLOWS, NONE, Node, NodeKind, Program, ProgramBuilder};
use super::trace::{Event, Trace};
use agree::{Entered, agree, has_few_sizes};
use alike::AlikeGroups;
pub use choice::ChosenAlgorithm;
use held_paths::{HeldPaths, PredictedPaths};

use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::routes::FABRIC_ROUTE;
use opticoll_planner as planner;
use opticoll_simulate::{Paths, TimingModel};
use parts::{MemberSchedule, group_from, member_schedule, plain_bytes, various_bytes};
use planned::PlannedCollectives;
pub(super) use planned::expand_plan;

/// Algorithm for each collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms {
    chosen: BTreeMap<&'static str, Spec>,
}

impl Default for Algorithms {
    /// Returns the algorithms that message passing libraries use for short messages: recursive
    /// doubling, binomial trees, and the pairwise exchange for all_to_all.
    fn default() -> Algorithms {
        let for_short_messages = opticoll_algorithms::records()
            .iter()
            .filter(|record| record.short_messages.contains(&record.collective));
        let chosen =
            for_short_messages.map(|record| (record.collective.name(), Spec::new(record.name)));
        Algorithms {
            chosen: chosen.collect(),
        }
    }
}

impl Algorithms {
    /// Replaces the algorithm of one collective.
    pub fn with(mut self, kind: CollectiveKind, algorithm: Spec) -> Algorithms {
        self.chosen.insert(kind.name(), algorithm);
        self
    }
}

/// Setup and teardown of lightpaths by programs.
///
/// A rank has `ports` ports, and can therefore have lightpaths to at most `ports` partners. A
/// lightpath serves both directions. A collective groups consecutive steps that together need at
/// most `ports` partners. The lightpaths of a group are set up together before the group, and torn
/// down after the group. A step with more partners than ports is cut into parts. Each pair of ranks
/// joins the first part in which both ranks have a free port, and all ranks execute the parts in
/// this order. A blocking send or receive sets up its lightpath before the message, and tears it
/// down afterwards. A non-blocking call sets up its lightpath before the message, and the wait for
/// the call tears it down. Lightpaths of single messages do not count against the ports: otherwise,
/// a program that sends while it has open receives could never continue.
///
/// The policies ([`Paths`]) differ. The paragraph above describes [`Paths::Released`]. With
/// [`Paths::Kept`], no lightpath is torn down after its messages: each rank keeps its most recently
/// used lightpaths, including lightpaths of single messages. [`Paths::Warm`] starts with the
/// lightpaths that an earlier execution of the same program left. The header of `held_paths.rs`
/// describes the costs. With [`Paths::Predicted`], each lightpath is known in advance. It is set up
/// as soon as the previous lightpaths are torn down, while the program continues. The program does
/// not wait for teardowns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Time to set up any number of lightpaths at the same time.
    pub setup: Time,
    /// Time to tear down any number of lightpaths at the same time.
    pub teardown: Time,
    /// Number of ports per rank, at least 1.
    pub ports: u32,
    /// Policy that decides when lightpaths are torn down.
    pub paths: Paths,
}

/// Network on which collectives run.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollectiveTarget<'a> {
    /// Fabric of the network, if any. Planners and algorithms plan on the part of the fabric that
    /// the communicator occupies. Without a fabric, algorithms are built for a ring.
    pub fabric: Option<&'a Fabric>,
    /// Setup of the lightpaths that messages need; `None` if messages need no setup.
    pub setup: Option<Setup>,
    /// Specification of a fabric that resembles the network, without a number of ranks. `auto`
    /// plans on this fabric if `fabric` is `None`.
    pub resembles: Option<&'a Spec>,
    /// Model by which plans are timed; `None` means the defaults.
    pub method: Option<&'a TimingModel>,
}

/// Program, and the algorithms of its collectives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// Program of messages.
    pub program: Program,
    /// Chosen algorithms without duplicates, in the order of first use.
    pub chosen: Vec<ChosenAlgorithm>,
    /// Algorithms of each communicator, as indices in `chosen`.
    pub ran: Ran,
}

/// Pairs of a communicator and the index of an algorithm that it used.
pub type Ran = BTreeSet<(u32, usize)>;

/// Expands calls into a program of messages.
pub fn expand(trace: &Trace, algorithms: &Algorithms) -> Result<Program, TraceError> {
    expand_on(trace, algorithms, CollectiveTarget::default()).map(|expanded| expanded.program)
}

/// Expands calls into a program of messages for a fabric or for lightpaths.
///
/// # Errors
/// Fails for:
///
/// * a wait for a request that is not open, or a request that is opened twice;
/// * a communicator that is not declared or does not contain the rank;
/// * a collective that only some members enter, or that members enter with different kinds, roots
///   or sizes;
/// * a send without a receive, or a receive without a send;
/// * an algorithm that does not support the number of ranks, or a plan that the verifier rejects.
pub fn expand_on(
    trace: &Trace,
    algorithms: &Algorithms,
    target: CollectiveTarget<'_>,
) -> Result<Expanded, TraceError> {
    let collectives = agree(trace)?;
    let mut expansion = Expansion {
        is_exact: has_few_sizes(trace, &collectives),
        trace,
        algorithms,
        target,
        collectives,
        schedules: FxHashMap::default(),
        alike: AlikeGroups::default(),
        planned: PlannedCollectives::default(),
        chosen: Vec::new(),
        ran: Ran::new(),
        tags: FxHashMap::default(),
        builder: ProgramBuilder::new(),
        held: None,
        predicted: PredictedPaths::default(),
    };
    let keeps_paths = |setup: &Setup| matches!(setup.paths, Paths::Kept | Paths::Warm);
    let kept = target.setup.filter(keeps_paths);
    for rank in 0..trace.ranks.len() as u32 {
        expansion.held = kept.map(|setup| HeldPaths::new(setup.ports));
        expansion.predicted = PredictedPaths::default();
        if kept.is_some_and(|setup| setup.paths == Paths::Warm) {
            // Expands a previous execution, of which only the lightpaths remain.
            let builder = std::mem::take(&mut expansion.builder);
            expansion.rank(rank)?;
            expansion.builder = builder;
            if let Some(held) = &mut expansion.held {
                held.begin_again();
            }
        }
        expansion.rank(rank)?;
    }
    Ok(Expanded {
        program: expansion.builder.finish()?,
        chosen: expansion.chosen,
        ran: expansion.ran,
    })
}

/// Returns the collective that a call executes, or `None` if the call is not a collective.
fn kind(call: Call) -> Option<CollectiveKind> {
    Some(match call {
        Call::Barrier => CollectiveKind::Barrier,
        Call::Broadcast => CollectiveKind::Broadcast,
        Call::Reduce => CollectiveKind::Reduce,
        Call::AllReduce => CollectiveKind::AllReduce,
        Call::Gather | Call::GatherVarious => CollectiveKind::Gather,
        Call::Scatter | Call::ScatterVarious => CollectiveKind::Scatter,
        Call::AllGather | Call::AllGatherVarious => CollectiveKind::AllGather,
        Call::ReduceScatter | Call::ReduceScatterVarious => CollectiveKind::ReduceScatter,
        Call::AllToAll | Call::AllToAllVarious => CollectiveKind::AllToAll,
        _ => return None,
    })
}

/// Smallest tag for collectives, and for messages on communicators other than 0.
const FIRST_RESERVED_TAG: u32 = 1 << 31;

/// Key of a schedule: collective, number of ranks, root, size for which the schedule is planned,
/// and class of the group ([`AlikeGroups`]).
type ScheduleKey = (CollectiveKind, u32, u32, Option<Bytes>, u32);

struct Expansion<'a> {
    trace: &'a Trace,
    algorithms: &'a Algorithms,
    target: CollectiveTarget<'a>,
    collectives: Entered,
    /// Schedule of each key, and the index of its algorithm in `chosen`.
    schedules: FxHashMap<ScheduleKey, (MemberSchedule, usize)>,
    alike: AlikeGroups,
    is_exact: bool,
    planned: PlannedCollectives,
    chosen: Vec<ChosenAlgorithm>,
    ran: Ran,
    tags: FxHashMap<(u32, Option<u32>), u32>,
    builder: ProgramBuilder,
    /// Lightpaths that the current rank keeps, if the policy keeps lightpaths.
    held: Option<HeldPaths>,
    /// Lightpaths of the current rank that are known in advance.
    predicted: PredictedPaths,
}

/// Processor of a rank that sets up and tears down lightpaths, concurrently with the program.
const PATH_PROCESSOR: u8 = 1;

/// Open requests and entered collectives of a rank.
#[derive(Default)]
struct Open {
    /// Index of the node and index of the event of each open request, indexed by request.
    requests: BTreeMap<u32, (u32, usize)>,
    /// Number of collectives that the rank has entered, indexed by communicator.
    entered: FxHashMap<u32, usize>,
}

impl Expansion<'_> {
    fn rank(&mut self, rank: u32) -> Result<(), TraceError> {
        self.builder.begin_rank();
        let trace = self.trace;
        if let Some(after) = trace.after.get(rank as usize) {
            return self.graph(rank, after);
        }
        let mut open = Open::default();
        let mut before: Vec<u32> = Vec::new();
        for (index, event) in trace.ranks[rank as usize].iter().enumerate() {
            interrupt::check();
            let node = Node {
                event: index as u32,
                line: event.line,
                call: event.call,
                ..Node::work(NodeKind::Enter, event.compute)
            };
            let enter = self.push(node, &before)?;
            before.clear();
            before.push(enter);
            if kind(event.call).is_some() {
                self.collective(rank, node, event, &mut open, &mut before)?;
            } else {
                self.point_to_point(rank, node, event, &mut open, &mut before)?;
            }
        }
        // The final node gives the last call an end.
        let events = trace.ranks[rank as usize].len() as u32;
        let node = Node {
            event: events,
            ..Node::work(NodeKind::Enter, 0)
        };
        self.push(node, &before)?;
        Ok(())
    }

    /// Adds the events of a rank from a trace that states dependencies. `after` contains the
    /// indices of the earlier events for which each event waits, indexed by event.
    fn graph(&mut self, rank: u32, after: &[Vec<u32>]) -> Result<(), TraceError> {
        let trace = self.trace;
        let mut open = Open::default();
        // Last node of each event, indexed by event.
        let mut ends: Vec<u32> = Vec::with_capacity(after.len());
        for (index, event) in trace.ranks[rank as usize].iter().enumerate() {
            interrupt::check();
            let mut before: Vec<u32> = after[index].iter().map(|&on| ends[on as usize]).collect();
            let node = Node {
                event: index as u32,
                line: event.line,
                call: event.call,
                processor: event.processor,
                ..Node::work(NodeKind::Compute, event.compute)
            };
            let message = match event.call {
                Call::Send => Some(NodeKind::Send),
                Call::Receive => Some(NodeKind::Receive),
                _ => None,
            };
            let event_node = match message {
                Some(kind) => Node {
                    amount: event.bytes,
                    peer: event.peer,
                    tag: self.tag(event.communicator, Some(event.tag)),
                    kind,
                    ..node
                },
                None => node,
            };
            if kind(event.call).is_some() {
                self.collective(rank, node, event, &mut open, &mut before)?;
            }
            ends.push(self.push(event_node, &before)?);
        }
        Ok(())
    }

    /// Adds a node that requires the nodes `before`, and returns its index. If a node in `before`
    /// is marked by [`FOLLOWS`], only its start is required.
    fn push(&mut self, node: Node, before: &[u32]) -> Result<u32, TraceError> {
        let index = self.builder.push(node)?;
        for &earlier in before {
            match earlier & FOLLOWS {
                0 => self.builder.require(earlier),
                _ => self.builder.follow(earlier & !FOLLOWS),
            }
        }
        Ok(index)
    }

    /// Adds a call that is not a collective. New nodes copy their position in the trace from
    /// `enter`. Replaces `before` by the nodes that the next call requires.
    fn point_to_point(
        &mut self,
        rank: u32,
        enter: Node,
        event: &Event,
        open: &mut Open,
        before: &mut Vec<u32>,
    ) -> Result<(), TraceError> {
        let index = enter.event as usize;
        let (message, immediate) = match event.call {
            Call::Send => (NodeKind::Send, false),
            Call::ImmediateSend => (NodeKind::Send, true),
            Call::Receive => (NodeKind::Receive, false),
            Call::ImmediateReceive => (NodeKind::Receive, true),
            Call::Wait if event.request == NONE => {
                let requests = std::mem::take(&mut open.requests);
                let any = !requests.is_empty();
                before.extend(requests.values().map(|(node, _)| node));
                return match any {
                    true => self.close(enter, requests.into_values(), before),
                    false => Ok(()),
                };
            }
            Call::Wait => {
                let Some(request) = open.requests.remove(&event.request) else {
                    let problem = format!("waits for request {}, which is not open", event.request);
                    return Err(TraceError::at(self.trace.place(rank, index), problem));
                };
                before.push(request.0);
                return self.close(enter, [request], before);
            }
            _ => return Ok(()),
        };
        self.trace.members(rank, index)?;
        self.begin_use(enter, [event.peer], before)?;
        let node = Node {
            amount: event.bytes,
            peer: event.peer,
            tag: self.tag(event.communicator, Some(event.tag)),
            kind: message,
            ..enter
        };
        let node = self.push(node, before)?;
        before.clear();
        before.push(if immediate { node | FOLLOWS } else { node });
        if immediate {
            let earlier = open.requests.insert(event.request, (node, index));
            if let Some((_, opened)) = earlier {
                let (request, opened) = (event.request, self.trace.place(rank, opened));
                let problem =
                    format!("opens request {request}, which {opened} opened and nobody waited for");
                return Err(TraceError::at(self.trace.place(rank, index), problem));
            }
            if let Some(held) = &mut self.held {
                held.open(event.peer);
            }
            return Ok(());
        }
        self.end_use(enter, before)
    }

    /// Adds a collective. New nodes copy their position in the trace from `enter`. Replaces
    /// `before` by the nodes that the next call requires.
    fn collective(
        &mut self,
        rank: u32,
        enter: Node,
        event: &Event,
        open: &mut Open,
        before: &mut Vec<u32>,
    ) -> Result<(), TraceError> {
        let (members, number) = self.trace.members(rank, enter.event as usize)?;
        let nth = open.entered.entry(event.communicator).or_default();
        let entered = *nth;
        *nth += 1;
        if members.len() == 1 {
            return Ok(());
        }
        let place = self.trace.place(rank, enter.event as usize);
        if let Some(fabric) = self
            .target
            .fabric
            .filter(|fabric| fabric.circuits().is_some())
        {
            let (index, sent) = self.enter_planned(fabric, place, event, (entered, number))?;
            let node = Node {
                amount: index,
                kind: NodeKind::Collective,
                ..enter
            };
            let node = self.push(node, before)?;
            self.builder.join(index, sent);
            before.clear();
            before.push(node);
            return Ok(());
        }
        let tag = self.tag(event.communicator, None);
        // Parts of a fabric number their ranks in ascending order, unlike communicators.
        let mut order: Vec<u32> = (0..members.len() as u32).collect();
        if self.target.fabric.is_some() {
            order.sort_by_key(|&member| members[member as usize]);
        }
        let number = order.iter().position(|&member| member == number);
        let number = number.expect("a member") as u32;
        let communicator = members;
        let members: Vec<u32> = order
            .iter()
            .map(|&member| communicator[member as usize])
            .collect();
        let members = &members[..];
        let key = self.prepare(place, event, members, entered)?;
        // The schedule is removed while nodes are pushed, and is inserted again afterwards.
        let (parts, chosen) = self.schedules.remove(&key).expect("just prepared");
        self.ran.insert((event.communicator, chosen));
        let member_parts = &parts.members[number as usize];
        let ports = self.target.setup.map(|paths| paths.ports);
        let mut group = 0..0;
        let mut step_nodes: Vec<u32> = Vec::new();
        let mut step = NONE;
        for (index, part) in member_parts.iter().enumerate() {
            if part.step != step && !step_nodes.is_empty() {
                std::mem::swap(before, &mut step_nodes);
                step_nodes.clear();
            }
            step = part.step;
            if let Some(ports) = ports.filter(|_| index == group.end) {
                if index > 0 {
                    self.end_use(enter, before)?;
                }
                group = group_from(member_parts, index, ports);
                let others = member_parts[group.clone()].iter();
                let others = others.map(|part| members[part.peer as usize]);
                self.begin_use(enter, others, before)?;
            }
            let bytes = match event.call {
                Call::AllToAllVarious => {
                    let ranks = members.len() as u32;
                    let size = |block: u32| {
                        let [origin, target] =
                            [block / ranks, block % ranks].map(|member| order[member as usize]);
                        self.block_of_various(event.communicator, entered, origin, target)
                    };
                    various_bytes(&parts.collective, size, part)
                }
                call if call.has_own_blocks() => {
                    let size = |block: u32| {
                        let member = order[block as usize];
                        Some(self.entering(event.communicator, entered, member)?.bytes)
                    };
                    various_bytes(&parts.collective, size, part)
                }
                _ => plain_bytes(&parts.collective, event.bytes, part),
            };
            let node = Node {
                amount: bytes.ok_or_else(|| {
                    TraceError::at(
                        place,
                        "it has fewer sizes than members, or its sizes exceed 64 bits",
                    )
                })?,
                peer: members[part.peer as usize],
                tag,
                is_rendezvous: self.target.fabric.is_some(),
                kind: if part.sends {
                    NodeKind::Send
                } else {
                    NodeKind::Receive
                },
                ..enter
            };
            step_nodes.push(self.push(node, before)?);
            if part.sends && part.route != FABRIC_ROUTE {
                self.builder.take_route(parts.routes.links(part.route));
            }
        }
        if !step_nodes.is_empty() {
            std::mem::swap(before, &mut step_nodes);
            self.end_use(enter, before)?;
        }
        self.schedules.insert(key, (parts, chosen));
        Ok(())
    }

    /// Returns the size for which a collective is planned, or `None` if the plan fits every size.
    fn planned_size(&self, spec: &Spec, kind: CollectiveKind, size: u64) -> Option<Bytes> {
        let size = size.max(1);
        if spec.depends_on_size() {
            return Some(Bytes::new(size));
        }
        let rounded = || size.checked_next_power_of_two().unwrap_or(size);
        let depends_on_size =
            planner::find(kind, spec.name()).is_some_and(|record| record.depends_on_size);
        depends_on_size.then(|| Bytes::new(if self.is_exact { size } else { rounded() }))
    }

    /// Returns the event by which a member enters a collective. `nth` is the number of earlier
    /// collectives on the communicator.
    fn entering(&self, communicator: u32, nth: usize, member: u32) -> Option<Event> {
        let entered = self.collectives.get(&communicator)?.get(nth)?;
        let members = self.trace.communicators.get(&communicator)?;
        let rank = *members.get(member as usize)? as usize;
        let event = *entered.get(member as usize)? as usize;
        self.trace.ranks[rank].get(event).copied()
    }

    /// Returns the sum of the blocks that the members state, and the largest block.
    fn own_blocks(&self, communicator: u32, nth: usize) -> (u128, u64) {
        let members = self.trace.communicators.get(&communicator);
        let members = 0..members.map_or(0, Vec::len) as u32;
        let events = members.filter_map(|member| self.entering(communicator, nth, member));
        events.fold((0, 0), |(sum, most), event| {
            (sum + u128::from(event.bytes), most.max(event.bytes))
        })
    }

    /// Returns the number of bytes that member `origin` sends to member `target` in an Alltoallv.
    /// `nth` is the number of earlier collectives on the communicator.
    fn block_of_various(
        &self,
        communicator: u32,
        nth: usize,
        origin: u32,
        target: u32,
    ) -> Option<u64> {
        let event = self.entering(communicator, nth, origin)?;
        let sizes = self.trace.various.get(event.request as usize)?;
        sizes.get(target as usize).copied()
    }

    /// Returns the mean number of bytes that a member sends in an Alltoallv. `nth` is the number of
    /// earlier collectives on the communicator.
    fn mean_of_various(&self, communicator: u32, nth: usize) -> u64 {
        let ranks = self
            .trace
            .communicators
            .get(&communicator)
            .map_or(0, Vec::len) as u32;
        let pairs = (0..ranks).flat_map(|origin| (0..ranks).map(move |target| (origin, target)));
        let blocks = pairs.filter_map(|(origin, target)| {
            self.block_of_various(communicator, nth, origin, target)
        });
        let total: u128 = blocks.map(u128::from).sum();
        u64::try_from(total / u128::from(ranks.max(1))).unwrap_or(u64::MAX)
    }

    /// Returns the tag of a message in the program; `tag` is `None` for a collective. The
    /// collectives of each communicator, and each tag of a communicator other than 0, get distinct
    /// tags. Tags of communicator 0 below [`FIRST_RESERVED_TAG`] remain unchanged.
    fn tag(&mut self, communicator: u32, tag: Option<u32>) -> u32 {
        match tag {
            Some(tag) if communicator == 0 && tag < FIRST_RESERVED_TAG => tag,
            _ => {
                let next = FIRST_RESERVED_TAG + self.tags.len() as u32;
                *self.tags.entry((communicator, tag)).or_insert(next)
            }
        }
    }

    /// Plans a collective unless its schedule is cached. Returns the key of the schedule. `entered`
    /// is the number of earlier collectives on the communicator.
    fn prepare(
        &mut self,
        place: Place,
        event: &Event,
        members: &[u32],
        entered: usize,
    ) -> Result<ScheduleKey, TraceError> {
        let kind = kind(event.call).expect("a collective");
        let ranks = members.len() as u32;
        let root = members.iter().position(|&member| member == event.peer);
        let root = root.unwrap_or(0) as u32;
        let spec = &self.algorithms.chosen[kind.name()];
        let size = match event.call {
            Call::AllToAllVarious => self.mean_of_various(event.communicator, entered),
            call if call.has_own_blocks() => {
                let (sum, _) = self.own_blocks(event.communicator, entered);
                let blocks = if kind == CollectiveKind::ReduceScatter {
                    1
                } else {
                    ranks
                };
                u64::try_from(sum / u128::from(blocks)).unwrap_or(u64::MAX)
            }
            _ => event.bytes,
        };
        let size = self.planned_size(spec, kind, size);
        let has_all = |fabric: &Fabric| fabric.ranks() == ranks;
        let has_all = self.target.fabric.is_some_and(has_all);
        let class = self.alike.class(self.target.fabric, members);
        let key = (kind, ranks, root, size, class);
        if self.schedules.contains_key(&key) {
            return Ok(key);
        }
        let collective =
            Collective::new(kind, ranks).and_then(|collective| collective.with_root(root));
        let collective = collective.map_err(|error| TraceError::at(place, error))?;
        let (plan, chosen) = choice::plan(
            self.algorithms,
            self.target,
            (collective, members),
            size,
            has_all,
            place,
        )?;
        let chosen = self.number_of(chosen);
        let ports = self.target.setup.map_or(u32::MAX, |paths| paths.ports);
        let schedule = member_schedule(&plan.schedule, plan.routes, ports);
        self.schedules.insert(key, (schedule, chosen));
        Ok(key)
    }

    /// Returns the index of an algorithm in the list of chosen algorithms. Collectives that differ
    /// only in their roots have the same entry.
    fn number_of(&mut self, chosen: ChosenAlgorithm) -> usize {
        let known = self.chosen.iter().position(|known| *known == chosen);
        known.unwrap_or_else(|| {
            self.chosen.push(chosen);
            self.chosen.len() - 1
        })
    }
}
