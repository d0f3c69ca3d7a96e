//! What the circuit simulator asks a fabric whose circuits are placed in slots.
//!
//! A circuit occupies *lines*: links of a ring, transmitters, or ports. Lines are numbered row by row, a
//! line for every rank in each row.

use std::ops::Range;

use super::light::{Hop, LightKind, Rotation};
use crate::units::{Bytes, Rate, Time, UnitError};

/// What one circuit carries in a slot.
#[derive(Debug, Clone)]
pub struct Message {
    /// The light that carries it; of a light tree, as far as its farthest rank.
    pub hop: Hop,
    /// The rank that receives it.
    pub receiver: u32,
    /// The first of its transfers, as an index into the plan.
    pub transfer: u32,
    /// Whether it has light of its own; it rides on that of another otherwise.
    pub leads: bool,
    /// What it carries.
    pub bytes: Bytes,
    /// Bytes over rate.
    pub sending: Time,
    /// From the circuit being there to its last bit being received; given by [`Circuits::measure`].
    pub taken: Time,
    /// How long it holds its lines; given by [`Circuits::measure`].
    pub busy: Time,
    /// The lines that it occupies; given by [`Circuits::measure`].
    pub lines: [Range<u32>; 2],
}

impl Message {
    /// What a hop of a transfer carries, with light of its own; nothing measured yet.
    #[inline]
    pub fn new(hop: Hop, transfer: u32, bytes: Bytes) -> Message {
        Message {
            hop,
            receiver: hop.to,
            transfer,
            leads: true,
            bytes,
            sending: Time::ZERO,
            taken: Time::ZERO,
            busy: Time::ZERO,
            lines: [0..0, 0..0],
        }
    }
}

/// What changes of circuits take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// To set circuits up.
    pub set_up: Time,
    /// To release circuits.
    pub release: Time,
    /// To set slow switches, once for a plan; stated beside its time.
    pub once: Option<Time>,
}

/// What a policy charges for changes of circuits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// Nothing.
    Never,
    /// Every slot.
    EverySlot,
    /// Every slot with a circuit that the setting in force lacks.
    NewSetting,
    /// Every circuit of every slot.
    EachCircuit,
    /// Every circuit that its transmitter did not have in the slot right before.
    ChangedCircuit,
    /// Ports whose circuit changes; without barriers between slots.
    ChangedPort,
    /// Groups of slots in which no port changes its circuit; each slot with messages is one by itself
    /// where `each_slot` says so.
    Groups {
        /// Whether slots are not joined.
        each_slot: bool,
    },
}

/// When paths go that groups of slots set up, under the policy `establish_release`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Paths {
    /// After the group of slots for which they were set up.
    #[default]
    Released,
    /// When their ports are needed: each rank keeps the paths that it used last.
    Kept,
    /// The same, and at first there are those that an earlier run of the plan has left.
    Warm,
}

impl Paths {
    /// All of them, with their names as typed.
    pub const ALL: [(&'static str, Paths); 3] = [
        ("released", Paths::Released),
        ("kept", Paths::Kept),
        ("warm", Paths::Warm),
    ];
}

/// Which transfers of a slot go with the light of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// None.
    Alone,
    /// Those on the same circuit: together they are one message.
    SameCircuit,
    /// Copies of the same chunks from one rank: a light tree.
    Tree,
}

/// The lines of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// What a row is, such as `direction`, `plane` or `port`.
    pub row: &'static str,
    /// Rows.
    pub rows: u32,
    /// Lines in a row: ranks.
    pub ranks: u32,
}

/// Ranks on a ring, as algorithms see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingShape {
    /// The number of ranks, N.
    pub ranks: u32,
    /// Circuits side by side from a rank to the next, in each direction.
    pub channels: u32,
    /// The most links that a circuit spans.
    pub longest: u32,
}

/// A fabric whose circuits are placed in slots.
pub trait Circuits: Send + Sync {
    /// What the light of a plan says.
    fn light(&self) -> &'static LightKind;

    /// What a rotation of the ranks does to light, where the fabric looks the same from every rank.
    fn rotation(&self) -> Option<&dyn Rotation> {
        None
    }

    /// Whether a circuit carries one chunk in a slot; otherwise ranges of them.
    fn carries_one_chunk(&self) -> bool {
        false
    }

    /// What an algorithm may know of ranks that lie on a ring.
    fn ring_shape(&self) -> Option<RingShape> {
        None
    }

    /// The policies under which changes may be charged; the first is the default.
    fn policies(&self) -> &'static [&'static str];

    /// The lines that circuits occupy.
    fn lines(&self) -> Lines;

    /// The rate of a circuit.
    fn rate(&self) -> Rate;

    /// Which transfers share light.
    fn sharing(&self) -> Sharing;

    /// The first hop whose light or ranks do not exist, and what does not; where there is none, engines may
    /// index freely.
    fn refused(&self, hops: &[Hop]) -> Option<(usize, &'static str)>;

    /// What a policy charges.
    ///
    /// # Errors
    /// Why the policy is not one of this fabric, and what would do.
    fn charge(&self, policy: &str) -> Result<Charge, &'static str>;

    /// What changes take.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    fn change(&self) -> Result<Change, UnitError>;

    /// Enters times and lines into the messages of a slot.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    fn measure(&self, messages: &mut [Message]) -> Result<(), UnitError>;

    /// The ports, as rank and number, that the circuit of each hop joins, where a port has one circuit at a
    /// time in both directions; empty elsewhere.
    fn ports(&self, _hops: &[Hop]) -> Vec<[(u32, u32); 2]> {
        Vec::new()
    }
}
