//! Bruck's algorithms: ceil(log2 N) steps for any number of ranks N.
//!
//! all_gather: in step i, rank r sends all blocks that it has (2^i blocks, fewer in the last step)
//! to rank r - 2^i.
//!
//! all_to_all: the bits of the offset o determine the route of the block from rank r to rank r + o.
//! If bit i of o is set, the block moves in step i from rank r + (o mod 2^i) to the rank 2^i after
//! it. In step i a rank sends one block for every o < N with bit i set, which is about N/2 blocks.

use super::{
    Algorithm, AlgorithmError, CostFormulas, LinkLoadBound, Request, all_pairs, make_room_for,
    push_cyclic,
};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const CITATION: &str = "Bruck et al., Efficient Algorithms for All-to-All Communications in \
    Multiport Message-Passing Systems, TPDS 1997";

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Send all blocks of a rank to the rank 1, 2, 4, ... positions before the sender",
        citation: CITATION,
        costs: CostFormulas::new("ceil(log2 N)", "N - 1", "N - 1"),
        ..Algorithm::new("bruck", "Bruck", CollectiveKind::AllGather, all_gather)
    },
    Algorithm {
        summary: "Forward blocks by the bits of their distance, to the rank 1, 2, 4, ... \
                  positions after the sender",
        citation: CITATION,
        costs: CostFormulas::new(
            "ceil(log2 N)",
            "<= N / 2 ceil(log2 N)",
            "<= N / 2 ceil(log2 N)",
        ),
        transfers: |ranks| all_pairs(ranks) * u64::from(ranks.max(2).ilog2()) / 2,
        link_load_bound: |_, ring| {
            let distances = (0..ring.ranks.next_power_of_two().ilog2()).map(|bit| 1 << bit);
            let steps = distances.map(|distance: u32| {
                let offsets = (0..ring.ranks).filter(|offset| offset & distance > 0);
                (distance, offsets.count() as u64)
            });
            Ok(Some(LinkLoadBound::from_distances(steps, ring)))
        },
        ..Algorithm::new("bruck", "Bruck", CollectiveKind::AllToAll, all_to_all)
    },
];

/// Builds the all_gather. Before the step with distance D, rank r has the blocks of ranks r, r + 1,
/// ..., r + D - 1.
fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let mut schedule = Schedule::new(request.collective);
    let mut distance = 1;
    while distance < ranks {
        schedule.begin_step();
        for source in 0..ranks {
            let blocks = (source, distance.min(ranks - distance));
            let destination = (source + ranks - distance) % ranks;
            push_cyclic(&mut schedule, blocks, source, destination);
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

fn all_to_all(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let steps = ranks.next_power_of_two().ilog2();
    let moves: u64 = (0..ranks)
        .map(|offset| u64::from(offset.count_ones()))
        .sum();
    let mut schedule = Schedule::new(request.collective);
    make_room_for(&mut schedule, moves.saturating_mul(ranks.into()))?;
    for distance in (0..steps).map(|bit| 1 << bit) {
        schedule.begin_step();
        for source in 0..ranks {
            let destination = (source + distance) % ranks;
            for offset in (0..ranks).filter(|offset| offset & distance > 0) {
                let first = (source + ranks - (offset & (distance - 1))) % ranks;
                let last = (first + offset) % ranks;
                schedule.push(Transfer::copy(first * ranks + last, source, destination));
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
