//! Tightest cuts of a graph of fibres (theorem W2): the chunks or bytes that one part of the graph
//! needs from the other, over the channels between them.

use super::fibres::{FibreLink, Fibres};
use super::recent::Recent;
use crate::electrical::Witness;
use crate::throughput::{Cuts, RatedLink, TightestCut, tightest};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of link visits in the search for the tightest cut.
const MAX_STEPS: u64 = 1 << 24;

/// Capacity of links: channels for the chunks of a slot, or rates for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Measure {
    /// Channels of links.
    Channels,
    /// Rates of links in bit/s.
    Rates,
}

impl Measure {
    /// Returns the capacity of a link; `None` if it exceeds 64 bits.
    pub(super) fn of(self, link: &FibreLink) -> Option<u64> {
        match self {
            Measure::Channels => Some(link.channels),
            Measure::Rates => u64::try_from(link.rate).ok(),
        }
    }
}

/// Cut with the direction in which data cross it.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// Blocks (for collectives of a vector: vectors) that cross, and the capacity of the links.
    pub(super) cut: TightestCut,
    /// True if the data leave the set of vertices.
    pub(super) leaves: bool,
}

/// Cached cuts, by kind, root and measure.
static CUTS: Recent<(CollectiveKind, u32, Measure), Option<Cut>> = Recent::new();

/// Returns the tightest cut of a collective; `None` if the collective has none, or if no link leads
/// into a cut.
pub(super) fn tightest_cut(
    graph: &WdmGraph,
    fibres: &Fibres,
    collective: &Collective,
    measure: Measure,
) -> Option<Cut> {
    let key = (collective.kind(), collective.root(), measure);
    CUTS.get(graph, key, || search(fibres, collective, measure))
}

fn search(fibres: &Fibres, collective: &Collective, measure: Measure) -> Option<Cut> {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    // If translations map each rank to each other rank, every set has a translated set that
    // contains rank 0.
    let any_rank = match fibres.is_transitive {
        true => Cuts::Into(0),
        false => Cuts::EachRank,
    };
    let root = collective.root();
    let wanted: &[(Cuts, bool)] = match collective.kind() {
        AllGather => &[(any_rank, false)],
        ReduceScatter => &[(any_rank, true)],
        Gather => &[(Cuts::Into(root), false)],
        Scatter => &[(Cuts::Into(root), true)],
        Broadcast => &[(Cuts::From(root), false)],
        Reduce => &[(Cuts::From(root), true)],
        // A set either contains rank 0, so that data leave the other vertices, or does not.
        AllReduce => &[(Cuts::From(0), false), (Cuts::From(0), true)],
        AllToAll | Barrier => &[],
    };
    let of_direction = |&(which, leaves): &(Cuts, bool)| {
        let links = fibres.links.iter().map(|link| {
            let (from, to) = link.ends(leaves);
            // A link of unknown capacity counts as unlimited.
            (from, to, measure.of(link))
        });
        let links: Vec<RatedLink> = links.collect();
        let cut = tightest(fibres.ranks, fibres.vertices, &links, which, MAX_STEPS)?;
        (cut.rate > 0).then_some(Cut { cut, leaves })
    };
    let cuts = wanted.iter().filter_map(of_direction);
    cuts.reduce(|best, next| {
        match next.cut.blocks * best.cut.rate > best.cut.blocks * next.cut.rate {
            true => next,
            false => best,
        }
    })
}

impl Cut {
    /// Returns the ranks of the cut and the links that data cross.
    pub(super) fn witness(&self, fibres: &Fibres) -> Witness {
        let is_inside = |vertex: u32| self.cut.vertices.binary_search(&vertex).is_ok();
        let crosses = |link: &FibreLink| {
            let (from, to) = link.ends(self.leaves);
            link.channels > 0 && !is_inside(from) && is_inside(to)
        };
        let links = fibres.links.iter().filter(|link| crosses(link));
        let ranks = self.cut.vertices.iter().copied();
        Witness {
            trees: None,
            ranks: ranks.filter(|vertex| *vertex < fibres.ranks).collect(),
            parts: 1,
            links: links.map(|link| link.number).collect(),
            lengths: Vec::new(),
        }
    }
}
