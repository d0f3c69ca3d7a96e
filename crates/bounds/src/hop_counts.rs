//! Maximum number of ranks h hops away from a rank, over some configurations (theorem A4).
//!
//! A rank has d ports. Over P configurations, at most C(h + P - 1, h) d^h routes of h hops begin at
//! a rank. If the configurations have S slots in all, the number of routes is at most d^h times the
//! coefficient of x^h in the product over j of (1 + x + ... + x^k_j). The numbers k_j sum up to S
//! and differ by at most 1.

/// Returns the least total number of hops from one rank to `ranks` other ranks, if at most
/// `routes(h)` of them are h hops away.
pub fn least_hops(ranks: u128, routes: impl Fn(u64) -> u128) -> u128 {
    let (mut remaining, mut total, mut hops) = (ranks, 0, 0);
    while remaining > 0 {
        hops += 1;
        let count = routes(hops).clamp(1, remaining);
        total += count * u128::from(hops);
        remaining -= count;
    }
    total
}

/// Returns the number of ways to assign the `hops` consecutive hops of a route to `configurations`
/// consecutive configurations: the binomial coefficient C(`hops` + `configurations` - 1, `hops`).
/// `u128::MAX` if the number exceeds 128 bits.
pub fn hop_orders(hops: u64, configurations: u64) -> u128 {
    let fewer = hops.min(configurations - 1);
    let total = u128::from(hops) + u128::from(configurations) - 1;
    let mut routes = 1u128;
    for factor in 1..=u128::from(fewer) {
        let Some(product) = routes.checked_mul(total - u128::from(fewer) + factor) else {
            return u128::MAX;
        };
        routes = product / factor;
    }
    routes
}

/// Returns the least total number of hops from one rank to `ranks` other ranks. Plans have `slots`
/// slots with at most `configurations` configurations. `None` if the slots are too few to reach all
/// ranks.
pub fn fewest_hops(ranks: u64, ports: u64, configurations: u64, slots: u64) -> Option<u128> {
    let configurations = configurations.min(slots).max(1);
    let (each, longer) = (slots / configurations, slots % configurations);
    let mut short = Power::new(each, configurations - longer);
    let mut long = Power::new(each + 1, longer);
    let (mut remaining, mut total) = (u128::from(ranks), 0);
    for hops in 1..=slots {
        if remaining == 0 {
            break;
        }
        let routes = (0..=hops).fold(0u128, |routes, count| {
            routes.saturating_add(short.coefficient(count) * long.coefficient(hops - count))
        });
        let count = routes.saturating_mul(power(ports, hops)).min(remaining);
        total += count * u128::from(hops);
        remaining -= count;
    }
    (remaining == 0).then_some(total)
}

/// Coefficients of (1 + x + ... + x^k)^a, where k is `highest` and a is `exponent`; indexed by
/// degree and computed on demand.
struct Power {
    highest: u64,
    exponent: u64,
    coefficients: Vec<u128>,
}

impl Power {
    fn new(highest: u64, exponent: u64) -> Power {
        Power {
            highest,
            exponent,
            coefficients: vec![1],
        }
    }

    /// Returns the coefficient of x^`degree`. Let P be the polynomial, P' its derivative, and c_m
    /// the coefficient of x^m. The equation
    ///
    /// ```text
    /// (1 - x) (1 - x^(k+1)) P' = a (1 - (k + 1) x^k + k x^(k+1)) P
    /// ```
    ///
    /// gives the recurrence
    ///
    /// ```text
    /// m c_m = (m - 1 + a) c_(m-1) + (m - 1 - k - a (k + 1)) c_(m-1-k)
    ///       + (a k - m + k + 2) c_(m-2-k)
    /// ```
    ///
    /// Callers stop at the first coefficient that exceeds the number of ranks, so that no product
    /// exceeds 128 bits.
    fn coefficient(&mut self, degree: u64) -> u128 {
        let [k, a] = [self.highest, self.exponent].map(i128::from);
        if i128::from(degree) > k * a {
            return 0;
        }
        while self.coefficients.len() as u64 <= degree {
            let m = self.coefficients.len() as i128;
            let earlier = |back: i128| match usize::try_from(m - back) {
                Ok(index) => self.coefficients[index] as i128,
                Err(_) => 0,
            };
            let sum = (m - 1 + a) * earlier(1)
                + (m - 1 - k - a * (k + 1)) * earlier(k + 1)
                + (a * k - m + k + 2) * earlier(k + 2);
            self.coefficients.push((sum / m) as u128);
        }
        self.coefficients[degree as usize]
    }
}

/// Returns `base`^`exponent`; `u128::MAX` if the power exceeds 128 bits.
pub(crate) fn power(base: impl Into<u128>, exponent: u64) -> u128 {
    base.into()
        .saturating_pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}
