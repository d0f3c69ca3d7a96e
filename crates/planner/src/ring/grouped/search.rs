//! Search for the groups, owners and stripes that take the least time by the model of [`super`].
//!
//! Levels are searched depth first: what remains below a level depends only on the owners' ring (its
//! ranks, its channels, the vector's share), so each such rest is solved once for every depth. Group
//! sizes are all up to 24 and then in steps of 9 %.

use std::collections::BTreeMap;

use super::{GroupLevel, GroupedLayout, groups, load};
use crate::ring::few_slots::Estimate;
use crate::ring::slot_cost::{SlotCost, spread};
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// More levels save no slots that their own are worth, up to a million ranks.
const MOST_LEVELS: u32 = 3;

/// The owners' ring below some levels: all that the rest depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rest {
    ranks: u32,
    channels: u32,
    /// The vector is cut into so many shares.
    shares: u32,
    levels: u32,
}

struct GroupedSearch<'a> {
    ring: &'a WdmRing,
    cost: SlotCost,
    /// The vector.
    size: Bytes,
    solved: BTreeMap<Rest, Option<Estimate<GroupedLayout>>>,
}

/// For every number of levels the best layout, fastest first.
pub(crate) fn layouts(ring: &WdmRing, cost: SlotCost, size: Bytes) -> Vec<Estimate<GroupedLayout>> {
    let mut search = GroupedSearch {
        ring,
        cost,
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
            Some(self.exchange(rest))
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
            for owners in owners(group) {
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
                            stripes: inner.recipe.stripes,
                        },
                    });
                }
            }
        }
        best
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
            let stripes = stripes.min(by_ports).max(1);
            let slots = (stripes * load)
                .div_ceil(channels)
                .max(intake.map_or(1, |ports| (stripes * u64::from(size - 1)).div_ceil(ports)));
            let parts = u64::from(rest.shares) * u64::from(owners) * stripes;
            let bytes = Bytes::new(self.size.get().div_ceil(parts));
            let time = self.cost.slots(slots, bytes, hops).saturating_mul(2);
            if time < best.0 {
                best = (time, 2 * slots, u32::try_from(stripes).unwrap_or(u32::MAX));
            }
        }
        best
    }

    /// The exchange, with as many stripes as fit.
    fn exchange(&self, rest: Rest) -> Estimate<GroupedLayout> {
        let found = |time, slots, stripes| Estimate {
            time,
            slots,
            recipe: GroupedLayout {
                levels: Vec::new(),
                stripes,
            },
        };
        if rest.ranks < 2 {
            return found(0, 0, 1);
        }
        let ranks = u64::from(rest.ranks);
        let load = (ranks * ranks / 4).div_ceil(2);
        let channels = u64::from(rest.channels);
        let intake = self.ring.ports.map_or(u64::MAX, u64::from);
        let hops = u64::from(self.ring.ranks / 2);
        let stripes = (channels / load).min(intake / (ranks - 1)).max(1);
        let by_ports = (stripes * (ranks - 1)).div_ceil(intake);
        let slots = (stripes * load).div_ceil(channels).max(by_ports);
        let parts = u64::from(rest.shares) * stripes;
        let bytes = Bytes::new(self.size.get().div_ceil(parts));
        found(self.cost.slots(slots, bytes, hops), slots, stripes as u32)
    }
}

/// Returns the numbers of owners that are tried for a group.
fn owners(group: u32) -> Vec<u32> {
    let mut owners = vec![1, 2, 3, 4, 6, 8, 12, 16, group / 2, group];
    owners.retain(|&owners| (1..=group).contains(&owners));
    owners.sort_unstable();
    owners.dedup();
    owners
}
