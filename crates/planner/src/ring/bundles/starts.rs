//! Who holds a bundle after the first slot.

use std::collections::BTreeMap;

use super::filling::{BundleSlot, Family, lit};
use super::gaps::gaps_between;
use super::grouping::{Grouping, distance};
use opticoll_base::interrupt;

/// Sets of holders, the best first, for whose first slot channels are searched.
const MOST_STARTS: usize = 400;

/// Sets of holders, the best first, for whose exchange channels are searched.
const MOST_MEETINGS: usize = 40;

/// Maximum number of holders that exchange: the links between all pairs grow with its square.
const MOST_HOLDERS: u32 = 8;

/// The holders after the first slot.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// What is left costs so many link-blocks of the bundle at least.
    pub(super) left: f32,
    pub(super) holders: Vec<u32>,
    pub(super) slot: BundleSlot,
}

impl Start {
    /// The same where a block has so many times the pieces.
    pub(super) fn in_pieces(&self, pieces: u32) -> Start {
        let mut start = self.clone();
        start.slot.volume *= pieces;
        start
    }
}

/// Sets of holders, and the gaps between them.
pub(super) struct HolderSets<'a> {
    pub(super) grouping: &'a Grouping,
    sets: Vec<(Vec<u32>, Vec<u32>)>,
}

impl<'a> HolderSets<'a> {
    /// Returns the sets that the first slot may reach: the group, its middle or none of it, with up to two pairs of ranks
    /// outside it.
    pub(super) fn new(grouping: &'a Grouping) -> HolderSets<'a> {
        let (ranks, group) = (grouping.ranks, grouping.group);
        // Pairs of ranks at equal distances from the group's middle.
        let pair = |x: u32| [x % ranks, (group + 2 * ranks - 1 - x) % ranks];
        let farthest = 2 * grouping.channels() + group;
        let farthest = farthest
            .min(ranks / 2)
            .min(grouping.longest.saturating_sub(group));
        let outer: Vec<u32> = (group..farthest).collect();
        let mut sets = Vec::new();
        let mut consider = |holders: Vec<u32>| {
            let mut holders = holders;
            holders.sort_unstable();
            holders.dedup();
            let pairs =
                (0..group).flat_map(|owner| holders.iter().map(move |holder| (owner, *holder)));
            let lengths = pairs.map(|(owner, holder)| distance(ranks, owner, holder).1);
            if lengths.clone().any(|length| length > grouping.longest) {
                return false;
            }
            let length: u32 = lengths.sum();
            if holders.is_empty() || length > 2 * grouping.channels() * group {
                return false;
            }
            let gaps = gaps_between(ranks, &holders);
            sets.push((holders, gaps.iter().map(|gap| gap.size).collect()));
            true
        };
        let bases = [Vec::new(), pair(group / 2).to_vec(), (0..group).collect()];
        for base in bases {
            interrupt::check();
            consider(base.clone());
            for &one in &outer {
                let with_one = [&base[..], &pair(one)].concat();
                if !consider(with_one.clone()) {
                    break;
                }
                for &other in outer.iter().take_while(|other| **other < one) {
                    if !consider([&with_one[..], &pair(other)].concat()) {
                        break;
                    }
                }
            }
        }
        sets.sort();
        sets.dedup();
        HolderSets { grouping, sets }
    }

    /// Returns the best sets, as many as `most`, for trees that cost so much by the sizes of the gaps between holders.
    pub(super) fn starts(&self, later: &[f32], most: usize) -> Vec<Start> {
        let left = |gaps: &[u32]| gaps.iter().map(|gap| later[*gap as usize]).sum();
        let sets = self.sets.iter();
        let mut valued: Vec<(f32, &[u32])> = sets
            .map(|(holders, gaps)| (left(gaps), &holders[..]))
            .collect();
        valued.sort_by(|one, other| one.0.total_cmp(&other.0));
        let start = |(left, holders): (f32, &[u32])| {
            let slot = gathering(self.grouping, holders)?;
            Some(Start {
                left,
                holders: holders.to_vec(),
                slot,
            })
        };
        valued
            .into_iter()
            .take(MOST_STARTS)
            .filter_map(start)
            .take(most)
            .collect()
    }
}

/// The first slot, in which owners send to holders, if it has the channels.
fn gathering(grouping: &Grouping, holders: &[u32]) -> Option<BundleSlot> {
    let mut families = Vec::new();
    for owner in 0..grouping.group {
        for &holder in holders.iter().filter(|&&holder| holder != owner) {
            let (clockwise, length) = distance(grouping.ranks, owner, holder);
            families.push((Family::new(clockwise, length, vec![owner]), 1));
        }
    }
    lit(grouping, grouping.pieces, families)
}

/// The best sets of holders that exchange sums in a slot of so many pieces for each lightpath, as many as `most`.
pub(super) fn meetings(
    grouping: &Grouping,
    even: &[Evenly],
    volume: u32,
    most: usize,
) -> Vec<Start> {
    let room = grouping.room(volume);
    let fitting = even.iter().filter(|evenly| evenly.length as f32 <= room);
    let start = |evenly: &Evenly| {
        let holders: Vec<u32> = (0..evenly.holders)
            .map(|holder| holder * evenly.step)
            .collect();
        let slot = exchange(grouping, &holders, volume)?;
        Some(Start {
            left: evenly.left,
            holders,
            slot,
        })
    };
    fitting
        .take(MOST_MEETINGS)
        .filter_map(start)
        .take(most)
        .collect()
}

/// Holders, each so many ranks behind the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evenly {
    /// What the gaps between them cost at least.
    pub(super) left: f32,
    holders: u32,
    step: u32,
    /// The links between all pairs of them, there and back.
    pub(super) length: u64,
}

impl Evenly {
    /// All that there are, for trees that cost so much by the sizes of gaps: those that leave least first.
    pub(super) fn all(grouping: &Grouping, later: &[f32]) -> Vec<Evenly> {
        let ranks = grouping.ranks;
        let farthest = (ranks / 2).min(grouping.longest);
        let mut all = Vec::new();
        for holders in 2..=MOST_HOLDERS.min(ranks) {
            interrupt::check();
            for step in 1..=ranks / holders {
                let distances = (1..holders).map(|apart| {
                    let (_, length) = distance(ranks, 0, apart * step);
                    (length, u64::from(2 * (holders - apart)) * u64::from(length))
                });
                if distances.clone().any(|(length, _)| length > farthest) {
                    continue;
                }
                let around = ranks - (holders - 1) * step - 1;
                let between = (holders - 1) as f32 * later[step as usize - 1];
                all.push(Evenly {
                    left: between + later[around as usize],
                    holders,
                    step,
                    length: distances.map(|(_, length)| length).sum(),
                });
            }
        }
        all.sort_by(|one, other| one.left.total_cmp(&other.left));
        all
    }
}

/// The slot in which every holder sends the bundle to all others, if it has the channels.
fn exchange(grouping: &Grouping, holders: &[u32], volume: u32) -> Option<BundleSlot> {
    let ranks = grouping.ranks;
    let mut families: BTreeMap<(bool, u32, u32), Vec<u32>> = BTreeMap::new();
    for &from in holders {
        for &to in holders.iter().filter(|&&to| to != from) {
            let (clockwise, length) = distance(ranks, from, to);
            // Two that are opposite each other send over the same links.
            let clockwise = if 2 * length == ranks {
                from < to
            } else {
                clockwise
            };
            let class = grouping.class(from, clockwise);
            let senders = families.entry((clockwise, length, class)).or_default();
            senders.push(from);
        }
    }
    let families = families
        .into_iter()
        .map(|((clockwise, length, _), senders)| {
            let count = (senders.len() as u32 * grouping.bundle()).div_ceil(volume);
            (Family::new(clockwise, length, senders), count)
        });
    lit(grouping, volume, families.collect())
}
