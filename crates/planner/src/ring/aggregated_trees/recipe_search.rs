//! Search for the fastest recipe that has a tree. Recipes are tried in the order of their times, so
//! that the first one with a tree is the fastest.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Bundles;
use super::cache::TimedRecipe;
use super::grouping::Grouping;
use super::price_limits::{PriceLimits, rooms};
use super::root_choice::FirstSlot;
use super::time_model::Volumes;
use super::tree::{BundleTree, TreeSearch};
use opticoll_base::interrupt;

/// Shares of all links that trees must leave free, in the order of the rounds of the search: trees
/// that leave many links free are easy to find. Without the rounds before the last, 12 of 49
/// recipes take up to 19 % longer.
const SPARE_SHARES: [f32; 8] = [0.5, 0.3, 0.15, 0.06, 0.03, 0.015, 0.007, 0.0];

/// Maximum number of tree searches in one round, once a tree is known.
const MAX_SEARCHES_PER_ROUND: usize = 24;

/// Maximum work of all tree searches of one error, in ranks times slots times lengths of
/// lightpaths.
const MAX_WORK: usize = 15_000_000;

/// Maximum number of ranks in a group whose search takes no more work than that of single ranks.
const RANKS_PER_WORK_UNIT: u32 = 8;

/// Class of recipes that share the size of a group, the number of slots and the first slot.
pub(super) struct RecipeClass {
    /// Index among all classes.
    pub(super) index: usize,
    pub(super) slots: usize,
    pub(super) grouping: Grouping,
    /// Lengths that lightpaths may have, in links, ascending.
    pub(super) lengths: Vec<u32>,
    /// Blocks on a lightpath in the meeting; `None` if owners send to the roots first.
    pub(super) meeting: Option<u32>,
    pub(super) first_slots: Vec<FirstSlot>,
    /// Lower bound on the sum of the volumes after the first slot, in blocks.
    pub(super) min_volume_sum: f32,
}

/// Recipe that may have a tree.
pub(super) struct RecipeCandidate<'a> {
    /// Time of the plan in picoseconds.
    pub(super) time: u64,
    pub(super) class: &'a RecipeClass,
    pub(super) pieces: u32,
    pub(super) volumes: Volumes,
}

impl RecipeCandidate<'_> {
    /// Returns the sort key of the search order: faster recipes first, then those of fewer slots,
    /// of smaller groups, of more even volumes, and of smaller volumes in the first slots.
    pub(super) fn order(&self) -> impl Ord + use<> {
        let RecipeClass {
            slots, grouping, ..
        } = self.class;
        let Volumes { few, many, last } = self.volumes;
        let spread = self.volumes.spread().div_ceil(self.pieces);
        let volumes = (few.0, Reverse(few.1), many.0, last);
        (self.time, *slots, grouping.group, spread, volumes)
    }

    fn volumes(&self) -> Vec<u32> {
        self.volumes.slots().collect()
    }

    /// Returns the key of the price limits that apply to the recipe.
    fn key(&self) -> (usize, u32) {
        (self.class.index, self.pieces)
    }

    /// Returns whether the length of a tree allows that the share `spare` of all links is left
    /// free.
    fn may_spare(&self, spare: f32) -> bool {
        let sum = self.volumes.sum() as f32;
        self.class.min_volume_sum * self.pieces as f32 <= sum * (1.0 - spare)
    }

    /// Returns the work of the search for the tree, in the unit of [`MAX_WORK`].
    fn work(&self) -> usize {
        let Grouping { ranks, group, .. } = self.class.grouping;
        let lengths = self.class.lengths.len() * group.div_ceil(RANKS_PER_WORK_UNIT) as usize;
        ranks as usize * (self.class.slots - 1) * lengths
    }
}

/// Tree search of a recipe that no price limit refuses.
struct PendingSearch<'a> {
    /// Index of the candidate in the search order.
    index: usize,
    candidate: &'a RecipeCandidate<'a>,
    grouping: Grouping,
    first_slots: Vec<FirstSlot>,
    volumes: Vec<u32>,
    spare: f32,
}

impl PendingSearch<'_> {
    fn search(&self) -> TreeSearch<'_> {
        TreeSearch {
            grouping: &self.grouping,
            lengths: &self.candidate.class.lengths,
            first_slots: &self.first_slots,
            volumes: &self.volumes,
            spare: self.spare,
        }
    }

    /// Returns the recipe with the tree that was found, preceded by its time.
    fn timed_recipe(self, tree: BundleTree) -> TimedRecipe {
        let candidate = self.candidate;
        let meeting = candidate.class.meeting;
        let recipe = Bundles {
            group: self.grouping.group,
            pieces: candidate.pieces,
            meeting: meeting.map(|volume| volume * candidate.pieces),
            volumes: self.volumes,
            tree: Some(tree),
        };
        (candidate.time, recipe)
    }
}

/// Search through candidates in the order of their times.
pub(super) struct RecipeSearch<'a> {
    candidates: &'a [RecipeCandidate<'a>],
    /// Time limit in picoseconds: recipes that take as long or longer are not tried.
    time_limit: u64,
    limits: BTreeMap<(usize, u32), PriceLimits>,
    /// Work of all tree searches so far, in the unit of [`MAX_WORK`].
    work: usize,
    /// Number of tree searches so far in this round.
    searches: usize,
}

impl<'a> RecipeSearch<'a> {
    /// Creates the search. Only recipes that take less than `time_limit` picoseconds are tried.
    pub(super) fn new(candidates: &'a [RecipeCandidate<'a>], time_limit: u64) -> RecipeSearch<'a> {
        RecipeSearch {
            candidates,
            time_limit,
            limits: BTreeMap::new(),
            work: 0,
            searches: 0,
        }
    }

    /// Returns the fastest recipe for which a tree was found.
    pub(super) fn fastest(mut self) -> Option<TimedRecipe> {
        let mut fastest = None;
        for spare in SPARE_SHARES {
            self.searches = 0;
            if let Some(faster) = self.first(spare) {
                self.time_limit = faster.0;
                fastest = Some(faster);
            }
        }
        fastest
    }

    /// Returns the first recipe for which a tree is found that leaves the share `spare` of all
    /// links free.
    fn first(&mut self, spare: f32) -> Option<TimedRecipe> {
        let mut from = 0;
        while let Some(pending) = self.next(from, spare) {
            match pending.search().tree() {
                Some(tree) => return Some(pending.timed_recipe(tree)),
                None => {
                    let failed = rooms(&pending.grouping, &pending.volumes);
                    self.limits(pending.candidate).add_failed(failed);
                }
            }
            from = pending.index + 1;
        }
        None
    }

    fn limits(&mut self, candidate: &RecipeCandidate<'_>) -> &mut PriceLimits {
        self.limits.entry(candidate.key()).or_default()
    }

    /// Returns the tree search of the next recipe, from index `from` on, that no price limit
    /// refuses. `None` at the end of the candidates or at a limit of time, searches or work.
    fn next(&mut self, from: usize, spare: f32) -> Option<PendingSearch<'a>> {
        for (index, candidate) in self.candidates.iter().enumerate().skip(from) {
            interrupt::check();
            let is_enough = self.time_limit < u64::MAX && self.searches >= MAX_SEARCHES_PER_ROUND;
            if candidate.time >= self.time_limit || is_enough || self.work > MAX_WORK {
                return None;
            }
            if !candidate.may_spare(spare) {
                continue;
            }
            let pieces = candidate.pieces;
            let grouping = candidate.class.grouping.with_pieces(pieces);
            let volumes = candidate.volumes();
            if !self.limits(candidate).allow(&grouping, &volumes, spare) {
                continue;
            }
            let first_slots = candidate.class.first_slots.iter();
            let pending = PendingSearch {
                index,
                candidate,
                grouping,
                first_slots: first_slots.map(|first| first.with_pieces(pieces)).collect(),
                volumes,
                spare,
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
