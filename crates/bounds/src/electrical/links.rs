//! Links of a network, the earliest time at which each link can transmit a message, and the bytes
//! that a set of links can transmit in a time.
//!
//! **Windows** (theorem E1). Let h be the least latency of a route from a rank to the start of a
//! link, and t the least latency of a route from its end to a rank. The link then transmits
//! messages for at most T - w, where w = h + (latency of the link) + t is the *window* of the link.
//! Links with rates c and windows w transmit the sum of c max(0, T - w). If m bytes must cross
//! these links, T is at least the time at which this sum reaches m. A half-duplex link transmits in
//! both directions: its h and t are the lesser of the values for the two directions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use opticoll_base::units::{Time, UnitError};
use opticoll_fabric::network::{InNetwork, Network, Sharing};

/// Label of a vertex that belongs to no part.
pub(super) const NONE: u32 = u32::MAX;

/// Link between two vertices, which are ranks and switches.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// True for a half-duplex link, whose two directions share the rate.
    pub(super) both_ways: bool,
    /// Rate in bit/s; [`UNBOUNDED`] if every flow may use the whole rate.
    pub(super) rate: u128,
    /// Latency in picoseconds.
    pub(super) latency: u64,
}

/// Rate of a link that gives every flow the whole rate of the link.
pub(super) const UNBOUNDED: u128 = u128::MAX;

/// Work that some switches do on data that pass them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Work {
    pub(super) multicasts: bool,
    pub(super) adds: bool,
}

impl Work {
    pub(super) fn is_any(self) -> bool {
        self.multicasts || self.adds
    }
}

/// Links of a network, and the links at each vertex.
pub(super) struct Links {
    pub(super) ranks: u32,
    pub(super) edges: Vec<Edge>,
    /// Work of each vertex on data that pass it, indexed by vertex.
    work: Vec<InNetwork>,
    /// Links that lead away from each vertex, indexed by vertex: (vertex at the other end, latency
    /// in picoseconds). `towards` has the links that lead to each vertex.
    away: Vec<Vec<(u32, u64)>>,
    towards: Vec<Vec<(u32, u64)>>,
}

/// Nearest ranks of a vertex: [nearest rank, nearest rank of any other part], each as (latency in
/// picoseconds, part of the rank).
pub(super) type Nearest = [Option<(u64, u32)>; 2];

impl Links {
    /// Returns the links of `network`; `None` if the network does not know the ends of its links.
    pub(super) fn of(network: &dyn Network) -> Option<Links> {
        let links = (0u32..).zip(network.links());
        let edges = links.map(|(number, link)| {
            let (from, to) = network.ends(number)?;
            Some(Edge {
                from: from as usize,
                to: to as usize,
                both_ways: network.leads_both_ways(number),
                rate: match link.sharing {
                    Sharing::Shared => link.rate.bits_per_second().into(),
                    Sharing::PerFlow => UNBOUNDED,
                },
                latency: link.latency.ps(),
            })
        });
        let edges: Vec<Edge> = edges.collect::<Option<_>>()?;
        let ranks = network.ranks();
        let last = edges.iter().map(|edge| edge.from.max(edge.to) + 1).max();
        let vertices = last.unwrap_or(0).max(ranks as usize);
        let (mut away, mut towards) = (vec![Vec::new(); vertices], vec![Vec::new(); vertices]);
        for edge in &edges {
            let directions = [(edge.from, edge.to), (edge.to, edge.from)];
            for (from, to) in &directions[..1 + usize::from(edge.both_ways)] {
                away[*from].push((*to as u32, edge.latency));
                towards[*to].push((*from as u32, edge.latency));
            }
        }
        Some(Links {
            ranks,
            edges,
            work: (0..vertices as u32)
                .map(|vertex| network.switch_work(vertex))
                .collect(),
            away,
            towards,
        })
    }

    pub(super) fn vertices(&self) -> usize {
        self.away.len()
    }

    /// Returns the work of all vertices for which `concerns` returns true.
    pub(super) fn work(&self, concerns: impl Fn(usize) -> bool) -> Work {
        let vertices = (0..self.vertices()).filter(|vertex| concerns(*vertex));
        vertices.fold(Work::default(), |work, vertex| Work {
            multicasts: work.multicasts || self.work[vertex].multicasts(),
            adds: work.adds || self.work[vertex].adds(),
        })
    }

    pub(super) fn has_latency(&self) -> bool {
        self.edges.iter().any(|edge| edge.latency > 0)
    }

    /// Returns the vertices next to `vertex`, over links in either direction.
    pub(super) fn neighbours(&self, vertex: usize) -> impl Iterator<Item = usize> + '_ {
        let adjacent = self.away[vertex].iter().chain(&self.towards[vertex]);
        adjacent.map(|(other, _)| *other as usize)
    }

    /// Returns the least latency in picoseconds from `rank` to each rank, or from each rank to
    /// `rank` if `towards` is true; indexed by rank. `u64::MAX` if there is no route.
    pub(super) fn latencies(&self, rank: u32, towards: bool) -> Vec<u64> {
        let only = |vertex: usize| if vertex == rank as usize { 0 } else { NONE };
        let nearest = self.nearest((0..self.ranks as usize).map(only), towards);
        let reached = nearest[..self.ranks as usize].iter();
        reached
            .map(|[first, _]| first.map_or(u64::MAX, |(latency, _)| latency))
            .collect()
    }

    /// Returns, for each vertex, the nearest ranks of two different parts. Distances are latencies
    /// of routes from a rank to the vertex, or from the vertex to a rank if `towards` is true.
    /// `parts` has the part of each rank.
    pub(super) fn nearest(&self, parts: impl Iterator<Item = u32>, towards: bool) -> Vec<Nearest> {
        let next = if towards { &self.towards } else { &self.away };
        let mut nearest: Vec<Nearest> = vec![[None; 2]; self.vertices()];
        let mut open = BinaryHeap::new();
        for (rank, part) in (0u32..).zip(parts).filter(|(_, part)| *part != NONE) {
            nearest[rank as usize][0] = Some((0, part));
            open.push(Reverse((0u64, rank, part)));
        }
        while let Some(Reverse((latency, vertex, part))) = open.pop() {
            if !nearest[vertex as usize].contains(&Some((latency, part))) {
                continue;
            }
            for &(other, beyond) in &next[vertex as usize] {
                let reached = latency.saturating_add(beyond);
                if record_latency(&mut nearest[other as usize], reached, part) {
                    open.push(Reverse((reached, other, part)));
                }
            }
        }
        nearest
    }
}

/// Records the latency of a route to a rank of `part`, if it is the least for this part and one of
/// the two least of all parts. Returns whether the latency was recorded.
fn record_latency(nearest: &mut Nearest, latency: u64, part: u32) -> bool {
    let route = Some((latency, part));
    match *nearest {
        [Some((least, first)), _] if first == part => {
            if latency < least {
                nearest[0] = route;
            }
            latency < least
        }
        [Some((least, _)), second] if latency >= least => {
            let nearer = second.is_none_or(|(known, _)| latency < known);
            if nearer {
                nearest[1] = route;
            }
            nearer
        }
        [first, _] => {
            *nearest = [route, first];
            true
        }
    }
}

/// Returns the least latency, in picoseconds, between a vertex and a rank of `part`. If two other
/// parts are nearer, returns a lower bound. `None` if no rank is reachable.
pub(super) fn latency_of(nearest: &Nearest, part: u32) -> Option<u64> {
    let in_part = nearest.iter().flatten().find(|(_, of)| *of == part);
    let [_, farther] = nearest;
    in_part.or(farther.as_ref()).map(|(latency, _)| *latency)
}

/// Returns the least latency, in picoseconds, between a vertex and a rank outside `part`.
pub(super) fn latency_of_others(nearest: &Nearest, part: u32) -> Option<u64> {
    let other = nearest.iter().flatten().find(|(_, of)| *of != part);
    other.map(|(latency, _)| *latency)
}

/// Sum of the rates of all links with the same window, in bit/s; keyed by window in picoseconds.
#[derive(Clone, Default)]
pub(super) struct Windows(BTreeMap<u64, u128>);

impl Windows {
    pub(super) fn add(&mut self, window: u64, rate: u128) {
        let sum = self.0.entry(window).or_default();
        *sum = sum.saturating_add(rate);
    }

    pub(super) fn extend(&mut self, other: &Windows) {
        for (window, rate) in &other.0 {
            self.add(*window, *rate);
        }
    }

    /// Returns the shortest window in picoseconds.
    pub(super) fn first(&self) -> Option<u64> {
        self.0.keys().next().copied()
    }

    /// Returns the sum of the rates of all links, in bit/s.
    pub(super) fn rate(&self) -> u128 {
        let rates = self.0.values();
        rates.fold(0, |sum: u128, rate| sum.saturating_add(*rate))
    }

    /// Returns the least time in which the links transmit `bit_ps` (bits times 10^12), rounded down
    /// to picoseconds. A link of rate c and window w transmits c max(0, T - w) until the time T.
    pub(super) fn time_to_carry(&self, bit_ps: u128) -> Result<Time, UnitError> {
        if bit_ps == 0 {
            return Ok(Time::ZERO);
        }
        let (mut rate, mut needed, mut time) = (0u128, bit_ps, 0u128);
        for (&window, &more) in &self.0 {
            if rate > 0 && time <= u128::from(window) {
                break;
            }
            if more == UNBOUNDED {
                return Ok(Time::from_ps(window));
            }
            rate += more;
            needed = more
                .checked_mul(window.into())
                .and_then(|early| needed.checked_add(early))
                .ok_or_else(crate::too_long)?;
            time = needed / rate;
        }
        u64::try_from(time)
            .map(Time::from_ps)
            .map_err(|_| crate::too_long())
    }
}
