//! Estimated time of slots, given the number of pieces on a lightpath (the *volume* of a slot).

use crate::ring::slot_cost::SlotCost;
use opticoll_base::units::Bytes;

/// Volumes of the slots after the first slot. A volume is the maximum number of pieces on a
/// lightpath. The slots of the lower volume come first, then the slots of the higher volume, and
/// then one slot of volume `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Volumes {
    /// Lower volume, in pieces per lightpath, and the number of slots with this volume.
    pub(super) low: (u32, usize),
    /// Higher volume, in pieces per lightpath, and the number of slots with this volume.
    pub(super) high: (u32, usize),
    /// Volume of the last slot, in pieces per lightpath.
    pub(super) last: u32,
}

impl Volumes {
    /// Returns the runs of slots with equal volumes. Each entry is the volume in pieces per
    /// lightpath, and the number of slots.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u32, usize)> + Clone {
        let runs = [self.low, self.high, (self.last, 1)];
        runs.into_iter().filter(|(_, slots)| *slots > 0)
    }

    /// Returns the volume of each slot after the first slot, in pieces per lightpath.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        let slots = |(volume, slots)| std::iter::repeat_n(volume, slots);
        self.runs().flat_map(slots)
    }

    /// Returns the sum of the volumes of all slots after the first slot, in pieces per lightpath.
    pub(super) fn sum(&self) -> u32 {
        let sums = self.runs().map(|(volume, slots)| volume * slots as u32);
        sums.sum()
    }

    /// Returns the largest volume minus the smallest volume, in pieces per lightpath.
    pub(super) fn range(&self) -> u32 {
        let volumes = self.runs().map(|(volume, _)| volume);
        let smallest = volumes.clone().min().unwrap_or(0);
        volumes.max().unwrap_or(0) - smallest
    }
}

/// Time model of slots, for blocks of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeModel {
    pub(super) cost: SlotCost,
    /// Number of bytes of a block.
    pub(super) block: u64,
    /// Number of links of the longest lightpath of a slot.
    pub(super) hops: u64,
    /// Number of times that the plan uses the tree: 2 for an all_reduce (for sums and for results),
    /// 1 for other collectives.
    pub(super) passes: u64,
}

impl TimeModel {
    /// Returns the time of a slot in picoseconds. A lightpath carries `volume` pieces, and a block
    /// has `pieces` pieces.
    fn slot(&self, volume: u32, pieces: u32) -> u64 {
        let bytes = self
            .block
            .saturating_mul(volume.into())
            .div_ceil(pieces.into());
        self.cost.slots(1, Bytes::new(bytes), self.hops)
    }

    /// Returns the time of the first slot in picoseconds. If roots exchange sums, a lightpath of
    /// the slot carries up to `exchange` blocks, otherwise one block.
    fn first_slot(&self, exchange: Option<u32>) -> u64 {
        self.slot(exchange.unwrap_or(1), 1)
    }

    /// Returns the time of a plan in picoseconds. A block has `pieces` pieces. If roots exchange
    /// sums, a lightpath carries up to `exchange` blocks in the first slot.
    pub(super) fn time(&self, pieces: u32, exchange: Option<u32>, volumes: &Volumes) -> u64 {
        let run_times = volumes.runs().map(|(volume, slots)| {
            let slot = self.slot(volume, pieces);
            slot.saturating_mul(slots as u64)
        });
        let pass = run_times.fold(0, u64::saturating_add);
        let passes = pass.saturating_mul(self.passes);
        self.first_slot(exchange).saturating_add(passes)
    }

    /// Returns the total time of `slots` slots in picoseconds. `blocks` is the sum of the volumes
    /// of these slots. (A volume is here the number of blocks on a lightpath.)
    pub(super) fn time_of_slots(&self, slots: usize, blocks: f32) -> f64 {
        let empty = self.slot(0, 1);
        let block = self.slot(1, 1) - empty;
        slots as f64 * empty as f64 + f64::from(blocks) * block as f64
    }

    /// Returns a lower bound on the time of a plan with `slots` slots, in picoseconds. `min_blocks`
    /// is a lower bound on the sum of the volumes of all slots after the first slot. (A volume is
    /// here the number of blocks on a lightpath.) If roots exchange sums, a lightpath carries up to
    /// `exchange` blocks in the first slot.
    pub(super) fn min_time_of_class(
        &self,
        slots: usize,
        exchange: Option<u32>,
        min_blocks: f32,
    ) -> f64 {
        self.first_slot(exchange) as f64
            + self.passes as f64 * self.time_of_slots(slots - 1, min_blocks)
    }
}
