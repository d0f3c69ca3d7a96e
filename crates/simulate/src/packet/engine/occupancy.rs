//! Occupancy of buffers over time, and time that chunks wait for full buffers.

use super::super::arena::NONE;
use super::super::routes::Routes;
use super::PacketEngine;

/// Upper bound on the occupancy of a channel at a time, while credits may be unknown.
pub(super) struct Doubt {
    channel: u32,
    time: u64,
    occupied: u32,
    /// Number of the channel's doubt before this one; `NONE` for the first.
    before: u32,
}

impl<R: Routes> PacketEngine<R> {
    /// Notes that chunks wait for a full buffer of a channel.
    pub(in super::super) fn stall(&mut self, link: u32, number: u32) {
        let stall = &mut self.stalls[number as usize];
        if stall.since.is_none() {
            stall.since = Some(self.now);
            let class = self.ports[link as usize].class;
            self.counters.stalled.step(class, self.now, 1);
        }
    }

    /// Ends a wait for a full buffer at `time`, at which a place becomes free or the simulation
    /// ends.
    pub(in super::super) fn end_stall(&mut self, link: u32, number: u32, time: u64) {
        let stall = &mut self.stalls[number as usize];
        if let Some(since) = stall.since.take() {
            stall.sum += time.saturating_sub(since);
            let class = self.ports[link as usize].class;
            self.counters.stalled.step(class, time.max(since), -1);
        }
    }

    /// Takes a place of a channel's buffer.
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

    /// Raises the peak of a channel to its occupancy. Records a doubt instead if credits may have
    /// come back that are not known yet.
    #[cold]
    pub(super) fn raise_peak(&mut self, link: u32, number: u32, time: u64) {
        let doubted = self.crosses(link) && time >= self.credits_known;
        let occupied = self.channels.list[number as usize].occupied;
        if doubted {
            self.doubts.push(Doubt {
                channel: number,
                time,
                occupied,
                before: NONE,
            });
            self.link_doubt(self.doubts.len() - 1);
        } else {
            self.channels.list[number as usize].peak = occupied;
        }
    }

    /// Makes a doubt the last of its channel.
    fn link_doubt(&mut self, place: usize) {
        let doubt = &mut self.doubts[place];
        let last = &mut self.channels.list[doubt.channel as usize].doubt;
        doubt.before = std::mem::replace(last, place as u32);
    }

    /// Corrects the doubts of a channel by a credit that came back at `time`.
    pub(super) fn credit_doubts(&mut self, channel: u32, time: u64) {
        let mut place = self.channels.list[channel as usize].doubt;
        while let Some(doubt) = self.doubts.get_mut(place as usize) {
            if doubt.time < time {
                return;
            }
            doubt.occupied -= 1;
            place = doubt.before;
        }
    }

    /// Resolves the doubts about times before `known`, at which all credits are known.
    pub(in super::super) fn resolve_doubts(&mut self, known: u64) {
        for doubt in &self.doubts {
            let state = &mut self.channels.list[doubt.channel as usize];
            if doubt.time < known {
                state.peak = state.peak.max(doubt.occupied);
            }
            state.doubt = NONE;
        }
        self.doubts.retain(|doubt| doubt.time >= known);
        for place in 0..self.doubts.len() {
            self.link_doubt(place);
        }
    }
}
