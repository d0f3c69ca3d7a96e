//! Hops of a plan, grouped by slot.

use opticoll_fabric::fabric::Hop;
use opticoll_fabric::network::named_routes::FABRIC_ROUTE;
use opticoll_plan::plan::{Plan, Relay};

/// Indices of the hops of each slot, in the order of the plan. The first hop of a transfer has the
/// index of the transfer. The hops from relays have the indices after the last transfer.
pub(super) struct SlotHops {
    starts: Vec<u32>,
    hops: Vec<u32>,
}

impl SlotHops {
    pub(super) fn new(plan: &Plan) -> SlotHops {
        let relays = &plan.relays;
        let mut starts = vec![0u32; plan.slots() as usize + 1];
        let mut count = |slot: u32| {
            if let Some(count) = starts.get_mut(slot as usize + 1) {
                *count += 1;
            }
        };
        plan.slot.iter().for_each(|&slot| count(slot));
        relays.iter().for_each(|relay| count(relay.slot));
        for slot in 1..starts.len() {
            starts[slot] += starts[slot - 1];
        }
        let mut next = starts.clone();
        let mut hops = vec![0; starts.last().map_or(0, |&end| end as usize)];
        let mut append = |slot: u32, hop: usize| {
            if (slot as usize) + 1 < next.len() {
                hops[next[slot as usize] as usize] = hop as u32;
                next[slot as usize] += 1;
            }
        };
        if relays.is_empty() {
            plan.slot
                .iter()
                .zip(0..)
                .for_each(|(&slot, hop)| append(slot, hop));
            return SlotHops { starts, hops };
        }
        let mut relays = relays.iter().enumerate().peekable();
        for (transfer, &slot) in plan.slot.iter().enumerate() {
            append(slot, transfer);
            while let Some((index, relay)) =
                relays.next_if(|(_, relay)| relay.transfer as usize == transfer)
            {
                append(relay.slot, plan.len() + index);
            }
        }
        SlotHops { starts, hops }
    }

    pub(super) fn hops(&self, slot: u32) -> &[u32] {
        let slot = slot as usize;
        &self.hops[self.starts[slot] as usize..self.starts[slot + 1] as usize]
    }
}

/// Returns the hop with the given index (see [`SlotHops`]), and the index of the hop's transfer.
pub(super) fn hop(plan: &Plan, index: u32) -> (Hop, u32) {
    let Some(relay) = (index as usize).checked_sub(plan.len()) else {
        let (from, to) = plan.schedule.ends(index as usize);
        let to = match plan.relays.is_empty() {
            true => to,
            false => plan
                .relays_of(index as usize)
                .first()
                .map_or(to, |relay| relay.rank),
        };
        let (light, slot) = (plan.light[index as usize], plan.slot[index as usize]);
        let hop = Hop {
            from,
            to,
            light,
            slot,
            route: plan.routes.number(index as usize),
        };
        return (hop, index);
    };
    let Relay {
        transfer,
        rank,
        light,
        slot,
    } = plan.relays[relay];
    let next = plan.relays.get(relay + 1);
    let next = next.filter(|next| next.transfer == transfer);
    let to = next.map_or_else(|| plan.schedule.ends(transfer as usize).1, |next| next.rank);
    let hop = Hop {
        from: rank,
        to,
        light,
        slot,
        route: FABRIC_ROUTE,
    };
    (hop, transfer)
}
