//! Cyclic doubling: doubling along a cycle, with the longest distance first. The algorithm is
//! Bruck's all_gather with the distances in reverse order.
//!
//! The s = ceil(log2 N) steps have the distances ceil(N / 2), ceil(N / 4), ..., 1. In a step with
//! distance d, rank r sends to rank r + d all blocks that it has, except blocks that rank r + d
//! already has. Long distances have small messages and short distances have large messages. Let N
//! be a power of two. If data travel from neighbour to neighbour, a message at distance 2^i crosses
//! 2^i links of a ring, and contains N / 2^(i + 1) blocks.
//!
//! Every distance is at most the sum of the later distances plus 1, so the sums of subsets of the
//! distances are all numbers 0, ..., N - 1. Hence every rank ends with the blocks of all ranks.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, all_pairs, make_room};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const CITATION: &str = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication \
    Operations in MPICH, IJHPCA 2005; along a cycle opticoll";

/// Families on which a message costs more if its distance is longer. On other families the order of
/// the distances has no effect, so Bruck's algorithm suffices.
const FAMILIES: &[&str] = &["circuit_switch"];

const NAME: &str = "cyclic_doubling";
const LABEL: &str = "Cyclic doubling";

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Send all blocks of a rank to the rank N/2, N/4, ..., 1 positions after the \
        sender",
        citation: CITATION,
        families: FAMILIES,
        costs: CostFormulas::new("ceil(log2 N)", "N - 1", "N - 1"),
        transfers: all_pairs,
        ..Algorithm::new(NAME, LABEL, CollectiveKind::AllGather, all_gather)
    },
    Algorithm {
        summary: "Reduce halves, quarters, ... of the vector over distances 1, 2, 4, ..., then \
                  gather the results in reverse order",
        citation: CITATION,
        families: FAMILIES,
        costs: CostFormulas::new("2 ceil(log2 N)", "2 (N - 1) / N", "2 (N - 1) / N"),
        transfers: |ranks| 2 * all_pairs(ranks),
        ..Algorithm::new(NAME, LABEL, CollectiveKind::AllReduce, all_reduce)
    },
];

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    gathering(request.collective, Direction::Forward)
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

impl Direction {
    /// Returns the rank that is `places` positions after `rank` on a cycle of `ranks` ranks,
    /// counted in this direction.
    fn advance(self, rank: u32, places: u32, ranks: u32) -> u32 {
        match self {
            Direction::Forward => (rank + places) % ranks,
            Direction::Backward => (rank + ranks - places) % ranks,
        }
    }

    fn opposite(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// Builds the all_gather whose blocks move in `direction` around the cycle.
fn gathering(collective: Collective, direction: Direction) -> Result<Schedule, AlgorithmError> {
    let ranks = collective.ranks();
    let steps = ranks.next_power_of_two().ilog2();
    let mut schedule = Schedule::new(collective);
    make_room(&mut schedule, ranks)?;
    // Offsets of the blocks that every rank has, as a list and as a table. Offset o at rank r
    // stands for the block of the rank that is o positions before r.
    let mut offsets = vec![0];
    let mut is_held = vec![false; ranks as usize];
    is_held[0] = true;
    for step in 1..=steps {
        let distance = ranks.div_ceil(1 << step);
        schedule.begin_step();
        let sent: Vec<u32> = offsets
            .iter()
            .copied()
            .filter(|before| before + distance < ranks && !is_held[(before + distance) as usize])
            .collect();
        for source in 0..ranks {
            let destination = direction.advance(source, distance, ranks);
            for before in &sent {
                let block = direction.opposite().advance(source, *before, ranks);
                schedule.push(Transfer::copy(block, source, destination));
            }
        }
        for before in sent {
            offsets.push(before + distance);
            is_held[(before + distance) as usize] = true;
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some(u64::from(ranks.saturating_sub(1))),
        ..Claims::default()
    };
    Ok(schedule)
}

/// Builds the all_reduce. The first half is the time reversal of a backward all_gather, so both
/// halves send in the forward direction and use the same circuits.
fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let blocks = Collective::new(CollectiveKind::AllGather, ranks)?;
    let mut schedule =
        gathering(blocks, Direction::Backward)?.reversed(request.collective.with_pieces(ranks)?);
    let gathering = gathering(blocks, Direction::Forward)?;
    schedule.append(&gathering, 1);
    schedule.claims = Claims {
        schedule_steps: gathering.claims.schedule_steps.map(|steps| 2 * steps),
        chunks_sent_per_rank: gathering.claims.chunks_sent_per_rank.map(|sent| 2 * sent),
        ..Claims::default()
    };
    Ok(schedule)
}
