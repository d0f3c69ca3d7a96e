//! The links of a network, how late each can carry a message at the earliest, and what so many of
//! them carry in a time.
//!
//! **Windows** (theorem E1). With h the least latency of any way to the start of a link, and t
//! that from its end, the link carries what takes it for T - w at most, w = h + (the link's
//! latency) + t. Links of rates c and windows w carry the sum of c max(0, T - w). If m bytes must
//! cross, T is no less than the time at which this sum reaches m. A half-duplex link carries both
//! ways; its window is from the lesser h on, and ends the lesser t before T.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use opticoll_base::units::{Time, UnitError};
use opticoll_fabric::network::{Network, Sharing};

/// The part of a vertex that is in none.
pub(super) const NONE: u32 = u32::MAX;

/// A link between vertices.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) both_ways: bool,
    /// Bits per second; [`UNBOUNDED`] where every flow may use all of them.
    pub(super) rate: u128,
    /// In picoseconds.
    pub(super) latency: u64,
}

/// The rate of a link that no number of flows fills.
pub(super) const UNBOUNDED: u128 = u128::MAX;

/// Links by their ends.
pub(super) struct Links {
    pub(super) ranks: u32,
    pub(super) edges: Vec<Edge>,
    /// Per vertex: the other end and the latency of what leads away, and of what leads to it.
    away: Vec<Vec<(u32, u64)>>,
    towards: Vec<Vec<(u32, u64)>>,
}

/// The parts of the nearest rank and of the nearest rank of another part, with the least latency of a way.
pub(super) type Nearest = [Option<(u64, u32)>; 2];

impl Links {
    /// `None` where it is not known where links lead.
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
            let ways = [(edge.from, edge.to), (edge.to, edge.from)];
            for (from, to) in &ways[..1 + usize::from(edge.both_ways)] {
                away[*from].push((*to as u32, edge.latency));
                towards[*to].push((*from as u32, edge.latency));
            }
        }
        Some(Links {
            ranks,
            edges,
            away,
            towards,
        })
    }

    /// The number of ranks and switches.
    pub(super) fn vertices(&self) -> usize {
        self.away.len()
    }

    /// Whether any link takes time to pass.
    pub(super) fn are_late(&self) -> bool {
        self.edges.iter().any(|edge| edge.latency > 0)
    }

    /// The vertices next to one, over links either way.
    pub(super) fn neighbours(&self, vertex: usize) -> impl Iterator<Item = usize> + '_ {
        let both = self.away[vertex].iter().chain(&self.towards[vertex]);
        both.map(|(other, _)| *other as usize)
    }

    /// The least latencies of ways from a rank to each rank, or from each to it; the greatest number
    /// where there is no way.
    pub(super) fn latencies(&self, rank: u32, towards: bool) -> Vec<u64> {
        let only = |vertex: usize| if vertex == rank as usize { 0 } else { NONE };
        let nearest = self.nearest((0..self.ranks as usize).map(only), towards);
        let reached = nearest[..self.ranks as usize].iter();
        reached
            .map(|[first, _]| first.map_or(u64::MAX, |(latency, _)| latency))
            .collect()
    }

    /// Of each vertex the nearest ranks of two parts by the ways from them, or `towards` them; `parts` has that
    /// of each rank.
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
                if is_nearer(&mut nearest[other as usize], reached, part) {
                    open.push(Reverse((reached, other, part)));
                }
            }
        }
        nearest
    }
}

/// Takes down a way from a part, if it is the shortest from there and one of the two shortest of all parts; whether
/// it is.
fn is_nearer(nearest: &mut Nearest, latency: u64, part: u32) -> bool {
    let way = Some((latency, part));
    match *nearest {
        [Some((least, first)), _] if first == part => {
            if latency < least {
                nearest[0] = way;
            }
            latency < least
        }
        [Some((least, _)), second] if latency >= least => {
            let nearer = second.is_none_or(|(known, _)| latency < known);
            if nearer {
                nearest[1] = way;
            }
            nearer
        }
        [first, _] => {
            *nearest = [way, first];
            true
        }
    }
}

/// The least latency between a vertex and a rank of a part; a lower bound of it where two others are
/// nearer, none where no rank is near.
pub(super) fn latency_of(nearest: &Nearest, part: u32) -> Option<u64> {
    let own = nearest.iter().flatten().find(|(_, of)| *of == part);
    let [_, farther] = nearest;
    own.or(farther.as_ref()).map(|(latency, _)| *latency)
}

/// The least latency between a vertex and a rank of any other part.
pub(super) fn latency_of_others(nearest: &Nearest, part: u32) -> Option<u64> {
    let other = nearest.iter().flatten().find(|(_, of)| *of != part);
    other.map(|(latency, _)| *latency)
}

/// Rates of links in bits per second, by their windows w in picoseconds.
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

    /// The least w.
    pub(super) fn first(&self) -> Option<u64> {
        self.0.keys().next().copied()
    }

    /// Bits per second of all together.
    pub(super) fn rate(&self) -> u128 {
        let rates = self.0.values();
        rates.fold(0, |sum: u128, rate| sum.saturating_add(*rate))
    }

    /// The least T at which the sum of c max(0, T - w) is so many bits times 10^12, rounded down; zero for
    /// none.
    pub(super) fn carry(&self, bit_ps: u128) -> Result<Time, UnitError> {
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
