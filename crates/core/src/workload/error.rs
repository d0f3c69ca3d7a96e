//! Why a trace was refused or could not be replayed.

use std::fmt;

use thiserror::Error;

use crate::algorithm::AlgorithmError;
use crate::collective::CollectiveError;
use crate::planner::PlannerError;
use crate::simulate::SimulationError;
use crate::units::UnitError;

/// Where in a trace: a rank's event, counted from 0, and the line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The rank.
    pub rank: u32,
    /// The event of the rank, from 0.
    pub event: u32,
    /// The line, from 1; 0 where the file has no lines.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "rank {}, event {}", self.rank, self.event)?;
        match self.line {
            0 => Ok(()),
            line => write!(formatter, " (line {line})"),
        }
    }
}

/// Why a trace was refused or could not be replayed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line that cannot be read.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, from 1.
        line: u32,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A row of a table without lines that cannot be read.
    #[error("row {row}: {problem}")]
    Row {
        /// The row, from 1.
        row: usize,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A binary file that cannot be read.
    #[error("byte {offset}: {problem}")]
    Binary {
        /// Where the problem begins.
        offset: usize,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// An event that cannot be read.
    #[error("{place}: {problem}")]
    Event {
        /// The event.
        place: Place,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A partner that does not exist.
    #[error("{place}: there is no rank {peer}; ranks are 0 to {}", ranks - 1)]
    Peer {
        /// The event.
        place: Place,
        /// The partner.
        peer: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// No receive takes a message.
    #[error("{place}: no receive of rank {destination} takes this send (tag {tag})")]
    UnmatchedSend {
        /// The send.
        place: Place,
        /// Where it goes.
        destination: u32,
        /// Its tag.
        tag: u32,
    },
    /// Nobody sends what is to be received.
    #[error("{place}: rank {source_rank} sends nothing that this receive takes (tag {tag})")]
    UnmatchedReceive {
        /// The receive.
        place: Place,
        /// From where.
        source_rank: u32,
        /// Its tag.
        tag: u32,
    },
    /// A message is longer than its receiver allows.
    #[error("{place}: receives at most {room} bytes, but {sender} sends {sent}")]
    Truncated {
        /// The receive.
        place: Place,
        /// The send.
        sender: Place,
        /// Bytes sent.
        sent: u64,
        /// Bytes that the receiver has room for.
        room: u64,
    },
    /// A wait for a request that is not open.
    #[error("{place}: waits for request {request}, which is not open")]
    Request {
        /// The wait.
        place: Place,
        /// The request.
        request: u32,
    },
    /// A request opened anew before it was waited for.
    #[error("{place}: opens request {request}, which {opened} opened and nobody waited for")]
    RequestOpen {
        /// The event that opens it again.
        place: Place,
        /// The request.
        request: u32,
        /// The event that opened it.
        opened: Place,
    },
    /// A communicator that is not declared, or of which the rank is no member.
    #[error("{place}: {problem}")]
    Communicator {
        /// The event.
        place: Place,
        /// What is wrong.
        problem: String,
    },
    /// A collective that not all members enter.
    #[error(
        "{place}: enters a {call} on communicator {communicator} that rank {missing} never enters"
    )]
    MissingMember {
        /// One who enters.
        place: Place,
        /// The collective.
        call: &'static str,
        /// The communicator.
        communicator: u32,
        /// The first member who does not.
        missing: u32,
    },
    /// Members of a communicator enter different collectives.
    #[error("{place}: enters {here} on communicator {communicator} where {other} enters {there}")]
    Disagreement {
        /// One member.
        place: Place,
        /// What it enters.
        here: String,
        /// The communicator.
        communicator: u32,
        /// The first member.
        other: Place,
        /// What that enters.
        there: String,
    },
    /// Ranks wait for one another, or for something that never happens.
    #[error("deadlock: {} nodes cannot go on; {}", stuck, chain(waiting))]
    Deadlock {
        /// Nodes that never ended.
        stuck: usize,
        /// Who waits for whom; the last waits for one that stands before.
        waiting: Vec<Place>,
    },
    /// A time or a sum of bytes that leaves 64 bits.
    #[error(transparent)]
    Units(#[from] UnitError),
    /// A factor of local work that is no number.
    #[error("local work cannot take {numerator} / 0 of its time; write 1 / 1 for the traced time")]
    Factor {
        /// The numerator given.
        numerator: u32,
    },
    /// More than fits.
    #[error("the trace has more than {most} nodes, the most that can be replayed")]
    TooLarge {
        /// The most.
        most: usize,
    },
    /// The trace has more ranks than the fabric.
    #[error("the trace has {trace} ranks, the fabric {fabric}; it needs as many or more")]
    Ranks {
        /// Ranks of the trace.
        trace: u32,
        /// Ranks of the fabric.
        fabric: u32,
    },
    /// A message that the network cannot carry.
    #[error("{place}: {error}")]
    Message {
        /// The send.
        place: Place,
        /// Why not.
        error: SimulationError,
    },
    /// The network cannot go on, or cannot be set up.
    #[error(transparent)]
    Network(#[from] SimulationError),
    /// A plan of a collective that the verifier refuses: a fault of its algorithm.
    #[error("{place}: the plan of {algorithm} among {ranks} ranks is wrong: {violation}")]
    Violation {
        /// The collective's first member.
        place: Place,
        /// The algorithm.
        algorithm: String,
        /// The members.
        ranks: u32,
        /// The first violation.
        violation: String,
    },
    /// An eager limit over light paths.
    #[error(
        "a light path joins two ranks that are both ready: no message is eager; leave the eager limit out"
    )]
    Eager,
    /// Light paths are set up for calls, and the program has none.
    #[error(
        "GOAL has no calls and no communicators, for whose messages light paths could be set up together; replay the event table or OTF2 archive of the run"
    )]
    NoCalls,
    /// No schedule for a collective.
    #[error("{place}: {error}")]
    Algorithm {
        /// The collective's first member.
        place: Place,
        /// Why not.
        error: AlgorithmError,
    },
    /// No plan for a collective.
    #[error("{place}: {error}")]
    Planner {
        /// The collective's first member.
        place: Place,
        /// Why not.
        error: PlannerError,
    },
    /// No such collective.
    #[error("{place}: {error}")]
    Collective {
        /// The collective's first member.
        place: Place,
        /// Why not.
        error: CollectiveError,
    },
}

fn chain(waiting: &[Place]) -> String {
    let places: Vec<String> = waiting.iter().map(Place::to_string).collect();
    format!("{} waits", places.join(" waits for "))
}
