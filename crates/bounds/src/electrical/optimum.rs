//! Throughput optimum of a collective: the time per byte of the best plan at large sizes. This time
//! is a fraction.
//!
//! At a large size S, a collective takes S times the optimum. If data are only gathered or
//! distributed, the tightest cut alone limits the optimum ([`throughput`](crate::throughput)).
//!
//! An all_reduce of size S takes at most the sum of a reduce_scatter and an all_gather with blocks
//! of S / N, and at least the greater of these two times. It also takes at least 2 (G - 1) S over
//! the sum of the rates into all parts, for any partition into G parts (theorem E2; Patarasuk and
//! Yuan, Journal of Parallel and Distributed Computing 2009). If the lower and the upper bound are
//! equal, they are the optimum. If cables of equal rate in both directions join the ranks without
//! switches, spanning trees always reach the bound of the tightest partition (theorem E9,
//! [`spanning`](crate::throughput::spanning)).
//!
//! If switches add and multicast, theorem N1 gives another lower bound on an all_reduce, and the
//! loads of links by the algorithm `nvls` give another upper bound (`switches`).
//!
//! An all_to_all is a maximum concurrent flow (`concurrent`).
//!
//! A switch with more rate out than in would have to copy data to fill its outgoing links. On a
//! network with such a switch, perhaps no plan reaches the bound of the tightest cut. For
//! collectives that reduce, this applies to switches with more rate in than out.
//!
//! On a half-duplex link, the data that enter a part and the data that leave it share the time of
//! the link, which a maximum flow does not model. On such networks, the partitions of `cuts` give
//! the lower bound, and no upper bound is known.

use rustc_hash::FxHashMap;

use super::cuts::Partition;
use super::links::Links;
use super::ratio::{Optimum, Ratio};
use super::tightest::{self, cuts_of};
use super::{Witness, concurrent, cuts, switches};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of cable visits in the search for the tightest partition of an all_reduce.
const MAX_STEPS: u64 = 100_000_000;

/// Returns bounds on the throughput optimum. `None` for a single rank, a barrier or a demand. Also
/// `None` if ranks cannot reach each other, if no cut limits the time because links give every flow
/// their whole rate, if the network does not know the ends of its links, or if a number exceeds 128
/// bits.
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
        let partition = Partition::new(&links, |vertex| labels[vertex], collective.root());
        let Some((ratio, side)) = partition.ratio(collective)? else {
            continue;
        };
        if is_greater(ratio, best.as_ref())? {
            best = Some((ratio, cuts::witness(&links, |vertex| labels[vertex], side)));
        }
    }
    // The tightest cut does not count the bytes that all parts receive together, nor both
    // directions of a half-duplex link.
    if half_duplex || is_all_reduce {
        let tried = cuts::best_ratio(&links, collective);
        if let Some((ratio, witness)) = tried
            && is_greater(ratio, best.as_ref())?
        {
            best = Some((ratio, witness));
        }
    }
    if is_all_reduce
        && let Some((ratio, witness)) = switches::ratio(&links, collective)
        && is_greater(ratio, best.as_ref())?
    {
        best = Some((ratio, witness));
    }
    let (least, witness) = best?;
    let most = match &cuts[..] {
        _ if half_duplex => None,
        [(gathered, _), (scattered, _), ..] if is_all_reduce => {
            let ranks = u128::from(collective.ranks());
            let gathered = Ratio::of(gathered).divided_by(ranks)?;
            let scattered = Ratio::of(scattered).divided_by(ranks)?;
            let is_reached = can_fill_links_without_copies(&links, false)
                && can_fill_links_without_copies(&links, true);
            let in_turn = gathered.plus(scattered).filter(|_| is_reached);
            // The two directions of such trees need equal rates.
            let in_parallel = partition.filter(|_| is_symmetric(&links)).map(|partition| {
                Ratio {
                    bytes: 2 * (partition.count - 1),
                    rate: partition.rate,
                }
                .reduced()
            });
            let most = in_parallel.or(in_turn);
            match switches::reached(network, &links) {
                Some(by_switches)
                    if most.is_none_or(|most| by_switches.is_below(most) == Some(true)) =>
                {
                    Some(by_switches)
                }
                _ => most,
            }
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

/// Returns whether, for every two vertices, the rates in both directions are equal.
fn is_symmetric(links: &Links) -> bool {
    let mut excess: FxHashMap<(usize, usize), i128> = FxHashMap::default();
    for edge in links.edges.iter().filter(|edge| edge.from != edge.to) {
        let (from, to) = (edge.from.min(edge.to), edge.from.max(edge.to));
        let sign = if from == edge.from { 1 } else { -1 };
        *excess.entry((from, to)).or_default() += sign * edge.rate as i128;
    }
    excess.values().all(|excess| *excess == 0)
}

/// Returns whether `ratio` exceeds the ratio in `best`; `None` if a product exceeds 128 bits.
fn is_greater(ratio: Ratio, best: Option<&(Ratio, Witness)>) -> Option<bool> {
    best.map_or(Some(true), |best| best.0.is_below(ratio))
}

/// Returns whether the rates into each switch add up to at least the rates out of the switch.
/// `reversed` exchanges the two directions.
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
