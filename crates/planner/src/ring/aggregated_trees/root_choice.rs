//! Choice of the roots: the ranks that have the complete bundle after the first slot.

use std::collections::BTreeMap;

use super::gaps::gaps_between;
use super::grouping::{Grouping, shorter_route};
use super::slot_filling::{BundleSlot, EdgeClass, slot_of_classes};
use opticoll_base::interrupt;

/// Maximum number of sets of roots, the best first, for whose first slot channels are searched.
const MAX_GATHERING_SETS: usize = 400;

/// Maximum number of sets of roots, the best first, for whose meeting channels are searched.
const MAX_MEETING_SETS: usize = 40;

/// Maximum number of roots that exchange sums: the links between all pairs grow with its square.
const MAX_MEETING_ROOTS: u32 = 8;

/// First slot of a tree, with the roots that have the bundle after it.
#[derive(Debug, Clone)]
pub(super) struct FirstSlot {
    /// Lower bound on the total length of the tree edges of later slots, in links.
    pub(super) remaining_cost: f32,
    pub(super) roots: Vec<u32>,
    pub(super) slot: BundleSlot,
}

impl FirstSlot {
    /// Returns the same slot for blocks of `pieces` times as many pieces.
    pub(super) fn with_pieces(&self, pieces: u32) -> FirstSlot {
        let mut first = self.clone();
        first.slot.volume *= pieces;
        first
    }
}

/// Sets of roots, each with the sizes of the gaps between the roots.
pub(super) struct RootSets<'a> {
    pub(super) grouping: &'a Grouping,
    sets: Vec<(Vec<u32>, Vec<u32>)>,
}

impl<'a> RootSets<'a> {
    /// Returns the sets that the first slot may reach: the whole group, its middle, or none of its
    /// ranks, each with up to two pairs of ranks outside the group.
    pub(super) fn new(grouping: &'a Grouping) -> RootSets<'a> {
        let (ranks, group) = (grouping.ranks, grouping.group);
        // Pairs of ranks at equal distances from the middle of the group.
        let pair = |x: u32| [x % ranks, (group + 2 * ranks - 1 - x) % ranks];
        let farthest = 2 * grouping.channels() + group;
        let farthest = farthest
            .min(ranks / 2)
            .min(grouping.longest.saturating_sub(group));
        let outer: Vec<u32> = (group..farthest).collect();
        let mut sets = Vec::new();
        let mut add_if_reachable = |roots: Vec<u32>| {
            let mut roots = roots;
            roots.sort_unstable();
            roots.dedup();
            let pairs = (0..group).flat_map(|owner| roots.iter().map(move |root| (owner, *root)));
            let lengths = pairs.map(|(owner, root)| shorter_route(ranks, owner, root).1);
            if lengths.clone().any(|length| length > grouping.longest) {
                return false;
            }
            let length: u32 = lengths.sum();
            if roots.is_empty() || length > 2 * grouping.channels() * group {
                return false;
            }
            let gaps = gaps_between(ranks, &roots);
            sets.push((roots, gaps.iter().map(|gap| gap.size).collect()));
            true
        };
        let bases = [Vec::new(), pair(group / 2).to_vec(), (0..group).collect()];
        for base in bases {
            interrupt::check();
            add_if_reachable(base.clone());
            for &farther in &outer {
                let with_pair = [&base[..], &pair(farther)].concat();
                if !add_if_reachable(with_pair.clone()) {
                    break;
                }
                for &nearer in outer.iter().take_while(|nearer| **nearer < farther) {
                    if !add_if_reachable([&with_pair[..], &pair(nearer)].concat()) {
                        break;
                    }
                }
            }
        }
        sets.sort();
        sets.dedup();
        RootSets { grouping, sets }
    }

    /// Returns the first slots of up to `count` sets, the best first. `later` is the cost of a gap
    /// in later slots by its size.
    pub(super) fn first_slots(&self, later: &[f32], count: usize) -> Vec<FirstSlot> {
        let cost = |gaps: &[u32]| gaps.iter().map(|gap| later[*gap as usize]).sum();
        let sets = self.sets.iter();
        let mut priced: Vec<(f32, &[u32])> =
            sets.map(|(roots, gaps)| (cost(gaps), &roots[..])).collect();
        priced.sort_by(|one, other| one.0.total_cmp(&other.0));
        let first_slot = |(remaining_cost, roots): (f32, &[u32])| {
            let slot = gathering_slot(self.grouping, roots)?;
            Some(FirstSlot {
                remaining_cost,
                roots: roots.to_vec(),
                slot,
            })
        };
        priced
            .into_iter()
            .take(MAX_GATHERING_SETS)
            .filter_map(first_slot)
            .take(count)
            .collect()
    }
}

/// Returns the slot in which owners send their blocks to the roots, or `None` if no channels are
/// found.
fn gathering_slot(grouping: &Grouping, roots: &[u32]) -> Option<BundleSlot> {
    let mut counted = Vec::new();
    for owner in 0..grouping.group {
        for &root in roots.iter().filter(|&&root| root != owner) {
            let (clockwise, length) = shorter_route(grouping.ranks, owner, root);
            counted.push((EdgeClass::new(clockwise, length, vec![owner]), 1));
        }
    }
    slot_of_classes(grouping, grouping.pieces, counted)
}

/// Returns the meetings with `volume` pieces on a lightpath of up to `count` sets of evenly spaced
/// roots, in the order of `even`.
pub(super) fn meetings(
    grouping: &Grouping,
    even: &[EvenRoots],
    volume: u32,
    count: usize,
) -> Vec<FirstSlot> {
    let room = grouping.room(volume);
    let fitting = even.iter().filter(|even| even.length as f32 <= room);
    let first_slot = |even: &EvenRoots| {
        let roots: Vec<u32> = (0..even.roots).map(|root| root * even.step).collect();
        let slot = meeting_slot(grouping, &roots, volume)?;
        Some(FirstSlot {
            remaining_cost: even.remaining_cost,
            roots,
            slot,
        })
    };
    fitting
        .take(MAX_MEETING_SETS)
        .filter_map(first_slot)
        .take(count)
        .collect()
}

/// Roots at equal distances, from rank 0 on.
#[derive(Debug, Clone, Copy)]
pub(super) struct EvenRoots {
    /// Lower bound on the total length of the tree edges in the gaps between the roots, in links.
    pub(super) remaining_cost: f32,
    roots: u32,
    /// Links from one root to the next.
    step: u32,
    /// Total length of the lightpaths between all ordered pairs of roots, in links.
    pub(super) length: u64,
}

impl EvenRoots {
    /// Returns all sets of evenly spaced roots, those of the least remaining cost first. `later` is
    /// the cost of a gap in later slots by its size.
    pub(super) fn all(grouping: &Grouping, later: &[f32]) -> Vec<EvenRoots> {
        let ranks = grouping.ranks;
        let farthest = (ranks / 2).min(grouping.longest);
        let mut even = Vec::new();
        for roots in 2..=MAX_MEETING_ROOTS.min(ranks) {
            interrupt::check();
            for step in 1..=ranks / roots {
                let distances = (1..roots).map(|apart| {
                    let (_, length) = shorter_route(ranks, 0, apart * step);
                    (length, u64::from(2 * (roots - apart)) * u64::from(length))
                });
                if distances.clone().any(|(length, _)| length > farthest) {
                    continue;
                }
                let around = ranks - (roots - 1) * step - 1;
                let between = (roots - 1) as f32 * later[step as usize - 1];
                even.push(EvenRoots {
                    remaining_cost: between + later[around as usize],
                    roots,
                    step,
                    length: distances.map(|(_, length)| length).sum(),
                });
            }
        }
        even.sort_by(|one, other| one.remaining_cost.total_cmp(&other.remaining_cost));
        even
    }
}

/// Returns the slot in which every root sends its sums of the bundle to all other roots, or `None`
/// if no channels are found.
fn meeting_slot(grouping: &Grouping, roots: &[u32], volume: u32) -> Option<BundleSlot> {
    let ranks = grouping.ranks;
    let mut senders_by_class: BTreeMap<(bool, u32, u32), Vec<u32>> = BTreeMap::new();
    for &from in roots {
        for &to in roots.iter().filter(|&&to| to != from) {
            let (clockwise, length) = shorter_route(ranks, from, to);
            // Two opposite roots send to each other over the same half of the ring.
            let clockwise = if 2 * length == ranks {
                from < to
            } else {
                clockwise
            };
            let residue = grouping.residue(from, clockwise);
            let class = senders_by_class.entry((clockwise, length, residue));
            class.or_default().push(from);
        }
    }
    let counted = senders_by_class
        .into_iter()
        .map(|((clockwise, length, _), senders)| {
            let count = (senders.len() as u32 * grouping.pieces_of_bundle()).div_ceil(volume);
            (EdgeClass::new(clockwise, length, senders), count)
        });
    slot_of_classes(grouping, volume, counted.collect())
}
