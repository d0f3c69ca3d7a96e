//! Estimated time of slots, given the number of pieces on their lightpaths.

use crate::ring::slot_cost::SlotCost;
use opticoll_base::units::Bytes;

/// Volumes of the slots after the first, in pieces: small ones, then large ones, then that of the
/// last slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Volumes {
    /// Volume of the first of these slots, and their number.
    pub(super) few: (u32, usize),
    /// Volume of the following slots, and their number.
    pub(super) many: (u32, usize),
    /// Volume of the last slot.
    pub(super) last: u32,
}

impl Volumes {
    /// Returns the distinct runs of slots: each volume with the number of its slots.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (u32, usize)> + Clone {
        let kinds = [self.few, self.many, (self.last, 1)];
        kinds.into_iter().filter(|(_, slots)| *slots > 0)
    }

    /// Returns the volume of each slot.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        let slots = |(volume, slots)| std::iter::repeat_n(volume, slots);
        self.kinds().flat_map(slots)
    }

    /// Returns the sum of the volumes of all slots.
    pub(super) fn sum(&self) -> u32 {
        let sums = self.kinds().map(|(volume, slots)| volume * slots as u32);
        sums.sum()
    }

    /// Returns the difference between the largest and the smallest volume.
    pub(super) fn spread(&self) -> u32 {
        let volumes = self.kinds().map(|(volume, _)| volume);
        let smallest = volumes.clone().min().unwrap_or(0);
        volumes.max().unwrap_or(0) - smallest
    }
}

/// Cost of slots for one size of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeModel {
    pub(super) cost: SlotCost,
    /// Bytes of a block.
    pub(super) block: u64,
    /// Hops of the longest lightpath of a slot.
    pub(super) hops: u64,
    /// Number of passes of the blocks through the tree: 2 for an all_reduce, otherwise 1.
    pub(super) halves: u64,
}

impl TimeModel {
    /// Returns the time in picoseconds of a slot with `volume` pieces on a lightpath, where a block
    /// has `pieces` pieces.
    fn slot(&self, volume: u32, pieces: u32) -> u64 {
        let bytes = self
            .block
            .saturating_mul(volume.into())
            .div_ceil(pieces.into());
        self.cost.slots(1, Bytes::new(bytes), self.hops)
    }

    /// Returns the time in picoseconds of the first slot, or of the meeting with `exchange` blocks
    /// on a lightpath.
    fn first(&self, meeting: Option<u32>) -> u64 {
        self.slot(meeting.unwrap_or(1), 1)
    }

    /// Returns the time in picoseconds of a plan with these volumes after the first slot.
    pub(super) fn time(&self, pieces: u32, meeting: Option<u32>, volumes: &Volumes) -> u64 {
        let times = volumes.kinds().map(|(volume, slots)| {
            let slot = self.slot(volume, pieces);
            slot.saturating_mul(slots as u64)
        });
        let half = times.fold(0, u64::saturating_add);
        let both_halves = half.saturating_mul(self.halves);
        self.first(meeting).saturating_add(both_halves)
    }

    /// Returns the time in picoseconds of `slots` slots whose volumes have the sum `blocks`, in
    /// blocks.
    pub(super) fn time_of_slots(&self, slots: usize, blocks: f32) -> f64 {
        let empty = self.slot(0, 1);
        let block = self.slot(1, 1) - empty;
        slots as f64 * empty as f64 + f64::from(blocks) * block as f64
    }

    /// Returns a lower bound on the time, in picoseconds, of the recipes of a class with `slots`
    /// slots, a meeting, and volumes whose sum after the first slot is at least `min_blocks`
    /// blocks.
    pub(super) fn min_time_of_class(
        &self,
        slots: usize,
        meeting: Option<u32>,
        min_blocks: f32,
    ) -> f64 {
        self.first(meeting) as f64 + self.halves as f64 * self.time_of_slots(slots - 1, min_blocks)
    }
}
