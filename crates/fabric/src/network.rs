//! Electrical networks: directed links with rates, and one route for each ordered pair of ranks.
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
pub mod in_network;
pub mod named_routes;
pub mod translations;

use rustc_hash::FxHashMap;

use crate::drawing;
use crate::drawing::Drawing;
use crate::library::Library;
use opticoll_base::units::{Length, Rate, Time};
use translations::Translations;

opticoll_base::named_enum! {
    /// Rule that decides the rates of flows that use the same link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Sharing {
        /// The flows divide the rate of the link.
        Shared = "shared",
        /// Each flow may use the whole rate of the link.
        PerFlow = "per_flow",
    }

    /// Work that switches do on data that pass them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum InNetwork {
        /// Switches only forward.
        None = "none",
        /// A switch sends copies of what it receives over several links.
        Multicast = "multicast",
        /// A switch adds what it receives over several links, and sends the sum.
        Reduce = "reduce",
        /// Switches do both.
        Both = "reduce+multicast",
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

impl InNetwork {
    /// Returns whether the switch sends copies over several links.
    pub fn multicasts(self) -> bool {
        matches!(self, InNetwork::Multicast | InNetwork::Both)
    }

    /// Returns whether the switch adds data of several links.
    pub fn adds(self) -> bool {
        matches!(self, InNetwork::Reduce | InNetwork::Both)
    }
}

/// Directed link. The two directions of a half-duplex cable are one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    /// Rate in bits per second.
    pub rate: Rate,
    /// Time that a bit takes from one end of the link to the other end.
    pub latency: Time,
    /// Rule for flows that share the link.
    pub sharing: Sharing,
}

/// Directed links, numbered from 0, and the vertices at the ends of each link, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wiring {
    links_per_cable: u32,
    links: Vec<Link>,
    ends: Vec<(u32, u32)>,
    both_ways: Vec<bool>,
}

impl From<Vec<Link>> for Wiring {
    /// Creates links with unknown ends.
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

    /// Adds a cable between vertices `from` and `to`. Each link of the cable is a copy of `link`.
    pub(crate) fn add(&mut self, from: u32, to: u32, link: Link) {
        let half = self.links_per_cable == 1;
        self.add_link(from, to, link, half);
        if !half {
            self.add_link(to, from, link, false);
        }
    }

    /// Adds a link from vertex `from` to vertex `to` and returns the index of the link. If
    /// `both_ways`, the link also leads from `to` to `from`.
    pub(crate) fn add_link(&mut self, from: u32, to: u32, link: Link, both_ways: bool) -> u32 {
        self.links.push(link);
        self.ends.push((from, to));
        self.both_ways.push(both_ways);
        self.links.len() as u32 - 1
    }

    /// Returns the index of the link from the first end of `cable` to the second end.
    pub(crate) fn forth(&self, cable: u32) -> u32 {
        self.links_per_cable * cable
    }

    /// Returns the index of the link from the second end of `cable` to the first end.
    pub(crate) fn back(&self, cable: u32) -> u32 {
        self.forth(cable + 1) - 1
    }

    /// Iterates over all links as (from, to, both_ways): the vertices at the two ends, and true if
    /// the link leads in both directions.
    pub fn ends(&self) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
        let ends = self.ends.iter().zip(&self.both_ways);
        ends.map(|(&(from, to), &both_ways)| (from, to, both_ways))
    }
}

/// Links and deterministic routes between ranks. Every electrical fabric implements this trait.
pub trait Network: Sync {
    /// Returns the number of ranks, N.
    fn ranks(&self) -> u32;

    /// Returns the links and the vertices at the ends of each link.
    fn wiring(&self) -> &Wiring;

    /// Returns all links, indexed by link number. A route is a list of link numbers.
    fn links(&self) -> &[Link] {
        &self.wiring().links
    }

    /// Appends the link numbers of the route from rank `source` to rank `destination`, in order.
    /// The two ranks are distinct and below N. The route between two ranks never changes.
    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>);

    /// Returns the number of links, at the start of a route, whose latencies a message waits for
    /// one after the other; `None` for all links. Only a multicast or an aggregation has other
    /// links beside those of one route.
    fn longest_part(&self, _source: u32, _destination: u32) -> Option<usize> {
        None
    }

    /// Returns the printed name of `vertex`, such as `leaf 3`.
    fn vertex_name(&self, vertex: u32) -> String {
        format!("rank {vertex}")
    }

    /// Returns the work that `vertex` does on data that pass it. Ranks only forward.
    fn switch_work(&self, _vertex: u32) -> InNetwork {
        InNetwork::None
    }

    /// Returns the number of vertices after the ranks that are ranks of a larger fabric, but failed
    /// or take no part. They only pass data or light on.
    fn idle_ranks(&self) -> u32 {
        0
    }

    /// Returns an error message if some ranks cannot reach each other over links, else `None`. Only
    /// networks from user files can be disconnected.
    fn cut_off(&self) -> Option<String> {
        None
    }

    /// Returns the printed name of `link`, such as `leaf 3 -> spine 0`, or `<->` if half-duplex.
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

    /// Returns the index of the link's cable among all cables between the same two vertices.
    /// Returns `None` if the two vertices have only one cable.
    fn cable_number(&self, _link: u32) -> Option<u32> {
        None
    }

    /// Returns the length of the fibre of `link`, if it is known.
    fn length(&self, _link: u32) -> Option<Length> {
        None
    }

    /// Returns the vertices at the start and at the end of `link`, or `None` if they are unknown.
    /// Ranks are the first vertices, then switches follow. A half-duplex link leads in both
    /// directions.
    fn ends(&self, link: u32) -> Option<(u32, u32)> {
        self.wiring().ends.get(link as usize).copied()
    }

    /// Returns the positions of the vertices in a picture. By default, the distance of two
    /// vertices in the picture approximates the number of links between them.
    fn drawing(&self) -> Drawing {
        drawing(self)
    }

    /// Returns the translations of the grid that all ranks form. Each translation maps links to
    /// links of the same rate and latency, and routes between neighbours to routes between
    /// neighbours. Returns `None` if the network has no such translations.
    fn translations(&self) -> Option<&Translations> {
        None
    }

    /// Returns the number of ranks per group, if consecutive ranks form groups such as servers or
    /// racks. Ranks of the same group are connected better than ranks of different groups.
    fn group_size(&self) -> Option<u32> {
        None
    }

    /// Returns whether two ranks are in the same group; without groups, all ranks are.
    fn same_group(&self, first: u32, second: u32) -> bool {
        self.group_size()
            .is_none_or(|size| first / size == second / size)
    }

    /// Returns what a library of collectives costs on the machine, if the fabric states it.
    fn library(&self) -> Option<&Library> {
        None
    }

    /// Returns whether `link` is half-duplex or has an unknown direction.
    fn leads_both_ways(&self, link: u32) -> bool {
        self.wiring().both_ways.get(link as usize) != Some(&false)
    }
}

/// Returns positions of the vertices of a network. The distance of two vertices in the picture
/// approximates the number of links between them.
pub(crate) fn drawing<N: Network + ?Sized>(network: &N) -> Drawing {
    let links = 0..network.links().len() as u32;
    let ends: Vec<(u32, u32)> = links.filter_map(|link| network.ends(link)).collect();
    Drawing::new(drawing::stress_layout(vertices(network) as usize, &ends))
}

/// Returns the number of vertices of a network: its ranks, and all vertices at ends of links.
pub fn vertices<N: Network + ?Sized>(network: &N) -> u32 {
    let last = network
        .wiring()
        .ends()
        .map(|(from, to, _)| from.max(to) + 1);
    last.max().unwrap_or(0).max(network.ranks())
}

/// Network with an explicit list of routes.
#[derive(Debug, Clone)]
pub struct Routed {
    ranks: u32,
    wiring: Wiring,
    routes: FxHashMap<(u32, u32), Vec<u32>>,
}

impl Routed {
    /// Creates a network from `links` and from the route of each pair (source, destination). The
    /// route of a missing pair is empty: a flow of this pair uses no link.
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

/// Returns the latency of the slowest route from rank 0: the sum of the latencies of its links.
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

/// Returns the injection bandwidth in bits per second. A rank can send at the total rate of all
/// links that leave the rank; the injection bandwidth is the minimum over all ranks. A half-duplex
/// link counts for the ranks at both ends.
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
