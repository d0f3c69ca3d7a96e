//! Admitted transfers of a plan in the order of their slots.

use std::ops::Range;

use super::form::Admitted;
use opticoll_plan::plan::Plan;

/// Admitted transfers sorted by slot, and by index within a slot.
pub(super) enum AdmittedOrder {
    /// Transfers in the order of the plan: position p has transfer p. The value is their number.
    PlanOrder(usize),
    /// Transfers in another order. The value has the index of the transfer at each position.
    Sorted(Vec<u32>),
}

impl AdmittedOrder {
    /// Sorts the admitted transfers by slot. The transfers of a slot keep their order.
    pub(super) fn new(plan: &Plan, admitted: &Admitted) -> AdmittedOrder {
        let slot = &plan.slot[..admitted.transfers];
        if admitted.is_complete() && slot.is_sorted() {
            return AdmittedOrder::PlanOrder(slot.len());
        }
        let slots = plan.slots() as usize;
        if slots / 4 > slot.len() + 1024 {
            // If slots far outnumber transfers, a table of slots would be mostly empty.
            let mut sorted: Vec<u32> = admitted
                .transfers()
                .map(|transfer| transfer as u32)
                .collect();
            sorted.sort_by_key(|&transfer| slot[transfer as usize]);
            return AdmittedOrder::Sorted(sorted);
        }
        let mut next = vec![0u32; slots + 1];
        let mut total = 0;
        for transfer in admitted.transfers() {
            next[slot[transfer] as usize + 1] += 1;
            total += 1;
        }
        for slot in 1..next.len() {
            next[slot] += next[slot - 1];
        }
        let mut sorted = vec![0u32; total];
        for transfer in admitted.transfers() {
            let position = &mut next[slot[transfer] as usize];
            sorted[*position as usize] = transfer as u32;
            *position += 1;
        }
        AdmittedOrder::Sorted(sorted)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            AdmittedOrder::PlanOrder(length) => *length,
            AdmittedOrder::Sorted(sorted) => sorted.len(),
        }
    }

    pub(super) fn at(&self, position: usize) -> usize {
        match self {
            AdmittedOrder::PlanOrder(_) => position,
            AdmittedOrder::Sorted(sorted) => sorted[position] as usize,
        }
    }

    /// Returns, for each slot that has transfers, the range of positions of these transfers.
    pub(super) fn slots<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut start = 0;
        std::iter::from_fn(move || {
            if start == self.len() {
                return None;
            }
            let slot = plan.slot[self.at(start)];
            let end = (start..self.len())
                .find(|&position| plan.slot[self.at(position)] != slot)
                .unwrap_or(self.len());
            Some(std::mem::replace(&mut start, end)..end)
        })
    }
}
