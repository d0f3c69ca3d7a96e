//! Traces of MPI programs: the calls of each rank in order.

use std::collections::BTreeMap;

use super::error::{Place, TraceError};
use super::program::{Call, NONE};

/// MPI call of a rank, with the local work before the call. Takes 40 bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Local work since the rank's previous call, in picoseconds.
    pub compute: u64,
    /// Number of bytes: the size of a sent message, the capacity of a receive, or the size of a
    /// collective, as the collective defines it. If blocks have different sizes, the size of the
    /// member's own block.
    pub bytes: u64,
    /// Partner or root, as a rank of the whole program; [`NONE`] if the call has neither.
    pub peer: u32,
    /// Tag of the message.
    pub tag: u32,
    /// Identifier of the communicator.
    pub communicator: u32,
    /// Request that the call opens, or for which the call waits. [`NONE`] if the call waits for all
    /// open requests. For [`Call::AllToAllVarious`], the index of the sizes in [`Trace::various`].
    pub request: u32,
    /// Number of the line in the trace file, or of the node in a Chakra trace, from 1. 0 if the
    /// trace has neither lines nor nodes.
    pub line: u32,
    /// Kind of the call.
    pub call: Call,
    /// Index of the rank's processor that executes the local work.
    pub processor: u8,
}

/// Maximum number of ranks of a trace, so that a wrong number cannot exhaust the memory.
pub(super) const MAX_RANKS: u32 = 1 << 20;

/// Calls of all ranks of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Calls of each rank in order, indexed by rank.
    pub ranks: Vec<Vec<Event>>,
    /// Members of each communicator, indexed by communicator and by index of the member in the
    /// communicator. Members are ranks of the whole program.
    pub communicators: BTreeMap<u32, Vec<u32>>,
    /// Number of bytes that a rank sends to each member in an Alltoallv, indexed by
    /// [`Event::request`] and member.
    pub various: Vec<Vec<u64>>,
    /// Indices of the earlier events for which each event waits, indexed by rank and event. Empty
    /// if each rank makes one call after another.
    pub after: Vec<Vec<Vec<u32>>>,
}

impl Trace {
    /// Creates a trace of `ranks` ranks without calls. Communicator 0 contains all ranks.
    pub fn new(ranks: u32) -> Trace {
        Trace {
            ranks: vec![Vec::new(); ranks as usize],
            communicators: BTreeMap::from([(0, (0..ranks).collect())]),
            various: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Returns the total number of calls of all ranks.
    pub fn events(&self) -> usize {
        self.ranks.iter().map(Vec::len).sum()
    }

    /// Returns the number and the total bytes of the messages that the program itself sends.
    /// Messages of collectives do not count.
    pub fn messages(&self) -> (u64, u128) {
        let sends = self.ranks.iter().flatten();
        let sends = sends.filter(|event| matches!(event.call, Call::Send | Call::ImmediateSend));
        sends.fold((0, 0), |(count, bytes), event| {
            (count + 1, bytes + u128::from(event.bytes))
        })
    }

    pub(super) fn place(&self, rank: u32, event: usize) -> Place {
        Place {
            rank,
            event: event as u32,
            line: self.ranks[rank as usize][event].line,
        }
    }

    /// Returns the members of the communicator on which `rank` makes the call `event`, and the
    /// index of `rank` among the members.
    pub(super) fn members(&self, rank: u32, event: usize) -> Result<(&[u32], u32), TraceError> {
        let communicator = self.ranks[rank as usize][event].communicator;
        let refuse = |problem: String| TraceError::at(self.place(rank, event), problem);
        let members = self.communicators.get(&communicator);
        let members = members
            .ok_or_else(|| refuse(format!("communicator {communicator} is not declared")))?;
        let number = members.iter().position(|&member| member == rank);
        let number = number.ok_or_else(|| {
            refuse(format!(
                "the rank is not a member of communicator {communicator}"
            ))
        })?;
        Ok((members, number as u32))
    }
}

impl Event {
    /// Call without effect. Its fields are the defaults for fields that a call does not use.
    pub const NOTHING: Event = Event {
        compute: 0,
        bytes: 0,
        peer: NONE,
        tag: 0,
        communicator: 0,
        request: NONE,
        line: 0,
        call: Call::Local,
        processor: 0,
    };
}
