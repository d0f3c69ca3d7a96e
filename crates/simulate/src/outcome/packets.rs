//! Results of the packet simulator: distributions of latencies, channels, and buffers and stalls
//! over time.

use std::rc::Rc;

use crate::table::{Cell, Column, Description, Field, Part, Table, Value, Values};
use opticoll_base::units::Time;

/// Number of leading binary digits after the first digit that select the bin of a time. Each value
/// below 2^6 has a bin of its own, and each bin of larger values is at most 1/64 as wide as its
/// values.
const DIGITS: u32 = 6;

/// Distribution of times. The number of times, the mean and the maximum are exact; percentiles are
/// rounded up by at most 1/64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    count: u64,
    sum: u128,
    max: u64,
    bins: Vec<u64>,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution {
            count: 0,
            sum: 0,
            max: 0,
            bins: vec![0; ((64 - DIGITS as usize) + 1) << DIGITS],
        }
    }
}

impl Distribution {
    #[inline]
    pub(crate) fn add(&mut self, picoseconds: u64) {
        self.count += 1;
        self.sum += u128::from(picoseconds);
        self.max = self.max.max(picoseconds);
        self.bins[Self::bin(picoseconds)] += 1;
    }

    pub(crate) fn join(&mut self, other: &Distribution) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            *bin += more;
        }
    }

    /// Returns the number of recorded times.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean time, rounded to the nearest picosecond; zero if the distribution is empty.
    pub fn mean(&self) -> Time {
        let count = u128::from(self.count.max(1));
        Time::from_ps(((self.sum + count / 2) / count) as u64)
    }

    /// Returns the longest time; zero if the distribution is empty.
    pub fn max(&self) -> Time {
        Time::from_ps(self.max)
    }

    /// Returns the percentile: at least `thousandths` / 1000 of the recorded times do not exceed
    /// it. The result is rounded up by at most 1/64 and never exceeds the maximum.
    pub fn percentile(&self, thousandths: u32) -> Time {
        let wanted = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000);
        let mut below: u128 = 0;
        for (bin, count) in self.bins.iter().enumerate() {
            below += u128::from(*count);
            if below >= wanted && below > 0 {
                return Time::from_ps(Self::last_value(bin).min(self.max));
            }
        }
        self.max()
    }

    /// Returns the lowest time, the highest time and the number of recorded times of every bin that
    /// is not empty.
    pub fn bins(&self) -> impl Iterator<Item = (Time, Time, u64)> + '_ {
        let filled = self
            .bins
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        filled.map(|(bin, count)| {
            let first = bin
                .checked_sub(1)
                .map_or(0, |before| Self::last_value(before) + 1);
            (
                Time::from_ps(first),
                Time::from_ps(Self::last_value(bin)),
                *count,
            )
        })
    }

    #[inline]
    fn bin(value: u64) -> usize {
        if value < 1 << DIGITS {
            return value as usize;
        }
        let exponent = value.ilog2() - DIGITS;
        let digits = (value >> exponent) as usize - (1 << DIGITS);
        ((exponent as usize + 1) << DIGITS) + digits
    }

    fn last_value(bin: usize) -> u64 {
        if bin < 1 << DIGITS {
            return bin as u64;
        }
        let exponent = (bin >> DIGITS) as u32 - 1;
        let digits = (bin & ((1 << DIGITS) - 1)) as u128 + (1 << DIGITS) + 1;
        ((digits << exponent) - 1).min(u128::from(u64::MAX)) as u64
    }
}

opticoll_base::named_enum! {
    /// Class of link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum LinkClass {
        /// Link from a terminal to its router.
        Injection = "injection",
        /// Link from a router to a terminal.
        Ejection = "ejection",
        /// Link within a group, or between routers of a network without groups.
        Local = "local",
        /// Link between two groups.
        Global = "global",
    }
}

impl Cell for LinkClass {
    fn value(&self) -> Value<'_> {
        Value::Text(self.name())
    }
}

impl Part for Distribution {
    /// Adds a table with one row per bin that is not empty.
    fn describe<'a>(&'a self, field: &Field, into: &mut Description<'a>) {
        let bins: Vec<(Time, Time, u64)> = self.bins().collect();
        let shape = vec![("bin", bins.len())];
        let bins = Rc::new(bins);
        let column = |name: &str, unit, meaning: &str, read: fn(&(Time, Time, u64)) -> u64| {
            let bins = Rc::clone(&bins);
            let read = move |row: usize| read(&bins[row]);
            Column::new(name, unit, meaning, Values::Whole(Box::new(read)))
        };
        into.table(Table {
            name: field.name,
            row: format!("{} A row per bin that is not empty.", field.sentence()),
            shape,
            columns: vec![
                column("first_ps", "ps", "Shortest time of the bin.", |bin| {
                    bin.0.ps()
                }),
                column("last_ps", "ps", "Longest time of the bin.", |bin| {
                    bin.1.ps()
                }),
                column("count", "", "Number of times measured.", |bin| bin.2),
            ],
        });
    }
}

crate::rows! {
    /// A row per distribution of latencies. Percentiles are rounded up by at most 1/64.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Latency {
        /// Kind of latency: message, background or chunk.
        pub of: &'static str,
        /// Number of measured times.
        pub count: u64,
        /// Mean time, rounded to the nearest picosecond.
        pub mean: Time,
        /// Longest time.
        pub max: Time,
        /// Time that 10 % of the times do not exceed.
        pub p10: Time,
        /// Time that 50 % of the times do not exceed.
        pub p50: Time,
        /// Time that 90 % of the times do not exceed.
        pub p90: Time,
        /// Time that 95 % of the times do not exceed.
        pub p95: Time,
        /// Time that 99 % of the times do not exceed.
        pub p99: Time,
        /// Time that 99.9 % of the times do not exceed.
        pub p99_9: Time,
    }
}

impl Latency {
    pub(crate) fn new(of: &'static str, times: &Distribution) -> Latency {
        Latency {
            of,
            count: times.count(),
            mean: times.mean(),
            max: times.max(),
            p10: times.percentile(100),
            p50: times.percentile(500),
            p90: times.percentile(900),
            p95: times.percentile(950),
            p99: times.percentile(990),
            p99_9: times.percentile(999),
        }
    }
}

crate::columns! {
    /// A row per virtual channel, in the order of link and channel numbers.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ChannelColumns {
        /// Index of the channel's link in the network.
        pub link: u32,
        /// Number of the channel on its link.
        pub channel: u32,
        /// Bytes that the channel sent over the link.
        pub bytes: u64 as "B",
        /// Number of chunks that the channel sent over the link.
        pub chunks: u64,
        /// Time for which the channel was stalled: chunks waited for space in the channel's buffer,
        /// and the channel had nothing left to send.
        pub stall: Time,
        /// Maximum number of chunks in the channel's buffer at the same time.
        pub peak_chunks: u32,
        /// Maximum number of chunks that fit into the channel's buffer.
        pub capacity_chunks: u32,
    }
}

crate::columns! {
    /// A row per link of the network.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PacketLinks {
        /// Time for which the link was sending.
        pub busy: Time,
        /// Bytes that the link sent.
        pub bytes: u64 as "B",
        /// Time for which the link's channels were stalled, summed over channels.
        pub stall: Time,
        /// Class of the link: injection, ejection, local or global.
        pub class: LinkClass,
    }
}

impl PacketLinks {
    /// Creates the columns. `busy` and `class` are indexed by link.
    pub(crate) fn new(
        busy: Vec<Time>,
        class: Vec<LinkClass>,
        channels: &ChannelColumns,
    ) -> PacketLinks {
        let (mut bytes, mut stalls) = (vec![0; busy.len()], vec![0; busy.len()]);
        for (place, &link) in channels.link.iter().enumerate() {
            bytes[link as usize] += channels.bytes[place];
            stalls[link as usize] += channels.stall[place].ps();
        }
        PacketLinks {
            busy,
            bytes,
            stall: stalls.into_iter().map(Time::from_ps).collect(),
            class,
        }
    }

    /// Returns the index of the link that was sending for the longest time (the first among
    /// equals), and this time.
    pub(crate) fn bottleneck(&self) -> Option<(u32, Time)> {
        let links = (0u32..).zip(self.busy.iter().copied());
        links.max_by_key(|&(link, busy)| (busy, std::cmp::Reverse(link)))
    }

    pub(crate) fn class_sums(&self) -> Vec<ClassUse> {
        let mut classes = LinkClass::ALL.map(|class| ClassUse {
            class,
            links: 0,
            bytes: 0,
            stall: 0,
        });
        for (link, class) in self.class.iter().enumerate() {
            let sums = &mut classes[*class as usize];
            sums.links += 1;
            sums.bytes += self.bytes[link];
            sums.stall += u128::from(self.stall[link].ps());
        }
        classes
            .into_iter()
            .filter(|class| class.links > 0)
            .collect()
    }
}

crate::rows! {
    /// A row per class that has links.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ClassUse {
        /// Class of the links: injection, ejection, local or global.
        pub class: LinkClass,
        /// Number of links of the class.
        pub links: usize,
        /// Number of bytes sent over the links.
        pub bytes: u64 as "B",
        /// Time for which the links' channels were stalled, summed over channels.
        pub stall: u128 as "ps",
    }
}

crate::columns! {
    /// A row per class of link (injection, ejection, local, global) and bin of time.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct BufferTimeline shaped {
        /// Mean number of bytes in buffers.
        pub mean_bytes: u64 as "B",
        /// Time for which channels were stalled, summed over channels.
        pub stalled: Time,
    }
}

/// Results per step of a schedule; each column is indexed by step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketSteps {
    /// Time at which the step's first message was sent.
    pub start: Vec<Time>,
    /// Time at which the step's last message had arrived.
    pub end: Vec<Time>,
    /// Number of messages of the step.
    pub messages: Vec<u64>,
}

crate::columns! {
    /// A row per rank, or per terminal if there is no collective.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct FinishColumns {
        /// Time of the rank's last delivery or send.
        pub finish: Time,
    }
}

crate::totals! {
    /// Result of the packet simulator.
    #[derive(Debug, Clone, PartialEq)]
    pub struct PacketOutcome {
        /// Time at which the collective ended; without a collective, time of the last delivery.
        pub time: Time,
        /// Mean over all ranks of the time of the rank's last delivery or send.
        pub mean_finish: Time,
        /// Mean number of routers that a chunk passed.
        pub mean_hops: f64,
        /// Number of chunks that arrived without a detour.
        pub minimal_chunks: u64,
        /// Number of chunks that arrived through an intermediate group.
        pub detoured_chunks: u64,
        /// Bytes that the ranks sent into the network.
        pub bytes_sent: u64 as "B",
        /// Bytes that arrived at their destinations.
        pub bytes_delivered: u64 as "B",
        /// Number of forwarding operations of all routers, one per chunk and router.
        pub router_forwards: u64,
        /// Number of events that the simulator processed.
        pub events: u64,
        /// Link that was sending for the longest time, or the first of several such links.
        pub bottleneck: Option<u32>,
        /// Time for which the bottleneck link was sending.
        pub bottleneck_busy: Time,
        /// Length of a time bin of the time-line; empty if no time-line was requested.
        pub timeline_bin: Option<Time>,
        /// Results per rank.
        pub ranks: FinishColumns,
        /// Summaries of the distributions of latencies.
        pub latencies: Vec<Latency>,
        /// Time from the call that sends a message to the delivery of the message's last byte. The
        /// messages are those of the collective or, without a collective, of the traffic.
        pub message_latency: Distribution,
        /// Time from the call that sends a message to the delivery of the message's last byte, for
        /// the background traffic of a collective.
        pub background_latency: Distribution,
        /// Time from the creation of a chunk's packet to the arrival of the chunk.
        pub chunk_latency: Distribution,
        /// Results per virtual channel.
        pub channels: ChannelColumns,
        /// Results per link.
        pub links: PacketLinks,
        /// Results per class of link.
        pub classes: Vec<ClassUse>,
        /// Buffers and stalls over time; empty if no time-line was requested.
        pub timeline: BufferTimeline,
        ;
        /// Number of routers passed, summed over all chunks that arrived.
        pub routers_passed: u64,
        /// Results per step of the collective; empty without a collective.
        pub steps: PacketSteps,
    }
}
