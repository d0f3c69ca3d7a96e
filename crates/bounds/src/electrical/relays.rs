//! Bound of relays (theorem E6): data that do not come directly from their owner were forwarded,
//! which takes the latencies of two messages.
//!
//! Let R(u, v) be the least d(u, w) + d(w, v) over all other ranks w, where d is the least latency
//! of a route. R_1 >= R_2 >= ... are the values R(u, v) for the root u, sorted. C is the rate of
//! the cables of u, in bytes per second, and l is the least latency of a route from u. A broadcast
//! of M bytes takes
//!
//! ```text
//! T >= max over j of  min(R_j, l + j M / C)
//! ```
//!
//! The bound also holds for a reduce at its root v, and for an all_reduce at any rank v. R_1, R_2,
//! ... are then the values R(u, v) of all other ranks u. C is the rate of the cables into v, and l
//! is the least latency into v. On a fabric of switches, two messages have more latency than one.
//! If ranks forward, as on a torus, R differs from d only between neighbours.

use std::cmp::Reverse;

use super::cuts::CutPart;
use super::links::Links;
use crate::{bits_ps, quotient};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of link visits and of sums of two latencies, together. Larger networks have no
/// bound.
const MAX_STEPS: usize = 1 << 21;

/// Returns the greatest bound of all examined ranks. `cables` is indexed by rank.
pub(super) fn best(
    links: &Links,
    cables: &[CutPart],
    collective: &Collective,
    size: Bytes,
) -> Result<Time, UnitError> {
    let ranks = collective.ranks() as usize;
    let root = collective.root() as usize;
    let sums = ranks * ranks;
    let is_large = ranks.saturating_mul(links.edges.len()).max(sums) > MAX_STEPS;
    // A sum that switches add has the contributions of several ranks, and a multicast reaches
    // several ranks; the theorem permits neither.
    let work = links.work(|_| true);
    let is_refuted = match collective.kind() {
        CollectiveKind::Broadcast => work.multicasts,
        _ => work.adds,
    };
    let centres = match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => root..root + 1,
        CollectiveKind::AllReduce => 0..ranks,
        _ => return Ok(Time::ZERO),
    };
    if is_refuted || is_large || !links.has_latency() {
        return Ok(Time::ZERO);
    }
    // Latencies from each rank to the centre; for a broadcast, from the centre to each rank.
    let towards = collective.kind() != CollectiveKind::Broadcast;
    let latencies: Vec<Vec<u64>> = (0..collective.ranks())
        .map(|rank| links.latencies(rank, towards))
        .collect();
    let mut time = Time::ZERO;
    for centre in centres.step_by((stride(ranks, sums)).max(1)) {
        interrupt::check();
        let from_centre = &latencies[centre];
        let others = || (0..ranks).filter(move |&other| other != centre);
        let relayed = |other: usize| {
            let relay = others().filter(|&relay| relay != other);
            let sums =
                relay.map(|relay| from_centre[relay].saturating_add(latencies[relay][other]));
            sums.min().unwrap_or(u64::MAX)
        };
        let mut relayed: Vec<u64> = others().map(relayed).collect();
        relayed.sort_unstable_by_key(|latency| Reverse(*latency));
        let least = others().map(|other| from_centre[other]).min().unwrap_or(0);
        let cables = match towards {
            true => &cables[centre].inwards,
            false => &cables[centre].outwards,
        };
        for (latency, count) in relayed.into_iter().zip(1u128..) {
            let bits = bits_ps(count * u128::from(size.get()))?;
            let direct = Time::from_ps(least).plus(quotient(bits, cables.rate())?)?;
            time = time.max(direct.min(Time::from_ps(latency)));
        }
    }
    Ok(time)
}

/// Returns the stride between examined ranks. Each examined rank needs `sums` sums, and the stride
/// keeps the number of all sums within [`MAX_STEPS`].
fn stride(ranks: usize, sums: usize) -> usize {
    ranks.div_ceil((MAX_STEPS / sums).max(1))
}
