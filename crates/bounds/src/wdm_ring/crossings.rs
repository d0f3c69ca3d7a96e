//! Lower bound on the number of links that the lightpaths of one byte of an all_reduce occupy
//! (theorems R12 to R14). The contributions of all ranks must leave growing neighbourhoods of their
//! ranks. Source: opticoll.
//!
//! N >= 4 ranks are on a ring, and S is the number of slots. G_S(N) is the least total length of a
//! set of lightpaths with this property: for every ordered pair of ranks, some lightpaths of the
//! set lead from the first rank to the second in increasing slots.
//!
//! A *chain* is a list of integers 1 = p_0 <= p_1 <= ... <= p_S = N - 1, which are the sizes of a
//! growing neighbourhood. If the size grows from p to q, one end of the neighbourhood moves by g =
//! floor((q - 1) / 2) - floor((p - 1) / 2) ranks, and the other end by g' = floor(q / 2) - floor(p
//! / 2) ranks. A rank receives, or sends, at most r lightpaths in a slot. Then
//!
//! ```text
//! n_1 = 1,  n_(i+1) = min(N, (1 + r) n_i),  k_s = min(n_s, n_(S+1-s)),  m = min(p, N - q, k_s)
//! count_s(p, q; l) = 1/2 (max(0, min(m, l - g)) + max(0, min(m, l - g')))
//! ```
//!
//! *Theorem R12.* Let chains j have weights z_j >= 0, and let a lightpath have a price 0 <= u <= 1.
//! For all slots s and all lengths l from 1 to floor(N / 2), let
//!
//! ```text
//! (1/N) sum over j of z_j count_s(p_(s-1), p_s of chain j; l) <= l - u                        (*)
//! ```
//!
//! Then G_S(N) >= sum of z_j + 2 (N - 1) u.
//!
//! [`closed_form`] is theorem R13. [`links`] uses the chains and integer weights w_j that
//! `multiplicative_weights` finds with floating-point numbers, and computes their bound with
//! integers (theorem R14). Let W be the sum of the w_j, and F the greatest (sum of w_j 2
//! count_s(l)) / (l - 1). Then G_S(N) >= 2 N W / F + 2 (N - 1). If N S exceeds [`MAX_WORK`], or if
//! the search for weights would take too long, only R13 applies.

mod multiplicative_weights;

use super::memo::Memo;
use super::multi_block;

/// Maximum number of ranks times slots for which weights are searched.
pub const MAX_WORK: u64 = 150_000;

/// Cached values of [`links`], keyed by (ranks, slots, intake).
static CACHED_LINKS: Memo<(u32, u64, u64), u64> = Memo::new();

/// Returns the bound of theorem R13 on the number of links that a byte occupies in `steps` slots.
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

/// Returns whether [`links`] searches for a greater bound than [`closed_form`].
pub(super) fn is_searched(ranks: u32, steps: u64) -> bool {
    let ranks = u64::from(ranks);
    // With N / 2 - 1 slots or more, every chain has a slot in which it does not grow.
    (2..ranks).contains(&steps) && 2 * steps + 2 < ranks && ranks * steps <= MAX_WORK
}

/// Returns the greatest known lower bound on the number of links that one byte of an all_reduce
/// occupies in `steps` slots. A rank receives, and sends, at most `intake` lightpaths in a slot.
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
    CACHED_LINKS.get((ranks, steps, intake), find)
}

/// Returns the limit k_s of the header, indexed by slot.
fn reached(ranks: usize, steps: usize, intake: u64) -> Vec<usize> {
    let block_limits = multi_block::block_limits(ranks as u32, intake).take(steps);
    let block_limits: Vec<usize> = block_limits.map(|limit| limit as usize).collect();
    let pairs = block_limits.iter().zip(block_limits.iter().rev());
    pairs.map(|(&before, &after)| before.min(after)).collect()
}

/// Number of ranks, and the limit k_s of the header, indexed by slot.
struct Ring {
    ranks: usize,
    reached: Vec<usize>,
}

/// Growth of a neighbourhood in a slot (see the header).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Growth {
    /// Numbers of ranks by which the two ends of the neighbourhood move: g and g'.
    end_moves: [usize; 2],
    /// Limit m of the count.
    limit: usize,
}

impl Growth {
    fn new(ranks: usize, from: usize, to: usize, reached: usize) -> Growth {
        Growth {
            end_moves: [(to - 1) / 2 - (from - 1) / 2, to / 2 - from / 2],
            limit: from.min(ranks - to).min(reached),
        }
    }

    /// Returns whether both ends of the neighbourhood move.
    fn is_two_sided(self) -> bool {
        self.end_moves[0] > 0 && self.end_moves[1] > 0
    }

    /// Returns twice the count of a lightpath of `length` links.
    fn twice_count(self, length: usize) -> usize {
        let count_at_end = |end_move: usize| length.saturating_sub(end_move).min(self.limit);
        count_at_end(self.end_moves[0]) + count_at_end(self.end_moves[1])
    }
}

/// Chains with integer weights, and the counts of these chains, for the price u = 1 of a lightpath.
struct Proved<'a> {
    ring: &'a Ring,
    /// Second differences of the weighted sum of `twice_count` over all chains, with respect to the
    /// length of a lightpath. Indexed by slot of the first half, and then by length. Each chain is
    /// added together with its mirror image, which has the counts of the chain in the mirrored
    /// slot.
    second_differences: Vec<Vec<i64>>,
    weight: u64,
}

impl<'a> Proved<'a> {
    fn new(ring: &'a Ring) -> Proved<'a> {
        let rows = ring.reached.len().div_ceil(2);
        Proved {
            ring,
            second_differences: vec![vec![0; 2 * ring.ranks + 2]; rows],
            weight: 0,
        }
    }

    /// Adds a chain and its mirror image. Ignores `chain` if it is not a chain, or if an end of the
    /// neighbourhood does not move in some slot.
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
            // In the middle slot, the chain and its mirror image count together.
            let times = if 2 * row + 1 == steps { 2 } else { 1 };
            for end_move in growth.end_moves {
                self.second_differences[row][end_move + 1] += times * i64::from(weight);
                self.second_differences[row][end_move + growth.limit + 1] -=
                    times * i64::from(weight);
            }
        }
        self.weight += 2 * u64::from(weight);
    }

    /// Returns the lower bound on the number of links that the chains prove, rounded up.
    fn links(&self) -> u64 {
        let ranks = self.ring.ranks as u64;
        let farthest = self.ring.ranks / 2;
        // F of theorem R14 is counted / longer_by.
        let (mut counted, mut longer_by) = (0u128, 1u128);
        for second_differences in &self.second_differences {
            let (mut slope, mut sum) = (0, 0);
            for (length, second_difference) in second_differences
                .iter()
                .enumerate()
                .take(farthest + 1)
                .skip(1)
            {
                slope += second_difference;
                sum += slope;
                let (count, longer) = (sum as u128, length as u128 - 1);
                if count * longer_by > counted * longer {
                    (counted, longer_by) = (count, longer);
                }
            }
        }
        let numerator = 2 * u128::from(ranks) * u128::from(self.weight) * longer_by;
        // Without weights, only the number of lightpaths counts.
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
