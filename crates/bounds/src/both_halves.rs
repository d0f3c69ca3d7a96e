//! What an all_reduce takes at least in so many slots: what is gathered must be spread.
//!
//! N ranks of k ports; q = 1 + k; time as in [`super::pieces`]. With A the least number of
//! transfers of a byte in any all_reduce of S slots, T >= m A / N, for N ranks receive.
//!
//! **Both** (theorem A1). A >= 2 (N - 1).
//!
//! **Passing** (theorem A7). Cut the slots after slot s. With g(e) the greatest h r, each N at
//! most, of e transfers of a rank, where h <= 1 + the sum of q^(j - 1) over what it receives up to
//! slot s, and r <= 1 + the sum of q^(S - j) over what it sends later, the mean of e over the
//! ranks is at least that of two numbers of transfers, mixed such that the mean of g is N. The
//! greatest over s counts.

use super::VectorInSlots;
use opticoll_base::units::{Time, UnitError};

/// With more ports few slots are enough in any case, and there are too many numbers of transfers.
const MOST_PORTS: u64 = 16;

/// The least time of an all_reduce of a vector.
///
/// # Errors
/// A time beyond 64 bits.
pub(crate) fn time(vector: &VectorInSlots) -> Result<Option<Time>, UnitError> {
    let (ranks, ports) = (vector.ranks, vector.ports);
    let both = 2.0 * (ranks - 1) as f64 / ranks as f64;
    let growth = super::growth(ranks, ports);
    vector.least(vector.stretched(both), |slots| {
        if slots < growth {
            return None;
        }
        // In twice the least number of slots halves that follow one another are enough.
        Some(match ports > MOST_PORTS || slots >= 2 * growth {
            true => both,
            false => both.max(passing(ranks, ports, slots)),
        })
    })
}

/// The greatest bound on A / N over all cuts.
fn passing(ranks: u64, ports: u64, slots: u64) -> f64 {
    let all = ranks as f64;
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
        least_mean(&gains, all)
    });
    cuts.fold(0.0, f64::max)
}

/// The most ranks that are heard of by so many transfers of the last of so many slots, none, one, two and so on.
fn reached(ranks: u64, ports: u64, slots: u64) -> Vec<f64> {
    let all = ranks as f64;
    let mut reached = vec![1.0];
    let mut most = 1.0;
    for slot in (0..slots).rev() {
        let each = f64::min(all, ((1 + ports) as f64).powi(slot as i32));
        for _ in 0..ports {
            if most >= all {
                return reached;
            }
            most = f64::min(all, most + each);
            reached.push(most);
        }
    }
    reached
}

/// The least mean of numbers with which the mean of their gains is so much; more than can be where no gain is.
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
        // No plan of so few slots exists: whoever asks for the least over slots counts no less than both halves.
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{passing, reached};

    #[test]
    fn who_hears_of_most_receives_last() {
        // Of three slots with two ports: 1, then 9 twice, 3 twice, 1 twice.
        let expected = [1.0, 10.0, 19.0, 22.0, 25.0, 26.0, 27.0];
        assert_eq!(reached(1000, 2, 3), expected);
        assert_eq!(reached(20, 2, 3), [1.0, 10.0, 19.0, 20.0]);
    }

    #[test]
    fn recursive_doubling_has_the_fewest_transfers_in_the_fewest_slots() {
        // 2^d ranks in d slots: each must receive in every slot.
        for dimensions in 1..8 {
            let least = passing(1 << dimensions, 1, dimensions);
            assert!(
                (least - dimensions as f64).abs() < 1e-9,
                "{dimensions}: {least}"
            );
        }
        // In one slot more 2 + (d - 3) / 2 are enough for each rank, by one halving: 3.5 of 64.
        let least = passing(64, 1, 7);
        assert!((2.7..=3.5).contains(&least), "{least}");
    }
}
