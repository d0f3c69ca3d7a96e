//! The relay-tree bound with a price for every step.
//!
//! Let a link-channel of step t = 1..S cost p_t >= 0, and let G(p) be the least priced length of a
//! relay tree: a lightpath of length l used in step t costs p_t l, and a rank forwards only in later
//! steps than the one in which it received. Every block needs such a tree, there are N of them, and
//! step t has 2cN link-channels. If P G(p) > 2c (p_1 + ... + p_S) for *some* p, then S steps are
//! impossible. Prices that show it are a certificate, which [`refutes`] checks in whole numbers.
//! All prices 1 give the plain bound: G(1, ..., 1) = C_S(N).
//!
//! **Dynamic program.** Lightpaths of a cheapest tree do not cross and come from the nearest holder
//! (see [`super::relay_tree`]), so the ranks not yet reached form gaps between holders, and each gap
//! is served from its two ends. Let V_t(n) be the least price of filling a gap of n ranks in steps
//! t, ..., S. In step t lightpaths of lengths x_1 < x_2 < ... leave one end and others the other
//! end; each makes a holder, and the gap falls into gaps that are filled from step t + 1 on:
//!
//! ```text
//! L_t(0) = 0,  L_t(x) = p_t x + min over 0 <= y < x of L_t(y) + V_(t+1)(x - y - 1)
//! M_t(n) = min over 0 <= x <= n of L_t(x) + V_(t+1)(n - x)
//! V_t(n) = min over 0 <= x <= n of L_t(x) + M_t(n - x),      V_(S+1)(0) = 0, else infinite
//! G(p)   = V_1(N - 1)
//! ```
//!
//! The last line is the ring cut open at the root, which is the holder at both ends.

/// More than any price that is computed with.
const UNREACHED: u64 = u64::MAX / 4;

/// G(p): the least priced length of a relay tree of `prices.len()` steps on a ring of `ranks`;
/// `None` where no tree reaches all ranks (no steps), or where prices are beyond 2^32 in all.
pub fn cheapest(ranks: u32, prices: &[u64]) -> Option<u64> {
    let total = prices.iter().try_fold(0u64, |sum, p| sum.checked_add(*p))?;
    if total > 1 << 32 || ranks == 0 {
        return None;
    }
    let count = ranks as usize;
    let mut filled_later = vec![UNREACHED; count];
    filled_later[0] = 0;
    for &price in prices.iter().rev() {
        let mut one_end = vec![0; count];
        for reach in 1..count {
            let before = (0..reach).map(|y| one_end[y] + filled_later[reach - y - 1]);
            let least = before.min().unwrap_or(UNREACHED);
            one_end[reach] = (least + price * reach as u64).min(UNREACHED);
        }
        let with_one_end = least_sums(&one_end, &filled_later);
        filled_later = least_sums(&one_end, &with_one_end);
    }
    let least = filled_later[count - 1];
    (least < UNREACHED).then_some(least)
}

/// Whether these prices prove that an all_gather of blocks of one chunk cannot take so few steps
/// (one price per step) with `channels` channels over both directions.
pub fn refutes(ranks: u32, channels: u64, prices: &[u64]) -> bool {
    let supply: u128 = prices.iter().map(|price| u128::from(*price)).sum();
    cheapest(ranks, prices).is_some_and(|least| u128::from(least) > supply * u128::from(channels))
}

/// result[n] = min over x of one[x] + other[n - x].
fn least_sums(one: &[u64], other: &[u64]) -> Vec<u64> {
    (0..one.len())
        .map(|n| {
            let sums = (0..=n).map(|x| one[x] + other[n - x]);
            sums.min().unwrap_or(UNREACHED).min(UNREACHED)
        })
        .collect()
}
