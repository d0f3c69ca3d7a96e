//! The least priced length of a relay tree.
//!
//! Let a link-channel of step t = 1..S cost p_t >= 0, and let G(p) be the least priced length of a
//! relay tree: a lightpath of length l used in step t costs p_t l, and a rank forwards only in
//! later steps than the one in which it received. All prices 1 give the plain length: G(1, ..., 1)
//! = C_S(N).
//!
//! V_t(n) is the least price of filling a gap of n ranks between two holders in steps t, ..., S
//! (theorem R8):
//!
//! ```text
//! L_t(0) = 0,  L_t(x) = p_t x + min over 0 <= y < x of L_t(y) + V_(t+1)(x - y - 1)
//! M_t(n) = min over 0 <= x <= n of L_t(x) + V_(t+1)(n - x)
//! V_t(n) = min over 0 <= x <= n of L_t(x) + M_t(n - x),      V_(S+1)(0) = 0, else infinite
//! G(p)   = V_1(N - 1)
//! ```
//!
//! All of these are convex, so that each step merges differences in rising order: G(p) takes O(S
//! N) steps. Following each difference back to the prices that it is made of gives the load of
//! every step in a cheapest tree, which says where prices should rise.

use opticoll_base::interrupt;

/// The difference to what cannot be reached: more than any price that is computed with.
const UNREACHED: u64 = u64::MAX / 8;

/// Where a difference of a merged function comes from.
#[derive(Debug, Clone, Copy)]
enum From {
    One(u32),
    Other(u32),
}

/// The first differences of two convex functions, merged in rising order.
fn merge(one: &[u64], other: &[u64], into: &mut [u64], from: &mut [From]) {
    let (mut first, mut second) = (0, 0);
    for (into, from) in into.iter_mut().zip(from) {
        if one[first] <= other[second] {
            (*into, *from) = (one[first], From::One(first as u32));
            first += 1;
        } else {
            (*into, *from) = (other[second], From::Other(second as u32));
            second += 1;
        }
    }
}

/// What one step adds: the differences of V_t, and where all come from.
struct StepGain {
    one_end: Vec<From>,
    with_one_end: Vec<From>,
    filled: Vec<From>,
}

impl StepGain {
    /// From the differences of V_(t+1), which become those of V_t.
    fn new(price: u64, later: &mut [u64]) -> StepGain {
        interrupt::check();
        let count = later.len();
        let mut one_end = vec![price; count];
        let mut one_end_from = vec![From::One(0); count];
        let (mut first, mut second) = (0, 0);
        for x in 1..count {
            let (least, from) = if one_end[first] <= later[second] {
                first += 1;
                (one_end[first - 1], From::One(first as u32 - 1))
            } else {
                second += 1;
                (later[second - 1], From::Other(second as u32 - 1))
            };
            one_end[x] = (price + least).min(UNREACHED);
            one_end_from[x] = from;
        }
        let mut with_one_end = vec![0; count];
        let mut with_one_end_from = vec![From::One(0); count];
        merge(&one_end, later, &mut with_one_end, &mut with_one_end_from);
        let mut filled_from = vec![From::One(0); count];
        merge(&one_end, &with_one_end, later, &mut filled_from);
        StepGain {
            one_end: one_end_from,
            with_one_end: with_one_end_from,
            filled: filled_from,
        }
    }

    /// The length of lightpaths in this step, given how often each difference of V_t is part of the
    /// whole, which becomes the same for V_(t+1).
    fn load(&self, uses: &mut [u64]) -> u64 {
        interrupt::check();
        let count = uses.len();
        let mut of_one_end = vec![0; count];
        let mut of_with_one_end = vec![0; count];
        for (uses, from) in uses.iter_mut().zip(&self.filled) {
            match *from {
                From::One(at) => of_one_end[at as usize] += *uses,
                From::Other(at) => of_with_one_end[at as usize] += *uses,
            }
            *uses = 0;
        }
        for (times, from) in of_with_one_end.iter().zip(&self.with_one_end) {
            match *from {
                From::One(at) => of_one_end[at as usize] += times,
                From::Other(at) => uses[at as usize] += times,
            }
        }
        let mut load = 0;
        for x in (0..count).rev() {
            let times = of_one_end[x];
            load += times;
            match self.one_end[x] {
                _ if x == 0 => {}
                From::One(at) => of_one_end[at as usize] += times,
                From::Other(at) => uses[at as usize] += times,
            }
        }
        load
    }
}

/// V_t from the last step on, as differences.
pub(super) mod backwards {
    use super::{StepGain, UNREACHED};

    /// V_(S+1): nothing is reached.
    pub(crate) fn nothing(ranks: u32) -> Vec<u64> {
        vec![UNREACHED; ranks.saturating_sub(1) as usize]
    }

    /// From V_(t+1) to V_t with the price of step t.
    pub(crate) fn step(price: u64, later: &mut [u64]) {
        StepGain::new(price, later);
    }

    /// V_t(N - 1); the most there is where no tree reaches all ranks.
    pub(crate) fn cost(differences: &[u64]) -> u64 {
        match differences.last() {
            Some(&last) if last >= UNREACHED => u64::MAX,
            _ => differences.iter().sum(),
        }
    }
}

/// The most that prices may add up to.
const MOST_IN_ALL: u64 = 1 << 32;

/// The prices of the last steps, which stay as they are while those of the first steps change.
pub(super) struct LastSteps {
    /// The differences of V_t, where t is the first of these steps.
    differences: Vec<u64>,
    /// The sum of their prices.
    total: u64,
}

impl LastSteps {
    /// `None` where prices add up to more than [`MOST_IN_ALL`], or there are no ranks.
    pub(super) fn new(ranks: u32, prices: &[u64]) -> Option<LastSteps> {
        let total = sum_of(prices)?;
        let mut differences = vec![UNREACHED; ranks.checked_sub(1)? as usize];
        for price in prices.iter().rev() {
            StepGain::new(*price, &mut differences);
        }
        Some(LastSteps { differences, total })
    }

    /// The first steps of a cheapest tree at such prices, backwards, and the price of the whole tree; `None` where no tree reaches all
    /// ranks, or prices add up to more than [`MOST_IN_ALL`].
    fn tree(&self, first: &[u64]) -> Option<(Vec<StepGain>, u64)> {
        sum_of(first)?
            .checked_add(self.total)
            .filter(|&total| total <= MOST_IN_ALL)?;
        let mut differences = self.differences.clone();
        let backwards = first.iter().rev();
        let steps = backwards.map(|price| StepGain::new(*price, &mut differences));
        let steps: Vec<StepGain> = steps.collect();
        if differences.last().is_some_and(|last| *last >= UNREACHED) {
            return None;
        }
        Some((steps, differences.iter().sum()))
    }

    /// G(p), where the first steps have such prices; `None` as for [`cheapest`].
    pub(super) fn cheapest(&self, first: &[u64]) -> Option<u64> {
        self.tree(first).map(|(_, price)| price)
    }

    /// The total length of lightpaths in each of the first steps of a cheapest tree; `None` as for [`cheapest`].
    pub(super) fn loads(&self, first: &[u64]) -> Option<Vec<u64>> {
        let (backwards, _) = self.tree(first)?;
        let mut uses = vec![1; self.differences.len()];
        let steps = backwards.iter().rev();
        Some(steps.map(|step| step.load(&mut uses)).collect())
    }
}

/// The sum of prices, where it is no more than [`MOST_IN_ALL`].
fn sum_of(prices: &[u64]) -> Option<u64> {
    let total = prices.iter().try_fold(0u64, |sum, p| sum.checked_add(*p));
    total.filter(|&total| total <= MOST_IN_ALL)
}

/// G(p): the least priced length of a relay tree of `prices.len()` steps on a ring of `ranks`;
/// `None` where no tree reaches all ranks (no steps), or where prices are beyond 2^32 in all.
pub fn cheapest(ranks: u32, prices: &[u64]) -> Option<u64> {
    LastSteps::new(ranks, &[])?.cheapest(prices)
}

/// The total length of lightpaths in every step of a cheapest tree, whose priced sum is G(p); `None`
/// as for [`cheapest`].
pub fn loads(ranks: u32, prices: &[u64]) -> Option<Vec<u64>> {
    LastSteps::new(ranks, &[])?.loads(prices)
}

/// Whether a tree for each block costs more at these prices than all that there is in each step:
/// `supply` link-channels for every rank.
fn exceeds(ranks: u32, supply: &[u64], prices: &[u64]) -> bool {
    let each = supply.iter().zip(prices);
    let worth: u128 = each
        .map(|(supply, price)| u128::from(*supply) * u128::from(*price))
        .sum();
    cheapest(ranks, prices).is_some_and(|least| u128::from(least) > worth)
}

/// Prices at which a tree costs more than the `supply` of all steps, if any are found in some rounds of
/// adjustment: steps that the cheapest tree loads beyond their supply become dearer, others cheaper
/// (multiplicative weights; Arora, Hazan and Kale, Theory of Computing 2012). What is found is checked
/// by [`exceeds`].
pub(super) fn certificate(ranks: u32, supply: &[u64]) -> Option<Vec<u64>> {
    let least = supply.iter().copied().min()?.max(1) as f64;
    let most = supply.iter().copied().max()?.max(1) as f64;
    // Scarce steps are dear from the beginning.
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

/// Rounds of adjustment, and the mean price.
const ROUNDS: u32 = 60;
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
