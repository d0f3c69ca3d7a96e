//! Messages of each rank of a plan, for files that other programs read.
//!
//! The transfers of a step with the same source, destination, action and route form one message. A
//! rank starts the messages of a step after it has completed the messages of its previous step. The
//! messages of one step run concurrently. Lightpaths, slots and routes are not part of the
//! messages.
//!
//! **Tags.** Let m be the maximum number of messages from one rank to another rank in a step. The
//! i-th message from one rank to another in step s has the tag s m + i. Hence no two messages
//! between the same ranks have the same tag. The tags alone determine which receive matches which
//! send, regardless of the order in which a program starts messages.

use rustc_hash::FxHashMap;

use super::error::TraceError;
use super::goal_text::ANY;
use super::program::MAX_NODES;
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_base::units::Bytes;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Plan, StepMessages};
use opticoll_plan::schedule::Action;

/// Message of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanMessage {
    /// Size in bytes.
    pub bytes: u64,
    /// Index of the step in the schedule.
    pub step: u32,
    /// Sending rank.
    pub source: u32,
    /// Receiving rank.
    pub destination: u32,
    /// Tag, which no other message between the two ranks has.
    pub tag: u32,
    /// Action of the receiver: copy or reduce.
    pub action: Action,
    /// Index in [`PlanMessages::ranges`] of the message's first range of chunks.
    first_range: usize,
    range_count: u32,
}

/// Messages of a plan, in the order of steps, and the operations of each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanMessages {
    /// Collective of the plan.
    pub collective: Collective,
    /// Size of the collective in bytes.
    pub size: Bytes,
    messages: Vec<PlanMessage>,
    /// Ranges of chunks, as (first chunk, number of chunks).
    ranges: Vec<(u32, u32)>,
    /// Operations, sorted by rank, then by step, sends before receives. Value 2 i stands for the
    /// send of the message with index i, and value 2 i + 1 for its receive.
    operations: Vec<u32>,
    /// Index of the first operation of each rank, indexed by rank, followed by the number of
    /// operations.
    rank_starts: Vec<usize>,
}

/// Operation of a rank: a message, and true if the rank sends it.
pub type Operation<'a> = (&'a PlanMessage, bool);

/// Memory per transfer in bytes: the message, its chunks, and the operations at both ends.
const BYTES_PER_TRANSFER: u64 = 80;

impl PlanMessages {
    /// Lists the messages of a plan for a collective of `size` bytes.
    ///
    /// # Errors
    /// Fails if switches add or multicast, if the blocks of the collective differ in size, or if a
    /// number of bytes exceeds 64 bits. Also fails if the plan has more messages than a program may
    /// have, or if the tags do not suffice.
    pub fn of(plan: &Plan, size: Bytes) -> Result<PlanMessages, TraceError> {
        let schedule = &plan.schedule;
        if schedule.collective.demand().is_some() {
            let problem = "the comments of a file of messages cannot express blocks of different \
                           sizes";
            return Err(TraceError::Refused(problem.into()));
        }
        if schedule.is_in_network() {
            let problem = "switches add and multicast the chunks of this plan, but a file of \
                           messages has one sender and one receiver for each message; plan on a \
                           fabric with in_network=none";
            return Err(TraceError::Refused(problem.into()));
        }
        let bytes = schedule.len() as u64 * BYTES_PER_TRANSFER;
        memory::check_forecast("the list of messages of this plan", bytes);
        let mut listed = PlanMessages {
            collective: schedule.collective,
            size,
            messages: Vec::new(),
            ranges: Vec::with_capacity(schedule.len()),
            operations: Vec::new(),
            rank_starts: Vec::new(),
        };
        let mut max_per_pair = 1;
        for step in 0..schedule.steps() {
            let per_pair = listed.push_step(plan, step)?;
            max_per_pair = max_per_pair.max(per_pair);
        }
        if listed.messages.len() > MAX_NODES / 2 {
            return Err(TraceError::TooLarge {
                max_nodes: MAX_NODES,
            });
        }
        let tags = schedule.steps() as u64 * u64::from(max_per_pair);
        if tags >= u64::from(ANY) {
            return Err(TraceError::Refused(format!(
                "the plan needs {tags} tags, and there are fewer than {ANY}"
            )));
        }
        for message in &mut listed.messages {
            message.tag += message.step * max_per_pair;
        }
        listed.sort_by_rank();
        Ok(listed)
    }

    /// Adds the messages of a step, and returns the maximum number of messages from one rank to
    /// another. The tags are preliminary: each tag is the index of a message among the step's
    /// messages between the same ranks.
    fn push_step(&mut self, plan: &Plan, step: usize) -> Result<u32, TraceError> {
        let schedule = &plan.schedule;
        let first_message = self.messages.len();
        let mut messages = StepMessages::of(schedule, &plan.routes, step);
        let repeats = messages.may_repeat();
        let mut pairs: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut parts = Vec::with_capacity(schedule.step(step).len());
        for (place, transfer) in schedule.columns(step).transfers().enumerate() {
            interrupt::check();
            let bytes = self
                .collective
                .range_bytes(self.size, transfer.chunk, transfer.count)?;
            let chunks = (transfer.chunk, transfer.count);
            if let Some(number) = messages.earlier(place) {
                let message = &mut self.messages[first_message + number];
                message.bytes = Bytes::new(message.bytes).plus(bytes)?.get();
                parts.push((number, chunks));
                continue;
            }
            let mut tag = 0;
            if repeats {
                let next = pairs
                    .entry((transfer.source, transfer.destination))
                    .or_default();
                tag = *next;
                *next += 1;
            }
            parts.push((self.messages.len() - first_message, chunks));
            self.messages.push(PlanMessage {
                bytes: bytes.get(),
                step: step as u32,
                source: transfer.source,
                destination: transfer.destination,
                tag,
                action: transfer.action,
                first_range: 0,
                range_count: 0,
            });
        }
        parts.sort_by_key(|(number, _)| *number);
        for (number, chunks) in parts {
            let message = &mut self.messages[first_message + number];
            if message.range_count == 0 {
                message.first_range = self.ranges.len();
            }
            message.range_count += 1;
            self.ranges.push(chunks);
        }
        Ok(pairs.values().copied().max().unwrap_or(1))
    }

    /// Fills `operations` and `rank_starts` by a counting sort.
    fn sort_by_rank(&mut self) {
        let ranks = self.collective.ranks() as usize;
        let mut starts = vec![0; ranks + 1];
        for message in &self.messages {
            starts[message.source as usize + 1] += 1;
            starts[message.destination as usize + 1] += 1;
        }
        for rank in 0..ranks {
            starts[rank + 1] += starts[rank];
        }
        let mut next = starts.clone();
        self.operations = vec![0; starts[ranks]];
        let mut append = |rank: u32, operation: usize| {
            let slot = &mut next[rank as usize];
            self.operations[*slot] = operation as u32;
            *slot += 1;
        };
        let by_step = self
            .messages
            .chunk_by(|message, other| message.step == other.step);
        let mut first = 0;
        for messages in by_step {
            interrupt::check();
            for (index, message) in messages.iter().enumerate() {
                append(message.source, 2 * (first + index));
            }
            for (index, message) in messages.iter().enumerate() {
                append(message.destination, 2 * (first + index) + 1);
            }
            first += messages.len();
        }
        self.rank_starts = starts;
    }

    /// Returns all messages, in the order of steps.
    pub fn messages(&self) -> &[PlanMessage] {
        &self.messages
    }

    /// Returns the ranges of chunks in `message`, as (first chunk, number of chunks).
    pub fn ranges(&self, message: &PlanMessage) -> &[(u32, u32)] {
        &self.ranges[message.first_range..][..message.range_count as usize]
    }

    /// Returns the operations of `rank`, one list per step. Steps without operations are omitted.
    pub fn rank_steps(&self, rank: u32) -> impl Iterator<Item = Vec<Operation<'_>>> {
        let rank = rank as usize;
        let operations = &self.operations[self.rank_starts[rank]..self.rank_starts[rank + 1]];
        let step = |operation: &u32| self.messages[(operation / 2) as usize].step;
        let groups = operations.chunk_by(move |operation, other| step(operation) == step(other));
        groups.map(|group| {
            interrupt::check();
            group
                .iter()
                .map(|operation| (&self.messages[(operation / 2) as usize], operation % 2 == 0))
                .collect()
        })
    }

    /// Checks that every message has at least one byte, as the file format `format` requires.
    pub fn each_has_bytes(&self, format: &str) -> Result<(), TraceError> {
        let Some(empty) = self.messages.iter().find(|message| message.bytes == 0) else {
            return Ok(());
        };
        let PlanMessage {
            source,
            destination,
            step,
            ..
        } = empty;
        let hint = match self.collective.kind() {
            CollectiveKind::Barrier => "a barrier moves no bytes",
            _ => "give a larger size",
        };
        Err(TraceError::Refused(format!(
            "the message of step {step} from rank {source} to {destination} has no bytes, and \
                those of {format} have at least one; {hint}"
        )))
    }
}
