//! Lower bound on the time in which a vector of one rank reaches all ranks in S slots. Backwards:
//! the time in which the sum of all vectors reaches one rank.
//!
//! N ranks have k ports each; q = 1 + k. t_s is the time of slot s without the costs of the slot,
//! in which all ports of a rank may send, and receive. All ports of a rank together send the vector
//! in the time m. G is the least number with q^G >= N, and T is the sum of all t_s.
//!
//! **Waiting** (theorem A5). Let f(h) = min(1, (q^(h + 1) - 1) / (N - 1)), and F(i) the sum of 1 -
//! f(h) over h = 0, ..., G - 1 - i. Then T >= m (1 + F(i) / (S - i)) for i = 1, ..., G - 1.
//!
//! **Prices** (theorem A6). For prices p_s, r_s >= 0 with c_s p_s + r_s <= 1 and c_s = min(N - 1,
//! q^(s - 1)): T >= m min over j <= S - G + 1 of (r_j + V_j), where V_j = W_j(1) follows from
//!
//! W_s(N / q^i) = min(W_(s+1)(N / q^i), p_s k N / q^i + W_(s+1)(N / q^(i-1))), W_s(N) = 0.
//!
//! Any prices give a bound. The search sets r_s = 0 in the last G - 1 slots. For a wanted T / m it
//! chooses the other r_s from the last slot to the first, each as small as possible: a smaller r_s
//! permits a greater p_s, which lowers no earlier V_j. Bisection finds the greatest T / m for which
//! such r_s exist.

use super::VectorInSlots;
use opticoll_base::units::{Time, UnitError};

/// Returns the minimum time of a broadcast or a reduce of a vector.
///
/// # Errors
/// A time beyond 64 bits.
pub(crate) fn time(vector: &VectorInSlots) -> Result<Option<Time>, UnitError> {
    vector.least(vector.sending, |slots| {
        least(vector.ranks, vector.ports, slots)
    })
}

/// Returns a lower bound on T / m with `slots` slots; `None` if they are too few.
fn least(ranks: u64, ports: u64, slots: u64) -> Option<f64> {
    let growth = super::growth(ranks, ports);
    if slots < growth {
        return None;
    }
    Some(match slots > MAX_PRICED_SLOTS {
        true => waiting(ranks, ports, growth, slots),
        false => Prices::new(ranks, ports, growth, slots).greatest(),
    })
}

/// Returns the bound "waiting" on T / m.
fn waiting(ranks: u64, ports: u64, growth: u64, slots: u64) -> f64 {
    let others = (ranks - 1) as f64;
    let mut informed = 1.0;
    let waits = (0..growth).map(|_| {
        informed *= (1 + ports) as f64;
        1.0 - f64::min(1.0, (informed - 1.0) / others)
    });
    let waits: Vec<f64> = waits.collect();
    let windows = (1..growth).map(|left_out| {
        let sum: f64 = waits[..(growth - left_out) as usize].iter().sum();
        1.0 + sum / (slots - left_out) as f64
    });
    windows.fold(1.0, f64::max)
}

/// Maximum number of slots for which prices are searched. For more slots, the bound "waiting" is
/// used.
const MAX_PRICED_SLOTS: u64 = 64;

/// Search for the prices of a given number of slots.
struct Prices {
    /// Numbers N / q^i for i = 0, ..., G.
    shares: Vec<f64>,
    /// Ports k of a rank.
    ports: f64,
    /// Numbers c_s for each slot.
    senders: Vec<f64>,
    /// Weight x with x N / q^(G-1) + (1 - x) N / q^G = 1, which interpolates W_j(1).
    upper: f64,
}

impl Prices {
    fn new(ranks: u64, ports: u64, growth: u64, slots: u64) -> Prices {
        let (rank_count, factor) = (ranks as f64, (1 + ports) as f64);
        let shares: Vec<f64> = (0..=growth)
            .map(|i| rank_count / power(factor, i))
            .collect();
        let (most, least) = (shares[growth as usize - 1], shares[growth as usize]);
        let senders =
            (0..slots).map(|slot| f64::min(rank_count - 1.0, power(factor, slot.min(growth))));
        Prices {
            ports: ports as f64,
            senders: senders.collect(),
            upper: (1.0 - least) / (most - least),
            shares,
        }
    }

    /// Returns the greatest T / m for which prices were found.
    fn greatest(&self) -> f64 {
        // Sending the whole vector over each port in each slot is enough.
        let (mut found, mut too_much) = (0.0, self.ports * self.senders.len() as f64 + 1.0);
        for _ in 0..40 {
            let wanted = (found + too_much) / 2.0;
            match self.has_prices(wanted) {
                true => found = wanted,
                false => too_much = wanted,
            }
        }
        found
    }

    /// Returns whether some prices make every byte pay at least `wanted`.
    fn has_prices(&self, wanted: f64) -> bool {
        let growth = self.shares.len() - 1;
        let mut missing = vec![f64::INFINITY; growth + 1];
        missing[0] = 0.0;
        let last = self.senders.len() - growth;
        for (slot, senders) in self.senders.iter().enumerate().rev() {
            let price = match slot > last {
                true => 1.0 / senders,
                false => match self.price(&missing, *senders, wanted) {
                    Some(price) => price,
                    None => return false,
                },
            };
            for i in (1..=growth).rev() {
                missing[i] = self.missing_before(&missing, i, price);
            }
        }
        true
    }

    /// Returns W_s(N / q^i), given W_(s+1) in `missing` and the price p_s.
    fn missing_before(&self, missing: &[f64], i: usize, price: f64) -> f64 {
        match i {
            0 => 0.0,
            i => missing[i].min(price * self.ports * self.shares[i] + missing[i - 1]),
        }
    }

    /// Returns the greatest p_s with which a byte that leaves the root in this slot pays `wanted`.
    fn price(&self, missing: &[f64], senders: f64, wanted: f64) -> Option<f64> {
        let growth = self.shares.len() - 1;
        let paid = |price: f64| {
            let part = |i: usize, part: f64| match part > 0.0 {
                true => part * self.missing_before(missing, i, price),
                false => 0.0,
            };
            let sent = part(growth, 1.0 - self.upper) + part(growth - 1, self.upper);
            1.0 - senders * price + sent
        };
        // The payment is linear between the prices at which a minimum changes its argument.
        let bends = [growth, growth - 1].map(|i| match i {
            0 => 0.0,
            i => (missing[i] - missing[i - 1]) / (self.ports * self.shares[i]),
        });
        let mut prices = vec![1.0 / senders, 0.0];
        prices.extend(
            bends
                .into_iter()
                .filter(|bend| (0.0..1.0 / senders).contains(bend)),
        );
        prices.sort_by(|one, other| other.total_cmp(one));
        if paid(prices[0]) >= wanted {
            return Some(prices[0]);
        }
        prices.windows(2).find_map(|pair| {
            let (above, below) = (paid(pair[0]), paid(pair[1]));
            (below >= wanted).then(|| {
                let share = (below - wanted) / (below - above);
                pair[1] + (pair[0] - pair[1]) * share.clamp(0.0, 1.0)
            })
        })
    }
}

fn power(base: f64, exponent: u64) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * base)
}

#[cfg(test)]
mod tests {
    use super::Prices;

    #[test]
    fn prices_are_those_of_the_linear_program() {
        // Values of a linear-programming solver (HiGHS): the least T / m, with holders, transfers
        // and first slots as variables.
        for (ranks, ports, growth, slots, least) in [
            (64, 1, 6, 6, 6.0),
            (64, 1, 6, 7, 3.341_269_841),
            (64, 1, 6, 9, 1.995_807_128),
            (64, 1, 6, 12, 1.659_155_655),
            (64, 2, 4, 4, 6.111_111_111),
            (64, 2, 4, 5, 2.594_121_105),
            (64, 2, 4, 11, 1.339_161_055),
            (256, 1, 8, 14, 1.913_977_725),
        ] {
            let found = Prices::new(ranks, ports, growth, slots).greatest();
            assert!(
                (found - least).abs() < 1e-6,
                "{ranks} {ports} {slots}: {found} {least}"
            );
        }
        // Fewer ranks than one slot reaches: each port sends to one rank, so that N - 1 copies take
        // (N - 1) / k of the time of the vector over all ports.
        assert!((Prices::new(3, 4, 1, 1).greatest() - 2.0).abs() < 1e-6);
    }
}
