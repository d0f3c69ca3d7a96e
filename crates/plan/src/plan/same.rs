//! Equality of plans, whatever their order and form.
//!
//! Transfers of a step have no order: data is checked step by step, light slot by slot. So two
//! plans are equal if they have the same fabric, collective, claims, algorithm, size and slots, and
//! each step has the same transfers on the same light in the same slots, in any order. A plan whose
//! rows repeat equals its expanded plan.

use super::{Lightpath, Plan};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Light;

/// Lightpath with rank, light and slot of its relays, and the links that the plan names for it.
type Routed<'a> = (Lightpath, Vec<(u32, Light, u32)>, Option<&'a [u32]>);

impl Plan {
    /// Returns whether the plans are equal, whatever their order and form.
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

/// Returns the transfers of a step in a canonical order.
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
