//! Which groups, how holders get their bundles, and how many pieces of blocks a lightpath has in which slot.
//!
//! The least length of a tree of S slots ([`super::starts`]) says of how many blocks the longest lightpaths of all slots are
//! in sum at least. Slots carry few blocks first, when few ranks have the bundle and lightpaths are long, and more of
//! them later. A bundle over a whole number of lightpaths, or whole bundles on one, waste no room ([`Share`]). So S - 2 slots take one or
//! two such volumes in rising order, and the last slot takes what is left. These recipes are tried by their times; the first
//! that has a tree is the fastest.

use std::collections::BTreeSet;

use super::grouping::{Grouping, lengths};
use super::known::{self, Timed};
use super::pace::Pace;
use super::starts::{Evenly, meetings, starts};
use super::tree::{BundleTree, Costs, Effort, Search};
use super::trials::{Frame, Trials, Try};
use super::{Bundles, Tree};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// More ranks in a group find no channels in the first slot.
const MOST_GROUP: u32 = 16;

/// The same where holders of sums meet: they send whole bundles.
const MOST_MEETING: u32 = 32;

/// Blocks of a lightpath in a meeting, as parts and multiples of a bundle.
const MEETING_PARTS: [u32; 3] = [4, 2, 1];
const MEETING_TIMES: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];

/// Volumes of meetings that are tried with a number of slots.
const MEETINGS: usize = 2;

/// With so few slots after the first, lightpaths of all lengths are needed.
const FINE_SLOTS: usize = 1;

/// With more slots, trees have no shorter lightpaths.
const MOST_TRIED_SLOTS: usize = 32;

/// The last slot has so many times the volume of the one before it, at most.
const MOST_MORE: u32 = 2;

/// And so many times the ranks of a group.
const MOST_LAST: u32 = 4;

/// Slots and groups whose times are so much longer than the least are not tried.
const FAR: f64 = 1.15;

/// On rings of so many ranks slots and groups of any time are tried where none of those was found.
const SMALL: u32 = 256;

/// Volumes of last slots differ by such a part of all.
const FINE: u32 = 100;

/// So many slots have volumes of more kinds.
const FEW_SLOTS: usize = 5;

/// The most pieces of a block that are tried.
const MOST_TRIED_PIECES: u32 = 6;

/// The most lightpaths for a bundle, and the most bundles on a lightpath.
const MOST_LIGHTPATHS: u32 = 64;
const MOST_BUNDLES: u32 = 2;

/// The tree of a recipe.
pub(super) fn tree(ring: &WdmRing, recipe: &Bundles) -> Option<Tree> {
    let grouping = Grouping::new(ring, recipe.group).in_pieces(recipe.pieces);
    let tree = match known::tree(ring, recipe) {
        Some(tree) => tree,
        None => made(ring, &grouping, recipe)?,
    };
    Some(Tree {
        grouping,
        tree,
        is_meeting: recipe.meeting.is_some(),
    })
}

/// The tree of a recipe, which is looked for anew.
fn made(ring: &WdmRing, grouping: &Grouping, recipe: &Bundles) -> Option<BundleTree> {
    let volumes = &recipe.volumes;
    let slots = volumes.len();
    let lengths = lengths(grouping, slots <= FINE_SLOTS);
    let costs = Costs::new(grouping, &lengths, slots);
    let later = costs.of_gaps(slots);
    let starts = match recipe.meeting {
        None => starts(grouping, later, STARTS),
        Some(volume) => meetings(grouping, &Evenly::all(grouping, later), volume, STARTS),
    };
    let search = Search {
        grouping,
        lengths: &lengths,
        starts: &starts,
        volumes,
        effort: &Effort::of(ring.ranks),
        spare: 0.0,
    };
    search.tree().ok()
}

/// Sets of holders to start from.
const STARTS: usize = 3;

/// What a plan takes at least, about.
pub(super) fn least(ring: &WdmRing, pace: &Pace) -> f64 {
    let group = groups(ring.ranks, MOST_GROUP).last().unwrap_or(1);
    let grouping = Grouping::new(ring, group);
    let costs = AllCosts::new(&grouping);
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
    let mut least = (3..MOST_TRIED_SLOTS)
        .map(whole)
        .fold(f64::INFINITY, f64::min);
    if pace.halves == 2 {
        least = (2..MOST_TRIED_SLOTS).map(meeting).fold(least, f64::min);
    }
    least
}

/// The sizes of groups that a ring has, up to so many ranks.
fn groups(ranks: u32, most: u32) -> impl Iterator<Item = u32> {
    (1..=most.min(ranks / 2)).filter(move |group| ranks % group == 0)
}

/// What trees of all numbers of slots cost at least.
struct AllCosts {
    fine: (Vec<u32>, Costs),
    usual: (Vec<u32>, Costs),
}

impl AllCosts {
    fn new(grouping: &Grouping) -> AllCosts {
        let with = |slots| {
            let lengths = lengths(grouping, slots <= FINE_SLOTS);
            let costs = Costs::new(grouping, &lengths, slots);
            (lengths, costs)
        };
        AllCosts {
            fine: with(FINE_SLOTS),
            usual: with(MOST_TRIED_SLOTS),
        }
    }

    /// Lengths of lightpaths where so many slots come after the first, and costs.
    fn of(&self, slots: usize) -> &(Vec<u32>, Costs) {
        match slots <= FINE_SLOTS {
            true => &self.fine,
            false => &self.usual,
        }
    }

    fn of_gaps(&self, slots: usize) -> &[f32] {
        self.of(slots).1.of_gaps(slots)
    }
}

/// The fastest recipe that was found with a tree.
pub(super) fn fastest(ring: &WdmRing, pace: &Pace) -> Option<Timed> {
    known::fastest(ring, pace, || search(ring, pace))
}

fn search(ring: &WdmRing, pace: &Pace) -> Option<Timed> {
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
        .map(|half| Timed {
            time: half.time.saturating_mul(halves),
            ..half
        }),
    };
    let near = fastest_of(ring, pace, FAR, gathered.as_ref());
    // With few channels trees may need more slots than their length says.
    match near.is_none() && gathered.is_none() && ring.ranks <= SMALL {
        true => fastest_of(ring, pace, f64::INFINITY, None),
        false => near.or(gathered),
    }
}

/// The fastest recipe of slots and groups that may take so many times the least, if it is faster than one that is known.
fn fastest_of(ring: &WdmRing, pace: &Pace, far: f64, known: Option<&Timed>) -> Option<Timed> {
    let most = known.map_or(u64::MAX, |known| known.time);
    let frames = pace.frames(ring, far, most as f64);
    let tries = frames.iter().flat_map(|frame| tries(pace, frame));
    let mut tries: Vec<Try<'_>> = tries.filter(|one| one.time < most).collect();
    // The most even volumes first, and of these the rising ones.
    tries.sort_by(|one, other| one.order().cmp(&other.order()));
    let effort = Effort::of(ring.ranks);
    Trials::new(ring.ranks, &tries, &effort, most).fastest()
}

impl Pace {
    /// Slots and groups that may take so many times what the best of them may, and no longer than so much. In the middle of an all_reduce
    /// holders meet.
    fn frames(&self, ring: &WdmRing, far: f64, longest: f64) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut best = longest;
        let most = if self.halves == 2 {
            MOST_MEETING
        } else {
            MOST_GROUP
        };
        for group in groups(ring.ranks, most) {
            let grouping = Grouping::new(ring, group);
            let costs = AllCosts::new(&grouping);
            for slots in 2..MOST_TRIED_SLOTS {
                interrupt::check();
                let frames_of_slots = match self.halves {
                    2 => self.meeting(&grouping, &costs, slots, best),
                    _ => self.gathering(&grouping, &costs, slots, best),
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
        grouping: &Grouping,
        costs: &AllCosts,
        slots: usize,
        best: f64,
    ) -> Vec<Frame> {
        let whole = costs.of_gaps(slots)[grouping.ranks as usize - 1] / grouping.room_of_blocks();
        if slots == 2 || self.of_sum(slots, whole) > best {
            return Vec::new();
        }
        let (lengths, costs) = costs.of(slots - 1);
        let starts = starts(grouping, costs.of_gaps(slots - 1), STARTS);
        let Some(first) = starts.first() else {
            return Vec::new();
        };
        vec![Frame {
            index: 0,
            slots,
            grouping: grouping.clone(),
            lengths: lengths.clone(),
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
        costs: &AllCosts,
        slots: usize,
        best: f64,
    ) -> Vec<Frame> {
        let (lengths, costs) = costs.of(slots - 1);
        let even = Evenly::all(grouping, costs.of_gaps(slots - 1));
        let group = grouping.group;
        let parts = MEETING_PARTS.into_iter().filter(|part| group % part == 0);
        let volumes = parts.map(|part| group / part);
        let volumes = volumes.chain(MEETING_TIMES.map(|times| times * group).into_iter().skip(1));
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
                lengths: lengths.clone(),
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
        let parts = (1..=MOST_LIGHTPATHS).rev().map(|lightpaths| Share {
            bundles: 1,
            lightpaths,
        });
        let more = (2..=MOST_BUNDLES).map(|bundles| Share {
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

/// What may be tried with a number of slots.
fn tries<'a>(pace: &Pace, frame: &'a Frame) -> Vec<Try<'a>> {
    let group = frame.grouping.group;
    let middle = frame.slots - 2;
    let mean = frame.least / (frame.slots - 1) as f32;
    // With few slots each counts, and there are few ways.
    let (rise, more) = if frame.slots <= FEW_SLOTS {
        (4.0, 1)
    } else {
        (3.0, 6)
    };
    let near = |share: &Share| (mean / rise..=mean * rise).contains(&share.blocks(group));
    let shares: Vec<Share> = Share::all().filter(near).collect();
    let mut all: Vec<Try<'_>> = Vec::new();
    for (place, many) in shares.iter().enumerate() {
        for few in &shares[..=place] {
            let both =
                |pieces: u32| Some((few.volume(group, pieces)?, many.volume(group, pieces)?));
            let whole = (1..=MOST_TRIED_PIECES).find_map(|pieces| Some((pieces, both(pieces)?)));
            let Some((pieces, (low, high))) =
                whole.filter(|(_, (low, high))| *high as f32 <= rise * *low as f32)
            else {
                continue;
            };
            let grouping = frame.grouping.in_pieces(pieces);
            let sum = (frame.least * pieces as f32).ceil() as u32;
            // All of one kind, or some of each.
            let counts = if low < high {
                1..middle
            } else {
                middle..middle + 1
            };
            for count in counts {
                let few = std::iter::repeat_n(low, count);
                let many = std::iter::repeat_n(high, middle - count);
                let volumes: Vec<u32> = few.chain(many).collect();
                let before = volumes.iter().sum::<u32>();
                let least = sum.saturating_sub(before).max(1);
                let most = match volumes.last() {
                    Some(usual) => MOST_MORE * usual,
                    None => MOST_LAST * grouping.bundle(),
                };
                let highest = (sum + sum / more).saturating_sub(before);
                let next = |last: &u32| Some(last + 1 + (last + before) / FINE);
                let fine = std::iter::successors(Some(least), next);
                let even = shares
                    .iter()
                    .filter_map(|share| share.volume(group, pieces));
                let highest = most.min(highest);
                let fine = fine.take_while(|last| *last <= highest);
                let lasts: BTreeSet<u32> = fine.chain(even).collect();
                all.extend(lasts.range(least..=highest.max(least)).map(|&last| {
                    let volumes = [&volumes[..], &[last]].concat();
                    let time = pace.time(&grouping, frame.meeting, &volumes);
                    Try::new(time, frame, pieces, volumes)
                }));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::slot_cost::SlotCost;
    use opticoll_fabric::fabric::Fabric;
    use opticoll_simulate::Policy;

    /// Recipes tried two at a time against the same recipes tried one by one, on rings below and above [`super::super::tree::SMALL_RING`].
    #[test]
    #[cfg_attr(
        debug_assertions,
        ignore = "slow without optimisation: `make validate`"
    )]
    fn two_trees_at_once_are_found_as_one_by_one() {
        let (mut found, mut all_missed) = (0, 0);
        for (ranks, wavelengths) in [(12, 2), (30, 4), (64, 8), (144, 9)] {
            let text = format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}");
            let fabric = Fabric::parse(&text).unwrap();
            let ring = crate::ring_of(&fabric).unwrap();
            for (block, halves) in [(1 << 10, 1), (1 << 16, 1), (1 << 10, 2), (1 << 16, 2)] {
                let pace = Pace {
                    cost: SlotCost::new(ring, Policy::EveryStep),
                    block,
                    hops: 0,
                    halves,
                };
                let frames = pace.frames(ring, FAR, f64::INFINITY);
                let tries = frames.iter().flat_map(|frame| tries(&pace, frame));
                let mut tries: Vec<Try<'_>> = tries.collect();
                tries.sort_by(|one, other| one.order().cmp(&other.order()));
                let effort = Effort::of(ranks);
                let trials = || Trials::new(ranks, &tries, &effort, u64::MAX);
                let (expected, missed) = trials().fastest_one_by_one();
                let both = [trials().fastest(), expected];
                let [own, expected] =
                    both.map(|one| one.map(|one| (one.time, one.recipe, one.tree)));
                assert_eq!(own, expected, "{text}, {block} bytes, {halves} halves");
                found += usize::from(own.is_some());
                all_missed += missed;
            }
        }
        assert!(found >= 8 && all_missed >= 8, "{found}, {all_missed}");
    }
}
