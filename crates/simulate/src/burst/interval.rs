//! 95 % confidence interval of the burst loss.
//!
//! The result is the union of two intervals:
//!
//! - The exact interval of a binomial variable (Clopper and Pearson, The use of confidence or
//!   fiducial limits, 1934). It is valid even if no burst was lost: its upper end is then at most
//!   3.7 / n for n bursts. However, it assumes independent losses, and losses cluster while a link
//!   is full.
//! - Batch means: the mean loss of the batches, plus or minus t s / sqrt(k). Here k is the number
//!   of batches, s is the standard deviation of their losses, and t is a quantile of Student's
//!   distribution with k - 1 degrees of freedom. Batches are long compared with the time for which
//!   a link stays full, so this interval includes the clustering of losses. It is useless if most
//!   batches have no losses.

use super::special::{beta, inverse};

/// Probability that the true value is below or above the interval.
const ERROR_PROBABILITY: f64 = 0.05;

/// Returns the lower and the upper end of the interval of the loss. Each batch is given by its
/// number of bursts and its number of lost bursts.
pub fn interval(batches: &[(u64, u64)]) -> (f64, f64) {
    let offered: u64 = batches.iter().map(|(offered, _)| offered).sum();
    let lost: u64 = batches.iter().map(|(_, lost)| lost).sum();
    let (low, high) = binomial(offered, lost);
    match batch_means(batches) {
        None => (low, high),
        Some(half) => {
            let loss = lost as f64 / offered as f64;
            (
                low.min((loss - half).max(0.0)),
                high.max((loss + half).min(1.0)),
            )
        }
    }
}

fn binomial(offered: u64, lost: u64) -> (f64, f64) {
    let (n, x) = (offered as f64, lost as f64);
    let low = match lost {
        0 => 0.0,
        _ => inverse(|p| beta(x, n - x + 1.0, p), ERROR_PROBABILITY / 2.0),
    };
    let high = match lost == offered {
        true => 1.0,
        false => inverse(|p| beta(x + 1.0, n - x, p), 1.0 - ERROR_PROBABILITY / 2.0),
    };
    (low, high)
}

/// Returns half the width of the interval by batch means; `None` for fewer than two batches.
fn batch_means(batches: &[(u64, u64)]) -> Option<f64> {
    let losses: Vec<f64> = batches
        .iter()
        .filter(|(offered, _)| *offered > 0)
        .map(|(offered, lost)| *lost as f64 / *offered as f64)
        .collect();
    half_width(&losses)
}

/// Returns half the width of the interval of the mean of independent values, by Student's t; `None`
/// for fewer than two values.
pub(super) fn half_width(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    Some(student(count - 1.0) * (squares / (count - 1.0) / count).sqrt())
}

/// Returns the t for which P(|T| > t) is 5 %, where T has Student's distribution with v = `freedom`
/// degrees of freedom: P(|T| > t) = I_y(v/2, 1/2) at y = v / (v + t^2).
fn student(freedom: f64) -> f64 {
    let y = inverse(|y| beta(freedom / 2.0, 0.5, y), ERROR_PROBABILITY);
    (freedom * (1.0 - y) / y).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_tables() {
        let close = |got: f64, expected: f64, error: f64, what: &str| {
            assert!((got - expected).abs() <= error, "{what}: {got}, {expected}");
        };
        for (freedom, t) in [
            (1.0, 12.7062),
            (4.0, 2.7764),
            (30.0, 2.0423),
            (120.0, 1.9799),
        ] {
            close(student(freedom), t, 5e-5, "Student");
        }
        // No lost burst of n: (1 - p)^n = 0.025. Only lost bursts: p^n = 0.025.
        close(binomial(10, 0).1, 1.0 - 0.025f64.powf(0.1), 1e-9, "0 of 10");
        close(binomial(10, 10).0, 0.025f64.powf(0.1), 1e-9, "10 of 10");
        // Five of ten, from a table of Clopper and Pearson's interval.
        close(binomial(10, 5).0, 0.1871, 5e-5, "5 of 10");
        close(binomial(10, 5).1, 0.8129, 5e-5, "5 of 10");
        // Four events of a Poisson variable: 1.0899 to 10.2416.
        close(binomial(400_000_000, 4).0 * 4e8, 1.0899, 5e-4, "4 of 4e8");
        close(binomial(400_000_000, 4).1 * 4e8, 10.2416, 5e-4, "4 of 4e8");
    }

    #[test]
    fn the_wider_interval_holds() {
        let even = [(1000, 10); 8];
        assert_eq!(interval(&even), binomial(8000, 80));
        let uneven = [(1000, 0), (1000, 40)];
        assert!(interval(&uneven).1 > 2.0 * binomial(2000, 40).1);
    }
}
