//! Recursive doubling: in each step a rank exchanges all its data with the partner at distance 1,
//! 2, 4, ...
//!
//! The algorithm takes log2 P steps, where P is the largest power of two that is at most N. If P <
//! N, the other ranks fold (see `fold.rs`), which takes two more steps.

use super::fold::Fold;
use super::{Algorithm, AlgorithmError, CostFormulas, MPICH, Request, push_cyclic};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Exchange all blocks of a rank with the partner at distance 1, 2, 4, ...",
        citation: MPICH,
        costs: CostFormulas::new("log2 P + 2 F", "<= N - 1 + 2 F (P - 1)", "N - 1"),
        short_messages: &[CollectiveKind::AllGather],
        ..Algorithm::new(
            "recursive_doubling",
            "Recursive doubling",
            CollectiveKind::AllGather,
            all_gather,
        )
    },
    Algorithm {
        summary: "Exchange and combine whole vectors with the partner at distance 1, 2, 4, ...",
        citation: MPICH,
        costs: CostFormulas::new("log2 P + 2 F", "log2 P + F", "log2 P + F"),
        short_messages: &[CollectiveKind::AllReduce],
        ..Algorithm::new(
            "recursive_doubling",
            "Recursive doubling",
            CollectiveKind::AllReduce,
            all_reduce,
        )
    },
    Algorithm {
        summary: "Exchange signals with the partner at distance 1, 2, 4, ...",
        citation: MPICH,
        costs: CostFormulas::new("log2 P + 2 F", "log2 P + F", "log2 P + F"),
        short_messages: &[CollectiveKind::Barrier],
        ..Algorithm::new(
            "recursive_doubling",
            "Recursive doubling",
            CollectiveKind::Barrier,
            all_reduce,
        )
    },
];

/// Builds the all_gather. At any time, the blocks that a rank has belong to contiguous ranks.
pub(super) fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let fold = Fold::new(ranks);
    let mut schedule = Schedule::new(request.collective);
    if fold.waiting > 0 {
        schedule.begin_step();
        for (waiting, partner) in fold.pairs() {
            schedule.push(Transfer::copy(waiting, waiting, partner));
        }
    }
    for distance in fold.distances() {
        schedule.begin_step();
        for index in 0..fold.core {
            let blocks = fold.covered(index & !(distance - 1), distance);
            schedule.push(Transfer {
                count: blocks.len() as u32,
                ..Transfer::copy(blocks.start, fold.rank(index), fold.rank(index ^ distance))
            });
        }
    }
    if fold.waiting > 0 {
        schedule.begin_step();
        for (waiting, partner) in fold.pairs() {
            push_cyclic(&mut schedule, (waiting + 1, ranks - 1), partner, waiting);
        }
    }
    // The first rank that exchanges sends the most blocks. If ranks fold, it sends its own blocks
    // and the blocks of a waiting rank.
    let exchanged: u32 = fold
        .distances()
        .map(|distance| distance + distance.min(fold.waiting))
        .sum();
    schedule.claims = Claims {
        schedule_steps: Some(fold.core.ilog2() + 2 * fold.waits()),
        chunks_sent_per_rank: Some(u64::from(exchanged) + u64::from(fold.waits() * (ranks - 1))),
        ..Claims::default()
    };
    Ok(schedule)
}

/// Builds the all_reduce of whole vectors, and the barrier, whose signals replace the vectors.
fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let fold = Fold::new(request.ranks());
    let mut schedule = Schedule::new(request.collective);
    if fold.waiting > 0 {
        schedule.begin_step();
        for (waiting, partner) in fold.pairs() {
            schedule.push(Transfer::reduce(0, waiting, partner));
        }
    }
    for distance in fold.distances() {
        schedule.begin_step();
        for index in 0..fold.core {
            let partner = fold.rank(index ^ distance);
            schedule.push(Transfer::reduce(0, fold.rank(index), partner));
        }
    }
    if fold.waiting > 0 {
        schedule.begin_step();
        for (waiting, partner) in fold.pairs() {
            schedule.push(Transfer::copy(0, partner, waiting));
        }
    }
    let exchanges = fold.core.ilog2();
    let steps = exchanges + 2 * fold.waits();
    schedule.claims = Claims {
        paper_steps: Some(u64::from(steps)),
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some(u64::from(exchanges + fold.waits())),
        ..Claims::default()
    };
    Ok(schedule)
}
