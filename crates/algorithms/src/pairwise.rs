//! Pairwise exchange: in each of N - 1 steps, every rank sends one block to one rank and receives
//! one block, without relays.
//!
//! In step s, rank r sends to rank r + s + 1 and receives from rank r - s - 1 (order `shift`), or
//! exchanges with rank r xor (s + 1) (order `xor`, for powers of two).

use super::{
    Algorithm, AlgorithmError, CostFormulas, MPICH, OptionRecord, Request, choice, make_room,
};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const SHIFT_OR_XOR: &[OptionRecord] = &[OptionRecord::new(
    "order",
    "partner of rank r in step s: shift, rank r + s + 1; xor, rank r xor (s + 1)",
)
.range("shift, xor; xor needs a power of two")
.default("xor if N is a power of two, otherwise shift")
.tries(&["shift"])];

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Exchange blocks with one rank in each step",
        citation: MPICH,
        options: SHIFT_OR_XOR,
        costs: CostFormulas::new("N - 1", "N - 1", "N - 1"),
        short_messages: &[CollectiveKind::AllToAll],
        ..Algorithm::new("pairwise", "Pairwise", CollectiveKind::AllToAll, build)
    },
    Algorithm {
        summary: "In each step, send another rank its block, which the rank adds to its own",
        citation: MPICH,
        options: SHIFT_OR_XOR,
        costs: CostFormulas::new("N - 1", "N - 1", "N - 1"),
        reversed_from: Some(CollectiveKind::AllGather),
        ..Algorithm::new("pairwise", "Pairwise", CollectiveKind::ReduceScatter, build)
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairing {
    /// Rank r sends to rank r + s + 1 in step s.
    Shift,
    /// Rank r exchanges with rank r xor (s + 1) in step s; for powers of two.
    Xor,
}

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let power = ranks.is_power_of_two();
    let default_order = if power { Pairing::Xor } else { Pairing::Shift };
    let order = match request.spec.option("order") {
        None => default_order,
        Some(_) => choice(
            request.spec,
            "order",
            &[("shift", Pairing::Shift), ("xor", Pairing::Xor)],
        )?,
    };
    if order == Pairing::Xor && !power {
        return Err(AlgorithmError::Refused {
            name: "pairwise",
            ranks,
            reason: "order=xor needs a power of two; order=shift runs on any number of ranks"
                .into(),
        });
    }
    exchange(request.collective, order)
}

/// Builds the schedule that sends each block of an all_gather or an all_to_all to its destination
/// without relays.
pub(super) fn exchange(collective: Collective, order: Pairing) -> Result<Schedule, AlgorithmError> {
    let ranks = collective.ranks();
    let mut schedule = Schedule::new(collective);
    make_room(&mut schedule, ranks)?;
    for step in 1..ranks {
        schedule.begin_step();
        for source in 0..ranks {
            let destination = match order {
                Pairing::Shift => (source + step) % ranks,
                Pairing::Xor => source ^ step,
            };
            let chunk = match collective.kind() {
                CollectiveKind::AllToAll => source * ranks + destination,
                _ => source,
            };
            schedule.push(Transfer::copy(chunk, source, destination));
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(ranks - 1),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
