//! Special functions for confidence intervals. They use `libm`, so that their results are identical
//! on every machine.

use libm::{exp, lgamma, log};

/// Returns the regularised incomplete beta function I_x(a, b). It is the probability that a
/// variable with the beta distribution of parameters a and b is at most x.
///
/// For small x, the function evaluates the continued fraction (Abramowitz and Stegun, Handbook of
/// Mathematical Functions, 26.5.8) by Lentz's method. For larger x, it uses I_x(a, b) = 1 -
/// I_(1-x)(b, a).
pub(super) fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x);
    if x < (a + 1.0) / (a + b + 2.0) {
        exp(front.min(0.0)) * fraction(a, b, x) / a
    } else {
        1.0 - exp(front.min(0.0)) * fraction(b, a, 1.0 - x) / b
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guarded = |value: f64| match value {
        small if small < TINY && small > -TINY => TINY,
        other => other,
    };
    let mut c = 1.0;
    let mut d = 1.0 / guarded(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    for m in 1..1_000_000u32 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / guarded(1.0 + coefficient * d);
            c = guarded(1.0 + coefficient / c);
            change = c * d;
            product *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    product
}

/// Returns the x from 0 to 1 at which `increasing` has the given value, by bisection.
pub(super) fn inverse(increasing: impl Fn(f64) -> f64, value: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Use a relative tolerance, so that small results have as many digits as large results.
    while high - low > 1e-13 * high && high > 1e-300 {
        let middle = 0.5 * (low + high);
        match increasing(middle) < value {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_agree_with_tables() {
        let close = |got: f64, expected: f64, what: &str| {
            let error = (got - expected).abs() / expected.abs().max(1e-300);
            assert!(error < 1e-12, "{what}: {got} instead of {expected}");
        };
        // I_x(1, b) = 1 - (1 - x)^b; I_x(a, 1) = x^a; I_x(2, 2) = x^2 (3 - 2 x).
        close(beta(1.0, 5.0, 0.2), 1.0 - 0.8f64.powi(5), "beta 1 b");
        close(beta(7.0, 1.0, 0.9), 0.9f64.powi(7), "beta a 1");
        close(beta(2.0, 2.0, 0.3), 0.09 * 2.4, "beta 2 2");
        close(inverse(|x| x * x, 1e-20), 1e-10, "inverse");
    }
}
