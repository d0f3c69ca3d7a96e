//! The bound of the quickest flow (theorem E7): all bytes of a rank reach another one, over links
//! that they come to late.
//!
//! A link carries no more than c max(0, T - w) of rank u in the time T, w = (least latency from u
//! to the link) + (the link's latency) + (the least from its end to any rank). For a time T the
//! least cut between u and v is found by a maximum flow with these capacities. If it carries less
//! than M, T is raised to the time at which that cut carries M, until no cut carries less.

use std::cmp::Reverse;

use super::Witness;
use super::links::{Links, NONE, UNBOUNDED, Windows};
use crate::bits_ps;
use crate::throughput::flow::Flow;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Most steps over links of all flows.
const MOST_WORK: u64 = 1 << 22;

/// The greatest of the bounds of the ranks that are looked at, the farthest first; `known` is a time that other bounds
/// show. `None` where none shows more.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
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
    if !links.are_late() || size.get() == 0 {
        return Ok(None);
    }
    let least = |part: &dyn Fn(u32) -> u32, towards: bool| -> Vec<Option<u64>> {
        let nearest = links.nearest((0..links.ranks).map(part), towards);
        let ways = nearest.iter().map(|[first, _]| first.map(|way| way.0));
        ways.collect()
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
        if work > MOST_WORK {
            break;
        }
        interrupt::check();
        let from_source = least(&only(source), false);
        // By link and direction: its ends, its rate and its window.
        let mut ways = Vec::new();
        for (number, edge) in (0u32..).zip(&links.edges) {
            let both = [(edge.from, edge.to), (edge.to, edge.from)];
            for &(from, to) in &both[..1 + usize::from(edge.both_ways)] {
                if let (Some(before), Some(after)) = (from_source[from], to_any[to]) {
                    let window = before.saturating_add(edge.latency).saturating_add(after);
                    ways.push((number, (from as u32, to as u32), edge.rate, window));
                }
            }
        }
        loop {
            let capacity = |rate: u128, window: u64| match rate {
                UNBOUNDED if time.ps() > window => wanted,
                UNBOUNDED => 0,
                _ => (rate * u128::from(time.ps().saturating_sub(window))).min(wanted),
            };
            let capacities = ways.iter();
            let capacities: Vec<(u32, u32, u128)> = capacities
                .map(|&(_, (from, to), rate, window)| (from, to, capacity(rate, window)))
                .collect();
            let mut flow = Flow::new(links.vertices(), &capacities);
            flow.set_supply(source, wanted);
            let sent = flow.send(sink, wanted);
            work += flow.work + ways.len() as u64;
            if sent >= wanted {
                break;
            }
            let mut inside = vec![false; links.vertices()];
            for vertex in flow.cut() {
                inside[*vertex as usize] = true;
            }
            let mut windows = Windows::default();
            let mut crossing = Vec::new();
            for &(number, (from, to), rate, window) in &ways {
                if !inside[from as usize] && inside[to as usize] {
                    windows.add(window, rate);
                    crossing.push(number);
                }
            }
            let least = windows.carry(wanted)?;
            if least <= time {
                break;
            }
            time = least;
            let ranks = flow.cut().iter().copied();
            witness = Some(Witness {
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
