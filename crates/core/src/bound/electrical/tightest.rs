//! The bound of the tightest cuts: of all sets of vertices those whose links are busiest, found by maximum flows
//! ([`throughput`](crate::bound::throughput)) instead of tried.
//!
//! What must cross the cut, and when the links can carry it, is as for any other cut ([`cuts`](super::cuts)). Without
//! latencies and rounding the time of an all_gather or reduce_scatter of blocks of d bytes is d times the ratio of the
//! cut, and there are plans that take no longer, wherever no link is half-duplex.

use super::Witness;
use super::cuts::{self, CutPart};
use super::links::{Edge, Links, UNBOUNDED};
use crate::bound::throughput::{Cuts, RatedLink, TightestCut, tightest};
use crate::collective::{Collective, CollectiveKind};
use crate::units::{Bytes, Time, UnitError};

/// The tightest cuts of a collective, each with whether links were reversed; `most_work` steps over links for each.
pub(super) fn cuts_of(
    links: &Links,
    collective: &Collective,
    most_work: u64,
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
        // Their tightest cut is another one, or none.
        AllToAll | Barrier => &[],
    };
    let rated = |reversed: bool| -> Vec<RatedLink> {
        let mut all = Vec::with_capacity(2 * links.edges.len());
        for edge in &links.edges {
            let (from, to) = (edge.from as u32, edge.to as u32);
            let rate = (edge.rate != UNBOUNDED).then_some(edge.rate as u64);
            if !reversed || edge.both_ways {
                all.push((from, to, rate));
            }
            if reversed || edge.both_ways {
                all.push((to, from, rate));
            }
        }
        all
    };
    let one = |&(which, reversed): &(Cuts, bool)| {
        let cut = tightest(
            links.ranks,
            links.vertices(),
            &rated(reversed),
            which,
            most_work,
        );
        Some((cut?, reversed))
    };
    wanted.iter().filter_map(one).collect()
}

/// The time that a cut demands, with the least latency of any message.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub(super) fn time(
    links: &Links,
    cut: &TightestCut,
    collective: &Collective,
    size: Bytes,
    least: Time,
) -> Result<Time, UnitError> {
    let mut outside = vec![1u32; links.vertices()];
    for vertex in &cut.vertices {
        outside[*vertex as usize] = 0;
    }
    let parts: Vec<CutPart> = cuts::parts(links, |vertex| outside[vertex], collective.root());
    cuts::of_parts(&parts, collective, size, least)
}

/// The ranks of a cut, and the links into it, or out of it where links were reversed.
pub(super) fn witness(links: &Links, cut: &TightestCut, reversed: bool) -> Witness {
    let mut inside = vec![false; links.vertices()];
    for vertex in &cut.vertices {
        inside[*vertex as usize] = true;
    }
    let ranks = cut.vertices.iter().copied();
    let crosses = |edge: &Edge| match inside[edge.from] == inside[edge.to] {
        true => false,
        false => edge.both_ways || inside[edge.to] != reversed,
    };
    let numbered = (0u32..).zip(&links.edges);
    Witness {
        ranks: ranks.filter(|vertex| *vertex < links.ranks).collect(),
        links: numbered
            .filter(|(_, edge)| crosses(edge))
            .map(|(number, _)| number)
            .collect(),
        lengths: Vec::new(),
    }
}
