//! Bound of a cut: the data that a part of the ranks needs from the other ranks cross the links
//! into the part (theorem E2). In an all_reduce, most of the data are added up before they cross
//! and distributed afterwards (theorem E3).
//!
//! Any set of ranks and switches gives a bound. The search tries two kinds of partitions. A
//! partition of the first kind has blocks of b consecutive ranks as its parts; b is any divisor of
//! N or any power of two. A partition of the second kind has two parts, for an even divisor b of N.
//! It divides the ranks into blocks of b ranks: the first halves of all blocks are one part, and
//! the second halves are the other part. A switch belongs to the part of its nearest ranks, and to
//! no part if its nearest ranks are of several parts. Thus the parts are the leaves and subtrees of
//! a fat tree, the groups of a dragonfly, the slabs and halves of a torus, or a rank with its
//! router.

use std::borrow::Cow;

use super::links::{Links, NONE, Nearest, UNBOUNDED, Windows, Work, latency_of, latency_of_others};
use super::ratio::Ratio;
use super::{Witness, bytes};
use crate::{bits_ps, quotient};
use opticoll_base::graph::UNREACHED;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of link visits for all cuts together.
const MAX_STEPS: usize = 1 << 23;

/// Links of a part that bytes must cross: the links into the part, the links out of it, or both.
/// `part` is `None` for all parts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Side {
    part: Option<u32>,
    inwards: bool,
    outwards: bool,
}

impl Side {
    /// Returns the three sides of `part`: links into the part, links out of the part, and both.
    pub(super) fn all(part: Option<u32>) -> [Side; 3] {
        [(true, false), (false, true), (true, true)].map(|(inwards, outwards)| Side {
            part,
            inwards,
            outwards,
        })
    }
}

/// Returns the greatest bound of the cuts tried. `least` is the least latency of a message.
pub(super) fn best(
    links: &Links,
    collective: &Collective,
    size: Bytes,
    least: Time,
) -> Result<(Time, Option<Witness>), UnitError> {
    let mut best: Option<(Time, Side, Vec<u32>)> = None;
    for labels in partitions_of(links) {
        let partition = Partition::new(links, |vertex| labels[vertex], collective.root());
        let (time, side) = partition.time(collective, size, least)?;
        if let Some(side) = side.filter(|_| best.as_ref().is_none_or(|best| time > best.0)) {
            best = Some((time, side, labels));
        }
    }
    Ok(best.map_or((Time::ZERO, None), |(time, side, labels)| {
        let shown = witness(links, |vertex| labels[vertex], side);
        (time, Some(shown))
    }))
}

/// Returns the greatest ratio of all cuts that are tried, and its witness. The ratio is the number
/// of bytes that must cross for each byte of size, over the rate of the links. `None` if a number
/// exceeds 128 bits.
pub(super) fn best_ratio(links: &Links, collective: &Collective) -> Option<(Ratio, Witness)> {
    let mut best: Option<(Ratio, Side, Vec<u32>)> = None;
    for labels in partitions_of(links) {
        let partition = Partition::new(links, |vertex| labels[vertex], collective.root());
        let Some((ratio, side)) = partition.ratio(collective)? else {
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

/// Returns the ranks of the part of `side` and the links of `side`.
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
        trees: None,
        ranks: ranks.collect(),
        parts: parts.len() as u32,
        links: crosses.map(|(number, _)| number).collect(),
        lengths: Vec::new(),
    }
}

/// Returns every partition that is tried: the part of each vertex, indexed by vertex.
fn partitions_of(links: &Links) -> impl Iterator<Item = Vec<u32>> + '_ {
    let most = MAX_STEPS / links.edges.len().max(1);
    let tried = partitions(links.ranks).take(most);
    tried.map(|of_ranks| labels(links, of_ranks))
}

/// Returns every partition that is tried: the part of each rank, indexed by rank.
fn partitions(ranks: u32) -> impl Iterator<Item = Vec<u32>> {
    let divisors = move || (1..ranks).filter(move |length| ranks % *length == 0);
    let powers = (1..32)
        .map(|power| 1 << power)
        .take_while(move |&length| length < ranks);
    let blocks = divisors().chain(powers.filter(move |length| ranks % *length != 0));
    let halves = divisors().filter(|length| length % 2 == 0);
    let blocks = blocks.map(move |length| (0..ranks).map(|rank| rank / length).collect());
    let halves = halves.map(move |length| {
        (0..ranks)
            .map(|rank| rank % length / (length / 2))
            .collect()
    });
    blocks.chain(halves)
}

/// Returns the part of each vertex, indexed by vertex, given the part of each rank. Visits vertices
/// breadth first; all vertices at the same distance are visited together.
fn labels(links: &Links, mut parts: Vec<u32>) -> Vec<u32> {
    let mut distances = vec![0; parts.len()];
    distances.resize(links.vertices(), UNREACHED);
    let mut frontier: Vec<usize> = (0..parts.len()).collect();
    parts.resize(links.vertices(), NONE);
    for distance in 1.. {
        let mut next = Vec::new();
        for &vertex in &frontier {
            interrupt::check();
            for neighbour in links.neighbours(vertex) {
                if distances[neighbour] == UNREACHED {
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

/// Ranks of a part, and the links between the part and the rest of the network.
#[derive(Clone, Default)]
pub(super) struct CutPart {
    pub(super) ranks: u32,
    pub(super) root: bool,
    pub(super) inwards: Windows,
    pub(super) outwards: Windows,
    /// Links into or out of the part, each counted once; empty if no link is half-duplex.
    pub(super) both: Windows,
}

impl CutPart {
    /// Returns the sum, in bit/s, of the rates of the links into the part and out of it.
    pub(super) fn rate(&self) -> u128 {
        match self.both.rate() {
            0 => self.inwards.rate().saturating_add(self.outwards.rate()),
            both => both,
        }
    }
}

/// Parts of a partition, and the work of switches.
pub(super) struct Partition {
    pub(super) parts: Vec<CutPart>,
    /// Work of the switches that belong to no part.
    between: Work,
    /// Work of all switches.
    all: Work,
}

impl Partition {
    /// Returns the partition in which vertex v belongs to the part `part_of(v)`.
    pub(super) fn new(links: &Links, part_of: impl Fn(usize) -> u32, root: u32) -> Partition {
        Partition {
            between: links.work(|vertex| part_of(vertex) == NONE),
            all: links.work(|_| true),
            parts: parts(links, part_of, root),
        }
    }
}

/// Returns the ranks and links of each part, indexed by part; empty if there is only one part.
fn parts(links: &Links, part_of: impl Fn(usize) -> u32, root: u32) -> Vec<CutPart> {
    let rank_parts = || (0..links.ranks as usize).map(&part_of);
    let count = rank_parts().max().map_or(0, |greatest| greatest + 1);
    if count < 2 {
        return Vec::new();
    }
    let mut parts = vec![CutPart::default(); count as usize];
    for part in rank_parts() {
        parts[part as usize].ranks += 1;
    }
    parts[part_of(root as usize) as usize].root = true;
    let half_duplex = links.edges.iter().any(|edge| edge.both_ways);
    let late = links.has_latency();
    let nearest_ranks =
        late.then(|| [false, true].map(|towards| links.nearest(rank_parts(), towards)));
    let window = |near: usize, far: usize, part: u32, incoming: bool| -> Option<(u64, u64)> {
        let Some([from, towards]) = &nearest_ranks else {
            return Some((0, 0));
        };
        let latency_inside = |nearest: &[Nearest]| latency_of(&nearest[near], part);
        let latency_outside = |nearest: &[Nearest]| latency_of_others(&nearest[far], part);
        match incoming {
            true => Some((latency_outside(from)?, latency_inside(towards)?)),
            false => Some((latency_inside(from)?, latency_outside(towards)?)),
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
            let both_windows = [into, out].into_iter().flatten();
            let either = both_windows.reduce(|one, other| (one.0.min(other.0), one.1.min(other.1)));
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

/// Returns the bound of theorem E3 for the links of `windows`. `fewer` is the number of ranks on
/// the smaller side of the cut, and `least` is the least latency of a message.
fn summed_and_distributed(
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
    // Rounded up, because the bound subtracts this time.
    let subtracted = Time::from_ps((2 * least.ps()).div_ceil(fewer.max(1).into()));
    let twice = least.times(2)?;
    let later = crossing(1)?.plus(Time::from_ps(twice.ps().saturating_sub(subtracted.ps())))?;
    Ok(later.min(crossing(fewer)?))
}

/// Bytes that must cross one side of a part, or of all parts together.
struct Demand<'a> {
    windows: Cow<'a, Windows>,
    bytes: u128,
    side: Side,
}

/// Returns the bytes that must cross each side of each part. For an all_reduce, a broadcast and a
/// reduce, the list ends with the sides of all parts together, as far as theorem N2 permits: sums
/// that switches between the parts add enter a part once, and data that they multicast leave a part
/// once.
fn demands<'a>(
    Partition { parts, between, .. }: &'a Partition,
    collective: &Collective,
    size: Bytes,
) -> Vec<Demand<'a>> {
    let mut demands = Vec::with_capacity(3 * parts.len());
    for (number, part) in (0u32..).zip(parts) {
        let (received, sent) = bytes(collective, size, part.ranks, part.root);
        let crossing = [
            (&part.inwards, received),
            (&part.outwards, sent),
            (&part.both, received + sent),
        ];
        let crossing = crossing.into_iter().zip(Side::all(Some(number)));
        demands.extend(crossing.map(|((windows, bytes), side)| Demand {
            windows: Cow::Borrowed(windows),
            bytes,
            side,
        }));
    }
    // An all_reduce adds data and distributes the sum; a broadcast or reduce does one of these.
    let times = match collective.kind() {
        CollectiveKind::AllReduce => 2,
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        _ => 0,
    };
    if times > 0 && parts.len() > 1 {
        let total_bytes = times * (parts.len() as u128 - 1) * u128::from(size.get());
        let mut together = CutPart::default();
        for part in parts {
            together.inwards.extend(&part.inwards);
            together.outwards.extend(&part.outwards);
            together.both.extend(&part.both);
        }
        let adds = between.adds && collective.kind() != CollectiveKind::Broadcast;
        let multicasts = between.multicasts && collective.kind() != CollectiveKind::Reduce;
        let crossing = [
            (together.inwards, total_bytes, !adds),
            (together.outwards, total_bytes, !multicasts),
            (together.both, 2 * total_bytes, !adds && !multicasts),
        ];
        let crossing = crossing.into_iter().zip(Side::all(None));
        let crossing = crossing.filter(|((.., holds), _)| *holds);
        demands.extend(crossing.map(|((windows, bytes, _), side)| Demand {
            windows: Cow::Owned(windows),
            bytes,
            side,
        }));
    }
    demands
}

impl Partition {
    /// Returns the greatest bound of the parts, and the side that proves it. Returns 0 s if there
    /// is only one part. `least` is the least latency of any message.
    pub(super) fn time(
        &self,
        collective: &Collective,
        size: Bytes,
        least: Time,
    ) -> Result<(Time, Option<Side>), UnitError> {
        let parts = &self.parts;
        let mut best = (Time::ZERO, None);
        let mut keep_greater = |time: Time, side: Side| {
            if time > best.0 {
                best = (time, Some(side));
            }
        };
        for demand in demands(self, collective, size) {
            keep_greater(
                demand.windows.time_to_carry(bits_ps(demand.bytes)?)?,
                demand.side,
            );
        }
        // Switches that add or multicast need no time of a message for partial sums.
        let is_plain = collective.kind() == CollectiveKind::AllReduce && !self.all.is_any();
        if is_plain && parts.len() > 1 {
            for (number, part) in (0u32..).zip(parts) {
                let fewer = part.ranks.min(collective.ranks() - part.ranks);
                for (windows, side) in [&part.inwards, &part.outwards]
                    .into_iter()
                    .zip(Side::all(Some(number)))
                {
                    keep_greater(summed_and_distributed(windows, size, fewer, least)?, side);
                }
            }
        }
        Ok(best)
    }

    /// Returns the greatest ratio of the parts, and its side. The ratio is the number of bytes that
    /// must cross for each byte of size, over the rate of the links. `Some(None)` if no bytes must
    /// cross, or if the links give every flow their whole rate; `None` if a number exceeds 128
    /// bits.
    pub(super) fn ratio(&self, collective: &Collective) -> Option<Option<(Ratio, Side)>> {
        let mut best: Option<(Ratio, Side)> = None;
        let ranks = u128::from(collective.ranks());
        // With a size of one byte per rank, every division is exact.
        for demand in demands(self, collective, Bytes::new(collective.ranks().into())) {
            let rate = demand.windows.rate();
            if demand.bytes == 0 || rate == 0 || rate == UNBOUNDED {
                continue;
            }
            let ratio = Ratio {
                bytes: demand.bytes,
                rate,
            }
            .divided_by(ranks)?;
            if best.map_or(Some(true), |best| best.0.is_below(ratio))? {
                best = Some((ratio, demand.side));
            }
        }
        Some(best)
    }
}
