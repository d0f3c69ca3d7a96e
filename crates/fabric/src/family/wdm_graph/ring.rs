//! Graphs of fibres that are rings: their vertices form a cycle, or a cycle with missing links.
//!
//! A path is such a cycle: one cable is missing. Ranks must follow one another in the order of
//! their numbers, from any rank on and in either direction. Switches between them are nodes whose
//! ranks take no part. A [`WdmRing`] has the same lightpaths, so plans and bounds of rings hold for
//! the graph.

use std::collections::BTreeMap;

use super::WdmGraph;
use crate::fabric::part::{DEGRADED, MEMBERS, WITHOUT};
use crate::fabric::{Fabric, Machine};
use crate::family::wdm_ring::{self, Direction, WdmRing};
use crate::network::{Link, Network};
use opticoll_base::spec::Spec;

/// The ring that a graph of fibres forms.
#[derive(Debug, Clone)]
pub struct RingOfGraph {
    /// The ring, with the same ranks as the graph.
    pub fabric: Fabric,
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

impl WdmGraph {
    /// Returns the ring that the graph forms. Returns `None` if the graph is not a ring, or has
    /// options that a ring does not have.
    pub fn as_ring(&self) -> Option<RingOfGraph> {
        let network = self.fibre_links();
        let order = order(network)?;
        let links = Direction::BOTH.map(|direction| links_along(network, &order, direction));
        let spec = self.ring_spec(&order, &links)?;
        let fabric = (wdm_ring::RECORD.build)(&spec).ok()?;
        Some(RingOfGraph { fabric, links })
    }

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

impl RingOfGraph {
    /// Returns the ring.
    pub fn ring(&self) -> &WdmRing {
        match self.fabric.downcast() {
            Some(ring) => ring,
            None => unreachable!("`as_ring` builds a ring"),
        }
    }

    /// Stores in `route` the links of the graph that light passes from `source` to `destination` in
    /// `direction`. Missing links are left out.
    pub fn route(&self, source: u32, destination: u32, direction: Direction, route: &mut Vec<u32>) {
        let ring = self.ring();
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
