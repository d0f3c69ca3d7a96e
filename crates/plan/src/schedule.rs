//! What moves: transfers in steps. A step's transfers run side by side; a later step may use what
//! an earlier one delivered.
//!
//! A schedule is kept in columns, one entry per transfer, so that millions of transfers stay
//! small. It says nothing of routes, wavelengths or time.
//!
//! # Steps that come again
//!
//! In many algorithms a step is an earlier one with other chunks: around a ring everybody sends to the
//! same neighbour in every step, each time the block before. Let C be the number of chunks. Step t
//! *repeats* step p if both have as many transfers, the i-th ones agree in source, destination, count
//! and action, and there is a *shift* s with
//!
//! ```text
//! chunk of t's i-th transfer = (chunk of p's i-th transfer + s) mod C        for every i.
//! ```
//!
//! Such a step is stored as p and s alone. A schedule finds that by itself when the next step begins,
//! among the last few steps that it keeps in full, and compares every transfer: whoever pushes or
//! reads transfers sees nothing of it, and what is stored follows from the transfers and their order
//! alone, so that equal schedules are stored equally. A ring of N ranks thus keeps O(N) of its N(N - 1)
//! transfers. A schedule in which no step comes again is plain columns.
//!
//! Whole steps are read quickest by [`Schedule::columns`]; the functions that take the index of a
//! transfer first look for its step where steps come again.
//!
//! ```
//! use opticoll_plan::collective::{Collective, CollectiveKind};
//! use opticoll_plan::schedule::{Schedule, Transfer};
//! let mut schedule = Schedule::new(Collective::new(CollectiveKind::AllGather, 2)?);
//! schedule.begin_step();
//! schedule.push(Transfer::copy(0, 0, 1));
//! schedule.push(Transfer::copy(1, 1, 0));
//! assert_eq!((schedule.steps(), schedule.len()), (1, 2));
//! # Ok::<(), opticoll_plan::collective::CollectiveError>(())
//! ```

mod columns;

use std::ops::Range;

use crate::collective::Collective;
use opticoll_base::{interrupt, memory};

pub use columns::StepColumns;
use columns::Stored;

/// What the destination does with a chunk that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Action {
    /// Keep it, in place of what was there.
    Copy,
    /// Combine it with what is there.
    Reduce,
}

/// The chunks `chunk .. chunk + count`, sent from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer {
    /// The first chunk.
    pub chunk: u32,
    /// How many chunks, at least 1.
    pub count: u32,
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub destination: u32,
    /// What the receiver does with it.
    pub action: Action,
}

impl Transfer {
    /// One chunk, copied.
    pub const fn copy(chunk: u32, source: u32, destination: u32) -> Transfer {
        Transfer {
            chunk,
            count: 1,
            source,
            destination,
            action: Action::Copy,
        }
    }

    /// One chunk, combined at its destination.
    pub const fn reduce(chunk: u32, source: u32, destination: u32) -> Transfer {
        Transfer {
            chunk,
            count: 1,
            source,
            destination,
            action: Action::Reduce,
        }
    }

    /// What a rank sends where each keeps a range of the chunks, the first and how many: it reduces the chunks that the destination
    /// keeps, and copies those that it keeps itself.
    pub fn of_kept(
        action: Action,
        source: u32,
        destination: u32,
        kept: impl FnOnce(u32) -> (u32, u32),
    ) -> Transfer {
        let (chunk, count) = kept(match action {
            Action::Reduce => destination,
            Action::Copy => source,
        });
        Transfer {
            chunk,
            count,
            source,
            destination,
            action,
        }
    }
}

/// What the algorithm's author claims of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// The number of steps that the paper prints or its formula gives. Printed beside what the
    /// schedule really needs, never enforced.
    pub paper_steps: Option<u64>,
    /// Every transfer goes to a neighbour on the ring. Enforced by the verifier.
    pub neighbours_only: bool,
    /// The number of steps of the schedule. Enforced by the verifier.
    pub schedule_steps: Option<u32>,
    /// The most chunks that any rank sends. Enforced by the verifier.
    pub chunks_sent_per_rank: Option<u64>,
}

/// Transfers in steps, for one collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The collective that the transfers carry out.
    pub collective: Collective,
    /// What is claimed of it.
    pub claims: Claims,
    /// The number of chunks when the schedule was opened: shifts are taken modulo this.
    chunks: u32,
    /// The transfers of all steps that repeat no other.
    stored: Stored,
    /// By step: the index of its first transfer.
    step_starts: Vec<usize>,
    /// By step: where its transfers are stored. Empty while no step repeats another, since each is then
    /// stored where its indices say.
    places: Vec<StoredStep>,
    /// The last steps that are stored in full, which the next may repeat; at most [`MOST_PATTERNS`].
    patterns: Vec<usize>,
    /// Transfers that are not stored.
    repeated: usize,
    /// Steps per transfer up to the last step, times 2^64: where steps are equally long, this tells the
    /// step of a transfer. 0 while no step repeats another.
    steps_per_transfer: u64,
}

/// Where the transfers of a step are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoredStep {
    start: usize,
    /// What is added to their chunks.
    shift: u32,
}

/// What a transfer takes on its way to a plan at most: in the schedule, in one that is cut into single chunks or
/// reversed, and its light.
const BYTES_PER_TRANSFER: u64 = 44;

/// Among how many steps one is looked for that the last step repeats.
const MOST_PATTERNS: usize = 8;

/// The fewest transfers of a step that is stored as a repetition: the note of it must be smaller.
const LEAST_REPEATED: usize = 2;

impl Schedule {
    /// A schedule without steps.
    pub fn new(collective: Collective) -> Schedule {
        Schedule {
            collective,
            claims: Claims::default(),
            chunks: collective.chunks(),
            stored: Stored::default(),
            step_starts: Vec::new(),
            places: Vec::new(),
            patterns: Vec::new(),
            repeated: 0,
            steps_per_transfer: 0,
        }
    }

    /// Makes room for `transfers` more transfers.
    pub fn reserve(&mut self, transfers: usize) {
        let bytes = transfers as u64 * BYTES_PER_TRANSFER;
        memory::take("the list of transfers of this algorithm", bytes);
        self.stored.reserve(transfers);
    }

    /// Opens the next step; transfers pushed from here on belong to it.
    pub fn begin_step(&mut self) {
        self.fold_last_step();
        if self.repeated > 0 {
            let start = self.stored.len();
            self.places.push(StoredStep { start, shift: 0 });
            self.steps_per_transfer = (((self.steps() as u128) << 64) / self.len() as u128) as u64;
        }
        self.step_starts.push(self.len());
    }

    /// Stores the last step as a repetition, if it is one of a step that is stored in full.
    fn fold_last_step(&mut self) {
        let Some(step) = self.steps().checked_sub(1) else {
            return;
        };
        let own = self.stored_range(step);
        if own.len() < LEAST_REPEATED {
            return;
        }
        let found = self.patterns.iter().rev().find_map(|&pattern| {
            let of = self.stored_range(pattern);
            let shift = self.stored.shift(of.clone(), own.clone(), self.chunks)?;
            Some(StoredStep {
                start: of.start,
                shift,
            })
        });
        let Some(place) = found else {
            if self.patterns.len() == MOST_PATTERNS {
                self.patterns.remove(0);
            }
            self.patterns.push(step);
            return;
        };
        if self.places.is_empty() {
            let in_full = self.step_starts.iter();
            self.places = in_full
                .map(|&start| StoredStep { start, shift: 0 })
                .collect();
        }
        self.places[step] = place;
        self.repeated += own.len();
        self.stored.truncate(own);
    }

    /// Adds a transfer to the open step (the first push opens step 0).
    pub fn push(&mut self, transfer: Transfer) {
        if self.step_starts.is_empty() {
            self.begin_step();
        }
        interrupt::check();
        self.stored.push(transfer);
    }

    /// The number of transfers.
    pub fn len(&self) -> usize {
        self.stored.len() + self.repeated
    }

    /// Whether there are no transfers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of transfers that are stored; the others are told by the steps that repeat these. The
    /// last step is always stored.
    pub fn stored(&self) -> usize {
        self.stored.len()
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.step_starts.len()
    }

    /// The transfers of a step, as a range of indices.
    pub fn step(&self, step: usize) -> Range<usize> {
        let end = self
            .step_starts
            .get(step + 1)
            .copied()
            .unwrap_or(self.len());
        self.step_starts[step]..end
    }

    /// The transfers of a step, in columns.
    pub fn columns(&self, step: usize) -> StepColumns<'_> {
        interrupt::check();
        let shift = self.places.get(step).map_or(0, |place| place.shift);
        self.stored
            .columns(self.stored_range(step), shift, self.chunks)
    }

    /// Where the transfers of a step are stored.
    fn stored_range(&self, step: usize) -> Range<usize> {
        let own = self.step(step);
        let start = self.places.get(step).map_or(own.start, |place| place.start);
        start..start + own.len()
    }

    /// The step of the transfer with an index; the last one for an index beyond the last.
    #[inline]
    fn step_of(&self, index: usize) -> usize {
        let place = u128::from(self.steps_per_transfer) * u128::from(2 * index as u64 + 1);
        let guess = (place >> 65) as usize;
        if let [start, end, ..] = self.step_starts[guess.min(self.steps() - 1)..]
            && (start..end).contains(&index)
        {
            return guess;
        }
        self.step_starts.partition_point(|&start| start <= index) - 1
    }

    /// Where the transfer with an index is stored, and what is added to its chunk.
    #[inline]
    fn place_of(&self, index: usize) -> StoredStep {
        if self.repeated == 0 {
            return StoredStep {
                start: index,
                shift: 0,
            };
        }
        self.place_among_repeated(index)
    }

    fn place_among_repeated(&self, index: usize) -> StoredStep {
        let step = self.step_of(index);
        let StoredStep { start, shift } = self.places[step];
        StoredStep {
            start: start + (index - self.step_starts[step]),
            shift,
        }
    }

    /// The transfer with an index.
    #[inline]
    pub fn transfer(&self, index: usize) -> Transfer {
        interrupt::check();
        let StoredStep { start, shift } = self.place_of(index);
        self.stored.transfer(start, shift, self.chunks)
    }

    /// All transfers in order.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer> + '_ {
        (0..self.steps()).flat_map(|step| self.columns(step).transfers())
    }

    /// Sending and receiving rank of the transfer with an index.
    #[inline]
    pub fn ends(&self, index: usize) -> (u32, u32) {
        let StoredStep { start, .. } = self.place_of(index);
        (self.stored.source[start], self.stored.destination[start])
    }

    /// Whether every transfer carries a single chunk.
    pub fn is_in_single_chunks(&self) -> bool {
        self.stored.count.iter().all(|&count| count == 1)
    }

    /// The chunks that all transfers carry together; 2^64 - 1 for as many or more.
    pub fn deliveries(&self) -> u64 {
        (0..self.steps())
            .flat_map(|step| self.columns(step).count())
            .fold(0u64, |sum, &count| sum.saturating_add(count.into()))
    }

    /// The same transfers backwards: steps in reverse order, source and destination exchanged.
    /// `collective` is the result's, and decides whether arrivals combine. An all_gather becomes a
    /// reduce_scatter: the copies of a block form a tree with its owner as the root, and backwards
    /// the same tree gathers every rank's contribution exactly once. Claims on steps and neighbours
    /// carry over.
    pub fn reversed(&self, collective: Collective) -> Schedule {
        let action = if collective.combines() {
            Action::Reduce
        } else {
            Action::Copy
        };
        let mut reversed = Schedule::new(collective);
        reversed.claims = Claims {
            neighbours_only: self.claims.neighbours_only,
            schedule_steps: self.claims.schedule_steps,
            ..Claims::default()
        };
        reversed.reserve(self.len());
        for step in (0..self.steps()).rev() {
            reversed.begin_step();
            for transfer in self.columns(step).transfers() {
                reversed.push(Transfer {
                    source: transfer.destination,
                    destination: transfer.source,
                    action,
                    ..transfer
                });
            }
        }
        reversed
    }

    /// The same deliveries with a transfer for each chunk, in the order of chunks.
    pub fn in_single_chunks(self) -> Schedule {
        if self.is_in_single_chunks() {
            return self;
        }
        let mut single = Schedule::new(self.collective);
        single.reserve(self.deliveries() as usize);
        for step in 0..self.steps() {
            single.begin_step();
            for transfer in self.columns(step).transfers() {
                for chunk in transfer.chunk..transfer.chunk + transfer.count {
                    single.push(Transfer {
                        chunk,
                        count: 1,
                        ..transfer
                    });
                }
            }
        }
        Schedule {
            claims: self.claims,
            ..single
        }
    }

    /// Transfers of equal blocks as those of a demand: of the chunks that each block has there. Transfers and steps without any
    /// are left out.
    pub fn with_demand_of(&self, collective: Collective) -> Schedule {
        let mut demanded = Schedule::new(collective);
        for step in 0..self.steps() {
            let mut is_open = false;
            for transfer in self.columns(step).transfers() {
                let blocks = transfer.chunk..transfer.chunk + transfer.count;
                let chunks = collective.chunks_of_blocks(blocks);
                if chunks.is_empty() {
                    continue;
                }
                if !std::mem::replace(&mut is_open, true) {
                    demanded.begin_step();
                }
                demanded.push(Transfer {
                    chunk: chunks.start,
                    count: chunks.len() as u32,
                    ..transfer
                });
            }
        }
        demanded.claims = Claims {
            neighbours_only: self.claims.neighbours_only,
            schedule_steps: Some(demanded.steps() as u32),
            ..Claims::default()
        };
        demanded
    }

    /// Appends the steps of another schedule, each of whose chunks is `factor` chunks here.
    pub fn append(&mut self, other: &Schedule, factor: u32) {
        self.reserve(other.len());
        for step in 0..other.steps() {
            self.begin_step();
            for transfer in other.columns(step).transfers() {
                self.push(Transfer {
                    chunk: transfer.chunk * factor,
                    count: transfer.count * factor,
                    ..transfer
                });
            }
        }
    }
}
