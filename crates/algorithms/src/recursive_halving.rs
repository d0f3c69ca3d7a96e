//! Recursive halving: reduce_scatter as the reversed recursive doubling, with the farthest partner
//! first.
//!
//! In each step a rank hands its partner, at distance N/2, N/4, ..., 1, the sums of the half of its
//! blocks that belong to the partner's side.

use super::{Algorithm, AlgorithmError, CostFormulas, MPICH, Request, recursive_doubling};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::Schedule;

/// The records of this file.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Send the partner the sums of its half of the blocks, at distance N/2, N/4, ..., 1",
    citation: MPICH,
    costs: CostFormulas::new("log2 P + 2 F", "N - 1", "<= N - 1 + 2 F (P - 1)"),
    reversed_from: Some(CollectiveKind::AllGather),
    short_messages: &[CollectiveKind::ReduceScatter],
    ..Algorithm::new(
        "recursive_halving",
        "Recursive halving",
        CollectiveKind::ReduceScatter,
        build,
    )
}];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    recursive_doubling::all_gather(request)
}
