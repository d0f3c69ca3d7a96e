//! Relay-tree bound of a broadcast, in which every byte must leave the root (theorem R11).
//!
//! At most r lightpaths leave the root in a slot. A byte that leaves in slot s spreads along a
//! relay tree of the slots s, ..., S, which costs at least V_s(p) ([`super::price`]). For any
//! prices 0 <= p_s <= 1, the following length may therefore replace C_S(N) in the bound on time:
//!
//! ```text
//! min over s of V_s(p) + (1 - p_s) 2cN / r
//! ```
//!
//! If all prices are 1, the length is C_S(N). If all prices are 0, the length is 2cN / r. Good
//! prices lie in between: bytes that leave late have a costly tree, and not all bytes can leave
//! early. By time reversal, the same holds for a reduce.
//!
//! **Prices.** A higher price of a slot raises V_s for all earlier slots s. The search therefore
//! sets prices from the last slot backwards. Each price is the highest at which the term of its
//! slot still reaches a target length, and bisection finds the greatest target. The returned bound
//! follows from the prices alone.

use super::memo::Memo;
use super::price::backwards;
use opticoll_base::interrupt;

/// Integer that represents the price 1.
const UNIT_PRICE: u64 = 1 << 12;

/// Maximum number of ranks times slots for which prices are searched.
const MAX_WORK: u64 = 20_000;

/// Number of bisection steps.
const ROUNDS: u32 = 9;

/// Cached values of [`length`], keyed by its arguments.
static LENGTHS: Memo<(u32, u64, u64, u64, u64), u64> = Memo::new();

/// Returns a length in links, rounded down. In the bound on time of a broadcast or reduce in
/// `steps` slots, this length may replace the length `cost` of a relay tree. At most `intake`
/// lightpaths leave a rank in a slot. `channels` counts both directions.
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

struct RootBound {
    ranks: u32,
    steps: u64,
    /// Number of channels of all links in a slot, divided by the number of lightpaths that can
    /// leave the root in a slot.
    each: u64,
}

impl RootBound {
    /// Returns the greatest length that the bisection finds, at least `cost`.
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

    /// Returns whether there are prices at which the terms of all slots reach `length`.
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

    /// Returns the term of a slot in the formula of the header, for the price `price` of this slot.
    /// `later` has the first differences of V for later slots.
    fn term(&self, later: &[u64], price: u64) -> u64 {
        let mut differences = later.to_vec();
        backwards::step(price, &mut differences);
        backwards::cost(&differences).saturating_add((UNIT_PRICE - price) * self.each)
    }

    /// Returns the highest price at which the term reaches `length`; `None` if there is none. The
    /// term is a concave function of the price.
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
