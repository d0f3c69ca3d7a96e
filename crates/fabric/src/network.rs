//! Electrical networks: directed links with rates, and the route of links from each rank to each
//! other rank.
//!
//! ```
//! use opticoll_fabric::network::{Link, Network, Routed, Sharing};
//! use opticoll_base::units::Time;
//! let link = Link { rate: "100Gb/s".parse()?, latency: Time::ZERO, sharing: Sharing::Shared };
//! let pair = Routed::new(2, vec![link; 2], [((0, 1), vec![0]), ((1, 0), vec![1])]);
//! let mut route = Vec::new();
//! pair.route(0, 1, &mut route);
//! assert_eq!(route, [0]);
//! # Ok::<(), opticoll_base::units::UnitError>(())
//! ```

pub(crate) mod fewest_links;
pub mod translations;

use rustc_hash::FxHashMap;

use crate::drawing;
use crate::drawing::Drawing;
use opticoll_base::units::{Rate, Time};
use translations::Translations;

opticoll_base::named_enum! {
    /// Rule for flows on the same link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Sharing {
        /// The flows divide the rate of the link.
        Shared = "shared",
        /// Each flow may use the whole rate of the link.
        PerFlow = "per_flow",
    }

    /// Relation between the two directions of a cable.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Duplex {
        /// Each direction has the whole rate.
        Full = "full",
        /// The two directions divide the rate.
        Half = "half",
    }
}

/// Directed link. A half-duplex cable is one link that belongs to routes of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    /// Rate in bits per second.
    pub rate: Rate,
    /// Delay of a bit over the link.
    pub latency: Time,
    /// Rule for flows on the link.
    pub sharing: Sharing,
}

/// Directed links, numbered from 0, and the vertices that they join, if these are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wiring {
    links_per_cable: u32,
    links: Vec<Link>,
    ends: Vec<(u32, u32)>,
    both_ways: Vec<bool>,
}

impl From<Vec<Link>> for Wiring {
    /// Creates links whose ends are unknown.
    fn from(links: Vec<Link>) -> Wiring {
        Wiring {
            links,
            ..Wiring::new(Duplex::Half)
        }
    }
}

impl Wiring {
    pub(crate) fn new(duplex: Duplex) -> Wiring {
        Wiring {
            links_per_cable: if duplex == Duplex::Full { 2 } else { 1 },
            links: Vec::new(),
            ends: Vec::new(),
            both_ways: Vec::new(),
        }
    }

    /// Adds a cable between two vertices.
    pub(crate) fn add(&mut self, from: u32, to: u32, link: Link) {
        let half = self.links_per_cable == 1;
        self.add_link(from, to, link, half);
        if !half {
            self.add_link(to, from, link, false);
        }
    }

    /// Adds a link and returns its number.
    pub(crate) fn add_link(&mut self, from: u32, to: u32, link: Link, both_ways: bool) -> u32 {
        self.links.push(link);
        self.ends.push((from, to));
        self.both_ways.push(both_ways);
        self.links.len() as u32 - 1
    }

    /// Returns the link of a cable from its first end to its second end.
    pub(crate) fn forth(&self, cable: u32) -> u32 {
        self.links_per_cable * cable
    }

    /// Returns the link of a cable from its second end to its first end.
    pub(crate) fn back(&self, cable: u32) -> u32 {
        self.forth(cable + 1) - 1
    }

    /// Returns the ends of each link (from, to), and whether the link leads both ways.
    pub fn ends(&self) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
        let ends = self.ends.iter().zip(&self.both_ways);
        ends.map(|(&(from, to), &both_ways)| (from, to, both_ways))
    }
}

/// Links and deterministic routes between ranks. Every electrical fabric implements this trait.
pub trait Network: Sync {
    /// Returns the number of ranks, N.
    fn ranks(&self) -> u32;

    /// Returns the links and the vertices that they join.
    fn wiring(&self) -> &Wiring;

    /// Returns all links. Routes refer to links by index.
    fn links(&self) -> &[Link] {
        &self.wiring().links
    }

    /// Appends the links from `source` to `destination` (distinct ranks below N), in order. The
    /// route between two ranks is always the same.
    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>);

    /// Returns the name of a vertex for readers, such as `leaf 3`.
    fn vertex_name(&self, vertex: u32) -> String {
        format!("rank {vertex}")
    }

    /// Returns an error message if some ranks cannot reach each other over links. Only networks
    /// from user files can have such ranks.
    fn cut_off(&self) -> Option<String> {
        None
    }

    /// Returns the name of a link for readers: `leaf 3 -> spine 0`, or `leaf 3 <-> spine 0` for a
    /// half-duplex link.
    fn link_name(&self, link: u32) -> String {
        let Some((from, to)) = self.ends(link) else {
            return format!("link {link}");
        };
        let arrow = if self.leads_both_ways(link) {
            "<->"
        } else {
            "->"
        };
        let which = self.cable_number(link);
        let which = which.map_or(String::new(), |number| format!(" (cable {number})"));
        format!(
            "{} {arrow} {}{which}",
            self.vertex_name(from),
            self.vertex_name(to)
        )
    }

    /// Returns the number of a link among several links between the same vertices, or `None` if
    /// there is only one.
    fn cable_number(&self, _link: u32) -> Option<u32> {
        None
    }

    /// Returns the vertices that a link leads from and to. Vertices are numbered ranks first, then
    /// switches; a half-duplex link leads both ways. Returns `None` if the ends of the link are
    /// unknown.
    fn ends(&self, link: u32) -> Option<(u32, u32)> {
        self.wiring().ends.get(link as usize).copied()
    }

    /// Returns the positions of the vertices in a picture, by default by their distances in links.
    fn drawing(&self) -> Drawing {
        let links = 0..self.links().len() as u32;
        let ends: Vec<(u32, u32)> = links.filter_map(|link| self.ends(link)).collect();
        let last = ends.iter().map(|ends| ends.0.max(ends.1)).max();
        let vertices = last.map_or(0, |last| last + 1).max(self.ranks());
        Drawing::new(drawing::stress_layout(vertices as usize, &ends))
    }

    /// Returns the translations of a grid of all ranks, if each translation maps links to links of
    /// the same rate and latency, and routes of neighbours to routes of neighbours.
    fn translations(&self) -> Option<&Translations> {
        None
    }

    /// Returns the number of ranks in a group, if consecutive ranks form groups (servers, racks,
    /// groups of routers) that are connected better inside than between groups.
    fn group_size(&self) -> Option<u32> {
        None
    }

    /// Returns whether a link is half-duplex, or its direction is unknown.
    fn leads_both_ways(&self, link: u32) -> bool {
        self.wiring().both_ways.get(link as usize) != Some(&false)
    }
}

/// Network with an explicit list of routes.
#[derive(Debug, Clone)]
pub struct Routed {
    ranks: u32,
    wiring: Wiring,
    routes: FxHashMap<(u32, u32), Vec<u32>>,
}

impl Routed {
    /// Creates a network. Routes that are not given are empty, so their flows use no link.
    pub fn new(
        ranks: u32,
        links: Vec<Link>,
        routes: impl IntoIterator<Item = ((u32, u32), Vec<u32>)>,
    ) -> Routed {
        Routed {
            ranks,
            wiring: links.into(),
            routes: routes.into_iter().collect(),
        }
    }
}

impl Network for Routed {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        if let Some(route) = self.routes.get(&(source, destination)) {
            links.extend_from_slice(route);
        }
    }
}

/// Returns the greatest latency of a route from rank 0: the sum of the latencies of its links.
pub fn latency(network: &dyn Network) -> Time {
    let mut route = Vec::new();
    let route_latency = |destination: u32| {
        route.clear();
        network.route(0, destination, &mut route);
        let links = route
            .iter()
            .map(|&link| network.links()[link as usize].latency.ps());
        links.fold(0, u64::saturating_add)
    };
    Time::from_ps((1..network.ranks()).map(route_latency).max().unwrap_or(0))
}

/// Returns the rate in bits per second at which a rank can send: the sum of the rates of the links
/// that leave the rank, in which a half-duplex cable counts once. Of several ranks, returns the
/// minimum.
pub fn injection_bandwidth(network: &dyn Network) -> u128 {
    let mut leaving = vec![0u128; network.ranks() as usize];
    for (index, link) in network.links().iter().enumerate() {
        let Some((from, to)) = network.ends(index as u32) else {
            continue;
        };
        let other_sender = network.leads_both_ways(index as u32).then_some(to);
        for rank in [Some(from), other_sender].into_iter().flatten() {
            if let Some(rate) = leaving.get_mut(rank as usize) {
                *rate += u128::from(link.rate.bits_per_second());
            }
        }
    }
    leaving.into_iter().min().unwrap_or(0)
}
