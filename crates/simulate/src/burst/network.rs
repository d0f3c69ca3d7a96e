//! The network that bursts travel: an electrical fabric's links and routes with wavelengths on every
//! link, its ranks as nodes, and hosts attached to each.
//!
//! Nodes are the ranks of the fabric; switches are nodes without hosts.

use super::BurstError;
use opticoll_base::graph;
use opticoll_base::units::Rate;
use opticoll_fabric::families::{Bursts, Medium};
use opticoll_fabric::network::{Network, Sharing};

/// The most hosts, wavelengths of all links, and routes between nodes.
const MOST: u64 = 1 << 20;

/// The most shortest routes of a pair of nodes that are tried.
const MOST_ROUTES: usize = 64;

const EXAMPLE: &str = "ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s";

/// A directed link of many wavelengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstLink {
    /// In words.
    pub name: String,
    /// The vertex that it leads from: nodes first, then switches.
    pub from: u32,
    /// The vertex that it leads to.
    pub to: u32,
    /// Propagation, in picoseconds.
    pub latency_ps: u64,
}

/// Nodes, hosts, links and routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstNetwork {
    specification: String,
    nodes: u32,
    vertices: u32,
    hosts: u32,
    wavelengths: u32,
    rate: Rate,
    links: Vec<BurstLink>,
    /// Per pair of nodes, `source * nodes + destination`: the fabric's route, then the other
    /// shortest ones.
    routes: Vec<Vec<Box<[u32]>>>,
}

impl BurstNetwork {
    /// The network that a specification names.
    ///
    /// # Errors
    /// Links without wavelengths, no links, or what [`BurstNetwork::new`] refuses.
    pub fn of(medium: &Medium) -> Result<BurstNetwork, BurstError> {
        let (family, problem) = match medium {
            Medium::Bursts(bursts) => return BurstNetwork::new(bursts),
            Medium::Messages(cost) => (cost.family(), format!("it has no links; use {EXAMPLE}")),
            Medium::Fabric(fabric) if fabric.network().is_some() => (
                fabric.family(),
                format!("give wavelengths=... of each link, for example {EXAMPLE}"),
            ),
            Medium::Fabric(fabric) => (
                fabric.family(),
                format!(
                    "its lightpaths are planned; use {EXAMPLE}, electrical_ring, mesh, torus or custom"
                ),
            ),
        };
        let family = family.into();
        Err(BurstError::Network { family, problem })
    }

    /// Links with wavelengths, and hosts at their ranks.
    ///
    /// # Errors
    /// Half-duplex cables, links of several rates, or too large a network.
    pub fn new(bursts: &Bursts) -> Result<BurstNetwork, BurstError> {
        let Bursts {
            links: ref fabric,
            hosts,
            wavelengths,
        } = *bursts;
        let refuse = |problem: String| BurstError::Network {
            family: fabric.family().into(),
            problem,
        };
        let network = fabric
            .network()
            .ok_or_else(|| refuse("it has no links".into()))?;
        let nodes = network.ranks();
        let links = links(network).map_err(refuse)?;
        let size = (u64::from(nodes) * u64::from(hosts))
            .max(u64::from(nodes).pow(2))
            .max(links.len() as u64 * u64::from(wavelengths));
        if size > MOST || hosts == 0 || wavelengths == 0 {
            let problem = format!(
                "{nodes} nodes with {hosts} hosts each and {} links of {wavelengths} wavelengths: \
                 hosts, pairs of nodes and wavelengths of all links are at least 1 and at most {MOST}",
                links.len()
            );
            return Err(refuse(problem));
        }
        if nodes * hosts < 2 {
            return Err(refuse(
                "there must be two hosts to send to each other".into(),
            ));
        }
        let rate = rate(network).map_err(refuse)?;
        let ends = links.iter().flat_map(|link| [link.from, link.to]);
        let mut burst = BurstNetwork {
            specification: bursts.to_string(),
            nodes,
            vertices: ends.max().map_or(nodes, |last| nodes.max(last + 1)),
            hosts,
            wavelengths,
            rate,
            links,
            routes: Vec::new(),
        };
        burst.routes = burst.all_routes(network);
        Ok(burst)
    }

    /// Nodes with hosts, N.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Nodes and switches.
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// Hosts at each node.
    pub fn hosts_per_node(&self) -> u32 {
        self.hosts
    }

    /// All hosts; host c is at node c div (hosts at each node).
    pub fn hosts(&self) -> u32 {
        self.nodes * self.hosts
    }

    /// The node of a host.
    pub fn node(&self, host: u32) -> u32 {
        host / self.hosts
    }

    /// Wavelengths of each link, W.
    pub fn wavelengths(&self) -> u32 {
        self.wavelengths
    }

    /// The rate of a wavelength.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// All links.
    pub fn links(&self) -> &[BurstLink] {
        &self.links
    }

    /// The fabric, hosts and wavelengths in words.
    pub fn specification(&self) -> &str {
        &self.specification
    }

    /// The routes between two nodes: the fabric's first, then the other shortest ones; of a node to itself
    /// one without links.
    pub fn routes(&self, source: u32, destination: u32) -> &[Box<[u32]>] {
        &self.routes[(source * self.nodes + destination) as usize]
    }

    /// The most links of a route.
    pub fn most_hops(&self) -> usize {
        let all = self.routes.iter().flatten();
        all.map(|route| route.len()).max().unwrap_or(0)
    }

    fn all_routes(&self, network: &dyn Network) -> Vec<Vec<Box<[u32]>>> {
        let mut routes = vec![Vec::new(); (self.nodes * self.nodes) as usize];
        for destination in 0..self.nodes {
            let before = |vertex: u32| {
                let links = self.links.iter().filter(move |link| link.to == vertex);
                links.map(|link| link.from)
            };
            let distance = graph::distances(self.vertices as usize, destination, before);
            for source in 0..self.nodes {
                let mut own = Vec::new();
                if source != destination {
                    network.route(source, destination, &mut own);
                }
                let shortest = self.shortest(source, &distance);
                let others = shortest.into_iter().filter(|other| **other != *own);
                let place = &mut routes[(source * self.nodes + destination) as usize];
                place.push(own.clone().into_boxed_slice());
                if source != destination {
                    place.extend(others);
                }
            }
        }
        routes
    }

    /// The shortest routes from a vertex, in the order of their links, up to [`MOST_ROUTES`].
    fn shortest(&self, source: u32, distance: &[u32]) -> Vec<Box<[u32]>> {
        let mut found = Vec::new();
        let mut begun = vec![(source, Vec::new())];
        while let Some((vertex, route)) = begun.pop() {
            let left = distance[vertex as usize];
            if left == 0 {
                found.push(route.into_boxed_slice());
                if found.len() == MOST_ROUTES {
                    break;
                }
                continue;
            }
            for (number, link) in self.links.iter().enumerate().rev() {
                if link.from == vertex && distance[link.to as usize].checked_add(1) == Some(left) {
                    let mut longer = route.clone();
                    longer.push(number as u32);
                    begun.push((link.to, longer));
                }
            }
        }
        found
    }
}

fn links(network: &dyn Network) -> Result<Vec<BurstLink>, String> {
    let mut links = Vec::new();
    for (number, link) in network.links().iter().enumerate() {
        let number = number as u32;
        let name = network.link_name(number).replace("rank ", "node ");
        let (from, to) = network
            .ends(number)
            .ok_or_else(|| format!("it is not known what {name} joins"))?;
        if network.leads_both_ways(number) {
            return Err(format!(
                "{name} is half-duplex; light needs a fibre each way"
            ));
        }
        if link.sharing != Sharing::Shared {
            return Err(format!(
                "{name} has no limit; what a burst link has is wavelengths=..."
            ));
        }
        links.push(BurstLink {
            name,
            from,
            to,
            latency_ps: link.latency.ps(),
        });
    }
    Ok(links)
}

/// The one rate of all links.
fn rate(network: &dyn Network) -> Result<Rate, String> {
    let links = network.links();
    let Some(first) = links.first() else {
        return Err("it has no links".into());
    };
    match links.iter().position(|link| link.rate != first.rate) {
        None => Ok(first.rate),
        Some(other) => Err(format!(
            "{} has {} and {} has {}; a burst needs one rate on its whole way",
            network.link_name(0),
            first.rate,
            network.link_name(other as u32),
            links[other].rate
        )),
    }
}
