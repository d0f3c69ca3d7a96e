//! **Bundles.** The blocks of g neighbouring ranks travel together, many blocks on a lightpath, along one tree that is
//! turned to all groups.
//!
//! The ring is cut into N / g groups of g ranks. In the first slot every rank sends its block to a few *holders*, which then
//! have the whole bundle of a group. From then on a tree of lightpaths spreads the bundle to all other ranks:
//! each receives it over one lightpath from a rank that had it before. All groups use the same tree, turned by multiples
//! of g ranks.
//!
//! **Loads.** A lightpath of l links, turned N / g times, passes each link of its direction l / g times in the mean. So a
//! slot in which a lightpath carries v blocks has room for lightpaths of the tree of 2 c v links in all, as the bound on time
//! counts it ([`opticoll_bounds::wdm_ring::multi_block`]): with g = 1, rotated trees of one block, v blocks of which
//! would have to take lightpaths of one length; with more, a lightpath carries the blocks of a bundle, and may be up to c g links
//! long. `tree` finds trees, `walks` their channels, `recipes` the g and v that take the least time.
//!
//! **Volumes.** Where v divides g, a bundle takes g / v lightpaths side by side. Where g divides v, v / g edges of the tree of the
//! same length whose senders are congruent modulo g share a lightpath: their turned copies are the same.
//!
//! Every block reaches every rank once, so that backwards the plan is a reduce_scatter, and backwards and forwards an all_reduce. In the middle
//! of an all_reduce holders send sums to owners, who send the results back. Instead the holders may *meet*: each sends its sums of the bundle to
//! all others in one slot, and adds up what it gets. `starts` finds holders for both.
//!
//! **Pieces.** A slot costs its reconfiguration and v d / B. Where blocks take longer than a reconfiguration, trees of many slots with less than a
//! block on a lightpath are the fastest: a block is cut into pieces, and v counts pieces.

mod cache;
mod filling;
mod gaps;
mod grouping;
mod limits;
mod pace;
mod recipes;
mod starts;
mod tree;
mod trials;
mod walks;

use std::ops::Range;

use crate::assembly::{Assembly, SharedMove};
use crate::ring::collectors::Collectors;
use crate::ring::few_slots::{self, Estimate, Recipe};
use crate::ring::grouped::GroupedLayout;
use crate::selection::contest::Contender;
use crate::{GATHERED, OnMachine, Planned, Planner, PlannerError, Question, Scope, time_reversal};
use filling::Family;
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
use pace::Pace;
use tree::BundleTree;

/// The ranks of a group, the pieces of a block, and the most pieces of a lightpath in every slot after the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bundles {
    group: u32,
    pieces: u32,
    /// Pieces of a lightpath in the slot in which holders of sums exchange them.
    meeting: Option<u32>,
    volumes: Vec<u32>,
    /// The tree with which the search found it; none where options give the recipe.
    tree: Option<BundleTree>,
}

/// The planner of bundles.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("group", "ranks whose blocks travel together")
            .range("a divisor of the ranks")
            .default("the fastest found"),
        OptionRecord::new("pieces", "pieces of a block, which may take different lightpaths")
            .range("1 to 64")
            .default("1; with no options at all, as many as the fastest found has"),
        OptionRecord::new(
            "meeting",
            "of an all_reduce: pieces of a lightpath in the one slot in which ranks exchange their sums",
        )
        .range("1 to 4096")
        .default("the fastest found, or no such slot"),
        OptionRecord::new(
            "volumes",
            "pieces of a lightpath in each slot after the first, such as 2x2x4",
        )
        .range("numbers joined by x, each 1 to 4096")
        .default("the fastest found"),
    ],
    by_size: true,
    ..Planner::new(
        Bundles::NAME,
        "Bundles",
        GATHERED,
        "Blocks of neighbours travel together along one tree that is turned to all groups",
        "opticoll; trees of lightpaths after Gu and Peng, TPDS 2003",
        Scope::Rings(OnMachine::new(named, contenders)),
    )
};

/// A tree with the groups that it is for.
struct Tree {
    grouping: Grouping,
    tree: BundleTree,
    /// Holders exchange sums, so that no rank has its block before others.
    is_meeting: bool,
}

/// More pieces than that are on no lightpath.
const MOST_VOLUME: u32 = 4096;

/// More pieces than that has no block.
const MOST_PIECES: u32 = 64;

/// Slots that nobody asks for.
const MOST_SLOTS: usize = 64;

/// On rings of more ranks than this a search that gains nothing takes 8 s of 15 s (1,024 ranks, 1 KiB, `on_change`).
const LARGE_RING: u32 = 64;

/// Factor by which the other plans of few slots must take longer there than bundles take at least.
const MIN_RELATIVE_GAIN: f64 = 1.03;

impl Recipe for Bundles {
    const NAME: &'static str = "bundles";

    fn longest(&self, ring: &WdmRing) -> u32 {
        ring.longest().min(ring.ranks.saturating_sub(1))
    }

    fn spec(&self) -> Spec {
        let spec = Spec::new(Bundles::NAME).with("group", self.group);
        let spec = match self.pieces {
            1 => spec,
            pieces => spec.with("pieces", pieces),
        };
        let spec = match self.meeting {
            Some(meeting) => spec.with("meeting", meeting),
            None => spec,
        };
        spec.with("volumes", few_slots::joined(self.volumes.iter().copied()))
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let group = u64::from(self.group);
        let least = self.volumes.iter().min().copied().unwrap_or(1);
        let stripes = (group * u64::from(self.pieces)).div_ceil(least.into());
        // In the first slot a rank sends to some holders, as many as a group and some more.
        let gathering = ranks.saturating_mul(group + 8);
        let spreading = ranks.saturating_mul(ranks / group).saturating_mul(stripes);
        // An all_reduce goes there and back.
        gathering.saturating_add(spreading).saturating_mul(2)
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        let blocks = Collective::new(CollectiveKind::AllGather, collective.ranks())?
            .with_pieces(self.pieces)?;
        let tree = match ring.ranks {
            0 | 1 => None,
            _ => Some(recipes::tree(ring, self).ok_or_else(|| refusal(ring, NOT_SO_FEW))?),
        };
        let slots_from = |first: usize| {
            let mut assembly = Assembly::new(ring, blocks);
            if let Some(tree) = &tree {
                tree.assemble(ring, first, &mut assembly);
            }
            assembly.finish(self.spec().to_string())
        };
        match collective.kind() {
            CollectiveKind::AllReduce if self.meeting.is_some() => {
                // What holders exchange are sums; the results go along the rest of the tree.
                let (reduced, spread) = interrupt::both(
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

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<Bundles>, PlannerError> {
        if ring.ports.is_some() {
            return Err(refusal(
                ring,
                "a tree of bundles takes all channels of a rank; it knows no `ports`",
            ));
        }
        if spec.options().next().is_none() {
            return Ok(None);
        }
        let meeting = spec.count("meeting", 1, MOST_VOLUME)?;
        if meeting.is_some() && collective.kind() != CollectiveKind::AllReduce {
            let problem = "is for all_reduce: only sums meet";
            return Err(spec.refuse("meeting", problem).into());
        }
        let Some(volumes) = few_slots::numbers(spec, "volumes", "2x2x4")? else {
            let problem = "are needed beside a group";
            return Err(spec.refuse("volumes", problem).into());
        };
        if volumes.len() > MOST_SLOTS || volumes.iter().any(|volume| *volume > MOST_VOLUME) {
            let problem = format!("must be {MOST_SLOTS} at most, each {MOST_VOLUME} at most");
            return Err(spec.refuse("volumes", problem).into());
        }
        let group = spec.count("group", 1, MOST_VOLUME)?.unwrap_or(1);
        if ring.ranks % group != 0 {
            let problem = format!("must divide the {} ranks of the ring", ring.ranks);
            return Err(spec.refuse("group", problem).into());
        }
        let pieces = spec.count("pieces", 1, MOST_PIECES)?.unwrap_or(1);
        Ok(Some(Bundles {
            group,
            pieces,
            meeting,
            volumes,
            tree: None,
        }))
    }

    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<Bundles>> {
        if ring.ports.is_some() || ring.ranks < 4 {
            return Vec::new();
        }
        let pace = pace(ring, question);
        let halves = pace.halves;
        let found = recipes::fastest(ring, &pace);
        let found = found.map(|(time, recipe)| Estimate {
            time,
            slots: (recipe.volumes.len() as u64 + 1) * halves - u64::from(recipe.meeting.is_some()),
            recipe,
        });
        found.into_iter().collect()
    }
}

/// The bytes of a block.
fn block(ring: &WdmRing, question: &Question<'_>) -> u64 {
    match question.collective.kind() {
        CollectiveKind::AllGather => question.size.get(),
        _ => question.size.get().div_ceil(ring.ranks.into()),
    }
}

fn pace(ring: &WdmRing, question: &Question<'_>) -> Pace {
    Pace {
        cost: question.slot_cost(ring),
        block: block(ring, question),
        hops: u64::from(ring.ranks / 2),
        halves: 1 + u64::from(question.collective.kind() == CollectiveKind::AllReduce),
    }
}

fn contenders<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    if ring.ports.is_some() || !ring.broken.is_empty() || ring.ranks < 4 {
        return Ok(Vec::new());
    }
    if ring.ranks > LARGE_RING && !is_promising(ring, question) {
        return Ok(Vec::new());
    }
    // Lightpaths of a slot may all be short.
    let without_light = Pace {
        hops: 0,
        ..pace(ring, question)
    };
    let least = recipes::least(ring, &without_light) as u64;
    Ok(vec![few_slots::sought::<Bundles>(question, ring, least)])
}

/// Returns whether slots cost a reconfiguration, and bundles may take less time than the other plans of few slots.
fn is_promising(ring: &WdmRing, question: &Question<'_>) -> bool {
    let is_charged = question.policy() != Policy::Free && ring.reconfiguration > Time::ZERO;
    let others = match question.collective.kind() {
        CollectiveKind::AllReduce => least(GroupedLayout::estimated(ring, question)),
        _ => least(Collectors::estimated(ring, question)),
    };
    let own = recipes::least(ring, &pace(ring, question));
    is_charged && own * MIN_RELATIVE_GAIN < others as f64
}

/// Returns the least of estimated times, in picoseconds.
fn least<R>(estimates: Vec<Estimate<R>>) -> u64 {
    let times = estimates.iter().map(|estimate| estimate.time);
    times.min().unwrap_or(u64::MAX)
}

/// The plan that a spec names.
fn named(spec: &Spec, question: &Question<'_>, ring: &WdmRing) -> Result<Planned, PlannerError> {
    let chosen = spec.options().next().is_none() && ring.ports.is_none() && ring.broken.is_empty();
    few_slots::plan::<Bundles>(spec, question, ring).map_err(|error| match error {
        PlannerError::NothingFits { .. }
        | PlannerError::Algorithm(AlgorithmError::Refused { .. })
            if chosen =>
        {
            refusal(ring, NO_TREE)
        }
        error => error,
    })
}

/// What is said where a tree is asked for that was not found.
const NOT_SO_FEW: &str =
    "no tree was found with so few blocks on lightpaths; more of them or more slots will do";

/// What is said where no tree was found.
const NO_TREE: &str = "no tree was found; rings of a prime number of ranks have no groups";

fn refusal(ring: &WdmRing, reason: &str) -> PlannerError {
    PlannerError::Algorithm(AlgorithmError::Refused {
        name: Bundles::NAME,
        ranks: ring.ranks,
        reason: reason.into(),
    })
}

impl Tree {
    /// Adds its slots from one of them on.
    fn assemble(&self, ring: &WdmRing, first: usize, assembly: &mut Assembly) {
        for (slot, made) in self.tree.slots.iter().enumerate().skip(first) {
            let mut moves = Vec::new();
            for family in &made.families {
                interrupt::check();
                match slot == 0 && !self.is_meeting {
                    true => self.gather(ring, family, &mut moves),
                    false => self.spread(ring, family, &mut moves),
                }
            }
            let lit = moves.iter().filter(|(own, _)| !own.chunks.is_empty());
            assembly.shared_slots(lit.map(|(own, light)| (own, *light, 0)));
        }
    }

    /// The ends of a family's lightpaths that are turned to a group, with their light.
    fn ends(&self, ring: &WdmRing, family: &Family, turn: u32) -> (u32, u32, Vec<Light>) {
        let Grouping { ranks, group, .. } = self.grouping;
        let source = (family.senders[0] + turn * group) % ranks;
        let (direction, destination) = match family.clockwise {
            true => (Direction::Clockwise, (source + family.length) % ranks),
            false => (
                Direction::CounterClockwise,
                (source + ranks - family.length) % ranks,
            ),
        };
        let along = self.grouping.along(source, family.clockwise);
        let lightpaths = family.lightpaths.iter();
        let light = lightpaths.map(|(first, place)| {
            ring.light(direction, first + place.channel(ranks, group, along))
        });
        (source, destination, light.collect())
    }

    /// The pieces of blocks.
    fn pieces_of(&self, blocks: Range<u32>) -> Range<u32> {
        let pieces = self.grouping.pieces;
        blocks.start * pieces..blocks.end * pieces
    }

    /// From owners to holders.
    fn gather(&self, ring: &WdmRing, family: &Family, moves: &mut Vec<(SharedMove, Light)>) {
        for turn in 0..self.grouping.ranks / self.grouping.group {
            let (source, destination, light) = self.ends(ring, family, turn);
            let own = SharedMove {
                source,
                destination,
                chunks: vec![self.pieces_of(source..source + 1)],
            };
            moves.extend(light.first().map(|light| (own, *light)));
        }
    }

    /// From holders of bundles to others, which have their own block already where it came from them.
    fn spread(&self, ring: &WdmRing, family: &Family, moves: &mut Vec<(SharedMove, Light)>) {
        let Grouping { ranks, group, .. } = self.grouping;
        for turn in 0..ranks / group {
            let (source, destination, light) = self.ends(ring, family, turn);
            let bundles = family.senders.iter().map(|sender| {
                let owners = (source + ranks - sender) % ranks;
                let own = match self.is_meeting {
                    true => 0..0,
                    false => destination..destination + 1,
                };
                [
                    owners..own.start.clamp(owners, owners + group),
                    own.end.clamp(owners, owners + group)..owners + group,
                ]
            });
            let blocks = bundles.flatten().filter(|blocks| !blocks.is_empty());
            let chunks = blocks.map(|blocks| self.pieces_of(blocks));
            let cut = SharedMove::cut(source, destination, chunks.collect(), light.len() as u32);
            moves.extend(cut.into_iter().zip(light));
        }
    }
}
