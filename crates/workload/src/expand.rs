//! Expansion of the calls of MPI programs into programs of messages: every collective becomes the
//! messages of an algorithm.
//!
//! Each call starts with its local work, which requires the previous call. The messages of a
//! collective's step require all messages of the rank's previous step; messages of one step run
//! concurrently. On a fabric both ends of a message must be ready, whatever the eager limit,
//! because plans are timed with the start rule `rendezvous`. The transfers of a step with the same
//! sender, receiver and action are one message. A message without bytes is still sent (signals of a
//! barrier, empty blocks). A collective on a communicator with one member does nothing.
//!
//! With lightpaths that are set up and released ([`SetUp`]), each rank sets up the paths that the
//! messages of a call need before these messages, and releases them afterwards. The verifier checks
//! the schedule of every collective before its messages are used.
//!
//! On a fabric with circuits, a collective is carried out by a plan of its own, for which its
//! members synchronise (`planned.rs`).
//!
//! Messages of the program never match messages of a collective, nor messages of another
//! communicator.

mod agree;
mod choice;
mod held_paths;
mod parts;
mod planned;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::error::{Place, TraceError};
use super::program::{Call, FOLLOWS, NONE, Node, NodeKind, Program, ProgramBuilder};
use super::trace::{Event, Trace};
use agree::{Entered, agree, has_few_sizes};
pub use choice::ChosenAlgorithm;
use held_paths::{HeldPaths, PathChange, PredictedPaths};

use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::routes::FABRIC_ROUTE;
use opticoll_planner as planner;
use opticoll_simulate::{Method, Paths};
use parts::{MemberSchedule, group_from, member_schedule, plain_bytes, various_bytes};
use planned::PlannedCollectives;
pub(super) use planned::expand_plan;

/// Algorithm of each collective.
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

/// Lightpaths that programs set up and release.
///
/// A rank has `ports` ports and holds paths, which serve both directions, to at most that number of
/// partners. A collective groups consecutive steps that together need at most `ports` partners:
/// their paths are set up together before the group and released after it. A step with more
/// partners than ports is cut into parts: each pair joins the first part in which both ends have a
/// free port, and all ranks execute the parts in this order. A blocking send or receive sets up its
/// path before and releases it afterwards. A non-blocking call sets up its path before, and the
/// wait for the call releases it. Paths of single messages do not count against the ports:
/// otherwise a program that sends while it has open receives could never continue.
///
/// The policies ([`Paths`]) differ. [`Paths::Released`] is described above. With [`Paths::Kept`]
/// nothing is released after its messages: each rank keeps the paths that it used most recently,
/// including those of single messages. [`Paths::Warm`] starts with the paths that an earlier run of
/// the same program left. The header of `held_paths.rs` describes the costs. With
/// [`Paths::Predicted`] each path is known in advance: it is set up as soon as the paths before it
/// are released, while the program continues, and the program does not wait for releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetUp {
    /// Time to set up any number of paths at once.
    pub setup: Time,
    /// Time to release them.
    pub teardown: Time,
    /// Number of ports of a rank, at least 1.
    pub ports: u32,
    /// Policy that releases paths.
    pub paths: Paths,
}

/// The network on which collectives run.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollectiveTarget<'a> {
    /// The fabric. `auto` plans on parts of it, and algorithms are chosen to fit it in
    /// communicators with all of its ranks. `None`: a ring.
    pub fabric: Option<&'a Fabric>,
    /// Lightpaths that messages need; `None` if messages need no setup.
    pub set_up: Option<SetUp>,
    /// Specification of a fabric, without its number of ranks, on which `auto` plans if `fabric` is
    /// `None`.
    pub resembles: Option<&'a Spec>,
    /// Settings that time plans.
    pub method: Option<&'a Method>,
}

/// A program and the algorithms of its collectives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The expanded program.
    pub program: Program,
    /// Each pair of collective and communicator size, in the order of first use.
    pub chosen: Vec<ChosenAlgorithm>,
}

/// Expands calls into the program that is replayed.
///
/// # Errors
/// Fails as [`expand_on`] does.
pub fn expand(trace: &Trace, algorithms: &Algorithms) -> Result<Program, TraceError> {
    expand_on(trace, algorithms, CollectiveTarget::default()).map(|expanded| expanded.program)
}

/// Expands calls into the program that is replayed on a fabric or over lightpaths.
///
/// # Errors
/// Fails for a wait for a request that is not open, a request opened twice, a communicator that is
/// not declared or does not contain the rank, a collective that only some members enter or that
/// members enter with different kinds, roots or sizes, a send without a receive or the reverse, an
/// algorithm that does not run on this number of ranks, and a plan that the verifier refuses.
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
        planned: PlannedCollectives::default(),
        chosen: Vec::new(),
        tags: FxHashMap::default(),
        builder: ProgramBuilder::new(),
        held: None,
        predicted: PredictedPaths::default(),
    };
    let keeps_paths = |set_up: &SetUp| matches!(set_up.paths, Paths::Kept | Paths::Warm);
    let kept = target.set_up.filter(keeps_paths);
    for rank in 0..trace.ranks.len() as u32 {
        expansion.held = kept.map(|set_up| HeldPaths::new(set_up.ports));
        expansion.predicted = PredictedPaths::default();
        if kept.is_some_and(|set_up| set_up.paths == Paths::Warm) {
            // A previous run, of which only the lightpaths remain.
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
    })
}

/// Returns the collective that a call enters, or `None` for other calls.
fn kind(call: Call) -> Option<CollectiveKind> {
    Some(match call {
        Call::Barrier => CollectiveKind::Barrier,
        Call::Broadcast => CollectiveKind::Broadcast,
        Call::Reduce => CollectiveKind::Reduce,
        Call::AllReduce => CollectiveKind::AllReduce,
        Call::Gather => CollectiveKind::Gather,
        Call::Scatter => CollectiveKind::Scatter,
        Call::AllGather => CollectiveKind::AllGather,
        Call::ReduceScatter => CollectiveKind::ReduceScatter,
        Call::AllToAll | Call::AllToAllVarious => CollectiveKind::AllToAll,
        _ => return None,
    })
}

/// First tag for communicators other than the world and for collectives.
const FIRST_RESERVED_TAG: u32 = 1 << 31;

/// Key of a schedule: the collective, the number of ranks and the root of its communicator, the
/// size for which it is planned, and whether the members are the ranks of the fabric in order.
type ScheduleKey = (CollectiveKind, u32, u32, Option<Bytes>, bool);

struct Expansion<'a> {
    trace: &'a Trace,
    algorithms: &'a Algorithms,
    target: CollectiveTarget<'a>,
    collectives: Entered,
    schedules: FxHashMap<ScheduleKey, MemberSchedule>,
    /// True if collectives are planned for their exact sizes.
    is_exact: bool,
    /// Collectives planned on a fabric with circuits.
    planned: PlannedCollectives,
    chosen: Vec<ChosenAlgorithm>,
    tags: FxHashMap<(u32, Option<u32>), u32>,
    builder: ProgramBuilder,
    /// The paths of the current rank, if paths are kept.
    held: Option<HeldPaths>,
    /// The paths of the current rank, if they are known in advance.
    predicted: PredictedPaths,
}

/// Processor of a rank that sets up and releases lightpaths concurrently with the program.
const PATH_PROCESSOR: u8 = 1;

/// Requests and collectives that a rank has begun.
#[derive(Default)]
struct Open {
    requests: BTreeMap<u32, (u32, usize)>,
    /// Number of collectives that the rank has entered on each communicator.
    entered: FxHashMap<u32, usize>,
}

impl Expansion<'_> {
    /// Adds the calls of a rank, one after another.
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
        // A final node, so that the last call has an end.
        let events = trace.ranks[rank as usize].len() as u32;
        let node = Node {
            event: events,
            ..Node::work(NodeKind::Enter, 0)
        };
        self.push(node, &before)?;
        Ok(())
    }

    /// Adds the events of a rank whose dependencies the trace states.
    fn graph(&mut self, rank: u32, after: &[Vec<u32>]) -> Result<(), TraceError> {
        let trace = self.trace;
        let mut open = Open::default();
        // The last node of each event.
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

    /// Adds a node that requires, or with [`FOLLOWS`] follows, the nodes `before`.
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

    /// Adds a call that is no collective, and replaces `before` by the nodes that the next call
    /// requires.
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

    /// Sets up the lightpaths to `others` that the next messages need, if lightpaths must be set
    /// up.
    fn begin_use(
        &mut self,
        enter: Node,
        others: impl IntoIterator<Item = u32>,
        before: &mut Vec<u32>,
    ) -> Result<(), TraceError> {
        let change = match &mut self.held {
            Some(held) => held.take(others),
            None => PathChange::SET_UP,
        };
        self.set_up(enter, change, before)
    }

    /// Releases lightpaths after messages that leave no request open, unless the rank keeps its
    /// paths.
    fn end_use(&mut self, enter: Node, before: &mut Vec<u32>) -> Result<(), TraceError> {
        match self.held {
            Some(_) => Ok(()),
            None => self.set_up(enter, PathChange::RELEASE, before),
        }
    }

    /// Ends requests, each given by its node and its event.
    fn close(
        &mut self,
        enter: Node,
        requests: impl IntoIterator<Item = (u32, usize)>,
        before: &mut Vec<u32>,
    ) -> Result<(), TraceError> {
        let change = match &mut self.held {
            Some(held) => {
                let requests = requests.into_iter().map(|(node, _)| node);
                held.close(requests.map(|node| self.builder.node(node).peer))
            }
            None => PathChange::RELEASE,
        };
        self.set_up(enter, change, before)
    }

    /// Adds the time to set up or release lightpaths, if the target has any.
    fn set_up(
        &mut self,
        enter: Node,
        change: PathChange,
        before: &mut Vec<u32>,
    ) -> Result<(), TraceError> {
        let Some(paths) = self
            .target
            .set_up
            .filter(|_| change != PathChange::default())
        else {
            return Ok(());
        };
        let is_predicted = paths.paths == Paths::Predicted;
        if is_predicted && change.releases {
            self.predicted = PredictedPaths {
                used: before.clone(),
                is_held: true,
            };
            return Ok(());
        }
        let releases = change.releases || std::mem::take(&mut self.predicted.is_held);
        let time = |applies: bool, time: Time| if applies { time } else { Time::ZERO };
        let release = time(releases, paths.teardown);
        let node = Node {
            amount: release.plus(time(change.sets_up, paths.setup))?.ps(),
            kind: NodeKind::SetUp,
            tag: u32::from(change.sets_up),
            processor: if is_predicted {
                PATH_PROCESSOR
            } else {
                enter.processor
            },
            ..enter
        };
        if is_predicted {
            let used = std::mem::take(&mut self.predicted.used);
            before.push(self.push(node, &used)?);
            self.predicted.used = used;
            return Ok(());
        }
        let node = self.push(node, before)?;
        before.clear();
        before.push(node);
        Ok(())
    }

    /// Adds a collective, and replaces `before` by the messages of the rank's last step.
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
        // Parts of a fabric number their ranks in the order of the fabric, whatever the order of
        // the communicator.
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
        // Removed while nodes are pushed, inserted again afterwards.
        let parts = self.schedules.remove(&key).expect("just prepared");
        let member_parts = &parts.members[number as usize];
        let ports = self.target.set_up.map(|paths| paths.ports);
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
                    let size = |origin: u32, target: u32| {
                        let [origin, target] =
                            [origin, target].map(|member| order[member as usize]);
                        self.block_of_various(event.communicator, entered, origin, target)
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
        self.schedules.insert(key, parts);
        Ok(())
    }

    /// Returns the size for which a collective is planned, or `None` if its plan does not depend on
    /// the size.
    fn planned_size(&self, spec: &Spec, kind: CollectiveKind, size: u64) -> Option<Bytes> {
        let size = size.max(1);
        if spec.is_rule() {
            return Some(Bytes::new(size));
        }
        let rounded = || size.checked_next_power_of_two().unwrap_or(size);
        let by_size = planner::find(kind, spec.name()).is_some_and(|record| record.by_size);
        by_size.then(|| Bytes::new(if self.is_exact { size } else { rounded() }))
    }

    /// Returns the bytes that member `origin` sends to member `target` in the `nth` collective of a
    /// communicator, an Alltoallv.
    fn block_of_various(
        &self,
        communicator: u32,
        nth: usize,
        origin: u32,
        target: u32,
    ) -> Option<u64> {
        let event = *self
            .collectives
            .get(&communicator)?
            .get(nth)?
            .get(origin as usize)?;
        let rank = *self
            .trace
            .communicators
            .get(&communicator)?
            .get(origin as usize)?;
        let event = self.trace.ranks[rank as usize].get(event as usize)?;
        let sizes = self.trace.various.get(event.request as usize)?;
        sizes.get(target as usize).copied()
    }

    /// Returns the mean number of bytes that a member sends in the `nth` collective of a
    /// communicator, an Alltoallv.
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

    /// Returns the tag of a message: a distinct tag for the collectives of each communicator and
    /// for each tag of a communicator other than the world. Small tags of the world remain
    /// unchanged.
    fn tag(&mut self, communicator: u32, tag: Option<u32>) -> u32 {
        match tag {
            Some(tag) if communicator == 0 && tag < FIRST_RESERVED_TAG => tag,
            _ => {
                let next = FIRST_RESERVED_TAG + self.tags.len() as u32;
                *self.tags.entry((communicator, tag)).or_insert(next)
            }
        }
    }

    /// Plans a collective unless its schedule is cached, and returns the key of the schedule.
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
            _ => event.bytes,
        };
        let size = self.planned_size(spec, kind, size);
        let has_all = |fabric: &Fabric| fabric.ranks() == ranks;
        let key = (
            kind,
            ranks,
            root,
            size,
            self.target.fabric.is_some_and(has_all),
        );
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
            key.4,
            place,
        )?;
        // Collectives that differ only in their roots have the same entry.
        if !self.chosen.contains(&chosen) {
            self.chosen.push(chosen);
        }
        let ports = self.target.set_up.map_or(u32::MAX, |paths| paths.ports);
        self.schedules
            .insert(key, member_schedule(&plan.schedule, plan.routes, ports));
        Ok(key)
    }
}
