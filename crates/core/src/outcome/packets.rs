//! What a packet simulation measures: distributions, channels, buffers and stalls over time.

use crate::units::{Time, UnitError};

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
    pub(crate) fn add(&mut self, picoseconds: u64) {
        self.count += 1;
        self.sum += u128::from(picoseconds);
        self.max = self.max.max(picoseconds);
        self.bins[Self::bin(picoseconds)] += 1;
    }

    /// Adds the times of another one.
    pub(crate) fn join(&mut self, other: &Distribution) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            *bin += more;
        }
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

    /// A time that at least `percent` percent of the measured ones do not exceed: see `per_mille`.
    pub fn percentile(&self, percent: u32) -> Time {
        self.per_mille(10 * percent)
    }

    /// A time that at least so many thousandths of the measured ones do not exceed: the least such
    /// time rounded up by at most 1/64, and never above the maximum.
    pub fn per_mille(&self, thousandths: u32) -> Time {
        let wanted = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000);
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

    /// In words.
    pub fn name(self) -> &'static str {
        ["injection", "ejection", "local", "global"][self as usize]
    }
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

/// Buffers and stalls by class of link and over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// The length of a bin; zero where nothing was asked for.
    pub bin: Time,
    /// Per class, in the order of [`Class::ALL`], the mean number of bytes that held buffers in each bin.
    pub mean_bytes: [Vec<u64>; 4],
    /// Per class, the time for which channels were stalled in each bin, summed over channels.
    pub stalled: [Vec<Time>; 4],
}

/// One entry per step of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepColumns {
    /// When its first message was sent.
    pub start: Vec<Time>,
    /// When its last message had arrived.
    pub end: Vec<Time>,
    /// Messages.
    pub messages: Vec<u64>,
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
    /// Per link: its class.
    pub classes: Vec<Class>,
    /// Buffers and stalls over time, where asked for.
    pub timeline: Timeline,
    /// Per step of the collective; empty where there is none.
    pub steps: StepColumns,
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

    /// Per link of the network: bytes put on it.
    pub fn link_bytes(&self) -> Vec<u64> {
        let mut bytes = vec![0; self.busy.len()];
        for (&link, more) in self.channels.link.iter().zip(&self.channels.bytes) {
            bytes[link as usize] += more;
        }
        bytes
    }

    /// Per link of the network: how long its channels were stalled, summed over them.
    pub fn link_stalls(&self) -> Vec<Time> {
        let mut stalls = vec![0; self.busy.len()];
        for (&link, more) in self.channels.link.iter().zip(&self.channels.stall) {
            stalls[link as usize] += more.ps();
        }
        stalls.into_iter().map(Time::from_ps).collect()
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

/// The most bins of a time-line; beyond, two become one.
const MOST_BINS: usize = 1 << 12;

/// An integral over each bin of a step function per class, known by its steps.
///
/// A bin of length L keeps the change d over it, and the integral w within it of what its steps add.
/// Two neighbours (d, w), (e, v) make one of twice the length: (d + e, w + d L + v).
#[derive(Clone)]
pub(crate) struct Meter {
    bin: u64,
    steps: [Vec<(i64, i128)>; 4],
}

impl Meter {
    /// With bins of so many picoseconds at first; with none it measures nothing.
    pub(crate) fn new(bin: u64) -> Meter {
        Meter {
            bin,
            steps: Default::default(),
        }
    }

    /// Whether it measures.
    #[inline]
    pub(crate) fn measures(&self) -> bool {
        self.bin > 0
    }

    /// At a time, the function of a class changes.
    #[inline]
    pub(crate) fn step(&mut self, class: Class, time: u64, change: i64) {
        if self.bin > 0 {
            self.count(class, time, change);
        }
    }

    fn count(&mut self, class: Class, time: u64, change: i64) {
        while time / self.bin >= MOST_BINS as u64 {
            self.coarsen();
        }
        let bin = (time / self.bin) as usize;
        let steps = &mut self.steps[class as usize];
        if steps.len() <= bin {
            steps.resize(bin + 1, (0, 0));
        }
        steps[bin].0 += change;
        steps[bin].1 += i128::from(change) * i128::from(self.bin - time % self.bin);
    }

    fn coarsen(&mut self) {
        let bin = i128::from(self.bin);
        for steps in &mut self.steps {
            let merged = steps.chunks(2).map(|pair| {
                let (change, within) = pair[0];
                let (more, later) = pair.get(1).copied().unwrap_or((0, 0));
                (change + more, within + i128::from(change) * bin + later)
            });
            *steps = merged.collect();
        }
        self.bin *= 2;
    }

    /// Adds the steps of another one.
    pub(crate) fn join(&mut self, other: &Meter) {
        let mut other = other.clone();
        self.meet(other.bin);
        other.meet(self.bin);
        for (steps, more) in self.steps.iter_mut().zip(&other.steps) {
            if steps.len() < more.len() {
                steps.resize(more.len(), (0, 0));
            }
            for (step, more) in steps.iter_mut().zip(more) {
                *step = (step.0 + more.0, step.1 + more.1);
            }
        }
    }

    /// Makes the bins those of another meter, if that has longer ones.
    fn meet(&mut self, bin: u64) {
        while self.bin > 0 && self.bin < bin {
            self.coarsen();
        }
    }

    /// Per class and bin, the integral, in units of the function times picoseconds.
    fn integrals(&self) -> [Vec<i128>; 4] {
        let integral = |steps: &Vec<(i64, i128)>| {
            let mut held = 0;
            let bins = steps.iter().map(|&(more, within)| {
                let area = i128::from(held) * i128::from(self.bin) + within;
                held += more;
                area.max(0)
            });
            bins.collect()
        };
        [0, 1, 2, 3].map(|class| integral(&self.steps[class]))
    }
}

/// The time-line of a meter of chunks of so many bytes that hold buffers, and one of stalled channels; an
/// error where a bin's sum over channels leaves 64 bits.
pub(crate) fn timeline(
    mut held: Meter,
    mut stalled: Meter,
    chunk: u64,
) -> Result<Timeline, UnitError> {
    held.meet(stalled.bin);
    stalled.meet(held.bin);
    let bin = i128::from(held.bin.max(1));
    let counted = |sum: i128| {
        u64::try_from(sum).map_err(|_| UnitError::Overflow {
            what: "a bin of the time-line, summed over channels".into(),
            smallest: "picoseconds or bytes",
        })
    };
    let mut timeline = Timeline {
        bin: Time::from_ps(held.bin),
        ..Timeline::default()
    };
    for (class, bins) in held.integrals().into_iter().enumerate() {
        let bytes = bins
            .into_iter()
            .map(|area| counted(area * i128::from(chunk) / bin));
        timeline.mean_bytes[class] = bytes.collect::<Result<_, _>>()?;
    }
    for (class, bins) in stalled.integrals().into_iter().enumerate() {
        let times = bins
            .into_iter()
            .map(|area| counted(area).map(Time::from_ps));
        timeline.stalled[class] = times.collect::<Result<_, _>>()?;
    }
    Ok(timeline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_bins_hold_the_same_integrals() {
        // Random steps; the integral over any bin is the sum over its halves.
        let mut state: u64 = 7;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % below
        };
        let (mut fine, mut coarse) = (Meter::new(8), Meter::new(8));
        for _ in 0..2000 {
            let (time, change) = (draw(20_000), draw(5) as i64);
            for meter in [&mut fine, &mut coarse] {
                meter.step(Class::Local, time, change);
                meter.step(Class::Local, time + 100, -change);
            }
        }
        for _ in 0..5 {
            coarse.coarsen();
        }
        let (fine, coarse) = (fine.integrals(), coarse.integrals());
        let sums = fine[2].chunks(32).map(|bins| bins.iter().sum::<i128>());
        assert!(sums.eq(coarse[2].iter().copied()));
        assert!(fine[2].iter().sum::<i128>() > 0);
    }

    #[test]
    fn a_bin_beyond_64_bits_is_an_error() {
        let stalled_for = |channels: i64| {
            let (held, mut stalled) = (Meter::new(1 << 59), Meter::new(1 << 59));
            (0..channels).for_each(|_| stalled.step(Class::Local, 0, 1));
            timeline(held, stalled, 512).map(|timeline| timeline.stalled[2][0].ps())
        };
        assert_eq!(stalled_for(15), Ok(15 << 59));
        assert!(stalled_for(32).is_err());
    }

    #[test]
    fn a_long_run_has_no_more_bins_than_allowed() {
        let mut meter = Meter::new(1);
        for time in 0..100_000 {
            meter.step(Class::Global, time, 1);
            meter.step(Class::Global, time + 1, -1);
        }
        let bins = &meter.integrals()[3];
        assert!(bins.len() <= MOST_BINS);
        // One chunk all the time.
        assert_eq!(bins.iter().sum::<i128>(), 100_000);
    }
}
