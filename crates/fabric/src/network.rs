//! What an electrical fabric is to a router and a simulator: directed links with rates, and the links
//! on the way from one rank to another.
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
    /// How flows get along on a link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Sharing {
        /// They divide the rate among them.
        Shared = "shared",
        /// Each may use the whole rate, whatever the others do.
        PerFlow = "per_flow",
    }

    /// What the two directions of a cable have to do with each other.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Duplex {
        /// Nothing: each has the whole rate.
        Full = "full",
        /// They divide the rate.
        Half = "half",
    }
}

/// A directed link. A half-duplex wire is one link that lies on routes of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    /// Bits per second.
    pub rate: Rate,
    /// The delay of a bit over the link.
    pub latency: Time,
    /// How flows get along on it.
    pub sharing: Sharing,
}

/// Directed links one after another, and the vertices that they join, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wiring {
    links_per_cable: u32,
    links: Vec<Link>,
    ends: Vec<(u32, u32)>,
    both_ways: Vec<bool>,
}

impl From<Vec<Link>> for Wiring {
    /// Links whose ends are unknown.
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
    pub(crate) fn add(&mut self, one: u32, other: u32, link: Link) {
        let half = self.links_per_cable == 1;
        self.add_link(one, other, link, half);
        if !half {
            self.add_link(other, one, link, false);
        }
    }

    /// Adds one link; returns its number.
    pub(crate) fn add_link(&mut self, from: u32, to: u32, link: Link, both_ways: bool) -> u32 {
        self.links.push(link);
        self.ends.push((from, to));
        self.both_ways.push(both_ways);
        self.links.len() as u32 - 1
    }

    /// The link of a cable from its one end to its other.
    pub(crate) fn forth(&self, cable: u32) -> u32 {
        self.links_per_cable * cable
    }

    /// The link of a cable from its other end to its one.
    pub(crate) fn back(&self, cable: u32) -> u32 {
        self.forth(cable + 1) - 1
    }

    /// The vertices of a link, and whether it leads both ways.
    pub fn ends(&self) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
        let ends = self.ends.iter().zip(&self.both_ways);
        ends.map(|(&(from, to), &both_ways)| (from, to, both_ways))
    }
}

/// Links and deterministic routes among ranks. Each electrical fabric is one.
pub trait Network: Sync {
    /// The number of ranks, N.
    fn ranks(&self) -> u32;

    /// The links, and the vertices that they join.
    fn wiring(&self) -> &Wiring;

    /// All links; routes name them by their index.
    fn links(&self) -> &[Link] {
        &self.wiring().links
    }

    /// Appends the links from `source` to `destination` (ranks below N, distinct), in order. The same
    /// pair always gets the same route.
    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>);

    /// A vertex in words, such as `leaf 3`.
    fn vertex_name(&self, vertex: u32) -> String {
        format!("rank {vertex}")
    }

    /// A sentence on ranks that no links join, where there are any. Only networks that users draw can have them.
    fn cut_off(&self) -> Option<String> {
        None
    }

    /// A link in words: `leaf 3 -> spine 0`, or `leaf 3 <-> spine 0` where both directions share.
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

    /// The number of a link among several between the same vertices.
    fn cable_number(&self, _link: u32) -> Option<u32> {
        None
    }

    /// The vertices a link leads from and to: ranks first, then switches; a half-duplex link leads
    /// both ways. `None` where the network knows its links only.
    fn ends(&self, link: u32) -> Option<(u32, u32)> {
        self.wiring().ends.get(link as usize).copied()
    }

    /// Where its vertices are drawn; by the distances of its links where a family says nothing else.
    fn drawing(&self) -> Drawing {
        let links = 0..self.links().len() as u32;
        let ends: Vec<(u32, u32)> = links.filter_map(|link| self.ends(link)).collect();
        let last = ends.iter().map(|ends| ends.0.max(ends.1)).max();
        let vertices = last.map_or(0, |last| last + 1).max(self.ranks());
        Drawing::of(drawing::by_distance(vertices as usize, &ends))
    }

    /// The translations of a grid of all ranks, if every one of them moves links onto links of the same rate and latency,
    /// and the routes of neighbours onto one another.
    fn translations(&self) -> Option<&Translations> {
        None
    }

    /// The number of ranks of a group, where consecutive ranks form groups that are joined closer within than to one
    /// another: servers, racks, groups of routers.
    fn group_size(&self) -> Option<u32> {
        None
    }

    /// Whether a link is half-duplex, as far as is known.
    fn leads_both_ways(&self, link: u32) -> bool {
        self.wiring().both_ways.get(link as usize) != Some(&false)
    }
}

/// A network whose routes are given one by one.
#[derive(Debug, Clone)]
pub struct Routed {
    ranks: u32,
    wiring: Wiring,
    routes: FxHashMap<(u32, u32), Vec<u32>>,
}

impl Routed {
    /// Routes that are not given are empty: such a flow meets no link.
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

/// The time in which a message without bytes comes from rank 0 to the rank farthest from it.
pub fn latency(network: &dyn Network) -> Time {
    let mut route = Vec::new();
    let of_route = |destination: u32| {
        route.clear();
        network.route(0, destination, &mut route);
        let links = route
            .iter()
            .map(|&link| network.links()[link as usize].latency.ps());
        links.fold(0, u64::saturating_add)
    };
    Time::from_ps((1..network.ranks()).map(of_route).max().unwrap_or(0))
}

/// The bits per second that a rank can send: the rates of the links that leave it, a half-duplex cable once; of
/// ranks that differ, the least.
pub fn injection_bandwidth(network: &dyn Network) -> u128 {
    let mut leaving = vec![0u128; network.ranks() as usize];
    for (index, link) in network.links().iter().enumerate() {
        let Some((from, to)) = network.ends(index as u32) else {
            continue;
        };
        let both = network.leads_both_ways(index as u32).then_some(to);
        for rank in [Some(from), both].into_iter().flatten() {
            if let Some(rate) = leaving.get_mut(rank as usize) {
                *rate += u128::from(link.rate.bits_per_second());
            }
        }
    }
    leaving.into_iter().min().unwrap_or(0)
}
