//! Folding: runs an algorithm for a power of two of ranks on any number of ranks.
//!
//! Let P be the largest power of two that is at most N. The first 2 (N - P) ranks form pairs: each
//! even rank sends its data to the odd rank after it and then waits. The other P ranks exchange. At
//! the end the odd ranks send the result to the waiting ranks. Unless N is a power of two, folding
//! adds two steps.

use std::ops::Range;

/// Division of the ranks into P ranks that exchange and N - P ranks that wait. The ranks that
/// exchange have an index from 0 to P - 1.
pub(super) struct Fold {
    pub(super) ranks: u32,
    /// Number of ranks that exchange, P.
    pub(super) core: u32,
    /// Number of waiting ranks. For i < `waiting`, rank 2 i waits and rank 2 i + 1 represents both.
    pub(super) waiting: u32,
}

impl Fold {
    pub(super) fn new(ranks: u32) -> Fold {
        let core = 1 << ranks.ilog2();
        Fold {
            ranks,
            core,
            waiting: ranks - core,
        }
    }

    /// Returns the rank with index `index` among the ranks that exchange.
    pub(super) fn rank(&self, index: u32) -> u32 {
        if index < self.waiting {
            2 * index + 1
        } else {
            index + self.waiting
        }
    }

    /// Returns the ranks for which the ranks with the indices `index .. index + count` exchange:
    /// these ranks themselves, and the waiting ranks that they represent.
    pub(super) fn covered(&self, index: u32, count: u32) -> Range<u32> {
        let start = |index: u32| {
            if index < self.waiting {
                2 * index
            } else {
                index + self.waiting
            }
        };
        start(index)..start(index + count).min(self.ranks)
    }

    /// Returns the pairs (waiting rank, rank that represents it).
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.waiting).map(|pair| (2 * pair, 2 * pair + 1))
    }

    /// Returns the distances 1, 2, 4, ..., P / 2 between the indices of partners.
    pub(super) fn distances(&self) -> impl DoubleEndedIterator<Item = u32> {
        (0..self.core.ilog2()).map(|bit| 1 << bit)
    }

    /// Returns 1 if there are waiting ranks, otherwise 0.
    pub(super) fn waits(&self) -> u32 {
        u32::from(self.waiting > 0)
    }
}
