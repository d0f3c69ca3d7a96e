//! The relay-tree bound of a broadcast, where every byte must leave the root (theorem R11).
//!
//! At most r lightpaths leave the root in a slot, and from slot s on a byte spreads along a relay
//! tree of the slots s, ..., S, which costs V_s(p) at least ([`super::price`]). So for any prices
//! 0 <= p_s <= 1 C_S(N) may be replaced by
//!
//! ```text
//! min over s of V_s(p) + (1 - p_s) 2cN / r
//! ```
//!
//! All prices 1 give C_S(N), and all prices 0 give 2cN / r: what leaves late has a costly tree,
//! and not everything can leave early. Backwards the same holds for a reduce.
//!
//! **Prices.** A higher price of a slot raises all V_s before it. So prices are set from the last
//! slot backwards, each the highest with which its own term still reaches a length, and the length
//! is found by halving. What is returned follows from the prices alone.

use super::memo::Memo;
use super::price::backwards;
use opticoll_base::interrupt;

/// The price 1.
const ONE: u64 = 1 << 12;

/// More N times S than this are not worth the wait.
const MOST_WORK: u64 = 20_000;

/// Times that the length is halved.
const ROUNDS: u32 = 9;

/// By ranks, channels, intake, steps and C_S(N).
static LENGTHS: Memo<(u32, u64, u64, u64, u64), u64> = Memo::new();

/// What C_S(N) may be replaced by for a broadcast or reduce in so many slots, rounded down, where that is `cost`; at
/// most `intake` lightpaths leave a rank.
pub fn length(ranks: u32, channels: u64, intake: u64, steps: u64, cost: u64) -> u64 {
    if u64::from(ranks) * steps > MOST_WORK || intake == 0 {
        return cost;
    }
    let leaving = Leaving {
        ranks,
        steps,
        each: channels * u64::from(ranks) / intake,
    };
    let find = || leaving.longest(cost);
    LENGTHS.to((ranks, channels, intake, steps, cost), find)
}

struct Leaving {
    ranks: u32,
    steps: u64,
    /// 2cN / r.
    each: u64,
}

impl Leaving {
    /// The greatest length that is found to be reached, from `cost` on.
    fn longest(&self, cost: u64) -> u64 {
        let (mut low, mut high) = (cost, 2 * cost + 1);
        for _ in 0..ROUNDS {
            let middle = low.midpoint(high);
            match self.reaches(middle * ONE) {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    /// Whether prices are found with which the terms of all slots reach a length.
    fn reaches(&self, length: u64) -> bool {
        let mut later = backwards::nothing(self.ranks);
        (0..self.steps).all(|_| {
            interrupt::check();
            let Some(price) = self.highest(&later, length) else {
                return false;
            };
            backwards::step(price, &mut later);
            true
        })
    }

    /// V_s + (1 - p_s) 2cN / r, given what comes later.
    fn term(&self, later: &[u64], price: u64) -> u64 {
        let mut own = later.to_vec();
        backwards::step(price, &mut own);
        backwards::cost(&own).saturating_add((ONE - price) * self.each)
    }

    /// The highest price with which the term reaches a length; the term is concave in the price.
    fn highest(&self, later: &[u64], length: u64) -> Option<u64> {
        if self.term(later, ONE) >= length {
            return Some(ONE);
        }
        let (mut low, mut high) = (0, ONE);
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
