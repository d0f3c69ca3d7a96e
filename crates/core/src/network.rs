//! What an electrical fabric is to a router and a simulator: directed links with rates, and the links
//! on the way from one rank to another.
//!
//! ```
//! use opticoll::network::{Link, Network, Routed, Sharing};
//! use opticoll::units::Time;
//! let link = Link { rate: "100Gb/s".parse()?, latency: Time::ZERO, sharing: Sharing::Shared };
//! let pair = Routed::new(2, vec![link; 2], [((0, 1), vec![0]), ((1, 0), vec![1])]);
//! let mut route = Vec::new();
//! pair.route(0, 1, &mut route);
//! assert_eq!(route, [0]);
//! # Ok::<(), opticoll::units::UnitError>(())
//! ```

use rustc_hash::FxHashMap;

use crate::drawing::{self, Drawing};
use crate::units::{Rate, Time};

/// How flows get along on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// They divide the rate among them.
    Shared,
    /// Each may use the whole rate, whatever the others do.
    PerFlow,
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

/// Links and deterministic routes among ranks. Each electrical fabric is one.
pub trait Network: Sync {
    /// The number of ranks, N.
    fn ranks(&self) -> u32;

    /// All links; routes name them by their index.
    fn links(&self) -> &[Link];

    /// Appends the links from `source` to `destination` (ranks below N, distinct), in order. The same
    /// pair always gets the same route.
    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>);

    /// A link in words, such as `leaf 3 -> spine 0`.
    fn link_name(&self, link: u32) -> String;

    /// The vertices a link leads from and to: ranks first, then switches; a half-duplex link leads
    /// both ways. `None` where the network knows its links only.
    fn ends(&self, _link: u32) -> Option<(u32, u32)> {
        None
    }

    /// Where its vertices are drawn; by the distances of its links where a family says nothing else.
    fn drawing(&self) -> Drawing {
        let links = 0..self.links().len() as u32;
        let ends: Vec<(u32, u32)> = links.filter_map(|link| self.ends(link)).collect();
        let last = ends.iter().map(|ends| ends.0.max(ends.1)).max();
        let vertices = last.map_or(0, |last| last + 1).max(self.ranks());
        Drawing::of(drawing::by_distance(vertices as usize, &ends))
    }

    /// Whether a link is half-duplex, as far as is known.
    fn leads_both_ways(&self, _link: u32) -> bool {
        true
    }
}

/// A network whose routes are given one by one.
#[derive(Debug, Clone)]
pub struct Routed {
    ranks: u32,
    links: Vec<Link>,
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
            links,
            routes: routes.into_iter().collect(),
        }
    }
}

impl Network for Routed {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn links(&self) -> &[Link] {
        &self.links
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        if let Some(route) = self.routes.get(&(source, destination)) {
            links.extend_from_slice(route);
        }
    }

    fn link_name(&self, link: u32) -> String {
        format!("link {link}")
    }
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
