//! What moves: transfers in steps. A step's transfers run side by side; a later step may use what
//! an earlier one delivered.
//!
//! A schedule is kept in columns, one entry per transfer, so that millions of transfers stay
//! small. It says nothing of routes, wavelengths or time.
//!
//! ```
//! use opticoll::collective::{Collective, CollectiveKind};
//! use opticoll::schedule::{Schedule, Transfer};
//! let mut schedule = Schedule::new(Collective::new(CollectiveKind::AllGather, 2)?);
//! schedule.begin_step();
//! schedule.push(Transfer::copy(0, 0, 1));
//! schedule.push(Transfer::copy(1, 1, 0));
//! assert_eq!((schedule.steps(), schedule.len()), (1, 2));
//! # Ok::<(), opticoll::collective::CollectiveError>(())
//! ```

use std::ops::Range;

use crate::collective::Collective;

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
}

/// What the algorithm's author claims of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// The number of steps that the paper prints or its formula gives. Printed beside what the
    /// schedule really needs, never enforced.
    pub paper_steps: Option<u64>,
    /// The share of the collective's size that the paper charges to each step, as a fraction
    /// (numerator, denominator): (1, 1) for a whole block or vector, (1, N) for a ring all-reduce.
    pub paper_step_share: Option<(u32, u32)>,
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
    chunk: Vec<u32>,
    count: Vec<u32>,
    source: Vec<u32>,
    destination: Vec<u32>,
    action: Vec<Action>,
    step_starts: Vec<usize>,
}

impl Schedule {
    /// A schedule without steps.
    pub fn new(collective: Collective) -> Schedule {
        Schedule {
            collective,
            claims: Claims::default(),
            chunk: Vec::new(),
            count: Vec::new(),
            source: Vec::new(),
            destination: Vec::new(),
            action: Vec::new(),
            step_starts: Vec::new(),
        }
    }

    /// Makes room for `transfers` more transfers.
    pub fn reserve(&mut self, transfers: usize) {
        self.chunk.reserve_exact(transfers);
        self.count.reserve_exact(transfers);
        self.source.reserve_exact(transfers);
        self.destination.reserve_exact(transfers);
        self.action.reserve_exact(transfers);
    }

    /// Opens the next step; transfers pushed from here on belong to it.
    pub fn begin_step(&mut self) {
        self.step_starts.push(self.chunk.len());
    }

    /// Adds a transfer to the open step (the first push opens step 0).
    pub fn push(&mut self, transfer: Transfer) {
        if self.step_starts.is_empty() {
            self.begin_step();
        }
        self.chunk.push(transfer.chunk);
        self.count.push(transfer.count);
        self.source.push(transfer.source);
        self.destination.push(transfer.destination);
        self.action.push(transfer.action);
    }

    /// The number of transfers.
    pub fn len(&self) -> usize {
        self.chunk.len()
    }

    /// Whether there are no transfers.
    pub fn is_empty(&self) -> bool {
        self.chunk.is_empty()
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

    /// The transfer with an index.
    pub fn transfer(&self, index: usize) -> Transfer {
        Transfer {
            chunk: self.chunk[index],
            count: self.count[index],
            source: self.source[index],
            destination: self.destination[index],
            action: self.action[index],
        }
    }

    /// All transfers in order.
    pub fn transfers(&self) -> impl Iterator<Item = Transfer> + '_ {
        (0..self.len()).map(|index| self.transfer(index))
    }

    /// Column: first chunk of each transfer.
    pub fn chunk(&self) -> &[u32] {
        &self.chunk
    }

    /// Column: number of chunks of each transfer.
    pub fn count(&self) -> &[u32] {
        &self.count
    }

    /// Column: sending rank of each transfer.
    pub fn source(&self) -> &[u32] {
        &self.source
    }

    /// Column: receiving rank of each transfer.
    pub fn destination(&self) -> &[u32] {
        &self.destination
    }

    /// Column: action of each transfer.
    pub fn action(&self) -> &[Action] {
        &self.action
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
            for index in self.step(step) {
                let transfer = self.transfer(index);
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
        if self.count.iter().all(|&count| count == 1) {
            return self;
        }
        let mut single = Schedule::new(self.collective);
        single.reserve(self.count.iter().map(|&count| count as usize).sum());
        for step in 0..self.steps() {
            single.begin_step();
            for index in self.step(step) {
                let transfer = self.transfer(index);
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

    /// Appends the steps of another schedule of the same collective.
    pub fn append(&mut self, other: &Schedule) {
        self.reserve(other.len());
        for step in 0..other.steps() {
            self.begin_step();
            for index in other.step(step) {
                self.push(other.transfer(index));
            }
        }
    }
}
