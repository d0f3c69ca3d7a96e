//! Search for the chains and weights of [`super::links`] as a game of two players.
//!
//! Player one picks a slot s and a length l >= 2, and player two picks a chain. Player one wins
//! count_s(l) / (l - 1). Suppose that player two picks chains with such probabilities that player
//! one wins at most v, whatever player one picks. Scaled to the sum N / v, these probabilities
//! fulfil (*) of [`super`]. Player two therefore minimises v, which is a linear program over flows
//! from p_0 = 1 to p_S = N - 1.
//!
//! **Multiplicative weights** (Arora, Hazan and Kale, Theory of Computing 2012) play the game.
//! Player one has a weight for each (s, l); at first all weights are equal. In each pass, player
//! two answers with the chain that is cheapest at these weights. The weight of each (s, l) then
//! rises exponentially with the win against this chain. The rises shrink from pass to pass, and
//! later chains get greater weights w_j. The weights count the last win twice (optimistic steps).
//! The game is symmetric under s -> S + 1 - s with p -> N - p, so that half of the slots are
//! enough.
//!
//! **Cheapest chain.** For a slot s, let H(t) be the sum over l > t of (weight of (s, l)) (l - t) /
//! (l - 1). A growth with g and g' costs (H(g) - H(g + m) + H(g') - H(g' + m)) / 2 in slot s. H is
//! convex and falls. If k_s does not limit m, the price of a growth from p to q is a convex
//! function of q - p and a concave function of p + q. For p < p' and q < q', the growths from p to
//! q and from p' to q' together therefore cost no more than the growths from p to q' and from p' to
//! q. The best p rises with q, so that a slot needs K log K prices for K sizes. If k_s limits m,
//! the search may miss the cheapest chain; its result is still a chain.
//!
//! **Sizes and lengths.** The sizes p are odd for even N. For odd N, they are odd below N / 2 and
//! even above. Steps between sizes grow in proportion to the size, up to a fraction of N / S, which
//! is the mean growth of a chain in a slot. Each length is 4 % longer than the previous length (8 %
//! for few slots); the bound is checked for all lengths.
//!
//! Only + - * / and comparisons of numbers are used, so that all machines compute the same results.

use super::{Growth, Proved, Ring};
use opticoll_base::interrupt;

/// Price of a growth in which one end of the neighbourhood does not move.
const NEVER: f64 = 1e300;

/// Maximum number of prices that all passes together compute, about 40 ms of work. Rings with
/// [`HALF_BUDGET_RANKS`] or more ranks get half of this number, because other parts of their search
/// are slow, too.
const PRICE_BUDGET: usize = 10_000_000;
const HALF_BUDGET_RANKS: usize = 2048;

/// Number of slots from which on the search makes all passes, and takes small steps between sizes
/// and between lengths.
const MANY_SLOTS: usize = 6;

const MIN_PASSES: usize = 40;
const MAX_PASSES: usize = 2000;

/// Initial exponent by which a weight rises if the win equals the price of the cheapest chain.
const STEP: f64 = 0.3;
/// Share of all passes after which the exponent [`STEP`] is halved.
const HALF_STEP_SHARE: f64 = 0.1;

/// Maximum exponent by which a win of 1 raises a weight.
const MAX_STEP: f64 = 8.0;

/// Minimum quotient of a weight and the greatest weight.
const MIN_WEIGHT: f64 = 1e-30;

/// Maximum number of prices per pass. Rings that need more prices are not searched.
const MAX_PRICES_PER_PASS: usize = 120_000;

/// Returns the sizes of neighbourhoods to try, in ascending order. If the list has a size p, it
/// also has the size N - p.
fn sizes(ranks: usize, steps: usize) -> Vec<usize> {
    let longest = (ranks / (6 * steps)).max(1);
    // With many slots, chains grow little in most slots, so that sizes lie closer together.
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

/// Returns the lengths of lightpaths for which player one has weights, in links, from 2 to
/// `farthest`.
fn lengths(farthest: usize, steps: usize) -> Vec<usize> {
    let growth = if steps < MANY_SLOTS { 27 } else { 26 };
    let longer = |length: &usize| {
        let next = (length + 1).max(length * growth / 25).min(farthest);
        (*length < farthest).then_some(next)
    };
    std::iter::successors(Some(2), longer).collect()
}

/// Returns (1 + x / 4)^4 for x = `exponent`, which is close to e^x for small x >= 0.
fn weight_factor(exponent: f64) -> f64 {
    let quarter = 1.0 + 0.25 * exponent;
    let half = quarter * quarter;
    half * half
}

/// Returns the chains of player two. `None` if a pass takes too long, or if no chain grows in every
/// slot.
pub(super) fn chains(ring: &Ring) -> Option<Proved<'_>> {
    let mut game = Game::new(ring);
    let in_pass = game.prices_in_a_pass();
    if in_pass > MAX_PRICES_PER_PASS {
        return None;
    }
    let (prices, limit) = match ring.reached.len() {
        ..MANY_SLOTS => (PRICE_BUDGET / 6, MAX_PASSES / 4),
        _ if ring.ranks < HALF_BUDGET_RANKS => (PRICE_BUDGET, MAX_PASSES),
        _ => (PRICE_BUDGET / 2, MAX_PASSES),
    };
    let passes = (prices / in_pass).clamp(MIN_PASSES, limit);
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
        game.raise_weights(&sizes, step);
    }
    Some(proved)
}

/// State of the game. A row is a slot of the first half, including a middle slot.
struct Game<'a> {
    ring: &'a Ring,
    sizes: Vec<usize>,
    lengths: Vec<usize>,
    /// Factor 1 / (length - 1), indexed by index of the length.
    shares: Vec<f64>,
    /// Weights, indexed by row and then by index of the length.
    weights: Vec<Vec<f64>>,
    /// Wins against the last chain, indexed by row and then by index of the length.
    wins: Vec<Vec<f64>>,
    /// Values of the function H of the header for one slot, indexed by its argument.
    tail: Vec<f64>,
    /// Least price of a chain up to a size, indexed by number of rows before and then by index of
    /// the size. `before` has the index of the previous size of this chain.
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
            wins: vec![vec![0.0; lengths.len()]; rows],
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

    /// Returns the cheapest chain, as indices of sizes, and its price; `None` if there is no chain.
    /// `step` is the exponent by which a win of 1 raises a weight.
    fn cheapest(&mut self, step: f64) -> Option<(Vec<usize>, f64)> {
        let (steps, count) = (self.steps(), self.sizes.len());
        let (half, rows) = (steps / 2, self.weights.len());
        let mut sum = 0.0;
        for row in 0..rows {
            let times = if row < half { 2.0 } else { 1.0 };
            let expected = self.weights[row].iter().zip(&self.wins[row]);
            sum += times
                * expected
                    .map(|(weight, win)| weight * (1.0 + step * win))
                    .sum::<f64>();
        }
        for row in 0..rows {
            self.set_tail(row, step, 0.5 / sum);
            self.update_costs(row);
        }
        // The second half of a chain is the mirror image of some first half.
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

    /// Sets `tail` to the values of H for the slot `row`, times `factor`.
    fn set_tail(&mut self, row: usize, step: f64, factor: f64) {
        let mut slope = 0.0;
        for at in (0..self.lengths.len()).rev() {
            let expected = self.weights[row][at] * (1.0 + step * self.wins[row][at]);
            slope += expected * self.shares[at] * factor;
            let length = self.lengths[at];
            let shorter = if at == 0 { 0 } else { self.lengths[at - 1] };
            let tail_at_length = self.tail[length];
            for (nearer, tail) in self.tail[shorter..length].iter_mut().rev().enumerate() {
                *tail = tail_at_length + slope * (nearer + 1) as f64;
            }
        }
    }

    /// Returns the price in slot `row` of a growth between two sizes, given as indices of sizes.
    fn price(&self, row: usize, from: usize, to: usize) -> f64 {
        let growth = Growth::new(
            self.ring.ranks,
            self.sizes[from],
            self.sizes[to],
            self.ring.reached[row],
        );
        let side = |end_move: usize| self.tail[end_move] - self.tail[end_move + growth.limit];
        match growth.end_moves {
            [0, _] | [_, 0] => NEVER,
            [one, other] if one == other => 2.0 * side(one),
            [one, other] => side(one) + side(other),
        }
    }

    /// Computes the least price of every size after slot `row` from the least prices before the
    /// slot. The best previous size rises with the size, which reduces the number of prices.
    fn update_costs(&mut self, row: usize) {
        let count = self.sizes.len();
        let mut costs = std::mem::take(&mut self.costs[row + 1]);
        let mut before = std::mem::take(&mut self.before[row + 1]);
        costs.fill(NEVER);
        // A chain grows in every slot, so the index of its size before this slot is at least `row`.
        // Each entry has a range of sizes to compute, and the range that contains their best
        // previous sizes.
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
            // If no chain reaches the middle size, the other sizes keep the whole range.
            let (low, high) = match least.0 < NEVER {
                true => (from.start..least.1 + 1, least.1..from.end),
                false => (from.clone(), from),
            };
            open.push((to.start..middle, low));
            open.push((middle + 1..to.end, high));
        }
        (self.costs[row + 1], self.before[row + 1]) = (costs, before);
    }

    /// Raises the weights by the wins against `chain` and its mirror image.
    fn raise_weights(&mut self, chain: &[usize], step: f64) {
        let steps = self.steps();
        for wins in &mut self.wins {
            wins.fill(0.0);
        }
        for (at, pair) in chain.windows(2).enumerate() {
            let row = at.min(steps - 1 - at);
            let growth = Growth::new(self.ring.ranks, pair[0], pair[1], self.ring.reached[at]);
            let part = if 2 * row + 1 == steps { 0.5 } else { 0.25 };
            for (win, &length) in self.wins[row].iter_mut().zip(&self.lengths) {
                *win += part * growth.twice_count(length) as f64;
            }
        }
        let mut greatest = 0.0;
        for (weights, wins) in self.weights.iter_mut().zip(&mut self.wins) {
            for ((weight, win), share) in weights.iter_mut().zip(wins).zip(&self.shares) {
                *win *= share;
                *weight *= weight_factor(step * *win);
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
