//! Gather and broadcast: all blocks are gathered at rank 0 along a binomial tree and broadcast
//! along the same tree. In the broadcast, a rank sends each child all blocks except the blocks of
//! the child's subtree.
//!
//! The algorithm takes 2 ceil(log2 N) steps. Rank 0 sends N ceil(log2 N) - (N - 1) blocks, many
//! more than the other ranks send.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, binomial, push_cyclic};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Gather at rank 0 along a binomial tree, then broadcast along the same tree",
    citation: "Folklore; the basic linear and tree all_gathers of MPI libraries",
    costs: CostFormulas::new("2 ceil(log2 N)", "N ceil(log2 N) - (N - 1)", "N - 1"),
    ..Algorithm::new(
        "gather_broadcast",
        "Gather and broadcast",
        CollectiveKind::AllGather,
        build,
    )
}];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let tree = binomial::edges(ranks);
    let mut schedule = Schedule::new(request.collective);
    for step in tree.iter().rev() {
        schedule.begin_step();
        for (parent, child, subtree) in step {
            let blocks = (subtree.start, subtree.len() as u32);
            push_cyclic(&mut schedule, blocks, *child, *parent);
        }
    }
    for step in &tree {
        schedule.begin_step();
        for (parent, child, subtree) in step {
            let others = (subtree.end, ranks - subtree.len() as u32);
            push_cyclic(&mut schedule, others, *parent, *child);
        }
    }
    let depth = tree.len() as u32;
    // Rank 0 sends each child all blocks except the blocks of the child's subtree. The subtrees
    // have N - 1 blocks in total.
    let sent = u64::from(ranks) * u64::from(depth) - u64::from(ranks - 1);
    schedule.claims = Claims {
        schedule_steps: Some(2 * depth),
        chunks_sent_per_rank: Some(if depth == 0 { 0 } else { sent }),
        ..Claims::default()
    };
    Ok(schedule)
}
