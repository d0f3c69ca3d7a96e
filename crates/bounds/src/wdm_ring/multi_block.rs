//! Bounds on slots and time from relay trees, if a lightpath may carry any number of blocks. In the
//! first slots, ranks have data of few blocks, so that a lightpath carries few blocks.
//!
//! Before slot s, a rank has data of at most n_s ranks: n_1 = 1, n_(s+1) = min(N, (1 + r) n_s). A
//! lightpath of slot s therefore carries data of at most n_s ranks, whatever the number of its
//! bytes. G(p) is the least price of a relay tree ([`super::price`]).
//!
//! **spread** (theorem R9). If N G(p) > 2cN (p_1 n_1 + ... + p_S n_S) for some prices p, no plan
//! has S slots.
//!
//! **Links in S slots** (theorem R11). For any prices q, the following length may replace C_S(N) in
//! the bound on time:
//!
//! ```text
//! G(q) - 2c sum of max(0, q_s - free) n_s,  free = 1 of an all_gather, N / n_s of an all_reduce
//! ```
//!
//! [`length`] searches for good prices. For an all_reduce, C_S(N) + N - 1 may replace C_S(N) as
//! well.

use super::memo::Memo;
use super::price::{LastSteps, certificate};
use opticoll_base::interrupt;

/// Maximum number of ranks times slots for which prices are searched.
const MAX_WORK: u64 = 50_000;

/// Integer that represents the price 1.
pub const PART: u64 = 16;

/// Returns, for each slot, the maximum number of ranks whose data a rank has before the slot.
pub(super) fn block_limits(ranks: u32, intake: u64) -> impl Iterator<Item = u64> {
    let ranks = u64::from(ranks);
    let grow = move |limit: &u64| Some(limit.saturating_mul(1 + intake).min(ranks));
    std::iter::successors(Some(1), grow)
}

/// Returns the least number of slots, from `known` on, that `spread` does not exclude. `channels`
/// counts both directions. `intake` is the maximum number of lightpaths that a rank receives in a
/// slot.
pub fn least_steps(ranks: u32, channels: u64, intake: u64, known: u64) -> u64 {
    let find = || find_least_steps(ranks, channels, intake, known);
    STEPS.get((ranks, channels, intake, known), find)
}

fn find_least_steps(ranks: u32, channels: u64, intake: u64, known: u64) -> u64 {
    let refuted = |steps: &u64| {
        let supply = block_limits(ranks, intake).map(|limit| limit.saturating_mul(channels));
        let supply: Vec<u64> = supply.take(*steps as usize).collect();
        u64::from(ranks) * steps <= MAX_WORK && certificate(ranks, &supply).is_some()
    };
    (known..).find(|steps| !refuted(steps)).unwrap_or(known)
}

/// Cached values of [`least_steps`], keyed by its arguments.
static STEPS: Memo<(u32, u64, u64, u64), u64> = Memo::new();
/// Cached values of [`length`], keyed by its arguments.
static LENGTHS: Memo<(u32, u64, u64, u64, Followed), Option<PricedLength>> = Memo::new();

/// Data whose relay trees are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Followed {
    /// Blocks, which are never combined. Prices up to 1 are free.
    Blocks,
    /// Contributions, which ranks combine. Prices up to N / n_s are free; `block_limits` returns
    /// n_s.
    Contributions,
}

/// Length of relay trees at some prices: the difference `tree` - `paid`. Both fields are multiplied
/// by [`PART`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedLength {
    /// Least price of a relay tree.
    pub tree: u64,
    /// Cost of the prices above the free prices.
    pub paid: u64,
}

/// Searches for the prices at which the length of relay trees, minus the cost of prices above the
/// free prices, is greatest. In the bound on time of plans of `steps` slots, this difference may
/// replace C_S(N). `None` if `ranks` times `steps` exceeds `MAX_WORK`, or if a price grows too
/// high.
pub fn length(
    ranks: u32,
    channels: u64,
    intake: u64,
    steps: u64,
    followed: Followed,
) -> Option<PricedLength> {
    if u64::from(ranks) * steps > MAX_WORK {
        return None;
    }
    let find = || find_length(ranks, channels, intake, steps, followed);
    LENGTHS.get((ranks, channels, intake, steps, followed), find)
}

fn find_length(
    ranks: u32,
    channels: u64,
    intake: u64,
    steps: u64,
    followed: Followed,
) -> Option<PricedLength> {
    let block_limits: Vec<u64> = block_limits(ranks, intake).take(steps as usize).collect();
    let free = |limit: &u64| match followed {
        Followed::Blocks => PART,
        Followed::Contributions => u64::from(ranks) * PART / limit,
    };
    let free: Vec<u64> = block_limits.iter().map(free).collect();
    // Only the first slots are scarce; all other slots have the free price.
    let scarce = block_limits
        .iter()
        .filter(|&&limit| limit < u64::from(ranks))
        .count();
    let (free, last_steps) = free.split_at(scarce);
    let last_steps = LastSteps::new(ranks, last_steps)?;
    let mut prices = free.to_vec();
    for _ in 0..PASSES {
        for step in 0..scarce {
            raise(
                &last_steps,
                &mut prices,
                step,
                free[step],
                block_limits[step] * channels,
            )?;
        }
    }
    let dearer = prices.iter().zip(free).zip(&block_limits);
    let paid = dearer.map(|((price, free), limit)| (price - free) * limit * channels);
    Some(PricedLength {
        tree: last_steps.cheapest(&prices)?,
        paid: paid.sum(),
    })
}

/// Number of times that the search sets the price of each scarce slot.
const PASSES: usize = 2;

/// Raises the price of slot `step` until the load of the slot in a cheapest tree falls to its
/// `supply`. The difference `tree` - `paid` of [`PricedLength`] is a concave function of each
/// price, and rises while the load exceeds the supply.
fn raise(
    last_steps: &LastSteps,
    prices: &mut [u64],
    step: usize,
    free: u64,
    supply: u64,
) -> Option<()> {
    let mut is_short = |price: u64| {
        interrupt::check();
        prices[step] = price;
        Some(last_steps.loads(prices)?[step] > supply)
    };
    let (mut low, mut high) = (free, free);
    while is_short(high)? {
        low = high;
        high = high.checked_mul(2).filter(|&high| high < 1 << 28)?;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        match is_short(middle)? {
            true => low = middle,
            false => high = middle,
        }
    }
    // If trees with different loads cost the same, the load may fall to the supply at either price.
    let mut gain = |price: u64| {
        prices[step] = price;
        Some(
            last_steps
                .cheapest(prices)?
                .saturating_sub((price - free) * supply),
        )
    };
    let best_price = if gain(low)? >= gain(high)? { low } else { high };
    prices[step] = best_price;
    Some(())
}
