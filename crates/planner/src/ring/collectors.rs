//! Three steps for small blocks: to collectors of the own group, to collectors of other groups, and from
//! these to their members; many blocks on a lightpath.
//!
//! The ring is cut, in ring order, into G groups of nearly equal size, at most m, with k evenly spaced
//! *collectors* each (as in [`crate::ring::grouped`]). For every ordered pair of groups one collector of the first sends
//! and one of the second receives. **In**: every rank sends each collector of its group what the groups need
//! for which that collector sends. **Across**: it goes from collector to collector, one lightpath (in
//! stripes) for a pair of groups. **Out**: receiving collectors send each member what it needs. In an
//! all_to_all that are the blocks for one group, then those between two groups, then those for one rank; data
//! within a group go over one of its collectors. In an all_gather it is every rank's block, then a group's
//! blocks, then those of the groups that a collector has received. Every block goes to every rank
//! once, so that backwards it is a reduce_scatter.
//!
//! Several ranges of chunks from one rank to another share a lightpath, one after the other.
//!
//! **Channels.** Inside a group the load is that of owners of shares in [`crate::ring::grouped`], and lightpaths of a line
//! need as many channels as their greatest load. Across, groups form a ring of G ranks, in which all send to
//! all: ceil(floor(G^2 / 4) / 2) channels for each stripe. A plan of that ring fits here although the ends of
//! lightpaths stand at several places of a group: clockwise lightpaths end at the first half of the
//! collectors and begin at the second half, the others the other way around, and with an odd k the
//! collector in the middle does both. So where one lightpath ends at a group and another on the same
//! channel begins there, the first ends before the second begins.
//!
//! With S = 3 slots this meets the bound *spread* (see [`opticoll_bounds::wdm_ring::multi_block`]) on
//! 64 ranks with 8 wavelengths and on 1,024 with 64.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::assembly::{Assembly, SharedMove, most_ends};
use crate::ring::few_slots::{self, Estimate, Recipe};
use crate::ring::grouped::{GroupLevel, Grouping, groups, load};
use crate::ring::slot_cost::{SlotCost, spread};
use crate::{Planner, PlannerError, Question, time_reversal};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::route::all_to_all;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

/// Groups, collectors, and the stripes of the three steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collectors {
    group: u32,
    collectors: u32,
    stripes: [u32; 3],
}

/// The planner of three steps.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("group", "maximum number of ranks in a group")
            .range("2 or more")
            .default("the fastest found"),
        OptionRecord::new("collectors", "collectors in each group")
            .range("1 to the ranks of a group")
            .default("1"),
        OptionRecord::new(
            "stripes",
            "stripes of the three steps, in, across and out, such as 1x2x1",
        )
        .range("three numbers joined by x, each 1 to 4096")
        .default("1x1x1"),
    ],
    by_size: true,
    ..Planner::new(
        Collectors::NAME,
        "Collectors",
        &[
            CollectiveKind::AllToAll,
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
        ],
        "Three steps: to collectors of the own group, across to those of others, out to members",
        "opticoll; several items per lightpath after Opatrny, TCS 2003",
        few_slots::scope::<Collectors>(),
    )
};

impl Recipe for Collectors {
    const NAME: &'static str = "collectors";

    fn spec(&self) -> Spec {
        Spec::new(Collectors::NAME)
            .with("group", self.group)
            .with("collectors", self.collectors)
            .with("stripes", few_slots::joined(self.stripes.into_iter()))
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let stripes = u64::from(self.stripes.into_iter().max().unwrap_or(1));
        // In an all_to_all every block arrives in a transfer of its own, after two ranges of blocks.
        let ranges = u64::from(self.collectors) * stripes + ranks.div_ceil(self.group.into());
        ranks.saturating_mul(ranks + 2 * ranges)
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        if collective.kind() != CollectiveKind::ReduceScatter {
            return plan(ring, collective, self);
        }
        let gather = Collective::new(CollectiveKind::AllGather, collective.ranks())?;
        let gather = plan(ring, gather, self)?;
        time_reversal::reduce_scatter(&gather)
    }

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        _collective: Collective,
    ) -> Result<Option<Collectors>, PlannerError> {
        if spec.options().next().is_none() {
            return Ok(None);
        }
        let Some(group) = spec.count("group", 2, u32::MAX)? else {
            return Err(spec
                .refuse("group", "is needed beside other options")
                .into());
        };
        if group > ring.ranks {
            let problem = format!("must be {} at most, the ranks of the ring", ring.ranks);
            return Err(spec.refuse("group", problem).into());
        }
        let collectors = spec.count("collectors", 1, u32::MAX)?.unwrap_or(1);
        if groups(ring.ranks, group, collectors).is_none() {
            let problem = "must be as many as the ranks of the smallest group at most";
            return Err(spec.refuse("collectors", problem).into());
        }
        let stripes = few_slots::stripes(spec, 3)?;
        let stripes = [stripes[0], stripes[1], stripes[2]];
        Ok(Some(Collectors {
            group,
            collectors,
            stripes,
        }))
    }

    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<Collectors>> {
        let ranks = u64::from(ring.ranks);
        if 2 * ranks.pow(2) > question.most_transfers {
            return Vec::new();
        }
        let kind = question.collective.kind();
        estimates(ring, question.slot_cost(ring), kind, question.size)
    }
}

/// Who sends for which group.
struct Roles {
    grouping: Grouping,
    /// The ranks of each group's collectors.
    collectors: Vec<Vec<u32>>,
}

/// A collector, and the groups for which it sends or from which it receives.
struct Collector {
    rank: u32,
    group: u32,
    groups: BTreeSet<u32>,
}

/// A lightpath of the ring of groups.
struct Crossing {
    from: u32,
    to: u32,
    direction: Direction,
    light: Light,
    slot: u32,
}

impl Roles {
    fn new(ranks: u32, recipe: &Collectors) -> Roles {
        let level = GroupLevel {
            group: recipe.group,
            owners: recipe.collectors,
            stripes: 1,
        };
        let grouping = Grouping::new(ranks, &level);
        let of = |group| {
            let owners = 0..recipe.collectors;
            owners.map(|index| grouping.owner(group, index)).collect()
        };
        let collectors = (0..grouping.count).map(of).collect();
        Roles {
            grouping,
            collectors,
        }
    }

    /// Which collector of a group sends to (or receives from) a group so many groups on in a direction; `begins`:
    /// whether the lightpath begins here. The collector in the middle, which does both, has half as much of each.
    fn index(&self, direction: Direction, begins: bool, apart: u32) -> usize {
        let collectors = self.collectors[0].len();
        let turn = apart as usize - 1;
        let from_end = match collectors % 2 {
            0 => turn % (collectors / 2),
            _ => turn % collectors / 2,
        };
        let later = (direction == Direction::Clockwise) == begins;
        if later {
            collectors - 1 - from_end
        } else {
            from_end
        }
    }

    /// The groups between two, in a direction.
    fn apart(&self, crossing: &Crossing) -> u32 {
        let count = self.grouping.count;
        match crossing.direction {
            Direction::Clockwise => (crossing.to + count - crossing.from) % count,
            Direction::CounterClockwise => (crossing.from + count - crossing.to) % count,
        }
    }

    fn sender(&self, crossing: &Crossing) -> u32 {
        let index = self.index(crossing.direction, true, self.apart(crossing));
        self.collectors[crossing.from as usize][index]
    }

    fn receiver(&self, crossing: &Crossing) -> u32 {
        let index = self.index(crossing.direction, false, self.apart(crossing));
        self.collectors[crossing.to as usize][index]
    }

    /// All collectors, in order, by the collectors and groups of lightpaths between groups. One in the middle
    /// serves its own group too: data within a group go through it.
    fn serving(&self, served: impl Iterator<Item = (u32, u32)>) -> Vec<Collector> {
        let mut of_rank: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (rank, group) in served {
            of_rank.entry(rank).or_default().insert(group);
        }
        let mut all = Vec::new();
        for (group, own) in (0..).zip(&self.collectors) {
            let middle = own[own.len() / 2];
            of_rank.entry(middle).or_default().insert(group);
            all.extend(own.iter().map(|rank| Collector {
                rank: *rank,
                group,
                groups: of_rank.remove(rank).unwrap_or_default(),
            }));
        }
        all
    }
}

/// The lightpaths between all pairs of groups, in stripes: on the circles of an all_to_all, a channel for each.
fn crossings(ring: &WdmRing, groups: u32, stripes: u32) -> Vec<Crossing> {
    let half = groups / 2;
    let couples = half * half.saturating_sub(1) / 2;
    let circles = (groups * groups / 4).div_ceil(2);
    let mut crossings = Vec::new();
    for from in 0..groups {
        for to in (0..groups).filter(|&to| to != from) {
            interrupt::check();
            let (direction, circle) = match all_to_all::circle(from, to, groups) {
                (Some(direction), circle) => (direction, circle),
                // Couples that face each other take turns.
                (None, _) => {
                    let couple = from % half;
                    (Direction::BOTH[couple as usize % 2], couples + couple / 2)
                }
            };
            crossings.extend((0..stripes).map(|stripe| {
                let place = stripe * circles + circle;
                Crossing {
                    from,
                    to,
                    direction,
                    light: ring.light(direction, place % ring.channels()),
                    slot: place / ring.channels(),
                }
            }));
        }
    }
    crossings
}

/// The plan of an all_to_all or an all_gather.
fn plan(ring: &WdmRing, collective: Collective, recipe: &Collectors) -> Result<Plan, PlannerError> {
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
    assembly.shared_line(&blocks.inwards(&crossings, into))?;
    let between = blocks.between(&crossings);
    let mut placed: Vec<_> = between
        .iter()
        .map(|(own, light, slot)| (own, *light, *slot))
        .collect();
    let ends = most_ends(placed.iter().map(|&(own, _, slot)| (own, slot)));
    if ring.ports.is_some_and(|ports| ends > ports) {
        let direction = |light| WdmLight::from(light).direction;
        let moves = placed
            .iter()
            .map(|&(own, light, _)| (own, direction(light)));
        placed = assembly.placed(&moves.collect::<Vec<_>>())?;
    }
    assembly.shared_slots(placed.into_iter());
    assembly.shared_line(&blocks.outwards(&crossings, out))?;
    Ok(assembly.finish(recipe.spec().to_string()))
}

/// Which chunks go where.
struct Blocks<'a> {
    ranks: u32,
    kind: CollectiveKind,
    roles: &'a Roles,
}

impl Blocks<'_> {
    fn gathers(&self) -> bool {
        self.kind == CollectiveKind::AllGather
    }

    /// The chunks that go from the ranks of one group to those of another.
    fn of_pair(&self, from: Range<u32>, to: Range<u32>) -> Vec<Range<u32>> {
        if self.gathers() {
            return std::iter::once(from).collect();
        }
        let row = |source: u32| source * self.ranks + to.start..source * self.ranks + to.end;
        from.map(row).collect()
    }

    /// From every rank to the collectors of its group.
    fn inwards(&self, crossings: &[Crossing], stripes: u32) -> Vec<SharedMove> {
        let sends = crossings.iter().map(|one| (self.roles.sender(one), one.to));
        self.inside(sends, |collector, member| {
            let own = member..member + 1;
            // Nobody needs a rank's block for itself.
            let needed = |&to: &u32| {
                let others = without(self.roles.grouping.range(to), member);
                others.flat_map(|to| self.of_pair(own.clone(), to))
            };
            let chunks = match self.gathers() {
                true => std::iter::once(own.clone()).collect(),
                false => collector.groups.iter().flat_map(needed).collect(),
            };
            SharedMove::cut(member, collector.rank, chunks, stripes)
        })
    }

    /// From collector to collector, with light and slots.
    fn between(&self, crossings: &[Crossing]) -> Vec<(SharedMove, Light, u32)> {
        let range = |group| self.roles.grouping.range(group);
        let pair = |crossing: &Crossing| (crossing.from, crossing.to);
        // Stripes of a pair follow one another.
        let pairs = crossings.chunk_by(|one, other| pair(one) == pair(other));
        let lightpaths = pairs.flat_map(|stripes| {
            interrupt::check();
            let first = &stripes[0];
            let chunks = self.of_pair(range(first.from), range(first.to));
            let (from, to) = (self.roles.sender(first), self.roles.receiver(first));
            let cut = SharedMove::cut(from, to, chunks, stripes.len() as u32);
            let placed = cut.into_iter().zip(stripes);
            placed.map(|(own, stripe)| (own, stripe.light, stripe.slot))
        });
        lightpaths.collect()
    }

    /// From collectors to the members of their group.
    fn outwards(&self, crossings: &[Crossing], stripes: u32) -> Vec<SharedMove> {
        let receives = crossings
            .iter()
            .map(|one| (self.roles.receiver(one), one.from));
        self.inside(receives, |collector, member| {
            let own = collector.group;
            // All collectors have the blocks of their group in an all_gather.
            let has_own = self.gathers() && self.roles.collectors[own as usize].contains(&member);
            let groups = collector.groups.iter();
            let chunks = groups
                .filter(|&&from| !(has_own && from == own))
                .flat_map(|&from| without(self.roles.grouping.range(from), member))
                .flat_map(|sources| self.of_pair(sources, member..member + 1));
            SharedMove::cut(collector.rank, member, joined(chunks.collect()), stripes)
        })
    }

    /// The lightpaths between collectors and the other members of their groups; `served` as for [`Roles::serving`].
    fn inside(
        &self,
        served: impl Iterator<Item = (u32, u32)>,
        lightpaths: impl Fn(&Collector, u32) -> Vec<SharedMove>,
    ) -> Vec<SharedMove> {
        let mut moves = Vec::new();
        for collector in self.roles.serving(served) {
            let members = self.roles.grouping.range(collector.group);
            for member in members.filter(|&member| member != collector.rank) {
                interrupt::check();
                moves.extend(lightpaths(&collector, member));
            }
        }
        moves
    }
}

/// The ranks of a range before one and after it.
fn without(range: Range<u32>, rank: u32) -> impl Iterator<Item = Range<u32>> {
    let before = range.start..range.end.min(rank);
    let after = range.start.max(rank + 1)..range.end;
    [before, after].into_iter().filter(|part| !part.is_empty())
}

/// Ranges in order, those that meet as one.
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

/// The fastest of all sizes of groups, numbers of collectors and stripes.
fn estimates(
    ring: &WdmRing,
    cost: SlotCost,
    kind: CollectiveKind,
    size: Bytes,
) -> Vec<Estimate<Collectors>> {
    let mut all = Vec::new();
    for group in spread(ring.ranks) {
        let most = (MOST_LOAD * ring.channels() / group).clamp(1, group);
        for collectors in spread(most).into_iter().chain([1]) {
            interrupt::check();
            if groups(ring.ranks, group, collectors).is_some() {
                all.push(estimate(ring, cost, kind, size, (group, collectors)));
            }
        }
    }
    let fastest = all.into_iter().min_by_key(|one| (one.time, one.slots));
    fastest.into_iter().collect()
}

/// Loads of k collectors in a group of m are about k m / 4: those of more than some slots are not tried.
const MOST_LOAD: u32 = 16;

/// The slots of a step are tried up to so many times those of one stripe.
const MOST_ROUNDS: u64 = 4;

fn estimate(
    ring: &WdmRing,
    cost: SlotCost,
    kind: CollectiveKind,
    size: Bytes,
    (group, collectors): (u32, u32),
) -> Estimate<Collectors> {
    let (ranks, channels) = (u64::from(ring.ranks), u64::from(ring.channels()));
    let count = ranks.div_ceil(group.into());
    let members = ranks.div_ceil(count);
    // Groups that a collector sends for, with its own.
    let served = count.div_ceil(collectors.into());
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
    let inside = u64::from(load(members as u32, collectors)).max(1);
    let around = (count * count / 4).div_ceil(2).max(1);
    let ports = ring.ports.map_or(u64::MAX, u64::from);
    // `ends`: lightpaths that begin, or end, at one rank for each stripe.
    let step = |(load, ends): (u64, u64), blocks: u64, hops: u64| {
        let rounds = (1..=MOST_ROUNDS).map(|rounds| {
            let by_ports = rounds.saturating_mul(ports) / ends.max(1);
            let stripes = (rounds * channels / load).min(by_ports).clamp(1, blocks);
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
        recipe: Collectors {
            group,
            collectors,
            stripes: steps.map(|(_, _, stripes)| stripes as u32),
        },
    }
}
