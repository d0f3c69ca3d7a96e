//! Parameters of an iteration with groups of ranks, collectives of the iteration, and the trace
//! that is replayed.
//!
//! In a replay, a collective either consists of simulated messages, or takes a given time
//! ([`Carrier`]).

use std::collections::BTreeMap;

use super::super::experts::ExpertLoads;
use super::super::operators::VALUE;
use super::super::practice::Practice;
use super::stages::Stage;
use super::{GroupKind, Groups, Sharding};
use crate::trace::Trace;
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;
use opticoll_simulate::circuit::succession::EndCircuits;

/// Parameters of an iteration with groups of ranks.
#[derive(Debug, Clone)]
pub struct GroupedTraining {
    /// Sizes of the groups of ranks.
    pub groups: Groups,
    /// Training state that replicas divide.
    pub sharding: Sharding,
    /// True if collectives among replicas run concurrently with the backward pass.
    pub overlap: bool,
    /// Number of micro-batches per iteration.
    pub micro_batches: u64,
    /// Number of bytes of a micro-batch's activations between two layers, of the tokens that the
    /// ranks of a tensor-parallel group compute.
    pub activations: u64,
    /// Number of bytes of a token's activations between two layers.
    pub token: u64,
    /// Number of bytes per gradient.
    pub gradient_bytes: u64,
    /// Recomputation, sequence parallelism, and what ranks store.
    pub practice: Practice,
    /// Time of the optimizer's step on a rank of each stage, indexed by stage.
    pub optimizer: Vec<Time>,
    /// Part of the model on a rank of each stage, indexed by stage.
    pub stages: Vec<Stage>,
    /// Number of tokens that each expert receives.
    pub loads: ExpertLoads,
}

impl GroupedTraining {
    /// Returns the bytes of a token on the way to experts or, if `back`, from experts. In 8 bits, a
    /// token has a 32-bit scale for every 128 values (DeepSeek-V3, arXiv:2412.19437, section
    /// 3.3.2).
    pub fn exchanged(&self, back: bool) -> u64 {
        let values = self.token / VALUE;
        match self.practice.narrow_dispatch && !back {
            true => values + 4 * values.div_ceil(128),
            false => self.token,
        }
    }
}

/// Collective of a group, or message between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupCollective {
    /// Kind of the group.
    pub group: GroupKind,
    /// Kind of the collective; `None` for a message.
    pub kind: Option<CollectiveKind>,
    /// Number of ranks in the group.
    pub ranks: u32,
    /// Size in bytes, as the collective defines it.
    pub bytes: u64,
    /// Exchange number and direction of an all_to_all whose pairs exchange different numbers of
    /// bytes; `None` for other collectives. The number is that of [`ExpertLoads`]. The direction
    /// is true if tokens return from the experts.
    pub uneven: Option<(usize, bool)>,
}

/// Method by which collectives are executed.
#[derive(Debug, Clone, Copy)]
pub enum Carrier<'a> {
    /// Each collective consists of messages, which the simulated network of a replay transports.
    Replay,
    /// Each collective takes a given time, indexed by collective. `None` if collectives of
    /// different kinds of groups do not wait for each other's ports.
    Times(&'a BTreeMap<GroupCollective, Time>, Option<&'a SharedPorts>),
}

/// Sets of ports of a rank. The collectives of a rank that use the same set run one after another,
/// in the order in which the rank starts them.
///
/// On a circuit switch, a collective takes R longer, the time to set up circuits, if the circuits
/// with which its plan starts are not up at the rank. A message between stages takes R longer if
/// its circuit is not up at the sender or not at the receiver.
#[derive(Debug, Clone)]
pub struct SharedPorts {
    /// Index of the set of ports that each collective uses.
    pub set_of: BTreeMap<GroupCollective, usize>,
    /// Circuits of the plan of each collective; none if circuits are always up.
    pub circuits: BTreeMap<GroupCollective, EndCircuits>,
    /// Number of ports of a rank in each direction.
    pub ports: usize,
    /// Time R to set up circuits.
    pub setup: Time,
}

/// Message between stages, as its sender or its receiver uses ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageUse {
    /// Event of the sender in which the message is sent; `None` at the receiver.
    pub(super) event: Option<u32>,
    /// True if circuits of the rank must be set up before the message.
    pub(super) sets_up: bool,
}

/// Trace of an iteration, with the role of each event.
#[derive(Debug, Clone)]
pub struct GroupedTrace {
    /// The trace.
    pub trace: Trace,
    /// Role of each event, indexed by rank and event.
    pub(super) roles: Vec<Vec<Role>>,
    /// Index of the sender's event after which a message between stages is sent, indexed by
    /// (sender, receiver, tag). `None` if the message waits for no event.
    pub(super) sent_after: BTreeMap<(u32, u32, u32), Option<u32>>,
    /// Sizes of the groups in the trace, in which one rank may represent several ranks.
    pub groups: Groups,
    /// Number of setups of circuits from one collective to the next, indexed by rank.
    pub(super) setups: Vec<u64>,
}

/// Purpose of an event in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The device computes for this time.
    Computing(Time),
    /// A collective or message of this kind of group is running beside the device.
    Beside(GroupKind),
    /// The device waits for the end of such an exchange.
    Waiting(GroupKind),
    /// A collective or message of this kind of group is running, and the device waits for it.
    Blocking(GroupKind),
    /// The device waits for a message from another stage.
    Stage {
        /// Index of the event in which the message arrives.
        arrival: u32,
    },
    /// A message from another stage arrives.
    Arrival {
        /// Sending rank.
        peer: u32,
        /// Tag of the message.
        tag: u32,
    },
    /// The event takes no time of the device: a message is sent, or several events have ended.
    Nothing,
}
