//! Relay-tree bound of a broadcast, in which every byte must leave the root (theorem R11).
//!
//! At most r lightpaths leave the root in a slot. From slot s on a byte spreads along a relay tree
//! of the slots s, ..., S, which costs at least V_s(p) ([`super::price`]). So for any prices 0 <=
//! p_s <= 1 the bound on time may replace C_S(N) by
//!
//! ```text
//! min over s of V_s(p) + (1 - p_s) 2cN / r
//! ```
//!
//! All prices 1 give C_S(N), and all prices 0 give 2cN / r: bytes that leave late have a costly
//! tree, and not all bytes can leave early. Backwards the same holds for a reduce.
//!
//! **Prices.** A higher price of a slot raises all V_s before it. So the search sets prices from
//! the last slot backwards, each the highest with which the term of its slot still reaches a
//! length, and bisection finds the length. The returned bound follows from the prices alone.

use super::memo::Memo;
use super::price::backwards;
use opticoll_base::interrupt;

/// Whole number that stands for the price 1.
const UNIT_PRICE: u64 = 1 << 12;

/// Maximum N times S for the search for prices.
const MAX_WORK: u64 = 20_000;

/// Number of bisection steps.
const ROUNDS: u32 = 9;

/// Known values of [`length`] by its arguments.
static LENGTHS: Memo<(u32, u64, u64, u64, u64), u64> = Memo::new();

/// Returns the length that may replace C_S(N) = `cost` for a broadcast or reduce in `steps` slots,
/// rounded down; at most `intake` lightpaths leave a rank in a slot.
pub fn length(ranks: u32, channels: u64, intake: u64, steps: u64, cost: u64) -> u64 {
    if u64::from(ranks) * steps > MAX_WORK || intake == 0 {
        return cost;
    }
    let root_bound = RootBound {
        ranks,
        steps,
        each: channels * u64::from(ranks) / intake,
    };
    let find = || root_bound.longest(cost);
    LENGTHS.get((ranks, channels, intake, steps, cost), find)
}

/// Broadcast whose prices are searched.
struct RootBound {
    ranks: u32,
    steps: u64,
    /// Length 2cN / r.
    each: u64,
}

impl RootBound {
    /// Returns the greatest length found, from `cost` on.
    fn longest(&self, cost: u64) -> u64 {
        let (mut low, mut high) = (cost, 2 * cost + 1);
        for _ in 0..ROUNDS {
            let middle = low.midpoint(high);
            match self.reaches(middle * UNIT_PRICE) {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    /// Returns whether prices were found with which the terms of all slots reach `length`.
    fn reaches(&self, length: u64) -> bool {
        let mut later = backwards::nothing(self.ranks);
        (0..self.steps).all(|_| {
            interrupt::check();
            let Some(price) = self.highest_price(&later, length) else {
                return false;
            };
            backwards::step(price, &mut later);
            true
        })
    }

    /// Returns V_s + (1 - p_s) 2cN / r, given the differences of V_(s+1) in `later`.
    fn term(&self, later: &[u64], price: u64) -> u64 {
        let mut differences = later.to_vec();
        backwards::step(price, &mut differences);
        backwards::cost(&differences).saturating_add((UNIT_PRICE - price) * self.each)
    }

    /// Returns the highest price with which the term reaches `length`; the term is concave in the
    /// price.
    fn highest_price(&self, later: &[u64], length: u64) -> Option<u64> {
        if self.term(later, UNIT_PRICE) >= length {
            return Some(UNIT_PRICE);
        }
        let (mut low, mut high) = (0, UNIT_PRICE);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let term = self.term(later, middle);
            let rises = || self.term(later, middle + 1) > term;
            match term >= length || rises() {
                true => low = middle,
                false => high = middle,
            }
        }
        (self.term(later, low) >= length).then_some(low)
    }
}
