//! Bound of distances (theorem E4): data of a rank arrive no earlier than a message from that rank.
//!
//! Let d(u, v) be the least latency of a route from rank u to rank v. m_u is the number of bytes
//! that v must receive and that originate at u. C is the rate of all cables of v together, in bytes
//! per second. Then
//!
//! ```text
//! T >= max over D of  D + (sum of m_u over u with d(u, v) >= D) / C
//! ```
//!
//! A sum of contributions of several ranks originates at the farthest of them. With time reversed,
//! the bound does not hold: a flow first waits for the latencies of its route, then its bytes move.
//!
//! Each rank v gives a bound. With a root, only the distances from the root, or to the root,
//! matter. Without a root, the search examines as many ranks as the limit of work permits; their
//! numbers have equal distances. This is enough on a fabric that looks the same from every rank. A
//! message without bytes has a latency, too.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::cuts::CutPart;
use super::links::{Links, Windows};
use crate::{bits_ps, quotient};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of link visits for all ranks together.
const MAX_STEPS: usize = 1 << 21;

/// Returns the greatest bound of all examined ranks; 0 s if no link has a latency. `cables` has the
/// cables of each rank, indexed by rank.
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
    let stride = (collective.ranks() as usize).div_ceil(most);
    let receivers = match kind {
        Reduce | Gather => root..root + 1,
        _ => 0..collective.ranks(),
    };
    for rank in receivers.step_by(stride) {
        let (latencies, own_cables) = (links.latencies(rank, true), inwards(rank));
        time = time.max(match kind {
            AllGather | Gather => {
                time_from_all(&latencies, |other| others(rank, other, whole), own_cables)?
            }
            AllToAll => match &demanded {
                None => time_from_all(&latencies, |other| others(rank, other, part), own_cables)?,
                Some(demanded) => time_from_all(
                    &latencies,
                    |other| demanded.get(&(other, rank)).copied(),
                    own_cables,
                )?,
            },
            AllReduce | Reduce => time_from_farthest(&latencies, whole, own_cables)?,
            ReduceScatter => time_from_farthest(&latencies, part, own_cables)?,
            Barrier | Broadcast | Scatter => time_from_farthest(&latencies, 0, own_cables)?,
        });
    }
    Ok(time)
}

/// Returns the time in which `bytes` bytes from the farthest rank arrive over `cables`. `latencies`
/// has the latency in picoseconds from each rank, indexed by rank.
fn time_from_farthest(latencies: &[u64], bytes: u128, cables: &Windows) -> Result<Time, UnitError> {
    let reached = latencies.iter().filter(|latency| **latency < u64::MAX);
    let latency = Time::from_ps(reached.max().copied().unwrap_or(0));
    latency.plus(quotient(bits_ps(bytes)?, cables.rate())?)
}

/// Returns `bytes` if `other` differs from the receiver `rank`, otherwise `None`.
fn others(rank: u32, other: u32, bytes: u128) -> Option<u128> {
    (other != rank).then_some(bytes)
}

/// Returns the bound for data from several ranks that arrive over `cables`. `latencies` has the
/// latency in picoseconds from each rank, indexed by rank. `bytes(u)` is the number of bytes from
/// rank u, or `None` if no data come from rank u.
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
    let mut received = 0;
    for (latency, bytes) in senders
        .into_iter()
        .filter(|(latency, _)| *latency < u64::MAX)
    {
        received += bytes;
        let sending = quotient(bits_ps(received)?, cables.rate())?;
        time = time.max(Time::from_ps(latency).plus(sending)?);
    }
    Ok(time)
}
