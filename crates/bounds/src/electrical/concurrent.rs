//! The bound and the optimum of an all_to_all: the maximum concurrent flow
//! ([`concurrent_flow`](crate::concurrent_flow)), one block of b = floor(M / N) bytes for each pair of ranks.
//!
//! Any lengths of the links give a bound. Equal ones say that every message loads as many links as the shortest way to
//! its destination has, and that all together carry no more than their rates; lengths on the links of a cut alone say
//! what crosses it. Where a time that some ways take is that of the bound, it is the optimum.

use super::links::Links;
use super::ratio::{Optimum, Ratio};
use super::{Witness, WitnessedBound, cuts};
use crate::concurrent_flow::{BlockTime, ChunkWays, ConcurrentFlow, Pair, pairs};
use crate::{TimeBound, over};
use opticoll_base::units::{Bytes, UnitError};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Most steps over links in search of shortest ways; on larger networks nothing is known.
const MOST_WORK: usize = 1 << 24;

/// Most steps over links in search of good ways, which show where the bottleneck is.
const MOST_SEARCH: u64 = 50_000_000;

/// The numbers of chunks of a block with which ways are looked for, until their time is that of a bound.
const CHUNKS: [u32; 4] = [1, 2, 3, 4];

/// The relative difference below which a time in floating point is an exact one.
const AGREES: f64 = 1e-9;

/// The pairs of an all_to_all and the links that they cross.
fn demands<'a>(
    network: &'a dyn Network,
    collective: &Collective,
) -> Option<(ConcurrentFlow<'a>, Vec<Pair>)> {
    let is_large = (network.ranks() as usize).saturating_mul(network.links().len()) > MOST_WORK;
    if collective.kind() != CollectiveKind::AllToAll || is_large || network.ranks() < 2 {
        return None;
    }
    Some((ConcurrentFlow::of(network)?, pairs(collective)?))
}

/// What a search finds.
struct Enclosed {
    bound: BlockTime,
    /// The lengths that show it.
    lengths: Vec<u64>,
    /// The least time of all ways looked at.
    most: BlockTime,
}

/// What the best cut that is tried says, as lengths of one on its links: ways that take no longer end the search.
fn of_cut(
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

fn search(
    flow: &ConcurrentFlow<'_>,
    pairs: &[Pair],
    cut: Option<(BlockTime, Vec<u64>)>,
) -> Option<Enclosed> {
    let (mut bound, mut lengths) = flow.best_bound(pairs, None)?;
    if let Some(cut) = cut.filter(|cut| bound.is_below(cut.0)) {
        (bound, lengths) = cut;
    }
    // In floating point, since a block divided among thousands of ways has no small denominator.
    let (evenly, uses) = flow.evenly_divided(pairs)?;
    let reaches = |bound: BlockTime| evenly <= bound.seconds() * (1.0 + AGREES);
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
        let ways: ChunkWays = flow.ways(pairs, chunks, bound, MOST_SEARCH)?;
        if most.is_none_or(|most| ways.time.is_below(most)) {
            most = Some(ways.time);
        }
        let other = flow.best_bound(pairs, Some(&flow.uses(&ways)))?;
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

/// The bound on time; `thorough` looks for good ways first, which tell where the bottleneck is.
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
    let Some((flow, pairs)) = demands(network, collective) else {
        return Ok(None);
    };
    let best = match thorough {
        true => {
            let cut = of_cut(&flow, &pairs, links, collective);
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
            assumption: "the links carry all messages at once, whatever ways these take",
        },
        witness: Some(witness(&lengths)),
    }))
}

/// The links with a length.
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

/// What is known of the optimum of an all_to_all.
pub(super) fn optimum(network: &dyn Network, collective: &Collective) -> Option<Optimum> {
    let (flow, pairs) = demands(network, collective)?;
    let links = Links::of(network)?;
    let found = search(&flow, &pairs, of_cut(&flow, &pairs, &links, collective))?;
    let ranks = u128::from(collective.ranks());
    let of = |time: BlockTime| {
        Ratio {
            bytes: time.blocks,
            rate: time.rate,
        }
        .over(ranks)
    };
    Some(Optimum {
        least: of(found.bound)?,
        most: of(found.most),
        witness: witness(&found.lengths),
    })
}

/// The time that lengths of the links prove for a block of every pair, per byte of size; `None` where they prove
/// nothing.
pub fn proved_by(network: &dyn Network, collective: &Collective, lengths: &[u64]) -> Option<Ratio> {
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
