//! Groups of routers: every group is joined to every other, and the routers of a group to each other.

use crate::network::Network;

/// A machine of groups, routers and ranks, each numbered group by group and router by router.
pub trait Groups: Network {
    /// The number of groups, g.
    fn groups(&self) -> u32;

    /// The number of routers in each group, a.
    fn routers_per_group(&self) -> u32;

    /// The number of ranks on each router, p.
    fn terminals_per_router(&self) -> u32;

    /// The number of ranks in each group, a p.
    fn ranks_per_group(&self) -> u32 {
        self.routers_per_group() * self.terminals_per_router()
    }

    /// The router, and its global port, by which a group reaches another one directly.
    fn gateway(&self, group: u32, peer: u32) -> (u32, u32);

    /// The group by way of which a route goes; `None` where it goes straight.
    fn intermediate(&self, source: u32, destination: u32) -> Option<u32>;
}
