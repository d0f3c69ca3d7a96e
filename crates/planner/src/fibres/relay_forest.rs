//! Planner of relay forests: every chunk spreads along a tree of lightpaths of its own, slot by
//! slot, on any graph of fibres.
//!
//! [`slot_filling`] searches for the lightpaths of an all_gather, a broadcast, a scatter or an
//! all_to_all. A reduce_scatter, a reduce or a gather is planned on reversed links, and then
//! reversed in time. An all_reduce is a reduce_scatter followed by an all_gather.
//!
//! With `relays=tree`, the blocks of an all_to_all travel along the trees of an all_gather: each
//! lightpath of the tree from rank u to rank v carries the blocks of u for the ranks below v. Such
//! a plan needs as few slots as the all_gather.
//!
//! With `owners=k`, an all_reduce divides the vector into k parts, and the k ranks that are nearest
//! to all others each add up one part. With `owners=none`, every rank sends its whole vector to
//! all others in a single slot.
//!
//! With `circuits=change`, each slot has lightpaths of its own, of any length. With
//! `circuits=stay`, lightpaths stay up to the end, so that a policy that charges changes only
//! charges one reconfiguration: the lightpaths of the first slots are a static virtual topology.
//! With `circuits=neighbours`, they also lead over one link only.

mod assembly;
mod light_graph;
mod path_search;
mod rule;
mod slot_filling;
mod variant;

use std::rc::Rc;

use crate::building::{MAX_PARTS, time_reversal};
use crate::selection::evaluation::{Built, Candidate, Evaluation};
use crate::{
    Effort, FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope, ensure,
};
use light_graph::{LightGraph, Turns};
use opticoll_algorithms::{AlgorithmError, choice};
use opticoll_base::spec::{OptionRecord, Spec, whole_number};
use opticoll_base::units::{Rate, Time, gcd};
use opticoll_fabric::fabric::circuits::{Circuits, ReconfigurationCharge};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind};
use variant::{Choice, Kept, Menu, Owners, Solution, Variant};

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("pieces", "number of chunks of a block")
            .range("1 to 4096")
            .default("the fastest found"),
        OptionRecord::new(
            "circuits",
            "lightpaths: change, in every slot; stay, once set up; neighbours, stay and lead over \
            one link",
        )
        .range("change, stay, neighbours")
        .default("the faster found"),
        OptionRecord::new(
            "relays",
            "relays of a block of an all_to_all: any; tree, those of the trees of an all_gather",
        )
        .range("any, tree")
        .default("the faster found"),
        OptionRecord::new(
            "owners",
            "number of ranks that each add up a part of the vector of an all_reduce; none: every \
            rank sends its vector to all others, in one slot",
        )
        .range("1 to the number of ranks; none")
        .default("the fastest found"),
        OptionRecord::new(
            "load",
            "maximum number of chunks that a lightpath carries in a slot, one after the other",
        )
        .range("1 to 64")
        .default("the fastest found"),
        OptionRecord::new(
            "delays",
            "maximum propagation delays of lightpaths in the first slot and in each later slot, in \
            percent of the delay to the farthest rank",
        )
        .range("two numbers from 1 to 200, such as 100+25")
        .default("the fastest found"),
    ],
    depends_on_size: true,
    takes_demands: true,
    ..Planner::new(
        "relay_forest",
        "Relay forest",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
            CollectiveKind::AllToAll,
        ],
        "A tree of lightpaths for every chunk, on any graph of fibres, filled slot by slot",
        "opticoll; trees of lightpaths after Gu and Peng, TPDS 2003",
        Scope::Fibres(FamilyFunctions::new(plan, candidates)),
    )
};

const MAX_LOAD: u32 = 64;

/// Loads of lightpaths to try if lightpaths change in every slot.
const LOADS: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 25, 32];

/// Maximum load to try with several pieces per block. Higher loads save slots on large graphs,
/// where whole blocks are short compared to a reconfiguration.
const MAX_LOAD_OF_PIECES: u32 = 4;

/// Maximum limit of the delay, in percent of the delay to the farthest rank.
const MAX_DELAY: u32 = 200;

/// Limits of the delay to try, in the first slot and in later slots, in percent. The sum of the
/// delays of all slots is at least 100 %. It is low if nearly all chunks reach a rank near their
/// targets in the first slot, or if all chunks meet at ranks in the middle.
/// With more than 100 %, lightpaths may take a detour, so that more lightpaths fit into a slot.
const DELAYS: [[u32; 2]; 12] = [
    [100, 100],
    [110, 110],
    [130, 130],
    [100, 50],
    [100, 33],
    [100, 25],
    [100, 20],
    [100, 16],
    [100, 10],
    [54, 54],
    [60, 60],
    [68, 68],
];

/// Part of the delay of a later slot from which on messages are long enough for plans with limits
/// of the delay and more than two slots per part: 1 / `SHORT_MESSAGES`. If messages are shorter,
/// more chunks per lightpath are faster than more slots. An estimate: four messages in a row would
/// take as long as the delay.
const SHORT_MESSAGES: u64 = 4;

/// Maximum number of slots of plans for which loads above 1 are tried. With more slots, more pieces
/// have the same effect.
const MAX_SLOTS_OF_LOADS: u64 = 4;

/// Numbers of pieces per block to try on every graph.
const FEW_PIECES: [u32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32];

/// Numbers of slots for which the largest number of pieces is tried that could fit into them.
const SLOTS: [u64; 12] = [2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 45, 64];

/// Number of pairs of a chunk and a rank up to which the search places each piece by itself. If
/// there are more pairs, the search places several pieces together, as stripes.
const MAX_SINGLE_PAIRS: u64 = 1 << 13;

/// Number of pieces per block for which slots are counted, to determine the numbers to try.
const COUNTED_PIECES: u32 = 64;

/// Maximum number of chunks of candidates of `auto`.
const MAX_CHUNKS: u64 = 1 << 17;

/// Maximum number of pieces of plans in which some ranks own parts of the vector. With more pieces,
/// all ranks can be owners.
const MAX_PIECES_OF_OWNERS: u32 = 2;

/// Numbers of owners of an all_reduce to try in addition to one and all, as divisors of the number
/// of ranks.
const OWNER_DIVISORS: [u32; 5] = [2, 3, 4, 6, 8];

/// Maximum work of the search for a candidate of `auto`, in searches for paths and comparisons of
/// 64 distances: about one second.
const MAX_SEARCH: u64 = 500_000;

/// Maximum number of ranks for which the search also tries plans that are not the same from every
/// rank, although the graph has translations.
const MAX_UNEQUAL_RANKS: u32 = 64;

/// Kinds of relays, as in the option `relays`.
const RELAYS: [(&str, bool); 2] = [("any", false), ("tree", true)];

/// Kinds of lightpaths, as in the option `circuits`.
const CIRCUITS: [(&str, Kept); 3] = [
    ("change", Kept::Never),
    ("stay", Kept::Any),
    ("neighbours", Kept::OneLink),
];

fn plan(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    graph: &WdmGraph,
) -> Result<Planned, PlannerError> {
    let searches = Searches::new(problem, graph)?;
    let pieces = spec.count("pieces", 1, MAX_PARTS)?;
    let kept = match spec.option("circuits") {
        Some(_) => Some(choice(spec, "circuits", &CIRCUITS)?),
        None => None,
    };
    let load = spec.count("load", 1, MAX_LOAD)?;
    let delays = delays(spec)?;
    let along_trees = match spec.option("relays") {
        Some(_) => Some(choice(spec, "relays", &RELAYS)?),
        None => None,
    };
    let is_uniform = problem.collective.demand().is_none();
    let is_all_to_all = problem.collective.kind() == CollectiveKind::AllToAll && is_uniform;
    if along_trees == Some(true) && !is_all_to_all {
        let rule = "needs an all_to_all with equal blocks";
        return Err(AlgorithmError::from(spec.refuse("relays", rule)).into());
    }
    let menu = Menu {
        pieces,
        kept,
        load,
        delays,
        along_trees,
        owners: owners(spec, problem)?,
    };
    if let (Some(pieces), Some(kept)) = (pieces, kept) {
        let choice = Choice {
            pieces,
            kept,
            load: load.unwrap_or(1),
            delays,
            along_trees: along_trees.unwrap_or(false),
            owners: menu.owners.unwrap_or(Owners::All),
        };
        let variant = Variant::new(&searches, choice)?;
        return match variant.build(problem, None)? {
            Some(plan) => Ok(plan.into()),
            None => Err(PlannerError::NotFound { pieces }),
        };
    }
    let candidates = searches.candidates(problem, &menu)?;
    Evaluation::new(problem)?.choose(candidates)
}

/// Returns the value of the option `delays`.
fn delays(spec: &Spec) -> Result<Option<[u32; 2]>, PlannerError> {
    let Some(text) = spec.option("delays") else {
        return Ok(None);
    };
    let percent =
        |text: &str| whole_number(text).filter(|percent| (1..=MAX_DELAY).contains(percent));
    let limits = text.split_once('+');
    let limits = limits.and_then(|(first, later)| Some([percent(first)?, percent(later)?]));
    let rule = "must be two whole numbers from 1 to 200 with + between them, such as 100+25";
    match limits {
        Some(limits) => Ok(Some(limits)),
        None => Err(AlgorithmError::from(spec.refuse("delays", rule)).into()),
    }
}

/// Returns the value of the option `owners`.
fn owners(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Option<Owners>, PlannerError> {
    let ranks = problem.collective.ranks();
    if spec.option("owners").is_some() && problem.collective.kind() != CollectiveKind::AllReduce {
        let rule = "is for an all_reduce only";
        return Err(AlgorithmError::from(spec.refuse("owners", rule)).into());
    }
    match spec.option("owners") {
        Some("none") => Ok(Some(Owners::None)),
        _ => Ok(spec.count("owners", 1, ranks)?.map(|count| match count {
            count if count == ranks => Owners::All,
            count => Owners::Some(count),
        })),
    }
}

fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    graph: &'a WdmGraph,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    if problem.collective.ranks() < 2 {
        return Ok(Vec::new());
    }
    Searches::new(problem, graph)?.candidates(problem, &Menu::default())
}

/// Graphs on which the parts of a collective are planned.
struct Searches {
    parts: Vec<Part>,
    /// Reconfiguration time that the policy charges for every slot.
    every_slot: Time,
    /// Reconfiguration time that the policy charges at least once.
    once: Time,
    /// Greatest rate of a link.
    rate: Rate,
    /// Least propagation delay of a link.
    delay: Time,
    /// Bytes of a block of the collective, or of the vector.
    block: u64,
    /// Size of the collective.
    size: u64,
}

/// Part of a collective: an all_gather, a broadcast, a scatter or an all_to_all, or its time
/// reversal.
struct Part {
    /// Collective that is planned forwards in time.
    collective: Collective,
    /// True if the plan of the part is reversed in time.
    reversed: bool,
    graph: LightGraph,
    turns: Option<Turns>,
}

impl Searches {
    fn new(problem: &PlanningProblem<'_>, graph: &WdmGraph) -> Result<Rc<Searches>, PlannerError> {
        use CollectiveKind::{AllGather, AllReduce, AllToAll, ReduceScatter};
        let collective = problem.collective;
        let (kind, ranks) = (collective.kind(), collective.ranks());
        let forwards = match kind {
            AllReduce => AllGather,
            kind => time_reversal::copying(kind),
        };
        let reversed: &[bool] = match kind {
            AllReduce => &[true, false],
            kind if kind == forwards => &[false],
            _ => &[true],
        };
        let part = |&reversed: &bool| {
            let light_graph = LightGraph::new(graph, reversed);
            let reason = "light cannot lead from every rank to every other rank";
            ensure(light_graph.is_connected(), PLANNER.name, ranks, reason)?;
            let planned = match kind == forwards {
                true => collective,
                false => Collective::new(forwards, ranks)?.with_root(collective.root())?,
            };
            let is_alike = matches!(forwards, AllGather | AllToAll) && planned.demand().is_none();
            let translations = graph.fibre_links().translations().filter(|_| is_alike);
            Ok::<_, PlannerError>(Part {
                collective: planned,
                reversed,
                turns: translations.and_then(|moves| Turns::new(&light_graph, moves)),
                graph: light_graph,
            })
        };
        let parts: Result<Vec<Part>, PlannerError> = reversed.iter().map(part).collect();
        let links = graph.fibre_links().links();
        let size = problem.size.get();
        let (every_slot, once) = match graph.charge(problem.policy().name()) {
            Ok(ReconfigurationCharge::EverySlot) => (graph.reconfiguration, Time::ZERO),
            Ok(ReconfigurationCharge::Never) => (Time::ZERO, Time::ZERO),
            _ => (Time::ZERO, graph.reconfiguration),
        };
        let rates = links.iter().map(|link| link.rate);
        let delays = links.iter().map(|link| link.latency);
        Ok(Rc::new(Searches {
            parts: parts?,
            every_slot,
            once,
            rate: rates.max().unwrap_or(Rate::gigabits(1)),
            delay: delays.min().unwrap_or_default(),
            size,
            block: match kind {
                ReduceScatter | AllReduce | AllToAll => size / u64::from(ranks),
                _ => size,
            },
        }))
    }

    /// Returns the numbers of pieces per block to try, in ascending order: a few pieces, and for
    /// some numbers of slots the most pieces that could fit into them.
    fn numbers_of_pieces(self: &Rc<Searches>) -> Result<Vec<u32>, PlannerError> {
        let most = Choice {
            pieces: COUNTED_PIECES,
            ..Choice::PLAIN
        };
        let whole = Variant::new(self, most)?.slots.max(1);
        let filling = SLOTS.map(|slots| {
            let pieces = u64::from(COUNTED_PIECES) * slots / whole;
            let pieces = pieces.min(MAX_PARTS.into()) as u32;
            pieces - pieces % self.parts[0].stripes(pieces, false)
        });
        let mut numbers: Vec<u32> = FEW_PIECES.into_iter().chain(filling).collect();
        numbers.retain(|&pieces| pieces > 0);
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    /// Returns the choices to try.
    fn choices(
        self: &Rc<Searches>,
        problem: &PlanningProblem<'_>,
        menu: &Menu,
    ) -> Result<Vec<Choice>, PlannerError> {
        let has_demand = problem.collective.demand().is_some();
        let is_all_to_all = problem.collective.kind() == CollectiveKind::AllToAll && !has_demand;
        let numbers = match menu.pieces {
            Some(pieces) => vec![pieces],
            None if has_demand => vec![1],
            None => self.numbers_of_pieces()?,
        };
        // Shorter lightpaths save at most the delay to the farthest rank in every slot.
        let is_far = self.parts.iter().any(|part| {
            let graph = &part.graph;
            let farthest = (0..graph.ranks).map(|rank| graph.farthest(rank)).max();
            farthest.unwrap_or(0) > self.every_slot.max(self.once).ps()
        });
        let mut choices = Vec::new();
        for (_, along_trees) in RELAYS {
            let is_given = menu.along_trees.is_none_or(|given| given == along_trees);
            if !is_given || along_trees && !is_all_to_all {
                continue;
            }
            for (_, kept) in CIRCUITS {
                let is_useless = match kept {
                    Kept::Never => false,
                    // If every slot is charged alike, lightpaths need not stay.
                    _ if self.every_slot > Time::ZERO => true,
                    Kept::Any => !along_trees,
                    Kept::OneLink => along_trees,
                };
                if menu.kept.is_some_and(|given| given != kept) || is_useless && menu.kept.is_none()
                {
                    continue;
                }
                let loads: &[u32] = match &menu.load {
                    Some(load) => std::slice::from_ref(load),
                    None if kept == Kept::OneLink || has_demand => &LOADS[..1],
                    None if is_all_to_all && !along_trees => &LOADS[..1],
                    None => &LOADS,
                };
                let numbers = match (along_trees, menu.pieces) {
                    (true, None) => &numbers[..1],
                    _ => &numbers,
                };
                let of_number = |&pieces: &u32| {
                    loads.iter().map(move |&load| Choice {
                        pieces,
                        kept,
                        load,
                        delays: menu.delays,
                        along_trees,
                        owners: Owners::All,
                    })
                };
                choices.extend(numbers.iter().flat_map(of_number));
            }
        }
        if problem.collective.kind() == CollectiveKind::AllReduce {
            self.add_owners(&mut choices, menu);
        }
        choices.dedup();
        if is_far && menu.delays.is_none() {
            let plain = choices.first().copied();
            // Between all ranks and the owners of the parts of a vector, one slot is enough.
            let limited = |&choice: &Choice| {
                let suits =
                    |delays: &[u32; 2]| choice.owners == Owners::All || delays[0] == delays[1];
                let delays = DELAYS.into_iter().filter(suits);
                let limited = delays.map(|delays| Choice {
                    delays: Some(delays),
                    ..choice
                });
                limited.collect::<Vec<Choice>>()
            };
            let changing = choices.iter().filter(|choice| choice.kept == Kept::Never);
            let limited: Vec<Choice> = changing.flat_map(limited).collect();
            choices.retain(|choice| choice.kept != Kept::Never || Some(*choice) == plain);
            choices.extend(limited);
        }
        Ok(choices)
    }

    /// Adds the choices of an all_reduce in which some ranks or none own parts of the vector.
    fn add_owners(&self, choices: &mut Vec<Choice>, menu: &Menu) {
        let ranks = self.parts[0].graph.ranks;
        let counts = OWNER_DIVISORS.iter().map(|divisor| ranks / divisor);
        let some = counts.chain([1]).filter(|count| *count > 0);
        let some = some.map(Owners::Some);
        let chosen: Vec<Owners> = match menu.owners {
            Some(owners) => vec![owners],
            None => some.chain([Owners::None]).collect(),
        };
        let whole = choices.clone();
        if menu.owners.is_some_and(|owners| owners != Owners::All) {
            choices.clear();
        }
        for owners in chosen {
            let few = whole.iter().filter(|choice| {
                let is_few = choice.pieces <= MAX_PIECES_OF_OWNERS || menu.pieces.is_some();
                is_few && choice.load == 1 && choice.kept == Kept::Never
            });
            choices.extend(few.map(|&choice| Choice { owners, ..choice }));
        }
    }

    /// Returns the candidates with the options that the user has set.
    fn candidates<'a>(
        self: &Rc<Searches>,
        problem: &PlanningProblem<'a>,
        menu: &Menu,
    ) -> Result<Vec<Candidate<'a>>, PlannerError> {
        let choices = self.choices(problem, menu)?;
        let first = choices.first().copied();
        let mut candidates = Vec::new();
        for choice in choices {
            let is_first = Some(choice) == first;
            let is_like_fewer = gcd(choice.pieces.into(), choice.load.into()) > 1;
            let chunks = self.parts[0].collective.blocks() * u64::from(choice.pieces);
            if menu.pieces.is_none() && !is_first && chunks > MAX_CHUNKS {
                continue;
            }
            let is_loaded = choice.pieces > 1 && choice.load > MAX_LOAD_OF_PIECES;
            let is_excluded = is_like_fewer || is_loaded && menu.load.is_none();
            if !is_first && (u64::from(choice.pieces) > self.block || is_excluded) {
                continue;
            }
            let is_limited = choice.delays != menu.delays && choice.delays != Some(DELAYS[0]);
            let variant = Variant::new(self, choice)?;
            let transfers = variant.transfers();
            let is_large = variant.search_work() > MAX_SEARCH
                || choice.load > 1 && menu.load.is_none() && variant.slots > MAX_SLOTS_OF_LOADS
                || is_limited && !variant.suits_limits();
            if problem.fits(transfers).is_err() || is_large && menu.pieces.is_none() && !is_first {
                continue;
            }
            let expected =
                variant.expected(variant.slots + u64::from(choice.kept != Kept::Never))?;
            let problem = *problem;
            candidates.push(Candidate {
                name: variant.spec().to_string(),
                slots: variant.slots,
                lower_bound: variant.time(variant.slots)?,
                estimate: expected,
                transfers,
                build: Box::new(move |limit| {
                    if problem.effort == Effort::Enough
                        && limit.is_some_and(|limit| expected >= limit)
                    {
                        return Ok(Built::NotExpected("its lightpaths change too often"));
                    }
                    Ok(match variant.build(&problem, limit)? {
                        Some(plan) => Built::from(plan),
                        None => Built::NotExpected("its slots take longer"),
                    })
                }),
            });
        }
        Ok(candidates)
    }
}
