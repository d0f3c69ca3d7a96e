//! Broadcast, scatter, reduce and gather along trees of any radices.
//!
//! The ring is cut open opposite the root, and data spreads from segment to part (see
//! [`crate::unfold`]); after radices q_1, ..., q_r with ceil(... ceil(N / q_1) ... / q_r) = 1 all parts
//! are single ranks. At most floor(q / 2) lightpaths leave a holder each way, and segments of
//! different holders share no link: the load of a level is floor(q / 2), and as these are intervals,
//! that many channels do. A *broadcast* sends the whole vector, in s stripes over
//! channels of their own: ceil(s floor(q / 2) / c) slots of M / s bytes. With q = 2c + 1 and s = 1 on
//! every level it takes ceil(log_(2c+1) N) slots, which is the growth bound. A *scatter* sends a relay
//! the blocks of its part, consecutive ranks and so one lightpath (two where the part contains both
//! ranks N - 1 and 0), or several stripes. With q_1 = N it takes ceil((N - 1) / 2c) slots, all that
//! the root's links allow.
//!
//! Every rank gets every chunk at most once, so backwards a broadcast is a reduce and a scatter a
//! gather.
//!
//! **Light trees.** On a ring with multicast every rank on the way of light takes a share of it, so
//! that a broadcast of as many pieces as a direction has channels, or both have, takes one slot
//! ([`crate::ring::relay_tree::multicast`]).
//!
//! **Large vectors.** A broadcast may scatter N blocks and then all_gather them, a reduce may
//! reduce_scatter and then gather: M / (2 c B) for the root's links, and as much again for the
//! second half, if that meets its bandwidth bound. What a rank holds already is not sent to it again.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::assembly::{Assembly, Move, PartOf, cut};
use crate::ring::few_slots::{self, Estimate, Recipe};
use crate::ring::relay_tree::multicast;
use crate::ring::slot_cost::{SlotCost, spread};
use crate::ring::unfold::{Hand, holder, unfold};
use crate::selection::contest::Contender;
use crate::time_reversal::{self, copying};
use crate::{OnMachine, Planned, Planner, PlannerError, Question, Scope};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Transfer};

/// A radix and the stripes of what is sent on its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeLevel {
    pub(crate) radix: u32,
    pub(crate) stripes: u32,
}

/// Radices from the root outwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) levels: Vec<TreeLevel>,
}

/// More levels than that are never the fastest below a million ranks.
const MOST_LEVELS: usize = 5;

/// The option that names light trees.
const LIGHT_TREES: &str = "light_trees";

/// The planner of trees around the root.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "radices",
            "parts that each level divides its ranks into, from the root outwards, such \
         as 9x11x11",
        )
        .range("numbers joined by x")
        .default("the fastest found"),
        OptionRecord::new("stripes", "stripes of each level, such as 16x12x12")
            .range("numbers joined by x, each 1 to 4096")
            .default("1"),
        OptionRecord::new(
            LIGHT_TREES,
            "pieces of the vector of a broadcast, each of which goes to all ranks as light that \
             they share; needs a ring with multicast",
        )
        .range("1 to twice the channels of a direction")
        .default("unassigned: lightpaths from rank to rank"),
    ],
    by_size: true,
    ..Planner::new(
        Tree::NAME,
        "Tree",
        &[
            CollectiveKind::Broadcast,
            CollectiveKind::Scatter,
            CollectiveKind::Reduce,
            CollectiveKind::Gather,
        ],
        "A tree of any radices around the root, striped over the channels it leaves",
        "opticoll; growth after Bermond et al., Theoretical Computer Science 2000",
        Scope::Rings(OnMachine::new(plan, contenders)),
    )
};

impl Recipe for Tree {
    const NAME: &'static str = "tree";

    fn spec(&self) -> Spec {
        let levels = self.levels.iter();
        let stripes = levels.clone().map(|level| level.stripes);
        Spec::new(Tree::NAME)
            .with(
                "radices",
                few_slots::joined(levels.map(|level| level.radix)),
            )
            .with("stripes", few_slots::joined(stripes))
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let stripes = self.levels.iter().map(|level| level.stripes).max();
        // Pieces are 64 times the stripes at most.
        u64::from(stripes.unwrap_or(1)).saturating_mul(ranks.max(64))
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        with_radices(ring, collective, self)
    }

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        _collective: Collective,
    ) -> Result<Option<Tree>, PlannerError> {
        let given = few_slots::radices(spec, ring.ranks)?;
        let level = |(radix, stripes)| TreeLevel { radix, stripes };
        Ok(given.map(|levels| Tree {
            levels: levels.into_iter().map(level).collect(),
        }))
    }

    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<Tree>> {
        use CollectiveKind::{Gather, Scatter};
        let blocks = matches!(question.collective.kind(), Scatter | Gather);
        trees(ring, question.slot_cost(ring), blocks, question.size)
    }
}

fn plan(spec: &Spec, question: &Question<'_>, ring: &WdmRing) -> Result<Planned, PlannerError> {
    let Some(pieces) = spec.count(LIGHT_TREES, 1, 2 * ring.channels())? else {
        return few_slots::plan::<Tree>(spec, question, ring);
    };
    if !shares_light(question, ring) {
        let rule = "needs a broadcast, on a ring with multicast=drop_and_continue";
        return Err(spec.refuse(LIGHT_TREES, rule).into());
    }
    with_light_trees(question, ring, pieces).map(Planned::from)
}

/// Returns the most promising trees; and light trees of the whole vector and of as many pieces as
/// fill one direction, or both.
fn contenders<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let mut contenders = few_slots::contenders::<Tree>(question, ring)?;
    if ring.ranks < 2 || !shares_light(question, ring) {
        return Ok(contenders);
    }
    let least = question.least()?;
    let question = *question;
    for pieces in [1, ring.channels(), 2 * ring.channels()] {
        let transfers = u64::from(pieces) * u64::from(ring.ranks);
        if transfers <= question.most_transfers && u64::from(pieces) <= question.size.get().max(1) {
            contenders.push(Contender {
                name: light_trees(pieces),
                slots: 1,
                least,
                estimate: least,
                transfers,
                make: Box::new(move |_| Ok(with_light_trees(&question, ring, pieces)?.into())),
            });
        }
    }
    Ok(contenders)
}

/// Returns whether ranks on the way of a broadcast's light can take a share of it.
fn shares_light(question: &Question<'_>, ring: &WdmRing) -> bool {
    ring.multicast && question.collective.kind() == CollectiveKind::Broadcast
}

fn light_trees(pieces: u32) -> String {
    Spec::new(Tree::NAME).with(LIGHT_TREES, pieces).to_string()
}

/// Builds the broadcast along light trees.
fn with_light_trees(
    question: &Question<'_>,
    ring: &WdmRing,
    pieces: u32,
) -> Result<Plan, PlannerError> {
    let collective = question.collective.with_pieces(pieces)?;
    let plan = multicast::broadcast(ring, collective, &light_trees(pieces));
    plan.ok_or(PlannerError::CutOff)
}

/// The plan of a tree for a broadcast, scatter, reduce or gather.
///
/// # Errors
/// Chunks beyond 32 bits.
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
    time_reversal::towards(outward(ring, outwards, tree)?, collective)
}

/// The least number of pieces that all levels cut into stripes none of which is more than 3 % above
/// the mean.
fn pieces_for(levels: &[TreeLevel]) -> u32 {
    let most = levels.iter().map(|level| level.stripes).max().unwrap_or(1);
    let even = |pieces: &u32| {
        levels.iter().all(|level| {
            let (pieces, stripes) = (u64::from(*pieces), u64::from(level.stripes));
            pieces.div_ceil(stripes) * stripes * 100 <= pieces * 103
        })
    };
    (most..=most.saturating_mul(64)).find(even).unwrap_or(most)
}

fn outward(ring: &WdmRing, collective: Collective, tree: &Tree) -> Result<Plan, PlannerError> {
    let ranks = collective.ranks();
    let mut assembly = Assembly::new(ring, collective);
    let radices: Vec<u32> = tree.levels.iter().map(|level| level.radix).collect();
    let around = u64::from(collective.root()) + u64::from(ranks - holder(0..ranks, &radices));
    let rank = |place: u32| ((around + u64::from(place)) % u64::from(ranks)) as u32;
    for (hands, level) in unfold(ranks, &radices).into_iter().zip(&tree.levels) {
        let mut moves: Vec<Move> = Vec::new();
        for Hand { from, to, part } in hands {
            interrupt::check();
            let direction = if to > from {
                Direction::Clockwise
            } else {
                Direction::CounterClockwise
            };
            for chunks in carried(collective, rank(part.start), &part, level.stripes) {
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

/// What a relay gets for its part, whose first rank is `first`: stripes of the vector, or the part's
/// blocks.
fn carried(collective: Collective, first: u32, part: &Range<u32>, stripes: u32) -> Vec<Range<u32>> {
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

/// For every number of levels the tree of least time, fastest first. `blocks`: of a scatter of blocks
/// of `size`, not of a broadcast of a vector of `size`.
fn trees(ring: &WdmRing, cost: SlotCost, blocks: bool, size: Bytes) -> Vec<Estimate<Tree>> {
    let search = RootedSearch {
        ring,
        cost,
        blocks,
        size,
    };
    let mut found: Vec<Estimate<Tree>> = search.trees();
    found.sort_by_key(|found| (found.time, found.slots));
    found
}

struct RootedSearch<'a> {
    ring: &'a WdmRing,
    cost: SlotCost,
    blocks: bool,
    size: Bytes,
}

/// Time, slots, and the level taken first.
type Best = Option<(u64, u64, TreeLevel)>;

impl RootedSearch<'_> {
    /// Dynamic program over the lengths that segments can have: best[r][n] takes r levels to reach n
    /// ranks.
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
        for depth in 0..MOST_LEVELS {
            let mut of_depth = BTreeMap::new();
            for &length in &lengths {
                let mut least: Best = None;
                for radix in self.radices(length) {
                    interrupt::check();
                    let part = length.div_ceil(radix);
                    let rest = match (depth, part) {
                        (0, 1) => Some((0, 0)),
                        (0, _) | (_, 1) => None,
                        _ => best[depth - 1]
                            .get(&part)
                            .and_then(|best| best.map(|(time, slots, _)| (time, slots))),
                    };
                    let Some((time, slots)) = rest else {
                        continue;
                    };
                    let (own, own_slots, stripes) = self.level(length, radix);
                    let time = own.saturating_add(time);
                    if least.is_none_or(|(least, ..)| time < least) {
                        least = Some((time, slots + own_slots, TreeLevel { radix, stripes }));
                    }
                }
                of_depth.insert(length, least);
            }
            best.push(of_depth);
        }
        (0..MOST_LEVELS)
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
        let mut radices = spread(length);
        radices.extend(Some(2 * self.ring.channels() + 1).filter(|&radix| radix < length));
        radices
    }

    /// The time, slots and stripes of a level.
    fn level(&self, length: u32, radix: u32) -> (u64, u64, u32) {
        let parts = u64::from(radix.min(length));
        let channels = u64::from(self.ring.channels());
        let load = (parts / 2).max(1);
        let part = u64::from(length).div_ceil(parts);
        let intake = self.ring.ports.map_or(u64::MAX, u64::from);
        let mut best = (u64::MAX, u64::MAX, 1);
        for slots in 1..=4u64 {
            let ports = slots.saturating_mul(intake) / (parts - 1).max(1);
            let stripes = (slots * channels / load).min(ports).max(1);
            let stripes = if self.blocks {
                stripes.min(part)
            } else {
                stripes
            };
            let by_ports = (stripes * (parts - 1)).div_ceil(intake);
            let slots = (stripes * load).div_ceil(channels).max(by_ports);
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

/// The broadcast that scatters blocks by one plan and collects them by another; `None` where a
/// lightpath of the second would carry two ranges beside what its end holds already.
///
/// # Errors
/// Chunks beyond 32 bits.
pub(crate) fn scatter_all_gather(
    ring: &WdmRing,
    collective: Collective,
    scatter: &Plan,
    gather: &Plan,
) -> Result<Option<Plan>, PlannerError> {
    let (by_scatter, by_gather, pieces) = refined(scatter, gather);
    let collective = collective.with_pieces(pieces)?;
    let mut held: Vec<Vec<Range<u32>>> = vec![Vec::new(); collective.ranks() as usize];
    held[collective.root() as usize].push(0..collective.chunks());
    for transfer in scatter.schedule.transfers() {
        interrupt::check();
        let end = transfer.chunk + transfer.count;
        let chunks = transfer.chunk * by_scatter..end * by_scatter;
        held[transfer.destination as usize].push(chunks);
    }
    let mut assembly = Assembly::new(ring, collective);
    assembly.append_refined(scatter, by_scatter);
    let rest = |transfer: Transfer| without(transfer, by_gather, &held);
    let is_whole = assembly.append_parts(gather, rest);
    Ok(is_whole.then(|| assembly.finish(String::new())))
}

/// How many chunks a chunk of each of two plans is, so that both have as many, and how many these are.
fn refined(one: &Plan, other: &Plan) -> (u32, u32, u32) {
    let [one, other] = [one, other].map(|plan| plan.schedule.collective.chunks());
    let chunks = least_common_multiple(one, other);
    (chunks / one, chunks / other, chunks)
}

/// The least number that two numbers from 1 on divide, or the most that 32 bits hold.
pub(crate) fn least_common_multiple(one: u32, other: u32) -> u32 {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor.max(1)).saturating_mul(other)
}

/// A transfer, each of whose chunks is `factor` chunks, without what its destination holds already, which may be all of it.
fn without(transfer: Transfer, factor: u32, held: &[Vec<Range<u32>>]) -> PartOf {
    let end = transfer.chunk + transfer.count;
    let mut chunks = transfer.chunk * factor..end * factor;
    for known in &held[transfer.destination as usize] {
        if known.start <= chunks.start {
            chunks.start = chunks.start.max(known.end);
        } else if known.end >= chunks.end {
            chunks.end = chunks.end.min(known.start);
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

/// The reduce that combines blocks by one plan and gathers them by another.
///
/// # Errors
/// Chunks beyond 32 bits.
pub(crate) fn reduce_scatter_gather(
    ring: &WdmRing,
    collective: Collective,
    reduce_scatter: &Plan,
    gather: &Plan,
) -> Result<Plan, PlannerError> {
    let (by_first, by_second, pieces) = refined(reduce_scatter, gather);
    let collective = collective.with_pieces(pieces)?;
    let mut assembly = Assembly::new(ring, collective);
    assembly.append_refined(reduce_scatter, by_first);
    assembly.append_refined(gather, by_second);
    Ok(assembly.finish(String::new()))
}
