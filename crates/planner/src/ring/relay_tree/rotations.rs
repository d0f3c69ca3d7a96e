//! **Relay trees.** An all_gather on a ring looks the same from every rank, so one tree of
//! lightpaths that takes a block from its owner to all others, rotated to all owners, is a whole
//! plan. A lightpath of length l, rotated to all ranks, takes l channels of its direction in its
//! step, when l divides N. What remains is to find *one* tree of N - 1 lightpaths with a step each, later
//! than its parent's, whose lengths add up to at most c channels in every step and direction
//! ([`tree`]), and to give the rotations channels ([`pack`]). For very many ranks the tree is made without a search
//! ([`fronts`]).

use crate::ring::relay_tree::tree::{self, Reserve, TreeEdge};
use crate::{
    Form, MOST_TRANSFERS, PlannerError, empty_plan, ring::relay_tree::capability,
    ring::relay_tree::few_ranks, ring::relay_tree::fronts, ring::relay_tree::multicast,
    ring::relay_tree::pack, selection::named,
};
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_bounds::wdm_ring;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_placement::AUTO;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::Transfer;

/// The planner's name.
pub(crate) const NAME: &str = "relay_tree";

/// A tree is searched for with a price for each gap in each step, up to so many prices; larger ones are made by their
/// fronts.
const MOST_ENTRIES: u64 = 1 << 25;

/// Plans of more transfers than that are made by fronts if these take hardly more slots than the bound: a search may
/// find plans that are not folded, which take longer to prove and to time than to find.
const MOST_SEARCHED: u64 = 1 << 22;

/// Hardly more is one part in so many.
const NEARLY: u32 = 50;

/// An all_gather along rotated relay trees in as few slots as were found, one chunk per lightpath
/// and slot; for whole blocks never more slots than the best named algorithm, unless the plan is too
/// large to be written out; above 2^22 transfers, of at most a fiftieth more slots than the bound.
/// Blocks in pieces have a tree for each piece. Folded where all lengths
/// divide the number of ranks. Deterministic.
///
/// # Errors
/// Another collective than an all_gather, or one with another number of ranks than the fabric.
pub fn relay_tree(fabric: &Fabric, collective: Collective) -> Result<Plan, PlannerError> {
    on_ring(fabric.needed(NAME)?, collective)
}

/// The same on a ring.
pub(crate) fn on_ring(ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
    within(ring, collective, MOST_TRANSFERS)
}

/// The same with so many transfers or orbits at most.
pub(crate) fn within(
    ring: &WdmRing,
    collective: Collective,
    most: u64,
) -> Result<Plan, PlannerError> {
    let plan = rotated(ring, collective, most)?;
    let least = wdm_ring::best(ring, &collective).steps as u32;
    let better = few_ranks::all_gather(ring, collective, NAME, least, plan.slots());
    Ok(better.unwrap_or(plan))
}

/// A plan of one tree, or for a ring that does not look the same from every rank one of trees led around.
fn rotated(ring: &WdmRing, collective: Collective, most: u64) -> Result<Plan, PlannerError> {
    if collective.kind() != CollectiveKind::AllGather {
        return Err(PlannerError::Collective {
            kind: collective.kind(),
            hint: "reduce_scatter is an all_gather reversed",
        });
    }
    if collective.ranks() != ring.ranks {
        return Err(PlannerError::Ranks {
            collective: collective.ranks(),
            fabric: ring.ranks,
        });
    }
    capability::connected(ring)?;
    let pieces = collective.pieces();
    let orbits = u64::from(ring.ranks) * u64::from(pieces);
    let transfers = orbits * u64::from(ring.ranks);
    let too_large = |transfers| PlannerError::TooLarge { transfers, most };
    if orbits > most {
        return Err(too_large(orbits));
    }
    if ring.ranks < 2 {
        let alone = empty_plan(Fabric::new(ring.clone()), collective, NAME.into(), 0);
        return Ok(alone);
    }
    if capability::is_special(ring) {
        if transfers > most {
            return Err(too_large(transfers));
        }
        return match ring.multicast {
            true => with_light_trees(ring, collective),
            false => capability::all_gather(ring, collective, NAME),
        };
    }
    let least = wdm_ring::best(ring, &collective).steps as u32;
    // Hop by hop in both directions is always possible.
    let enough = pieces.saturating_mul(ring.ranks).saturating_add(1);
    if pieces > 1 && pieces <= ring.channels() && least >= hops_by_both_ways(ring) {
        return Ok(Packed::hop_by_hop(ring, pieces).plan(ring, collective));
    }
    let form = Form::of(transfers, most);
    let attempts = attempts(ring, form);
    // Pieces that follow one another hop by hop take fewer steps than trees one after the other.
    if pieces == 1 && transfers > MOST_SEARCHED {
        let found = Packed::by_fronts(ring, &attempts[0].0);
        let entries = u64::from(least) * u64::from(ring.ranks);
        let is_known = form == Form::Folded && entries > MOST_ENTRIES;
        if is_known || found.steps <= least + least / NEARLY {
            return Ok(found.plan(ring, collective));
        }
    }
    if form == Form::Folded {
        return search(ring, pieces, &attempts, least, enough)
            .map(|found| found.plan(ring, collective))
            .ok_or(too_large(transfers));
    }
    if pieces > 1 {
        return search(ring, pieces, &attempts, least, enough)
            .map(|found| found.plan(ring, collective))
            .ok_or(PlannerError::NotFound { pieces });
    }
    let (name, at_least) = named::fewest_slots(ring).ok_or(PlannerError::NotFound { pieces })?;
    if let Some(found) = search(ring, 1, &attempts, least, at_least) {
        return Ok(found.plan(ring, collective));
    }
    // The named algorithm may need more than its loads say.
    let fabric = Fabric::new(ring.clone());
    let named = named::plan(&Spec::new(name), &fabric, collective, AUTO)?;
    Ok(
        match search(ring, 1, &attempts, at_least.max(least), named.slots()) {
            Some(found) => found.plan(ring, collective),
            None => named,
        },
    )
}

/// The better one of a plan along light trees and one that shares no light, which sharing weakens.
fn with_light_trees(ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
    let pieces = collective.pieces();
    let shared = multicast::all_gather(ring, collective, NAME);
    let shared = shared.ok_or(PlannerError::NotFound { pieces })?;
    if ring.longest_tree() >= ring.longest() {
        return Ok(shared);
    }
    let unshared = WdmRing {
        multicast: false,
        ..ring.clone()
    };
    let mut alone = on_ring(&unshared, collective)?.into_written_out();
    alone.fabric = shared.fabric.clone();
    let fewer = alone.slots() < shared.slots();
    Ok(if fewer { alone } else { shared })
}

/// A tree with the channels of its rotations, if they are not the regular ones.
struct Packed {
    tree: Vec<TreeEdge>,
    steps: u32,
    placed: Option<Vec<Vec<(bool, pack::PlacedLightpath)>>>,
}

/// A tree that packs into as few steps as were found, from `least` on; `None` if none takes fewer
/// than `enough`. Numbers of steps are tried in widening strides until one works, and then halfway
/// between it and the last that did not.
fn search(
    ring: &WdmRing,
    pieces: u32,
    attempts: &[Attempt],
    least: u32,
    enough: u32,
) -> Option<Packed> {
    let mut best: Option<Packed> = None;
    let (mut failed, mut works) = (least.max(1) - 1, enough);
    let mut stride = 1;
    // Far from the bound, a step more or less is not worth many attempts.
    while failed + 1 + works / 100 < works {
        let steps = match best {
            None => (failed + stride).min(works - 1),
            Some(_) => failed + (works - failed) / 2,
        };
        match attempt(ring, pieces, attempts, steps, works) {
            Some(found) => {
                works = found.steps;
                best = Some(found);
                if works <= steps {
                    continue;
                }
            }
            None if best.is_none() => stride = if steps < least + 3 { 1 } else { 2 * stride },
            None => {}
        }
        failed = steps;
    }
    best
}

/// The best of the trees of `steps` steps with channels for all rotations in fewer than `enough`
/// steps, if any.
fn attempt(
    ring: &WdmRing,
    pieces: u32,
    attempts: &[Attempt],
    steps: u32,
    enough: u32,
) -> Option<Packed> {
    let mut best: Option<Packed> = None;
    for (lengths, reserve) in attempts {
        interrupt::check();
        let (ranks, channels) = (ring.ranks, ring.channels());
        let request =
            tree::TreeRequest::new((ranks, pieces), channels, steps, lengths.clone(), *reserve);
        let Some(tree) = tree::build(&request) else {
            continue;
        };
        // Where converters are, only the number of lightpaths on each link counts.
        if pack::divides(ranks, &tree) || (ring.converters && ring.fibres == 1) {
            return Some(Packed {
                tree,
                steps,
                placed: None,
            });
        }
        for order in pack::Order::ALL {
            let fewer = best.as_ref().map_or(enough, |found| found.steps) - 1;
            if let Some(placed) = pack::place(ranks, channels, &tree, fewer, order) {
                let taken = placed.len() as u32;
                best = Some(Packed {
                    tree: tree.clone(),
                    steps: taken,
                    placed: Some(placed),
                });
                if taken <= steps {
                    return best;
                }
            }
        }
    }
    best
}

/// Lengths of lightpaths to build a tree of, with what to keep back.
type Attempt = (Vec<u32>, Reserve);

/// The trees to try; folded plans need lengths that divide N.
fn attempts(ring: &WdmRing, form: Form) -> Vec<Attempt> {
    let ranks = ring.ranks;
    let most = ring.channels().min(ranks / 2).min(ring.longest()).max(1);
    let dividing: Vec<u32> = (1..=most).filter(|length| ranks % *length == 0).collect();
    if form == Form::Folded {
        return vec![(dividing, Reserve::Nothing)];
    }
    let powers: Vec<u32> = (0..31)
        .map(|bit| 1 << bit)
        .take_while(|length| *length <= most)
        .collect();
    let finer = |parts: &[u32]| {
        let mut lengths: Vec<u32> = powers
            .iter()
            .flat_map(|power| parts.iter().map(move |part| power * part / 8))
            .filter(|length| (1..=most).contains(length))
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    };
    let mut attempts = vec![
        (dividing, Reserve::Nothing),
        (finer(&[8, 12]), Reserve::Nothing),
    ];
    if most > 2 {
        attempts.push((finer(&[8, 12]), Reserve::Pad));
        attempts.push((finer(&[8, 10, 12, 14]), Reserve::Pad));
        attempts.push((powers.clone(), Reserve::Pad));
    }
    if (2..=4).contains(&most) {
        attempts.push((powers.clone(), Reserve::Rest(3)));
        attempts.push((powers, Reserve::Rest(8)));
    }
    let mut known = Vec::new();
    attempts.retain(|attempt| {
        let new = !known.contains(attempt);
        known.push(attempt.clone());
        new
    });
    attempts
}

/// The steps that a block takes from each rank to the next, both ways around.
fn hops_by_both_ways(ring: &WdmRing) -> u32 {
    ring.ranks / 2
}

impl Packed {
    /// Every piece goes on a channel of its own from each rank to the next, both ways around.
    fn hop_by_hop(ring: &WdmRing, pieces: u32) -> Packed {
        let (ranks, steps) = (ring.ranks, hops_by_both_ways(ring));
        let edge = |step: u32, piece: u32, clockwise: bool| TreeEdge {
            parent: if clockwise {
                step
            } else {
                (ranks - step) % ranks
            },
            length: 1,
            clockwise,
            step,
            piece,
        };
        let mut tree = Vec::with_capacity((ranks as usize - 1) * pieces as usize);
        for step in 0..steps {
            interrupt::check();
            tree.extend((0..pieces).map(|piece| edge(step, piece, true)));
            // Opposite the root one of both ways is enough.
            if 2 * step + 2 < ranks {
                tree.extend((0..pieces).map(|piece| edge(step, piece, false)));
            }
        }
        Packed {
            tree,
            steps,
            placed: None,
        }
    }

    /// The tree of the fronts.
    fn by_fronts(ring: &WdmRing, lengths: &[u32]) -> Packed {
        let (tree, steps) = fronts::build(ring.ranks, ring.channels(), lengths);
        Packed {
            tree,
            steps,
            placed: None,
        }
    }

    fn plan(self, ring: &WdmRing, collective: Collective) -> Plan {
        let fabric = Fabric::new(ring.clone());
        let mut plan = empty_plan(fabric, collective, NAME.into(), self.steps);
        // Dead wavelengths leave gaps among the channels of an orbit.
        let folded = self.placed.is_none() && ring.is_even();
        let ranks = if folded { 1 } else { ring.ranks };
        plan.reserve(self.tree.len() * ranks as usize);
        // A step that is written into the plan is not kept beside it.
        let mut placed = self.placed.map(Vec::into_iter);
        for step in 0..self.steps {
            plan.schedule.begin_step();
            let Some(placed) = &mut placed else {
                pack::exactly(&self.tree, step, |edge, first| {
                    for source in 0..ranks {
                        interrupt::check();
                        let origin = source + ring.ranks - edge.parent;
                        let channel = first + source % edge.length;
                        let mut path = lightpath(ring, collective, edge, origin, step, channel);
                        if ring.ranks % edge.length != 0 {
                            let light = WdmLight::from(path.light);
                            path.light = Light::from(WdmLight {
                                wavelength: CONVERTED,
                                ..light
                            });
                        }
                        plan.push(path);
                    }
                });
                continue;
            };
            for (_, path) in placed.next().unwrap_or_default() {
                let edge = &self.tree[path.edge as usize];
                let (origin, channel) = (path.origin, path.channel);
                plan.push(lightpath(ring, collective, edge, origin, step, channel));
            }
        }
        if folded {
            plan.in_all_rotations()
        } else {
            plan
        }
    }
}

/// An edge of the tree, turned by its origin.
fn lightpath(
    ring: &WdmRing,
    collective: Collective,
    edge: &TreeEdge,
    origin: u32,
    slot: u32,
    channel: u32,
) -> Lightpath {
    let origin = origin % ring.ranks;
    let (fibre, wavelength) = ring.channel(channel);
    Lightpath {
        slot,
        light: Light::from(WdmLight {
            direction: if edge.clockwise {
                Direction::Clockwise
            } else {
                Direction::CounterClockwise
            },
            fibre,
            wavelength,
        }),
        transfer: Transfer::copy(
            origin * collective.pieces() + edge.piece,
            (origin + edge.parent) % ring.ranks,
            (origin + edge.child(ring.ranks)) % ring.ranks,
        ),
    }
}
