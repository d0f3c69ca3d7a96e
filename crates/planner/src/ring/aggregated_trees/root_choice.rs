//! Choice of the roots: the ranks that have all blocks of their group after the first slot.

use std::collections::BTreeMap;

use super::gaps::gaps_between;
use super::grouping::{Grouping, shorter_route};
use super::slot_filling::{BundleSlot, EdgeClass, slot_of_classes};
use opticoll_base::interrupt;

/// Maximum number of sets of roots that the search tries for a first slot in which the ranks of a
/// group send their blocks to the roots.
const MAX_GATHERING_SETS: usize = 400;

/// Maximum number of sets of roots that the search tries for a first slot in which the roots
/// exchange their sums.
const MAX_EXCHANGE_SETS: usize = 40;

/// Maximum number of roots that exchange sums. (The number of lightpaths grows with the square of
/// the number of roots.)
const MAX_EXCHANGING_ROOTS: u32 = 8;

/// First slot of a plan, after which some ranks (the *roots*) have all blocks of their group.
#[derive(Debug, Clone)]
pub(super) struct FirstSlot {
    /// Lower bound on the total length of the tree edges of all later slots, in links.
    pub(super) remaining_cost: f32,
    /// Ranks that have all blocks of group 0 after the slot.
    pub(super) roots: Vec<u32>,
    pub(super) slot: BundleSlot,
}

impl FirstSlot {
    /// Divides each block of the slot into `pieces` pieces. The volume of the slot grows by the
    /// same factor.
    pub(super) fn with_pieces(&self, pieces: u32) -> FirstSlot {
        let mut first = self.clone();
        first.slot.volume *= pieces;
        first
    }
}

/// Sets of roots to which the ranks of a group can send their blocks in the first slot.
pub(super) struct RootSets<'a> {
    pub(super) grouping: &'a Grouping,
    /// Each entry is the ranks of the roots, and the number of ranks in each gap between
    /// neighbouring roots.
    sets: Vec<(Vec<u32>, Vec<u32>)>,
}

impl<'a> RootSets<'a> {
    /// Creates the sets of roots for group 0. A set contains all ranks of the group, only its two
    /// middle ranks, or none of its ranks. The set also contains up to two pairs of ranks outside
    /// the group.
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

    /// Returns the first slots of up to `count` sets of roots, in ascending order of
    /// `remaining_cost`. `later_costs` is the minimum total length, in links, of the tree edges
    /// that reach n consecutive ranks in later slots, indexed by n.
    pub(super) fn first_slots(&self, later_costs: &[f32], count: usize) -> Vec<FirstSlot> {
        let cost = |gaps: &[u32]| gaps.iter().map(|gap| later_costs[*gap as usize]).sum();
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

/// Returns the slot in which the ranks of a group send their blocks to `roots`. Returns `None` if
/// the channel assignment fails.
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

/// Returns up to `count` slots in which evenly spaced roots exchange their sums. The slots are in
/// the order of `even`. Entries of `even` without a channel assignment are left out. A lightpath
/// carries up to `volume` pieces.
pub(super) fn root_exchanges(
    grouping: &Grouping,
    even: &[EvenRoots],
    volume: u32,
    count: usize,
) -> Vec<FirstSlot> {
    let room = grouping.capacity(volume);
    let fitting = even.iter().filter(|even| even.length as f32 <= room);
    let first_slot = |even: &EvenRoots| {
        let roots: Vec<u32> = (0..even.roots).map(|root| root * even.step).collect();
        let slot = root_exchange_slot(grouping, &roots, volume)?;
        Some(FirstSlot {
            remaining_cost: even.remaining_cost,
            roots,
            slot,
        })
    };
    fitting
        .take(MAX_EXCHANGE_SETS)
        .filter_map(first_slot)
        .take(count)
        .collect()
}

/// Evenly spaced roots: rank 0, rank `step`, rank 2 `step`, and so on.
#[derive(Debug, Clone, Copy)]
pub(super) struct EvenRoots {
    /// Lower bound on the total length, in links, of the tree edges that reach the ranks between
    /// the roots.
    pub(super) remaining_cost: f32,
    roots: u32,
    /// Number of links from a root to the next root.
    step: u32,
    /// Total length of the lightpaths between all ordered pairs of roots, in links.
    pub(super) length: u64,
}

impl EvenRoots {
    /// Returns all sets of evenly spaced roots, in ascending order of `remaining_cost`.
    /// `later_costs` is the minimum total length, in links, of the tree edges that reach n
    /// consecutive ranks in later slots, indexed by n.
    pub(super) fn all(grouping: &Grouping, later_costs: &[f32]) -> Vec<EvenRoots> {
        let ranks = grouping.ranks;
        let farthest = (ranks / 2).min(grouping.longest);
        let mut even = Vec::new();
        for roots in 2..=MAX_EXCHANGING_ROOTS.min(ranks) {
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
                let between = (roots - 1) as f32 * later_costs[step as usize - 1];
                even.push(EvenRoots {
                    remaining_cost: between + later_costs[around as usize],
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

/// Returns the slot in which every root sends its sums to all other roots. Returns `None` if the
/// channel assignment fails.
fn root_exchange_slot(grouping: &Grouping, roots: &[u32], volume: u32) -> Option<BundleSlot> {
    let ranks = grouping.ranks;
    let mut senders_by_class: BTreeMap<(bool, u32, u32), Vec<u32>> = BTreeMap::new();
    for &from in roots {
        for &to in roots.iter().filter(|&&to| to != from) {
            let (clockwise, length) = shorter_route(ranks, from, to);
            // Two opposite roots send to each other over the same half of the ring, in opposite
            // directions.
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
            let count = (senders.len() as u32 * grouping.pieces_of_group()).div_ceil(volume);
            (EdgeClass::new(clockwise, length, senders), count)
        });
    slot_of_classes(grouping, volume, counted.collect())
}
