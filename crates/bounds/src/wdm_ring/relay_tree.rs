//! C_S(N): the least total length, in links, of a tree of lightpaths of depth at most S that
//! connects one rank of a ring to all N ranks. An all_gather in S slots fulfils P C_S(N) <= 2 c S
//! (theorem R5). C_S falls with S.
//!
//! f_h(n) is the least length of trees of depth at most h that reach the n nearest ranks in one
//! direction from a root (theorems R6 and R7):
//!
//! ```text
//! b_h(s) = min over 0 <= l < s of  (l + 1) + f_(h-1)(l) + f_(h-1)(s - 1 - l)
//! f_h(n) = min over 1 <= s <= n of f_h(n - s) + (n - s) + b_h(s),        f_h(0) = 0
//! C_h(N) = f_h(floor((N - 1) / 2)) + f_h(ceil((N - 1) / 2))
//! ```
//!
//! f_h is convex. Let D be the first differences of f_(h-1), and E those of f_h. The differences of
//! b_h are 1, followed by all 1 + D(l) and all D(l), merged in ascending order. The differences of
//! f_h are 1, followed by the other differences of b_h and all 1 + E(m), merged. Each depth takes
//! O(N) operations. C_1(N) = floor(N^2 / 4), and C_S(N) = N - 1 for S >= N / 2.

use std::cell::RefCell;
use std::collections::BTreeMap;

use opticoll_base::interrupt;

/// First difference at a number of ranks that no tree reaches.
const UNREACHED: u32 = u32::MAX / 2;

/// Maximum number of ranks times slots for which [`cost`] is computed.
pub(super) const MAX_WORK: u64 = 3_000_000_000;

/// Endless iterator over the least lengths, in links, of relay trees of depth 1, 2, ...
#[derive(Debug, Clone)]
pub struct RelayCosts {
    ranks: u32,
    /// First differences of the header's function f, up to half of the ring; indexed by number of
    /// ranks.
    differences: Vec<u32>,
    /// First differences of the header's function b, up to half of the ring; indexed by number of
    /// ranks.
    to_child: Vec<u32>,
}

impl RelayCosts {
    /// Returns the sequence for a ring of `ranks` ranks.
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

/// Returns the least number of slots that theorem R5 permits for an all_gather with `pieces` chunks
/// per block. `channels` counts both directions. `known` is another lower bound on the number of
/// slots. If theorem R5 permits fewer than `known` slots, the returned number may be too small.
/// `None` if the number is too great to be computed.
pub(super) fn least_steps(ranks: u32, pieces: u64, channels: u64, known: u64) -> Option<u64> {
    // Relay trees have at least N - 1 links. From N / 2 slots on, N - 1 links are enough.
    let least = (pieces * u64::from(ranks - 1)).div_ceil(channels);
    if 2 * least.max(known) >= u64::from(ranks) {
        return Some(least);
    }
    let farthest = MAX_WORK / u64::from(ranks.max(1));
    if least > farthest {
        return None;
    }
    (least..=farthest).find(|&steps| pieces * cost(ranks, steps) <= channels * steps)
}

/// Computed lengths of the relay trees of a ring, and the iterator that continues the list.
struct StoredCosts {
    costs: Vec<u64>,
    following: RelayCosts,
}

/// Maximum number of ranks of all rings with stored costs, about 20 MB of memory.
const MAX_STORED_RANKS: u64 = 1 << 22;

thread_local! {
    /// Lengths of relay trees, keyed by number of ranks of the ring. Bounds on slots and bounds on
    /// time need the same lengths for any number of pieces. Hierarchical plans also need the
    /// lengths of smaller rings.
    static STORED: RefCell<BTreeMap<u32, StoredCosts>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns C_S(N): the least length, in links, of a relay tree of depth at most `steps` on a ring
/// of `ranks` ranks. Stores computed lengths.
pub fn cost(ranks: u32, steps: u64) -> u64 {
    STORED.with_borrow_mut(|known| {
        if !known.contains_key(&ranks) {
            let stored_ranks: u64 = known.keys().map(|&ranks| u64::from(ranks)).sum();
            if stored_ranks + u64::from(ranks) > MAX_STORED_RANKS {
                known.clear();
            }
        }
        let known = known.entry(ranks).or_insert_with(|| StoredCosts {
            costs: Vec::new(),
            following: RelayCosts::new(ranks),
        });
        let missing = (steps as usize).saturating_sub(known.costs.len());
        known.costs.extend(known.following.by_ref().take(missing));
        known.costs[steps as usize - 1]
    })
}
