//! Dissemination barrier: in round k every rank signals to the rank 2^k positions after it. After
//! ceil(log2 N) rounds every rank has a signal from every other rank, direct or relayed, for any N.

use super::{Algorithm, AlgorithmError, CostFormulas, Request};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Send a signal to the rank 1, 2, 4, ... positions after the sender",
    citation: "Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, \
               International Journal of Parallel Programming 1988",
    costs: CostFormulas::new("ceil(log2 N)", "ceil(log2 N)", "ceil(log2 N)"),
    ..Algorithm::new(
        "dissemination",
        "Dissemination",
        CollectiveKind::Barrier,
        build,
    )
}];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let rounds = ranks.next_power_of_two().ilog2();
    let mut schedule = Schedule::new(request.collective);
    for round in 0..rounds {
        schedule.begin_step();
        for rank in 0..ranks {
            schedule.push(Transfer::reduce(0, rank, (rank + (1 << round)) % ranks));
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(rounds),
        chunks_sent_per_rank: Some(rounds.into()),
        ..Claims::default()
    };
    Ok(schedule)
}
