//! When the messages of a schedule are sent.
//!
//! The transfers of a step from one rank to another are one message. A rank goes through the steps in
//! order. In a step it sends its messages in the order of their first transfers, each as soon as the
//! one before has left (its last chunk is on the terminal's link), or all at once; the step ends for
//! it when all have left and all messages of the step to it have arrived. Messages that arrive early
//! are kept.

use super::{Issue, PacketError};
use crate::outcome::packets::StepColumns;
use crate::schedule::Schedule;
use crate::units::{Bytes, Time, UnitError};

/// A message to be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) bytes: u64,
    /// The step, or the number of the traffic above all steps.
    pub(super) tag: u32,
    /// When it is sent, in picoseconds.
    pub(super) time: u64,
}

/// A schedule on its way. Ranks inside; terminals in orders.
pub(super) struct Steps {
    issue: Issue,
    /// Picoseconds before each send.
    overhead: u64,
    ranks: usize,
    steps: usize,
    /// Per rank, its terminal.
    place: Vec<u32>,
    /// Per terminal, its rank.
    rank_at: Vec<u32>,
    /// Per step and rank, its first message; then the number of messages.
    first: Vec<u32>,
    destination: Vec<u32>,
    bytes: Vec<u64>,
    /// The bytes of all messages, where they are the same; `bytes` is empty then.
    uniform: Option<u64>,
    /// Per step and rank, messages that have not arrived.
    expected: Vec<u32>,
    progress: Vec<Progress>,
    unfinished: usize,
    /// Per step, when its first message was sent and its last had arrived, in picoseconds.
    times: Vec<(u64, u64)>,
}

/// Where a rank is.
#[derive(Clone, Copy, Default)]
struct Progress {
    step: usize,
    /// The next message to send.
    next: u32,
    /// Messages given to the network that have not left.
    leaving: u32,
    /// When the last of what it waited for came, in picoseconds.
    ready: u64,
}

impl Steps {
    /// `place` has the terminal of each rank.
    pub(super) fn new(
        schedule: &Schedule,
        size: Bytes,
        place: Vec<u32>,
        issue: Issue,
        overhead: u64,
    ) -> Result<Steps, PacketError> {
        let (ranks, steps) = (place.len(), schedule.steps());
        let mut rank_at = vec![0; ranks];
        for (rank, &terminal) in (0..).zip(&place) {
            rank_at[terminal as usize] = rank;
        }
        let mut columns = Steps {
            issue,
            overhead,
            ranks,
            steps,
            place,
            rank_at,
            first: Vec::with_capacity(steps * ranks + 1),
            destination: Vec::new(),
            bytes: Vec::new(),
            uniform: None,
            expected: vec![0; steps * ranks],
            progress: vec![Progress::default(); ranks],
            unfinished: ranks,
            times: vec![(u64::MAX, 0); steps],
        };
        let uniform = columns.uniform_bytes(schedule, size);
        columns.uniform = uniform;
        if uniform.is_some() {
            columns.destination.reserve_exact(schedule.len());
        }
        for step in 0..steps {
            columns.add_step(schedule, size, step)?;
        }
        columns.first.push(columns.destination.len() as u32);
        for (rank, progress) in columns.progress.iter_mut().enumerate() {
            progress.next = columns.first.get(rank).copied().unwrap_or(0);
        }
        Ok(columns)
    }

    /// The bytes of every message, if each is one transfer of one chunk of a common size.
    fn uniform_bytes(&self, schedule: &Schedule, size: Bytes) -> Option<u64> {
        let bytes = schedule.collective.uniform_chunk_bytes(size)?;
        let mut last = (usize::MAX, 0, 0);
        for step in 0..schedule.steps() {
            for index in schedule.step(step) {
                let ends = (
                    step,
                    schedule.source()[index],
                    schedule.destination()[index],
                );
                if schedule.count()[index] != 1 || ends <= last && last.0 == step {
                    return None;
                }
                last = ends;
            }
        }
        Some(bytes.get())
    }

    fn add_step(
        &mut self,
        schedule: &Schedule,
        size: Bytes,
        step: usize,
    ) -> Result<(), PacketError> {
        let ends = |index: usize| (schedule.source()[index], schedule.destination()[index]);
        let mut indices: Vec<usize> = schedule.step(step).collect();
        indices.sort_by_key(|&index| ends(index));
        // (source, first transfer, destination, bytes) of each message
        let mut messages: Vec<(u32, usize, u32, u64)> = Vec::new();
        for index in indices {
            let (source, destination) = ends(index);
            let (chunk, count) = (schedule.chunk()[index], schedule.count()[index]);
            let bytes = schedule.collective.range_bytes(size, chunk, count)?.get();
            match messages.last_mut() {
                Some(last) if (last.0, last.2) == (source, destination) => {
                    let sum = last.3.checked_add(bytes);
                    last.3 = sum.ok_or_else(|| UnitError::Overflow {
                        what: "a message's bytes".into(),
                        smallest: "bytes",
                    })?;
                }
                _ => messages.push((source, index, destination, bytes)),
            }
        }
        messages.sort_unstable();
        let mut messages = messages.into_iter().peekable();
        for rank in 0..self.ranks as u32 {
            let first = u32::try_from(self.destination.len());
            self.first.push(first.map_err(|_| PacketError::TooMany)?);
            while let Some(message) = messages.next_if(|message| message.0 == rank) {
                self.destination.push(message.2);
                if self.uniform.is_none() {
                    self.bytes.push(message.3);
                }
                self.expected[step * self.ranks + message.2 as usize] += 1;
            }
        }
        Ok(())
    }

    /// When each step was carried out; a step without messages takes no time.
    pub(super) fn columns(self) -> StepColumns {
        let mut columns = StepColumns::default();
        let mut before = 0;
        for (step, &(start, end)) in self.times.iter().enumerate() {
            let (start, end) = if start == u64::MAX {
                (before, before)
            } else {
                (start, end)
            };
            columns.start.push(Time::from_ps(start));
            columns.end.push(Time::from_ps(end));
            let (first, next) = (step * self.ranks, (step + 1) * self.ranks);
            let messages = self.first[next] - self.first[first];
            columns.messages.push(messages.into());
            before = end;
        }
        columns
    }

    /// Whether every rank has gone through all steps.
    pub(super) fn finished(&self) -> bool {
        self.unfinished == 0
    }

    /// A rank begins at a time.
    pub(super) fn begin(&mut self, rank: u32, time: u64, orders: &mut Vec<Order>) {
        self.progress[rank as usize].ready = time;
        self.advance(rank as usize, orders);
    }

    /// A message has left a terminal.
    pub(super) fn left(&mut self, terminal: u32, time: u64, orders: &mut Vec<Order>) {
        let rank = self.rank_at[terminal as usize] as usize;
        let progress = &mut self.progress[rank];
        progress.leaving -= 1;
        progress.ready = progress.ready.max(time);
        if progress.leaving == 0 {
            self.advance(rank, orders);
        }
    }

    /// A message of a step has arrived at a terminal.
    pub(super) fn arrived(&mut self, terminal: u32, step: u32, time: u64, orders: &mut Vec<Order>) {
        let (rank, step) = (self.rank_at[terminal as usize] as usize, step as usize);
        self.times[step].1 = self.times[step].1.max(time);
        let expected = &mut self.expected[step * self.ranks + rank];
        *expected -= 1;
        let progress = &mut self.progress[rank];
        if progress.step == step && *expected == 0 && progress.leaving == 0 {
            progress.ready = progress.ready.max(time);
            self.advance(rank, orders);
        }
    }

    /// Takes a rank that waits for no departure as far as it comes.
    fn advance(&mut self, rank: usize, orders: &mut Vec<Order>) {
        let mut progress = self.progress[rank];
        while progress.step < self.steps {
            let cell = progress.step * self.ranks + rank;
            let end = self.first[cell + 1];
            while progress.next < end {
                let message = progress.next as usize;
                let time = progress.ready + self.overhead;
                let first = &mut self.times[progress.step].0;
                *first = (*first).min(time);
                orders.push(Order {
                    source: self.place[rank],
                    destination: self.place[self.destination[message] as usize],
                    bytes: self.uniform.unwrap_or_else(|| self.bytes[message]),
                    tag: progress.step as u32,
                    time,
                });
                progress.next += 1;
                progress.leaving += 1;
                if self.issue == Issue::Sequential {
                    break;
                }
            }
            if progress.leaving > 0 || self.expected[cell] > 0 {
                break;
            }
            progress.step += 1;
            progress.next = self.first.get(cell + self.ranks).copied().unwrap_or(0);
        }
        if progress.step == self.steps {
            self.unfinished -= 1;
        }
        self.progress[rank] = progress;
    }
}
