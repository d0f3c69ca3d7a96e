//! All_gathers on rings with broken links or few ports.
//!
//! **Broken links.** Consider a relay tree for a ring without faults and with c' channels in each
//! direction. The tree is rotated to all ranks. In a slot, at most c' lightpaths of each direction
//! cross the position of a cut. If these lightpaths use the opposite direction, they increase the
//! load of each link by at most c'. With one cut, c' = floor(c / 2) is sufficient. The plan then
//! has (N - 1) / (2c') slots, nearly the bound (N - 1) / c. Lightpaths that cross no cut are
//! intervals on a line. If channels are assigned by first fit in the order of the left ends, the
//! number of channels equals the maximum load.
//!
//! The planner also tries trees for other values of c' (for odd c and several cuts), and
//! *flooding*: the last rank that has a block sends the block to the next q ranks.
//!
//! **Ports.** Flooding with lightpaths of up to q links occupies q (q + 1) / 2 channels of a
//! direction. If this number is at most c and ranks have 2 q ports, flooding meets the bound. See
//! also [`crate::ring::relay_tree::few_ports`].

use super::lightpath_requests::{self, LightpathRequest, PlacedRequest};
use super::tree::{self, Reserve, TreeEdge};
use super::{few_ports, reachable};
use crate::PlannerError;
use opticoll_base::interrupt;
use opticoll_bounds::wdm_ring;
use opticoll_fabric::family::wdm_ring::BrokenLink;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

/// Returns whether the ring has broken links, light trees, or too few ports to use every channel.
pub(crate) fn is_irregular(ring: &WdmRing) -> bool {
    !ring.broken.is_empty() || ring.multicast || has_few_ports(ring)
}

/// Returns whether a rank has fewer ports than channels.
pub(crate) fn has_few_ports(ring: &WdmRing) -> bool {
    ring.ports.is_some_and(|ports| ports < 2 * ring.channels())
}

pub(crate) fn check_connected(ring: &WdmRing) -> Result<(), PlannerError> {
    if ring.is_connected() {
        return Ok(());
    }
    Err(PlannerError::CutOff)
}

/// Plans an all_gather without light trees on an [irregular](is_irregular) ring. Tries several
/// plans and returns the plan with the fewest slots.
pub(crate) fn all_gather(
    ring: &WdmRing,
    collective: Collective,
    name: &str,
) -> Result<Plan, PlannerError> {
    let pieces = collective.pieces();
    let not_found = PlannerError::NotFound { pieces };
    let min_slots = wdm_ring::best(ring, &collective).steps as u32;
    let mut best: Option<(Vec<LightpathRequest>, Vec<PlacedRequest>)> = None;
    for requests in candidates(ring, pieces) {
        interrupt::check();
        let max_slots = best.as_ref().map_or(u32::MAX, |(_, placed)| {
            lightpath_requests::slot_count(placed) - 1
        });
        if let Some(placed) = lightpath_requests::place(ring, &requests, max_slots) {
            let is_optimal = lightpath_requests::slot_count(&placed) <= min_slots;
            best = Some((requests, placed));
            if is_optimal {
                break;
            }
        }
    }
    let (requests, placed) = best.ok_or(not_found)?;
    let plan = lightpath_requests::plan(ring, collective, &requests, &placed, name);
    Ok(plan)
}

/// Returns alternatives to choose from. Each alternative is a list of the lightpath requests of a
/// whole all_gather. Alternatives that take the least computation come first.
fn candidates(ring: &WdmRing, pieces: u32) -> impl Iterator<Item = Vec<LightpathRequest>> + '_ {
    let (ranks, channels) = (ring.ranks, ring.channels());
    let ports = ring.ports.unwrap_or(2 * channels).min(2 * channels);
    let whole = ring.broken.is_empty();
    let leaping = (whole && pieces == 1)
        .then(|| few_ports::leaps(ranks, channels, ports, ring.longest()))
        .and_then(|tree| rotated(ring, 1, &tree, true));
    let lengths = flood_lengths(ring, pieces, ports).into_iter();
    let flooded = lengths.filter_map(move |longest| flooded(ring, pieces, longest));
    let trees = budgets(ring)
        .into_iter()
        .filter_map(move |budget| tree(ring, pieces, budget))
        .flat_map(move |tree| {
            let delayed = few_ports::delayed(ranks, &tree, channels, ports);
            [
                rotated(ring, pieces, &delayed, true),
                rotated(ring, pieces, &tree, false),
            ]
        })
        .flatten();
    flooded.chain(leaping).chain(trees)
}

fn budgets(ring: &WdmRing) -> Vec<u32> {
    let channels = ring.channels();
    let cuts = Direction::BOTH.map(|direction| {
        let cuts = ring
            .broken
            .iter()
            .filter(|link| link.direction == direction);
        cuts.count() as u32
    });
    let share = channels / (1 + cuts[0].max(cuts[1]));
    let mut budgets = vec![share, share + 1, channels];
    budgets.retain(|budget| (1..=channels).contains(budget));
    budgets.dedup();
    budgets
}

/// Searches for a relay tree with few slots. Assumes a ring without faults and with `channels`
/// channels per direction. For each piece, the tree has an edge to every rank except the root.
fn tree(ring: &WdmRing, pieces: u32, channels: u32) -> Option<Vec<TreeEdge>> {
    let longest = channels.min(ring.ranks / 2).min(ring.longest()).max(1);
    let mut lengths: Vec<u32> = (0..31)
        .flat_map(|bit| [8u64, 10, 12, 14].map(|part| (part << bit) / 8))
        .filter(|length| *length <= u64::from(longest))
        .map(|length| length as u32)
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    let build = |slots: u32| {
        let size = (ring.ranks, pieces);
        let request =
            tree::TreeRequest::new(size, channels, slots, lengths.clone(), Reserve::Nothing);
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
    let min_slots = wdm_ring::best(&whole, &collective.with_pieces(pieces).ok()?).steps as u32;
    // Try numbers of slots in growing strides until a tree is found, then bisect.
    let (mut failed, mut stride) = (min_slots.max(1) - 1, 1);
    let mut best = loop {
        let slots = failed + stride;
        if let Some(tree) = build(slots) {
            break (tree, slots);
        }
        if failed > pieces.saturating_mul(ring.ranks) {
            return None;
        }
        (failed, stride) = (slots, stride * 2);
    };
    while failed + 1 + best.1 / 100 < best.1 {
        let slots = failed + (best.1 - failed) / 2;
        match build(slots) {
            Some(tree) => best = (tree, slots),
            None => failed = slots,
        }
    }
    Some(best.0)
}

/// Rotates a tree to all ranks, and returns the lightpath requests. Lightpaths whose route is cut
/// use the opposite direction. Returns `None` if both routes of a lightpath are cut, or if a
/// lightpath exceeds the reach. If `is_timed` is true, no request may be assigned to a slot before
/// the slot of its tree edge.
fn rotated(
    ring: &WdmRing,
    pieces: u32,
    tree: &[TreeEdge],
    is_timed: bool,
) -> Option<Vec<LightpathRequest>> {
    let (ranks, longest) = (ring.ranks, ring.longest());
    let mut requests = Vec::with_capacity(tree.len() * ranks as usize);
    for origin in 0..ranks {
        for edge in tree {
            interrupt::check();
            let source = (origin + edge.parent) % ranks;
            let destination = (origin + edge.child(ranks)) % ranks;
            let preferred = edge.direction();
            let direction = [preferred, preferred.opposite()]
                .into_iter()
                .find(|&direction| ring.is_whole(source, destination, direction))?;
            let length = ring.hops(source, destination, direction);
            if length > longest {
                return None;
            }
            requests.push(LightpathRequest {
                chunk: origin * pieces + edge.piece,
                count: 1,
                source,
                direction,
                length,
                shared: false,
                earliest: edge.slot,
                after: None,
            });
        }
    }
    Some(ordered(ring, requests, is_timed))
}

/// Returns the values of `longest` (in links) that the planner tries for [flooding](flooded).
fn flood_lengths(ring: &WdmRing, pieces: u32, ports: u32) -> Vec<u32> {
    let share = (ring.channels() / pieces).max(1);
    let fitting = (1..=share).take_while(|q| q * (q + 1) / 2 <= share);
    let longest = fitting.last().unwrap_or(1).min(ring.longest());
    let mut lengths = vec![longest, (ports / 2).clamp(1, longest), 1];
    lengths.dedup();
    lengths
}

/// Returns the lightpath requests of flooding. In each direction, the last rank that has a block
/// repeatedly sends the block to each of the next `longest` ranks. Returns `None` if cuts separate
/// some ranks.
fn flooded(ring: &WdmRing, pieces: u32, longest: u32) -> Option<Vec<LightpathRequest>> {
    let mut requests = Vec::new();
    for origin in 0..ring.ranks {
        let (clockwise, counter) = reachable::sides(ring, origin)?;
        let sides = Direction::BOTH.into_iter().zip([clockwise, counter]);
        for (direction, links) in sides {
            for (slot, offset) in (0..links).step_by(longest as usize).enumerate() {
                interrupt::check();
                let source = ring.rank_after(origin, direction, offset);
                let lengths = 1..=longest.min(links - offset);
                requests.extend(lengths.flat_map(|length| {
                    (0..pieces).map(move |piece| LightpathRequest {
                        chunk: origin * pieces + piece,
                        count: 1,
                        source,
                        direction,
                        length,
                        shared: false,
                        earliest: slot as u32,
                        after: None,
                    })
                }));
            }
        }
    }
    Some(ordered(ring, requests, false))
}

/// Sorts requests by slot, then by direction. Within a direction, requests are sorted by distance
/// from a cut or, on a ring without cuts, by descending length. Sets the field `after` of each
/// request to the index of the request that delivers its chunk. If `is_timed` is false, also sets
/// the field `earliest` to 0.
fn ordered(
    ring: &WdmRing,
    mut requests: Vec<LightpathRequest>,
    is_timed: bool,
) -> Vec<LightpathRequest> {
    let ranks = ring.ranks;
    let from = Direction::BOTH.map(|direction| {
        let mut cuts = ring.broken.iter();
        let cut = cuts.find(|link| link.direction == direction);
        cut.map_or(0, |link| (link.position + 1) % ranks)
    });
    requests.sort_by_cached_key(|request| {
        let first = request.arc(ranks).first;
        let left = (first + ranks - from[request.direction as usize]) % ranks;
        let shorter = ranks - request.length;
        let whole = ring.broken.is_empty();
        let key = if whole {
            (shorter, left)
        } else {
            (left, shorter)
        };
        (request.earliest, request.direction, key)
    });
    let chunks = requests
        .iter()
        .map(|request| request.chunk + 1)
        .max()
        .unwrap_or(0);
    let mut latest: Vec<Option<u32>> = vec![None; chunks as usize * ranks as usize];
    for (index, request) in requests.iter_mut().enumerate() {
        let at = |rank: u32| request.chunk as usize * ranks as usize + rank as usize;
        request.after = latest[at(request.source)];
        latest[at(request.at(ranks, request.length))] = Some(index as u32);
        if !is_timed {
            request.earliest = 0;
        }
    }
    requests
}

/// Returns the ring on which an all_gather is planned if its time reversal will run on `ring`. The
/// cuts of the returned ring have the opposite direction. The returned ring has no light trees,
/// because light trees cannot add data.
pub(crate) fn reversed(ring: &WdmRing) -> WdmRing {
    let opposite = |links: &[BrokenLink]| {
        let opposite = links.iter().map(|link| BrokenLink {
            direction: link.direction.opposite(),
            ..*link
        });
        let mut opposite: Vec<BrokenLink> = opposite.collect();
        opposite.sort_unstable();
        opposite
    };
    WdmRing {
        multicast: false,
        broken: opposite(&ring.broken),
        cuts: opposite(&ring.cuts),
        ..ring.clone()
    }
}
