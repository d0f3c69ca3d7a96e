//! Capability of fabrics whose circuits are placed in slots, as the circuit simulator needs it.
//!
//! A circuit occupies *lines*: links of a ring, transmitters, wavelengths or ports. Lines are
//! numbered row by row. A circuit connects a *port* of its sender to a port of its receiver.

use std::ops::Range;

use super::light::{Hop, Light, LightKind, NumberedChannels, Rotation};
use super::transmission::Transmission;
pub use opticoll_base::ports::Port;
use opticoll_base::units::{Time, UnitError};

/// Circuit of a hop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circuit {
    /// Delay of a message over the circuit, in addition to [`Circuits::transmission`].
    pub delay: Time,
    /// Lines that the circuit occupies, as up to two ranges, in the order in which light passes
    /// them or in the opposite order.
    pub lines: [Range<u32>; 2],
}

/// Reason why a hop has no circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCircuit {
    /// Light or a rank that does not exist.
    Absent {
        /// Index of the hop among the given hops.
        hop: usize,
        /// Description of the missing part.
        problem: &'static str,
    },
    /// A time beyond 64 bits of picoseconds.
    Unit(UnitError),
}

impl From<UnitError> for NoCircuit {
    fn from(problem: UnitError) -> NoCircuit {
        NoCircuit::Unit(problem)
    }
}

/// Ports, channel and switch that a circuit needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Port of the sender.
    pub transmitter: Port,
    /// Port of the receiver.
    pub receiver: Port,
    /// Channel on each line of the circuit, below [`Lines::channels`].
    pub channel: u32,
    /// Index of the switch that connects the two ports, on fabrics with several parallel switches;
    /// else 0.
    pub plane: u32,
    /// True if the ports always hold the circuit, so that the circuit is never set up.
    pub is_fixed: bool,
}

/// Times that changes of circuits take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Time to set up circuits.
    pub set_up: Time,
    /// Time to release circuits.
    pub teardown: Time,
    /// Time to set slow switches once per plan. Results state this time separately from the plan's
    /// time.
    pub slow_switches: Option<Time>,
    /// True if the first circuit of every port is up at the start without a charge.
    pub first_free: bool,
}

/// Charge of a policy for changes of circuits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconfigurationCharge {
    /// No charge.
    Never,
    /// A charge for every slot.
    EverySlot,
    /// A charge for every run of slots whose circuits can be up together.
    NewSetting,
    /// A charge for every circuit of every slot.
    EachCircuit,
    /// A charge for every circuit that its transmitter did not have in the previous slot.
    ChangedCircuit,
    /// A charge for ports whose circuit changes; slots have no barrier between them.
    ChangedPort,
    /// A charge for each plane whose setting changes. All ports of this plane stop meanwhile; slots
    /// have no barrier between them.
    ChangedPlane,
    /// A charge for every group of slots in which no port changes its circuit.
    Groups {
        /// True if each slot with messages is a group by itself.
        each_slot: bool,
    },
}

opticoll_base::named_enum! {
    /// Lifetime of the lightpaths that a group of slots sets up, under the policy
    /// `setup_teardown`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Paths {
        /// Lightpaths are released after the group of slots for which they were set up.
        #[default]
        Released = "released",
        /// Lightpaths stay up until their ports are needed: each rank keeps the paths that it used
        /// most recently.
        Kept = "kept",
        /// Lightpaths are kept as in [`Paths::Kept`], and the lightpaths that a previous run of the
        /// same plan left are up at the start.
        Warm = "warm",
        /// Lightpaths are released as in [`Paths::Released`], but they are known in advance: the
        /// first lightpaths are set up before the plan begins, and the plan's time does not include
        /// the last release.
        Predicted = "predicted",
    }
}

/// Rule that decides which transfers of a slot share light. Transfers between the same ranks on the
/// same channel always form one message ([`Circuits::has_channel`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LightSharing {
    /// Only transfers on the same circuit share light.
    SameCircuit,
    /// Transfers of the same chunks from one rank share light as well: a light tree.
    Tree {
        /// Mask of the bits of [`Light`] in which all circuits of a tree agree.
        light: u32,
    },
}

/// Capacity to which the use of lines is compared in utilization results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// Number of usable channels of every line in every slot.
    Slots(u32),
    /// The plan's time on every line.
    Time,
}

/// Lines of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// Name and number of rows, such as `direction`, `plane` or `port`; then name and number of the
    /// lines in a row, usually `rank`.
    pub shape: [(&'static str, u32); 2],
    /// Channels of a line, including those that cannot be used.
    pub channels: u32,
    /// Capacity to which the use of lines is compared.
    pub capacity: Capacity,
    /// True if a circuit also occupies its lines during its delay; otherwise the circuit occupies
    /// them only while it sends bytes.
    pub held_for_delay: bool,
}

impl Lines {
    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        let [(_, rows), (_, columns)] = self.shape;
        rows as usize * columns as usize
    }
}

/// Ring of ranks, as algorithms see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingShape {
    /// Number of ranks, N.
    pub ranks: u32,
    /// Number of parallel circuits from a rank to the next, in each direction.
    pub channels: u32,
    /// Maximum number of links of a circuit.
    pub longest: u32,
}

/// Fabric whose circuits are placed in slots.
pub trait Circuits: Send + Sync {
    /// Returns the format of the light of plans.
    fn light(&self) -> &'static LightKind;

    /// Returns the numbering of channels, if the fabric numbers them.
    fn numbered_channels(&self) -> Option<&dyn NumberedChannels> {
        None
    }

    /// Returns the effect of a rotation of the ranks on light, if the fabric looks the same from
    /// every rank.
    fn rotation(&self) -> Option<&dyn Rotation> {
        None
    }

    /// Returns whether a circuit carries one chunk per slot; otherwise a circuit carries ranges of
    /// chunks.
    fn carries_one_chunk(&self) -> bool {
        false
    }

    /// Returns the ring shape for algorithms, or `None` if the ranks do not form a ring.
    fn ring_shape(&self) -> Option<RingShape> {
        None
    }

    /// Returns the policies that the fabric supports and the charge of each policy; the first
    /// policy is the default.
    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)];

    /// Returns the lines that circuits occupy.
    fn lines(&self) -> Lines;

    /// Returns the time model of a message's bytes on a circuit without degraded parts.
    fn transmission(&self) -> Transmission;

    /// Returns the delay of a circuit to the farthest rank that one circuit can reach.
    ///
    /// # Errors
    /// The delay exceeds 64 bits of picoseconds.
    fn delay(&self) -> Result<Time, UnitError>;

    /// Returns the time model of a message's bytes on the circuit of a hop, which
    /// [`Circuits::measure`] must have accepted.
    fn transmission_of(&self, _hop: &Hop) -> Transmission {
        self.transmission()
    }

    /// Returns whether some circuits are slower than [`Circuits::transmission`].
    fn is_degraded(&self) -> bool {
        false
    }

    /// Returns whether circuits may stay up after their group of slots, as [`Paths`] describes.
    fn keeps_paths(&self) -> bool {
        false
    }

    /// Returns the delay that a message pays once, regardless of its number of circuits.
    fn startup(&self) -> Time {
        Time::ZERO
    }

    /// Returns whether a transfer may use several circuits in one slot, such that relay ranks
    /// forward data while it arrives.
    fn cuts_through(&self) -> bool {
        false
    }

    /// Returns the light of messages on the electrical network beside the circuits, in which all
    /// messages of a rank share one port, and the time model of their bytes. Returns `None` if
    /// there is no such network.
    fn side_network(&self) -> Option<(Light, Transmission)> {
        None
    }

    /// Returns the rule for transfers that share light.
    fn sharing(&self) -> LightSharing;

    /// Returns whether light names one channel, such that transfers between the same ranks on it
    /// form one message.
    fn has_channel(&self, _light: Light) -> bool {
        true
    }

    /// Returns the charge of a policy.
    ///
    /// # Errors
    /// The fabric does not support the policy; the message names policies that the fabric supports.
    fn charge(&self, policy: &str) -> Result<ReconfigurationCharge, &'static str> {
        let mut policies = self.policies().iter();
        let known = policies.find(|(name, _)| *name == policy);
        known
            .map(|(_, charge)| *charge)
            .ok_or(self.other_policies())
    }

    /// Returns the error message for an unsupported policy, with the policies that the fabric
    /// supports.
    fn other_policies(&self) -> &'static str;

    /// Returns the times of changes of circuits.
    ///
    /// # Errors
    /// A time exceeds 64 bits of picoseconds.
    fn change(&self) -> Result<Change, UnitError>;

    /// Appends the circuits of `hops`, one circuit per hop.
    ///
    /// # Errors
    /// The light or a rank of a hop does not exist, or a time exceeds 64 bits of picoseconds.
    fn measure(&self, hops: &[Hop], circuits: &mut Vec<Circuit>) -> Result<(), NoCircuit>;

    /// Appends the ports, channel and switch of the circuit of each hop. [`Circuits::measure`] must
    /// have accepted the hops.
    fn tune(&self, hops: &[Hop], tunings: &mut Vec<Tuning>);
}
