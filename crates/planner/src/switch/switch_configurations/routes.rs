//! Routes of the messages of a step over the circuits of a configuration, with the slots of their
//! hops.
//!
//! Each message follows a shortest route. With cut-through all messages share the circuits in a
//! single slot. Two slots in sequence would not end earlier, because each slot takes the time of
//! its longest message and the latency of a circuit. Without cut-through a circuit carries one
//! message per slot, and the messages with the most remaining hops go first. If every rank u sends
//! equally many bytes to rank u + o, over circuits to rank u + a, the step takes h slots with h a =
//! o modulo N.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::graphs::Configuration;
use super::steps::{Step, StepMessage};
use crate::switch::MAX_ROUTED_RANKS;
use opticoll_base::graph::{self, UNREACHED};
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::circuits::Circuits;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;

/// Maximum total number of hops of all messages of a step with relays.
const MAX_HOPS: u64 = 1 << 22;

#[derive(Debug, Clone, Default)]
pub(super) struct Route {
    pub(super) hops: Vec<RouteHop>,
}

/// A circuit in a slot. The first slot of the step is slot 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteHop {
    pub(super) slot: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Returns the time of a step with a configuration, in picoseconds. `per_slot` is the fixed time
/// per slot in picoseconds. `None` if some message cannot reach its destination.
pub(super) fn time(
    step: &Step,
    configuration: &Configuration,
    switch: &CircuitSwitch,
    per_slot: u64,
) -> Option<u64> {
    let transmission = switch.transmission();
    if switch.cuts_through() {
        return cut_through_time(step, &rank_routes(step, configuration)?, switch, per_slot);
    }
    let slot_time = |bytes: Bytes| {
        let sending = u64::try_from(transmission.ps(bytes)).ok()?;
        sending
            .checked_add(switch.latency.ps())?
            .checked_add(per_slot)
    };
    if let (Some((after, bytes)), Some(shift)) = (step.shift, configuration.shift) {
        let hops = hops_of_shift(after, shift, step.ranks)?;
        if u64::from(hops) * u64::from(step.ranks) > MAX_HOPS && hops > 1 {
            return None;
        }
        let total = slot_time(bytes)?.checked_mul(hops.into())?;
        return total.checked_add(switch.startup.ps());
    }
    let routes = routes(step, configuration, switch)?;
    let mut slots: Vec<(Bytes, bool)> = Vec::new();
    for (message, route) in step.messages.iter().zip(&routes) {
        for (place, hop) in route.hops.iter().enumerate() {
            let slot = hop.slot as usize;
            if slots.len() <= slot {
                slots.resize(slot + 1, (Bytes::new(0), false));
            }
            slots[slot].0 = slots[slot].0.max(message.bytes);
            slots[slot].1 |= place == 0;
        }
    }
    slots.into_iter().try_fold(0u64, |total, (bytes, begins)| {
        let startup = if begins { switch.startup.ps() } else { 0 };
        total.checked_add(slot_time(bytes)?)?.checked_add(startup)
    })
}

/// Returns the time in picoseconds of a step whose messages all use the network beside the switch,
/// or `None` without such a network.
pub(super) fn side_network_time(step: &Step, switch: &CircuitSwitch) -> Option<u64> {
    let (_, transmission) = switch.side_network()?;
    let mut shared = [0, 1].map(|_| vec![0u64; step.ranks as usize]);
    for message in &step.messages {
        for (end, rank) in [message.from, message.to].into_iter().enumerate() {
            let bytes = &mut shared[end][rank as usize];
            *bytes = bytes.checked_add(message.bytes.get())?;
        }
    }
    let max_bytes = shared.iter().flatten().copied().max().unwrap_or(0);
    let sending = u64::try_from(transmission.ps(Bytes::new(max_bytes))).ok()?;
    sending.checked_add(switch.packet_latency.ps())
}

/// Returns a route of one hop for each message.
pub(super) fn direct(step: &Step) -> Vec<Route> {
    let hop = |message: &StepMessage| RouteHop {
        slot: 0,
        from: message.from,
        to: message.to,
    };
    let messages = step.messages.iter();
    messages
        .map(|message| Route {
            hops: vec![hop(message)],
        })
        .collect()
}

fn cut_through_time(
    step: &Step,
    rank_routes: &[Vec<u32>],
    switch: &CircuitSwitch,
    per_slot: u64,
) -> Option<u64> {
    let mut loads: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for (message, ranks) in step.messages.iter().zip(rank_routes) {
        for ends in ranks.windows(2) {
            let load = loads.entry((ends[0], ends[1])).or_default();
            *load = load.checked_add(message.bytes.get())?;
        }
    }
    let route_time = |ranks: &Vec<u32>| {
        let loads = ranks.windows(2).map(|ends| loads[&(ends[0], ends[1])]);
        let bytes = Bytes::new(loads.max().unwrap_or(0));
        let sending = u64::try_from(switch.transmission().ps(bytes)).ok()?;
        let hops = switch.latency.ps().checked_mul(ranks.len() as u64 - 1)?;
        sending.checked_add(hops)
    };
    let longest = rank_routes
        .iter()
        .map(route_time)
        .try_fold(0, |longest, time| Some(time?.max(longest)))?;
    let startup = match step.messages.is_empty() {
        true => 0,
        false => switch.startup.ps(),
    };
    longest.checked_add(startup)?.checked_add(per_slot)
}

/// Returns the minimum h with h a = o modulo N, for `after` = o, `shift` = a and `ranks` = N.
fn hops_of_shift(after: u32, shift: u32, ranks: u32) -> Option<u32> {
    let mut at = 0u64;
    for hops in 1..=ranks {
        at = (at + u64::from(shift)) % u64::from(ranks);
        if at == u64::from(after) {
            return Some(hops);
        }
        if at == 0 {
            return None;
        }
    }
    None
}

/// Returns the route of each message, in the order of the messages. `None` if some message cannot
/// reach its destination, or if there are too many hops.
pub(super) fn routes(
    step: &Step,
    configuration: &Configuration,
    switch: &CircuitSwitch,
) -> Option<Vec<Route>> {
    let rank_routes = rank_routes(step, configuration)?;
    Some(match switch.cuts_through() {
        true => one_slot_routes(&rank_routes),
        false => slotted_routes(&rank_routes),
    })
}

/// Returns the ranks on the route of each message, in the order of the messages.
fn rank_routes(step: &Step, configuration: &Configuration) -> Option<Vec<Vec<u32>>> {
    if configuration.joins_all(step) {
        let direct_route = |message: &StepMessage| vec![message.from, message.to];
        return Some(step.messages.iter().map(direct_route).collect());
    }
    let rank_routes: Vec<Vec<u32>> = match (step.shift, configuration.shift) {
        (Some((after, _)), Some(shift)) => {
            let hops = hops_of_shift(after, shift, step.ranks)?;
            let at = |from: u32, hop: u32| {
                let position = u64::from(from) + u64::from(hop) * u64::from(shift);
                (position % u64::from(step.ranks)) as u32
            };
            let ranks =
                |message: &StepMessage| (0..=hops).map(|hop| at(message.from, hop)).collect();
            step.messages.iter().map(ranks).collect()
        }
        _ if step.ranks > MAX_ROUTED_RANKS => return None,
        _ => shortest(step, configuration)?,
    };
    let hops = rank_routes
        .iter()
        .map(|ranks| ranks.len() as u64)
        .sum::<u64>();
    (hops <= MAX_HOPS).then_some(rank_routes)
}

/// Returns the routes with all hops in slot 0.
fn one_slot_routes(rank_routes: &[Vec<u32>]) -> Vec<Route> {
    let hop = |ends: &[u32]| RouteHop {
        slot: 0,
        from: ends[0],
        to: ends[1],
    };
    let route = |ranks: &Vec<u32>| Route {
        hops: ranks.windows(2).map(hop).collect(),
    };
    rank_routes.iter().map(route).collect()
}

/// Returns the routes with slots such that a circuit carries at most one message per slot. In each
/// slot, the messages with the most remaining hops go first.
fn slotted_routes(rank_routes: &[Vec<u32>]) -> Vec<Route> {
    let mut routes = vec![Route::default(); rank_routes.len()];
    let mut open: Vec<usize> = (0..rank_routes.len()).collect();
    let mut busy: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut slot = 0;
    while !open.is_empty() {
        interrupt::check();
        busy.clear();
        open.sort_by_key(|message| {
            let hops_left = rank_routes[*message].len() - 1 - routes[*message].hops.len();
            (Reverse(hops_left), *message)
        });
        for &message in &open {
            let place = routes[message].hops.len();
            let (from, to) = (rank_routes[message][place], rank_routes[message][place + 1]);
            if busy.insert((from, to)) {
                routes[message].hops.push(RouteHop { slot, from, to });
            }
        }
        open.retain(|message| routes[*message].hops.len() + 1 < rank_routes[*message].len());
        slot += 1;
    }
    routes
}

/// Returns the ranks on a shortest route of each message. On a tie, the route over the lowest ranks
/// is chosen.
fn shortest(step: &Step, configuration: &Configuration) -> Option<Vec<Vec<u32>>> {
    let mut rank_routes = Vec::with_capacity(step.messages.len());
    for source_messages in step.messages.chunk_by(|one, other| one.from == other.from) {
        let from = source_messages[0].from;
        let next = |rank: u32| configuration.next[rank as usize].iter().copied();
        let previous = graph::predecessors(step.ranks as usize, from, next);
        for message in source_messages {
            let mut ranks = vec![message.to];
            let mut at = message.to;
            while at != from {
                at = previous[at as usize];
                if at == UNREACHED {
                    return None;
                }
                ranks.push(at);
            }
            ranks.reverse();
            rank_routes.push(ranks);
        }
    }
    Some(rank_routes)
}
