//! Errors of reading and replaying traces.

use std::fmt;

use thiserror::Error;

use opticoll_base::units::UnitError;
use opticoll_simulate::SimulationError;

/// Position in a trace: an event of a rank and its line in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Rank of the whole program.
    pub rank: u32,
    /// Index of the event among the rank's events, from 0.
    pub event: u32,
    /// Number of the line in the file, from 1; 0 if the file has no lines.
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

/// Reason why a trace was rejected or could not be replayed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line cannot be read.
    #[error("line {line}: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: u32,
        /// Description of the problem and of what was expected.
        problem: String,
    },
    /// A row of a table without lines cannot be read.
    #[error("row {row}: {problem}")]
    Row {
        /// Number of the row, from 1.
        row: usize,
        /// Description of the problem and of what was expected.
        problem: String,
    },
    /// A binary file cannot be read.
    #[error("byte {offset}: {problem}")]
    Binary {
        /// Offset of the problem in the file, in bytes.
        offset: usize,
        /// Description of the problem and of what was expected.
        problem: String,
    },
    /// An event cannot be read, matched, expanded or executed.
    #[error("{place}: {problem}")]
    Event {
        /// Position of the event.
        place: Place,
        /// Description of the problem and of what was expected.
        problem: String,
    },
    /// Ranks wait for each other, or for an event that never happens.
    #[error("deadlock: {} nodes cannot continue; {}", stuck, chain(waiting))]
    Deadlock {
        /// Number of the program's nodes that never end.
        stuck: usize,
        /// Chain of events, each of which waits for the next event. The last event waits for an
        /// earlier event of the chain.
        waiting: Vec<Place>,
    },
    /// A time or a sum of bytes exceeds 64 bits.
    #[error(transparent)]
    Units(#[from] UnitError),
    /// The trace expands to a program with too many nodes.
    #[error("the trace has more than {max_nodes} nodes, which is the maximum of a replay")]
    TooLarge {
        /// Maximum number of nodes of a program.
        max_nodes: usize,
    },
    /// The trace has more ranks than the fabric.
    #[error(
        "the trace has {trace} ranks, but the fabric has {fabric} ranks; give a fabric with at \
         least {trace} ranks"
    )]
    Ranks {
        /// Number of ranks of the trace.
        trace: u32,
        /// Number of ranks of the fabric.
        fabric: u32,
    },
    /// The network simulation failed or could not be set up.
    #[error(transparent)]
    Network(#[from] SimulationError),
    /// A plan cannot be written in a format, a file contains no plan, or settings contradict each
    /// other.
    #[error("{0}")]
    Refused(String),
}

impl TraceError {
    /// Creates the error of the event at `place`.
    pub(super) fn at(place: Place, problem: impl fmt::Display) -> TraceError {
        TraceError::Event {
            place,
            problem: problem.to_string(),
        }
    }
}

fn chain(waiting: &[Place]) -> String {
    let places: Vec<String> = waiting.iter().map(Place::to_string).collect();
    format!("{} waits", places.join(" waits for "))
}
