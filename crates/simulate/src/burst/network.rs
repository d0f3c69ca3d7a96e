//! Network of bursts: the links and routes of an electrical fabric, with wavelengths on every link,
//! the fabric's ranks as nodes, and hosts attached to each node. Switches are nodes without hosts.

use super::BurstError;
use opticoll_base::graph;
use opticoll_base::units::Rate;
use opticoll_fabric::families::{Bursts, Medium};
use opticoll_fabric::network::{Network, Sharing};

/// Maximum number of hosts, of wavelengths of all links together, and of pairs of nodes.
const MAX_SIZE: u64 = 1 << 20;

/// Maximum number of shortest routes of a pair of nodes.
const MAX_SHORTEST_ROUTES: usize = 64;

/// Specification that error messages suggest.
const EXAMPLE: &str = "ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s";

/// Directed link with wavelengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstLink {
    /// Name of the link.
    pub name: String,
    /// Vertex that the link leads from: nodes are numbered first, then switches.
    pub from: u32,
    /// Vertex that the link leads to.
    pub to: u32,
    /// Propagation delay in picoseconds.
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
    /// Per pair of nodes (`source * nodes + destination`), the fabric's route, then the other
    /// shortest routes.
    routes: Vec<Vec<Box<[u32]>>>,
}

impl BurstNetwork {
    /// Returns the network of a specification.
    ///
    /// # Errors
    /// Returns an error if the medium has no links or no wavelengths, or for any reason of
    /// [`BurstNetwork::new`].
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
                    "its lightpaths are planned; use {EXAMPLE}, electrical_ring, mesh, torus or \
                     custom"
                ),
            ),
        };
        let family = family.into();
        Err(BurstError::Network { family, problem })
    }

    /// Creates a network from links with wavelengths and hosts at their ranks.
    ///
    /// # Errors
    /// Returns an error for half-duplex cables, links with different rates, and networks that are
    /// too large or have fewer than two hosts.
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
        if size > MAX_SIZE || hosts == 0 || wavelengths == 0 {
            let problem = format!(
                "{nodes} nodes with {hosts} hosts each and {} links of {wavelengths} wavelengths: \
                 hosts, pairs of nodes and wavelengths of all links are at least 1 and at most \
                 {MAX_SIZE}",
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

    /// Returns N, the number of nodes with hosts.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Returns the number of nodes and switches.
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// Returns the number of hosts at each node.
    pub fn hosts_per_node(&self) -> u32 {
        self.hosts
    }

    /// Returns the number of hosts. Host h is at node h / (hosts per node), rounded down.
    pub fn hosts(&self) -> u32 {
        self.nodes * self.hosts
    }

    /// Returns the node of a host.
    pub fn node(&self, host: u32) -> u32 {
        host / self.hosts
    }

    /// Returns W, the number of wavelengths of each link.
    pub fn wavelengths(&self) -> u32 {
        self.wavelengths
    }

    /// Returns the rate of a wavelength.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns all links.
    pub fn links(&self) -> &[BurstLink] {
        &self.links
    }

    /// Returns the specification of fabric, hosts and wavelengths.
    pub fn specification(&self) -> &str {
        &self.specification
    }

    /// Returns the routes between two nodes: the fabric's route, then the other shortest routes. A
    /// node has a single route without links to itself.
    pub fn routes(&self, source: u32, destination: u32) -> &[Box<[u32]>] {
        &self.routes[(source * self.nodes + destination) as usize]
    }

    /// Returns the maximum number of links of a route.
    pub fn max_hops(&self) -> usize {
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
                let mut fixed = Vec::new();
                if source != destination {
                    network.route(source, destination, &mut fixed);
                }
                let shortest = self.shortest(source, &distance);
                let others = shortest.into_iter().filter(|other| **other != *fixed);
                let place = &mut routes[(source * self.nodes + destination) as usize];
                place.push(fixed.clone().into_boxed_slice());
                if source != destination {
                    place.extend(others);
                }
            }
        }
        routes
    }

    /// Returns up to [`MAX_SHORTEST_ROUTES`] shortest routes from a vertex, ordered by their links.
    /// `distance` gives the number of links from each vertex to the destination.
    fn shortest(&self, source: u32, distance: &[u32]) -> Vec<Box<[u32]>> {
        let mut routes = Vec::new();
        let mut partial_routes = vec![(source, Vec::new())];
        while let Some((vertex, route)) = partial_routes.pop() {
            let hops_left = distance[vertex as usize];
            if hops_left == 0 {
                routes.push(route.into_boxed_slice());
                if routes.len() == MAX_SHORTEST_ROUTES {
                    break;
                }
                continue;
            }
            for (number, link) in self.links.iter().enumerate().rev() {
                if link.from == vertex
                    && distance[link.to as usize].checked_add(1) == Some(hops_left)
                {
                    let mut longer = route.clone();
                    longer.push(number as u32);
                    partial_routes.push((link.to, longer));
                }
            }
        }
        routes
    }
}

fn links(network: &dyn Network) -> Result<Vec<BurstLink>, String> {
    let mut links = Vec::new();
    for (number, link) in network.links().iter().enumerate() {
        let number = number as u32;
        let name = network.link_name(number).replace("rank ", "node ");
        let (from, to) = network
            .ends(number)
            .ok_or_else(|| format!("the ends of {name} are not known"))?;
        if network.leads_both_ways(number) {
            return Err(format!(
                "{name} is half-duplex; light needs a fibre in each direction"
            ));
        }
        if link.sharing != Sharing::Shared {
            return Err(format!(
                "{name} has no limit; a burst link is limited by wavelengths=..."
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

/// Returns the common rate of all links.
fn rate(network: &dyn Network) -> Result<Rate, String> {
    let links = network.links();
    let Some(first) = links.first() else {
        return Err("it has no links".into());
    };
    match links.iter().position(|link| link.rate != first.rate) {
        None => Ok(first.rate),
        Some(other) => Err(format!(
            "{} has {} and {} has {}; a burst needs the same rate on its whole route",
            network.link_name(0),
            first.rate,
            network.link_name(other as u32),
            links[other].rate
        )),
    }
}
