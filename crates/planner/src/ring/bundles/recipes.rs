//! Which groups, how holders get their bundles, and how many pieces of blocks a lightpath has in which slot.
//!
//! The least length of a tree of S slots ([`super::starts`]) says of how many blocks the longest lightpaths of all slots are
//! in sum at least. Slots carry few blocks first, when few ranks have the bundle and lightpaths are long, and more of
//! them later. A bundle over a whole number of lightpaths, or whole bundles on one, waste no room ([`Share`]). So S - 2 slots take one or
//! two such volumes in rising order, and the last slot takes what is left, in eighths of a bundle. These recipes are tried by their
//! times; the first that has a tree is the fastest.

use std::collections::BTreeSet;

use super::cache::{self, TimedRecipe};
use super::grouping::{Grouping, lengths};
use super::pace::Pace;
use super::starts::{Evenly, HolderSets, meetings};
use super::tree::{BundleTree, Costs, Search};
use super::trials::{Frame, Trials, Try, Volumes};
use super::{Bundles, Tree};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// Maximum number of ranks in a group: larger ones find no channels in the first slot, or where holders of sums meet.
const MAX_GROUP: u32 = 32;

/// Blocks of a lightpath in a meeting, in quarters of a bundle.
const MEETING_QUARTERS: [u32; 10] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64];

/// Volumes of meetings that are tried with a number of slots: the fastest two by their times.
const MEETINGS: usize = 2;

/// Maximum number of slots of a half: with more, trees have no shorter lightpaths.
const MAX_SLOTS: usize = 32;

/// Numbers of slots and groups are tried up to so many times the least expected time; all of them, where none of those has a
/// tree, as with few channels.
const FAR: f64 = 1.15;

/// Maximum ratio of a recipe's time to that of the slowest numbers of slots and groups: of 80 recipes that were chosen,
/// none took more than 1.17 times.
const MAX_EXCESS: f64 = 1.3;

/// Greatest ratio of two volumes of a recipe, and of a volume to their mean.
const RISE: f32 = 4.0;

/// Maximum number of pieces of a block: with one only, four of 49 recipes take up to 6 % longer.
const MAX_PIECES: u32 = 6;

/// Maximum number of lightpaths for a bundle.
const MAX_LIGHTPATHS: u32 = 64;

/// Maximum number of bundles on a lightpath: with 2, all_reduces in three slots on 64 ranks take 11 % longer.
const MAX_BUNDLES: u32 = 4;

/// The tree of a recipe.
pub(super) fn tree(ring: &WdmRing, recipe: &Bundles) -> Option<Tree> {
    let grouping = Grouping::new(ring, recipe.group).in_pieces(recipe.pieces);
    let tree = match &recipe.tree {
        Some(tree) => tree.clone(),
        None => made(&grouping, recipe)?,
    };
    Some(Tree {
        grouping,
        tree,
        is_meeting: recipe.meeting.is_some(),
    })
}

/// The tree of a recipe, which is looked for anew.
fn made(grouping: &Grouping, recipe: &Bundles) -> Option<BundleTree> {
    let volumes = &recipe.volumes;
    let slots = volumes.len();
    let lengths = lengths(grouping);
    let costs = Costs::new(grouping, &lengths, slots);
    let later = costs.of_gaps(slots);
    let starts = match recipe.meeting {
        None => HolderSets::new(grouping).starts(later, STARTS),
        Some(volume) => meetings(grouping, &Evenly::all(grouping, later), volume, STARTS),
    };
    let search = Search {
        grouping,
        lengths: &lengths,
        starts: &starts,
        volumes,
        spare: 0.0,
    };
    search.tree()
}

/// Sets of holders to start from: with one only, 13 of 49 recipes take up to 6 % longer.
const STARTS: usize = 3;

/// What a plan takes at least, about.
pub(super) fn least(ring: &WdmRing, pace: &Pace) -> f64 {
    let group = groups(ring.ranks).last().unwrap_or(1);
    let grouping = Grouping::new(ring, group);
    let costs = Costs::new(&grouping, &lengths(&grouping), MAX_SLOTS);
    let whole = |slots| {
        let length = costs.of_gaps(slots)[ring.ranks as usize - 1];
        pace.halves as f64 * pace.of_sum(slots, length / grouping.room_of_blocks())
    };
    let meeting = |slots| {
        let later = costs.of_gaps(slots - 1);
        let times = Evenly::all(&grouping, later).into_iter().map(|evenly| {
            let volume = evenly.length as f32 / grouping.room_of_blocks();
            let both = 2.0 * pace.of_sum(slots - 1, evenly.left / grouping.room_of_blocks());
            pace.of_sum(1, volume) + both
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let mut least = (3..MAX_SLOTS).map(whole).fold(f64::INFINITY, f64::min);
    if pace.halves == 2 {
        least = (2..MAX_SLOTS).map(meeting).fold(least, f64::min);
    }
    least
}

/// Returns the sizes of groups that are tried on a ring.
fn groups(ranks: u32) -> impl Iterator<Item = u32> {
    (1..=MAX_GROUP.min(ranks / 2)).filter(move |group| ranks % group == 0)
}

/// The fastest recipe that was found with a tree.
pub(super) fn fastest(ring: &WdmRing, pace: &Pace) -> Option<TimedRecipe> {
    cache::fastest(ring, pace, || search(ring, pace))
}

fn search(ring: &WdmRing, pace: &Pace) -> Option<TimedRecipe> {
    // Without a meeting, an all_reduce is an all_gather there and back.
    let gathered = match pace.halves {
        1 => None,
        halves => fastest(
            ring,
            &Pace {
                halves: 1,
                ..pace.clone()
            },
        )
        .map(|(time, half)| (time.saturating_mul(halves), half)),
    };
    let near = fastest_of(ring, pace, FAR, gathered.as_ref());
    // With few channels trees may need more slots than their length says.
    match near.is_none() && gathered.is_none() {
        true => fastest_of(ring, pace, f64::INFINITY, None),
        false => near.or(gathered),
    }
}

/// The fastest recipe of slots and groups that may take so many times the least, if it is faster than one that is known.
fn fastest_of(
    ring: &WdmRing,
    pace: &Pace,
    far: f64,
    known: Option<&TimedRecipe>,
) -> Option<TimedRecipe> {
    let most = known.map_or(u64::MAX, |(time, _)| *time);
    let frames = pace.frames(ring, far, most as f64);
    let times = frames
        .iter()
        .map(|frame| pace.of_frame(frame.slots, frame.meeting, frame.least));
    let least = times.fold(f64::INFINITY, f64::min);
    let longest = most.min((MAX_EXCESS * far * least) as u64);
    let tries = frames.iter().flat_map(|frame| tries(pace, frame, longest));
    let mut tries: Vec<Try<'_>> = tries.collect();
    tries.sort_by_cached_key(Try::order);
    Trials::new(&tries, most).fastest()
}

impl Pace {
    /// Slots and groups that may take so many times what the best of them may, and no longer than so much. In the middle of an all_reduce
    /// holders meet.
    fn frames(&self, ring: &WdmRing, far: f64, longest: f64) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut best = longest;
        for group in groups(ring.ranks) {
            let grouping = Grouping::new(ring, group);
            let lengths = lengths(&grouping);
            let costs = Costs::new(&grouping, &lengths, MAX_SLOTS);
            let sets = (self.halves == 1).then(|| HolderSets::new(&grouping));
            for slots in 2..MAX_SLOTS {
                interrupt::check();
                let frames_of_slots = match &sets {
                    None => self.meeting(&grouping, (&lengths, &costs), slots, best),
                    Some(sets) => self.gathering(sets, (&lengths, &costs), slots, best),
                };
                for frame in frames_of_slots {
                    let time = self.of_frame(frame.slots, frame.meeting, frame.least);
                    best = best.min(far * time);
                    frames.push(frame);
                }
            }
        }
        frames.retain(|frame| self.of_frame(frame.slots, frame.meeting, frame.least) <= best);
        for (index, frame) in frames.iter_mut().enumerate() {
            frame.index = index;
        }
        frames
    }

    /// Owners send to holders first, where that may be as fast as the best.
    fn gathering(
        &self,
        sets: &HolderSets<'_>,
        (lengths, costs): (&[u32], &Costs),
        slots: usize,
        best: f64,
    ) -> Vec<Frame> {
        let grouping = sets.grouping;
        let whole = costs.of_gaps(slots)[grouping.ranks as usize - 1] / grouping.room_of_blocks();
        if slots == 2 || self.of_sum(slots, whole) > best {
            return Vec::new();
        }
        let starts = sets.starts(costs.of_gaps(slots - 1), STARTS);
        let Some(first) = starts.first() else {
            return Vec::new();
        };
        vec![Frame {
            index: 0,
            slots,
            grouping: grouping.clone(),
            lengths: lengths.to_vec(),
            meeting: None,
            least: first.left / grouping.room_of_blocks(),
            starts,
        }]
    }

    /// Holders of sums exchange them, where that may be as fast as the best: with so many blocks on a lightpath as
    /// take the least time.
    fn meeting(
        &self,
        grouping: &Grouping,
        (lengths, costs): (&[u32], &Costs),
        slots: usize,
        best: f64,
    ) -> Vec<Frame> {
        let even = Evenly::all(grouping, costs.of_gaps(slots - 1));
        let group = grouping.group;
        let quarters = MEETING_QUARTERS.map(|quarters| quarters * group);
        let volumes = quarters.into_iter().filter(|blocks| blocks % 4 == 0);
        let volumes = volumes.map(|blocks| blocks / 4);
        let mut timed: Vec<(f64, u32)> = Vec::new();
        for volume in volumes {
            let room = grouping.room(volume);
            let fitting = even.iter().find(|evenly| evenly.length as f32 <= room);
            timed.extend(fitting.map(|evenly| {
                let least = evenly.left / grouping.room_of_blocks();
                (self.of_frame(slots, Some(volume), least), volume)
            }));
        }
        timed.retain(|(time, _)| *time <= best);
        timed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let frames = timed.into_iter().filter_map(|(_, volume)| {
            let starts = meetings(grouping, &even, volume, STARTS);
            let least = starts.first()?.left / grouping.room_of_blocks();
            Some(Frame {
                index: 0,
                slots,
                grouping: grouping.clone(),
                lengths: lengths.to_vec(),
                meeting: Some(volume),
                starts,
                least,
            })
        });
        frames.take(MEETINGS).collect()
    }
}

/// How much of a bundle is on a lightpath: so many bundles over so many lightpaths, one of which is one.
#[derive(Debug, Clone, Copy)]
struct Share {
    bundles: u32,
    lightpaths: u32,
}

impl Share {
    /// All that there are, the least first.
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

    fn blocks(self, group: u32) -> f32 {
        (self.bundles * group) as f32 / self.lightpaths as f32
    }

    /// Pieces on a lightpath where a block has so many, if they are whole ones.
    fn volume(self, group: u32, pieces: u32) -> Option<u32> {
        let all = self.bundles * group * pieces;
        (all % self.lightpaths == 0).then_some(all / self.lightpaths)
    }
}

/// Returns the recipes with a number of slots that may have a tree and take less than `longest` picoseconds.
fn tries<'a>(pace: &Pace, frame: &'a Frame, longest: u64) -> Vec<Try<'a>> {
    let group = frame.grouping.group;
    let middle = frame.slots - 2;
    let mean = frame.least / (frame.slots - 1) as f32;
    let near = |share: &Share| (mean / RISE..=mean * RISE).contains(&share.blocks(group));
    let shares: Vec<Share> = Share::all().filter(near).collect();
    let mut all: Vec<Try<'_>> = Vec::new();
    for (place, many) in shares.iter().enumerate() {
        for few in &shares[..=place] {
            let both =
                |pieces: u32| Some((few.volume(group, pieces)?, many.volume(group, pieces)?));
            let whole = (1..=MAX_PIECES).find_map(|pieces| Some((pieces, both(pieces)?)));
            let Some((pieces, (low, high))) =
                whole.filter(|(_, (low, high))| *high as f32 <= RISE * *low as f32)
            else {
                continue;
            };
            let bundle = frame.grouping.in_pieces(pieces).bundle();
            let sum = (frame.least * pieces as f32).ceil() as u32;
            // All of one kind, or some of each.
            let counts = if low < high {
                1..middle
            } else {
                middle..middle + 1
            };
            let lasts = (1..=8 * MAX_BUNDLES).map(|eighths| bundle * eighths / 8);
            let lasts: BTreeSet<u32> = lasts.filter(|last| *last > 0).collect();
            for count in counts {
                let tries = lasts.iter().map(|&last| {
                    let volumes = Volumes {
                        few: (low, count),
                        many: (high, middle - count),
                        last,
                    };
                    Try {
                        time: pace.time(pieces, frame.meeting, &volumes),
                        frame,
                        pieces,
                        volumes,
                    }
                });
                let enough = tries.skip_while(|one| one.volumes.sum() < sum);
                all.extend(enough.take_while(|one| one.time < longest));
            }
        }
    }
    all
}
