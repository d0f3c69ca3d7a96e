//! Plans in which chunk after chunk goes the same way: what happens to the first chunks, standing for all.
//!
//! The *first chunks* are one of each stream. Chunk c of them has P *pieces*, one behind the other, on each of K *stripes*, which
//! are channels side by side: the copy for stripe k and piece p carries the chunk c + k P + p, in the slot p slots later, on the
//! channel k further on. Each step of the schedule is one slot. As soon as the pieces are more than the slots of the first ones,
//! all circuits are up together, so that none of them may be in the way of another (the verifier sees to that in any case).
//!
//! A chain that passes a vector on from rank to rank, in P pieces on each of 2c channels, has 2 (N - 1) lightpaths of this form
//! in place of 2 c P (N - 1).

use std::ops::Range;

use super::{Lightpath, Plan};
use crate::fabric::Light;
use crate::interrupt;
use crate::memory;
use crate::schedule::Transfer;

/// A plan of P pieces on K stripes that all move alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelinedPlan {
    /// The lightpaths of the first chunks, in the order of their slots; fabric, collective, claims, steps and slots are
    /// those of the whole.
    pub first: Plan,
    /// K.
    pub stripes: u32,
    /// P.
    pub pieces: u32,
}

/// What a lightpath takes while a plan is written out, in bytes.
const BYTES_WRITTEN_OUT: u64 = 25;

impl PipelinedPlan {
    /// The plan whose first chunks move as in `first`, which has a slot for each of its steps.
    pub fn new(mut first: Plan, stripes: u32, pieces: u32) -> PipelinedPlan {
        let slots = first.slots() + pieces - 1;
        first.step_slots = (0..slots).map(|slot| slot..slot + 1).collect();
        while first.schedule.steps() < slots as usize {
            first.schedule.begin_step();
        }
        if let Some(steps) = &mut first.schedule.claims.schedule_steps {
            *steps = slots;
        }
        PipelinedPlan {
            first,
            stripes,
            pieces,
        }
    }

    /// How many lightpaths each of the first ones stands for.
    pub fn copies(&self) -> u64 {
        u64::from(self.stripes) * u64::from(self.pieces)
    }

    /// The copy of a first lightpath for a piece on a stripe.
    pub fn copy(&self, first: usize, stripe: u32, piece: u32) -> Lightpath {
        let lightpath = self.first.lightpath(first);
        let behind = u64::from(stripe) * u64::from(self.pieces) + u64::from(piece);
        let chunk = u64::from(lightpath.transfer.chunk) + behind;
        Lightpath {
            slot: lightpath.slot.saturating_add(piece),
            light: self.beside(lightpath.light, stripe),
            transfer: Transfer {
                chunk: u32::try_from(chunk).unwrap_or(u32::MAX),
                ..lightpath.transfer
            },
        }
    }

    fn beside(&self, light: Light, stripe: u32) -> Light {
        let channels = self.first.fabric.numbered_channels();
        channels.map_or(light, |channels| channels.further(light, stripe))
    }

    /// The first lightpaths of which a piece is under way in a slot.
    pub fn under_way(&self, slot: u32) -> Range<usize> {
        let own = &self.first.slot;
        let end = own.partition_point(|&first| first <= slot);
        let start = own
            .partition_point(|&first| u64::from(first) + u64::from(self.pieces) <= u64::from(slot));
        start.min(end)..end
    }

    /// How many lightpaths of the whole plan are in slots before this one.
    pub fn before(&self, slot: u32) -> u64 {
        let pieces = |first: &u32| u64::from(slot.saturating_sub(*first).min(self.pieces));
        let sent: u64 = self.first.slot.iter().map(pieces).sum();
        sent * u64::from(self.stripes)
    }

    /// The index in the whole plan of a copy: slot by slot, in each by first lightpath and then by stripe.
    pub fn index(&self, first: usize, stripe: u32, piece: u32) -> u64 {
        let slot = self.first.slot[first] + piece;
        let place = (first - self.under_way(slot).start) as u64;
        self.before(slot) + place * u64::from(self.stripes) + u64::from(stripe)
    }

    /// The lightpath with an index below the number of all.
    pub(super) fn lightpath(&self, index: u64) -> Lightpath {
        let (mut slot, mut above) = (0, self.first.slots());
        while above - slot > 1 {
            let middle = slot + (above - slot) / 2;
            match self.before(middle) <= index {
                true => slot = middle,
                false => above = middle,
            }
        }
        self.of_slot_at(slot, index - self.before(slot))
    }

    fn of_slot_at(&self, slot: u32, place: u64) -> Lightpath {
        let stripes = u64::from(self.stripes);
        let first = self.under_way(slot).start + (place / stripes) as usize;
        self.copy(
            first,
            (place % stripes) as u32,
            slot - self.first.slot[first],
        )
    }

    /// The lightpaths of a slot, in the order of the whole plan.
    pub fn of_slot(&self, slot: u32) -> impl Iterator<Item = Lightpath> + '_ {
        let count = self.under_way(slot).len() as u64 * u64::from(self.stripes);
        (0..count).map(move |place| self.of_slot_at(slot, place))
    }

    /// The whole plan. Where that does not fit into memory, the work stops (see [`memory::take`]).
    pub fn unfold(&self) -> Plan {
        let lightpaths = self.first.len() as u64 * self.copies();
        let bytes = lightpaths.saturating_mul(BYTES_WRITTEN_OUT);
        memory::take("writing out every transfer of this plan", bytes);
        let mut plan = self.first.without_lightpaths();
        plan.reserve(lightpaths as usize);
        for slot in 0..self.first.slots() {
            plan.schedule.begin_step();
            for lightpath in self.of_slot(slot) {
                interrupt::check();
                plan.push(lightpath);
            }
        }
        plan
    }
}
