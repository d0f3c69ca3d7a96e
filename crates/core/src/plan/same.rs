//! Whether two plans say the same.
//!
//! Transfers of a step have no order: data is checked step by step, light slot by slot. So two plans are the same if
//! they have the same fabric, collective, claims, algorithm, size and slots, and each step has the same transfers on the
//! same light in the same slots, in whatever order they are stored. A plan of symmetric form is the same as the whole one.

use super::{AnyPlan, Lightpath, Plan, PlanRef};
use crate::fabric::Light;
use crate::interrupt;

/// A transfer with what relays it: rank, light and slot of each; and the links that the plan names for it.
type Routed<'a> = (Lightpath, Vec<(u32, Light, u32)>, Option<&'a [u32]>);

impl AnyPlan {
    /// Whether the plans say the same, however they are stored.
    pub fn is_same(&self, other: &AnyPlan) -> bool {
        match (self, other) {
            _ if self == other => true,
            _ if self.transfers() != other.transfers() => false,
            (AnyPlan::Folded(one), AnyPlan::Folded(other)) => same(&one.orbits, &other.orbits),
            (AnyPlan::Pipelined(one), AnyPlan::Pipelined(other))
                if (one.stripes, one.pieces) == (other.stripes, other.pieces) =>
            {
                same(&one.first, &other.first)
            }
            _ => same(
                &PlanRef::from(self).unfold(),
                &PlanRef::from(other).unfold(),
            ),
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

/// The transfers of a step in one order.
fn sorted(plan: &Plan, step: usize) -> Vec<Routed<'_>> {
    interrupt::check();
    let routed = |transfer: usize| {
        let relays = plan.relays_of(transfer).iter();
        let lightpath = Lightpath {
            slot: plan.slot[transfer],
            light: plan.light_of(transfer),
            transfer: plan.schedule.transfer(transfer),
        };
        (
            lightpath,
            relays.map(|one| (one.rank, one.light, one.slot)).collect(),
            plan.routes.of(transfer),
        )
    };
    let mut transfers: Vec<Routed<'_>> = plan.schedule.step(step).map(routed).collect();
    transfers.sort_unstable();
    transfers
}
