//! Lower bound on the time of an all_reduce in S slots. Ranks gather sums of contributions, and
//! every sum must reach all ranks.
//!
//! N ranks have k ports each, q = 1 + k, and [`super::pieces`] defines the times T and m. Let A be
//! the least number of transfers of a byte in any all_reduce of S slots. Then T >= m A / N, because
//! N ranks receive at the same time.
//!
//! **Both halves** (theorem A1). A >= 2 (N - 1).
//!
//! **Passing** (theorem A7). A slot s divides the slots into two parts. Let e be the number of
//! transfers that a rank receives in slots j <= s or sends in slots j > s. The rank gathers the
//! contributions of at most h ranks up to slot s, and its sum reaches at most r ranks after slot s.
//! h = min(N, 1 + H), where H is the sum of q^(j - 1) over the transfers that the rank receives. r
//! = min(N, 1 + R), where R is the sum of q^(S - j) over the transfers that the rank sends. g(e) is
//! the greatest product h r of a rank with e transfers. The mean of g(e) over all ranks must be at
//! least N. A / N is at least the least mean of e under this condition. To find this minimum, two
//! values of e are enough. The bound is the maximum over s.

use super::VectorInSlots;
use opticoll_base::units::{Time, UnitError};

/// Maximum number of ports per rank for which the bound "passing" is computed. With more ports, a
/// plan needs few slots, and the number of transfers e takes too many values.
const MAX_PORTS: u64 = 16;

/// Returns a lower bound on the time of an all_reduce of `vector`: the minimum over all numbers of
/// slots. `None` if no number of slots is possible.
pub(crate) fn time(vector: &VectorInSlots) -> Result<Option<Time>, UnitError> {
    let (ranks, ports) = (vector.ranks, vector.ports);
    let both_halves = 2.0 * (ranks - 1) as f64 / ranks as f64;
    let growth = super::growth(ranks, ports);
    vector.least(vector.stretched(both_halves), |slots| {
        if slots < growth {
            return None;
        }
        // A plan of twice the least number of slots may gather first and distribute afterwards.
        Some(match ports > MAX_PORTS || slots >= 2 * growth {
            true => both_halves,
            false => both_halves.max(passing(ranks, ports, slots)),
        })
    })
}

/// Returns the bound "passing" (theorem A7) on the mean number of transfers of a byte per rank.
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

/// Returns the maximum number of ranks whose contributions a rank has after e transfers in `slots`
/// slots, indexed by e. The list ends with the first e that reaches all ranks.
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

/// Chooses an index e for each rank such that the mean of `gains[e]` over all ranks is at least
/// `wanted`. Returns the least possible mean of e, or 0 if every gain is less than `wanted`.
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
        // No plan has so few slots. The caller uses the bound "both halves" instead.
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{passing, reached};

    #[test]
    fn transfers_of_the_last_slot_bring_most_contributions() {
        // Three slots of two ports: the rank's own contribution, then 9 per transfer, 3 per
        // transfer, and 1 per transfer.
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
        // With one more slot, 2 + (d - 3) / 2 transfers per rank are enough: 3.5 for 64 ranks.
        let least = passing(64, 1, 7);
        assert!((2.7..=3.5).contains(&least), "{least}");
    }
}
