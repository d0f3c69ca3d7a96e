//! Transfers that other ranks relay: they store what they get, and send it on in a later slot of the transfer's step.

use super::report::{Fault, Report, named};
use super::{Violation, ViolationKind};
use opticoll_fabric::fabric::Hop;
use opticoll_plan::plan::Plan;

/// Whether relays stand in the order of transfers that there are.
pub(super) fn in_order(plan: &Plan, report: &mut Report) -> bool {
    let sorted = plan.relays.is_sorted_by_key(|relay| relay.transfer);
    let known = plan
        .relays
        .last()
        .is_none_or(|last| (last.transfer as usize) < plan.len());
    if !(sorted && known) {
        let sentence = "the relays are not in the order of the plan's transfers".into();
        let kind = ViolationKind::Relays;
        report.add(kind, || Violation::new(kind, sentence));
    }
    sorted && known
}

/// What is wrong with a hop of a step by itself: its ranks, its light, or its slot, which must be `earliest` at the least where
/// another hop was before. (Slot and light of the first hop were looked at with the transfer.)
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
        let text = format!("is relayed by rank {rank}, but there are {ranks}, counted from 0");
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
    let own = plan.step_slots.get(step);
    let is_own = own.is_some_and(|own| own.contains(&hop.slot));
    (!is_own).then(|| {
        let text = format!("is sent on by rank {} after its step {step}", hop.from);
        (ViolationKind::StepOrder, text)
    })
}

/// A violation by one hop of a transfer.
pub(super) fn of_hop(
    plan: &Plan,
    kind: ViolationKind,
    transfer: usize,
    hop: Hop,
    text: &str,
) -> Violation {
    let sentence = format!(
        "slot {}: transfer {} {text}",
        hop.slot,
        named(plan, transfer)
    );
    Violation {
        transfers: vec![transfer],
        slot: Some(hop.slot),
        ..Violation::new(kind, sentence)
    }
}
