//! The fold that lets an algorithm for powers of two run on any number of ranks.
//!
//! Let P be the largest power of two up to N. Of the first 2(N - P) ranks each even one hands its
//! data to the odd one after it and waits; P ranks exchange; at the end the waiting ranks get the
//! result. Two steps more, where N is no power of two.

use std::ops::Range;

/// The ranks that exchange, and those that hand their data over first.
pub(super) struct Fold {
    pub(super) ranks: u32,
    /// The largest power of two up to `ranks`.
    pub(super) core: u32,
    /// Pairs (2i, 2i + 1), i < folded: the even rank waits, the odd one stands for both.
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

    /// The rank with an index among those that exchange.
    pub(super) fn rank(&self, index: u32) -> u32 {
        if index < self.folded {
            2 * index + 1
        } else {
            index + self.folded
        }
    }

    /// The ranks whose data those with the indices `index .. index + count` stand for.
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

    /// The ranks that wait, each with the one that stands for it.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.folded).map(|pair| (2 * pair, 2 * pair + 1))
    }

    /// The distances 1, 2, 4, ... up to half of those that exchange.
    pub(super) fn distances(&self) -> impl DoubleEndedIterator<Item = u32> {
        (0..self.core.ilog2()).map(|bit| 1 << bit)
    }

    /// 1 where there are ranks that wait, else 0.
    pub(super) fn waits(&self) -> u32 {
        u32::from(self.folded > 0)
    }
}
