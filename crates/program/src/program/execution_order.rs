//! Order in which the instructions of a program can be executed.

use rustc_hash::FxHashMap;

use super::{CollectiveProgram, Dependency, Operation, ProgramError};
use opticoll_base::interrupt;

impl Operation {
    /// Returns whether the operation receives a message.
    pub fn receives(self) -> bool {
        !matches!(
            self,
            Operation::Send | Operation::Copy | Operation::Reduce | Operation::Nop
        )
    }

    /// Returns whether the operation sends a message.
    pub fn sends(self) -> bool {
        matches!(
            self,
            Operation::Send
                | Operation::ReceiveCopySend
                | Operation::ReceiveReduceSend
                | Operation::ReceiveReduceCopySend
        )
    }

    pub(super) fn reads_source(self) -> bool {
        !matches!(
            self,
            Operation::Receive | Operation::ReceiveCopySend | Operation::Nop
        )
    }

    pub(super) fn writes_destination(self) -> bool {
        !matches!(
            self,
            Operation::Send | Operation::ReceiveReduceSend | Operation::Nop
        )
    }
}

/// Instruction in the order of execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OrderedInstruction {
    pub(super) rank: u32,
    pub(super) thread_block: u32,
    pub(super) step: u32,
    /// Index, in the order, of the send whose message this instruction receives.
    pub(super) message: Option<u32>,
}

/// Returns all instructions in an order that respects thread blocks, dependencies and messages.
/// Fails for the first thread block that waits for an instruction or a message that never comes.
pub(super) fn execution_order(
    program: &CollectiveProgram,
) -> Result<Vec<OrderedInstruction>, ProgramError> {
    let blocks: Vec<(u32, u32)> = (0..program.ranks.len() as u32)
        .flat_map(|rank| {
            let count = program.ranks[rank as usize].thread_blocks.len() as u32;
            (0..count).map(move |block| (rank, block))
        })
        .collect();
    let block_indices: FxHashMap<(u32, u32), usize> = blocks.iter().copied().zip(0..).collect();
    let mut next = vec![0u32; blocks.len()];
    let mut sent: FxHashMap<(u32, u32, u32), Vec<u32>> = FxHashMap::default();
    let mut received: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
    // Thread blocks that wait for another thread block, indexed by the other thread block. Thread
    // block that waits for a message, indexed by connection.
    let mut waiting: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    let mut waiting_for_message: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
    let mut order = Vec::with_capacity(program.instructions());
    let mut ready: Vec<usize> = (0..blocks.len()).rev().collect();
    while let Some(block) = ready.pop() {
        let (rank, thread_block) = blocks[block];
        let current = &program.ranks[rank as usize].thread_blocks[thread_block as usize];
        while let Some(instruction) = current.instructions.get(next[block] as usize) {
            interrupt::check();
            if let Some(on) = instruction.waits_for {
                let Some(&other) = block_indices.get(&(on.rank.unwrap_or(rank), on.thread_block))
                else {
                    break;
                };
                if next[other] <= on.step {
                    waiting.entry(other).or_default().push(block);
                    break;
                }
            }
            let mut message = None;
            if instruction.operation.receives() {
                let Some(from) = current.receives_from else {
                    break;
                };
                let connection = (from, rank, current.channel);
                let received = received.entry(connection).or_default();
                let Some(&by) = sent.get(&connection).and_then(|sent| sent.get(*received)) else {
                    waiting_for_message.insert(connection, block);
                    break;
                };
                *received += 1;
                message = Some(by);
            }
            if instruction.operation.sends() {
                let Some(to) = current.sends_to else {
                    break;
                };
                let connection = (rank, to, current.channel);
                sent.entry(connection).or_default().push(order.len() as u32);
                ready.extend(waiting_for_message.remove(&connection));
            }
            order.push(OrderedInstruction {
                rank,
                thread_block,
                step: next[block],
                message,
            });
            next[block] += 1;
            ready.extend(waiting.remove(&block).into_iter().flatten());
        }
    }
    let ends = blocks.iter().zip(&next);
    let blocked = ends.filter_map(|(&(rank, block), &step)| {
        let thread_block = &program.ranks[rank as usize].thread_blocks[block as usize];
        let instruction = thread_block.instructions.get(step as usize)?;
        let is_complete = |on: Dependency| {
            let other = block_indices.get(&(on.rank.unwrap_or(rank), on.thread_block));
            other.is_some_and(|&other| next[other] > on.step)
        };
        let what = match (instruction.waits_for, thread_block.receives_from) {
            (Some(on), _) if !is_complete(on) => {
                let of = on
                    .rank
                    .map_or(String::new(), |rank| format!("rank {rank}, "));
                format!("{of}thread block {}, step {}", on.thread_block, on.step)
            }
            (_, Some(from)) => format!("a message from rank {from}"),
            _ => "another rank, but it names no rank".to_owned(),
        };
        let problem =
            format!("thread block {block}, step {step} waits for {what}, which never comes");
        Some(ProgramError::rank(rank, problem))
    });
    match blocked.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(order),
    }
}
