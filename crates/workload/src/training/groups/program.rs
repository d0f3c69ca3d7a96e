//! What an iteration consists of: the division that is asked for, its collectives, and the trace that is replayed.
//!
//! Collectives become messages of the replay, or take a time that is given for each ([`Carrier`]).

use std::collections::BTreeMap;

use super::super::experts::ExpertLoads;
use super::stages::Stage;
use super::{GroupKind, Groups, Sharding};
use crate::trace::Trace;
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;

/// Bytes of a parameter or activation in 16 bits.
pub const HALF: u64 = 2;

/// An iteration that is asked for.
#[derive(Debug, Clone)]
pub struct GroupedTraining {
    /// The groups.
    pub groups: Groups,
    /// What replicas divide.
    pub sharding: Sharding,
    /// Whether collectives among replicas go on beside the backward pass.
    pub overlap: bool,
    /// Micro-batches of an iteration.
    pub micro_batches: u64,
    /// Bytes of the activations of a micro-batch between two layers.
    pub activations: u64,
    /// Bytes of a token's activations.
    pub token: u64,
    /// Bytes of a gradient.
    pub gradient_bytes: u64,
    /// What a rank of each stage holds.
    pub stages: Vec<Stage>,
    /// Tokens of each expert.
    pub loads: ExpertLoads,
}

/// A collective of a group, or a message between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupCollective {
    /// The group.
    pub group: GroupKind,
    /// The collective; none for a message.
    pub kind: Option<CollectiveKind>,
    /// Ranks of the group.
    pub ranks: u32,
    /// Its size by its convention.
    pub bytes: u64,
    /// Of an all_to_all whose pairs exchange different amounts, the layer of experts and whether tokens come back.
    pub uneven: Option<(usize, bool)>,
}

/// What carries collectives.
#[derive(Debug, Clone, Copy)]
pub enum Carrier<'a> {
    /// The network of a replay.
    Replay,
    /// Nothing: each takes a time that is known.
    Times(&'a BTreeMap<GroupCollective, Time>),
}

/// A trace with the role of each of its events.
#[derive(Debug, Clone)]
pub struct GroupedTrace {
    /// The trace.
    pub trace: Trace,
    /// By rank and event.
    pub(super) roles: Vec<Vec<Role>>,
    /// By sender, receiver and tag of a message between stages, the event of the sender that it follows.
    pub(super) sent_after: BTreeMap<(u32, u32, u32), Option<u32>>,
    /// The groups as they stand in the trace.
    pub groups: Groups,
}

/// What an event of the trace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The device computes for so long.
    Computing(Time),
    /// The device waits for a collective of its tensor-parallel group.
    Tensor,
    /// The device waits for a collective of its expert-parallel group.
    Expert,
    /// The device waits for the message of this event.
    Stage {
        /// The event of its arrival.
        arrival: u32,
    },
    /// The device waits for the last collective among replicas.
    LastReplicas,
    /// A message from another stage arrives.
    Arrival {
        /// The rank that sends it.
        peer: u32,
        /// Its tag.
        tag: u32,
    },
    /// A message leaves.
    Sending,
    /// A collective among replicas.
    Replicas,
}
