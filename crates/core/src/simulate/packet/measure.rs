//! What a packet simulation measures.

use crate::units::Time;

/// Values below 2^SUB count one by one, above with this many binary digits.
const SUB: u32 = 6;

/// A distribution of times: exact number, mean and maximum; percentiles within 1/64.
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
            bins: vec![0; ((64 - SUB as usize) + 1) << SUB],
        }
    }
}

impl Distribution {
    #[inline]
    pub(super) fn add(&mut self, picoseconds: u64) {
        self.count += 1;
        self.sum += u128::from(picoseconds);
        self.max = self.max.max(picoseconds);
        self.bins[Self::bin(picoseconds)] += 1;
    }

    /// How many times were measured.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, to the nearest picosecond; zero of nothing.
    pub fn mean(&self) -> Time {
        let count = u128::from(self.count.max(1));
        Time::from_ps(((self.sum + count / 2) / count) as u64)
    }

    /// The longest; zero of nothing.
    pub fn max(&self) -> Time {
        Time::from_ps(self.max)
    }

    /// A time that at least `percent` percent of the measured ones do not exceed: the least such
    /// time rounded up by at most 1/64, and never above the maximum.
    pub fn percentile(&self, percent: u32) -> Time {
        let wanted = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let mut below: u128 = 0;
        for (bin, count) in self.bins.iter().enumerate() {
            below += u128::from(*count);
            if below >= wanted && below > 0 {
                return Time::from_ps(Self::last_of(bin).min(self.max));
            }
        }
        self.max()
    }

    /// The bins that are not empty: first and last time, number.
    pub fn bins(&self) -> impl Iterator<Item = (Time, Time, u64)> + '_ {
        let filled = self
            .bins
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        filled.map(|(bin, count)| {
            let first = bin
                .checked_sub(1)
                .map_or(0, |before| Self::last_of(before) + 1);
            (
                Time::from_ps(first),
                Time::from_ps(Self::last_of(bin)),
                *count,
            )
        })
    }

    #[inline]
    fn bin(value: u64) -> usize {
        if value < 1 << SUB {
            return value as usize;
        }
        let exponent = value.ilog2() - SUB;
        let digits = (value >> exponent) as usize - (1 << SUB);
        ((exponent as usize + 1) << SUB) + digits
    }

    /// The greatest value of a bin.
    fn last_of(bin: usize) -> u64 {
        if bin < 1 << SUB {
            return bin as u64;
        }
        let exponent = (bin >> SUB) as u32 - 1;
        let digits = (bin & ((1 << SUB) - 1)) as u128 + (1 << SUB) + 1;
        ((digits << exponent) - 1).min(u128::from(u64::MAX)) as u64
    }
}

/// What kind of link a channel is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// From a terminal to its router.
    Injection,
    /// From a router to a terminal.
    Ejection,
    /// Within a group; between routers where there are no groups.
    Local,
    /// Between groups.
    Global,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 4] = [
        Class::Injection,
        Class::Ejection,
        Class::Local,
        Class::Global,
    ];
}

/// One entry per virtual channel, in order of link and channel number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChannelColumns {
    /// The link's index in the network.
    pub link: Vec<u32>,
    /// The number of the channel on its link.
    pub channel: Vec<u32>,
    /// Bytes put on the link.
    pub bytes: Vec<u64>,
    /// Chunks put on the link.
    pub chunks: Vec<u64>,
    /// How long chunks stood before a full buffer with nothing left to send in it.
    pub stall: Vec<Time>,
    /// The most chunks that ever held its buffer.
    pub peak_chunks: Vec<u32>,
    /// The chunks that its buffer has room for.
    pub capacity_chunks: Vec<u32>,
}

/// The bytes that hold buffers, by class of link and over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// The length of a bin; zero where nothing was asked for.
    pub bin: Time,
    /// Per class, in the order of [`Class::ALL`], the mean number of bytes in each bin.
    pub mean_bytes: [Vec<u64>; 4],
}

/// The result of a packet simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketOutcome {
    /// When the collective ended, or the last message was delivered where there is none.
    pub time: Time,
    /// Per rank (per terminal where there is no collective): its last delivery or send.
    pub finish: Vec<Time>,
    /// From the call that sends a message to the delivery of its last byte; of the collective, or
    /// of the traffic where there is none.
    pub message_latency: Distribution,
    /// The same, of traffic beside a collective.
    pub background_latency: Distribution,
    /// From the making of a chunk's packet to the chunk's arrival.
    pub chunk_latency: Distribution,
    /// Routers passed by all chunks that arrived.
    pub routers_passed: u64,
    /// Chunks that arrived without a detour.
    pub minimal_chunks: u64,
    /// Chunks that arrived by way of an intermediate group.
    pub detoured_chunks: u64,
    /// Bytes handed to the network, and bytes that arrived.
    pub bytes_sent: u64,
    /// See `bytes_sent`.
    pub bytes_delivered: u64,
    /// Per virtual channel.
    pub channels: ChannelColumns,
    /// Per link: how long it was sending.
    pub busy: Vec<Time>,
    /// Buffers over time, where asked for.
    pub occupancy: Occupancy,
    /// Chunks that routers sent on.
    pub forwards: u64,
    /// Events of the simulation.
    pub events: u64,
}

impl PacketOutcome {
    /// Routers passed by a chunk on average.
    pub fn mean_routers(&self) -> f64 {
        let chunks = self.minimal_chunks + self.detoured_chunks;
        self.routers_passed as f64 / chunks.max(1) as f64
    }

    /// The mean over ranks of [`PacketOutcome::finish`].
    pub fn mean_finish(&self) -> Time {
        let sum: u128 = self.finish.iter().map(|time| u128::from(time.ps())).sum();
        Time::from_ps((sum / self.finish.len().max(1) as u128) as u64)
    }

    /// The link that was sending longest, and for how long; the first of equals.
    pub fn bottleneck(&self) -> Option<(u32, Time)> {
        let links = (0u32..).zip(self.busy.iter().copied());
        links.max_by_key(|&(link, busy)| (busy, std::cmp::Reverse(link)))
    }
}

/// The sums from which [`Occupancy`] is made: a step function is known by its steps.
pub(super) struct OccupancyMeter {
    bin: u64,
    chunk: i64,
    /// Per class and bin: chunks more at its end than at its start, and chunk-picoseconds that its
    /// steps add within it.
    steps: [Vec<(i64, i64)>; 4],
}

impl OccupancyMeter {
    pub(super) fn new(bin: Time, chunk: u64) -> OccupancyMeter {
        OccupancyMeter {
            bin: bin.ps(),
            chunk: chunk as i64,
            steps: Default::default(),
        }
    }

    #[inline]
    pub(super) fn step(&mut self, class: Class, time: u64, chunks: i64) {
        if self.bin == 0 {
            return;
        }
        let bin = (time / self.bin) as usize;
        let steps = &mut self.steps[class as usize];
        if steps.len() <= bin {
            steps.resize(bin + 1, (0, 0));
        }
        steps[bin].0 += chunks;
        steps[bin].1 += chunks * (self.bin - time % self.bin) as i64;
    }

    pub(super) fn read(&self) -> Occupancy {
        let mean = |steps: &Vec<(i64, i64)>| {
            let mut held = 0;
            let bins = steps.iter().map(|&(more, within)| {
                let bytes = (i128::from(held) * i128::from(self.bin) + i128::from(within))
                    * i128::from(self.chunk)
                    / i128::from(self.bin);
                held += more;
                bytes.max(0) as u64
            });
            bins.collect()
        };
        Occupancy {
            bin: Time::from_ps(self.bin),
            mean_bytes: [0, 1, 2, 3].map(|class| mean(&self.steps[class])),
        }
    }
}
