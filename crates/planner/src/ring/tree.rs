//! Plans of broadcast, scatter, reduce and gather along radix trees.
//!
//! The ring is cut open opposite the root, which gives a line of ranks. Each level of radix q cuts
//! every segment of the line into q parts, and the head of the segment sends data to the heads of
//! the other parts ([`crate::ring::radix_tree`]). With radices q_1, ..., q_r, all parts are single
//! ranks if ceil(... ceil(N / q_1) ... / q_r) = 1. At most floor(q / 2) lightpaths start at a head
//! in each direction, and different segments share no link. The load of a level is therefore
//! floor(q / 2). Lightpaths on a line can be assigned to as many channels as the maximum load.
//!
//! A *broadcast* sends the whole vector of M bytes. If the vector is cut into s stripes on separate
//! channels, a level needs ceil(s floor(q / 2) / c) slots of M / s bytes. With q = 2c + 1 and s = 1
//! on every level, the plan has ceil(log_(2c+1) N) slots, which is the bound `growth`.
//!
//! A *scatter* sends each head the blocks of its part. The ranks of a part are consecutive, so a
//! transfer needs one lightpath per stripe (or two, if the part contains both ranks N - 1 and 0).
//! With q_1 = N, the plan has ceil((N - 1) / 2c) slots. The root's links do not allow fewer slots.
//!
//! Every rank receives every chunk at most once. The time reversal of a broadcast is therefore a
//! reduce, and the time reversal of a scatter is a gather.
//!
//! **Light trees.** On a ring with multicast, every rank on the route of a lightpath receives a
//! share of the light. A broadcast therefore needs one slot if the number of pieces is at most the
//! number of channels of both directions ([`crate::ring::relay_tree::light_trees`]).
//!
//! **Large vectors.** A broadcast can consist of a scatter and an all_gather of N blocks. The
//! all_gather leaves out chunks that the receiver already has. A reduce can consist of a
//! reduce_scatter and a gather. Each phase occupies the root's links for at least M / (2 c B).

use std::collections::BTreeMap;
use std::ops::Range;

use crate::building::assembly::{Assembly, Move, PartOf, cut};
use crate::building::time_reversal::{self, copying};
use crate::ring::radix_tree::{Handover, handovers_by_level, head};
use crate::ring::recipe::{self, Estimate, Recipe};
use crate::ring::relay_tree::light_trees;
use crate::ring::slot_cost::{SlotCost, sample_sizes};
use crate::selection::evaluation::Candidate;
use crate::{FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, gcd};
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Transfer};

/// Level of a radix tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeLevel {
    /// Number of parts into which the level cuts each segment of ranks.
    pub(crate) radix: u32,
    /// Number of stripes (pieces on separate channels) of each transfer of the level.
    pub(crate) stripes: u32,
}

/// Radix tree: the root sends to one rank of each large segment of the ring, and these ranks send
/// to smaller segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Levels in descending order of segment size. In the first level, only the root sends.
    pub(crate) levels: Vec<TreeLevel>,
}

/// Maximum number of levels. (Up to 10^6 ranks, trees with more levels are never the fastest.)
const MAX_LEVELS: usize = 5;

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
            "number of pieces of the vector of a broadcast; each piece reaches all ranks over \
            one light tree; needs a ring with multicast",
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
        "A radix tree around the root, in which each message is striped over several channels",
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
        let levels = recipe::radices(spec, ring.ranks)?;
        let level = |(radix, stripes)| TreeLevel { radix, stripes };
        Ok(levels.map(|levels| Tree {
            levels: levels.into_iter().map(level).collect(),
        }))
    }

    fn estimates(ring: &WdmRing, problem: &PlanningProblem<'_>) -> Vec<Estimate<Tree>> {
        use CollectiveKind::{Gather, Scatter};
        let is_scatter = matches!(problem.collective.kind(), Scatter | Gather);
        trees(ring, problem.slot_cost(ring), is_scatter, problem.size)
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
    if !allows_light_trees(problem, ring) {
        let rule = "needs a broadcast, on a ring with multicast=drop_and_continue";
        return Err(spec.refuse(LIGHT_TREES, rule).into());
    }
    with_light_trees(problem, ring, pieces).map(Planned::from)
}

/// Returns the fastest radix trees as candidates for `auto`. For a broadcast on a ring with
/// multicast, also returns up to three plans along light trees. These plans send the whole vector,
/// one piece per channel of one direction, or one piece per channel of both directions.
fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let mut candidates = recipe::candidates::<Tree>(problem, ring)?;
    if ring.ranks < 2 || !allows_light_trees(problem, ring) {
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

/// Returns whether the planner has plans along light trees: for a broadcast on a ring with
/// multicast.
fn allows_light_trees(problem: &PlanningProblem<'_>, ring: &WdmRing) -> bool {
    ring.multicast && problem.collective.kind() == CollectiveKind::Broadcast
}

fn light_trees_name(pieces: u32) -> String {
    Spec::new(Tree::NAME).with(LIGHT_TREES, pieces).to_string()
}

fn with_light_trees(
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
    pieces: u32,
) -> Result<Plan, PlannerError> {
    let collective = problem.collective.with_pieces(pieces)?;
    let plan = light_trees::broadcast(ring, collective, &light_trees_name(pieces));
    plan.ok_or(PlannerError::CutOff)
}

/// Builds the plan of a broadcast, scatter, reduce or gather along a radix tree.
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

/// Returns the smallest number of pieces that can be divided evenly into the stripes of each level
/// (see [`recipe::is_evenly_divisible`]).
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

fn outward(ring: &WdmRing, collective: Collective, tree: &Tree) -> Result<Plan, PlannerError> {
    let ranks = collective.ranks();
    let mut assembly = Assembly::new(ring, collective);
    let radices: Vec<u32> = tree.levels.iter().map(|level| level.radix).collect();
    let offset = u64::from(collective.root()) + u64::from(ranks - head(0..ranks, &radices));
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

/// Returns the chunks that are sent to the ranks at the positions `part`: the whole vector in a
/// broadcast, the blocks of these ranks in a scatter. Each entry is the range of chunks of a
/// stripe. `first` is the rank at the first position of `part`.
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

/// Returns the fastest tree for each number of levels. The trees are in ascending order of time. If
/// `is_scatter` is true, `size` is the size of a block, otherwise the size of the broadcast vector.
fn trees(ring: &WdmRing, cost: SlotCost, is_scatter: bool, size: Bytes) -> Vec<Estimate<Tree>> {
    let search = RadixSearch {
        ring,
        cost,
        is_scatter,
        size,
    };
    let mut estimates: Vec<Estimate<Tree>> = search.trees();
    estimates.sort_by_key(|estimate| (estimate.time, estimate.slots));
    estimates
}

struct RadixSearch<'a> {
    ring: &'a WdmRing,
    cost: SlotCost,
    is_scatter: bool,
    /// Size of a block (if `is_scatter` is true) or of the broadcast vector.
    size: Bytes,
}

/// Fastest tree for a segment: the time of the tree in picoseconds, the number of slots, and the
/// first level. `None` if no tree exists.
type FastestTree = Option<(u64, u64, TreeLevel)>;

impl RadixSearch<'_> {
    /// Returns the fastest tree for each number of levels. The search is a dynamic program with a
    /// table `best`: `best[r][&n]` is the fastest tree of r + 1 levels for a segment of n ranks.
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
        let mut best: Vec<BTreeMap<u32, FastestTree>> = Vec::new();
        for depth in 0..MAX_LEVELS {
            let mut best_of_depth = BTreeMap::new();
            for &length in &lengths {
                let mut fastest: FastestTree = None;
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

    fn radices(&self, length: u32) -> Vec<u32> {
        let mut radices = sample_sizes(length);
        radices.extend(Some(2 * self.ring.channels() + 1).filter(|&radix| radix < length));
        radices
    }

    /// Chooses the number of stripes of a level that gives the shortest time. Returns the time of
    /// the level in picoseconds, the number of slots, and the number of stripes. The level cuts a
    /// segment of `length` ranks into `radix` parts.
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
            let stripes = if self.is_scatter {
                stripes.min(part)
            } else {
                stripes
            };
            let slots_by_ports = (stripes * (parts - 1)).div_ceil(ports);
            let slots = (stripes * load).div_ceil(channels).max(slots_by_ports);
            let bytes = if self.is_scatter {
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

/// Builds a broadcast: the plan `scatter` of a scatter, followed by the plan `gather` of an
/// all_gather. Transfers of the all_gather leave out chunks that the receiver already has. Returns
/// `None` if the remaining chunks of a transfer are not consecutive.
pub(crate) fn scatter_all_gather(
    ring: &WdmRing,
    collective: Collective,
    scatter: &Plan,
    gather: &Plan,
) -> Result<Option<Plan>, PlannerError> {
    let (scatter_factor, gather_factor, pieces) = common_refinement(scatter, gather);
    let collective = collective.with_pieces(pieces)?;
    let mut received: Vec<Vec<Range<u32>>> = vec![Vec::new(); collective.ranks() as usize];
    received[collective.root() as usize].push(0..collective.chunks());
    for transfer in scatter.schedule.transfers() {
        interrupt::check();
        let end = transfer.chunk + transfer.count;
        let chunks = transfer.chunk * scatter_factor..end * scatter_factor;
        received[transfer.destination as usize].push(chunks);
    }
    let mut assembly = Assembly::new(ring, collective);
    assembly.append_with_factor(scatter, scatter_factor);
    let missing = |transfer: Transfer| missing_part(transfer, gather_factor, &received);
    let has_single_ranges = assembly.append_parts(gather, missing);
    Ok(has_single_ranges.then(|| assembly.finish(String::new())))
}

/// Returns the factor of each of two plans, and a number of chunks. If each chunk of a plan is
/// divided into as many chunks as the plan's factor, both plans have this number of chunks. (The
/// number is a least common multiple.)
fn common_refinement(one: &Plan, other: &Plan) -> (u32, u32, u32) {
    let [one, other] = [one, other].map(|plan| plan.schedule.collective.chunks());
    let chunks = least_common_multiple(one, other);
    (chunks / one, chunks / other, chunks)
}

/// Returns the least common multiple of two positive numbers. Results above `u32::MAX` are
/// `u32::MAX`.
pub(crate) fn least_common_multiple(one: u32, other: u32) -> u32 {
    let divisor = gcd(one.into(), other.into()).max(1) as u32;
    (one / divisor).saturating_mul(other)
}

/// Divides each chunk of a transfer into `factor` chunks. Returns the chunks that the destination
/// does not have yet. `received` is the ranges of chunks that each rank has, indexed by rank.
fn missing_part(transfer: Transfer, factor: u32, received: &[Vec<Range<u32>>]) -> PartOf {
    let end = transfer.chunk + transfer.count;
    let mut chunks = transfer.chunk * factor..end * factor;
    for range in &received[transfer.destination as usize] {
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

/// Builds a reduce: the plan of a reduce_scatter, followed by the plan of a gather.
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
