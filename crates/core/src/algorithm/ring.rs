//! Ring: every rank passes on to its clockwise neighbour what it got last.
//!
//! all_gather in N-1 steps of one block; reduce_scatter is the same backwards; all_reduce is the
//! one after the other, 2(N-1) steps of an N-th of the vector (Patarasuk and Yuan 2009).

use super::{AlgorithmError, Record, Request, any_ranks, make_room};
use crate::collective::{Collective, CollectiveKind};
use crate::schedule::{Claims, Schedule, Transfer};

const CITATION: &str = "Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters \
                        of Workstations, JPDC 2009";

/// The records of this file.
pub const RECORDS: &[Record] = &[
    Record {
        name: "ring",
        label: "Ring",
        collective: CollectiveKind::AllGather,
        summary: "Pass the block received last to the clockwise neighbour, N-1 times",
        citation: CITATION,
        options: &[],
        accepts: any_ranks,
        build: all_gather,
        reversed_from: None,
    },
    Record {
        name: "ring",
        label: "Ring",
        collective: CollectiveKind::AllReduce,
        summary: "Ring reduce_scatter, then ring all_gather, on N-th parts of the vector",
        citation: CITATION,
        options: &[],
        accepts: any_ranks,
        build: all_reduce,
        reversed_from: None,
    },
];

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    pass_around(request.collective)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let collective = request.collective.with_pieces(ranks)?;
    let gathering = pass_around(Collective::new(CollectiveKind::AllGather, ranks)?)?;
    let mut schedule = gathering.reversed(collective);
    schedule.append(&gathering);
    schedule.claims = Claims {
        paper_steps: Some(2 * u64::from(ranks - 1)),
        paper_step_share: Some((1, ranks)),
        neighbours_only: true,
        schedule_steps: Some(2 * (ranks - 1)),
        chunks_sent_per_rank: Some(2 * u64::from(ranks - 1)),
    };
    Ok(schedule)
}

/// In step s, rank r sends the block of rank r - s to rank r + 1.
fn pass_around(collective: Collective) -> Result<Schedule, AlgorithmError> {
    let ranks = collective.ranks();
    let mut schedule = Schedule::new(collective);
    make_room(&mut schedule, ranks)?;
    for step in 0..ranks - 1 {
        schedule.begin_step();
        for rank in 0..ranks {
            schedule.push(Transfer::copy(
                (rank + ranks - step) % ranks,
                rank,
                (rank + 1) % ranks,
            ));
        }
    }
    schedule.claims = Claims {
        paper_steps: Some(u64::from(ranks - 1)),
        paper_step_share: Some((1, 1)),
        neighbours_only: true,
        schedule_steps: Some(ranks - 1),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
    };
    Ok(schedule)
}
