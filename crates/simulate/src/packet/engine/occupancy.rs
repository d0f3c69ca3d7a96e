//! Occupancy of buffers over time, and the time for which chunks wait for full buffers.

use super::super::arena::NONE;
use super::super::routes::Routes;
use super::PacketEngine;

/// Number of occupied places in the buffer of a channel at `time` (ps), if this number may be a
/// maximum. Credits that are not known yet may still lower the number.
pub(super) struct UncertainPeak {
    channel: u32,
    time: u64,
    occupied: u32,
    /// Index of the previous uncertain peak of the channel, or `NONE`.
    before: u32,
}

impl<R: Routes> PacketEngine<R> {
    /// Records that chunks wait for a place in the full buffer of the channel with the index
    /// `number`.
    pub(in super::super) fn stall(&mut self, link: u32, number: u32) {
        let stall = &mut self.stalls[number as usize];
        if stall.since.is_none() {
            stall.since = Some(self.now);
            let class = self.ports[link as usize].class;
            self.counters.stalled.step(class, self.now, 1);
        }
    }

    /// Records that a wait for a full buffer ends at `time` (ps), either because the buffer has a
    /// free place or because the simulation ends.
    pub(in super::super) fn end_stall(&mut self, link: u32, number: u32, time: u64) {
        let stall = &mut self.stalls[number as usize];
        if let Some(since) = stall.since.take() {
            stall.sum += time.saturating_sub(since);
            let class = self.ports[link as usize].class;
            self.counters.stalled.step(class, time.max(since), -1);
        }
    }

    #[inline]
    pub(in super::super) fn occupy(&mut self, link: u32, number: u32, time: u64) {
        let state = &mut self.channels.list[number as usize];
        state.occupied += 1;
        if state.occupied > state.peak {
            self.raise_peak(link, number, time);
        }
        let class = self.ports[link as usize].class;
        self.counters.occupancy.step(class, time, 1);
    }

    /// Raises the peak of the channel with the index `number` to its occupancy. If a credit may
    /// have arrived that is not known yet, records an uncertain peak instead.
    #[cold]
    pub(super) fn raise_peak(&mut self, link: u32, number: u32, time: u64) {
        let is_uncertain = self.crosses(link) && time >= self.credits_known;
        let occupied = self.channels.list[number as usize].occupied;
        if is_uncertain {
            self.uncertain_peaks.push(UncertainPeak {
                channel: number,
                time,
                occupied,
                before: NONE,
            });
            self.link_uncertain_peak(self.uncertain_peaks.len() - 1);
        } else {
            self.channels.list[number as usize].peak = occupied;
        }
    }

    /// Appends the entry with the index `place` to the list of its channel's uncertain peaks.
    fn link_uncertain_peak(&mut self, place: usize) {
        let uncertain = &mut self.uncertain_peaks[place];
        let last = &mut self.channels.list[uncertain.channel as usize].last_uncertain_peak;
        uncertain.before = std::mem::replace(last, place as u32);
    }

    /// Lowers the uncertain peaks of a channel from `time` (ps) on, because a credit arrived at
    /// that time.
    pub(super) fn correct_uncertain_peaks(&mut self, channel: u32, time: u64) {
        let mut place = self.channels.list[channel as usize].last_uncertain_peak;
        while let Some(uncertain) = self.uncertain_peaks.get_mut(place as usize) {
            if uncertain.time < time {
                return;
            }
            uncertain.occupied -= 1;
            place = uncertain.before;
        }
    }

    /// Updates the peaks of the channels with the uncertain peaks before `known` (ps), and removes
    /// these uncertain peaks. All credits that arrive before `known` must be known.
    pub(in super::super) fn resolve_uncertain_peaks(&mut self, known: u64) {
        for uncertain in &self.uncertain_peaks {
            let state = &mut self.channels.list[uncertain.channel as usize];
            if uncertain.time < known {
                state.peak = state.peak.max(uncertain.occupied);
            }
            state.last_uncertain_peak = NONE;
        }
        self.uncertain_peaks
            .retain(|uncertain| uncertain.time >= known);
        for place in 0..self.uncertain_peaks.len() {
            self.link_uncertain_peak(place);
        }
    }
}
