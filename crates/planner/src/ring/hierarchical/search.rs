//! Search for the group sizes, the gateways and the stripes of the fastest hierarchical plan.
//!
//! The search is a dynamic program over levels. The fastest layout of the inner levels depends only
//! on four numbers: the number of gateways on their ring, the number of channels, the number of
//! shares of the vector, and the number of inner levels. For each combination of these numbers, the
//! search computes the fastest layout once. Group sizes are all sizes up to 24 ranks, and larger
//! sizes that grow by about 9 %.

use std::collections::BTreeMap;

use super::{GroupLevel, HierarchicalLayout, groups, load};
use crate::ring::recipe::Estimate;
use crate::ring::slot_cost::{SlotCost, sample_sizes};
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// Maximum number of levels. (Up to 10^6 ranks, more levels need more slots.)
const MAX_LEVELS: u32 = 3;

/// Problem of the dynamic program: an all_reduce of one share of the vector on a ring of gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Subproblem {
    /// Number of gateways on the ring.
    ranks: u32,
    channels: u32,
    /// Number of shares into which the outer levels divide the vector.
    shares: u32,
    levels: u32,
}

struct GroupedSearch<'a> {
    ring: &'a WdmRing,
    cost: SlotCost,
    size: Bytes,
    solved: BTreeMap<Subproblem, Option<Estimate<HierarchicalLayout>>>,
}

/// Returns the parameters of the fastest hierarchical plan for each number of levels. The plans are
/// in ascending order of time. `size` is the number of bytes of the vector.
pub(crate) fn layouts(
    ring: &WdmRing,
    cost: SlotCost,
    size: Bytes,
) -> Vec<Estimate<HierarchicalLayout>> {
    let mut search = GroupedSearch {
        ring,
        cost,
        size,
        solved: BTreeMap::new(),
    };
    let mut estimates: Vec<Estimate<HierarchicalLayout>> = (0..=MAX_LEVELS)
        .filter_map(|levels| {
            search.solve(Subproblem {
                ranks: ring.ranks,
                channels: ring.channels(),
                shares: 1,
                levels,
            })
        })
        .collect();
    estimates.sort_by_key(|estimate| (estimate.time, estimate.slots));
    estimates
}

impl GroupedSearch<'_> {
    fn solve(&mut self, subproblem: Subproblem) -> Option<Estimate<HierarchicalLayout>> {
        if let Some(solution) = self.solved.get(&subproblem) {
            return solution.clone();
        }
        let solution = if subproblem.levels == 0 {
            Some(self.exchange(subproblem))
        } else {
            self.level(subproblem)
        };
        self.solved.insert(subproblem, solution.clone());
        solution
    }

    fn level(&mut self, subproblem: Subproblem) -> Option<Estimate<HierarchicalLayout>> {
        let mut best: Option<Estimate<HierarchicalLayout>> = None;
        let widest = subproblem.ranks.min(4 * subproblem.channels + 1);
        for group in sample_sizes(widest) {
            for gateways in gateway_counts(group) {
                interrupt::check();
                let Some(count) = groups(subproblem.ranks, group, gateways) else {
                    continue;
                };
                let inner_problem = Subproblem {
                    ranks: count,
                    channels: subproblem.channels / gateways,
                    shares: subproblem.shares.saturating_mul(gateways),
                    levels: subproblem.levels - 1,
                };
                if inner_problem.channels == 0 || count == 1 && inner_problem.levels > 0 {
                    continue;
                }
                let size = subproblem.ranks.div_ceil(count);
                let (time, slots, stripes) = self.stripes(subproblem, size, gateways);
                if best.as_ref().is_some_and(|best| best.time <= time) {
                    continue;
                }
                let Some(inner) = self.solve(inner_problem) else {
                    continue;
                };
                let time = time.saturating_add(inner.time);
                if best.as_ref().is_none_or(|best| time < best.time) {
                    let level = GroupLevel {
                        group,
                        gateways,
                        stripes,
                    };
                    best = Some(Estimate {
                        time,
                        slots: slots + inner.slots,
                        recipe: HierarchicalLayout {
                            levels: [vec![level], inner.recipe.levels].concat(),
                            stripes: inner.recipe.stripes,
                        },
                    });
                }
            }
        }
        best
    }

    /// Chooses the number of stripes of a level with groups of `size` ranks. Returns three numbers:
    /// the time of the upward and the downward step together, in picoseconds, the number of slots
    /// of both steps together, and the number of stripes.
    fn stripes(&self, subproblem: Subproblem, size: u32, gateways: u32) -> (u64, u64, u32) {
        let load = u64::from(load(size, gateways)).max(1);
        let channels = u64::from(subproblem.channels);
        let ports = self.ring.ports.map(u64::from);
        let spacing = u64::from(self.ring.ranks / subproblem.ranks.max(1));
        let hops = u64::from(size) * spacing;
        let mut best = (u64::MAX, u64::MAX, 1);
        for slots in 1..=4 {
            let stripes = (slots * channels / load).max(1);
            let stripes_by_ports =
                ports.map_or(stripes, |ports| slots * ports / u64::from(size - 1).max(1));
            let stripes = stripes.min(stripes_by_ports).max(1);
            let slots = (stripes * load)
                .div_ceil(channels)
                .max(ports.map_or(1, |ports| (stripes * u64::from(size - 1)).div_ceil(ports)));
            let parts = u64::from(subproblem.shares) * u64::from(gateways) * stripes;
            let bytes = Bytes::new(self.size.get().div_ceil(parts));
            let time = self.cost.slots(slots, bytes, hops).saturating_mul(2);
            if time < best.0 {
                best = (time, 2 * slots, u32::try_from(stripes).unwrap_or(u32::MAX));
            }
        }
        best
    }

    /// Returns the layout without levels: the gateways exchange their vectors directly. Chooses the
    /// largest number of stripes that needs no additional slots.
    fn exchange(&self, subproblem: Subproblem) -> Estimate<HierarchicalLayout> {
        let estimate = |time, slots, stripes| Estimate {
            time,
            slots,
            recipe: HierarchicalLayout {
                levels: Vec::new(),
                stripes,
            },
        };
        if subproblem.ranks < 2 {
            return estimate(0, 0, 1);
        }
        let ranks = u64::from(subproblem.ranks);
        let load = (ranks * ranks / 4).div_ceil(2);
        let channels = u64::from(subproblem.channels);
        let ports = self.ring.ports.map_or(u64::MAX, u64::from);
        let hops = u64::from(self.ring.ranks / 2);
        let stripes = (channels / load).min(ports / (ranks - 1)).max(1);
        let slots_by_ports = (stripes * (ranks - 1)).div_ceil(ports);
        let slots = (stripes * load).div_ceil(channels).max(slots_by_ports);
        let parts = u64::from(subproblem.shares) * stripes;
        let bytes = Bytes::new(self.size.get().div_ceil(parts));
        estimate(self.cost.slots(slots, bytes, hops), slots, stripes as u32)
    }
}

fn gateway_counts(group: u32) -> Vec<u32> {
    let mut counts = vec![1, 2, 3, 4, 6, 8, 12, 16, group / 2, group];
    counts.retain(|&gateways| (1..=group).contains(&gateways));
    counts.sort_unstable();
    counts.dedup();
    counts
}
