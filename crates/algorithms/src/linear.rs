//! Linear algorithm: the root sends to one rank after another, in N - 1 steps.

use super::{Algorithm, AlgorithmError, CostFormulas, Request};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const fn record(collective: CollectiveKind, summary: &'static str) -> Algorithm {
    Algorithm {
        summary,
        citation: "Folklore; linear algorithms of MPI",
        costs: CostFormulas::new("N - 1", "N - 1", "1"),
        aliases: &["lin"],
        ..Algorithm::new("linear", "Linear", collective, build)
    }
}

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    record(
        CollectiveKind::Broadcast,
        "Send the vector straight from the root to one rank after the other",
    ),
    record(
        CollectiveKind::Scatter,
        "Send blocks straight from the root to one rank after the other",
    ),
];

/// Builds the schedule: in step s the root sends to the rank s + 1 positions after it.
fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let collective: Collective = request.collective;
    let (ranks, root) = (collective.ranks(), collective.root());
    let mut schedule = Schedule::new(collective);
    for distance in 1..ranks {
        let destination = (root + distance) % ranks;
        let chunk = match collective.kind() {
            CollectiveKind::Scatter => destination,
            _ => 0,
        };
        schedule.begin_step();
        schedule.push(Transfer::copy(chunk, root, destination));
    }
    schedule.claims = Claims {
        schedule_steps: Some(ranks - 1),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
