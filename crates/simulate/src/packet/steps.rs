//! Times at which the ranks of a schedule send their messages.
//!
//! The transfers of a step from one rank to another form one message. A rank processes the steps in
//! order. In a step, the rank sends its messages in the order of their first transfers: either each
//! message when the previous message has left (its last chunk is on the terminal's link), or all
//! messages at the same time. The step ends for the rank when two conditions hold: all these
//! messages have left, and all messages of the step to the rank have arrived. A message that
//! arrives early is counted when the rank reaches the message's step.

use std::sync::Arc;

use super::{Issue, PacketError};
use crate::outcome::packets::PacketSteps;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::schedule::{Schedule, Transfer};

/// Message that a rank or a traffic stream sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct IssuedMessage {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) bytes: u64,
    /// Step of the message. For traffic: `FIRST_STREAM` plus the index of the stream.
    pub(super) tag: u32,
    /// Time (ps) at which the message is sent.
    pub(super) time: u64,
}

/// Messages of all ranks and steps. Sources and destinations are ranks, not terminals.
struct IssueColumns {
    issue: Issue,
    /// Time (ps) that a rank spends before each message that it sends.
    overhead: u64,
    ranks: usize,
    steps: usize,
    /// Terminal of each rank, indexed by rank.
    terminal_of_rank: Vec<u32>,
    /// Rank at each terminal, indexed by terminal.
    rank_at: Vec<u32>,
    /// Index of the first message of each step and rank, `[step * ranks + rank]`. The last entry is
    /// the number of messages.
    first: Vec<u32>,
    destination: Vec<u32>,
    bytes: Vec<u64>,
    /// Bytes of every message, if all messages have the same size; `bytes` is then empty.
    uniform: Option<u64>,
}

/// Progress of a schedule for the *own* ranks: the ranks of one network part.
pub(super) struct ScheduleProgress {
    columns: Arc<IssueColumns>,
    own_ranks: usize,
    /// Position of each rank in the list of own ranks, indexed by rank.
    own_index: Vec<u32>,
    /// Number of messages that have not arrived, `[step * own_ranks + position of the own rank]`.
    expected: Vec<u32>,
    progress: Vec<RankProgress>,
    unfinished: usize,
    /// Pairs (time at which the first message is sent, time at which the last message arrives) of
    /// each step (ps), indexed by step.
    times: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Default)]
struct RankProgress {
    step: usize,
    /// Index of the message that the rank sends next.
    next: u32,
    /// Number of messages that the rank has sent but that have not left. Until the rank begins, the
    /// number is 1 higher, so that a message that arrives before does not advance the rank.
    leaving: u32,
    /// Time (ps) of the latest event for which the rank has waited.
    ready: u64,
}

impl ScheduleProgress {
    /// Creates the progress of all ranks before the start. `terminal_of_rank` is indexed by rank,
    /// and `overhead` is the time (ps) before each send.
    pub(super) fn new(
        schedule: &Schedule,
        size: Bytes,
        terminal_of_rank: Vec<u32>,
        issue: Issue,
        overhead: u64,
    ) -> Result<ScheduleProgress, PacketError> {
        let (ranks, steps) = (terminal_of_rank.len(), schedule.steps());
        let mut rank_at = vec![0; ranks];
        for (rank, &terminal) in (0..).zip(&terminal_of_rank) {
            rank_at[terminal as usize] = rank;
        }
        let mut columns = IssueColumns {
            issue,
            overhead,
            ranks,
            steps,
            terminal_of_rank,
            rank_at,
            first: Vec::with_capacity(steps * ranks + 1),
            destination: Vec::new(),
            bytes: Vec::new(),
            uniform: None,
        };
        let mut expected = vec![0; steps * ranks];
        let uniform = columns.uniform_bytes(schedule, size);
        columns.uniform = uniform;
        if uniform.is_some() {
            columns.destination.reserve_exact(schedule.len());
        }
        for step in 0..steps {
            interrupt::check();
            let row = &mut expected[step * ranks..][..ranks];
            columns.add_step(schedule, size, step, row)?;
        }
        columns.first.push(columns.destination.len() as u32);
        let progress = |rank| RankProgress {
            next: columns.first.get(rank).copied().unwrap_or(0),
            leaving: 1,
            ..RankProgress::default()
        };
        Ok(ScheduleProgress {
            own_ranks: ranks,
            own_index: (0..ranks as u32).collect(),
            expected,
            progress: (0..ranks).map(progress).collect(),
            unfinished: ranks,
            times: vec![(u64::MAX, 0); steps],
            columns: Arc::new(columns),
        })
    }

    /// Divides the ranks among `parts` network parts before the start. `part_of` is indexed by
    /// terminal.
    pub(super) fn divide(self, parts: u32, part_of: &[u8]) -> Vec<ScheduleProgress> {
        if parts == 1 {
            return vec![self];
        }
        let part = |part: u8| {
            let columns = Arc::clone(&self.columns);
            let own_ranks: Vec<usize> = (0..columns.ranks)
                .filter(|&rank| part_of[columns.terminal_of_rank[rank] as usize] == part)
                .collect();
            let mut own_index = vec![0; columns.ranks];
            for (index, &rank) in (0..).zip(&own_ranks) {
                interrupt::check();
                own_index[rank] = index;
            }
            let mut expected = Vec::with_capacity(columns.steps * own_ranks.len());
            for row in self.expected.chunks(columns.ranks) {
                expected.extend(own_ranks.iter().map(|&rank| row[rank]));
            }
            ScheduleProgress {
                own_ranks: own_ranks.len(),
                own_index,
                expected,
                progress: self.progress.clone(),
                unfinished: own_ranks.len(),
                times: self.times.clone(),
                columns,
            }
        };
        (0..parts as u8).map(part).collect()
    }

    /// Merges the times of steps with the times of steps in another network part.
    pub(super) fn join(&mut self, other: &ScheduleProgress) {
        for (time, more) in self.times.iter_mut().zip(&other.times) {
            *time = (time.0.min(more.0), time.1.max(more.1));
        }
    }

    /// Returns the start and end of each step. A step without messages has a duration of 0.
    pub(super) fn columns(self) -> PacketSteps {
        let mut columns = PacketSteps::default();
        let mut before = 0;
        for (step, &(start, end)) in self.times.iter().enumerate() {
            let (start, end) = if start == u64::MAX {
                (before, before)
            } else {
                (start, end)
            };
            columns.start.push(Time::from_ps(start));
            columns.end.push(Time::from_ps(end));
            let issued = &self.columns;
            let (first, next) = (step * issued.ranks, (step + 1) * issued.ranks);
            let messages = issued.first[next] - issued.first[first];
            columns.messages.push(messages.into());
            before = end;
        }
        columns
    }

    /// Returns the number of bytes of every message. If all messages have the same size, returns
    /// this size once.
    pub(super) fn messages(&self) -> impl Iterator<Item = u64> + '_ {
        let columns = &self.columns;
        columns.bytes.iter().copied().chain(columns.uniform)
    }

    pub(super) fn terminal(&self, rank: u32) -> u32 {
        self.columns.terminal_of_rank[rank as usize]
    }

    /// Returns whether all own ranks have finished all steps.
    pub(super) fn is_finished(&self) -> bool {
        self.unfinished == 0
    }

    /// Starts a rank at `time` (ps). Messages that the rank sends are appended to `orders`.
    pub(super) fn begin(&mut self, rank: u32, time: u64, orders: &mut Vec<IssuedMessage>) {
        let progress = &mut self.progress[rank as usize];
        progress.leaving -= 1;
        progress.ready = time;
        self.advance(rank as usize, orders);
    }

    /// Records that a message has left a terminal at `time` (ps).
    pub(super) fn note_departure(
        &mut self,
        terminal: u32,
        time: u64,
        orders: &mut Vec<IssuedMessage>,
    ) {
        let rank = self.columns.rank_at[terminal as usize] as usize;
        let progress = &mut self.progress[rank];
        progress.leaving -= 1;
        progress.ready = progress.ready.max(time);
        if progress.leaving == 0 {
            self.advance(rank, orders);
        }
    }

    /// Records that a message of `step` has arrived at a terminal at `time` (ps).
    pub(super) fn note_arrival(
        &mut self,
        terminal: u32,
        step: u32,
        time: u64,
        orders: &mut Vec<IssuedMessage>,
    ) {
        let rank = self.columns.rank_at[terminal as usize] as usize;
        let step = step as usize;
        self.times[step].1 = self.times[step].1.max(time);
        let own_index = self.own_index[rank] as usize;
        let expected = &mut self.expected[step * self.own_ranks + own_index];
        *expected -= 1;
        let progress = &mut self.progress[rank];
        if progress.step == step && *expected == 0 && progress.leaving == 0 {
            progress.ready = progress.ready.max(time);
            self.advance(rank, orders);
        }
    }

    /// Advances a rank as far as possible. All messages of the rank must have left.
    fn advance(&mut self, rank: usize, orders: &mut Vec<IssuedMessage>) {
        let columns = &*self.columns;
        let mut progress = self.progress[rank];
        while progress.step < columns.steps {
            interrupt::check();
            let cell = progress.step * columns.ranks + rank;
            let end = columns.first[cell + 1];
            while progress.next < end {
                interrupt::check();
                let message = progress.next as usize;
                let time = progress.ready + columns.overhead;
                let first = &mut self.times[progress.step].0;
                *first = (*first).min(time);
                orders.push(IssuedMessage {
                    source: columns.terminal_of_rank[rank],
                    destination: columns.terminal_of_rank[columns.destination[message] as usize],
                    bytes: columns.uniform.unwrap_or_else(|| columns.bytes[message]),
                    tag: progress.step as u32,
                    time,
                });
                progress.next += 1;
                progress.leaving += 1;
                if columns.issue == Issue::Sequential {
                    break;
                }
            }
            let own_index = self.own_index[rank] as usize;
            let expected = self.expected[progress.step * self.own_ranks + own_index];
            if progress.leaving > 0 || expected > 0 {
                break;
            }
            progress.step += 1;
            progress.next = columns
                .first
                .get(cell + columns.ranks)
                .copied()
                .unwrap_or(0);
        }
        if progress.step == columns.steps {
            self.unfinished -= 1;
        }
        self.progress[rank] = progress;
    }
}

impl IssueColumns {
    /// Returns the bytes of every message. Returns `None` unless each message is one transfer of
    /// one chunk and all chunks have the same size.
    fn uniform_bytes(&self, schedule: &Schedule, size: Bytes) -> Option<u64> {
        let bytes = schedule.collective.uniform_chunk_bytes(size)?;
        let mut last = (usize::MAX, 0, 0);
        for step in 0..schedule.steps() {
            for moved in schedule.columns(step).transfers() {
                interrupt::check();
                let ends = (step, moved.source, moved.destination);
                if moved.count != 1 || ends <= last && last.0 == step {
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
        expected: &mut [u32],
    ) -> Result<(), PacketError> {
        let mut transfers: Vec<(usize, Transfer)> = schedule
            .step(step)
            .zip(schedule.columns(step).transfers())
            .collect();
        transfers.sort_by_key(|(_, moved)| (moved.source, moved.destination));
        // Source, first transfer, destination and bytes of each message.
        let mut messages: Vec<(u32, usize, u32, u64)> = Vec::new();
        for (index, moved) in transfers {
            interrupt::check();
            let (source, destination) = (moved.source, moved.destination);
            let bytes = schedule
                .collective
                .range_bytes(size, moved.chunk, moved.count)?
                .get();
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
                expected[message.2 as usize] += 1;
            }
        }
        Ok(())
    }
}
