//! What each rank sends and receives in a plan, for files of other programs.
//!
//! The transfers of a step with the same source, destination, action and route are one message. A rank begins the
//! messages of a step when it has ended those of the last step before in which it had any; within a step its messages go
//! side by side. Light, slots and routes are left out.
//!
//! **Tags.** Let m be the most messages that a step has from one rank to another. The i-th message from a rank to another in
//! step s has the tag s m + i. So no two messages of two ranks have the same tag, and who receives what follows from tags
//! alone, in whatever order a program begins messages.

use rustc_hash::FxHashMap;

use super::error::TraceError;
use super::goal_text::ANY;
use super::program::MOST_NODES;
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_base::units::Bytes;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Plan, StepMessages};
use opticoll_plan::schedule::Action;

/// A message of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanMessage {
    /// Its bytes.
    pub bytes: u64,
    /// Its step of the schedule.
    pub step: u32,
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub destination: u32,
    /// Its tag, which no other message of the two ranks has.
    pub tag: u32,
    /// What the receiver does with it.
    pub action: Action,
    /// Where its ranges of chunks begin, and how many they are.
    first_range: usize,
    range_count: u32,
}

/// The messages of a plan, also rank by rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanMessages {
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub size: Bytes,
    messages: Vec<PlanMessage>,
    /// First chunk and number of chunks of each range.
    ranges: Vec<(u32, u32)>,
    /// By rank, in the order of steps and sends before receives: twice the number of a message, one more where the rank
    /// receives it.
    operations: Vec<u32>,
    rank_starts: Vec<usize>,
}

/// What a rank does in a step: a message, and whether the rank sends it.
pub type Operation<'a> = (&'a PlanMessage, bool);

/// What a transfer takes as a message: the message, its chunks, and the operations at both ends.
const BYTES_PER_TRANSFER: u64 = 80;

impl PlanMessages {
    /// The messages of a plan for a collective of some size.
    ///
    /// # Errors
    /// Bytes that leave 64 bits; more messages than a program may have, or than there are tags.
    pub fn of(plan: &Plan, size: Bytes) -> Result<PlanMessages, TraceError> {
        let schedule = &plan.schedule;
        if schedule.collective.demand().is_some() {
            let problem = "the comments of a file of messages have no words for blocks that differ";
            return Err(TraceError::Refused(problem.into()));
        }
        let bytes = schedule.len() as u64 * BYTES_PER_TRANSFER;
        memory::take("the list of messages of this plan", bytes);
        let mut all = PlanMessages {
            collective: schedule.collective,
            size,
            messages: Vec::new(),
            ranges: Vec::with_capacity(schedule.len()),
            operations: Vec::new(),
            rank_starts: Vec::new(),
        };
        let mut most_of_a_pair = 1;
        for step in 0..schedule.steps() {
            let of_a_pair = all.push_step(plan, step)?;
            most_of_a_pair = most_of_a_pair.max(of_a_pair);
        }
        if all.messages.len() > MOST_NODES / 2 {
            return Err(TraceError::TooLarge { most: MOST_NODES });
        }
        let tags = schedule.steps() as u64 * u64::from(most_of_a_pair);
        if tags >= u64::from(ANY) {
            return Err(TraceError::Refused(format!(
                "the plan needs {tags} tags, and there are fewer than {ANY}"
            )));
        }
        for message in &mut all.messages {
            message.tag += message.step * most_of_a_pair;
        }
        all.sort_by_rank();
        Ok(all)
    }

    /// Adds the messages of a step, whose tags are at first the numbers of messages between the same ranks; returns the most
    /// of two ranks.
    fn push_step(&mut self, plan: &Plan, step: usize) -> Result<u32, TraceError> {
        let schedule = &plan.schedule;
        let first_message = self.messages.len();
        let mut messages = StepMessages::of(schedule, &plan.routes, step);
        let repeats = messages.may_repeat();
        let mut pairs: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut parts = Vec::with_capacity(schedule.step(step).len());
        for (place, transfer) in schedule.columns(step).transfers().enumerate() {
            interrupt::check();
            let own = self
                .collective
                .range_bytes(self.size, transfer.chunk, transfer.count)?;
            let chunks = (transfer.chunk, transfer.count);
            if let Some(number) = messages.earlier(place) {
                let message = &mut self.messages[first_message + number];
                message.bytes = Bytes::new(message.bytes).plus(own)?.get();
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
                bytes: own.get(),
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
        let mut place = |rank: u32, operation: usize| {
            let at = &mut next[rank as usize];
            self.operations[*at] = operation as u32;
            *at += 1;
        };
        let by_step = self.messages.chunk_by(|one, other| one.step == other.step);
        let mut first = 0;
        for messages in by_step {
            interrupt::check();
            for (index, message) in messages.iter().enumerate() {
                place(message.source, 2 * (first + index));
            }
            for (index, message) in messages.iter().enumerate() {
                place(message.destination, 2 * (first + index) + 1);
            }
            first += messages.len();
        }
        self.rank_starts = starts;
    }

    /// All messages, in the order of steps.
    pub fn messages(&self) -> &[PlanMessage] {
        &self.messages
    }

    /// The first chunk and the number of chunks of each range that a message carries.
    pub fn ranges(&self, message: &PlanMessage) -> &[(u32, u32)] {
        &self.ranges[message.first_range..][..message.range_count as usize]
    }

    /// What a rank does, step by step; steps in which it does nothing are left out.
    pub fn of_rank(&self, rank: u32) -> impl Iterator<Item = Vec<Operation<'_>>> {
        let rank = rank as usize;
        let own = &self.operations[self.rank_starts[rank]..self.rank_starts[rank + 1]];
        let step = |operation: &u32| self.messages[(operation / 2) as usize].step;
        let groups = own.chunk_by(move |one, other| step(one) == step(other));
        groups.map(|group| {
            interrupt::check();
            let each = group.iter();
            each.map(|operation| (&self.messages[(operation / 2) as usize], operation % 2 == 0))
                .collect()
        })
    }

    /// Refuses a message without bytes.
    ///
    /// # Errors
    /// There is one; the format named has messages of at least one byte.
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
            "the message of step {step} from rank {source} to {destination} has no bytes, and those of {format} have at least one; {hint}"
        )))
    }
}
