//! The throughput optimum of a collective as a fraction: how long each byte takes at large sizes, by the best plan
//! there is.
//!
//! Of a collective of size S the time of large messages is S times the optimum. All that is
//! gathered or spread is limited by its tightest cut alone
//! ([`throughput`](crate::throughput)). An all_reduce of S takes at most a reduce_scatter
//! and then an all_gather of blocks of S / N, and at least the longer of both. It takes at least
//! 2 (G - 1) S over what all parts of a partition into G parts take in together (Patarasuk and Yuan,
//! Journal of Parallel and Distributed Computing 2009). Where the two meet, that is the optimum.
//! Where ranks are joined directly, by cables of equal rate both ways, spanning trees always reach
//! the bound of the tightest partition ([`spanning`](crate::throughput::spanning)). An
//! all_to_all is a maximum concurrent flow (`concurrent`).
//!
//! A switch with more rate out of it than into it would have to copy what it forwards, to fill its links out. There the tightest
//! cut is a bound that perhaps no plan reaches (of collectives that reduce: with more rate in than out).
//!
//! Over half-duplex links what enters a part and what leaves it share their time, which no maximum flow says. There the parts
//! of the partitions that `cuts` tries give the bound, and nothing is known of plans that reach it.

use rustc_hash::FxHashMap;

use super::links::Links;
use super::ratio::{Optimum, Ratio};
use super::tightest::{self, cuts_of};
use super::{Witness, concurrent, cuts};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// The search for the tightest partition of an all_reduce is given up after so many steps over
/// cables.
const MOST_WORK: u64 = 100_000_000;

/// The throughput optimum; `None` of a single rank, a barrier, where
/// ranks cannot reach each other, links are not shared, lead nobody knows where, or numbers leave 128 bits.
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
    let of_cuts = cuts.iter().map(|(cut, _)| tightest::labels_of(&links, cut));
    let partition = tightest::partition_of(&links, collective, MOST_WORK);
    let of_partition = partition.iter().map(|partition| partition.parts.clone());
    for labels in of_cuts.chain(of_partition) {
        let parts = cuts::parts(&links, |vertex| labels[vertex], collective.root());
        let Some((ratio, side)) = cuts::ratio_of_parts(&parts, collective)? else {
            continue;
        };
        if is_greater(ratio, best.as_ref())? {
            best = Some((ratio, cuts::witness(&links, |vertex| labels[vertex], side)));
        }
    }
    // What all parts take in together, or what crosses a half-duplex link both ways, a tightest cut does not say.
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
            let is_reached = never_copies(&links, false) && never_copies(&links, true);
            let in_turn = gathered.plus(scattered).filter(|_| is_reached);
            // Summed up and spread along the same trees, where cables carry as much each way.
            let side_by_side = partition.filter(|_| is_symmetric(&links)).map(|partition| {
                Ratio {
                    bytes: 2 * (partition.count - 1),
                    rate: partition.rate,
                }
                .reduced()
            });
            side_by_side.or(in_turn)
        }
        [(_, reversed)] => {
            let is_reached = match collective.kind() {
                CollectiveKind::Gather | CollectiveKind::Scatter => true,
                _ => never_copies(&links, *reversed),
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

/// Whether as much leads from each vertex to each other one as back.
fn is_symmetric(links: &Links) -> bool {
    let mut more: FxHashMap<(usize, usize), i128> = FxHashMap::default();
    for edge in links.edges.iter().filter(|edge| edge.from != edge.to) {
        let (from, to) = (edge.from.min(edge.to), edge.from.max(edge.to));
        let sign = if from == edge.from { 1 } else { -1 };
        *more.entry((from, to)).or_default() += sign * edge.rate as i128;
    }
    more.values().all(|more| *more == 0)
}

fn is_greater(ratio: Ratio, best: Option<&(Ratio, Witness)>) -> Option<bool> {
    best.map_or(Some(true), |best| best.0.is_below(ratio))
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
