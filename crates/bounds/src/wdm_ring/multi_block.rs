//! Relay trees where lightpaths carry any number of blocks: how few blocks a lightpath can have in
//! the first slots, and what follows for slots and time.
//!
//! Before slot s a rank has something of at most n_s ranks: n_1 = 1, n_(s+1) = min(N, (1 + r)
//! n_s). So a lightpath of slot s carries something of at most n_s ranks, however many bytes it
//! carries. G(p) is the least price of a relay tree ([`super::price`]).
//!
//! **spread** (theorem R9). N G(p) > 2cN (p_1 n_1 + ... + p_S n_S) for some prices p refutes S
//! slots.
//!
//! **Links in S slots** (theorem R11). In place of C_S(N) the bound on time may take, for any
//! prices q,
//!
//! ```text
//! G(q) - 2c sum of max(0, q_s - free) n_s,  free = 1 of an all_gather, N / n_s of an all_reduce
//! ```
//!
//! [`length`] finds good prices. Of an all_reduce C_S(N) + N - 1 may take its place, too.

use super::memo::Memo;
use super::price::{LastSteps, certificate};
use opticoll_base::interrupt;

/// More N times S than this are not worth the wait.
const MOST_WORK: u64 = 50_000;

/// Prices are whole numbers of one part in so many.
pub const PART: u64 = 16;

/// n_1, n_2, ...: of how many ranks a rank has something before each slot at most.
fn held(ranks: u32, intake: u64) -> impl Iterator<Item = u64> {
    let ranks = u64::from(ranks);
    let grow = move |held: &u64| Some(held.saturating_mul(1 + intake).min(ranks));
    std::iter::successors(Some(1), grow)
}

/// The least S from `known` on that *spread* does not refute, for `channels` channels over both directions and ranks
/// that take in so many lightpaths.
pub fn least_steps(ranks: u32, channels: u64, intake: u64, known: u64) -> u64 {
    let find = || find_least_steps(ranks, channels, intake, known);
    STEPS.to((ranks, channels, intake, known), find)
}

fn find_least_steps(ranks: u32, channels: u64, intake: u64, known: u64) -> u64 {
    let refuted = |steps: &u64| {
        let supply = held(ranks, intake).map(|held| held.saturating_mul(channels));
        let supply: Vec<u64> = supply.take(*steps as usize).collect();
        u64::from(ranks) * steps <= MOST_WORK && certificate(ranks, &supply).is_some()
    };
    (known..).find(|steps| !refuted(steps)).unwrap_or(known)
}

/// By ranks, channels, intake and the steps that are known to be needed.
static STEPS: Memo<(u32, u64, u64, u64), u64> = Memo::new();
/// By ranks, channels, intake, steps and what is followed.
static LENGTHS: Memo<(u32, u64, u64, u64, Followed), Option<PricedLength>> = Memo::new();

/// What is followed along relay trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Followed {
    /// Blocks that stay apart: a price of 1 is free.
    Blocks,
    /// Contributions that are combined on the way: N / n_s is free.
    Contributions,
}

/// G(q), and 2c sum of max(0, q_s - free) n_s for what is to be taken from it, both times [`PART`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedLength {
    /// The least price of a relay tree.
    pub tree: u64,
    /// What prices above free ones cost.
    pub paid: u64,
}

/// The greatest G(q) - 2c sum of max(0, q_s - free) n_s that is found for S slots, which may replace
/// C_S(N) in the bound on time; `None` where it is not worth the wait.
pub fn length(
    ranks: u32,
    channels: u64,
    intake: u64,
    steps: u64,
    followed: Followed,
) -> Option<PricedLength> {
    if u64::from(ranks) * steps > MOST_WORK {
        return None;
    }
    let find = || find_length(ranks, channels, intake, steps, followed);
    LENGTHS.to((ranks, channels, intake, steps, followed), find)
}

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
    // Only the first steps are scarce. The others stay free.
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

/// How often the price of each scarce step is set anew.
const PASSES: usize = 2;

/// Sets the price of a step where its load in a cheapest tree falls to what there is of it: the difference in
/// [`length`] is concave in each price, and rises as long as the load is more.
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
    // Where trees of several loads cost the same, the load may fall at either price.
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
