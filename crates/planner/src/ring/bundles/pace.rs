//! What slots take by what is on their lightpaths.

use super::trials::Volumes;
use crate::ring::slot_cost::SlotCost;
use opticoll_base::units::Bytes;

/// What slots take for blocks of a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) cost: SlotCost,
    pub(super) block: u64,
    pub(super) hops: u64,
    /// How often blocks go along the tree: in an all_reduce twice.
    pub(super) halves: u64,
}

impl Pace {
    /// A slot with so many pieces of blocks on a lightpath.
    fn slot(&self, volume: u32, pieces: u32) -> u64 {
        let bytes = self
            .block
            .saturating_mul(volume.into())
            .div_ceil(pieces.into());
        self.cost.slots(1, Bytes::new(bytes), self.hops)
    }

    /// The first slot, or the one in which both halves meet with so many blocks on a lightpath.
    fn first(&self, meeting: Option<u32>) -> u64 {
        self.slot(meeting.unwrap_or(1), 1)
    }

    /// Returns the time of a plan with such volumes after the first slot.
    pub(super) fn time(&self, pieces: u32, meeting: Option<u32>, volumes: &Volumes) -> u64 {
        let times = volumes.kinds().map(|(volume, slots)| {
            let slot = self.slot(volume, pieces);
            slot.saturating_mul(slots as u64)
        });
        let half = times.fold(0, u64::saturating_add);
        let halves = half.saturating_mul(self.halves);
        self.first(meeting).saturating_add(halves)
    }

    /// Of so many slots whose volumes have such a sum.
    pub(super) fn of_sum(&self, slots: usize, sum: f32) -> f64 {
        let empty = self.slot(0, 1);
        let block = self.slot(1, 1) - empty;
        slots as f64 * empty as f64 + f64::from(sum) * block as f64
    }

    /// The time of a frame, at least.
    pub(super) fn of_frame(&self, slots: usize, meeting: Option<u32>, least: f32) -> f64 {
        self.first(meeting) as f64 + self.halves as f64 * self.of_sum(slots - 1, least)
    }
}
