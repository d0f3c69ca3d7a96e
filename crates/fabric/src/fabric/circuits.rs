//! Interface of fabrics whose circuits are placed in slots, as the circuit simulator needs it.
//!
//! A circuit occupies *lines*. A line is a link of a ring, a transmitter, a wavelength or a port,
//! depending on the family. Lines form rows and are numbered row by row. A circuit connects a
//! *port* of its sender to a port of its receiver.

use std::ops::Range;

use super::light::{Hop, Light, LightKind, NumberedChannels, Rotation};
use super::loss::{LossBudget, PassedLoss};
use super::noise::Noise;
use super::transmission::Transmission;
use crate::network::Network;
use crate::network::named_routes::NamedRoutes;
pub use opticoll_base::ports::Port;
use opticoll_base::units::{Time, UnitError};

/// Circuit of a hop, with its delay and the lines that it occupies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circuit {
    /// Delay of a message on the circuit, in addition to the time of [`Circuits::transmission`].
    pub delay: Time,
    /// Numbers of the lines that the circuit occupies. The ranges follow the direction of the light
    /// or the opposite direction.
    pub lines: LineRanges,
}

/// Ranges of lines. Two ranges are stored without an allocation, because a plan may have millions
/// of circuits, most of which have one or two ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineRanges {
    pair: [Range<u32>; 2],
    others: Vec<Range<u32>>,
}

impl LineRanges {
    /// Returns the ranges in order; some may be empty.
    #[inline]
    pub fn line_ranges(&self) -> impl Iterator<Item = &Range<u32>> + Clone {
        self.pair.iter().chain(&self.others)
    }

    /// Returns the ranges with all line numbers increased by `by`.
    pub(crate) fn moved(mut self, by: u32) -> LineRanges {
        for range in self.pair.iter_mut().chain(&mut self.others) {
            *range = range.start + by..range.end + by;
        }
        self
    }

    /// Returns the first line of the first range that is not empty.
    pub fn first_line(&self) -> Option<u32> {
        let range = self.line_ranges().find(|range| !range.is_empty());
        range.map(|range| range.start)
    }
}

impl From<[Range<u32>; 2]> for LineRanges {
    fn from(pair: [Range<u32>; 2]) -> LineRanges {
        LineRanges {
            pair,
            others: Vec::new(),
        }
    }
}

/// Creates a range for each line.
impl FromIterator<u32> for LineRanges {
    fn from_iter<I: IntoIterator<Item = u32>>(lines: I) -> LineRanges {
        let mut ranges = lines.into_iter().map(|line| line..line + 1);
        let pair = [0, 1].map(|_| ranges.next().unwrap_or(0..0));
        LineRanges {
            pair,
            others: ranges.collect(),
        }
    }
}

/// Reason why a hop has no circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCircuit {
    /// Description of the light or rank that does not exist on the fabric.
    Absent(&'static str),
    /// Delay of the circuit that exceeds the maximum [`Time`].
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
    /// Index of the channel that the circuit uses on each of its lines, below [`Lines::channels`].
    pub channel: u32,
    /// Number that identifies the switch between the two ports. Has no meaning if `is_fixed`, or on
    /// fabrics without parallel switches.
    pub plane: u32,
    /// True if the two ports are permanently connected, so that the circuit is never set up.
    pub is_fixed: bool,
}

/// Times to set up and tear down circuits, and to set slow switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Time to set up circuits.
    pub setup: Time,
    /// Time to tear down circuits.
    pub teardown: Time,
    /// Time to set slow switches once per plan; `None` if the fabric has no slow switches. Results
    /// report this time separately from the plan's time.
    pub slow_switches: Option<Time>,
    /// True if the first circuit of every port is up at the start, at no cost.
    pub first_free: bool,
}

/// Rule of a policy: the changes of circuits that cost one reconfiguration each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconfigurationCharge {
    /// No change costs time.
    Never,
    /// Every slot costs one reconfiguration, unless all its messages use the side network.
    EverySlot,
    /// Every run of consecutive slots whose circuits can all be up at the same time costs one
    /// reconfiguration.
    NewConfiguration,
    /// Every circuit of every slot costs one reconfiguration.
    EachCircuit,
    /// A circuit costs one reconfiguration unless the same transmitter had the same circuit in the
    /// previous slot.
    ChangedCircuit,
    /// If the circuit of a port changes, the port stops for one reconfiguration. Slots have no
    /// barrier between them.
    ChangedPort,
    /// If the configuration of a plane changes, all ports of the plane stop for one
    /// reconfiguration. Slots have no barrier between them.
    ChangedPlane,
    /// Every group of consecutive slots costs one reconfiguration.
    Groups {
        /// True if each slot with messages is a group. Otherwise a group ends when a port changes
        /// its circuit.
        each_slot: bool,
    },
}

/// Policies of fabrics whose lightpaths have a wavelength. With converters, a lightpath has no
/// single wavelength to which a port could be tuned.
pub(crate) fn wavelength_policies(
    converters: bool,
) -> &'static [(&'static str, ReconfigurationCharge)] {
    let policies = &[
        ("every_step", ReconfigurationCharge::EverySlot),
        ("on_change", ReconfigurationCharge::NewConfiguration),
        ("free", ReconfigurationCharge::Never),
        ("per_port", ReconfigurationCharge::ChangedPort),
    ];
    match converters {
        true => &policies[..3],
        false => policies,
    }
}

opticoll_base::named_enum! {
    /// Lifetime of lightpaths of a group of slots, under the policy `setup_teardown`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Paths {
        /// Lightpaths are torn down after the group of slots for which they were set up.
        #[default]
        Released = "released",
        /// Lightpaths stay up until new lightpaths need their ports. Each rank keeps its most
        /// recently used lightpaths.
        Kept = "kept",
        /// Lightpaths stay up as in [`Paths::Kept`]. In addition, the lightpaths of a previous
        /// execution of the same plan are up at the start.
        Warm = "warm",
        /// Lightpaths are torn down as in [`Paths::Released`], but are known in advance. The first
        /// lightpaths are set up before the plan begins, and the plan's time does not include the
        /// last teardown.
        Predicted = "predicted",
    }
}

/// Rule that decides which transfers of a slot may use the same light. Transfers between the same
/// two ranks on the same channel always form one message ([`Circuits::has_channel`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LightSharing {
    /// Only transfers on the same circuit use the same light.
    SameCircuit,
    /// Transfers of the same chunks from one rank also use the same light: a light tree.
    Tree {
        /// Bit mask of the fields of [`Light`] in which all circuits of a light tree must agree.
        light: u32,
        /// True if light may branch on its way. The circuits of a tree then have the same first
        /// line, and their lines are single links in the order of the light. Otherwise the lines of
        /// the longest circuit include those of the other circuits.
        branches: bool,
    },
}

/// Capacity of a line. The utilization in results is the use of a line divided by its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// Number of channels that can be used on each line in each slot.
    Slots(u32),
    /// Duration of the plan, equal for all lines.
    Time,
}

/// Numbering and capacity of the lines of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// Two pairs (name, number). The first pair has the name of a row, such as `direction` or
    /// `port`, and the number of rows. The second pair has the name of a line, usually `rank`, and
    /// the number of lines per row.
    pub shape: [(&'static str, u32); 2],
    /// Number of channels per line, including channels that cannot be used.
    pub channels: u32,
    /// Capacity of a line, for utilization results.
    pub capacity: Capacity,
    /// True if a circuit also occupies its lines during [`Circuit::delay`]. Otherwise the circuit
    /// occupies its lines only while it sends bytes.
    pub held_for_delay: bool,
}

impl Lines {
    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        let [(_, rows), (_, columns)] = self.shape;
        rows as usize * columns as usize
    }
}

/// Ring properties that algorithms need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingShape {
    /// Number of ranks, N.
    pub ranks: u32,
    /// Number of parallel circuits between neighbouring ranks, in each direction.
    pub channels: u32,
    /// Maximum number of links of a circuit.
    pub longest: u32,
}

/// Fabric whose circuits are placed in slots.
pub trait Circuits: Send + Sync {
    /// Returns the format of [`Light`] in plans.
    fn light(&self) -> &'static LightKind;

    /// Returns the numbering of channels, or `None` if the fabric does not number channels.
    fn numbered_channels(&self) -> Option<&dyn NumberedChannels> {
        None
    }

    /// Returns the rule that assigns channels to the rotations of a lightpath, or `None` if the
    /// fabric does not look the same from every rank.
    fn rotation(&self) -> Option<&dyn Rotation> {
        None
    }

    /// Returns whether a circuit carries only one chunk per slot. Otherwise a circuit carries
    /// ranges of consecutive chunks.
    fn carries_one_chunk(&self) -> bool {
        false
    }

    /// Returns the ring properties for algorithms, or `None` if the ranks do not form a ring.
    fn ring_shape(&self) -> Option<RingShape> {
        None
    }

    /// Returns the supported policies with their rules for reconfigurations, the default first.
    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)];

    /// Returns the numbering and capacity of the lines that circuits occupy.
    fn lines(&self) -> Lines;

    /// Returns the model of the time that a circuit needs for the bytes of a message. Degraded
    /// circuits are slower ([`Circuits::transmission_of`]).
    fn transmission(&self) -> Transmission;

    /// Returns the delay of a circuit to the farthest rank that a single circuit can reach.
    fn delay(&self) -> Result<Time, UnitError>;

    /// Returns the network of links over which light travels if a plan may name routes over it, or
    /// `None` if the light of a transfer determines its route.
    fn fibre_links(&self) -> Option<&dyn Network> {
        None
    }

    /// Returns the model of the time that the circuit of `_hop` needs for the bytes of a message.
    /// [`Circuits::circuit`] must have accepted the hop.
    fn transmission_of(&self, _hop: &Hop, _routes: &NamedRoutes) -> Transmission {
        self.transmission()
    }

    /// Returns whether some circuits are slower than [`Circuits::transmission`] states.
    fn is_degraded(&self) -> bool {
        false
    }

    /// Returns whether circuits may stay up after their group of slots, as in [`Paths::Kept`].
    fn keeps_paths(&self) -> bool {
        false
    }

    /// Returns the delay that is added once per message, regardless of its number of circuits.
    fn startup(&self) -> Time {
        Time::ZERO
    }

    /// Returns whether a transfer may use a chain of circuits in one slot. Relay ranks then forward
    /// data while the data arrives.
    fn cuts_through(&self) -> bool {
        false
    }

    /// Returns the light and the time model of messages on an electrical network that exists in
    /// addition to the circuits. All messages of a rank share one port of this network. Returns
    /// `None` if the fabric has no such network.
    fn side_network(&self) -> Option<(Light, Transmission)> {
        None
    }

    /// Returns the powers and losses of light, or `None` if the fabric does not state them.
    fn loss_budget(&self) -> Option<LossBudget> {
        None
    }

    /// Returns the losses of the light of `_hop`, which has been split `_splits` times before its
    /// destination. Returns an empty list if the fabric has no loss budget.
    /// [`Circuits::circuit`] must have accepted the hop.
    fn losses(&self, _hop: &Hop, _routes: &NamedRoutes, _splits: u32) -> Vec<PassedLoss> {
        Vec::new()
    }

    /// Returns the noise of the light of `_hop`, which has been split `_splits` times before its
    /// destination; `None` if the fabric does not state sources of noise.
    fn noise(&self, _hop: &Hop, _routes: &NamedRoutes, _splits: u32) -> Option<Noise> {
        None
    }

    /// Returns how often light is split before each destination of a light tree, whose hops are
    /// `tree`.
    fn splits(&self, tree: &[Hop], _routes: &NamedRoutes) -> Vec<u32> {
        vec![0; tree.len()]
    }

    /// Returns the rule that decides which transfers use the same light.
    fn sharing(&self) -> LightSharing;

    /// Returns whether `_light` names a single channel. Transfers between the same two ranks on a
    /// single channel form one message.
    fn has_channel(&self, _light: Light) -> bool {
        true
    }

    /// Returns the fibre of `_light` among the parallel fibres of a line, and the number of
    /// channels of this fibre that lightpaths can use. Returns `None` if no converters assign
    /// channels anew.
    fn fibre(&self, _light: Light) -> Option<(u32, u32)> {
        None
    }

    /// Returns the number of wavelength converters of every vertex of
    /// [`Circuits::fibre_links`], or `None` if it is not limited. Light without a single channel
    /// uses a converter at every vertex that it passes.
    fn converters_per_vertex(&self) -> Option<u32> {
        None
    }

    /// Returns the rule by which `policy` charges reconfigurations.
    ///
    /// # Errors
    /// The fabric does not support `policy`; the message names the supported policies.
    fn charge(&self, policy: &str) -> Result<ReconfigurationCharge, &'static str> {
        let mut policies = self.policies().iter();
        let supported = policies.find(|(name, _)| *name == policy);
        supported
            .map(|(_, charge)| *charge)
            .ok_or(self.other_policies())
    }

    /// Returns the error message for an unsupported policy, which names the supported policies.
    fn other_policies(&self) -> &'static str;

    /// Returns the times to set up and tear down circuits, and to set slow switches.
    fn change(&self) -> Result<Change, UnitError>;

    /// Returns the circuit of `hop`.
    ///
    /// # Errors
    /// The light or a rank of the hop does not exist, or a time exceeds 64 bits of picoseconds.
    fn circuit(&self, hop: &Hop, routes: &NamedRoutes) -> Result<Circuit, NoCircuit>;

    /// Returns the ports, channel and switch of the circuit of `hop`. [`Circuits::circuit`] must
    /// have accepted the hop.
    fn tuning(&self, hop: &Hop, routes: &NamedRoutes) -> Tuning;
}
