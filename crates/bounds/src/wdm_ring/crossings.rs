//! Lower bound on the links that the lightpaths of one byte of an all_reduce take, by the
//! contributions that must leave growing neighbourhoods (theorems R12 to R14). Source: opticoll.
//!
//! N >= 4 ranks are on a ring, S is the number of slots. G_S(N) is the least total length of
//! lightpaths such that, for every ordered pair of ranks, some of the lightpaths lead from the
//! first to the second rank in rising slots.
//!
//! A *chain* is a list of whole numbers 1 = p_0 <= p_1 <= ... <= p_S = N - 1: sizes of a growing
//! neighbourhood. From p to q it grows by g = floor((q - 1) / 2) - floor((p - 1) / 2) ranks on one
//! side and by g' = floor(q / 2) - floor(p / 2) ranks on the other. A rank receives, or sends, at
//! most r lightpaths in a slot. Then
//!
//! ```text
//! n_1 = 1,  n_(i+1) = min(N, (1 + r) n_i),  k_s = min(n_s, n_(S+1-s)),  m = min(p, N - q, k_s)
//! count_s(p, q; l) = 1/2 (max(0, min(m, l - g)) + max(0, min(m, l - g')))
//! ```
//!
//! *Theorem R12.* Let chains j with weights z_j >= 0, and a price 0 <= u <= 1 of a lightpath,
//! fulfil for all slots s and all lengths l from 1 to floor(N / 2)
//!
//! ```text
//! (1/N) sum over j of z_j count_s(p_(s-1), p_s of chain j; l) <= l - u                        (*)
//! ```
//!
//! Then G_S(N) >= sum of z_j + 2 (N - 1) u.
//!
//! [`closed_form`] is theorem R13. [`links`] takes chains and whole weights w_j from
//! `multiplicative_weights`, which uses floating point. Their bound is computed in whole numbers
//! (theorem R14): with W the sum of the w_j and F the greatest (sum of w_j 2 count_s(l)) / (l - 1),
//! G_S(N) >= 2 N W / F + 2 (N - 1). If N S exceeds [`MAX_WORK`], or a pass of the search for
//! weights would take too long, only R13 counts.

mod multiplicative_weights;

use super::memo::Memo;
use super::multi_block;

/// Maximum N times S for the search for weights.
pub const MAX_WORK: u64 = 150_000;

/// Known values of [`links`] by ranks, slots and intake.
static KNOWN: Memo<(u32, u64, u64), u64> = Memo::new();

/// Returns the bound of theorem R13 on G_S(N).
pub fn closed_form(ranks: u32, steps: u64) -> u64 {
    let ranks = u64::from(ranks);
    let lightpaths = 2 * ranks.saturating_sub(1);
    let growing = (ranks / 2).saturating_sub(1);
    match growing {
        0 => lightpaths,
        _ if steps <= growing => 3 * ranks - 2,
        _ => lightpaths.max(ranks + (lightpaths * growing).div_ceil(steps)),
    }
}

/// Returns whether [`links`] searches for more than [`closed_form`].
pub(super) fn is_searched(ranks: u32, steps: u64) -> bool {
    let ranks = u64::from(ranks);
    // From N / 2 - 1 slots on every chain stands still in some slot.
    (2..ranks).contains(&steps) && 2 * steps + 2 < ranks && ranks * steps <= MAX_WORK
}

/// Returns the greatest lower bound found on G_S(N), if ranks receive, and send, at most `intake`
/// lightpaths in a slot.
pub fn links(ranks: u32, intake: u64, steps: u64) -> u64 {
    let closed = closed_form(ranks, steps);
    if !is_searched(ranks, steps) {
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
    KNOWN.get((ranks, steps, intake), find)
}

/// Returns k_s for all slots.
fn reached(ranks: usize, steps: usize, intake: u64) -> Vec<usize> {
    let held = multi_block::held(ranks as u32, intake).take(steps);
    let held: Vec<usize> = held.map(|held| held as usize).collect();
    let pairs = held.iter().zip(held.iter().rev());
    pairs.map(|(&before, &after)| before.min(after)).collect()
}

/// Number of ranks N, and k_s for all slots.
struct Ring {
    ranks: usize,
    reached: Vec<usize>,
}

/// Growth of a neighbourhood in a slot, and the lightpaths that it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Growth {
    /// Growths g and g' of the two sides.
    gaps: [usize; 2],
    /// Limit m of the count.
    most: usize,
}

impl Growth {
    fn new(ranks: usize, from: usize, to: usize, reached: usize) -> Growth {
        Growth {
            gaps: [(to - 1) / 2 - (from - 1) / 2, to / 2 - from / 2],
            most: from.min(ranks - to).min(reached),
        }
    }

    /// Returns whether the neighbourhood grows on both sides, so that lightpaths of one link count
    /// 0.
    fn is_two_sided(self) -> bool {
        self.gaps[0] > 0 && self.gaps[1] > 0
    }

    /// Returns 2 count_s(l) for a lightpath of length l.
    fn twice_count(self, length: usize) -> usize {
        let side = |gap: usize| length.saturating_sub(gap).min(self.most);
        side(self.gaps[0]) + side(self.gaps[1])
    }
}

/// Chains with whole weights, and their counts, for a lightpath price of u = 1.
struct Proved<'a> {
    ring: &'a Ring,
    /// Second differences of the sum of w_j 2 count_s(l) over l, for each slot of the first half:
    /// min(m, l - g) has 1 at g + 1 and -1 at g + m + 1. A chain is added together with its mirror
    /// image, which counts in the mirrored slots.
    bends: Vec<Vec<i64>>,
    /// Sum W of the weights.
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

    /// Adds a chain and its mirror image N - p_S, ..., N - p_0, which has the same gaps and the
    /// same m in the mirrored slots. Ignores lists that are not chains or do not grow on both sides
    /// in every slot.
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
        if !growths.iter().all(|growth| growth.is_two_sided()) {
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

    /// Returns 2 N W / F + 2 (N - 1), rounded up.
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
        let numerator = 2 * u128::from(ranks) * u128::from(self.weight) * beyond;
        // Without weights only the lightpaths themselves count.
        let longer = if counted == 0 {
            0
        } else {
            numerator.div_ceil(counted)
        };
        2 * (ranks - 1) + longer as u64
    }
}

#[cfg(test)]
mod tests;
