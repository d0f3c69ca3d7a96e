//! Bound of the quickest flow (theorem E7): rank v must receive all M bytes of rank u over links
//! that these bytes reach only after a latency.
//!
//! Let w = (least latency from u to the start of a link) + (latency of the link) + (least latency
//! from its end to any rank). In the time T, a link of rate c transmits at most c max(0, T - w) of
//! the bytes of u. For a given T, a maximum flow with these capacities finds the least cut between
//! u and v. If this cut transmits less than M, T increases to the time in which the cut transmits
//! M. This repeats until no cut transmits less than M.

use std::cmp::Reverse;

use super::Witness;
use super::links::{Links, NONE, UNBOUNDED, Windows};
use crate::bits_ps;
use crate::throughput::flow::Flow;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of link visits of all flows together.
const MAX_STEPS: u64 = 1 << 22;

/// Returns the greatest bound over all examined ranks, with its witness. Ranks far from the root
/// are examined first. `None` if no rank has a greater bound than `known`, the time of another
/// bound.
pub(super) fn best(
    links: &Links,
    collective: &Collective,
    size: Bytes,
    known: Time,
) -> Result<Option<(Time, Witness)>, UnitError> {
    let root = collective.root();
    let others = (0..links.ranks).filter(|rank| *rank != root);
    let mut pairs: Vec<(u32, u32)> = match collective.kind() {
        CollectiveKind::Broadcast => others.map(|rank| (root, rank)).collect(),
        CollectiveKind::Reduce => others.map(|rank| (rank, root)).collect(),
        _ => return Ok(None),
    };
    if !links.has_latency() || size.get() == 0 {
        return Ok(None);
    }
    let least = |part: &dyn Fn(u32) -> u32, towards: bool| -> Vec<Option<u64>> {
        let nearest = links.nearest((0..links.ranks).map(part), towards);
        let latencies = nearest
            .iter()
            .map(|[first, _]| first.map(|(latency, _)| latency));
        latencies.collect()
    };
    let only = |rank: u32| move |other: u32| if other == rank { 0 } else { NONE };
    let (from_root, to_root) = (least(&only(root), false), least(&only(root), true));
    pairs.sort_by_key(|&(from, to)| match from == root {
        true => Reverse(from_root[to as usize]),
        false => Reverse(to_root[from as usize]),
    });
    let to_any = least(&|_| 0, true);
    let wanted = bits_ps(size.get().into())?;
    let (mut time, mut witness, mut work) = (known, None, 0);
    for (source, sink) in pairs {
        if work > MAX_STEPS {
            break;
        }
        interrupt::check();
        let from_source = least(&only(source), false);
        // For each link and direction: number, ends, rate in bit/s, and window w in picoseconds.
        let mut arcs = Vec::new();
        for (number, edge) in (0u32..).zip(&links.edges) {
            let directions = [(edge.from, edge.to), (edge.to, edge.from)];
            for &(from, to) in &directions[..1 + usize::from(edge.both_ways)] {
                if let (Some(before), Some(after)) = (from_source[from], to_any[to]) {
                    let window = before.saturating_add(edge.latency).saturating_add(after);
                    arcs.push((number, (from as u32, to as u32), edge.rate, window));
                }
            }
        }
        loop {
            let capacity = |rate: u128, window: u64| match rate {
                UNBOUNDED if time.ps() > window => wanted,
                UNBOUNDED => 0,
                _ => (rate * u128::from(time.ps().saturating_sub(window))).min(wanted),
            };
            let capacities = arcs.iter();
            let capacities: Vec<(u32, u32, u128)> = capacities
                .map(|&(_, (from, to), rate, window)| (from, to, capacity(rate, window)))
                .collect();
            let mut flow = Flow::new(links.vertices(), &capacities);
            flow.set_supply(source, wanted);
            let sent = flow.send(sink, wanted);
            work += flow.work + arcs.len() as u64;
            if sent >= wanted {
                break;
            }
            let mut inside = vec![false; links.vertices()];
            for vertex in flow.cut() {
                inside[*vertex as usize] = true;
            }
            let mut windows = Windows::default();
            let mut crossing = Vec::new();
            for &(number, (from, to), rate, window) in &arcs {
                if !inside[from as usize] && inside[to as usize] {
                    windows.add(window, rate);
                    crossing.push(number);
                }
            }
            let least = windows.time_to_carry(wanted)?;
            if least <= time {
                break;
            }
            time = least;
            let ranks = flow.cut().iter().copied();
            witness = Some(Witness {
                trees: None,
                ranks: ranks.filter(|vertex| *vertex < links.ranks).collect(),
                parts: 1,
                links: crossing,
                lengths: Vec::new(),
            });
        }
    }
    Ok(witness.map(|mut witness| {
        witness.ranks.sort_unstable();
        (time, witness)
    }))
}
