//! Network for bursts: the links and routes of a graph of fibres. The channels of a link (fibres
//! times wavelengths) are its *wavelengths*. The ranks of the graph are *nodes*, to which hosts are
//! attached; switches have no hosts.

use std::borrow::Cow;

use super::BurstError;
use super::settings::Converters;
use crate::light_routes::ShortestRoutes;
use opticoll_base::graph;
use opticoll_base::units::Rate;
use opticoll_fabric::fabric::Machine;
use opticoll_fabric::families::Medium;
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_fabric::network::{Network, Sharing};

/// Limit on each of three numbers: hosts, pairs of nodes, and wavelengths of all links together.
const MAX_SIZE: u64 = 1 << 20;

/// Specification that error messages suggest.
const EXAMPLE: &str = "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s";

/// Directed link with wavelengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstLink {
    /// Name of the link.
    pub name: String,
    /// Index of the node or switch at which the link starts. Switches are numbered after the last
    /// node.
    pub from: u32,
    /// Index of the node or switch at which the link ends.
    pub to: u32,
    /// Propagation delay of the link in picoseconds.
    pub latency_ps: u64,
}

/// Network of nodes, hosts, links and routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstNetwork {
    specification: String,
    electrical: String,
    nodes: u32,
    vertices: u32,
    hosts: u32,
    wavelengths: u32,
    rate: Rate,
    converters: Converters,
    receivers: Option<u32>,
    /// Maximum number of links of a route.
    reach: usize,
    links: Vec<BurstLink>,
    /// Routes of each pair of nodes, indexed by `source * nodes + destination`. The first route is
    /// the fabric's route, and the other shortest routes follow. A route is a list of link indices.
    routes: Vec<Vec<Box<[u32]>>>,
}

impl BurstNetwork {
    /// Creates the network for bursts from the medium that a specification describes.
    ///
    /// # Errors
    /// Returns an error if the medium is not a graph of fibres, and the errors of
    /// [`BurstNetwork::new`].
    pub fn of(medium: &Medium) -> Result<BurstNetwork, BurstError> {
        let (family, problem) = match medium {
            Medium::Messages(cost) => (cost.family(), format!("it has no links; use {EXAMPLE}")),
            Medium::Fabric(fabric) => match fabric.downcast::<WdmGraph>() {
                Some(graph) => return BurstNetwork::new(graph),
                None if fabric.network().is_some() => {
                    let problem = "its links are electrical; use fibres with wavelengths, such as";
                    (fabric.family(), format!("{problem} {EXAMPLE}"))
                }
                None => (
                    fabric.family(),
                    format!("its lightpaths are planned; use {EXAMPLE}, or wdm_graph"),
                ),
            },
        };
        let family = family.into();
        Err(BurstError::Network { family, problem })
    }

    /// Creates a network from a graph of fibres.
    ///
    /// # Errors
    /// Returns an error for limited transmitters, half-duplex cables, links or lightpaths with
    /// different rates, routes beyond the reach of light, and networks that are too large or have
    /// fewer than two hosts.
    pub fn new(graph: &WdmGraph) -> Result<BurstNetwork, BurstError> {
        let refuse = |problem: String| BurstError::Network {
            family: graph.record().name.into(),
            problem,
        };
        let network = graph.fibre_links();
        let (hosts, wavelengths) = (graph.hosts, graph.channels());
        if graph.transmitters.is_some() {
            let problem = "the settings source and ports limit what a host sends; leave \
                           transmitters out";
            return Err(refuse(problem.into()));
        }
        if !graph.slower.is_empty() || !graph.reach_rates.is_empty() {
            let problem = "a burst has the same rate on every channel and route; leave degraded \
                           wavelengths, and rates of reach, out";
            return Err(refuse(problem.into()));
        }
        let nodes = network.ranks();
        let links = links(network).map_err(refuse)?;
        let size = (u64::from(nodes) * u64::from(hosts))
            .max(u64::from(nodes).pow(2))
            .max(links.len() as u64 * u64::from(wavelengths));
        if size > MAX_SIZE {
            let problem = format!(
                "{nodes} nodes with {hosts} hosts each and {} links of {wavelengths} wavelengths: \
                 hosts, pairs of nodes and wavelengths of all links are at most {MAX_SIZE}",
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
            specification: graph.spec().to_string(),
            electrical: graph.electrical().to_string(),
            nodes,
            vertices: ends.max().map_or(nodes, |last| nodes.max(last + 1)),
            hosts,
            wavelengths,
            rate,
            converters: match (graph.converters, graph.converters_per_vertex) {
                (false, _) => Converters::None,
                (true, None) => Converters::Full,
                (true, Some(count)) => Converters::PerNode(count),
            },
            receivers: graph.receivers,
            reach: graph.reach.map_or(usize::MAX, |reach| reach as usize),
            links,
            routes: Vec::new(),
        };
        burst.routes = burst.all_routes(network);
        let too_long = |routes: &&Vec<Box<[u32]>>| routes[0].len() > burst.reach;
        if let Some(routes) = burst.routes.iter().find(too_long) {
            return Err(refuse(format!(
                "a route of {} links is beyond the reach of light, {} links; leave reach out",
                routes[0].len(),
                burst.reach
            )));
        }
        Ok(burst)
    }

    /// Returns the number of nodes that have hosts.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Returns the number of nodes and switches together.
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// Returns the number of hosts at each node.
    pub fn hosts_per_node(&self) -> u32 {
        self.hosts
    }

    /// Returns the number of hosts of all nodes. Host h belongs to node h / (hosts per node),
    /// rounded down.
    pub fn hosts(&self) -> u32 {
        self.nodes * self.hosts
    }

    /// Returns the node of a host.
    pub fn node(&self, host: u32) -> u32 {
        host / self.hosts
    }

    /// Returns the number of wavelengths of each link.
    pub fn wavelengths(&self) -> u32 {
        self.wavelengths
    }

    /// Returns the rate of each wavelength.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the wavelength converters of every node and switch.
    pub fn converters(&self) -> Converters {
        self.converters
    }

    /// Returns the number of bursts that a host can receive at the same time; `None` sets no limit.
    pub fn receivers(&self) -> Option<u32> {
        self.receivers
    }

    /// Returns all links.
    pub fn links(&self) -> &[BurstLink] {
        &self.links
    }

    /// Returns the specification of the network, with its hosts and wavelengths.
    pub fn specification(&self) -> &str {
        &self.specification
    }

    /// Returns the specification of an electrical fabric with the same nodes and links.
    pub fn electrical(&self) -> &str {
        &self.electrical
    }

    /// Returns the routes from node `source` to node `destination`: the fabric's route, then the
    /// other shortest routes. A route is a list of link indices. The only route from a node to
    /// itself has no links.
    pub fn routes(&self, source: u32, destination: u32) -> &[Box<[u32]>] {
        &self.routes[(source * self.nodes + destination) as usize]
    }

    /// Returns the network with at least `count` routes for each pair of different nodes, as far as
    /// there are routes within the reach of light that visit no vertex twice. Longer routes follow
    /// the shortest routes, with the fewest links first, and equal lengths in the order of their
    /// links.
    pub fn with_routes(&self, count: u32) -> Cow<'_, BurstNetwork> {
        let pairs = self.routes.len();
        let count = count as usize;
        let few =
            |pair: &usize| self.routes[*pair].len() < count && !self.routes[*pair][0].is_empty();
        let few: Vec<usize> = (0..pairs).filter(few).collect();
        if count <= 1 || few.is_empty() {
            return Cow::Borrowed(self);
        }
        let ends: Vec<(u32, u32)> = self.links.iter().map(|link| (link.from, link.to)).collect();
        let mut network = self.clone();
        for pair in few {
            let between = (pair as u32 / self.nodes, pair as u32 % self.nodes);
            let routes = &mut network.routes[pair];
            let shortest = routes[0].len();
            routes.retain(|route| route.len() == shortest);
            let paths = graph::shortest_paths(self.vertices as usize, &ends, between, count);
            let longer = paths.into_iter().filter(|path| path.len() > shortest);
            let longer = longer.filter(|path| path.len() <= self.reach);
            routes.extend(longer.map(Vec::into_boxed_slice));
        }
        Cow::Owned(network)
    }

    /// Returns the maximum number of links of a route.
    pub fn max_hops(&self) -> usize {
        let routes = self.routes.iter().flatten();
        routes.map(|route| route.len()).max().unwrap_or(0)
    }

    fn all_routes(&self, network: &dyn Network) -> Vec<Vec<Box<[u32]>>> {
        let shortest = ShortestRoutes::new(network, self.vertices);
        let mut routes = vec![Vec::new(); (self.nodes * self.nodes) as usize];
        for destination in 0..self.nodes {
            let distance = shortest.distances_to(destination);
            for source in 0..self.nodes {
                routes[(source * self.nodes + destination) as usize] = match source == destination {
                    true => vec![Box::default()],
                    false => shortest.between(network, (source, destination), &distance),
                };
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
