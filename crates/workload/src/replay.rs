//! Replays a program over a cost model or a simulated network.
//!
//! A node is ready when its dependencies are met. Local work and sends need a processor, which
//! executes nodes in the order in which they become ready (at the same time: in the order of
//! events). A receive starts when it is ready. An eager message enters the network after the
//! overhead, and its send ends at that moment. A message above the eager limit also waits until its
//! receive has started, and its send ends when the message has left. The two ends synchronise in no
//! time. A receive ends after it has started and its message has arrived, plus the overhead.
//! Messages match in the order of the program, so neither the network nor the overhead changes
//! which rank receives a message. Deadlocks depend only on the eager limit.
//!
//! A planned collective starts when the last of its members has entered it, and ends for all
//! members when its plan ends.
//!
//! LogGOPSim differs in three points. First, LogGOPSim transmits n - 1 bytes of a message of n
//! bytes; this replay transmits n bytes. Second, if a message arrives before its receive starts,
//! LogGOPSim blocks the receiver for the full length of the message; this replay accepts the
//! message at once. Third, the receiving port of LogGOPSim serves messages when they are matched;
//! the receiving port of this replay serves messages when they arrive.
//!
//! Each event is one entry of a queue ordered by time, kind and node. Events at the current time
//! pass through a separate first-in first-out queue. A simulated network
//! ([`opticoll_simulate::live`]) has its own clock. The replay compares its next event with the
//! next event of the network, and handles the earlier event first. At equal times, the event of the
//! network comes first.

mod deadlock;
mod engine;

use std::collections::BTreeMap;

use super::error::TraceError;
use super::program::{Call, Program};
use engine::ReplayEngine;
use opticoll_base::units::{Bytes, Time};
use opticoll_simulate::live::Live;

/// Settings of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaySettings {
    /// Factor of local work, as (numerator, denominator). Scaled work is rounded down to
    /// picoseconds.
    pub compute_factor: (u32, u32),
    /// Factors of local work of single ranks, indexed by rank. These factors replace
    /// `compute_factor`.
    pub rank_factors: BTreeMap<u32, (u32, u32)>,
    /// True if the timeline records the start and the end of every call.
    pub timeline: bool,
    /// Costs of messages at the sender and at the receiver.
    pub ends: EndCosts,
}

/// Costs of a message at the sender and at the receiver, regardless of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndCosts {
    /// Time that a rank spends on each message that it sends or receives.
    pub overhead: Time,
    /// Messages that are sent without waiting for their receive.
    pub eager: Eager,
}

/// Messages that are sent without waiting for their receive. The send of such a message ends after
/// the overhead. Other messages leave after their receive has also started, and their send ends
/// when the last byte has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eager {
    /// All messages.
    #[default]
    All,
    /// Messages up to this size.
    UpTo(Bytes),
    /// No message, not even a message without bytes.
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
    /// A row per call of a rank, in the order in which the calls ended.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Timeline {
        /// Rank that made the call.
        pub rank: u32,
        /// Index of the event in the rank's list of events, from 0.
        pub event: u32,
        /// Index of the kind of call.
        pub call: Call,
        /// Time at which the call started; local work lies between calls.
        pub start: Time,
        /// Time at which the call returned.
        pub end: Time,
    }
}

opticoll_simulate::columns! {
    /// A row per rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ReplayedRanks {
        /// Time at which the last node of the rank ended.
        pub finish: Time,
        /// Local work, multiplied by the factor.
        pub compute: Time,
        /// Time inside calls. In a program without a sequence of calls (GOAL), the time from ready
        /// to end, summed over sends and receives, which may overlap.
        pub calls: Time,
        /// Time that the rank spent on setting up and releasing circuits.
        pub setup: Time,
        /// Number of messages sent, without messages of planned collectives.
        pub messages: u64,
        /// Number of bytes sent.
        pub bytes: u64 as "B",
        /// Number of circuit setups, each of any number of circuits at the same time; 0 if the
        /// program sets up no circuits.
        pub setups: u64,
    }
}

opticoll_simulate::columns! {
    /// A row per pair of a kind of call that occurred and a rank.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Calls shaped {
        /// Number of calls of the rank; for GOAL, number of nodes.
        pub calls: u64,
        /// Time inside the calls.
        pub time: Time,
    }
}

opticoll_simulate::rows! {
    /// A row per kind of call that occurred.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CallSum {
        /// Kind of call.
        pub call: &'static str,
        /// Number of calls of all ranks; for GOAL, number of nodes.
        pub calls: u64,
        /// Number of messages that belong to the calls.
        pub messages: u64,
        /// Number of bytes that belong to the calls.
        pub bytes: u64 as "B",
        /// Time inside the calls, summed over ranks.
        pub total: u128 as "ps",
        /// Longest time that one rank spent inside the calls.
        pub longest: Time,
    }
}

/// Number and bytes of the messages sent by one kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SentMessages {
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes.
    pub bytes: u64,
}

opticoll_simulate::totals! {
    /// Result of a replay.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Replayed {
        /// Time from the start to the end of the last node.
        pub time: Time,
        /// Number of messages sent.
        pub messages: u64,
        /// Number of bytes sent.
        pub bytes: u64 as "B",
        /// Number of events of the replay, without events of the network.
        pub events: u64,
        /// Results by rank.
        pub ranks: ReplayedRanks,
        /// Results by kind of call.
        pub kinds: Vec<CallSum>,
        /// Results by kind of call and rank, in the order of `kinds`.
        pub calls: Calls,
        /// Results by call; empty unless requested.
        pub timeline: Timeline,
    }
}

/// Replays a program over a network or cost model.
///
/// # Errors
/// Fails for a deadlock; the error contains a chain of events that wait for each other. Also fails
/// if a time or a sum of bytes exceeds 64 bits, if a compute factor has the denominator 0, if the
/// network has too few ranks, or if the network fails.
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
