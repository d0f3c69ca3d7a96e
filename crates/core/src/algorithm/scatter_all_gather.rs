//! Scatter and all_gather: a broadcast of long vectors. The vector's N parts are scattered along a
//! binomial tree, then collected around a ring.
//!
//! Ranks that relayed parts in the scatter keep them, so the ring brings nobody what it has: at
//! distance v from the root, with lowest set bit D, these are the parts v .. min(v + D, N); the root
//! has all.

use super::{AlgorithmError, Costs, Record, Request, any_ranks, binomial, make_room};
use crate::collective::{Collective, CollectiveKind};
use crate::schedule::{Claims, Schedule, Transfer};

/// The records of this file.
pub const RECORDS: &[Record] = &[Record {
    name: "scatter_all_gather",
    label: "Scatter and all_gather",
    collective: CollectiveKind::Broadcast,
    summary: "Scatter the vector's parts along a binomial tree, then collect them around a ring",
    citation: "Barnett, Gupta, Payne, Shuler, van de Geijn and Watts, Interprocessor Collective \
               Communication Library, SHPCC 1994",
    options: &[],
    costs: Costs::new("ceil(log2 N) + N - 1", "2 (N - 1) / N", "1"),
    accepts: any_ranks,
    build,
    reversed_from: None,
}];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let (ranks, root) = (request.ranks(), request.collective.root());
    let scattering = binomial::scatter(&Request {
        collective: Collective::new(CollectiveKind::Scatter, ranks)?.with_root(root)?,
        ..*request
    })?;
    let mut schedule = Schedule::new(request.collective.with_pieces(ranks)?);
    make_room(&mut schedule, ranks)?;
    schedule.append(&scattering);
    // The parts that the rank at a distance from the root has after the scatter, its own first.
    let relayed = |distance: u32| match distance {
        0 => ranks,
        _ => (1 << distance.trailing_zeros()).min(ranks - distance),
    };
    for step in 0..ranks - 1 {
        schedule.begin_step();
        for sender in 0..ranks {
            let receiver = (sender + 1) % ranks;
            let part = (sender + ranks - step) % ranks;
            if (part + ranks - receiver) % ranks < relayed(receiver) {
                continue;
            }
            let rank = |distance: u32| (root + distance) % ranks;
            schedule.push(Transfer::copy(rank(part), rank(sender), rank(receiver)));
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(scattering.steps() as u32 + ranks - 1),
        // The root sends N - 1 parts in either phase: its neighbour on the ring has one only.
        chunks_sent_per_rank: Some(2 * u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
