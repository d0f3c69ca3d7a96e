//! Routes that a plan names for transfers that do not take the fabric's route.

use rustc_hash::FxHashMap;

use opticoll_fabric::network::{Network, Wiring};

/// Number that stands for the fabric's route.
pub const FABRIC_ROUTE: u32 = u32::MAX;

/// Routes that a plan names, each an ordered list of links. Empty, and without memory, if all
/// transfers take the fabric's routes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedRoutes {
    /// Links of all routes, one route after the other; `ends` has the end of each route.
    links: Vec<u32>,
    ends: Vec<u32>,
    /// Number of the route of each transfer; trailing [`FABRIC_ROUTE`] entries are left out.
    of: Vec<u32>,
    numbers: FxHashMap<Box<[u32]>, u32>,
}

impl NamedRoutes {
    /// Returns whether all transfers take the fabric's routes.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Returns the number of different routes.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the links of a route.
    pub fn links(&self, route: u32) -> &[u32] {
        let end = |route: usize| self.ends[route] as usize;
        let start = route
            .checked_sub(1)
            .map_or(0, |before| end(before as usize));
        &self.links[start..end(route as usize)]
    }

    /// Returns the number of a transfer's route; [`FABRIC_ROUTE`] for the fabric's route.
    pub fn number(&self, transfer: usize) -> u32 {
        self.of.get(transfer).copied().unwrap_or(FABRIC_ROUTE)
    }

    /// Returns the links of a transfer's route; `None` for the fabric's route.
    pub fn of(&self, transfer: usize) -> Option<&[u32]> {
        match self.number(transfer) {
            FABRIC_ROUTE => None,
            route => Some(self.links(route)),
        }
    }

    /// Assigns a route to a transfer.
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
            self.of.resize(transfer + 1, FABRIC_ROUTE);
        }
        self.of[transfer] = number;
    }

    /// Adds the routes of a plan whose transfers follow `before` transfers of this plan.
    pub fn append(&mut self, other: &NamedRoutes, before: usize) {
        for transfer in 0..other.of.len() {
            if let Some(links) = other.of(transfer) {
                self.assign(before + transfer, links);
            }
        }
    }
}

/// Network that also has the routes of a plan: route r leads from `r` to [`FABRIC_ROUTE`].
pub struct NetworkWithRoutes<'a> {
    network: &'a dyn Network,
    routes: &'a NamedRoutes,
}

impl<'a> NetworkWithRoutes<'a> {
    /// Returns the network of a fabric with the routes of a plan.
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
            FABRIC_ROUTE => links.extend_from_slice(self.routes.links(source)),
            _ => self.network.route(source, destination, links),
        }
    }
}
