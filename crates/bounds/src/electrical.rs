//! Bounds on the time of any plan on an electrical fabric.
//!
//! A message waits for the latencies of its links, then its bytes move. A rank may send any number
//! of messages at once, and nothing is paid per message: so something of one rank can reach all in
//! one round, and log2 N rounds are no bound here.
//!
//! | name | what bounds the time | theorem | file |
//! |---|---|---|---|
//! | `bandwidth` | the bytes that a rank must take in, or send, over its cables | E2 | `links.rs`, `cuts.rs` |
//! | `latency` | what a rank needs of another comes no sooner than over a shortest way | E4 | `distances.rs` |
//! | `relays` | what a rank does not get from its owner takes two messages | E6 | `relays.rs` |
//! | `rounds` | broadcast, reduce, all_reduce: what is forwarded has been received | E5 | here |
//! | `cut` | the same as `bandwidth` for parts of the ranks | E2, E3 | `cuts.rs` |
//! | `throughput` | the same for the tightest of all cuts, by maximum flows | E8, E9 | `tightest.rs` |
//! | `quickest_flow` | broadcast, reduce: what one rank needs of another over links that it comes to late | E7 | `quickest.rs` |
//! | `concurrent_flow` | all_to_all: what all pairs of ranks load on all links together | E10 | `concurrent.rs` |
//!
//! Where a cable of a rank gives each flow its whole rate, or nothing is known of where links lead, there is
//! no bound.
//!
//! **Where ranks sit.** Ranks are those of the network: rank r of the collective is its rank r.
//! All that depends on it is which of them is the root. Where ranks are placed otherwise, [`best`]
//! is asked about the collective whose root is the place of the root; without a root a bound holds
//! wherever ranks sit. With a demand it does not: there is no bound then.
//!
//! **Rounding.** Bounds are rounded down to picoseconds. Times of the flow simulator may lie below
//! the exact ones by some 1e-12 of them (its `ROUNDING`), and so below a bound that a plan meets.

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
pub use concurrent::proved_by;
use cuts::{CutPart, Side};
use links::{Links, NONE, UNBOUNDED};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};
pub use optimum::optimum;
pub use ratio::{Optimum, Ratio};

/// Most steps over links in search of the tightest cut, where a planner asks: it is one bound of several.
const MOST_WORK: u64 = 1 << 24;

/// The same where the bound is an answer of its own, or stands beside a time.
pub const THOROUGH_WORK: u64 = 1 << 28;

/// A bound, and what shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessedBound {
    /// The bound.
    pub bound: TimeBound,
    /// The cut that is the bottleneck, or lengths of links, where the bound is one of these.
    pub witness: Option<Witness>,
}

/// A cut: ranks that need something of the others, or the others of them, and the links between. Or links with
/// lengths, the multipliers of a linear program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// The ranks on one side.
    pub ranks: Vec<u32>,
    /// The number of parts that these ranks are in: several where what all of them need crosses the links together; none
    /// of lengths.
    pub parts: u32,
    /// The links that lead into that side, or out of it.
    pub links: Vec<u32>,
    /// The length of each link; none of a cut.
    pub lengths: Vec<u64>,
}

/// The greatest bound on the time of any plan; none where some cable of a rank is not shared, or leads
/// nobody knows where. Of equal ones the first, which assumes least.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn best(
    network: &dyn Network,
    collective: &Collective,
    size: Bytes,
) -> Result<Option<TimeBound>, UnitError> {
    Ok(greatest(bounds(network, collective, size, MOST_WORK)?))
}

/// The greatest of some bounds; of equal ones the first.
pub fn greatest(bounds: Vec<WitnessedBound>) -> Option<TimeBound> {
    let bounds = bounds.into_iter().map(|one| one.bound);
    bounds.reduce(|best, next| if next.time > best.time { next } else { best })
}

/// All bounds on the time of any plan, those first that assume least; none where some cable of a rank is not shared,
/// or leads nobody knows where. The search for the tightest cut is given up after `most_work` steps over links.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn bounds(
    network: &dyn Network,
    collective: &Collective,
    size: Bytes,
    most_work: u64,
) -> Result<Vec<WitnessedBound>, UnitError> {
    let Some(links) = Links::of(network) else {
        return Ok(Vec::new());
    };
    let ranks = collective.ranks();
    let of_rank = |vertex: usize| vertex < ranks as usize;
    let mut cables = links.edges.iter();
    if cables.any(|edge| edge.rate == UNBOUNDED && (of_rank(edge.from) || of_rank(edge.to))) {
        return Ok(Vec::new());
    }
    let bare = |bound| WitnessedBound {
        bound,
        witness: None,
    };
    if ranks < 2 {
        return Ok(vec![bare(TimeBound::ALONE)]);
    }
    let own = |vertex: usize| match of_rank(vertex) {
        true => vertex as u32,
        false => NONE,
    };
    let alone = cuts::parts(&links, own, collective.root());
    let firsts = alone.iter().filter_map(|rank| rank.inwards.first());
    let least = Time::from_ps(firsts.min().unwrap_or(0));
    if collective.demand().is_some() {
        let demanded = demanded::bounds(&links, &alone, collective, size)?;
        return Ok(demanded.into_iter().map(bare).collect());
    }
    let (bandwidth, side) = cuts::of_parts(&alone, collective, size, least)?;
    let (of_rounds, of_all) = rounds(&alone, collective, size, least)?;
    let (of_cut, cut) = cuts::best(&links, collective, size, least)?;
    let mut bounds: Vec<WitnessedBound> = [
        (
            TimeBound {
                time: bandwidth,
                name: "bandwidth",
                assumption: "no rank sends or receives faster than its cables",
            },
            side.map(|side| cuts::witness(&links, own, side)),
        ),
        (
            TimeBound {
                time: distances::best(&links, &alone, collective, size)?,
                name: "latency",
                assumption: "what a rank needs of another takes the latencies of a shortest way between them",
            },
            None,
        ),
        (
            TimeBound {
                time: of_rounds,
                name: "rounds",
                assumption: "no rank sends or receives faster than its cables, or forwards what it has not \
                             received",
            },
            of_all.map(|(without_root, side)| {
                let of = |vertex| match without_root && vertex == collective.root() as usize {
                    true => NONE,
                    false => own(vertex),
                };
                cuts::witness(&links, of, side)
            }),
        ),
        (
            TimeBound {
                time: relays::best(&links, &alone, collective, size)?,
                name: "relays",
                assumption: "what a rank does not get from its owner takes the latencies of two messages",
            },
            None,
        ),
        (
            TimeBound {
                time: of_cut,
                name: "cut",
                assumption: "what one part of the ranks needs of the others crosses the links between them",
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
        most_work > MOST_WORK,
    )?);
    bounds.extend(tightest::best(&links, collective, size, least, most_work)?);
    let known = bounds.iter().map(|one| one.bound.time).max();
    let quickest = quickest::best(&links, collective, size, known.unwrap_or(Time::ZERO))?;
    if let Some((time, witness)) = quickest {
        bounds.push(WitnessedBound {
            bound: TimeBound {
                time,
                name: "quickest_flow",
                assumption: "what a rank needs of the root comes to a link no sooner than over the shortest way",
            },
            witness: Some(witness),
        });
    }
    Ok(bounds)
}

/// The collective that [`best`] is asked about where ranks sit at other places: `places` has that of each rank, or
/// is `None` where each is at its own. `None` where the root has no place, and for a demand, whose pairs would sit elsewhere.
pub fn placed(collective: &Collective, places: &Option<Vec<u32>>) -> Option<Collective> {
    let Some(places) = places else {
        return Some(*collective);
    };
    if collective.demand().is_some() {
        return None;
    }
    let place = places.get(collective.root() as usize)?;
    collective.with_root(*place).ok()
}

/// What ranks can send together while they receive as much, in bits per second, and by which links.
fn together(ranks: &[CutPart]) -> (u128, Side) {
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

/// The links of all ranks, or of all but the root.
type OfAll = (bool, Side);

/// The bound, and the links that it comes from where these count more than latencies. `latency` is the least of any
/// message.
fn rounds(
    ranks: &[CutPart],
    collective: &Collective,
    size: Bytes,
    latency: Time,
) -> Result<(Time, Option<OfAll>), UnitError> {
    let bytes = (ranks.len() as u128 - 1) * u128::from(size.get());
    let root = &ranks[collective.root() as usize];
    let sum = |rate: fn(&CutPart) -> u128| ranks.iter().map(rate).sum::<u128>();
    let (all, side) = together(ranks);
    let [inwards, outwards, _] = Side::all(None);
    let (of_root, others, of_others) = match collective.kind() {
        CollectiveKind::Broadcast => {
            let others = sum(|rank| rank.inwards.rate()) - root.inwards.rate();
            (root.outwards.rate(), others, inwards)
        }
        CollectiveKind::Reduce => {
            let others = sum(|rank| rank.outwards.rate()) - root.outwards.rate();
            (root.inwards.rate(), others, outwards)
        }
        CollectiveKind::AllReduce => {
            let time = exchange(ranks, size, latency)?;
            return Ok((time, Some((false, side))));
        }
        _ => return Ok((Time::ZERO, None)),
    };
    let time = one_or_two(of_root, all.min(others), bytes, latency)?;
    let of_all = match others <= all {
        true => (true, of_others),
        false => (false, side),
    };
    Ok((
        time,
        Some(of_all).filter(|_| time > latency.times(2).unwrap_or(time)),
    ))
}

/// So many bytes over the root's cables to those of the others, in one round or in two.
fn one_or_two(root: u128, others: u128, bytes: u128, latency: Time) -> Result<Time, UnitError> {
    // Two rounds may fit into 64 bits where one does not.
    let one = over(bytes, root).and_then(|one| one.plus(latency));
    let two = latency.times(2)?;
    if one.as_ref().is_ok_and(|one| *one <= two) {
        return one;
    }
    let first = root.checked_mul(u128::from(latency.ps()));
    let left = bits_ps(bytes)?.saturating_sub(first.ok_or_else(too_long)?);
    two.plus(quotient(left, others)?)
}

/// The bound of an all_reduce.
fn exchange(cables: &[CutPart], size: Bytes, latency: Time) -> Result<Time, UnitError> {
    let (ranks, size) = (cables.len() as u128, u128::from(size.get()));
    let (all, _) = together(cables);
    let direct = over(ranks * (ranks - 1) * size, all).and_then(|direct| direct.plus(latency));
    let least = over(2 * (ranks - 1) * size, all)?.plus(latency)?;
    // Rounded up, since it is taken off.
    let earlier = Time::from_ps(latency.ps().div_ceil(cables.len() as u64 - 1));
    let meet = over(ranks * size, all)?.plus(latency.times(2)?)?;
    let meet = Time::from_ps(meet.ps().saturating_sub(earlier.ps()));
    // Both ways may fit into 64 bits where sending directly does not.
    Ok(direct.map_or(meet.max(least), |direct| direct.min(meet.max(least))))
}

/// The bytes that a part of the ranks, the root among them or not, has to take in and to send.
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
