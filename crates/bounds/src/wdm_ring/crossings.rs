//! How many links the lightpaths of one byte of an all_reduce take, by who must leave a growing neighbourhood. Source: opticoll.
//!
//! N >= 4 ranks on a ring, S slots. What a rank gets in a slot it can pass on from the next slot on. The lightpaths that
//! carry (something of) one byte of an all_reduce are such that for every ordered pair of ranks (x, y) some of them
//! lead from x to y in rising slots, for every contribution gets into the sum of every rank. Let G_S(N) be the
//! least that the lengths of such lightpaths add up to. A lightpath from u to v has the length dist(u, v), the distance on the ring, at
//! least, and dist(u, v) <= D = floor(N / 2). Broken links, dead wavelengths, few ports and limits of reach make lightpaths
//! longer or fewer. A lightpath is for one end: this is not for light trees.
//!
//! # Statement
//!
//! A *chain* is a list of whole numbers 1 = p_0 <= p_1 <= ... <= p_S = N - 1: sizes of a growing neighbourhood.
//! From p to q it grows by g = floor((q - 1) / 2) - floor((p - 1) / 2) ranks on one side, by g' = floor(q / 2) - floor(p / 2) on
//! the other. Let r be how many lightpaths a rank takes in, or sends, in a slot at most, and
//!
//! ```text
//! n_1 = 1,  n_(i+1) = min(N, (1 + r) n_i),  k_s = min(n_s, n_(S+1-s)),  m = min(p, N - q, k_s)
//! count_s(p, q; l) = 1/2 (max(0, min(m, l - g)) + max(0, min(m, l - g')))
//! ```
//!
//! Let chains j with weights z_j >= 0, and a price 0 <= u <= 1 of a lightpath, be such that for all slots s and all lengths l from 1 to D
//!
//! ```text
//! (1/N) sum over j of z_j count_s(p_(s-1), p_s of chain j; l) <= l - u                                  (*)
//! ```
//!
//! Then **G_S(N) >= sum of z_j + 2 (N - 1) u**.
//!
//! # Proof
//!
//! **Leaving.** *For every chain, the sum of count_s(p_(s-1), p_s; dist(e)) over all lightpaths e (of slot s each) is at least N.*
//! For a rank x let U_p(x) be the p ranks from x - floor((p - 1) / 2) to x + floor(p / 2). U_p(x) is part of U_q(x) for
//! p <= q, and U_1(x) is x alone. U_(N-1)(x) lacks a single rank y(x), another one for each x. Choose a path of
//! lightpaths from x to y(x), and let h_s be the rank on it after slot s: h_0 = x is in U_(p_0)(x), h_S = y(x) is not in
//! U_(p_S)(x). Let s be the first slot with h_s not in U_(p_s)(x). Then h_(s-1) is in U_(p_(s-1))(x), hence in U_(p_s)(x).
//! So the path has a lightpath of slot s from a rank in U_(p_(s-1))(x) to a rank outside U_(p_s)(x). Call it e(x).
//! There are N of these x. How many x can have the same lightpath e from u to v of slot s? Let p = p_(s-1), q = p_s.
//!
//! - u is in U_p(x) for p ranks x, and v is outside U_q(x) for N - q of them.
//! - Before slot s, u has something of n_s ranks x at most: a rank takes in r lightpaths in a slot, each
//!   from a rank with something of n_i. After slot s, what is at v reaches n_(S+1-s) ranks at most, as each rank tells r
//!   others in a slot, and the y(x) differ. So there are k_s of these x at most.
//! - Let v = u + d with d = dist(u, v). With R = floor(p / 2), L = floor((p - 1) / 2), and R', L' those of q: x is among
//!   u - R, ..., u + L and not among v - R', ..., v + L'. Since u + L <= v + L', it is among u - R, ..., v - R' - 1: these are
//!   d - (R' - R) = d - g', or none. If v = u - d, they are d - g in the same way.
//!
//! So e counts for max(0, min(m, d - g')) ranks x at most if it leads one way round, for max(0, min(m, d - g)) if it
//! leads the other way. With left and right exchanged in all U_p(x) the two change places. Half the sum of both inequalities is the claim.
//!
//! **Number.** *There are at least 2 (N - 1) lightpaths.* Let t be the first slot after which some rank v has something of
//! all ranks. For each other rank w let e(w) be, of the lightpaths that begin a path from w to v within slots 1 to t, one of the last
//! slot. It ends at v, or at a rank w' with e(w') in a later slot. So those of slot t end at v. The e(w) start at different ranks, and are N - 1.
//! Each rank w but v has something of all ranks for the first time after a slot t(w) >= t. Let f(w) be a lightpath of slot t(w) that ends at w and
//! brings something new. The f(w) end at different ranks, and are N - 1. None is an e: it is later than slot t, or in slot t and does not end at v.
//!
//! **Together.** *Leaving* times z_j / N, added over j, and *number* times u:
//!
//! ```text
//! sum of z_j + 2 (N - 1) u <= sum over e of ((1/N) sum of z_j count(dist(e)) + u) <= sum over e of dist(e)
//! ```
//!
//! The last step is (*) with l = dist(e).
//!
//! # Neighbourhoods that grow by two
//!
//! Let J = floor(N / 2) - 1. The chain of J slots that grows by 2 in each of them (by 3 in one of them if N is odd) has gaps
//! of 1 at least, so that count <= l - 1 everywhere: z = N and u = 1 give G_J(N) >= 3 N - 2, and G_S(N) does not rise with
//! S. For S >= J take S chains with weights N / S, which grow in J slots out of S, rotated so that each slot is one of the J in J
//! chains. count is l - 1 at most where a chain grows and l where it does not: (*) holds with u = J / S. So
//!
//! ```text
//! G_S(N) >= 3 N - 2 for S <= J,        G_S(N) >= N + 2 (N - 1) J / S for S >= J
//! ```
//!
//! No lightpath is shorter than a link, so that G_S(N) >= 2 (N - 1) by *number* alone, for N >= 2.
//!
//! # Weights
//!
//! For S < J chains that grow faster give more, with u = 1. [`links`] has them from `multiplicative_weights`, in floating point, and takes from
//! there nothing but the chains and their whole weights w_j. What they prove is computed in whole numbers: with W their
//! sum and F the greatest (sum of w_j 2 count_s(l)) / (l - 1) over all s and l, z_j = 2 N w_j / F fulfils (*), and
//! G_S(N) >= 2 N W / F + 2 (N - 1), rounded up, since G_S(N) is a whole number. So what is printed is proved,
//! whichever chains were found.
//!
//! Where N S is more than [`MOST_WORK`], or a pass of the game would take too long, the closed form alone counts.

mod multiplicative_weights;

use super::memo::Memo;

/// More N times S than this are not worth the wait.
pub const MOST_WORK: u64 = 150_000;

/// By ranks, slots and intake.
static KNOWN: Memo<(u32, u64, u64), u64> = Memo::new();

/// What neighbourhoods that grow by two prove of G_S(N).
pub fn by_two(ranks: u32, steps: u64) -> u64 {
    let ranks = u64::from(ranks);
    let lightpaths = 2 * ranks.saturating_sub(1);
    let growing = (ranks / 2).saturating_sub(1);
    match growing {
        0 => lightpaths,
        _ if steps <= growing => 3 * ranks - 2,
        _ => lightpaths.max(ranks + (lightpaths * growing).div_ceil(steps)),
    }
}

/// Whether [`links`] looks for more than [`by_two`].
pub(super) fn is_worth(ranks: u32, steps: u64) -> bool {
    let ranks = u64::from(ranks);
    // From N / 2 - 1 slots on chains stand still in some.
    (2..ranks).contains(&steps) && 2 * steps + 2 < ranks && ranks * steps <= MOST_WORK
}

/// What is found of G_S(N), where ranks take in, and send, so many lightpaths in a slot.
pub fn links(ranks: u32, intake: u64, steps: u64) -> u64 {
    let closed = by_two(ranks, steps);
    if !is_worth(ranks, steps) {
        return closed;
    }
    let find = || {
        let reached = reached(ranks as usize, steps as usize, intake);
        let ring = Ring {
            ranks: ranks as usize,
            reached,
        };
        multiplicative_weights::chains(&ring).map_or(closed, |proved| closed.max(proved.links()))
    };
    KNOWN.to((ranks, steps, intake), find)
}

/// k_s of all slots.
fn reached(ranks: usize, steps: usize, intake: u64) -> Vec<usize> {
    let grow = |held: &u64| {
        Some(
            held.saturating_mul(intake.saturating_add(1))
                .min(ranks as u64),
        )
    };
    let held = std::iter::successors(Some(1), grow).take(steps);
    let held: Vec<usize> = held.map(|held| held as usize).collect();
    let both = held.iter().zip(held.iter().rev());
    both.map(|(&before, &after)| before.min(after)).collect()
}

/// N, and k_s of all slots.
struct Ring {
    ranks: usize,
    reached: Vec<usize>,
}

/// What a growth of a neighbourhood in a slot counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Growth {
    /// g and g'.
    gaps: [usize; 2],
    /// m.
    most: usize,
}

impl Growth {
    fn new(ranks: usize, from: usize, to: usize, reached: usize) -> Growth {
        Growth {
            gaps: [(to - 1) / 2 - (from - 1) / 2, to / 2 - from / 2],
            most: from.min(ranks - to).min(reached),
        }
    }

    /// Whether nothing is counted of lightpaths of one link.
    fn is_of_two(self) -> bool {
        self.gaps[0] > 0 && self.gaps[1] > 0
    }

    /// Twice the count of a lightpath of a length.
    fn twice(self, length: usize) -> usize {
        let side = |gap: usize| length.saturating_sub(gap).min(self.most);
        side(self.gaps[0]) + side(self.gaps[1])
    }
}

/// Chains with weights, and what they count together, with the price 1 of a lightpath.
struct Proved<'a> {
    ring: &'a Ring,
    /// By slot of the first half (a chain is added with its mirror image, which counts in the mirrored slots) and by length: second differences
    /// of the sum of w_j 2 count_s(l). min(m, l - g) has 1 at g + 1 and -1 at g + m + 1.
    bends: Vec<Vec<i64>>,
    /// W.
    weight: u64,
}

impl<'a> Proved<'a> {
    fn new(ring: &'a Ring) -> Proved<'a> {
        let rows = ring.reached.len().div_ceil(2);
        Proved {
            ring,
            bends: vec![vec![0; 2 * ring.ranks + 2]; rows],
            weight: 0,
        }
    }

    /// Adds a chain, and the chain N - p_S, ..., N - p_0, which has the same gaps and the same m in the mirrored
    /// slots; nothing if it is no chain that grows by a rank on both sides in every slot.
    fn add(&mut self, chain: &[usize], weight: u32) {
        let ranks = self.ring.ranks;
        let steps = self.ring.reached.len();
        let ends = (chain.first(), chain.last()) == (Some(&1), Some(&(ranks - 1)));
        let rises = chain.windows(2).all(|pair| pair[0] < pair[1]);
        if !ends || !rises || chain.len() != steps + 1 {
            return;
        }
        let growths: Vec<Growth> = (0..steps)
            .map(|step| Growth::new(ranks, chain[step], chain[step + 1], self.ring.reached[step]))
            .collect();
        if !growths.iter().all(|growth| growth.is_of_two()) {
            return;
        }
        for (step, growth) in growths.into_iter().enumerate() {
            let row = step.min(steps - 1 - step);
            // In the middle slot the chain and its mirror image count together.
            let times = if 2 * row + 1 == steps { 2 } else { 1 };
            for gap in growth.gaps {
                self.bends[row][gap + 1] += times * i64::from(weight);
                self.bends[row][gap + growth.most + 1] -= times * i64::from(weight);
            }
        }
        self.weight += 2 * u64::from(weight);
    }

    /// 2 N W / F + 2 (N - 1), rounded up.
    fn links(&self) -> u64 {
        let ranks = self.ring.ranks as u64;
        let farthest = self.ring.ranks / 2;
        // F = counted / beyond.
        let (mut counted, mut beyond) = (0u128, 1u128);
        for bends in &self.bends {
            let (mut slope, mut sum) = (0, 0);
            for (length, bend) in bends.iter().enumerate().take(farthest + 1).skip(1) {
                slope += bend;
                sum += slope;
                let (here, longer) = (sum as u128, length as u128 - 1);
                if here * beyond > counted * longer {
                    (counted, beyond) = (here, longer);
                }
            }
        }
        let all = 2 * u128::from(ranks) * u128::from(self.weight) * beyond;
        // With no weight at all nothing is proved of longer lightpaths.
        let longer = if counted == 0 {
            0
        } else {
            all.div_ceil(counted)
        };
        2 * (ranks - 1) + longer as u64
    }
}

#[cfg(test)]
mod tests;
