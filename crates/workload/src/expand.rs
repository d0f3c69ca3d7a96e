//! From the calls of an MPI program to the program that is replayed: collectives become messages.
//!
//! Each call begins with its local work, which requires what came before. A message of a collective's
//! step requires all messages of the rank's steps before; those of one step go side by side. On a fabric both ends of a
//! message must be ready, whatever the eager limit: the start rule `rendezvous`, by which plans are timed. A member
//! sends each step's transfers to one rank with one action as one message; a step without bytes still
//! sends (a barrier's signals, empty blocks). A communicator of one member does nothing.
//!
//! Over lightpaths that are set up and released, each rank besides sets up, before a call's messages, the
//! paths that they need, and releases them after; see [`SetUp`]. The schedule of every collective is
//! checked by the verifier before its messages are taken for the collective.
//!
//! On a fabric of circuits a collective is carried out by a plan of its own, and its members meet for it
//! (`planned.rs`).
//!
//! Messages of a program and of collectives never match each other, nor those of two communicators.

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
use opticoll_plan::plan::routes::OF_FABRIC;
use opticoll_planner as planner;
use opticoll_simulate::{Method, Paths};
use parts::{MemberSchedule, by_member, group_from, plain_bytes, various_bytes};
use planned::PlannedCollectives;
pub(super) use planned::expand_plan;

/// The algorithm of each collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms {
    chosen: BTreeMap<&'static str, Spec>,
}

impl Default for Algorithms {
    /// What message passing libraries run for short messages: recursive doubling, binomial trees, and
    /// the pairwise exchange for an all_to_all.
    fn default() -> Algorithms {
        let of_short = opticoll_algorithms::records()
            .iter()
            .filter(|record| record.short_messages.contains(&record.collective));
        let chosen = of_short.map(|record| (record.collective.name(), Spec::new(record.name)));
        Algorithms {
            chosen: chosen.collect(),
        }
    }
}

impl Algorithms {
    /// The same with another algorithm for one collective.
    pub fn with(mut self, kind: CollectiveKind, algorithm: Spec) -> Algorithms {
        self.chosen.insert(kind.name(), algorithm);
        self
    }
}

/// Lightpaths that programs set up and release themselves.
///
/// A rank has so many ports and holds a path, which serves both ways, to at most as many others. In a
/// collective it sets up the paths of consecutive steps at once, as many steps as have no more partners
/// than there are ports, and releases them before the next. A step in which ranks have more partners than
/// ports is cut into parts, pair by pair, each pair into the first part that has a port for it at both
/// ends; all ranks take the parts in that order. A blocking send or receive sets up a path before and
/// releases it after; one that returns at once sets it up before, and waiting for it releases it. Paths of
/// single messages are not counted against the ports: what a program sends while it has receives open
/// would stand still.
///
/// So it is with [`Paths::Released`]. With [`Paths::Kept`] nothing is released after its messages, and each rank
/// keeps the paths that it used last, those of single messages too; with [`Paths::Warm`] there are at first
/// those that a run of the same program before has left. `held_paths.rs` says what that costs. With
/// [`Paths::Predicted`] each path is known in advance: it is set up as soon as those before it are released, while the program
/// goes on, and the program does not wait until it is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetUp {
    /// To set up any number of paths at one instant.
    pub establish: Time,
    /// To release them.
    pub release: Time,
    /// Ports of a rank, at least 1.
    pub ports: u32,
    /// When paths go.
    pub paths: Paths,
}

/// What collectives run on.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollectiveTarget<'a> {
    /// The fabric on parts of which `auto` plans, and that algorithms are asked to fit, in communicators of as many ranks;
    /// otherwise a ring.
    pub fabric: Option<&'a Fabric>,
    /// Lightpaths that are set up for messages; `None`: messages find their way.
    pub set_up: Option<SetUp>,
    /// A fabric without its number of ranks that `auto` plans on where there is no fabric.
    pub resembles: Option<&'a Spec>,
    /// How plans are timed.
    pub method: Option<&'a Method>,
}

/// A program, and by which algorithms its collectives run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The program.
    pub program: Program,
    /// Each collective in each size of communicator, in the order in which they were met.
    pub chosen: Vec<ChosenAlgorithm>,
}

/// Turns calls into the program that is replayed.
///
/// # Errors
/// As [`expand_on`].
pub fn expand(trace: &Trace, algorithms: &Algorithms) -> Result<Program, TraceError> {
    expand_on(trace, algorithms, CollectiveTarget::default()).map(|expanded| expanded.program)
}

/// Turns calls into the program that is replayed on a fabric, or over lightpaths.
///
/// # Errors
/// A wait for a request that is not open, one opened twice, a communicator that is not declared or
/// without the rank, a collective that only some members enter or with different kinds, roots or sizes, a
/// send without a receive or the other way round, an algorithm that does not run on so many ranks or whose
/// plan the verifier refuses.
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
    for rank in 0..trace.ranks.len() as u32 {
        expansion.held = None;
        expansion.predicted = PredictedPaths::default();
        match target.set_up {
            Some(set_up) if matches!(set_up.paths, Paths::Kept | Paths::Warm) => {
                expansion.held = Some(HeldPaths::new(set_up.ports));
            }
            _ => {}
        }
        if target
            .set_up
            .is_some_and(|set_up| set_up.paths == Paths::Warm)
        {
            // A run before, of which nothing stays but its paths.
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

/// The collective that a call enters; none for a call that is no collective.
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

/// Tags from here on are of communicators other than the world, and of collectives.
const OWN_TAGS: u32 = 1 << 31;

/// A collective, the ranks and the root of its communicator, the size that it is planned for, and
/// whether the members are the ranks of the fabric in their order.
type ScheduleKey = (CollectiveKind, u32, u32, Option<Bytes>, bool);

struct Expansion<'a> {
    trace: &'a Trace,
    algorithms: &'a Algorithms,
    target: CollectiveTarget<'a>,
    collectives: Entered,
    schedules: FxHashMap<ScheduleKey, MemberSchedule>,
    /// Whether collectives are planned for their own sizes.
    is_exact: bool,
    /// Those of a fabric of circuits.
    planned: PlannedCollectives,
    chosen: Vec<ChosenAlgorithm>,
    tags: FxHashMap<(u32, Option<u32>), u32>,
    builder: ProgramBuilder,
    /// The paths of the rank at hand, if they are held.
    held: Option<HeldPaths>,
    /// The paths of the rank at hand, if they are known in advance.
    predicted: PredictedPaths,
}

/// The processor of a rank that sets up and releases lightpaths beside the program.
const PATH_PROCESSOR: u8 = 1;

/// What a rank has begun and not yet waited for.
#[derive(Default)]
struct Open {
    requests: BTreeMap<u32, (u32, usize)>,
    /// How many collectives it has entered on each communicator.
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
        // One more begin, so that the last call has an end.
        let events = trace.ranks[rank as usize].len() as u32;
        let node = Node {
            event: events,
            ..Node::work(NodeKind::Enter, 0)
        };
        self.push(node, &before)?;
        Ok(())
    }

    /// The events of a rank that wait for one another as the trace says.
    fn graph(&mut self, rank: u32, after: &[Vec<u32>]) -> Result<(), TraceError> {
        let trace = self.trace;
        let mut open = Open::default();
        // By event: the node with whose end it ends.
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
            let own = match message {
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
            ends.push(self.push(own, &before)?);
        }
        Ok(())
    }

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

    /// Replaces `before` by what the next call requires.
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

    /// Before messages to and from these others: their lightpaths, where there are any.
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

    /// After messages that nothing is left open of.
    fn end_use(&mut self, enter: Node, before: &mut Vec<u32>) -> Result<(), TraceError> {
        match self.held {
            Some(_) => Ok(()),
            None => self.set_up(enter, PathChange::RELEASE, before),
        }
    }

    /// Requests are over, each its node and its event.
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

    /// Adds the time to set up or release lightpaths, where that is done.
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
        let time = |done: bool, time: Time| if done { time } else { Time::ZERO };
        let release = time(releases, paths.release);
        let node = Node {
            amount: release.plus(time(change.sets_up, paths.establish))?.ps(),
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

    /// Replaces `before` by the messages of the rank's last step.
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
        if let Some(fabric) = self.target.fabric.filter(|one| one.circuits().is_some()) {
            let (meeting, sent) = self.meeting(fabric, place, event, (entered, number))?;
            let node = Node {
                amount: meeting,
                kind: NodeKind::Collective,
                ..enter
            };
            let node = self.push(node, before)?;
            self.builder.join(meeting, sent);
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
        // Taken out while nodes are pushed, then put back.
        let parts = self.schedules.remove(&key).expect("just prepared");
        let own = &parts.members[number as usize];
        let ports = self.target.set_up.map(|paths| paths.ports);
        let mut group = 0..0;
        let mut step_nodes: Vec<u32> = Vec::new();
        let mut step = NONE;
        for (index, part) in own.iter().enumerate() {
            if part.step != step && !step_nodes.is_empty() {
                std::mem::swap(before, &mut step_nodes);
                step_nodes.clear();
            }
            step = part.step;
            if let Some(ports) = ports.filter(|_| index == group.end) {
                if index > 0 {
                    self.end_use(enter, before)?;
                }
                group = group_from(own, index, ports);
                let others = own[group.clone()].iter();
                let others = others.map(|part| members[part.peer as usize]);
                self.begin_use(enter, others, before)?;
            }
            let bytes = match event.call {
                Call::AllToAllVarious => {
                    let size = |origin: u32, target: u32| {
                        let [origin, target] = [origin, target].map(|one| order[one as usize]);
                        self.block_of_various(event.communicator, entered, origin, target)
                    };
                    various_bytes(&parts.collective, size, part)
                }
                _ => plain_bytes(&parts.collective, event.bytes, part),
            };
            let node = Node {
                amount: bytes.ok_or_else(|| {
                    TraceError::at(place, "its sizes are fewer than members, or leave 64 bits")
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
            if part.sends && part.route != OF_FABRIC {
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

    /// The size that a collective is planned for; none where plans do not depend on it.
    fn planned_size(&self, spec: &Spec, kind: CollectiveKind, size: u64) -> Option<Bytes> {
        let size = size.max(1);
        if spec.is_rule() {
            return Some(Bytes::new(size));
        }
        let rounded = || size.checked_next_power_of_two().unwrap_or(size);
        let by_size = planner::find(kind, spec.name()).is_some_and(|record| record.by_size);
        by_size.then(|| Bytes::new(if self.is_exact { size } else { rounded() }))
    }

    /// The bytes that one member has for another in the nth collective of a communicator.
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

    /// The bytes that a member has for all others in the nth collective of a communicator, on average.
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

    /// A tag of its own for each communicator's collectives, and for each tag of a communicator other than
    /// the world; the world's small tags stay as they are.
    fn tag(&mut self, communicator: u32, tag: Option<u32>) -> u32 {
        match tag {
            Some(tag) if communicator == 0 && tag < OWN_TAGS => tag,
            _ => {
                let next = OWN_TAGS + self.tags.len() as u32;
                *self.tags.entry((communicator, tag)).or_insert(next)
            }
        }
    }

    /// Makes sure that the schedule of a collective is at hand.
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
        let collective = Collective::new(kind, ranks).and_then(|one| one.with_root(root));
        let collective = collective.map_err(|error| TraceError::at(place, error))?;
        let (plan, chosen) = choice::plan(
            self.algorithms,
            self.target,
            (collective, members),
            size,
            key.4,
            place,
        )?;
        // Roots differ more often than what is chosen for them.
        if !self.chosen.contains(&chosen) {
            self.chosen.push(chosen);
        }
        let ports = self.target.set_up.map_or(u32::MAX, |paths| paths.ports);
        self.schedules
            .insert(key, by_member(&plan.schedule, plan.routes, ports));
        Ok(key)
    }
}
