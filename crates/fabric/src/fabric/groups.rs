//! Groups of routers. Every group has links to every other group, and the routers of a group have
//! links to each other.

use crate::network::Network;

/// Machine with groups of routers. Routers are numbered group by group, ranks router by router.
pub trait Groups: Network {
    /// Returns the number of groups, g.
    fn groups(&self) -> u32;

    /// Returns the number of routers in each group, a.
    fn routers_per_group(&self) -> u32;

    /// Returns the number of ranks at each router, p.
    fn terminals_per_router(&self) -> u32;

    /// Returns the number of ranks in each group, a * p.
    fn ranks_per_group(&self) -> u32 {
        self.routers_per_group() * self.terminals_per_router()
    }

    /// Returns the router and the global port of the direct link from `group` to group `peer`. The
    /// result is (index of the router within `group`, index of the global port at this router).
    fn gateway(&self, group: u32, peer: u32) -> (u32, u32);

    /// Returns the intermediate group of the route from rank `source` to rank `destination`.
    /// Returns `None` if the route has no intermediate group.
    fn intermediate(&self, source: u32, destination: u32) -> Option<u32>;
}
