//! Possible splits of a gap in a slot. A gap is a run of consecutive ranks that do not have the
//! block yet. Lightpaths from the ends of a gap split the gap into smaller gaps.

use super::prices::IMPOSSIBLE;
use opticoll_base::interrupt;

/// Lightpaths of a slot that split a gap of unreached ranks into smaller gaps. The *near* end of
/// the gap is the rank before the gap, and the *far* end is the rank behind the gap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    /// Total length of the lightpaths from the near end, and total length of the lightpaths from
    /// the far end, in links.
    pub(crate) links: (u32, u32),
    /// Total price of reaching the ranks of the smaller gaps in later slots.
    pub(crate) later_price: f32,
    /// Lengths of the lightpaths from the near end, in links, ascending.
    pub(crate) near: Vec<u32>,
    /// Lengths of the lightpaths from the far end, in links, ascending.
    pub(crate) far: Vec<u32>,
}

impl Split {
    pub(crate) fn total(&self) -> u32 {
        self.links.0 + self.links.1
    }

    pub(crate) fn mirror(&mut self) {
        std::mem::swap(&mut self.near, &mut self.far);
        self.links = (self.links.1, self.links.0);
    }
}

/// Sets of lightpaths from one end of a gap. In each set, the longest lightpath has `longest`
/// links.
pub(crate) struct EndOptions {
    longest: u32,
    /// Sets of lightpaths, by ascending total length and descending price.
    options: Vec<EndOption>,
}

/// Set of lightpaths from one end of a gap: the total length in links, the price of later slots
/// (which must reach the ranks between the receivers), and the length of each lightpath in links.
type EndOption = (u32, f32, Vec<u32>);

/// Number of options in an [`EndOptions`] above which only the options on the lower convex hull are
/// retained.
const MAX_OPTIONS: usize = 24;

/// Returns the possible sets of lightpaths from one end of a gap. Each entry of the result has the
/// sets whose longest lightpath has the same length; entries are in ascending order of this length.
/// The total length of a set is at most `channels` links. `later` is the price of reaching n
/// consecutive ranks in later slots, indexed by n.
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
            for (links, later_price, chain) in &end.options {
                if links + length <= channels {
                    let mut chain = chain.clone();
                    chain.push(length);
                    options.push((links + length, later_price + fill, chain));
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

/// Returns the options on the lower convex hull of price over total length. For every price per
/// link, the cheapest option is on this hull.
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

/// Returns splits of a gap of `size` unreached ranks, in ascending order of total length. A split
/// is left out if another split has at most the same price and at most the same total length in
/// each direction. The longest lightpath of each split starts at the near end, because callers also
/// try the mirror images of splits. `later` is the price of reaching n consecutive ranks in later
/// slots, indexed by n.
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
                    let later_price = near_value + far_value + remaining_price;
                    let at = *near_cost as usize * side + *far_cost as usize;
                    if best[at].0 == f32::INFINITY {
                        visited.push((near_cost + far_cost, at));
                    }
                    if later_price < best[at].0 {
                        let indices =
                            [near, near_option, far, far_option].map(|index| index as u16);
                        best[at] = (later_price, indices);
                    }
                }
            }
        }
    }
    visited.sort_unstable();
    let mut splits: Vec<Split> = Vec::new();
    for (_, at) in visited {
        let (later_price, indices) = best[at];
        let [near, near_option, far, far_option] = indices.map(usize::from);
        let near = &ends[near].options[near_option];
        let far = &ends[far].options[far_option];
        let links = (near.0, far.0);
        let dominates = |split: &Split| {
            split.later_price <= later_price + 1e-6
                && (split.links.0.max(split.links.1) <= links.0.max(links.1))
                && (split.links.0.min(split.links.1) <= links.0.min(links.1))
        };
        if !splits.iter().any(dominates) {
            splits.push(Split {
                links,
                later_price,
                near: near.2.clone(),
                far: far.2.clone(),
            });
        }
    }
    splits
}

/// Returns the splits whose price in later slots is lower than that of all shorter splits. `splits`
/// and the result are in ascending order of total length.
pub(crate) fn best_by_total(splits: &[Split]) -> Vec<Split> {
    let mut efficient: Vec<Split> = Vec::new();
    for split in splits {
        interrupt::check();
        match efficient.last_mut() {
            Some(last) if split.later_price >= last.later_price => {}
            Some(last) if split.total() == last.total() => *last = split.clone(),
            _ => efficient.push(split.clone()),
        }
    }
    efficient
}
