//! Search for the chains and weights of [`super::links`], as a game of two players.
//!
//! The first player picks a slot s and a length l >= 2, the second a chain. The first player wins
//! count_s(l) / (l - 1). Suppose that the second player picks chains with probabilities for which
//! the first wins at most v, whatever it picks. Then these probabilities, scaled to the sum N / v,
//! fulfil (*) of [`super`]. So the second player minimises v, which is a linear program over flows
//! from p_0 = 1 to p_S = N - 1.
//!
//! **Multiplicative weights** (Arora, Hazan and Kale, Theory of Computing 2012) play the game. The
//! first player has a weight for each (s, l), all equal at first. In each pass the second player
//! answers with the cheapest chain at these weights, and each weight rises with the win of (s, l).
//! Steps shrink from pass to pass, and later chains count more. The weights count the last win once
//! more (optimistic steps). The game is symmetric under s -> S + 1 - s with p -> N - p, so that
//! half of the slots are enough.
//!
//! **Cheapest chain.** For a slot s let H(t) be the sum over l > t of (weight of (s, l)) (l - t) /
//! (l - 1). A growth with gaps g, g' costs (H(g) - H(g + m) + H(g') - H(g' + m)) / 2 in slot s. H
//! is convex and falls. If k_s does not limit m, the price of a growth from p to q is a convex
//! function of q - p and a concave one of p + q: for p < p' and q < q', the growths from p to q and
//! from p' to q' are together no dearer than those from p to q' and from p' to q. So the best p
//! rises with q, and a slot takes K log K prices for K sizes. (If k_s limits m, the search may miss
//! the cheapest chain. Its result is a chain all the same.)
//!
//! **Sizes and lengths.** Sizes p are odd for even N; for odd N they are odd below N / 2 and even
//! above. Steps between sizes grow in proportion to the size, up to a fraction of N / S, which is
//! the average growth of a chain in a slot. Each length is 4 % (8 % for few slots) longer than the
//! one before; the bound is checked for all lengths.
//!
//! Only + - * / and comparisons of floating-point numbers are used, which give the same results on
//! all machines.

use super::{Growth, Proved, Ring};
use opticoll_base::interrupt;

/// Price of a growth that is not allowed.
const NEVER: f64 = 1e300;

/// Number of prices that all passes together compute, about 40 ms. Rings of [`HALF_BUDGET_RANKS`]
/// ranks and more have half of it, because other parts of the search take time there, too.
const PRICE_BUDGET: usize = 10_000_000;
const HALF_BUDGET_RANKS: usize = 2048;

/// Number of slots from which the full number of passes and the fine sizes and lengths are used.
const MANY_SLOTS: usize = 6;

/// Limits of the number of passes.
const MIN_PASSES: usize = 40;
const MAX_PASSES: usize = 2000;

/// Exponent of the rise of weights in the first pass, in units of the price of the cheapest chain,
/// and the share of the passes after which the exponent is half as large.
const STEP: f64 = 0.3;
const HALF_STEP_SHARE: f64 = 0.1;

/// Maximum exponent of the rise of a weight at a gain of 1.
const MAX_STEP: f64 = 8.0;

/// Smallest weight relative to the greatest.
const MIN_WEIGHT: f64 = 1e-30;

/// Maximum number of prices of a pass; rings that need more are not searched.
const MAX_PRICES_PER_PASS: usize = 120_000;

/// Returns the sizes of neighbourhoods to try in rising order: with every p also N - p.
fn sizes(ranks: usize, steps: usize) -> Vec<usize> {
    let longest = (ranks / (6 * steps)).max(1);
    // Chains of many slots grow in small steps for long.
    let part = match steps {
        ..MANY_SLOTS => 10,
        MANY_SLOTS..24 => 16,
        _ => steps.min(32),
    };
    let mut sizes = vec![1];
    let mut last = 1;
    loop {
        last += 2 * (last / part).clamp(1, longest);
        if 2 * last > ranks {
            break;
        }
        sizes.push(last);
    }
    let mirrored = sizes.iter().rev().map(|size| ranks - size);
    let mut all_sizes: Vec<usize> = sizes.iter().copied().chain(mirrored).collect();
    all_sizes.dedup();
    all_sizes
}

/// Returns the lengths to count, from 2 to `farthest`.
fn lengths(farthest: usize, steps: usize) -> Vec<usize> {
    let growth = if steps < MANY_SLOTS { 27 } else { 26 };
    let longer = |length: &usize| {
        let next = (length + 1).max(length * growth / 25).min(farthest);
        (*length < farthest).then_some(next)
    };
    std::iter::successors(Some(2), longer).collect()
}

/// Returns a factor by which a weight rises: (1 + x / 4)^4, which is near e^x for small x >= 0.
fn weight_factor(by: f64) -> f64 {
    let quarter = 1.0 + 0.25 * by;
    let half = quarter * quarter;
    half * half
}

/// Returns the chains that were picked; `None` if a pass takes too long or no chain grows in every
/// slot.
pub(super) fn chains(ring: &Ring) -> Option<Proved<'_>> {
    let mut game = Game::new(ring);
    let in_pass = game.prices_in_a_pass();
    if in_pass > MAX_PRICES_PER_PASS {
        return None;
    }
    let (prices, most) = match ring.reached.len() {
        ..MANY_SLOTS => (PRICE_BUDGET / 6, MAX_PASSES / 4),
        _ if ring.ranks < HALF_BUDGET_RANKS => (PRICE_BUDGET, MAX_PASSES),
        _ => (PRICE_BUDGET / 2, MAX_PASSES),
    };
    let passes = (prices / in_pass).clamp(MIN_PASSES, most);
    let mut proved = Proved::new(ring);
    let mut scale = 1.0;
    for pass in 0..passes {
        interrupt::check();
        let slower = 1.0 + pass as f64 / (HALF_STEP_SHARE * passes as f64);
        let step = STEP * scale / slower;
        let (chain, price) = game.cheapest(step)?;
        scale = (1.0 / price).min(MAX_STEP / STEP);
        let later = pass as u32 + 1;
        let sizes: Vec<usize> = chain.iter().map(|&at| game.sizes[at]).collect();
        proved.add(&sizes, later * later);
        game.learn(&sizes, step);
    }
    Some(proved)
}

/// State of the game.
struct Game<'a> {
    ring: &'a Ring,
    sizes: Vec<usize>,
    lengths: Vec<usize>,
    /// Factors 1 / (l - 1).
    shares: Vec<f64>,
    /// Weights by slot of the first half (with the middle slot) and by length.
    weights: Vec<Vec<f64>>,
    /// Gains from the last chain, by slot and length.
    gains: Vec<Vec<f64>>,
    /// Values of H for one slot, 0 from the farthest length on.
    tail: Vec<f64>,
    /// Least price of reaching each size after each slot; `before` has the index of the size
    /// before.
    costs: Vec<Vec<f64>>,
    before: Vec<Vec<usize>>,
}

impl Game<'_> {
    fn new(ring: &Ring) -> Game<'_> {
        let steps = ring.reached.len();
        let rows = steps.div_ceil(2);
        let farthest = ring.ranks / 2;
        let sizes = sizes(ring.ranks, steps);
        let lengths = lengths(farthest, steps);
        let mut costs = vec![vec![NEVER; sizes.len()]; rows + 1];
        costs[0][0] = 0.0;
        Game {
            ring,
            shares: lengths
                .iter()
                .map(|&length| 1.0 / (length - 1) as f64)
                .collect(),
            weights: vec![vec![1.0; lengths.len()]; rows],
            gains: vec![vec![0.0; lengths.len()]; rows],
            tail: vec![0.0; ring.ranks + 1],
            before: vec![vec![0; sizes.len()]; rows + 1],
            costs,
            sizes,
            lengths,
        }
    }

    /// Returns the number of slots.
    fn steps(&self) -> usize {
        self.ring.reached.len()
    }

    /// Returns an estimate of the prices that a pass computes.
    fn prices_in_a_pass(&self) -> usize {
        let sizes = self.sizes.len();
        let searched = sizes * (sizes.ilog2() as usize + 1);
        self.weights.len() * (searched + 3 * self.lengths.len() + self.ring.ranks / 8)
    }

    /// Returns the cheapest chain, as indices of sizes, and its price.
    fn cheapest(&mut self, step: f64) -> Option<(Vec<usize>, f64)> {
        let (steps, count) = (self.steps(), self.sizes.len());
        let (half, rows) = (steps / 2, self.weights.len());
        let mut sum = 0.0;
        for row in 0..rows {
            let times = if row < half { 2.0 } else { 1.0 };
            let expected = self.weights[row].iter().zip(&self.gains[row]);
            sum += times
                * expected
                    .map(|(weight, gain)| weight * (1.0 + step * gain))
                    .sum::<f64>();
        }
        for row in 0..rows {
            self.set_tail(row, step, 0.5 / sum);
            self.reach(row);
        }
        // The second half of a chain is the mirror image of a first half.
        let whole = |at: usize| self.costs[rows][at] + self.costs[half][count - 1 - at];
        let least = (0..count).min_by(|&one, &other| whole(one).total_cmp(&whole(other)))?;
        let price = whole(least);
        if price >= NEVER {
            return None;
        }
        let mut chain = vec![0; steps + 1];
        let mut at = least;
        for row in (0..=rows).rev() {
            chain[row] = at;
            at = self.before[row][at];
        }
        let mut at = count - 1 - least;
        for row in (0..=half).rev() {
            chain[steps - row] = count - 1 - at;
            at = self.before[row][at];
        }
        Some((chain, price))
    }

    /// Sets `tail` to H of a slot, times `factor`.
    fn set_tail(&mut self, row: usize, step: f64, factor: f64) {
        let mut slope = 0.0;
        for at in (0..self.lengths.len()).rev() {
            let expected = self.weights[row][at] * (1.0 + step * self.gains[row][at]);
            slope += expected * self.shares[at] * factor;
            let length = self.lengths[at];
            let shorter = if at == 0 { 0 } else { self.lengths[at - 1] };
            let beyond = self.tail[length];
            for (nearer, tail) in self.tail[shorter..length].iter_mut().rev().enumerate() {
                *tail = beyond + slope * (nearer + 1) as f64;
            }
        }
    }

    /// Returns the price of growing from one size to another in a slot.
    fn price(&self, row: usize, from: usize, to: usize) -> f64 {
        let growth = Growth::new(
            self.ring.ranks,
            self.sizes[from],
            self.sizes[to],
            self.ring.reached[row],
        );
        let side = |gap: usize| self.tail[gap] - self.tail[gap + growth.most];
        match growth.gaps {
            [0, _] | [_, 0] => NEVER,
            [one, other] if one == other => 2.0 * side(one),
            [one, other] => side(one) + side(other),
        }
    }

    /// Computes the least prices of all sizes after a slot from those before it; the best size
    /// before rises with the size.
    fn reach(&mut self, row: usize) {
        let count = self.sizes.len();
        let mut costs = std::mem::take(&mut self.costs[row + 1]);
        let mut before = std::mem::take(&mut self.before[row + 1]);
        costs.fill(NEVER);
        // A chain grows in every slot, so that its size before this slot has an index of at least
        // `row`. Each entry holds a range of sizes and the range of sizes before.
        let mut open = vec![(row + 1..count, row..count)];
        while let Some((to, from)) = open.pop() {
            if to.is_empty() {
                continue;
            }
            let middle = to.start.midpoint(to.end);
            let mut least = (NEVER, from.start);
            for at in from.start..from.end.min(middle) {
                let price = self.costs[row][at] + self.price(row, at, middle);
                if price < least.0 {
                    least = (price, at);
                }
            }
            (costs[middle], before[middle]) = least;
            // An unreachable middle says nothing of the other sizes.
            let (low, high) = match least.0 < NEVER {
                true => (from.start..least.1 + 1, least.1..from.end),
                false => (from.clone(), from),
            };
            open.push((to.start..middle, low));
            open.push((middle + 1..to.end, high));
        }
        (self.costs[row + 1], self.before[row + 1]) = (costs, before);
    }

    /// Raises the weights by the gains from a chain and its mirror image.
    fn learn(&mut self, chain: &[usize], step: f64) {
        let steps = self.steps();
        for gains in &mut self.gains {
            gains.fill(0.0);
        }
        for (at, pair) in chain.windows(2).enumerate() {
            let row = at.min(steps - 1 - at);
            let growth = Growth::new(self.ring.ranks, pair[0], pair[1], self.ring.reached[at]);
            let part = if 2 * row + 1 == steps { 0.5 } else { 0.25 };
            for (gain, &length) in self.gains[row].iter_mut().zip(&self.lengths) {
                *gain += part * growth.twice_count(length) as f64;
            }
        }
        let mut greatest = 0.0;
        for (weights, gains) in self.weights.iter_mut().zip(&mut self.gains) {
            for ((weight, gain), share) in weights.iter_mut().zip(gains).zip(&self.shares) {
                *gain *= share;
                *weight *= weight_factor(step * *gain);
                greatest = if *weight > greatest {
                    *weight
                } else {
                    greatest
                };
            }
        }
        let part = 1.0 / greatest;
        for weight in self.weights.iter_mut().flatten() {
            *weight = (*weight * part).max(MIN_WEIGHT);
        }
    }
}
