//! The ways of all blocks over a sequence of settings of shifts.
//!
//! A setting has as many slots as its last block makes hops in it. Fewer slots may need more hops
//! in other settings: from as many as shorten some way on, slots are taken away where that takes
//! less time. On a grid each setting has one slot.
//!
//! A slot takes as long as its busiest port. So blocks take their ways by few hops first; then one
//! after another each anew, for which hops over ports that are not the busiest cost next to
//! nothing, so that the sum over slots only falls.

use super::ShiftMachine;
use super::group::{Group, PortShifts, Reach, Sequence};
use crate::{PlannerError, Question, switch::settings};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Transmission;
use opticoll_fabric::fabric::circuits::Circuits;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_plan::collective::CollectiveKind;
use opticoll_simulate::Policy;

/// The shifts of a machine, and what slots, settings and hops cost, in picoseconds.
#[derive(Clone)]
pub(super) struct Price {
    pub(super) group: Group,
    /// The shifts of each port, or of each plane of a grid.
    pub(super) ports: Vec<PortShifts>,
    /// Maximum number of slots of a setting.
    pub(super) most_slots: u32,
    /// Whether all hops of a setting are in one slot.
    cuts_through: bool,
    pub(super) block: Bytes,
    transmission: Transmission,
    startup: u64,
    /// The price of each hop that blocks make one after the other in a setting: the latency, and
    /// what the policy charges for its slot.
    slot: u64,
    /// The price of each setting but the first.
    change: u64,
}

impl Price {
    pub(super) fn new(
        question: &Question<'_>,
        machine: ShiftMachine<'_>,
    ) -> Result<Price, PlannerError> {
        let ranks = u64::from(question.collective.ranks());
        let block = match question.collective.kind() {
            CollectiveKind::AllGather | CollectiveKind::Scatter | CollectiveKind::Gather => {
                question.size
            }
            _ => Bytes::new(question.size.get().div_ceil(ranks)),
        };
        let grid = match machine {
            ShiftMachine::Switch(switch) => {
                let (charged, change) = settings::prices(question, switch)?;
                let latency = switch.latency.ps();
                // With cut-through a setting has one slot.
                let (slot, change) = match switch.cuts_through() {
                    true => (latency, change.saturating_add(charged)),
                    false => (latency.saturating_add(charged), change),
                };
                return Ok(Price {
                    block,
                    slot,
                    change,
                    ..Price::of_hops(switch)
                });
            }
            ShiftMachine::Grid(grid) => grid,
        };
        let set_up = match question.policy() {
            Policy::Free => Time::ZERO,
            _ => grid.change()?.set_up,
        };
        let port = |unit: u32, ranks: u32| PortShifts {
            unit,
            most: ranks - 1,
        };
        Ok(Price {
            group: Group {
                rows: grid.rows,
                columns: grid.columns,
            },
            ports: vec![port(1, grid.columns), port(grid.columns, grid.rows)],
            most_slots: 1,
            cuts_through: false,
            block,
            transmission: grid.transmission(),
            startup: 0,
            slot: set_up.plus(grid.latency)?.ps(),
            change: 0,
        })
    }

    /// Returns the price of bytes alone, of blocks of one byte over a circuit switch.
    pub(super) fn of_hops(switch: &CircuitSwitch) -> Price {
        let port = PortShifts {
            unit: 1,
            most: switch.ranks - 1,
        };
        let ports = super::ports_of_all(switch).len();
        Price {
            group: Group {
                rows: 1,
                columns: switch.ranks,
            },
            ports: vec![port; ports],
            most_slots: switch.ranks,
            cuts_through: switch.cuts_through(),
            block: Bytes::new(1),
            transmission: switch.transmission(),
            startup: switch.startup.ps(),
            slot: 0,
            change: 0,
        }
    }

    /// Returns the number of ports that have any shift.
    pub(super) fn lanes(&self) -> u64 {
        self.ports.iter().filter(|port| port.most > 0).count() as u64
    }

    /// Returns the time of `blocks` blocks one after the other over one port.
    fn sending(&self, blocks: u64) -> u64 {
        let bytes = Bytes::new(self.block.get().saturating_mul(blocks));
        u64::try_from(self.transmission.ps(bytes)).unwrap_or(u64::MAX)
    }

    /// Estimates the time of a number of settings and slots, if all ports of a rank send evenly and
    /// a message begins in each setting.
    pub(super) fn estimate(&self, settings: u64, slots: u64, hops: u64) -> u64 {
        self.time(settings, slots, hops.div_ceil(self.lanes().max(1)))
    }

    /// Returns the time of so many settings and slots whose busiest ports send so many blocks in
    /// all.
    pub(super) fn time(&self, settings: u64, slots: u64, blocks: u64) -> u64 {
        let begun = self.startup.saturating_mul(settings);
        let changes = self.change.saturating_mul(settings - 1);
        let latencies = self.slot.saturating_mul(slots);
        let parts = [begun, changes, latencies, self.sending(blocks)];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// The slots of each setting with which a sequence takes the least time, and the hops of a rank's
/// blocks.
pub(super) struct Slots {
    pub(super) of_setting: Vec<u32>,
    pub(super) hops: u64,
}

impl Slots {
    /// Returns `None` where a rank is not reached.
    pub(super) fn of(sequence: &Sequence, price: &Price) -> Option<Slots> {
        let mut scratch = [(); 2].map(|()| Reach::of_none(price.group));
        let mut reach = Reach::of_none(price.group);
        let mut of_setting = Vec::with_capacity(sequence.0.len());
        for shifts in &sequence.0 {
            of_setting.push(reach.after(shifts, price.most_slots, &mut scratch).max(1));
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
        let mut before = Reach::of_none(price.group);
        for setting in 0..of_setting.len() {
            while of_setting[setting] > 1 {
                interrupt::check();
                of_setting[setting] -= 1;
                reach.hops.clone_from(&before.hops);
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

/// A hop of the blocks for the rank some places on: its slot, and the port and shift of its
/// circuit.
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
    /// Returns ways along the fewest hops, or around busy ports; `None` where a rank is not
    /// reached.
    pub(super) fn of(sequence: &Sequence, price: &Price) -> Option<Ways> {
        let of_setting = Slots::of(sequence, price)?.of_setting;
        // The shifts of each slot, in which a block makes a hop at most, and its number.
        let mut slots: Vec<(&[u32], u32)> = Vec::new();
        let mut number = 0;
        for (shifts, count) in sequence.0.iter().zip(of_setting) {
            for place in 0..count {
                let within = if price.cuts_through { 0 } else { place };
                slots.push((shifts, number + within));
            }
            number += if price.cuts_through { 1 } else { count };
        }
        let mut routing = Routing::new(price.group, slots.iter().map(|(shifts, _)| *shifts));
        let ways = routing.ways()?;
        let hops = ways.into_iter().map(|way| {
            let hop = |(slot, port): (usize, u8)| ShiftHop {
                slot: slots[slot].1,
                port,
                shift: slots[slot].0[usize::from(port)],
            };
            way.into_iter().map(hop).collect()
        });
        Some(Ways {
            hops: hops.collect(),
            slots: number,
            settings: sequence.0.len() as u64,
        })
    }

    /// Returns the number of hops of all blocks.
    pub(super) fn count(&self) -> u64 {
        let of_rank: u64 = self.hops.iter().map(|hops| hops.len() as u64).sum();
        of_rank * self.hops.len() as u64
    }

    /// Returns the time in picoseconds, with as many changes as there are settings after the first.
    pub(super) fn time(&self, price: &Price) -> u64 {
        let slots = self.slots as usize;
        let mut loads = vec![vec![0u64; price.ports.len()]; slots];
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
            let startup = if begins { price.startup } else { 0 };
            sending
                .saturating_add(price.slot.saturating_mul(hops))
                .saturating_add(startup)
        };
        let slots = loads.iter().zip(begins).zip(longest).map(of_slot);
        let changes = price.change.saturating_mul(self.settings - 1);
        slots.fold(changes, u64::saturating_add)
    }
}

/// Additions of a pass that lead blocks around busy ports, at most: a second's.
const MAX_BALANCING: u64 = 1 << 29;

/// In each pass the price of a hop over a busiest port of a slot, and over another port, which
/// takes no time: by few hops first.
const PRICES: [[u32; 2]; 4] = [[5, 4], [64, 1], [64, 1], [64, 1]];

/// No way.
const NEVER: u32 = u32::MAX / 2;

/// A slot, by its place in the order of slots, and a port.
type WayHop = (usize, u8);

/// The choice of ways over slots, in each of which a block makes one hop at most.
///
/// Let d_s(o) be the least price of hops in the first s slots that add up to o: in each slot a
/// block stays, or makes a hop by a shift x,
///
/// d_s(o) = min(d_{s-1}(o), p_s(x) + d_{s-1}(o - x)).
struct Routing<'a> {
    group: Group,
    slots: Vec<&'a [u32]>,
    /// The least prices, by slot and rank.
    least: Vec<u32>,
    /// By slot and port: the price of a hop, and the blocks.
    prices: Vec<Vec<u32>>,
    loads: Vec<Vec<u32>>,
}

impl<'a> Routing<'a> {
    fn new(group: Group, slots: impl Iterator<Item = &'a [u32]>) -> Routing<'a> {
        let slots: Vec<&[u32]> = slots.collect();
        let loads: Vec<Vec<u32>> = slots.iter().map(|shifts| vec![0; shifts.len()]).collect();
        Routing {
            group,
            least: vec![NEVER; (slots.len() + 1) * group.ranks() as usize],
            prices: loads.clone(),
            loads,
            slots,
        }
    }

    /// Returns the hops of each block, taken block by block, in several passes if ports leave a
    /// choice.
    fn ways(&mut self) -> Option<Vec<Vec<WayHop>>> {
        let ranks = self.group.ranks();
        let ports: usize = self.slots.iter().map(|shifts| shifts.len()).sum();
        let has_choice = ports > self.slots.len();
        let work = u64::from(ranks).pow(2) * ports as u64;
        let balances = has_choice && work <= MAX_BALANCING;
        self.fill([1, 1]);
        let mut ways: Vec<Vec<WayHop>> = vec![Vec::new(); ranks as usize];
        for prices in if balances { &PRICES[..] } else { &[[1, 1]] } {
            for rank in (1..ranks).rev() {
                for (slot, port) in std::mem::take(&mut ways[rank as usize]) {
                    self.loads[slot][usize::from(port)] -= 1;
                }
                if balances {
                    self.fill(*prices);
                }
                ways[rank as usize] = self.way(rank)?;
            }
        }
        Some(ways)
    }

    /// Computes the least prices, with the price of a hop over the busiest ports of a slot, and
    /// over others.
    fn fill(&mut self, [busy, other]: [u32; 2]) {
        for (prices, loads) in self.prices.iter_mut().zip(&self.loads) {
            let most = loads.iter().copied().max();
            for (price, load) in prices.iter_mut().zip(loads) {
                *price = if Some(*load) < most { other } else { busy };
            }
        }
        let ranks = self.group.ranks() as usize;
        self.least[..ranks].fill(NEVER);
        self.least[0] = 0;
        for (slot, (shifts, prices)) in self.slots.iter().zip(&self.prices).enumerate() {
            interrupt::check();
            let (before, after) = self.least[slot * ranks..].split_at_mut(ranks);
            after[..ranks].copy_from_slice(before);
            for (&shift, &price) in shifts.iter().zip(prices).filter(|(shift, _)| **shift > 0) {
                let lower = |own: u32, other: u32| own.min(other + price);
                self.group
                    .combine(&mut after[..ranks], before, shift, lower);
            }
        }
    }

    /// Returns a cheapest way to a rank and adds it to the loads; of ports that cost as much it
    /// takes the one with the fewest blocks.
    fn way(&mut self, rank: u32) -> Option<Vec<WayHop>> {
        let ranks = self.group.ranks() as usize;
        let least = |slot: usize, rank: u32| self.least[slot * ranks + rank as usize];
        let (mut at, mut way) = (rank, Vec::new());
        let mut left = least(self.slots.len(), rank);
        if left >= NEVER {
            return None;
        }
        for (slot, shifts) in self.slots.iter().enumerate().rev() {
            if least(slot, at) == left {
                continue;
            }
            let (prices, loads) = (&self.prices[slot], &mut self.loads[slot]);
            let leads = |port: &u8| {
                let port = usize::from(*port);
                let came = self.group.minus(at, shifts[port]);
                shifts[port] > 0 && least(slot, came) + prices[port] == left
            };
            let ports = (0..shifts.len() as u8).filter(leads);
            let port = ports.min_by_key(|port| loads[usize::from(*port)])?;
            loads[usize::from(port)] += 1;
            at = self.group.minus(at, shifts[usize::from(port)]);
            left = least(slot, at);
            way.push((slot, port));
        }
        way.reverse();
        Some(way)
    }
}
