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
//! `circuits=stay`, lightpaths lead from a rank to its neighbours and stay up, so that a policy
//! that charges changes only charges one reconfiguration.

mod assembly;
mod light_graph;
mod slot_filling;

use std::rc::Rc;

use crate::building::time_reversal;
use crate::selection::evaluation::{Built, Candidate, Evaluation};
use crate::{
    Effort, FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope, ensure,
};
use light_graph::{LightGraph, Turns};
use opticoll_algorithms::{AlgorithmError, choice};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Rate, Time, gcd};
use opticoll_fabric::fabric::circuits::{Circuits, ReconfigurationCharge};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind, Holders};
use opticoll_plan::plan::Plan;
use slot_filling::{Filled, Item, Lightpaths, RULES, SlotFilling, total_distance};

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("pieces", "number of chunks of a block")
            .range("1 to 4096")
            .default("the fastest found"),
        OptionRecord::new(
            "circuits",
            "lightpaths: change, in every slot; stay, to neighbours from the first slot to the last",
        )
        .range("change, stay")
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
    ],
    depends_on_size: true,
    takes_demands: true,
    ..Planner::new(
        NAME,
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

const NAME: &str = "relay_forest";

const MAX_PIECES: u32 = 4096;

const MAX_LOAD: u32 = 64;

/// Loads of lightpaths to try if lightpaths change in every slot.
const LOADS: [u32; 9] = [1, 2, 3, 4, 6, 8, 12, 16, 32];

/// Maximum load to try with several pieces per block. Higher loads save slots on large graphs, where
/// whole blocks are short compared to a reconfiguration.
const MAX_LOAD_OF_PIECES: u32 = 3;

/// Maximum number of slots of plans for which loads above 1 are tried. With more slots, more pieces
/// have the same effect.
const MAX_SLOTS_OF_LOADS: u64 = 4;

/// Numbers of pieces per block to try on every graph.
const FEW_PIECES: [u32; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32];

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

/// Numbers of owners of an all_reduce to try, as divisors of the number of ranks.
const OWNER_DIVISORS: [u32; 6] = [1, 2, 3, 4, 6, 8];

/// Maximum work of the search for a candidate of `auto`, in searches for paths and comparisons of
/// 64 distances: about one second.
const MAX_SEARCH: u64 = 500_000;

/// Maximum number of ranks for which the search also tries plans that are not the same from every
/// rank, although the graph has translations.
const MAX_UNEQUAL_RANKS: u32 = 64;

/// Kinds of relays, as in the option `relays`.
const RELAYS: [(&str, bool); 2] = [("any", false), ("tree", true)];

/// Kinds of lightpaths, as in the option `circuits`.
const CIRCUITS: [(&str, bool); 2] = [("change", false), ("stay", true)];

fn plan(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    graph: &WdmGraph,
) -> Result<Planned, PlannerError> {
    if problem.collective.ranks() < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
    let searches = Searches::new(problem, graph)?;
    let pieces = spec.count("pieces", 1, MAX_PIECES)?;
    let stay = match spec.option("circuits") {
        Some(_) => Some(choice(spec, "circuits", &CIRCUITS)?),
        None => None,
    };
    let load = spec.count("load", 1, MAX_LOAD)?;
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
        stay,
        load,
        along_trees,
        owners: owners(spec, problem)?,
    };
    if let (Some(pieces), Some(stay)) = (pieces, stay) {
        let choice = Choice {
            pieces,
            stay,
            load: load.unwrap_or(1),
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

/// Options that the user has set; `None` if the planner chooses.
#[derive(Default)]
struct Menu {
    pieces: Option<u32>,
    stay: Option<bool>,
    load: Option<u32>,
    along_trees: Option<bool>,
    owners: Option<Owners>,
}

/// Ranks that add up the parts of an all_reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owners {
    /// Every rank; also for other collectives.
    All,
    /// This number of ranks, those nearest to all others.
    Some(u32),
    /// None: every rank adds up the whole vector.
    None,
}

/// Values of all options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    /// Number of pieces per block.
    pieces: u32,
    /// True if lightpaths to neighbours stay up.
    stay: bool,
    /// Maximum number of chunks that a lightpath carries in a slot.
    load: u32,
    /// True if the blocks of an all_to_all follow the trees of an all_gather.
    along_trees: bool,
    owners: Owners,
}

impl Choice {
    const PLAIN: Choice = Choice {
        pieces: 1,
        stay: false,
        load: 1,
        along_trees: false,
        owners: Owners::All,
    };
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
            ensure(light_graph.is_connected(), NAME, ranks, reason)?;
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
            let pieces = pieces.min(MAX_PIECES.into()) as u32;
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
        let mut choices = Vec::new();
        for (_, along_trees) in RELAYS {
            let is_given = menu.along_trees.is_none_or(|given| given == along_trees);
            if !is_given || along_trees && !is_all_to_all {
                continue;
            }
            for (_, stay) in CIRCUITS {
                // If every slot is charged alike, lightpaths need not stay.
                let is_useless = stay && (along_trees || self.every_slot > Time::ZERO);
                if menu.stay.is_some_and(|given| given != stay) || is_useless && menu.stay.is_none()
                {
                    continue;
                }
                let loads: &[u32] = match &menu.load {
                    Some(load) => std::slice::from_ref(load),
                    None if stay || has_demand || is_all_to_all => &LOADS[..1],
                    None => &LOADS,
                };
                let numbers = match (along_trees, menu.pieces) {
                    (true, None) => &numbers[..1],
                    _ => &numbers,
                };
                let of_number = |&pieces: &u32| {
                    loads.iter().map(move |&load| Choice {
                        pieces,
                        stay,
                        load,
                        along_trees,
                        owners: Owners::All,
                    })
                };
                choices.extend(numbers.iter().flat_map(of_number));
            }
        }
        if problem.collective.kind() != CollectiveKind::AllReduce {
            return Ok(choices);
        }
        let ranks = problem.collective.ranks();
        let counts = OWNER_DIVISORS[1..].iter().map(|divisor| ranks / divisor);
        let some = counts.filter(|count| *count > 0).map(Owners::Some);
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
                is_few && choice.load == 1 && !choice.stay
            });
            choices.extend(few.map(|&choice| Choice { owners, ..choice }));
        }
        choices.dedup();
        Ok(choices)
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
            let variant = Variant::new(self, choice)?;
            let transfers = variant.transfers();
            let is_large = variant.search_work() > MAX_SEARCH
                || choice.load > 1 && menu.load.is_none() && variant.slots > MAX_SLOTS_OF_LOADS;
            if problem.fits(transfers).is_err() || is_large && menu.pieces.is_none() && !is_first {
                continue;
            }
            let expected = variant.expected(variant.slots + u64::from(choice.stay))?;
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

/// Candidate of a choice.
struct Variant {
    searches: Rc<Searches>,
    choice: Choice,
    /// Number of pieces that the search places together, on consecutive channels.
    stripes: u32,
    parts: Vec<VariantPart>,
    /// Lower bound on the number of slots.
    slots: u64,
    /// Lower bound on the number of chunks that a channel carries in all slots.
    carried: u64,
}

/// Part of a collective with a number of pieces.
struct VariantPart {
    graph: LightGraph,
    /// Collective, in which the stripes are one piece.
    collective: Collective,
    /// Chunks of the collective.
    items: Vec<Item>,
    /// Lower bound on the number of slots.
    slots: u64,
}

impl Variant {
    fn new(searches: &Rc<Searches>, choice: Choice) -> Result<Variant, PlannerError> {
        let stripes = searches.parts[0].stripes(choice.pieces, true);
        let (mut parts, mut carried) = (Vec::new(), 0);
        // Without owners, only the second part is planned, an all_gather.
        let first = match choice.owners {
            Owners::None => searches.parts.len() - 1,
            _ => 0,
        };
        let owners = match choice.owners {
            Owners::Some(count) => Some(searches.parts[0].graph.central_ranks(count)),
            _ => None,
        };
        for part in &searches.parts[first..] {
            let planned = match part.collective.demand() {
                Some(_) => part.collective,
                None => part.collective.with_pieces(choice.pieces / stripes)?,
            };
            let graph = part.graph.striped(stripes);
            carried += least_slots(&graph, &items(&planned), false, 1);
            let collective = match choice.along_trees {
                true => Collective::new(CollectiveKind::AllGather, planned.ranks())?
                    .with_pieces(planned.pieces())?,
                false => planned,
            };
            let mut items = items(&collective);
            if let Some(owners) = &owners {
                let number = |item: Item| {
                    let owner = owners.iter().position(|owner| *owner == item.source)?;
                    let piece = item.chunk % collective.pieces();
                    let chunk = owner as u32 * collective.pieces() + piece;
                    Some(Item { chunk, ..item })
                };
                items = items.into_iter().filter_map(number).collect();
            }
            parts.push(VariantPart {
                slots: least_slots(&graph, &items, choice.stay, choice.load),
                graph,
                collective,
                items,
            });
        }
        Ok(Variant {
            searches: Rc::clone(searches),
            choice,
            stripes,
            carried,
            slots: parts.iter().map(|part| part.slots).sum(),
            parts,
        })
    }

    fn spec(&self) -> Spec {
        let choice = self.choice;
        let spec = Spec::new(NAME).with("pieces", choice.pieces);
        let spec = spec.with("circuits", CIRCUITS[usize::from(choice.stay)].0);
        let spec = match choice.load {
            1 => spec,
            load => spec.with("load", load),
        };
        let spec = match choice.owners {
            Owners::All => spec,
            Owners::Some(count) => spec.with("owners", count),
            Owners::None => spec.with("owners", "none"),
        };
        match choice.along_trees {
            true => spec.with("relays", RELAYS[1].0),
            false => spec,
        }
    }

    fn transfers(&self) -> u64 {
        let parts = self.parts.iter();
        let parts = parts.map(|part| {
            let copies = match part.items.first().map(|item| item.target) {
                Some(None) => u64::from(part.collective.ranks() - 1),
                _ => 1,
            };
            // A block crosses a lightpath in each slot at most.
            let hops = match self.choice.along_trees {
                true => part.slots,
                false => 1,
            };
            part.items.len() as u64 * copies * u64::from(self.stripes) * hops
        });
        parts.sum()
    }

    /// Returns an estimate of the work of the search, in the unit of [`MAX_SEARCH`].
    fn search_work(&self) -> u64 {
        let first = self.searches.parts.len() - self.parts.len();
        let parts = self.searches.parts[first..].iter().zip(&self.parts);
        let works = parts.map(|(whole, part)| {
            let ranks = u64::from(part.collective.ranks());
            let planned = match whole.turns {
                Some(_) if ranks > MAX_UNEQUAL_RANKS.into() => part.items.len() as u64 / ranks,
                _ => part.items.len() as u64,
            };
            let is_direct = part.items.iter().all(|item| item.target.is_some());
            let ranks = match is_direct && !self.choice.stay && self.choice.load == 1 {
                true => 1,
                false => ranks,
            };
            planned * ranks * (1 + ranks / 64) * part.slots
        });
        works.sum::<u64>()
    }

    /// Returns whether a lightpath may carry several chunks in a slot.
    fn has_load(&self) -> bool {
        self.choice.load > 1 || self.choice.along_trees
    }

    /// Returns the time in which a channel sends `chunks` chunks.
    fn sending(&self, chunks: u64) -> Time {
        let block = match self.choice.owners {
            Owners::All => self.searches.block,
            Owners::Some(count) => self.searches.size / u64::from(count),
            Owners::None => self.searches.size,
        };
        let bits = u128::from(block / u64::from(self.choice.pieces)) * 8;
        let bits_per_second = u128::from(self.searches.rate.bits_per_second());
        let sending = bits * u128::from(chunks) * 1_000_000_000_000 / bits_per_second.max(1);
        Time::from_ps(u64::try_from(sending).unwrap_or(u64::MAX))
    }

    /// Returns a lower bound on the time of `slots` slots.
    fn time(&self, slots: u64) -> Result<Time, PlannerError> {
        let searches = &self.searches;
        let slot = searches.every_slot.plus(searches.delay)?;
        let sending = self.sending(match self.has_load() {
            false => slots,
            true => self.carried.max(slots),
        });
        Ok(searches.once.plus(slot.times(slots)?)?.plus(sending)?)
    }

    /// Returns the time of `slots` slots if all lightpaths carry chunks in all slots, and if
    /// lightpaths that do not stay change in every slot.
    fn expected(&self, slots: u64) -> Result<Time, PlannerError> {
        let changes = match self.choice.stay {
            true => 0,
            false => slots.saturating_sub(1),
        };
        let excess = match self.choice.load {
            1 => 0,
            load => (slots * u64::from(load)).saturating_sub(self.carried.max(slots)),
        };
        let changing = self.searches.once.times(changes)?;
        Ok(self
            .time(slots)?
            .plus(changing)?
            .plus(self.sending(excess))?)
    }

    /// Builds the plan. Returns `None` if its time would reach `limit`.
    fn build(
        &self,
        problem: &PlanningProblem<'_>,
        limit: Option<Time>,
    ) -> Result<Option<Plan>, PlannerError> {
        // Greatest number of slots of a plan that is faster than the limit.
        let mut most = u64::from(u16::MAX) - 1;
        if let Some(limit) = limit {
            let mut least = self.slots;
            if self.time(least)? >= limit {
                return Ok(None);
            }
            while least < most {
                let middle = least + (most - least).div_ceil(2);
                match self.time(middle)? < limit {
                    true => least = middle,
                    false => most = middle - 1,
                }
            }
        }
        let lightpaths = Lightpaths {
            stay: self.choice.stay,
            max_links: if self.choice.stay { 1 } else { u32::MAX },
            load: self.choice.load,
        };
        let mut solutions = Vec::new();
        let first = self.searches.parts.len() - self.parts.len();
        let wholes = &self.searches.parts[first..];
        if self.choice.owners == Owners::None {
            most = 1;
        }
        for (whole, part) in wholes.iter().zip(&self.parts) {
            let turns = match self.choice.owners {
                Owners::Some(_) => None,
                _ => whole.turns.as_ref(),
            };
            let Some(solution) = part.fewest_slots(turns, lightpaths, most as u32) else {
                return Ok(None);
            };
            most = most.saturating_sub(solution.filled.slots.len() as u64);
            solutions.push(solution);
        }
        let parts = wholes.iter().zip(&self.parts).zip(&solutions);
        let parts = parts.map(|((whole, part), solution)| assembly::FilledPart {
            part: whole,
            graph: &part.graph,
            collective: part.collective,
            stripes: self.stripes,
            exchanges: self.choice.owners == Owners::None,
            solution,
        });
        let parts: Vec<assembly::FilledPart<'_>> = parts.collect();
        let mut plan = assembly::plan(problem, &parts)?;
        plan.algorithm = self.spec().to_string();
        Ok(Some(plan))
    }
}

/// Lightpaths of a part, with the items that they carry.
struct Solution<'a> {
    filled: Filled,
    items: Vec<&'a Item>,
    /// True if each lightpath stands for its images under all translations.
    has_images: bool,
}

impl Part {
    /// Returns the number of stripes into which the search divides `pieces` pieces. If `exact`, the
    /// stripes divide the number of pieces evenly.
    fn stripes(&self, pieces: u32, exact: bool) -> u32 {
        if self.collective.demand().is_some() {
            return 1;
        }
        let ranks = u64::from(self.graph.ranks);
        let chunks = match self.turns {
            Some(_) if self.graph.ranks > MAX_UNEQUAL_RANKS => pieces.into(),
            _ => self.collective.blocks() * u64::from(pieces),
        };
        let ideal = (chunks * ranks / MAX_SINGLE_PAIRS) as u32;
        let divisor = if exact { pieces } else { 0 };
        self.graph.stripes(ideal, divisor)
    }
}

/// Returns a lower bound on the number of slots: each rank receives the chunks that it lacks, and
/// sends the chunks that only it has.
fn least_slots(graph: &LightGraph, items: &[Item], stay: bool, load: u32) -> u64 {
    let load = u64::from(load);
    let mut missing = vec![0u64; graph.ranks as usize];
    let mut leaving = vec![0u64; graph.ranks as usize];
    for item in items {
        leaving[item.source as usize] += 1;
        match item.target {
            Some(target) => missing[target as usize] += 1,
            None => {
                let ranks = (0..).zip(&mut missing);
                let others = ranks.filter(|(rank, _)| *rank != item.source);
                others.for_each(|(_, missing)| *missing += 1);
            }
        }
    }
    let slots = (0..graph.ranks).map(|rank| {
        let received = load * u64::from(graph.received_at_once(rank).max(1));
        let sent = load * u64::from(graph.sent_at_once(rank).max(1));
        let missing = missing[rank as usize].div_ceil(received);
        missing.max(leaving[rank as usize].div_ceil(sent))
    });
    let slots = slots.max().unwrap_or(0);
    if items.iter().all(|item| item.target.is_some()) {
        let channels = graph.usable.iter();
        let channels: u64 = channels.map(|free| u64::from(free.count_ones())).sum();
        return slots.max(total_distance(graph, items).div_ceil((channels * load).max(1)));
    }
    match stay {
        true => slots.max(graph.eccentricity(items[0].source).into()),
        false => slots,
    }
}

impl VariantPart {
    /// Returns the lightpaths with the fewest slots that the rules find, at most `most` slots.
    fn fewest_slots(
        &self,
        turns: Option<&Turns>,
        lightpaths: Lightpaths,
        most: u32,
    ) -> Option<Solution<'_>> {
        let least = self.slots as u32;
        let mut best: Option<Solution<'_>> = None;
        let pairs = self.items.len() as u64 * u64::from(self.graph.ranks);
        let is_small = self.graph.ranks <= MAX_UNEQUAL_RANKS && pairs <= MAX_SINGLE_PAIRS;
        let unequal = turns.is_none() || is_small;
        // If all lightpaths have one link, rules with different exponents of the length are alike.
        let rules = match lightpaths.stay {
            true => &RULES[..1],
            false if self.slots > MAX_SLOTS_OF_ALL_RULES => &RULES[..2],
            false => &RULES,
        };
        for turns in turns.map(Some).into_iter().chain(unequal.then_some(None)) {
            let of_rank_0 = |item: &&Item| turns.is_none() || item.source == 0;
            let planned: Vec<&Item> = self.items.iter().filter(of_rank_0).collect();
            for &rule in rules {
                let slots = best.as_ref().map(|best| best.filled.slots.len() as u32);
                if slots.is_some_and(|slots| slots <= least + least / LEAST_GAIN_DIVISOR) {
                    return best;
                }
                let filling = SlotFilling {
                    graph: &self.graph,
                    turns,
                    items: &planned,
                    lightpaths,
                    max_slots: slots.map_or(most, |slots| slots - 1),
                };
                if let Some(filled) = filling.fill(rule) {
                    best = Some(Solution {
                        filled,
                        items: planned.clone(),
                        has_images: turns.is_some(),
                    });
                }
            }
        }
        best
    }
}

/// Maximum number of slots of searches that try all rules. With more slots, rules differ little.
const MAX_SLOTS_OF_ALL_RULES: u64 = 8;

/// Distance from the lower bound at which the search ends: 1 / `LEAST_GAIN_DIVISOR` of the bound.
const LEAST_GAIN_DIVISOR: u32 = 64;

/// Returns the chunks of a collective that only copies, without the chunks that are at their
/// targets.
fn items(collective: &Collective) -> Vec<Item> {
    let chunks = 0..collective.chunks();
    let items = chunks.filter_map(|chunk| {
        let Holders::One(source) = collective.before(chunk) else {
            return None;
        };
        let target = match collective.after(chunk) {
            Holders::One(target) => Some(target),
            Holders::All => None,
        };
        let item = Item {
            chunk,
            source,
            target,
        };
        (target != Some(source)).then_some(item)
    });
    items.collect()
}
