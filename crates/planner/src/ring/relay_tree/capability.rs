//! Plans for rings that do not look the same from every rank, or whose ranks do more or less than send
//! a lightpath on every channel: few ports, broken links.
//!
//! **Broken links.** Take a relay tree for a whole ring with c' channels per direction, rotated to all
//! origins. In a slot at most c' lightpaths of each direction cross the place of a cut. Sent the other
//! way around, they add at most c' to the load of the other direction: with one cut, c' = floor(c / 2)
//! fits, and takes the ring's (N - 1) / (2c') slots, nearly the bound (N - 1) / c. Light that crosses no
//! cut forms intervals, which first fit by left ends colours without loss. Trees for other c' are tried
//! as well, for odd c and several cuts, and blocks that go from rank to rank, 1, ..., q links far.
//!
//! **Ports.** Blocks that go from rank to rank take q (q + 1) / 2 channels of a direction. With 2 q ports, where that is
//! at most c, they meet the bound. See [`crate::ring::relay_tree::ports`]. **Light trees.** See [`crate::ring::relay_tree::multicast`].

use crate::ring::relay_tree::lightpath_requests::{self, Demand, PlacedDemand};
use crate::ring::relay_tree::tree::{self, Reserve, TreeEdge};
use crate::{PlannerError, ring::relay_tree::ports, ring::relay_tree::reachable};
use opticoll_base::interrupt;
use opticoll_bounds::wdm_ring;
use opticoll_fabric::family::wdm_ring::BrokenLink;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

/// Whether a ring needs the plans of this file: it has broken links, light trees, or too few ports to
/// use every channel.
pub(crate) fn is_special(ring: &WdmRing) -> bool {
    !ring.broken.is_empty() || ring.multicast || has_few_ports(ring)
}

/// Whether a rank has fewer ports than channels to use them on.
pub(crate) fn has_few_ports(ring: &WdmRing) -> bool {
    ring.ports.is_some_and(|ports| ports < 2 * ring.channels())
}

/// Refuses a ring on which some rank cannot reach some other.
pub(crate) fn connected(ring: &WdmRing) -> Result<(), PlannerError> {
    if ring.is_connected() {
        return Ok(());
    }
    Err(PlannerError::CutOff)
}

/// The all_gather of fewest slots found on a ring for which [`is_special`] holds, without light trees.
pub(crate) fn all_gather(
    ring: &WdmRing,
    collective: Collective,
    name: &str,
) -> Result<Plan, PlannerError> {
    let pieces = collective.pieces();
    let not_found = PlannerError::NotFound { pieces };
    let least = wdm_ring::best(ring, &collective).steps as u32;
    let mut best: Option<(Vec<Demand>, Vec<PlacedDemand>)> = None;
    for demands in candidates(ring, pieces) {
        interrupt::check();
        let most = best.as_ref().map_or(u32::MAX, |(_, placed)| {
            lightpath_requests::slots(placed) - 1
        });
        if let Some(placed) = lightpath_requests::place(ring, &demands, most) {
            let done = lightpath_requests::slots(&placed) <= least;
            best = Some((demands, placed));
            if done {
                break;
            }
        }
    }
    let (demands, placed) = best.ok_or(not_found)?;
    let plan = lightpath_requests::plan(ring, collective, &demands, &placed, name);
    Ok(plan)
}

/// Ways to carry out an all_gather without light trees, one after the other, the cheapest to find
/// first.
fn candidates(ring: &WdmRing, pieces: u32) -> impl Iterator<Item = Vec<Demand>> + '_ {
    let (ranks, channels) = (ring.ranks, ring.channels());
    let ports = ring.ports.unwrap_or(2 * channels).min(2 * channels);
    let whole = ring.broken.is_empty();
    let leapt = (whole && pieces == 1)
        .then(|| ports::leaps(ranks, channels, ports, ring.longest()))
        .and_then(|tree| rotated(ring, 1, &tree, true));
    let lengths = flood_lengths(ring, pieces, ports).into_iter();
    let flooded = lengths.filter_map(move |longest| flooded(ring, pieces, longest));
    let trees = budgets(ring)
        .into_iter()
        .filter_map(move |budget| tree(ring, pieces, budget))
        .flat_map(move |found| {
            let (delayed, _) = ports::delayed(ranks, &found, channels, ports);
            [
                rotated(ring, pieces, &delayed, true),
                rotated(ring, pieces, &found, false),
            ]
        })
        .flatten();
    flooded.chain(leapt).chain(trees)
}

/// The channels per direction for which trees are made.
fn budgets(ring: &WdmRing) -> Vec<u32> {
    let channels = ring.channels();
    let cuts = Direction::BOTH.map(|direction| {
        let of_it = ring
            .broken
            .iter()
            .filter(|link| link.direction == direction);
        of_it.count() as u32
    });
    let share = channels / (1 + cuts[0].max(cuts[1]));
    let mut budgets = vec![share, share + 1, channels];
    budgets.retain(|budget| (1..=channels).contains(budget));
    budgets.dedup();
    budgets
}

/// A relay tree of few steps for a whole ring with so many channels.
fn tree(ring: &WdmRing, pieces: u32, channels: u32) -> Option<Vec<TreeEdge>> {
    let most = channels.min(ring.ranks / 2).min(ring.longest()).max(1);
    let mut lengths: Vec<u32> = (0..31)
        .flat_map(|bit| [8u64, 10, 12, 14].map(|part| (part << bit) / 8))
        .filter(|length| *length <= u64::from(most))
        .map(|length| length as u32)
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    let build = |steps: u32| {
        let size = (ring.ranks, pieces);
        let request =
            tree::TreeRequest::new(size, channels, steps, lengths.clone(), Reserve::Nothing);
        tree::build(&request)
    };
    let whole = WdmRing {
        fibres: 1,
        wavelengths: channels,
        broken: Vec::new(),
        cuts: Vec::new(),
        dead: Vec::new(),
        ..ring.clone()
    };
    let collective = Collective::new(CollectiveKind::AllGather, ring.ranks).ok()?;
    let least = wdm_ring::best(&whole, &collective.with_pieces(pieces).ok()?).steps as u32;
    // In widening strides until one works, then halfway between it and the last that did not. Hop by
    // hop in both directions is a tree too.
    let (mut failed, mut stride) = (least.max(1) - 1, 1);
    let mut found = loop {
        let steps = failed + stride;
        if let Some(tree) = build(steps) {
            break (tree, steps);
        }
        if failed > pieces.saturating_mul(ring.ranks) {
            return None;
        }
        (failed, stride) = (steps, stride * 2);
    };
    while failed + 1 + found.1 / 100 < found.1 {
        let steps = failed + (found.1 - failed) / 2;
        match build(steps) {
            Some(tree) => found = (tree, steps),
            None => failed = steps,
        }
    }
    Some(found.0)
}

/// The demands of a tree rotated to all origins, in the order of its steps; those that would cross a cut
/// go the other way around. `None` where they cannot. `timed`: no demand goes before its step.
fn rotated(ring: &WdmRing, pieces: u32, tree: &[TreeEdge], timed: bool) -> Option<Vec<Demand>> {
    let (ranks, longest) = (ring.ranks, ring.longest());
    let mut demands = Vec::with_capacity(tree.len() * ranks as usize);
    for origin in 0..ranks {
        for edge in tree {
            interrupt::check();
            let source = (origin + edge.parent) % ranks;
            let destination = (origin + edge.child(ranks)) % ranks;
            let shortest = if edge.clockwise {
                Direction::Clockwise
            } else {
                Direction::CounterClockwise
            };
            let direction = [shortest, shortest.opposite()]
                .into_iter()
                .find(|&direction| ring.is_whole(source, destination, direction))?;
            let length = ring.hops(source, destination, direction);
            if length > longest {
                return None;
            }
            demands.push(Demand {
                chunk: origin * pieces + edge.piece,
                count: 1,
                source,
                direction,
                length,
                shared: false,
                earliest: edge.step,
                after: None,
            });
        }
    }
    Some(in_order(ring, demands, timed))
}

/// The longest lightpaths with which blocks may go from rank to rank.
fn flood_lengths(ring: &WdmRing, pieces: u32, ports: u32) -> Vec<u32> {
    let share = (ring.channels() / pieces).max(1);
    let by_load = (1..=share).take_while(|q| q * (q + 1) / 2 <= share).last();
    let most = by_load.unwrap_or(1).min(ring.longest());
    let mut lengths = vec![most, (ports / 2).clamp(1, most), 1];
    lengths.dedup();
    lengths
}

/// Blocks that go to all ranks of either side from rank to rank: the last one that has a block sends it
/// to the next 1, ..., `longest`.
fn flooded(ring: &WdmRing, pieces: u32, longest: u32) -> Option<Vec<Demand>> {
    let mut demands = Vec::new();
    for origin in 0..ring.ranks {
        let (clockwise, counter) = reachable::sides(ring, origin)?;
        let sides = Direction::BOTH.into_iter().zip([clockwise, counter]);
        for (direction, links) in sides {
            for (step, behind) in (0..links).step_by(longest as usize).enumerate() {
                interrupt::check();
                let source = match direction {
                    Direction::Clockwise => (origin + behind) % ring.ranks,
                    Direction::CounterClockwise => (origin + ring.ranks - behind) % ring.ranks,
                };
                let lengths = 1..=longest.min(links - behind);
                demands.extend(lengths.flat_map(|length| {
                    (0..pieces).map(move |piece| Demand {
                        chunk: origin * pieces + piece,
                        count: 1,
                        source,
                        direction,
                        length,
                        shared: false,
                        earliest: step as u32,
                        after: None,
                    })
                }));
            }
        }
    }
    Some(in_order(ring, demands, false))
}

/// Sorts demands by their step and, within a step, by left end along their direction from a cut on (on a
/// whole ring the longest first); and finds the demand that brings each its chunk.
fn in_order(ring: &WdmRing, mut demands: Vec<Demand>, timed: bool) -> Vec<Demand> {
    let ranks = ring.ranks;
    let from = Direction::BOTH.map(|direction| {
        let mut cuts = ring.broken.iter();
        let cut = cuts.find(|link| link.direction == direction);
        cut.map_or(0, |link| (link.position + 1) % ranks)
    });
    let end = |demand: &Demand| match demand.direction {
        Direction::Clockwise => (demand.source + demand.length) % ranks,
        Direction::CounterClockwise => (demand.source + ranks - demand.length) % ranks,
    };
    demands.sort_by_cached_key(|demand| {
        let first = match demand.direction {
            Direction::Clockwise => demand.source,
            Direction::CounterClockwise => end(demand),
        };
        let left = (first + ranks - from[demand.direction as usize]) % ranks;
        let shorter = ranks - demand.length;
        let whole = ring.broken.is_empty();
        let (one, other) = if whole {
            (shorter, left)
        } else {
            (left, shorter)
        };
        (demand.earliest, demand.direction, one, other)
    });
    let chunks = demands
        .iter()
        .map(|demand| demand.chunk + 1)
        .max()
        .unwrap_or(0);
    let mut bringing: Vec<Option<u32>> = vec![None; chunks as usize * ranks as usize];
    for (index, demand) in demands.iter_mut().enumerate() {
        let at = |rank: u32| demand.chunk as usize * ranks as usize + rank as usize;
        demand.after = bringing[at(demand.source)];
        bringing[at(end(demand))] = Some(index as u32);
        if !timed {
            demand.earliest = 0;
        }
    }
    demands
}

/// The ring on which an all_gather is planned that will run backwards on `ring`: without light
/// trees, which do not combine, and with every one-way cut in the other direction.
pub(crate) fn backwards(ring: &WdmRing) -> WdmRing {
    let turned = |links: &[BrokenLink]| {
        let turned = links.iter().map(|link| BrokenLink {
            direction: link.direction.opposite(),
            ..*link
        });
        let mut turned: Vec<BrokenLink> = turned.collect();
        turned.sort_unstable();
        turned
    };
    WdmRing {
        multicast: false,
        broken: turned(&ring.broken),
        cuts: turned(&ring.cuts),
        ..ring.clone()
    }
}
