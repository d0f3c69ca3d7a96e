//! Load of an all_to_all on all links together (theorem W3). Any lengths of the links give a lower
//! bound; the search of E10 finds good lengths.

use super::cuts::Measure;
use super::fibres::Fibres;
use super::recent::Recent;
use crate::concurrent_flow::{BlockTime, ConcurrentFlow, pairs};
use crate::electrical::{self, Witness};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum product of the number of pairs of ranks and the number of links for which good routes
/// are searched, which suggest lengths. On larger graphs, all links have the same length, or the
/// lengths follow from routes that are divided evenly.
const MAX_SEARCHED: u64 = 1 << 21;

/// Maximum product of the number of ranks and the number of links for which there is a bound.
const MAX_SIZE: u64 = 1 << 24;

/// Load of all pairs of ranks: the quotient of blocks and capacity that the lengths of links prove.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// Blocks times length, over the capacity of all links times length.
    pub(super) blocks: BlockTime,
    /// Length of each link.
    lengths: Vec<u64>,
}

/// Cached loads.
static LOADS: Recent<Measure, Option<Load>> = Recent::new();

/// Returns the greatest load that the search proves for one block of every pair of ranks; `None` on
/// a large graph, or if some pair has no route.
pub(super) fn load(
    graph: &WdmGraph,
    fibres: &Fibres,
    collective: &Collective,
    measure: Measure,
) -> Option<Load> {
    LOADS.get(graph, measure, || {
        let (ranks, links) = (u64::from(fibres.ranks), fibres.links.len() as u64);
        if ranks * links > MAX_SIZE {
            return None;
        }
        let mut capacities = vec![0; graph.fibre_links().links().len()];
        for link in &fibres.links {
            capacities[link.number as usize] = measure.of(link)?;
        }
        if capacities.contains(&0) {
            return None;
        }
        let flow = ConcurrentFlow::of(graph.fibre_links())?.with_capacities(capacities);
        let pairs = pairs(collective)?;
        let (blocks, lengths) = match pairs.len() as u64 * links <= MAX_SEARCHED {
            true => {
                let searched = electrical::enclosed(&flow, &pairs, None)?;
                (searched.bound, searched.lengths)
            }
            false => {
                let equal = flow.best_bound(&pairs, None)?;
                let (_, uses) = flow.evenly_divided(&pairs)?;
                let even = flow.best_bound(&pairs, Some(&uses))?;
                match equal.0.is_below(even.0) {
                    true => even,
                    false => equal,
                }
            }
        };
        Some(Load { blocks, lengths })
    })
}

/// Returns lengths of the links, in the order of `fibres`, that prove the load of an all_to_all in
/// channels. `None` on a large graph, or if some pair has no route.
pub(super) fn lengths(graph: &WdmGraph, fibres: &Fibres) -> Option<Vec<u64>> {
    let pairs = u64::from(fibres.ranks) * u64::from(fibres.ranks - 1);
    if fibres.is_transitive || pairs * fibres.links.len() as u64 > MAX_SEARCHED {
        return None;
    }
    let collective = Collective::new(CollectiveKind::AllToAll, fibres.ranks).ok()?;
    let load = load(graph, fibres, &collective, Measure::Channels)?;
    let links = fibres.links.iter();
    Some(
        links
            .map(|link| load.lengths[link.number as usize])
            .collect(),
    )
}

impl Load {
    /// Returns the links that have a length, and their lengths.
    pub(super) fn witness(&self) -> Witness {
        electrical::witness_of_lengths(&self.lengths)
    }
}
