//! Routes of all blocks over a sequence of settings of shifts.
//!
//! A setting starts with as many slots as its longest route makes hops in it. Removing a slot may
//! cost hops in other settings; slots are removed as long as the estimated time does not grow. On a
//! grid each setting has one slot.
//!
//! The busiest port determines the length of a slot. Blocks first take routes with few hops. Then
//! each block in turn is routed anew, at a low price for hops over ports that are not the busiest,
//! so that the sum of slot lengths only falls.

use super::group::{Group, Reach, Sequence};
use super::model::ShiftModel;
use opticoll_base::interrupt;

/// Numbers of slots of the settings with which a sequence takes the least time found, and the hops
/// of a rank's blocks.
pub(super) struct Slots {
    pub(super) per_setting: Vec<u32>,
    pub(super) hops: u64,
}

impl Slots {
    /// Returns `None` if a rank is not reached.
    pub(super) fn of(sequence: &Sequence, model: &ShiftModel) -> Option<Slots> {
        let mut scratch = [(); 2].map(|()| Reach::initial(model.group));
        let mut reach = Reach::initial(model.group);
        let mut per_setting = Vec::with_capacity(sequence.0.len());
        for shifts in &sequence.0 {
            per_setting.push(reach.after(shifts, model.max_slots, &mut scratch).max(1));
            std::mem::swap(&mut reach, &mut scratch[0]);
        }
        if !reach.is_complete() {
            return None;
        }
        let estimate = |slots: &[u32], hops: u64| {
            let total = slots.iter().map(|slots| u64::from(*slots)).sum();
            model.estimate(slots.len() as u64, total, hops)
        };
        let mut hops = reach.sum();
        let mut least = estimate(&per_setting, hops);
        let mut before = Reach::initial(model.group);
        for setting in 0..per_setting.len() {
            while per_setting[setting] > 1 {
                interrupt::check();
                per_setting[setting] -= 1;
                reach.hops.clone_from(&before.hops);
                for (shifts, slots) in sequence.0.iter().zip(&per_setting).skip(setting) {
                    reach.after(shifts, *slots, &mut scratch);
                    std::mem::swap(&mut reach, &mut scratch[0]);
                }
                let time = estimate(&per_setting, reach.sum());
                if time > least || !reach.is_complete() {
                    per_setting[setting] += 1;
                    break;
                }
                (least, hops) = (time, reach.sum());
            }
            before.after(&sequence.0[setting], per_setting[setting], &mut scratch);
            std::mem::swap(&mut before, &mut scratch[0]);
        }
        Some(Slots { per_setting, hops })
    }
}

/// A hop of the blocks for one offset: its slot, and the port and shift of its circuit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShiftHop {
    pub(super) slot: u32,
    pub(super) port: u8,
    pub(super) shift: u32,
}

/// Routes of all blocks, by the offset from the source to the destination.
pub(super) struct Routes {
    pub(super) hops: Vec<Vec<ShiftHop>>,
    pub(super) slots: u32,
    settings: u64,
}

impl Routes {
    /// Returns routes with the fewest hops, or around busy ports; `None` if a rank is not reached.
    pub(super) fn of(sequence: &Sequence, model: &ShiftModel) -> Option<Routes> {
        let per_setting = Slots::of(sequence, model)?.per_setting;
        // Shifts and number of each slot. A block makes at most one hop in a slot.
        let mut slots: Vec<(&[u32], u32)> = Vec::new();
        let mut number = 0;
        for (shifts, count) in sequence.0.iter().zip(per_setting) {
            for place in 0..count {
                let within = if model.cuts_through { 0 } else { place };
                slots.push((shifts, number + within));
            }
            number += if model.cuts_through { 1 } else { count };
        }
        let mut search = RouteSearch::new(model.group, slots.iter().map(|(shifts, _)| *shifts));
        let routes = search.routes()?;
        let hops = routes.into_iter().map(|route| {
            let hop = |(slot, port): (usize, u8)| ShiftHop {
                slot: slots[slot].1,
                port,
                shift: slots[slot].0[usize::from(port)],
            };
            route.into_iter().map(hop).collect()
        });
        Some(Routes {
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

    /// Returns the time in picoseconds; each setting after the first is a change.
    pub(super) fn time(&self, model: &ShiftModel) -> u64 {
        let slots = self.slots as usize;
        let mut loads = vec![vec![0u64; model.ports.len()]; slots];
        let mut begins = vec![false; slots];
        let mut longest = vec![0u64; slots];
        for hops in &self.hops {
            for (place, hop) in hops.iter().enumerate() {
                loads[hop.slot as usize][usize::from(hop.port)] += 1;
                begins[hop.slot as usize] |= place == 0;
            }
            for of_slot in hops.chunk_by(|hop, next| hop.slot == next.slot) {
                let longest = &mut longest[of_slot[0].slot as usize];
                *longest = (of_slot.len() as u64).max(*longest);
            }
        }
        let of_slot = |((loads, begins), hops): ((&Vec<u64>, bool), u64)| {
            let sending = model.sending(loads.iter().copied().max().unwrap_or(0));
            let startup = if begins { model.startup } else { 0 };
            sending
                .saturating_add(model.slot.saturating_mul(hops))
                .saturating_add(startup)
        };
        let slots = loads.iter().zip(begins).zip(longest).map(of_slot);
        let changes = model.change.saturating_mul(self.settings - 1);
        slots.fold(changes, u64::saturating_add)
    }
}

/// Maximum work of one pass that leads blocks around busy ports, in additions; takes about one
/// second.
const MAX_BALANCING: u64 = 1 << 29;

/// Prices of a hop in each pass: over a busiest port of its slot, and over another port. The price
/// has no unit; the ratio 64 makes hops over idle ports nearly free, 5 / 4 in the first pass keeps
/// routes short.
const PRICES: [[u32; 2]; 4] = [[5, 4], [64, 1], [64, 1], [64, 1]];

/// Price of an impossible route.
const UNREACHABLE: u32 = u32::MAX / 2;

/// Index of a slot and a port.
type RouteHop = (usize, u8);

/// Search for routes over slots, in each of which a block makes at most one hop.
///
/// Let d_s(o) be the least price of hops in the first s slots that add up to offset o, and p_s(x)
/// the price of a hop by the shift x. In each slot a block stays, or makes a hop by a shift x:
///
/// d_s(o) = min(d_{s-1}(o), p_s(x) + d_{s-1}(o - x)).
struct RouteSearch<'a> {
    group: Group,
    slots: Vec<&'a [u32]>,
    /// Least prices d_s(o), by slot and offset.
    least: Vec<u32>,
    /// Price of a hop and number of blocks, by slot and port.
    prices: Vec<Vec<u32>>,
    loads: Vec<Vec<u32>>,
}

impl<'a> RouteSearch<'a> {
    fn new(group: Group, slots: impl Iterator<Item = &'a [u32]>) -> RouteSearch<'a> {
        let slots: Vec<&[u32]> = slots.collect();
        let loads: Vec<Vec<u32>> = slots.iter().map(|shifts| vec![0; shifts.len()]).collect();
        RouteSearch {
            group,
            least: vec![UNREACHABLE; (slots.len() + 1) * group.ranks() as usize],
            prices: loads.clone(),
            loads,
            slots,
        }
    }

    /// Returns the hops of each block. Blocks are routed one after another, in several passes if
    /// ports leave a choice; `None` if a rank is not reached.
    fn routes(&mut self) -> Option<Vec<Vec<RouteHop>>> {
        let ranks = self.group.ranks();
        let ports: usize = self.slots.iter().map(|shifts| shifts.len()).sum();
        let has_choice = ports > self.slots.len();
        let work = u64::from(ranks).pow(2) * ports as u64;
        let balances = has_choice && work <= MAX_BALANCING;
        self.fill([1, 1]);
        let mut routes: Vec<Vec<RouteHop>> = vec![Vec::new(); ranks as usize];
        for prices in if balances { &PRICES[..] } else { &[[1, 1]] } {
            for rank in (1..ranks).rev() {
                for (slot, port) in std::mem::take(&mut routes[rank as usize]) {
                    self.loads[slot][usize::from(port)] -= 1;
                }
                if balances {
                    self.fill(*prices);
                }
                routes[rank as usize] = self.route(rank)?;
            }
        }
        Some(routes)
    }

    /// Computes the least prices, given the price of a hop over the busiest ports of a slot, and
    /// over other ports.
    fn fill(&mut self, [busy, other]: [u32; 2]) {
        for (prices, loads) in self.prices.iter_mut().zip(&self.loads) {
            let max_load = loads.iter().copied().max();
            for (price, load) in prices.iter_mut().zip(loads) {
                *price = if Some(*load) < max_load { other } else { busy };
            }
        }
        let ranks = self.group.ranks() as usize;
        self.least[..ranks].fill(UNREACHABLE);
        self.least[0] = 0;
        for (slot, (shifts, prices)) in self.slots.iter().zip(&self.prices).enumerate() {
            interrupt::check();
            let (before, after) = self.least[slot * ranks..].split_at_mut(ranks);
            after[..ranks].copy_from_slice(before);
            for (&shift, &price) in shifts.iter().zip(prices).filter(|(shift, _)| **shift > 0) {
                let lower = |price_here: u32, other: u32| price_here.min(other + price);
                self.group
                    .combine(&mut after[..ranks], before, shift, lower);
            }
        }
    }

    /// Returns a cheapest route to a rank and adds it to the loads. Among ports of the same price
    /// it takes the port with the fewest blocks.
    fn route(&mut self, rank: u32) -> Option<Vec<RouteHop>> {
        let ranks = self.group.ranks() as usize;
        let least = |slot: usize, rank: u32| self.least[slot * ranks + rank as usize];
        let (mut at, mut route) = (rank, Vec::new());
        let mut remaining = least(self.slots.len(), rank);
        if remaining >= UNREACHABLE {
            return None;
        }
        for (slot, shifts) in self.slots.iter().enumerate().rev() {
            if least(slot, at) == remaining {
                continue;
            }
            let (prices, loads) = (&self.prices[slot], &mut self.loads[slot]);
            let leads = |port: &u8| {
                let port = usize::from(*port);
                let came = self.group.minus(at, shifts[port]);
                shifts[port] > 0 && least(slot, came) + prices[port] == remaining
            };
            let ports = (0..shifts.len() as u8).filter(leads);
            let port = ports.min_by_key(|port| loads[usize::from(*port)])?;
            loads[usize::from(port)] += 1;
            at = self.group.minus(at, shifts[usize::from(port)]);
            remaining = least(slot, at);
            route.push((slot, port));
        }
        route.reverse();
        Some(route)
    }
}
