//! Search for the group size, the first slot, the number of pieces of a block, and the number of
//! pieces on a lightpath in each slot (the *volume* of the slot).
//!
//! The minimum length of a tree of S slots ([`super::root_choice`]) implies a lower bound on the
//! sum of the volumes of all slots. The first volumes are small, because few ranks have the blocks
//! and lightpaths are long. Later volumes are larger. The S - 2 slots between the first and the
//! last slot have at most two different volumes. These volumes waste no capacity ([`Share`]): the
//! blocks of a group fill a whole number of lightpaths, or a lightpath carries all blocks of one or
//! more groups. The volume of the last slot is a multiple of an eighth of a group's blocks. The
//! search tries recipes in ascending order of time ([`super::recipe_search`]).

use std::collections::BTreeSet;

use super::cache::{self, TimedRecipe};
use super::grouping::{Grouping, lengths};
use super::recipe_search::{RecipeCandidate, RecipeClass, RecipeSearch};
use super::root_choice::{EvenRoots, RootSets, root_exchanges};
use super::time_model::{TimeModel, Volumes};
use super::tree::{BundleTree, TreeLengths, TreeSearch};
use super::{AggregatedTrees, Tree};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// Maximum number of ranks in a group. (For larger groups, the first slot had too few channels.)
const MAX_GROUP: u32 = 32;

/// Volumes that the search tries for the slot in which roots exchange sums. The unit is a quarter
/// of the blocks of a group.
const EXCHANGE_QUARTERS: [u32; 10] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64];

/// Maximum number of recipe classes with the same group size and the same number of slots, for
/// all_reduces whose roots exchange sums.
const MAX_EXCHANGE_CLASSES: usize = 2;

/// Maximum number of slots of a tree. (With more slots, lightpaths do not become shorter.)
const MAX_SLOTS: usize = 32;

/// Factor f: the search tries only classes of recipes whose lower bound on time is at most f times
/// the smallest lower bound. If these classes have no tree, the search tries all classes.
const MAX_CLASS_RATIO: f64 = 1.15;

/// Factor f: the search tries only recipes whose time is at most f times the largest lower bound on
/// time of the searched classes. (The maximum factor of 80 plans was 1.17.)
const MAX_RECIPE_RATIO: f64 = 1.3;

/// Maximum ratio of two volumes (numbers of pieces on a lightpath) of a plan. Also the maximum
/// ratio of a volume to the mean volume, and of the mean volume to a volume.
const MAX_VOLUME_RATIO: f32 = 4.0;

/// Maximum number of pieces of a block. (Without pieces, 4 of 49 plans took up to 6 % longer.)
const MAX_PIECES: u32 = 6;

/// Maximum number of parallel lightpaths over which the blocks of a group are divided.
const MAX_LIGHTPATHS: u32 = 64;

/// Maximum number of groups whose blocks share a lightpath. (With a maximum of 2, an all_reduce in
/// 3 slots on 64 ranks took 11 % longer.)
const MAX_BUNDLES: u32 = 4;

/// Returns the tree of `recipe`. If the recipe does not contain a tree, searches for a tree.
/// Returns `None` if the search fails.
pub(super) fn tree(ring: &WdmRing, recipe: &AggregatedTrees) -> Option<Tree> {
    let grouping = Grouping::new(ring, recipe.group).with_pieces(recipe.pieces);
    let tree = match &recipe.tree {
        Some(tree) => tree.clone(),
        None => search_tree(&grouping, recipe)?,
    };
    Some(Tree {
        grouping,
        tree,
        roots_exchange_sums: recipe.exchange.is_some(),
    })
}

fn search_tree(grouping: &Grouping, recipe: &AggregatedTrees) -> Option<BundleTree> {
    let volumes = &recipe.volumes;
    let slots = volumes.len();
    let lengths = lengths(grouping);
    let tree_lengths = TreeLengths::new(grouping, &lengths, slots);
    let later_lengths = tree_lengths.for_gaps(slots);
    let first_slots = match recipe.exchange {
        None => RootSets::new(grouping).first_slots(later_lengths, MAX_FIRST_SLOTS),
        Some(volume) => {
            let even = EvenRoots::all(grouping, later_lengths);
            root_exchanges(grouping, &even, volume, MAX_FIRST_SLOTS)
        }
    };
    let search = TreeSearch {
        grouping,
        lengths: &lengths,
        first_slots: &first_slots,
        volumes,
        min_free_share: 0.0,
    };
    search.tree()
}

/// Maximum number of alternatives for the first slot from which the search grows trees. (With a
/// maximum of 1, 13 of 49 plans took up to 6 % longer.)
const MAX_FIRST_SLOTS: usize = 3;

/// Returns a lower estimate of the time of this planner's fastest plan, in picoseconds.
pub(super) fn min_time(ring: &WdmRing, model: &TimeModel) -> f64 {
    let group = group_sizes(ring.ranks).last().unwrap_or(1);
    let grouping = Grouping::new(ring, group);
    let tree_lengths = TreeLengths::new(&grouping, &lengths(&grouping), MAX_SLOTS);
    let gathering_time = |slots| {
        let length = tree_lengths.for_gaps(slots)[ring.ranks as usize - 1];
        model.passes as f64 * model.time_of_slots(slots, length / grouping.capacity_per_block())
    };
    let exchange_time = |slots| {
        let later_lengths = tree_lengths.for_gaps(slots - 1);
        let times = EvenRoots::all(&grouping, later_lengths)
            .into_iter()
            .map(|even| {
                let exchange_blocks = even.length as f32 / grouping.capacity_per_block();
                let pass_blocks = even.remaining_cost / grouping.capacity_per_block();
                let both_passes = 2.0 * model.time_of_slots(slots - 1, pass_blocks);
                model.time_of_slots(1, exchange_blocks) + both_passes
            });
        times.fold(f64::INFINITY, f64::min)
    };
    let gathering_times = (3..MAX_SLOTS).map(gathering_time);
    let min_time = gathering_times.fold(f64::INFINITY, f64::min);
    if model.passes == 2 {
        return (2..MAX_SLOTS).map(exchange_time).fold(min_time, f64::min);
    }
    min_time
}

/// Returns the numbers of ranks per group that the search tries, ascending.
fn group_sizes(ranks: u32) -> impl Iterator<Item = u32> {
    (1..=MAX_GROUP.min(ranks / 2)).filter(move |group| ranks % group == 0)
}

/// Returns the fastest recipe that has a tree, from the cache or by a search.
pub(super) fn fastest(ring: &WdmRing, model: &TimeModel) -> Option<TimedRecipe> {
    cache::fastest(ring, model, || search(ring, model))
}

fn search(ring: &WdmRing, model: &TimeModel) -> Option<TimedRecipe> {
    // If the roots do not exchange sums, an all_reduce is a reduce_scatter followed by an
    // all_gather with the same tree.
    let without_exchange = match model.passes {
        1 => None,
        passes => fastest(
            ring,
            &TimeModel {
                passes: 1,
                ..model.clone()
            },
        )
        .map(|(time, recipe)| (time.saturating_mul(passes), recipe)),
    };
    let best = fastest_within(ring, model, MAX_CLASS_RATIO, without_exchange.as_ref());
    match best.is_none() && without_exchange.is_none() {
        true => fastest_within(ring, model, f64::INFINITY, None),
        false => best.or(without_exchange),
    }
}

/// Searches the classes whose lower bound on time is at most `max_ratio` times the smallest lower
/// bound. Returns the fastest recipe that has a tree and is faster than `incumbent`. Returns `None`
/// if the search finds no such recipe.
fn fastest_within(
    ring: &WdmRing,
    model: &TimeModel,
    max_ratio: f64,
    incumbent: Option<&TimedRecipe>,
) -> Option<TimedRecipe> {
    let time_limit = incumbent.map_or(u64::MAX, |(time, _)| *time);
    let classes = model.classes(ring, max_ratio, time_limit as f64);
    let min_times = classes.iter().map(|class| model.min_time_of(class));
    let min_time = min_times.fold(f64::INFINITY, f64::min);
    let max_time = time_limit.min((MAX_RECIPE_RATIO * max_ratio * min_time) as u64);
    let candidates = classes
        .iter()
        .flat_map(|class| candidates(model, class, max_time));
    let mut candidates: Vec<RecipeCandidate<'_>> = candidates.collect();
    candidates.sort_by_cached_key(RecipeCandidate::order);
    RecipeSearch::new(&candidates, time_limit).fastest()
}

impl TimeModel {
    fn min_time_of(&self, class: &RecipeClass) -> f64 {
        self.min_time_of_class(class.slots, class.exchange, class.min_volume_sum)
    }

    /// Returns the recipe classes whose lower bound on time is at most `max_time` picoseconds and
    /// at most `max_ratio` times the smallest lower bound. In the classes of an all_reduce, the
    /// roots exchange their sums in the first slot.
    fn classes(&self, ring: &WdmRing, max_ratio: f64, max_time: f64) -> Vec<RecipeClass> {
        let mut classes: Vec<RecipeClass> = Vec::new();
        let mut time_limit = max_time;
        for group in group_sizes(ring.ranks) {
            let grouping = Grouping::new(ring, group);
            let lengths = lengths(&grouping);
            let tree_lengths = TreeLengths::new(&grouping, &lengths, MAX_SLOTS);
            let sets = (self.passes == 1).then(|| RootSets::new(&grouping));
            for slots in 2..MAX_SLOTS {
                interrupt::check();
                let lengths = (&lengths[..], &tree_lengths);
                let classes_of_slots = match &sets {
                    None => self.exchange_classes(&grouping, lengths, slots, time_limit),
                    Some(sets) => self.gathering_classes(sets, lengths, slots, time_limit),
                };
                for class in classes_of_slots {
                    time_limit = time_limit.min(max_ratio * self.min_time_of(&class));
                    classes.push(class);
                }
            }
        }
        classes.retain(|class| self.min_time_of(class) <= time_limit);
        for (index, class) in classes.iter_mut().enumerate() {
            class.index = index;
        }
        classes
    }

    /// Returns the recipe class (or none) in which the ranks of a group send their blocks to the
    /// roots in the first slot. The lower bound on the time of the class is at most `time_limit`
    /// picoseconds.
    fn gathering_classes(
        &self,
        sets: &RootSets<'_>,
        (lengths, tree_lengths): (&[u32], &TreeLengths),
        slots: usize,
        time_limit: f64,
    ) -> Vec<RecipeClass> {
        let grouping = sets.grouping;
        let length = tree_lengths.for_gaps(slots)[grouping.ranks as usize - 1];
        let min_blocks = length / grouping.capacity_per_block();
        if slots == 2 || self.time_of_slots(slots, min_blocks) > time_limit {
            return Vec::new();
        }
        let first_slots = sets.first_slots(tree_lengths.for_gaps(slots - 1), MAX_FIRST_SLOTS);
        let Some(best_first_slot) = first_slots.first() else {
            return Vec::new();
        };
        vec![RecipeClass {
            index: 0,
            slots,
            grouping: grouping.clone(),
            lengths: lengths.to_vec(),
            exchange: None,
            min_volume_sum: best_first_slot.remaining_cost / grouping.capacity_per_block(),
            first_slots,
        }]
    }

    /// Returns the recipe classes in which the roots exchange sums in the first slot, in ascending
    /// order of the lower bound on time. The lower bounds are at most `time_limit` picoseconds.
    fn exchange_classes(
        &self,
        grouping: &Grouping,
        (lengths, tree_lengths): (&[u32], &TreeLengths),
        slots: usize,
        time_limit: f64,
    ) -> Vec<RecipeClass> {
        let even = EvenRoots::all(grouping, tree_lengths.for_gaps(slots - 1));
        let group = grouping.group;
        let quarters = EXCHANGE_QUARTERS.map(|quarters| quarters * group);
        let volumes = quarters.into_iter().filter(|blocks| blocks % 4 == 0);
        let volumes = volumes.map(|blocks| blocks / 4);
        let mut timed: Vec<(f64, u32)> = Vec::new();
        for volume in volumes {
            let capacity = grouping.capacity(volume);
            let fitting = even.iter().find(|even| even.length as f32 <= capacity);
            timed.extend(fitting.map(|even| {
                let min_blocks = even.remaining_cost / grouping.capacity_per_block();
                let time = self.min_time_of_class(slots, Some(volume), min_blocks);
                (time, volume)
            }));
        }
        timed.retain(|(time, _)| *time <= time_limit);
        timed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let classes = timed.into_iter().filter_map(|(_, volume)| {
            let first_slots = root_exchanges(grouping, &even, volume, MAX_FIRST_SLOTS);
            let remaining_cost = first_slots.first()?.remaining_cost;
            Some(RecipeClass {
                index: 0,
                slots,
                grouping: grouping.clone(),
                lengths: lengths.to_vec(),
                exchange: Some(volume),
                first_slots,
                min_volume_sum: remaining_cost / grouping.capacity_per_block(),
            })
        });
        classes.take(MAX_EXCHANGE_CLASSES).collect()
    }
}

/// Load of a lightpath: the blocks of `bundles` groups are divided equally among `lightpaths`
/// lightpaths. `bundles` or `lightpaths` is 1.
#[derive(Debug, Clone, Copy)]
struct Share {
    bundles: u32,
    lightpaths: u32,
}

impl Share {
    /// Returns all loads that the search tries, ascending.
    fn all() -> impl Iterator<Item = Share> {
        let parts = (1..=MAX_LIGHTPATHS).rev().map(|lightpaths| Share {
            bundles: 1,
            lightpaths,
        });
        let more = (2..=MAX_BUNDLES).map(|bundles| Share {
            bundles,
            lightpaths: 1,
        });
        parts.chain(more)
    }

    /// Returns the number of blocks on a lightpath, for groups of `group` ranks.
    fn blocks(self, group: u32) -> f32 {
        (self.bundles * group) as f32 / self.lightpaths as f32
    }

    /// Returns the number of pieces on a lightpath, for groups of `group` ranks and blocks of
    /// `pieces` pieces. Returns `None` if the number is not an integer.
    fn volume(self, group: u32, pieces: u32) -> Option<u32> {
        let total = self.bundles * group * pieces;
        (total % self.lightpaths == 0).then_some(total / self.lightpaths)
    }
}

/// Returns the recipes of `class` whose plans take less than `max_time` picoseconds. Leaves out
/// recipes whose slots have less capacity than the shortest tree needs.
fn candidates<'a>(
    model: &TimeModel,
    class: &'a RecipeClass,
    max_time: u64,
) -> Vec<RecipeCandidate<'a>> {
    let group = class.grouping.group;
    let middle = class.slots - 2;
    let mean = class.min_volume_sum / (class.slots - 1) as f32;
    let range = mean / MAX_VOLUME_RATIO..=mean * MAX_VOLUME_RATIO;
    let shares = Share::all().filter(|share| range.contains(&share.blocks(group)));
    let shares: Vec<Share> = shares.collect();
    let mut candidates: Vec<RecipeCandidate<'_>> = Vec::new();
    for (index, high_share) in shares.iter().enumerate() {
        for low_share in &shares[..=index] {
            let volumes = |pieces: u32| {
                let low = low_share.volume(group, pieces)?;
                Some((low, high_share.volume(group, pieces)?))
            };
            let whole = (1..=MAX_PIECES).find_map(|pieces| Some((pieces, volumes(pieces)?)));
            let Some((pieces, (low, high))) =
                whole.filter(|(_, (low, high))| *high as f32 <= MAX_VOLUME_RATIO * *low as f32)
            else {
                continue;
            };
            let bundle = class.grouping.with_pieces(pieces).pieces_of_group();
            let min_sum = (class.min_volume_sum * pieces as f32).ceil() as u32;
            let counts = if low < high {
                1..middle
            } else {
                middle..middle + 1
            };
            let lasts = (1..=8 * MAX_BUNDLES).map(|eighths| bundle * eighths / 8);
            let lasts: BTreeSet<u32> = lasts.filter(|last| *last > 0).collect();
            for count in counts {
                let recipes = lasts.iter().map(|&last| {
                    let volumes = Volumes {
                        low: (low, count),
                        high: (high, middle - count),
                        last,
                    };
                    RecipeCandidate {
                        time: model.time(pieces, class.exchange, &volumes),
                        class,
                        pieces,
                        volumes,
                    }
                });
                let sufficient = recipes.skip_while(|recipe| recipe.volumes.sum() < min_sum);
                candidates.extend(sufficient.take_while(|recipe| recipe.time < max_time));
            }
        }
    }
    candidates
}
