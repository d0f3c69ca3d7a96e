//! Lower bound on the time in which a vector of one rank reaches all ranks in S slots. By time
//! reversal, the bound also holds for the sum of all vectors, which reaches one rank.
//!
//! N ranks have k ports each, and q = 1 + k. All ports of a rank together send the vector in the
//! time m. t_s is the length of slot s without the fixed costs of a slot; during t_s, all ports of
//! a rank may send and receive. T is the sum of all t_s. G is the least integer with q^G >= N.
//!
//! **Waiting** (theorem A5). Let f(h) = min(1, (q^(h + 1) - 1) / (N - 1)), and let F(i) be the sum
//! of 1 - f(h) over h = 0, ..., G - 1 - i. Then T >= m (1 + F(i) / (S - i)) for i = 1, ..., G - 1.
//!
//! **Prices** (theorem A6). Let c_s = min(N - 1, q^(s - 1)). Choose prices p_s, r_s >= 0 with
//! c_s p_s + r_s <= 1. Then T >= m min over j <= S - G + 1 of (r_j + V_j). The sum r_j + V_j is the
//! *payment* of a byte that leaves the root in slot j. V_j is W_j(1) of the recursion
//!
//! W_s(N / q^i) = min(W_(s+1)(N / q^i), p_s k N / q^i + W_(s+1)(N / q^(i-1))), W_s(N) = 0.
//!
//! Any prices give a bound. The search sets r_s = 0 in the last G - 1 slots. For a target value of
//! T / m, the search chooses the other r_s from the last slot to the first, each as small as
//! possible. A smaller r_s permits a greater p_s, which lowers no V_j of an earlier slot j.
//! Bisection finds the greatest target for which such r_s exist.

use super::VectorInSlots;
use opticoll_base::units::{Time, UnitError};

/// Returns a lower bound on the time of a broadcast or reduce of `vector`: the minimum over all
/// numbers of slots. `None` if no number of slots is possible.
pub(crate) fn time(vector: &VectorInSlots) -> Result<Option<Time>, UnitError> {
    vector.least(vector.sending, |slots| {
        least(vector.ranks, vector.ports, slots)
    })
}

/// Returns a lower bound on the time of a plan of `slots` slots, divided by the time of the vector.
/// `None` if the slots are too few to reach all ranks.
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

/// Returns the bound "waiting" on the time of a plan of `slots` slots, divided by the time of the
/// vector. `growth` is the minimum number of slots.
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

/// Maximum number of slots for which prices are searched. For more slots, [`waiting`] is used.
const MAX_PRICED_SLOTS: u64 = 64;

/// Search for the prices of plans with a given number of slots.
struct Prices {
    /// Number of ranks divided by (1 + ports)^i, indexed by i.
    shares: Vec<f64>,
    ports: f64,
    /// Maximum number of ranks that can send to a new rank in each slot (c_s), indexed by slot.
    senders: Vec<f64>,
    /// Weight of the last but one entry of `shares` in the interpolation between the last two
    /// entries.
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

    /// Returns the greatest bound for which prices are found, divided by the time of the vector.
    fn greatest(&self) -> f64 {
        // No bound is greater: every port sends the whole vector in every slot.
        let (mut greatest, mut too_much) = (0.0, self.ports * self.senders.len() as f64 + 1.0);
        for _ in 0..40 {
            let wanted = (greatest + too_much) / 2.0;
            match self.has_prices(wanted) {
                true => greatest = wanted,
                false => too_much = wanted,
            }
        }
        greatest
    }

    /// Returns whether prices exist at which the payment of every byte is at least `wanted`.
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

    /// Returns W_s(N / q^i) from the price p_s and the values of W_(s+1) in `missing`.
    fn missing_before(&self, missing: &[f64], i: usize, price: f64) -> f64 {
        match i {
            0 => 0.0,
            i => missing[i].min(price * self.ports * self.shares[i] + missing[i - 1]),
        }
    }

    /// Returns the greatest price of a slot at which the payment of a byte that leaves the root in
    /// this slot is at least `wanted`. `None` if there is no such price.
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
        // Values of T / m from the linear-programming solver HiGHS.
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
            let greatest = Prices::new(ranks, ports, growth, slots).greatest();
            assert!(
                (greatest - least).abs() < 1e-6,
                "{ranks} {ports} {slots}: {greatest} {least}"
            );
        }
        // One slot reaches all ranks: each port sends to one rank. N - 1 copies take (N - 1) / k of
        // the time in which all ports together send the vector.
        assert!((Prices::new(3, 4, 1, 1).greatest() - 2.0).abs() < 1e-6);
    }
}
