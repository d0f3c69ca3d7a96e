//! Channels of links that the relay trees of a collective occupy, in slots and in time (theorems W4
//! and W7).

use super::fibres::Fibres;
use super::flows;
use super::slot_lengths::{CHANNELS, FromRoot, Measure, RATES};
use super::trees::{LINK, Lengths, Metric, RelayTrees};
use super::widest;
use crate::electrical::{TreeWitness, Witness};
use crate::transmission_time;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Mean length of a link if the lengths of links differ.
const MEAN_LENGTH: u128 = LINK as u128;

/// Load of the trees of a collective on the channels of a slot.
struct Load {
    /// Total length of the lightpaths that one chunk of each block needs.
    needed: u128,
    /// Least length of the lightpaths that one chunk needs.
    least: u128,
    /// Length of all channels of a slot.
    capacity: u128,
}

/// Relay trees of a collective, for several lengths of the links.
pub(super) struct TreeLoads<'a> {
    graph: &'a WdmGraph,
    fibres: &'a Fibres,
    collective: &'a Collective,
    /// Trees of the chunks.
    trees: Vec<RelayTrees<'a>>,
    /// Trees over which the data of each rank spread in an all_reduce; `None` for other
    /// collectives.
    spread: Option<RelayTrees<'a>>,
}

impl TreeLoads<'_> {
    /// Returns the trees of a collective; `None` for collectives without such trees.
    pub(super) fn of<'a>(
        graph: &'a WdmGraph,
        fibres: &'a Fibres,
        collective: &'a Collective,
    ) -> Option<TreeLoads<'a>> {
        use CollectiveKind::{AllGather, AllReduce, Broadcast, Reduce, ReduceScatter};
        let root = collective.root();
        let (backwards, root) = match collective.kind() {
            AllGather if !fibres.has_light_trees => (false, None),
            Broadcast if !fibres.has_light_trees => (false, Some(root)),
            ReduceScatter | AllReduce => (true, None),
            Reduce => (true, Some(root)),
            _ => return None,
        };
        let trees = |metric, backwards| RelayTrees::new(graph, fibres, metric, backwards, root);
        let others = match root {
            Some(_) => Vec::new(),
            None => lengths_of_links(graph, fibres),
        };
        let metrics = [Metric::Links].into_iter().chain(others);
        let has_spread = collective.kind() == AllReduce && !fibres.has_light_trees;
        Some(TreeLoads {
            graph,
            fibres,
            collective,
            trees: metrics.map(|metric| trees(metric, backwards)).collect(),
            spread: has_spread.then(|| trees(Metric::Links, false)),
        })
    }

    /// Returns the trees of at most `slots` slots with links of equal length. `None` if no tree
    /// reaches all ranks.
    pub(super) fn witness(&self, slots: u64) -> Option<Witness> {
        let lengths = self.trees.first()?.within(slots)?;
        let (length, trees) = match self.collective.kind() {
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter => {
                (lengths.sum, u64::from(self.fibres.ranks))
            }
            _ => (lengths.least, 1),
        };
        Some(Witness {
            ranks: Vec::new(),
            parts: 0,
            links: Vec::new(),
            lengths: Vec::new(),
            trees: Some(TreeWitness {
                slots,
                links: length / LINK,
                trees,
            }),
        })
    }

    /// Returns whether `slots` slots have enough channels for the trees, if a lightpath carries one
    /// chunk.
    pub(super) fn fits(&self, slots: u64) -> bool {
        let pieces = u128::from(self.collective.pieces());
        self.trees.iter().all(|trees| {
            let load = self.load(trees, Some(slots), CHANNELS);
            load.is_some_and(|load| pieces * load.needed <= u128::from(slots) * load.capacity)
        })
    }

    /// Returns a number of slots with fewer of which the channels are not enough for trees of any
    /// number of slots. `None` if no tree reaches all ranks.
    pub(super) fn fewest_slots(&self) -> Option<u64> {
        let pieces = u128::from(self.collective.pieces());
        let mut fewest = 1;
        for trees in &self.trees {
            let load = self.load(trees, None, CHANNELS)?;
            let slots = (pieces * load.needed).div_ceil(load.capacity.max(1));
            fewest = fewest.max(slots as u64);
        }
        Some(fewest)
    }

    /// Returns the time in which all channels carry the bytes on trees of at most `slots` slots, or
    /// of any number of slots if `slots` is `None`. `None` if no tree reaches all ranks.
    pub(super) fn time(&self, size: Bytes, slots: Option<u64>) -> Result<Option<Time>, UnitError> {
        let (size, ranks) = (u128::from(size.get()), u128::from(self.fibres.ranks));
        let mut time = Time::ZERO;
        for trees in &self.trees {
            let Some(load) = self.load(trees, slots, RATES) else {
                return Ok(None);
            };
            let byte_lengths = match self.collective.kind() {
                // Some blocks have a byte more than the others.
                CollectiveKind::ReduceScatter => {
                    size / ranks * load.needed + size % ranks * load.least
                }
                _ => size * load.needed,
            };
            time = time.max(transmission_time(byte_lengths, load.capacity)?);
        }
        let Some((spread, slots)) = self.spread.as_ref().zip(slots) else {
            return Ok(Some(time));
        };
        let Some(lengths) = self.priced(spread, slots) else {
            return Ok(None);
        };
        let capacity = spread.capacity(|link| link.rate) * ranks;
        Ok(Some(time.max(transmission_time(
            size * u128::from(lengths.sum),
            capacity,
        )?)))
    }

    /// Returns the load of trees of at most `slots` slots, or of any number of slots if `slots` is
    /// `None`. `None` if no tree reaches all ranks.
    fn load(&self, trees: &RelayTrees<'_>, slots: Option<u64>, measure: Measure) -> Option<Load> {
        let capacity = trees.capacity(measure.of_link);
        let Some(slots) = slots else {
            return Some(self.load_of(trees, trees.shortest()?, capacity));
        };
        let backwards = match self.collective.kind() {
            CollectiveKind::Broadcast => false,
            CollectiveKind::Reduce => true,
            _ => return Some(self.load_of(trees, trees.within(slots)?, capacity)),
        };
        let from_root = FromRoot {
            graph: self.graph,
            fibres: self.fibres,
            trees,
            backwards,
            root: self.collective.root(),
            measure,
        };
        let share = from_root.share(slots)?;
        Some(Load {
            needed: share.length,
            least: share.length,
            capacity: share.capacity,
        })
    }

    fn load_of(&self, trees: &RelayTrees<'_>, lengths: Lengths, capacity: u128) -> Load {
        let least = u128::from(lengths.least);
        let needed = match self.collective.kind() {
            CollectiveKind::AllReduce if self.spread.is_some() => {
                let others = u128::from(self.fibres.ranks - 1);
                least + others * u128::from(trees.shortest_link())
            }
            CollectiveKind::AllReduce => least,
            _ => lengths.sum.into(),
        };
        Load {
            needed,
            least,
            capacity,
        }
    }

    /// Returns the lengths of trees whose slot s has the price N / n_s, rounded down (theorem W7).
    fn priced(&self, spread: &RelayTrees<'_>, slots: u64) -> Option<Lengths> {
        /// Number of slots from which on prices are not considered.
        const MAX_PRICED: u64 = 16;
        if slots > MAX_PRICED {
            return spread.shortest();
        }
        let ranks = u64::from(self.fibres.ranks);
        let widest = widest(&self.fibres.receivers);
        let mut informed = 1u64;
        let prices = (0..slots).map(|_| {
            let price = ranks / informed;
            informed = informed.saturating_mul(1 + widest).min(ranks);
            price as u32
        });
        spread.priced(&prices.collect::<Vec<u32>>())
    }
}

/// Returns lengths of links that favour the links on which the load of an all_to_all is greatest:
/// those of theorem W3, and their mean with equal lengths. Empty if all links are equally loaded.
fn lengths_of_links(graph: &WdmGraph, fibres: &Fibres) -> Vec<Metric> {
    let loaded = flows::lengths(graph, fibres);
    let Some(loaded) = loaded.filter(|loaded| loaded.iter().any(|one| *one != loaded[0])) else {
        return Vec::new();
    };
    let sum: u128 = loaded.iter().map(|&length| u128::from(length)).sum();
    let links = loaded.len() as u128;
    let scaled = |length: &u64| (u128::from(*length) * links * MEAN_LENGTH / sum.max(1)) as u32;
    let alone = loaded.iter().map(scaled).collect();
    let mixed = loaded
        .iter()
        .map(|length| (LINK as u32 + scaled(length)) / 2);
    vec![Metric::Given(alone), Metric::Given(mixed.collect())]
}
