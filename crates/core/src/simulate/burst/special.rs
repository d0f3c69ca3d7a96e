//! The functions that random draws and confidence intervals need, from the four operations, square
//! roots and halvings alone, so that every machine gets the same bits.

const LN_2: f64 = std::f64::consts::LN_2;

/// The natural logarithm of a normal number greater than 0, with an error of a few units in the
/// last place.
///
/// ln(m 2^e) = e ln 2 + 2 artanh(s) with s = (m - 1)/(m + 1) and m from sqrt(1/2) to sqrt 2, so |s| < 0.172;
/// artanh(s) = s + s^3/3 + s^5/5 + ..., of which the term in s^23 is below 2^-60 of the first.
#[inline]
pub(super) fn ln(value: f64) -> f64 {
    let bits = value.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        sum = (sum + 1.0 / odd) * square;
    }
    exponent as f64 * LN_2 + 2.0 * s * (1.0 + sum)
}

/// e^x for x <= 0; zero below -700.
///
/// e^x = (e^(x / 2^k))^(2^k), with k such that the power series of the inner one ends after a few terms.
pub(super) fn exp(value: f64) -> f64 {
    if value < -700.0 {
        return 0.0;
    }
    let halvings = (value / LN_2).round();
    let rest = value - halvings * LN_2;
    let mut sum = 1.0;
    for term in (1..=20).rev() {
        sum = 1.0 + sum * rest / f64::from(term);
    }
    sum * f64::from_bits(((1023 + halvings as i64) as u64) << 52)
}

/// ln Gamma(x) for x > 0: Stirling's series above 15, with Gamma(x + 1) = x Gamma(x) to get there.
pub(super) fn ln_gamma(x: f64) -> f64 {
    let mut shifted = x;
    let mut below = 0.0;
    while shifted < 15.0 {
        below += ln(shifted);
        shifted += 1.0;
    }
    let inverse = 1.0 / shifted;
    let square = inverse * inverse;
    let series = inverse
        * (1.0 / 12.0
            - square
                * (1.0 / 360.0
                    - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))));
    let half_ln_two_pi = 0.918_938_533_204_672_8;
    (shifted - 0.5) * ln(shifted) - shifted + half_ln_two_pi + series - below
}

/// The regularised incomplete beta function I_x(a, b): the probability that a beta variable is at most x.
///
/// By its continued fraction (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.8),
/// evaluated by Lentz's method, below the mean; above it I_x(a, b) = 1 - I_(1-x)(b, a).
pub(super) fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * ln(x) + b * ln(1.0 - x);
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

/// The x in 0..=1 at which an increasing function reaches a value, by halving.
pub(super) fn inverse(increasing: impl Fn(f64) -> f64, value: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Small answers need as many digits as large ones.
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
        for value in [1e-300, 1e-9, 0.3, 0.72, 1.5, 2.0, 1e10] {
            close(ln(value), value.ln(), "ln");
        }
        assert_eq!(ln(1.0), 0.0);
        for value in [-0.0, -1e-9, -0.5, -1.0, -20.0, -600.0] {
            close(exp(value), value.exp(), "exp");
        }
        close(ln_gamma(0.5), 0.572_364_942_924_700_1, "ln sqrt pi");
        close(ln_gamma(11.0), 15.104_412_573_075_516, "ln 10!");
        // I_x(1, b) = 1 - (1 - x)^b; I_x(a, 1) = x^a; I_x(2, 2) = x^2 (3 - 2 x).
        close(beta(1.0, 5.0, 0.2), 1.0 - 0.8f64.powi(5), "beta 1 b");
        close(beta(7.0, 1.0, 0.9), 0.9f64.powi(7), "beta a 1");
        close(beta(2.0, 2.0, 0.3), 0.09 * 2.4, "beta 2 2");
        close(inverse(|x| x * x, 1e-20), 1e-10, "inverse");
    }
}
