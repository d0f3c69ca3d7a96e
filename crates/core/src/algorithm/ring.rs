//! Ring: every rank passes on to its clockwise neighbour what it got last.
//!
//! all_gather in N-1 steps of one block; reduce_scatter is the same backwards. all_reduce passes
//! partial sums around and then results, both clockwise, in 2(N-1) steps of an N-th of the vector
//! (Patarasuk and Yuan 2009).

use super::{AlgorithmError, Costs, Record, Request, any_ranks, make_room, make_room_for};
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
        costs: Costs::new("N - 1", "N - 1", "N - 1"),
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
        costs: Costs::new("2 (N - 1)", "2 (N - 1) / N", "2 (N - 1) / N"),
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
    let mut schedule = Schedule::new(collective);
    make_room_for(&mut schedule, 2 * gathering.len() as u64)?;
    // In step s, rank r sends its sum of part r - s - 1, so that part r ends at rank r.
    for step in 0..ranks - 1 {
        schedule.begin_step();
        for rank in 0..ranks {
            let part = (rank + ranks - step - 1) % ranks;
            schedule.push(Transfer::reduce(part, rank, (rank + 1) % ranks));
        }
    }
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
