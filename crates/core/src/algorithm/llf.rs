//! Local link first: a scatter on a dragonfly in four phases, each down binomial trees: to one leader
//! per router of the root's group, with the blocks of that router and of every group to which the
//! router has the cable; from there to one leader per such group; from there to one leader per router;
//! from there to the router's ranks.
//!
//! Leaders are the first ranks of their routers, in other groups of the router on which the cable from
//! the root's group lands; the root leads its own router. Lists count on cyclically from the root.
//!
//! Cherièvre and Dorier, Design and Evaluation of Topology-aware Scatter and AllGather Algorithms for
//! Dragonfly Networks, SC 2016; leaders and lists are ours where they are silent. A tree among the
//! groups of one router relays between them, so that blocks may cross more than one global link.

use super::AlgorithmError;
use super::scatter_tree::{Member, Phases, Shape};
use crate::fabric::Dragonfly;
use crate::schedule::Schedule;

/// The scatter from `root`, a rank of the dragonfly.
///
/// # Errors
/// No such root.
pub fn scatter(dragonfly: &Dragonfly, root: u32) -> Result<Schedule, AlgorithmError> {
    let shape = Shape::new(dragonfly);
    let home = shape.group_of(root);
    let mut routers = shape.routers_from(root);
    // Per router of the root's group, the leaders of the groups that it has cables to.
    let remote: Vec<Vec<Member>> = routers
        .iter()
        .map(|router| {
            let own = router.leader / shape.terminals % shape.routers;
            shape
                .groups_after(home)
                .filter(|&group| dragonfly.gateway(home, group).0 == own)
                .map(|group| Member {
                    leader: shape.first_of(group, dragonfly.gateway(group, home).0),
                    blocks: shape.group(group),
                })
                .collect()
        })
        .collect();
    for (router, groups) in routers.iter_mut().zip(&remote) {
        let blocks = groups.iter().flat_map(|group| &group.blocks);
        router.blocks.extend(blocks);
    }
    let mut phases = Phases::new();
    phases.tree(&routers);
    phases.next();
    let mut leaders: Vec<u32> = routers.iter().map(|router| router.leader).collect();
    let mut local_leaders = Vec::new();
    for (router, groups) in routers.iter().zip(remote) {
        let own = Member {
            leader: router.leader,
            blocks: Vec::new(),
        };
        let members: Vec<Member> = std::iter::once(own).chain(groups).collect();
        phases.tree(&members);
        local_leaders.extend(members.iter().skip(1).map(|group| group.leader));
    }
    phases.next();
    for leader in local_leaders {
        let routers = shape.routers_from(leader);
        phases.tree(&routers);
        leaders.extend(routers.iter().map(|router| router.leader));
    }
    phases.next();
    for leader in leaders {
        phases.tree(&shape.terminals_from(leader));
    }
    phases.schedule(dragonfly, root)
}
