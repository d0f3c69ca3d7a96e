//! Search for the fastest recipe (parameters of a plan) for which a tree is found. The search tries
//! recipes in ascending order of time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::AggregatedTrees;
use super::cache::TimedRecipe;
use super::grouping::Grouping;
use super::price_limits::{PriceLimits, capacities};
use super::root_choice::FirstSlot;
use super::time_model::Volumes;
use super::tree::{BundleTree, TreeSearch};
use opticoll_base::interrupt;

/// Minimum share (0 to 1) of all links that a tree must leave free, indexed by round of the search.
/// (With only the last round, 12 of 49 plans took up to 19 % longer.)
const MIN_FREE_SHARES: [f32; 8] = [0.5, 0.3, 0.15, 0.06, 0.03, 0.015, 0.007, 0.0];

/// Maximum number of tree searches in a round, if a recipe with a tree was known before the round.
const MAX_SEARCHES_PER_ROUND: usize = 24;

/// Maximum total work of all tree searches. The work of one search is the number of ranks times the
/// number of slots times the number of lightpath lengths.
const MAX_WORK: usize = 15_000_000;

/// Divisor d: the work of a tree search is multiplied by ceil(g / d), for groups of g ranks.
const RANKS_PER_WORK_UNIT: u32 = 8;

/// Recipes (parameters of plans) with the same group size, the same number of slots and the same
/// alternatives for the first slot.
pub(super) struct RecipeClass {
    pub(super) index: usize,
    pub(super) slots: usize,
    pub(super) grouping: Grouping,
    /// Lengths that lightpaths may have, in links, ascending.
    pub(super) lengths: Vec<u32>,
    /// Number of blocks on a lightpath in the slot in which roots exchange sums. `None` if the
    /// roots do not exchange sums.
    pub(super) exchange: Option<u32>,
    pub(super) first_slots: Vec<FirstSlot>,
    /// Lower bound on the sum of the volumes of all slots after the first slot. (This volume is the
    /// maximum number of blocks, instead of pieces, on a lightpath.)
    pub(super) min_volume_sum: f32,
}

/// Recipe (parameters of a plan) for which no tree is known yet.
pub(super) struct RecipeCandidate<'a> {
    /// Time of the plan in picoseconds.
    pub(super) time: u64,
    pub(super) class: &'a RecipeClass,
    pub(super) pieces: u32,
    pub(super) volumes: Volumes,
}

impl RecipeCandidate<'_> {
    /// Returns the sort key: the time, the number of slots, the group size, the range of the
    /// volumes in blocks, and the volumes in pieces.
    pub(super) fn order(&self) -> impl Ord + use<> {
        let RecipeClass {
            slots, grouping, ..
        } = self.class;
        let Volumes { low, high, last } = self.volumes;
        let volume_range = self.volumes.range().div_ceil(self.pieces);
        let volumes = (low.0, Reverse(low.1), high.0, last);
        (self.time, *slots, grouping.group, volume_range, volumes)
    }

    fn volumes(&self) -> Vec<u32> {
        self.volumes.slots().collect()
    }

    fn key(&self) -> (usize, u32) {
        (self.class.index, self.pieces)
    }

    /// Returns whether the shortest possible tree would leave at least the share `min_free_share`
    /// of all links free.
    fn may_leave_free(&self, min_free_share: f32) -> bool {
        let sum = self.volumes.sum() as f32;
        self.class.min_volume_sum * self.pieces as f32 <= sum * (1.0 - min_free_share)
    }

    fn work(&self) -> usize {
        let Grouping { ranks, group, .. } = self.class.grouping;
        let lengths = self.class.lengths.len() * group.div_ceil(RANKS_PER_WORK_UNIT) as usize;
        ranks as usize * (self.class.slots - 1) * lengths
    }
}

/// Recipe whose tree is searched next.
struct PendingSearch<'a> {
    index: usize,
    candidate: &'a RecipeCandidate<'a>,
    grouping: Grouping,
    first_slots: Vec<FirstSlot>,
    /// Maximum number of pieces on a lightpath, indexed by slot, without the first slot.
    volumes: Vec<u32>,
    min_free_share: f32,
}

impl PendingSearch<'_> {
    fn search(&self) -> TreeSearch<'_> {
        TreeSearch {
            grouping: &self.grouping,
            lengths: &self.candidate.class.lengths,
            first_slots: &self.first_slots,
            volumes: &self.volumes,
            min_free_share: self.min_free_share,
        }
    }

    fn timed_recipe(self, tree: BundleTree) -> TimedRecipe {
        let candidate = self.candidate;
        let exchange = candidate.class.exchange;
        let recipe = AggregatedTrees {
            group: self.grouping.group,
            pieces: candidate.pieces,
            exchange: exchange.map(|volume| volume * candidate.pieces),
            volumes: self.volumes,
            tree: Some(tree),
        };
        (candidate.time, recipe)
    }
}

pub(super) struct RecipeSearch<'a> {
    candidates: &'a [RecipeCandidate<'a>],
    /// Time limit in picoseconds. The search tries only recipes of faster plans.
    time_limit: u64,
    /// Conditions that exclude recipes, indexed by the class index and the number of pieces of a
    /// block.
    limits: BTreeMap<(usize, u32), PriceLimits>,
    work: usize,
    searches: usize,
}

impl<'a> RecipeSearch<'a> {
    /// Creates a search among `candidates`, which are in ascending order of time. The search tries
    /// only recipes whose plans take less than `time_limit` picoseconds.
    pub(super) fn new(candidates: &'a [RecipeCandidate<'a>], time_limit: u64) -> RecipeSearch<'a> {
        RecipeSearch {
            candidates,
            time_limit,
            limits: BTreeMap::new(),
            work: 0,
            searches: 0,
        }
    }

    /// Runs all rounds of the search and returns the fastest recipe that has a tree.
    pub(super) fn fastest(mut self) -> Option<TimedRecipe> {
        let mut fastest = None;
        for min_free_share in MIN_FREE_SHARES {
            self.searches = 0;
            if let Some(faster) = self.first(min_free_share) {
                self.time_limit = faster.0;
                fastest = Some(faster);
            }
        }
        fastest
    }

    /// Returns the first recipe for which a tree is found. The tree leaves at least the share
    /// `min_free_share` of all links free.
    fn first(&mut self, min_free_share: f32) -> Option<TimedRecipe> {
        let mut start = 0;
        while let Some(pending) = self.next(start, min_free_share) {
            match pending.search().tree() {
                Some(tree) => return Some(pending.timed_recipe(tree)),
                None => {
                    let failed = capacities(&pending.grouping, &pending.volumes);
                    self.limits(pending.candidate).add_failed(failed);
                }
            }
            start = pending.index + 1;
        }
        None
    }

    fn limits(&mut self, candidate: &RecipeCandidate<'_>) -> &mut PriceLimits {
        self.limits.entry(candidate.key()).or_default()
    }

    /// Returns the next recipe, from index `start` on, for which a tree may exist. Returns `None`
    /// after the last candidate, and if the limit on time, searches or work is reached.
    fn next(&mut self, start: usize, min_free_share: f32) -> Option<PendingSearch<'a>> {
        for (index, candidate) in self.candidates.iter().enumerate().skip(start) {
            interrupt::check();
            let is_last = self.time_limit < u64::MAX && self.searches >= MAX_SEARCHES_PER_ROUND;
            if candidate.time >= self.time_limit || is_last || self.work > MAX_WORK {
                return None;
            }
            if !candidate.may_leave_free(min_free_share) {
                continue;
            }
            let pieces = candidate.pieces;
            let grouping = candidate.class.grouping.with_pieces(pieces);
            let volumes = candidate.volumes();
            let limits = self.limits(candidate);
            if !limits.allow(&grouping, &volumes, min_free_share) {
                continue;
            }
            let first_slots = candidate.class.first_slots.iter();
            let pending = PendingSearch {
                index,
                candidate,
                grouping,
                first_slots: first_slots.map(|first| first.with_pieces(pieces)).collect(),
                volumes,
                min_free_share,
            };
            if pending.search().may_fit(self.limits(candidate)) {
                self.work += candidate.work();
                self.searches += 1;
                return Some(pending);
            }
        }
        None
    }
}
