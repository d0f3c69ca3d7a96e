//! Why a trace was refused or could not be replayed.

use std::fmt;

use thiserror::Error;

use opticoll_base::units::UnitError;
use opticoll_simulate::SimulationError;

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
    /// An event that cannot be read, matched, expanded or carried.
    #[error("{place}: {problem}")]
    Event {
        /// The event.
        place: Place,
        /// What is wrong, and what was expected.
        problem: String,
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
    /// The network cannot go on, or cannot be set up.
    #[error(transparent)]
    Network(#[from] SimulationError),
    /// A plan that cannot be written so, a file that states none, or settings that do not fit.
    #[error("{0}")]
    Refused(String),
}

impl TraceError {
    /// A problem of an event.
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
