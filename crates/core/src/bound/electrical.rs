//! A bound on the time of any plan on an electrical fabric.
//!
//! **bandwidth.** Let a rank have to take in m bytes, over cables of C bytes per second together. What
//! flows to it ends with one of these cables and waits for its latency before the first byte moves, so
//! T >= L + m / C, with L the least latency of them; likewise for what a rank has to send, over the
//! cables that lead away. m is, with N >= 2 ranks:
//!
//! | collective | in | out |
//! |---|---|---|
//! | all_gather of blocks of d | (N - 1) d | d |
//! | gather, scatter backwards | (N - 1) d at the root | d at all others |
//! | reduce_scatter of M | a block, floor(M / N) | a part of all other blocks, (N - 1) floor(M / N) |
//! | all_reduce of M | M | M |
//! | broadcast, reduce backwards | M at all others | M at the root |
//! | all_to_all of M | (N - 1) floor(M / N) | (N - 1) floor(M / N) |
//!
//! In an all_reduce of M all ranks together take in 2 (N - 1) M bytes (Patarasuk and Yuan, Journal of
//! Parallel and Distributed Computing 2009), hence T >= 2 (N - 1) M over the sum of all C, too.
//! Where a cable gives each flow its whole rate, or nothing is known of where links lead, there is no
//! bound. What a rank forwards for others only takes more time.

use super::time::TimeBound;
use crate::collective::{Collective, CollectiveKind};
use crate::network::{Network, Sharing};
use crate::units::{Bytes, Time, UnitError};

/// The cables of a rank, one way.
#[derive(Clone, Copy, Default)]
struct Cables {
    /// Bits per second of all together.
    rate: u128,
    /// The least latency, once there is a cable.
    latency: Option<Time>,
}

impl Cables {
    fn add(&mut self, rate: u64, latency: Time) {
        self.rate += u128::from(rate);
        self.latency = Some(self.latency.map_or(latency, |least| least.min(latency)));
    }

    /// The least time for so many bytes; zero for none.
    fn carry(&self, bytes: u128) -> Result<Time, UnitError> {
        if bytes == 0 || self.rate == 0 {
            return Ok(Time::ZERO);
        }
        over(bytes, self.rate)?.plus(self.latency.unwrap_or(Time::ZERO))
    }
}

/// The bound on the time of any plan; none where some cable of a rank is not shared, or leads nobody
/// knows where.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn best(
    network: &dyn Network,
    collective: &Collective,
    size: Bytes,
) -> Result<Option<TimeBound>, UnitError> {
    let Some((inwards, outwards)) = cables(network) else {
        return Ok(None);
    };
    let ranks = u128::from(collective.ranks());
    let mut time = Time::ZERO;
    if ranks >= 2 {
        for rank in 0..collective.ranks() {
            let (taken, sent) = bytes(collective, size, rank);
            let index = rank as usize;
            time = time.max(inwards[index].carry(taken)?);
            time = time.max(outwards[index].carry(sent)?);
        }
        if collective.kind() == CollectiveKind::AllReduce {
            let rate = inwards.iter().map(|cables| cables.rate).sum();
            time = time.max(over(2 * (ranks - 1) * u128::from(size.get()), rate)?);
        }
    }
    Ok(Some(TimeBound {
        time,
        name: "bandwidth",
        assumption: "no rank sends or receives faster than its cables",
    }))
}

/// What leads to each rank, and away from it.
fn cables(network: &dyn Network) -> Option<(Vec<Cables>, Vec<Cables>)> {
    let ranks = network.ranks();
    let mut inwards = vec![Cables::default(); ranks as usize];
    let mut outwards = inwards.clone();
    for (number, link) in (0u32..).zip(network.links()) {
        let (from, to) = network.ends(number)?;
        if from.min(to) < ranks && link.sharing != Sharing::Shared {
            return None;
        }
        let (rate, latency) = (link.rate.bits_per_second(), link.latency);
        let ways = [(from, to), (to, from)];
        let both = 1 + usize::from(network.leads_both_ways(number));
        for (source, destination) in &ways[..both] {
            if let Some(cables) = outwards.get_mut(*source as usize) {
                cables.add(rate, latency);
            }
            if let Some(cables) = inwards.get_mut(*destination as usize) {
                cables.add(rate, latency);
            }
        }
    }
    Some((inwards, outwards))
}

/// The bytes that a rank has to take in and to send.
fn bytes(collective: &Collective, size: Bytes, rank: u32) -> (u128, u128) {
    let others = u128::from(collective.ranks() - 1);
    let size = u128::from(size.get());
    let part = size / (others + 1);
    let root = collective.root() == rank;
    match collective.kind() {
        CollectiveKind::AllGather => (others * size, size),
        CollectiveKind::ReduceScatter => (part, others * part),
        CollectiveKind::AllReduce => (size, size),
        CollectiveKind::AllToAll => (others * part, others * part),
        CollectiveKind::Gather if root => (others * size, 0),
        CollectiveKind::Scatter if root => (0, others * size),
        CollectiveKind::Broadcast if root => (0, size),
        CollectiveKind::Reduce if root => (size, 0),
        CollectiveKind::Gather | CollectiveKind::Reduce => (0, size),
        CollectiveKind::Scatter | CollectiveKind::Broadcast => (size, 0),
        CollectiveKind::Barrier => (0, 0),
    }
}

/// The time in which so many bytes go at so many bits per second, rounded down.
fn over(bytes: u128, rate: u128) -> Result<Time, UnitError> {
    let too_long = || UnitError::Overflow {
        what: "a bound on the time".into(),
        smallest: "picoseconds",
    };
    let bit_ps = bytes.checked_mul(8_000_000_000_000).ok_or_else(too_long)?;
    let ps = bit_ps.checked_div(rate).unwrap_or(0);
    u64::try_from(ps).map(Time::from_ps).map_err(|_| too_long())
}
