//! The ways to split one gap in one step, with what they cost now and leave to pay later.

use crate::ring::relay_tree::prices::UNREACHED;
use opticoll_base::interrupt;

/// One way to split a gap: positions of new holders from one end and from the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    pub(crate) cost: (u32, u32),
    pub(crate) value: f32,
    pub(crate) near: Vec<u32>,
    pub(crate) far: Vec<u32>,
}

impl Split {
    pub(crate) fn total(&self) -> u32 {
        self.cost.0 + self.cost.1
    }

    /// The same from the other ends.
    pub(crate) fn mirror(&mut self) {
        std::mem::swap(&mut self.near, &mut self.far);
        self.cost = (self.cost.1, self.cost.0);
    }
}

/// Ways to place holders from one end: for each farthest position, cost against value, falling.
pub(crate) struct OneEnd {
    position: u32,
    ways: Vec<(u32, f32, Vec<u32>)>,
}

/// More than these are thinned to those that are best at some price.
const MOST_WAYS: usize = 24;

/// The ways to place holders from one end, within so many channels.
pub(crate) fn one_end(lengths: &[u32], channels: u32, later: &[f32]) -> Vec<OneEnd> {
    let mut ends = vec![OneEnd {
        position: 0,
        ways: vec![(0, 0.0, Vec::new())],
    }];
    for &length in lengths {
        if length > channels {
            break;
        }
        let mut ways = Vec::new();
        for end in &ends {
            interrupt::check();
            let Some(&fill) = later.get((length - end.position - 1) as usize) else {
                continue;
            };
            if fill >= UNREACHED {
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
        if kept.len() > MOST_WAYS {
            kept = lower_hull(kept);
        }
        ends.push(OneEnd {
            position: length,
            ways: kept,
        });
    }
    ends
}

/// The ways that are best at some price.
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

/// The ways to split a gap of `size`, near end first with the farther reach, without those that cost
/// no less in both directions and have no better value; by rising total cost.
pub(crate) fn splits(channels: u32, ends: &[OneEnd], later: &[f32], size: usize) -> Vec<Split> {
    let side = channels as usize + 1;
    let mut best: Vec<(f32, [u16; 4])> = vec![(f32::INFINITY, [0; 4]); side * side];
    let mut met = Vec::new();
    for (near, near_end) in ends.iter().enumerate() {
        for (far, far_end) in ends.iter().enumerate().take(near + 1) {
            interrupt::check();
            let taken = (near_end.position + far_end.position) as usize;
            if taken > size {
                break;
            }
            let rest = later[size - taken];
            if rest >= UNREACHED {
                continue;
            }
            for (one, (near_cost, near_value, _)) in near_end.ways.iter().enumerate() {
                for (other, (far_cost, far_value, _)) in far_end.ways.iter().enumerate() {
                    let value = near_value + far_value + rest;
                    let at = *near_cost as usize * side + *far_cost as usize;
                    if best[at].0 == f32::INFINITY {
                        met.push((near_cost + far_cost, at));
                    }
                    if value < best[at].0 {
                        best[at] = (value, [near, one, far, other].map(|index| index as u16));
                    }
                }
            }
        }
    }
    met.sort_unstable();
    let mut splits: Vec<Split> = Vec::new();
    for (_, at) in met {
        let (value, from) = best[at];
        let [near, one, far, other] = from.map(usize::from);
        let (near, far) = (&ends[near].ways[one], &ends[far].ways[other]);
        let cost = (near.0, far.0);
        let beaten = |known: &Split| {
            known.value <= value + 1e-6
                && (known.cost.0.max(known.cost.1) <= cost.0.max(cost.1))
                && (known.cost.0.min(known.cost.1) <= cost.0.min(cost.1))
        };
        if !splits.iter().any(beaten) {
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

/// Of splits by rising total cost, those that no cheaper one equals in value.
pub(crate) fn by_total(splits: &[Split]) -> Vec<Split> {
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
