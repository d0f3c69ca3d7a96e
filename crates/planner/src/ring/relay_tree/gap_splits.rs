//! Ways to split one gap in one slot, with their lengths in this slot and their prices in later
//! slots.

use super::prices::IMPOSSIBLE;
use opticoll_base::interrupt;

/// Way to split a gap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    /// Total length of the lightpaths from the near end and from the far end, in links.
    pub(crate) cost: (u32, u32),
    /// Price of the remaining gaps in later slots.
    pub(crate) value: f32,
    /// Lengths of the lightpaths from the near end, ascending.
    pub(crate) near: Vec<u32>,
    /// Lengths of the lightpaths from the far end, ascending.
    pub(crate) far: Vec<u32>,
}

impl Split {
    /// Returns the total length of all lightpaths, in links.
    pub(crate) fn total(&self) -> u32 {
        self.cost.0 + self.cost.1
    }

    /// Exchanges the near and the far end.
    pub(crate) fn mirror(&mut self) {
        std::mem::swap(&mut self.near, &mut self.far);
        self.cost = (self.cost.1, self.cost.0);
    }
}

/// Ways to send lightpaths from one end of a gap, the longest of which has a given length. Each way
/// has a total length, a price in later slots and its lengths; the price falls as the total length
/// rises.
pub(crate) struct EndWays {
    longest: u32,
    ways: Vec<(u32, f32, Vec<u32>)>,
}

/// Number of ways above which only those are kept that are best at some price.
const MAX_WAYS: usize = 24;

/// Returns the ways to send lightpaths from one end of a gap within `channels` channels, by the
/// length of the longest lightpath.
pub(crate) fn one_end(lengths: &[u32], channels: u32, later: &[f32]) -> Vec<EndWays> {
    let mut ends = vec![EndWays {
        longest: 0,
        ways: vec![(0, 0.0, Vec::new())],
    }];
    for &length in lengths {
        if length > channels {
            break;
        }
        let mut ways = Vec::new();
        for end in &ends {
            interrupt::check();
            let Some(&fill) = later.get((length - end.longest - 1) as usize) else {
                continue;
            };
            if fill >= IMPOSSIBLE {
                continue;
            }
            for (cost, value, chain) in &end.ways {
                if cost + length <= channels {
                    let mut chain = chain.clone();
                    chain.push(length);
                    ways.push((cost + length, value + fill, chain));
                }
            }
        }
        ways.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let mut kept: Vec<(u32, f32, Vec<u32>)> = Vec::new();
        for way in ways {
            if kept.last().is_none_or(|last| way.1 < last.1 - 1e-6) {
                kept.push(way);
            }
        }
        if kept.len() > MAX_WAYS {
            kept = lower_hull(kept);
        }
        ends.push(EndWays {
            longest: length,
            ways: kept,
        });
    }
    ends
}

/// Returns the ways that are best at some price: the lower convex hull.
fn lower_hull(ways: Vec<(u32, f32, Vec<u32>)>) -> Vec<(u32, f32, Vec<u32>)> {
    let mut hull: Vec<(u32, f32, Vec<u32>)> = Vec::new();
    for way in ways {
        while let [.., a, b] = &hull[..] {
            let (ab, aw) = ((b.0 - a.0) as f32, (way.0 - a.0) as f32);
            if (b.1 - a.1) * aw < (way.1 - a.1) * ab {
                break;
            }
            hull.pop();
        }
        hull.push(way);
    }
    hull
}

/// Returns the ways to split a gap of `size` ranks, by rising total length. The near end has the
/// longer reach. A way is left out if another one is no longer in both directions and has no higher
/// price.
pub(crate) fn splits(channels: u32, ends: &[EndWays], later: &[f32], size: usize) -> Vec<Split> {
    let side = channels as usize + 1;
    let mut best: Vec<(f32, [u16; 4])> = vec![(f32::INFINITY, [0; 4]); side * side];
    let mut visited = Vec::new();
    for (near, near_end) in ends.iter().enumerate() {
        for (far, far_end) in ends.iter().enumerate().take(near + 1) {
            interrupt::check();
            let reached = (near_end.longest + far_end.longest) as usize;
            if reached > size {
                break;
            }
            let remaining_price = later[size - reached];
            if remaining_price >= IMPOSSIBLE {
                continue;
            }
            for (near_way, (near_cost, near_value, _)) in near_end.ways.iter().enumerate() {
                for (far_way, (far_cost, far_value, _)) in far_end.ways.iter().enumerate() {
                    let value = near_value + far_value + remaining_price;
                    let at = *near_cost as usize * side + *far_cost as usize;
                    if best[at].0 == f32::INFINITY {
                        visited.push((near_cost + far_cost, at));
                    }
                    if value < best[at].0 {
                        let indices = [near, near_way, far, far_way].map(|index| index as u16);
                        best[at] = (value, indices);
                    }
                }
            }
        }
    }
    visited.sort_unstable();
    let mut splits: Vec<Split> = Vec::new();
    for (_, at) in visited {
        let (value, from) = best[at];
        let [near, near_way, far, far_way] = from.map(usize::from);
        let (near, far) = (&ends[near].ways[near_way], &ends[far].ways[far_way]);
        let cost = (near.0, far.0);
        let dominates = |split: &Split| {
            split.value <= value + 1e-6
                && (split.cost.0.max(split.cost.1) <= cost.0.max(cost.1))
                && (split.cost.0.min(split.cost.1) <= cost.0.min(cost.1))
        };
        if !splits.iter().any(dominates) {
            splits.push(Split {
                cost,
                value,
                near: near.2.clone(),
                far: far.2.clone(),
            });
        }
    }
    splits
}

/// Returns those of splits by rising total length that have a lower price than all shorter ones.
pub(crate) fn best_by_total(splits: &[Split]) -> Vec<Split> {
    let mut kept: Vec<Split> = Vec::new();
    for split in splits {
        interrupt::check();
        match kept.last_mut() {
            Some(last) if split.value >= last.value => {}
            Some(last) if split.total() == last.total() => *last = split.clone(),
            _ => kept.push(split.clone()),
        }
    }
    kept
}
