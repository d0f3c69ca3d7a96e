//! Groups of routers in which every group has links to every other group, and the routers of a
//! group have links to each other.

use crate::network::Network;

/// Machine with groups of routers. Routers are numbered group by group, ranks router by router.
pub trait Groups: Network {
    /// Returns the number of groups, g.
    fn groups(&self) -> u32;

    /// Returns the number of routers in each group, a.
    fn routers_per_group(&self) -> u32;

    /// Returns the number of ranks of each router, p.
    fn terminals_per_router(&self) -> u32;

    /// Returns the number of ranks in each group, a p.
    fn ranks_per_group(&self) -> u32 {
        self.routers_per_group() * self.terminals_per_router()
    }

    /// Returns the router of `group`, and the global port of this router, with the direct link to
    /// `peer`.
    fn gateway(&self, group: u32, peer: u32) -> (u32, u32);

    /// Returns the intermediate group of a route, or `None` if the route uses a direct link between
    /// the two groups.
    fn intermediate(&self, source: u32, destination: u32) -> Option<u32>;
}
