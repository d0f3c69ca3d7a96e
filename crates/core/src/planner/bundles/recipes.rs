//! Which groups, and how many blocks a lightpath has in which slot.
//!
//! The least length of a tree of S slots ([`super::tree::starts`]) says of how many blocks the longest lightpaths of all slots are
//! in sum at least. Slots carry few blocks first, when few ranks have the bundle and lightpaths are long, and more of
//! them later. Volumes that divide the bundle, or that it divides, waste no room on a lightpath. So S - 2 slots take one or two such
//! volumes in rising order, and the last slot takes what is left. These recipes are tried by their times; the first
//! that has a tree is the fastest.

use std::cell::RefCell;

use super::tree::{Costs, Effort, Grouping, Start, Taste, grow, lengths, starts};
use super::{Bundles, Tree};
use crate::family::wdm_ring::WdmRing;
use crate::interrupt;
use crate::planner::slot_cost::SlotCost;
use crate::units::Bytes;

/// More ranks in a group find no channels in the first slot.
const MOST_GROUP: u32 = 16;

/// More slots are no better than one block on each lightpath.
const MOST_SLOTS: usize = 20;

/// The sum of volumes over what it is at least, where all goes well.
const SLACK: f32 = 1.03;

/// The last slot has so many times the volume of the one before it, at most.
const MOST_MORE: u32 = 2;

/// And so many times the ranks of a group.
const MOST_LAST: u32 = 4;

/// Slots and groups whose times are so much longer than the least are not tried.
const FAR: f64 = 1.15;

/// On rings of so many ranks slots and groups of any time are tried where none of those was found.
const SMALL: u32 = 256;

/// Recipes that are tried.
const MOST_TRIED: usize = 64;

/// So many slots have volumes of more kinds.
const FEW_SLOTS: usize = 5;

/// Ranks, slots and lengths, multiplied, of all trees that are tried.
const MOST_WORK: usize = 24_000_000;

/// A recipe with its time.
#[derive(Debug, Clone)]
pub(super) struct Timed {
    pub(super) time: u64,
    pub(super) recipe: Bundles,
}

/// A number of slots for groups of a size.
struct Frame {
    slots: usize,
    grouping: Grouping,
    lengths: Vec<u32>,
    starts: Vec<Start>,
    /// The sum of volumes, at least.
    least: f32,
}

/// The tree of a recipe.
pub(super) fn tree(ring: &WdmRing, recipe: &Bundles) -> Option<Tree> {
    let Bundles { group, volumes } = recipe;
    let grouping = Grouping::new(ring, *group);
    let lengths = lengths(&grouping);
    let costs = Costs::new(&grouping, &lengths, volumes.len());
    let starts = starts(&grouping, costs.of_gaps(volumes.len()), STARTS);
    let (last, volumes) = volumes.split_last()?;
    let effort = effort(ring.ranks);
    let tree = grow(
        &grouping,
        &lengths,
        &starts,
        volumes,
        *last..=*last,
        &effort,
    )?;
    Some(Tree { grouping, tree })
}

/// Sets of holders to start from.
const STARTS: usize = 3;

/// Small trees take little time, and chance helps them.
fn effort(ranks: u32) -> Effort {
    let (seeds, kept) = if ranks <= 128 { (8, 8) } else { (1, 2) };
    let tastes = (0..seeds).flat_map(|seed| {
        let chance = if seed == 0 { 0.0 } else { 0.1 };
        let pairs = [(0.05, 0.2), (0.15, 0.2)];
        pairs.map(|(longer, level)| Taste {
            longer,
            level,
            chance,
            seed,
        })
    });
    Effort {
        tastes: tastes.collect(),
        kept,
    }
}

/// What a tree of any number of slots takes at least.
pub(super) fn least(ring: &WdmRing, cost: SlotCost, block: u64) -> f64 {
    let pace = Pace::new(cost, block, u64::from(ring.ranks / 2));
    let groups = groups(ring.ranks).last().unwrap_or(1);
    let grouping = Grouping::new(ring, groups);
    let costs = Costs::new(&grouping, &lengths(&grouping), MOST_SLOTS);
    let whole = |slots| {
        let length = costs.of_gaps(slots)[ring.ranks as usize - 1];
        pace.of_sum(slots, length / (2 * ring.channels()) as f32)
    };
    let times = (3..MOST_SLOTS).map(whole);
    times.fold(f64::INFINITY, f64::min)
}

/// The sizes of groups that a ring has.
fn groups(ranks: u32) -> impl Iterator<Item = u32> {
    (1..=MOST_GROUP.min(ranks / 2)).filter(move |group| ranks % group == 0)
}

/// The fastest recipe that was found with a tree.
pub(super) fn fastest(ring: &WdmRing, cost: SlotCost, block: u64) -> Option<Timed> {
    let asked = (ring.clone(), cost, block);
    let known = LATEST.with_borrow(|latest| {
        let latest = latest.as_ref().filter(|(known, _)| *known == asked);
        latest.map(|(_, fastest)| fastest.clone())
    });
    known.unwrap_or_else(|| {
        let fastest = search(ring, cost, block);
        LATEST.set(Some((asked, fastest.clone())));
        fastest
    })
}

/// A question, and what was found.
type Answered = ((WdmRing, SlotCost, u64), Option<Timed>);

thread_local! {
    /// The last one: an all_reduce asks for its halves, too.
    static LATEST: RefCell<Option<Answered>> = const { RefCell::new(None) };
}

fn search(ring: &WdmRing, cost: SlotCost, block: u64) -> Option<Timed> {
    let pace = Pace::new(cost, block, u64::from(ring.ranks / 2));
    let near = fastest_of(ring, &pace, FAR);
    // With few channels trees may need more slots than their length says.
    match near.is_none() && ring.ranks <= SMALL {
        true => fastest_of(ring, &pace, f64::INFINITY),
        false => near,
    }
}

/// The same, of slots and groups that may take so many times the least.
fn fastest_of(ring: &WdmRing, pace: &Pace, far: f64) -> Option<Timed> {
    let frames = pace.frames(ring, far);
    let mut tries: Vec<(u64, &Frame, Vec<u32>, u32)> = Vec::new();
    for frame in &frames {
        for (volumes, last) in volumes(frame) {
            let whole = [&volumes[..], &[last]].concat();
            tries.push((pace.time(&whole), frame, volumes, last));
        }
    }
    tries.sort_by_key(|(time, frame, volumes, _)| (*time, volumes.len(), frame.grouping.group));
    let effort = effort(ring.ranks);
    let (mut best, mut work) = (None, 0);
    let mut most = u64::MAX;
    for (time, frame, volumes, last) in tries.into_iter().take(MOST_TRIED) {
        interrupt::check();
        work += ring.ranks as usize * volumes.len() * frame.lengths.len();
        if time >= most || work > MOST_WORK {
            break;
        }
        // The volumes of the last slot that are still fast enough.
        let fast = |last: &u32| pace.time(&[&volumes[..], &[*last]].concat()) < most;
        let highest = (last..=MOST_LAST * frame.grouping.group)
            .take_while(fast)
            .last();
        let Frame {
            grouping,
            lengths,
            starts,
            ..
        } = frame;
        let last = 1..=highest.unwrap_or(last);
        if let Some(tree) = grow(grouping, lengths, starts, &volumes, last, &effort) {
            let group = grouping.group;
            let volumes: Vec<u32> = tree.slots.iter().skip(1).map(|slot| slot.volume).collect();
            most = pace.time(&volumes);
            let recipe = Bundles { group, volumes };
            best = Some(Timed { time: most, recipe });
        }
    }
    best
}

/// What slots take for blocks of a size.
struct Pace {
    cost: SlotCost,
    block: u64,
    hops: u64,
}

impl Pace {
    fn new(cost: SlotCost, block: u64, hops: u64) -> Pace {
        Pace { cost, block, hops }
    }

    fn slot(&self, volume: u32) -> u64 {
        let bytes = Bytes::new(self.block.saturating_mul(volume.into()));
        self.cost.slots(1, bytes, self.hops)
    }

    /// Of slots with such volumes after the first.
    fn time(&self, volumes: &[u32]) -> u64 {
        let volumes = [1].iter().chain(volumes);
        volumes.fold(0, |sum: u64, &volume| sum.saturating_add(self.slot(volume)))
    }

    /// Of so many slots whose volumes have such a sum.
    fn of_sum(&self, slots: usize, sum: f32) -> f64 {
        let empty = self.slot(0);
        let block = self.slot(1) - empty;
        slots as f64 * empty as f64 + f64::from(sum) * block as f64
    }

    /// Slots and groups that may take so many times what the best of them may.
    fn frames(&self, ring: &WdmRing, far: f64) -> Vec<Frame> {
        let channels = 2.0 * ring.channels() as f32;
        let mut frames: Vec<Frame> = Vec::new();
        let mut best = f64::INFINITY;
        for group in groups(ring.ranks) {
            let grouping = Grouping::new(ring, group);
            let lengths = lengths(&grouping);
            let costs = Costs::new(&grouping, &lengths, MOST_SLOTS);
            for slots in 3..MOST_SLOTS {
                interrupt::check();
                let whole = costs.of_gaps(slots)[ring.ranks as usize - 1] / channels;
                if self.of_sum(slots, whole) > best {
                    continue;
                }
                let starts = starts(&grouping, costs.of_gaps(slots - 1), STARTS);
                let Some(start) = starts.first() else {
                    continue;
                };
                let least = 1.0 + start.left / channels;
                best = best.min(far * self.of_sum(slots, least));
                frames.push(Frame {
                    slots,
                    grouping: grouping.clone(),
                    lengths: lengths.clone(),
                    starts,
                    least,
                });
            }
        }
        frames.retain(|frame| self.of_sum(frame.slots, frame.least) <= best);
        frames
    }
}

/// Volumes of the slots between the first and the last, with the least of the last.
fn volumes(frame: &Frame) -> Vec<(Vec<u32>, u32)> {
    let group = frame.grouping.group;
    let middle = frame.slots - 2;
    let sum = (SLACK * frame.least).ceil() as u32;
    let mut all = Vec::new();
    // With few slots each counts, and there are few ways.
    let (most, rise) = if frame.slots <= FEW_SLOTS {
        (2, 4)
    } else {
        (1, 2)
    };
    for many in (1..=most).map(|times| times * group) {
        // Smaller ones divide the bundle.
        let fitting = |few: &u32| group % few == 0 && rise * few >= many;
        for few in (1..=group).filter(fitting) {
            for count in usize::from(few < many)..=middle {
                let few = std::iter::repeat_n(few, count);
                let many = std::iter::repeat_n(many, middle - count);
                let volumes: Vec<u32> = few.chain(many).collect();
                let before = 1 + volumes.iter().sum::<u32>();
                let last = sum.saturating_sub(before).max(1);
                let usual = volumes.last().copied().unwrap_or(group);
                if last <= MOST_MORE * usual && before <= sum + sum / 4 {
                    all.push((volumes, last));
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}
