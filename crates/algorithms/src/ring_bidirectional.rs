//! Bidirectional ring: every block travels in both directions around the ring at the same time,
//! half-way in each direction.

use super::{Algorithm, AlgorithmError, CostFormulas, LinkLoadBound, Request, make_room};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Pass blocks to both neighbours in each step, ceil((N-1)/2) times",
    citation: "Folklore; the two-way form of Patarasuk and Yuan's ring, JPDC 2009",
    costs: CostFormulas::new("floor(N / 2)", "N - 1", "N - 1"),
    link_load_bound: |_, ring| {
        let steps = ring.ranks.saturating_sub(1).div_ceil(2);
        Ok(Some(LinkLoadBound::uniform(steps.into(), 1, ring.channels)))
    },
    ..Algorithm::new(
        "ring_bidirectional",
        "Bidirectional ring",
        CollectiveKind::AllGather,
        build,
    )
}];

/// Builds the schedule: in step s, rank r sends the block of rank r - s clockwise and the block of
/// rank r + s counter-clockwise. For even N the last step is clockwise only.
fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let (clockwise, counter_clockwise) = (ranks / 2, (ranks - 1) / 2);
    let mut schedule = Schedule::new(request.collective);
    make_room(&mut schedule, ranks)?;
    for step in 0..clockwise {
        schedule.begin_step();
        for rank in 0..ranks {
            schedule.push(Transfer::copy(
                (rank + ranks - step) % ranks,
                rank,
                (rank + 1) % ranks,
            ));
        }
        if step >= counter_clockwise {
            continue;
        }
        for rank in 0..ranks {
            schedule.push(Transfer::copy(
                (rank + step) % ranks,
                rank,
                (rank + ranks - 1) % ranks,
            ));
        }
    }
    schedule.claims = Claims {
        neighbours_only: true,
        schedule_steps: Some(clockwise),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
