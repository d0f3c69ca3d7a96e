//! Lower bounds on the time of any plan on an electrical fabric.
//!
//! The bytes of a message move after the latencies of its links. A rank may send any number of
//! messages at the same time, and messages have no overhead. Data of one rank can therefore reach
//! all ranks in one round, so that log2 N rounds are no bound on these fabrics.
//!
//! | name | what bounds the time | theorem | module |
//! |---|---|---|---|
//! | `bandwidth` | bytes that a rank receives, or sends, over its cables | E2 | `links`, `cuts` |
//! | `latency` | latencies of a shortest route from another rank | E4 | `distances` |
//! | `relays` | two messages for data that do not come from their owner | E6 | `relays` |
//! | `rounds` | broadcast, reduce, all_reduce: a rank forwards only received data | E5 | this |
//! | `cut` | as `bandwidth`, for sets of ranks | E2, E3 | `cuts` |
//! | `throughput` | as `cut`, for the tightest of all cuts | E8, E9 | `tightest` |
//! | `quickest_flow` | broadcast, reduce: latencies before data reach a link | E7 | `quickest` |
//! | `concurrent_flow` | all_to_all: load of all pairs on all links | E10 | `concurrent` |
//! | `in_network` | all_reduce by switches: cables of all ranks | N1 | `switches` |
//!
//! If switches add or multicast, some of the theorems fail. Theorem N2 says which: `relays` and
//! `rounds` are then 0 for the collectives concerned, and sums over all parts count one direction
//! only, or none.
//!
//! There is no bound if a cable of a rank gives each flow the whole rate of the cable, or if the
//! network does not know the ends of its links.
//!
//! **Placement of ranks.** By default, rank r of the collective is rank r of the network. Only the
//! root makes a bound depend on the placement. With another placement, [`best`] needs the
//! collective whose root is the network rank of the root ([`collective_as_placed`]). Without a
//! root, a bound holds for every placement. A bound of a demand depends on the placement of all
//! ranks, so that there is no such bound for another placement.
//!
//! **Rounding.** Bounds are rounded down to picoseconds. The flow simulator's times may be below
//! the exact times by a relative 1e-12 (its `ROUNDING`). A simulated plan that meets a bound may
//! therefore appear faster than the bound by this difference.

mod concurrent;
mod cuts;
mod demanded;
mod distances;
mod links;
mod optimum;
mod quickest;
mod ratio;
mod relays;
mod switches;
mod tightest;

use super::{TimeBound, bits_ps, quotient, too_long, transmission_time};
pub use concurrent::time_from_lengths;
pub(crate) use concurrent::{enclosed, witness_of_lengths};
use cuts::{CutPart, Partition, Side};
use links::{Links, NONE, UNBOUNDED};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};
pub use optimum::optimum;
pub use ratio::{Optimum, Ratio};

/// Maximum number of link visits in the search for the tightest cut if a planner needs the bounds.
const MAX_SEARCH_STEPS: u64 = 1 << 24;

/// Maximum number of link visits in the search for the tightest cut if a user asks for the bounds.
pub const MAX_THOROUGH_STEPS: u64 = 1 << 28;

/// Lower bound on the time with the witness that proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessedBound {
    /// Lower bound on the time.
    pub bound: TimeBound,
    /// Witness of the bound: the bottleneck cut, or lengths of links; `None` if there is none.
    pub witness: Option<Witness>,
}

impl From<TimeBound> for WitnessedBound {
    fn from(bound: TimeBound) -> WitnessedBound {
        WitnessedBound {
            bound,
            witness: None,
        }
    }
}

/// Proof of a bound: a cut, lengths of links, or trees of lightpaths. A cut is a set of ranks and
/// the links that lead into the set, or out of it. The lengths are the multipliers of a linear
/// program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Ranks inside the cut; empty for lengths.
    pub ranks: Vec<u32>,
    /// Number of parts that these ranks form. If it exceeds 1, the bound adds the data that all
    /// parts need, and the links of all parts. 0 for lengths.
    pub parts: u32,
    /// Indices of the links that lead into the cut, or out of it. For lengths: indices of the links
    /// with a positive length.
    pub links: Vec<u32>,
    /// Length of each link, in the order of `links`; empty for a cut.
    pub lengths: Vec<u64>,
    /// Trees of lightpaths that occupy the channels of all links; `None` for cuts and lengths.
    pub trees: Option<TreeWitness>,
}

/// Trees of lightpaths whose links prove a bound on a graph of fibres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeWitness {
    /// Number of slots of the plan that the bound permits.
    pub slots: u64,
    /// Lower bound on the number of links of all trees of this number of slots.
    pub links: u64,
    /// Number of trees.
    pub trees: u64,
}

/// Returns the greatest lower bound on the time of any plan. Of equal bounds, returns the first,
/// which has the weakest assumption. `None` if a cable of a rank gives every flow its whole rate,
/// or if the network does not know the ends of its links. Fails if a time exceeds 64 bits of
/// picoseconds.
pub fn best(
    network: &dyn Network,
    collective: &Collective,
    size: Bytes,
) -> Result<Option<TimeBound>, UnitError> {
    Ok(greatest(bounds(
        network,
        collective,
        size,
        MAX_SEARCH_STEPS,
    )?))
}

/// Returns the bound with the greatest time. Of equal bounds, returns the first.
pub fn greatest(bounds: Vec<WitnessedBound>) -> Option<TimeBound> {
    let bounds = bounds.into_iter().map(|one| one.bound);
    bounds.reduce(|best, next| if next.time > best.time { next } else { best })
}

/// Returns all lower bounds on the time of any plan, bounds with weaker assumptions first. The list
/// is empty if a cable of a rank gives every flow its whole rate, or if the network does not know
/// the ends of its links. Each search ends after `max_steps` link visits: the search for the
/// tightest cut then returns the best cut so far, and the search for the tightest partition returns
/// no bound. Fails if a time exceeds 64 bits of picoseconds.
pub fn bounds(
    network: &dyn Network,
    collective: &Collective,
    size: Bytes,
    max_steps: u64,
) -> Result<Vec<WitnessedBound>, UnitError> {
    let Some(links) = Links::of(network) else {
        return Ok(Vec::new());
    };
    let ranks = collective.ranks();
    let is_rank = |vertex: usize| vertex < ranks as usize;
    let mut cables = links.edges.iter();
    if cables.any(|edge| edge.rate == UNBOUNDED && (is_rank(edge.from) || is_rank(edge.to))) {
        return Ok(Vec::new());
    }
    if ranks < 2 {
        return Ok(vec![WitnessedBound::from(TimeBound::SINGLE_RANK)]);
    }
    let rank_of = |vertex: usize| match is_rank(vertex) {
        true => vertex as u32,
        false => NONE,
    };
    let each = Partition::new(&links, rank_of, collective.root());
    let alone = &each.parts[..];
    let firsts = alone.iter().filter_map(|rank| rank.inwards.first());
    let least_latency = Time::from_ps(firsts.min().unwrap_or(0));
    if collective.demand().is_some() {
        let demanded = demanded::bounds(&links, alone, collective, size)?;
        return Ok(demanded.into_iter().map(WitnessedBound::from).collect());
    }
    let (bandwidth, side) = each.time(collective, size, least_latency)?;
    let (rounds_time, bottleneck) = rounds(&links, alone, collective, size, least_latency)?;
    let (cut_time, cut) = cuts::best(&links, collective, size, least_latency)?;
    let mut bounds: Vec<WitnessedBound> = [
        (
            TimeBound {
                time: bandwidth,
                name: "bandwidth",
                assumption: "no rank sends or receives faster than its cables",
            },
            side.map(|side| cuts::witness(&links, rank_of, side)),
        ),
        (
            TimeBound {
                time: distances::best(&links, alone, collective, size)?,
                name: "latency",
                assumption: "data from another rank take at least the latencies of a shortest \
                             route from that rank",
            },
            None,
        ),
        (
            TimeBound {
                time: rounds_time,
                name: "rounds",
                assumption: "no rank sends or receives faster than its cables, or forwards data \
                             before it has received them",
            },
            bottleneck.map(|(without_root, side)| {
                let part_of = |vertex| match without_root && vertex == collective.root() as usize {
                    true => NONE,
                    false => rank_of(vertex),
                };
                cuts::witness(&links, part_of, side)
            }),
        ),
        (
            TimeBound {
                time: relays::best(&links, alone, collective, size)?,
                name: "relays",
                assumption: "data that a rank does not receive from their owner take the latencies \
                             of two messages",
            },
            None,
        ),
        (
            TimeBound {
                time: cut_time,
                name: "cut",
                assumption: "the data that a part of the ranks needs from the other ranks cross \
                             the links between them",
            },
            cut,
        ),
    ]
    .into_iter()
    .map(|(bound, witness)| WitnessedBound { bound, witness })
    .collect();
    bounds.extend(switches::bound(&links, alone, collective, size)?);
    bounds.extend(concurrent::bound(
        network,
        &links,
        collective,
        size,
        max_steps > MAX_SEARCH_STEPS,
    )?);
    bounds.extend(tightest::best(
        &links,
        collective,
        size,
        least_latency,
        max_steps,
    )?);
    let known = bounds.iter().map(|one| one.bound.time).max();
    let quickest = quickest::best(&links, collective, size, known.unwrap_or(Time::ZERO))?;
    if let Some((time, witness)) = quickest {
        bounds.push(WitnessedBound {
            bound: TimeBound {
                time,
                name: "quickest_flow",
                assumption: "the root's data reach a link no earlier than over a shortest route",
            },
            witness: Some(witness),
        });
    }
    Ok(bounds)
}

/// Returns the collective to pass to [`best`] if rank r of the collective is at rank `places[r]` of
/// the network. `places` is `None` if rank r is at rank r. Returns `None` if the root has no place,
/// and for a demand with any `places`.
pub fn collective_as_placed(
    collective: &Collective,
    places: &Option<Vec<u32>>,
) -> Option<Collective> {
    let Some(places) = places else {
        return Some(*collective);
    };
    if collective.demand().is_some() {
        return None;
    }
    let place = places.get(collective.root() as usize)?;
    collective.with_root(*place).ok()
}

/// Returns the rate, in bit/s, at which all ranks together can send and receive at the same time,
/// and the links that limit this rate.
fn exchange_rate(ranks: &[CutPart]) -> (u128, Side) {
    let sum = |rate: fn(&CutPart) -> u128| ranks.iter().map(rate).sum::<u128>();
    let [inwards, outwards, both] = Side::all(None);
    let least = [
        (sum(|rank| rank.inwards.rate()), inwards),
        (sum(|rank| rank.outwards.rate()), outwards),
        (sum(CutPart::rate).div_ceil(2), both),
    ];
    least
        .into_iter()
        .min_by_key(|one| one.0)
        .unwrap_or((0, both))
}

/// Links that limit the bound `rounds`: (true if the root's links are excluded, side of the links).
type Bottleneck = (bool, Side);

/// Returns the bound `rounds` (theorem E5), and the links that limit this bound. The links are
/// `None` if latencies alone give the bound. `latency` is the least latency of any message.
fn rounds(
    links: &Links,
    ranks: &[CutPart],
    collective: &Collective,
    size: Bytes,
    latency: Time,
) -> Result<(Time, Option<Bottleneck>), UnitError> {
    // The theorem counts a cable for each transfer of each byte.
    let work = links.work(|_| true);
    let is_refuted = match collective.kind() {
        CollectiveKind::Broadcast => work.multicasts,
        CollectiveKind::Reduce => work.adds,
        _ => work.is_any(),
    };
    if is_refuted {
        return Ok((Time::ZERO, None));
    }
    let bytes = (ranks.len() as u128 - 1) * u128::from(size.get());
    let root = &ranks[collective.root() as usize];
    let sum = |rate: fn(&CutPart) -> u128| ranks.iter().map(rate).sum::<u128>();
    let (total_rate, side) = exchange_rate(ranks);
    let [inwards, outwards, _] = Side::all(None);
    let (root_rate, others, others_side) = match collective.kind() {
        CollectiveKind::Broadcast => {
            let others = sum(|rank| rank.inwards.rate()) - root.inwards.rate();
            (root.outwards.rate(), others, inwards)
        }
        CollectiveKind::Reduce => {
            let others = sum(|rank| rank.outwards.rate()) - root.outwards.rate();
            (root.inwards.rate(), others, outwards)
        }
        CollectiveKind::AllReduce => {
            let time = all_reduce_rounds(ranks, size, latency)?;
            return Ok((time, Some((false, side))));
        }
        _ => return Ok((Time::ZERO, None)),
    };
    let time = one_or_two_rounds(root_rate, total_rate.min(others), bytes, latency)?;
    let bottleneck = match others <= total_rate {
        true => (true, others_side),
        false => (false, side),
    };
    Ok((
        time,
        Some(bottleneck).filter(|_| time > latency.times(2).unwrap_or(time)),
    ))
}

/// Returns the least time in which `bytes` bytes can reach ranks other than the root. Until two
/// latencies have passed, only bytes from the root arrive, at the rate `root_rate`. From then on,
/// bytes arrive at the rate `others_rate`. Rates are in bit/s.
fn one_or_two_rounds(
    root_rate: u128,
    others_rate: u128,
    bytes: u128,
    latency: Time,
) -> Result<Time, UnitError> {
    // The time of two rounds may fit into 64 bits even if the time of one round does not.
    let one_round =
        transmission_time(bytes, root_rate).and_then(|one_round| one_round.plus(latency));
    let two_rounds = latency.times(2)?;
    if one_round
        .as_ref()
        .is_ok_and(|one_round| *one_round <= two_rounds)
    {
        return one_round;
    }
    let first = root_rate.checked_mul(u128::from(latency.ps()));
    let remaining_bits = bits_ps(bytes)?.saturating_sub(first.ok_or_else(too_long)?);
    two_rounds.plus(quotient(remaining_bits, others_rate)?)
}

/// Returns the bound `rounds` (theorem E5) of an all_reduce.
fn all_reduce_rounds(cables: &[CutPart], size: Bytes, latency: Time) -> Result<Time, UnitError> {
    let (ranks, size) = (cables.len() as u128, u128::from(size.get()));
    let (total_rate, _) = exchange_rate(cables);
    let direct = transmission_time(ranks * (ranks - 1) * size, total_rate)
        .and_then(|direct| direct.plus(latency));
    let both_halves = transmission_time(2 * (ranks - 1) * size, total_rate)?.plus(latency)?;
    // Rounded up, because the bound subtracts this time.
    let subtracted = Time::from_ps(latency.ps().div_ceil(cables.len() as u64 - 1));
    let over_sums = transmission_time(ranks * size, total_rate)?.plus(latency.times(2)?)?;
    let over_sums = Time::from_ps(over_sums.ps().saturating_sub(subtracted.ps()));
    // The time over sums may fit into 64 bits even if the time of direct sending does not.
    Ok(direct.map_or(over_sums.max(both_halves), |direct| {
        direct.min(over_sums.max(both_halves))
    }))
}

/// Returns two numbers of bytes: those that a set of `inside` ranks must receive from other ranks,
/// and those that the set must send. `has_root` says whether the root is in the set.
fn bytes(collective: &Collective, size: Bytes, inside: u32, has_root: bool) -> (u128, u128) {
    let (own, all) = (u128::from(inside), u128::from(collective.ranks()));
    let others = all - own;
    let size = u128::from(size.get());
    let part = size / all;
    if others == 0 {
        return (0, 0);
    }
    match collective.kind() {
        CollectiveKind::AllGather => (others * size, own * size),
        CollectiveKind::ReduceScatter => (own * part, others * part),
        CollectiveKind::AllReduce => (size, size),
        CollectiveKind::AllToAll => (own * others * part, own * others * part),
        CollectiveKind::Gather if has_root => (others * size, 0),
        CollectiveKind::Scatter if has_root => (0, others * size),
        CollectiveKind::Broadcast if has_root => (0, size),
        CollectiveKind::Reduce if has_root => (size, 0),
        CollectiveKind::Gather => (0, own * size),
        CollectiveKind::Reduce => (0, size),
        CollectiveKind::Scatter => (own * size, 0),
        CollectiveKind::Broadcast => (size, 0),
        CollectiveKind::Barrier => (0, 0),
    }
}
