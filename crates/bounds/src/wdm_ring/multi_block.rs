//! Relay trees where lightpaths carry any number of blocks: how few blocks a lightpath can have in the first
//! slots, and what follows for slots and time.
//!
//! Before slot s a rank has something of at most n_s ranks: n_1 = 1, and n_(s+1) <= (1 + r) n_s, since it
//! takes in r lightpaths at most in a slot, each from a rank with something of n_s; n_s <= N. So a lightpath
//! of slot s carries something of at most n_s ranks, however many bytes it carries.
//!
//! **spread.** In an all_gather, an all_to_all, an all_reduce and a barrier something of every rank u reaches
//! all others: the lightpaths by which ranks first get something of u form a relay tree (see
//! [`super::relay_tree`]). With prices p_s >= 0 it costs at least G(p) (see [`super::price`]). A lightpath
//! of slot s is in the trees of n_s ranks at most, and all lightpaths of a slot together have length 2cN at
//! most. N G(p) > 2cN (p_1 n_1 + ... + p_S n_S) for some p hence refutes S slots, whatever the
//! lightpaths carry. A reduce_scatter backwards is such a collective.
//!
//! **Time of an all_gather** (and, backwards, of a reduce_scatter) of blocks of d bytes. Let b_s d be the
//! bytes of the longest lightpath of slot s. Bytes by which ranks first get a byte of a block are all
//! different on a lightpath, so that b_s <= n_s may be supposed: more of it is of no use. For every byte of a
//! block follow its tree: N d G(q) <= q_1 2cN b_1 d + ... + q_S 2cN b_S d. For any prices q >= 0
//!
//! ```text
//! sum of b_s = sum of q_s b_s - sum of (q_s - 1) b_s >= G(q) / 2c - sum of max(0, q_s - 1) n_s
//! ```
//!
//! All prices 1 give C_S(N) / 2c. Blocks are few in the first slots, so that dearer first slots give more.
//! Where blocks of a reduce_scatter differ by a byte, they are M / N in the mean, and the last sum counts with the
//! larger ones.
//!
//! **Time of an all_reduce** of M bytes, d = M / N. A lightpath of slot s that carries b_s M bytes has
//! something of n_s ranks for each of them at most, and b_s <= 1 may be supposed. For every byte and every
//! rank that contributes to it follow the tree of that contribution: N M G(q) <= sum of q_s 2cN b_s M n_s.
//! With y_s = n_s b_s <= n_s, and b_s N = y_s N / n_s:
//!
//! ```text
//! N sum of b_s >= G(q) / 2c - sum of max(0, q_s - N / n_s) n_s
//! ```
//!
//! Both are G(q) / 2c less what prices above *free* ones, 1 or N / n_s, cost: [`length`] finds good prices.
//!
//! **Both halves of an all_reduce.** Follow one byte, and let t be the first slot after which some rank v has
//! all contributions to it. The lightpaths by which each rank's contribution gets on towards v for the last
//! time form a tree to v within t slots: length C_t(N) at least, and in slot t they end at v. Every other
//! rank w gets something for the last time that makes its byte complete, in slot t or later: in a later
//! slot than the lightpaths of that tree, or in slot t and not at v. These N - 1 lightpaths are none of the
//! tree's, and each has a link at least: C_t(N) + N - 1 >= C_S(N) + N - 1 links for every byte.

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
