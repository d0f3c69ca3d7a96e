//! Lower bound on the time of an all_reduce in S slots: every sum that is gathered must be spread.
//!
//! N ranks have k ports each; q = 1 + k; times as in [`super::pieces`]. Let A be the least number
//! of transfers of a byte in any all_reduce of S slots. Then T >= m A / N, since N ranks receive.
//!
//! **Both halves** (theorem A1). A >= 2 (N - 1).
//!
//! **Passing** (theorem A7). Cut the slots after slot s. For e transfers of a rank let g(e) be the
//! greatest h r, with h, r <= N, h <= 1 + the sum of q^(j - 1) over the transfers that the rank
//! receives in slots j <= s, and r <= 1 + the sum of q^(S - j) over those that it sends in slots
//! j > s. Then A / N is at least the least mean of numbers e with which the mean of g(e) is N; a
//! mixture of two numbers gives it. The bound is the maximum over s.

use super::VectorInSlots;
use opticoll_base::units::{Time, UnitError};

/// Maximum number of ports per rank for the bound "passing". With more ports few slots are enough,
/// and the numbers of transfers to try are too many.
const MAX_PORTS: u64 = 16;

/// Returns the minimum time of an all_reduce of a vector.
///
/// # Errors
/// A time beyond 64 bits.
pub(crate) fn time(vector: &VectorInSlots) -> Result<Option<Time>, UnitError> {
    let (ranks, ports) = (vector.ranks, vector.ports);
    let both_halves = 2.0 * (ranks - 1) as f64 / ranks as f64;
    let growth = super::growth(ranks, ports);
    vector.least(vector.stretched(both_halves), |slots| {
        if slots < growth {
            return None;
        }
        // A plan of twice the least number of slots may gather first and spread afterwards.
        Some(match ports > MAX_PORTS || slots >= 2 * growth {
            true => both_halves,
            false => both_halves.max(passing(ranks, ports, slots)),
        })
    })
}

/// Returns the greatest bound "passing" on A / N over all cuts.
fn passing(ranks: u64, ports: u64, slots: u64) -> f64 {
    let rank_count = ranks as f64;
    let cuts = (0..=slots).map(|cut| {
        let (before, after) = (
            reached(ranks, ports, cut),
            reached(ranks, ports, slots - cut),
        );
        let mut gains = vec![0.0; before.len() + after.len() - 1];
        for (received, heard) in before.iter().enumerate() {
            for (sent, told) in after.iter().enumerate() {
                gains[received + sent] = f64::max(gains[received + sent], heard * told);
            }
        }
        least_mean(&gains, rank_count)
    });
    cuts.fold(0.0, f64::max)
}

/// Returns, for e = 0, 1, 2, ... transfers that a rank receives in `slots` slots, the maximum
/// number of ranks whose contributions it then has. The list ends with the first e that reaches all
/// ranks.
fn reached(ranks: u64, ports: u64, slots: u64) -> Vec<f64> {
    let rank_count = ranks as f64;
    let mut reached = vec![1.0];
    let mut most = 1.0;
    for slot in (0..slots).rev() {
        let each = f64::min(rank_count, ((1 + ports) as f64).powi(slot as i32));
        for _ in 0..ports {
            if most >= rank_count {
                return reached;
            }
            most = f64::min(rank_count, most + each);
            reached.push(most);
        }
    }
    reached
}

/// Returns the least mean of indices e, one for each rank, for which the mean of `gains[e]` is at
/// least `wanted`; 0 if every gain is less than `wanted`.
fn least_mean(gains: &[f64], wanted: f64) -> f64 {
    let mut least = f64::INFINITY;
    for (few, low) in gains.iter().enumerate() {
        if *low >= wanted {
            least = least.min(few as f64);
            continue;
        }
        for (many, high) in gains
            .iter()
            .enumerate()
            .filter(|(_, high)| **high >= wanted)
        {
            let share = (wanted - low) / (high - low);
            least = least.min(few as f64 + (many as f64 - few as f64) * share);
        }
    }
    match least.is_finite() {
        true => least,
        // No plan has so few slots. The caller takes the maximum with the bound "both halves".
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{passing, reached};

    #[test]
    fn who_hears_of_most_receives_last() {
        // Three slots of two ports: one contribution at first, then 9 twice, 3 twice, 1 twice.
        let expected = [1.0, 10.0, 19.0, 22.0, 25.0, 26.0, 27.0];
        assert_eq!(reached(1000, 2, 3), expected);
        assert_eq!(reached(20, 2, 3), [1.0, 10.0, 19.0, 20.0]);
    }

    #[test]
    fn recursive_doubling_has_the_fewest_transfers_in_the_fewest_slots() {
        // 2^d ranks in d slots: every rank must receive in every slot.
        for dimensions in 1..8 {
            let least = passing(1 << dimensions, 1, dimensions);
            assert!(
                (least - dimensions as f64).abs() < 1e-9,
                "{dimensions}: {least}"
            );
        }
        // With one more slot 2 + (d - 3) / 2 transfers per rank are enough, by one halving: 3.5 for
        // 64 ranks.
        let least = passing(64, 1, 7);
        assert!((2.7..=3.5).contains(&least), "{least}");
    }
}
