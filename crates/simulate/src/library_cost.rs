//! Times of the steps of a plan when a library of collectives runs the plan on a machine
//! ([`Library`]).
//!
//! A call takes its launch, then its steps one after another, then the copy of a rank's own block.
//! A step ends when its last message ends. For a message, let
//!
//! * b be its bytes, N the number of ranks, p the number of messages that its source sends in the
//!   step. If the algorithm has channels (option `channels`), p is divided by their number and
//!   rounded up: a channel is a block of threads of its own, which posts its own messages;
//! * D be the time that the most loaded link of its route needs at the peak rate for all bytes of
//!   the step, and R the peak rate of a GPU in the record;
//! * k be the number of channels of the record, and a the latency: the greater of the latency of
//!   the route and the protocol's latency of a step (within a server the record's, between servers
//!   [`NETWORK_STEPS`]).
//!
//! Collectives run as **kernels** or, as all_to_all, gather and scatter, as messages **point to
//! point**. The time of a message is, with the names of the record's numbers,
//!
//! | protocol | kernel | point to point |
//! |---|---|---|
//! | LL | root(a^2 + x^2), x = max(D / r, max(min(b, 4 KiB), b / u) / (ll_rate R / k)), u = k / p | a + x, u = `direct_ll_channels` / (p + 1) |
//! | LL128 | a + x, x = 128 / 120 D / r; a is 19 / 6 ll_step | |
//! | Simple | (a^q + x^q)^(1 / q), x = D / r, q = overlap | a + x, x = max(D / r, (bytes of the source and its own block) / (simple_rate R 32 / k)); a is ll_step |
//!
//! Within a server, r is ll_rate for LL and simple_rate for the others, but 0.65 point to point by
//! Simple. Between servers, where nothing is measured, links reach their peak rate: r is 1/2 for
//! LL, half of whose bytes are data, and 1 for the others. The time to post messages is added:
//! post times the binary logarithm of p, point to point of p + 1. On a shared bus, all rates fall
//! as (2 / N)^crowd. A call of LL that uses up to v channels, v = b / 4 KiB up to u, takes ll_fan
//! log v / log k in addition; a call of Simple takes simple_setup. The copy of the own block by a
//! kernel takes half of the time that a step would send the block in.
//!
//! **No time is below the time at peak rates**: a message takes at least its latency plus D.

use crate::SimulationError;
use opticoll_base::units::{Bytes, Rate, Time, UnitError};
use opticoll_fabric::library::{
    ASSUMED_CALLS, ASSUMED_NVLS_CALL, Library, NETWORK_STEPS, Protocol,
};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

opticoll_base::named_enum! {
    /// Rule that selects the protocol of a plan.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum ProtocolRule {
        /// The fastest protocol for the plan.
        #[default]
        Auto = "auto",
        /// LL.
        LL = "ll",
        /// LL128.
        LL128 = "ll128",
        /// Simple.
        Simple = "simple",
        /// The protocol that NCCL's tuner selects.
        Nccl = "nccl",
    }
}

crate::totals! {
    /// Parts of the time of a plan that a library of collectives runs. They add up to the time.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct LibraryTime {
        /// Protocol: `ll`, `ll128`, `simple` or `nvls`.
        pub protocol: Option<&'static str>,
        /// Time of the launch, and of what a protocol costs once per call.
        pub launch_time: Time,
        /// Time of the last messages of all steps in which no data are sent: latency and posting.
        pub latency_time: Time,
        /// Time of the last messages of all steps in which data are sent, and of the copy of a
        /// rank's own block.
        pub bytes_time: Time,
    }
}

/// Bytes of data that a channel of LL moves in a step before NCCL uses another channel: 512 threads
/// times 8 bytes.
const LL_CHUNK: f64 = 4096.0;
/// Share of data in the bytes of LL.
const LL_DATA: f64 = 0.5;
/// Latency of a step of LL128 in steps of LL: 1.9 us / 0.6 us (`hwLat` of NCCL's `tuning.cc`).
const LL128_STEPS: f64 = 19.0 / 6.0;
/// Bytes on a link for each byte of data by LL128.
const LL128_BYTES: f64 = 128.0 / 120.0;
/// Share of the peak rate that a rank's link reaches if it sends point to point by Simple. Fitted
/// for each machine alone: A100 0.64, H100 0.64, L40S 0.67.
const DIRECT_RATE: f64 = 0.65;
/// Number of channels of messages point to point (NCCL's maximum).
const DIRECT_CHANNELS: f64 = 32.0;
/// Share of the time of a step's transfer that the copy of a block of the same size takes. Chosen
/// on the measured times: 0 and 1 fit worse on every machine with NVLink.
const COPY: f64 = 0.5;
/// Sizes of a chunk of NVLS, and the least number of bytes for each channel and rank for which NCCL
/// uses each size.
const NVLS_CHUNKS: [(u64, u64); 3] = [(65_536, 8 * 65_536), (32_768, 2 * 32_768), (16_384, 0)];

impl LibraryTime {
    /// Returns the parts of the time of an all_reduce by NVLS, zero if the machine has no NVLS.
    ///
    /// # Errors
    /// The time exceeds 64 bits.
    pub(super) fn nvls(
        library: &Library,
        ranks: u32,
        size: Bytes,
    ) -> Result<LibraryTime, UnitError> {
        let Some(time) = nvls(library, ranks, size)? else {
            return Ok(LibraryTime::default());
        };
        let launch = library.costs.launch;
        let known = time.transfer.plus(launch)?;
        let latency = time.total.ps().saturating_sub(known.ps());
        Ok(LibraryTime {
            protocol: Some(Protocol::Nvls.name()),
            launch_time: launch,
            latency_time: Time::from_ps(latency),
            bytes_time: time.transfer,
        })
    }

    /// Returns the sum of the parts.
    ///
    /// # Errors
    /// The sum exceeds 64 bits.
    pub fn total(&self) -> Result<Time, UnitError> {
        self.launch_time
            .plus(self.latency_time)?
            .plus(self.bytes_time)
    }
}

/// Properties of a message and of its step on which its time depends.
pub(super) struct MessageLoad {
    pub bytes: u64,
    /// Number of messages that the source sends in the step, divided by the number of channels of
    /// the algorithm and rounded up.
    pub peers: u32,
    /// Bytes that the source sends in the step.
    pub sent: u64,
    /// Latency of the route.
    pub latency: Time,
    /// Time that the most loaded link of the route needs for all bytes of the step.
    pub transmission: Time,
    /// True if source and destination are in the same server.
    pub within: bool,
}

/// Time of a message, and the part of it in which data are sent.
pub(super) struct MessageTime {
    pub total: Time,
    pub transfer: Time,
}

/// Totals of a plan from which NCCL's tuner selects a protocol.
#[derive(Default)]
pub(super) struct PlanTotals {
    /// Numbers of steps with messages within servers only, and with messages between servers.
    steps: [u64; 2],
    /// Sum over the steps of the bytes of the rank that sends most.
    traffic: u64,
    /// Sum over the steps of the time of the most loaded link.
    transmission: Time,
    largest: u64,
}

impl PlanTotals {
    /// Adds a step with at least one message.
    pub(super) fn add<'a>(
        &mut self,
        messages: impl Iterator<Item = &'a MessageLoad>,
    ) -> Result<(), UnitError> {
        let (mut sent, mut longest, mut between) = (0, Time::ZERO, false);
        for message in messages {
            sent = sent.max(message.sent);
            longest = longest.max(message.transmission);
            between |= !message.within;
            self.largest = self.largest.max(message.bytes);
        }
        self.steps[usize::from(between)] += 1;
        self.traffic = self.traffic.saturating_add(sent);
        self.transmission = self.transmission.plus(longest)?;
        Ok(())
    }
}

/// A call of a library, whose protocol is known.
pub(super) struct Call<'a> {
    library: &'a Library,
    protocol: Protocol,
    /// True if the library sends the messages of the collective point to point.
    direct: bool,
    /// Factor by which all rates fall because the ranks share a bus.
    crowd: f64,
    /// Bytes of a rank's own block.
    own: f64,
    /// Number of channels that the call has used so far.
    used: f64,
}

/// Returns whether NCCL has no kernel for the collective and sends its messages point to point.
fn is_direct(kind: CollectiveKind) -> bool {
    use CollectiveKind::{AllToAll, Gather, Scatter};
    matches!(kind, AllToAll | Gather | Scatter)
}

/// Returns the time of a number of picoseconds, rounded up.
fn time(picoseconds: f64) -> Result<Time, UnitError> {
    if picoseconds < 1.8e19 {
        return Ok(Time::from_ps(libm::ceil(picoseconds) as u64));
    }
    Err(UnitError::Overflow {
        what: "the time of a message".into(),
        smallest: "picoseconds",
    })
}

fn ps(time: Time) -> f64 {
    time.ps() as f64
}

impl<'a> Call<'a> {
    /// Creates a call for a collective of `size` on all of its ranks.
    ///
    /// # Errors
    /// The machine or the collective has no such protocol.
    pub(super) fn new(
        library: &'a Library,
        protocol: Protocol,
        collective: &Collective,
        size: Bytes,
    ) -> Result<Call<'a>, SimulationError> {
        let kind = collective.kind();
        let problem = match protocol {
            Protocol::LL128 if library.constants.ll128_cap.is_none() => {
                "ll128 needs NVLink; give ll, simple, nccl or auto"
            }
            Protocol::LL128 if is_direct(kind) => {
                "NCCL sends the messages of this collective point to point, by ll or simple; \
                 give one of them, nccl or auto"
            }
            _ => "",
        };
        if !problem.is_empty() {
            return Err(SimulationError::invalid_value("protocol", problem));
        }
        let block = match kind {
            CollectiveKind::AllGather | CollectiveKind::Gather | CollectiveKind::Scatter => 1.0,
            CollectiveKind::ReduceScatter
            | CollectiveKind::AllReduce
            | CollectiveKind::AllToAll => 1.0 / f64::from(collective.ranks()),
            CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::Barrier => 0.0,
        };
        let crowded = 2.0 / f64::from(collective.ranks().max(2));
        Ok(Call {
            library,
            protocol,
            direct: is_direct(kind),
            crowd: libm::pow(crowded, library.costs.crowd.value()),
            own: block * size.get() as f64,
            used: 1.0,
        })
    }

    /// Returns the name of the protocol.
    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the time before the first step.
    pub(super) fn launch(&self) -> Result<Time, UnitError> {
        let costs = &self.library.costs;
        match self.protocol {
            Protocol::Simple => costs.launch.plus(costs.simple_setup),
            _ => Ok(costs.launch),
        }
    }

    /// Returns the time to begin to use as many channels as the messages of a step need.
    pub(super) fn open_channels<'b>(
        &mut self,
        messages: impl Iterator<Item = &'b MessageLoad>,
    ) -> Result<Time, UnitError> {
        let channels = self.library.constants.channels;
        if self.protocol != Protocol::LL || channels == 1 {
            return Ok(Time::ZERO);
        }
        let needed = messages.map(|message| {
            let chunks = (message.bytes as f64 / LL_CHUNK).max(1.0);
            chunks.min(self.ll_channels(message.peers))
        });
        let needed = needed.fold(self.used, f64::max);
        let opened = libm::log(needed / self.used) / libm::log(channels as f64);
        self.used = needed;
        time(ps(self.library.costs.ll_fan) * opened)
    }

    /// Returns the number of channels that a message may use by LL.
    fn ll_channels(&self, peers: u32) -> f64 {
        let (constants, peers) = (self.library.constants, u64::from(peers));
        let channels = match self.direct {
            true => constants.direct_ll_channels / (peers + 1),
            false => constants.channels / peers.max(1),
        };
        channels.max(1) as f64
    }

    /// Returns the bytes that all channels of a GPU move in a picosecond at the peak rate.
    fn peak(&self) -> f64 {
        self.library.constants.peak.bits_per_second() as f64 / 8e12 * self.crowd
    }

    /// Returns the time that channels of LL need for a message.
    fn ll_chunks(&self, bytes: f64, channels: f64) -> f64 {
        let rate = self.library.costs.ll_rate.value() * self.peak();
        let chunk = bytes.min(LL_CHUNK).max(bytes / channels);
        chunk / (rate / self.library.constants.channels as f64)
    }

    /// Returns the latency of a step by the protocol.
    fn step(&self, within: bool) -> f64 {
        let costs = &self.library.costs;
        match (self.protocol, within) {
            (Protocol::LL, true) => ps(costs.ll_step),
            (Protocol::LL, false) => NETWORK_STEPS[0] as f64,
            (Protocol::LL128, true) => LL128_STEPS * ps(costs.ll_step),
            (Protocol::LL128, false) => NETWORK_STEPS[1] as f64,
            (Protocol::Simple, true) if self.direct => ps(costs.ll_step),
            (Protocol::Simple, true) => ps(costs.simple_step),
            (Protocol::Simple, false) => NETWORK_STEPS[2] as f64,
            (Protocol::Nvls, _) => 0.0,
        }
    }

    /// Returns the share of their peak rate that links carry: of data by LL, of all bytes by the
    /// other protocols.
    fn link_rate(&self, within: bool) -> f64 {
        match (self.protocol, within) {
            (Protocol::LL, true) => self.library.costs.ll_rate.value(),
            (Protocol::LL, false) => LL_DATA,
            (Protocol::Simple, true) if self.direct => DIRECT_RATE,
            (Protocol::LL128 | Protocol::Simple, true) => self.library.costs.simple_rate.value(),
            (Protocol::LL128 | Protocol::Simple, false) | (Protocol::Nvls, _) => 1.0,
        }
    }

    /// Returns the time of a message.
    pub(super) fn message(&self, load: &MessageLoad) -> Result<MessageTime, UnitError> {
        let costs = &self.library.costs;
        let latency = ps(load.latency).max(self.step(load.within));
        let peak_time = ps(load.transmission);
        let link = peak_time / self.crowd / self.link_rate(load.within);
        let simple_rate = costs.simple_rate.value();
        let transfer = match self.protocol {
            Protocol::LL => {
                let chunks = self.ll_chunks(load.bytes as f64, self.ll_channels(load.peers));
                chunks.max(link)
            }
            Protocol::LL128 => LL128_BYTES * link,
            Protocol::Simple if self.direct => {
                let rate = simple_rate * self.peak() * DIRECT_CHANNELS
                    / self.library.constants.channels as f64;
                link.max((load.sent as f64 + self.own) / rate)
            }
            Protocol::Simple => link,
            Protocol::Nvls => peak_time,
        };
        let overlapped = match self.protocol {
            Protocol::LL => !self.direct,
            Protocol::Simple => !self.direct && costs.overlap == 2,
            Protocol::LL128 | Protocol::Nvls => false,
        };
        let moved = match overlapped {
            true => libm::sqrt(latency * latency + transfer * transfer),
            false => latency + transfer,
        };
        let posted = libm::log2(f64::from(load.peers + u32::from(self.direct)));
        let total = moved.max(ps(load.latency) + peak_time) + posted * ps(costs.post);
        let (total, transfer) = (time(total)?, time(transfer)?);
        Ok(MessageTime {
            total,
            transfer: transfer.min(total),
        })
    }

    /// Returns the time of the copy of a rank's own block after the last step.
    pub(super) fn copy(&self) -> Result<Time, UnitError> {
        if self.direct {
            return Ok(Time::ZERO);
        }
        let block = match self.protocol {
            Protocol::LL => self.ll_chunks(self.own, self.library.constants.channels as f64),
            Protocol::LL128 | Protocol::Simple => {
                self.own / (self.library.costs.simple_rate.value() * self.peak())
            }
            Protocol::Nvls => 0.0,
        };
        time(COPY * block)
    }
}

/// Returns a lower bound on the time of `steps` steps with messages, except by NVLS. Between
/// servers, LL has the least latency; within servers, LL128 has a multiple of that of LL.
pub(super) fn least_time(library: &Library, steps: u64) -> Time {
    let costs = &library.costs;
    let within = costs.ll_step.min(costs.simple_step);
    let step = within.ps().min(NETWORK_STEPS[0]);
    let launch = costs.launch.ps();
    Time::from_ps(launch.saturating_add(step.saturating_mul(steps)))
}

/// Returns the protocols that the library may use for a collective on links. Of protocols with the
/// same time, the first one is used.
pub(super) fn protocols(library: &Library, kind: CollectiveKind) -> Vec<Protocol> {
    let has_ll128 = library.constants.ll128_cap.is_some() && !is_direct(kind);
    let ll128 = has_ll128.then_some(Protocol::LL128);
    [Some(Protocol::Simple), Some(Protocol::LL), ll128]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the protocol that NCCL's tuner selects for a plan. The tuner adds a time per call, a
/// latency per step, and the bytes at an assumed rate, and selects the least sum. If `nvls`, the
/// plan is a ring that NVLS may replace.
pub(super) fn tuned(
    library: &Library,
    collective: &Collective,
    plan: &PlanTotals,
    nvls: bool,
) -> Protocol {
    let constants = library.constants;
    if is_direct(collective.kind()) {
        return match plan.largest <= constants.direct_ll.get() {
            true => Protocol::LL,
            false => Protocol::Simple,
        };
    }
    let ring = constants.ring_rate.bits_per_second() as f64;
    let at = |rate: f64| plan.traffic as f64 * 8e12 / rate;
    let mut best = (f64::INFINITY, Protocol::Simple);
    for (index, protocol) in [Protocol::LL, Protocol::LL128, Protocol::Simple]
        .into_iter()
        .enumerate()
    {
        let cap = |rate: f64, cap: Option<Rate>| Some(rate.min(cap?.bits_per_second() as f64));
        // 0.92: NCCL's estimate of the share of data of LL128.
        let (assumed, least) = match protocol {
            Protocol::LL => (cap(ring / 2.0, Some(constants.ll_cap)), 2.0),
            Protocol::LL128 => (cap(0.92 * ring, constants.ll128_cap), LL128_BYTES),
            _ => (Some(ring), 1.0),
        };
        let Some(rate) = assumed else { continue };
        let steps = plan.steps[0] as f64 * constants.assumed_steps()[index] as f64
            + plan.steps[1] as f64 * NETWORK_STEPS[index] as f64;
        // Links between servers may be slower than the rate that the tuner assumes in a server.
        let transfer = at(rate).max(least * ps(plan.transmission));
        let sum = ASSUMED_CALLS[index] as f64 + steps + transfer;
        if sum < best.0 {
            best = (sum, protocol);
        }
    }
    let ranks = u64::from(collective.ranks());
    if let (Some(switches), true) = (&constants.nvls, nvls && ranks > 2) {
        let share = switches.links.bits_per_second() as f64 / (ranks + 1) as f64;
        let mut speeds = switches.speeds.iter().map(|speed| *speed as f64 * 8e9);
        let head = speeds.find(|speed| *speed <= share).unwrap_or(share);
        let rate = 2.0 * switches.efficiency.value() * (ranks - 1) as f64 * head;
        if ASSUMED_NVLS_CALL as f64 + at(rate) < best.0 {
            return Protocol::Nvls;
        }
    }
    best.1
}

/// Returns whether NVLS runs `plan` on the machine.
pub(super) fn is_nvls(library: &Library, plan: &Plan) -> bool {
    let name = plan.algorithm.split(':').next();
    name == Some(Protocol::Nvls.name()) && library.constants.nvls.is_some()
}

/// Returns the time of an all_reduce of `size` by NVLS, and the part in which data are sent.
/// Each rank reads the sum of its share from all ranks and multicasts it: M (1 + 1 / N) bytes per
/// direction, in blocks of a chunk for each channel and rank. Two more blocks fill and empty the
/// pipeline. Returns `None` if the machine has no NVLS.
///
/// # Errors
/// The time exceeds 64 bits.
pub(super) fn nvls(
    library: &Library,
    ranks: u32,
    size: Bytes,
) -> Result<Option<MessageTime>, UnitError> {
    let Some(switches) = &library.constants.nvls else {
        return Ok(None);
    };
    let heads = switches.channels * u64::from(ranks);
    let fits = |(_, least): &&(u64, u64)| size.get() >= least * heads;
    let fitting = NVLS_CHUNKS.iter().find(fits);
    let block = (heads * fitting.map_or(NVLS_CHUNKS[2].0, |(chunk, _)| *chunk)) as f64;
    let rate = switches.efficiency.value() * library.constants.peak.bits_per_second() as f64 / 8e12;
    let moved = block * (1.0 + 1.0 / f64::from(ranks)) / rate;
    let blocks = size.get() as f64 / block + 2.0;
    let costs = &library.costs;
    let total = ps(costs.launch) + blocks * (ps(costs.nvls_chunk) + moved);
    Ok(Some(MessageTime {
        total: time(total)?,
        transfer: time(blocks * moved)?,
    }))
}
