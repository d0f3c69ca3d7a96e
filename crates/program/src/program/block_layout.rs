//! Arrangement of instructions in thread blocks, with dependencies between thread blocks.
//!
//! An instruction waits for at most one other instruction. If it must wait for several, additional
//! instructions that only wait come before it. A thread block does not wait twice for the same
//! instruction.

use rustc_hash::FxHashMap;

use super::{ChunkBuffer, Dependency, Instruction, Operand, Operation, ThreadBlock};

/// Instruction without a position, and the indices of the instructions that must be complete before
/// it.
pub(super) struct UnplacedInstruction {
    pub(super) instruction: Instruction,
    pub(super) waits_for: Vec<usize>,
}

/// Arranges `instructions` in thread blocks. Each entry of `blocks` has a rank, a thread block and
/// the indices of its instructions, in order. The thread blocks of a rank follow one another.
pub(super) fn lay_out_blocks(
    instructions: &[UnplacedInstruction],
    mut blocks: Vec<(u32, ThreadBlock, Vec<usize>)>,
) -> Vec<ThreadBlock> {
    // Thread block of each instruction, and position of the instruction in this thread block.
    let mut block_of = vec![0usize; instructions.len()];
    let mut position_of = vec![0usize; instructions.len()];
    for (block, (_, _, members)) in blocks.iter().enumerate() {
        for (position, &member) in members.iter().enumerate() {
            (block_of[member], position_of[member]) = (block, position);
        }
    }
    let mut waits: Vec<Vec<usize>> = vec![Vec::new(); instructions.len()];
    let mut awaited = vec![false; instructions.len()];
    for (block, (_, _, members)) in blocks.iter().enumerate() {
        // Number of instructions of each thread block that are certainly complete.
        let mut complete: FxHashMap<usize, usize> = FxHashMap::default();
        for (position, &member) in members.iter().enumerate() {
            let mut last: FxHashMap<usize, usize> = FxHashMap::default();
            for &on in &instructions[member].waits_for {
                let other = block_of[on];
                // Earlier instructions of the same thread block are complete.
                if (other != block || position_of[on] >= position)
                    && position_of[on] >= complete.get(&other).copied().unwrap_or(0)
                {
                    complete.insert(other, position_of[on] + 1);
                    last.insert(other, on);
                }
            }
            let mut on: Vec<usize> = last.into_values().collect();
            on.sort_unstable();
            on.iter().for_each(|&on| awaited[on] = true);
            waits[member] = on;
        }
    }
    let unset = Dependency {
        rank: None,
        thread_block: 0,
        step: 0,
    };
    let mut places = vec![unset; instructions.len()];
    let mut thread_block = 0;
    for (block, (rank, _, members)) in blocks.iter().enumerate() {
        let is_first = block == 0 || blocks[block - 1].0 != *rank;
        thread_block = if is_first { 0 } else { thread_block + 1 };
        let mut step = 0;
        for &member in members {
            step += waits[member].len().saturating_sub(1) as u32;
            places[member] = Dependency {
                rank: Some(*rank),
                thread_block,
                step,
            };
            step += 1;
        }
    }
    for (rank, block, members) in &mut blocks {
        for &member in &*members {
            let mut on = waits[member].iter().map(|&on| Dependency {
                rank: places[on].rank.filter(|other| other != rank),
                ..places[on]
            });
            let last = on.next_back();
            let line = instructions[member].instruction.line;
            block
                .instructions
                .extend(on.map(|on| wait_instruction(Some(on), line)));
            block.instructions.push(Instruction {
                waits_for: last,
                signals: awaited[member],
                ..instructions[member].instruction
            });
        }
    }
    blocks.into_iter().map(|(_, block, _)| block).collect()
}

/// Returns an instruction that only waits for `on`, if there is such an instruction. `line` is its
/// line in the file, or 0.
pub(super) fn wait_instruction(on: Option<Dependency>, line: u32) -> Instruction {
    let unused = Operand {
        rank: None,
        buffer: ChunkBuffer::Input,
        offset: 0,
    };
    Instruction {
        operation: Operation::Nop,
        source: unused,
        destination: unused,
        count: 0,
        waits_for: on,
        signals: false,
        sent_in: None,
        line,
    }
}
