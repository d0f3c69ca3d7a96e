//! C_S(N): the least total length of a tree of lightpaths of depth at most S that reaches all N
//! ranks of a ring from one of them.
//!
//! **Why it bounds an all_gather.** Follow one chunk. The lightpaths by which each rank first gets
//! it form a tree rooted at its owner, with slots that increase from the root outwards, because a
//! rank forwards only what an earlier slot brought. In S slots the tree has depth at most S, so its
//! lightpaths have total length at least C_S(N). N blocks of P chunks take P N C_S(N) link-channels
//! in all, and S slots have 2 c N S: P C_S(N) <= 2 c S. C_S falls with S, so the least S that
//! satisfies this is a lower bound.
//!
//! **Contiguity.** Give every rank v its slot t(v), the root t = 0. Whatever tree has these slots,
//! the lightpath to v comes from a rank of smaller t, so it is at least as long as the distance to
//! the nearest such rank; joining every v to that nearest rank (ties broken any one way) gives a
//! tree of least length with the same slots. In that tree let u be joined to p. All ranks strictly
//! between them (on the arc of the lightpath) have t >= t(u), for a smaller one would be nearer.
//! Take such a rank x. If t(x) > t(u), both u and p have smaller t than x, so the nearest rank of
//! smaller t lies on the arc from u to p, ends included. If t(x) = t(u), then p is it or some rank
//! as near on the way: what lies beyond u and has smaller t is at least as far from u as p is, and
//! so farther from x than p. Either way the chain from x to the root stays on the arc until it
//! reaches u or p. Hence lightpaths do not cross, the ranks reached through u are an interval that
//! contains u, and no lightpath passes over the root. The same holds where lightpaths are weighed
//! by a price of their slot (`price`), for the nearest rank is the cheapest for every t.
//!
//! **Dynamic program.** Let f_h(n) be the least length of trees of depth at most h that reach n ranks
//! next to a root, on one side of it. By contiguity the last child of the root has an interval of s
//! ranks, the farthest ones: l of them lie before the child and s - 1 - l beyond it, and each part is
//! a one-sided problem of depth h - 1 with the child as root:
//!
//! ```text
//! b_h(s) = min over 0 <= l < s of  (l + 1) + f_(h-1)(l) + f_(h-1)(s - 1 - l)
//! f_h(n) = min over 1 <= s <= n of f_h(n - s) + (n - s) + b_h(s),        f_h(0) = 0
//! C_h(N) = min over 0 <= a < N of  f_h(a) + f_h(N - 1 - a)
//! ```
//!
//! **Convexity.** f_h is convex: f_h(n + 1) - f_h(n) never falls with n. (f_0 is, with f_0(n) infinite
//! for n > 0.) Suppose f_(h-1) is. b_h(s) splits s - 1 ranks between two convex functions, so its
//! differences are those of both, merged in rising order:
//! b_h(1) = 1, then the 1 + D(l) and the D(l), with D(l) = f_(h-1)(l + 1) - f_(h-1)(l). Let g be the
//! function with g(0) = 0, g(1) = b_h(1) = 1 and, from there on, the differences of b_h and those of
//! n + g(n) merged in rising order; the latter are 1 + E(m), with E those of g, and known when their
//! turn comes, for the n-th difference needs E(m) for m < n only. g is convex, for its differences
//! rise: none of those merged is below the first, 1. So g(n) = min over s of (n - s) + g(n - s) +
//! b_h(s), the split of n between two convex functions. That is the recursion of f_h, which determines
//! f_h from below: f_h = g, and f_h is convex. By convexity the two sides of the root share evenly:
//!
//! ```text
//! C_h(N) = f_h(floor((N - 1) / 2)) + f_h(ceil((N - 1) / 2))
//! ```
//!
//! O(N) per depth. C_1(N) = floor(N^2 / 4), and C_S(N) = N - 1 for S >= N / 2.

use std::cell::RefCell;
use std::collections::BTreeMap;

use opticoll_base::interrupt;

/// The difference to a number of ranks that cannot be reached.
const UNREACHED: u32 = u32::MAX / 2;

/// N times S up to which C_S(N) is computed.
pub(super) const MOST_WORK: u64 = 3_000_000_000;

/// C_1(N), C_2(N), ...: an endless, falling sequence of lengths in links.
#[derive(Debug, Clone)]
pub struct RelayCosts {
    ranks: u32,
    /// f_h(n + 1) - f_h(n) for n from 0 to the half of N.
    differences: Vec<u32>,
    /// Those of b_h(s) from s = 1 on.
    to_child: Vec<u32>,
}

impl RelayCosts {
    /// The sequence for a ring of `ranks` ranks.
    pub fn new(ranks: u32) -> RelayCosts {
        let farthest = (ranks / 2) as usize;
        RelayCosts {
            ranks,
            differences: vec![UNREACHED; farthest],
            to_child: vec![UNREACHED; farthest],
        }
    }
}

impl Iterator for RelayCosts {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        interrupt::check();
        let shallower = &self.differences;
        let (mut before, mut beyond) = (0, 0);
        for to_child in &mut self.to_child {
            let (nearer, farther) = (1 + shallower[before], shallower[beyond]);
            if nearer < farther {
                *to_child = nearer;
                before += 1;
            } else {
                *to_child = farther.min(UNREACHED);
                beyond += 1;
            }
        }
        let deeper = &mut self.differences;
        let (mut child, mut rest) = (0, 0);
        for n in 0..deeper.len() {
            let farther = self.to_child[child];
            deeper[n] = match n {
                0 => 1,
                _ if 1 + deeper[rest] < farther => {
                    rest += 1;
                    1 + deeper[rest - 1]
                }
                _ => {
                    child += 1;
                    farther
                }
            };
        }
        let side = |ranks: u32| -> u64 {
            let differences = &deeper[..ranks as usize];
            differences.iter().copied().map(u64::from).sum()
        };
        let others = self.ranks.saturating_sub(1);
        Some(side(others / 2) + side(others.div_ceil(2)))
    }
}

/// The least S with `pieces` C_S(N) <= `channels` S (channels of both directions), or less where so many slots
/// as are `known` to be needed are enough for that S; `None` where S is too far to compute it.
pub(super) fn least_steps(ranks: u32, pieces: u64, channels: u64, known: u64) -> Option<u64> {
    // C_S >= N - 1, and equal to it from S = N / 2 on, where there is nothing to compute.
    let least = (pieces * u64::from(ranks - 1)).div_ceil(channels);
    if 2 * least.max(known) >= u64::from(ranks) {
        return Some(least);
    }
    let farthest = MOST_WORK / u64::from(ranks.max(1));
    if least > farthest {
        return None;
    }
    (least..=farthest).find(|&steps| pieces * cost(ranks, steps) <= channels * steps)
}

/// The costs of a ring so far, and what continues them.
struct KnownCosts {
    costs: Vec<u64>,
    following: RelayCosts,
}

/// Costs are kept of rings of so many ranks together: some 20 MB.
const MOST_KEPT: u64 = 1 << 22;

thread_local! {
    /// By ranks. Bounds on slots and on time need the same for any number of pieces, and plans of groups those of the rings of
    /// their owners.
    static KNOWN: RefCell<BTreeMap<u32, KnownCosts>> = const { RefCell::new(BTreeMap::new()) };
}

/// C_S(N) for S from 1 on. Costs of fewer slots are kept.
pub fn cost(ranks: u32, steps: u64) -> u64 {
    KNOWN.with_borrow_mut(|known| {
        if !known.contains_key(&ranks) {
            let kept: u64 = known.keys().map(|&ranks| u64::from(ranks)).sum();
            if kept + u64::from(ranks) > MOST_KEPT {
                known.clear();
            }
        }
        let known = known.entry(ranks).or_insert_with(|| KnownCosts {
            costs: Vec::new(),
            following: RelayCosts::new(ranks),
        });
        let missing = (steps as usize).saturating_sub(known.costs.len());
        known.costs.extend(known.following.by_ref().take(missing));
        known.costs[steps as usize - 1]
    })
}
