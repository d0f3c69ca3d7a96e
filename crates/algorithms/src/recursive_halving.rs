//! Recursive halving: the reduce_scatter that reverses recursive doubling, with the most distant
//! partner first.
//!
//! The partners are at distances N/2, N/4, ..., 1. In each step a rank divides its blocks into two
//! halves, and sends its partner the sums of the half that contains the partner's block.

use super::{Algorithm, AlgorithmError, CostFormulas, MPICH, Request, recursive_doubling};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::Schedule;

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Send the partner at distance N/2, N/4, ..., 1 the sums of the partner's half of \
    the blocks",
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
