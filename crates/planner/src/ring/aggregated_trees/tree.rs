//! Search for the tree of a group of g neighbouring ranks. The search adds one slot after another.
//!
//! In the first slot, every rank of the group sends its block to the roots, or the roots exchange
//! sums ([`super::root_choice`]). In the later slots, the ranks that have all g blocks send these
//! blocks to other ranks. The tree is rotated by all multiples of g ranks. Tree edges form an *edge
//! class* if their direction and length are equal and their senders are congruent modulo g. Their
//! rotations coincide. In a slot with up to v blocks on a lightpath, n edges of a class therefore
//! need ceil(n g / v) lightpaths.
//!
//! Each slot has a price per link ([`crate::ring::relay_tree::prices`]). The prices determine the
//! cost of reaching the remaining ranks in later slots ([`super::slot_filling`]).

use std::sync::Arc;

use super::gaps::{OpenGap, gaps_between};
use super::grouping::Grouping;
use super::price_limits::{PRICE_TOLERANCE, PriceLimits, capacities, total_price};
use super::root_choice::FirstSlot;
use super::slot_filling::{BundleSlot, ChoiceWeights, fill_slot};
use crate::ring::relay_tree::prices::{PriceProblem, PriceTable, adjust, count_by_size};

/// Tree along which the blocks of group 0 (ranks 0 to g - 1) reach all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleTree {
    pub(super) slots: Vec<BundleSlot>,
}

/// Penalty for a rank that the tree does not reach. (The mean price of a link is 1. The penalty
/// exceeds the price of any lightpath.)
const UNREACHED_PRICE: f32 = 300.0;

/// Maximum number of table entries that one price adjustment computes. (The computation takes about
/// 0.01 s.) The limit determines the number of rounds of the adjustment, which is always between 10
/// and 60.
const MAX_TABLE_ENTRIES: usize = 40_000_000;

/// Maximum ratio of the price of reaching the remaining ranks to the price of all links of the
/// remaining slots. (The ratio may exceed 1 because the search tries only some lengths of
/// lightpaths. With all lengths, trees would cost up to 0.4 % less.)
const MAX_PRICE_RATIO: f32 = 1.004;

/// Divisor of the number of rounds of a price adjustment that starts from the prices of a similar
/// recipe.
const ROUNDS_DIVISOR_WITH_PRICES: usize = 4;

const LEARNING_RATE: f32 = 0.3;

/// Table of the minimum total lengths of trees, in links. (The length of a tree equals its price if
/// every link has price 1.)
pub(super) struct TreeLengths {
    max_slots: usize,
    table: PriceTable,
}

impl TreeLengths {
    /// Computes the table for trees of up to `max_slots` slots.
    pub(super) fn new(grouping: &Grouping, lengths: &[u32], max_slots: usize) -> TreeLengths {
        let even = vec![1.0; max_slots];
        let problem = PriceProblem {
            lengths,
            capacity: &even,
            unreached_price: UNREACHED_PRICE,
            max_ratio: f32::INFINITY,
        };
        let table = PriceTable::new(&problem, &even, grouping.ranks as usize - 1);
        TreeLengths { max_slots, table }
    }

    /// Returns the minimum total length, in links, of the lightpaths that reach n consecutive ranks
    /// within `slots` slots. The result is indexed by n.
    pub(super) fn for_gaps(&self, slots: usize) -> &[f32] {
        self.table.values(self.max_slots - slots)
    }
}

/// Tree that does not reach all ranks yet.
#[derive(Clone)]
struct Partial {
    slots: Vec<Arc<BundleSlot>>,
    gaps: Vec<OpenGap>,
}

impl Partial {
    /// Returns the sizes (numbers of ranks) of the gaps of unreached ranks, ascending, and the
    /// number of gaps of each size.
    fn gap_sizes(&self) -> Vec<(usize, u32)> {
        count_by_size(self.gaps.iter().map(|gap| gap.size))
    }
}

/// Number of partial trees that the beam search retains after each slot. (A width of 6 doubles the
/// search time, and shortens all_gathers by 0.4 % on 60 ranks and by 2 % on 128 ranks.)
const BEAM_WIDTH: usize = 3;

/// Weights of the two variants in which the search fills each slot. The first variant adds mostly
/// the lightpaths of cheapest trees; the second variant adds lightpaths one by one.
const WEIGHTS: [ChoiceWeights; 2] = [
    ChoiceWeights {
        planned_share: 0.97,
        length_bonus: 0.05,
    },
    ChoiceWeights {
        planned_share: 0.0,
        length_bonus: 0.15,
    },
];

pub(super) struct TreeSearch<'a> {
    pub(super) grouping: &'a Grouping,
    /// Lengths that lightpaths may have, in links, ascending.
    pub(super) lengths: &'a [u32],
    pub(super) first_slots: &'a [FirstSlot],
    /// Maximum number of pieces on a lightpath, indexed by slot, without the first slot.
    pub(super) volumes: &'a [u32],
    /// Minimum share (0 to 1) of all links of all slots that the tree must leave free.
    pub(super) min_free_share: f32,
}

impl TreeSearch<'_> {
    /// Searches for a tree that reaches all ranks. Returns `None` if the search fails.
    pub(super) fn tree(&self) -> Option<BundleTree> {
        let mut partials = self.partials();
        let capacities = capacities(self.grouping, self.volumes);
        let first = partials.first()?;
        // Do not start from the prices of other recipes: a recipe that the user specifies by
        // options must have the same tree.
        let mut prices = vec![1.0; capacities.len()];
        self.adjust(first, &capacities, f32::INFINITY, &mut prices, 1);
        let table = self.table(&partials, &capacities, &prices);
        for (slot, &volume) in self.volumes.iter().enumerate() {
            let (gap_prices, later_prices) = (table.values(slot), table.values(slot + 1));
            let max_price = MAX_PRICE_RATIO * total_price(&prices[slot..], &capacities[slot..]);
            partials.retain(|partial| remaining_price(partial, gap_prices) <= max_price);
            let extended = self.extend(&partials, volume, (prices[slot], later_prices));
            partials = select_beam(extended, later_prices);
        }
        let complete = partials
            .into_iter()
            .find(|partial| partial.gaps.is_empty())?;
        let slots = complete.slots.iter().map(|slot| BundleSlot::clone(slot));
        Some(BundleTree {
            slots: slots.collect(),
        })
    }

    fn partials(&self) -> Vec<Partial> {
        let partial = |first: &FirstSlot| Partial {
            gaps: gaps_between(self.grouping.ranks, &first.roots),
            slots: vec![Arc::new(first.slot.clone())],
        };
        self.first_slots.iter().map(partial).collect()
    }

    /// Adjusts the prices of links. Adds the final prices and the minimum price of a tree to
    /// `limits`. Returns false if the adjustment proves that no tree leaves `min_free_share` of the
    /// links free.
    pub(super) fn may_fit(&self, limits: &mut PriceLimits) -> bool {
        let (partials, capacities) = (self.partials(), capacities(self.grouping, self.volumes));
        let (mut prices, rounds_divisor) = match limits.latest() {
            Some(prices) => (prices.to_vec(), ROUNDS_DIVISOR_WITH_PRICES),
            None => (vec![1.0; capacities.len()], 1),
        };
        let Some(first) = partials.first() else {
            return false;
        };
        let max_ratio = self.max_ratio();
        let ratio = self.adjust(first, &capacities, max_ratio, &mut prices, rounds_divisor);
        let table = self.table(&partials, &capacities, &prices);
        let costs = partials
            .iter()
            .map(|partial| remaining_price(partial, table.values(0)));
        limits.add_min_price(&prices, costs.fold(f32::INFINITY, f32::min));
        ratio <= max_ratio
    }

    fn max_ratio(&self) -> f32 {
        PRICE_TOLERANCE * (1.0 - self.min_free_share)
    }

    /// Adjusts `prices` (price of a link, indexed by slot) to the ranks that a partial tree does
    /// not reach yet. Returns the greatest ratio of the minimum price of a tree to the total price
    /// of the slots' links. Stops at a ratio above `max_ratio`.
    fn adjust(
        &self,
        partial: &Partial,
        capacities: &[f32],
        max_ratio: f32,
        prices: &mut [f32],
        rounds_divisor: usize,
    ) -> f32 {
        let entries = 2 * self.grouping.ranks as usize * capacities.len() * self.lengths.len();
        let rounds = (MAX_TABLE_ENTRIES / entries.max(1)).clamp(10, 60) / rounds_divisor;
        let problem = self.price_problem(capacities, max_ratio);
        adjust(
            &problem,
            &partial.gap_sizes(),
            prices,
            rounds,
            LEARNING_RATE,
        )
    }

    fn table(&self, partials: &[Partial], capacities: &[f32], prices: &[f32]) -> PriceTable {
        let gaps = partials.iter().flat_map(|partial| &partial.gaps);
        let largest = gaps.map(|gap| gap.size).max().unwrap_or(0);
        let problem = self.price_problem(capacities, f32::INFINITY);
        PriceTable::new(&problem, prices, largest as usize)
    }

    fn price_problem<'a>(&'a self, capacities: &'a [f32], max_ratio: f32) -> PriceProblem<'a> {
        PriceProblem {
            lengths: self.lengths,
            capacity: capacities,
            unreached_price: UNREACHED_PRICE,
            max_ratio,
        }
    }

    /// Extends each partial tree by a slot, once with each entry of [`WEIGHTS`]. `prices` is a
    /// pair: the price of a link of the slot, and a table indexed by n. The table has the price of
    /// reaching n consecutive ranks in later slots.
    fn extend(&self, partials: &[Partial], volume: u32, prices: (f32, &[f32])) -> Vec<Partial> {
        let extend_one = |partial: &Partial, weights| {
            let (grouping, gaps) = (self.grouping, &partial.gaps);
            let (slot, gaps) = fill_slot(grouping, self.lengths, prices, volume, weights, gaps)?;
            let slots = partial.slots.iter().cloned().chain([Arc::new(slot)]);
            let slots = slots.collect();
            Some(Partial { slots, gaps })
        };
        let extend_all = |weights| {
            partials
                .iter()
                .filter_map(move |partial| extend_one(partial, weights))
        };
        WEIGHTS.into_iter().flat_map(extend_all).collect()
    }
}

/// Returns the total price of reaching all ranks that a partial tree does not reach yet.
/// `gap_prices` is the price of reaching n consecutive ranks, indexed by n.
fn remaining_price(partial: &Partial, gap_prices: &[f32]) -> f32 {
    let gaps = partial.gaps.iter();
    gaps.map(|gap| gap_prices[gap.size as usize]).sum()
}

/// Returns the [`BEAM_WIDTH`] partial trees with the lowest remaining prices, without duplicates.
/// `gap_prices` is the price of reaching n consecutive ranks, indexed by n.
fn select_beam(partials: Vec<Partial>, gap_prices: &[f32]) -> Vec<Partial> {
    let priced = partials.into_iter();
    let priced = priced.map(|partial| (remaining_price(&partial, gap_prices), partial));
    let mut priced: Vec<(f32, Partial)> = priced.collect();
    priced.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut retained_sizes = Vec::new();
    priced.retain(|(_, partial)| {
        let sizes = partial.gap_sizes();
        let is_new = !retained_sizes.contains(&sizes);
        retained_sizes.push(sizes);
        is_new
    });
    priced.truncate(BEAM_WIDTH);
    priced.into_iter().map(|(_, partial)| partial).collect()
}
