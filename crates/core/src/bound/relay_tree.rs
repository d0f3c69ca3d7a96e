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
//! by a price of their slot (`per_step`), for the nearest rank is the cheapest for every t.
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
//! O(N^2) per depth. C_1(N) = floor(N^2 / 4), and C_S(N) = N - 1 for S >= N / 2.

/// More than any length; three of them still fit into 32 bits.
const UNREACHED: u32 = 1 << 29;

/// The largest ring for which lengths (at most N^2 / 2) stay below [`UNREACHED`].
const MOST_RANKS: u32 = 1 << 14;

/// Table entries times N that are computed before the search over S gives up.
pub(super) const MOST_WORK: u64 = 6_000_000_000;

/// C_1(N), C_2(N), ...: an endless, falling sequence of lengths in links.
#[derive(Debug, Clone)]
pub struct Costs {
    /// f_h(n) for n = 0..N.
    one_sided: Vec<u32>,
}

impl Costs {
    /// The sequence for a ring of `ranks` ranks; `None` beyond 16384, where lengths would not fit.
    pub fn new(ranks: u32) -> Option<Costs> {
        if !(1..=MOST_RANKS).contains(&ranks) {
            return None;
        }
        let mut one_sided = vec![UNREACHED; ranks as usize];
        one_sided[0] = 0;
        Some(Costs { one_sided })
    }
}

impl Iterator for Costs {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let shallower = &self.one_sided;
        let count = shallower.len();
        let to_child: Vec<u32> = (1..).zip(shallower).map(|(hop, f)| hop + f).collect();
        let backwards: Vec<u32> = shallower.iter().rev().copied().collect();
        // Filled from the end, so that both minima below run along two rows in the same sense.
        let mut last_child = vec![UNREACHED; count];
        let mut deeper = vec![0; count];
        let mut offset = vec![0; count];
        for ranks in 1..count {
            let beyond = &backwards[count - ranks..];
            last_child[count - 1 - ranks] = least_sum(&to_child[..ranks], beyond);
            let child = &last_child[count - 1 - ranks..count - 1];
            deeper[ranks] = least_sum(&offset[..ranks], child);
            offset[ranks] = deeper[ranks].saturating_add(ranks as u32).min(UNREACHED);
        }
        self.one_sided = deeper;
        let backwards: Vec<u32> = self.one_sided.iter().rev().copied().collect();
        Some(least_sum(&self.one_sided, &backwards).into())
    }
}

/// min over i of one[i] + other[i], at most [`UNREACHED`].
fn least_sum(one: &[u32], other: &[u32]) -> u32 {
    one.iter()
        .zip(other)
        .fold(UNREACHED, |least, (one, other)| least.min(one + other))
}

/// The least S >= `least` with `pieces` C_S(N) <= `channels` S (channels of both directions);
/// `None` where the ring is too large, or S too far, to compute it.
pub(super) fn least_steps(ranks: u32, pieces: u64, channels: u64, least: u64) -> Option<u64> {
    let work_per_depth = u64::from(ranks).pow(2);
    let mut work = least.checked_mul(work_per_depth)?;
    // With S = ceil(P (N - 1) / channels) >= N / 2, where C_S = N - 1, there is nothing to compute.
    if 2 * least >= u64::from(ranks) && pieces * u64::from(ranks - 1) <= channels * least {
        return Some(least);
    }
    if work > MOST_WORK {
        return None;
    }
    for (steps, cost) in (1..).zip(Costs::new(ranks)?) {
        if steps < least {
            continue;
        }
        if pieces * cost <= channels * steps {
            return Some(steps);
        }
        work += work_per_depth;
        if work > MOST_WORK {
            return None;
        }
    }
    None
}
