//! The throughput optimum of a collective as a fraction: how long each byte takes at large sizes, by the best plan
//! there is.
//!
//! Of a collective of size S the time of large messages is S times the optimum. All that is gathered or spread is
//! limited by its tightest cut alone ([`throughput`](crate::bound::throughput)). An all_reduce of S takes at most a
//! reduce_scatter and then an all_gather of blocks of S / N, and at least the longer of both; and at least 2 (G - 1) S
//! over what all parts of a partition into G parts take in together (Patarasuk and Yuan, Journal of Parallel and
//! Distributed Computing 2009). Where the two meet, that is the optimum. An all_to_all is a maximum concurrent flow
//! (`concurrent`).
//!
//! A switch with more rate out of it than into it would have to copy what it forwards, to fill its links out. There the tightest
//! cut is a bound that perhaps no plan reaches (of collectives that reduce: with more rate in than out).

use super::concurrent;
use super::cuts;
use super::links::Links;
use super::ratio::{Optimum, Ratio};
use super::tightest::{cuts_of, witness};
use crate::collective::{Collective, CollectiveKind};
use crate::network::Network;

/// The throughput optimum; `None` of a single rank, a barrier, where
/// ranks cannot reach each other, links are not shared, lead nobody knows where, or numbers leave 128 bits.
pub fn optimum(network: &dyn Network, collective: &Collective) -> Option<Optimum> {
    if collective.kind() == CollectiveKind::AllToAll {
        return concurrent::optimum(network, collective);
    }
    let links = Links::of(network)?;
    let half_duplex = links.edges.iter().any(|edge| edge.both_ways);
    let cuts = cuts_of(&links, collective, u64::MAX);
    let (first, reversed) = cuts.first()?;
    let witness = witness(&links, first, *reversed);
    if cuts.iter().any(|(cut, _)| cut.rate == 0) {
        return None;
    }
    let least = Ratio::of(first);
    if collective.kind() != CollectiveKind::AllReduce {
        // Of a reduce_scatter the size counts all N blocks.
        let blocks = match collective.kind() {
            CollectiveKind::ReduceScatter => u128::from(collective.ranks()),
            _ => 1,
        };
        let least = least.over(blocks)?;
        let is_reached = !half_duplex
            && match collective.kind() {
                CollectiveKind::Gather | CollectiveKind::Scatter => true,
                _ => never_copies(&links, *reversed),
            };
        return Some(Optimum {
            least,
            most: is_reached.then_some(least),
            witness,
        });
    }
    let ranks = u128::from(collective.ranks());
    let [gathered, scattered, spread, reduced] = &cuts[..] else {
        return None;
    };
    let gathered = Ratio::of(&gathered.0).over(ranks)?;
    let scattered = Ratio::of(&scattered.0).over(ranks)?;
    let mut least = gathered;
    for (bytes, rate) in [scattered, Ratio::of(&spread.0), Ratio::of(&reduced.0)]
        .map(|ratio| (ratio.bytes, ratio.rate))
        .into_iter()
        .chain(cuts::partition_ratios(&links, collective.root()))
    {
        let ratio = Ratio { bytes, rate }.reduced();
        if least.is_below(ratio)? {
            least = ratio;
        }
    }
    Some(Optimum {
        least,
        most: if half_duplex || !never_copies(&links, false) || !never_copies(&links, true) {
            None
        } else {
            gathered.plus(scattered)
        },
        witness,
    })
}

/// Whether no switch has more rate out of it than into it, links being `reversed` or not.
fn never_copies(links: &Links, reversed: bool) -> bool {
    let (mut inwards, mut outwards) =
        (vec![0u128; links.vertices()], vec![0u128; links.vertices()]);
    for edge in &links.edges {
        let (from, to) = if reversed {
            (edge.to, edge.from)
        } else {
            (edge.from, edge.to)
        };
        outwards[from] = outwards[from].saturating_add(edge.rate);
        inwards[to] = inwards[to].saturating_add(edge.rate);
    }
    let switches = links.ranks as usize..links.vertices();
    switches
        .into_iter()
        .all(|switch| inwards[switch] >= outwards[switch])
}
