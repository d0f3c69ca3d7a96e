//! Bound and optimum of an all_to_all: the maximum concurrent flow
//! ([`concurrent_flow`](crate::concurrent_flow)) of one block of b = floor(M / N) bytes for each
//! pair of ranks.
//!
//! Any lengths of the links give a bound. Equal lengths state that every message loads at least as
//! many links as a shortest route has, and that all messages together cannot exceed the rates.
//! Lengths on the links of a cut alone state the bytes that cross the cut. If some routes take the
//! time of the bound, that time is the optimum.

use super::links::Links;
use super::ratio::{Optimum, Ratio};
use super::{Witness, WitnessedBound, cuts};
use crate::concurrent_flow::{BlockTime, ChunkRoutes, ConcurrentFlow, Pair, pairs};
use crate::{TimeBound, over};
use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum product of ranks and links; larger networks have no bound.
const MAX_SIZE: usize = 1 << 24;

/// Maximum number of steps over links in the search for good routes, which show the bottleneck.
const MAX_SEARCH_STEPS: u64 = 50_000_000;

/// Numbers of chunks per block for which routes are searched, until their time equals a bound.
const CHUNKS: [u32; 4] = [1, 2, 3, 4];

/// Relative difference below which a floating-point time counts as equal to an exact time.
const TOLERANCE: f64 = 1e-9;

/// Returns the pairs of an all_to_all and the links that they cross.
fn flow_and_pairs<'a>(
    network: &'a dyn Network,
    collective: &Collective,
) -> Option<(ConcurrentFlow<'a>, Vec<Pair>)> {
    let is_large = (network.ranks() as usize).saturating_mul(network.links().len()) > MAX_SIZE;
    if collective.kind() != CollectiveKind::AllToAll || is_large || network.ranks() < 2 {
        return None;
    }
    Some((ConcurrentFlow::of(network)?, pairs(collective)?))
}

/// Lower and upper bound on the time of a block.
struct Enclosed {
    /// Greatest lower bound found.
    bound: BlockTime,
    /// Lengths of the links that prove the lower bound.
    lengths: Vec<u64>,
    /// Least time of all routes tried: an upper bound.
    most: BlockTime,
}

/// Returns the bound of the best cut tried, with length 1 on each link of the cut. Routes that take
/// no longer end the search.
fn cut_bound(
    flow: &ConcurrentFlow<'_>,
    pairs: &[Pair],
    links: &Links,
    collective: &Collective,
) -> Option<(BlockTime, Vec<u64>)> {
    let (_, cut) = cuts::best_ratio(links, collective)?;
    let mut lengths = vec![0; links.edges.len()];
    cut.links
        .iter()
        .for_each(|link| lengths[*link as usize] = 1);
    Some((flow.bound(pairs, &lengths)?, lengths))
}

/// Searches lengths and routes until a lower and an upper bound meet, or all numbers of chunks are
/// tried. `None` if a pair is not joined or numbers exceed 128 bits.
fn search(
    flow: &ConcurrentFlow<'_>,
    pairs: &[Pair],
    cut: Option<(BlockTime, Vec<u64>)>,
) -> Option<Enclosed> {
    let (mut bound, mut lengths) = flow.best_bound(pairs, None)?;
    if let Some(cut) = cut.filter(|cut| bound.is_below(cut.0)) {
        (bound, lengths) = cut;
    }
    // Floating point, because a block divided among thousands of routes has no small denominator.
    let (evenly, uses) = flow.evenly_divided(pairs)?;
    let reaches = |bound: BlockTime| evenly <= bound.seconds() * (1.0 + TOLERANCE);
    if !reaches(bound) {
        let other = flow.best_bound(pairs, Some(&uses))?;
        if bound.is_below(other.0) {
            (bound, lengths) = other;
        }
    }
    let mut most: Option<BlockTime> = reaches(bound).then_some(bound);
    for chunks in CHUNKS {
        if most.is_some_and(|most| !bound.is_below(most)) {
            break;
        }
        let routes: ChunkRoutes = flow.routes(pairs, chunks, bound, MAX_SEARCH_STEPS)?;
        if most.is_none_or(|most| routes.time.is_below(most)) {
            most = Some(routes.time);
        }
        let other = flow.best_bound(pairs, Some(&flow.uses(&routes)))?;
        if bound.is_below(other.0) {
            (bound, lengths) = other;
            if reaches(bound) {
                most = Some(bound);
            }
        }
    }
    Some(Enclosed {
        bound,
        lengths,
        most: most?,
    })
}

/// Returns the bound on the time. With `thorough`, a search for good routes first locates the
/// bottleneck.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub(super) fn bound(
    network: &dyn Network,
    links: &Links,
    collective: &Collective,
    size: Bytes,
    thorough: bool,
) -> Result<Option<WitnessedBound>, UnitError> {
    let Some((flow, pairs)) = flow_and_pairs(network, collective) else {
        return Ok(None);
    };
    let best = match thorough {
        true => {
            let cut = cut_bound(&flow, &pairs, links, collective);
            search(&flow, &pairs, cut).map(|found| (found.bound, found.lengths))
        }
        false => flow.best_bound(&pairs, None),
    };
    let Some((best, lengths)) = best else {
        return Ok(None);
    };
    let part = u128::from(size.get()) / u128::from(collective.ranks());
    let Some(bytes) = best.blocks.checked_mul(part) else {
        return Ok(None);
    };
    Ok(Some(WitnessedBound {
        bound: TimeBound {
            time: over(bytes, best.rate)?,
            name: "concurrent_flow",
            assumption: "the links must carry the messages of all pairs together, on any routes",
        },
        witness: Some(witness(&lengths)),
    }))
}

/// Returns the links that have a length, as a witness.
fn witness(lengths: &[u64]) -> Witness {
    let long = (0u32..).zip(lengths).filter(|(_, length)| **length > 0);
    let (links, lengths) = long.unzip();
    Witness {
        ranks: Vec::new(),
        parts: 0,
        links,
        lengths,
    }
}

/// Returns bounds on the throughput optimum of an all_to_all.
pub(super) fn optimum(network: &dyn Network, collective: &Collective) -> Option<Optimum> {
    let (flow, pairs) = flow_and_pairs(network, collective)?;
    let links = Links::of(network)?;
    let found = search(&flow, &pairs, cut_bound(&flow, &pairs, &links, collective))?;
    let ranks = u128::from(collective.ranks());
    let ratio = |time: BlockTime| {
        Ratio {
            bytes: time.blocks,
            rate: time.rate,
        }
        .over(ranks)
    };
    Some(Optimum {
        least: ratio(found.bound)?,
        most: ratio(found.most),
        witness: witness(&found.lengths),
    })
}

/// Returns the time per byte of size that lengths of the links prove for a block of every pair;
/// `None` if they prove nothing.
pub fn time_from_lengths(
    network: &dyn Network,
    collective: &Collective,
    lengths: &[u64],
) -> Option<Ratio> {
    let pairs = pairs(collective)?;
    let time = ConcurrentFlow::of(network)?.bound(&pairs, lengths)?;
    let blocks = match collective.kind() {
        CollectiveKind::AllToAll => collective.ranks(),
        _ => 1,
    };
    let ratio = Ratio {
        bytes: time.blocks,
        rate: time.rate,
    };
    ratio.over(blocks.into())
}
