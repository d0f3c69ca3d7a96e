//! Plans on any graph of links whose bandwidth term is the optimum: spanning trees, packed.
//!
//! The optimum is 1 / x* = p / q seconds for a block of one bit ([`throughput`](crate::bound::throughput)). With g the
//! greatest divisor of all rates, U = p / gcd(q, g) makes all capacities U b whole, and k = U x* is a whole number of trees
//! for every root. `split` removes switches, `pack` finds the trees, and `timetable` sends pieces along them, one
//! k-th of a block on each tree, so that links are busy and pieces with the longest way go first.
//!
//! With a given number k of trees the optimum is not reached in general: the least U is taken for which floor(U b) has
//! room for k trees of every root, so that the time is at most 1 + 1 / k of the optimum (ForestColl, arXiv
//! 2402.06787, section on fixed k).
//!
//! An all_gather takes a forest of all roots, a broadcast of one; reduce_scatter and reduce run one backwards that was
//! found with all links reversed, and an all_reduce is a reduce_scatter and then an all_gather.
//!
//! Messages go by the routes of the fabric. Where a switch can only be removed by paths that are no routes, the
//! messages load other links than the trees do, and the plan may take longer.

mod pack;
mod split;
mod timetable;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::contest::{Contender, Contest, ContestOutcome, Made};
use super::{Planned, Planner, PlannerError, Question, least};
use crate::algorithm::AlgorithmError;
use crate::bound::throughput::{Cuts, RatedLink, TightestCut, tightest};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Fabric;
use crate::interrupt;
use crate::network::{Network, Sharing};
use crate::place::{PlacementError, PlacementProblem};
use crate::plan::{AnyPlan, Plan};
use crate::schedule::{Claims, Schedule};
use crate::spec::{OptionRecord, Spec};
use crate::units::Time;
use pack::{Packing, Tree};
use split::Capacities;
use timetable::Timetable;

/// The planner of packed trees.
pub(super) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("trees", "number of trees of each root")
            .range("1 to 4096")
            .default("the fastest of 1, 2, 4, 8 and the number of the optimum"),
        OptionRecord::new(
            "chunks",
            "chunks that one tree's part of a block is cut into",
        )
        .range("1 to 4096")
        .default("the fastest of a few numbers"),
    ],
    by_size: true,
    candidates: contenders,
    applies: |fabric| Links::of(fabric).is_some(),
    ..Planner::new(
        NAME,
        "Tree packing",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        "Spanning trees packed into the links of any graph, as many as the throughput optimum has",
        "Edmonds, Edge-disjoint branchings, 1973; Zhao et al., ForestColl, arXiv 2402.06787",
        plan,
    )
};

const NAME: &str = "tree_packing";

/// The most trees of a root and chunks of a tree.
const MOST: u32 = 4096;

/// The most trees of a root where their number is chosen: more make small pieces.
const MOST_CHOSEN: u32 = 256;

/// A plan is good enough if it is above the bound by less than this part of it.
const ENOUGH: u64 = 1000;

/// The search for the tightest cut is given up after so many steps over links, where trees are candidates of a choice.
const MOST_SEARCH: u64 = 50_000_000;

/// The packing of a forest is given up after so many steps over links, where it is one of a choice.
const MOST_PACKING: u64 = 20_000_000;

/// Into how many steps the least U is divided with which there could be room for one tree.
const STEPS: u128 = 1024;

/// The links of a fabric, each way of a half-duplex cable with half its rate.
struct Links<'a> {
    network: &'a dyn Network,
    ranks: u32,
    vertices: u32,
    rates: Vec<(u32, u32, u64)>,
}

impl<'a> Links<'a> {
    /// `None` where it is not known where links lead, or flows do not share them.
    fn of(fabric: &'a Fabric) -> Option<Links<'a>> {
        let network = fabric.network()?;
        let mut rates = Vec::new();
        let mut vertices = network.ranks();
        for (number, link) in (0u32..).zip(network.links()) {
            let (from, to) = network.ends(number)?;
            if link.sharing != Sharing::Shared {
                return None;
            }
            vertices = vertices.max(from + 1).max(to + 1);
            let rate = link.rate.bits_per_second();
            if network.leads_both_ways(number) {
                rates.extend([(from, to, rate / 2), (to, from, rate / 2)]);
            } else {
                rates.push((from, to, rate));
            }
        }
        Some(Links {
            network,
            ranks: network.ranks(),
            vertices,
            rates,
        })
    }

    fn reversed(&self) -> Vec<(u32, u32, u64)> {
        let links = self.rates.iter();
        links.map(|&(from, to, rate)| (to, from, rate)).collect()
    }
}

/// Trees of every root, or of one.
struct Forest {
    /// Trees of a root.
    count: u32,
    trees: Vec<Tree>,
    /// Whether links were reversed, so that it gathers.
    reversed: bool,
}

/// What forests are grown on.
struct Ground<'a> {
    links: Rc<Links<'a>>,
    rates: Vec<(u32, u32, u64)>,
    /// `None`: every rank is a root.
    root: Option<u32>,
    reversed: bool,
    cut: TightestCut,
    /// The greatest divisor of all rates.
    unit: u128,
}

impl<'a> Ground<'a> {
    /// # Errors
    /// Ranks that cannot be reached, or a search that takes longer than `most_search`.
    fn new(
        links: &Rc<Links<'a>>,
        root: Option<u32>,
        reversed: bool,
        most_search: u64,
    ) -> Result<Ground<'a>, PlannerError> {
        let rates = match reversed {
            true => links.reversed(),
            false => links.rates.clone(),
        };
        let rated: Vec<RatedLink> = rates
            .iter()
            .map(|&(from, to, rate)| (from, to, Some(rate)))
            .collect();
        let cuts = root.map_or(Cuts::EachRank, Cuts::From);
        let cut = tightest(
            links.ranks,
            links.vertices as usize,
            &rated,
            cuts,
            most_search,
        );
        let cut = cut.filter(|cut| cut.rate > 0);
        let cut = cut.ok_or_else(|| {
            let sentence = "some ranks cannot be reached: no trees hold all ranks";
            unfit(PlacementProblem::Unfit, sentence)
        })?;
        let unit = rates.iter().fold(0, |unit, link| gcd(unit, link.2.into()));
        if !cut.is_tightest {
            let sentence = "too large a graph to look for trees, unless asked for them";
            return Err(unfit(PlacementProblem::Unfit, sentence));
        }
        Ok(Ground {
            links: Rc::clone(links),
            rates,
            root,
            reversed,
            cut,
            unit,
        })
    }

    /// The ratio p / q, reduced.
    fn ratio(&self) -> (u128, u128) {
        let divisor = gcd(self.cut.blocks, self.cut.rate).max(1);
        (self.cut.blocks / divisor, self.cut.rate / divisor)
    }

    /// The least number of trees of a root with which the optimum is reached.
    fn trees(&self) -> u128 {
        let (_, q) = self.ratio();
        q / gcd(q, self.unit)
    }

    /// A forest with a number of trees for each root; `None` where its links do not balance, or packing takes more than
    /// `most_work` steps over links.
    fn forest(&self, count: u32, most_work: u64) -> Option<Forest> {
        let wanted = (0..self.links.ranks)
            .map(|rank| match self.root {
                Some(root) if root != rank => 0,
                _ => count,
            })
            .collect::<Vec<u32>>();
        let (p, q) = self.ratio();
        let trees = u128::from(count);
        let at = |step: u128| -> Option<Capacities> {
            let mut capacities = Capacities::default();
            for &(from, to, rate) in &self.rates {
                let scaled = u128::from(rate).checked_mul(p)?;
                let scaled = scaled.checked_mul(trees * STEPS + step)?;
                *capacities.entry((from, to)).or_default() += scaled / (q.checked_mul(STEPS)?);
            }
            Some(capacities)
        };
        let fits =
            |capacities: &Capacities| split::has_room(self.links.vertices, capacities, &wanted);
        // The least step that has room.
        let (mut least, mut most) = (0, STEPS);
        if !fits(&at(0)?) {
            // With every link once for each tree there is room.
            while !fits(&at(most)?) {
                (least, most) = (most, most.checked_mul(2)?);
            }
            while most - least > 1 {
                let middle = least.midpoint(most);
                if fits(&at(middle)?) {
                    most = middle;
                } else {
                    least = middle;
                }
            }
            least = most;
        }
        let capacities = at(least)?;
        let is_route = |from: u32, switch: u32, to: u32| {
            let ranks = self.links.ranks;
            if from >= ranks || to >= ranks {
                return true;
            }
            let network = self.links.network;
            let mut route = Vec::new();
            match self.reversed {
                true => network.route(to, from, &mut route),
                false => network.route(from, to, &mut route),
            }
            route.into_iter().any(|link| {
                let ends = network.ends(link);
                ends.is_some_and(|(one, other)| one == switch || other == switch)
            })
        };
        let capacities =
            split::without_switches(self.links.vertices, &capacities, &wanted, is_route)?;
        let mut links: Vec<(u32, u32, u128)> = capacities
            .into_iter()
            .map(|((from, to), capacity)| (from, to, capacity))
            .collect();
        links.sort_unstable();
        Some(Forest {
            count,
            trees: Packing::new(&links, wanted).pack(most_work)?,
            reversed: self.reversed,
        })
    }
}

/// What a collective takes: a forest backwards, one forwards, or both; with those that were grown.
struct Grounds<'a> {
    links: Rc<Links<'a>>,
    parts: Vec<Ground<'a>>,
    /// By the number of trees of a root.
    grown: RefCell<BTreeMap<u32, Grown>>,
}

/// A forest for each part, or why there are none.
type Grown = Result<Rc<Vec<Forest>>, PlannerError>;

impl<'a> Grounds<'a> {
    fn new(
        links: Links<'a>,
        collective: &Collective,
        most_search: u64,
    ) -> Result<Grounds<'a>, PlannerError> {
        let root = match collective.kind() {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => Some(collective.root()),
            _ => None,
        };
        let reversed: &[bool] = match collective.kind() {
            CollectiveKind::AllReduce => &[true, false],
            CollectiveKind::ReduceScatter | CollectiveKind::Reduce => &[true],
            _ => &[false],
        };
        let links = Rc::new(links);
        let parts = reversed.iter();
        let parts = parts.map(|reversed| Ground::new(&links, root, *reversed, most_search));
        Ok(Grounds {
            parts: parts.collect::<Result<_, _>>()?,
            links,
            grown: RefCell::default(),
        })
    }

    /// The least number of trees of a root with which the optimum is reached.
    fn trees(&self) -> u128 {
        let mut trees = 1u128;
        for part in &self.parts {
            let own = part.trees();
            trees = (trees / gcd(trees, own)).saturating_mul(own);
        }
        trees
    }

    fn forests(&self, count: u32, most_work: u64) -> Grown {
        let mut grown = self.grown.borrow_mut();
        let forests = grown.entry(count).or_insert_with(|| {
            let forests = self.parts.iter().map(|part| part.forest(count, most_work));
            let forests: Option<_> = forests.collect();
            forests.map(Rc::new).ok_or_else(|| {
                let sentence = format!(
                    "no forest with {count} trees of each root was found; where links into a switch and out of it differ in rate there is none"
                );
                unfit(PlacementProblem::Unfit, &sentence)
            })
        });
        forests.clone()
    }

    /// The roots of trees.
    fn roots(&self) -> u32 {
        match self.parts.first() {
            Some(Ground { root: Some(_), .. }) => 1,
            _ => self.links.ranks,
        }
    }

    /// The transfers of a plan, over all parts.
    fn transfers(&self, count: u32, chunks: u32) -> u64 {
        let trees = u64::from(count) * u64::from(self.roots()) * self.parts.len() as u64;
        (trees * u64::from(chunks)).saturating_mul(u64::from(self.links.ranks - 1))
    }
}

fn unfit(problem: PlacementProblem, sentence: &str) -> PlannerError {
    PlannerError::Placement(PlacementError::new(problem, sentence))
}

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    if question.collective.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let Some(links) = Links::of(question.fabric) else {
        return Err(AlgorithmError::Refused {
            name: NAME,
            ranks: question.collective.ranks(),
            reason: "it needs links between known ends that flows share".into(),
        }
        .into());
    };
    let grounds = Rc::new(Grounds::new(links, &question.collective, u64::MAX)?);
    let trees = spec.count("trees", 1, MOST)?;
    let chunks = spec.count("chunks", 1, MOST)?;
    if let (Some(trees), Some(chunks)) = (trees, chunks) {
        let forests = grounds.forests(trees, u64::MAX)?;
        return Ok(scheduled(&grounds, &forests, chunks, question)?.into());
    }
    let contenders = with(&grounds, trees, chunks, question)?;
    if contenders.is_empty() {
        question.fits(grounds.transfers(trees.unwrap_or(1), chunks.unwrap_or(1)))?;
    }
    let contest = Contest {
        question,
        least: least::of_collective(question)?,
    };
    let ContestOutcome { fastest, .. } = contest.run(contenders, Vec::new())?;
    Ok(fastest?.0.into())
}

/// The same plans as contenders of a choice, on graphs that are not too large.
fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    let Some(links) = Links::of(question.fabric).filter(|links| links.ranks > 1) else {
        return Ok(Vec::new());
    };
    match Grounds::new(links, &question.collective, MOST_SEARCH) {
        Ok(grounds) => {
            let grounds = Rc::new(grounds);
            let mut contenders = with(&grounds, None, None, question)?;
            contenders.retain(|one| one.transfers <= question.most_work);
            Ok(contenders)
        }
        Err(PlannerError::Placement(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Plans with a number of trees and of chunks; with a few numbers where none is given.
fn with<'a>(
    grounds: &Rc<Grounds<'a>>,
    trees: Option<u32>,
    chunks: Option<u32>,
    question: &Question<'a>,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let exact = u32::try_from(grounds.trees()).ok();
    let exact = exact.filter(|exact| *exact <= MOST_CHOSEN);
    let mut counts: Vec<u32> = match trees {
        Some(trees) => vec![trees],
        None => exact.into_iter().chain([1, 2, 4, 8]).collect(),
    };
    counts.sort_unstable();
    counts.dedup();
    counts.retain(|count| trees.is_some() || exact.is_none_or(|exact| *count <= exact));
    let cuts = match (chunks, question.collective.kind()) {
        (Some(chunks), _) => vec![chunks],
        (None, CollectiveKind::Broadcast | CollectiveKind::Reduce) => vec![1, 4, 16, 64, 256],
        (None, _) => vec![1, 2, 4, 8],
    };
    // The parts of a vector are cut, or those of each block.
    let blocks = match question.collective.kind() {
        CollectiveKind::ReduceScatter | CollectiveKind::AllReduce => grounds.links.ranks.into(),
        _ => 1,
    };
    let least = least::of_collective(question)?;
    let mut contenders = Vec::new();
    let most_work = if trees.is_some() {
        u64::MAX
    } else {
        MOST_PACKING
    };
    for &count in &counts {
        for &chunks in &cuts {
            let pieces = u64::from(count) * u64::from(chunks);
            let transfers = grounds.transfers(count, chunks);
            if pieces > 1 && pieces.saturating_mul(blocks) > question.size.get()
                || question.fits(transfers).is_err()
            {
                continue;
            }
            let (grounds, question) = (Rc::clone(grounds), *question);
            contenders.push(Contender {
                name: named(count, chunks).to_string(),
                slots: 1,
                least,
                // The optimum with as few pieces as it takes comes first, and then those of the fewest.
                estimate: match (exact == Some(count), chunks) {
                    (true, 1) => least,
                    _ => least.plus(Time::from_ps(pieces))?,
                },
                transfers,
                make: Box::new(move |limit| {
                    let enough = Time::from_ps(least.ps().saturating_add(least.ps() / ENOUGH));
                    if limit.is_some_and(|limit| limit <= enough) {
                        return Ok(Made::NotExpected("the plan chosen is near the bound"));
                    }
                    let forests = grounds.forests(count, most_work)?;
                    let plan = scheduled(&grounds, &forests, chunks, &question)?;
                    if let Some(limit) = limit {
                        let least = least::of_schedule(&plan.schedule, &question)?;
                        if least >= limit {
                            return Ok(Made::AtLeast(least));
                        }
                    }
                    Ok(AnyPlan::Full(plan).into())
                }),
            });
        }
    }
    Ok(contenders)
}

fn named(trees: u32, chunks: u32) -> Spec {
    Spec::new(NAME).with("trees", trees).with("chunks", chunks)
}

/// The plan that sends along forests, one after the other.
fn scheduled(
    grounds: &Grounds<'_>,
    forests: &[Forest],
    chunks: u32,
    question: &Question<'_>,
) -> Result<Plan, PlannerError> {
    let (links, collective) = (&grounds.links, question.collective);
    let count = forests.first().map_or(1, |forest| forest.count);
    let pieces = count.saturating_mul(chunks);
    let blocks = match collective.kind() {
        CollectiveKind::AllReduce => links.ranks,
        _ => 1,
    };
    question.fits(grounds.transfers(count, chunks))?;
    let collective = collective.with_pieces(pieces.saturating_mul(blocks))?;
    let mut schedule = Schedule::new(collective);
    for forest in forests {
        interrupt::check();
        let of_all = forest.trees.len() > count as usize;
        let timetable = Timetable::new(links.network, &forest.trees, forest.reversed);
        let first_chunk = |tree: usize| {
            // Trees come root by root in turn: the j-th of all roots, then the next.
            let roots = if of_all { links.ranks as usize } else { 1 };
            let (turn, root) = (tree / roots, tree % roots);
            (root as u32 * count + turn as u32) * chunks
        };
        let part = timetable.schedule(collective, chunks, first_chunk);
        match forest.reversed {
            true => schedule.append(&part.reversed(collective), 1),
            false => schedule.append(&part, 1),
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    let name = named(count, chunks).to_string();
    Ok(Plan::without_light(question.fabric, schedule, name))
}

fn gcd(one: u128, other: u128) -> u128 {
    if one == 0 {
        other
    } else {
        gcd(other % one, one)
    }
}
