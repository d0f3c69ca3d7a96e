//! Ring: every rank passes on to the next one what it got last.
//!
//! all_gather in N-1 steps of one block; reduce_scatter is the same backwards. all_reduce passes
//! partial sums around and then results, both in the same direction, in 2(N-1) steps of an N-th of
//! the vector (Patarasuk and Yuan 2009).
//!
//! The ring goes through the ranks in any order. The rank at place i sends to the one at place i + 1:
//! in step s of an all_gather the block of the rank at place i - s.

use super::grid::RankGrid;
use super::light_path::{self, PathFormula};
use super::{
    Algorithm, AlgorithmError, CostFormulas, LeastLoads, OptionRecord, Request, all_pairs,
    make_room, make_room_for,
};
use crate::collective::{Collective, CollectiveKind};
use crate::hash::shuffled;
use crate::schedule::{Claims, Schedule, Transfer};
use crate::spec::SpecError;
use crate::units::Bytes;

const CITATION: &str = "Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters \
                        of Workstations, JPDC 2009";

const OPTIONS: &[OptionRecord] = &[
    OptionRecord::new("order", "order of the ranks along the ring")
        .range("natural, shuffled, or all ranks joined by -, such as 0-3-1-2")
        .default("natural; on a wss_grid, an order whose neighbours are one hop apart"),
    OptionRecord::new("seed", "seed of the shuffled order")
        .range("0 to 4294967295")
        .default("1"),
];

/// The records of this file.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Pass the block received last to the clockwise neighbour, N-1 times",
        citation: CITATION,
        options: OPTIONS,
        costs: GATHERING,
        formula: Some(FORMULA),
        closer_loads: |spec, ring| {
            let is_plain = spec.options().next().is_none();
            let steps = ring.ranks.saturating_sub(1).into();
            Ok(is_plain.then(|| LeastLoads::alike(steps, 1, ring.channels)))
        },
        ..Algorithm::new("ring", "Ring", CollectiveKind::AllGather, all_gather)
    },
    Algorithm {
        summary: "Ring reduce_scatter, then ring all_gather, on N-th parts of the vector",
        citation: CITATION,
        options: OPTIONS,
        costs: REDUCING,
        transfers: all_pairs,
        ..Algorithm::new("ring", "Ring", CollectiveKind::AllReduce, all_reduce)
    },
];

/// Blocks go around the ring.
const FORMULA: PathFormula = PathFormula {
    collectives: &[CollectiveKind::AllGather],
    messages: |ranks, bytes| {
        let block = Bytes::new(light_path::block(ranks, bytes)?);
        Ok(vec![(u64::from(ranks - 1), block)])
    },
    parts,
    // Every part of every step has paths of its own.
    set_ups: |ranks, ports| match ports {
        1 if ranks > 2 => u64::from(ranks - 1) * parts(ranks, ports),
        _ => (ranks - 1).min(1).into(),
    },
};

/// H: into how many matchings the edges of a ring fall, where ranks have one port.
fn parts(ranks: u32, ports: u32) -> u64 {
    match (ranks, ports) {
        (0..=2, _) | (_, 2..) => 1,
        _ if ranks % 2 == 0 => 2,
        _ => 3,
    }
}

/// What a ring all_gather costs, in whatever order.
pub(super) const GATHERING: CostFormulas = CostFormulas::new("N - 1", "N - 1", "N - 1");

/// What a ring all_reduce costs, in whatever order.
pub(super) const REDUCING: CostFormulas =
    CostFormulas::new("2 (N - 1)", "2 (N - 1) / N", "2 (N - 1) / N");

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    all_gather_along(request, &order(request)?)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    all_reduce_along(request, &order(request)?)
}

/// The ranks in the order asked for; where none is, on a grid of tunable circuits in one with one hop
/// from each to the next.
fn order(request: &Request<'_>) -> Result<Vec<u32>, SpecError> {
    let (spec, ranks) = (request.spec, request.ranks());
    if spec.option("order").is_none()
        && request.fabric.planes().is_some()
        && let Some(order) = RankGrid::of(request.fabric).ring()
    {
        return Ok(order);
    }
    let seed = spec.count("seed", 0, u32::MAX)?;
    let asked = spec.option("order").unwrap_or("natural");
    if seed.is_some() && asked != "shuffled" {
        return Err(spec.refuse("seed", "belongs to order=shuffled"));
    }
    match asked {
        "natural" => Ok((0..ranks).collect()),
        "shuffled" => Ok(shuffled(ranks, seed.unwrap_or(1).into())),
        list => given(list, ranks).ok_or_else(|| {
            let problem = format!(
                "must be natural, shuffled, or the ranks 0 to {} once each, joined by -",
                ranks - 1
            );
            spec.refuse("order", problem)
        }),
    }
}

/// A list of ranks, each once.
fn given(list: &str, ranks: u32) -> Option<Vec<u32>> {
    let numbers = list.split(['-', 'x']).map(|number| number.parse().ok());
    let order: Vec<u32> = numbers.collect::<Option<_>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..ranks).then_some(order)
}

/// The all_gather around a ring; `order` has every rank once.
pub(super) fn all_gather_along(
    request: &Request<'_>,
    order: &[u32],
) -> Result<Schedule, AlgorithmError> {
    pass_around(request.collective, order)
}

/// The all_reduce around a ring; `order` has every rank once.
pub(super) fn all_reduce_along(
    request: &Request<'_>,
    order: &[u32],
) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let collective = request.collective.with_pieces(ranks)?;
    let gathering = pass_around(Collective::new(CollectiveKind::AllGather, ranks)?, order)?;
    let mut schedule = Schedule::new(collective);
    make_room_for(&mut schedule, 2 * gathering.len() as u64)?;
    // In step s, the rank at place i sends its sum of the part of the rank at place i - s - 1, so
    // that the part of a rank ends there.
    for step in 0..ranks - 1 {
        schedule.begin_step();
        each_hop(order, step + 1, |part, rank, next| {
            schedule.push(Transfer::reduce(part, rank, next));
        });
    }
    schedule.append(&gathering, 1);
    schedule.claims = Claims {
        paper_steps: Some(2 * u64::from(ranks - 1)),
        paper_step_share: Some((1, ranks)),
        neighbours_only: is_natural(order),
        schedule_steps: Some(2 * (ranks - 1)),
        chunks_sent_per_rank: Some(2 * u64::from(ranks - 1)),
    };
    Ok(schedule)
}

fn pass_around(collective: Collective, order: &[u32]) -> Result<Schedule, AlgorithmError> {
    let ranks = collective.ranks();
    let mut schedule = Schedule::new(collective);
    make_room(&mut schedule, ranks)?;
    for step in 0..ranks - 1 {
        schedule.begin_step();
        each_hop(order, step, |block, rank, next| {
            schedule.push(Transfer::copy(block, rank, next));
        });
    }
    schedule.claims = Claims {
        paper_steps: Some(u64::from(ranks - 1)),
        paper_step_share: Some((1, 1)),
        neighbours_only: is_natural(order),
        schedule_steps: Some(ranks - 1),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
    };
    Ok(schedule)
}

/// Every rank along the ring, with the rank so many places before it and the rank after it.
fn each_hop(order: &[u32], before: u32, mut hop: impl FnMut(u32, u32, u32)) {
    let ranks = order.len();
    for (place, &rank) in order.iter().enumerate() {
        let origin = order[(place + ranks - before as usize % ranks) % ranks];
        hop(origin, rank, order[(place + 1) % ranks]);
    }
}

/// Whether the ring goes from each rank to the next by number.
fn is_natural(order: &[u32]) -> bool {
    order.iter().copied().eq(0..order.len() as u32)
}
