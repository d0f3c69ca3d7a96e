//! The bound of an all_to_all by what it loads on all links together.
//!
//! Each of the N (N - 1) pairs of ranks has a message of b = floor(M / N) bytes. Over d(u, v) links at least, it takes
//! b d(u, v) of what all links can carry. So links of rates c_e take
//!
//! ```text
//! T >= b (sum of d(u, v) over pairs) / (sum of c_e)
//! ```
//!
//! (the distances are a solution of the dual of the maximum concurrent flow: Leighton and Rao, Journal of the ACM 46,
//! 1999). It is met where all links can be loaded alike by shortest ways, as on a torus of even dimensions.

use super::links::{Links, UNBOUNDED};
use crate::bound::over;
use crate::collective::{Collective, CollectiveKind};
use crate::graph::{UNREACHED, distances};
use crate::units::{Bytes, Time, UnitError};

/// Most steps over links, all ranks together; beyond, no distances are looked up.
const MOST_WORK: usize = 1 << 24;

/// The bound; zero of other collectives, of large networks, and where a link is not shared.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub(super) fn time(links: &Links, collective: &Collective, size: Bytes) -> Result<Time, UnitError> {
    let ranks = collective.ranks() as usize;
    let is_large = ranks.saturating_mul(links.edges.len()) > MOST_WORK;
    let unbounded = links.edges.iter().any(|edge| edge.rate == UNBOUNDED);
    if collective.kind() != CollectiveKind::AllToAll || is_large || unbounded {
        return Ok(Time::ZERO);
    }
    let mut hops = 0u128;
    for rank in 0..collective.ranks() {
        let from = distances(links.vertices(), rank, |vertex| links.next_to(vertex));
        let reached = from[..ranks].iter().filter(|hops| **hops != UNREACHED);
        hops += reached.map(|hops| u128::from(*hops)).sum::<u128>();
    }
    let part = u128::from(size.get()) / ranks as u128;
    over(hops * part, links.edges.iter().map(|edge| edge.rate).sum())
}
