//! What a vector that one rank has takes at least until all have it, in so many slots; and backwards, until one rank has what all add.
//!
//! N ranks of k ports; q = 1 + k. Time is counted beside what slots cost, so that a rank sends, and receives, what all its
//! ports do in the time t_s of slot s. The vector takes m over all ports of a rank, and G is the least number with
//! q^G >= N. Every byte has a first slot j in which the root sends it, and is at q^(s - j + 1) ranks at most after slot s.
//!
//! **Waiting.** Of the ranks but the root, a share f(h) = min(1, (q^(h + 1) - 1) / (N - 1)) at most has a byte h slots after the one in
//! which it left. Up to slot s a rank so has, on average over the ranks, no more than the sum over j <= s of f(s - j) t_j, for the root sends
//! no more than t_j for the first time in slot j; and afterwards it receives no more than the sum of the later t_j. Together that is m at least: with T the sum of all t_j,
//!
//! T >= m + sum over j <= s of (1 - f(s - j)) t_j.
//!
//! These inequalities for s = 1, ..., S - i are added. What leaves the root last has G slots left, so that the t_j with
//! j <= S - G + 1 are m at least in all, and each of them is multiplied by F(i) = sum over h = 0, ..., G - 1 - i of 1 - f(h) or more:
//!
//! T >= m (1 + F(i) / (S - i)), i = 1, ..., G - 1.
//!
//! **Doubling.** A byte that is to be at N ranks after slot S is at N / q^(S - s) ranks at least after slot s. In slot s only the
//! N_s = min(N, q^(s - 1)) ranks that have something can send. So the sum over s' <= s of N_s' t_s' is (N / q^(S - s) - 1) m at least,
//! for each s. T is least where each slot carries no more than that needs, since later slots carry more in the same time.
//!
//! Backwards, with the last slot in which the root receives something of a byte in place of j, both hold for what all ranks add.

use crate::units::{Time, UnitError};

/// The least time with `per_slot` for each slot, where the vector takes `sending` over all ports of a rank, in `fewest` slots or more.
///
/// # Errors
/// A time beyond 64 bits.
pub(crate) fn time(
    ranks: u64,
    ports: u64,
    fewest: u64,
    per_slot: Time,
    sending: Time,
) -> Result<Option<Time>, UnitError> {
    super::least_over_slots(fewest, |slots| {
        let paid = per_slot.times(slots)?;
        let Some(factor) = least(ranks, ports, slots) else {
            return Ok(None);
        };
        let stretched = Time::from_ps((sending.ps() as f64 * factor) as u64);
        Ok(Some((
            paid.plus(stretched.max(sending))?,
            paid.plus(sending)?,
        )))
    })
}

/// The greater bound on T / m with so many slots; none where they are too few.
fn least(ranks: u64, ports: u64, slots: u64) -> Option<f64> {
    let growth = super::growth(ranks, ports);
    if slots < growth {
        return None;
    }
    let factor = waiting(ranks, ports, growth, slots).max(doubling(ranks, ports, slots));
    // Sums of few dozens of fractions.
    Some(factor * (1.0 - 1e-9))
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

fn doubling(ranks: u64, ports: u64, slots: u64) -> f64 {
    // With many slots more than ranks need nothing is forced.
    if slots > 64 {
        return 0.0;
    }
    let (ranks, growth) = (ranks as f64, (1 + ports) as f64);
    let (mut sent, mut senders, mut time) = (0.0, 1.0, 0.0);
    for slot in 1..=slots {
        let needed = ranks / power(growth, slots - slot) - 1.0;
        if needed > sent {
            time += (needed - sent) / senders;
            sent = needed;
        }
        senders = f64::min(ranks, senders * growth);
    }
    time
}

fn power(base: f64, exponent: u64) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * base)
}
