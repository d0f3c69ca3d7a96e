//! What a vector that one rank has takes at least until all have it, in so many slots; and
//! backwards, until one rank has what all add.
//!
//! N ranks of k ports; q = 1 + k. Time is counted beside what slots cost: a rank sends, and
//! receives, what all its ports do in the time t_s of slot s. The vector takes m over all ports of
//! a rank, G is least with q^G >= N, T the sum of t_s.
//!
//! **Waiting** (theorem A5). With f(h) = min(1, (q^(h + 1) - 1) / (N - 1)) and F(i) the sum of 1 -
//! f(h) over h = 0, ..., G - 1 - i: T >= m (1 + F(i) / (S - i)), i = 1, ..., G - 1.
//!
//! **Prices** (theorem A6). For prices p_s, r_s >= 0 with c_s p_s + r_s <= 1, c_s = min(N - 1,
//! q^(s - 1)): T >= m min over j <= S - G + 1 of (r_j + V_j), where V_j = W_j(1) comes from
//!
//! W_s(N / q^i) = min(W_(s+1)(N / q^i), p_s k N / q^i + W_(s+1)(N / q^(i-1))), W_s(N) = 0.
//!
//! For any prices that is a bound. Those taken: r_s = 0 in the last G - 1 slots. For a wanted T /
//! m the other r_s are, from the last to the first, as small as they may be, for less of r_s
//! leaves more for p_s, and that makes no earlier V_j smaller. The greatest T / m for which there
//! are such r_s is found by halving.

use super::VectorInSlots;
use opticoll_base::units::{Time, UnitError};

/// The least time of a broadcast or a reduce of a vector.
///
/// # Errors
/// A time beyond 64 bits.
pub(crate) fn time(vector: &VectorInSlots) -> Result<Option<Time>, UnitError> {
    vector.least(vector.sending, |slots| {
        least(vector.ranks, vector.ports, slots)
    })
}

/// The greater bound on T / m with so many slots; none where they are too few.
fn least(ranks: u64, ports: u64, slots: u64) -> Option<f64> {
    let growth = super::growth(ranks, ports);
    if slots < growth {
        return None;
    }
    Some(match slots > MOST_PRICED {
        true => waiting(ranks, ports, growth, slots),
        false => Prices::new(ranks, ports, growth, slots).greatest(),
    })
}

fn waiting(ranks: u64, ports: u64, growth: u64, slots: u64) -> f64 {
    let others = (ranks - 1) as f64;
    let mut told = 1.0;
    let waits = (0..growth).map(|_| {
        told *= (1 + ports) as f64;
        1.0 - f64::min(1.0, (told - 1.0) / others)
    });
    let waits: Vec<f64> = waits.collect();
    let windows = (1..growth).map(|left_out| {
        let sum: f64 = waits[..(growth - left_out) as usize].iter().sum();
        1.0 + sum / (slots - left_out) as f64
    });
    windows.fold(1.0, f64::max)
}

/// With more slots prices are not worth their time.
const MOST_PRICED: u64 = 64;

/// The search for prices of so many slots.
struct Prices {
    /// N / q^i, i = 0, ..., G.
    shares: Vec<f64>,
    /// k.
    ports: f64,
    /// c_s.
    senders: Vec<f64>,
    /// The part of a rank that has N / q^(G - 1) copies, the others having N / q^G, such that they have 1.
    upper: f64,
}

impl Prices {
    fn new(ranks: u64, ports: u64, growth: u64, slots: u64) -> Prices {
        let (all, factor) = (ranks as f64, (1 + ports) as f64);
        let shares: Vec<f64> = (0..=growth).map(|i| all / power(factor, i)).collect();
        let (most, least) = (shares[growth as usize - 1], shares[growth as usize]);
        let senders = (0..slots).map(|slot| f64::min(all - 1.0, power(factor, slot.min(growth))));
        Prices {
            ports: ports as f64,
            senders: senders.collect(),
            upper: (1.0 - least) / (most - least),
            shares,
        }
    }

    /// The greatest T / m found.
    fn greatest(&self) -> f64 {
        // The whole vector by each port in each slot is enough.
        let (mut found, mut too_much) = (0.0, self.ports * self.senders.len() as f64 + 1.0);
        for _ in 0..40 {
            let wanted = (found + too_much) / 2.0;
            match self.allow(wanted) {
                true => found = wanted,
                false => too_much = wanted,
            }
        }
        found
    }

    /// Whether there are prices by which every byte pays so much.
    fn allow(&self, wanted: f64) -> bool {
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
                missing[i] = self.before(&missing, i, price);
            }
        }
        true
    }

    /// W_s of N / q^i, from W_(s+1) and a price.
    fn before(&self, missing: &[f64], i: usize, price: f64) -> f64 {
        match i {
            0 => 0.0,
            i => missing[i].min(price * self.ports * self.shares[i] + missing[i - 1]),
        }
    }

    /// The greatest p_s by which a byte that leaves the root in this slot pays enough.
    fn price(&self, missing: &[f64], senders: f64, wanted: f64) -> Option<f64> {
        let growth = self.shares.len() - 1;
        let paid = |price: f64| {
            let part = |i: usize, part: f64| match part > 0.0 {
                true => part * self.before(missing, i, price),
                false => 0.0,
            };
            let sent = part(growth, 1.0 - self.upper) + part(growth - 1, self.upper);
            1.0 - senders * price + sent
        };
        // Between prices at which a least changes, what is paid goes up or down evenly.
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
        // By a solver of linear programs (HiGHS): the least T / m with holders, transfers and first slots as variables.
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
        // Fewer ranks than a slot reaches: each port once, so that N - 1 copies take (N - 1) / k of the time of the vector at all ports.
        assert!((Prices::new(3, 4, 1, 1).greatest() - 2.0).abs() < 1e-6);
    }
}
