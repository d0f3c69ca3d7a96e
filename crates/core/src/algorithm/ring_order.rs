//! Ring all_gather along any order of the ranks, such as a shuffled one.
//!
//! The rank at place i sends to the one at place i + 1. In step s it passes on the block of the rank at
//! place i - s, which it received in the step before.

use super::{AlgorithmError, make_room};
use crate::collective::{Collective, CollectiveKind};
use crate::hash;
use crate::schedule::{Claims, Schedule, Transfer};

/// The ranks in random order (see [`hash::shuffled`]).
pub fn shuffled(ranks: u32, seed: u64) -> Vec<u32> {
    hash::shuffled(ranks, seed)
}

/// An all_gather along a ring; `order` has every rank once. N - 1 steps of one block per rank.
///
/// # Errors
/// Too many transfers, or no rank at all.
pub fn all_gather(order: &[u32]) -> Result<Schedule, AlgorithmError> {
    let ranks = order.len() as u32;
    let mut schedule = Schedule::new(Collective::new(CollectiveKind::AllGather, ranks)?);
    make_room(&mut schedule, ranks)?;
    let mut place_of = vec![0; order.len()];
    for (place, &rank) in order.iter().enumerate() {
        place_of[rank as usize] = place;
    }
    for step in 0..order.len() - 1 {
        schedule.begin_step();
        for (rank, &place) in (0..).zip(&place_of) {
            let block = order[(place + order.len() - step) % order.len()];
            let next = order[(place + 1) % order.len()];
            schedule.push(Transfer::copy(block, rank, next));
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(ranks - 1),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
