//! The ways of all blocks over a sequence of settings of shifts.
//!
//! A setting has as many slots as its last block makes hops in it. Fewer slots may need more hops in other settings: from
//! as many as shorten some way on, slots are taken away where that takes less time.

use std::cmp::Reverse;

use super::sequence::{Reach, Sequence};
use crate::{PlannerError, Question, switch::settings};
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::circuits::Circuits;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;

/// What slots, settings and hops cost, in picoseconds.
pub(super) struct Price<'a> {
    pub(super) switch: &'a CircuitSwitch,
    /// Ports that no rank has dead.
    pub(super) ports: u32,
    pub(super) block: Bytes,
    /// Of each hop that blocks make one after the other in a setting: the latency, and what the policy charges for its slot.
    pub(super) slot: u64,
    /// Of each setting but the first.
    pub(super) change: u64,
}

impl Price<'_> {
    pub(super) fn new<'a>(
        question: &Question<'_>,
        switch: &'a CircuitSwitch,
    ) -> Result<Price<'a>, PlannerError> {
        let (charged, change) = settings::prices(question, switch)?;
        let latency = switch.latency.ps();
        // With cut-through a setting has one slot.
        let (slot, change) = match switch.cuts_through() {
            true => (latency, change.saturating_add(charged)),
            false => (latency.saturating_add(charged), change),
        };
        Ok(Price {
            switch,
            ports: super::ports_of_all(switch).len() as u32,
            block: Bytes::new(question.size.get().div_ceil(switch.ranks.into())),
            slot,
            change,
        })
    }

    /// Of so many blocks one after the other over one port.
    pub(super) fn sending(&self, blocks: u64) -> u64 {
        let bytes = Bytes::new(self.block.get().saturating_mul(blocks));
        u64::try_from(self.switch.transmission().ps(bytes)).unwrap_or(u64::MAX)
    }

    /// Of so many settings and slots, if all ports of a rank send evenly and a message begins in each setting.
    pub(super) fn estimate(&self, settings: u64, slots: u64, hops: u64) -> u64 {
        let begun = self.switch.startup.ps().saturating_mul(settings);
        let changes = self.change.saturating_mul(settings - 1);
        let sending = self.sending(hops) / u64::from(self.ports.max(1));
        let parts = [begun, changes, self.slot.saturating_mul(slots), sending];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// The slots of each setting with which a sequence takes the least time, and the hops of a rank's blocks.
pub(super) struct Slots {
    pub(super) of_setting: Vec<u32>,
    pub(super) hops: u64,
}

impl Slots {
    /// `None` where a rank is not reached.
    pub(super) fn of(sequence: &Sequence, price: &Price<'_>) -> Option<Slots> {
        let ranks = price.switch.ranks;
        let mut scratch = [(); 2].map(|()| Reach::of_none(ranks));
        let mut reach = Reach::of_none(ranks);
        let mut of_setting = Vec::with_capacity(sequence.0.len());
        for shifts in &sequence.0 {
            of_setting.push(reach.after(shifts, ranks, &mut scratch).max(1));
            std::mem::swap(&mut reach, &mut scratch[0]);
        }
        if !reach.is_complete() {
            return None;
        }
        let estimate = |slots: &[u32], hops: u64| {
            let all = slots.iter().map(|slots| u64::from(*slots)).sum();
            price.estimate(slots.len() as u64, all, hops)
        };
        let mut hops = reach.sum();
        let mut least = estimate(&of_setting, hops);
        let mut before = Reach::of_none(ranks);
        for setting in 0..of_setting.len() {
            while of_setting[setting] > 1 {
                interrupt::check();
                of_setting[setting] -= 1;
                reach.0.clone_from(&before.0);
                for (shifts, slots) in sequence.0.iter().zip(&of_setting).skip(setting) {
                    reach.after(shifts, *slots, &mut scratch);
                    std::mem::swap(&mut reach, &mut scratch[0]);
                }
                let time = estimate(&of_setting, reach.sum());
                if time > least || !reach.is_complete() {
                    of_setting[setting] += 1;
                    break;
                }
                (least, hops) = (time, reach.sum());
            }
            before.after(&sequence.0[setting], of_setting[setting], &mut scratch);
            std::mem::swap(&mut before, &mut scratch[0]);
        }
        Some(Slots { of_setting, hops })
    }
}

/// A hop of the blocks for the rank some places on: its slot, and the port and shift of its circuit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShiftHop {
    pub(super) slot: u32,
    pub(super) port: u8,
    pub(super) shift: u32,
}

/// The ways of all blocks, by how many places on their rank is.
pub(super) struct Ways {
    pub(super) hops: Vec<Vec<ShiftHop>>,
    pub(super) slots: u32,
    settings: u64,
}

impl Ways {
    /// Along the fewest hops; `None` where a rank is not reached.
    pub(super) fn of(sequence: &Sequence, price: &Price<'_>) -> Option<Ways> {
        let of_setting = Slots::of(sequence, price)?.of_setting;
        let ports = balanced(sequence, &of_setting, price.switch.ranks)?;
        let mut hops = vec![Vec::new(); ports.len()];
        let is_one = price.switch.cuts_through();
        let mut start = 0;
        for (setting, (shifts, &slots)) in sequence.0.iter().zip(&of_setting).enumerate() {
            // The slots of blocks with the most hops are given.
            let mut order: Vec<usize> = (0..ports.len()).collect();
            order.sort_by_key(|after| Reverse(ports[*after][setting].len()));
            let mut loads = vec![vec![0u64; shifts.len()]; slots as usize];
            for after in order {
                let own = &ports[after][setting];
                let mut first = 0;
                for (place, &port) in own.iter().enumerate() {
                    let last = slots as usize - (own.len() - place);
                    let more = |slot: &usize| {
                        let load = loads[*slot][usize::from(port)] + 1;
                        load.saturating_sub(loads[*slot].iter().copied().max().unwrap_or(0))
                    };
                    let slot = (first..=last).min_by_key(more)?;
                    loads[slot][usize::from(port)] += 1;
                    hops[after].push(ShiftHop {
                        slot: start + if is_one { 0 } else { slot as u32 },
                        port,
                        shift: shifts[usize::from(port)],
                    });
                    first = slot + 1;
                }
            }
            start += if is_one { 1 } else { slots };
        }
        Some(Ways {
            hops,
            slots: start,
            settings: sequence.0.len() as u64,
        })
    }

    /// Hops of all blocks.
    pub(super) fn count(&self, ranks: u32) -> u64 {
        let of_rank: u64 = self.hops.iter().map(|hops| hops.len() as u64).sum();
        of_rank * u64::from(ranks)
    }

    /// Picoseconds, with as many changes as there are settings after the first.
    pub(super) fn time(&self, price: &Price<'_>) -> u64 {
        let slots = self.slots as usize;
        let mut loads = vec![vec![0u64; price.switch.ports as usize]; slots];
        let mut begins = vec![false; slots];
        let mut longest = vec![0u64; slots];
        for hops in &self.hops {
            for (place, hop) in hops.iter().enumerate() {
                loads[hop.slot as usize][usize::from(hop.port)] += 1;
                begins[hop.slot as usize] |= place == 0;
            }
            for of_slot in hops.chunk_by(|one, next| one.slot == next.slot) {
                let longest = &mut longest[of_slot[0].slot as usize];
                *longest = (of_slot.len() as u64).max(*longest);
            }
        }
        let of_slot = |((loads, begins), hops): ((&Vec<u64>, bool), u64)| {
            let sending = price.sending(loads.iter().copied().max().unwrap_or(0));
            let startup = if begins { price.switch.startup.ps() } else { 0 };
            sending
                .saturating_add(price.slot.saturating_mul(hops))
                .saturating_add(startup)
        };
        let slots = loads.iter().zip(begins).zip(longest).map(of_slot);
        let changes = price.change.saturating_mul(self.settings - 1);
        slots.fold(changes, u64::saturating_add)
    }
}

/// Ways are chosen so often, each time with what all others use.
const ROUNDS: usize = 3;

/// By how many places on a rank is, and by setting: the ports of its block's hops, each of those that has the fewest blocks.
fn balanced(sequence: &Sequence, slots: &[u32], ranks: u32) -> Option<Vec<Vec<Vec<u8>>>> {
    let mut levels: Vec<Vec<Reach>> = Vec::with_capacity(slots.len());
    for (shifts, slots) in sequence.0.iter().zip(slots) {
        let before = levels.last().and_then(|levels| levels.last());
        let before = before.cloned().unwrap_or(Reach::of_none(ranks));
        levels.push(before.levels(shifts, *slots));
    }
    let mut loads: Vec<Vec<u64>> = sequence.0.iter().map(|own| vec![0; own.len()]).collect();
    let mut ports = vec![vec![Vec::new(); slots.len()]; ranks as usize];
    let has_choice = sequence.0.iter().any(|shifts| shifts.len() > 1);
    for _ in 0..if has_choice { ROUNDS } else { 1 } {
        for after in 0..ranks {
            interrupt::check();
            let mut at = after;
            for (setting, shifts) in sequence.0.iter().enumerate().rev() {
                let (levels, loads) = (&levels[setting], &mut loads[setting]);
                let own = &mut ports[after as usize][setting];
                own.drain(..).for_each(|port| loads[usize::from(port)] -= 1);
                // Back over circuits of the setting, from the least number of its slots that reaches as near.
                let mut level = levels.len() - 1;
                let mut left = levels[level].0[at as usize];
                while levels[0].0[at as usize] != left {
                    while levels[level - 1].0[at as usize] == left {
                        level -= 1;
                    }
                    level -= 1;
                    left -= 1;
                    let came = |shift: u32| (at + ranks - shift) % ranks;
                    let near = |shift: u32| levels[level].0[came(shift) as usize] == left;
                    let near = (0u8..).zip(shifts).filter(|(_, shift)| near(**shift));
                    let (port, shift) = near.min_by_key(|(port, _)| loads[usize::from(*port)])?;
                    loads[usize::from(port)] += 1;
                    own.push(port);
                    at = came(*shift);
                }
                own.reverse();
            }
        }
    }
    Some(ports)
}
