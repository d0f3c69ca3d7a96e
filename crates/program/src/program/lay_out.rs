//! Instructions get their places in thread blocks, and wait for one another there.
//!
//! An instruction waits for one other at most. One that has several to wait for comes behind instructions that do
//! nothing but wait for the others. What a thread block has waited for it does not wait for again.

use rustc_hash::FxHashMap;

use super::{ChunkBuffer, Dependency, Instruction, Operand, Operation, ThreadBlock};

/// An instruction without its place, and the others that must be complete before.
pub(super) struct Unplaced {
    pub(super) instruction: Instruction,
    pub(super) waits_for: Vec<usize>,
}

/// Fills thread blocks, each with the instructions named beside it, in their order.
pub(super) fn lay_out(
    all: &[Unplaced],
    mut blocks: Vec<(ThreadBlock, Vec<usize>)>,
) -> Vec<ThreadBlock> {
    // By instruction: its thread block, and its place among those of the thread block.
    let mut block_of = vec![0usize; all.len()];
    let mut rank_of = vec![0usize; all.len()];
    for (block, (_, own)) in blocks.iter().enumerate() {
        for (place, &one) in own.iter().enumerate() {
            (block_of[one], rank_of[one]) = (block, place);
        }
    }
    let mut waits: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut awaited = vec![false; all.len()];
    for (block, (_, own)) in blocks.iter().enumerate() {
        // By thread block: how many of its instructions are known to be complete.
        let mut known = vec![0usize; blocks.len()];
        for (place, &one) in own.iter().enumerate() {
            let mut last: FxHashMap<usize, usize> = FxHashMap::default();
            for &on in &all[one].waits_for {
                let other = block_of[on];
                // Those before it in its own thread block are complete.
                if (other != block || rank_of[on] >= place) && rank_of[on] >= known[other] {
                    known[other] = rank_of[on] + 1;
                    last.insert(other, on);
                }
            }
            let mut on: Vec<usize> = last.into_values().collect();
            on.sort_unstable();
            on.iter().for_each(|&on| awaited[on] = true);
            waits[one] = on;
        }
    }
    let nowhere = Dependency {
        thread_block: 0,
        step: 0,
    };
    let mut places = vec![nowhere; all.len()];
    for (block, (_, own)) in blocks.iter().enumerate() {
        let mut step = 0;
        for &one in own {
            step += waits[one].len().saturating_sub(1) as u32;
            places[one] = Dependency {
                thread_block: block as u32,
                step,
            };
            step += 1;
        }
    }
    for (block, own) in &mut blocks {
        for &one in &*own {
            let mut on = waits[one].iter().map(|&on| places[on]);
            let last = on.next_back();
            block.instructions.extend(on.map(waiting));
            block.instructions.push(Instruction {
                waits_for: last,
                signals: awaited[one],
                ..all[one].instruction
            });
        }
    }
    blocks.into_iter().map(|(block, _)| block).collect()
}

/// An instruction that does nothing but wait.
fn waiting(on: Dependency) -> Instruction {
    let nowhere = Operand {
        buffer: ChunkBuffer::Input,
        offset: 0,
    };
    Instruction {
        operation: Operation::Nop,
        source: nowhere,
        destination: nowhere,
        count: 0,
        waits_for: Some(on),
        signals: false,
        sent_in: None,
        line: 0,
    }
}
