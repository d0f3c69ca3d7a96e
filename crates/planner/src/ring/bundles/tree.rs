//! One tree for the blocks of g neighbouring ranks, grown slot by slot at prices.
//!
//! What the tree does is turned by all multiples of g ranks. So a lightpath of length l of the tree loads the links of its direction l / g times
//! in the mean, by classes of links modulo g ([`super::walks`]).
//!
//! In its first slot every owner sends its own block to the *holders*, or holders of sums exchange those ([`super::starts`]). From then on, the holders of the bundle send all
//! g blocks. Lightpaths of the tree of one direction, class and length are a *family*: their rotations have the same ends, so that n of
//! them, with n g blocks, go over ceil(n g / v) lightpaths in a slot of v blocks for each.
//!
//! Slots have prices, as in [`crate::ring::relay_tree::prices`], with which what is left for later has a value: V ([`super::filling`]).

use std::sync::Arc;

use super::filling::{BundleSlot, Taste, filled};
use super::gaps::{OpenGap, census, gaps_between};
use super::grouping::Grouping;
use super::limits::{FITTING, PriceLimits, offered, rooms};
use super::starts::Start;
use crate::ring::relay_tree::prices::{PriceProblem, PriceTable, adjust};

/// The tree of the blocks of ranks 0 to g - 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleTree {
    /// In the first, owners send to holders of all blocks, or holders to each other.
    pub(super) slots: Vec<BundleSlot>,
}

/// The price of a rank that is left at the end: more than any lightpath is worth.
const LEFT_OVER: f32 = 300.0;

/// Table entries that price adjustment may fill: a hundredth of a second or so. Rounds stay between 10 and 60.
const MOST_PRICED: usize = 40_000_000;

/// Ratio of what trees of the usual lengths cost to what slots offer at which lightpaths of all lengths may still fit.
const NEARLY_FITTING: f32 = 1.004;

/// Prices that were found for another try of the same frame need so many times fewer rounds.
const ADJUSTED: usize = 4;

/// Rate of price adjustment, as in [`crate::ring::relay_tree::tree`].
const EAGERNESS: f32 = 0.3;

/// What trees cost at least where all slots have one price.
pub(super) struct Costs {
    slots: usize,
    table: PriceTable,
}

impl Costs {
    /// Of trees of up to so many slots.
    pub(super) fn new(grouping: &Grouping, lengths: &[u32], slots: usize) -> Costs {
        let even = vec![1.0; slots];
        let problem = PriceProblem {
            lengths,
            capacity: &even,
            left_over: LEFT_OVER,
            hopeless: f32::INFINITY,
        };
        let table = PriceTable::new(&problem, &even, grouping.ranks as usize - 1);
        Costs { slots, table }
    }

    /// Of filling gaps in so many slots, by their sizes.
    pub(super) fn of_gaps(&self, slots: usize) -> &[f32] {
        self.table.values(self.slots - slots)
    }
}

/// A tree that is not complete.
#[derive(Clone)]
struct Partial {
    slots: Vec<Arc<BundleSlot>>,
    gaps: Vec<OpenGap>,
}

/// Partial trees that are kept after each slot. With 6, all_gathers on 60 and on 128 ranks take 0.4 and 2 % less time, and the
/// search twice as long.
const MAX_KEPT: usize = 3;

/// Two ways to choose among lightpaths: first those of cheapest trees, or all one by one.
const TASTES: [Taste; 2] = [
    Taste {
        planned: 0.97,
        longer: 0.05,
    },
    Taste {
        planned: 0.0,
        longer: 0.15,
    },
];

/// A tree that is looked for.
pub(super) struct Search<'a> {
    pub(super) grouping: &'a Grouping,
    pub(super) lengths: &'a [u32],
    pub(super) starts: &'a [Start],
    /// Pieces on a lightpath in each slot after the first; in the last one fewer will do, too.
    pub(super) volumes: &'a [u32],
    /// The part of all links that is to be left at least.
    pub(super) spare: f32,
}

impl Search<'_> {
    /// Returns the tree, if one is found.
    pub(super) fn tree(&self) -> Option<BundleTree> {
        let mut partials = self.partials();
        let rooms = rooms(self.grouping, self.volumes);
        let first = partials.first()?;
        // Nothing of other tries counts here: a recipe that is given by name has the same tree.
        let mut prices = vec![1.0; rooms.len()];
        self.adjust(first, &rooms, f32::INFINITY, &mut prices, 1);
        let table = self.table(&partials, &rooms, &prices);
        for (slot, &volume) in self.volumes.iter().enumerate() {
            let (now, later) = (table.values(slot), table.values(slot + 1));
            // Trees that cost more than all slots offer do not fit, whatever the prices; with lightpaths of all lengths they
            // cost a little less.
            let supply = NEARLY_FITTING * offered(&prices[slot..], &rooms[slot..]);
            partials.retain(|partial| value(partial, now) <= supply);
            let grown = self.grown(&partials, volume, (prices[slot], later));
            partials = best(grown, later);
        }
        let whole = partials
            .into_iter()
            .find(|partial| partial.gaps.is_empty())?;
        let slots = whole.slots.iter().map(|slot| BundleSlot::clone(slot));
        Some(BundleTree {
            slots: slots.collect(),
        })
    }

    fn partials(&self) -> Vec<Partial> {
        let of_start = |start: &Start| Partial {
            gaps: gaps_between(self.grouping.ranks, &start.holders),
            slots: vec![Arc::new(start.slot.clone())],
        };
        self.starts.iter().map(of_start).collect()
    }

    /// Whether prices of the slots are not known at which trees cost more than the slots offer.
    pub(super) fn may_fit(&self, limits: &mut PriceLimits) -> bool {
        let (partials, rooms) = (self.partials(), rooms(self.grouping, self.volumes));
        let (mut prices, ease) = match limits.latest() {
            Some(prices) => (prices.to_vec(), ADJUSTED),
            None => (vec![1.0; rooms.len()], 1),
        };
        let Some(first) = partials.first() else {
            return false;
        };
        let ratio = self.adjust(first, &rooms, self.most_ratio(), &mut prices, ease);
        let table = self.table(&partials, &rooms, &prices);
        let costs = partials
            .iter()
            .map(|partial| value(partial, table.values(0)));
        limits.learn(&prices, costs.fold(f32::INFINITY, f32::min));
        ratio <= self.most_ratio()
    }

    /// Above that ratio of what a tree costs to what slots offer, none is looked for.
    fn most_ratio(&self) -> f32 {
        FITTING * (1.0 - self.spare)
    }

    /// Adjusts prices for the gaps of a partial tree, in so many times fewer rounds. Returns the greatest ratio of what trees
    /// cost to what slots offer; above `hopeless` it stops.
    fn adjust(
        &self,
        partial: &Partial,
        rooms: &[f32],
        hopeless: f32,
        prices: &mut [f32],
        ease: usize,
    ) -> f32 {
        let table = 2 * self.grouping.ranks as usize * rooms.len() * self.lengths.len();
        let rounds = (MOST_PRICED / table.max(1)).clamp(10, 60) / ease;
        let problem = self.problem(rooms, hopeless);
        adjust(&problem, &census(&partial.gaps), prices, rounds, EAGERNESS)
    }

    /// What gaps of the partial trees cost at prices.
    fn table(&self, partials: &[Partial], rooms: &[f32], prices: &[f32]) -> PriceTable {
        let gaps = partials.iter().flat_map(|partial| &partial.gaps);
        let most = gaps.map(|gap| gap.size).max().unwrap_or(0);
        PriceTable::new(&self.problem(rooms, f32::INFINITY), prices, most as usize)
    }

    fn problem<'a>(&'a self, rooms: &'a [f32], hopeless: f32) -> PriceProblem<'a> {
        PriceProblem {
            lengths: self.lengths,
            capacity: rooms,
            left_over: LEFT_OVER,
            hopeless,
        }
    }

    /// Partial trees with another slot, by both tastes.
    fn grown(&self, partials: &[Partial], volume: u32, prices: (f32, &[f32])) -> Vec<Partial> {
        let grow = |partial: &Partial, taste| {
            let (grouping, gaps) = (self.grouping, &partial.gaps);
            let (made, gaps) = filled(grouping, self.lengths, prices, volume, taste, gaps)?;
            let slots = partial.slots.iter().cloned().chain([Arc::new(made)]);
            let slots = slots.collect();
            Some(Partial { slots, gaps })
        };
        let by_taste = |taste| {
            partials
                .iter()
                .filter_map(move |partial| grow(partial, taste))
        };
        TASTES.into_iter().flat_map(by_taste).collect()
    }
}

/// What the gaps of a partial tree cost, by their sizes.
fn value(partial: &Partial, by_size: &[f32]) -> f32 {
    let gaps = partial.gaps.iter();
    gaps.map(|gap| by_size[gap.size as usize]).sum()
}

/// The partial trees that leave the least for later, of different gaps.
fn best(grown: Vec<Partial>, later: &[f32]) -> Vec<Partial> {
    let valued = grown.into_iter();
    let valued = valued.map(|partial| (value(&partial, later), partial));
    let mut valued: Vec<(f32, Partial)> = valued.collect();
    valued.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut known = Vec::new();
    valued.retain(|(_, partial)| {
        let sizes = census(&partial.gaps);
        let is_new = !known.contains(&sizes);
        known.push(sizes);
        is_new
    });
    valued.truncate(MAX_KEPT);
    valued.into_iter().map(|(_, partial)| partial).collect()
}
