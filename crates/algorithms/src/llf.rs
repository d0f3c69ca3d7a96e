//! Local link first: a scatter or broadcast on a dragonfly in four phases.
//! 1. The root sends to one leader per router of its group.
//! 2. Each of these leaders sends to one leader per group to which its router has a cable.
//! 3. The leader of a group sends to one leader per router of the group.
//! 4. The leader of a router sends to the ranks of the router.
//!
//! The leader of the root's router is the root. The leader of another group is the first rank of
//! the router at which the cable from the root's group ends. The leaders of other routers are their
//! first ranks. All lists are cyclic from the root. All trees are binomial, except for the second
//! phase with `groups=flat`, in which a leader sends to one group after another. A binomial tree
//! among groups relays blocks, which may then cross more than one global link. With `groups=flat`
//! every block crosses at most one global link.
//!
//! With G groups of A routers of T ranks, a router of the root's group has cables to at most Q =
//! ceil((G - 1) / A) groups. The first phase takes ceil(log2 A) steps, the second ceil(log2 (1 +
//! Q)) steps (Q steps with `groups=flat`), the third ceil(log2 A) steps if G > 1, and the fourth
//! ceil(log2 T) steps.
//!
//! The source (Cherièvre and Dorier) describes the scatter. Where the source does not state leaders
//! or the order of lists, opticoll chooses them.

use super::scatter_tree::{DragonflyShape, Member, TreePhases, depth};
use super::{Algorithm, AlgorithmError, CostFormulas, OptionRecord, Request, choice, tar};
use opticoll_fabric::fabric::Groups;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule};

const STEPS: &str =
    "(1 + min(1, G - 1)) ceil(log2 A) + ceil(log2 (1 + ceil((G - 1) / A))) + ceil(log2 T)";
const OPTIONS: &[OptionRecord] = &[OptionRecord::new(
    "groups",
    "route from a router to the other groups: tree, from group to group down a tree; flat, \
     straight",
)
.range("tree, flat")
.default("tree")
.tries(&["flat"])];

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Send the vector down trees among the routers of the root's group, then among \
            groups, routers and ranks",
        citation: tar::CITATION,
        options: OPTIONS,
        costs: CostFormulas::new(
            STEPS,
            "<= ceil(log2 A) + ceil(log2 (1 + ceil((G - 1) / A))) + ceil(log2 T)",
            "1",
        ),
        families: tar::FAMILIES,
        ..Algorithm::new("llf", "Local link first", CollectiveKind::Broadcast, build)
    },
    Algorithm {
        summary: "Send blocks down trees among the routers of the root's group, then among groups, \
                  routers and ranks",
        citation: tar::CITATION,
        options: OPTIONS,
        costs: CostFormulas {
            steps: Some(STEPS),
            sent: Some("N - 1"),
            received: None,
        },
        families: tar::FAMILIES,
        ..Algorithm::new("llf", "Local link first", CollectiveKind::Scatter, build)
    },
];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let machine = request.groups()?;
    let is_flat = choice(request.spec, "groups", &[("tree", false), ("flat", true)])?;
    let (shape, root) = (DragonflyShape::new(machine), request.collective.root());
    let mut routers = shape.routers_from(root);
    let remote: Vec<Vec<Member>> = routers
        .iter()
        .map(|router| cabled_groups(machine, &shape, root, router.leader))
        .collect();
    for (router, groups) in routers.iter_mut().zip(&remote) {
        let blocks = groups.iter().flat_map(|group| &group.blocks);
        router.blocks.extend(blocks);
    }
    let mut phases = TreePhases::new(request.collective.kind());
    phases.tree(&routers);
    phases.next();
    let mut leaders: Vec<u32> = routers.iter().map(|router| router.leader).collect();
    let mut local_leaders = Vec::new();
    for (router, groups) in routers.iter().zip(remote) {
        let local = Member {
            leader: router.leader,
            blocks: Vec::new(),
        };
        let members: Vec<Member> = std::iter::once(local).chain(groups).collect();
        if is_flat {
            phases.star(&members);
        } else {
            phases.tree(&members);
        }
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
        phases.tree(&shape.ranks_from(leader));
    }
    Ok(phases.schedule(request.collective, claims(&shape, is_flat, request)))
}

/// Returns a member for each group to which the router of `leader` has a cable. `leader` is a rank
/// of the root's group.
fn cabled_groups(
    machine: &dyn Groups,
    shape: &DragonflyShape,
    root: u32,
    leader: u32,
) -> Vec<Member> {
    let home = shape.group_of(root);
    let local = leader / shape.terminals % shape.routers;
    shape
        .groups_after(home)
        .filter(|&group| machine.gateway(home, group).0 == local)
        .map(|group| Member {
            leader: shape.first_of(group, machine.gateway(group, home).0),
            blocks: shape.group(group),
        })
        .collect()
}

fn claims(shape: &DragonflyShape, is_flat: bool, request: &Request<'_>) -> Claims {
    let cables = (shape.groups - 1).div_ceil(shape.routers);
    let among_groups = if is_flat { cables } else { depth(1 + cables) };
    let local_phases = if shape.groups > 1 { 2 } else { 1 };
    let scatter = request.collective.kind() == CollectiveKind::Scatter;
    Claims {
        schedule_steps: Some(
            local_phases * depth(shape.routers) + among_groups + depth(shape.terminals),
        ),
        chunks_sent_per_rank: scatter.then_some(u64::from(shape.ranks() - 1)),
        ..Claims::default()
    }
}
