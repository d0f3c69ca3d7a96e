//! Occupied buffers and stalled channels over time, by class of link.

use super::packets::{BufferTimeline, LinkClass};
use opticoll_base::units::{Time, UnitError};

/// Maximum number of time bins; if a simulation needs more bins, neighbouring bins are merged.
const MAX_BINS: usize = 1 << 12;

/// Integrals of a step function over time bins, for each class of link. The function is, for
/// example, the number of occupied buffers; [`ClassMeter::step`] adds its steps.
///
/// For each bin, the meter stores d, the sum of the bin's steps, and w, the integral over the bin
/// of a function that starts at 0 and has these steps. Two neighbouring bins (d, w) and (e, v) of
/// length L merge into the bin (d + e, w + d L + v) of length 2 L.
#[derive(Clone)]
pub(crate) struct ClassMeter {
    bin: u64,
    steps: [Vec<(i64, i128)>; 4],
}

impl ClassMeter {
    /// Creates a meter with initial bins of `bin` picoseconds, or a meter without bins if `bin` is
    /// 0.
    pub(crate) fn new(bin: u64) -> ClassMeter {
        ClassMeter {
            bin,
            steps: Default::default(),
        }
    }

    #[inline]
    pub(crate) fn measures(&self) -> bool {
        self.bin > 0
    }

    /// Adds `change` to the step function of a class at a time in picoseconds.
    #[inline]
    pub(crate) fn step(&mut self, class: LinkClass, time: u64, change: i64) {
        if self.bin > 0 {
            self.count(class, time, change);
        }
    }

    fn count(&mut self, class: LinkClass, time: u64, change: i64) {
        while time / self.bin >= MAX_BINS as u64 {
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

    /// Adds the steps of another meter; afterwards both meters have bins of equal length.
    pub(crate) fn join(&mut self, other: &ClassMeter) {
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

    /// Doubles the length of the bins until the length is at least `bin` picoseconds.
    fn meet(&mut self, bin: u64) {
        while self.bin > 0 && self.bin < bin {
            self.coarsen();
        }
    }

    /// Returns the integral per class and bin, in units of the step function times picoseconds.
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

/// Returns the length of the time bins and the time-line of buffers and stalls. `held` counts
/// chunks of `chunk` bytes in buffers, and `stalled` counts stalled channels. The length is `None`
/// if nothing was measured.
///
/// # Errors
/// Returns an error if the sum over the channels exceeds 64 bits in a bin.
pub(crate) fn timeline(
    mut held: ClassMeter,
    mut stalled: ClassMeter,
    chunk: u64,
) -> Result<(Option<Time>, BufferTimeline), UnitError> {
    held.meet(stalled.bin);
    stalled.meet(held.bin);
    let bin = i128::from(held.bin.max(1));
    let counted = |sum: i128| {
        u64::try_from(sum).map_err(|_| UnitError::Overflow {
            what: "a bin of the time-line, summed over channels".into(),
            smallest: "picoseconds or bytes",
        })
    };
    let measured = Some(Time::from_ps(held.bin)).filter(|bin| *bin > Time::ZERO);
    let (held, stalled) = (held.integrals(), stalled.integrals());
    let bins = held.iter().chain(&stalled).map(Vec::len).max().unwrap_or(0);
    let places = (0..4).flat_map(|class| (0..bins).map(move |place| (class, place)));
    let area = |of: &[Vec<i128>; 4], (class, place): (usize, usize)| {
        of[class].get(place).copied().unwrap_or(0)
    };
    let mut timeline = BufferTimeline {
        shape: vec![("class", 4), ("bin", bins)],
        ..BufferTimeline::default()
    };
    for place in places {
        let bytes = counted(area(&held, place) * i128::from(chunk) / bin)?;
        timeline.mean_bytes.push(bytes);
        let time = counted(area(&stalled, place))?;
        timeline.stalled.push(Time::from_ps(time));
    }
    Ok((measured, timeline))
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
        let (mut fine, mut coarse) = (ClassMeter::new(8), ClassMeter::new(8));
        for _ in 0..2000 {
            let (time, change) = (draw(20_000), draw(5) as i64);
            for meter in [&mut fine, &mut coarse] {
                meter.step(LinkClass::Local, time, change);
                meter.step(LinkClass::Local, time + 100, -change);
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
            let (held, mut stalled) = (ClassMeter::new(1 << 59), ClassMeter::new(1 << 59));
            (0..channels).for_each(|_| stalled.step(LinkClass::Local, 0, 1));
            timeline(held, stalled, 512).map(|(_, timeline)| timeline.stalled[2].ps())
        };
        assert_eq!(stalled_for(15), Ok(15 << 59));
        assert!(stalled_for(32).is_err());
    }

    #[test]
    fn a_long_run_has_no_more_bins_than_allowed() {
        let mut meter = ClassMeter::new(1);
        for time in 0..100_000 {
            meter.step(LinkClass::Global, time, 1);
            meter.step(LinkClass::Global, time + 1, -1);
        }
        let bins = &meter.integrals()[3];
        assert!(bins.len() <= MAX_BINS);
        // One chunk occupies the buffer all the time.
        assert_eq!(bins.iter().sum::<i128>(), 100_000);
    }
}
