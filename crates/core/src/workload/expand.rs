//! From the calls of an MPI program to the program that is replayed: collectives become messages.
//!
//! Each call begins with its local work, which requires what came before. A message of a collective's
//! step requires all messages of the rank's steps before; those of one step go side by side. A member
//! sends each step's transfers to one rank with one action as one message; a step without bytes still
//! sends (a barrier's signals, empty blocks). A communicator of one member does nothing.
//!
//! Messages of a program and of collectives never match each other, nor those of two communicators.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::error::{Place, TraceError};
use super::program::{Call, FOLLOWS, NONE, Node, NodeKind, Program, ProgramBuilder};
use super::trace::{Event, Trace};
use crate::algorithm;
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Fabric;
use crate::schedule::{Action, Schedule};
use crate::spec::Spec;
use crate::units::Bytes;

/// The algorithm of each collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms {
    chosen: BTreeMap<&'static str, Spec>,
}

impl Default for Algorithms {
    /// What message passing libraries run for short messages: recursive doubling, binomial trees, and
    /// the pairwise exchange for an all_to_all.
    fn default() -> Algorithms {
        let default = |kind: CollectiveKind| match kind {
            CollectiveKind::AllReduce | CollectiveKind::Barrier | CollectiveKind::AllGather => {
                "recursive_doubling"
            }
            CollectiveKind::ReduceScatter => "recursive_halving",
            CollectiveKind::AllToAll => "pairwise",
            _ => "binomial",
        };
        let chosen = CollectiveKind::ALL.map(|kind| (kind.name(), Spec::new(default(kind))));
        Algorithms {
            chosen: chosen.into(),
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

/// Turns calls into the program that is replayed.
///
/// # Errors
/// A wait for a request that is not open, one opened twice, a communicator that is not declared or
/// without the rank, a collective that only some members enter or with different kinds, roots or sizes, a
/// send without a receive or the other way round, an algorithm that does not run on so many ranks.
pub fn expand(trace: &Trace, algorithms: &Algorithms) -> Result<Program, TraceError> {
    let collectives = agree(trace)?;
    let mut expansion = Expansion {
        trace,
        algorithms,
        collectives,
        schedules: FxHashMap::default(),
        tags: FxHashMap::default(),
        builder: ProgramBuilder::new(),
    };
    for rank in 0..trace.ranks.len() as u32 {
        expansion.rank(rank)?;
    }
    expansion.builder.finish()
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

/// Per communicator, the collectives that its members enter: for each the event of every member.
type Entered = BTreeMap<u32, Vec<Vec<u32>>>;

/// Checks that the members of each communicator enter the same collectives in the same order.
fn agree(trace: &Trace) -> Result<Entered, TraceError> {
    let mut entered: BTreeMap<u32, Vec<Vec<u32>>> = BTreeMap::new();
    for rank in 0..trace.ranks.len() as u32 {
        let mut count: FxHashMap<u32, usize> = FxHashMap::default();
        for (index, event) in trace.ranks[rank as usize].iter().enumerate() {
            if kind(event.call).is_none() {
                continue;
            }
            let (members, number) = trace.members(rank, index)?;
            let rooted = event.peer != NONE;
            if rooted && !members.contains(&event.peer) {
                let problem = format!(
                    "the root {} is no member of communicator {}",
                    event.peer, event.communicator
                );
                let place = trace.place(rank, index);
                return Err(TraceError::Communicator { place, problem });
            }
            let collectives = entered.entry(event.communicator).or_default();
            let nth = count.entry(event.communicator).or_default();
            if collectives.len() == *nth {
                collectives.push(vec![NONE; members.len()]);
            }
            collectives[*nth][number as usize] = index as u32;
            *nth += 1;
        }
    }
    for (&communicator, collectives) in &entered {
        let members = &trace.communicators[&communicator];
        for events in collectives {
            agree_on_one(trace, communicator, members, events)?;
        }
    }
    Ok(entered)
}

fn agree_on_one(
    trace: &Trace,
    communicator: u32,
    members: &[u32],
    events: &[u32],
) -> Result<(), TraceError> {
    let entering = members
        .iter()
        .zip(events)
        .filter(|(_, event)| **event != NONE);
    let mut entering = entering.map(|(&rank, &event)| (rank, event as usize));
    let Some((first_rank, first)) = entering.next() else {
        return Ok(());
    };
    let shape = |rank: u32, index: usize| {
        let event = trace.ranks[rank as usize][index];
        // Members of an exchange of various sizes have their own.
        let size = (event.call != Call::AllToAllVarious).then_some(event.bytes);
        (event.call, event.peer, size)
    };
    let place = trace.place(first_rank, first);
    for (rank, index) in entering {
        if shape(rank, index) != shape(first_rank, first) {
            return Err(TraceError::Disagreement {
                place: trace.place(rank, index),
                here: describe(shape(rank, index)),
                communicator,
                other: place,
                there: describe(shape(first_rank, first)),
            });
        }
    }
    match events.iter().position(|&event| event == NONE) {
        None => Ok(()),
        Some(missing) => Err(TraceError::MissingMember {
            place,
            call: shape(first_rank, first).0.name(),
            communicator,
            missing: members[missing],
        }),
    }
}

fn describe((call, root, size): (Call, u32, Option<u64>)) -> String {
    let root = match root {
        NONE => String::new(),
        root => format!(" with root {root}"),
    };
    let size = size.map_or(String::new(), |size| format!(" of {size} bytes"));
    format!("{}{root}{size}", call.name())
}

/// Tags from here on are of communicators other than the world, and of collectives.
const OWN_TAGS: u32 = 1 << 31;

/// A message of one member of a collective: its step, the other member, and the chunks.
struct Part {
    step: u32,
    peer: u32,
    sends: bool,
    chunks: Vec<(u32, u32)>,
}

/// A schedule as each member sees it.
struct Parts {
    collective: Collective,
    members: Vec<Vec<Part>>,
}

struct Expansion<'a> {
    trace: &'a Trace,
    algorithms: &'a Algorithms,
    collectives: Entered,
    schedules: FxHashMap<(CollectiveKind, u32, u32), Parts>,
    tags: FxHashMap<(u32, Option<u32>), u32>,
    builder: ProgramBuilder,
}

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
        let mut open = Open::default();
        let mut before: Vec<u32> = Vec::new();
        for (index, event) in trace.ranks[rank as usize].iter().enumerate() {
            let node = Node {
                amount: event.compute,
                peer: NONE,
                tag: 0,
                partner: NONE,
                event: index as u32,
                line: event.line,
                kind: NodeKind::Enter,
                call: event.call,
                processor: 0,
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
            amount: 0,
            peer: NONE,
            tag: 0,
            partner: NONE,
            event: events,
            line: 0,
            kind: NodeKind::Enter,
            call: Call::Local,
            processor: 0,
        };
        self.push(node, &before)?;
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
                before.extend(requests.into_values().map(|(node, _)| node));
                return Ok(());
            }
            Call::Wait => {
                let Some((node, _)) = open.requests.remove(&event.request) else {
                    return Err(TraceError::Request {
                        place: self.trace.place(rank, index),
                        request: event.request,
                    });
                };
                before.push(node);
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.trace.members(rank, index)?;
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
                return Err(TraceError::RequestOpen {
                    place: self.trace.place(rank, index),
                    request: event.request,
                    opened: self.trace.place(rank, opened),
                });
            }
        }
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
        let tag = self.tag(event.communicator, None);
        let key = self.prepare(place, event, members)?;
        // Taken out while nodes are pushed, then put back.
        let parts = self.schedules.remove(&key).expect("just prepared");
        let mut step_nodes: Vec<u32> = Vec::new();
        let mut step = NONE;
        for part in &parts.members[number as usize] {
            if part.step != step && !step_nodes.is_empty() {
                std::mem::swap(before, &mut step_nodes);
                step_nodes.clear();
            }
            step = part.step;
            let bytes = match event.call {
                Call::AllToAllVarious => {
                    let size = |origin, target| {
                        self.block_of_various(event.communicator, entered, origin, target)
                    };
                    various_bytes(&parts.collective, size, part)
                }
                _ => plain_bytes(&parts.collective, event.bytes, part),
            };
            let node = Node {
                amount: bytes.ok_or_else(|| TraceError::Event {
                    place,
                    problem: "its sizes are fewer than members, or leave 64 bits".into(),
                })?,
                peer: members[part.peer as usize],
                tag,
                kind: if part.sends {
                    NodeKind::Send
                } else {
                    NodeKind::Receive
                },
                ..enter
            };
            step_nodes.push(self.push(node, before)?);
        }
        if !step_nodes.is_empty() {
            std::mem::swap(before, &mut step_nodes);
        }
        self.schedules.insert(key, parts);
        Ok(())
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
    ) -> Result<(CollectiveKind, u32, u32), TraceError> {
        let kind = kind(event.call).expect("a collective");
        let ranks = members.len() as u32;
        let root = members.iter().position(|&member| member == event.peer);
        let root = root.unwrap_or(0) as u32;
        let key = (kind, ranks, root);
        if self.schedules.contains_key(&key) {
            return Ok(key);
        }
        let collective = Collective::new(kind, ranks).and_then(|one| one.with_root(root));
        let collective = collective.map_err(|error| TraceError::Collective { place, error })?;
        let ring = format!("wdm_ring:ranks={ranks},wavelengths=1");
        let fabric = Fabric::parse(&ring).map_err(|error| TraceError::Event {
            place,
            problem: error.to_string(),
        })?;
        let spec = &self.algorithms.chosen[kind.name()];
        let schedule = algorithm::build_ranges(spec, collective, &fabric)
            .map_err(|error| TraceError::Algorithm { place, error })?;
        self.schedules.insert(key, by_member(&schedule));
        Ok(key)
    }
}

/// A schedule cut by member: messages in order of steps, sends before receives.
fn by_member(schedule: &Schedule) -> Parts {
    let ranks = schedule.collective.ranks() as usize;
    let mut members: Vec<Vec<Part>> = (0..ranks).map(|_| Vec::new()).collect();
    for step in 0..schedule.steps() {
        let mut messages: BTreeMap<(u32, u32, Action), Vec<(u32, u32)>> = BTreeMap::new();
        for index in schedule.step(step) {
            let transfer = schedule.transfer(index);
            let ends = (transfer.source, transfer.destination, transfer.action);
            let chunks = messages.entry(ends).or_default();
            chunks.push((transfer.chunk, transfer.count));
        }
        for sends in [true, false] {
            for ((source, destination, _), chunks) in &messages {
                let (own, peer) = match sends {
                    true => (*source, *destination),
                    false => (*destination, *source),
                };
                members[own as usize].push(Part {
                    step: step as u32,
                    peer,
                    sends,
                    chunks: chunks.clone(),
                });
            }
        }
    }
    Parts {
        collective: schedule.collective,
        members,
    }
}

fn plain_bytes(collective: &Collective, size: u64, part: &Part) -> Option<u64> {
    part.chunks.iter().try_fold(0u64, |sum, &(chunk, count)| {
        let range = collective
            .range_bytes(Bytes::new(size), chunk, count)
            .ok()?;
        sum.checked_add(range.get())
    })
}

/// The bytes of a message of an exchange of various sizes: block i N + j is what member i has for member
/// j, cut evenly into pieces.
fn various_bytes(
    collective: &Collective,
    size: impl Fn(u32, u32) -> Option<u64>,
    part: &Part,
) -> Option<u64> {
    let (ranks, pieces) = (collective.ranks(), collective.pieces());
    let chunks = part.chunks.iter();
    let mut chunks = chunks.flat_map(|&(chunk, count)| chunk..chunk + count);
    chunks.try_fold(0u64, |sum, chunk| {
        let (block, piece) = (chunk / pieces, u128::from(chunk % pieces));
        let whole = u128::from(size(block / ranks, block % ranks)?);
        let edge = |piece: u128| whole * piece / u128::from(pieces);
        sum.checked_add((edge(piece + 1) - edge(piece)) as u64)
    })
}
