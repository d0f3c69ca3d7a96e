//! Rules of relays: ranks that store the data of a transfer and send them in a later slot.

use super::report::{Fault, Report, up_to};
use super::{Violation, ViolationKind};
use opticoll_fabric::fabric::Hop;
use opticoll_plan::plan::Plan;

/// Returns whether the relays are in the order of the plan's transfers. Reports a violation if they
/// are not.
pub(super) fn are_in_order(plan: &Plan, report: &mut Report) -> bool {
    let are_sorted = plan.relays.is_sorted_by_key(|relay| relay.transfer);
    let have_transfers = plan
        .relays
        .last()
        .is_none_or(|last| (last.transfer as usize) < plan.len());
    if !(are_sorted && have_transfers) {
        let sentence = "the relays are not in the order of the plan's transfers".into();
        let kind = ViolationKind::Relays;
        report.add(kind, || Violation::new(kind, sentence));
    }
    are_sorted && have_transfers
}

/// Returns the first fault of a hop: of its ranks, its light or its slot. The slot must be at least
/// `earliest`, which is `None` for the first hop of a transfer. Slot and light of the first hop are
/// checked with the transfer.
pub(super) fn fault(
    plan: &Plan,
    step: usize,
    hop: Hop,
    earliest: Option<u32>,
    no_such_light: Option<Fault>,
) -> Option<Fault> {
    let ranks = plan.fabric.ranks();
    if hop.from >= ranks || hop.to >= ranks {
        let rank = hop.from.max(hop.to);
        let text = format!("is relayed by rank {rank}, but ranks are {}", up_to(ranks));
        return Some((ViolationKind::RankRange, text));
    }
    if hop.from == hop.to {
        let text = format!("is relayed from rank {} to itself", hop.from);
        return Some((ViolationKind::SelfTransfer, text));
    }
    if no_such_light.is_some() {
        return no_such_light;
    }
    if hop.slot < earliest? {
        let text = format!("is sent on by rank {} before it arrived there", hop.from);
        return Some((ViolationKind::Relays, text));
    }
    let slots = plan.step_slots.get(step);
    let is_in_step = slots.is_some_and(|slots| slots.contains(&hop.slot));
    (!is_in_step).then(|| {
        let text = format!("is sent on by rank {} after its step {step}", hop.from);
        (ViolationKind::StepOrder, text)
    })
}
