//! Binary tree: reduction to rank 0 along a binomial tree, then broadcast along the same tree.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, binomial};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Reduce whole vectors to rank 0 along a tree, then broadcast along the same tree",
    citation: "Thakur, Rabenseifner and Gropp, IJHPCA 2005; a baseline of the WRHT paper",
    costs: CostFormulas::new("2 ceil(log2 N)", "ceil(log2 N)", "ceil(log2 N)"),
    ..Algorithm::new(
        "binary_tree",
        "Binary tree",
        CollectiveKind::AllReduce,
        build,
    )
}];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let down = binomial::broadcast(&Request {
        collective: Collective::new(CollectiveKind::Broadcast, ranks)?,
        ..*request
    })?;
    let mut schedule = down.reversed(request.collective);
    schedule.append(&down, 1);
    let steps = 2 * ranks.next_power_of_two().ilog2();
    schedule.claims = Claims {
        paper_steps: Some(u64::from(steps)),
        schedule_steps: Some(steps),
        // Rank 0 has one child per level of the tree. The other ranks have fewer children.
        chunks_sent_per_rank: Some(u64::from(steps / 2)),
        ..Claims::default()
    };
    Ok(schedule)
}
