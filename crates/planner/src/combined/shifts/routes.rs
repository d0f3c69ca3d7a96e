//! Routes of the blocks of an all_to_all over a sequence of configurations of shifts.
//!
//! The initial number of slots of a configuration is the maximum number of hops of a route in this
//! configuration. Removing a slot may add hops in other configurations. The planner removes slots
//! as long as the estimated time does not increase. On a grid, each configuration has one slot.
//!
//! The port with the highest load determines the length of a slot. Blocks are first routed with few
//! hops. Then each block in turn is routed again, with a low price for hops over ports that do not
//! have the highest load. The sum of the slot lengths never increases.

use super::group::{Group, HopCounts, Sequence};
use super::model::ShiftModel;
use opticoll_base::interrupt;

/// Numbers of slots of a sequence of configurations.
pub(super) struct Slots {
    pub(super) counts: Vec<u32>,
    /// Total number of hops of all blocks that a rank sends.
    pub(super) hops: u64,
}

impl Slots {
    /// Chooses the number of slots of each configuration such that the estimated time is short.
    /// Returns `None` if the sequence does not reach all ranks.
    pub(super) fn of(sequence: &Sequence, model: &ShiftModel) -> Option<Slots> {
        let mut scratch = [(); 2].map(|()| HopCounts::initial(model.group));
        let mut reach = HopCounts::initial(model.group);
        let mut counts = Vec::with_capacity(sequence.0.len());
        for shifts in &sequence.0 {
            counts.push(reach.after(shifts, model.max_slots, &mut scratch).max(1));
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
        let mut least = estimate(&counts, hops);
        let mut before = HopCounts::initial(model.group);
        for configuration in 0..counts.len() {
            while counts[configuration] > 1 {
                interrupt::check();
                counts[configuration] -= 1;
                reach.hops.clone_from(&before.hops);
                for (shifts, slots) in sequence.0.iter().zip(&counts).skip(configuration) {
                    reach.after(shifts, *slots, &mut scratch);
                    std::mem::swap(&mut reach, &mut scratch[0]);
                }
                let time = estimate(&counts, reach.sum());
                if time > least || !reach.is_complete() {
                    counts[configuration] += 1;
                    break;
                }
                (least, hops) = (time, reach.sum());
            }
            before.after(
                &sequence.0[configuration],
                counts[configuration],
                &mut scratch,
            );
            std::mem::swap(&mut before, &mut scratch[0]);
        }
        Some(Slots { counts, hops })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ShiftHop {
    pub(super) slot: u32,
    /// Index of the port in [`ShiftModel::ports`].
    pub(super) port: u8,
    pub(super) shift: u32,
}

/// Routes of the blocks of an all_to_all. A route is the same from every source.
pub(super) struct Routes {
    /// Hops of each route; indexed by the offset from the source to the destination, and then by
    /// hop.
    pub(super) hops: Vec<Vec<ShiftHop>>,
    pub(super) slots: u32,
    configurations: u64,
}

impl Routes {
    /// Finds routes over a sequence of configurations. Returns `None` if the sequence does not
    /// reach all ranks.
    pub(super) fn of(sequence: &Sequence, model: &ShiftModel) -> Option<Routes> {
        let counts = Slots::of(sequence, model)?.counts;
        // Shifts and slot index of each possible hop of a block. With cut-through, all hops of a
        // configuration have the same slot index.
        let mut slots: Vec<(&[u32], u32)> = Vec::new();
        let mut number = 0;
        for (shifts, count) in sequence.0.iter().zip(counts) {
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
            configurations: sequence.0.len() as u64,
        })
    }

    pub(super) fn count(&self) -> u64 {
        let of_rank: u64 = self.hops.iter().map(|hops| hops.len() as u64).sum();
        of_rank * self.hops.len() as u64
    }

    /// Returns the time of the plan in picoseconds.
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
        let changes = model.change.saturating_mul(self.configurations - 1);
        slots.fold(changes, u64::saturating_add)
    }
}

/// Maximum number of additions of one pass that balances the loads of ports. (A pass takes about
/// one second.)
const MAX_BALANCING: u64 = 1 << 29;

/// Prices of a hop: [price over a port with the highest load of its slot, price over another port];
/// indexed by pass. The prices have no unit. The ratio 5 / 4 of the first pass keeps routes short.
/// The ratio 64 of later passes makes hops over other ports nearly free.
const PRICES: [[u32; 2]; 4] = [[5, 4], [64, 1], [64, 1], [64, 1]];

const UNREACHABLE: u32 = u32::MAX / 2;

/// Hop of a route: the index of the slot and the index of the port.
type RouteHop = (usize, u8);

/// Search for the cheapest routes. A block makes at most one hop in each slot.
///
/// Let d_s(o) be the minimum price of a route over the first s slots whose shifts add up to offset
/// o. Let p_s(x) be the price of a hop by shift x in slot s. In each slot, a block stays at its
/// rank or makes a hop:
///
/// d_s(o) = min(d_{s-1}(o), p_s(x) + d_{s-1}(o - x)), where x is any shift of slot s.
struct RouteSearch<'a> {
    group: Group,
    /// Shift of each port, indexed by slot and port.
    slots: Vec<&'a [u32]>,
    /// Minimum price of a route over the first s slots to offset o, ordered by s and then by o.
    min_prices: Vec<u32>,
    /// Price of a hop, indexed by slot and port.
    prices: Vec<Vec<u32>>,
    /// Number of routes that use a port, indexed by slot and port.
    loads: Vec<Vec<u32>>,
}

impl<'a> RouteSearch<'a> {
    fn new(group: Group, slots: impl Iterator<Item = &'a [u32]>) -> RouteSearch<'a> {
        let slots: Vec<&[u32]> = slots.collect();
        let loads: Vec<Vec<u32>> = slots.iter().map(|shifts| vec![0; shifts.len()]).collect();
        RouteSearch {
            group,
            min_prices: vec![UNREACHABLE; (slots.len() + 1) * group.ranks() as usize],
            prices: loads.clone(),
            loads,
            slots,
        }
    }

    /// Finds a route to each rank. Routes one block after another, in several passes if a slot has
    /// several ports. Returns `None` if a rank is unreachable.
    fn routes(&mut self) -> Option<Vec<Vec<RouteHop>>> {
        let ranks = self.group.ranks();
        let ports: usize = self.slots.iter().map(|shifts| shifts.len()).sum();
        let has_choice = ports > self.slots.len();
        let work = u64::from(ranks).pow(2) * ports as u64;
        let balances = has_choice && work <= MAX_BALANCING;
        self.compute_prices([1, 1]);
        let mut routes: Vec<Vec<RouteHop>> = vec![Vec::new(); ranks as usize];
        for prices in if balances { &PRICES[..] } else { &[[1, 1]] } {
            for rank in (1..ranks).rev() {
                for (slot, port) in std::mem::take(&mut routes[rank as usize]) {
                    self.loads[slot][usize::from(port)] -= 1;
                }
                if balances {
                    self.compute_prices(*prices);
                }
                routes[rank as usize] = self.route(rank)?;
            }
        }
        Some(routes)
    }

    /// Computes the prices of all hops and the minimum prices of all routes. `busy` is the price of
    /// a hop over the ports with the highest load of a slot; `other` is the price over other ports.
    fn compute_prices(&mut self, [busy, other]: [u32; 2]) {
        for (prices, loads) in self.prices.iter_mut().zip(&self.loads) {
            let max_load = loads.iter().copied().max();
            for (price, load) in prices.iter_mut().zip(loads) {
                *price = if Some(*load) < max_load { other } else { busy };
            }
        }
        let ranks = self.group.ranks() as usize;
        self.min_prices[..ranks].fill(UNREACHABLE);
        self.min_prices[0] = 0;
        for (slot, (shifts, prices)) in self.slots.iter().zip(&self.prices).enumerate() {
            interrupt::check();
            let (before, after) = self.min_prices[slot * ranks..].split_at_mut(ranks);
            after[..ranks].copy_from_slice(before);
            for (&shift, &price) in shifts.iter().zip(prices).filter(|(shift, _)| **shift > 0) {
                let lower = |current: u32, previous: u32| current.min(previous + price);
                self.group
                    .combine(&mut after[..ranks], before, shift, lower);
            }
        }
    }

    /// Returns a cheapest route to `rank` and adds the route to the loads. Among ports of the same
    /// price, uses the port with the lowest load.
    fn route(&mut self, rank: u32) -> Option<Vec<RouteHop>> {
        let ranks = self.group.ranks() as usize;
        let least = |slot: usize, rank: u32| self.min_prices[slot * ranks + rank as usize];
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
                let previous = self.group.minus(at, shifts[port]);
                shifts[port] > 0 && least(slot, previous) + prices[port] == remaining
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
