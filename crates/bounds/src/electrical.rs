//! Lower bounds on the time of any plan on an electrical fabric.
//!
//! A message waits for the latencies of its links, then its bytes move. A rank may send any number
//! of messages at the same time, and a message costs nothing: something of one rank can reach all
//! ranks in one round, so that log2 N rounds are no bound here.
//!
//! | name | what bounds the time | theorem | module |
//! |---|---|---|---|
//! | `bandwidth` | bytes that a rank takes in, or sends, over its cables | E2 | `links`, `cuts` |
//! | `latency` | data of another rank take the latencies of a shortest route | E4 | `distances` |
//! | `relays` | data that do not come from their owner take two messages | E6 | `relays` |
//! | `rounds` | broadcast, reduce, all_reduce: a rank forwards only received data | E5 | here |
//! | `cut` | as `bandwidth`, for parts of the ranks | E2, E3 | `cuts` |
//! | `throughput` | as `cut`, for the tightest of all cuts | E8, E9 | `tightest` |
//! | `quickest_flow` | broadcast, reduce: data reach each link after a latency | E7 | `quickest` |
//! | `concurrent_flow` | all_to_all: load of all pairs on all links together | E10 | `concurrent` |
//!
//! There is no bound if a cable of a rank gives each flow its whole rate, or if the network does
//! not know where its links lead.
//!
//! **Placement of ranks.** Rank r of the collective is rank r of the network. A bound depends on
//! the placement only through the root. If the ranks are placed otherwise, [`best`] needs the
//! collective whose root is the place of the root; without a root a bound holds for every
//! placement. A bound on a demand depends on the whole placement, so that other placements have no
//! bound.
//!
//! **Rounding.** Bounds are rounded down to picoseconds. Times of the flow simulator may be below
//! the exact times by a relative 1e-12 (its `ROUNDING`), and so below a bound that a plan meets.

mod concurrent;
mod cuts;
mod demanded;
mod distances;
mod links;
mod optimum;
mod quickest;
mod ratio;
mod relays;
mod tightest;

use super::{TimeBound, bits_ps, over, quotient, too_long};
pub use concurrent::time_from_lengths;
use cuts::{CutPart, Side};
use links::{Links, NONE, UNBOUNDED};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};
pub use optimum::optimum;
pub use ratio::{Optimum, Ratio};

/// Maximum number of steps over links in the search for the tightest cut when a planner asks, for
/// which this bound is one of several.
const MAX_SEARCH_STEPS: u64 = 1 << 24;

/// Maximum number of steps over links in the search for the tightest cut when a user asks for the
/// bound.
pub const MAX_THOROUGH_STEPS: u64 = 1 << 28;

/// Lower bound with a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessedBound {
    /// Bound.
    pub bound: TimeBound,
    /// Witness of the bound: the bottleneck cut or lengths of links; `None` for bounds without one.
    pub witness: Option<Witness>,
}

/// Cut: the ranks on one side, which need data of the others or have data for them, and the links
/// between the sides. Or lengths of links, the multipliers of a linear program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Ranks on one side of the cut.
    pub ranks: Vec<u32>,
    /// Number of parts that these ranks form; above 1 if the data that all these parts need cross
    /// their links together; 0 for lengths.
    pub parts: u32,
    /// Links that lead into that side, or out of it; for lengths the links with a length.
    pub links: Vec<u32>,
    /// Length of each link in `links`; empty for a cut.
    pub lengths: Vec<u64>,
}

/// Returns the greatest lower bound on the time of any plan; `None` if a cable of a rank is not
/// shared, or the network does not know where its links lead. Of equal bounds the first one, which
/// assumes least, is returned.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
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

/// Returns the greatest of some bounds; of equal bounds the first.
pub fn greatest(bounds: Vec<WitnessedBound>) -> Option<TimeBound> {
    let bounds = bounds.into_iter().map(|one| one.bound);
    bounds.reduce(|best, next| if next.time > best.time { next } else { best })
}

/// Returns all lower bounds on the time of any plan, those that assume least first. The list is
/// empty if a cable of a rank is not shared, or the network does not know where its links lead. The
/// search for the tightest cut ends with the best cut so far, and the search for the tightest
/// partition without a bound, after `max_steps` steps over links.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
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
    let bare = |bound| WitnessedBound {
        bound,
        witness: None,
    };
    if ranks < 2 {
        return Ok(vec![bare(TimeBound::SINGLE_RANK)]);
    }
    let rank_of = |vertex: usize| match is_rank(vertex) {
        true => vertex as u32,
        false => NONE,
    };
    let alone = cuts::parts(&links, rank_of, collective.root());
    let firsts = alone.iter().filter_map(|rank| rank.inwards.first());
    let least = Time::from_ps(firsts.min().unwrap_or(0));
    if collective.demand().is_some() {
        let demanded = demanded::bounds(&links, &alone, collective, size)?;
        return Ok(demanded.into_iter().map(bare).collect());
    }
    let (bandwidth, side) = cuts::partition_time(&alone, collective, size, least)?;
    let (rounds_time, bottleneck) = rounds(&alone, collective, size, least)?;
    let (cut_time, cut) = cuts::best(&links, collective, size, least)?;
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
                time: distances::best(&links, &alone, collective, size)?,
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
                time: relays::best(&links, &alone, collective, size)?,
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
    bounds.extend(concurrent::bound(
        network,
        &links,
        collective,
        size,
        max_steps > MAX_SEARCH_STEPS,
    )?);
    bounds.extend(tightest::best(&links, collective, size, least, max_steps)?);
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

/// Returns the collective that [`best`] needs if `places` holds the place of each rank (`None`:
/// rank r is at place r). Returns `None` if the root has no place, and for a demand under any
/// `places`.
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

/// Returns the rate, in bit/s, at which all ranks together can send and receive, and the links that
/// limit the rate.
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

/// Links that limit the bound `rounds`: true if those of the root do not count, and their side.
type Bottleneck = (bool, Side);

/// Returns the bound of theorem E5, and the links that limit it if they count more than latencies.
/// `latency` is the least latency of any message.
fn rounds(
    ranks: &[CutPart],
    collective: &Collective,
    size: Bytes,
    latency: Time,
) -> Result<(Time, Option<Bottleneck>), UnitError> {
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
    let time = one_or_two(root_rate, total_rate.min(others), bytes, latency)?;
    let bottleneck = match others <= total_rate {
        true => (true, others_side),
        false => (false, side),
    };
    Ok((
        time,
        Some(bottleneck).filter(|_| time > latency.times(2).unwrap_or(time)),
    ))
}

/// Returns the time of `bytes` bytes that leave the root at rate `root` in one round, or that reach
/// the other ranks at rate `others` in two rounds.
fn one_or_two(root: u128, others: u128, bytes: u128, latency: Time) -> Result<Time, UnitError> {
    // A time of two rounds may fit into 64 bits even if the time of one round does not.
    let one_round = over(bytes, root).and_then(|one_round| one_round.plus(latency));
    let two_rounds = latency.times(2)?;
    if one_round
        .as_ref()
        .is_ok_and(|one_round| *one_round <= two_rounds)
    {
        return one_round;
    }
    let first = root.checked_mul(u128::from(latency.ps()));
    let rest = bits_ps(bytes)?.saturating_sub(first.ok_or_else(too_long)?);
    two_rounds.plus(quotient(rest, others)?)
}

/// Returns the bound of an all_reduce by theorem E5.
fn all_reduce_rounds(cables: &[CutPart], size: Bytes, latency: Time) -> Result<Time, UnitError> {
    let (ranks, size) = (cables.len() as u128, u128::from(size.get()));
    let (total_rate, _) = exchange_rate(cables);
    let direct =
        over(ranks * (ranks - 1) * size, total_rate).and_then(|direct| direct.plus(latency));
    let least = over(2 * (ranks - 1) * size, total_rate)?.plus(latency)?;
    // Rounded up, since it is subtracted.
    let earlier = Time::from_ps(latency.ps().div_ceil(cables.len() as u64 - 1));
    let meet = over(ranks * size, total_rate)?.plus(latency.times(2)?)?;
    let meet = Time::from_ps(meet.ps().saturating_sub(earlier.ps()));
    // The time of both ways may fit into 64 bits even if the time of direct sending does not.
    Ok(direct.map_or(meet.max(least), |direct| direct.min(meet.max(least))))
}

/// Returns the bytes that a set of `inside` ranks must take in and those that it must send. `root`
/// says whether the root is in the set.
fn bytes(collective: &Collective, size: Bytes, inside: u32, root: bool) -> (u128, u128) {
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
        CollectiveKind::Gather if root => (others * size, 0),
        CollectiveKind::Scatter if root => (0, others * size),
        CollectiveKind::Broadcast if root => (0, size),
        CollectiveKind::Reduce if root => (size, 0),
        CollectiveKind::Gather => (0, own * size),
        CollectiveKind::Reduce => (0, size),
        CollectiveKind::Scatter => (own * size, 0),
        CollectiveKind::Broadcast => (size, 0),
        CollectiveKind::Barrier => (0, 0),
    }
}
