//! Relay trees with any number of blocks per lightpath: limits of the blocks of a lightpath in the
//! first slots, and the bounds on slots and time that follow.
//!
//! Before slot s a rank has something of at most n_s ranks: n_1 = 1, n_(s+1) = min(N, (1 + r) n_s).
//! So a lightpath of slot s carries something of at most n_s ranks, however many bytes it carries.
//! G(p) is the least price of a relay tree ([`super::price`]).
//!
//! **spread** (theorem R9). If N G(p) > 2cN (p_1 n_1 + ... + p_S n_S) for some prices p, no plan
//! has S slots.
//!
//! **Links in S slots** (theorem R11). For any prices q the bound on time may replace C_S(N) by
//!
//! ```text
//! G(q) - 2c sum of max(0, q_s - free) n_s,  free = 1 of an all_gather, N / n_s of an all_reduce
//! ```
//!
//! [`length`] searches for good prices. For an all_reduce C_S(N) + N - 1 is another replacement.

use super::memo::Memo;
use super::price::{LastSteps, certificate};
use opticoll_base::interrupt;

/// Maximum N times S for the search for prices.
const MAX_WORK: u64 = 50_000;

/// Unit of prices: the price 1 is this whole number.
pub const PART: u64 = 16;

/// Returns n_1, n_2, ...: the maximum number of ranks of which a rank has something before each
/// slot.
pub(super) fn held(ranks: u32, intake: u64) -> impl Iterator<Item = u64> {
    let ranks = u64::from(ranks);
    let grow = move |held: &u64| Some(held.saturating_mul(1 + intake).min(ranks));
    std::iter::successors(Some(1), grow)
}

/// Returns the least S from `known` on that *spread* does not refute. `channels` counts both
/// directions, `intake` the lightpaths that a rank receives in a slot.
pub fn least_steps(ranks: u32, channels: u64, intake: u64, known: u64) -> u64 {
    let find = || find_least_steps(ranks, channels, intake, known);
    STEPS.get((ranks, channels, intake, known), find)
}

/// Computes [`least_steps`].
fn find_least_steps(ranks: u32, channels: u64, intake: u64, known: u64) -> u64 {
    let refuted = |steps: &u64| {
        let supply = held(ranks, intake).map(|held| held.saturating_mul(channels));
        let supply: Vec<u64> = supply.take(*steps as usize).collect();
        u64::from(ranks) * steps <= MAX_WORK && certificate(ranks, &supply).is_some()
    };
    (known..).find(|steps| !refuted(steps)).unwrap_or(known)
}

/// Known values of [`least_steps`] by ranks, channels, intake and `known`.
static STEPS: Memo<(u32, u64, u64, u64), u64> = Memo::new();
/// Known values of [`length`] by its arguments.
static LENGTHS: Memo<(u32, u64, u64, u64, Followed), Option<PricedLength>> = Memo::new();

/// Data that are followed along relay trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Followed {
    /// Blocks, which stay apart: prices up to 1 are free.
    Blocks,
    /// Contributions, which are combined on the way: prices up to N / n_s are free.
    Contributions,
}

/// Terms G(q) and 2c sum of max(0, q_s - free) n_s of a length, both times [`PART`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedLength {
    /// Least price of a relay tree.
    pub tree: u64,
    /// Cost of the prices above the free ones.
    pub paid: u64,
}

/// Returns the terms of the greatest G(q) - 2c sum of max(0, q_s - free) n_s found for S slots,
/// which may replace C_S(N) in the bound on time; `None` if N S exceeds `MAX_WORK` or prices grow
/// too high.
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

/// Computes [`length`].
fn find_length(
    ranks: u32,
    channels: u64,
    intake: u64,
    steps: u64,
    followed: Followed,
) -> Option<PricedLength> {
    let held: Vec<u64> = held(ranks, intake).take(steps as usize).collect();
    let free = |held: &u64| match followed {
        Followed::Blocks => PART,
        Followed::Contributions => u64::from(ranks) * PART / held,
    };
    let free: Vec<u64> = held.iter().map(free).collect();
    // Only the first slots are scarce; the prices of the others stay free.
    let scarce = held.iter().filter(|&&held| held < u64::from(ranks)).count();
    let (free, others) = free.split_at(scarce);
    let others = LastSteps::new(ranks, others)?;
    let mut prices = free.to_vec();
    for _ in 0..PASSES {
        for step in 0..scarce {
            raise(
                &others,
                &mut prices,
                step,
                free[step],
                held[step] * channels,
            )?;
        }
    }
    let dearer = prices.iter().zip(free).zip(&held);
    let paid = dearer.map(|((price, free), held)| (price - free) * held * channels);
    Some(PricedLength {
        tree: others.cheapest(&prices)?,
        paid: paid.sum(),
    })
}

/// Number of times that the price of each scarce slot is set.
const PASSES: usize = 2;

/// Raises the price of a slot until the load of the slot in a cheapest tree falls to its supply.
/// The difference in [`length`] is concave in each price, and rises while the load exceeds the
/// supply.
fn raise(
    others: &LastSteps,
    prices: &mut [u64],
    step: usize,
    free: u64,
    supply: u64,
) -> Option<()> {
    let mut is_short = |price: u64| {
        interrupt::check();
        prices[step] = price;
        Some(others.loads(prices)?[step] > supply)
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
    // If trees of several loads cost the same, the load may fall at either price.
    let mut gain = |price: u64| {
        prices[step] = price;
        Some(
            others
                .cheapest(prices)?
                .saturating_sub((price - free) * supply),
        )
    };
    let better = if gain(low)? >= gain(high)? { low } else { high };
    prices[step] = better;
    Some(())
}
