//! Buffers of a rank, as the collective libraries define them.

use super::{ChunkBuffer, CollectiveProgram};
use opticoll_plan::collective::CollectiveKind;

impl CollectiveProgram {
    /// Returns the number of chunks of `buffer` at `rank`. If only the root has data, all ranks
    /// have a buffer of the same size. The buffer with the blocks of all ranks is an exception:
    /// only the root of a gather or scatter has this buffer.
    pub(super) fn buffer_chunks(&self, rank: u32, buffer: ChunkBuffer) -> u32 {
        let collective = &self.collective;
        let chunks = match buffer {
            ChunkBuffer::Input => self.input_chunks(rank),
            ChunkBuffer::Output => self.output_chunks(rank),
            ChunkBuffer::Scratch => self.ranks[rank as usize].scratch,
        };
        match (collective.kind(), buffer) {
            (CollectiveKind::Broadcast, ChunkBuffer::Input)
            | (CollectiveKind::Reduce, ChunkBuffer::Output) => collective.pieces(),
            _ => chunks,
        }
    }

    /// Returns the number of chunks that `rank` contributes; 0 if only the root contributes chunks.
    pub(super) fn input_chunks(&self, rank: u32) -> u32 {
        let collective = &self.collective;
        let pieces = collective.pieces();
        let is_root = rank == collective.root();
        match collective.kind() {
            CollectiveKind::Scatter if is_root => collective.ranks() * pieces,
            CollectiveKind::Scatter => 0,
            CollectiveKind::Broadcast if !is_root => 0,
            CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => collective.ranks() * pieces,
            _ => pieces,
        }
    }

    /// Returns the number of chunks of the result of `rank`; 0 if only the root has a result.
    pub(super) fn output_chunks(&self, rank: u32) -> u32 {
        let collective = &self.collective;
        let pieces = collective.pieces();
        let is_root = rank == collective.root();
        match collective.kind() {
            CollectiveKind::Gather | CollectiveKind::Reduce if !is_root => 0,
            CollectiveKind::AllGather | CollectiveKind::AllToAll | CollectiveKind::Gather => {
                collective.ranks() * pieces
            }
            _ => pieces,
        }
    }

    /// Returns the memory that contains `buffer`, and the index of the first chunk of `buffer` in
    /// this memory. If the call is in place, input and output share one memory, which is called
    /// `Input`.
    pub(super) fn address(
        &self,
        rank: u32,
        buffer: ChunkBuffer,
        in_place: bool,
    ) -> (ChunkBuffer, i64) {
        if !in_place || buffer == ChunkBuffer::Scratch {
            return (buffer, 0);
        }
        let collective = &self.collective;
        let block = i64::from(rank) * i64::from(collective.pieces());
        let is_root = rank == collective.root();
        let shift = match (collective.kind(), buffer) {
            (CollectiveKind::AllGather, ChunkBuffer::Input) => block,
            (CollectiveKind::Gather, ChunkBuffer::Input) if is_root => block,
            (CollectiveKind::ReduceScatter, ChunkBuffer::Output) => block,
            (CollectiveKind::Scatter, ChunkBuffer::Output) if is_root => block,
            _ => 0,
        };
        (ChunkBuffer::Input, shift)
    }
}
