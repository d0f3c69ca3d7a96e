//! Plans of three steps for small blocks: many blocks share a lightpath.
//!
//! The planner divides the ranks, in ring order, into G groups of nearly equal size. A group has at
//! most m ranks, among them k evenly spaced *gateways* (as in [`crate::ring::hierarchical`]). For
//! every ordered pair of groups, one gateway of the first group sends and one gateway of the second
//! group receives. The steps are:
//!
//! - **In**: every rank sends each gateway of its group the data for all groups to which this
//!   gateway sends.
//! - **Across**: the gateways exchange the data. Each pair of groups uses one lightpath per stripe.
//! - **Out**: the receiving gateways send each member of their group its data.
//!
//! Blocks between two ranks of the same group also use a gateway of this group. In an all_gather,
//! every block reaches every rank exactly once, so the time reversal is a reduce_scatter. If one
//! rank sends several ranges of chunks to another rank, these ranges share a lightpath.
//!
//! **Channels.** The loads within a group are the same as in [`crate::ring::hierarchical`]. In the
//! step across, the groups form a ring of G ranks in which every rank sends to all other ranks.
//! This all_to_all needs ceil(floor(G^2 / 4) / 2) channels per stripe. The channel assignment
//! remains valid although the lightpaths of a group start and end at different gateways: clockwise
//! lightpaths end at the first half of the gateways and start at the second half, and
//! counter-clockwise lightpaths vice versa. (If k is odd, the middle gateway does both.) Lightpaths
//! on the same channel that end and start in the same group therefore do not overlap.
//!
//! With S = 3 slots, these plans meet the bound *spread* (see
//! [`opticoll_bounds::wdm_ring::multi_block`]) on 64 ranks with 8 wavelengths, and on 1,024 ranks
//! with 64 wavelengths.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::building::assembly::{Assembly, SharedMove, max_lightpaths_of_rank};
use crate::building::time_reversal;
use crate::ring::hierarchical::{GroupLevel, Grouping, groups, load};
use crate::ring::recipe::{self, Estimate, Recipe};
use crate::ring::slot_cost::{SlotCost, sample_sizes};
use crate::{Planner, PlannerError, PlanningProblem};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::route::all_to_all;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

/// Parameters of a plan of three steps: to the gateways of a group, between gateways, and from the
/// gateways to the ranks of their groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gateways {
    /// Maximum number of ranks in a group.
    group: u32,
    gateways: u32,
    /// Number of stripes (pieces on separate channels) of a transfer, indexed by step.
    stripes: [u32; 3],
}

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("group", "maximum number of ranks in a group")
            .range("2 or more")
            .default("the fastest found"),
        OptionRecord::new("gateways", "number of gateways in each group")
            .range("1 to the ranks of a group")
            .default("1"),
        OptionRecord::new(
            "stripes",
            "number of stripes in each of the three steps (in, across, out), such as 1x2x1",
        )
        .range("three numbers joined by x, each 1 to 4096")
        .default("1x1x1"),
    ],
    depends_on_size: true,
    ..Planner::new(
        Gateways::NAME,
        "Gateways",
        &[
            CollectiveKind::AllToAll,
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
        ],
        "Three steps: to gateway ranks of the own group, to gateways of other groups, to \
        their members",
        "opticoll; several items per lightpath after Opatrny, TCS 2003",
        recipe::scope::<Gateways>(),
    )
};

impl Recipe for Gateways {
    const NAME: &'static str = "gateways";

    fn spec(&self) -> Spec {
        Spec::new(Gateways::NAME)
            .with("group", self.group)
            .with("gateways", self.gateways)
            .with("stripes", recipe::joined(self.stripes.into_iter()))
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let stripes = u64::from(self.stripes.into_iter().max().unwrap_or(1));
        // In an all_to_all, the third step sends every block separately; the other steps send
        // ranges.
        let ranges = u64::from(self.gateways) * stripes + ranks.div_ceil(self.group.into());
        ranks.saturating_mul(ranks + 2 * ranges)
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        if collective.kind() != CollectiveKind::ReduceScatter {
            return all_gather_or_all_to_all(ring, collective, self);
        }
        let gather = Collective::new(CollectiveKind::AllGather, collective.ranks())?;
        let gather = all_gather_or_all_to_all(ring, gather, self)?;
        time_reversal::reduce_scatter(&gather)
    }

    fn from_options(
        spec: &Spec,
        ring: &WdmRing,
        _collective: Collective,
    ) -> Result<Option<Gateways>, PlannerError> {
        if spec.options().next().is_none() {
            return Ok(None);
        }
        let Some(group) = spec.count("group", 2, u32::MAX)? else {
            return Err(spec.refuse("group", "is needed with other options").into());
        };
        if group > ring.ranks {
            let error = format!("must be at most {}, the ranks of the ring", ring.ranks);
            return Err(spec.refuse("group", error).into());
        }
        let gateways = spec.count("gateways", 1, u32::MAX)?.unwrap_or(1);
        if groups(ring.ranks, group, gateways).is_none() {
            let error = "must be at most the number of ranks of the smallest group";
            return Err(spec.refuse("gateways", error).into());
        }
        let stripes = recipe::stripes(spec, 3)?;
        let stripes = [stripes[0], stripes[1], stripes[2]];
        Ok(Some(Gateways {
            group,
            gateways,
            stripes,
        }))
    }

    fn estimates(ring: &WdmRing, problem: &PlanningProblem<'_>) -> Vec<Estimate<Gateways>> {
        let ranks = u64::from(ring.ranks);
        if 2 * ranks.pow(2) > problem.max_transfers {
            return Vec::new();
        }
        let kind = problem.collective.kind();
        estimates(ring, problem.slot_cost(ring), kind, problem.size)
    }
}

/// Division of the ranks into groups, and the gateways of each group.
struct Roles {
    grouping: Grouping,
    /// Ranks of the gateways of each group, indexed by group.
    gateways: Vec<Vec<u32>>,
}

/// Gateway, and the groups that the gateway serves.
struct Gateway {
    rank: u32,
    group: u32,
    /// Indices of the groups to which the gateway sends, or of the groups from which the gateway
    /// receives. May contain the gateway's own group.
    served_groups: BTreeSet<u32>,
}

/// Lightpath between two groups.
struct Crossing {
    /// Index of the sending group.
    from: u32,
    /// Index of the receiving group.
    to: u32,
    direction: Direction,
    light: Light,
    slot: u32,
}

impl Roles {
    fn new(ranks: u32, recipe: &Gateways) -> Roles {
        let level = GroupLevel {
            group: recipe.group,
            gateways: recipe.gateways,
            stripes: 1,
        };
        let grouping = Grouping::new(ranks, &level);
        let gateways_of = |group| {
            let indices = 0..recipe.gateways;
            indices
                .map(|index| grouping.gateway(group, index))
                .collect()
        };
        let gateways = (0..grouping.count).map(gateways_of).collect();
        Roles { grouping, gateways }
    }

    /// Returns the index of a gateway within its group. If `sends`, the gateway sends the
    /// lightpaths in `direction` to the group that is `distance` groups away. Otherwise, the
    /// gateway receives the lightpaths from the group that is `distance` groups away.
    fn index(&self, direction: Direction, sends: bool, distance: u32) -> usize {
        let gateways = self.gateways[0].len();
        let turn = distance as usize - 1;
        let from_end = match gateways % 2 {
            0 => turn % (gateways / 2),
            _ => turn % gateways / 2,
        };
        let is_second_half = (direction == Direction::Clockwise) == sends;
        if is_second_half {
            gateways - 1 - from_end
        } else {
            from_end
        }
    }

    /// Returns the distance of the receiving group from the sending group, in groups, in the
    /// direction of the lightpath.
    fn distance(&self, crossing: &Crossing) -> u32 {
        let count = self.grouping.count;
        match crossing.direction {
            Direction::Clockwise => (crossing.to + count - crossing.from) % count,
            Direction::CounterClockwise => (crossing.from + count - crossing.to) % count,
        }
    }

    fn sender(&self, crossing: &Crossing) -> u32 {
        let index = self.index(crossing.direction, true, self.distance(crossing));
        self.gateways[crossing.from as usize][index]
    }

    fn receiver(&self, crossing: &Crossing) -> u32 {
        let index = self.index(crossing.direction, false, self.distance(crossing));
        self.gateways[crossing.to as usize][index]
    }

    /// Returns all gateways in ascending order of rank. Each entry of `served` is the rank of a
    /// gateway and the index of a group that the gateway serves. The middle gateway of a group also
    /// serves its own group, because the group's members exchange their data through this gateway.
    fn all_gateways(&self, served: impl Iterator<Item = (u32, u32)>) -> Vec<Gateway> {
        let mut groups_by_rank: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (rank, group) in served {
            groups_by_rank.entry(rank).or_default().insert(group);
        }
        let mut gateways = Vec::new();
        for (group, ranks) in (0..).zip(&self.gateways) {
            let middle = ranks[ranks.len() / 2];
            groups_by_rank.entry(middle).or_default().insert(group);
            gateways.extend(ranks.iter().map(|rank| Gateway {
                rank: *rank,
                group,
                served_groups: groups_by_rank.remove(rank).unwrap_or_default(),
            }));
        }
        gateways
    }
}

/// Returns `stripes` lightpaths for each ordered pair of the `groups` groups. Lightpaths are
/// combined to closed circles around the ring. Each circle uses one channel in one slot.
fn crossings(ring: &WdmRing, groups: u32, stripes: u32) -> Vec<Crossing> {
    let half = groups / 2;
    let other_circles = half * half.saturating_sub(1) / 2;
    let circles = (groups * groups / 4).div_ceil(2);
    let mut crossings = Vec::new();
    for from in 0..groups {
        for to in (0..groups).filter(|&to| to != from) {
            interrupt::check();
            let (direction, circle) = match all_to_all::circle(from, to, groups) {
                (Some(direction), circle) => (direction, circle),
                // Pairs of opposite groups alternate between the two directions.
                (None, _) => {
                    let pair = from % half;
                    (Direction::BOTH[pair as usize % 2], other_circles + pair / 2)
                }
            };
            crossings.extend((0..stripes).map(|stripe| {
                let number = stripe * circles + circle;
                Crossing {
                    from,
                    to,
                    direction,
                    light: ring.light(direction, number % ring.channels()),
                    slot: number / ring.channels(),
                }
            }));
        }
    }
    crossings
}

fn all_gather_or_all_to_all(
    ring: &WdmRing,
    collective: Collective,
    recipe: &Gateways,
) -> Result<Plan, PlannerError> {
    let collective = collective.with_pieces(1)?;
    let roles = Roles::new(ring.ranks, recipe);
    let [into, across, out] = recipe.stripes;
    let crossings = crossings(ring, roles.grouping.count, across);
    let builder = TransferBuilder {
        ranks: ring.ranks,
        kind: collective.kind(),
        roles: &roles,
    };
    let mut assembly = Assembly::new(ring, collective);
    assembly.add_line(&builder.inward(&crossings, into))?;
    let between = builder.across(&crossings);
    let mut placed: Vec<_> = between
        .iter()
        .map(|(shared, light, slot)| (shared, *light, *slot))
        .collect();
    let ends = max_lightpaths_of_rank(placed.iter().map(|&(shared, _, slot)| (shared, slot)));
    if ring.ports.is_some_and(|ports| ends > ports) {
        let direction = |light| WdmLight::from(light).direction;
        let moves = placed
            .iter()
            .map(|&(shared, light, _)| (shared, direction(light)));
        placed = assembly.placed(&moves.collect::<Vec<_>>())?;
    }
    assembly.add_placed(placed.into_iter());
    assembly.add_line(&builder.outward(&crossings, out))?;
    Ok(assembly.finish(recipe.spec().to_string()))
}

struct TransferBuilder<'a> {
    ranks: u32,
    kind: CollectiveKind,
    roles: &'a Roles,
}

impl TransferBuilder<'_> {
    fn is_all_gather(&self) -> bool {
        self.kind == CollectiveKind::AllGather
    }

    /// Returns the ranges of the chunks that belong to senders in `from` and receivers in `to`. (In
    /// an all_gather, a chunk belongs to all receivers.)
    fn chunks_between(&self, from: Range<u32>, to: Range<u32>) -> Vec<Range<u32>> {
        if self.is_all_gather() {
            return std::iter::once(from).collect();
        }
        let row = |source: u32| source * self.ranks + to.start..source * self.ranks + to.end;
        from.map(row).collect()
    }

    /// Returns the transfers of the first step, from every rank to the gateways of its group.
    fn inward(&self, crossings: &[Crossing], stripes: u32) -> Vec<SharedMove> {
        let sends = crossings
            .iter()
            .map(|crossing| (self.roles.sender(crossing), crossing.to));
        self.within_groups(sends, |gateway, member| {
            let block = member..member + 1;
            let blocks_for = |&to: &u32| {
                let others = without(self.roles.grouping.range(to), member);
                others.flat_map(|to| self.chunks_between(block.clone(), to))
            };
            let chunks = match self.is_all_gather() {
                true => std::iter::once(block.clone()).collect(),
                false => gateway.served_groups.iter().flat_map(blocks_for).collect(),
            };
            SharedMove::cut(member, gateway.rank, chunks, stripes)
        })
    }

    /// Returns the transfers of the second step, between gateways. Each entry is a transfer, the
    /// channel of the transfer, and the index of the slot within the step.
    fn across(&self, crossings: &[Crossing]) -> Vec<(SharedMove, Light, u32)> {
        let range = |group| self.roles.grouping.range(group);
        let pair = |crossing: &Crossing| (crossing.from, crossing.to);
        let pairs = crossings.chunk_by(|one, other| pair(one) == pair(other));
        let lightpaths = pairs.flat_map(|stripes| {
            interrupt::check();
            let first = &stripes[0];
            let chunks = self.chunks_between(range(first.from), range(first.to));
            let (from, to) = (self.roles.sender(first), self.roles.receiver(first));
            let cut = SharedMove::cut(from, to, chunks, stripes.len() as u32);
            let placed = cut.into_iter().zip(stripes);
            placed.map(|(shared, stripe)| (shared, stripe.light, stripe.slot))
        });
        lightpaths.collect()
    }

    /// Returns the transfers of the third step, from the gateways to the members of their groups.
    fn outward(&self, crossings: &[Crossing], stripes: u32) -> Vec<SharedMove> {
        let receives = crossings
            .iter()
            .map(|crossing| (self.roles.receiver(crossing), crossing.from));
        self.within_groups(receives, |gateway, member| {
            let group = gateway.group;
            // In an all_gather, the gateways already have all blocks of their group.
            let has_group =
                self.is_all_gather() && self.roles.gateways[group as usize].contains(&member);
            let sources = gateway.served_groups.iter();
            let chunks = sources
                .filter(|&&from| !(has_group && from == group))
                .flat_map(|&from| without(self.roles.grouping.range(from), member))
                .flat_map(|sources| self.chunks_between(sources, member..member + 1));
            SharedMove::cut(gateway.rank, member, joined(chunks.collect()), stripes)
        })
    }

    /// Returns the transfers within the groups. The function `transfers` returns the transfers
    /// between a gateway and another member of its group. Each entry of `served` is the rank of a
    /// gateway and the index of a group that the gateway serves.
    fn within_groups(
        &self,
        served: impl Iterator<Item = (u32, u32)>,
        transfers: impl Fn(&Gateway, u32) -> Vec<SharedMove>,
    ) -> Vec<SharedMove> {
        let mut moves = Vec::new();
        for gateway in self.roles.all_gateways(served) {
            let members = self.roles.grouping.range(gateway.group);
            for member in members.filter(|&member| member != gateway.rank) {
                interrupt::check();
                moves.extend(transfers(&gateway, member));
            }
        }
        moves
    }
}

fn without(range: Range<u32>, rank: u32) -> impl Iterator<Item = Range<u32>> {
    let before = range.start..range.end.min(rank);
    let after = range.start.max(rank + 1)..range.end;
    [before, after].into_iter().filter(|part| !part.is_empty())
}

fn joined(mut ranges: Vec<Range<u32>>) -> Vec<Range<u32>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u32>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => joined.push(range),
        }
    }
    joined
}

/// Tries group sizes, numbers of gateways and numbers of stripes. Returns the recipe with the
/// shortest estimated time, or nothing if no division into groups is possible. `size` is the size
/// of the collective in bytes.
fn estimates(
    ring: &WdmRing,
    cost: SlotCost,
    kind: CollectiveKind,
    size: Bytes,
) -> Vec<Estimate<Gateways>> {
    let mut estimates = Vec::new();
    for group in sample_sizes(ring.ranks) {
        let max_gateways = (MAX_LOAD_FACTOR * ring.channels() / group).clamp(1, group);
        for gateways in sample_sizes(max_gateways).into_iter().chain([1]) {
            interrupt::check();
            if groups(ring.ranks, group, gateways).is_some() {
                estimates.push(estimate(ring, cost, kind, size, (group, gateways)));
            }
        }
    }
    let fastest = estimates
        .into_iter()
        .min_by_key(|estimate| (estimate.time, estimate.slots));
    fastest.into_iter().collect()
}

/// Maximum value of k m / c that the search tries. A group has m ranks and k gateways, and a
/// direction has c channels. (A link of a group has at most about k m / 4 lightpaths per stripe.)
const MAX_LOAD_FACTOR: u32 = 16;

/// Maximum number of slots per step that the search tries.
const MAX_SLOTS_OF_STEP: u64 = 4;

/// Returns the recipe for groups of up to `group` ranks with `gateways` gateways. Chooses the
/// number of stripes of each step that gives the shortest estimated time.
fn estimate(
    ring: &WdmRing,
    cost: SlotCost,
    kind: CollectiveKind,
    size: Bytes,
    (group, gateways): (u32, u32),
) -> Estimate<Gateways> {
    let (ranks, channels) = (u64::from(ring.ranks), u64::from(ring.channels()));
    let count = ranks.div_ceil(group.into());
    let members = ranks.div_ceil(count);
    let served = count.div_ceil(gateways.into());
    let (block, [into, across, out]) = match kind {
        CollectiveKind::AllToAll => {
            let block = size.get().div_ceil(ranks);
            (
                block,
                [served * members, members * members, served * members],
            )
        }
        CollectiveKind::ReduceScatter => {
            (size.get().div_ceil(ranks), [1, members, served * members])
        }
        _ => (size.get(), [1, members, served * members]),
    };
    let inside = u64::from(load(members as u32, gateways)).max(1);
    let around = (count * count / 4).div_ceil(2).max(1);
    let ports = ring.ports.map_or(u64::MAX, u64::from);
    // `ends` is the number of lightpaths per stripe that start (or end) at one rank.
    let step = |(load, ends): (u64, u64), blocks: u64, hops: u64| {
        let rounds = (1..=MAX_SLOTS_OF_STEP).map(|rounds| {
            let stripes_by_ports = rounds.saturating_mul(ports) / ends.max(1);
            let stripes = (rounds * channels / load)
                .min(stripes_by_ports)
                .clamp(1, blocks);
            let slots = (stripes * load).div_ceil(channels);
            let slots = slots.max((stripes * ends).div_ceil(ports));
            let bytes = block.saturating_mul(blocks.div_ceil(stripes));
            (cost.slots(slots, Bytes::new(bytes), hops), slots, stripes)
        });
        rounds.min().unwrap_or((u64::MAX, u64::MAX, 1))
    };
    let steps = [
        step((inside, members - 1), into, members),
        step((around, served), across, ranks / 2 + members),
        step((inside, members - 1), out, members),
    ];
    Estimate {
        time: steps
            .iter()
            .fold(0, |sum: u64, step| sum.saturating_add(step.0)),
        slots: steps
            .iter()
            .fold(0, |sum: u64, step| sum.saturating_add(step.1)),
        recipe: Gateways {
            group,
            gateways,
            stripes: steps.map(|(_, _, stripes)| stripes as u32),
        },
    }
}
