//! Parameters of an iteration with groups of ranks, its collectives, and the trace that is
//! replayed.
//!
//! Collectives become messages of the replay, or take a given time each ([`Carrier`]).

use std::collections::BTreeMap;

use super::super::experts::ExpertLoads;
use super::stages::Stage;
use super::{GroupKind, Groups, Sharding};
use crate::trace::Trace;
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;

/// Bytes of a 16-bit parameter or activation.
pub const HALF: u64 = 2;

/// Parameters of an iteration.
#[derive(Debug, Clone)]
pub struct GroupedTraining {
    /// Groups of ranks.
    pub groups: Groups,
    /// Training state that replicas divide.
    pub sharding: Sharding,
    /// True if collectives among replicas run concurrently with the backward pass.
    pub overlap: bool,
    /// Number of micro-batches per iteration.
    pub micro_batches: u64,
    /// Bytes of the activations of a micro-batch between two layers.
    pub activations: u64,
    /// Bytes of the activations of a token.
    pub token: u64,
    /// Bytes of a gradient.
    pub gradient_bytes: u64,
    /// Part of the model on a rank of each stage.
    pub stages: Vec<Stage>,
    /// Tokens of each expert.
    pub loads: ExpertLoads,
}

/// A collective of a group, or a message between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupCollective {
    /// Kind of the group.
    pub group: GroupKind,
    /// The collective; `None` for a message.
    pub kind: Option<CollectiveKind>,
    /// Number of ranks of the group.
    pub ranks: u32,
    /// Size in bytes by the collective's convention.
    pub bytes: u64,
    /// Layer of experts of an all_to_all whose pairs exchange different amounts, and whether
    /// tokens return; `None` otherwise.
    pub uneven: Option<(usize, bool)>,
}

/// Execution of collectives.
#[derive(Debug, Clone, Copy)]
pub enum Carrier<'a> {
    /// Messages in the network of a replay.
    Replay,
    /// A given time for each collective.
    Times(&'a BTreeMap<GroupCollective, Time>),
}

/// A trace with the role of each of its events.
#[derive(Debug, Clone)]
pub struct GroupedTrace {
    /// The trace.
    pub trace: Trace,
    /// Role of each event, by rank.
    pub(super) roles: Vec<Vec<Role>>,
    /// Event of the sender that a message between stages follows, by sender, receiver and tag.
    pub(super) sent_after: BTreeMap<(u32, u32, u32), Option<u32>>,
    /// Groups as represented in the trace.
    pub groups: Groups,
}

/// Purpose of an event of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The device computes for this time.
    Computing(Time),
    /// The device waits for a collective of its tensor-parallel group.
    Tensor,
    /// The device waits for a collective of its expert-parallel group.
    Expert,
    /// The device waits for a message from another stage.
    Stage {
        /// Event in which the message arrives.
        arrival: u32,
    },
    /// The device waits for the last collective among replicas.
    LastReplicas,
    /// A message from another stage arrives.
    Arrival {
        /// The sending rank.
        peer: u32,
        /// Tag of the message.
        tag: u32,
    },
    /// A message leaves.
    Sending,
    /// A collective among replicas runs.
    Replicas,
}
