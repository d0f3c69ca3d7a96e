//! Networks chunk by chunk: virtual channels, credits and finite buffers.
//!
//! # The model
//!
//! **Messages.** A message waits for its terminal's *sequencing* delay, one message at a time, is cut
//! into packets, and packets into chunks; last pieces may be short, and an empty message is one chunk.
//! A terminal cuts the next packet when the one before has been given the time of so many *full* chunks
//! on its link, unless chunks of twice its buffer wait already. The chunk is the unit of all that
//! follows: it is stored and forwarded, routed, buffered and credited as one. Its time on a link
//! is that of its true length; its place in a buffer is a full chunk's.
//!
//! **Links.** With rate B, router delay d (none at terminals) and latency l, a chunk of b bytes that
//! starts at s frees the link at s + b/B and arrives at s + b/B + d + l. Where the
//! router delay occupies the port ([`RouterDelay::OccupiesPort`]), it is free at s + b/B + d only.
//! Routers move any number of chunks at once from inputs to outputs.
//!
//! **Virtual channels.** Each link has some, each with a buffer of so many chunks. A chunk holds a
//! place from when its sender accepts it for that channel, through waiting and transmission, until
//! the next router has accepted it for the channel after; so one number stands for the sender's
//! and the receiver's buffer and the wire between. A chunk that comes to a router is routed; if its next
//! channel has room it is accepted and a credit goes back, which arrives after the credit
//! delay and the latency of the link it came over. Otherwise it waits in line for that channel and
//! keeps its place in the one before: back-pressure. Terminals accept everything at once.
//!
//! **Arbitration.** A free link takes the first accepted chunk of the highest channel
//! ([`Arbitration::Strict`]: what is further on its way goes first), or of the channels in turn. A
//! chunk that finds its link idle has it.
//!
//! **Overheads.** Handing something on inside a terminal or router takes a little ([`Overheads`]):
//! from the caller to the terminal, after sequencing, from cutting to queueing, from queueing to an idle
//! link, and in routers from accepting to an idle link (`handover`); `send` per chunk on a link;
//! `notice` to tell the receiver; `credit` per credit. They are the middles of ranges, or drawn from
//! them where a seed for `jitter` is given.
//!
//! **Times of an empty network.** So a message of one chunk of b bytes over r routers takes
//! `sequencing + 4 handover + notice` at its ends, `b/B + send` on each of its r + 1 links, and
//! `d + handover` in each router.
//!
//! **Deadlock.** Why routes never wait in a circle is said where they are made. It is checked as
//! well: if nothing can move any more, the run ends with [`PacketError::Stuck`], which names a circle
//! of channels.
//!
//! **Time** is in whole picoseconds; transmission is rounded up. Events of one time happen in the
//! order of their kind, then of the number of the link, channel or terminal that they happen to, from
//! the highest down; nothing else decides, so a run is repeated exactly.
//!
//! The model is that of CODES's dragonfly (Mubarak et al., A Case Study in Using Massively Parallel
//! Simulation for Extreme-Scale Torus Network Codesign, 2014, and its dragonfly counterpart), with
//! progressive adaptive routing (Jiang, Kim and Dally, Indirect Adaptive Routing on Large Scale
//! Interconnection Networks, 2009) given the channels it needs.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! use opticoll_simulate::packet;
//! use opticoll_simulate::packet::{PacketOptions, Traffic, PacketWork};
//! let fabric = Fabric::parse(
//!     "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,rate=10GB/s",
//! )?;
//! let work = PacketWork { traffic: vec![Traffic::uniform("2KiB".parse()?, "1us".parse()?, 10)], ..PacketWork::default() };
//! let outcome = packet::simulate(&fabric, &work, &PacketOptions::default())?;
//! assert_eq!(outcome.message_latency.count(), 720);
//! assert_eq!(outcome.bytes_delivered, 720 * 2048);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod border;
mod channel;
mod delays;
mod division;
mod dragonfly;
mod driven;
mod engine;
mod event_queue;
mod expected;
mod machine;
mod paths;
mod plan;
mod pool;
mod port;
mod result;
mod routes;
mod run;
mod settings;
mod steps;
mod stuck;
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
pub use expected::{ExpectedWork, expected};
pub use plan::{simulate_plan, work_of};
pub use settings::{PacketSettings, RankPlacement, SETTINGS};
pub use traffic::{Draws, Traffic};

/// Why a simulation was refused or broken off.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PacketError {
    /// No fabric that packets travel.
    #[error("packets need an electrical fabric, such as a dragonfly; got {family}")]
    Fabric {
        /// The family given.
        family: &'static str,
    },
    /// The network knows its links only, not what they join.
    #[error("link {link} has no known ends; packets need links with a router at each end")]
    Ends {
        /// The link's index.
        link: u32,
    },
    /// A link that the model has no place for.
    #[error("{link}: {problem}")]
    Link {
        /// The link in words.
        link: String,
        /// Why it does not fit.
        problem: &'static str,
    },
    /// An option out of its range.
    #[error("{option} {problem}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong and what would do.
        problem: String,
    },
    /// The schedule is for another number of ranks.
    #[error("the schedule is for {schedule} ranks, the fabric has {fabric}")]
    Ranks {
        /// Ranks of the schedule.
        schedule: u32,
        /// Ranks of the fabric.
        fabric: u32,
    },
    /// The placement of ranks is no permutation.
    #[error("the placement must name each of the {ranks} terminals once, in order of rank")]
    Placement {
        /// The number of ranks.
        ranks: u32,
    },
    /// A rank that some route does not lead to, or that has no link.
    #[error("rank {rank} is not reached by links")]
    Unreachable {
        /// The rank.
        rank: u32,
    },
    /// Fixed routes that need too many virtual channels to be free of deadlock.
    #[error(
        "the routes of this fabric need {needed} virtual channels to be free of deadlock; at most {most} are given"
    )]
    Channels {
        /// Channels that they need.
        needed: u32,
        /// Channels that a link may have.
        most: u32,
    },
    /// Nothing ends the simulation.
    #[error(
        "traffic without a number of messages goes on until a collective ends; give one of both"
    )]
    Endless,
    /// More messages than 32 bits count.
    #[error("too many messages: they are numbered with 32 bits")]
    TooMany,
    /// Simulated time came near the end of 64 bits.
    #[error("the simulated time exceeds 13 days; check sizes, rates and periods")]
    TooLong,
    /// Chunks wait for one another in a circle.
    #[error(
        "deadlock: {chunks} chunks cannot move; each of these channels waits for the next and the last for the first: {names}"
    )]
    Stuck {
        /// Chunks in the network.
        chunks: usize,
        /// Link and channel, one after the other.
        circle: Vec<(u32, u32)>,
        /// The same in words.
        names: String,
    },
    /// Broken off from outside.
    #[error("the simulation was broken off")]
    BrokenOff,
    /// A time or size left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

opticoll_base::named_enum! {
    /// How chunks find their way on a dragonfly; other fabrics have fixed routes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum PacketRouting {
        /// The shortest way.
        #[default]
        Minimal = "minimal",
        /// By way of a random group (Valiant).
        NonMinimal = "valiant",
        /// The less loaded of the two at the first router (UGAL-L).
        Adaptive = "adaptive",
        /// The same, and once more at the second router.
        Progressive = "progressive",
    }

    /// What a router's delay keeps busy.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum RouterDelay {
        /// Nothing: chunks are in it one behind the other.
        #[default]
        Pipelined = "pipelined",
        /// The output port.
        OccupiesPort = "occupies_port",
    }

    /// Which channel a free link serves.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Arbitration {
        /// The highest that has chunks, decided ahead: as soon as a chunk comes and no others wait, however
        /// many chosen chunks the link has still to send; otherwise when the link has sent those. CODES does
        /// this.
        #[default]
        Ahead = "ahead",
        /// The highest that has chunks, when the link is free.
        Strict = "strict",
        /// One after the other, when the link is free.
        RoundRobin = "round_robin",
    }

    /// How a rank issues the messages of a step.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Issue {
        /// The next when the one before has left.
        #[default]
        Sequential = "sequential",
        /// All at once.
        Together = "together",
    }
}

/// The bytes of the buffer of a virtual channel, by what its link leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffers {
    /// Links within a group, or between routers where there are no groups.
    pub local: Bytes,
    /// Links between groups.
    pub global: Bytes,
    /// Links from and to terminals.
    pub terminal: Bytes,
}

/// A range of delays, evenly drawn from or taken at its middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spread {
    /// The shortest.
    pub least: Time,
    /// From the shortest to the longest.
    pub range: Time,
}

impl Spread {
    const fn new(least_ps: u64, range_ps: u64) -> Spread {
        Spread {
            least: Time::from_ps(least_ps),
            range: Time::from_ps(range_ps),
        }
    }
}

/// The small delays inside terminals and routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Overheads {
    /// Per message, one at a time.
    pub sequencing: Time,
    /// From one part of a terminal or router to the next.
    pub handover: Spread,
    /// Per chunk on a link.
    pub send: Spread,
    /// From the arrival of the last chunk to the receiver.
    pub notice: Spread,
    /// Per credit.
    pub credit: Spread,
}

impl Overheads {
    /// Those of CODES's dragonfly: 10 ns of sequencing; its ranges of random delays.
    pub const CODES: Overheads = Overheads {
        sequencing: Time::from_ps(10_000),
        handover: Spread::new(500, 500),
        send: Spread::new(5, 1_000),
        notice: Spread::new(0, 1_000),
        credit: Spread::new(5, 1_000),
    };

    /// None at all.
    pub const NONE: Overheads = Overheads {
        sequencing: Time::ZERO,
        handover: Spread::new(0, 0),
        send: Spread::new(0, 0),
        notice: Spread::new(0, 0),
        credit: Spread::new(0, 0),
    };
}

/// The parameters of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketOptions {
    /// Bytes of a packet.
    pub packet: Bytes,
    /// Bytes of a chunk, at most 1 MiB.
    pub chunk: Bytes,
    /// Buffers of virtual channels.
    pub buffers: Buffers,
    /// The way of chunks on a dragonfly.
    pub routing: PacketRouting,
    /// The delay of a router.
    pub router_delay: Time,
    /// What that keeps busy.
    pub router_delay_rule: RouterDelay,
    /// The delay of a credit, beside the latency of its link.
    pub credit_delay: Time,
    /// Which channel a free link serves.
    pub arbitration: Arbitration,
    /// The small delays.
    pub overheads: Overheads,
    /// With a seed, the small delays are drawn from their ranges.
    pub jitter: Option<u64>,
    /// What the random choices of routing depend on.
    pub seed: u64,
    /// Fewer virtual channels than the routing needs, to see what they are for; `None` gives it
    /// what it needs.
    pub virtual_channels: Option<u32>,
    /// The length at first of a bin of [`BufferTimeline`], doubled when there are too many; `None` measures
    /// none.
    pub timeline_bin: Option<Time>,
    /// Threads that a dragonfly's groups are divided among, as far as that makes sense; the outcome is the
    /// same.
    pub cores: u32,
}

impl Default for PacketOptions {
    /// CODES's dragonfly with packets of 2 KiB, chunks of 512 B and buffers of 16, 32 and 16 KiB;
    /// a credit of 8 B at 5.25 GiB/s takes 1.42 ns.
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

/// A schedule to be carried out.
#[derive(Debug, Clone)]
pub struct PacketCollective<'a> {
    /// What moves.
    pub schedule: &'a Schedule,
    /// The collective's size.
    pub size: Bytes,
    /// The terminal of each rank; `None` puts rank r at terminal r.
    pub placement: Option<Vec<u32>>,
    /// How ranks issue the messages of a step.
    pub issue: Issue,
    /// What a rank spends before each send.
    pub overhead: Time,
    /// When all ranks begin.
    pub start: Time,
}

impl PacketCollective<'_> {
    /// From 1 ns on, ranks in order, one message after the other, without overhead.
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

/// What is sent.
#[derive(Debug, Clone, Default)]
pub struct PacketWork<'a> {
    /// A collective; the simulation ends when it does.
    pub collective: Option<PacketCollective<'a>>,
    /// Traffic beside it, or alone.
    pub traffic: Vec<Traffic>,
}

/// How far a simulation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketProgress {
    /// Events so far.
    pub events: u64,
    /// Messages delivered so far.
    pub messages_delivered: u64,
    /// The simulated time, in picoseconds.
    pub time_ps: u64,
}

impl Traffic {
    /// Measured uniform traffic from time 0 with seed 1: messages of `size` every `period`.
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

    /// Uniform traffic beside a collective, until that ends, with seed 1.
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
/// An option out of its range, a fabric or schedule that does not fit, a deadlock, or a time beyond
/// 64 bits.
pub fn simulate(
    fabric: &Fabric,
    work: &PacketWork<'_>,
    options: &PacketOptions,
) -> Result<PacketOutcome, PacketError> {
    simulate_watched(fabric, work, options, &mut |_| true)
}

/// The same, telling `watch` about every million events how far it is; where that says no, it is broken
/// off.
///
/// # Errors
/// Those of [`simulate`], and [`PacketError::BrokenOff`].
pub fn simulate_watched(
    fabric: &Fabric,
    work: &PacketWork<'_>,
    options: &PacketOptions,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<PacketOutcome, PacketError> {
    machine::run(fabric, work, options, watch)
}
