//! Plans of three steps for small blocks, with many blocks on a lightpath: from ranks to gateways
//! of their group, from these to gateways of other groups, and from these to the members of their
//! groups.
//!
//! The ring is cut, in ring order, into G groups of nearly equal size, at most m ranks, with k
//! evenly spaced *gateways* each (as in [`crate::ring::hierarchical`]). For every ordered pair of
//! groups, one gateway of the first group sends and one of the second receives. **In**: every
//! rank sends each gateway of its group the data for all groups to which this gateway sends.
//! **Across**: the data travel from gateway to gateway, over one lightpath (in stripes) for a
//! pair of groups. **Out**: receiving gateways send each member its data. In an all_to_all, the
//! three steps carry the blocks for one group, the blocks between two groups, and the blocks for
//! one rank; data within a group use one of its gateways. In an all_gather they carry the block
//! of a rank, the blocks of a group, and the blocks of all groups from which a gateway has
//! received. Every block reaches every rank once, so that the time reversal of an all_gather is a
//! reduce_scatter.
//!
//! Several ranges of chunks from one rank to another share a lightpath, one after the other.
//!
//! **Channels.** Inside a group the load is that of owners of shares in
//! [`crate::ring::hierarchical`], and lightpaths of a line need as many channels as their greatest
//! load. Across, the groups form a ring of G ranks in which all send to all: ceil(floor(G^2 / 4) /
//! 2) channels for each stripe. A plan of that ring fits here although the ends of lightpaths are
//! at several positions of a group: clockwise lightpaths end at the first half of the gateways and
//! begin at the second half, counter-clockwise lightpaths vice versa, and with an odd k the gateway
//! in the middle does both. If one lightpath ends at a group and another one on the same channel
//! begins there, the first thus ends before the second begins.
//!
//! With S = 3 slots, these plans meet the bound *spread* (see
//! [`opticoll_bounds::wdm_ring::multi_block`]) on 64 ranks with 8 wavelengths and on 1,024 ranks
//! with 64.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::building::assembly::{Assembly, SharedMove, max_lightpaths_of_rank};
use crate::building::time_reversal;
use crate::ring::hierarchical::{GroupLevel, Grouping, groups, load};
use crate::ring::recipe::{self, Estimate, Recipe};
use crate::ring::slot_cost::{SlotCost, spread};
use crate::{Planner, PlannerError, PlanningProblem};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::route::all_to_all;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

/// Recipe: the maximum size of a group, the number of gateways of each group, and the stripes of
/// the three steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gateways {
    group: u32,
    gateways: u32,
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
        "Three steps: to gateways in the group, across to gateways of the other groups, out to \
         members",
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
        // In an all_to_all every block arrives in a transfer of its own, after two ranges of
        // blocks.
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

/// Assignment of gateways to groups.
struct Roles {
    grouping: Grouping,
    /// Ranks of the gateways of each group.
    gateways: Vec<Vec<u32>>,
}

/// Gateway, and the groups to which it sends or from which it receives.
struct Gateway {
    rank: u32,
    group: u32,
    groups: BTreeSet<u32>,
}

/// Lightpath between two groups.
struct Crossing {
    from: u32,
    to: u32,
    direction: Direction,
    light: Light,
    slot: u32,
}

impl Roles {
    fn new(ranks: u32, recipe: &Gateways) -> Roles {
        let level = GroupLevel {
            group: recipe.group,
            owners: recipe.gateways,
            stripes: 1,
        };
        let grouping = Grouping::new(ranks, &level);
        let gateways_of = |group| {
            let indices = 0..recipe.gateways;
            indices.map(|index| grouping.owner(group, index)).collect()
        };
        let gateways = (0..grouping.count).map(gateways_of).collect();
        Roles { grouping, gateways }
    }

    /// Returns the index of the gateway of a group that serves the group at a distance of
    /// `distance` groups in a direction. The lightpath begins at this gateway if `begins`;
    /// otherwise it ends there. A gateway in the middle, which does both, has half as many groups
    /// in each role.
    fn index(&self, direction: Direction, begins: bool, distance: u32) -> usize {
        let gateways = self.gateways[0].len();
        let turn = distance as usize - 1;
        let from_end = match gateways % 2 {
            0 => turn % (gateways / 2),
            _ => turn % gateways / 2,
        };
        let is_second_half = (direction == Direction::Clockwise) == begins;
        if is_second_half {
            gateways - 1 - from_end
        } else {
            from_end
        }
    }

    /// Returns the distance between the groups of a lightpath along its direction, in groups.
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

    /// Returns all gateways in order, with the groups that they serve; `served` are pairs of a
    /// gateway's rank and a group. One gateway in the middle serves its own group, too: data
    /// within the group pass through it.
    fn serving(&self, served: impl Iterator<Item = (u32, u32)>) -> Vec<Gateway> {
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
                groups: groups_by_rank.remove(rank).unwrap_or_default(),
            }));
        }
        gateways
    }
}

/// Returns the lightpaths between all pairs of groups, in stripes. They lie on the circles of an
/// all_to_all, with a channel for each circle.
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
                // Opposite pairs of groups take turns.
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

/// Returns the plan of an all_to_all or an all_gather.
fn all_gather_or_all_to_all(
    ring: &WdmRing,
    collective: Collective,
    recipe: &Gateways,
) -> Result<Plan, PlannerError> {
    let collective = collective.with_pieces(1)?;
    let roles = Roles::new(ring.ranks, recipe);
    let [into, across, out] = recipe.stripes;
    let crossings = crossings(ring, roles.grouping.count, across);
    let blocks = Blocks {
        ranks: ring.ranks,
        kind: collective.kind(),
        roles: &roles,
    };
    let mut assembly = Assembly::new(ring, collective);
    assembly.add_line(&blocks.inwards(&crossings, into))?;
    let between = blocks.between(&crossings);
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
    assembly.add_line(&blocks.outwards(&crossings, out))?;
    Ok(assembly.finish(recipe.spec().to_string()))
}

/// Chunks of the transfers of a plan.
struct Blocks<'a> {
    ranks: u32,
    kind: CollectiveKind,
    roles: &'a Roles,
}

impl Blocks<'_> {
    fn is_all_gather(&self) -> bool {
        self.kind == CollectiveKind::AllGather
    }

    /// Returns the chunks that travel from the ranks of one group to those of another.
    fn chunks_between(&self, from: Range<u32>, to: Range<u32>) -> Vec<Range<u32>> {
        if self.is_all_gather() {
            return std::iter::once(from).collect();
        }
        let row = |source: u32| source * self.ranks + to.start..source * self.ranks + to.end;
        from.map(row).collect()
    }

    /// Returns the transfers from every rank to the gateways of its group.
    fn inwards(&self, crossings: &[Crossing], stripes: u32) -> Vec<SharedMove> {
        let sends = crossings
            .iter()
            .map(|crossing| (self.roles.sender(crossing), crossing.to));
        self.inside(sends, |gateway, member| {
            let block = member..member + 1;
            // The block of a rank for itself does not travel.
            let blocks_for = |&to: &u32| {
                let others = without(self.roles.grouping.range(to), member);
                others.flat_map(|to| self.chunks_between(block.clone(), to))
            };
            let chunks = match self.is_all_gather() {
                true => std::iter::once(block.clone()).collect(),
                false => gateway.groups.iter().flat_map(blocks_for).collect(),
            };
            SharedMove::cut(member, gateway.rank, chunks, stripes)
        })
    }

    /// Returns the transfers between gateways, with light and slots.
    fn between(&self, crossings: &[Crossing]) -> Vec<(SharedMove, Light, u32)> {
        let range = |group| self.roles.grouping.range(group);
        let pair = |crossing: &Crossing| (crossing.from, crossing.to);
        // Stripes of a pair follow one another.
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

    /// Returns the transfers from gateways to the members of their groups.
    fn outwards(&self, crossings: &[Crossing], stripes: u32) -> Vec<SharedMove> {
        let receives = crossings
            .iter()
            .map(|crossing| (self.roles.receiver(crossing), crossing.from));
        self.inside(receives, |gateway, member| {
            let group = gateway.group;
            // In an all_gather, all gateways have the blocks of their group already.
            let has_group =
                self.is_all_gather() && self.roles.gateways[group as usize].contains(&member);
            let sources = gateway.groups.iter();
            let chunks = sources
                .filter(|&&from| !(has_group && from == group))
                .flat_map(|&from| without(self.roles.grouping.range(from), member))
                .flat_map(|sources| self.chunks_between(sources, member..member + 1));
            SharedMove::cut(gateway.rank, member, joined(chunks.collect()), stripes)
        })
    }

    /// Returns the transfers between gateways and the other members of their groups; `served` is
    /// as for [`Roles::serving`].
    fn inside(
        &self,
        served: impl Iterator<Item = (u32, u32)>,
        lightpaths: impl Fn(&Gateway, u32) -> Vec<SharedMove>,
    ) -> Vec<SharedMove> {
        let mut moves = Vec::new();
        for gateway in self.roles.serving(served) {
            let members = self.roles.grouping.range(gateway.group);
            for member in members.filter(|&member| member != gateway.rank) {
                interrupt::check();
                moves.extend(lightpaths(&gateway, member));
            }
        }
        moves
    }
}

/// Returns the parts of a range before and after a rank.
fn without(range: Range<u32>, rank: u32) -> impl Iterator<Item = Range<u32>> {
    let before = range.start..range.end.min(rank);
    let after = range.start.max(rank + 1)..range.end;
    [before, after].into_iter().filter(|part| !part.is_empty())
}

/// Sorts ranges and joins adjacent ones.
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

/// Returns the fastest recipe of all group sizes, numbers of gateways and stripes.
fn estimates(
    ring: &WdmRing,
    cost: SlotCost,
    kind: CollectiveKind,
    size: Bytes,
) -> Vec<Estimate<Gateways>> {
    let mut estimates = Vec::new();
    for group in spread(ring.ranks) {
        let max_collectors = (MAX_LOAD_FACTOR * ring.channels() / group).clamp(1, group);
        for gateways in spread(max_collectors).into_iter().chain([1]) {
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

/// Maximum of k m / c over the recipes that are tried, with k gateways in a group of m ranks and
/// c channels. The load of a group is about k m / 4, so that one stripe needs at most 4 slots.
const MAX_LOAD_FACTOR: u32 = 16;

/// Maximum number of slots of a step that are tried, as a multiple of the slots of one stripe.
const MAX_ROUNDS: u64 = 4;

/// Returns the estimate of the recipe of a group size and a number of gateways, with the best
/// stripes.
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
    // Number of groups to which a gateway sends, including its own.
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
    // `ends` is the number of lightpaths that begin (or end) at one rank for each stripe.
    let step = |(load, ends): (u64, u64), blocks: u64, hops: u64| {
        let rounds = (1..=MAX_ROUNDS).map(|rounds| {
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
