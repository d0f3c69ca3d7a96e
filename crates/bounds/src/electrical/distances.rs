//! Bound of distances (theorem E4): data from another rank arrive no earlier than a message could.
//!
//! Let d(u, v) be the least latency of a route from rank u to rank v, m_u the bytes that v must
//! take in and that came from u, and C the rate of the cables of v together in bytes per second.
//! Then
//!
//! ```text
//! T >= max over D of  D + (sum of m_u over u with d(u, v) >= D) / C
//! ```
//!
//! A sum of contributions of several ranks came from the farthest of them. The bound does not hold
//! backwards: a flow first waits for the latencies of its route, then moves its bytes.
//!
//! Each v gives a bound. With a root only the distances from it, or to it, matter. Without a root
//! the search examines as many ranks as the limit of work permits, evenly spread, which is enough
//! on a fabric that looks the same from every rank. Messages without bytes have latencies, too.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::cuts::CutPart;
use super::links::{Links, Windows};
use crate::{bits_ps, quotient};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of steps over links for all ranks together.
const MAX_STEPS: usize = 1 << 21;

/// Returns the greatest bound of the ranks that are examined; zero if no link has a latency.
pub(super) fn best(
    links: &Links,
    cables: &[CutPart],
    collective: &Collective,
    size: Bytes,
) -> Result<Time, UnitError> {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    let mut time = Time::ZERO;
    if !links.has_latency() {
        return Ok(time);
    }
    let root = collective.root();
    let kind = collective.kind();
    let whole = u128::from(size.get());
    let part = whole / u128::from(collective.ranks());
    let inwards = |rank: u32| &cables[rank as usize].inwards;
    if matches!(kind, Broadcast | Scatter) {
        let latencies = links.latencies(root, false);
        for (rank, latency) in (0u32..).zip(latencies).filter(|(rank, _)| *rank != root) {
            time = time.max(time_from_farthest(&[latency], whole, inwards(rank))?);
        }
        return Ok(time);
    }
    let demanded = collective.demand().map(|_| {
        let pairs = collective.demanded(size);
        let others = pairs.filter(|(source, destination, _)| source != destination);
        let demanded = others.map(|(source, destination, bytes)| ((source, destination), bytes));
        demanded.collect::<FxHashMap<_, _>>()
    });
    let most = (MAX_STEPS / links.edges.len().max(1)).max(1);
    let apart = (collective.ranks() as usize).div_ceil(most);
    let receivers = match kind {
        Reduce | Gather => root..root + 1,
        _ => 0..collective.ranks(),
    };
    for rank in receivers.step_by(apart) {
        let (latencies, over) = (links.latencies(rank, true), inwards(rank));
        time = time.max(match kind {
            AllGather | Gather => {
                time_from_all(&latencies, |other| others(rank, other, whole), over)?
            }
            AllToAll => match &demanded {
                None => time_from_all(&latencies, |other| others(rank, other, part), over)?,
                Some(demanded) => time_from_all(
                    &latencies,
                    |other| demanded.get(&(other, rank)).copied(),
                    over,
                )?,
            },
            AllReduce | Reduce => time_from_farthest(&latencies, whole, over)?,
            ReduceScatter => time_from_farthest(&latencies, part, over)?,
            Barrier | Broadcast | Scatter => time_from_farthest(&latencies, 0, over)?,
        });
    }
    Ok(time)
}

/// Returns the time of `bytes` bytes from the farthest rank.
fn time_from_farthest(latencies: &[u64], bytes: u128, cables: &Windows) -> Result<Time, UnitError> {
    let reached = latencies.iter().filter(|latency| **latency < u64::MAX);
    let latency = Time::from_ps(reached.max().copied().unwrap_or(0));
    latency.plus(quotient(bits_ps(bytes)?, cables.rate())?)
}

/// Returns `bytes`, or `None` for the receiver itself.
fn others(rank: u32, other: u32, bytes: u128) -> Option<u128> {
    (other != rank).then_some(bytes)
}

/// Returns the bound for bytes from each rank that has any for the receiver.
fn time_from_all(
    latencies: &[u64],
    bytes: impl Fn(u32) -> Option<u128>,
    cables: &Windows,
) -> Result<Time, UnitError> {
    let senders = (0u32..).zip(latencies);
    let senders = senders.filter_map(|(other, latency)| Some((*latency, bytes(other)?)));
    let mut senders: Vec<(u64, u128)> = senders.collect();
    senders.sort_unstable_by_key(|(latency, _)| Reverse(*latency));
    let mut time = Time::ZERO;
    let mut taken = 0;
    for (latency, bytes) in senders
        .into_iter()
        .filter(|(latency, _)| *latency < u64::MAX)
    {
        taken += bytes;
        let sending = quotient(bits_ps(taken)?, cables.rate())?;
        time = time.max(Time::from_ps(latency).plus(sending)?);
    }
    Ok(time)
}
