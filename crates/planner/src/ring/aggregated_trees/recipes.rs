//! Choice of the recipe: group size, first slot, pieces of a block, and the volume of every slot.
//!
//! The least length of a tree of S slots ([`super::root_choice`]) gives a lower bound on the sum of
//! the volumes of all slots. Volumes are small first, when few ranks have the bundle and lightpaths
//! are long, and larger later. A bundle that uses a whole number of lightpaths, or whole bundles on
//! one lightpath, waste no room ([`Share`]). Therefore S - 2 slots have one or two such volumes in
//! rising order, and the last slot has the remaining volume in eighths of a bundle. These recipes
//! are tried in the order of their times; the first one that has a tree is the fastest.

use std::collections::BTreeSet;

use super::cache::{self, TimedRecipe};
use super::grouping::{Grouping, lengths};
use super::recipe_search::{RecipeCandidate, RecipeClass, RecipeSearch};
use super::root_choice::{EvenRoots, RootSets, meetings};
use super::time_model::{TimeModel, Volumes};
use super::tree::{BundleTree, TreeLengths, TreeSearch};
use super::{Bundles, Tree};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// Maximum number of ranks in a group: for larger groups no channels are found in the first slot.
const MAX_GROUP: u32 = 32;

/// Volumes of the meeting that are tried, in quarters of a bundle.
const MEETING_VOLUMES: [u32; 10] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64];

/// Maximum number of meeting volumes that are searched for each number of slots: the fastest two by
/// their times.
const MAX_MEETING_VOLUMES: usize = 2;

/// Maximum number of slots of a half: with more slots, trees have no shorter lightpaths.
const MAX_SLOTS: usize = 32;

/// Maximum ratio of the lower bound on the time of a class of recipes to the least of these bounds.
/// If no class within this ratio has a tree, as with few channels, all classes are tried.
const MAX_CLASS_RATIO: f64 = 1.15;

/// Maximum ratio of a recipe's time to the greatest bound of the admitted classes. Of 80 chosen
/// recipes, none exceeded 1.17.
const MAX_RECIPE_RATIO: f64 = 1.3;

/// Maximum ratio of two volumes of a recipe, and of a volume to the mean volume.
const MAX_VOLUME_RATIO: f32 = 4.0;

/// Maximum number of pieces of a block: without pieces, 4 of 49 recipes take up to 6 % longer.
const MAX_PIECES: u32 = 6;

/// Maximum number of lightpaths over which a bundle is divided.
const MAX_LIGHTPATHS: u32 = 64;

/// Maximum number of bundles on a lightpath: with at most 2, all_reduces in 3 slots on 64 ranks
/// take 11 % longer.
const MAX_BUNDLES: u32 = 4;

/// Returns the tree of a recipe: the one that the search found, or one that is searched for given
/// options.
pub(super) fn tree(ring: &WdmRing, recipe: &Bundles) -> Option<Tree> {
    let grouping = Grouping::new(ring, recipe.group).with_pieces(recipe.pieces);
    let tree = match &recipe.tree {
        Some(tree) => tree.clone(),
        None => search_tree(&grouping, recipe)?,
    };
    Some(Tree {
        grouping,
        tree,
        is_meeting: recipe.meeting.is_some(),
    })
}

/// Searches for the tree of a recipe.
fn search_tree(grouping: &Grouping, recipe: &Bundles) -> Option<BundleTree> {
    let volumes = &recipe.volumes;
    let slots = volumes.len();
    let lengths = lengths(grouping);
    let tree_lengths = TreeLengths::new(grouping, &lengths, slots);
    let later = tree_lengths.for_gaps(slots);
    let first_slots = match recipe.meeting {
        None => RootSets::new(grouping).first_slots(later, MAX_FIRST_SLOTS),
        Some(volume) => {
            let even = EvenRoots::all(grouping, later);
            meetings(grouping, &even, volume, MAX_FIRST_SLOTS)
        }
    };
    let search = TreeSearch {
        grouping,
        lengths: &lengths,
        first_slots: &first_slots,
        volumes,
        spare: 0.0,
    };
    search.tree()
}

/// Maximum number of first slots from which a tree is grown: with only one, 13 of 49 recipes take
/// up to 6 % longer.
const MAX_FIRST_SLOTS: usize = 3;

/// Returns a lower estimate of a plan's time, in picoseconds.
pub(super) fn min_time(ring: &WdmRing, model: &TimeModel) -> f64 {
    let group = groups(ring.ranks).last().unwrap_or(1);
    let grouping = Grouping::new(ring, group);
    let tree_lengths = TreeLengths::new(&grouping, &lengths(&grouping), MAX_SLOTS);
    let gathering_time = |slots| {
        let length = tree_lengths.for_gaps(slots)[ring.ranks as usize - 1];
        model.halves as f64 * model.time_of_slots(slots, length / grouping.room_per_block())
    };
    let meeting_time = |slots| {
        let later = tree_lengths.for_gaps(slots - 1);
        let times = EvenRoots::all(&grouping, later).into_iter().map(|even| {
            let meeting_blocks = even.length as f32 / grouping.room_per_block();
            let half_blocks = even.remaining_cost / grouping.room_per_block();
            let halves = 2.0 * model.time_of_slots(slots - 1, half_blocks);
            model.time_of_slots(1, meeting_blocks) + halves
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let gathering_times = (3..MAX_SLOTS).map(gathering_time);
    let min_time = gathering_times.fold(f64::INFINITY, f64::min);
    if model.halves == 2 {
        return (2..MAX_SLOTS).map(meeting_time).fold(min_time, f64::min);
    }
    min_time
}

/// Returns the group sizes that are tried on a ring, ascending.
fn groups(ranks: u32) -> impl Iterator<Item = u32> {
    (1..=MAX_GROUP.min(ranks / 2)).filter(move |group| ranks % group == 0)
}

/// Returns the fastest recipe for which a tree was found, from the cache if it is there.
pub(super) fn fastest(ring: &WdmRing, model: &TimeModel) -> Option<TimedRecipe> {
    cache::fastest(ring, model, || search(ring, model))
}

/// Searches for the fastest recipe among those with and without a meeting.
fn search(ring: &WdmRing, model: &TimeModel) -> Option<TimedRecipe> {
    // Without a meeting, an all_reduce is a reduce_scatter followed by an all_gather with the same
    // tree.
    let without_meeting = match model.halves {
        1 => None,
        halves => fastest(
            ring,
            &TimeModel {
                halves: 1,
                ..model.clone()
            },
        )
        .map(|(time, half)| (time.saturating_mul(halves), half)),
    };
    let best = fastest_within(ring, model, MAX_CLASS_RATIO, without_meeting.as_ref());
    // With few channels, trees may need more slots than their lengths suggest.
    match best.is_none() && without_meeting.is_none() {
        true => fastest_within(ring, model, f64::INFINITY, None),
        false => best.or(without_meeting),
    }
}

/// Returns the fastest recipe of the classes whose bounds exceed the least bound at most by the
/// factor `max_ratio`. `None` if no tree is found, or if none of the recipes is faster than
/// `incumbent`.
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
    let longest = time_limit.min((MAX_RECIPE_RATIO * max_ratio * min_time) as u64);
    let candidates = classes
        .iter()
        .flat_map(|class| candidates(model, class, longest));
    let mut candidates: Vec<RecipeCandidate<'_>> = candidates.collect();
    candidates.sort_by_cached_key(RecipeCandidate::order);
    RecipeSearch::new(&candidates, time_limit).fastest()
}

impl TimeModel {
    /// Returns the lower bound on the time of the recipes of a class, in picoseconds.
    fn min_time_of(&self, class: &RecipeClass) -> f64 {
        self.min_time_of_class(class.slots, class.meeting, class.min_volume_sum)
    }

    /// Returns the classes whose lower bounds on time, in picoseconds, exceed neither `longest` nor
    /// the least bound times `max_ratio`. In the middle of an all_reduce, roots meet.
    fn classes(&self, ring: &WdmRing, max_ratio: f64, longest: f64) -> Vec<RecipeClass> {
        let mut classes: Vec<RecipeClass> = Vec::new();
        let mut time_limit = longest;
        for group in groups(ring.ranks) {
            let grouping = Grouping::new(ring, group);
            let lengths = lengths(&grouping);
            let tree_lengths = TreeLengths::new(&grouping, &lengths, MAX_SLOTS);
            let sets = (self.halves == 1).then(|| RootSets::new(&grouping));
            for slots in 2..MAX_SLOTS {
                interrupt::check();
                let lengths = (&lengths[..], &tree_lengths);
                let classes_of_slots = match &sets {
                    None => self.meeting_classes(&grouping, lengths, slots, time_limit),
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

    /// Returns the class in which owners send to the roots in the first slot, unless its lower
    /// bound exceeds `time_limit` picoseconds.
    fn gathering_classes(
        &self,
        sets: &RootSets<'_>,
        (lengths, tree_lengths): (&[u32], &TreeLengths),
        slots: usize,
        time_limit: f64,
    ) -> Vec<RecipeClass> {
        let grouping = sets.grouping;
        let length = tree_lengths.for_gaps(slots)[grouping.ranks as usize - 1];
        let min_blocks = length / grouping.room_per_block();
        if slots == 2 || self.time_of_slots(slots, min_blocks) > time_limit {
            return Vec::new();
        }
        let first_slots = sets.first_slots(tree_lengths.for_gaps(slots - 1), MAX_FIRST_SLOTS);
        let Some(best) = first_slots.first() else {
            return Vec::new();
        };
        vec![RecipeClass {
            index: 0,
            slots,
            grouping: grouping.clone(),
            lengths: lengths.to_vec(),
            meeting: None,
            min_volume_sum: best.remaining_cost / grouping.room_per_block(),
            first_slots,
        }]
    }

    /// Returns the classes in which roots exchange sums in the first slot, with the meeting volumes
    /// of the least lower bounds, without those above `time_limit` picoseconds.
    fn meeting_classes(
        &self,
        grouping: &Grouping,
        (lengths, tree_lengths): (&[u32], &TreeLengths),
        slots: usize,
        time_limit: f64,
    ) -> Vec<RecipeClass> {
        let even = EvenRoots::all(grouping, tree_lengths.for_gaps(slots - 1));
        let group = grouping.group;
        let quarters = MEETING_VOLUMES.map(|quarters| quarters * group);
        let volumes = quarters.into_iter().filter(|blocks| blocks % 4 == 0);
        let volumes = volumes.map(|blocks| blocks / 4);
        let mut timed: Vec<(f64, u32)> = Vec::new();
        for volume in volumes {
            let room = grouping.room(volume);
            let fitting = even.iter().find(|even| even.length as f32 <= room);
            timed.extend(fitting.map(|even| {
                let min_blocks = even.remaining_cost / grouping.room_per_block();
                let time = self.min_time_of_class(slots, Some(volume), min_blocks);
                (time, volume)
            }));
        }
        timed.retain(|(time, _)| *time <= time_limit);
        timed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let classes = timed.into_iter().filter_map(|(_, volume)| {
            let first_slots = meetings(grouping, &even, volume, MAX_FIRST_SLOTS);
            let remaining_cost = first_slots.first()?.remaining_cost;
            Some(RecipeClass {
                index: 0,
                slots,
                grouping: grouping.clone(),
                lengths: lengths.to_vec(),
                meeting: Some(volume),
                first_slots,
                min_volume_sum: remaining_cost / grouping.room_per_block(),
            })
        });
        classes.take(MAX_MEETING_VOLUMES).collect()
    }
}

/// Volume of a slot as a share of bundles: `bundles` bundles on `lightpaths` lightpaths. One of the
/// two numbers is 1.
#[derive(Debug, Clone, Copy)]
struct Share {
    bundles: u32,
    lightpaths: u32,
}

impl Share {
    /// Returns all shares, the smallest first.
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

    /// Returns the number of blocks on a lightpath.
    fn blocks(self, group: u32) -> f32 {
        (self.bundles * group) as f32 / self.lightpaths as f32
    }

    /// Returns the number of pieces on a lightpath, with `pieces` pieces per block; `None` if the
    /// number is not whole.
    fn volume(self, group: u32, pieces: u32) -> Option<u32> {
        let total = self.bundles * group * pieces;
        (total % self.lightpaths == 0).then_some(total / self.lightpaths)
    }
}

/// Returns the recipes of a class that take less than `longest` picoseconds and whose volumes have
/// at least the least sum.
fn candidates<'a>(
    model: &TimeModel,
    class: &'a RecipeClass,
    longest: u64,
) -> Vec<RecipeCandidate<'a>> {
    let group = class.grouping.group;
    let middle = class.slots - 2;
    let mean = class.min_volume_sum / (class.slots - 1) as f32;
    let range = mean / MAX_VOLUME_RATIO..=mean * MAX_VOLUME_RATIO;
    let shares = Share::all().filter(|share| range.contains(&share.blocks(group)));
    let shares: Vec<Share> = shares.collect();
    let mut candidates: Vec<RecipeCandidate<'_>> = Vec::new();
    for (index, many) in shares.iter().enumerate() {
        for few in &shares[..=index] {
            let volumes =
                |pieces: u32| Some((few.volume(group, pieces)?, many.volume(group, pieces)?));
            let whole = (1..=MAX_PIECES).find_map(|pieces| Some((pieces, volumes(pieces)?)));
            let Some((pieces, (low, high))) =
                whole.filter(|(_, (low, high))| *high as f32 <= MAX_VOLUME_RATIO * *low as f32)
            else {
                continue;
            };
            let bundle = class.grouping.with_pieces(pieces).pieces_of_bundle();
            let min_sum = (class.min_volume_sum * pieces as f32).ceil() as u32;
            // Slots of the lower volume: all of them if both volumes are equal, otherwise some of
            // each.
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
                        few: (low, count),
                        many: (high, middle - count),
                        last,
                    };
                    RecipeCandidate {
                        time: model.time(pieces, class.meeting, &volumes),
                        class,
                        pieces,
                        volumes,
                    }
                });
                let sufficient = recipes.skip_while(|recipe| recipe.volumes.sum() < min_sum);
                candidates.extend(sufficient.take_while(|recipe| recipe.time < longest));
            }
        }
    }
    candidates
}
