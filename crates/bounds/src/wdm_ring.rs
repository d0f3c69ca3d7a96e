//! Lower bounds on the number of slots of a plan on a ring. Module [`time`] has the bounds on time.
//!
//! N ranks are on a ring with c channels per direction (fibres times wavelengths). A slot therefore
//! has 2cN channels of links in total, and a lightpath of l links occupies l of them. A rank
//! receives at most r = min(2c, ports) lightpaths in a slot. A lightpath carries one chunk per
//! slot. A block, or the vector, has P chunks.
//!
//! | name | bound on the slots S | theorem |
//! |---|---|---|
//! | `receive` | ceil(m / r) for m chunks that a rank must receive | R1 |
//! | `growth` | ceil(log_(1+r) N); for broken links a recursion | A2 |
//! | `spread` | see [`multi_block`] | R9 |
//! | `reach` | ceil(D / L) for data that must cross D links by lightpaths of at most L links | R2 |
//! | `cut` | chunks that cross between two parts of the ring, over the channels between them | R3 |
//! | `first_slot` | for an all_gather with few ports: the deliveries possible in slot 1 | R4 |
//! | `relay_tree` | P C_S(N) <= 2 c S, see [`relay_tree`] | R5 |
//!
//! `growth`, `spread` and `reach` hold for any number of chunks per lightpath
//! ([`slots_for_any_load`]). With light trees (`multicast`), two bounds do not hold and are not
//! returned: growth from one rank, and the `relay_tree` of an all_gather.
//!
//! ```
//! use opticoll_fabric::family::wdm_ring::WdmRing;
//! use opticoll_bounds::wdm_ring;
//! use opticoll_plan::collective::{Collective, CollectiveKind};
//! use opticoll_fabric::fabric::Fabric;
//! let fabric = Fabric::parse("wdm_ring:ranks=64,wavelengths=8")?;
//! let ring = fabric.needed::<WdmRing>("this example")?;
//! let collective = Collective::new(CollectiveKind::AllGather, 64)?;
//! let bound = wdm_ring::best(ring, &collective);
//! assert_eq!((bound.steps, bound.name), (7, "relay_tree"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod all_reduce;
mod behind_cuts;
pub mod crossings;
pub mod demanded;
mod memo;
pub mod multi_block;
pub mod price;
pub mod relay_tree;
pub mod root_bound;
pub mod time;

use crate::{Bound, growth, slots_to_inform};
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};

const ONE_CHUNK: &str = "one chunk per lightpath and slot, delivered only at the end of the \
                         lightpath";
const ANY_LOAD: &str = "any number of chunks per lightpath, delivered only at the end of the \
                        lightpath; a rank forwards data only in a later slot than the one in which \
                        it received them";
const ANY_TREE: &str = "any number of chunks per lightpath; a rank forwards data only in a later \
                        slot than the one in which it received them";
const LIMITED_REACH: &str = "no lightpath is longer than the reach of the fabric; a rank forwards \
                             data only in a later slot than the one in which it received them";
const RELAYED_TO_ONE: &str = "one chunk per lightpath and slot; a rank forwards data only in a \
                              later slot than the one in which it received them";
const RELAYED: &str = "one chunk per lightpath and slot, delivered only at the end of the \
                       lightpath; a rank forwards data only in a later slot than the one in which \
                       it received them";

/// Returns all lower bounds on the number of slots of `collective` on `ring`.
pub fn slots(ring: &WdmRing, collective: &Collective) -> Vec<Bound> {
    let ranks = u64::from(collective.ranks());
    if ranks < 2 {
        return vec![Bound {
            steps: 0,
            name: "receive",
            assumption: "a single rank has everything",
        }];
    }
    let pieces = u64::from(collective.pieces());
    let intake = intake(ring);
    let channels = u64::from(ring.channels());
    let narrowest = narrowest(ring, collective);
    let received = match collective.kind() {
        CollectiveKind::AllReduce | CollectiveKind::Barrier => {
            let together = 2 * pieces * (ranks - 1);
            pieces
                .div_ceil(narrowest)
                .max(together.div_ceil(total_intake(ring)))
        }
        CollectiveKind::Broadcast | CollectiveKind::Reduce => pieces.div_ceil(narrowest),
        _ => (pieces * (ranks - 1)).div_ceil(narrowest),
    };
    let mut bounds = vec![Bound {
        steps: received,
        name: "receive",
        assumption: if ring.multicast {
            "one chunk per lightpath and slot"
        } else {
            ONE_CHUNK
        },
    }];
    if let Some(steps) = reach_slots(ring, collective) {
        bounds.push(Bound {
            steps,
            name: "reach",
            assumption: LIMITED_REACH,
        });
    }
    let behind = behind_cuts::ranks(ring, collective);
    if behind > 0 {
        bounds.push(Bound {
            steps: (pieces * behind).div_ceil(channels),
            name: "cut",
            assumption: ONE_CHUNK,
        });
    }
    match collective.kind() {
        CollectiveKind::AllToAll => bounds.push(Bound {
            steps: (pieces * (ranks * ranks / 4)).div_ceil(channels_between_halves(ring)),
            name: "cut",
            assumption: ONE_CHUNK,
        }),
        CollectiveKind::Scatter | CollectiveKind::Gather => {}
        _ => bounds.push(slots_for_any_load(ring, collective)),
    }
    let has_few_ports = intake < 2 * channels && !ring.multicast && pieces == 1;
    if has_few_ports && collective.kind() == CollectiveKind::AllGather {
        bounds.push(Bound {
            steps: first_slot(ranks, channels, intake),
            name: "first_slot",
            assumption: RELAYED,
        });
    }
    // A light tree copies a contribution, but at most one copy reaches the rank that needs it.
    let relayed = match collective.kind() {
        CollectiveKind::AllGather => !ring.multicast,
        CollectiveKind::ReduceScatter => true,
        _ => false,
    };
    if relayed {
        let ranks = collective.ranks();
        let known = greatest(&bounds).steps;
        if let Some(steps) = relay_tree::least_steps(ranks, pieces, 2 * channels, known) {
            bounds.push(Bound {
                steps,
                name: "relay_tree",
                assumption: if ring.multicast {
                    RELAYED_TO_ONE
                } else {
                    RELAYED
                },
            });
        }
    }
    bounds
}

/// Returns the greatest bound; of equal bounds the first, which has the weakest assumption.
fn greatest(bounds: &[Bound]) -> Bound {
    let first = |best: Bound, next: &Bound| if next.steps > best.steps { *next } else { best };
    bounds[1..].iter().fold(bounds[0], first)
}

/// Returns the greatest bound on slots that holds for any number of chunks per lightpath: the
/// greatest of `growth`, `spread` and `reach`.
pub fn slots_for_any_load(ring: &WdmRing, collective: &Collective) -> Bound {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
    let growth_slots = growth_slots(ring, collective);
    let spread = match collective.kind() {
        Broadcast | Gather | Reduce | Scatter => growth_slots,
        _ if ring.multicast => growth_slots,
        _ => {
            let channels = 2 * u64::from(ring.channels());
            multi_block::least_steps(collective.ranks(), channels, intake(ring), growth_slots)
        }
    };
    if let Some(steps) = reach_slots(ring, collective).filter(|&steps| steps > spread) {
        return Bound {
            steps,
            name: "reach",
            assumption: LIMITED_REACH,
        };
    }
    Bound {
        steps: spread,
        name: if spread > growth_slots {
            "spread"
        } else {
            "growth"
        },
        assumption: if ring.multicast { ANY_TREE } else { ANY_LOAD },
    }
}

/// Returns the greatest bound of [`slots`]; of equal bounds the one with the weakest assumption.
pub fn best(ring: &WdmRing, collective: &Collective) -> Bound {
    greatest(&slots(ring, collective))
}

/// Returns the maximum number of lightpaths that a rank can receive, or send, in a slot.
fn intake(ring: &WdmRing) -> u64 {
    let channels = 2 * u64::from(ring.channels());
    ring.ports
        .map_or(channels, |ports| channels.min(u64::from(ports)))
}

/// Returns the maximum number of lightpaths per slot at the rank with the fewest. Considers only
/// the ranks, and the direction (sending or receiving), that limit the bound `receive`.
fn narrowest(ring: &WdmRing, collective: &Collective) -> u64 {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    let everyone = 0..ring.ranks;
    let root = collective.root();
    let ins = |rank| width(ring, rank, true);
    let outs = |rank| width(ring, rank, false);
    let least = if ring.broken.is_empty() {
        None
    } else {
        match collective.kind() {
            AllGather | AllReduce | Barrier => everyone.map(ins).min(),
            ReduceScatter => everyone.map(outs).min(),
            AllToAll => everyone.map(|rank| ins(rank).min(outs(rank))).min(),
            Broadcast => everyone.filter(|&rank| rank != root).map(ins).min(),
            Reduce => everyone.filter(|&rank| rank != root).map(outs).min(),
            Gather => Some(ins(root)),
            Scatter => Some(outs(root)),
        }
    };
    // A rank that is cut off has no plan, hence no bound.
    least.unwrap_or_else(|| intake(ring)).max(1)
}

/// Returns the maximum number of lightpaths that `rank` receives in a slot, or sends if `incoming`
/// is false, given the broken links next to the rank.
fn width(ring: &WdmRing, rank: u32, incoming: bool) -> u64 {
    let below = (rank + ring.ranks - 1) % ring.ranks;
    let broken = ring.broken.iter().filter(|link| {
        let clockwise = link.direction == Direction::Clockwise;
        link.position == if clockwise == incoming { below } else { rank }
    });
    let directions = 2 - broken.count().min(2) as u64;
    intake(ring).min(directions * u64::from(ring.channels()))
}

/// Returns the maximum number of lightpaths that all ranks together can receive in a slot.
fn total_intake(ring: &WdmRing) -> u64 {
    match ring.broken.is_empty() {
        true => u64::from(ring.ranks) * intake(ring),
        false => (0..ring.ranks).map(|rank| width(ring, rank, true)).sum(),
    }
}

/// Returns the bound `growth`: the minimum number of slots after which data of one rank can be at
/// all ranks, or data of all ranks can be at one rank, as the collective requires. With light
/// trees, a rank informs any number of ranks in a slot, but receives at most as many lightpaths as
/// it has channels.
fn growth_slots(ring: &WdmRing, collective: &Collective) -> u64 {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
    let informs_from_root = matches!(collective.kind(), Broadcast | Scatter);
    if ring.multicast && informs_from_root {
        return 1;
    }
    if ring.broken.is_empty() {
        return growth(u64::from(collective.ranks()), intake(ring));
    }
    let root = collective.root() as usize;
    let from = |incoming: bool, first: Option<usize>| {
        let widths = (0..ring.ranks).map(|rank| width(ring, rank, incoming));
        slots_to_inform(widths.collect(), first)
    };
    match collective.kind() {
        Broadcast | Scatter => from(false, Some(root)),
        Reduce | Gather => from(true, Some(root)),
        _ if ring.multicast => from(true, None),
        _ => from(false, None).max(from(true, None)),
    }
}

/// Returns the number of channels from one half of the ring to the other half. If a link is broken,
/// the halves are chosen so that they meet at this link.
fn channels_between_halves(ring: &WdmRing) -> u64 {
    let links = if ring.broken.is_empty() { 2 } else { 1 };
    links * u64::from(ring.channels())
}

/// Returns the bound `reach`; `None` if the fabric does not limit the length of lightpaths.
fn reach_slots(ring: &WdmRing, collective: &Collective) -> Option<u64> {
    let reach = u64::from(ring.longest_from_best_start());
    let is_short = reach + 1 < u64::from(ring.ranks);
    is_short.then(|| farthest(ring, collective).div_ceil(reach))
}

/// Returns the greatest distance, in links, over which data must travel (D of theorem R2).
fn farthest(ring: &WdmRing, collective: &Collective) -> u64 {
    let ranks = ring.ranks;
    if ring.broken.is_empty() {
        return u64::from(ranks / 2);
    }
    let root = collective.root();
    let distance = |source: u32, destination: u32| {
        let whole = Direction::BOTH
            .into_iter()
            .filter(|&direction| ring.is_whole(source, destination, direction));
        whole
            .map(|direction| ring.hops(source, destination, direction))
            .min()
    };
    let links = match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Scatter => {
            (0..ranks).filter_map(|rank| distance(root, rank)).max()
        }
        CollectiveKind::Reduce | CollectiveKind::Gather => {
            (0..ranks).filter_map(|rank| distance(rank, root)).max()
        }
        _ => Some(ranks - 1),
    };
    links.unwrap_or(0).into()
}

/// Returns the bound `first_slot` (theorem R4), which counts the deliveries that are possible in
/// the first slot.
fn first_slot(ranks: u64, channels: u64, intake: u64) -> u64 {
    let cost = |q: u64| q * (q + 1) / 2;
    let evenly = (1..=channels).take_while(|q| cost(*q) <= channels).count() as u64;
    let more = ranks * (channels - cost(evenly)) / (evenly + 1);
    let first = (2 * (ranks * evenly + more)).min(ranks * intake);
    let others = (ranks * (ranks - 1)).saturating_sub(first);
    1 + others.div_ceil(ranks * intake)
}
