//! Lower bounds on time, in the cost model of the simulators. A slot takes its reconfiguration R,
//! if charged, and the time of its longest lightpath, which is at least a + delta * hops + bytes /
//! B. a is the fixed latency of a message, delta the latency of a link, and B the rate. If flits
//! are converted, [`opticoll_fabric::fabric::transmission`] defines a, and its t replaces 1 / B.
//!
//! | name | bound on the time T | theorem |
//! |---|---|---|
//! | `bandwidth` | R + a + delta + m / (r B) for m bytes that a rank must receive, or send | R10 |
//! | `rounds` | G (R + a + delta) + m / (r B), with the G slots of `growth` or `spread` | R10 |
//! | `reach` | as `rounds`, with the slots of `reach` | R2, R10 |
//! | `latency` | G (R + a) + D delta, for data that cross D links to the farthest rank | R10 |
//! | `relay_tree` | min over S >= G of S (R + a + delta) + max(bandwidth, E_S d / (2 c B)) | R11 |
//! | `crossings` | as `relay_tree`, with E_S of an all_reduce from [`super::crossings`] | R12 |
//!
//! d is the number of bytes of a block; a vector of M bytes has N blocks. In S slots, a byte of a
//! block occupies at least E_S links, as the mean over all blocks. For a broadcast, E_S also counts
//! links that must stay unused (`root_bound`). A reduce_scatter is a time-reversed all_gather with
//! d = M / N, and a reduce is a time-reversed broadcast. With light trees, `relay_tree` holds only
//! for reduce_scatter, reduce and all_reduce: at most one copy of a contribution reaches a given
//! rank.
//!
//! ```
//! use opticoll_bounds::ReconfigurationCost;
//! use opticoll_fabric::family::wdm_ring::WdmRing;
//! use opticoll_bounds::wdm_ring::time;
//! use opticoll_plan::collective::{Collective, CollectiveKind};
//! use opticoll_fabric::fabric::Fabric;
//! let fabric = Fabric::parse("optree_paper")?;
//! let ring = fabric.needed::<WdmRing>("this example")?;
//! let collective = Collective::new(CollectiveKind::AllGather, 1024)?;
//! let bound = time::best(ring, &collective, "4MiB".parse()?, ReconfigurationCost::EverySlot)?;
//! assert_eq!(bound.name, "relay_tree");
//! assert_eq!((bound.time.seconds() * 1e5).round(), 1368.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::all_reduce::{self, AllReduce, CountedBy};
use super::multi_block::{self, Followed};
use super::relay_tree::{MAX_WORK, cost};
use super::root_bound;
use super::{
    behind_cuts, channels_between_halves, farthest, intake, narrowest, reach_slots, total_intake,
};
use crate::{ReconfigurationCost, TimeBound, tree_assumption};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Returns all lower bounds on the time of `collective` at the size `size`. Fails if a time exceeds
/// 64 bits of picoseconds.
pub fn times(
    ring: &WdmRing,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<Vec<TimeBound>, UnitError> {
    let ranks = u64::from(collective.ranks());
    if ranks < 2 {
        return Ok(vec![TimeBound::SINGLE_RANK]);
    }
    let once = match charge {
        ReconfigurationCost::Never => Time::ZERO,
        _ => ring.reconfiguration,
    };
    let propagation = ring.least_propagation()?;
    let hop = ring.transmission().latency().plus(propagation)?;
    let behind_cut = u128::from(behind_cuts::ranks(ring, collective)) * u128::from(size.get());
    let behind_cut = channel_time(ring, behind_cut, 1, u64::from(ring.channels()))?;
    let sending = bandwidth(ring, collective, size)?.max(behind_cut);
    let mut bounds = vec![TimeBound {
        time: once.plus(hop)?.plus(sending)?,
        name: "bandwidth",
        assumption: "no rank sends or receives faster than all of its channels together",
    }];
    let light = propagation.times(farthest(ring, collective))?;
    let latency = |rounds: u64, charged: Time| {
        let converted = ring.transmission().latency().times(rounds)?;
        Ok::<_, UnitError>(TimeBound {
            time: charged.plus(converted)?.plus(light)?,
            name: "latency",
            assumption: "light needs the propagation time of all links to the farthest rank",
        })
    };
    if charge == ReconfigurationCost::OncePerPort {
        bounds.push(latency(1, once)?);
        return Ok(bounds);
    }
    let per_slot = match charge {
        ReconfigurationCost::EverySlot => ring.reconfiguration.plus(hop)?,
        _ => hop,
    };
    let charged_once = match charge {
        ReconfigurationCost::Once => once,
        _ => Time::ZERO,
    };
    if let Some(rounds) = reach_slots(ring, collective) {
        bounds.push(TimeBound {
            time: per_slot.times(rounds)?.plus(sending)?.plus(charged_once)?,
            name: "reach",
            assumption: "slots run one after the other, each as long as its longest lightpath; no \
                         lightpath is longer than the reach of the fabric",
        });
    }
    let rounds = super::slots_for_any_load(ring, collective).steps;
    bounds.push(TimeBound {
        time: per_slot.times(rounds)?.plus(sending)?.plus(charged_once)?,
        name: "rounds",
        assumption: "slots run one after the other, each as long as its longest lightpath",
    });
    let charged = match charge {
        ReconfigurationCost::EverySlot => ring.reconfiguration.times(rounds)?,
        _ => charged_once,
    };
    bounds.push(latency(rounds, charged)?);
    if let Some((time, counted_by)) = relay_tree_time(ring, collective, size, per_slot, sending)? {
        bounds.push(TimeBound {
            time: time.plus(charged_once)?,
            name: match counted_by {
                CountedBy::Trees => "relay_tree",
                CountedBy::Crossings => "crossings",
            },
            assumption: tree_assumption(ring.multicast),
        });
    }
    Ok(bounds)
}

/// Returns the greatest lower bound on time. Of equal bounds, returns the first, which has the
/// weakest assumption. Fails if a time exceeds 64 bits of picoseconds.
pub fn best(
    ring: &WdmRing,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<TimeBound, UnitError> {
    let bounds = times(ring, collective, size, charge)?;
    let greatest = bounds.iter().rev().max_by_key(|bound| bound.time);
    Ok(*greatest.unwrap_or(&bounds[0]))
}

/// Returns the least time in which `channels` channels together transmit `bytes / parts` bytes,
/// rounded down to picoseconds.
pub(super) fn channel_time(
    ring: &WdmRing,
    bytes: u128,
    parts: u64,
    channels: u64,
) -> Result<Time, UnitError> {
    let parts = u128::from(parts) * u128::from(channels);
    let least = ring.transmission().least(bytes, parts);
    let time = least.and_then(|least| u64::try_from(least).ok());
    time.map(Time::from_ps).ok_or_else(crate::too_long)
}

/// Returns the least time in which the busiest rank sends or receives its bytes. For an all_to_all,
/// returns the time over the cut between the halves if it is greater.
fn bandwidth(ring: &WdmRing, collective: &Collective, size: Bytes) -> Result<Time, UnitError> {
    let ranks = u64::from(collective.ranks());
    let bytes = u128::from(size.get());
    let others = u128::from(ranks - 1);
    let across = channels_between_halves(ring);
    let narrowest = narrowest(ring, collective);
    let whole = ring.broken.is_empty();
    match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::Gather | CollectiveKind::Scatter => {
            channel_time(ring, bytes * others, 1, narrowest)
        }
        CollectiveKind::ReduceScatter if whole => {
            channel_time(ring, bytes * others, ranks, narrowest)
        }
        CollectiveKind::ReduceScatter => {
            channel_time(ring, bytes - bytes.div_ceil(ranks.into()), 1, narrowest)
        }
        CollectiveKind::AllReduce => {
            let every = channel_time(ring, 2 * bytes * others, 1, total_intake(ring))?;
            Ok(every.max(channel_time(ring, bytes, 1, narrowest)?))
        }
        CollectiveKind::Broadcast | CollectiveKind::Reduce => {
            channel_time(ring, bytes, 1, narrowest)
        }
        CollectiveKind::Barrier => Ok(Time::ZERO),
        CollectiveKind::AllToAll => {
            let pairs = u128::from(ranks) * u128::from(ranks) / 4;
            let (block, parts) = if whole {
                (bytes, ranks)
            } else {
                (bytes / u128::from(ranks), 1)
            };
            let cut = channel_time(ring, block * pairs, parts, across)?;
            Ok(cut.max(channel_time(ring, block * others, parts, narrowest)?))
        }
    }
}

/// Returns the bytes of `size`, times the least number of links that each byte occupies in `slots`
/// slots (E_S). Relay trees have the length `cost`. See [`multi_block`].
fn byte_links(ring: &WdmRing, collective: &Collective, size: Bytes, slots: u64, cost: u64) -> u128 {
    let (bytes, ranks) = (u128::from(size.get()), collective.ranks());
    let channels = 2 * u64::from(ring.channels());
    let priced = |followed| {
        let priced = multi_block::length(ranks, channels, intake(ring), slots, followed)?;
        Some((u128::from(priced.tree), u128::from(priced.paid)))
    };
    let parts = u128::from(multi_block::PART);
    let (followed, cost, larger) = match collective.kind() {
        CollectiveKind::AllGather => (Followed::Blocks, cost, bytes),
        // By time reversal, a light tree of a slot may belong to many blocks, which `multi_block`
        // does not cover.
        _ if ring.multicast => return bytes * u128::from(cost),
        CollectiveKind::ReduceScatter => {
            let block = bytes.div_ceil(ranks.into());
            (Followed::Blocks, cost, block * u128::from(ranks))
        }
        CollectiveKind::AllReduce => {
            let halves = cost + u64::from(ranks - 1);
            (Followed::Contributions, halves, bytes)
        }
        _ => {
            let leaving = root_bound::length(ranks, channels, intake(ring), slots, cost);
            return bytes * u128::from(leaving);
        }
    };
    let plain = bytes * u128::from(cost);
    priced(followed).map_or(plain, |(tree, paid)| {
        plain.max((bytes * tree).saturating_sub(larger * paid) / parts)
    })
}

/// Returns the bound `relay_tree` or `crossings`, which is the minimum over all numbers of slots,
/// and the lightpaths whose links decide the bound. `None` for collectives without this bound.
fn relay_tree_time(
    ring: &WdmRing,
    collective: &Collective,
    size: Bytes,
    per_slot: Time,
    bandwidth: Time,
) -> Result<Option<(Time, CountedBy)>, UnitError> {
    let ranks = u64::from(collective.ranks());
    let parts = match collective.kind() {
        CollectiveKind::AllGather if !ring.multicast => 1,
        CollectiveKind::ReduceScatter => ranks,
        CollectiveKind::AllReduce | CollectiveKind::Reduce => ranks,
        CollectiveKind::Broadcast if !ring.multicast => ranks,
        _ => return Ok(None),
    };
    if per_slot == Time::ZERO {
        return Ok(None);
    }
    let channels = 2 * u64::from(ring.channels());
    let bytes = u128::from(size.get());
    let shortest =
        channel_time(ring, bytes * u128::from(ranks - 1), parts, channels)?.max(bandwidth);
    let rounds = super::slots_for_any_load(ring, collective).steps;
    let rounds = rounds.max(reach_slots(ring, collective).unwrap_or(0));
    if collective.kind() == CollectiveKind::AllReduce && !ring.multicast {
        let sending = |needed| Ok(channel_time(ring, needed, parts, channels)?.max(bandwidth));
        let least = all_reduce::least(&AllReduce {
            ranks: collective.ranks(),
            intake: intake(ring),
            fewest: rounds,
            per_slot,
            sending: &|links| sending(bytes * u128::from(links)),
            priced: &|slots| {
                let cost = cost(collective.ranks(), slots);
                sending(byte_links(ring, collective, size, slots, cost))
            },
        });
        return least.map(Some);
    }
    let time = |slots: u64, needed: u128| {
        let sending = channel_time(ring, needed, parts, channels)?.max(bandwidth);
        per_slot.times(slots)?.plus(sending)
    };
    // No plan with `slots` or more slots is faster than this time.
    let floor = |slots: u64| per_slot.times(slots)?.plus(shortest);
    // The lengths of trees are quick to compute, and the additions by prices are slow. The number
    // of slots that is fastest by lengths is nearly the fastest by prices, so that few other
    // numbers remain.
    let by_lengths = |slots: u64| {
        let cost = cost(collective.ranks(), slots);
        time(slots, bytes * u128::from(cost))
    };
    let mut promising: Option<(Time, u64)> = None;
    let numbers = rounds.max(1)..=MAX_WORK / ranks;
    for slots in numbers.clone() {
        if promising.is_some_and(|(least, _)| floor(slots).is_ok_and(|floor| floor >= least)) {
            break;
        }
        let candidate = (by_lengths(slots)?, slots);
        promising = Some(promising.map_or(candidate, |known| known.min(candidate)));
    }
    let whole = |slots: u64| {
        let cost = cost(collective.ranks(), slots);
        time(slots, byte_links(ring, collective, size, slots, cost))
    };
    let mut least = promising.map(|(_, slots)| whole(slots)).transpose()?;
    for slots in numbers {
        let floor = floor(slots)?;
        if least.is_some_and(|least| floor >= least) {
            return Ok(least.map(|time| (time, CountedBy::Trees)));
        }
        if least.is_none_or(|least| by_lengths(slots).is_ok_and(|time| time < least)) {
            let time = whole(slots)?;
            least = Some(least.map_or(time, |least| least.min(time)));
        }
    }
    // For more slots, only the number of slots and the shortest trees count.
    let floor = floor((MAX_WORK / ranks + 1).max(rounds))?;
    let time = least.map_or(floor, |least| least.min(floor));
    Ok(Some((time, CountedBy::Trees)))
}

#[cfg(test)]
mod tests {
    use super::{byte_links, channel_time, relay_tree_time};
    use crate::wdm_ring::relay_tree::cost;
    use opticoll_base::units::{Bytes, Time};
    use opticoll_fabric::fabric::Fabric;
    use opticoll_fabric::family::wdm_ring::WdmRing;
    use opticoll_plan::collective::{Collective, CollectiveKind};

    /// Greatest number of slots to try. More slots are never the fastest in this test.
    const MAX_SLOTS: u64 = 200;

    #[test]
    #[cfg_attr(
        debug_assertions,
        ignore = "slow without optimisation: `make validate`"
    )]
    fn the_least_time_is_that_of_all_numbers_of_slots() {
        for ranks in [4, 9, 32, 100] {
            let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths=4"));
            let fabric = fabric.expect("a ring");
            let ring = fabric.downcast::<WdmRing>().expect("a ring");
            for kind in [
                CollectiveKind::AllGather,
                CollectiveKind::ReduceScatter,
                CollectiveKind::Broadcast,
                CollectiveKind::Reduce,
            ] {
                let collective = Collective::new(kind, ranks).expect("ranks");
                let parts = match kind {
                    CollectiveKind::AllGather => 1,
                    _ => u64::from(ranks),
                };
                for size in [1000, 100_000, 10_000_000].map(Bytes::new) {
                    let per_slot = Time::from_ps(25_000_000);
                    let fewest = super::super::slots_for_any_load(ring, &collective)
                        .steps
                        .max(1);
                    let all = (fewest..MAX_SLOTS).map(|slots| {
                        let cost = cost(ranks, slots);
                        let needed = byte_links(ring, &collective, size, slots, cost);
                        let sending = channel_time(ring, needed, parts, 8).expect("a time");
                        per_slot.times(slots).and_then(|time| time.plus(sending))
                    });
                    let least = all.map(|time| time.expect("a time")).min();
                    let found = relay_tree_time(ring, &collective, size, per_slot, Time::ZERO);
                    let found = found.expect("a time").map(|(time, _)| time);
                    assert_eq!(found, least, "{kind} of {size} among {ranks}");
                }
            }
        }
    }
}
