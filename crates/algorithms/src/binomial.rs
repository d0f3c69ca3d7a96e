//! Binomial trees: the number of ranks that hold data doubles in each step.
//!
//! Let v = r - root mod N be the distance of rank r from the root. The rank at distance v receives
//! from the rank at distance v without its lowest set bit. The subtree of v with lowest set bit D
//! covers the ranks at distances v .. v + D, so a scatter forwards contiguous ranges.

use super::{Algorithm, AlgorithmError, CostFormulas, MPICH, Request, push_cyclic};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// The records of this file.
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

/// Returns the edges of the tree, step by step: (distance of the sender from the root, distance of
/// the receiver from the root, distances that the receiver's subtree covers).
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

/// Builds the broadcast along the tree, which is also the second half of the binary-tree
/// all_reduce.
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

/// Builds the scatter along the tree, which is also the first half of the broadcast by scatter and
/// all_gather.
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

/// Returns the claims of a tree whose root sends `sent` vectors or blocks, the maximum of all
/// ranks.
fn claims(ranks: u32, sent: u64) -> Claims {
    Claims {
        chunks_sent_per_rank: Some(sent),
        schedule_steps: Some(ranks.next_power_of_two().ilog2()),
        ..Claims::default()
    }
}
