//! Over which circuits of a setting the messages of a step go, and when.
//!
//! Each message takes a shortest way. With cut-through all go in one slot and share circuits: no
//! slot after another would end earlier, for each takes the longest message, and the latency of a
//! circuit. Otherwise a circuit carries one message in a slot, and those with the longest way
//! before them go first. Where every rank sends as many bytes to the rank o after it, over circuits
//! to the rank a after it, that is h slots for all, with h a = o modulo N.

use std::cmp::Reverse;
use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::graphs::Setting;
use super::steps::{Step, StepMessage};
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::circuits::Circuits;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;

/// The most hops of a step that is relayed.
const MOST_HOPS: u64 = 1 << 22;

/// The most ranks whose ways are searched for one by one.
const MOST_SEARCHED: u32 = 512;

/// The way of a message.
#[derive(Debug, Clone, Default)]
pub(super) struct Route {
    pub(super) hops: Vec<RouteHop>,
}

/// A circuit in a slot, counted from the first of the step.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteHop {
    pub(super) slot: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Picoseconds of a step on a setting, with so many more for each slot; `None` where its messages
/// do not get there.
pub(super) fn time(
    step: &Step,
    setting: &Setting,
    switch: &CircuitSwitch,
    per_slot: u64,
) -> Option<u64> {
    let transmission = switch.transmission();
    if switch.cuts_through() {
        return together(step, &ways(step, setting)?, switch, per_slot);
    }
    let of_slot = |bytes: Bytes| {
        let sending = u64::try_from(transmission.ps(bytes)).ok()?;
        sending
            .checked_add(switch.latency.ps())?
            .checked_add(per_slot)
    };
    if let (Some((after, bytes)), Some(shift)) = (step.shift, setting.shift) {
        let hops = turns(after, shift, step.ranks)?;
        if u64::from(hops) * u64::from(step.ranks) > MOST_HOPS && hops > 1 {
            return None;
        }
        let all = of_slot(bytes)?.checked_mul(hops.into())?;
        return all.checked_add(switch.startup.ps());
    }
    let routes = routes(step, setting, switch)?;
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
    slots.into_iter().try_fold(0u64, |all, (bytes, begins)| {
        let startup = if begins { switch.startup.ps() } else { 0 };
        all.checked_add(of_slot(bytes)?)?.checked_add(startup)
    })
}

/// Picoseconds of a step whose messages all go beside the switch; `None` where there is no network.
pub(super) fn beside(step: &Step, switch: &CircuitSwitch, per_slot: u64) -> Option<u64> {
    let (_, transmission) = switch.side_network()?;
    let mut shared = [0, 1].map(|_| vec![0u64; step.ranks as usize]);
    for message in &step.messages {
        for (way, rank) in [message.from, message.to].into_iter().enumerate() {
            let bytes = &mut shared[way][rank as usize];
            *bytes = bytes.checked_add(message.bytes.get())?;
        }
    }
    let most = shared.iter().flatten().copied().max().unwrap_or(0);
    let sending = u64::try_from(transmission.ps(Bytes::new(most))).ok()?;
    let slot = sending.checked_add(switch.beside_latency.ps())?;
    slot.checked_add(per_slot)
}

/// A route of one hop for each message.
pub(super) fn straight(step: &Step) -> Vec<Route> {
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

/// The same where ranks send on what still arrives.
fn together(step: &Step, ways: &[Vec<u32>], switch: &CircuitSwitch, per_slot: u64) -> Option<u64> {
    let mut loads: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for (message, way) in step.messages.iter().zip(ways) {
        for ends in way.windows(2) {
            let load = loads.entry((ends[0], ends[1])).or_default();
            *load = load.checked_add(message.bytes.get())?;
        }
    }
    let of_way = |way: &Vec<u32>| {
        let loads = way.windows(2).map(|ends| loads[&(ends[0], ends[1])]);
        let bytes = Bytes::new(loads.max().unwrap_or(0));
        let sending = u64::try_from(switch.transmission().ps(bytes)).ok()?;
        let hops = switch.latency.ps().checked_mul(way.len() as u64 - 1)?;
        sending.checked_add(hops)
    };
    let longest = ways
        .iter()
        .map(of_way)
        .try_fold(0, |longest, time| Some(time?.max(longest)))?;
    let startup = match step.messages.is_empty() {
        true => 0,
        false => switch.startup.ps(),
    };
    longest.checked_add(startup)?.checked_add(per_slot)
}

/// The least h with h a = o modulo N.
fn turns(after: u32, shift: u32, ranks: u32) -> Option<u32> {
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

/// The routes of all messages of a step, in their order; `None` where one does not get there, or
/// there are too many hops.
pub(super) fn routes(step: &Step, setting: &Setting, switch: &CircuitSwitch) -> Option<Vec<Route>> {
    let ways = ways(step, setting)?;
    Some(match switch.cuts_through() {
        true => in_one_slot(&ways),
        false => in_slots(&ways),
    })
}

/// The ranks on the ways of all messages.
fn ways(step: &Step, setting: &Setting) -> Option<Vec<Vec<u32>>> {
    if setting.joins_all(step) {
        let one = |message: &StepMessage| vec![message.from, message.to];
        return Some(step.messages.iter().map(one).collect());
    }
    let ways: Vec<Vec<u32>> = match (step.shift, setting.shift) {
        (Some((after, _)), Some(shift)) => {
            let hops = turns(after, shift, step.ranks)?;
            let at = |from: u32, hop: u32| {
                let far = u64::from(from) + u64::from(hop) * u64::from(shift);
                (far % u64::from(step.ranks)) as u32
            };
            let way = |message: &StepMessage| (0..=hops).map(|hop| at(message.from, hop)).collect();
            step.messages.iter().map(way).collect()
        }
        _ if step.ranks > MOST_SEARCHED => return None,
        _ => shortest(step, setting)?,
    };
    let hops = ways.iter().map(|way| way.len() as u64).sum::<u64>();
    (hops <= MOST_HOPS).then_some(ways)
}

/// All circuits of all ways at once.
fn in_one_slot(ways: &[Vec<u32>]) -> Vec<Route> {
    let hop = |ends: &[u32]| RouteHop {
        slot: 0,
        from: ends[0],
        to: ends[1],
    };
    let route = |way: &Vec<u32>| Route {
        hops: way.windows(2).map(hop).collect(),
    };
    ways.iter().map(route).collect()
}

/// The slots of ways: in each slot the messages with the longest way before them go first.
fn in_slots(ways: &[Vec<u32>]) -> Vec<Route> {
    let mut routes = vec![Route::default(); ways.len()];
    let mut open: Vec<usize> = (0..ways.len()).collect();
    let mut busy: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut slot = 0;
    while !open.is_empty() {
        interrupt::check();
        busy.clear();
        open.sort_by_key(|message| {
            let left = ways[*message].len() - 1 - routes[*message].hops.len();
            (Reverse(left), *message)
        });
        for &message in &open {
            let place = routes[message].hops.len();
            let (from, to) = (ways[message][place], ways[message][place + 1]);
            if busy.insert((from, to)) {
                routes[message].hops.push(RouteHop { slot, from, to });
            }
        }
        open.retain(|message| routes[*message].hops.len() + 1 < ways[*message].len());
        slot += 1;
    }
    routes
}

/// A shortest way of each message, by the lowest ranks.
fn shortest(step: &Step, setting: &Setting) -> Option<Vec<Vec<u32>>> {
    let mut ways = Vec::with_capacity(step.messages.len());
    for of_source in step.messages.chunk_by(|one, other| one.from == other.from) {
        interrupt::check();
        let from = of_source[0].from;
        let mut came = vec![u32::MAX; step.ranks as usize];
        came[from as usize] = from;
        let mut open = VecDeque::from([from]);
        while let Some(rank) = open.pop_front() {
            for &next in &setting.next[rank as usize] {
                if came[next as usize] == u32::MAX {
                    came[next as usize] = rank;
                    open.push_back(next);
                }
            }
        }
        for message in of_source {
            let mut way = vec![message.to];
            let mut at = message.to;
            while at != from {
                at = came[at as usize];
                if at == u32::MAX {
                    return None;
                }
                way.push(at);
            }
            way.reverse();
            ways.push(way);
        }
    }
    Some(ways)
}
