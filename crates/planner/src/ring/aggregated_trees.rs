//! Plans that send the blocks of g neighbouring ranks together along one tree of lightpaths.
//!
//! The planner divides a ring of N ranks into N / g groups of g neighbouring ranks. The g blocks of
//! a group form a *bundle*. In the first slot, every rank sends its block to a few *roots*. Each
//! root then has the complete bundle. In the later slots, a tree of lightpaths sends the bundle
//! from the roots to all other ranks. Each rank receives the bundle over one tree edge. All groups
//! use the same tree, rotated by multiples of g ranks.
//!
//! **Loads.** The N / g rotations of a lightpath of l links load each link of their direction l / g
//! times on average. If a lightpath carries v blocks and each direction has c channels, the tree
//! edges of a slot may have a total length of 2 c v links. The lower bound on time
//! ([`opticoll_bounds::wdm_ring::multi_block`]) uses the same count. Module `tree` searches for
//! trees, `closed_walks` assigns channels, and `recipes` chooses g and v for the shortest time.
//!
//! **Volumes.** The *volume* v of a slot is the maximum number of pieces on a lightpath. If v
//! divides g, a tree edge uses g / v parallel lightpaths. If g divides v, v / g tree edges share a
//! lightpath. Tree edges can share a lightpath if their lengths are equal and their senders are
//! congruent modulo g, because the rotations of the edges then coincide.
//!
//! **Collectives.** The plan is an all_gather. The time reversal is a reduce_scatter, and the time
//! reversal followed by the plan is an all_reduce. In the middle of an all_reduce, the roots send
//! their sums to the owners of the blocks, and the owners send the results back. Alternatively, the
//! roots exchange their sums in one slot. Module `root_choice` chooses the roots for both variants.
//!
//! **Pieces.** If the transmission of a block takes longer than a reconfiguration, trees with many
//! slots and less than one block per lightpath are the fastest. The planner then cuts blocks into
//! pieces, and v counts pieces.

mod cache;
mod closed_walks;
mod gaps;
mod grouping;
mod price_limits;
mod recipe_search;
mod recipes;
mod root_choice;
mod slot_filling;
mod time_model;
mod tree;

use std::ops::Range;

use crate::building::assembly::{Assembly, SharedMove};
use crate::building::{MAX_PARTS, time_reversal};
use crate::ring::gateways::Gateways;
use crate::ring::hierarchical::HierarchicalLayout;
use crate::ring::recipe::{self, Estimate, Recipe};
use crate::selection::evaluation::Candidate;
use crate::{
    ALL_GATHER_KINDS, FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope,
};
use grouping::Grouping;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_simulate::Policy;
use slot_filling::EdgeClass;
use time_model::TimeModel;
use tree::BundleTree;

/// Parameters of a plan that sends the blocks of each group of neighbouring ranks together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AggregatedTrees {
    /// Number of ranks of a group.
    group: u32,
    pieces: u32,
    /// Maximum number of pieces on a lightpath in the slot in which the roots of an all_reduce
    /// exchange their sums. `None` if the roots send their sums to the owners of the blocks.
    exchange: Option<u32>,
    /// Maximum number of pieces on a lightpath, indexed by slot, without the first slot.
    volumes: Vec<u32>,
    /// Tree from the recipe search. `None` if the user specified the recipe by options.
    tree: Option<BundleTree>,
}

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("group", "number of ranks whose blocks travel together")
            .range("a divisor of the ranks")
            .default("the fastest found"),
        OptionRecord::new(
            "pieces",
            "number of pieces of a block, which may use different lightpaths",
        )
        .range("1 to 64")
        .default("1; without options, the number of the fastest plan found"),
        OptionRecord::new(
            "exchange",
            "number of pieces of a lightpath in the slot in which the ranks of an all_reduce \
             exchange their sums",
        )
        .range("1 to 4096")
        .default("the fastest found, or no such slot"),
        OptionRecord::new(
            "per_lightpath",
            "number of pieces of a lightpath in each slot after the first, such as 2x2x4",
        )
        .range("numbers joined by x, each 1 to 4096")
        .default("the fastest found"),
    ],
    depends_on_size: true,
    ..Planner::new(
        AggregatedTrees::NAME,
        "Aggregated trees",
        ALL_GATHER_KINDS,
        "Blocks of neighbouring ranks are sent together along one tree, which is rotated to all \
         groups",
        "opticoll; trees of lightpaths after Gu and Peng, TPDS 2003",
        Scope::Rings(FamilyFunctions::new(named, candidates)),
    )
};

/// Tree of lightpaths, and the grouping of the ranks for which the tree was searched.
struct Tree {
    grouping: Grouping,
    tree: BundleTree,
    /// True if the roots of all groups exchange their sums in the first slot. False if the ranks
    /// send their blocks to the roots in the first slot.
    roots_exchange_sums: bool,
}

/// Largest accepted number of pieces of a block.
const MAX_PIECES: u32 = 64;

/// Maximum number of slots that the option `per_lightpath` may list.
const MAX_SLOTS: usize = 64;

/// Maximum number of ranks of a ring on which the planner always searches for a tree. (With 1,024
/// ranks, 1 KiB and `on_change`, an unsuccessful search took 8 s of the 15 s of `auto`.)
const MAX_RANKS_OF_UNCONDITIONAL_SEARCH: u32 = 64;

/// Factor f: on a large ring, the planner searches for a tree only if f times its own lower
/// estimate of the time is less than the estimated time of similar planners.
const MIN_TIME_RATIO: f64 = 1.03;

impl Recipe for AggregatedTrees {
    const NAME: &'static str = "aggregated_trees";

    fn longest(&self, ring: &WdmRing) -> u32 {
        ring.longest().min(ring.ranks.saturating_sub(1))
    }

    fn spec(&self) -> Spec {
        let spec = Spec::new(AggregatedTrees::NAME).with("group", self.group);
        let spec = match self.pieces {
            1 => spec,
            pieces => spec.with("pieces", pieces),
        };
        let spec = match self.exchange {
            Some(exchange) => spec.with("exchange", exchange),
            None => spec,
        };
        spec.with(
            "per_lightpath",
            recipe::joined(self.volumes.iter().copied()),
        )
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let group = u64::from(self.group);
        let min_volume = self.volumes.iter().min().copied().unwrap_or(1);
        let stripes = (group * u64::from(self.pieces)).div_ceil(min_volume.into());
        let gathering = ranks.saturating_mul(group + 8);
        let spreading = ranks.saturating_mul(ranks / group).saturating_mul(stripes);
        // An all_reduce sends every block twice.
        gathering.saturating_add(spreading).saturating_mul(2)
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        let blocks = Collective::new(CollectiveKind::AllGather, collective.ranks())?
            .with_pieces(self.pieces)?;
        let tree = match ring.ranks {
            0 | 1 => None,
            _ => Some(recipes::tree(ring, self).ok_or_else(|| {
                let reason =
                    "no tree was found with these volumes; use larger volumes or more slots";
                refusal(ring, reason)
            })?),
        };
        let slots_from = |first: usize| {
            let mut assembly = Assembly::new(ring, blocks);
            if let Some(tree) = &tree {
                tree.assemble(ring, first, &mut assembly);
            }
            assembly.finish(self.spec().to_string())
        };
        match collective.kind() {
            CollectiveKind::AllReduce if self.exchange.is_some() => {
                let (reduced, spread) = interrupt::join(
                    || time_reversal::reduce_scatter(&slots_from(0)),
                    || slots_from(1),
                );
                time_reversal::joined(reduced?, spread)
            }
            CollectiveKind::AllReduce => time_reversal::all_reduce(&slots_from(0)),
            CollectiveKind::ReduceScatter => time_reversal::reduce_scatter(&slots_from(0)),
            _ => Ok(slots_from(0)),
        }
    }

    fn from_options(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<AggregatedTrees>, PlannerError> {
        if ring.ports.is_some() {
            return Err(refusal(
                ring,
                "the tree uses all channels of a rank and does not support `ports`",
            ));
        }
        if spec.options().next().is_none() {
            return Ok(None);
        }
        let exchange = spec.count("exchange", 1, MAX_PARTS)?;
        if exchange.is_some() && collective.kind() != CollectiveKind::AllReduce {
            let error = "applies to all_reduce only";
            return Err(spec.refuse("exchange", error).into());
        }
        let Some(volumes) = recipe::numbers(spec, "per_lightpath", "2x2x4")? else {
            let error = "are needed with a group";
            return Err(spec.refuse("per_lightpath", error).into());
        };
        if volumes.len() > MAX_SLOTS || volumes.iter().any(|volume| *volume > MAX_PARTS) {
            let error = format!("must be at most {MAX_SLOTS} numbers, each at most {MAX_PARTS}");
            return Err(spec.refuse("per_lightpath", error).into());
        }
        let group = spec.count("group", 1, MAX_PARTS)?.unwrap_or(1);
        if ring.ranks % group != 0 {
            let error = format!("must divide the {} ranks of the ring", ring.ranks);
            return Err(spec.refuse("group", error).into());
        }
        let pieces = spec.count("pieces", 1, MAX_PIECES)?.unwrap_or(1);
        Ok(Some(AggregatedTrees {
            group,
            pieces,
            exchange,
            volumes,
            tree: None,
        }))
    }

    fn estimates(ring: &WdmRing, problem: &PlanningProblem<'_>) -> Vec<Estimate<AggregatedTrees>> {
        if ring.ports.is_some() || ring.ranks < 4 {
            return Vec::new();
        }
        let model = time_model(ring, problem);
        let passes = model.passes;
        let fastest = recipes::fastest(ring, &model);
        let estimate = fastest.map(|(time, recipe)| Estimate {
            time,
            slots: (recipe.volumes.len() as u64 + 1) * passes
                - u64::from(recipe.exchange.is_some()),
            recipe,
        });
        estimate.into_iter().collect()
    }
}

fn block_bytes(ring: &WdmRing, problem: &PlanningProblem<'_>) -> u64 {
    match problem.collective.kind() {
        CollectiveKind::AllGather => problem.size.get(),
        _ => problem.size.get().div_ceil(ring.ranks.into()),
    }
}

fn time_model(ring: &WdmRing, problem: &PlanningProblem<'_>) -> TimeModel {
    TimeModel {
        cost: problem.slot_cost(ring),
        block: block_bytes(ring, problem),
        hops: u64::from(ring.ranks / 2),
        passes: 1 + u64::from(problem.collective.kind() == CollectiveKind::AllReduce),
    }
}

fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    if ring.ports.is_some() || !ring.broken.is_empty() || ring.ranks < 4 {
        return Ok(Vec::new());
    }
    if ring.ranks > MAX_RANKS_OF_UNCONDITIONAL_SEARCH && !is_promising(ring, problem) {
        return Ok(Vec::new());
    }
    // A lower bound must ignore propagation, because all lightpaths of a slot may be short.
    let without_propagation = TimeModel {
        hops: 0,
        ..time_model(ring, problem)
    };
    let min_time = recipes::min_time(ring, &without_propagation) as u64;
    Ok(vec![recipe::deferred_candidate::<AggregatedTrees>(
        problem, ring, min_time,
    )])
}

/// Returns whether the planner should search for a tree on a large ring. The policy must charge
/// reconfigurations, and the estimated times of similar planners must satisfy [`MIN_TIME_RATIO`].
fn is_promising(ring: &WdmRing, problem: &PlanningProblem<'_>) -> bool {
    let is_charged = problem.policy() != Policy::Free && ring.reconfiguration > Time::ZERO;
    let others = match problem.collective.kind() {
        CollectiveKind::AllReduce => min_time(HierarchicalLayout::estimates(ring, problem)),
        _ => min_time(Gateways::estimates(ring, problem)),
    };
    let bundles = recipes::min_time(ring, &time_model(ring, problem));
    is_charged && bundles * MIN_TIME_RATIO < others as f64
}

fn min_time<R>(estimates: Vec<Estimate<R>>) -> u64 {
    let times = estimates.iter().map(|estimate| estimate.time);
    times.min().unwrap_or(u64::MAX)
}

/// Builds the plan with the options in `spec`. If `spec` has no options, searches for the fastest
/// plan.
fn named(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
) -> Result<Planned, PlannerError> {
    let is_searched =
        spec.options().next().is_none() && ring.ports.is_none() && ring.broken.is_empty();
    recipe::plan::<AggregatedTrees>(spec, problem, ring).map_err(|error| match error {
        PlannerError::NothingFits { .. }
        | PlannerError::Algorithm(AlgorithmError::Refused { .. })
            if is_searched =>
        {
            refusal(
                ring,
                "no tree was found; a ring with a prime number of ranks has no groups",
            )
        }
        error => error,
    })
}

fn refusal(ring: &WdmRing, reason: &str) -> PlannerError {
    PlannerError::Algorithm(AlgorithmError::refused(
        AggregatedTrees::NAME,
        ring.ranks,
        reason,
    ))
}

impl Tree {
    /// Adds the slots of the tree to the plan, from index `first_slot` on.
    fn assemble(&self, ring: &WdmRing, first_slot: usize, assembly: &mut Assembly) {
        for (index, slot) in self.tree.slots.iter().enumerate().skip(first_slot) {
            let mut moves = Vec::new();
            for edge_class in &slot.edge_classes {
                interrupt::check();
                match index == 0 && !self.roots_exchange_sums {
                    true => self.gather(ring, edge_class, &mut moves),
                    false => self.spread(ring, edge_class, &mut moves),
                }
            }
            let nonempty = moves.iter().filter(|(shared, _)| !shared.chunks.is_empty());
            assembly.add_placed(nonempty.map(|(shared, light)| (shared, *light, 0)));
        }
    }

    /// Rotates the lightpaths of `edge_class` by `turn` groups. Returns their source rank, their
    /// destination rank, and the channel of each lightpath.
    fn ends(&self, ring: &WdmRing, edge_class: &EdgeClass, turn: u32) -> (u32, u32, Vec<Light>) {
        let Grouping { ranks, group, .. } = self.grouping;
        let source = (edge_class.senders[0] + turn * group) % ranks;
        let direction = Direction::BOTH[usize::from(!edge_class.clockwise)];
        let destination = ring.rank_after(source, direction, edge_class.length);
        let rank_position = self.grouping.position(source, edge_class.clockwise);
        let lightpaths = edge_class.lightpaths.iter();
        let light = lightpaths.map(|(first, position)| {
            ring.light(
                direction,
                first + position.channel(ranks, group, rank_position),
            )
        });
        (source, destination, light.collect())
    }

    fn pieces(&self, blocks: Range<u32>) -> Range<u32> {
        let pieces = self.grouping.pieces;
        blocks.start * pieces..blocks.end * pieces
    }

    /// Adds the transfers of `edge_class` in the first slot to `moves`: each rank sends its own
    /// block to the roots of its group.
    fn gather(&self, ring: &WdmRing, edge_class: &EdgeClass, moves: &mut Vec<(SharedMove, Light)>) {
        for turn in 0..self.grouping.ranks / self.grouping.group {
            let (source, destination, light) = self.ends(ring, edge_class, turn);
            let block = SharedMove {
                source,
                destination,
                chunks: vec![self.pieces(source..source + 1)],
            };
            moves.extend(light.first().map(|light| (block, *light)));
        }
    }

    /// Adds the transfers of `edge_class` to `moves`. The senders send all blocks of a group. They
    /// leave out the destination's own block, unless the roots exchanged sums in the first slot.
    fn spread(&self, ring: &WdmRing, edge_class: &EdgeClass, moves: &mut Vec<(SharedMove, Light)>) {
        let Grouping { ranks, group, .. } = self.grouping;
        for turn in 0..ranks / group {
            let (source, destination, light) = self.ends(ring, edge_class, turn);
            let bundles = edge_class.senders.iter().map(|sender| {
                let owners = (source + ranks - sender) % ranks;
                let destination_block = match self.roots_exchange_sums {
                    true => 0..0,
                    false => destination..destination + 1,
                };
                [
                    owners..destination_block.start.clamp(owners, owners + group),
                    destination_block.end.clamp(owners, owners + group)..owners + group,
                ]
            });
            let blocks = bundles.flatten().filter(|blocks| !blocks.is_empty());
            let chunks = blocks.map(|blocks| self.pieces(blocks));
            let cut = SharedMove::cut(source, destination, chunks.collect(), light.len() as u32);
            moves.extend(cut.into_iter().zip(light));
        }
    }
}
