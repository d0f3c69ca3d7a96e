//! One tree for the blocks of g neighbouring ranks, grown slot by slot at prices.
//!
//! What the tree does is turned by all multiples of g ranks. So a lightpath of length l of the tree loads the links of its direction l / g times
//! in the mean, by classes of links modulo g ([`super::walks`]).
//!
//! In its first slot every owner sends its own block to the *holders*, or holders of sums exchange those ([`super::starts`]). From then on, the holders of the bundle send all
//! g blocks. Lightpaths of the tree of one direction, class and length are a *family*: their rotations have the same ends, so that n of
//! them, with n g blocks, go over ceil(n g / v) lightpaths in a slot of v blocks for each.
//!
//! Slots have prices, as in [`super::super::prices`], with which what is left for later has a value: V ([`super::filling`]).

use std::ops::RangeInclusive;

use super::super::prices::{PriceProblem, PriceTable, adjust};
use super::filling::{BundleSlot, Taste, filled};
use super::gaps::{OpenGap, census, gaps_between};
use super::grouping::Grouping;
use super::starts::Start;

/// The tree of the blocks of ranks 0 to g - 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleTree {
    /// In the first, owners send to holders of all blocks, or holders to each other.
    pub(super) slots: Vec<BundleSlot>,
}

/// The price of a rank that is left at the end: more than any lightpath is worth.
const LEFT_OVER: f32 = 300.0;

/// Table entries that price adjustment may fill.
const MOST_PRICED: usize = 40_000_000;

/// Least price over supply from where on the last slot would have far more blocks than the others.
const MOST_RATIO: f32 = 1.5;

/// The same where the last slot can have no more: other starts will not fit, either.
const LIMITED: f32 = 1.02;

/// A tree whose last slot can have no more does not fit from there on, but for rounding.
const FITTING: f32 = 1.001;

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
            hopeless: MOST_RATIO,
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
    slots: Vec<BundleSlot>,
    gaps: Vec<OpenGap>,
}

/// How much to look for a tree.
#[derive(Debug, Clone)]
pub(super) struct Effort {
    pub(super) tastes: Vec<Taste>,
    /// Partial trees that are kept in each slot.
    pub(super) kept: usize,
}

/// The tree, from holders that [`starts`] gave. After the first slot come slots of so many blocks for each lightpath, and a last one of as
/// few as finish the tree, but within `last`; `None` where no tree was found.
pub(super) fn grow(
    grouping: &Grouping,
    lengths: &[u32],
    starts: &[Start],
    volumes: &[u32],
    last: RangeInclusive<u32>,
    effort: &Effort,
) -> Option<BundleTree> {
    let of_start = |start: &Start| Partial {
        gaps: gaps_between(grouping.ranks, &start.holders),
        slots: vec![start.slot.clone()],
    };
    let mut partials: Vec<Partial> = starts.iter().map(of_start).collect();
    // The last slot is to have no more than the one before it.
    let most = last.end();
    let usual = volumes.last().unwrap_or(most).min(most);
    let is_limited = usual == most;
    let volumes_of_all = volumes.iter().chain([usual]);
    let of_slot = |volume: &u32| 2.0 * (volume * grouping.channels()) as f32;
    let capacity: Vec<f32> = volumes_of_all.map(of_slot).collect();
    let mut prices = vec![1.0; capacity.len()];
    let table = 2 * grouping.ranks as usize * capacity.len() * lengths.len();
    let rounds = (MOST_PRICED / table.max(1)).clamp(10, 60);
    for slot in 0..capacity.len() {
        let first = partials.first()?;
        let problem = PriceProblem {
            lengths,
            capacity: &capacity[slot..],
            left_over: LEFT_OVER,
            hopeless: if is_limited { LIMITED } else { MOST_RATIO },
        };
        let (rounds, eagerness) = match slot {
            0 => (rounds, 0.3),
            _ => (rounds / 4, 0.15),
        };
        let sizes = census(&first.gaps);
        let ratio = adjust(&problem, &sizes, &mut prices[slot..], rounds, eagerness);
        if ratio > problem.hopeless {
            return None;
        }
        let sizes = partials.iter().flat_map(|partial| &partial.gaps);
        let most = sizes.map(|gap| gap.size).max().unwrap_or(0);
        let table = PriceTable::new(&problem, &prices[slot..], most as usize);
        let (price, now, later) = (prices[slot], table.values(0), table.values(1));
        if is_limited {
            // Trees that cost more than all slots offer do not fit, whatever the prices.
            let offers = prices[slot..].iter().zip(&capacity[slot..]);
            let supply: f32 = offers.map(|(price, room)| price * room).sum();
            partials.retain(|partial| value(partial, now) <= FITTING * supply);
        }
        let grown = |volume: u32| {
            let tastes = effort.tastes.iter();
            let pairs =
                tastes.flat_map(|taste| partials.iter().map(move |partial| (taste, partial)));
            pairs.filter_map(move |(taste, partial)| {
                let (made, gaps) = filled(
                    grouping,
                    lengths,
                    (price, later),
                    volume,
                    *taste,
                    &partial.gaps,
                )?;
                let slots = partial.slots.iter().cloned().chain([made]).collect();
                Some(Partial { slots, gaps })
            })
        };
        match volumes.get(slot) {
            Some(&volume) => partials = best(grown(volume).collect(), later, effort.kept),
            None => {
                // At its price, the lightpaths that finish a tree cost so much at least.
                let price = price * of_slot(&1);
                let costs = partials.iter().map(|partial| value(partial, now) / price);
                let least = costs.fold(f32::INFINITY, f32::min);
                let least = (least - 0.01).ceil().max(1.0) as u32;
                let finished = |volume: u32| grown(volume).find(|partial| partial.gaps.is_empty());
                let done = least_that(least.max(*last.start()), *last.end(), finished);
                return done.map(|done| BundleTree { slots: done.slots });
            }
        }
    }
    None
}

/// What is made of the least number from `low` to `high` of which something is made, if more will do, too.
fn least_that<T>(low: u32, high: u32, make: impl Fn(u32) -> Option<T>) -> Option<T> {
    let (mut low, mut high) = (low, high);
    let mut made = (low <= high).then(|| make(high)).flatten()?;
    while low < high {
        let middle = low.midpoint(high);
        match make(middle) {
            Some(better) => (made, high) = (better, middle),
            None => low = middle + 1,
        }
    }
    Some(made)
}

/// What the gaps of a partial tree cost, by their sizes.
fn value(partial: &Partial, by_size: &[f32]) -> f32 {
    let gaps = partial.gaps.iter();
    gaps.map(|gap| by_size[gap.size as usize]).sum()
}

/// The partial trees that leave the least for later, of different gaps.
fn best(grown: Vec<Partial>, later: &[f32], kept: usize) -> Vec<Partial> {
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
    valued.truncate(kept);
    valued.into_iter().map(|(_, partial)| partial).collect()
}
