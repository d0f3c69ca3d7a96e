//! Chain: the vector is cut into pieces, and each rank forwards the pieces to the next rank.
//!
//! The rank at distance v from the root sends piece p in step v + p. Once the pipeline is full,
//! every rank but the last sends one piece in each step. A vector of M bytes in K pieces takes N -
//! 2 + K steps of M / K bytes.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, SEGMENTS, make_room_for, segments};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Pass the pieces of the vector from each rank to the next, one after the other",
    citation: "Folklore; pipelined chains of MPI, as in Pješivac-Grbović et al., Cluster \
               Computing 2007",
    options: SEGMENTS,
    costs: CostFormulas::new("N - 2 + K", "1", "1"),
    ..Algorithm::new("chain", "Chain", CollectiveKind::Broadcast, build)
}];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let (ranks, root) = (request.ranks(), request.collective.root());
    let pieces = segments(request.spec)?;
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    let links = ranks - 1;
    make_room_for(&mut schedule, u64::from(links) * u64::from(pieces))?;
    let steps = if links == 0 { 0 } else { links - 1 + pieces };
    for step in 0..steps {
        schedule.begin_step();
        for distance in (step + 1).saturating_sub(pieces)..links.min(step + 1) {
            schedule.push(Transfer::copy(
                step - distance,
                (root + distance) % ranks,
                (root + distance + 1) % ranks,
            ));
        }
    }
    schedule.claims = Claims {
        neighbours_only: true,
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some(if links == 0 { 0 } else { pieces.into() }),
        ..Claims::default()
    };
    Ok(schedule)
}
