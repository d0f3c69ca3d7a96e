//! Folding: lets an algorithm for powers of two run on any number of ranks.
//!
//! Let P be the largest power of two up to N. Among the first 2 (N - P) ranks, each even rank hands
//! its data to the odd rank after it and waits; P ranks exchange; at the end the waiting ranks get
//! the result. This adds two steps unless N is a power of two.

use std::ops::Range;

/// The ranks that exchange, and the ranks that hand their data over first.
pub(super) struct Fold {
    pub(super) ranks: u32,
    /// Largest power of two up to `ranks`.
    pub(super) core: u32,
    /// Number of pairs (2 i, 2 i + 1), i < folded: the even rank waits, the odd rank represents
    /// both.
    pub(super) folded: u32,
}

impl Fold {
    pub(super) fn new(ranks: u32) -> Fold {
        let core = 1 << ranks.ilog2();
        Fold {
            ranks,
            core,
            folded: ranks - core,
        }
    }

    /// Returns the rank with an index among the ranks that exchange.
    pub(super) fn rank(&self, index: u32) -> u32 {
        if index < self.folded {
            2 * index + 1
        } else {
            index + self.folded
        }
    }

    /// Returns the ranks represented by the indices `index .. index + count`.
    pub(super) fn covered(&self, index: u32, count: u32) -> Range<u32> {
        let start = |index: u32| {
            if index < self.folded {
                2 * index
            } else {
                index + self.folded
            }
        };
        start(index)..start(index + count).min(self.ranks)
    }

    /// Returns the waiting ranks, each with its representative.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.folded).map(|pair| (2 * pair, 2 * pair + 1))
    }

    /// Returns the distances 1, 2, 4, ... up to half of the ranks that exchange.
    pub(super) fn distances(&self) -> impl DoubleEndedIterator<Item = u32> {
        (0..self.core.ilog2()).map(|bit| 1 << bit)
    }

    /// Returns 1 if there are waiting ranks, otherwise 0.
    pub(super) fn waits(&self) -> u32 {
        u32::from(self.folded > 0)
    }
}
