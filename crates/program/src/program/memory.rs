//! The buffers of a rank, as the collective libraries define them.

use super::{ChunkBuffer, CollectiveProgram};
use opticoll_plan::collective::CollectiveKind;

impl CollectiveProgram {
    /// The chunks of a buffer of a rank. Where only the root has data, the others have room for it all the same,
    /// but for the blocks of all ranks, which only the root of gather and scatter has.
    pub(super) fn buffer_chunks(&self, rank: u32, buffer: ChunkBuffer) -> u32 {
        let collective = &self.collective;
        let own = match buffer {
            ChunkBuffer::Input => self.input_chunks(rank),
            ChunkBuffer::Output => self.output_chunks(rank),
            ChunkBuffer::Scratch => self.ranks[rank as usize].scratch,
        };
        match (collective.kind(), buffer) {
            (CollectiveKind::Broadcast, ChunkBuffer::Input)
            | (CollectiveKind::Reduce, ChunkBuffer::Output) => collective.pieces(),
            _ => own,
        }
    }

    /// The chunks of the input of a rank; none where only the root has one.
    pub(super) fn input_chunks(&self, rank: u32) -> u32 {
        let collective = &self.collective;
        let pieces = collective.pieces();
        let root = rank == collective.root();
        match collective.kind() {
            CollectiveKind::Scatter if root => collective.ranks() * pieces,
            CollectiveKind::Scatter => 0,
            CollectiveKind::Broadcast if !root => 0,
            CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => collective.ranks() * pieces,
            _ => pieces,
        }
    }

    /// The chunks of the output of a rank; none where only the root has one.
    pub(super) fn output_chunks(&self, rank: u32) -> u32 {
        let collective = &self.collective;
        let pieces = collective.pieces();
        let root = rank == collective.root();
        match collective.kind() {
            CollectiveKind::Gather | CollectiveKind::Reduce if !root => 0,
            CollectiveKind::AllGather | CollectiveKind::AllToAll | CollectiveKind::Gather => {
                collective.ranks() * pieces
            }
            _ => pieces,
        }
    }

    /// The memory in which a buffer of a rank lies, and where its first chunk is there. In place, input and
    /// output are one memory, which is named by the larger.
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
        let own = i64::from(rank) * i64::from(collective.pieces());
        let root = rank == collective.root();
        let shift = match (collective.kind(), buffer) {
            (CollectiveKind::AllGather, ChunkBuffer::Input) => own,
            (CollectiveKind::Gather, ChunkBuffer::Input) if root => own,
            (CollectiveKind::ReduceScatter, ChunkBuffer::Output) => own,
            (CollectiveKind::Scatter, ChunkBuffer::Output) if root => own,
            _ => 0,
        };
        (ChunkBuffer::Input, shift)
    }
}
