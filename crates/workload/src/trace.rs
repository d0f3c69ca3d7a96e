//! Traces of MPI programs: the calls of each rank in order.

use std::collections::BTreeMap;

use super::error::{Place, TraceError};
use super::program::{Call, NONE};

/// A call of a rank with the local work before it; 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Local work since the previous call, in picoseconds.
    pub compute: u64,
    /// Bytes of a message, room of a receive, or size of a collective by its convention.
    pub bytes: u64,
    /// The partner or the root, as a rank of the world; [`NONE`] if the call has none.
    pub peer: u32,
    /// Tag of a message.
    pub tag: u32,
    /// Number of the communicator.
    pub communicator: u32,
    /// Request that the call opens or waits for; [`NONE`] for a wait for all open requests. For
    /// [`Call::AllToAllVarious`], the index of its sizes in [`Trace::various`].
    pub request: u32,
    /// Line of the trace file, from 1, or node of a Chakra trace; 0 if the trace has neither.
    pub line: u32,
    /// The call.
    pub call: Call,
    /// Processor of the rank that executes the local work.
    pub processor: u8,
}

/// Maximum number of ranks of a trace; the limit prevents a wrong number from exhausting the
/// memory.
pub(super) const MAX_RANKS: u32 = 1 << 20;

/// Calls of all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Calls of each rank, in order.
    pub ranks: Vec<Vec<Event>>,
    /// Members of each communicator as ranks of the world, in the order of their numbers in the
    /// communicator.
    pub communicators: BTreeMap<u32, Vec<u32>>,
    /// Bytes for each member, for every total exchange with different sizes.
    pub various: Vec<Vec<u64>>,
    /// Earlier events that each event of each rank waits for. Empty if each rank makes one call
    /// after another.
    pub after: Vec<Vec<Vec<u32>>>,
}

impl Trace {
    /// Creates a trace of `ranks` ranks without calls. Communicator 0 is the world.
    pub fn new(ranks: u32) -> Trace {
        Trace {
            ranks: vec![Vec::new(); ranks as usize],
            communicators: BTreeMap::from([(0, (0..ranks).collect())]),
            various: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Returns the number of calls of all ranks.
    pub fn events(&self) -> usize {
        self.ranks.iter().map(Vec::len).sum()
    }

    /// Returns the number and the bytes of the messages that the program sends itself, without
    /// collectives.
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

    /// Returns the members of a collective's communicator, and the caller's number among them.
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
    /// A call without effect, with defaults for the fields that a call does not use.
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
