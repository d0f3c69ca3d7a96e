//! The small delays of terminals and routers: fixed, or drawn.

use super::{Overheads, Spread};
use crate::hash::hash;

/// The overheads in picoseconds, with a source of draws where they are wanted.
pub(super) struct Delays {
    overheads: Overheads,
    fixed: [u64; 4],
    /// Seed and number of draws.
    jitter: Option<(u64, u64)>,
}

impl Delays {
    pub(super) fn new(overheads: Overheads, jitter: Option<u64>) -> Delays {
        let middle = |spread: Spread| spread.least.ps() + spread.range.ps() / 2;
        let Overheads {
            handover,
            send,
            notice,
            credit,
            ..
        } = overheads;
        Delays {
            overheads,
            fixed: [handover, send, notice, credit].map(middle),
            jitter: jitter.map(|seed| (seed, 0)),
        }
    }

    pub(super) fn sequencing(&self) -> u64 {
        self.overheads.sequencing.ps()
    }

    #[inline]
    pub(super) fn handover(&mut self) -> u64 {
        self.delay(0, self.overheads.handover)
    }

    #[inline]
    pub(super) fn send(&mut self) -> u64 {
        self.delay(1, self.overheads.send)
    }

    #[inline]
    pub(super) fn notice(&mut self) -> u64 {
        self.delay(2, self.overheads.notice)
    }

    #[inline]
    pub(super) fn credit(&mut self) -> u64 {
        self.delay(3, self.overheads.credit)
    }

    #[inline]
    fn delay(&mut self, which: usize, spread: Spread) -> u64 {
        let Some((seed, draws)) = &mut self.jitter else {
            return self.fixed[which];
        };
        *draws += 1;
        let draw = u128::from(hash(seed.wrapping_add(*draws)));
        spread.least.ps() + ((draw * u128::from(spread.range.ps())) >> 64) as u64
    }
}
