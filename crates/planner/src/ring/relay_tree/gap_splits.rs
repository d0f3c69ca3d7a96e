//! Possible splits of a gap in a slot. A gap is a run of consecutive ranks that do not have the
//! block yet; lightpaths from its ends split the gap into smaller gaps.

use super::prices::IMPOSSIBLE;
use opticoll_base::interrupt;

/// Lightpaths of a slot that split a gap of unreached ranks into smaller gaps. The *near* end of
/// the gap is the rank before the gap, and the *far* end is the rank behind the gap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    /// Total length of the lightpaths from the near end and from the far end, in links.
    pub(crate) cost: (u32, u32),
    /// Price of reaching the ranks of the remaining gaps in later slots.
    pub(crate) value: f32,
    /// Lengths of the lightpaths from the near end, in links, ascending.
    pub(crate) near: Vec<u32>,
    /// Lengths of the lightpaths from the far end, in links, ascending.
    pub(crate) far: Vec<u32>,
}

impl Split {
    pub(crate) fn total(&self) -> u32 {
        self.cost.0 + self.cost.1
    }

    pub(crate) fn mirror(&mut self) {
        std::mem::swap(&mut self.near, &mut self.far);
        self.cost = (self.cost.1, self.cost.0);
    }
}

/// Possible sets of lightpaths from one end of a gap of unreached ranks. The longest lightpaths of
/// all sets have the same length.
pub(crate) struct EndOptions {
    longest: u32,
    /// Sets of lightpaths, by ascending total length and descending price.
    options: Vec<EndOption>,
}

/// Set of lightpaths from one end of a gap: the total length in links, the price of reaching the
/// ranks between the receivers in later slots, and the length of each lightpath in links.
type EndOption = (u32, f32, Vec<u32>);

/// Maximum number of options in an [`EndOptions`]. If there are more options, only the options on
/// the lower convex hull are used.
const MAX_OPTIONS: usize = 24;

/// Returns the possible sets of lightpaths from one end of a gap of unreached ranks, in ascending
/// order of the longest lightpath. The total length of a set is at most `channels` links. `later`
/// is the price of reaching n consecutive ranks in later slots, indexed by n.
pub(crate) fn end_options(lengths: &[u32], channels: u32, later: &[f32]) -> Vec<EndOptions> {
    let mut ends = vec![EndOptions {
        longest: 0,
        options: vec![(0, 0.0, Vec::new())],
    }];
    for &length in lengths {
        if length > channels {
            break;
        }
        let mut options = Vec::new();
        for end in &ends {
            interrupt::check();
            let Some(&fill) = later.get((length - end.longest - 1) as usize) else {
                continue;
            };
            if fill >= IMPOSSIBLE {
                continue;
            }
            for (cost, value, chain) in &end.options {
                if cost + length <= channels {
                    let mut chain = chain.clone();
                    chain.push(length);
                    options.push((cost + length, value + fill, chain));
                }
            }
        }
        options.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let mut efficient: Vec<EndOption> = Vec::new();
        for option in options {
            if efficient.last().is_none_or(|last| option.1 < last.1 - 1e-6) {
                efficient.push(option);
            }
        }
        if efficient.len() > MAX_OPTIONS {
            efficient = lower_hull(efficient);
        }
        ends.push(EndOptions {
            longest: length,
            options: efficient,
        });
    }
    ends
}

/// Returns the options on the lower convex hull of the points (total length, price). Whatever a
/// link of this slot costs, one of these options minimizes the price plus the cost of the links.
fn lower_hull(options: Vec<EndOption>) -> Vec<EndOption> {
    let mut hull: Vec<EndOption> = Vec::new();
    for option in options {
        while let [.., a, b] = &hull[..] {
            let (ab, ac) = ((b.0 - a.0) as f32, (option.0 - a.0) as f32);
            if (b.1 - a.1) * ac < (option.1 - a.1) * ab {
                break;
            }
            hull.pop();
        }
        hull.push(option);
    }
    hull
}

/// Returns the useful splits of a gap of `size` unreached ranks, by ascending total length. The
/// longest lightpath of a split starts at the near end; callers mirror splits. `later` is the price
/// of reaching n consecutive ranks in later slots, indexed by n.
pub(crate) fn splits(channels: u32, ends: &[EndOptions], later: &[f32], size: usize) -> Vec<Split> {
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
            for (near_option, (near_cost, near_value, _)) in near_end.options.iter().enumerate() {
                for (far_option, (far_cost, far_value, _)) in far_end.options.iter().enumerate() {
                    let value = near_value + far_value + remaining_price;
                    let at = *near_cost as usize * side + *far_cost as usize;
                    if best[at].0 == f32::INFINITY {
                        visited.push((near_cost + far_cost, at));
                    }
                    if value < best[at].0 {
                        let indices =
                            [near, near_option, far, far_option].map(|index| index as u16);
                        best[at] = (value, indices);
                    }
                }
            }
        }
    }
    visited.sort_unstable();
    let mut splits: Vec<Split> = Vec::new();
    for (_, at) in visited {
        let (value, indices) = best[at];
        let [near, near_option, far, far_option] = indices.map(usize::from);
        let near = &ends[near].options[near_option];
        let far = &ends[far].options[far_option];
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

/// Retains only splits that are cheaper than all shorter splits. `splits` and the result are in
/// ascending order of total length.
pub(crate) fn best_by_total(splits: &[Split]) -> Vec<Split> {
    let mut efficient: Vec<Split> = Vec::new();
    for split in splits {
        interrupt::check();
        match efficient.last_mut() {
            Some(last) if split.value >= last.value => {}
            Some(last) if split.total() == last.total() => *last = split.clone(),
            _ => efficient.push(split.clone()),
        }
    }
    efficient
}
