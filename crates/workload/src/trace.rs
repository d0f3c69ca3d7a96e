//! What each rank of an MPI program called, one call after another.

use std::collections::BTreeMap;

use super::error::{Place, TraceError};
use super::program::{Call, NONE};

/// One call of a rank and the local work before it. 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Picoseconds of local work since the call before.
    pub compute: u64,
    /// Bytes of the message; the room of a receive; the size of a collective by its convention.
    pub bytes: u64,
    /// The partner or the root, as a rank of the world; [`NONE`] where there is none.
    pub peer: u32,
    /// The tag of a message.
    pub tag: u32,
    /// The communicator.
    pub communicator: u32,
    /// The request that a call opens or waits for; [`NONE`] for a wait for all that are open. Of an
    /// [`Call::AllToAllVarious`], the index of its sizes in [`Trace::various`].
    pub request: u32,
    /// The line, from 1, or the node of a Chakra trace; 0 where the trace has neither.
    pub line: u32,
    /// What is called.
    pub call: Call,
    /// The processor of the rank that does its local work.
    pub processor: u8,
}

/// The most ranks of a trace: a million, so that a wrong number does not take all memory.
pub(super) const MOST_RANKS: u32 = 1 << 20;

/// The calls of all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Per rank, its calls in order.
    pub ranks: Vec<Vec<Event>>,
    /// The members of each communicator, as ranks of the world in the order of their numbers in it.
    pub communicators: BTreeMap<u32, Vec<u32>>,
    /// Bytes for each member, of total exchanges of various sizes.
    pub various: Vec<Vec<u64>>,
    /// Per rank and event, the earlier events that it waits for, and nothing else; empty where each rank makes one call
    /// after another.
    pub after: Vec<Vec<Vec<u32>>>,
}

impl Trace {
    /// A trace of so many ranks without calls; communicator 0 is the world.
    pub fn new(ranks: u32) -> Trace {
        Trace {
            ranks: vec![Vec::new(); ranks as usize],
            communicators: BTreeMap::from([(0, (0..ranks).collect())]),
            various: Vec::new(),
            after: Vec::new(),
        }
    }

    /// The number of calls of all ranks.
    pub fn events(&self) -> usize {
        self.ranks.iter().map(Vec::len).sum()
    }

    /// Messages between two ranks that the program itself sends, and their bytes: collectives aside.
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

    /// The members of a collective's communicator and the caller's number among them.
    pub(super) fn members(&self, rank: u32, event: usize) -> Result<(&[u32], u32), TraceError> {
        let communicator = self.ranks[rank as usize][event].communicator;
        let refuse = |problem: String| TraceError::at(self.place(rank, event), problem);
        let members = self.communicators.get(&communicator);
        let members = members
            .ok_or_else(|| refuse(format!("communicator {communicator} is not declared")))?;
        let number = members.iter().position(|&member| member == rank);
        let number = number.ok_or_else(|| {
            refuse(format!(
                "the rank is no member of communicator {communicator}"
            ))
        })?;
        Ok((members, number as u32))
    }
}

impl Event {
    /// A call of nothing, for the fields that a call does not use.
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
