//! Lifting of a program to a schedule: derives the steps from the dependences of messages.
//!
//! One of three rules assigns steps to messages. Lifting tries them in this order:
//!
//! 1. The step is the one that the program records (`sent_in`), if it records a step for every
//!    message.
//! 2. The step is one more than the latest step of the messages that the sender received before.
//!    The step is at least the step of every message that the sender sent before, and of every
//!    message that the receiver sent or received before.
//! 3. The step is one more than the latest step of the messages that contributed to the sent value.
//!
//! An instruction that copies or adds from the buffer of one rank to that of another also counts as
//! a message. Only rule 3 applies to such a program, because its waits also order messages that do
//! not depend on each other.
//!
//! A schedule has one value of a chunk at each rank, whether this value is in the input, the output
//! or scratch. If a program has several partial sums of a chunk at a rank, no schedule exists for
//! it.
//!
//! Only proved programs are lifted. The verifier checks a plan made from the schedule like any
//! other plan.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::{CollectiveProgram, Operand, Operation, ProgramError, execution_order};
use crate::program::ChunkBuffer;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Action, Schedule, Transfer};

/// Value of a chunk in memory: the chunk of the collective, the ranks that contributed to the value
/// (in ascending order), and the step of the last message that contributed to it.
#[derive(Clone)]
struct Value {
    chunk: u32,
    ranks: Rc<[u32]>,
    step: u32,
}

/// Chunk that is sent, with its step under each of the three rules.
struct Sent {
    chunk: u32,
    ranks: Rc<[u32]>,
    source: u32,
    destination: u32,
    steps: [u32; 3],
}

/// Greatest step of a message that was received, and of a message that was sent, before an
/// instruction ended.
#[derive(Clone, Copy, Default)]
struct Past {
    received: u32,
    sent: u32,
}

impl Past {
    fn merge(self, other: Past) -> Past {
        Past {
            received: self.received.max(other.received),
            sent: self.sent.max(other.sent),
        }
    }
}

/// Returns the schedule of a proved program, and the number of redundant chunks, which the schedule
/// omits.
pub(super) fn lift(
    program: &CollectiveProgram,
    in_place: bool,
) -> Result<(Schedule, u64), ProgramError> {
    let sent = messages(program, in_place)?;
    let blocks = program.ranks.iter().flat_map(|rank| &rank.thread_blocks);
    let mut instructions = blocks.flat_map(|block| &block.instructions);
    let has_steps = instructions
        .all(|instruction| !instruction.operation.sends() || instruction.sent_in.is_some());
    let mut first_error = None;
    let first_rule = match (has_steps, program.is_one_sided()) {
        (_, true) => 2,
        (true, false) => 0,
        (false, false) => 1,
    };
    for rule in first_rule..3 {
        match build_schedule(program, &sent, rule) {
            Ok(schedule) => return Ok(schedule),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| no_schedule("it sends nothing".into())))
}

fn no_schedule(problem: String) -> ProgramError {
    ProgramError::Refused(format!("this program has no schedule: {problem}"))
}

/// Converts an index of a chunk in the input of `rank` to the index of this chunk in the
/// collective.
fn chunk_of(program: &CollectiveProgram, rank: u32, chunk: u32) -> u32 {
    let collective = &program.collective;
    let first = match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::Gather => rank * collective.pieces(),
        CollectiveKind::AllToAll => rank * collective.ranks() * collective.pieces(),
        _ => 0,
    };
    first + chunk
}

/// Message in flight: index of its first chunk in the list of all sent chunks, and the values sent.
type Message = (usize, Vec<Value>);

/// Executes the program on symbolic values and returns all chunks that are sent.
fn messages(program: &CollectiveProgram, in_place: bool) -> Result<Vec<Sent>, ProgramError> {
    let order = execution_order::execution_order(program)
        .map_err(|_| no_schedule("its instructions wait for one another".into()))?;
    let mut memory: FxHashMap<(u32, ChunkBuffer, i64), Value> = FxHashMap::default();
    for rank in 0..program.ranks.len() as u32 {
        let (buffer, first) = program.address(rank, ChunkBuffer::Input, in_place);
        for chunk in 0..program.input_chunks(rank) {
            let value = Value {
                chunk: chunk_of(program, rank, chunk),
                ranks: [rank].into(),
                step: 0,
            };
            memory.insert((rank, buffer, first + i64::from(chunk)), value);
        }
    }
    let mut in_flight: FxHashMap<u32, Message> = FxHashMap::default();
    let mut sent: Vec<Sent> = Vec::new();
    let mut pasts: FxHashMap<(u32, u32, u32), Past> = FxHashMap::default();
    for (place, current) in order.iter().enumerate() {
        let block =
            &program.ranks[current.rank as usize].thread_blocks[current.thread_block as usize];
        let instruction = &block.instructions[current.step as usize];
        let past_of = |rank: u32, block: u32, step: u32| pasts.get(&(rank, block, step)).copied();
        let before = current.step.checked_sub(1);
        let before = before.and_then(|step| past_of(current.rank, current.thread_block, step));
        let awaited = instruction.waits_for;
        let awaited = awaited
            .and_then(|on| past_of(on.rank.unwrap_or(current.rank), on.thread_block, on.step));
        let mut past = before
            .unwrap_or_default()
            .merge(awaited.unwrap_or_default());
        let incoming_message = current.message.and_then(|by| in_flight.remove(&by));
        if let Some((first, values)) = &incoming_message {
            for chunk in &mut sent[*first..first + values.len()] {
                chunk.steps[1] = chunk.steps[1].max(past.sent).max(past.received);
            }
            past.received = past.received.max(sent[*first].steps[1]);
        }
        let first = sent.len();
        let mut sent_values = Vec::new();
        for index in 0..instruction.count {
            let owner = |operand: Operand| operand.rank.unwrap_or(current.rank);
            let place = |operand: Operand| {
                let (buffer, first) = program.address(owner(operand), operand.buffer, in_place);
                let offset = first + i64::from(operand.offset) + i64::from(index);
                (owner(operand), buffer, offset)
            };
            let read = |operand: Operand| memory.get(&place(operand)).cloned();
            let (from, to) = (owner(instruction.source), owner(instruction.destination));
            let incoming = || incoming_message.as_ref()?.1.get(index as usize).cloned();
            let value = match instruction.operation {
                Operation::Nop => continue,
                Operation::Copy | Operation::Reduce if from != to => {
                    let moved = read(instruction.source).map(|value| {
                        let step = value.step + 1;
                        sent.push(Sent {
                            chunk: value.chunk,
                            ranks: Rc::clone(&value.ranks),
                            source: from,
                            destination: to,
                            steps: [step; 3],
                        });
                        Value { step, ..value }
                    });
                    match instruction.operation {
                        Operation::Copy => moved,
                        _ => sum(program, to, moved, read(instruction.destination))?,
                    }
                }
                Operation::Send | Operation::Copy => read(instruction.source),
                Operation::Receive | Operation::ReceiveCopySend => incoming(),
                Operation::Reduce => sum(
                    program,
                    current.rank,
                    read(instruction.source),
                    read(instruction.destination),
                )?,
                _ => sum(program, current.rank, incoming(), read(instruction.source))?,
            };
            let Some(value) = value else {
                return Err(no_schedule(format!(
                    "rank {} reads data that have not been written",
                    current.rank
                )));
            };
            if instruction.operation.writes_destination() {
                memory.insert(place(instruction.destination), value.clone());
            }
            if let (true, Some(destination)) = (instruction.operation.sends(), block.sends_to) {
                let step = value.step + 1;
                let recorded = instruction.sent_in.map_or(0, |step| step + 1);
                sent.push(Sent {
                    chunk: value.chunk,
                    ranks: Rc::clone(&value.ranks),
                    source: current.rank,
                    destination,
                    steps: [recorded, past.sent.max(past.received + 1), step],
                });
                sent_values.push(Value { step, ..value });
            }
        }
        if !sent_values.is_empty() {
            past.sent = past.sent.max(sent[first].steps[1]);
            in_flight.insert(place as u32, (first, sent_values));
        }
        pasts.insert((current.rank, current.thread_block, current.step), past);
    }
    Ok(sent)
}

fn sum(
    program: &CollectiveProgram,
    rank: u32,
    first: Option<Value>,
    second: Option<Value>,
) -> Result<Option<Value>, ProgramError> {
    let (Some(first), Some(second)) = (first, second) else {
        return Ok(None);
    };
    if first.chunk != second.chunk {
        return Err(no_schedule(format!(
            "rank {rank} adds chunk {} to chunk {} of {}",
            first.chunk,
            second.chunk,
            program.collective.kind()
        )));
    }
    let mut ranks = [&first.ranks[..], &second.ranks[..]].concat();
    ranks.sort_unstable();
    Ok(Some(Value {
        chunk: first.chunk,
        ranks: ranks.into(),
        step: first.step.max(second.step),
    }))
}

fn is_subset(subset: &[u32], set: &[u32]) -> bool {
    subset.iter().all(|rank| set.binary_search(rank).is_ok())
}

/// Set of ranks whose contributions a chunk has when it arrives, and the action of the transfer.
type Arrival = (Rc<[u32]>, Action);

/// Builds the schedule with the steps of the rule with index `rule`.
fn build_schedule(
    program: &CollectiveProgram,
    sent: &[Sent],
    rule: usize,
) -> Result<(Schedule, u64), ProgramError> {
    let collective = program.collective;
    let mut steps: BTreeMap<u32, Vec<&Sent>> = BTreeMap::new();
    for chunk in sent {
        steps.entry(chunk.steps[rule]).or_default().push(chunk);
    }
    let mut contributions: FxHashMap<(u32, u32), Rc<[u32]>> = FxHashMap::default();
    for rank in 0..collective.ranks() {
        for chunk in 0..program.input_chunks(rank) {
            contributions.insert((rank, chunk_of(program, rank, chunk)), [rank].into());
        }
    }
    let mut schedule = Schedule::new(collective);
    let mut redundant = 0;
    for mut sent in steps.into_values() {
        sent.sort_by_key(|moved| (moved.source, moved.destination, moved.chunk));
        let mut arriving: FxHashMap<(u32, u32), Arrival> = FxHashMap::default();
        let mut transfers: Vec<Transfer> = Vec::new();
        for moved in sent {
            let at_source = contributions.get(&(moved.source, moved.chunk));
            if at_source.is_none_or(|ranks| **ranks != *moved.ranks) {
                return Err(no_schedule(format!(
                    "rank {} sends a part of chunk {} that it keeps apart from the rest",
                    moved.source, moved.chunk
                )));
            }
            let place = (moved.destination, moved.chunk);
            let before = arriving.get(&place).map(|(ranks, _)| ranks);
            let present = before.or_else(|| contributions.get(&place));
            let present: &[u32] = present.map_or(&[], |ranks| ranks);
            if is_subset(&moved.ranks, present) {
                redundant += 1;
                continue;
            }
            let is_disjoint = moved
                .ranks
                .iter()
                .all(|rank| present.binary_search(rank).is_err());
            let action = match collective.combines() && is_disjoint && !present.is_empty() {
                true => Action::Reduce,
                false => Action::Copy,
            };
            let other = arriving.get(&place).map(|(_, action)| *action);
            if (action == Action::Copy && (other.is_some() || !is_subset(present, &moved.ranks)))
                || other == Some(Action::Copy)
            {
                return Err(no_schedule(format!(
                    "rank {} gets parts of chunk {} that it keeps apart",
                    moved.destination, moved.chunk
                )));
            }
            let mut ranks = moved.ranks.to_vec();
            if action == Action::Reduce {
                ranks.extend_from_slice(present);
                ranks.sort_unstable();
            }
            arriving.insert(place, (ranks.into(), action));
            let next = Transfer {
                chunk: moved.chunk,
                count: 1,
                source: moved.source,
                destination: moved.destination,
                action,
            };
            match transfers.last_mut() {
                Some(last)
                    if (last.source, last.destination, last.action)
                        == (next.source, next.destination, next.action)
                        && last.chunk + last.count == next.chunk =>
                {
                    last.count += 1;
                }
                _ => transfers.push(next),
            }
        }
        if transfers.is_empty() {
            continue;
        }
        schedule.begin_step();
        transfers
            .into_iter()
            .for_each(|transfer| schedule.push(transfer));
        contributions.extend(
            arriving
                .into_iter()
                .map(|(place, (ranks, _))| (place, ranks)),
        );
    }
    Ok((schedule, redundant))
}
