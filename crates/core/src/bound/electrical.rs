//! Bounds on the time of any plan on an electrical fabric.
//!
//! A message waits for the latencies of its links, then its bytes move. Let l be the least latency of
//! a message and l_r the least of one to (or from) rank r: that of a cable between two ranks, or of two
//! cables. A rank may send any number of messages at once, and nothing is paid per message: so
//! something of one rank can reach all in one round, and log2 N rounds are no bound here.
//!
//! **bandwidth.** Let rank r have to take in m bytes, over cables of C bytes per second together. None
//! of them moves before l_r, so T >= l_r + m / C; likewise for what a rank has to send, over the
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
//! Parallel and Distributed Computing 2009), none before l: T >= l + 2 (N - 1) M over the sum of all C.
//!
//! **rounds.** What a rank forwards it has received, not before l, so that it moves not before 2 l.
//! A plan in one round pays one latency and sends more; one in two rounds pays both for what is
//! forwarded. Hence latencies may be added to the bytes of their own round only:
//!
//! * *broadcast of M:* all ranks but the root take in (N - 1) M bytes. Until 2 l only the root sends, at most
//!   C_root l; after that they take in S (T - 2 l), with S what leads to them together, or what leads
//!   away from all ranks, whichever is less. If T <= 2 l, T >= l + (N - 1) M / C_root; else
//!   T >= 2 l + ((N - 1) M - C_root l) / S.
//! * *reduce of M:* the same backwards. Each byte of each rank but the root leaves it, (N - 1) M in all;
//!   what does not go to the root is forwarded by a message that moves for l after it at least.
//! * *all_reduce of M:* call a rank direct, for a byte of the vector, if it gets the N - 1 other
//!   contributions from their owners. A rank that is not gets a message that was forwarded. Let k ranks
//!   be direct, in the mean over bytes. So M (N - k) bytes move after 2 l, and together with the k (N - 1) M
//!   direct ones, M (N + k (N - 2)), and never less than 2 (N - 1) M, after l. With u = M over the sum of all C,
//!
//!   ```text
//!   k < N:  T >= max(2 l + (N - k) u, l + (N + k (N - 2)) u, l + 2 (N - 1) u),    k = N:  T >= l + N (N - 1) u
//!   ```
//!
//!   The first falls and the second rises with k. They meet at k = l / ((N - 1) u), at
//!   2 l + N u - l / (N - 1), and the bound is the least over k.
//! * *barrier:* something is sent: T >= l.
//!
//! All other collectives are as fast as their bandwidth bound in one round, on a switch.
//!
//! **cut.** The same for parts of the ranks instead of single ones: `electrical/cuts.rs`.
//!
//! Where a cable gives each flow its whole rate, or nothing is known of where links lead, there is no
//! bound. What a rank forwards for others only takes more time.

mod cuts;

use super::time::TimeBound;
use crate::collective::{Collective, CollectiveKind};
use crate::interrupt;
use crate::network::{Network, Sharing};
use crate::units::{Bytes, Time, UnitError};

/// The cables of a rank, one way.
#[derive(Clone, Copy, Default)]
struct Cables {
    /// Bits per second of all together.
    rate: u128,
    /// The least latency of those whose other end is a rank, and of those whose other end is a
    /// switch. Without such a cable, none.
    to_rank: Option<Time>,
    to_switch: Option<Time>,
}

impl Cables {
    fn add(&mut self, rate: u64, latency: Time, far_end_is_rank: bool) {
        self.rate += u128::from(rate);
        let least = if far_end_is_rank {
            &mut self.to_rank
        } else {
            &mut self.to_switch
        };
        *least = Some(least.map_or(latency, |least| least.min(latency)));
    }

    /// The least latency of a message, whose other end has a cable to a switch of latency
    /// `beyond` at least.
    fn latency(&self, beyond: Time) -> Result<Time, UnitError> {
        let by_switch = self.to_switch.map(|own| own.plus(beyond)).transpose()?;
        let ways = self.to_rank.into_iter().chain(by_switch);
        Ok(ways.min().unwrap_or(Time::ZERO))
    }

    /// The least time for so many bytes; zero for none.
    fn carry(&self, bytes: u128, latency: Time) -> Result<Time, UnitError> {
        if bytes == 0 || self.rate == 0 {
            return Ok(Time::ZERO);
        }
        over(bytes, self.rate)?.plus(latency)
    }
}

/// The greatest bound on the time of any plan; none where some cable of a rank is not shared, or leads
/// nobody knows where.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn best(
    network: &dyn Network,
    collective: &Collective,
    size: Bytes,
) -> Result<Option<TimeBound>, UnitError> {
    let Some(cables) = cables(network) else {
        return Ok(None);
    };
    let bandwidth = TimeBound {
        time: bandwidth(&cables, collective, size)?,
        name: "bandwidth",
        assumption: "no rank sends or receives faster than its cables",
    };
    let rounds = TimeBound {
        time: rounds(&cables, collective, size)?,
        name: "rounds",
        assumption: "no rank sends or receives faster than its cables, or forwards what it has not \
                     received",
    };
    let mut bounds = vec![bandwidth, rounds];
    if collective.ranks() > 1 {
        let latency = message(&cables.0, least_latency(&cables.1))?;
        if let Some(time) = cuts::best(network, collective, size, latency)? {
            bounds.push(TimeBound {
                time,
                name: "cut",
                assumption: "what one part of the ranks needs of the others crosses the links between them",
            });
        }
    }
    Ok(bounds
        .into_iter()
        .reduce(|best, next| if next.time > best.time { next } else { best }))
}

/// What leads to each rank, and away from it.
fn cables(network: &dyn Network) -> Option<(Vec<Cables>, Vec<Cables>)> {
    let ranks = network.ranks();
    let mut inwards = vec![Cables::default(); ranks as usize];
    let mut outwards = inwards.clone();
    for (number, link) in (0u32..).zip(network.links()) {
        interrupt::check();
        let (from, to) = network.ends(number)?;
        if from.min(to) < ranks && link.sharing != Sharing::Shared {
            return None;
        }
        let (rate, latency) = (link.rate.bits_per_second(), link.latency);
        let ways = [(from, to), (to, from)];
        let both = 1 + usize::from(network.leads_both_ways(number));
        for (source, destination) in &ways[..both] {
            if let Some(cables) = outwards.get_mut(*source as usize) {
                cables.add(rate, latency, *destination < ranks);
            }
            if let Some(cables) = inwards.get_mut(*destination as usize) {
                cables.add(rate, latency, *source < ranks);
            }
        }
    }
    Some((inwards, outwards))
}

/// The least latency of a cable one way, whatever its other end.
fn least_latency(cables: &[Cables]) -> Time {
    let all = cables
        .iter()
        .flat_map(|cables| [cables.to_rank, cables.to_switch]);
    all.flatten().min().unwrap_or(Time::ZERO)
}

fn bandwidth(
    (inwards, outwards): &(Vec<Cables>, Vec<Cables>),
    collective: &Collective,
    size: Bytes,
) -> Result<Time, UnitError> {
    let ranks = collective.ranks();
    let mut time = Time::ZERO;
    if ranks < 2 {
        return Ok(time);
    }
    let (first, last) = (least_latency(outwards), least_latency(inwards));
    for rank in 0..ranks {
        interrupt::check();
        let (taken, sent) = bytes(collective, size, 1, rank == collective.root());
        let (to, from) = (&inwards[rank as usize], &outwards[rank as usize]);
        time = time.max(to.carry(taken, to.latency(first)?)?);
        time = time.max(from.carry(sent, from.latency(last)?)?);
    }
    if collective.kind() == CollectiveKind::AllReduce {
        let all = 2 * u128::from(ranks - 1) * u128::from(size.get());
        let together = over(all, inwards.iter().map(|cables| cables.rate).sum())?;
        time = time.max(message(inwards, first)?.plus(together)?);
    }
    Ok(time)
}

/// The least latency of any message, by the cables at one of its ends.
fn message(cables: &[Cables], beyond: Time) -> Result<Time, UnitError> {
    let latencies: Result<Vec<Time>, UnitError> =
        cables.iter().map(|cables| cables.latency(beyond)).collect();
    Ok(latencies?.into_iter().min().unwrap_or(Time::ZERO))
}

fn rounds(
    (inwards, outwards): &(Vec<Cables>, Vec<Cables>),
    collective: &Collective,
    size: Bytes,
) -> Result<Time, UnitError> {
    let ranks = u128::from(collective.ranks());
    if ranks < 2 {
        return Ok(Time::ZERO);
    }
    let latency = message(inwards, least_latency(outwards))?;
    let bytes = (ranks - 1) * u128::from(size.get());
    let root = collective.root() as usize;
    match collective.kind() {
        CollectiveKind::Broadcast => one_or_two((outwards, inwards), root, bytes, latency),
        CollectiveKind::Reduce => one_or_two((inwards, outwards), root, bytes, latency),
        CollectiveKind::AllReduce => exchange(inwards, size, latency),
        CollectiveKind::Barrier => Ok(latency),
        _ => Ok(Time::ZERO),
    }
}

/// So many bytes from the root's cables to those of the others, in one round or in two.
fn one_or_two(
    (near, far): (&[Cables], &[Cables]),
    root: usize,
    bytes: u128,
    latency: Time,
) -> Result<Time, UnitError> {
    let (one, two) = (near[root].carry(bytes, latency)?, latency.times(2)?);
    if one <= two {
        return Ok(one);
    }
    let first = near[root].rate.checked_mul(u128::from(latency.ps()));
    let left = bits_ps(bytes)?.saturating_sub(first.ok_or_else(too_long)?);
    let sum = |cables: &[Cables]| -> u128 { cables.iter().map(|cables| cables.rate).sum() };
    two.plus(quotient(left, sum(near).min(sum(far) - far[root].rate))?)
}

/// The bound of an all_reduce.
fn exchange(cables: &[Cables], size: Bytes, latency: Time) -> Result<Time, UnitError> {
    let (ranks, size) = (cables.len() as u128, u128::from(size.get()));
    let all = cables.iter().map(|cables| cables.rate).sum();
    let direct = over(ranks * (ranks - 1) * size, all)?.plus(latency)?;
    let least = over(2 * (ranks - 1) * size, all)?.plus(latency)?;
    // Rounded up, since it is taken off.
    let earlier = Time::from_ps(latency.ps().div_ceil(cables.len() as u64 - 1));
    let meet = over(ranks * size, all)?.plus(latency.times(2)?)?;
    let meet = Time::from_ps(meet.ps().saturating_sub(earlier.ps()));
    Ok(meet.max(least).min(direct))
}

/// The bytes that a part of the ranks, the root among them or not, has to take in and to send.
fn bytes(collective: &Collective, size: Bytes, inside: u32, root: bool) -> (u128, u128) {
    let (own, all) = (u128::from(inside), u128::from(collective.ranks()));
    let others = all - own;
    let size = u128::from(size.get());
    let part = size / all;
    if others == 0 {
        return (0, 0);
    }
    match collective.kind() {
        CollectiveKind::AllGather => (others * size, own * size),
        CollectiveKind::ReduceScatter => (own * part, others * part),
        CollectiveKind::AllReduce => (size, size),
        CollectiveKind::AllToAll => (own * others * part, own * others * part),
        CollectiveKind::Gather if root => (others * size, 0),
        CollectiveKind::Scatter if root => (0, others * size),
        CollectiveKind::Broadcast if root => (0, size),
        CollectiveKind::Reduce if root => (size, 0),
        CollectiveKind::Gather => (0, own * size),
        CollectiveKind::Reduce => (0, size),
        CollectiveKind::Scatter => (own * size, 0),
        CollectiveKind::Broadcast => (size, 0),
        CollectiveKind::Barrier => (0, 0),
    }
}

/// The time in which bytes go at a rate in bits per second, rounded down.
pub(super) fn over(bytes: u128, rate: u128) -> Result<Time, UnitError> {
    quotient(bits_ps(bytes)?, rate)
}

fn bits_ps(bytes: u128) -> Result<u128, UnitError> {
    bytes.checked_mul(8_000_000_000_000).ok_or_else(too_long)
}

fn quotient(bit_ps: u128, rate: u128) -> Result<Time, UnitError> {
    let ps = bit_ps.checked_div(rate).unwrap_or(0);
    u64::try_from(ps).map(Time::from_ps).map_err(|_| too_long())
}

fn too_long() -> UnitError {
    UnitError::Overflow {
        what: "a bound on the time".into(),
        smallest: "picoseconds",
    }
}
