//! all_to_all by recursive doubling: store and forward along the edges of a hypercube.
//!
//! The algorithm takes log2 N steps. In step i, ranks r and r XOR 2^i exchange half of their
//! blocks: rank r sends the blocks whose destination differs from r in bit i. Before step i, the
//! block from rank o to rank t is therefore at the rank with the low i bits of t and the other bits
//! of o.

use super::{
    Algorithm, AlgorithmError, CostFormulas, LinkLoadBound, Request, make_room_for, powers_of_two,
};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Exchange the blocks for the partner's half of the ranks with the partner at distance \
        1, 2, 4, ... (store and forward)",
    citation: "Johnsson and Ho, Optimum Broadcasting and Personalized Communication in Hypercubes, \
               IEEE Trans. Computers 1989",
    costs: CostFormulas::new("log2 N", "N / 2 log2 N", "N / 2 log2 N"),
    accepts: powers_of_two,
    link_load_bound: |_, ring| {
        let distances = (0..ring.ranks.ilog2()).map(|bit| 1 << bit);
        let half = u64::from(ring.ranks / 2);
        let steps = distances.map(|distance| (distance, half));
        Ok(Some(LinkLoadBound::from_distances(steps, ring)))
    },
    ..Algorithm::new(
        "recursive_doubling",
        "Recursive doubling",
        CollectiveKind::AllToAll,
        all_to_all,
    )
}];

fn all_to_all(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let steps = ranks.ilog2();
    let moves = u64::from(ranks / 2) * u64::from(steps);
    let mut schedule = Schedule::new(request.collective);
    make_room_for(&mut schedule, moves.saturating_mul(ranks.into()))?;
    for distance in (0..steps).map(|bit| 1 << bit) {
        schedule.begin_step();
        for source in 0..ranks {
            let low = distance - 1;
            // Bits below the step's bit are arbitrary in the origin; bits above it are arbitrary in
            // the destination.
            for origin in (0..distance).map(|free| source & !low | free) {
                let target = (source ^ distance) & (distance | low);
                for above in (0..ranks).step_by(2 * distance as usize) {
                    let block = origin * ranks + (target | above);
                    schedule.push(Transfer::copy(block, source, source ^ distance));
                }
            }
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some(moves),
        ..Claims::default()
    };
    Ok(schedule)
}
