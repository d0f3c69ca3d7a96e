//! Doubling along a cycle, far first: what Bruck's all_gather does in the reverse order of distances.
//!
//! With s = ceil(log2 N) the distances are ceil(N / 2), ceil(N / 4), ..., 1. In each step rank r sends what it holds to the rank so
//! far after it, blocks that this rank has already excepted. Long ways have small messages, and short ones large: where data
//! go from neighbour to neighbour, 2^i links of a ring carry N / 2^(i + 1) blocks each.
//!
//! Every distance d_j is at most one more than the sum of those after it, so that the sums of some of them are all of 0, ..., N - 1:
//! the blocks that a rank holds at the end are those of all ranks.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, all_pairs, make_room};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const CITATION: &str = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in \
     MPICH, IJHPCA 2005; along a cycle opticoll";

/// Elsewhere distances have no price of their own.
const FAMILIES: &[&str] = &["circuit_switch"];

const NAME: &str = "cyclic_doubling";
const LABEL: &str = "Cyclic doubling";

/// The records of this file.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Send all blocks held to the rank N/2, N/4, ..., 1 places after",
        citation: CITATION,
        families: FAMILIES,
        costs: CostFormulas::new("ceil(log2 N)", "N - 1", "N - 1"),
        transfers: all_pairs,
        ..Algorithm::new(NAME, LABEL, CollectiveKind::AllGather, all_gather)
    },
    Algorithm {
        summary: "Sum up halves, quarters, ... of the vector over distances 1, 2, 4, ..., then hand them out the same way back",
        citation: CITATION,
        families: FAMILIES,
        costs: CostFormulas::new("2 ceil(log2 N)", "2 (N - 1) / N", "2 (N - 1) / N"),
        transfers: |ranks| 2 * all_pairs(ranks),
        ..Algorithm::new(NAME, LABEL, CollectiveKind::AllReduce, all_reduce)
    },
];

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    gathering(request.collective, Way::Onwards)
}

/// Which way around the cycle blocks go.
#[derive(Clone, Copy)]
enum Way {
    Onwards,
    Back,
}

impl Way {
    /// The rank so many places further.
    fn go(self, rank: u32, places: u32, ranks: u32) -> u32 {
        match self {
            Way::Onwards => (rank + places) % ranks,
            Way::Back => (rank + ranks - places) % ranks,
        }
    }

    fn turned(self) -> Way {
        match self {
            Way::Onwards => Way::Back,
            Way::Back => Way::Onwards,
        }
    }
}

fn gathering(collective: Collective, way: Way) -> Result<Schedule, AlgorithmError> {
    let ranks = collective.ranks();
    let steps = ranks.next_power_of_two().ilog2();
    let mut schedule = Schedule::new(collective);
    make_room(&mut schedule, ranks)?;
    // How far before a rank the blocks are that it holds, and whether it does.
    let mut held = vec![0];
    let mut holds = vec![false; ranks as usize];
    holds[0] = true;
    for step in 1..=steps {
        let distance = ranks.div_ceil(1 << step);
        schedule.begin_step();
        let sent: Vec<u32> = held
            .iter()
            .copied()
            .filter(|before| before + distance < ranks && !holds[(before + distance) as usize])
            .collect();
        for source in 0..ranks {
            let destination = way.go(source, distance, ranks);
            for before in &sent {
                let block = way.turned().go(source, *before, ranks);
                schedule.push(Transfer::copy(block, source, destination));
            }
        }
        for before in sent {
            held.push(before + distance);
            holds[(before + distance) as usize] = true;
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some(u64::from(ranks.saturating_sub(1))),
        ..Claims::default()
    };
    Ok(schedule)
}

/// The sums are collected onwards, too, so that both halves have the same circuits.
fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let blocks = Collective::new(CollectiveKind::AllGather, ranks)?;
    let mut schedule =
        gathering(blocks, Way::Back)?.reversed(request.collective.with_pieces(ranks)?);
    let gathering = gathering(blocks, Way::Onwards)?;
    schedule.append(&gathering, 1);
    schedule.claims = Claims {
        schedule_steps: gathering.claims.schedule_steps.map(|steps| 2 * steps),
        chunks_sent_per_rank: gathering.claims.chunks_sent_per_rank.map(|one| 2 * one),
        ..Claims::default()
    };
    Ok(schedule)
}
