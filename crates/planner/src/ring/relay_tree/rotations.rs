//! All_gathers along rotated relay trees.
//!
//! A *relay tree* is a tree of lightpaths along which the block of one rank reaches all other
//! ranks. If one relay tree is rotated to all ranks, the rotations are a plan of an all_gather. If
//! l divides N, the rotations of a lightpath of l links occupy l channels of one direction in one
//! slot.
//!
//! The planner searches for *one* tree of N - 1 lightpaths ([`tree`]). Each lightpath must have a
//! later slot than the lightpath that delivers the block to its sender. In every slot and
//! direction, the lightpaths must have a total length of at most c links. The planner then assigns
//! channels to the rotations ([`channel_packing`]). For very large rings, it builds the tree
//! without a search ([`linear_tree`]).

use super::tree::{self, Reserve, TreeEdge};
use super::{PLANNER, channel_packing, irregular_ring, light_trees, linear_tree, small_rings};
use crate::{Form, MAX_TRANSFERS, PlannerError, empty_plan, selection::named};
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_bounds::wdm_ring;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{CONVERTED, WdmLight, WdmRing};
use opticoll_placement::AUTO;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::Transfer;

/// Maximum value of N S for which the planner searches for a tree of S slots on N ranks. For larger
/// trees, the planner uses [`linear_tree`].
const MAX_TABLE_ENTRIES: u64 = 1 << 25;

/// Number of transfers above which the planner does not search for a tree if the tree of
/// [`linear_tree`] has nearly as few slots as the lower bound. (A search may find a plan that is
/// not rotation-symmetric. Such a large plan takes long to verify and to simulate.)
const MAX_SEARCHED_TRANSFERS: u64 = 1 << 22;

/// Divisor d: a tree has nearly as few slots as the lower bound if the excess is at most 1/d of the
/// bound.
const EXCESS_DIVISOR: u32 = 50;

/// Plans an all_gather along rotated relay trees, with few slots. Each lightpath carries one chunk.
///
/// On a ring without faults and with enough ports, a plan of whole blocks with at most 2^22
/// transfers has at most as many slots as the plan of any algorithm. Blocks that are cut into
/// pieces have a tree for each piece. The result is deterministic.
///
/// # Errors
/// Returns an error if the collective is not an all_gather, or if its number of ranks differs from
/// the fabric's.
pub fn relay_tree(fabric: &Fabric, collective: Collective) -> Result<Plan, PlannerError> {
    on_ring(fabric.needed(PLANNER.name)?, collective)
}

pub(crate) fn on_ring(ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
    within(ring, collective, MAX_TRANSFERS)
}

/// Plans an all_gather on a ring (see [`relay_tree`]). The plan stores at most `most` transfers.
pub(crate) fn within(
    ring: &WdmRing,
    collective: Collective,
    most: u64,
) -> Result<Plan, PlannerError> {
    let plan = rotated(ring, collective, most)?;
    let min_slots = wdm_ring::best(ring, &collective).steps as u32;
    let better = small_rings::all_gather(ring, collective, PLANNER.name, min_slots, plan.slots());
    Ok(better.unwrap_or(plan))
}

/// Plans an all_gather by rotations of one tree. On irregular rings, uses [`irregular_ring`]
/// instead. The plan stores at most `most` transfers.
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
    irregular_ring::check_connected(ring)?;
    let pieces = collective.pieces();
    let representatives = u64::from(ring.ranks) * u64::from(pieces);
    let transfers = representatives * u64::from(ring.ranks);
    let too_large = |transfers| PlannerError::TooLarge { transfers, most };
    if representatives > most {
        return Err(too_large(representatives));
    }
    if ring.ranks < 2 {
        let empty = empty_plan(
            Fabric::new(ring.clone()),
            collective,
            PLANNER.name.into(),
            0,
        );
        return Ok(empty);
    }
    if irregular_ring::is_irregular(ring) {
        if transfers > most {
            return Err(too_large(transfers));
        }
        return match ring.multicast {
            true => with_light_trees(ring, collective),
            false => irregular_ring::all_gather(ring, collective, PLANNER.name),
        };
    }
    let min_slots = wdm_ring::best(ring, &collective).steps as u32;
    // A plan with lightpaths of one link in both directions is always possible.
    let slot_limit = pieces.saturating_mul(ring.ranks).saturating_add(1);
    if pieces > 1 && pieces <= ring.channels() && min_slots >= hops_in_both_directions(ring) {
        return Ok(Packed::hop_by_hop(ring, pieces).plan(ring, collective));
    }
    let form = Form::of(transfers, most);
    let attempts = attempts(ring, form);
    // `linear_tree` builds a tree for a whole block only.
    if pieces == 1 && transfers > MAX_SEARCHED_TRANSFERS {
        let linear = Packed::linear(ring, &attempts[0].0);
        let entries = u64::from(min_slots) * u64::from(ring.ranks);
        let is_too_large_to_search = form == Form::Representatives && entries > MAX_TABLE_ENTRIES;
        if is_too_large_to_search || linear.slots <= min_slots + min_slots / EXCESS_DIVISOR {
            return Ok(linear.plan(ring, collective));
        }
    }
    if form == Form::Representatives {
        return search(ring, pieces, &attempts, min_slots, slot_limit)
            .map(|packed| packed.plan(ring, collective))
            .ok_or(too_large(transfers));
    }
    if pieces > 1 {
        return search(ring, pieces, &attempts, min_slots, slot_limit)
            .map(|packed| packed.plan(ring, collective))
            .ok_or(PlannerError::NotFound { pieces });
    }
    let (name, named_slots) = named::fewest_slots(ring).ok_or(PlannerError::NotFound { pieces })?;
    if let Some(packed) = search(ring, 1, &attempts, min_slots, named_slots) {
        return Ok(packed.plan(ring, collective));
    }
    let fabric = Fabric::new(ring.clone());
    let named = named::plan(&Spec::new(name), &fabric, collective, AUTO)?;
    let min_slots = named_slots.max(min_slots);
    Ok(match search(ring, 1, &attempts, min_slots, named.slots()) {
        Some(packed) => packed.plan(ring, collective),
        None => named,
    })
}

/// Plans an all_gather with light trees. If light trees have a shorter reach than other lightpaths,
/// also plans the all_gather without light trees. Returns the plan with fewer slots.
fn with_light_trees(ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
    let pieces = collective.pieces();
    let shared = light_trees::all_gather(ring, collective, PLANNER.name);
    let shared = shared.ok_or(PlannerError::NotFound { pieces })?;
    if ring.longest_tree() >= ring.longest() {
        return Ok(shared);
    }
    let unshared = WdmRing {
        multicast: false,
        ..ring.clone()
    };
    let mut plan = on_ring(&unshared, collective)?.into_expanded();
    plan.fabric = shared.fabric.clone();
    let is_better = plan.slots() < shared.slots();
    Ok(if is_better { plan } else { shared })
}

/// Tree, and the slots and channels of all rotations of its edges.
struct Packed {
    tree: Vec<TreeEdge>,
    slots: u32,
    /// Lightpaths with channels, indexed by slot. Each entry is a pair: true if the lightpath is
    /// clockwise, and the lightpath. `None` if [`channel_packing::place_exactly`] assigns the
    /// channels.
    placed: Option<Vec<Vec<(bool, channel_packing::PlacedLightpath)>>>,
}

/// Searches for the tree with the fewest slots. The tree has at least `min_slots` and fewer than
/// `limit` slots. Tries numbers of slots in growing strides until a tree is found, then bisects.
fn search(
    ring: &WdmRing,
    pieces: u32,
    attempts: &[Attempt],
    min_slots: u32,
    limit: u32,
) -> Option<Packed> {
    let mut best: Option<Packed> = None;
    let (mut failed, mut sufficient) = (min_slots.max(1) - 1, limit);
    let mut stride = 1;
    while failed + 1 + sufficient / 100 < sufficient {
        let slots = match best {
            None => (failed + stride).min(sufficient - 1),
            Some(_) => failed + (sufficient - failed) / 2,
        };
        match attempt(ring, pieces, attempts, slots, sufficient) {
            Some(packed) => {
                sufficient = packed.slots;
                best = Some(packed);
                if sufficient <= slots {
                    continue;
                }
            }
            None if best.is_none() => {
                stride = if slots < min_slots + 3 { 1 } else { 2 * stride };
            }
            None => {}
        }
        failed = slots;
    }
    best
}

/// Searches for trees of `slots` slots, once with each entry of `attempts`. Assigns channels to the
/// rotations of each tree, which may add slots. Returns the tree with the fewest slots, or `None`
/// if no tree has fewer than `limit` slots.
fn attempt(
    ring: &WdmRing,
    pieces: u32,
    attempts: &[Attempt],
    slots: u32,
    limit: u32,
) -> Option<Packed> {
    let mut best: Option<Packed> = None;
    for (lengths, reserve) in attempts {
        interrupt::check();
        let (ranks, channels) = (ring.ranks, ring.channels());
        let request =
            tree::TreeRequest::new((ranks, pieces), channels, slots, lengths.clone(), *reserve);
        let Some(tree) = tree::build(&request) else {
            continue;
        };
        // With converters, a lightpath can change its channel at every rank.
        if channel_packing::all_lengths_divide(ranks, &tree)
            || (ring.converters && ring.fibres == 1)
        {
            return Some(Packed {
                tree,
                slots,
                placed: None,
            });
        }
        for order in channel_packing::Order::ALL {
            let max_slots = best.as_ref().map_or(limit, |best| best.slots) - 1;
            let placed = channel_packing::place(ranks, channels, &tree, max_slots, order);
            if let Some(placed) = placed {
                let used = placed.len() as u32;
                best = Some(Packed {
                    tree: tree.clone(),
                    slots: used,
                    placed: Some(placed),
                });
                if used <= slots {
                    return best;
                }
            }
        }
    }
    best
}

/// Parameters of a tree search: the lengths that lightpaths may have, in links, ascending, and the
/// channels that the search reserves.
type Attempt = (Vec<u32>, Reserve);

/// Returns the parameters of the tree searches that the planner tries. If `form` requires a
/// rotation-symmetric plan, all lengths divide the number of ranks.
fn attempts(ring: &WdmRing, form: Form) -> Vec<Attempt> {
    let ranks = ring.ranks;
    let longest = ring.channels().min(ranks / 2).min(ring.longest()).max(1);
    let dividing: Vec<u32> = (1..=longest)
        .filter(|length| ranks % *length == 0)
        .collect();
    if form == Form::Representatives {
        return vec![(dividing, Reserve::Nothing)];
    }
    let powers: Vec<u32> = (0..31)
        .map(|bit| 1 << bit)
        .take_while(|length| *length <= longest)
        .collect();
    let multiples = |parts: &[u32]| {
        let mut lengths: Vec<u32> = powers
            .iter()
            .flat_map(|power| parts.iter().map(move |part| power * part / 8))
            .filter(|length| (1..=longest).contains(length))
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    };
    let mut attempts = vec![
        (dividing, Reserve::Nothing),
        (multiples(&[8, 12]), Reserve::Nothing),
    ];
    if longest > 2 {
        attempts.push((multiples(&[8, 12]), Reserve::Pad));
        attempts.push((multiples(&[8, 10, 12, 14]), Reserve::Pad));
        attempts.push((powers.clone(), Reserve::Pad));
    }
    if (2..=4).contains(&longest) {
        attempts.push((powers.clone(), Reserve::EveryNthSlot(3)));
        attempts.push((powers, Reserve::EveryNthSlot(8)));
    }
    let mut retained = Vec::new();
    attempts.retain(|attempt| {
        let is_new = !retained.contains(attempt);
        retained.push(attempt.clone());
        is_new
    });
    attempts
}

/// Returns the number of slots until a block has reached all ranks if it is forwarded in both
/// directions over lightpaths of one link.
fn hops_in_both_directions(ring: &WdmRing) -> u32 {
    ring.ranks / 2
}

impl Packed {
    /// Builds the tree in which the block is forwarded in both directions over lightpaths of one
    /// link. Each piece of the block uses a separate channel.
    fn hop_by_hop(ring: &WdmRing, pieces: u32) -> Packed {
        let (ranks, slots) = (ring.ranks, hops_in_both_directions(ring));
        let edge = |slot: u32, piece: u32, clockwise: bool| TreeEdge {
            parent: if clockwise {
                slot
            } else {
                (ranks - slot) % ranks
            },
            length: 1,
            clockwise,
            slot,
            piece,
        };
        let mut tree = Vec::with_capacity((ranks as usize - 1) * pieces as usize);
        for slot in 0..slots {
            interrupt::check();
            tree.extend((0..pieces).map(|piece| edge(slot, piece, true)));
            // The rank opposite the root receives the piece from one direction only.
            if 2 * slot + 2 < ranks {
                tree.extend((0..pieces).map(|piece| edge(slot, piece, false)));
            }
        }
        Packed {
            tree,
            slots,
            placed: None,
        }
    }

    fn linear(ring: &WdmRing, lengths: &[u32]) -> Packed {
        let (tree, slots) = linear_tree::build(ring.ranks, ring.channels(), lengths);
        Packed {
            tree,
            slots,
            placed: None,
        }
    }

    fn plan(self, ring: &WdmRing, collective: Collective) -> Plan {
        let fabric = Fabric::new(ring.clone());
        let mut plan = empty_plan(fabric, collective, PLANNER.name.into(), self.slots);
        // On a ring with dead wavelengths, the channels of a representative may not be consecutive.
        let is_symmetric = self.placed.is_none() && ring.is_even();
        let ranks = if is_symmetric { 1 } else { ring.ranks };
        plan.reserve(self.tree.len() * ranks as usize);
        let mut placed = self.placed.map(Vec::into_iter);
        for slot in 0..self.slots {
            plan.schedule.begin_step();
            let Some(placed) = &mut placed else {
                channel_packing::place_exactly(&self.tree, slot, |edge, first| {
                    for source in 0..ranks {
                        interrupt::check();
                        let origin = source + ring.ranks - edge.parent;
                        let channel = first + source % edge.length;
                        let mut path = lightpath(ring, collective, edge, origin, slot, channel);
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
                plan.push(lightpath(ring, collective, edge, origin, slot, channel));
            }
        }
        if is_symmetric {
            plan.with_all_rotations()
        } else {
            plan
        }
    }
}

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
            direction: edge.direction(),
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
