//! The bound of distances: what a rank needs of another comes no sooner than a message could come from it.
//!
//! Let d(u, v) be the least latency of any way over links from rank u to rank v. Whatever is at v and came from u,
//! over however many ranks, is there not before d(u, v): each message takes the latencies of its own way, and
//! those of all its messages together are those of a way from u to v. So if rank v must take in bytes of which
//! m_u came from u, those of u arrive with messages whose bytes move after d(u, v); and all that come from
//! ranks at a distance D or more need their time over the cables of v, of C bytes per second together:
//!
//! ```text
//! T >= max over D of  D + (sum of m_u over u with d(u, v) >= D) / C
//! ```
//!
//! Chunk by chunk the same holds of the last cable, over which they begin earlier by its own latency and end
//! earlier by it, too. What combines contributions of several ranks came from the farthest of them. Backwards the
//! same holds of what must leave a rank to get as far as d(v, u).
//!
//! | collective | in at v | out of v |
//! |---|---|---|
//! | all_gather of blocks of d | d from each | d, as far as the farthest |
//! | reduce_scatter of M | a block, floor(M / N), from the farthest | floor(M / N) to each |
//! | all_to_all of M | floor(M / N) from each | floor(M / N) to each |
//! | all_reduce of M, barrier of nothing | M from the farthest | M to the farthest |
//! | gather | at the root, d from each | d to the root |
//! | scatter | d from the root | at the root, d to each |
//! | broadcast of M | M from the root | at the root, M to the farthest |
//! | reduce of M | at the root, M from the farthest | M to the root |
//!
//! Each v gives a bound. With a root the distances from it, or to it, say all; without one as many ranks as
//! there is time for are looked at, evenly spread, which on a fabric that looks the same from every rank are enough.
//! Messages are sent, and their latencies paid, for chunks of no bytes too.

use std::cmp::Reverse;

use super::cuts::Part;
use super::links::{Links, Windows};
use super::{bits_ps, quotient};
use crate::collective::{Collective, CollectiveKind};
use crate::units::{Bytes, Time, UnitError};

/// Most steps over links, all ranks together.
const MOST_WORK: usize = 1 << 21;

/// The greatest of the bounds of the ranks that are looked at; zero where no link has a latency.
pub(super) fn best(
    links: &Links,
    cables: &[Part],
    collective: &Collective,
    size: Bytes,
) -> Result<Time, UnitError> {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    let mut time = Time::ZERO;
    if !links.are_late() {
        return Ok(time);
    }
    let root = collective.root();
    let kind = collective.kind();
    let whole = u128::from(size.get());
    let part = whole / u128::from(collective.ranks());
    let from_root = matches!(kind, Broadcast | Scatter);
    if from_root || matches!(kind, Reduce | Gather) {
        let latencies = links.latencies(root, !from_root);
        let near = direction(&cables[root as usize], !from_root);
        time = match kind {
            Broadcast | Reduce => farthest(&latencies, whole, near)?,
            _ => each(&latencies, root, whole, near)?,
        };
        for (rank, latency) in (0u32..).zip(&latencies).filter(|(rank, _)| *rank != root) {
            let far = direction(&cables[rank as usize], from_root);
            time = time.max(farthest(&[*latency], whole, far)?);
        }
        return Ok(time);
    }
    let most = (MOST_WORK / (2 * links.edges.len()).max(1)).max(1);
    for rank in (0..collective.ranks()).step_by((collective.ranks() as usize).div_ceil(most)) {
        for incoming in [true, false] {
            let latencies = links.latencies(rank, incoming);
            let over = direction(&cables[rank as usize], incoming);
            time = time.max(match (kind, incoming) {
                (AllGather, true) => each(&latencies, rank, whole, over)?,
                (AllToAll, _) | (ReduceScatter, false) => each(&latencies, rank, part, over)?,
                (AllGather | AllReduce, _) => farthest(&latencies, whole, over)?,
                (ReduceScatter, true) => farthest(&latencies, part, over)?,
                (Barrier | Broadcast | Reduce | Gather | Scatter, _) => {
                    farthest(&latencies, 0, over)?
                }
            });
        }
    }
    Ok(time)
}

fn direction(cables: &Part, incoming: bool) -> &Windows {
    if incoming {
        &cables.inwards
    } else {
        &cables.outwards
    }
}

/// So many bytes between a rank and the farthest one.
fn farthest(latencies: &[u64], bytes: u128, cables: &Windows) -> Result<Time, UnitError> {
    let reached = latencies.iter().filter(|latency| **latency < u64::MAX);
    let latency = Time::from_ps(reached.max().copied().unwrap_or(0));
    latency.plus(quotient(bits_ps(bytes)?, cables.rate())?)
}

/// So many bytes between a rank and each other one.
fn each(latencies: &[u64], rank: u32, bytes: u128, cables: &Windows) -> Result<Time, UnitError> {
    let others = (0u32..).zip(latencies).filter(|(other, _)| *other != rank);
    let mut others: Vec<u64> = others.map(|(_, latency)| *latency).collect();
    others.sort_unstable_by_key(|latency| Reverse(*latency));
    let mut time = Time::ZERO;
    let reached = others.into_iter().filter(|latency| *latency < u64::MAX);
    for (latency, count) in reached.zip(1u128..) {
        let sending = quotient(bits_ps(count * bytes)?, cables.rate())?;
        time = time.max(Time::from_ps(latency).plus(sending)?);
    }
    Ok(time)
}
