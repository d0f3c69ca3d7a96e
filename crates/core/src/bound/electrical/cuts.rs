//! The bound of a cut: what the ranks of one part of a fabric must get from the others crosses the links
//! into it.
//!
//! Let S be any set of ranks and switches with s of the N ranks, and C the bits per second of all links
//! that lead into S. A byte crosses while its message moves, which is not before l, the least latency of
//! a message. Hence T >= l + m / C for m bytes that must come in, and the same for what must
//! leave; m for a part is in [`bytes`](super::bytes). In an all_reduce over a partition into G parts, all
//! parts together take in 2 (G - 1) M bytes, as G ranks would (Patarasuk and Yuan): what ranks of one part
//! tell each other is free here.
//!
//! Nothing is proved about which S is the sharpest; each that is tried gives a bound. Those tried: the ranks in
//! runs of b, for each b that divides N and each power of two; and the two halves of every run of b, over
//! all runs together, for each even b that divides N. A switch belongs to the part of the ranks that it
//! connects, nearest first, and to none where they are of several: the leaves and subtrees of a fat
//! tree, the groups of a dragonfly, the slabs and halves of a torus.

use super::{bytes, over};
use crate::collective::{Collective, CollectiveKind};
use crate::interrupt;
use crate::network::{Network, Sharing};
use crate::units::{Bytes, Time, UnitError};

/// Most steps over links, all cuts together.
const MOST_WORK: usize = 1 << 26;

/// The part of a switch that is in none.
const NONE: u32 = u32::MAX;

/// The distance of a switch that has not been met.
const UNKNOWN: u32 = u32::MAX;

/// A link between vertices.
#[derive(Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
    both_ways: bool,
    /// Bits per second; the greatest number where every flow may use all of them.
    rate: u128,
}

/// The greatest bound of the cuts that are tried, for messages of a latency at least; none where it is
/// not known where links lead.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub(super) fn best(
    network: &dyn Network,
    collective: &Collective,
    size: Bytes,
    latency: Time,
) -> Result<Option<Time>, UnitError> {
    let Some(edges) = edges(network) else {
        return Ok(None);
    };
    let ranks = collective.ranks();
    let neighbours = neighbours(&edges, ranks);
    let mut time = Time::ZERO;
    let most = MOST_WORK / edges.len().max(1);
    for parts in partitions(ranks).take(most) {
        let parts = labels(&neighbours, parts);
        time = time.max(of_partition(&edges, &parts, collective, size)?);
    }
    Ok(match time {
        Time::ZERO => None,
        time => Some(time.plus(latency)?),
    })
}

fn edges(network: &dyn Network) -> Option<Vec<Edge>> {
    let links = (0u32..).zip(network.links());
    let edges = links.map(|(number, link)| {
        let (from, to) = network.ends(number)?;
        Some(Edge {
            from: from as usize,
            to: to as usize,
            both_ways: network.leads_both_ways(number),
            rate: match link.sharing {
                Sharing::Shared => link.rate.bits_per_second().into(),
                Sharing::PerFlow => u128::MAX,
            },
        })
    });
    edges.collect()
}

/// The parts of the ranks, one partition after the other.
fn partitions(ranks: u32) -> impl Iterator<Item = Vec<u32>> {
    let divisors = move || (2..ranks).filter(move |length| ranks % *length == 0);
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

/// The vertices next to each, over links either way.
fn neighbours(edges: &[Edge], ranks: u32) -> Vec<Vec<usize>> {
    let vertices = edges.iter().map(|edge| edge.from.max(edge.to) + 1).max();
    let mut neighbours = vec![Vec::new(); vertices.unwrap_or(0).max(ranks as usize)];
    for edge in edges {
        interrupt::check();
        neighbours[edge.from].push(edge.to);
        neighbours[edge.to].push(edge.from);
    }
    neighbours
}

/// The part of each vertex, from those of the ranks: breadth first, those at one distance together.
fn labels(neighbours: &[Vec<usize>], mut parts: Vec<u32>) -> Vec<u32> {
    let mut distances = vec![0; parts.len()];
    distances.resize(neighbours.len(), UNKNOWN);
    let mut frontier: Vec<usize> = (0..parts.len()).collect();
    parts.resize(neighbours.len(), NONE);
    for distance in 1.. {
        let mut next = Vec::new();
        for &vertex in &frontier {
            interrupt::check();
            for &neighbour in &neighbours[vertex] {
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
#[derive(Clone, Copy, Default)]
struct Part {
    ranks: u32,
    root: bool,
    /// Bits per second.
    inwards: u128,
    outwards: u128,
}

/// The greatest bound of the parts of a partition, without latency; zero where there is one part only.
fn of_partition(
    edges: &[Edge],
    parts: &[u32],
    collective: &Collective,
    size: Bytes,
) -> Result<Time, UnitError> {
    let of_ranks = &parts[..collective.ranks() as usize];
    let count = of_ranks.iter().max().map_or(0, |greatest| greatest + 1);
    let mut sums = vec![Part::default(); count as usize];
    for part in of_ranks {
        sums[*part as usize].ranks += 1;
    }
    sums[of_ranks[collective.root() as usize] as usize].root = true;
    for edge in edges {
        interrupt::check();
        let (from, to) = (parts[edge.from], parts[edge.to]);
        if from == to {
            continue;
        }
        let ways = [(from, to), (to, from)];
        for (from, to) in &ways[..1 + usize::from(edge.both_ways)] {
            if let Some(part) = sums.get_mut(*from as usize) {
                part.outwards = part.outwards.saturating_add(edge.rate);
            }
            if let Some(part) = sums.get_mut(*to as usize) {
                part.inwards = part.inwards.saturating_add(edge.rate);
            }
        }
    }
    let mut time = Time::ZERO;
    for part in &sums {
        let (taken, sent) = bytes(collective, size, part.ranks, part.root);
        time = time
            .max(over(taken, part.inwards)?)
            .max(over(sent, part.outwards)?);
    }
    if collective.kind() == CollectiveKind::AllReduce && count > 1 {
        let all = 2 * u128::from(count - 1) * u128::from(size.get());
        let rates = sums.iter().map(|part| part.inwards);
        time = time.max(over(all, rates.fold(0, u128::saturating_add))?);
    }
    Ok(time)
}
