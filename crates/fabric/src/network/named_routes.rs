//! Named routes of a plan, for transfers that do not use the fabric's route.

use rustc_hash::FxHashMap;

/// Index that stands for the fabric's route.
pub const FABRIC_ROUTE: u32 = u32::MAX;

/// Routes that a plan names; each is an ordered list of links. Empty, and without memory, if all
/// transfers use the fabric's routes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedRoutes {
    /// Links of all routes, one route after another. `ends` has the index in `links` at which each
    /// route ends.
    links: Vec<u32>,
    ends: Vec<u32>,
    /// Index of the named route of each transfer, indexed by transfer. Transfers after the end of
    /// the list have [`FABRIC_ROUTE`].
    route_numbers: Vec<u32>,
    numbers: FxHashMap<Box<[u32]>, u32>,
}

impl NamedRoutes {
    /// Returns whether all transfers use the fabric's routes.
    pub fn is_empty(&self) -> bool {
        self.route_numbers.is_empty()
    }

    /// Returns the number of different named routes.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the links of the named route `route`.
    pub fn links(&self, route: u32) -> &[u32] {
        let end = |route: usize| self.ends[route] as usize;
        let start = route
            .checked_sub(1)
            .map_or(0, |before| end(before as usize));
        &self.links[start..end(route as usize)]
    }

    /// Returns the index of the named route of `transfer`; [`FABRIC_ROUTE`] for the fabric's route.
    pub fn number(&self, transfer: usize) -> u32 {
        self.route_numbers
            .get(transfer)
            .copied()
            .unwrap_or(FABRIC_ROUTE)
    }

    /// Returns the links of the route of `transfer`; `None` for the fabric's route.
    pub fn of(&self, transfer: usize) -> Option<&[u32]> {
        match self.number(transfer) {
            FABRIC_ROUTE => None,
            route => Some(self.links(route)),
        }
    }

    /// Assigns the route `links` to `transfer`.
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
        if self.route_numbers.len() <= transfer {
            self.route_numbers.resize(transfer + 1, FABRIC_ROUTE);
        }
        self.route_numbers[transfer] = number;
    }

    /// Appends the routes of a plan whose transfers follow the `before` transfers of this plan.
    pub fn append(&mut self, other: &NamedRoutes, before: usize) {
        for transfer in 0..other.route_numbers.len() {
            if let Some(links) = other.of(transfer) {
                self.assign(before + transfer, links);
            }
        }
    }
}
