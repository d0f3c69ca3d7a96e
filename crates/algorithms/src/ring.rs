//! Ring: every rank passes the block that it received last to the next rank.
//!
//! The all_gather takes N - 1 steps of one block; the reduce_scatter is its time reversal. The
//! all_reduce first passes partial sums around the ring and then results in the same direction. It
//! takes 2 (N - 1) steps of one N-th of the vector (Patarasuk and Yuan 2009).
//!
//! The ring may visit the ranks in any order. The rank at position i sends to the rank at position
//! i + 1. In step s of an all_gather, it sends the block of the rank at position i - s.
//!
//! In k **channels**, as in NCCL, each block is cut into k parts, and each part travels around a
//! ring of its own. Let each rank have an index within its group (such as a server). The ring of
//! channel c enters the even groups at index c and leaves them at index c - 1. It enters an odd
//! group at the index at which it left the previous group, so it stays on one rail. So data leave a
//! group at k ranks, through k network interfaces.

use super::grid::RankGrid;
use super::{
    Algorithm, AlgorithmError, CHANNELS, CostFormulas, OptionRecord, Request, all_pairs, channels,
    group_size, make_room_for,
};
use opticoll_base::hash::shuffled;
use opticoll_base::spec::SpecError;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const CITATION: &str = "Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters \
                        of Workstations, JPDC 2009";

const OPTIONS: &[OptionRecord] = &[
    OptionRecord::new("order", "order of the ranks along the ring")
        .range("natural, shuffled, or all ranks joined by -, such as 0-3-1-2")
        .default("natural; on a wss_grid, an order whose neighbours are one hop apart"),
    OptionRecord::new("seed", "seed of the shuffled order")
        .range("0 to 4294967295")
        .default("1"),
    CHANNELS,
];

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Pass the most recently received block to the clockwise neighbour, N-1 times",
        citation: CITATION,
        options: OPTIONS,
        costs: GATHERING,
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

/// Costs of a ring all_gather, for any order of the ranks.
pub(super) const GATHERING: CostFormulas = CostFormulas::new("N - 1", "N - 1", "N - 1");

/// Costs of a ring all_reduce, for any order of the ranks.
pub(super) const REDUCING: CostFormulas =
    CostFormulas::new("2 (N - 1)", "2 (N - 1) / N", "2 (N - 1) / N");

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    all_gather_along(request, &orders(request)?)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    all_reduce_along(request, &orders(request)?)
}

/// Returns the ranks in the order of the ring; indexed by channel and then by position.
fn orders(request: &Request<'_>) -> Result<Vec<Vec<u32>>, SpecError> {
    let order = order(request)?;
    let channels = channels(request)?;
    if channels == 1 {
        return Ok(vec![order]);
    }
    if !is_natural(&order) {
        return Err(request.spec.refuse("channels", "belongs to order=natural"));
    }
    let size = group_size(request.fabric);
    let channel_order = |channel| through_groups(request.ranks(), size, channel);
    Ok((0..channels).map(channel_order).collect())
}

/// Returns the ring of the channel with index `channel`, through groups of `size` ranks. The ring
/// enters each group at the index (within the group) at which it left the previous group. If the
/// number of groups is odd, the ring enters the last group at a third index.
fn through_groups(ranks: u32, size: u32, channel: u32) -> Vec<u32> {
    let groups = ranks / size;
    let entry = |group: u32| match group % groups {
        odd if odd % 2 == 1 => (channel + size - 1) % size,
        last if last > 0 && last + 1 == groups => (channel + 1) % size,
        _ => channel,
    };
    let mut order = Vec::with_capacity(ranks as usize);
    for group in 0..groups {
        let first = entry(group);
        // If there is only one group, or if groups have fewer than three ranks, the ring leaves a
        // group at the index before its entry.
        let last = match entry(group + 1) {
            next if next == first => (first + size - 1) % size,
            next => next,
        };
        let others = (1..size).map(|places| (first + places) % size);
        let between = others.filter(|&number| number != last);
        let within = [first].into_iter().chain(between).chain([last]);
        order.extend(within.map(|number| group * size + number));
    }
    order
}

/// Returns the ranks in the requested order, by default in ascending order. On a grid of tunable
/// circuits, the neighbours in the default order are one hop apart.
fn order(request: &Request<'_>) -> Result<Vec<u32>, SpecError> {
    let (spec, ranks) = (request.spec, request.ranks());
    if spec.option("order").is_none()
        && request.fabric.planes().is_some()
        && let Some(order) = RankGrid::of(request.fabric).ring()
    {
        return Ok(order);
    }
    let seed = spec.count("seed", 0, u32::MAX)?;
    let requested = spec.option("order").unwrap_or("natural");
    if seed.is_some() && requested != "shuffled" {
        return Err(spec.refuse("seed", "belongs to order=shuffled"));
    }
    match requested {
        "natural" => Ok((0..ranks).collect()),
        "shuffled" => Ok(shuffled(ranks, seed.unwrap_or(1).into())),
        list => parse_order(list, ranks).ok_or_else(|| {
            let problem = format!(
                "must be natural, shuffled, or the ranks 0 to {} once each, joined by -",
                ranks - 1
            );
            spec.refuse("order", problem)
        }),
    }
}

/// Parses a list of ranks such as `0-2-1`. Returns `None` unless the list contains each rank once.
fn parse_order(list: &str, ranks: u32) -> Option<Vec<u32>> {
    let numbers = list.split(['-', 'x']).map(|number| number.parse().ok());
    let order: Vec<u32> = numbers.collect::<Option<_>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..ranks).then_some(order)
}

/// Builds the all_gather around several rings, each for one part of every block. Each of `orders`
/// contains every rank once.
pub(super) fn all_gather_along(
    request: &Request<'_>,
    orders: &[Vec<u32>],
) -> Result<Schedule, AlgorithmError> {
    pass_around(request.collective, orders)
}

/// Builds the all_reduce around several rings, each for one part of the vector.
pub(super) fn all_reduce_along(
    request: &Request<'_>,
    orders: &[Vec<u32>],
) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let gathering = pass_around(Collective::new(CollectiveKind::AllGather, ranks)?, orders)?;
    let pieces = gathering.collective.chunks();
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    make_room_for(&mut schedule, 2 * gathering.len() as u64)?;
    // In step s, the rank at position i sends its sum for the part of the rank at position i - s -
    // 1. The sum for a rank's part therefore ends at this rank.
    for step in 0..ranks - 1 {
        schedule.begin_step();
        for_each_hop(orders, step + 1, |part, rank, next| {
            schedule.push(Transfer::reduce(part, rank, next));
        });
    }
    schedule.append(&gathering, 1);
    let gather_claims = &gathering.claims;
    schedule.claims = Claims {
        paper_steps: gather_claims.paper_steps.map(|steps| 2 * steps),
        neighbours_only: gather_claims.neighbours_only,
        schedule_steps: Some(2 * (ranks - 1)),
        chunks_sent_per_rank: gather_claims.chunks_sent_per_rank.map(|sent| 2 * sent),
    };
    Ok(schedule)
}

fn pass_around(collective: Collective, orders: &[Vec<u32>]) -> Result<Schedule, AlgorithmError> {
    let (ranks, channels) = (collective.ranks(), orders.len() as u32);
    let mut schedule = Schedule::new(collective.with_pieces(channels)?);
    let sent = u64::from(ranks - 1) * u64::from(channels);
    make_room_for(&mut schedule, u64::from(ranks) * sent)?;
    for step in 0..ranks - 1 {
        schedule.begin_step();
        for_each_hop(orders, step, |chunk, rank, next| {
            schedule.push(Transfer::copy(chunk, rank, next));
        });
    }
    let is_single_ring = channels == 1;
    schedule.claims = Claims {
        paper_steps: is_single_ring.then_some(u64::from(ranks - 1)),
        neighbours_only: orders.iter().all(|order| is_natural(order)),
        schedule_steps: Some(ranks - 1),
        chunks_sent_per_rank: Some(sent),
    };
    Ok(schedule)
}

/// Calls `hop(chunk, rank, next)` for every rank of each ring. `next` is the rank after `rank` on
/// the ring. Let o be the rank that is `before` positions before `rank`. `chunk` is the part of the
/// block of o that travels around this ring.
fn for_each_hop(orders: &[Vec<u32>], before: u32, mut hop: impl FnMut(u32, u32, u32)) {
    for (channel, order) in (0..).zip(orders) {
        let ranks = order.len();
        for (place, &rank) in order.iter().enumerate() {
            let origin = order[(place + ranks - before as usize % ranks) % ranks];
            let chunk = origin * orders.len() as u32 + channel;
            hop(chunk, rank, order[(place + 1) % ranks]);
        }
    }
}

fn is_natural(order: &[u32]) -> bool {
    order.iter().copied().eq(0..order.len() as u32)
}
