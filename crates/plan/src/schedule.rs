//! Schedules: transfers in steps. The transfers of a step run side by side; a later step may use
//! what an earlier step delivered.
//!
//! A schedule is stored in columns, one entry per transfer, so that millions of transfers take
//! little memory. It has no routes, wavelengths or times.
//!
//! # Repeated steps
//!
//! In many algorithms a step equals an earlier step with other chunks: on a ring every rank sends
//! to the same neighbour in every step, each time the block before. Let C be the number of chunks.
//! Step t *repeats* step p if both have the same number of transfers, the i-th transfers agree in
//! source, destination, count and action, and there is a *shift* s with
//!
//! ```text
//! chunk of t's i-th transfer = (chunk of p's i-th transfer + s) mod C        for every i.
//! ```
//!
//! Such a step is stored as p and s alone. When the next step begins, the schedule looks for p
//! among the last few steps that are stored in full, and compares every transfer. Code that adds or
//! reads transfers does not notice. The stored form depends only on the transfers and their order,
//! so that equal schedules are stored equally. A ring of N ranks thus stores O(N) of its N(N - 1)
//! transfers. A schedule without repeated steps is plain columns.
//!
//! [`Schedule::columns`] is the fastest way to read whole steps. The functions that take the index
//! of a transfer first search its step if steps repeat.
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

/// Effect of a chunk that arrives at its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Action {
    /// Keeps the chunk in place of the destination's.
    Copy,
    /// Combines the chunk with the destination's.
    Reduce,
}

/// Chunks `chunk .. chunk + count`, sent from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer {
    /// First chunk.
    pub chunk: u32,
    /// Number of chunks, at least 1.
    pub count: u32,
    /// Sending rank.
    pub source: u32,
    /// Receiving rank.
    pub destination: u32,
    /// Effect at the receiving rank.
    pub action: Action,
}

impl Transfer {
    /// Returns the transfer of one chunk that is copied.
    pub const fn copy(chunk: u32, source: u32, destination: u32) -> Transfer {
        Transfer {
            chunk,
            count: 1,
            source,
            destination,
            action: Action::Copy,
        }
    }

    /// Returns the transfer of one chunk that is combined at its destination.
    pub const fn reduce(chunk: u32, source: u32, destination: u32) -> Transfer {
        Transfer {
            chunk,
            count: 1,
            source,
            destination,
            action: Action::Reduce,
        }
    }

    /// Returns the transfer between two ranks of which each keeps a range of chunks: `kept(rank)`
    /// is the first chunk and their number. A reduction carries the chunks that the destination
    /// keeps, a copy those that the source keeps.
    pub fn for_kept_chunks(
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

/// Claims of the algorithm's author about a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// Number of steps that the paper prints or its formula gives. Printed beside the number of
    /// slots of the plan, but not enforced.
    pub paper_steps: Option<u64>,
    /// True if every transfer goes to a neighbour on the ring. Enforced by the verifier.
    pub neighbours_only: bool,
    /// Number of steps of the schedule. Enforced by the verifier.
    pub schedule_steps: Option<u32>,
    /// Maximum number of chunks that a rank sends. Enforced by the verifier.
    pub chunks_sent_per_rank: Option<u64>,
}

/// Transfers in steps, for one collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Collective that the transfers carry out.
    pub collective: Collective,
    /// Claims about the schedule.
    pub claims: Claims,
    /// Number of chunks when the schedule was created; shifts are modulo this number.
    chunks: u32,
    /// Transfers of all steps that do not repeat another.
    stored: Stored,
    /// Index of the first transfer of each step.
    step_starts: Vec<usize>,
    /// Place of the stored transfers of each step. Empty while no step repeats another, because
    /// each step is then stored at its indices.
    places: Vec<StoredStep>,
    /// Last steps that are stored in full, which the next step may repeat; at most
    /// [`MAX_PATTERNS`].
    patterns: Vec<usize>,
    /// Number of transfers that are not stored.
    repeated: usize,
    /// Steps per transfer up to the last step, times 2^64; gives the step of a transfer if steps
    /// have equal lengths. 0 while no step repeats another.
    steps_per_transfer: u64,
}

/// Place of the stored transfers of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoredStep {
    start: usize,
    /// Number added to their chunks, modulo all chunks.
    shift: u32,
}

/// Maximum memory of a transfer until it is in a plan, in bytes: in the schedule, in a second
/// schedule that is cut into single chunks or reversed, and its light.
const BYTES_PER_TRANSFER: u64 = 44;

/// Maximum number of stored steps that are compared with the last step.
const MAX_PATTERNS: usize = 8;

/// Minimum number of transfers of a step that is stored as a repetition, so that the entry takes
/// less memory than the transfers.
const MIN_REPEATED: usize = 2;

impl Schedule {
    /// Returns a schedule without steps.
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

    /// Reserves memory for `transfers` more transfers.
    pub fn reserve(&mut self, transfers: usize) {
        let bytes = transfers as u64 * BYTES_PER_TRANSFER;
        memory::check_forecast("the list of transfers of this algorithm", bytes);
        self.stored.reserve(transfers);
    }

    /// Opens the next step, to which the following transfers belong.
    pub fn begin_step(&mut self) {
        self.compress_last_step();
        if self.repeated > 0 {
            let start = self.stored.len();
            self.places.push(StoredStep { start, shift: 0 });
            self.steps_per_transfer = (((self.steps() as u128) << 64) / self.len() as u128) as u64;
        }
        self.step_starts.push(self.len());
    }

    /// Stores the last step as a repetition if it repeats a step that is stored in full.
    fn compress_last_step(&mut self) {
        let Some(step) = self.steps().checked_sub(1) else {
            return;
        };
        let last_range = self.stored_range(step);
        if last_range.len() < MIN_REPEATED {
            return;
        }
        let found = self.patterns.iter().rev().find_map(|&pattern| {
            let pattern_range = self.stored_range(pattern);
            let shift =
                self.stored
                    .shift(pattern_range.clone(), last_range.clone(), self.chunks)?;
            Some(StoredStep {
                start: pattern_range.start,
                shift,
            })
        });
        let Some(place) = found else {
            if self.patterns.len() == MAX_PATTERNS {
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
        self.repeated += last_range.len();
        self.stored.truncate(last_range);
    }

    /// Adds a transfer to the open step; the first transfer opens step 0.
    pub fn push(&mut self, transfer: Transfer) {
        if self.step_starts.is_empty() {
            self.begin_step();
        }
        interrupt::check();
        self.stored.push(transfer);
    }

    /// Returns the number of transfers.
    pub fn len(&self) -> usize {
        self.stored.len() + self.repeated
    }

    /// Returns whether there are no transfers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of stored transfers, without those of repeated steps. The last step is
    /// always stored.
    pub fn stored(&self) -> usize {
        self.stored.len()
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> usize {
        self.step_starts.len()
    }

    /// Returns the transfers of a step, as a range of indices.
    pub fn step(&self, step: usize) -> Range<usize> {
        let end = self
            .step_starts
            .get(step + 1)
            .copied()
            .unwrap_or(self.len());
        self.step_starts[step]..end
    }

    /// Returns the transfers of a step, in columns.
    pub fn columns(&self, step: usize) -> StepColumns<'_> {
        interrupt::check();
        let shift = self.places.get(step).map_or(0, |place| place.shift);
        self.stored
            .columns(self.stored_range(step), shift, self.chunks)
    }

    /// Returns the range in which the transfers of a step are stored.
    fn stored_range(&self, step: usize) -> Range<usize> {
        let indices = self.step(step);
        let start = self
            .places
            .get(step)
            .map_or(indices.start, |place| place.start);
        start..start + indices.len()
    }

    /// Returns the step of the transfer with an index; the last step for an index beyond the last.
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

    /// Returns the place where the transfer with an index is stored, and the shift of its chunk.
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

    /// Returns the transfer with an index.
    #[inline]
    pub fn transfer(&self, index: usize) -> Transfer {
        interrupt::check();
        let StoredStep { start, shift } = self.place_of(index);
        self.stored.transfer(start, shift, self.chunks)
    }

    /// Returns all transfers in order.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer> + '_ {
        (0..self.steps()).flat_map(|step| self.columns(step).transfers())
    }

    /// Returns the sending and the receiving rank of the transfer with an index.
    #[inline]
    pub fn ends(&self, index: usize) -> (u32, u32) {
        let StoredStep { start, .. } = self.place_of(index);
        (self.stored.source[start], self.stored.destination[start])
    }

    /// Returns whether every transfer carries a single chunk.
    pub fn has_single_chunks(&self) -> bool {
        self.stored.count.iter().all(|&count| count == 1)
    }

    /// Returns the number of chunks that all transfers carry together, at most 2^64 - 1.
    pub fn deliveries(&self) -> u64 {
        (0..self.steps())
            .flat_map(|step| self.columns(step).count())
            .fold(0u64, |sum, &count| sum.saturating_add(count.into()))
    }

    /// Returns the same transfers backwards: steps in reverse order, source and destination
    /// exchanged. `collective` is the collective of the result, and decides whether arrivals
    /// combine. An all_gather becomes a reduce_scatter: the copies of a block form a tree with its
    /// owner as the root, and backwards the tree gathers the contribution of every rank exactly
    /// once. Claims about steps and neighbours are kept.
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

    /// Returns the same deliveries with a transfer for each chunk, in the order of chunks.
    pub fn into_single_chunks(self) -> Schedule {
        if self.has_single_chunks() {
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

    /// Returns the transfers of a schedule for equal blocks with the chunks that each block has
    /// under the demand of `collective`. Transfers and steps without chunks are left out.
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

    /// Appends the steps of another schedule, each of whose chunks is `factor` chunks of this
    /// schedule.
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
