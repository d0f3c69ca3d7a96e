//! Lower bounds for graphs of fibres.
//!
//! A link e has c_e channels, and a slot has C channels of links in total. A rank receives at most
//! as many lightpaths in a slot as channels lead to the rank, or as it has receivers, and sends at
//! most as many as channels lead from it, or as it has transmitters. A block, or the vector, has P
//! chunks. [`time`] has the bounds on time.
//!
//! | name | bound on the slots S | theorem | module |
//! |---|---|---|---|
//! | `receive` | chunks that a rank receives or sends, over its lightpaths | W1 | `ports` |
//! | `growth` | data of a rank reach at most 1 + k times as many ranks in a slot | A2 | this |
//! | `reach` | ceil(D / L) for data that cross D links by at most L at a time | W6 | this |
//! | `spread` | sum of C_S(v) over v <= C (n_1 + ... + n_S); C_S(root) <= S C | W6 | `trees` |
//! | `cut` | chunks that a set of vertices needs, over the channels into the set | W2 | `cuts` |
//! | `concurrent_flow` | all_to_all: chunks times distance over channels | W3 | `flows` |
//! | `relay_tree` | P sum of C_S(v) over v <= S C | W4, W5 | `loads`, `slot_lengths`, `moats` |
//!
//! C_S(v) is the least total length of a tree of depth at most S that spans all ranks from v, and
//! n_s = min(N, (1 + r)^(s - 1)) for ranks that receive at most r lightpaths. `growth`, `reach` and
//! `spread` hold for any number of chunks per lightpath. With light trees, `spread`, growth from
//! one rank, and some cases of `relay_tree` do not hold and are not returned.
//!
//! ```
//! use opticoll_bounds::wdm_graph;
//! use opticoll_fabric::fabric::Fabric;
//! use opticoll_fabric::family::wdm_graph::WdmGraph;
//! use opticoll_plan::collective::{Collective, CollectiveKind};
//! let fabric = Fabric::parse("wdm_torus:dims=4x4,wavelengths=8")?;
//! let graph = fabric.downcast::<WdmGraph>().ok_or("a torus is a graph of fibres")?;
//! let bound = wdm_graph::best_slots(graph, &Collective::new(CollectiveKind::AllToAll, 16)?, true);
//! // 240 chunks cross 2 + 2/15 links on average: 512 channels, as many as a slot has.
//! assert_eq!(bound.steps, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cuts;
pub mod demanded;
mod fibres;
mod flows;
mod loads;
mod moats;
mod ports;
mod recent;
mod slot_lengths;
pub mod time;
mod trees;

use crate::{Bound, slots_to_inform};
use cuts::{Measure, tightest_cut};
use fibres::{Fibres, Ports};
use loads::TreeLoads;
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind};
use trees::{Metric, RelayTrees};

const ONE_CHUNK: &str = "one chunk per lightpath and slot";
const RELAYED: &str = "one chunk per lightpath and slot, delivered only at the end of the \
                       lightpath; a rank forwards data only in a later slot than the one in which \
                       it received them";
const RELAYED_TO_ONE: &str = "one chunk per lightpath and slot; a rank forwards data only in a \
                              later slot than the one in which it received them";
const ANY_LOAD: &str = "any number of chunks per lightpath; a rank forwards data only in a later \
                        slot than the one in which it received them";
const LIMITED_REACH: &str = "no lightpath is longer than the reach of the fabric; a rank forwards \
                             data only in a later slot than the one in which it received them";

/// Maximum number of slots for which the bound `spread` is examined.
const MAX_SPREAD_SLOTS: u64 = 64;

/// Returns the greatest bound on the number of slots; of equal bounds the first of [`slots`]. If
/// `single` is true, each lightpath carries one chunk.
pub fn best_slots(graph: &WdmGraph, collective: &Collective, single: bool) -> Bound {
    let bounds = slots(graph, collective, single);
    let first = |best: Bound, next: Bound| if next.steps > best.steps { next } else { best };
    bounds.into_iter().reduce(first).unwrap_or(SINGLE_RANK)
}

/// Bound of a collective on a single rank.
const SINGLE_RANK: Bound = Bound {
    steps: 0,
    name: "receive",
    assumption: "a single rank has everything",
};

/// Returns all lower bounds on the number of slots. If `single` is true, each lightpath carries one
/// chunk. Bounds with weaker assumptions are first.
pub fn slots(graph: &WdmGraph, collective: &Collective, single: bool) -> Vec<Bound> {
    let fibres = Fibres::of(graph);
    if fibres.ranks < 2 {
        return vec![SINGLE_RANK];
    }
    let mut bounds = any_load(graph, &fibres, collective);
    if !single {
        return bounds;
    }
    let pieces = u128::from(collective.pieces());
    bounds.push(Bound {
        steps: ports::slots(&fibres, collective),
        name: "receive",
        assumption: ONE_CHUNK,
    });
    if let Some(cut) = tightest_cut(graph, &fibres, collective, Measure::Channels) {
        bounds.push(Bound {
            steps: (pieces * cut.cut.blocks).div_ceil(cut.cut.rate) as u64,
            name: "cut",
            assumption: ONE_CHUNK,
        });
    }
    if collective.kind() == CollectiveKind::AllToAll
        && let Some(load) = flows::load(graph, &fibres, collective, Measure::Channels)
    {
        bounds.push(Bound {
            steps: (pieces * load.blocks.blocks).div_ceil(load.blocks.rate) as u64,
            name: "concurrent_flow",
            assumption: ONE_CHUNK,
        });
    }
    let known = bounds.iter().map(|bound| bound.steps).max().unwrap_or(0);
    if let Some(steps) = tree_slots(graph, &fibres, collective, known) {
        bounds.push(Bound {
            steps,
            name: "relay_tree",
            assumption: match fibres.has_light_trees {
                true => RELAYED_TO_ONE,
                false => RELAYED,
            },
        });
    }
    bounds
}

/// Returns the bounds that hold for any number of chunks per lightpath.
fn any_load(graph: &WdmGraph, fibres: &Fibres, collective: &Collective) -> Vec<Bound> {
    let grown = growth_slots(fibres, collective);
    let mut bounds = vec![Bound {
        steps: grown,
        name: "growth",
        assumption: ANY_LOAD,
    }];
    if let Some(steps) = reach_slots(fibres, collective) {
        bounds.push(Bound {
            steps,
            name: "reach",
            assumption: LIMITED_REACH,
        });
    }
    let known = bounds.iter().map(|bound| bound.steps).max().unwrap_or(0);
    if let Some(steps) = spread_slots(graph, fibres, collective, known) {
        bounds.push(Bound {
            steps,
            name: "spread",
            assumption: ANY_LOAD,
        });
    }
    bounds
}

/// Returns the root of a collective's data, and whether data go to the root; `None` if the data of
/// every rank go to every rank.
pub(crate) fn root_and_direction(collective: &Collective) -> Option<(u32, bool)> {
    match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Scatter => Some((collective.root(), false)),
        CollectiveKind::Reduce | CollectiveKind::Gather => Some((collective.root(), true)),
        _ => None,
    }
}

/// Returns the bound `growth`. With light trees, a rank informs any number of ranks in a slot, but
/// receives only as many lightpaths as it has receivers.
fn growth_slots(fibres: &Fibres, collective: &Collective) -> u64 {
    let inform = |ports: &[Ports], first: Option<u32>| {
        let widths = ports.iter().map(|ports| ports.lightpaths).collect();
        slots_to_inform(widths, first.map(|rank| rank as usize))
    };
    match root_and_direction(collective) {
        Some((root, true)) => inform(&fibres.receivers, Some(root)),
        Some((_, false)) if fibres.has_light_trees => 1,
        Some((root, false)) => inform(&fibres.senders, Some(root)),
        None if fibres.has_light_trees => inform(&fibres.receivers, None),
        None => inform(&fibres.receivers, None).max(inform(&fibres.senders, None)),
    }
}

/// Returns the bound `reach`; `None` if the fabric does not limit the length of lightpaths.
fn reach_slots(fibres: &Fibres, collective: &Collective) -> Option<u64> {
    let reach = u64::from(fibres.reach?.max(1));
    let (links, _) = farthest(fibres, collective)?;
    Some(links.div_ceil(reach))
}

/// Returns the greatest number of links, and the greatest propagation delay in picoseconds, that
/// data must cross. `None` if some rank cannot be reached.
fn farthest(fibres: &Fibres, collective: &Collective) -> Option<(u64, u64)> {
    match root_and_direction(collective) {
        Some((root, backwards)) => fibres.farthest(Some(root), backwards),
        None => fibres.farthest(None, false),
    }
}

/// Returns the bound `spread`, at least `known`; `None` for collectives without this bound.
fn spread_slots(
    graph: &WdmGraph,
    fibres: &Fibres,
    collective: &Collective,
    known: u64,
) -> Option<u64> {
    let backwards = collective.kind() == CollectiveKind::ReduceScatter;
    if fibres.has_light_trees {
        return None;
    }
    if root_and_direction(collective).is_some() {
        // The channels that carry one piece of the vector are those of a tree.
        let one_piece = collective.with_pieces(1).ok()?;
        return tree_slots(graph, fibres, &one_piece, known);
    }
    let ports = match backwards {
        true => &fibres.senders,
        false => &fibres.receivers,
    };
    let widest = widest(ports);
    let trees = RelayTrees::new(graph, fibres, Metric::Links, backwards, None);
    let length = u128::from(trees::LINK);
    let ranks = u128::from(fibres.ranks);
    let channels = u128::from(fibres.channels());
    let is_possible = |slots: u64| {
        let (mut informed, mut carried) = (1u128, 0u128);
        for _ in 0..slots {
            carried += informed;
            informed = (informed * u128::from(1 + widest)).min(ranks);
        }
        let lengths = trees.within(slots);
        lengths.is_some_and(|lengths| u128::from(lengths.sum) <= length * channels * carried)
    };
    (known.max(1)..MAX_SPREAD_SLOTS).find(|&slots| is_possible(slots))
}

/// Returns the bound `relay_tree`, at least `known`; `None` for collectives without this bound, or
/// if no tree reaches all ranks.
fn tree_slots(
    graph: &WdmGraph,
    fibres: &Fibres,
    collective: &Collective,
    known: u64,
) -> Option<u64> {
    let trees = TreeLoads::of(graph, fibres, collective)?;
    let mut slots = known.max(trees.fewest_slots()?);
    while slots <= trees::MAX_SLOTS && !trees.fits(slots) {
        slots += 1;
    }
    Some(slots)
}

/// Returns the maximum number of lightpaths of a rank.
fn widest(ports: &[Ports]) -> u64 {
    let lightpaths = ports.iter().map(|ports| ports.lightpaths);
    lightpaths.max().unwrap_or(0)
}
