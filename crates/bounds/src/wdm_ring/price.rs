//! Least priced length of a relay tree.
//!
//! A channel of a link in step t = 1..S costs p_t >= 0. A lightpath of l links in step t costs p_t
//! l. A rank forwards only in later steps than the step in which it received. G(p) is the least
//! price of a relay tree. If all prices are 1, the price is the length in links: G(1, ..., 1) =
//! C_S(N).
//!
//! V_t(n) is the least price, in steps t, ..., S, of informing the n ranks of a gap between two
//! ranks that have the data (theorem R8):
//!
//! ```text
//! L_t(0) = 0,  L_t(x) = p_t x + min over 0 <= y < x of L_t(y) + V_(t+1)(x - y - 1)
//! M_t(n) = min over 0 <= x <= n of L_t(x) + V_(t+1)(n - x)
//! V_t(n) = min over 0 <= x <= n of L_t(x) + M_t(n - x),      V_(S+1)(0) = 0, else infinite
//! G(p)   = V_1(N - 1)
//! ```
//!
//! All of these functions are convex. Each step therefore merges their first differences in
//! ascending order, and G(p) takes O(S N) operations. Each difference is a sum of prices. Following
//! the differences back to these prices gives the load of every step in a cheapest tree, which
//! shows the prices to raise.

use opticoll_base::interrupt;

/// First difference at a number of ranks that no tree reaches. Exceeds any sum of prices.
const UNREACHED: u64 = u64::MAX / 8;

/// Function from which a first difference originates, and its index in that function.
#[derive(Debug, Clone, Copy)]
enum Origin {
    One(u32),
    Other(u32),
}

/// Merges the first differences of two convex functions, `one` and `other`, in ascending order into
/// `into`. `from` gets the origin of each difference.
fn merge(one: &[u64], other: &[u64], into: &mut [u64], from: &mut [Origin]) {
    let (mut first, mut second) = (0, 0);
    for (into, from) in into.iter_mut().zip(from) {
        if one[first] <= other[second] {
            (*into, *from) = (one[first], Origin::One(first as u32));
            first += 1;
        } else {
            (*into, *from) = (other[second], Origin::Other(second as u32));
            second += 1;
        }
    }
}

/// Origins of the first differences of L, M and V in one step (functions of the header).
struct StepGain {
    one_end: Vec<Origin>,
    with_one_end: Vec<Origin>,
    filled: Vec<Origin>,
}

impl StepGain {
    /// Adds this step to the steps of `later`, which has the first differences of V. `price` is the
    /// price of a channel in this step.
    fn new(price: u64, later: &mut [u64]) -> StepGain {
        interrupt::check();
        let count = later.len();
        let mut one_end = vec![price; count];
        let mut one_end_from = vec![Origin::One(0); count];
        let (mut first, mut second) = (0, 0);
        for x in 1..count {
            let (least, from) = if one_end[first] <= later[second] {
                first += 1;
                (one_end[first - 1], Origin::One(first as u32 - 1))
            } else {
                second += 1;
                (later[second - 1], Origin::Other(second as u32 - 1))
            };
            one_end[x] = (price + least).min(UNREACHED);
            one_end_from[x] = from;
        }
        let mut with_one_end = vec![0; count];
        let mut with_one_end_from = vec![Origin::One(0); count];
        merge(&one_end, later, &mut with_one_end, &mut with_one_end_from);
        let mut filled_from = vec![Origin::One(0); count];
        merge(&one_end, &with_one_end, later, &mut filled_from);
        StepGain {
            one_end: one_end_from,
            with_one_end: with_one_end_from,
            filled: filled_from,
        }
    }

    /// Returns the total length, in links, of the lightpaths in this step. `uses` counts how often
    /// a cheapest tree uses each first difference of V from this step on. The function replaces
    /// these counts by the counts for later steps.
    fn load(&self, uses: &mut [u64]) -> u64 {
        interrupt::check();
        let count = uses.len();
        let mut one_end_uses = vec![0; count];
        let mut with_one_end_uses = vec![0; count];
        for (uses, from) in uses.iter_mut().zip(&self.filled) {
            match *from {
                Origin::One(at) => one_end_uses[at as usize] += *uses,
                Origin::Other(at) => with_one_end_uses[at as usize] += *uses,
            }
            *uses = 0;
        }
        for (times, from) in with_one_end_uses.iter().zip(&self.with_one_end) {
            match *from {
                Origin::One(at) => one_end_uses[at as usize] += times,
                Origin::Other(at) => uses[at as usize] += times,
            }
        }
        let mut load = 0;
        for x in (0..count).rev() {
            let times = one_end_uses[x];
            load += times;
            match self.one_end[x] {
                _ if x == 0 => {}
                Origin::One(at) => one_end_uses[at as usize] += times,
                Origin::Other(at) => uses[at as usize] += times,
            }
        }
        load
    }
}

/// First differences of the header's function V, from the last step backwards.
pub(super) mod backwards {
    use super::{StepGain, UNREACHED};

    /// Returns the first differences of V without any steps: no rank is reached.
    pub(crate) fn nothing(ranks: u32) -> Vec<u64> {
        vec![UNREACHED; ranks.saturating_sub(1) as usize]
    }

    /// Adds a step before the steps whose first differences of V are in `later`, and updates
    /// `later`. `price` is the price of a channel in the new step.
    pub(crate) fn step(price: u64, later: &mut [u64]) {
        StepGain::new(price, later);
    }

    /// Returns the least price of a relay tree, from the first differences of V; `u64::MAX` if no
    /// tree reaches all ranks.
    pub(crate) fn cost(differences: &[u64]) -> u64 {
        match differences.last() {
            Some(&last) if last >= UNREACHED => u64::MAX,
            _ => differences.iter().sum(),
        }
    }
}

const MAX_PRICE_SUM: u64 = 1 << 32;

/// Last steps of trees, whose prices stay the same while the prices of the first steps change.
pub(super) struct LastSteps {
    /// First differences of the header's function V for the last steps, indexed by number of ranks.
    differences: Vec<u64>,
    total: u64,
}

impl LastSteps {
    /// Computes the last steps for the given prices. `None` if the sum of the prices exceeds
    /// [`MAX_PRICE_SUM`], or if there are no ranks.
    pub(super) fn new(ranks: u32, prices: &[u64]) -> Option<LastSteps> {
        let total = checked_sum(prices)?;
        let mut differences = vec![UNREACHED; ranks.checked_sub(1)? as usize];
        for price in prices.iter().rev() {
            StepGain::new(*price, &mut differences);
        }
        Some(LastSteps { differences, total })
    }

    /// Returns the first steps of a cheapest tree in reverse order, and the price of the whole
    /// tree. `first` has the prices of the first steps. `None` if no tree reaches all ranks, or if
    /// the sum of all prices exceeds [`MAX_PRICE_SUM`].
    fn tree(&self, first: &[u64]) -> Option<(Vec<StepGain>, u64)> {
        checked_sum(first)?
            .checked_add(self.total)
            .filter(|&total| total <= MAX_PRICE_SUM)?;
        let mut differences = self.differences.clone();
        let backwards = first.iter().rev();
        let steps = backwards.map(|price| StepGain::new(*price, &mut differences));
        let steps: Vec<StepGain> = steps.collect();
        if differences.last().is_some_and(|last| *last >= UNREACHED) {
            return None;
        }
        Some((steps, differences.iter().sum()))
    }

    /// Returns the least price of a relay tree, given the prices `first` of the first steps; `None`
    /// under the conditions of [`cheapest`].
    pub(super) fn cheapest(&self, first: &[u64]) -> Option<u64> {
        self.tree(first).map(|(_, price)| price)
    }

    /// Returns the total length, in links, of the lightpaths in each of the first steps of a
    /// cheapest tree. `None` under the conditions of [`cheapest`].
    pub(super) fn loads(&self, first: &[u64]) -> Option<Vec<u64>> {
        let (backwards, _) = self.tree(first)?;
        let mut uses = vec![1; self.differences.len()];
        let steps = backwards.iter().rev();
        Some(steps.map(|step| step.load(&mut uses)).collect())
    }
}

/// Returns the sum of `prices`; `None` if the sum exceeds [`MAX_PRICE_SUM`].
fn checked_sum(prices: &[u64]) -> Option<u64> {
    let total = prices.iter().try_fold(0u64, |sum, p| sum.checked_add(*p));
    total.filter(|&total| total <= MAX_PRICE_SUM)
}

/// Returns the least price of a relay tree with `prices.len()` steps on a ring of `ranks` ranks.
/// `prices` has the price of a channel in each step. `None` if no tree reaches all ranks in these
/// steps, or if the sum of the prices exceeds 2^32.
pub fn cheapest(ranks: u32, prices: &[u64]) -> Option<u64> {
    LastSteps::new(ranks, &[])?.cheapest(prices)
}

/// Returns the total length, in links, of the lightpaths in each step of the tree of [`cheapest`];
/// `None` under the same conditions.
pub fn loads(ranks: u32, prices: &[u64]) -> Option<Vec<u64>> {
    LastSteps::new(ranks, &[])?.loads(prices)
}

/// Returns whether the price of a cheapest relay tree exceeds the price of all channels per rank.
/// `supply` has the number of channels of links per rank, and `prices` has the price of a channel;
/// both are indexed by step.
fn exceeds(ranks: u32, supply: &[u64], prices: &[u64]) -> bool {
    let each = supply.iter().zip(prices);
    let supply_price: u128 = each
        .map(|(supply, price)| u128::from(*supply) * u128::from(*price))
        .sum();
    cheapest(ranks, prices).is_some_and(|least| u128::from(least) > supply_price)
}

/// Searches for prices that prove that the steps are too few: a relay tree costs more than the
/// `supply` of all steps. Multiplicative weights (Arora, Hazan and Kale, Theory of Computing 2012)
/// raise the price of steps whose load in the cheapest tree exceeds their supply, and lower all
/// other prices. [`exceeds`] checks the result. `None` if [`ROUNDS`] rounds find no such prices.
pub(super) fn certificate(ranks: u32, supply: &[u64]) -> Option<Vec<u64>> {
    let least = supply.iter().copied().min()?.max(1) as f64;
    let most = supply.iter().copied().max()?.max(1) as f64;
    // Scarce steps have a high price from the start.
    let mean = (least * most).sqrt();
    let supply_of = |step: usize| supply[step].max(1) as f64;
    let mut weights: Vec<f64> = (0..supply.len())
        .map(|step| mean / supply_of(step))
        .collect();
    let mut sums = vec![0.0; supply.len()];
    for round in 0..ROUNDS {
        let total: f64 = weights.iter().sum();
        let scale = SCALE * weights.len() as f64 / total;
        let prices: Vec<u64> = weights.iter().map(|w| (w * scale) as u64).collect();
        if exceeds(ranks, supply, &prices) {
            return Some(prices);
        }
        let loads = loads(ranks, &prices)?;
        let rate = 0.5 / (1.0 + f64::from(round)).sqrt();
        for (step, load) in loads.into_iter().enumerate() {
            let load = load as f64;
            sums[step] += load;
            let over = (load / supply_of(step) - 1.0).clamp(-1.0, 2.0);
            weights[step] = (weights[step] * (rate * over).exp()).clamp(1e-3, 1e3);
        }
        let rounds = f64::from(round + 1);
        if (0..supply.len()).all(|step| sums[step] <= rounds * supply_of(step)) {
            return None;
        }
    }
    None
}

/// Maximum number of rounds.
const ROUNDS: u32 = 60;
/// Mean of the prices.
const SCALE: f64 = 10_000.0;

#[cfg(test)]
mod tests {
    use super::{LastSteps, cheapest, loads};

    #[test]
    fn first_steps_before_known_last_steps_are_those_of_the_whole_tree() {
        let mut seed = 5u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(99);
            (seed >> 33) % below
        };
        for ranks in [1, 2, 3, 8, 33, 100] {
            for steps in 0..8 {
                let prices: Vec<u64> = (0..steps).map(|_| random(40)).collect();
                for first in 0..=steps {
                    let (first, last) = prices.split_at(first);
                    let last = LastSteps::new(ranks, last).expect("few prices");
                    let case = format!("{ranks}: {first:?}, {prices:?}");
                    assert_eq!(last.cheapest(first), cheapest(ranks, &prices), "{case}");
                    let of_first = loads(ranks, &prices).map(|loads| loads[..first.len()].to_vec());
                    assert_eq!(last.loads(first), of_first, "{case}");
                }
            }
        }
    }
}
