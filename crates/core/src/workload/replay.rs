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
//! LogGOPSim differs in three things: it streams n - 1 bytes, we n; its receiver is blocked for the whole
//! length of a message that came before its receive, ours takes it at once; and its receiving port
//! serves messages when they are matched, ours when they come.
//!
//! Each event is one entry in a queue ordered by time, kind and node; events of the present instant go
//! through a first-in first-out queue beside it. A network that is simulated ([`super::carrier`]) has a
//! clock of its own: between two instants of the replay it is asked when something happens there next, and
//! the earlier of the two comes first, the network's at equal times.

mod deadlock;
mod engine;

use super::carrier::{Carrier, Costs};
use super::cost::CostModel;
use super::error::TraceError;
use super::program::{Call, Program};
use crate::units::Time;
use engine::Engine;

/// How to replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplaySettings {
    /// Local work takes numerator / denominator of the traced time, rounded down to a picosecond.
    pub compute_factor: (u32, u32),
    /// Whether to keep the begin and end of every call.
    pub timeline: bool,
}

impl Default for ReplaySettings {
    fn default() -> ReplaySettings {
        ReplaySettings {
            compute_factor: (1, 1),
            timeline: false,
        }
    }
}

/// The calls of all ranks, in the order in which they ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// The rank.
    pub rank: Vec<u32>,
    /// The event of the trace, counted from 0 within its rank.
    pub event: Vec<u32>,
    /// What was called.
    pub call: Vec<Call>,
    /// When it was called; a rank's local work lies between calls.
    pub start: Vec<Time>,
    /// When it returned.
    pub end: Vec<Time>,
}

/// One entry per rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayedRanks {
    /// When its last node ended.
    pub finish: Vec<Time>,
    /// Local work, scaled.
    pub compute: Vec<Time>,
    /// Time inside each call, by the call's number. Where a program is no sequence (GOAL), nodes
    /// overlap: then it is the time from ready to end, summed over sends and over receives.
    pub in_call: Vec<[Time; Call::ALL.len()]>,
    /// How often each call was made, by the call's number; of GOAL, nodes.
    pub calls: Vec<[u64; Call::ALL.len()]>,
    /// Messages sent.
    pub messages: Vec<u64>,
    /// Bytes sent.
    pub bytes: Vec<u64>,
    /// How often it set up light paths, any number at one instant; zero where the program does not set them up
    /// itself.
    pub set_ups: Vec<u64>,
    /// The time that setting up and releasing took it.
    pub setting_up: Vec<Time>,
}

/// The messages that belong to a kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// From the start to the end of the last node.
    pub time: Time,
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Events of the simulation.
    pub events: u64,
    /// What was sent by the call's number.
    pub calls: [Sent; Call::ALL.len()],
    /// Per rank.
    pub ranks: ReplayedRanks,
    /// Per call; empty where it was not asked for.
    pub timeline: Timeline,
}

/// Replays a program over a cost model.
///
/// # Errors
/// A deadlock, with a chain of events that wait for one another; a time that leaves 64 bits; a compute
/// factor with denominator zero; bytes of all messages that leave 64 bits.
pub fn replay(
    program: &Program,
    model: &mut impl CostModel,
    settings: ReplaySettings,
) -> Result<Replayed, TraceError> {
    replay_over(program, &mut Costs(model), settings)
}

/// Replays a program over anything that carries messages.
///
/// # Errors
/// Those of [`replay`]; more ranks than the carrier has; what the carrier refuses.
pub fn replay_over(
    program: &Program,
    carrier: &mut impl Carrier,
    settings: ReplaySettings,
) -> Result<Replayed, TraceError> {
    let (trace, fabric) = (program.ranks(), carrier.ranks().unwrap_or(u32::MAX));
    if trace > fabric {
        return Err(TraceError::Ranks { trace, fabric });
    }
    let mut engine = Engine::new(program, carrier, settings)?;
    engine.run()?;
    engine.result()
}
