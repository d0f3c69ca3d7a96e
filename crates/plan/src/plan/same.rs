//! Equality of plans, regardless of the order of transfers and of repetition.
//!
//! The transfers of a step have no order: data are checked step by step, and light slot by slot.
//! Two plans are therefore equal if they have the same fabric, collective, claims, algorithm, size
//! and slots, and if each step has the same transfers on the same light in the same slots, in any
//! order. A plan with repetition equals its expanded plan.

use super::{Lightpath, Plan};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Light;

/// Lightpath with its relays and its route: (lightpath, (rank, light, slot) of each relay, links of
/// the named route).
type Routed<'a> = (Lightpath, Vec<(u32, Light, u32)>, Option<&'a [u32]>);

impl Plan {
    /// Returns whether both plans are equal, regardless of order and repetition.
    pub fn is_same(&self, other: &Plan) -> bool {
        match self == other {
            true => true,
            false if self.transfers() != other.transfers() => false,
            false if self.repetition == other.repetition => same(self, other),
            false => same(&self.expanded(), &other.expanded()),
        }
    }
}

fn same(one: &Plan, other: &Plan) -> bool {
    let steps = one.schedule.steps();
    one.fabric == other.fabric
        && one.algorithm == other.algorithm
        && one.size == other.size
        && one.step_slots == other.step_slots
        && one.schedule.collective == other.schedule.collective
        && one.schedule.claims == other.schedule.claims
        && steps == other.schedule.steps()
        && (0..steps).all(|step| sorted(one, step) == sorted(other, step))
}

fn sorted(plan: &Plan, step: usize) -> Vec<Routed<'_>> {
    interrupt::check();
    let routed = |transfer: usize| {
        let relays = plan.relays_of(transfer).iter();
        (
            plan.lightpath(transfer),
            relays.map(|one| (one.rank, one.light, one.slot)).collect(),
            plan.routes.of(transfer),
        )
    };
    let mut transfers: Vec<Routed<'_>> = plan.schedule.step(step).map(routed).collect();
    transfers.sort_unstable();
    transfers
}
