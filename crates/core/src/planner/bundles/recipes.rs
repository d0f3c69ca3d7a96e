//! Which groups, and how many blocks a lightpath has in which slot.
//!
//! The least length of a tree of S slots ([`super::tree::starts`]) says of how many blocks the longest lightpaths of all slots are
//! in sum at least. Slots carry few blocks first, when few ranks have the bundle and lightpaths are long, and more of
//! them later. Volumes that divide the bundle, or that it divides, waste no room on a lightpath. So S - 2 slots take one or two such
//! volumes in rising order, and the last slot takes what is left. These recipes are tried by their times; the first
//! that has a tree is the fastest.

use super::tree::{Effort, Grouping, Start, Taste, grow, lengths, starts};
use super::{Bundles, Tree};
use crate::family::wdm_ring::WdmRing;
use crate::interrupt;
use crate::planner::slot_cost::SlotCost;
use crate::units::Bytes;

/// More ranks in a group find no channels in the first slot.
const MOST_GROUP: u32 = 16;

/// More slots are no better than one block on each lightpath.
const MOST_SLOTS: usize = 20;

/// The sum of volumes over what it is at least, of the recipes that are tried.
const SLACK: std::ops::RangeInclusive<f32> = 1.03..=1.45;

/// Slots and groups whose times are so much longer than the least are not tried.
const FAR: f64 = 1.15;

/// Table entries and gaps that all trees that are tried may take, in ranks, slots and lengths.
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
    group: u32,
    grouping: Grouping,
    lengths: Vec<u32>,
    starts: Vec<Start>,
    /// The sum of volumes, at least.
    least: f32,
}

/// The time of a recipe: a slot costs as much as a lightpath of its blocks.
pub(super) fn time(cost: SlotCost, block: u64, hops: u64, volumes: &[u32]) -> u64 {
    let volumes = [1].iter().chain(volumes);
    volumes.fold(0, |sum: u64, &volume| {
        let bytes = Bytes::new(block.saturating_mul(volume.into()));
        sum.saturating_add(cost.slots(1, bytes, hops))
    })
}

/// The tree of a recipe.
pub(super) fn tree(ring: &WdmRing, recipe: &Bundles) -> Option<Tree> {
    let grouping = Grouping::new(ring, recipe.group);
    let lengths = lengths(&grouping);
    let starts = starts(&grouping, &lengths, recipe.volumes.len(), STARTS);
    let tree = grow(
        &grouping,
        &lengths,
        &starts,
        &recipe.volumes,
        &effort(ring.ranks),
    )?;
    Some(Tree { grouping, tree })
}

/// Sets of holders to start from.
const STARTS: usize = 3;

/// Small trees take little time, and chance helps them.
fn effort(ranks: u32) -> Effort {
    let (seeds, kept) = if ranks <= 128 { (4, 8) } else { (1, 2) };
    let tastes = (0..seeds).flat_map(|seed| {
        let chance = if seed == 0 { 0.0 } else { 0.1 };
        let pairs = [(0.05, 0.2), (0.05, 0.05), (0.15, 0.2), (0.15, 0.05)];
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

/// The fastest recipe that was found with a tree in less than `most`.
pub(super) fn fastest(ring: &WdmRing, cost: SlotCost, block: u64, most: u64) -> Option<Timed> {
    let hops = u64::from(ring.ranks / 2);
    let groups = (1..=MOST_GROUP.min(ring.ranks / 2)).filter(|group| ring.ranks % group == 0);
    let groupings: Vec<Grouping> = groups.map(|group| Grouping::new(ring, group)).collect();
    let of_block = time(cost, block, hops, &[1]).saturating_sub(time(cost, block, hops, &[]));
    let empty = time(cost, 0, hops, &[]);
    let least_time = |frame: &Frame| {
        let sending = of_block.saturating_sub(empty) as f64;
        frame.slots as f64 * empty as f64 + f64::from(frame.least) * sending
    };
    let mut frames: Vec<Frame> = Vec::new();
    let mut best = most as f64;
    for slots in 3..=MOST_SLOTS {
        if slots as f64 * empty as f64 > best {
            break;
        }
        for grouping in &groupings {
            interrupt::check();
            let frame = frame(grouping, slots);
            let Some(frame) = frame.filter(|frame| least_time(frame) < most as f64) else {
                continue;
            };
            best = best.min(FAR * least_time(&frame));
            frames.push(frame);
        }
    }
    frames.retain(|frame| least_time(frame) <= best);
    let mut recipes: Vec<(u64, &Frame, Vec<u32>)> = Vec::new();
    for frame in &frames {
        let volumes = volumes(frame).into_iter();
        let timed = volumes.map(|volumes| (time(cost, block, hops, &volumes), frame, volumes));
        recipes.extend(timed.filter(|(time, ..)| *time < most));
    }
    recipes.sort_by_key(|(time, frame, volumes)| {
        (*time, frame.slots, frame.group, unevenness(volumes))
    });
    let effort = effort(ring.ranks);
    let mut work = 0;
    for (time, frame, volumes) in recipes {
        interrupt::check();
        work += ring.ranks as usize * volumes.len() * frame.lengths.len();
        if work > MOST_WORK {
            return None;
        }
        if grow(
            &frame.grouping,
            &frame.lengths,
            &frame.starts,
            &volumes,
            &effort,
        )
        .is_some()
        {
            let group = frame.group;
            let recipe = Bundles { group, volumes };
            return Some(Timed { time, recipe });
        }
    }
    None
}

fn frame(grouping: &Grouping, slots: usize) -> Option<Frame> {
    let lengths = lengths(grouping);
    let starts = starts(grouping, &lengths, slots - 1, STARTS);
    let left = starts.first()?.left;
    Some(Frame {
        slots,
        group: grouping.group,
        lengths,
        starts,
        least: 1.0 + left / (2 * grouping.channels()) as f32,
        grouping: grouping.clone(),
    })
}

/// How far the last volume is from the one before it.
fn unevenness(volumes: &[u32]) -> u32 {
    match volumes {
        [.., before, last] => before.abs_diff(*last),
        _ => 0,
    }
}

/// Volumes of the slots after the first.
fn volumes(frame: &Frame) -> Vec<Vec<u32>> {
    let group = frame.group;
    let fitting = (1..=2 * group).filter(|volume| group % volume == 0 || *volume == 2 * group);
    let fitting: Vec<u32> = fitting.collect();
    let middle = frame.slots - 2;
    let mut all = Vec::new();
    for (index, &few) in fitting.iter().enumerate() {
        for (place, &many) in fitting.iter().enumerate().skip(index) {
            // A single volume comes once.
            let least_few = if place == index { middle } else { 1 };
            for count in least_few
                ..=middle
                    .saturating_sub(usize::from(place != index))
                    .max(least_few)
            {
                let before = few * count as u32 + many * (middle - count.min(middle)) as u32;
                for last in many.div_ceil(2)..=many + many.div_ceil(2) {
                    let sum = 1 + before + last;
                    if SLACK.contains(&(sum as f32 / frame.least)) {
                        let few = std::iter::repeat_n(few, count);
                        let many = std::iter::repeat_n(many, middle - count.min(middle));
                        all.push(few.chain(many).chain([last]).collect());
                    }
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}
