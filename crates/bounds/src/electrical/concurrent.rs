//! Bound and optimum of an all_to_all. They follow from the maximum concurrent flow
//! ([`concurrent_flow`](crate::concurrent_flow)) of one block of b = floor(M / N) bytes per pair of
//! ranks.
//!
//! Any lengths of the links give a bound. Equal lengths express that every message loads at least
//! the links of a shortest route, and that all messages together cannot exceed the rates. If only
//! the links of a cut have a length, the lengths express the bytes that cross the cut. If some
//! routes take the time of the bound, this time is the optimum.

use super::links::Links;
use super::ratio::{Optimum, Ratio};
use super::{Witness, WitnessedBound, cuts};
use crate::concurrent_flow::{BlockTime, ChunkRoutes, ConcurrentFlow, Pair, pairs};
use crate::{TimeBound, transmission_time};
use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum product of the number of ranks and the number of links. Larger networks have no bound.
const MAX_SIZE: usize = 1 << 24;

/// Maximum number of link visits in the search for good routes, which show the bottleneck.
const MAX_SEARCH_STEPS: u64 = 50_000_000;

/// Numbers of chunks per block that the search for routes tries one after the other, until the time
/// of the routes equals the bound.
const CHUNKS: [u32; 4] = [1, 2, 3, 4];

/// Relative difference up to which a floating-point time counts as equal to an exact time.
const TOLERANCE: f64 = 1e-9;

/// Returns the links of the network, and the pairs of ranks of an all_to_all. `None` for another
/// collective or a large network.
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

/// Lower and upper bound on the time in which one block per pair crosses the network.
pub(crate) struct Enclosed {
    /// Greatest lower bound of all lengths that were tried.
    pub(crate) bound: BlockTime,
    /// Lengths of the links that prove the lower bound, indexed by link.
    pub(crate) lengths: Vec<u64>,
    /// Upper bound: the least time of all routes that were tried.
    upper: BlockTime,
}

/// Returns the bound of the best cut that was tried, with lengths: 1 for each link of the cut.
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

/// Searches lengths and routes until the lower and the upper bound are equal, or until all of
/// [`CHUNKS`] are tried. `None` if some pair has no route, or if a number exceeds 128 bits.
pub(crate) fn enclosed(
    flow: &ConcurrentFlow<'_>,
    pairs: &[Pair],
    cut: Option<(BlockTime, Vec<u64>)>,
) -> Option<Enclosed> {
    let (mut bound, mut lengths) = flow.best_bound(pairs, None)?;
    if let Some(cut) = cut.filter(|cut| bound.is_below(cut.0)) {
        (bound, lengths) = cut;
    }
    // Floating point, because a block divided among many routes has a large denominator.
    let (even_time, uses) = flow.evenly_divided(pairs)?;
    let reaches = |bound: BlockTime| even_time <= bound.seconds() * (1.0 + TOLERANCE);
    if !reaches(bound) {
        let other = flow.best_bound(pairs, Some(&uses))?;
        if bound.is_below(other.0) {
            (bound, lengths) = other;
        }
    }
    let mut upper: Option<BlockTime> = reaches(bound).then_some(bound);
    for chunks in CHUNKS {
        if upper.is_some_and(|upper| !bound.is_below(upper)) {
            break;
        }
        let routes: ChunkRoutes = flow.routes(pairs, chunks, bound, MAX_SEARCH_STEPS)?;
        if upper.is_none_or(|upper| routes.time.is_below(upper)) {
            upper = Some(routes.time);
        }
        let other = flow.best_bound(pairs, Some(&flow.uses(&routes)))?;
        if bound.is_below(other.0) {
            (bound, lengths) = other;
            if reaches(bound) {
                upper = Some(bound);
            }
        }
    }
    Some(Enclosed {
        bound,
        lengths,
        upper: upper?,
    })
}

/// Returns the bound on the time. `thorough` adds a search for routes that show the bottleneck.
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
            enclosed(&flow, &pairs, cut).map(|found| (found.bound, found.lengths))
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
            time: transmission_time(bytes, best.rate)?,
            name: "concurrent_flow",
            assumption: "the links must carry the messages of all pairs together, on any routes",
        },
        witness: Some(witness_of_lengths(&lengths)),
    }))
}

/// Returns the witness of `lengths`, which are indexed by link.
pub(crate) fn witness_of_lengths(lengths: &[u64]) -> Witness {
    let long = (0u32..).zip(lengths).filter(|(_, length)| **length > 0);
    let (links, lengths) = long.unzip();
    Witness {
        trees: None,
        ranks: Vec::new(),
        parts: 0,
        links,
        lengths,
    }
}

/// Returns bounds on the throughput optimum of an all_to_all; `None` if the network is large.
pub(super) fn optimum(network: &dyn Network, collective: &Collective) -> Option<Optimum> {
    let (flow, pairs) = flow_and_pairs(network, collective)?;
    let links = Links::of(network)?;
    let found = enclosed(&flow, &pairs, cut_bound(&flow, &pairs, &links, collective))?;
    let ranks = u128::from(collective.ranks());
    let ratio = |time: BlockTime| {
        Ratio {
            bytes: time.blocks,
            rate: time.rate,
        }
        .divided_by(ranks)
    };
    Some(Optimum {
        least: ratio(found.bound)?,
        most: ratio(found.upper),
        witness: witness_of_lengths(&found.lengths),
    })
}

/// Returns the lower bound on the time that `lengths` prove, divided by the size of `collective`.
/// `lengths` is indexed by link. `None` if the lengths prove nothing.
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
    ratio.divided_by(blocks.into())
}
