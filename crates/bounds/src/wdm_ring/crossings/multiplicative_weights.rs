//! Chains and weights for [`super::links`]: a game for two.
//!
//! One side picks a slot s and a length l >= 2, the other side a chain. The first gets count_s(l) / (l - 1). If chains are
//! picked with probabilities that let it get v at most, whatever it picks, weights N / v in all fulfil (*) of [`super`].
//! So the second side wants v to be small, which is a linear programme over flows from p_0 = 1 to p_S = N - 1.
//!
//! **Multiplicative weights** (Arora, Hazan and Kale, Theory of Computing 2012) play it. The first side has a weight for each (s, l), at first the
//! same for all. In each pass the second side answers with the cheapest chain at these weights, and each weight rises by what (s, l) got. Steps
//! shrink from pass to pass, and later chains count more. The weights expect the last gain once more. All is symmetric under
//! s -> S + 1 - s with p -> N - p, so that half of the slots are enough.
//!
//! **The cheapest chain.** Let H(t) be the sum over l > t of the weight of (s, l) over l - 1, times l - t. A growth with gaps g, g'
//! costs (H(g) - H(g + m) + H(g') - H(g' + m)) / 2 in slot s. H is convex and falls, so that where k_s does not count, the price of a growth from p to q is a convex
//! function of q - p and a concave one of p + q: of p < p', q < q' it is cheaper to go from p to q and from p' to q' than the other way round. So the best p
//! rises with q, and a slot takes K log K prices for K sizes. (Where k_s counts, a chain may be found that is not the cheapest. It
//! is a chain all the same.)
//!
//! **Sizes and lengths.** Odd p for even N; for odd N odd ones below N / 2 and even ones above. Steps between sizes grow in
//! proportion up to a fraction of N / S, which is how far chains go in a slot on average. Lengths become 8 % longer from one to the next; what is
//! proved is checked for all.
//!
//! Only + - * / and comparisons of floating-point numbers are used, which are the same on all machines.

use super::{Growth, Proved, Ring};
use opticoll_base::interrupt;

/// A price that is never paid.
const NEVER: f64 = 1e300;

/// Prices that are computed in all passes together, about: some 40 ms; half as many on larger rings, where others take time as well.
const PRICES: usize = 10_000_000;
const LARGE: usize = 2048;

/// Fewer slots need fewer passes, and coarser sizes and lengths.
const FEW: usize = 6;

/// Passes, whatever they cost.
const FEWEST_PASSES: usize = 40;
const MOST_PASSES: usize = 2000;

/// How far weights rise in the first pass, in units of the price of the cheapest chain, and after which part of the passes half as far.
const STEP: f64 = 0.3;
const SLOWER: f64 = 0.1;

/// The most that a weight may rise by, as the exponent of a gain of 1.
const STEEPEST: f64 = 8.0;

/// Weights below this part of the greatest are kept there.
const LEAST_WEIGHT: f64 = 1e-30;

/// Where a pass takes more prices, the game is not worth the wait.
const MOST_PRICES: usize = 120_000;

/// Sizes of neighbourhoods, with N - p for every p.
fn sizes(ranks: usize, steps: usize) -> Vec<usize> {
    let longest = (ranks / (6 * steps)).max(1);
    // Chains of many slots grow in small steps for long.
    let part = match steps {
        ..FEW => 10,
        FEW..24 => 16,
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
    let mut all: Vec<usize> = sizes.iter().copied().chain(mirrored).collect();
    all.dedup();
    all
}

/// Lengths from 2 to the farthest.
fn lengths(farthest: usize, steps: usize) -> Vec<usize> {
    let growth = if steps < FEW { 27 } else { 26 };
    let longer = |length: &usize| {
        let next = (length + 1).max(length * growth / 25).min(farthest);
        (*length < farthest).then_some(next)
    };
    std::iter::successors(Some(2), longer).collect()
}

/// A factor by which a weight rises: near e^x, for x >= 0.
fn raised(by: f64) -> f64 {
    let quarter = 1.0 + 0.25 * by;
    let half = quarter * quarter;
    half * half
}

/// The chains that were picked, or nothing where a pass takes too long or no chain grows in every slot.
pub(super) fn chains(ring: &Ring) -> Option<Proved<'_>> {
    let mut game = Game::new(ring);
    let in_pass = game.prices_in_a_pass();
    if in_pass > MOST_PRICES {
        return None;
    }
    let (prices, most) = match ring.reached.len() {
        ..FEW => (PRICES / 6, MOST_PASSES / 4),
        _ if ring.ranks < LARGE => (PRICES, MOST_PASSES),
        _ => (PRICES / 2, MOST_PASSES),
    };
    let passes = (prices / in_pass).clamp(FEWEST_PASSES, most);
    let mut proved = Proved::new(ring);
    let mut scale = 1.0;
    for pass in 0..passes {
        interrupt::check();
        let slower = 1.0 + pass as f64 / (SLOWER * passes as f64);
        let step = STEP * scale / slower;
        let (chain, price) = game.cheapest(step)?;
        scale = (1.0 / price).min(STEEPEST / STEP);
        let later = pass as u32 + 1;
        let sizes: Vec<usize> = chain.iter().map(|&at| game.sizes[at]).collect();
        proved.add(&sizes, later * later);
        game.learn(&sizes, step);
    }
    Some(proved)
}

struct Game<'a> {
    ring: &'a Ring,
    sizes: Vec<usize>,
    lengths: Vec<usize>,
    /// 1 / (l - 1).
    shares: Vec<f64>,
    /// By slot of the first half (and the middle) and by length.
    weights: Vec<Vec<f64>>,
    /// The same: what the last chain gave.
    gains: Vec<Vec<f64>>,
    /// H of a slot, 0 from the farthest length on.
    tail: Vec<f64>,
    /// By slot and size: the least price of getting there, and the place of the size before.
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

    fn steps(&self) -> usize {
        self.ring.reached.len()
    }

    fn prices_in_a_pass(&self) -> usize {
        let sizes = self.sizes.len();
        let searched = sizes * (sizes.ilog2() as usize + 1);
        self.weights.len() * (searched + 3 * self.lengths.len() + self.ring.ranks / 8)
    }

    /// The cheapest chain, as places of sizes, and its price.
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
        // The second half is the mirror image of a first half.
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

    /// H of a slot, times a factor.
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

    /// The price of growing from one size to another in a slot.
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

    /// The least prices of all sizes after a slot, from those before it. The best size before rises with the size.
    fn reach(&mut self, row: usize) {
        let count = self.sizes.len();
        let mut costs = std::mem::take(&mut self.costs[row + 1]);
        let mut before = std::mem::take(&mut self.before[row + 1]);
        costs.fill(NEVER);
        // A chain grows in every slot, so that it is at size number `row` at least. Each entry: sizes, and sizes before.
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
            // Where there is no way to the middle, it says nothing of others.
            let (low, high) = match least.0 < NEVER {
                true => (from.start..least.1 + 1, least.1..from.end),
                false => (from.clone(), from),
            };
            open.push((to.start..middle, low));
            open.push((middle + 1..to.end, high));
        }
        (self.costs[row + 1], self.before[row + 1]) = (costs, before);
    }

    /// Raises weights by what a chain and its mirror image give.
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
                *gain += part * growth.twice(length) as f64;
            }
        }
        let mut greatest = 0.0;
        for (weights, gains) in self.weights.iter_mut().zip(&mut self.gains) {
            for ((weight, gain), share) in weights.iter_mut().zip(gains).zip(&self.shares) {
                *gain *= share;
                *weight *= raised(step * *gain);
                greatest = if *weight > greatest {
                    *weight
                } else {
                    greatest
                };
            }
        }
        let part = 1.0 / greatest;
        for weight in self.weights.iter_mut().flatten() {
            *weight = (*weight * part).max(LEAST_WEIGHT);
        }
    }
}
