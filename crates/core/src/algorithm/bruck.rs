//! Bruck's all_gather: in step i, rank r sends all it holds (2^i blocks, fewer in the last step)
//! to rank r - 2^i. ceil(log2 N) steps for any N.

use super::{AlgorithmError, Record, Request, any_ranks, make_room};
use crate::collective::CollectiveKind;
use crate::schedule::{Claims, Schedule, Transfer};

/// The records of this file.
pub const RECORDS: &[Record] = &[Record {
    name: "bruck",
    label: "Bruck",
    collective: CollectiveKind::AllGather,
    summary: "Send all blocks held to the rank 1, 2, 4, ... places before",
    citation: "Bruck et al., Efficient Algorithms for All-to-All Communications in Multiport \
               Message-Passing Systems, TPDS 1997",
    options: &[],
    accepts: any_ranks,
    build,
    reversed_from: None,
}];

/// Before the step with distance D, rank r holds the blocks of ranks r, r + 1, ..., r + D - 1.
fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let mut schedule = Schedule::new(request.collective);
    make_room(&mut schedule, ranks)?;
    let mut distance = 1;
    while distance < ranks {
        schedule.begin_step();
        for source in 0..ranks {
            for offset in 0..distance.min(ranks - distance) {
                schedule.push(Transfer::copy(
                    (source + offset) % ranks,
                    source,
                    (source + ranks - distance) % ranks,
                ));
            }
        }
        distance *= 2;
    }
    schedule.claims = Claims {
        schedule_steps: Some(ranks.next_power_of_two().ilog2()),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
