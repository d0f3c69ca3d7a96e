//! Bound of the tightest cuts. Maximum flows find, among all sets of vertices, the sets whose links
//! are busiest ([`throughput`](crate::throughput), theorems E8 and E9).
//!
//! The bytes that cross such a cut, and their time on its links, are computed as for any other cut
//! ([`cuts`]). Without latencies and rounding, an all_gather or reduce_scatter with blocks of d
//! bytes takes at least d times the ratio of the cut (blocks that must cross, divided by the rate).
//! Some plans take no longer, unless a link is half-duplex.

use super::WitnessedBound;
use super::cuts::{self, Partition};
use super::links::{Links, UNBOUNDED};
use crate::TimeBound;
use crate::throughput::spanning::{TightestPartition, tightest_partition};
use crate::throughput::{Cuts, RatedLink, TightestCut, tightest};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Returns the tightest cuts of `collective`, each as (cut, true if the links were reversed). Each
/// search takes at most `max_steps` link visits.
pub(super) fn cuts_of(
    links: &Links,
    collective: &Collective,
    max_steps: u64,
) -> Vec<(TightestCut, bool)> {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    let root = collective.root();
    let wanted: &[(Cuts, bool)] = match collective.kind() {
        AllGather => &[(Cuts::EachRank, false)],
        ReduceScatter => &[(Cuts::EachRank, true)],
        AllReduce => &[
            (Cuts::EachRank, false),
            (Cuts::EachRank, true),
            (Cuts::From(root), false),
            (Cuts::From(root), true),
        ],
        Gather => &[(Cuts::Into(root), false)],
        Scatter => &[(Cuts::Into(root), true)],
        Broadcast => &[(Cuts::From(root), false)],
        Reduce => &[(Cuts::From(root), true)],
        // The tightest cut of an all_to_all is none of these, and a barrier has no cut.
        AllToAll | Barrier => &[],
    };
    let rated = |reversed: bool| -> Vec<RatedLink> {
        let mut rated_links = Vec::with_capacity(2 * links.edges.len());
        for edge in &links.edges {
            let (from, to) = (edge.from as u32, edge.to as u32);
            let rate = (edge.rate != UNBOUNDED).then_some(edge.rate as u64);
            if !reversed || edge.both_ways {
                rated_links.push((from, to, rate));
            }
            if reversed || edge.both_ways {
                rated_links.push((to, from, rate));
            }
        }
        rated_links
    };
    let find = |&(which, reversed): &(Cuts, bool)| {
        let cut = tightest(
            links.ranks,
            links.vertices(),
            &rated(reversed),
            which,
            max_steps,
        );
        Some((cut?, reversed))
    };
    wanted.iter().filter_map(find).collect()
}

/// Returns the greatest bound of the tightest cuts and of the tightest partition. `least` is the
/// least latency of a message.
pub(super) fn best(
    links: &Links,
    collective: &Collective,
    size: Bytes,
    least: Time,
    max_steps: u64,
) -> Result<Option<WitnessedBound>, UnitError> {
    let assumption = match collective.kind() {
        CollectiveKind::AllReduce => {
            "the data that a part of the ranks needs from the other ranks cross the links between \
             them; the bound is that of the tightest cut of a reduce_scatter, an all_gather, a \
             reduce or a broadcast, or that of all parts of the tightest partition together"
        }
        _ => {
            "the data that a part of the ranks needs from the other ranks cross the links between \
             them; the bound is that of the part with the busiest links"
        }
    };
    let mut best: Option<WitnessedBound> = None;
    let of_cuts = cuts_of(links, collective, max_steps);
    let of_cuts = of_cuts.iter().map(|(cut, _)| labels_of(links, cut));
    let partition = partition_of(links, collective, max_steps).map(|partition| partition.parts);
    for labels in of_cuts.chain(partition) {
        let partition = Partition::new(links, |vertex| labels[vertex], collective.root());
        let (time, side) = partition.time(collective, size, least)?;
        if best.as_ref().is_none_or(|best| time > best.bound.time) {
            best = Some(WitnessedBound {
                bound: TimeBound {
                    time,
                    name: "throughput",
                    assumption,
                },
                witness: side.map(|side| cuts::witness(links, |vertex| labels[vertex], side)),
            });
        }
    }
    Ok(best)
}

/// Returns the partition of an all_reduce whose cables are busiest, counting both directions.
/// `None` if the network has switches, which could add data.
pub(super) fn partition_of(
    links: &Links,
    collective: &Collective,
    max_steps: u64,
) -> Option<TightestPartition> {
    let is_shared = links.edges.iter().all(|edge| edge.rate != UNBOUNDED);
    let is_direct = is_shared && links.vertices() == links.ranks as usize;
    if collective.kind() != CollectiveKind::AllReduce || !is_direct {
        return None;
    }
    let edges = links.edges.iter();
    let cables = edges.map(|edge| (edge.from as u32, edge.to as u32, edge.rate));
    tightest_partition(links.ranks, &cables.collect::<Vec<_>>(), max_steps)
}

/// Returns the label of each vertex, indexed by vertex: 0 inside `cut`, 1 outside.
pub(super) fn labels_of(links: &Links, cut: &TightestCut) -> Vec<u32> {
    let mut outside = vec![1u32; links.vertices()];
    for vertex in &cut.vertices {
        outside[*vertex as usize] = 0;
    }
    outside
}
