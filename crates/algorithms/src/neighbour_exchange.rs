//! Neighbour exchange: each rank exchanges with its right and its left neighbour in turn, and
//! forwards the two blocks that it received last. The algorithm takes N/2 steps, for even N.
//!
//! On a ring with two or more wavelengths a step fits into one slot, because each block is a
//! separate lightpath. The papers count the time of one block per step, although all steps but the
//! first send two blocks.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, make_room_for};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Exchange the two most recent blocks with the right and the left neighbour in turn",
    citation: "Chen et al., Performance Evaluation of Allgather Algorithms on Terascale Linux \
               Cluster with Fast Ethernet, HPC Asia 2005",
    costs: CostFormulas::new("N / 2", "N - 1", "N - 1"),
    accepts: even_ranks,
    ..Algorithm::new(
        "neighbour_exchange",
        "Neighbour exchange",
        CollectiveKind::AllGather,
        build,
    )
}];

fn even_ranks(ranks: u32) -> Result<(), String> {
    if ranks % 2 == 0 {
        return Ok(());
    }
    Err(
        "neighbours form pairs, so the number of ranks must be even; ring_bidirectional runs on \
         any number"
            .into(),
    )
}

/// Builds the schedule. Even ranks exchange with their right neighbour in the first step, with
/// their left neighbour in the second step, and so on; odd ranks do the opposite. From the second
/// step on, each rank sends a pair of blocks (2 b, 2 b + 1).
fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let mut schedule = Schedule::new(request.collective);
    make_room_for(&mut schedule, u64::from(ranks) * u64::from(ranks / 2))?;
    // Index b of the pair of blocks that each rank received last; indexed by rank.
    let mut latest: Vec<u32> = (0..ranks).map(|rank| rank / 2).collect();
    for step in 0..ranks / 2 {
        schedule.begin_step();
        let partner = |rank: u32| {
            if (rank + step) % 2 == 0 {
                (rank + 1) % ranks
            } else {
                (rank + ranks - 1) % ranks
            }
        };
        for rank in 0..ranks {
            let pair = latest[rank as usize];
            let (chunk, count) = if step == 0 { (rank, 1) } else { (2 * pair, 2) };
            schedule.push(Transfer {
                count,
                ..Transfer::copy(chunk, rank, partner(rank))
            });
        }
        if step > 0 {
            latest = (0..ranks)
                .map(|rank| latest[partner(rank) as usize])
                .collect();
        }
    }
    schedule.claims = Claims {
        paper_steps: Some(u64::from(ranks / 2)),
        neighbours_only: true,
        schedule_steps: Some(ranks / 2),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
    };
    Ok(schedule)
}
