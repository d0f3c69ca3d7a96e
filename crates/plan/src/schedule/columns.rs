//! Columns in which transfers are stored, and a view of the columns of a step.

use std::ops::Range;

use super::{Action, Transfer};

/// Transfers in columns, with one entry per transfer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stored {
    pub(super) chunk: Vec<u32>,
    pub(super) count: Vec<u32>,
    pub(super) source: Vec<u32>,
    pub(super) destination: Vec<u32>,
    pub(super) action: Vec<Action>,
}

impl Stored {
    pub(super) fn len(&self) -> usize {
        self.chunk.len()
    }

    pub(super) fn reserve(&mut self, transfers: usize) {
        self.chunk.reserve_exact(transfers);
        self.count.reserve_exact(transfers);
        self.source.reserve_exact(transfers);
        self.destination.reserve_exact(transfers);
        self.action.reserve_exact(transfers);
    }

    pub(super) fn push(&mut self, transfer: Transfer) {
        self.chunk.push(transfer.chunk);
        self.count.push(transfer.count);
        self.source.push(transfer.source);
        self.destination.push(transfer.destination);
        self.action.push(transfer.action);
    }

    /// Removes the transfers of the range `last`, and frees memory if less than half of it is used.
    pub(super) fn truncate(&mut self, last: Range<usize>) {
        let (length, previous_length) = (last.start, last.end);
        self.chunk.truncate(length);
        self.count.truncate(length);
        self.source.truncate(length);
        self.destination.truncate(length);
        self.action.truncate(length);
        if self.chunk.capacity() / 2 > previous_length {
            self.chunk.shrink_to(previous_length);
            self.count.shrink_to(previous_length);
            self.source.shrink_to(previous_length);
            self.destination.shrink_to(previous_length);
            self.action.shrink_to(previous_length);
        }
    }

    /// Returns the transfer stored at `index`, with `shift` added to its chunk modulo `chunks`.
    #[inline]
    pub(super) fn transfer(&self, index: usize, shift: u32, chunks: u32) -> Transfer {
        Transfer {
            chunk: ChunkShift::new(shift, chunks).of(self.chunk[index]),
            count: self.count[index],
            source: self.source[index],
            destination: self.destination[index],
            action: self.action[index],
        }
    }

    /// Returns the transfers stored in `range`, with `shift` added to their chunks modulo `chunks`.
    pub(super) fn columns(&self, range: Range<usize>, shift: u32, chunks: u32) -> StepColumns<'_> {
        StepColumns {
            chunk: &self.chunk[range.clone()],
            count: &self.count[range.clone()],
            source: &self.source[range.clone()],
            destination: &self.destination[range.clone()],
            action: &self.action[range],
            shift: ChunkShift::new(shift, chunks),
        }
    }

    /// Returns the number to add, modulo `chunks`, to the chunks of the transfers in `pattern` to
    /// get the transfers in `own`. `None` if there is no such number.
    pub(super) fn shift(
        &self,
        pattern: Range<usize>,
        own: Range<usize>,
        chunks: u32,
    ) -> Option<u32> {
        let (first, other) = (own.start, pattern.start);
        if own.len() != pattern.len()
            || self.source[first] != self.source[other]
            || self.destination[first] != self.destination[other]
        {
            return None;
        }
        let (to, from) = (self.chunk[first], self.chunk[other]);
        let by = match to >= from {
            true => to - from,
            false => to.wrapping_add(chunks.wrapping_sub(from)),
        };
        if by >= chunks {
            return None;
        }
        let shift = ChunkShift::new(by, chunks);
        let of = |range: &Range<usize>| range.clone();
        let equal = self.source[of(&own)] == self.source[of(&pattern)]
            && self.destination[of(&own)] == self.destination[of(&pattern)]
            && self.count[of(&own)] == self.count[of(&pattern)]
            && self.action[of(&own)] == self.action[of(&pattern)]
            && self.chunk[own]
                .iter()
                .zip(&self.chunk[pattern])
                .all(|(&chunk, &base)| chunk == shift.of(base));
        equal.then_some(by)
    }
}

/// Addition of `by` to indices of chunks, modulo the number of chunks. If `by` is 0, indices of
/// chunks that do not exist stay unchanged.
#[derive(Debug, Clone, Copy)]
struct ChunkShift {
    by: u32,
    /// Greatest chunk whose sum with `by` stays below the number of chunks.
    last: u32,
}

impl ChunkShift {
    /// Returns the addition of `by`, which must be 0 or below `chunks`.
    fn new(by: u32, chunks: u32) -> ChunkShift {
        let last = match by {
            0 => u32::MAX,
            _ => chunks - 1 - by,
        };
        ChunkShift { by, last }
    }

    #[inline]
    fn of(self, chunk: u32) -> u32 {
        if chunk <= self.last {
            chunk + self.by
        } else {
            chunk - self.last - 1
        }
    }
}

/// Transfers of a step, in columns with one entry per transfer.
#[derive(Debug, Clone, Copy)]
pub struct StepColumns<'a> {
    chunk: &'a [u32],
    count: &'a [u32],
    source: &'a [u32],
    destination: &'a [u32],
    action: &'a [Action],
    shift: ChunkShift,
}

impl<'a> StepColumns<'a> {
    /// Returns the number of transfers of the step.
    pub fn len(&self) -> usize {
        self.count.len()
    }

    /// Returns whether the step has no transfers.
    pub fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// Returns the first chunk of each transfer, in the order of the step.
    pub fn chunks(self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        let shift = self.shift;
        self.chunk.iter().map(move |&chunk| shift.of(chunk))
    }

    /// Returns the first chunk of the transfer at position `index` of the step.
    #[inline]
    pub fn chunk(&self, index: usize) -> u32 {
        self.shift.of(self.chunk[index])
    }

    /// Returns the number of chunks of each transfer, in the order of the step.
    pub fn count(&self) -> &'a [u32] {
        self.count
    }

    /// Returns the source of each transfer, in the order of the step.
    pub fn source(&self) -> &'a [u32] {
        self.source
    }

    /// Returns the destination of each transfer, in the order of the step.
    pub fn destination(&self) -> &'a [u32] {
        self.destination
    }

    /// Returns the action of each transfer, in the order of the step.
    pub fn action(&self) -> &'a [Action] {
        self.action
    }

    /// Returns the source and the destination of each transfer, in the order of the step.
    pub fn ends(self) -> impl ExactSizeIterator<Item = (u32, u32)> + Clone + 'a {
        let ends = self.source.iter().zip(self.destination);
        ends.map(|(&source, &destination)| (source, destination))
    }

    /// Returns all transfers of the step in order.
    pub fn transfers(self) -> impl ExactSizeIterator<Item = Transfer> + Clone + 'a {
        let ends = self.source.iter().zip(self.destination);
        let amounts = self.count.iter().zip(self.action);
        let columns = self.chunks().zip(ends).zip(amounts);
        columns.map(
            |((chunk, (&source, &destination)), (&count, &action))| Transfer {
                chunk,
                count,
                source,
                destination,
                action,
            },
        )
    }
}
