//! Chunks over ports that change one by one: started one after the other, none earlier than its two
//! ports are free.
//!
//! Each port out goes with the ports in of its number. When a port out and a port in of one number
//! are free, the pair of ranks with the most left to send and to receive between them starts. Slots
//! number the chunks of a port in their order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Decomposed, PlacedChunk, Terms};
use opticoll_base::interrupt;

/// What is left of a rank's pairs, as source or as destination.
struct RankLeft {
    /// Picoseconds of all chunks, with a change for each.
    time: f64,
    /// By port: when it is free, and the slot after its last.
    ports: Vec<(f64, u32)>,
}

pub(super) fn started_one_by_one(
    ranks: u32,
    terms: &Terms,
    chunks: &[(u32, u32, u64)],
) -> Decomposed {
    let numbers = terms.ports();
    let lasts = |amount: u64| amount as f64 * terms.per_amount + terms.overhead();
    let mut left = [0, 1].map(|_| {
        let rank = |_| RankLeft {
            time: 0.0,
            ports: vec![(0.0, 0); numbers.len()],
        };
        (0..ranks).map(rank).collect::<Vec<_>>()
    });
    let mut waiting: Vec<Vec<(u32, u64)>> = vec![Vec::new(); ranks as usize];
    for &(source, destination, amount) in chunks {
        left[0][source as usize].time += lasts(amount);
        left[1][destination as usize].time += lasts(amount);
        waiting[source as usize].push((destination, amount));
    }
    // Ports out by the time at which they may start something, in picoseconds; each once.
    let mut events: BTreeMap<u64, Vec<(u32, usize)>> = BTreeMap::new();
    let all = (0..numbers.len()).flat_map(|port| (0..ranks).map(move |rank| (rank, port)));
    events.insert(0, all.collect());
    let (mut placed, mut end) = (Vec::with_capacity(chunks.len()), 0.0f64);
    while let Some((now, mut free)) = events.pop_first() {
        interrupt::check();
        // The busiest first.
        free.sort_by(|one, other| {
            let time = |of: &(u32, usize)| left[0][of.0 as usize].time;
            time(other).total_cmp(&time(one)).then(one.cmp(other))
        });
        for (source, port) in free {
            if waiting[source as usize].is_empty() {
                continue;
            }
            let mut wakes = f64::INFINITY;
            let mut best: Option<(f64, Reverse<u32>, usize)> = None;
            for (place, (destination, _)) in waiting[source as usize].iter().enumerate() {
                let receiver = &left[1][*destination as usize];
                let (since, _) = receiver.ports[port];
                if since > now as f64 {
                    wakes = wakes.min(since);
                    continue;
                }
                let key = (receiver.time, Reverse(*destination), place);
                if best.is_none_or(|best| key.0 > best.0 || key.0 == best.0 && key.1 > best.1) {
                    best = Some(key);
                }
            }
            let next = match best {
                None => wakes,
                Some((_, _, place)) => {
                    let (destination, amount) = waiting[source as usize].swap_remove(place);
                    let ends = [(0, source), (1, destination)];
                    let of_port = |(way, rank): (usize, u32)| left[way][rank as usize].ports[port];
                    let slot = ends.map(of_port).iter().map(|of| of.1).max().unwrap_or(0);
                    let is_first = ends.map(of_port).iter().all(|of| of.1 == 0);
                    let change = if is_first { terms.change } else { 0.0 };
                    let until = now as f64 + lasts(amount) - change;
                    for (way, rank) in ends {
                        let own = &mut left[way][rank as usize];
                        own.time -= lasts(amount);
                        own.ports[port] = (until, slot + 1);
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
    Decomposed {
        chunks: placed,
        time: end,
    }
}
