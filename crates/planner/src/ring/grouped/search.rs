//! Which groups, owners, stripes and core take the least time by the model of [`super`].
//!
//! Levels are searched depth first: what remains below a level depends only on the owners' ring (its
//! ranks, its channels, the vector's share), so each such rest is solved once for every depth. Group
//! sizes are all up to 24 and then in steps of 9 %.

use std::collections::BTreeMap;

use super::{GroupLevel, GroupedCore, GroupedLayout, groups, load};
use crate::ring::few_slots::Estimate;
use crate::ring::slot_cost::{SlotCost, spread};
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_bounds::wdm_ring::relay_tree;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// More levels save no slots that their own are worth, up to a million ranks.
const MOST_LEVELS: u32 = 3;

/// Relay trees of more slots are no core for small vectors.
const MOST_CORE_SLOTS: u64 = 40;

/// Relay trees are a core for so many owners at most.
const MOST_CORE_RANKS: u32 = 512;

/// What is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupedKind {
    /// A vector of so many bytes.
    AllReduce,
    /// Blocks of so many bytes.
    AllGather,
}

/// The owners' ring below some levels: all that the rest depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rest {
    ranks: u32,
    channels: u32,
    /// An all_reduce's vector is cut into so many shares.
    shares: u32,
    levels: u32,
}

struct GroupedSearch<'a> {
    ring: &'a WdmRing,
    cost: SlotCost,
    kind: GroupedKind,
    size: Bytes,
    solved: BTreeMap<Rest, Option<Estimate<GroupedLayout>>>,
}

/// For every number of levels the best layout, fastest first.
pub(crate) fn layouts(
    ring: &WdmRing,
    cost: SlotCost,
    kind: GroupedKind,
    size: Bytes,
) -> Vec<Estimate<GroupedLayout>> {
    let mut search = GroupedSearch {
        ring,
        cost,
        kind,
        size,
        solved: BTreeMap::new(),
    };
    let mut found: Vec<Estimate<GroupedLayout>> = (0..=MOST_LEVELS)
        .filter_map(|levels| {
            search.rest(Rest {
                ranks: ring.ranks,
                channels: ring.channels(),
                shares: 1,
                levels,
            })
        })
        .collect();
    found.sort_by_key(|found| (found.time, found.slots));
    found
}

impl GroupedSearch<'_> {
    /// The best layout of exactly so many levels.
    fn rest(&mut self, rest: Rest) -> Option<Estimate<GroupedLayout>> {
        if let Some(known) = self.solved.get(&rest) {
            return known.clone();
        }
        let found = if rest.levels == 0 {
            self.core(rest)
        } else {
            self.level(rest)
        };
        self.solved.insert(rest, found.clone());
        found
    }

    fn level(&mut self, rest: Rest) -> Option<Estimate<GroupedLayout>> {
        let mut best: Option<Estimate<GroupedLayout>> = None;
        let widest = rest.ranks.min(4 * rest.channels + 1);
        for group in spread(widest) {
            for owners in self.owners(group) {
                interrupt::check();
                let Some(count) = groups(rest.ranks, group, owners) else {
                    continue;
                };
                let below = Rest {
                    ranks: count,
                    channels: rest.channels / owners,
                    shares: rest.shares.saturating_mul(owners),
                    levels: rest.levels - 1,
                };
                if below.channels == 0 || count == 1 && below.levels > 0 {
                    continue;
                }
                let size = rest.ranks.div_ceil(count);
                let (time, slots, stripes) = self.stripes(rest, size, owners);
                if best.as_ref().is_some_and(|best| best.time <= time) {
                    continue;
                }
                let Some(inner) = self.rest(below) else {
                    continue;
                };
                let time = time.saturating_add(inner.time);
                if best.as_ref().is_none_or(|best| time < best.time) {
                    let level = GroupLevel {
                        group,
                        owners,
                        stripes,
                    };
                    best = Some(Estimate {
                        time,
                        slots: slots + inner.slots,
                        recipe: GroupedLayout {
                            levels: [vec![level], inner.recipe.levels].concat(),
                            core: inner.recipe.core,
                        },
                    });
                }
            }
        }
        best
    }

    fn owners(&self, group: u32) -> Vec<u32> {
        let mut owners = match self.kind {
            GroupedKind::AllGather => vec![1],
            GroupedKind::AllReduce => vec![1, 2, 3, 4, 6, 8, 12, 16, group / 2, group],
        };
        owners.retain(|&owners| (1..=group).contains(&owners));
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The time and slots of the way up and down a level, with the best number of stripes.
    fn stripes(&self, rest: Rest, size: u32, owners: u32) -> (u64, u64, u32) {
        let load = u64::from(load(size, owners)).max(1);
        let channels = u64::from(rest.channels);
        let intake = self.ring.ports.map(u64::from);
        let apart = u64::from(self.ring.ranks / rest.ranks.max(1));
        let hops = u64::from(size) * apart;
        let mut best = (u64::MAX, u64::MAX, 1);
        for slots in 1..=4 {
            let stripes = (slots * channels / load).max(1);
            let by_ports =
                intake.map_or(stripes, |ports| slots * ports / u64::from(size - 1).max(1));
            // Blocks before and behind a member's own are two ranges.
            let fewest = if self.kind == GroupedKind::AllGather {
                2
            } else {
                1
            };
            let stripes = stripes.min(by_ports).max(fewest);
            let slots = (stripes * load)
                .div_ceil(channels)
                .max(intake.map_or(1, |ports| (stripes * u64::from(size - 1)).div_ceil(ports)));
            let time = match self.kind {
                GroupedKind::AllReduce => {
                    let parts = u64::from(rest.shares) * u64::from(owners) * stripes;
                    let bytes = Bytes::new(self.size.get().div_ceil(parts));
                    self.cost.slots(slots, bytes, hops).saturating_mul(2)
                }
                GroupedKind::AllGather => {
                    let held = u64::from(self.ring.ranks.div_ceil(rest.ranks));
                    let all = u64::from(self.ring.ranks);
                    let down = self.blocks(all.div_ceil(stripes));
                    let up = self.blocks(held.div_ceil(stripes));
                    let up_slots = (stripes.min(held) * load).div_ceil(channels);
                    let up = self.cost.slots(up_slots, up, hops);
                    self.cost.slots(slots, down, hops).saturating_add(up)
                }
            };
            if time < best.0 {
                best = (time, 2 * slots, u32::try_from(stripes).unwrap_or(u32::MAX));
            }
        }
        best
    }

    fn blocks(&self, count: u64) -> Bytes {
        Bytes::new(self.size.get().saturating_mul(count))
    }

    /// The best core.
    fn core(&mut self, rest: Rest) -> Option<Estimate<GroupedLayout>> {
        let found = |time, slots, core| Estimate {
            time,
            slots,
            recipe: GroupedLayout {
                levels: Vec::new(),
                core,
            },
        };
        if rest.ranks < 2 {
            return Some(found(0, 0, GroupedCore::OneStage(1)));
        }
        let mut cores = self.one_stage(rest);
        cores.extend(self.relay_tree(rest));
        cores
            .into_iter()
            .min_by_key(|(time, slots, _)| (*time, *slots))
            .map(|(time, slots, core)| found(time, slots, core))
    }

    /// Exchanges of everything, and all_gathers in one stage, with as many stripes as fit.
    fn one_stage(&self, rest: Rest) -> Vec<(u64, u64, GroupedCore)> {
        let ranks = u64::from(rest.ranks);
        let load = (ranks * ranks / 4).div_ceil(2);
        let channels = u64::from(rest.channels);
        let intake = self.ring.ports.map_or(u64::MAX, u64::from);
        let hops = u64::from(self.ring.ranks / 2);
        let stripes = (channels / load).min(intake / (ranks - 1)).max(1);
        let slots_of = |stripes: u64| {
            let ports = (stripes * (ranks - 1)).div_ceil(intake);
            (stripes * load).div_ceil(channels).max(ports)
        };
        match self.kind {
            GroupedKind::AllReduce => {
                let slots = slots_of(stripes);
                let parts = u64::from(rest.shares) * stripes;
                let whole = Bytes::new(self.size.get().div_ceil(parts));
                let part = Bytes::new(self.size.get().div_ceil(parts * ranks));
                vec![
                    (
                        self.cost.slots(slots, whole, hops),
                        slots,
                        GroupedCore::Exchange(stripes as u32),
                    ),
                    (
                        self.cost.slots(2 * slots, part, hops),
                        2 * slots,
                        GroupedCore::OneStage(stripes as u32),
                    ),
                ]
            }
            GroupedKind::AllGather => {
                let held = u64::from(self.ring.ranks / rest.ranks);
                let stripes = stripes.min(held).max(1);
                let slots = slots_of(stripes);
                let held = u64::from(self.ring.ranks.div_ceil(rest.ranks));
                let bytes = self.blocks(held.div_ceil(stripes));
                let core = GroupedCore::OneStage(stripes as u32);
                vec![(self.cost.slots(slots, bytes, hops), slots, core)]
            }
        }
    }

    /// Relay trees of blocks in pieces, in the slots of the bound.
    fn relay_tree(&self, rest: Rest) -> Vec<(u64, u64, GroupedCore)> {
        let unlimited = self.ring.ports.is_none();
        if !unlimited || !(3..=MOST_CORE_RANKS).contains(&rest.ranks) {
            return Vec::new();
        }
        let both_ways = 2 * u64::from(rest.channels);
        let slots_of = |pieces: u64| {
            let mut slots = 1..=MOST_CORE_SLOTS;
            slots.find(|&slots| pieces * relay_tree::cost(rest.ranks, slots) <= both_ways * slots)
        };
        let held = u64::from(self.ring.ranks.div_ceil(rest.ranks));
        let least_held = u64::from(self.ring.ranks / rest.ranks);
        let hops = u64::from(self.ring.ranks / 2).min(u64::from(rest.channels) * held);
        [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
            .into_iter()
            .filter(|&pieces| pieces <= u64::from(rest.channels))
            .filter(|&pieces| self.kind == GroupedKind::AllReduce || pieces <= least_held)
            .filter_map(|pieces| {
                let slots = slots_of(pieces)?;
                let core = GroupedCore::RelayTree(pieces as u32);
                Some(match self.kind {
                    GroupedKind::AllReduce => {
                        let parts = u64::from(rest.shares) * u64::from(rest.ranks) * pieces;
                        let bytes = Bytes::new(self.size.get().div_ceil(parts));
                        (self.cost.slots(2 * slots, bytes, hops), 2 * slots, core)
                    }
                    GroupedKind::AllGather => {
                        let bytes = self.blocks(held.div_ceil(pieces));
                        (self.cost.slots(slots, bytes, hops), slots, core)
                    }
                })
            })
            .collect()
    }
}
