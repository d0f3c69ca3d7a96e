//! Packet-level simulation of electrical networks: virtual channels, credits and finite buffers.
//!
//! # The model
//!
//! **Messages.** A terminal *sequences* its messages one at a time, each with a fixed delay. The
//! terminal then cuts the message into packets and the packets into chunks. The last packet and the
//! last chunk may be short; an empty message is one chunk. The terminal cuts the next packet when
//! its link has had the time to send all chunks of the previous packet, each counted as a full
//! chunk. The terminal pauses while the chunks that wait at the terminal fill twice the terminal
//! buffer. Chunks are the unit of the rest of the model: each chunk is routed, buffered, credited,
//! stored and forwarded as a whole. A short chunk takes the time of its own bytes on a link, but
//! the place of a full chunk in a buffer.
//!
//! **Links.** Let a link have rate B and latency l, and let its sender have router delay d (0 for
//! terminals). A chunk of b bytes that starts at time s arrives at s + b/B + d + l. The link is
//! free again at s + b/B, or at s + b/B + d if the router delay occupies the port
//! ([`RouterDelay::OccupiesPort`]). A router moves any number of chunks to its outputs at a time.
//!
//! **Virtual channels.** Each link has one or more virtual channels, each with a buffer for a fixed
//! number of chunks. A chunk occupies a place in the buffer of a channel from the time when the
//! sender accepts the chunk for the channel, through waiting and transmission, until the next
//! router accepts the chunk for the next channel. The buffer therefore represents the buffers of
//! sender and receiver, and the wire between them. A router routes an arriving chunk immediately.
//! If the buffer of the next channel has a free place, the router accepts the chunk and returns a
//! credit, which arrives after the credit delay and the latency of the chunk's last link.
//! Otherwise, the chunk waits in the queue for the next channel and still occupies its place in the
//! buffer of the previous channel: back-pressure. Terminals accept every chunk immediately.
//!
//! **Arbitration.** A free link serves either the highest channel that has accepted chunks
//! ([`Arbitration::Strict`]: chunks that are further along their route are sent first), or the
//! channels in turn. Each channel sends its chunks in the order of arrival. A chunk that arrives at
//! an idle link is sent immediately.
//!
//! **Overheads.** Each hand-over inside a terminal or router takes a short time ([`Overheads`]).
//! The delay `handover` applies between caller and terminal, after sequencing, between cutting and
//! queueing, between queueing and an idle link, and in routers between accepting a chunk and an
//! idle link. The delay `send` applies once per chunk and link, `notice` once per message at the
//! receiver, `credit` once per credit. Each delay is the middle of its range. If a seed for
//! `jitter` is given, each delay is drawn from its range instead.
//!
//! **Times of an empty network.** A message of one chunk of b bytes over r routers takes
//! `sequencing + 4 handover + notice` at its ends, `b/B + send` on each of r + 1 links, and `d +
//! handover` in each router.
//!
//! **Deadlock.** The routing modules prove that their routes are free of deadlock. The engine
//! checks as well: if no chunk can move, it returns [`PacketError::Deadlock`] with a cycle of
//! channels.
//!
//! **Time** is a whole number of picoseconds; transmission times are rounded up. Events of the same
//! time happen in the order of their kinds. Events of one kind happen in descending order of the
//! index of their link, channel or terminal. No order depends on chance, so runs are reproducible.
//!
//! The model is that of the dragonfly of CODES (Mubarak et al., A Case Study in Using Massively
//! Parallel Simulation for Extreme-Scale Torus Network Codesign, 2014, and its dragonfly
//! counterpart). Progressive adaptive routing (Jiang, Kim and Dally, Indirect Adaptive Routing on
//! Large Scale Interconnection Networks, 2009) gets the number of channels that it needs.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! use opticoll_simulate::packet;
//! use opticoll_simulate::packet::{PacketOptions, Traffic, PacketWork};
//! let fabric = Fabric::parse(
//!     "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,rate=10GB/s",
//! )?;
//! let work = PacketWork {
//!     traffic: vec![Traffic::uniform("2KiB".parse()?, "1us".parse()?, 10)],
//!     ..PacketWork::default()
//! };
//! let outcome = packet::simulate(&fabric, &work, &PacketOptions::default())?;
//! assert_eq!(outcome.message_latency.count(), 720);
//! assert_eq!(outcome.bytes_delivered, 720 * 2048);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arena;
mod channel;
mod deadlock;
mod delays;
mod dragonfly;
mod driven;
mod engine;
mod event_queue;
mod exchange;
mod expected;
mod machine;
mod partition;
mod paths;
mod plan;
mod port;
mod result;
mod routes;
mod run;
mod settings;
mod steps;
mod traffic;

use thiserror::Error;

use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::schedule::Schedule;

pub use super::pattern::Pattern;
pub use crate::outcome::packets::{
    BufferTimeline, ChannelColumns, Distribution, LinkClass, PacketOutcome, PacketSteps,
};
pub use driven::DrivenPackets;
pub use expected::{ExpectedWork, expected_work};
pub use plan::{simulate_plan, work_of};
pub use settings::{PacketSettings, RankPlacement, SETTINGS};
pub use traffic::{Draws, Traffic};

/// Errors of packet-level simulations, for input that is refused and for runs that stop early.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The fabric has no electrical links.
    #[error("packets need an electrical fabric, such as a dragonfly; got {family}")]
    Fabric {
        /// Family of the fabric.
        family: &'static str,
    },
    /// The network does not say which vertices a link connects.
    #[error("link {link} has no known ends; packets need links with a router at each end")]
    Ends {
        /// Index of the link.
        link: u32,
    },
    /// A link has a property that the model does not support.
    #[error("{link}: {problem}")]
    Link {
        /// Name of the link.
        link: String,
        /// Reason why the model does not support the link.
        problem: &'static str,
    },
    /// The value of an option is outside its range.
    #[error("{option} {problem}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Reason for the refusal, and the accepted values.
        problem: String,
    },
    /// The schedule and the fabric differ in their number of ranks.
    #[error("the schedule is for {schedule} ranks, but the fabric has {fabric} ranks")]
    Ranks {
        /// Number of ranks of the schedule.
        schedule: u32,
        /// Number of ranks of the fabric.
        fabric: u32,
    },
    /// The terminals of the ranks are not a permutation.
    #[error("the placement must name each of the {ranks} terminals once, in order of rank")]
    Placement {
        /// Number of ranks.
        ranks: u32,
    },
    /// A rank has no links, or a route does not end at its destination.
    #[error("rank {rank} is not reached by links")]
    Unreachable {
        /// Index of the rank.
        rank: u32,
    },
    /// The fixed routes need more virtual channels than the maximum to be free of deadlock.
    #[error(
        "the routes of this fabric need {needed} virtual channels to be free of deadlock, but the \
         maximum is {most}"
    )]
    Channels {
        /// Number of channels that the routes need.
        needed: u32,
        /// Maximum number of channels of a link.
        most: u32,
    },
    /// Neither traffic nor a collective ends the simulation.
    #[error(
        "traffic without a number of messages goes on until a collective ends; give a number of \
         messages or a collective"
    )]
    Endless,
    /// There are more messages than 32 bits can number.
    #[error("too many messages: they are numbered with 32 bits")]
    TooMany,
    /// The simulated time exceeds 2^60 ps (13 days).
    #[error("the simulated time exceeds 13 days; check sizes, rates and periods")]
    TooLong,
    /// Chunks wait for each other in a cycle.
    #[error(
        "deadlock: {chunks} chunks cannot move; each of these channels waits for the next and the \
         last for the first: {names}"
    )]
    Deadlock {
        /// Number of chunks in the network.
        chunks: usize,
        /// Channels of the cycle in order, as pairs (index of the link, index of the channel on the
        /// link).
        cycle: Vec<(u32, u32)>,
        /// Names of the channels of the cycle.
        names: String,
    },
    /// The caller stopped the simulation.
    #[error("the simulation was stopped")]
    Stopped,
    /// A time or a size exceeds 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

opticoll_base::named_enum! {
    /// Routing of chunks on a dragonfly. Other fabrics have fixed routes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum PacketRouting {
        /// Shortest routes.
        #[default]
        Minimal = "minimal",
        /// Routes through a random intermediate group (Valiant).
        NonMinimal = "valiant",
        /// The less loaded of a minimal and a valiant route, selected at the first router (UGAL-L).
        Adaptive = "adaptive",
        /// Adaptive routing that selects once more at the second router.
        Progressive = "progressive",
    }

    /// Effect of the router delay on the output port.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum RouterDelay {
        /// No effect: several chunks can be in the router's pipeline.
        #[default]
        Pipelined = "pipelined",
        /// The router delay occupies the output port.
        OccupiesPort = "occupies_port",
    }

    /// Order in which a free link serves its virtual channels.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Arbitration {
        /// The highest channel that has chunks. As in CODES, a chunk that arrives while no other
        /// chunk waits is selected immediately, even if the link is busy. When the link has sent
        /// all selected chunks, the link selects the next chunk.
        #[default]
        Ahead = "ahead",
        /// The highest channel that has chunks at the time when the link becomes free.
        Strict = "strict",
        /// Round robin: the next channel that has chunks at the time when the link becomes free.
        RoundRobin = "round_robin",
    }

    /// Order in which a rank sends the messages of a step.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Issue {
        /// Each message is sent when the previous message has left.
        #[default]
        Sequential = "sequential",
        /// All messages are sent at the same time.
        Together = "together",
    }
}

/// Buffer size of each virtual channel, for each class of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffers {
    /// Buffer size of a channel of a link within a group, or of a link between routers of a network
    /// without groups.
    pub local: Bytes,
    /// Buffer size of a channel of a link between groups.
    pub global: Bytes,
    /// Buffer size of a channel of a link from or to a terminal.
    pub terminal: Bytes,
}

/// Range of a delay. Without a seed, the delay is the middle of the range; with a seed, the delay
/// is drawn uniformly from the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DelayRange {
    /// Minimum.
    pub min: Time,
    /// Maximum minus minimum.
    pub width: Time,
}

impl DelayRange {
    const fn new(min_ps: u64, width_ps: u64) -> DelayRange {
        DelayRange {
            min: Time::from_ps(min_ps),
            width: Time::from_ps(width_ps),
        }
    }
}

/// Short delays inside terminals and routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Overheads {
    /// Time that a terminal needs to sequence a message, one message at a time.
    pub sequencing: Time,
    /// Time of each hand-over of a chunk inside a terminal or router.
    pub handover: DelayRange,
    /// Time that a link needs for each chunk, in addition to the time of the chunk's bytes.
    pub send: DelayRange,
    /// Time from the arrival of a message's last chunk until the receiver knows of the message.
    pub notice: DelayRange,
    /// Time that each credit takes, in addition to the credit delay and the latency of the link.
    pub credit: DelayRange,
}

impl Overheads {
    /// Delays of the dragonfly of CODES: 10 ns of sequencing, and the random delays of CODES.
    pub const CODES: Overheads = Overheads {
        sequencing: Time::from_ps(10_000),
        handover: DelayRange::new(500, 500),
        send: DelayRange::new(5, 1_000),
        notice: DelayRange::new(0, 1_000),
        credit: DelayRange::new(5, 1_000),
    };

    /// No delays.
    pub const NONE: Overheads = Overheads {
        sequencing: Time::ZERO,
        handover: DelayRange::new(0, 0),
        send: DelayRange::new(0, 0),
        notice: DelayRange::new(0, 0),
        credit: DelayRange::new(0, 0),
    };
}

/// Parameters of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketOptions {
    /// Size of a packet, at most 1 GiB.
    pub packet: Bytes,
    /// Size of a chunk, at most 1 MiB.
    pub chunk: Bytes,
    /// Buffer sizes of the virtual channels.
    pub buffers: Buffers,
    /// Routing of chunks on a dragonfly.
    pub routing: PacketRouting,
    /// Time that a router needs for a chunk.
    pub router_delay: Time,
    /// Effect of the router delay on the output port.
    pub router_delay_rule: RouterDelay,
    /// Time that a credit takes, in addition to the latency of its link.
    pub credit_delay: Time,
    /// Order in which a free link serves its virtual channels.
    pub arbitration: Arbitration,
    /// Short delays inside terminals and routers.
    pub overheads: Overheads,
    /// Seed for drawing the short delays; `None` if each delay is the middle of its range.
    pub jitter: Option<u64>,
    /// Seed of the random choices of routing.
    pub seed: u64,
    /// Maximum number of virtual channels of a link. If the routing needs more channels, deadlocks
    /// are possible. `None` provides the number of channels that the routing needs.
    pub virtual_channels: Option<u32>,
    /// Initial length of a bin of [`BufferTimeline`]; `None` if no timeline is recorded. The length
    /// is doubled when there are too many bins.
    pub timeline_bin: Option<Time>,
    /// Number of threads among which the groups of a dragonfly are divided. The outcome does not
    /// depend on this number.
    pub cores: u32,
}

impl Default for PacketOptions {
    /// Returns the parameters of the dragonfly of CODES: packets of 2 KiB, chunks of 512 B, and
    /// buffers of 16, 32 and 16 KiB. A credit of 8 B at 5.25 GiB/s takes 1.42 ns.
    fn default() -> PacketOptions {
        PacketOptions {
            packet: Bytes::new(2048),
            chunk: Bytes::new(512),
            buffers: Buffers {
                local: Bytes::new(16 << 10),
                global: Bytes::new(32 << 10),
                terminal: Bytes::new(16 << 10),
            },
            routing: PacketRouting::default(),
            router_delay: Time::from_ps(50_000),
            router_delay_rule: RouterDelay::default(),
            credit_delay: Time::from_ps(1_420),
            arbitration: Arbitration::default(),
            overheads: Overheads::CODES,
            jitter: None,
            seed: 1,
            virtual_channels: None,
            timeline_bin: None,
            cores: 1,
        }
    }
}

/// Schedule of a collective to be simulated.
#[derive(Debug, Clone)]
pub struct PacketCollective<'a> {
    /// Transfers and their steps.
    pub schedule: &'a Schedule,
    /// Size of the collective.
    pub size: Bytes,
    /// Terminal of each rank, indexed by rank; `None` if rank r is at terminal r.
    pub placement: Option<Vec<u32>>,
    /// Order in which a rank sends the messages of a step.
    pub issue: Issue,
    /// Time that a rank spends before each message that it sends.
    pub overhead: Time,
    /// Time at which all ranks begin.
    pub start: Time,
}

impl PacketCollective<'_> {
    /// Creates a collective that starts at 1 ns. Rank r is at terminal r, ranks send their messages
    /// one after the other, and sends have no overhead.
    pub fn new(schedule: &Schedule, size: Bytes) -> PacketCollective<'_> {
        PacketCollective {
            schedule,
            size,
            placement: None,
            issue: Issue::default(),
            overhead: Time::ZERO,
            start: Time::from_ps(1_000),
        }
    }
}

/// Work of a simulation.
#[derive(Debug, Clone, Default)]
pub struct PacketWork<'a> {
    /// Collective, if any. The simulation ends when the collective ends.
    pub collective: Option<PacketCollective<'a>>,
    /// Traffic in addition to the collective, or without a collective.
    pub traffic: Vec<Traffic>,
}

/// Progress of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketProgress {
    /// Number of events so far.
    pub events: u64,
    /// Number of messages delivered so far.
    pub messages_delivered: u64,
    /// Simulated time in picoseconds.
    pub time_ps: u64,
}

impl Traffic {
    /// Creates traffic with uniform destinations, seed 1 and start 0, for a simulation without a
    /// collective. Every terminal sends `messages` messages of `size`, one in each `period`.
    pub fn uniform(size: Bytes, period: Time, messages: u32) -> Traffic {
        Traffic {
            pattern: Pattern::Uniform,
            size,
            period,
            messages: Some(messages),
            start: Time::ZERO,
            end: None,
            draws: Draws::Foreground,
            seed: 1,
        }
    }

    /// Creates traffic with uniform destinations and seed 1 that lasts until the collective ends.
    /// Every terminal sends one message of `size` in each `period`.
    pub fn background(size: Bytes, period: Time) -> Traffic {
        Traffic {
            messages: None,
            draws: Draws::Background,
            ..Traffic::uniform(size, period, 0)
        }
    }
}

/// Simulates work on a fabric.
///
/// # Errors
/// Returns an error if an option is out of its range, the schedule does not match the fabric, the
/// fabric has no electrical links, the network deadlocks, or a time exceeds 64 bits.
pub fn simulate(
    fabric: &Fabric,
    work: &PacketWork<'_>,
    options: &PacketOptions,
) -> Result<PacketOutcome, PacketError> {
    simulate_watched(fabric, work, options, &mut |_| true)
}

/// Simulates work on a fabric and reports its progress to `watch` about every million events. The
/// simulation stops when `watch` returns false.
///
/// # Errors
/// Returns the errors of [`simulate`], and [`PacketError::Stopped`] if `watch` returned false.
pub fn simulate_watched(
    fabric: &Fabric,
    work: &PacketWork<'_>,
    options: &PacketOptions,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<PacketOutcome, PacketError> {
    machine::run(fabric, work, options, watch)
}
