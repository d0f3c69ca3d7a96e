//! What the circuit simulator asks a fabric whose circuits are placed in slots.
//!
//! A circuit occupies *lines*: links of a ring, transmitters, wavelengths or ports. Lines are numbered row
//! by row. It joins a *port* of its sender to one of its receiver.

use std::ops::Range;

use super::light::{Hop, Light, LightKind, NumberedChannels, Rotation};
use super::transmission::Transmission;
pub use opticoll_base::ports::Port;
use opticoll_base::units::{Time, UnitError};

/// The circuit of a hop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circuit {
    /// What a message takes over it, beside [`Circuits::transmission`].
    pub delay: Time,
    /// The lines that it occupies, in the order in which light passes them or against it.
    pub lines: [Range<u32>; 2],
}

/// Why a hop has no circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCircuit {
    /// Its light or one of its ranks does not exist.
    Absent {
        /// The place of the hop among those given.
        hop: usize,
        /// What does not exist.
        problem: &'static str,
    },
    /// A time beyond 64 bits.
    Unit(UnitError),
}

impl From<UnitError> for NoCircuit {
    fn from(problem: UnitError) -> NoCircuit {
        NoCircuit::Unit(problem)
    }
}

/// What a circuit needs at its ends and between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// The port of the sender.
    pub transmitter: Port,
    /// The port of the receiver.
    pub receiver: Port,
    /// Its channel on each of its lines, below [`Lines::channels`].
    pub channel: u32,
    /// The switch that joins its ports, where there are several side by side.
    pub plane: u32,
    /// Whether its ports hold it always, so that there is nothing to set.
    pub is_fixed: bool,
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
    /// Whether the first circuits of all ports are there at the beginning.
    pub first_free: bool,
}

/// What a policy charges for changes of circuits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// Nothing.
    Never,
    /// Every slot.
    EverySlot,
    /// Every run of slots whose circuits can be up together.
    NewSetting,
    /// Every circuit of every slot.
    EachCircuit,
    /// Every circuit that its transmitter did not have in the slot right before.
    ChangedCircuit,
    /// Ports whose circuit changes; without barriers between slots.
    ChangedPort,
    /// Planes whose setting changes, each for all of its ports; without barriers between slots.
    ChangedPlane,
    /// Groups of slots in which no port changes its circuit; each slot with messages is one by itself
    /// where `each_slot` says so.
    Groups {
        /// Whether slots are not joined.
        each_slot: bool,
    },
}

opticoll_base::named_enum! {
    /// When paths go that groups of slots set up, under the policy `establish_release`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Paths {
        /// After the group of slots for which they were set up.
        #[default]
        Released = "released",
        /// When their ports are needed: each rank keeps the paths that it used last.
        Kept = "kept",
        /// The same, and at first there are those that an earlier run of the plan has left.
        Warm = "warm",
        /// As [`Paths::Released`], but known in advance: they are set up before the plan begins, and its time does not
        /// contain the last release.
        Predicted = "predicted",
    }
}

/// Which transfers of a slot go with the light of another. Those between the same ranks on the same channel are always
/// one message ([`Circuits::has_channel`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LightSharing {
    /// Those on the same circuit only.
    SameCircuit,
    /// The same chunks from one rank as well: a light tree.
    Tree {
        /// The bits of light that the circuits of a tree have in common.
        light: u32,
    },
}

/// What the use of lines is measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// So many channels that can be used, on every line in every slot.
    Slots(u32),
    /// The time of every line.
    Time,
}

/// The lines of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// What a row is, such as `direction`, `plane` or `port`, and how many there are; then what the lines
    /// of a row are, as a rule a `rank` each, and how many there are.
    pub shape: [(&'static str, u32); 2],
    /// Channels of a line, whether they can be used or not.
    pub channels: u32,
    /// What their use is measured against.
    pub capacity: Capacity,
    /// Whether a circuit holds its lines for its delay, too, and not only while bytes are sent.
    pub held_for_delay: bool,
}

impl Lines {
    /// How many there are.
    pub fn count(&self) -> usize {
        let [(_, rows), (_, columns)] = self.shape;
        rows as usize * columns as usize
    }
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

    /// Channels side by side, where the fabric numbers them.
    fn numbered_channels(&self) -> Option<&dyn NumberedChannels> {
        None
    }

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

    /// The policies under which changes may be charged, and what each charges; the first is the default.
    fn policies(&self) -> &'static [(&'static str, Charge)];

    /// The lines that circuits occupy.
    fn lines(&self) -> Lines;

    /// What a circuit takes for the bytes of a message.
    fn transmission(&self) -> Transmission;

    /// The delay of a circuit to the farthest of the ranks that one circuit reaches.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    fn delay(&self) -> Result<Time, UnitError>;

    /// What the circuit of a hop takes for the bytes of a message, where it is measured.
    fn transmission_of(&self, _hop: &Hop) -> Transmission {
        self.transmission()
    }

    /// Whether some circuits take longer than [`Circuits::transmission`] says.
    fn is_degraded(&self) -> bool {
        false
    }

    /// Whether circuits of a group of slots may stay up after it, as [`Paths`] say.
    fn keeps_paths(&self) -> bool {
        false
    }

    /// What a message takes once, however many circuits it goes over.
    fn startup(&self) -> Time {
        Time::ZERO
    }

    /// Whether a transfer may go over several circuits in one slot, where a rank sends on what still arrives.
    fn cuts_through(&self) -> bool {
        false
    }

    /// The light of messages that go beside all circuits, over a network whose port the messages of a rank share, and what their
    /// bytes take.
    fn beside(&self) -> Option<(Light, Transmission)> {
        None
    }

    /// Which transfers share light.
    fn sharing(&self) -> LightSharing;

    /// Whether light has a channel of its own, so that transfers between the same ranks on it are one message.
    fn has_channel(&self, _light: Light) -> bool {
        true
    }

    /// What a policy charges.
    ///
    /// # Errors
    /// Why the policy is not one of this fabric, and what would do.
    fn charge(&self, policy: &str) -> Result<Charge, &'static str> {
        let mut policies = self.policies().iter();
        let known = policies.find(|(name, _)| *name == policy);
        known
            .map(|(_, charge)| *charge)
            .ok_or(self.other_policies())
    }

    /// Why any other policy is not one of this fabric, and what would do.
    fn other_policies(&self) -> &'static str;

    /// What changes take.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    fn change(&self) -> Result<Change, UnitError>;

    /// Appends the circuits of hops.
    ///
    /// # Errors
    /// The first hop whose light or ranks do not exist, or a time beyond 64 bits.
    fn measure(&self, hops: &[Hop], circuits: &mut Vec<Circuit>) -> Result<(), NoCircuit>;

    /// Appends what the circuits of hops need, where [`Circuits::measure`] finds them.
    fn tune(&self, hops: &[Hop], tunings: &mut Vec<Tuning>);
}
