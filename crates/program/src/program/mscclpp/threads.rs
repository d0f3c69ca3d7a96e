//! Accesses of the threads of a thread block, which wait for one another only at a `nop` or a
//! `barrier`.

use super::super::ChunkBuffer;

/// Access that other threads of the thread block may not have completed.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) line: u32,
    pub(super) rank: u32,
    /// Memory, its first chunk that is accessed, and the chunk after the last one.
    pub(super) memory: (ChunkBuffer, i64, i64),
    pub(super) writes: bool,
    /// True if a proxy accesses the memory in the order of the operations, not a thread.
    pub(super) by_port: bool,
    /// True if the k-th thread accesses the k-th piece, of the size of a packet, from `begin` on.
    pub(super) as_packets: bool,
    /// First chunk of the access of the first thread.
    pub(super) begin: i64,
    /// First chunk of scratch of the own rank to which the same operation writes packets: the k-th
    /// thread writes the k-th packet after its access.
    pub(super) packets: Option<i64>,
}

/// State of the threads of a thread block since they waited for one another.
#[derive(Default)]
pub(super) struct Threads {
    accesses: Vec<Access>,
    /// Line of a wait for another rank or thread block.
    waited: Option<u32>,
}

impl Threads {
    pub(super) fn meet(&mut self) {
        *self = Threads::default();
    }

    pub(super) fn wait(&mut self, line: u32) {
        self.waited = Some(line);
    }

    /// Notes that the k-th thread has the k-th of the packets `start..end` of scratch. It is then
    /// past what the thread that wrote this packet did before.
    pub(super) fn read_packets(&mut self, start: i64, end: i64) {
        let mut accesses = Vec::new();
        for access in self.accesses.drain(..) {
            let (memory, first, last) = access.memory;
            let shift = access.begin - access.packets.unwrap_or(0);
            let from = (start + shift).clamp(first, last);
            let to = (end + shift).clamp(first, last);
            if access.packets.is_none() || from >= to {
                accesses.push(access);
                continue;
            }
            for (from, to, begin) in [
                (first, from, access.begin),
                (from, to, start + shift),
                (to, last, access.begin),
            ] {
                let is_kept = begin == access.begin;
                if from < to {
                    accesses.push(Access {
                        memory: (memory, from, to),
                        begin,
                        packets: access.packets.filter(|_| is_kept),
                        ..access.clone()
                    });
                }
            }
        }
        self.accesses = accesses;
    }

    /// Adds accesses of an operation. Returns a line that all threads must be past before.
    pub(super) fn access(&mut self, new: Vec<Access>) -> Option<u32> {
        let conflicts = |one: &Access, other: &Access| {
            (one.rank, one.memory.0) == (other.rank, other.memory.0)
                && (one.writes || other.writes)
                && !(one.as_packets && other.as_packets && one.begin == other.begin)
                && one.memory.1 < other.memory.2
                && other.memory.1 < one.memory.2
        };
        let mut before = self.accesses.iter();
        let before = before.find(|before| new.iter().any(|one| conflicts(before, one)));
        let line = self.waited.or(before.map(|before| before.line));
        self.accesses.extend(new);
        line
    }

    /// Returns a line that all threads must be past before a signal.
    pub(super) fn unfinished(&self) -> Option<u32> {
        self.waited
            .or(self.accesses.first().map(|access| access.line))
    }

    /// Returns a line that all threads must be past before a put that signals.
    pub(super) fn unfinished_writes(&self) -> Option<u32> {
        let mut accesses = self.accesses.iter();
        let write = accesses.find(|access| access.writes && !access.by_port);
        write.map(|access| access.line)
    }
}
