//! The bound of a cut: what the ranks of one part of a fabric must get from the others crosses the
//! links into it (theorem E2), and in an all_reduce most of it is summed up before it crosses and
//! spread after that (theorem E3).
//!
//! Any set of ranks and switches gives a bound. Those tried: the ranks in runs of b, for each b
//! that divides N (1 too) and each power of two; and the two halves of every run of b, over all
//! runs together, for each even b that divides N. A switch belongs to the part of the ranks that
//! it connects, nearest first, and to none where they are of several: the leaves and subtrees of a
//! fat tree, the groups of a dragonfly, the slabs and halves of a torus, a rank and the router of
//! its own.

use std::borrow::Cow;

use super::links::{Links, NONE, Nearest, UNBOUNDED, Windows, latency_of, latency_of_others};
use super::ratio::Ratio;
use super::{Witness, bytes};
use crate::{bits_ps, quotient};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Most steps over links, all cuts together.
const MOST_WORK: usize = 1 << 23;

/// The distance of a switch that has not been met.
const UNKNOWN: u32 = u32::MAX;

/// The links of a part that bytes must cross: those into it, those out of it, or both; of all parts together where
/// there is no `part`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Side {
    part: Option<u32>,
    inwards: bool,
    outwards: bool,
}

impl Side {
    /// The links into a part, out of it, and both.
    pub(super) fn all(part: Option<u32>) -> [Side; 3] {
        [(true, false), (false, true), (true, true)].map(|(inwards, outwards)| Side {
            part,
            inwards,
            outwards,
        })
    }
}

/// The greatest bound of the cuts that are tried, and what shows it.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub(super) fn best(
    links: &Links,
    collective: &Collective,
    size: Bytes,
    least: Time,
) -> Result<(Time, Option<Witness>), UnitError> {
    let mut best: Option<(Time, Side, Vec<u32>)> = None;
    for labels in partitions_of(links) {
        let parts = parts(links, |vertex| labels[vertex], collective.root());
        let (time, side) = of_parts(&parts, collective, size, least)?;
        if let Some(side) = side.filter(|_| best.as_ref().is_none_or(|best| time > best.0)) {
            best = Some((time, side, labels));
        }
    }
    Ok(best.map_or((Time::ZERO, None), |(time, side, labels)| {
        let shown = witness(links, |vertex| labels[vertex], side);
        (time, Some(shown))
    }))
}

/// The greatest ratio of the cuts that are tried, with what shows it: bytes that must cross for each byte of size, and the
/// rate of the links. `None` beyond 128 bits.
pub(super) fn best_ratio(links: &Links, collective: &Collective) -> Option<(Ratio, Witness)> {
    let mut best: Option<(Ratio, Side, Vec<u32>)> = None;
    for labels in partitions_of(links) {
        let parts = parts(links, |vertex| labels[vertex], collective.root());
        let Some((ratio, side)) = ratio_of_parts(&parts, collective)? else {
            continue;
        };
        if best
            .as_ref()
            .map_or(Some(true), |best| best.0.is_below(ratio))?
        {
            best = Some((ratio, side, labels));
        }
    }
    best.map(|(ratio, side, labels)| (ratio, witness(links, |vertex| labels[vertex], side)))
}

/// The ranks of a part, and the links of a side of it.
pub(super) fn witness(links: &Links, part_of: impl Fn(usize) -> u32, side: Side) -> Witness {
    let is_of = |vertex: usize| {
        let part = part_of(vertex);
        part != NONE && side.part.is_none_or(|own| own == part)
    };
    let ranks = (0..links.ranks).filter(|rank| is_of(*rank as usize));
    let mut parts: Vec<u32> = ranks.clone().map(|rank| part_of(rank as usize)).collect();
    parts.sort_unstable();
    parts.dedup();
    let numbered = (0u32..).zip(&links.edges);
    let crosses = numbered.filter(|(_, edge)| {
        let leads_in = side.inwards || edge.both_ways;
        let leads_out = side.outwards || edge.both_ways;
        part_of(edge.from) != part_of(edge.to)
            && (leads_in && is_of(edge.to) || leads_out && is_of(edge.from))
    });
    Witness {
        ranks: ranks.collect(),
        parts: parts.len() as u32,
        links: crosses.map(|(number, _)| number).collect(),
        lengths: Vec::new(),
    }
}

/// The parts of all vertices, of each partition that is tried.
fn partitions_of(links: &Links) -> impl Iterator<Item = Vec<u32>> + '_ {
    let most = MOST_WORK / links.edges.len().max(1);
    let tried = partitions(links.ranks).take(most);
    tried.map(|of_ranks| labels(links, of_ranks))
}

/// The parts of the ranks, one partition after the other.
fn partitions(ranks: u32) -> impl Iterator<Item = Vec<u32>> {
    let divisors = move || (1..ranks).filter(move |length| ranks % *length == 0);
    let powers = (1..32)
        .map(|power| 1 << power)
        .take_while(move |&length| length < ranks);
    let runs = divisors().chain(powers.filter(move |length| ranks % *length != 0));
    let halves = divisors().filter(|length| length % 2 == 0);
    let runs = runs.map(move |length| (0..ranks).map(|rank| rank / length).collect());
    let halves = halves.map(move |length| {
        (0..ranks)
            .map(|rank| rank % length / (length / 2))
            .collect()
    });
    runs.chain(halves)
}

/// The part of each vertex, from those of the ranks: breadth first, those at one distance together.
fn labels(links: &Links, mut parts: Vec<u32>) -> Vec<u32> {
    let mut distances = vec![0; parts.len()];
    distances.resize(links.vertices(), UNKNOWN);
    let mut frontier: Vec<usize> = (0..parts.len()).collect();
    parts.resize(links.vertices(), NONE);
    for distance in 1.. {
        let mut next = Vec::new();
        for &vertex in &frontier {
            interrupt::check();
            for neighbour in links.neighbours(vertex) {
                if distances[neighbour] == UNKNOWN {
                    distances[neighbour] = distance;
                    parts[neighbour] = parts[vertex];
                    next.push(neighbour);
                } else if distances[neighbour] == distance && parts[neighbour] != parts[vertex] {
                    parts[neighbour] = NONE;
                }
            }
        }
        if next.is_empty() {
            break;
        }
        frontier = next;
    }
    parts
}

/// What crosses into and out of a part.
#[derive(Clone, Default)]
pub(super) struct CutPart {
    pub(super) ranks: u32,
    pub(super) root: bool,
    pub(super) inwards: Windows,
    pub(super) outwards: Windows,
    /// Of all links, each once; nothing where none is half-duplex.
    pub(super) both: Windows,
}

impl CutPart {
    /// Bits per second into the part and out of it together.
    pub(super) fn rate(&self) -> u128 {
        match self.both.rate() {
            0 => self.inwards.rate().saturating_add(self.outwards.rate()),
            both => both,
        }
    }
}

/// What crosses into and out of the parts, of which there is one for each number that ranks have; none where
/// there is one part only.
pub(super) fn parts(links: &Links, part_of: impl Fn(usize) -> u32, root: u32) -> Vec<CutPart> {
    let of_ranks = || (0..links.ranks as usize).map(&part_of);
    let count = of_ranks().max().map_or(0, |greatest| greatest + 1);
    if count < 2 {
        return Vec::new();
    }
    let mut parts = vec![CutPart::default(); count as usize];
    for part in of_ranks() {
        parts[part as usize].ranks += 1;
    }
    parts[part_of(root as usize) as usize].root = true;
    let half_duplex = links.edges.iter().any(|edge| edge.both_ways);
    let late = links.are_late();
    let ways = late.then(|| [false, true].map(|towards| links.nearest(of_ranks(), towards)));
    let window = |near: usize, far: usize, part: u32, incoming: bool| -> Option<(u64, u64)> {
        let Some([from, towards]) = &ways else {
            return Some((0, 0));
        };
        let own = |nearest: &[Nearest]| latency_of(&nearest[near], part);
        let others = |nearest: &[Nearest]| latency_of_others(&nearest[far], part);
        match incoming {
            true => Some((others(from)?, own(towards)?)),
            false => Some((own(from)?, others(towards)?)),
        }
    };
    for edge in &links.edges {
        if part_of(edge.from) == part_of(edge.to) {
            continue;
        }
        for (near, far) in [(edge.from, edge.to), (edge.to, edge.from)] {
            let number = part_of(near);
            let Some(part) = parts.get_mut(number as usize) else {
                continue;
            };
            let leads_in = edge.both_ways || near == edge.to;
            let leads_out = edge.both_ways || near == edge.from;
            let into = window(near, far, number, true).filter(|_| leads_in);
            let out = window(near, far, number, false).filter(|_| leads_out);
            let ways = [into, out].into_iter().flatten();
            let either = ways.reduce(|one, other| (one.0.min(other.0), one.1.min(other.1)));
            for (windows, window) in [
                (&mut part.inwards, into),
                (&mut part.outwards, out),
                (&mut part.both, either.filter(|_| half_duplex)),
            ] {
                if let Some((before, after)) = window {
                    let least = before.saturating_add(edge.latency).saturating_add(after);
                    windows.add(least, edge.rate);
                }
            }
        }
    }
    parts
}

/// The bound of what is summed up before it crosses and spread after that; `fewer` are the ranks on the side of fewer.
fn summed_and_spread(
    windows: &Windows,
    size: Bytes,
    fewer: u32,
    least: Time,
) -> Result<Time, UnitError> {
    let Some(window) = windows.first().filter(|_| windows.rate() != UNBOUNDED) else {
        return Ok(Time::ZERO);
    };
    let crossing = |times: u32| {
        let bits = bits_ps(u128::from(size.get()) * u128::from(times))?;
        Time::from_ps(window).plus(quotient(bits, windows.rate())?)
    };
    // Rounded up, since it is taken off.
    let off = Time::from_ps((2 * least.ps()).div_ceil(fewer.max(1).into()));
    let twice = least.times(2)?;
    let later = crossing(1)?.plus(Time::from_ps(twice.ps().saturating_sub(off.ps())))?;
    Ok(later.min(crossing(fewer)?))
}

/// Bytes that must cross a side of a partition.
struct Demand<'a> {
    windows: Cow<'a, Windows>,
    bytes: u128,
    side: Side,
}

/// What must cross the sides of the parts of a partition, and in an all_reduce, a broadcast and a reduce those of all
/// parts together.
fn demands<'a>(parts: &'a [CutPart], collective: &Collective, size: Bytes) -> Vec<Demand<'a>> {
    let mut demands = Vec::with_capacity(3 * parts.len());
    for (number, part) in (0u32..).zip(parts) {
        let (taken, sent) = bytes(collective, size, part.ranks, part.root);
        let crossing = [
            (&part.inwards, taken),
            (&part.outwards, sent),
            (&part.both, taken + sent),
        ];
        let crossing = crossing.into_iter().zip(Side::all(Some(number)));
        demands.extend(crossing.map(|((windows, bytes), side)| Demand {
            windows: Cow::Borrowed(windows),
            bytes,
            side,
        }));
    }
    // In an all_reduce a sum comes together and spreads; in the other two one of both.
    let times = match collective.kind() {
        CollectiveKind::AllReduce => 2,
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        _ => 0,
    };
    if times > 0 && parts.len() > 1 {
        let all = times * (parts.len() as u128 - 1) * u128::from(size.get());
        let mut together = CutPart::default();
        for part in parts {
            together.inwards.extend(&part.inwards);
            together.outwards.extend(&part.outwards);
            together.both.extend(&part.both);
        }
        let crossing = [
            (together.inwards, all),
            (together.outwards, all),
            (together.both, 2 * all),
        ];
        let crossing = crossing.into_iter().zip(Side::all(None));
        demands.extend(crossing.map(|((windows, bytes), side)| Demand {
            windows: Cow::Owned(windows),
            bytes,
            side,
        }));
    }
    demands
}

/// The greatest bound of the parts of a partition, and the side that shows it; zero where there is one part only.
/// `least` is the least latency of any message.
pub(super) fn of_parts(
    parts: &[CutPart],
    collective: &Collective,
    size: Bytes,
    least: Time,
) -> Result<(Time, Option<Side>), UnitError> {
    let mut best = (Time::ZERO, None);
    let mut take = |time: Time, side: Side| {
        if time > best.0 {
            best = (time, Some(side));
        }
    };
    for demand in demands(parts, collective, size) {
        take(demand.windows.carry(bits_ps(demand.bytes)?)?, demand.side);
    }
    if collective.kind() == CollectiveKind::AllReduce && parts.len() > 1 {
        for (number, part) in (0u32..).zip(parts) {
            let fewer = part.ranks.min(collective.ranks() - part.ranks);
            for (windows, side) in [&part.inwards, &part.outwards]
                .into_iter()
                .zip(Side::all(Some(number)))
            {
                take(summed_and_spread(windows, size, fewer, least)?, side);
            }
        }
    }
    Ok(best)
}

/// The greatest ratio of the parts of a partition: bytes that must cross for each byte of size, over the rate of the
/// links of a side. `Some(None)` where nothing must cross, or links are not shared; `None` beyond 128 bits.
pub(super) fn ratio_of_parts(
    parts: &[CutPart],
    collective: &Collective,
) -> Option<Option<(Ratio, Side)>> {
    let mut best: Option<(Ratio, Side)> = None;
    let ranks = u128::from(collective.ranks());
    // A byte for each rank is divided without a rest.
    for demand in demands(parts, collective, Bytes::new(collective.ranks().into())) {
        let rate = demand.windows.rate();
        if demand.bytes == 0 || rate == 0 || rate == UNBOUNDED {
            continue;
        }
        let ratio = Ratio {
            bytes: demand.bytes,
            rate,
        }
        .over(ranks)?;
        if best.map_or(Some(true), |best| best.0.is_below(ratio))? {
            best = Some((ratio, demand.side));
        }
    }
    Some(best)
}
