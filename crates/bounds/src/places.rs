//! To how many ranks there are ways of so many hops, at most, over settings that follow one
//! another (theorem A4).
//!
//! Over P settings there are C(h + P - 1, h) d^h ways of h hops from a rank with d ports; with S
//! slots in all as many as d^h times the coefficient of x^h in the product over j of (1 + x +
//! ... + x^k_j), where the k_j differ by 1 at most.

/// The least sum of hops to so many ranks, where `ways` is how many at most are so many hops away.
pub fn hops(ranks: u128, ways: impl Fn(u64) -> u128) -> u128 {
    let (mut left, mut all, mut far) = (ranks, 0, 0);
    while left > 0 {
        far += 1;
        let here = ways(far).clamp(1, left);
        all += here * u128::from(far);
        left -= here;
    }
    all
}

/// C(h + p - 1, h): in how many ways h hops have p settings in their order, as far as 128 bits hold it.
pub fn ordered(hops: u64, settings: u64) -> u128 {
    let fewer = hops.min(settings - 1);
    let all = u128::from(hops) + u128::from(settings) - 1;
    let mut ways = 1u128;
    for one in 1..=u128::from(fewer) {
        let Some(product) = ways.checked_mul(all - u128::from(fewer) + one) else {
            return u128::MAX;
        };
        ways = product / one;
    }
    ways
}

/// The least sum of hops to so many ranks with so many settings, at most, in so many slots; `None` where not all are reached.
pub fn fewest_hops(ranks: u64, ports: u64, settings: u64, slots: u64) -> Option<u128> {
    let settings = settings.min(slots).max(1);
    let (each, longer) = (slots / settings, slots % settings);
    let mut short = Power::new(each, settings - longer);
    let mut long = Power::new(each + 1, longer);
    let (mut left, mut all) = (u128::from(ranks), 0);
    for far in 1..=slots {
        if left == 0 {
            break;
        }
        let ways = (0..=far).fold(0u128, |ways, here| {
            ways.saturating_add(short.coefficient(here) * long.coefficient(far - here))
        });
        let here = ways.saturating_mul(power(ports, far)).min(left);
        all += here * u128::from(far);
        left -= here;
    }
    (left == 0).then_some(all)
}

/// The coefficients of (1 + x + ... + x^k)^a, from the lowest on.
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

    /// By the recurrence that follows from (1 - x) (1 - x^(k+1)) P' = a (1 - (k + 1) x^k + k x^(k+1)) P:
    /// m c_m = (m - 1 + a) c_(m-1) + (m - 1 - k - a (k + 1)) c_(m-1-k) + (a k - m + k + 2) c_(m-2-k).
    ///
    /// None is asked for after one that is greater than the number of ranks, so that no product leaves 128 bits.
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

pub(crate) fn power(base: u64, exponent: u64) -> u128 {
    u128::from(base).saturating_pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}
