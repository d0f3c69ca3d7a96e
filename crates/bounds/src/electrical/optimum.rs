//! Throughput optimum of a collective: the time per byte that the best plan takes at large sizes,
//! as a fraction.
//!
//! A collective of size S takes S times the optimum if S is large. The tightest cut alone limits
//! data that are gathered or spread ([`throughput`](crate::throughput)). An all_reduce of S takes
//! at most a reduce_scatter and then an all_gather of blocks of S / N, and at least the longer of
//! the two. It also takes at least 2 (G - 1) S over the rate into all parts of a partition into G
//! parts (theorem E2; Patarasuk and Yuan, Journal of Parallel and Distributed Computing 2009). If
//! the lower and the upper bound meet, they are the optimum. If ranks are joined directly, by
//! cables of equal rate in both directions, spanning trees always reach the bound of the tightest
//! partition (theorem E9, [`spanning`](crate::throughput::spanning)). An all_to_all is a maximum
//! concurrent flow (`concurrent`).
//!
//! A switch with more rate out than in would have to copy data to fill its outgoing links. On such
//! a network the tightest cut is a bound that perhaps no plan reaches. For collectives that reduce,
//! the same holds of a switch with more rate in than out.
//!
//! On half-duplex links the data that enter a part and those that leave it share the time of the
//! link, which no maximum flow models. There the partitions of `cuts` give the bound, and no upper
//! bound is known. of the partitions that `cuts` tries give the bound, and nothing is known of
//! plans that reach it.

use rustc_hash::FxHashMap;

use super::links::Links;
use super::ratio::{Optimum, Ratio};
use super::tightest::{self, cuts_of};
use super::{Witness, concurrent, cuts};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of steps over cables in the search for the tightest partition of an all_reduce.
const MAX_STEPS: u64 = 100_000_000;

/// Returns bounds on the throughput optimum; `None` for a single rank, a barrier and a demand, and
/// if ranks cannot reach each other, links are not shared, the network does not know where they
/// lead, or numbers exceed 128 bits.
pub fn optimum(network: &dyn Network, collective: &Collective) -> Option<Optimum> {
    if collective.demand().is_some() {
        return None;
    }
    if collective.kind() == CollectiveKind::AllToAll {
        return concurrent::optimum(network, collective);
    }
    let links = Links::of(network)?;
    let half_duplex = links.edges.iter().any(|edge| edge.both_ways);
    let is_all_reduce = collective.kind() == CollectiveKind::AllReduce;
    let cuts = cuts_of(&links, collective, u64::MAX);
    if cuts.iter().any(|(cut, _)| cut.rate == 0) {
        return None;
    }
    let mut best: Option<(Ratio, Witness)> = None;
    let cut_labels = cuts.iter().map(|(cut, _)| tightest::labels_of(&links, cut));
    let partition = tightest::partition_of(&links, collective, MAX_STEPS);
    let partition_labels = partition.iter().map(|partition| partition.parts.clone());
    for labels in cut_labels.chain(partition_labels) {
        let parts = cuts::parts(&links, |vertex| labels[vertex], collective.root());
        let Some((ratio, side)) = cuts::partition_ratio(&parts, collective)? else {
            continue;
        };
        if is_greater(ratio, best.as_ref())? {
            best = Some((ratio, cuts::witness(&links, |vertex| labels[vertex], side)));
        }
    }
    // A tightest cut does not cover the bytes that all parts take in together, nor both directions
    // of a half-duplex link.
    if half_duplex || is_all_reduce {
        let tried = cuts::best_ratio(&links, collective);
        if let Some((ratio, witness)) = tried
            && is_greater(ratio, best.as_ref())?
        {
            best = Some((ratio, witness));
        }
    }
    let (least, witness) = best?;
    let most = match &cuts[..] {
        _ if half_duplex => None,
        [(gathered, _), (scattered, _), ..] if is_all_reduce => {
            let ranks = u128::from(collective.ranks());
            let gathered = Ratio::of(gathered).over(ranks)?;
            let scattered = Ratio::of(scattered).over(ranks)?;
            let is_reached = can_fill_links_without_copies(&links, false)
                && can_fill_links_without_copies(&links, true);
            let in_turn = gathered.plus(scattered).filter(|_| is_reached);
            // Trees that combine in one direction and spread in the other need equal rates in both
            // directions.
            let parallel_map = partition.filter(|_| is_symmetric(&links)).map(|partition| {
                Ratio {
                    bytes: 2 * (partition.count - 1),
                    rate: partition.rate,
                }
                .reduced()
            });
            parallel_map.or(in_turn)
        }
        [(_, reversed)] => {
            let is_reached = match collective.kind() {
                CollectiveKind::Gather | CollectiveKind::Scatter => true,
                _ => can_fill_links_without_copies(&links, *reversed),
            };
            is_reached.then_some(least)
        }
        _ => None,
    };
    Some(Optimum {
        least,
        most,
        witness,
    })
}

/// Returns whether the rate from each vertex to each other vertex equals the rate back.
fn is_symmetric(links: &Links) -> bool {
    let mut excess: FxHashMap<(usize, usize), i128> = FxHashMap::default();
    for edge in links.edges.iter().filter(|edge| edge.from != edge.to) {
        let (from, to) = (edge.from.min(edge.to), edge.from.max(edge.to));
        let sign = if from == edge.from { 1 } else { -1 };
        *excess.entry((from, to)).or_default() += sign * edge.rate as i128;
    }
    excess.values().all(|excess| *excess == 0)
}

/// Returns whether `ratio` exceeds the best one; `None` if a product exceeds 128 bits.
fn is_greater(ratio: Ratio, best: Option<&(Ratio, Witness)>) -> Option<bool> {
    best.map_or(Some(true), |best| best.0.is_below(ratio))
}

/// Returns whether no switch has more rate out than in; with `reversed`, more rate in than out.
fn can_fill_links_without_copies(links: &Links, reversed: bool) -> bool {
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
