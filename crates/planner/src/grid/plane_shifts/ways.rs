//! The hops of the blocks of an all_to_all, the same from every rank.
//!
//! Let d_s(o) be the fewest hops of the first s slots that add up to the offset o: in each slot a block stays, or goes
//! along its row, or along its column,
//!
//! d_s(o) = min(d_{s-1}(o), 1 + d_{s-1}(o - x_s), 1 + d_{s-1}(o - y_s)).
//!
//! A slot takes as long as the greater of its two numbers of blocks. So blocks take their ways one after another: first by few
//! hops, on the plane that carries fewer blocks in a slot if there is a choice; then each again with what a hop adds to the time
//! as its price, nothing on the plane that carries fewer, so that the sum over slots only falls.

use super::spread::SlotHops;
use super::torus::{Sequence, Shifts, Torus, steps};
use opticoll_base::interrupt;

/// No way.
const NEVER: u32 = u32::MAX / 2;

/// In each pass the price of a hop, and of one on the plane of a slot that carries fewer blocks.
const PRICES: [[u32; 2]; 4] = [[5, 4], [64, 1], [64, 1], [64, 1]];

/// For each slot and plane, which blocks are sent from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ways {
    /// Senders, as places on from the rank of the block.
    pub(super) slots: Vec<[SlotHops; 2]>,
    /// For each sender the place on to which its block belongs.
    pub(super) blocks: Vec<[Vec<u32>; 2]>,
}

/// The hops that all blocks of a rank take at least.
///
/// # Errors
/// The number of blocks that have no way.
pub(super) fn fewest_hops(torus: Torus, slots: &[Shifts], layer: &mut Layers) -> Result<u64, u64> {
    layer.fill(torus, slots, |_, _| 1);
    let last = layer.last(slots.len());
    let missing = last.iter().filter(|hops| **hops >= NEVER).count() as u64;
    match missing {
        0 => Ok(last.iter().map(|hops| u64::from(*hops)).sum()),
        missing => Err(missing),
    }
}

/// The least prices by slot and place; room that is used again.
#[derive(Default)]
pub(super) struct Layers {
    least: Vec<u32>,
    /// By slot and plane.
    prices: Vec<[u32; 2]>,
    places: usize,
}

impl Layers {
    fn fill(&mut self, torus: Torus, slots: &[Shifts], price: impl Fn(usize, usize) -> u32) {
        let places = torus.places() as usize;
        self.places = places;
        self.least.clear();
        self.least.resize((slots.len() + 1) * places, NEVER);
        self.least[0] = 0;
        self.prices.clear();
        let prices = (0..slots.len()).map(|slot| [0, 1].map(|plane| price(slot, plane)));
        self.prices.extend(prices);
        for (slot, &shifts) in slots.iter().enumerate() {
            interrupt::check();
            let (before, after) = self.least[slot * places..].split_at_mut(places);
            let after = &mut after[..places];
            after.copy_from_slice(before);
            for (plane, by) in steps(torus, shifts).into_iter().enumerate() {
                if by > 0 {
                    relax(
                        torus,
                        before,
                        after,
                        plane,
                        shifts[plane],
                        self.prices[slot][plane],
                    );
                }
            }
        }
    }

    fn last(&self, slots: usize) -> &[u32] {
        &self.least[slots * self.places..][..self.places]
    }

    fn at(&self, slots: usize, place: u32) -> u32 {
        self.least[slots * self.places + place as usize]
    }
}

/// Hops of one slot along one plane.
fn relax(torus: Torus, before: &[u32], after: &mut [u32], plane: usize, shift: u32, price: u32) {
    let columns = torus.columns as usize;
    let mut enter = |from: &[u32], to: usize| {
        for (after, before) in after[to..].iter_mut().zip(from) {
            *after = (*after).min(before + price);
        }
    };
    if plane == 1 {
        let by = shift as usize * columns;
        let (start, end) = before.split_at(before.len() - by);
        enter(start, by);
        enter(end, 0);
        return;
    }
    for (row, of_row) in before.chunks(columns).enumerate() {
        let (start, end) = of_row.split_at(columns - shift as usize);
        enter(start, row * columns + shift as usize);
        enter(end, row * columns);
    }
}

impl Ways {
    /// The ways of a sequence; none where some block has no way.
    pub(super) fn of(torus: Torus, sequence: &Sequence) -> Option<Ways> {
        let slots = &sequence.slots;
        let mut layers = Layers::default();
        let mut loads = vec![[0u32; 2]; slots.len()];
        let mut hops_of: Vec<Vec<(usize, usize)>> = vec![Vec::new(); torus.places() as usize];
        for [price, balancing] in PRICES {
            for place in (1..torus.places()).rev() {
                for (slot, plane) in std::mem::take(&mut hops_of[place as usize]) {
                    loads[slot][plane] -= 1;
                }
                layers.fill(torus, slots, |slot, plane| {
                    let [own, other] = [loads[slot][plane], loads[slot][1 - plane]];
                    if own < other { balancing } else { price }
                });
                let hops = trace(torus, slots, &layers, place)?;
                for &(slot, plane) in &hops {
                    loads[slot][plane] += 1;
                }
                hops_of[place as usize] = hops;
            }
        }
        Some(Ways::along(torus, slots, &hops_of))
    }

    fn along(torus: Torus, slots: &[Shifts], hops_of: &[Vec<(usize, usize)>]) -> Ways {
        let mut ways = Ways {
            slots: slots
                .iter()
                .map(|&shifts| {
                    steps(torus, shifts).map(|shift| SlotHops {
                        shift,
                        senders: Vec::new(),
                    })
                })
                .collect(),
            blocks: vec![Default::default(); slots.len()],
        };
        for (place, hops) in (0..).zip(hops_of) {
            let mut at = 0;
            for &(slot, plane) in hops {
                let of_plane = &mut ways.slots[slot][plane];
                of_plane.senders.push(at);
                ways.blocks[slot][plane].push(place);
                at = torus.plus(at, of_plane.shift);
            }
        }
        ways
    }

    /// The hops of the blocks of one rank.
    pub(super) fn hops(&self) -> u64 {
        let blocks = self.blocks.iter().flatten();
        blocks.map(|of_plane| of_plane.len() as u64).sum()
    }

    /// The sum over slots of the greater number of blocks along rows and along columns.
    pub(super) fn load(&self) -> u64 {
        let slots = self.blocks.iter();
        let greatest = slots.map(|[row, column]| row.len().max(column.len()) as u64);
        greatest.sum()
    }
}

/// The hops of a cheapest way to a place, by slot and plane.
fn trace(
    torus: Torus,
    slots: &[Shifts],
    layers: &Layers,
    place: u32,
) -> Option<Vec<(usize, usize)>> {
    let mut price = layers.at(slots.len(), place);
    if price >= NEVER {
        return None;
    }
    let (mut at, mut hops) = (place, Vec::new());
    for (slot, &shifts) in slots.iter().enumerate().rev() {
        if layers.at(slot, at) == price {
            continue;
        }
        let by = steps(torus, shifts);
        let came = (0..2).find(|&plane| {
            let before = layers.at(slot, torus.minus(at, by[plane]));
            by[plane] > 0 && before + layers.prices[slot][plane] == price
        })?;
        at = torus.minus(at, by[came]);
        price = layers.at(slot, at);
        hops.push((slot, came));
    }
    hops.reverse();
    Some(hops)
}
