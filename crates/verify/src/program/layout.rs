//! Memory of each rank: the chunks of its buffers. In place, input and output share chunks.

use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_program::program::{ChunkBuffer, CollectiveProgram};

/// Sizes of the buffers of one rank, and their first chunks in the memory of the rank, in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    input: u32,
    output: u32,
    scratch: u32,
    input_start: u32,
    output_start: u32,
    scratch_start: u32,
}

pub(super) struct Layout {
    pub(super) in_place: bool,
    ranks: Vec<Memory>,
}

impl Layout {
    pub(super) fn new(program: &CollectiveProgram, in_place: bool) -> Layout {
        let ranks = program.ranks.iter().enumerate().map(|(rank, own)| {
            let (input, output) = sizes(&program.collective, rank as u32);
            let (input_start, output_start, end) = match in_place {
                false => (0, input, input + output),
                true => {
                    let (input_start, output_start) = shared(&program.collective, rank as u32);
                    let end = (input_start + input).max(output_start + output);
                    (input_start, output_start, end)
                }
            };
            Memory {
                input,
                output,
                scratch: own.scratch,
                input_start,
                output_start,
                scratch_start: end,
            }
        });
        Layout {
            in_place,
            ranks: ranks.collect(),
        }
    }

    pub(super) fn size(&self, rank: u32, buffer: ChunkBuffer) -> u32 {
        let memory = &self.ranks[rank as usize];
        match buffer {
            ChunkBuffer::Input => memory.input,
            ChunkBuffer::Output => memory.output,
            ChunkBuffer::Scratch => memory.scratch,
        }
    }

    /// Returns the index of the first chunk of `buffer` in the memory of `rank`.
    pub(super) fn start(&self, rank: u32, buffer: ChunkBuffer) -> usize {
        let memory = &self.ranks[rank as usize];
        (match buffer {
            ChunkBuffer::Input => memory.input_start,
            ChunkBuffer::Output => memory.output_start,
            ChunkBuffer::Scratch => memory.scratch_start,
        }) as usize
    }

    pub(super) fn cells(&self, rank: u32) -> usize {
        let memory = &self.ranks[rank as usize];
        memory.scratch_start as usize + memory.scratch as usize
    }
}

/// Returns the sizes of the input and the output of `rank`, in chunks.
fn sizes(collective: &Collective, rank: u32) -> (u32, u32) {
    let piece = collective.pieces();
    let all_blocks = collective.ranks() * piece;
    let at_root = if rank == collective.root() {
        all_blocks
    } else {
        0
    };
    match collective.kind() {
        CollectiveKind::AllGather => (piece, all_blocks),
        CollectiveKind::ReduceScatter => (all_blocks, piece),
        CollectiveKind::AllToAll => (all_blocks, all_blocks),
        CollectiveKind::Gather => (piece, at_root),
        CollectiveKind::Scatter => (at_root, piece),
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => {
            (piece, piece)
        }
        CollectiveKind::Barrier => (0, 0),
    }
}

/// Returns the first chunks of input and output in the memory that they share in place.
fn shared(collective: &Collective, rank: u32) -> (u32, u32) {
    let own_start = rank * collective.pieces();
    let at_root = rank == collective.root();
    match collective.kind() {
        CollectiveKind::AllGather => (own_start, 0),
        CollectiveKind::ReduceScatter => (0, own_start),
        CollectiveKind::Gather if at_root => (own_start, 0),
        CollectiveKind::Scatter if at_root => (0, own_start),
        _ => (0, 0),
    }
}
