//! Schedules: transfers in steps. The transfers of a step do not depend on each other; a later step
//! may send data that an earlier step delivered.
//!
//! A schedule is stored in columns with one entry per transfer, so that millions of transfers need
//! little memory. A schedule has no routes, wavelengths or times.
//!
//! # Repeated steps
//!
//! In many algorithms, a step equals an earlier step with other chunks. On a ring, for example,
//! every rank sends to the same neighbour in every step, each time the previous block. Let C be the
//! number of chunks. Step t *repeats* step p if both have the same number of transfers, if the i-th
//! transfers agree in source, destination, count and action, and if there is a *shift* s with
//!
//! ```text
//! chunk of t's i-th transfer = (chunk of p's i-th transfer + s) mod C        for every i.
//! ```
//!
//! Such a step is stored as p and s alone. When the next step begins, the schedule compares the
//! last step, transfer by transfer, with the last few steps that are stored in full. Code that adds
//! or reads transfers does not notice this compression. The stored form depends only on the
//! transfers and their order, so that equal schedules are stored equally. A ring of N ranks thus
//! stores O(N) of its N(N - 1) transfers. A schedule without repeated steps consists of plain
//! columns.
//!
//! [`Schedule::columns`] is the fastest way to read whole steps. If steps repeat, functions with
//! the index of a transfer must first search the step of this transfer.
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

opticoll_base::named_enum! {
    /// Effect of a chunk on the chunk with the same index at the destination, and the switches that
    /// take part.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Action {
        /// Replaces the chunk of the destination.
        Copy = "copy",
        /// Combines the chunk with the chunk of the destination.
        Reduce = "reduce",
        /// Effect of `Copy`. The transfers of a step with this action, the same source and the same
        /// chunks are one multicast: the source sends once, and switches send copies to all
        /// destinations.
        Multicast = "multicast",
        /// Effect of `Reduce`. The transfers of a step with this action, the same destination and
        /// the same chunks are one aggregation: switches add the chunks of all sources, and the
        /// destination receives one sum.
        Aggregate = "aggregate",
    }
}

impl Action {
    /// Returns the effect at the destination: `Copy` or `Reduce`.
    #[inline]
    pub const fn effect(self) -> Action {
        match self {
            Action::Copy | Action::Multicast => Action::Copy,
            Action::Reduce | Action::Aggregate => Action::Reduce,
        }
    }

    /// Returns whether the destination combines the chunk with its own chunk.
    #[inline]
    pub fn adds(self) -> bool {
        self.effect() == Action::Reduce
    }

    /// Returns whether switches carry out the transfer together with other transfers.
    #[inline]
    pub const fn is_in_network(self) -> bool {
        matches!(self, Action::Multicast | Action::Aggregate)
    }
}

/// Transmission of the chunks `chunk .. chunk + count` from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer {
    /// Index of the first chunk.
    pub chunk: u32,
    /// Number of chunks, at least 1.
    pub count: u32,
    /// Rank that sends.
    pub source: u32,
    /// Rank that receives.
    pub destination: u32,
    /// Effect at the destination.
    pub action: Action,
}

impl Transfer {
    /// Returns a transfer that copies a single chunk.
    pub const fn copy(chunk: u32, source: u32, destination: u32) -> Transfer {
        Transfer {
            chunk,
            count: 1,
            source,
            destination,
            action: Action::Copy,
        }
    }

    /// Returns a transfer that combines a single chunk with the chunk of its destination.
    pub const fn reduce(chunk: u32, source: u32, destination: u32) -> Transfer {
        Transfer {
            chunk,
            count: 1,
            source,
            destination,
            action: Action::Reduce,
        }
    }

    /// Returns a transfer between two ranks, each of which is responsible for a range of chunks:
    /// `kept(rank)` is (first chunk, number of chunks). A reduction carries the range of the
    /// destination, and a copy carries the range of the source.
    pub fn for_kept_chunks(
        action: Action,
        source: u32,
        destination: u32,
        kept: impl FnOnce(u32) -> (u32, u32),
    ) -> Transfer {
        let (chunk, count) = kept(if action.adds() { destination } else { source });
        Transfer {
            chunk,
            count,
            source,
            destination,
            action,
        }
    }
}

/// Claims about a schedule by the author of its algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// Number of steps that a paper prints or that its formula gives. Printed next to the number of
    /// slots, but not checked.
    pub paper_steps: Option<u64>,
    /// True if every transfer leads to a neighbour on the ring. Checked by the verifier.
    pub neighbours_only: bool,
    /// Number of steps of the schedule. Checked by the verifier.
    pub schedule_steps: Option<u32>,
    /// Greatest number of chunks that a rank sends. Checked by the verifier.
    pub chunks_sent_per_rank: Option<u64>,
}

/// Transfers of one collective, in steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Collective that the transfers execute.
    pub collective: Collective,
    /// Claims about the schedule.
    pub claims: Claims,
    /// Number of chunks when the schedule was created. Shifts are modulo this number.
    chunks: u32,
    /// Transfers of all steps that are stored in full.
    stored: Stored,
    /// Index of the first transfer of each step, indexed by step.
    step_starts: Vec<usize>,
    /// Place of the stored transfers of each step, indexed by step. Empty as long as no step
    /// repeats another, because each transfer is then stored at its own index.
    places: Vec<StoredStep>,
    /// Indices of the latest steps that are stored in full. The next step may repeat one of them.
    patterns: Vec<usize>,
    /// Number of transfers that are not stored, because their step repeats another.
    repeated: usize,
    /// Number of steps per transfer, times 2^64. Predicts the step of a transfer if steps have
    /// equal lengths. 0 as long as no step repeats another.
    steps_per_transfer: u64,
}

/// Place of the stored transfers of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoredStep {
    start: usize,
    /// Number that is added to the stored chunks, modulo the number of chunks.
    shift: u32,
}

/// Maximum memory of a transfer, in bytes, until it is in a plan. Counts its entry in the schedule,
/// an entry in a second schedule (reversed, or with single chunks), and its light.
const BYTES_PER_TRANSFER: u64 = 44;

/// Maximum number of stored steps with which the last step is compared.
const MAX_PATTERNS: usize = 8;

/// Minimum number of transfers of a step that is stored as a repetition. A shorter step needs less
/// memory than the entry of a repetition.
const MIN_REPEATED: usize = 2;

impl Schedule {
    /// Returns a schedule of `collective` without steps.
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

    /// Begins the next step, to which the following transfers are added.
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
        let repetition = self.patterns.iter().rev().find_map(|&pattern| {
            let pattern_range = self.stored_range(pattern);
            let shift =
                self.stored
                    .shift(pattern_range.clone(), last_range.clone(), self.chunks)?;
            Some(StoredStep {
                start: pattern_range.start,
                shift,
            })
        });
        let Some(stored_step) = repetition else {
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
        self.places[step] = stored_step;
        self.repeated += last_range.len();
        self.stored.truncate(last_range);
    }

    /// Adds a transfer to the last step. Begins step 0 if there are no steps.
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

    /// Returns whether the schedule has no transfers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of stored transfers, without repeated steps. The last step is stored.
    pub fn stored(&self) -> usize {
        self.stored.len()
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> usize {
        self.step_starts.len()
    }

    /// Returns the transfers of `step` as a range of indices.
    pub fn step(&self, step: usize) -> Range<usize> {
        let end = self
            .step_starts
            .get(step + 1)
            .copied()
            .unwrap_or(self.len());
        self.step_starts[step]..end
    }

    /// Returns the transfers of `step` in columns.
    pub fn columns(&self, step: usize) -> StepColumns<'_> {
        interrupt::check();
        let shift = self
            .places
            .get(step)
            .map_or(0, |stored_step| stored_step.shift);
        self.stored
            .columns(self.stored_range(step), shift, self.chunks)
    }

    /// Returns the range of indices at which the transfers of `step` are stored.
    fn stored_range(&self, step: usize) -> Range<usize> {
        let indices = self.step(step);
        let start = self
            .places
            .get(step)
            .map_or(indices.start, |stored_step| stored_step.start);
        start..start + indices.len()
    }

    /// Returns the step of the transfer `index`, or the last step if there is no such transfer.
    #[inline]
    fn step_of(&self, index: usize) -> usize {
        let steps = u128::from(self.steps_per_transfer) * u128::from(2 * index as u64 + 1);
        let guess = (steps >> 65) as usize;
        if let [start, end, ..] = self.step_starts[guess.min(self.steps() - 1)..]
            && (start..end).contains(&index)
        {
            return guess;
        }
        self.step_starts.partition_point(|&start| start <= index) - 1
    }

    /// Returns the place at which the transfer `index` is stored, and the shift of its chunk.
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

    /// Returns the transfer `index`.
    #[inline]
    pub fn transfer(&self, index: usize) -> Transfer {
        interrupt::check();
        let StoredStep { start, shift } = self.place_of(index);
        self.stored.transfer(start, shift, self.chunks)
    }

    /// Returns all transfers in the order of the schedule.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer> + '_ {
        (0..self.steps()).flat_map(|step| self.columns(step).transfers())
    }

    /// Returns the source and the destination of the transfer `index`.
    #[inline]
    pub fn ends(&self, index: usize) -> (u32, u32) {
        let StoredStep { start, .. } = self.place_of(index);
        (self.stored.source[start], self.stored.destination[start])
    }

    /// Returns whether switches add or multicast the chunks of some transfers.
    pub fn is_in_network(&self) -> bool {
        self.stored
            .action
            .iter()
            .any(|action| action.is_in_network())
    }

    /// Returns whether every transfer carries a single chunk.
    pub fn has_single_chunks(&self) -> bool {
        self.stored.count.iter().all(|&count| count == 1)
    }

    /// Returns the sum of the numbers of chunks of all transfers, at most 2^64 - 1.
    pub fn deliveries(&self) -> u64 {
        (0..self.steps())
            .flat_map(|step| self.columns(step).count())
            .fold(0u64, |sum, &count| sum.saturating_add(count.into()))
    }

    /// Returns the time-reversed schedule: steps in reverse order, with source and destination
    /// exchanged. `collective` is the collective of the result, and decides whether transfers copy
    /// or reduce. An all_gather, for example, becomes a reduce_scatter, and a multicast becomes an
    /// aggregation. The copies of a block form a tree whose root is the owner of the block. In
    /// reverse, this tree gathers the contribution of every rank exactly once. Claims about steps
    /// and neighbours are kept.
    pub fn reversed(&self, collective: Collective) -> Schedule {
        let reversed_action = |action: Action| match (collective.combines(), action) {
            (true, action) if action.is_in_network() => Action::Aggregate,
            (true, _) => Action::Reduce,
            (false, action) if action.is_in_network() => Action::Multicast,
            (false, _) => Action::Copy,
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
                    action: reversed_action(transfer.action),
                    ..transfer
                });
            }
        }
        reversed
    }

    /// Returns the schedule with a transfer for each chunk, in the order of chunks.
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

    /// Adapts this schedule, which has equal blocks, to the demand of `collective`. Each transfer
    /// of the result carries the chunks that its blocks have under the demand. Omits transfers and
    /// steps without chunks.
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

    /// Appends the steps of `other`. One chunk of `other` is `factor` chunks of this schedule.
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
