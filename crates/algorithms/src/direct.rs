//! Direct exchange: each chunk is sent from its source to its destination without relays.
//!
//! With `at_once`, all transfers are in one step. With `shift`, they are divided among N - 1 steps:
//! in step s, rank r sends one block to rank r + s + 1. The all_reduce cuts the vector into N
//! parts. Every rank sends part i to rank i, which combines the parts and sends the result to all
//! ranks. In a barrier every rank signals to every other rank.

use super::pairwise::{self, Pairing};
use super::{
    Algorithm, AlgorithmError, CostFormulas, OptionRecord, Request, all_pairs, choice,
    logarithmic_rounds, make_room, make_room_for, one_stage,
};
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, CollectiveKind, Holders};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const CITATION: &str = "Folklore; linear algorithms of MPI";

const fn record(
    collective: CollectiveKind,
    summary: &'static str,
    options: &'static [OptionRecord],
    costs: CostFormulas,
) -> Algorithm {
    Algorithm {
        summary,
        citation: CITATION,
        options,
        costs,
        link_load_bound: match collective {
            CollectiveKind::AllReduce => |_, ring| Ok(one_stage::link_load_bound(ring, 2)),
            CollectiveKind::AllToAll => |_, ring| Ok(one_stage::link_load_bound(ring, 1)),
            CollectiveKind::AllGather => |spec, ring| {
                let is_one_step = spec.option("order") == Some("at_once");
                Ok(one_stage::link_load_bound(ring, 1).filter(|_| is_one_step))
            },
            _ => |_, _| Ok(None),
        },
        transfers: match collective {
            CollectiveKind::Scatter => logarithmic_rounds,
            _ => all_pairs,
        },
        ..Algorithm::new(
            "direct",
            "Direct",
            collective,
            match collective {
                CollectiveKind::AllGather => spread_out,
                CollectiveKind::AllReduce => all_reduce,
                CollectiveKind::Barrier => barrier,
                _ => at_once,
            },
        )
    }
}

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    record(
        CollectiveKind::AllGather,
        "Send each rank's block straight to rank r + 1, r + 2, ...",
        &[OptionRecord::new(
            "order",
            "steps of the transfers: shift, one destination in each step; at_once, all \
             destinations in one step, as one_stage does",
        )
        .range("shift, at_once")
        .default("shift")
        .tries(&["at_once"])],
        CostFormulas::new("N - 1", "N - 1", "N - 1"),
    ),
    record(
        CollectiveKind::AllReduce,
        "Send N-th parts straight to the ranks that combine them, and the results straight to all \
         ranks",
        &[],
        CostFormulas::new("2", "2 (N - 1) / N", "2 (N - 1) / N"),
    ),
    record(
        CollectiveKind::Broadcast,
        "Send the root's vector straight to every rank",
        &[],
        CostFormulas::new("1", "N - 1", "1"),
    ),
    record(
        CollectiveKind::Scatter,
        "Send every rank its block straight from the root",
        &[],
        CostFormulas::new("1", "N - 1", "1"),
    ),
    record(
        CollectiveKind::AllToAll,
        "Send each block straight to its rank, all at the same time",
        &[],
        CostFormulas::new("1", "N - 1", "N - 1"),
    ),
    record(
        CollectiveKind::Barrier,
        "Send a signal from every rank to every other rank, all at the same time",
        &[],
        CostFormulas::new("1", "N - 1", "N - 1"),
    ),
];

fn spread_out(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    if choice(
        request.spec,
        "order",
        &[("shift", false), ("at_once", true)],
    )? {
        return at_once(request);
    }
    pairwise::exchange(request.collective, Pairing::Shift)
}

fn at_once(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    one_step(request.collective)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let gathering = one_step(Collective::new(CollectiveKind::AllGather, ranks)?)?;
    let mut schedule = gathering.reversed(request.collective.with_pieces(ranks)?);
    make_room_for(&mut schedule, 2 * gathering.len() as u64)?;
    schedule.append(&gathering, 1);
    schedule.claims = Claims {
        schedule_steps: Some(2 * u32::from(ranks > 1)),
        chunks_sent_per_rank: Some(2 * u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}

fn barrier(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let mut schedule = Schedule::new(request.collective);
    make_room(&mut schedule, ranks)?;
    if ranks > 1 {
        schedule.begin_step();
    }
    for source in 0..ranks {
        interrupt::check();
        for destination in (0..ranks).filter(|&destination| destination != source) {
            schedule.push(Transfer::reduce(0, source, destination));
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(u32::from(ranks > 1)),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}

/// Builds the schedule of one step that sends every chunk to its destinations without relays.
fn one_step(collective: Collective) -> Result<Schedule, AlgorithmError> {
    let ranks = collective.ranks();
    let mut schedule = Schedule::new(collective);
    if matches!(
        collective.kind(),
        CollectiveKind::AllToAll | CollectiveKind::AllGather
    ) {
        make_room(&mut schedule, ranks)?;
    }
    if ranks > 1 {
        schedule.begin_step();
    }
    for chunk in 0..collective.chunks() {
        let Holders::One(source) = collective.before(chunk) else {
            continue;
        };
        let destinations = match collective.after(chunk) {
            Holders::One(rank) => rank..rank + 1,
            Holders::All => 0..ranks,
        };
        for destination in destinations.filter(|&destination| destination != source) {
            schedule.push(Transfer::copy(chunk, source, destination));
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(u32::from(ranks > 1)),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
