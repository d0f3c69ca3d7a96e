//! Routes that a plan names, for transfers that do not go by those of the fabric.

use rustc_hash::FxHashMap;

use opticoll_fabric::network::{Network, Wiring};

/// The number of a route that is not named: the fabric's.
pub const OF_FABRIC: u32 = u32::MAX;

/// The routes that a plan names: each a list of links, in order. Empty, and without memory, where all transfers go by
/// the routes of the fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedRoutes {
    /// The links of all routes, one route after the other, and where each ends.
    links: Vec<u32>,
    ends: Vec<u32>,
    /// By transfer, its route; the last ones are left out where they are [`OF_FABRIC`].
    of: Vec<u32>,
    numbers: FxHashMap<Box<[u32]>, u32>,
}

impl NamedRoutes {
    /// Whether all transfers go by the routes of the fabric.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The number of different routes.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The links of a route.
    pub fn links(&self, route: u32) -> &[u32] {
        let end = |route: usize| self.ends[route] as usize;
        let start = route
            .checked_sub(1)
            .map_or(0, |before| end(before as usize));
        &self.links[start..end(route as usize)]
    }

    /// The number of a transfer's route; [`OF_FABRIC`] where it is the fabric's.
    pub fn number(&self, transfer: usize) -> u32 {
        self.of.get(transfer).copied().unwrap_or(OF_FABRIC)
    }

    /// The links that a transfer takes; `None` where it goes by the fabric's route.
    pub fn of(&self, transfer: usize) -> Option<&[u32]> {
        match self.number(transfer) {
            OF_FABRIC => None,
            route => Some(self.links(route)),
        }
    }

    /// Lets a transfer take these links.
    pub fn assign(&mut self, transfer: usize, links: &[u32]) {
        let number = match self.numbers.get(links) {
            Some(number) => *number,
            None => {
                let number = self.ends.len() as u32;
                self.links.extend_from_slice(links);
                self.ends.push(self.links.len() as u32);
                self.numbers.insert(links.into(), number);
                number
            }
        };
        if self.of.len() <= transfer {
            self.of.resize(transfer + 1, OF_FABRIC);
        }
        self.of[transfer] = number;
    }

    /// Takes over the routes of a plan whose transfers follow `before` others here.
    pub fn append(&mut self, other: &NamedRoutes, before: usize) {
        for transfer in 0..other.of.len() {
            if let Some(links) = other.of(transfer) {
                self.assign(before + transfer, links);
            }
        }
    }
}

/// A network with the routes of a plan beside its own: route r leads from `r` to [`OF_FABRIC`].
pub struct NetworkWithRoutes<'a> {
    network: &'a dyn Network,
    routes: &'a NamedRoutes,
}

impl<'a> NetworkWithRoutes<'a> {
    /// Of a fabric and a plan.
    pub fn new(network: &'a dyn Network, routes: &'a NamedRoutes) -> NetworkWithRoutes<'a> {
        NetworkWithRoutes { network, routes }
    }
}

impl Network for NetworkWithRoutes<'_> {
    fn ranks(&self) -> u32 {
        self.network.ranks()
    }

    fn wiring(&self) -> &Wiring {
        self.network.wiring()
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        match destination {
            OF_FABRIC => links.extend_from_slice(self.routes.links(source)),
            _ => self.network.route(source, destination, links),
        }
    }
}
