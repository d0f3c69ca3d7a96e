//! List scheduling of chunks over ports that change one by one. A chunk starts when a port of its
//! source, and the port of its destination with the same index, are idle.
//!
//! Outgoing ports connect only to incoming ports with the same index. When two such ports are idle,
//! the pair of ranks with the most remaining work starts. The chunks of a port have consecutive
//! slots.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Decomposition, PlacedChunk, SwitchCosts};
use opticoll_base::interrupt;

/// Remaining work of a rank, as a source or as a destination.
struct RankWork {
    /// Time of all remaining chunks in picoseconds, with one change of the configuration per chunk.
    time: f64,
    /// Each port as (time in picoseconds at which the port is idle, slot after its last slot);
    /// indexed by port.
    ports: Vec<(f64, u32)>,
}

/// Assigns ports and slots to chunks, which are given as (source, destination, amount).
pub(super) fn schedule(
    ranks: u32,
    costs: &SwitchCosts,
    chunks: &[(u32, u32, u64)],
) -> Decomposition {
    let numbers = costs.ports();
    let duration = |amount: u64| amount as f64 * costs.per_amount + costs.overhead();
    let mut remaining = [0, 1].map(|_| {
        let rank = |_| RankWork {
            time: 0.0,
            ports: vec![(0.0, 0); numbers.len()],
        };
        (0..ranks).map(rank).collect::<Vec<_>>()
    });
    let mut waiting: Vec<Vec<(u32, u64)>> = vec![Vec::new(); ranks as usize];
    for &(source, destination, amount) in chunks {
        remaining[0][source as usize].time += duration(amount);
        remaining[1][destination as usize].time += duration(amount);
        waiting[source as usize].push((destination, amount));
    }
    // Outgoing ports, as (rank, index of the port), by the time in picoseconds at which they may
    // start a chunk. Each port occurs at most once.
    let mut events: BTreeMap<u64, Vec<(u32, usize)>> = BTreeMap::new();
    let rank_ports = (0..numbers.len()).flat_map(|port| (0..ranks).map(move |rank| (rank, port)));
    events.insert(0, rank_ports.collect());
    let (mut placed, mut end) = (Vec::with_capacity(chunks.len()), 0.0f64);
    while let Some((now, mut free)) = events.pop_first() {
        interrupt::check();
        free.sort_by(|one, other| {
            let time = |of: &(u32, usize)| remaining[0][of.0 as usize].time;
            time(other).total_cmp(&time(one)).then(one.cmp(other))
        });
        for (source, port) in free {
            if waiting[source as usize].is_empty() {
                continue;
            }
            let mut wakes = f64::INFINITY;
            let mut selected: Option<(f64, Reverse<u32>, usize)> = None;
            for (place, (destination, _)) in waiting[source as usize].iter().enumerate() {
                let receiver = &remaining[1][*destination as usize];
                let (since, _) = receiver.ports[port];
                if since > now as f64 {
                    wakes = wakes.min(since);
                    continue;
                }
                let key = (receiver.time, Reverse(*destination), place);
                if selected.is_none_or(|selected| {
                    key.0 > selected.0 || key.0 == selected.0 && key.1 > selected.1
                }) {
                    selected = Some(key);
                }
            }
            let next = match selected {
                None => wakes,
                Some((_, _, place)) => {
                    let (destination, amount) = waiting[source as usize].swap_remove(place);
                    let ends = [(0, source), (1, destination)];
                    let port_state = |(end_index, rank): (usize, u32)| {
                        remaining[end_index][rank as usize].ports[port]
                    };
                    let slot = ends
                        .map(port_state)
                        .iter()
                        .map(|of| of.1)
                        .max()
                        .unwrap_or(0);
                    let is_first = ends.map(port_state).iter().all(|of| of.1 == 0);
                    let change = if is_first { costs.change } else { 0.0 };
                    let until = now as f64 + duration(amount) - change;
                    for (end_index, rank) in ends {
                        let rank_work = &mut remaining[end_index][rank as usize];
                        rank_work.time -= duration(amount);
                        rank_work.ports[port] = (until, slot + 1);
                    }
                    placed.push(PlacedChunk {
                        source,
                        destination,
                        amount,
                        slot,
                        port: numbers[port],
                    });
                    end = end.max(until);
                    until
                }
            };
            if next.is_finite() {
                let next = (next.ceil() as u64).max(now + 1);
                events.entry(next).or_default().push((source, port));
            }
        }
    }
    Decomposition {
        chunks: placed,
        time: end,
    }
}
