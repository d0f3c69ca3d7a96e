//! Rings as graphs of fibres, and graphs of fibres that are rings: their vertices form a cycle, or
//! a cycle with missing links.
//!
//! A path is such a cycle: one cable is missing. Ranks must follow one another in the order of
//! their numbers, from any rank on and in either direction. Switches between them are nodes whose
//! ranks take no part. The [`WdmRing`] and the graph have the same lightpaths, so plans and bounds
//! of one hold for the other.

use std::collections::{BTreeMap, BTreeSet};

use super::WdmGraph;
use crate::fabric::channels;
use crate::fabric::loss::{Decibels, Place};
use crate::fabric::part::{DEGRADED, MEMBERS, WITHOUT};
use crate::fabric::{Fabric, Machine};
use crate::family::wdm_ring::{self, BrokenLink, Direction, WdmRing};
use crate::network::{Link, Network};
use opticoll_base::spec::Spec;

/// A ring, and a graph of fibres with the same ranks and lightpaths.
#[derive(Debug, Clone)]
pub struct RingAndGraph {
    /// The ring.
    pub ring: Fabric,
    /// The graph.
    pub graph: Fabric,
    /// Link of the graph at each position of the ring, indexed by direction and position; `None` if
    /// the link is missing. Position i is between nodes i and i + 1.
    links: [Vec<Option<u32>>; 2],
}

/// Options of the graph that a ring reads in the same form.
const SAME_OPTIONS: [&str; 17] = [
    "wavelengths",
    "fibres",
    "reconfiguration",
    "conversion",
    "flit",
    "packet",
    "converters",
    "multicast",
    "reach",
    "dead",
    "launch_power",
    "sensitivity",
    "through_loss",
    "drop_loss",
    "split_loss",
    "link_loss",
    "fixed_loss",
];

impl RingAndGraph {
    /// Returns the ring and the graph of which one is `fabric`. Returns `None` if `fabric` is
    /// neither a ring nor a graph that forms a ring, or has options that the other one lacks.
    pub fn of(fabric: &Fabric) -> Option<RingAndGraph> {
        if let Some(ring) = fabric.downcast::<WdmRing>() {
            let (spec, links) = ring.graph_spec()?;
            let graph = (super::GRAPH.build)(&spec).ok()?;
            let ring = fabric.clone();
            return Some(RingAndGraph { ring, graph, links });
        }
        let graph: &WdmGraph = fabric.downcast()?;
        let network = graph.fibre_links();
        let order = order(network)?;
        let links = Direction::BOTH.map(|direction| links_along(network, &order, direction));
        let spec = graph.ring_spec(&order, &links)?;
        let ring = (wdm_ring::RECORD.build)(&spec).ok()?;
        let graph = fabric.clone();
        Some(RingAndGraph { ring, graph, links })
    }

    /// Returns the ring.
    pub fn machine(&self) -> &WdmRing {
        match self.ring.downcast() {
            Some(ring) => ring,
            None => unreachable!("`of` builds a ring"),
        }
    }

    /// Stores in `route` the links of the graph that light passes from `source` to `destination` in
    /// `direction`. Missing links are left out.
    pub fn route(&self, source: u32, destination: u32, direction: Direction, route: &mut Vec<u32>) {
        let ring = self.machine();
        let (nodes, first) = (ring.nodes, ring.node(source));
        let links = &self.links[direction as usize];
        let span = ring.span(source, destination, direction);
        let positions = (0..span).map(|passed| match direction {
            Direction::Clockwise => (first + passed) % nodes,
            Direction::CounterClockwise => (first + nodes - 1 - passed) % nodes,
        });
        route.clear();
        route.extend(positions.filter_map(|position| links[position as usize]));
    }

    /// Returns the links of the graph that lead clockwise around the ring.
    pub fn clockwise_links(&self) -> BTreeSet<u32> {
        let [clockwise, _] = &self.links;
        clockwise.iter().copied().flatten().collect()
    }
}

impl WdmRing {
    /// Returns the specification of the graph with the same ranks and lightpaths, and the link of
    /// the graph at each position, indexed by direction and position. Returns `None` if no graph
    /// can express the ring.
    fn graph_spec(&self) -> Option<(Spec, [Vec<Option<u32>>; 2])> {
        let (mut rank, mut switch) = (0, self.ranks);
        let vertex_of_node = |node: u32| {
            let is_rank = rank < self.ranks && self.node(rank) == node;
            let next = if is_rank { &mut rank } else { &mut switch };
            *next += 1;
            *next - 1
        };
        let vertices: Vec<u32> = (0..self.nodes).map(vertex_of_node).collect();
        let (mut cables, mut links) = (Vec::new(), [(); 2].map(|()| Vec::new()));
        for (position, &lower) in (0..self.nodes).zip(&vertices) {
            let upper = vertices[(position as usize + 1) % vertices.len()];
            for direction in Direction::BOTH {
                let link = BrokenLink {
                    position,
                    direction,
                };
                let is_cut = self.cuts.contains(&link);
                links[direction as usize].push((!is_cut).then_some(cables.len() as u32));
                if is_cut {
                    continue;
                }
                let (from, to) = match direction {
                    Direction::Clockwise => (lower, upper),
                    Direction::CounterClockwise => (upper, lower),
                };
                let slower = self.degraded.links.get(&link);
                let slower = slower.map(|rate| format!("@{rate}"));
                cables.push(format!("{from}>{to}{}", slower.unwrap_or_default()));
            }
        }
        let mut spec = Spec::new(super::GRAPH.name)
            .with("ranks", self.ranks)
            .with("links", cables.join("+"))
            .with("rate", self.rate)
            .with("latency", self.propagation);
        if self.nodes > self.ranks {
            spec = spec.with("switches", self.nodes - self.ranks);
        }
        for (name, value) in self.spec().options() {
            match name {
                "through_loss" => {
                    let loss = self.budget?.losses[Place::Through as usize];
                    let loss = loss.millionths() * i64::from(self.resonators);
                    spec = spec.with(name, format!("{}dB", Decibels::from_millionths(loss)));
                }
                _ if SAME_OPTIONS.contains(&name) => spec = spec.with(name, value),
                "ports" => spec = spec.with("transmitters", value).with("receivers", value),
                _ if name == DEGRADED.name => {
                    let channels = channels::slower_texts(&self.degraded.channels);
                    let channels: Vec<String> = channels.collect();
                    if !channels.is_empty() {
                        spec = spec.with(name, channels.join("+"));
                    }
                }
                "ranks" | "rate" | "propagation" | "broken" | "resonators" => {}
                _ if name == WITHOUT.name || name == MEMBERS.name => {}
                _ => return None,
            }
        }
        Some((spec, links))
    }
}

impl WdmGraph {
    /// Returns the specification of the ring; `None` if a ring cannot express an option or the
    /// rates and latencies of the links.
    fn ring_spec(&self, order: &[u32], links: &[Vec<Option<u32>>; 2]) -> Option<Spec> {
        let network = self.fibre_links();
        let link_of = |link: u32| network.links()[link as usize];
        let present = links.iter().flatten().flatten().map(|&link| link_of(link));
        let fastest = present.clone().map(|link| link.rate).max()?;
        let Link { latency, .. } = present.clone().next()?;
        if present.clone().any(|link| link.latency != latency) {
            return None;
        }
        let nodes = order.len() as u32;
        let mut spec = Spec::new(wdm_ring::RECORD.name)
            .with("ranks", nodes)
            .with("rate", fastest)
            .with("propagation", latency);
        let members = (0..nodes).filter(|&node| order[node as usize] < network.ranks());
        let members: Vec<String> = members.map(|node| node.to_string()).collect();
        if members.len() < order.len() {
            spec = spec.with(MEMBERS.name, members.join("+"));
        }
        let mut slower: Vec<String> = Vec::new();
        let own = self.spec();
        let of_links = (self.record.links().options)();
        for (name, value) in own.options() {
            match name {
                _ if SAME_OPTIONS.contains(&name) => spec = spec.with(name, value),
                "transmitters" | "receivers" if self.transmitters == self.receivers => {
                    spec = spec.without("ports").with("ports", value);
                }
                _ if name == DEGRADED.name => {
                    let parts = value.split('+').filter(|part| part.starts_with('w'));
                    slower.extend(parts.map(str::to_owned));
                }
                _ if name == WITHOUT.name || name == MEMBERS.name => {}
                _ if of_links.iter().any(|option| option.record.name == name) => {}
                _ => return None,
            }
        }
        if self.budget.is_some() {
            // A vertex that light passes loses as much as one ring resonator.
            spec = spec.with("resonators", 1);
            if spec.option("through_loss").is_none() {
                spec = spec.with("through_loss", "0dB");
            }
        }
        let mut cuts = Vec::new();
        for (direction, links) in Direction::BOTH.into_iter().zip(links) {
            for (position, link) in (0..nodes).zip(links) {
                let next = (position + 1) % nodes;
                match link.map(|link| link_of(link).rate) {
                    None => cuts.push(format!("{position}-{next}{}", direction.name())),
                    Some(rate) if rate < fastest && nodes == 2 => return None,
                    Some(rate) if rate < fastest => slower.push(match direction {
                        Direction::Clockwise => format!("{position}>{next}@{rate}"),
                        Direction::CounterClockwise => format!("{next}>{position}@{rate}"),
                    }),
                    Some(_) => {}
                }
            }
        }
        let lists = [("broken", cuts), (DEGRADED.name, slower)];
        Some(
            lists
                .into_iter()
                .fold(spec, |spec, (name, items)| match items.is_empty() {
                    true => spec,
                    false => spec.with(name, items.join("+")),
                }),
        )
    }
}

/// Returns the vertices in the order of the ring, from rank 0 on, such that the ranks among them
/// ascend. Returns `None` if the vertices form no cycle and no path in such an order.
fn order(network: &dyn Network) -> Option<Vec<u32>> {
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); network.ranks() as usize];
    for (from, to, both_ways) in network.wiring().ends() {
        if both_ways || from == to {
            return None;
        }
        let vertices = neighbours.len().max(from.max(to) as usize + 1);
        neighbours.resize(vertices, Vec::new());
        for (vertex, other) in [(from, to), (to, from)] {
            let known = &mut neighbours[vertex as usize];
            if !known.contains(&other) {
                known.push(other);
            }
            if known.len() > 2 {
                return None;
            }
        }
    }
    let vertices = neighbours.len();
    let most_alike = if vertices == 2 { 2 } else { 1 };
    let alike = links_by_ends(network).into_values();
    let most = alike.map(|links| links.len()).max().unwrap_or(0);
    if vertices < 2 || most > most_alike {
        return None;
    }
    // A path starts at an end, a cycle anywhere.
    let start = (0..vertices).find(|&vertex| neighbours[vertex].len() < 2);
    let mut order = vec![start.unwrap_or(0) as u32];
    while order.len() < vertices {
        let last = order[order.len() - 1];
        let before = order.len().checked_sub(2).map(|before| order[before]);
        let mut next = neighbours[last as usize].iter();
        let next = next.find(|&&next| Some(next) != before && next != order[0])?;
        order.push(*next);
    }
    let is_ascending = |order: &[u32]| {
        let mut ranks = order.iter().filter(|&&vertex| vertex < network.ranks());
        ranks
            .clone()
            .zip(ranks.by_ref().skip(1))
            .all(|(rank, next)| rank < next)
    };
    let from_rank_0 = |mut order: Vec<u32>| {
        let start = order.iter().position(|&vertex| vertex == 0)?;
        order.rotate_left(start);
        is_ascending(&order).then_some(order)
    };
    let reversed = order.iter().rev().copied().collect();
    from_rank_0(order).or_else(|| from_rank_0(reversed))
}

/// Returns the links from one vertex to another, for each pair of vertices with links.
fn links_by_ends(network: &dyn Network) -> BTreeMap<(u32, u32), Vec<u32>> {
    let mut links: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for (link, (from, to, _)) in (0..).zip(network.wiring().ends()) {
        links.entry((from, to)).or_default().push(link);
    }
    links
}

/// Returns the link of the graph at each position of the ring in one direction.
fn links_along(network: &dyn Network, order: &[u32], direction: Direction) -> Vec<Option<u32>> {
    let nodes = order.len();
    let between = links_by_ends(network);
    let link = |position: usize| {
        let (lower, upper) = (order[position], order[(position + 1) % nodes]);
        let ends = match direction {
            Direction::Clockwise => (lower, upper),
            Direction::CounterClockwise => (upper, lower),
        };
        // A ring of two nodes has two cables between the same two vertices, one at each position.
        let which = if nodes == 2 { position } else { 0 };
        between.get(&ends)?.get(which).copied()
    };
    (0..nodes).map(link).collect()
}
