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
use super::last::last_slot;
use super::limits::{FITTING, Missed, PriceLimits, offered, rooms};
use super::starts::Start;
use crate::ring::relay_tree::prices::{PriceProblem, PriceTable, adjust};
use opticoll_base::interrupt;

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

/// The part of the last slot that can be filled: links of some classes stay dark.
const LAST: f32 = 0.97;

/// Lightpaths of all lengths may save that much of what trees of the usual lengths cost.
const NEARLY_FITTING: f32 = 1.004;

/// Prices that were found for another try of the same frame need so many times fewer rounds, and those of later slots.
const ADJUSTED: usize = 4;

/// In trees of more slots prices are adjusted so often at most, and at first in half as many rounds.
const FEW_ADJUSTED: usize = 12;

/// Before the last slot so many times as many partial trees are kept.
const MORE_KEPT: usize = 4;

/// On rings of no more ranks trees take little time to look for, and chance decides whether one is found.
pub(super) const SMALL_RING: u32 = 128;

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

/// How much to look for a tree.
#[derive(Debug, Clone)]
pub(super) struct Effort {
    pub(super) tastes: Vec<Taste>,
    /// Partial trees that are kept in each slot.
    pub(super) kept: usize,
}

impl Effort {
    /// Small trees take little time, and chance helps them.
    pub(super) fn of(ranks: u32) -> Effort {
        let (seeds, kept) = if ranks <= SMALL_RING { (3, 3) } else { (1, 2) };
        let tastes = (0..seeds).flat_map(|seed| {
            let chance = if seed == 0 { 0.0 } else { 0.1 };
            let ways = [(0.97, 0.05), (0.0, 0.15)];
            ways.map(|(planned, longer)| Taste {
                planned,
                longer,
                level: 0.2,
                chance,
                seed,
            })
        });
        Effort {
            tastes: tastes.collect(),
            kept,
        }
    }
}

/// A tree that is looked for.
pub(super) struct Search<'a> {
    pub(super) grouping: &'a Grouping,
    pub(super) lengths: &'a [u32],
    pub(super) starts: &'a [Start],
    /// Pieces on a lightpath in each slot after the first; in the last one fewer will do, too.
    pub(super) volumes: &'a [u32],
    pub(super) effort: &'a Effort,
    /// The part of all links that is to be left at least.
    pub(super) spare: f32,
}

impl Search<'_> {
    /// The tree, or what is known where none was found.
    pub(super) fn tree(&self) -> Result<BundleTree, Missed> {
        let mut partials = self.partials();
        let rooms = rooms(self.grouping, self.volumes);
        let expected = self.expected(&rooms);
        let slots = self.volumes.len();
        let mut prices = vec![1.0; slots];
        let Some(first) = partials.first() else {
            return Err(Missed::These(rooms));
        };
        // Nothing of other tries counts here: a recipe that is given by name has the same tree.
        let ease = if slots > FEW_ADJUSTED { 2 } else { 1 };
        let ratio = self.adjust(
            first,
            &self.problem(&expected, f32::INFINITY),
            &mut prices,
            ease,
        );
        let first_prices = prices.clone();
        let mut lacking = ratio - 1.0;
        for (slot, &volume) in self.volumes.iter().enumerate() {
            let (left, prices) = (&rooms[slot..], &mut prices[slot..]);
            if slot > 0 && slot % slots.div_ceil(FEW_ADJUSTED) == 0 {
                let problem = self.problem(&expected[slot..], f32::INFINITY);
                let Some(first) = partials.first() else {
                    break;
                };
                let ratio = self.adjust(first, &problem, prices, ADJUSTED);
                lacking = (ratio - 1.0) * left.iter().sum::<f32>() / rooms.iter().sum::<f32>();
            }
            let sizes = partials.iter().flat_map(|partial| &partial.gaps);
            let most = sizes.map(|gap| gap.size).max().unwrap_or(0);
            let table = PriceTable::new(&self.problem(left, f32::INFINITY), prices, most as usize);
            let (now, later) = (table.values(0), table.values(1));
            // Trees that cost more than all slots offer do not fit, whatever the prices; with lightpaths of all lengths they
            // cost a little less.
            let supply = NEARLY_FITTING * offered(prices, left);
            partials.retain(|partial| value(partial, now) <= supply);
            if partials.is_empty() {
                break;
            }
            let grown = self.grown(&partials, volume, (prices[0], later));
            if left.len() == 1 {
                let whole = grown.into_iter().find(|partial| partial.gaps.is_empty());
                let whole = whole.map(|partial| complete(&partial.slots, None));
                let tree = whole.or_else(|| self.finished(&partials, volume));
                match tree {
                    Some(tree) => return Ok(tree),
                    None => break,
                }
            }
            let kept = self.effort.kept * if left.len() == 2 { MORE_KEPT } else { 1 };
            partials = best(grown, later, kept);
        }
        Err(match self.grouping.ranks <= SMALL_RING {
            true => Missed::These(rooms),
            false => Missed::at(first_prices, &rooms, lacking.max(self.spare / 5.0)),
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
        let ratio = self.adjust(
            first,
            &self.problem(&rooms, self.most_ratio()),
            &mut prices,
            ease,
        );
        let sizes = partials.iter().flat_map(|partial| &partial.gaps);
        let most = sizes.map(|gap| gap.size).max().unwrap_or(0);
        let table = PriceTable::new(&self.problem(&rooms, f32::INFINITY), &prices, most as usize);
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

    /// Adjusts prices for the gaps of a partial tree, in so many times fewer rounds; the greatest ratio of what trees cost to what slots
    /// offer.
    fn adjust(
        &self,
        partial: &Partial,
        problem: &PriceProblem<'_>,
        prices: &mut [f32],
        ease: usize,
    ) -> f32 {
        let slots = self.volumes.len();
        let table = 2 * self.grouping.ranks as usize * slots * self.lengths.len();
        let rounds = (MOST_PRICED / table.max(1)).clamp(10, 60) / ease;
        let eagerness = if prices.len() == slots { 0.3 } else { 0.15 };
        adjust(problem, &census(&partial.gaps), prices, rounds, eagerness)
    }

    /// Rooms as far as they are expected to be filled: after many slots the last has no more than the one before it.
    fn expected(&self, rooms: &[f32]) -> Vec<f32> {
        let mut expected = rooms.to_vec();
        match &mut expected[..] {
            [_, _, _, .., before, last] => *last = last.min(*before),
            [.., last] => *last *= LAST,
            [] => (),
        }
        expected
    }

    fn problem<'a>(&'a self, rooms: &'a [f32], hopeless: f32) -> PriceProblem<'a> {
        PriceProblem {
            lengths: self.lengths,
            capacity: rooms,
            left_over: LEFT_OVER,
            hopeless,
        }
    }

    /// Partial trees with another slot, by all tastes.
    fn grown(&self, partials: &[Partial], volume: u32, prices: (f32, &[f32])) -> Vec<Partial> {
        let grow = |(taste, partial): (&Taste, &Partial)| {
            let (grouping, gaps) = (self.grouping, &partial.gaps);
            let (made, gaps) = filled(grouping, self.lengths, prices, volume, *taste, gaps)?;
            let slots = partial.slots.iter().cloned().chain([Arc::new(made)]);
            let slots = slots.collect();
            Some(Partial { slots, gaps })
        };
        let tastes = &self.effort.tastes;
        // On small rings a thread takes longer to start than a slot to fill.
        let of_a_thread = match self.grouping.ranks <= SMALL_RING {
            true => tastes.len().max(1),
            false => 1,
        };
        let grown = interrupt::side_by_side(tastes.chunks(of_a_thread), |tastes| {
            let pairs = tastes
                .iter()
                .flat_map(|taste| partials.iter().map(move |partial| (taste, partial)));
            pairs.filter_map(grow).collect::<Vec<Partial>>()
        });
        grown.into_iter().flatten().collect()
    }

    /// A partial tree with its last slot.
    fn finished(&self, partials: &[Partial], volume: u32) -> Option<BundleTree> {
        partials.iter().find_map(|partial| {
            let made = last_slot(self.grouping, volume, &partial.gaps)?;
            Some(complete(&partial.slots, Some(made)))
        })
    }
}

/// A tree of slots, with a last one that is not yet among them.
fn complete(slots: &[Arc<BundleSlot>], last: Option<BundleSlot>) -> BundleTree {
    let slots = slots.iter().map(|slot| BundleSlot::clone(slot));
    BundleTree {
        slots: slots.chain(last).collect(),
    }
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
