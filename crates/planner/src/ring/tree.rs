//! Plans of broadcast, scatter, reduce and gather along trees of any radices.
//!
//! The ring is cut open opposite the root, and data spread from segments to their parts
//! ([`crate::ring::radix_tree`]). After radices q_1, ..., q_r with ceil(... ceil(N / q_1) ... /
//! q_r) = 1 all parts are single ranks. At most floor(q / 2) lightpaths leave a holder in each
//! direction, and segments of different holders share no link. The load of a level is therefore
//! floor(q / 2), and as lightpaths on a line are intervals, the same number of channels suffices. A
//! *broadcast* sends the whole vector of M bytes, in s stripes over channels of their own: ceil(s
//! floor(q / 2) / c) slots of M / s bytes. With q = 2c + 1 and s = 1 on every level, it needs
//! ceil(log_(2c+1) N) slots, the growth bound. A *scatter* sends a relay the blocks of its part:
//! consecutive ranks and thus one lightpath (two if the part contains both ranks N - 1 and 0), or
//! several stripes. With q_1 = N it needs ceil((N - 1) / 2c) slots, the least that the root's links
//! allow.
//!
//! Every rank receives every chunk at most once, so that the time reversal of a broadcast is a
//! reduce, and that of a scatter a gather.
//!
//! **Light trees.** On a ring with multicast every rank on the route of light takes a share of the
//! light, so that a broadcast of as many pieces as one direction has channels, or both directions
//! have, takes one slot ([`crate::ring::relay_tree::light_trees`]).
//!
//! **Large vectors.** A broadcast may scatter N blocks and then all_gather them; a reduce may
//! reduce_scatter and then gather. Both halves take M / (2 c B) on the root's links if the second
//! half meets its bandwidth bound. Ranks do not receive again what they already have.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::building::assembly::{Assembly, Move, PartOf, cut};
use crate::building::time_reversal::{self, copying};
use crate::ring::radix_tree::{Handover, handovers_by_level, holder};
use crate::ring::recipe::{self, Estimate, Recipe};
use crate::ring::relay_tree::light_trees;
use crate::ring::slot_cost::{SlotCost, spread};
use crate::selection::evaluation::Candidate;
use crate::{FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Transfer};

/// Level of a tree: its radix, and the number of stripes of what a lightpath of the level carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeLevel {
    pub(crate) radix: u32,
    pub(crate) stripes: u32,
}

/// Levels of a tree, from the root outwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) levels: Vec<TreeLevel>,
}

/// Maximum number of levels: more are never the fastest below 10^6 ranks.
const MAX_LEVELS: usize = 5;

/// Name of the option for light trees.
const LIGHT_TREES: &str = "light_trees";

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "radices",
            "number of parts into which each level divides its ranks, from the root outwards, such \
             as 9x11x11",
        )
        .range("numbers joined by x")
        .default("the fastest found"),
        OptionRecord::new(
            "stripes",
            "number of stripes of each level, such as 16x12x12",
        )
        .range("numbers joined by x, each 1 to 4096")
        .default("1"),
        OptionRecord::new(
            LIGHT_TREES,
            "number of pieces of the vector of a broadcast, each of which reaches all ranks as \
             light that they share; needs a ring with multicast",
        )
        .range("1 to twice the channels of a direction")
        .default("unassigned: lightpaths from rank to rank"),
    ],
    depends_on_size: true,
    ..Planner::new(
        Tree::NAME,
        "Tree",
        &[
            CollectiveKind::Broadcast,
            CollectiveKind::Scatter,
            CollectiveKind::Reduce,
            CollectiveKind::Gather,
        ],
        "A tree of any radices around the root, striped over the channels that the tree leaves \
         free",
        "opticoll; growth after Bermond et al., Theoretical Computer Science 2000",
        Scope::Rings(FamilyFunctions::new(plan, candidates)),
    )
};

impl Recipe for Tree {
    const NAME: &'static str = "tree";

    fn spec(&self) -> Spec {
        let levels = self.levels.iter();
        let stripes = levels.clone().map(|level| level.stripes);
        Spec::new(Tree::NAME)
            .with("radices", recipe::joined(levels.map(|level| level.radix)))
            .with("stripes", recipe::joined(stripes))
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let stripes = self.levels.iter().map(|level| level.stripes).max();
        // There are at most 64 times as many pieces as stripes.
        u64::from(stripes.unwrap_or(1)).saturating_mul(ranks.max(64))
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        with_radices(ring, collective, self)
    }

    fn from_options(
        spec: &Spec,
        ring: &WdmRing,
        _collective: Collective,
    ) -> Result<Option<Tree>, PlannerError> {
        let given = recipe::radices(spec, ring.ranks)?;
        let level = |(radix, stripes)| TreeLevel { radix, stripes };
        Ok(given.map(|levels| Tree {
            levels: levels.into_iter().map(level).collect(),
        }))
    }

    fn estimates(ring: &WdmRing, problem: &PlanningProblem<'_>) -> Vec<Estimate<Tree>> {
        use CollectiveKind::{Gather, Scatter};
        let blocks = matches!(problem.collective.kind(), Scatter | Gather);
        trees(ring, problem.slot_cost(ring), blocks, problem.size)
    }
}

fn plan(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
) -> Result<Planned, PlannerError> {
    let Some(pieces) = spec.count(LIGHT_TREES, 1, 2 * ring.channels())? else {
        return recipe::plan::<Tree>(spec, problem, ring);
    };
    if !shares_light(problem, ring) {
        let rule = "needs a broadcast, on a ring with multicast=drop_and_continue";
        return Err(spec.refuse(LIGHT_TREES, rule).into());
    }
    with_light_trees(problem, ring, pieces).map(Planned::from)
}

/// Returns candidates for the most promising trees, and for light trees of the whole vector and of
/// as many pieces as fill one direction, or both.
fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let mut candidates = recipe::candidates::<Tree>(problem, ring)?;
    if ring.ranks < 2 || !shares_light(problem, ring) {
        return Ok(candidates);
    }
    let least = problem.least()?;
    let problem = *problem;
    for pieces in [1, ring.channels(), 2 * ring.channels()] {
        let transfers = u64::from(pieces) * u64::from(ring.ranks);
        if transfers <= problem.max_transfers && u64::from(pieces) <= problem.size.get().max(1) {
            candidates.push(Candidate {
                name: light_trees_name(pieces),
                slots: 1,
                lower_bound: least,
                estimate: least,
                transfers,
                build: Box::new(move |_| Ok(with_light_trees(&problem, ring, pieces)?.into())),
            });
        }
    }
    Ok(candidates)
}

/// Returns whether the error is a broadcast whose light the ranks on its route can share.
fn shares_light(problem: &PlanningProblem<'_>, ring: &WdmRing) -> bool {
    ring.multicast && problem.collective.kind() == CollectiveKind::Broadcast
}

/// Returns the name of the plan along light trees.
fn light_trees_name(pieces: u32) -> String {
    Spec::new(Tree::NAME).with(LIGHT_TREES, pieces).to_string()
}

/// Builds the broadcast along light trees.
fn with_light_trees(
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
    pieces: u32,
) -> Result<Plan, PlannerError> {
    let collective = problem.collective.with_pieces(pieces)?;
    let plan = light_trees::broadcast(ring, collective, &light_trees_name(pieces));
    plan.ok_or(PlannerError::CutOff)
}

/// Returns the plan of a tree for a broadcast, scatter, reduce or gather.
///
/// # Errors
/// More chunks than 32 bits can count.
fn with_radices(ring: &WdmRing, collective: Collective, tree: &Tree) -> Result<Plan, PlannerError> {
    let forward = copying(collective.kind());
    let pieces = if forward == CollectiveKind::Broadcast {
        pieces_for(&tree.levels)
    } else {
        1
    };
    let outwards = Collective::new(forward, collective.ranks())?
        .with_root(collective.root())?
        .with_pieces(pieces)?;
    time_reversal::reversed_for(outward(ring, outwards, tree)?, collective)
}

/// Returns the least number of pieces that all levels divide evenly into their stripes (see
/// [`recipe::is_evenly_divisible`]).
fn pieces_for(levels: &[TreeLevel]) -> u32 {
    let max_stripes = levels.iter().map(|level| level.stripes).max().unwrap_or(1);
    let is_even = |pieces: &u32| {
        let mut stripes = levels.iter().map(|level| level.stripes);
        stripes.all(|stripes| recipe::is_evenly_divisible(u128::from(*pieces), stripes))
    };
    (max_stripes..=max_stripes.saturating_mul(64))
        .find(is_even)
        .unwrap_or(max_stripes)
}

/// Returns the plan of a broadcast or scatter along a tree.
fn outward(ring: &WdmRing, collective: Collective, tree: &Tree) -> Result<Plan, PlannerError> {
    let ranks = collective.ranks();
    let mut assembly = Assembly::new(ring, collective);
    let radices: Vec<u32> = tree.levels.iter().map(|level| level.radix).collect();
    let offset = u64::from(collective.root()) + u64::from(ranks - holder(0..ranks, &radices));
    let rank = |position: u32| ((offset + u64::from(position)) % u64::from(ranks)) as u32;
    for (handovers, level) in handovers_by_level(ranks, &radices)
        .into_iter()
        .zip(&tree.levels)
    {
        let mut moves: Vec<Move> = Vec::new();
        for Handover { from, to, part } in handovers {
            interrupt::check();
            let direction = if to > from {
                Direction::Clockwise
            } else {
                Direction::CounterClockwise
            };
            for chunks in chunks_for_part(collective, rank(part.start), &part, level.stripes) {
                let transfer = Transfer {
                    chunk: chunks.start,
                    count: chunks.end - chunks.start,
                    source: rank(from),
                    destination: rank(to),
                    action: Action::Copy,
                };
                moves.push((transfer, direction));
            }
        }
        assembly.step(&moves)?;
    }
    Ok(assembly.finish(tree.spec().to_string()))
}

/// Returns the chunks that a relay receives for its part, whose first rank is `first`: stripes of
/// the vector, or the blocks of the part.
fn chunks_for_part(
    collective: Collective,
    first: u32,
    part: &Range<u32>,
    stripes: u32,
) -> Vec<Range<u32>> {
    if collective.kind() == CollectiveKind::Broadcast {
        return cut(0..collective.pieces(), stripes).collect();
    }
    let length = part.end - part.start;
    let straight = length.min(collective.ranks() - first);
    if straight == length {
        return cut(first..first + length, stripes).collect();
    }
    let before = (u64::from(stripes) * u64::from(straight) / u64::from(length)) as u32;
    let behind = stripes.saturating_sub(before);
    cut(first..collective.ranks(), before.max(1))
        .chain(cut(0..length - straight, behind.max(1)))
        .collect()
}

/// Returns the fastest tree for every number of levels, the fastest first. If `blocks`, the
/// collective scatters blocks of `size`; otherwise it broadcasts a vector of `size`.
fn trees(ring: &WdmRing, cost: SlotCost, blocks: bool, size: Bytes) -> Vec<Estimate<Tree>> {
    let search = RadixSearch {
        ring,
        cost,
        blocks,
        size,
    };
    let mut estimates: Vec<Estimate<Tree>> = search.trees();
    estimates.sort_by_key(|estimate| (estimate.time, estimate.slots));
    estimates
}

/// Search for the radices of the least time.
struct RadixSearch<'a> {
    ring: &'a WdmRing,
    cost: SlotCost,
    blocks: bool,
    size: Bytes,
}

/// Time in picoseconds, slots and outermost level of the fastest levels for a segment.
type Best = Option<(u64, u64, TreeLevel)>;

impl RadixSearch<'_> {
    /// Returns the fastest tree for every number of levels, by a dynamic program over the lengths
    /// that segments can have: `best[r][n]` reaches n ranks with r + 1 levels.
    fn trees(&self) -> Vec<Estimate<Tree>> {
        let ranks = self.ring.ranks;
        if ranks < 2 {
            let tree = Tree { levels: Vec::new() };
            return vec![Estimate {
                time: 0,
                slots: 0,
                recipe: tree,
            }];
        }
        let mut lengths = vec![ranks];
        let mut next = 0;
        while let Some(&length) = lengths.get(next) {
            next += 1;
            for radix in self.radices(length) {
                let part = length.div_ceil(radix);
                if part > 1 && !lengths.contains(&part) {
                    lengths.push(part);
                }
            }
        }
        let mut best: Vec<BTreeMap<u32, Best>> = Vec::new();
        for depth in 0..MAX_LEVELS {
            let mut best_of_depth = BTreeMap::new();
            for &length in &lengths {
                let mut fastest: Best = None;
                for radix in self.radices(length) {
                    interrupt::check();
                    let part = length.div_ceil(radix);
                    let deeper = match (depth, part) {
                        (0, 1) => Some((0, 0)),
                        (0, _) | (_, 1) => None,
                        _ => best[depth - 1]
                            .get(&part)
                            .and_then(|best| best.map(|(time, slots, _)| (time, slots))),
                    };
                    let Some((time, slots)) = deeper else {
                        continue;
                    };
                    let (level_time, level_slots, stripes) = self.level(length, radix);
                    let time = level_time.saturating_add(time);
                    if fastest.is_none_or(|(min_time, ..)| time < min_time) {
                        let level = TreeLevel { radix, stripes };
                        fastest = Some((time, slots + level_slots, level));
                    }
                }
                best_of_depth.insert(length, fastest);
            }
            best.push(best_of_depth);
        }
        (0..MAX_LEVELS)
            .filter_map(|depth| {
                let (time, slots, _) = best[depth][&ranks]?;
                let mut levels = Vec::new();
                let mut length = ranks;
                for depth in (0..=depth).rev() {
                    let (_, _, level) = best[depth][&length]?;
                    levels.push(level);
                    length = length.div_ceil(level.radix);
                }
                let tree = Tree { levels };
                Some(Estimate {
                    time,
                    slots,
                    recipe: tree,
                })
            })
            .collect()
    }

    /// Returns the radices that are tried for a segment of `length` ranks.
    fn radices(&self, length: u32) -> Vec<u32> {
        let mut radices = spread(length);
        radices.extend(Some(2 * self.ring.channels() + 1).filter(|&radix| radix < length));
        radices
    }

    /// Returns the time in picoseconds, the slots and the best number of stripes of a level.
    fn level(&self, length: u32, radix: u32) -> (u64, u64, u32) {
        let parts = u64::from(radix.min(length));
        let channels = u64::from(self.ring.channels());
        let load = (parts / 2).max(1);
        let part = u64::from(length).div_ceil(parts);
        let ports = self.ring.ports.map_or(u64::MAX, u64::from);
        let mut best = (u64::MAX, u64::MAX, 1);
        for slots in 1..=4u64 {
            let stripes_by_ports = slots.saturating_mul(ports) / (parts - 1).max(1);
            let stripes = (slots * channels / load).min(stripes_by_ports).max(1);
            let stripes = if self.blocks {
                stripes.min(part)
            } else {
                stripes
            };
            let slots_by_ports = (stripes * (parts - 1)).div_ceil(ports);
            let slots = (stripes * load).div_ceil(channels).max(slots_by_ports);
            let bytes = if self.blocks {
                self.size.get().saturating_mul(part.div_ceil(stripes))
            } else {
                self.size.get().div_ceil(stripes)
            };
            let hops = u64::from(length / 2).max(1);
            let time = self.cost.slots(slots, Bytes::new(bytes), hops);
            if time < best.0 {
                best = (time, slots, stripes as u32);
            }
        }
        best
    }
}

/// Returns the broadcast that scatters blocks by one plan and collects them by another. `None` if a
/// lightpath of the second plan would carry two ranges, because its receiver already has the chunks
/// between them.
///
/// # Errors
/// More chunks than 32 bits can count.
pub(crate) fn scatter_all_gather(
    ring: &WdmRing,
    collective: Collective,
    scatter: &Plan,
    gather: &Plan,
) -> Result<Option<Plan>, PlannerError> {
    let (scatter_factor, gather_factor, pieces) = common_refinement(scatter, gather);
    let collective = collective.with_pieces(pieces)?;
    let mut held: Vec<Vec<Range<u32>>> = vec![Vec::new(); collective.ranks() as usize];
    held[collective.root() as usize].push(0..collective.chunks());
    for transfer in scatter.schedule.transfers() {
        interrupt::check();
        let end = transfer.chunk + transfer.count;
        let chunks = transfer.chunk * scatter_factor..end * scatter_factor;
        held[transfer.destination as usize].push(chunks);
    }
    let mut assembly = Assembly::new(ring, collective);
    assembly.append_with_factor(scatter, scatter_factor);
    let missing = |transfer: Transfer| missing_part(transfer, gather_factor, &held);
    let has_single_ranges = assembly.append_parts(gather, missing);
    Ok(has_single_ranges.then(|| assembly.finish(String::new())))
}

/// Returns the factors by which the chunks of two plans are divided so that both plans have equally
/// many, and this number.
fn common_refinement(one: &Plan, other: &Plan) -> (u32, u32, u32) {
    let [one, other] = [one, other].map(|plan| plan.schedule.collective.chunks());
    let chunks = least_common_multiple(one, other);
    (chunks / one, chunks / other, chunks)
}

/// Returns the least common multiple of two numbers, each at least 1; at most `u32::MAX`.
pub(crate) fn least_common_multiple(one: u32, other: u32) -> u32 {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor.max(1)).saturating_mul(other)
}

/// Returns the part of a transfer that its destination does not have yet, after each chunk is
/// divided into `factor` chunks.
fn missing_part(transfer: Transfer, factor: u32, held: &[Vec<Range<u32>>]) -> PartOf {
    let end = transfer.chunk + transfer.count;
    let mut chunks = transfer.chunk * factor..end * factor;
    for range in &held[transfer.destination as usize] {
        if range.start <= chunks.start {
            chunks.start = chunks.start.max(range.end);
        } else if range.end >= chunks.end {
            chunks.end = chunks.end.min(range.start);
        } else {
            return PartOf::Several;
        }
    }
    if chunks.is_empty() {
        return PartOf::Nothing;
    }
    PartOf::Range(Transfer {
        chunk: chunks.start,
        count: chunks.end - chunks.start,
        ..transfer
    })
}

/// Returns the reduce that combines blocks by one plan and gathers them by another.
///
/// # Errors
/// More chunks than 32 bits can count.
pub(crate) fn reduce_scatter_gather(
    ring: &WdmRing,
    collective: Collective,
    reduce_scatter: &Plan,
    gather: &Plan,
) -> Result<Plan, PlannerError> {
    let (scatter_factor, gather_factor, pieces) = common_refinement(reduce_scatter, gather);
    let collective = collective.with_pieces(pieces)?;
    let mut assembly = Assembly::new(ring, collective);
    assembly.append_with_factor(reduce_scatter, scatter_factor);
    assembly.append_with_factor(gather, gather_factor);
    Ok(assembly.finish(String::new()))
}
