//! Replays a program over a cost model or a simulated network.
//!
//! Semantics. A node is ready when its dependencies are met. Work and sends need their processor, which
//! serves them in the order in which they become ready (at one instant: in order of events); a receive
//! begins when it is ready. An eager message is handed to the network after the overhead, and its send
//! ends then. A message above the eager limit is handed over when, besides, its receive has begun (both
//! ends ready, no cost for agreeing), and its send ends when it has left. A receive ends when it has
//! begun and its message has arrived, plus the overhead. Messages are matched in the order of the
//! program, so costs never change who receives what; whether ranks deadlock depends on the eager limit
//! alone.
//!
//! A planned collective begins when the last of its members has come to it, and ends at all of them when its plan ends.
//!
//! LogGOPSim differs in three things: it streams n - 1 bytes, we n; its receiver is blocked for the whole
//! length of a message that came before its receive, ours takes it at once; and its receiving port
//! serves messages when they are matched, ours when they come.
//!
//! Each event is one entry in a queue ordered by time, kind and node; events of the present instant go
//! through a first-in first-out queue beside it. A network that is simulated ([`opticoll_simulate::live`]) has a
//! clock of its own: between two instants of the replay it is asked when something happens there next, and
//! the earlier of the two comes first, the network's at equal times.

mod deadlock;
mod engine;

use std::collections::BTreeMap;

use super::error::TraceError;
use super::program::{Call, Program};
use engine::ReplayEngine;
use opticoll_base::units::{Bytes, Time};
use opticoll_simulate::live::Live;

/// How to replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaySettings {
    /// Local work takes numerator / denominator of the traced time, rounded down to a picosecond.
    pub compute_factor: (u32, u32),
    /// The same of ranks that have a factor of their own: slower or faster than the others.
    pub rank_factors: BTreeMap<u32, (u32, u32)>,
    /// Whether to keep the begin and end of every call.
    pub timeline: bool,
    /// What messages cost at their ends.
    pub ends: EndCosts,
}

/// What a message costs at its ends, whatever carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndCosts {
    /// The time that a rank spends on each message sent and each received.
    pub overhead: Time,
    /// Which messages leave at once.
    pub eager: Eager,
}

/// Which messages leave at once, so that their send ends with the overhead; the others leave when their receive has
/// begun too, and their send ends when the last byte has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eager {
    /// All.
    #[default]
    All,
    /// Those of at most so many bytes.
    UpTo(Bytes),
    /// None, not even those without bytes.
    Never,
}

impl EndCosts {
    fn is_eager(&self, bytes: u64) -> bool {
        match self.eager {
            Eager::All => true,
            Eager::UpTo(limit) => bytes <= limit.get(),
            Eager::Never => false,
        }
    }
}

impl Default for ReplaySettings {
    fn default() -> ReplaySettings {
        ReplaySettings {
            compute_factor: (1, 1),
            rank_factors: BTreeMap::new(),
            timeline: false,
            ends: EndCosts::default(),
        }
    }
}

opticoll_simulate::columns! {
    /// One row per call of a rank, in the order in which they ended.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Timeline {
        /// The rank.
        pub rank: u32,
        /// The event of the trace, counted from 0 within its rank.
        pub event: u32,
        /// What was called: the number of the kind of call.
        pub call: Call,
        /// When it was called; a rank's local work lies between calls.
        pub start: Time,
        /// When it returned.
        pub end: Time,
    }
}

opticoll_simulate::columns! {
    /// One row per rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ReplayedRanks {
        /// When its last node ended.
        pub finish: Time,
        /// Local work, scaled.
        pub compute: Time,
        /// Time inside calls. Where a program is no sequence (GOAL), nodes overlap: then it is the time from ready to
        /// end, summed over sends and receives.
        pub calls: Time,
        /// Time that setting up and releasing circuits took it.
        pub setting_up: Time,
        /// Messages sent, without those of planned collectives.
        pub messages: u64,
        /// Bytes sent.
        pub bytes: u64 as "B",
        /// How often it set up circuits, any number at one instant; zero where the program does not set them up itself.
        pub set_ups: u64,
    }
}

opticoll_simulate::columns! {
    /// One row per kind of call that was made, and rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Calls shaped {
        /// How often the rank made the call; of GOAL, nodes.
        pub calls: u64,
        /// Time inside the call.
        pub time: Time,
    }
}

opticoll_simulate::rows! {
    /// One row per kind of call that was made.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CallSum {
        /// The kind of call.
        pub call: &'static str,
        /// How often it was made by all ranks; of GOAL, nodes.
        pub calls: u64,
        /// Messages that belong to it.
        pub messages: u64,
        /// Bytes that belong to it.
        pub bytes: u64 as "B",
        /// Time inside it, summed over ranks.
        pub total: u128 as "ps",
        /// Longest time of one rank inside it.
        pub longest: Time,
    }
}

/// The messages that belong to a kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SentMessages {
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

opticoll_simulate::totals! {
    /// What a replay found.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Replayed {
        /// From the start to the end of the last node.
        pub time: Time,
        /// Messages sent.
        pub messages: u64,
        /// Bytes sent.
        pub bytes: u64 as "B",
        /// Events of the replay itself.
        pub events: u64,
        /// Per rank.
        pub ranks: ReplayedRanks,
        /// Per kind of call.
        pub kinds: Vec<CallSum>,
        /// Per kind of call and rank, in the order of `kinds`.
        pub calls: Calls,
        /// Per call; empty where it was not asked for.
        pub timeline: Timeline,
    }
}

/// Replays a program over anything that carries messages.
///
/// # Errors
/// A deadlock, with a chain of events that wait for one another; a time that leaves 64 bits; a compute
/// factor with denominator zero; bytes of all messages that leave 64 bits; more ranks than the network has; what the
/// network refuses.
pub fn replay(
    program: &Program,
    network: &mut (impl Live + ?Sized),
    settings: ReplaySettings,
) -> Result<Replayed, TraceError> {
    let (trace, fabric) = (program.ranks(), network.ranks().unwrap_or(u32::MAX));
    if trace > fabric {
        return Err(TraceError::Ranks { trace, fabric });
    }
    let mut engine = ReplayEngine::new(program, network, settings)?;
    engine.run()?;
    engine.result()
}
