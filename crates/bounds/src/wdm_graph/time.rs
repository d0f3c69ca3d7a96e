//! Lower bounds on time for graphs of fibres (theorem W7). A slot takes its reconfiguration R, if
//! charged, and at least a + delta + t: the conversion latency a of a lightpath, the least
//! propagation delay delta of a link, and the time t of the slot's largest message.
//!
//! | name | bound on the time T | theorem |
//! |---|---|---|
//! | `bandwidth` | R + a + delta + bytes that ranks receive or send, over their rates | W1 |
//! | `cut` | the same for the bytes that cross a cut | W2 |
//! | `concurrent_flow` | the same for the bytes of all pairs on all links | W3 |
//! | `rounds` | G (R + a + delta) + the greatest of these times of bytes, with G slots of W6 | W6 |
//! | `latency` | G (R + a) + the propagation delay to the farthest rank | W7 |
//! | `relay_tree` | min over S >= G of S (R + a + delta) + max(bytes, E_S) | W4, W5 |
//!
//! E_S is the time in which all channels carry the bytes of all trees of at most S slots.

use std::cell::Cell;

use super::cuts::{Measure, tightest_cut};
use super::fibres::Fibres;
use super::loads::TreeLoads;
use super::{any_load, farthest, flows, ports};
use crate::electrical::WitnessedBound;
use crate::{ReconfigurationCost, TimeBound, least_over_slots, transmission_time, tree_assumption};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind};

const SLOT_BY_SLOT: &str = "slots run one after the other, each as long as its longest lightpath";

/// Returns the greatest bound on the time of `collective` at the size `size`; of equal bounds the
/// first of [`bounds`]. Fails if a time exceeds 64 bits of picoseconds.
pub fn best(
    graph: &WdmGraph,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<TimeBound, UnitError> {
    let greatest = crate::electrical::greatest(bounds(graph, collective, size, charge)?);
    Ok(greatest.unwrap_or(TimeBound::SINGLE_RANK))
}

/// Returns all lower bounds on the time of `collective` at the size `size`, with their witnesses.
/// Bounds with weaker assumptions are first. Fails if a time exceeds 64 bits of picoseconds.
pub fn bounds(
    graph: &WdmGraph,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<Vec<WitnessedBound>, UnitError> {
    let fibres = Fibres::of(graph);
    if fibres.ranks < 2 {
        return Ok(vec![WitnessedBound::from(TimeBound::SINGLE_RANK)]);
    }
    let conversion = graph.transmission().latency();
    let hop = conversion.plus(Time::from_ps(fibres.least_delay_ps()))?;
    let once = match charge {
        ReconfigurationCost::Never => Time::ZERO,
        _ => graph.reconfiguration,
    };
    let mut bounds = sending(graph, &fibres, collective, size)?;
    let bytes = bounds.iter().map(|one| one.bound.time).max();
    let bytes = bytes.unwrap_or(Time::ZERO);
    for one in &mut bounds {
        one.bound.time = one.bound.time.plus(once)?.plus(hop)?;
    }
    let light = farthest(&fibres, collective).map_or(0, |(_, delay_ps)| delay_ps);
    let latency = |rounds: u64, charged: Time| {
        let converted = conversion.times(rounds)?;
        Ok::<_, UnitError>(WitnessedBound::from(TimeBound {
            time: charged.plus(converted)?.plus(Time::from_ps(light))?,
            name: "latency",
            assumption: "light needs the propagation time of all links to the farthest rank",
        }))
    };
    if charge == ReconfigurationCost::OncePerPort {
        bounds.push(latency(1, once)?);
        return Ok(bounds);
    }
    let rounds = any_load(graph, &fibres, collective);
    let rounds = rounds.iter().map(|bound| bound.steps).max().unwrap_or(0);
    let rounds = rounds.max(1);
    let (per_slot, charged_once, charged) = match charge {
        ReconfigurationCost::EverySlot => (
            graph.reconfiguration.plus(hop)?,
            Time::ZERO,
            graph.reconfiguration.times(rounds)?,
        ),
        _ => (hop, once, once),
    };
    bounds.push(WitnessedBound::from(TimeBound {
        time: per_slot.times(rounds)?.plus(bytes)?.plus(charged_once)?,
        name: "rounds",
        assumption: SLOT_BY_SLOT,
    }));
    bounds.push(latency(rounds, charged)?);
    if let Some(trees) = TreeLoads::of(graph, &fibres, collective)
        && let Some((time, slots)) = least_tree_time(&trees, size, per_slot, rounds, bytes)?
    {
        let bound = TimeBound {
            time: time.plus(charged_once)?,
            name: "relay_tree",
            assumption: tree_assumption(fibres.has_light_trees),
        };
        bounds.push(WitnessedBound {
            bound,
            witness: slots.and_then(|slots| trees.witness(slots)),
        });
    }
    Ok(bounds)
}

/// Returns the bounds of W1, W2 and W3 on the time in which channels carry bytes, without
/// reconfigurations and delays.
fn sending(
    graph: &WdmGraph,
    fibres: &Fibres,
    collective: &Collective,
    size: Bytes,
) -> Result<Vec<WitnessedBound>, UnitError> {
    let mut bandwidth = Time::ZERO;
    for (bytes, rate) in ports::bytes(fibres, collective, size.get()) {
        bandwidth = bandwidth.max(transmission_time(bytes, rate)?);
    }
    let mut bounds = vec![WitnessedBound::from(TimeBound {
        time: bandwidth,
        name: "bandwidth",
        assumption: "no rank sends or receives faster than all of its lightpaths together",
    })];
    let bytes = u128::from(size.get());
    let part = bytes / u128::from(fibres.ranks);
    if let Some(cut) = tightest_cut(graph, fibres, collective, Measure::Rates) {
        let block = match collective.kind() {
            CollectiveKind::ReduceScatter => part,
            _ => bytes,
        };
        bounds.push(WitnessedBound {
            bound: TimeBound {
                time: transmission_time(block * cut.cut.blocks, cut.cut.rate)?,
                name: "cut",
                assumption: "the data that a part of the ranks needs from the other ranks cross \
                             the channels between them",
            },
            witness: Some(cut.witness(fibres)),
        });
    }
    if collective.kind() == CollectiveKind::AllToAll
        && let Some(load) = flows::load(graph, fibres, collective, Measure::Rates)
        && let Some(bytes) = load.blocks.blocks.checked_mul(part)
    {
        bounds.push(WitnessedBound {
            bound: TimeBound {
                time: transmission_time(bytes, load.blocks.rate)?,
                name: "concurrent_flow",
                assumption: "the links must carry the data of all pairs together, on any routes",
            },
            witness: Some(load.witness()),
        });
    }
    Ok(bounds)
}

/// Returns the bound `relay_tree`: the minimum over all numbers of slots, at least `fewest`.
/// `bytes` is the time of the bytes with any number of slots. Also returns the number of slots with
/// this time, if it is known. `None` if no tree reaches all ranks.
fn least_tree_time(
    trees: &TreeLoads<'_>,
    size: Bytes,
    per_slot: Time,
    fewest: u64,
    bytes: Time,
) -> Result<Option<(Time, Option<u64>)>, UnitError> {
    let Some(shortest) = trees.time(size, None)? else {
        return Ok(None);
    };
    let shortest = shortest.max(bytes);
    if per_slot == Time::ZERO {
        return Ok(Some((shortest, None)));
    }
    let best = Cell::new(None::<(Time, u64)>);
    let least = least_over_slots(fewest, |slots| {
        let paid = per_slot.times(slots)?;
        let Some(sending) = trees.time(size, Some(slots))? else {
            return Ok(None);
        };
        let time = paid.plus(sending.max(shortest))?;
        if best.get().is_none_or(|(least, _)| time < least) {
            best.set(Some((time, slots)));
        }
        Ok(Some((time, paid.plus(shortest)?)))
    })?;
    Ok(least.map(|least| {
        let slots = best.get().filter(|(time, _)| *time == least);
        (least, slots.map(|(_, slots)| slots))
    }))
}
