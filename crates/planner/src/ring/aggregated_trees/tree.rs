//! Search of one tree for the blocks of g neighbouring ranks, grown slot by slot at prices of
//! links.
//!
//! The tree is rotated by all multiples of g ranks, so that a tree edge of length l loads the links
//! of its direction l / g times in the mean. The load of a link depends on its residue modulo g
//! ([`super::closed_walks`]).
//!
//! In the first slot every owner sends its block to the roots, or the roots exchange sums
//! ([`super::root_choice`]). In the later slots, the ranks that have the bundle send all g blocks.
//! Tree edges of one direction, residue and length form an *edge class*: their rotations have the
//! same ends, so that the n g blocks of n edges go over ceil(n g / v) lightpaths in a slot of
//! volume v.
//!
//! Slots have prices as in [`crate::ring::relay_tree::prices`], which give the gaps that remain for
//! later slots a value V ([`super::slot_filling`]).

use std::sync::Arc;

use super::gaps::{OpenGap, gaps_between};
use super::grouping::Grouping;
use super::price_limits::{PRICE_TOLERANCE, PriceLimits, rooms, total_price};
use super::root_choice::FirstSlot;
use super::slot_filling::{BundleSlot, ChoiceWeights, fill_slot};
use crate::ring::relay_tree::prices::{PriceProblem, PriceTable, adjust, count_by_size};

/// Tree of the blocks of ranks 0 to g - 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleTree {
    /// Slots; in the first, owners send to the roots, or the roots to each other.
    pub(super) slots: Vec<BundleSlot>,
}

/// Price of a rank that the last slot leaves unreached, where links have a mean price of 1: more
/// than any lightpath costs.
const UNREACHED_PRICE: f32 = 300.0;

/// Maximum number of table entries that one price adjustment fills: about a hundredth of a second.
/// The rounds stay between 10 and 60.
const MAX_TABLE_ENTRIES: usize = 40_000_000;

/// Maximum ratio of the least price of trees with selected lengths of lightpaths to the slots'
/// total price. Trees with lightpaths of all lengths cost up to 0.4 % less.
const MAX_PRICE_RATIO: f32 = 1.004;

/// Divisor of the number of rounds if the adjustment begins with prices of another recipe of the
/// same class.
const ROUNDS_DIVISOR_WITH_PRICES: usize = 4;

/// Initial learning rate of the price adjustment, as in [`crate::ring::relay_tree::tree`].
const LEARNING_RATE: f32 = 0.3;

/// Least total lengths of trees: their least prices if every link of every slot has price 1.
pub(super) struct TreeLengths {
    slots: usize,
    table: PriceTable,
}

impl TreeLengths {
    /// Tabulates trees of up to `slots` slots.
    pub(super) fn new(grouping: &Grouping, lengths: &[u32], slots: usize) -> TreeLengths {
        let even = vec![1.0; slots];
        let error = PriceProblem {
            lengths,
            capacity: &even,
            unreached_price: UNREACHED_PRICE,
            max_ratio: f32::INFINITY,
        };
        let table = PriceTable::new(&error, &even, grouping.ranks as usize - 1);
        TreeLengths { slots, table }
    }

    /// Returns the least total length of the lightpaths that fill a gap within `slots` slots, in
    /// links, by the size of the gap.
    pub(super) fn for_gaps(&self, slots: usize) -> &[f32] {
        self.table.values(self.slots - slots)
    }
}

/// Tree that does not reach all ranks yet.
#[derive(Clone)]
struct Partial {
    slots: Vec<Arc<BundleSlot>>,
    gaps: Vec<OpenGap>,
}

impl Partial {
    /// Returns the sizes of the gaps, ascending, each with its number of gaps.
    fn sizes(&self) -> Vec<(usize, u32)> {
        count_by_size(self.gaps.iter().map(|gap| gap.size))
    }
}

/// Maximum number of partial trees that are kept after each slot (beam search). With 6, all_gathers
/// on 60 and on 128 ranks take 0.4 % and 2 % less time, and the search takes twice as long.
const BEAM_WIDTH: usize = 3;

/// Weights of the two ways to choose lightpaths: mostly by cheapest trees, or one by one.
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

/// Search for the tree of a recipe.
pub(super) struct TreeSearch<'a> {
    pub(super) grouping: &'a Grouping,
    pub(super) lengths: &'a [u32],
    /// First slots to begin with.
    pub(super) first_slots: &'a [FirstSlot],
    /// Maximum number of pieces on a lightpath in each slot after the first.
    pub(super) volumes: &'a [u32],
    /// Minimum share of all links that the tree must leave free.
    pub(super) spare: f32,
}

impl TreeSearch<'_> {
    /// Returns the tree, or `None` if the search finds none.
    pub(super) fn tree(&self) -> Option<BundleTree> {
        let mut partials = self.partials();
        let rooms = rooms(self.grouping, self.volumes);
        let first = partials.first()?;
        // Prices of other recipes are not used here: a recipe that is given by options has the same
        // tree.
        let mut prices = vec![1.0; rooms.len()];
        self.adjust(first, &rooms, f32::INFINITY, &mut prices, 1);
        let table = self.table(&partials, &rooms, &prices);
        for (slot, &volume) in self.volumes.iter().enumerate() {
            let (current, later) = (table.values(slot), table.values(slot + 1));
            // Trees that cost more than the links of all slots do not fit at any prices.
            let supply = MAX_PRICE_RATIO * total_price(&prices[slot..], &rooms[slot..]);
            partials.retain(|partial| remaining_price(partial, current) <= supply);
            let extended = self.extend(&partials, volume, (prices[slot], later));
            partials = best(extended, later);
        }
        let complete = partials
            .into_iter()
            .find(|partial| partial.gaps.is_empty())?;
        let slots = complete.slots.iter().map(|slot| BundleSlot::clone(slot));
        Some(BundleTree {
            slots: slots.collect(),
        })
    }

    /// Returns the partial trees after the first slot.
    fn partials(&self) -> Vec<Partial> {
        let partial = |first: &FirstSlot| Partial {
            gaps: gaps_between(self.grouping.ranks, &first.roots),
            slots: vec![Arc::new(first.slot.clone())],
        };
        self.first_slots.iter().map(partial).collect()
    }

    /// Returns whether no prices are known at which the least price of a tree exceeds the total
    /// price of the slots' links. Adjusts prices for this problem and adds the result to `limits`.
    pub(super) fn may_fit(&self, limits: &mut PriceLimits) -> bool {
        let (partials, rooms) = (self.partials(), rooms(self.grouping, self.volumes));
        let (mut prices, rounds_divisor) = match limits.latest() {
            Some(prices) => (prices.to_vec(), ROUNDS_DIVISOR_WITH_PRICES),
            None => (vec![1.0; rooms.len()], 1),
        };
        let Some(first) = partials.first() else {
            return false;
        };
        let max_ratio = self.max_ratio();
        let ratio = self.adjust(first, &rooms, max_ratio, &mut prices, rounds_divisor);
        let table = self.table(&partials, &rooms, &prices);
        let costs = partials
            .iter()
            .map(|partial| remaining_price(partial, table.values(0)));
        limits.add_min_cost(&prices, costs.fold(f32::INFINITY, f32::min));
        ratio <= max_ratio
    }

    /// Returns the maximum ratio of the price of a tree to the total price of the slots' links.
    fn max_ratio(&self) -> f32 {
        PRICE_TOLERANCE * (1.0 - self.spare)
    }

    /// Adjusts prices for the gaps of a partial tree, in the usual number of rounds divided by
    /// `rounds_divisor`. Returns the greatest ratio of the least price of a tree to the total price
    /// of the slots' links. Stops at a ratio above `max_ratio`.
    fn adjust(
        &self,
        partial: &Partial,
        rooms: &[f32],
        max_ratio: f32,
        prices: &mut [f32],
        rounds_divisor: usize,
    ) -> f32 {
        let table = 2 * self.grouping.ranks as usize * rooms.len() * self.lengths.len();
        let rounds = (MAX_TABLE_ENTRIES / table.max(1)).clamp(10, 60) / rounds_divisor;
        let error = self.error(rooms, max_ratio);
        adjust(&error, &partial.sizes(), prices, rounds, LEARNING_RATE)
    }

    /// Returns the table of prices of the gaps of partial trees.
    fn table(&self, partials: &[Partial], rooms: &[f32], prices: &[f32]) -> PriceTable {
        let gaps = partials.iter().flat_map(|partial| &partial.gaps);
        let largest = gaps.map(|gap| gap.size).max().unwrap_or(0);
        PriceTable::new(&self.error(rooms, f32::INFINITY), prices, largest as usize)
    }

    fn error<'a>(&'a self, rooms: &'a [f32], max_ratio: f32) -> PriceProblem<'a> {
        PriceProblem {
            lengths: self.lengths,
            capacity: rooms,
            unreached_price: UNREACHED_PRICE,
            max_ratio,
        }
    }

    /// Returns the partial trees extended by a slot, each in both ways of [`WEIGHTS`].
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

/// Returns the price of the gaps of a partial tree, given the price of a gap by its size.
fn remaining_price(partial: &Partial, prices: &[f32]) -> f32 {
    let gaps = partial.gaps.iter();
    gaps.map(|gap| prices[gap.size as usize]).sum()
}

/// Returns the partial trees of the least remaining price, at most [`BEAM_WIDTH`], of which no two
/// have gaps of the same sizes.
fn best(partials: Vec<Partial>, later: &[f32]) -> Vec<Partial> {
    let priced = partials.into_iter();
    let priced = priced.map(|partial| (remaining_price(&partial, later), partial));
    let mut priced: Vec<(f32, Partial)> = priced.collect();
    priced.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut kept_sizes = Vec::new();
    priced.retain(|(_, partial)| {
        let sizes = partial.sizes();
        let is_new = !kept_sizes.contains(&sizes);
        kept_sizes.push(sizes);
        is_new
    });
    priced.truncate(BEAM_WIDTH);
    priced.into_iter().map(|(_, partial)| partial).collect()
}
