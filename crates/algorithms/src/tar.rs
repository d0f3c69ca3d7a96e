//! Topology-aware ring: a ring on a dragonfly that crosses each boundary between groups once,
//! without local hops before or after the global hop.
//!
//! The ring visits the groups in order. The ring enters a group at the router where the cable from
//! the previous group ends, and leaves the group at the router with the cable to the next group.
//! Between these two it visits the other routers, in cyclic order from the entry. The ranks of a
//! router are consecutive. So every edge of the ring is at most one hop between routers. If entry
//! and exit differ, no link between routers carries two edges. (In the absolute arrangement, they
//! differ if a group has more than two routers.) Data move along this ring as along any other ring.
//!
//! The source (Cherièvre and Dorier) states the goal. opticoll chooses the order of the other
//! routers.

use super::{Algorithm, AlgorithmError, Request, all_pairs, ring};
use opticoll_fabric::fabric::Groups;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::Schedule;

pub(super) const CITATION: &str = "Cherièvre and Dorier, Design and Evaluation of Topology-aware \
                                   Scatter and AllGather Algorithms for Dragonfly Networks, SC \
                                   2016";

/// Families with groups and routers, which the algorithms for dragonflies need.
pub(super) const FAMILIES: &[&str] = &["dragonfly"];

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Ring that enters and leaves each group at the routers that have the cables \
        between groups",
        citation: CITATION,
        costs: ring::GATHERING,
        families: FAMILIES,
        ..Algorithm::new(
            "tar",
            "Topology-aware ring",
            CollectiveKind::AllGather,
            all_gather,
        )
    },
    Algorithm {
        summary: "Reduce_scatter, then all_gather, around a ring that enters and leaves each group \
                  at the routers with the group's cables",
        citation: CITATION,
        costs: ring::REDUCING,
        families: FAMILIES,
        transfers: all_pairs,
        ..Algorithm::new(
            "tar",
            "Topology-aware ring",
            CollectiveKind::AllReduce,
            all_reduce,
        )
    },
];

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    ring::all_gather_along(request, &[order(request.groups()?)])
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    ring::all_reduce_along(request, &[order(request.groups()?)])
}

/// Returns the ranks of a dragonfly in the order of the ring.
pub fn order(machine: &dyn Groups) -> Vec<u32> {
    let groups = machine.groups();
    let (routers, terminals) = (machine.routers_per_group(), machine.terminals_per_router());
    let mut order = Vec::new();
    for group in 0..groups {
        let (entry, exit) = if groups == 1 {
            (0, routers - 1)
        } else {
            let gateway = |peer| machine.gateway(group, peer).0;
            (
                gateway((group + groups - 1) % groups),
                gateway((group + 1) % groups),
            )
        };
        let cyclic = (0..routers).map(|place| (entry + place) % routers);
        let between = cyclic.filter(|router| *router != entry && *router != exit);
        let last = (exit != entry).then_some(exit);
        for router in std::iter::once(entry).chain(between).chain(last) {
            let first = (group * routers + router) * terminals;
            order.extend(first..first + terminals);
        }
    }
    order
}
