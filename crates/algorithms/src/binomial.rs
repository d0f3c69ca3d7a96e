//! Binomial trees: the number of ranks that have the data doubles in each step.
//!
//! The distance v of rank r from the root is (r - root) mod N. Let D be the largest power of two
//! that divides v. The rank at distance v receives from the rank at distance v - D, and its subtree
//! consists of the ranks at distances v, ..., v + D - 1. A scatter therefore forwards contiguous
//! ranges of blocks.

use super::{Algorithm, AlgorithmError, CostFormulas, MPICH, Request, push_cyclic};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Forward the vector from every rank that holds it to the rank at distance N/2, \
                  N/4, ..., 1",
        citation: MPICH,
        costs: CostFormulas::new("ceil(log2 N)", "ceil(log2 N)", "1"),
        short_messages: &[CollectiveKind::Broadcast, CollectiveKind::Reduce],
        ..Algorithm::new(
            "binomial",
            "Binomial tree",
            CollectiveKind::Broadcast,
            broadcast,
        )
    },
    Algorithm {
        summary: "Forward half of the blocks from every rank that holds blocks to the rank at \
                  distance N/2, N/4, ..., 1",
        citation: MPICH,
        costs: CostFormulas::new("ceil(log2 N)", "N - 1", "max(N - H, H / 2)"),
        short_messages: &[CollectiveKind::Scatter, CollectiveKind::Gather],
        ..Algorithm::new(
            "binomial",
            "Binomial tree",
            CollectiveKind::Scatter,
            scatter,
        )
    },
];

/// Returns the edges that each step uses; indexed by step. An edge is (sender, receiver, range of
/// the ranks in the receiver's subtree). Ranks are counted from the root.
pub(super) fn edges(ranks: u32) -> Vec<Vec<(u32, u32, std::ops::Range<u32>)>> {
    let depth = ranks.next_power_of_two().ilog2();
    (0..depth)
        .rev()
        .map(|bit| {
            let stride = 1 << bit;
            (0..ranks)
                .step_by(2 * stride as usize)
                .filter(|sender| sender + stride < ranks)
                .map(|sender| {
                    let receiver = sender + stride;
                    (sender, receiver, receiver..(receiver + stride).min(ranks))
                })
                .collect()
        })
        .collect()
}

/// Builds the broadcast along the tree. The second half of the binary-tree all_reduce is also this
/// broadcast.
pub(super) fn broadcast(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let (ranks, root) = (request.ranks(), request.collective.root());
    let mut schedule = Schedule::new(request.collective);
    for step in edges(ranks) {
        schedule.begin_step();
        for (sender, receiver, _) in step {
            schedule.push(Transfer::copy(
                0,
                (root + sender) % ranks,
                (root + receiver) % ranks,
            ));
        }
    }
    let steps = ranks.next_power_of_two().ilog2();
    schedule.claims = claims(ranks, u64::from(steps));
    Ok(schedule)
}

pub(super) fn scatter(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let (ranks, root) = (request.ranks(), request.collective.root());
    let mut schedule = Schedule::new(request.collective);
    for step in edges(ranks) {
        schedule.begin_step();
        for (sender, receiver, subtree) in step {
            push_cyclic(
                &mut schedule,
                ((root + subtree.start) % ranks, subtree.len() as u32),
                (root + sender) % ranks,
                (root + receiver) % ranks,
            );
        }
    }
    schedule.claims = claims(ranks, u64::from(ranks - 1));
    Ok(schedule)
}

/// Returns the claimed numbers of steps and of sent chunks. `sent` is the number of chunks that the
/// root sends; no other rank sends more chunks.
fn claims(ranks: u32, sent: u64) -> Claims {
    Claims {
        chunks_sent_per_rank: Some(sent),
        schedule_steps: Some(ranks.next_power_of_two().ilog2()),
        ..Claims::default()
    }
}
