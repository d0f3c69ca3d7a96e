//! Global link first: a scatter on a dragonfly in three phases, each down binomial trees: to one leader
//! per group, from there to one leader per router, from there to the router's ranks.
//!
//! The leader of a group is the first rank of the router on which the cable from the root's group
//! lands; in the root's group it is the root. Lists count on cyclically from the root: groups from the
//! root's, routers from the leader's, ranks from the leader.
//!
//! Cherièvre and Dorier, Design and Evaluation of Topology-aware Scatter and AllGather Algorithms for
//! Dragonfly Networks, SC 2016; leaders and lists are ours where they are silent.

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
    let leader_of = |group| shape.first_of(group, dragonfly.gateway(group, home).0);
    let mut phases = Phases::new();
    let mut groups = vec![Member {
        leader: root,
        blocks: shape.group(home),
    }];
    groups.extend(shape.groups_after(home).map(|group| Member {
        leader: leader_of(group),
        blocks: shape.group(group),
    }));
    phases.tree(&groups);
    phases.next();
    let routers: Vec<Vec<Member>> = groups
        .iter()
        .map(|group| shape.routers_from(group.leader))
        .collect();
    for group in &routers {
        phases.tree(group);
    }
    phases.next();
    for router in routers.iter().flatten() {
        phases.tree(&shape.terminals_from(router.leader));
    }
    phases.schedule(dragonfly, root)
}
