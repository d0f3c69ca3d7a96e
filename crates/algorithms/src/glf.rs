//! Global link first: a scatter or broadcast on a dragonfly, along binomial trees in three phases.
//! First the root sends to one leader per group. Each of these leaders sends to one leader per
//! router of its group. Each of those sends to the ranks of its router.
//!
//! The leader of the root's group is the root. The leader of another group is the first rank of the
//! router at which the cable from the root's group ends. All lists are cyclic: groups start at the
//! root's group, routers at the leader's router, and ranks at the leader.
//!
//! With G groups of A routers of T ranks, the algorithm takes ceil(log2 G) + ceil(log2 A) +
//! ceil(log2 T) steps, and the root sends in each of them. A rank receives once. In a scatter, the
//! leader at distance v in its tree gets the blocks of at most L groups, routers or ranks, where L
//! is the largest power of two that divides v. If B is the largest power of two below G, a leader
//! of a group gets the blocks of at most max(G - B, B / 2) groups (v = B or v = B / 2).
//!
//! The source (Cherièvre and Dorier) describes the scatter. Where the source does not state leaders
//! or the order of lists, opticoll chooses them.

use super::scatter_tree::{DragonflyShape, Member, TreePhases, depth};
use super::{Algorithm, AlgorithmError, CostFormulas, Request, tar};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule};

const STEPS: &str = "ceil(log2 G) + ceil(log2 A) + ceil(log2 T)";

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Send the vector down trees among groups, then routers, then ranks",
        citation: tar::CITATION,
        costs: CostFormulas::new(STEPS, STEPS, "1"),
        families: tar::FAMILIES,
        ..Algorithm::new("glf", "Global link first", CollectiveKind::Broadcast, build)
    },
    Algorithm {
        summary: "Send blocks down trees among groups, then routers, then ranks",
        citation: tar::CITATION,
        costs: CostFormulas::new(STEPS, "N - 1", "<= A T max(G - B, B / 2)"),
        families: tar::FAMILIES,
        ..Algorithm::new("glf", "Global link first", CollectiveKind::Scatter, build)
    },
];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let machine = request.groups()?;
    let (shape, root) = (DragonflyShape::new(machine), request.collective.root());
    let home = shape.group_of(root);
    let leader_of = |group| shape.first_of(group, machine.gateway(group, home).0);
    let mut phases = TreePhases::new(request.collective.kind());
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
        phases.tree(&shape.ranks_from(router.leader));
    }
    let steps = depth(shape.groups) + depth(shape.routers) + depth(shape.terminals);
    let sent = match request.collective.kind() {
        CollectiveKind::Scatter => shape.ranks() - 1,
        _ => steps,
    };
    Ok(phases.schedule(
        request.collective,
        Claims {
            schedule_steps: Some(steps),
            chunks_sent_per_rank: Some(sent.into()),
            ..Claims::default()
        },
    ))
}
