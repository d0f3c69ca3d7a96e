//! Plans on any graph of links whose bandwidth term is the optimum: spanning trees, packed.
//!
//! The optimum is 1 / x* = p / q seconds for a block of one bit
//! ([`throughput`](opticoll_bounds::throughput)). With g the greatest divisor of all rates, U = p /
//! gcd(q, g) makes all capacities U b whole, and k = U x* is a whole number of trees for every
//! root. `split` removes switches, `pack` finds the trees, and `timetable` sends pieces along them,
//! one k-th of a block on each tree, so that links are busy and pieces with the longest way go
//! first.
//!
//! With a given number k of trees the optimum is not reached in general: the least U is taken for
//! which floor(U b) has room for k trees of every root. With b the rate of the slowest link, a
//! block takes at most 1 / x* + 1 / (k b) (ForestColl, arXiv 2402.06787, section on fixed k), which
//! is 1 + 1 / k of the optimum where 1 / x* >= 1 / b.
//!
//! An all_gather takes a forest of all roots; a broadcast takes low trees of one (`exchange`),
//! along which chunks follow one another (`pipeline`). reduce_scatter and reduce run one backwards
//! that was found with all links reversed, and an all_reduce is a reduce_scatter and then an
//! all_gather.
//!
//! Where ranks are joined directly, an all_reduce has trees of one root as well, along which pieces
//! are summed up and spread at once: cables taken by x trees carry a vector in 1 / x, and there are
//! such trees wherever each partition of the ranks has room for them
//! ([`spanning`](opticoll_bounds::throughput::spanning)).
//!
//! An edge of a tree stands for a path over switches. Where that is not the route of the fabric,
//! the plan names it (`channels`).

mod channels;
mod chunks;
mod exchange;
mod ground;
mod pack;
mod pipeline;
mod relays;
mod split;
mod timetable;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::selection::evaluation::{Built, Candidate, Evaluation, EvaluationOutcome};
use crate::{
    Effort, Planned, Planner, PlannerError, PlanningProblem, Scope, selection::lower_bound,
};
use chunks::Chunks;
use ground::{Forest, Ground, Links, gcd, unfit};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_placement::PlacementProblem;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{NamedRoutes, Plan};
use opticoll_plan::schedule::{Claims, Schedule};

/// The planner of packed trees.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("trees", "number of trees of each root")
            .range("1 to 4096")
            .default(
                "the fastest of 1, 2, 4, 8 and the number k of the optimum; of trees of one root \
                 (broadcast, reduce, roots=one) of 1, 2, 4, of k, 2 k, 4 k, 8 k and 16 k up to 32, \
                 and of a tree over each other rank, or each of the root's group",
            ),
        OptionRecord::new(
            "chunks",
            "chunks that one tree's part of a block is cut into",
        )
        .range("1 to 4096; of trees of one root also sizes, such as 1+2+4+2+1")
        .default(
            "the fastest of 1, 2, 4, 8, 16, 32 and 64; of trees of one root of four numbers and \
             sizes that suit the latency",
        ),
        OptionRecord::new(
            "roots",
            "of an all_reduce: every rank, a reduce_scatter and then an all_gather; or one, along \
             whose trees pieces are summed up and spread at once, where ranks are joined directly",
        )
        .range("every, one")
        .default("every; the faster where trees and chunks are not given either"),
    ],
    by_size: true,
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
        Scope::Any(|fabric| Links::of(fabric).is_some(), plan, candidates),
    )
};

const NAME: &str = "tree_packing";

/// The most trees of a root.
const MOST: u32 = 4096;

/// The most trees of a root where their number is chosen: more make small pieces.
const MOST_CHOSEN: u32 = 256;

/// The most trees of one root where more than the optimum needs are tried.
const MOST_LOW: u32 = 32;

/// The most trees of every root where more than the optimum needs are tried.
const MOST_EVEN: u32 = 16;

/// The numbers of chunks that are tried with trees of every root.
const CHUNKS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Above this many transfers only one pipeline is made; unless full effort is asked for, one of at
/// most twice as many.
const MANY_TRANSFERS: u64 = 1 << 21;

/// More chunks are worth this part of the time.
const NEAR: u64 = 100;

/// How many chunks are counted on where their number is chosen later.
const FEW_CHUNKS: u32 = 64;

/// The most transfers of plans that are cut finely, and of pipelines that are simulated, where the
/// number of chunks is chosen.
const MOST_FINE: u64 = 1 << 19;

/// Trees are not searched for where a plan is above the bound by less than this part of it.
const ENOUGH: u64 = 1000;

/// The search for the tightest cut is given up after so many steps over links, where trees are
/// candidates of a choice.
const MOST_SEARCH: u64 = 50_000_000;

/// The packing of a forest is given up after so many steps over links, where it is one of a choice.
const MOST_PACKING: u64 = 20_000_000;

/// The same of trees of one root.
const MOST_GROWING: u64 = 200_000_000;

/// What a collective takes: a forest backwards, one forwards, or both; with those that were grown.
struct Grounds<'a> {
    links: Rc<Links<'a>>,
    parts: Vec<Ground<'a>>,
    roots: Roots,
    /// Whether messages may take other routes than the fabric's.
    may_name_routes: bool,
    /// By the number of trees of a root.
    grown: RefCell<BTreeMap<u32, Grown<'a>>>,
    /// What plans take at least, by the numbers of trees and chunks.
    least: RefCell<BTreeMap<(u32, u32), Time>>,
}

/// Which ranks trees begin at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Roots {
    /// Those of the collective: its root, or all.
    OfCollective,
    /// One that an all_reduce chooses.
    One,
}

impl Roots {
    const ALL: [(&'static str, Roots); 2] = [("every", Roots::OfCollective), ("one", Roots::One)];
}

/// A forest for each part, or why there are none.
type Grown<'a> = Result<Rc<Vec<Forest<'a>>>, PlannerError>;

impl<'a> Grounds<'a> {
    fn new(
        links: Links<'a>,
        problem: &PlanningProblem<'_>,
        roots: Roots,
        most_search: u64,
    ) -> Result<Grounds<'a>, PlannerError> {
        let collective = &problem.collective;
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
        let parts = match roots {
            Roots::One => vec![Ground::up_and_down(&links, most_search)?],
            Roots::OfCollective => {
                let parts = reversed.iter();
                let parts = parts.map(|reversed| Ground::new(&links, root, *reversed, most_search));
                parts.collect::<Result<_, _>>()?
            }
        };
        Ok(Grounds {
            parts,
            roots,
            links,
            may_name_routes: problem.may_name_routes,
            grown: RefCell::default(),
            least: RefCell::default(),
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

    /// The numbers of trees with a relay each, where these nearly reach the optimum; none of
    /// several parts.
    fn relayed(&self) -> Vec<u32> {
        let of_first = self.parts.first().map(Ground::relayed).unwrap_or_default();
        let counts = of_first.iter().map(|trees| trees.len() as u32);
        counts.filter(|_| self.parts.len() == 1).collect()
    }

    fn forests(&self, count: u32, most_work: u64) -> Grown<'a> {
        let mut grown = self.grown.borrow_mut();
        // Where it takes too much work to pack some trees, it does to pack more.
        let failed = grown.range(..=count).map(|(_, forests)| forests);
        let failed = failed.into_iter().find(|forests| forests.is_err());
        let failed = failed.filter(|_| most_work < u64::MAX && !self.relayed().contains(&count));
        if let Some(failed) = failed {
            return failed.clone();
        }
        let forests = grown.entry(count).or_insert_with(|| {
            let forests = self
                .parts
                .iter()
                .map(|part| part.forest(count, self.may_name_routes, most_work));
            let forests: Option<_> = forests.collect();
            forests.map(Rc::new).ok_or_else(|| {
                let sentence = format!(
                    "no forest with {count} trees of each root was found; where links into a \
                     switch and out of it differ in rate there is none"
                );
                unfit(PlacementProblem::Unfit, &sentence)
            })
        });
        forests.clone()
    }

    /// Whether more trees than the optimum needs, in one chunk each, take as long as the trees of
    /// the optimum in about as many pieces.
    fn is_as_even(&self, exact: u32, count: u32) -> bool {
        let least = self.least.borrow();
        let times = (
            least.get(&(exact, (count / exact).next_power_of_two())),
            least.get(&(count, 1)),
        );
        matches!(times, (Some(exact), Some(more)) if more >= exact)
    }

    /// Whether all trees have one root.
    fn has_one_root(&self) -> bool {
        self.parts.iter().any(|part| part.root.is_some())
    }

    /// The transfers of a plan, over all parts.
    fn transfers(&self, count: u32, chunks: u32) -> u64 {
        let roots = if self.has_one_root() {
            1
        } else {
            self.links.ranks
        };
        let ways = match self.roots {
            Roots::One => 2,
            Roots::OfCollective => self.parts.len() as u64,
        };
        let trees = u64::from(count) * u64::from(roots) * ways;
        (trees * u64::from(chunks)).saturating_mul(u64::from(self.links.ranks - 1))
    }
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    if problem.collective.ranks() < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
    let Some(links) = Links::of(problem.fabric) else {
        return Err(AlgorithmError::Refused {
            name: NAME,
            ranks: problem.collective.ranks(),
            reason: "it needs links between known ends that flows share".into(),
        }
        .into());
    };
    let roots = opticoll_algorithms::choice(spec, "roots", &Roots::ALL)?;
    if roots == Roots::One && problem.collective.kind() != CollectiveKind::AllReduce {
        let rule = "one is chosen for an all_reduce only";
        return Err(AlgorithmError::from(spec.refuse("roots", rule)).into());
    }
    let grounds = Rc::new(Grounds::new(links.clone(), problem, roots, u64::MAX)?);
    let trees = spec.count("trees", 1, MOST)?;
    let chunks: Option<Chunks> = spec.value("chunks")?;
    if chunks.as_ref().is_some_and(|own| own.count().is_none()) && !grounds.has_one_root() {
        let rule = "must be a whole number: only trees of one root take chunks of several sizes";
        return Err(AlgorithmError::from(spec.refuse("chunks", rule)).into());
    }
    if let (Some(trees), Some(chunks)) = (trees, &chunks) {
        let forests = grounds.forests(trees, u64::MAX)?;
        return Ok(scheduled(&grounds, &forests, chunks, problem)?.into());
    }
    let mut candidates = with(&grounds, trees, chunks.as_ref(), problem)?;
    let is_open = ["roots", "trees", "chunks"]
        .iter()
        .all(|name| spec.option(name).is_none());
    if is_open && problem.collective.kind() == CollectiveKind::AllReduce {
        match Grounds::new(links, problem, Roots::One, MOST_SEARCH) {
            Ok(grounds) => candidates.extend(with(&Rc::new(grounds), None, None, problem)?),
            Err(PlannerError::Placement(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if candidates.is_empty() {
        let pieces = chunks.as_ref().map_or(1, Chunks::pieces);
        problem.fits(grounds.transfers(trees.unwrap_or(1), pieces))?;
    }
    let evaluation = Evaluation::new(problem)?;
    let EvaluationOutcome { fastest, .. } = evaluation.run(candidates, Vec::new())?;
    Ok(fastest?.0.into())
}

/// The same plans as contenders of a choice, on graphs that are not too large.
fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let Some(links) = Links::of(problem.fabric).filter(|links| links.ranks > 1) else {
        return Ok(Vec::new());
    };
    let is_all_reduce = problem.collective.kind() == CollectiveKind::AllReduce;
    let mut candidates = Vec::new();
    for (_, roots) in Roots::ALL {
        if roots == Roots::One && !is_all_reduce {
            continue;
        }
        match Grounds::new(links.clone(), problem, roots, MOST_SEARCH) {
            Ok(grounds) => candidates.extend(with(&Rc::new(grounds), None, None, problem)?),
            Err(PlannerError::Placement(_)) => {}
            Err(error) => return Err(error),
        }
    }
    candidates.retain(|one| one.transfers <= problem.most_work);
    Ok(candidates)
}

/// Plans with a number of trees and of chunks; with a few numbers where none is given.
fn with<'a>(
    grounds: &Rc<Grounds<'a>>,
    trees: Option<u32>,
    chunks: Option<&Chunks>,
    problem: &PlanningProblem<'a>,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let exact = u32::try_from(grounds.trees()).ok();
    let exact = exact.filter(|exact| *exact <= MOST_CHOSEN);
    let has_one_root = grounds.has_one_root();
    let relayed = grounds.relayed();
    let mut counts: Vec<u32> = match (trees, exact) {
        (Some(trees), _) => vec![trees],
        // They need no switches removed, which takes long.
        (None, _) if !relayed.is_empty() && problem.effort == Effort::Enough => relayed.clone(),
        (None, None) => vec![1, 2, 4, 8],
        // More trees of one root are lower.
        (None, Some(exact)) if has_one_root => {
            let more = [1, 2, 4, 8, 16].map(|times| times * exact);
            let more = more.into_iter().filter(|more| *more <= MOST_LOW.max(exact));
            more.chain([1, 2, 4]).chain(relayed.clone()).collect()
        }
        // More trees than the optimum needs even out the steps.
        (None, Some(exact)) => {
            let more = [1, 2, 3, 4].map(|times| times * exact);
            let more = more
                .into_iter()
                .filter(|more| *more <= MOST_EVEN.max(exact));
            let fewer = [1, 2, 4, 8].into_iter().filter(|fewer| *fewer < exact);
            fewer.chain(more).collect()
        }
    };
    counts.sort_unstable();
    counts.dedup();
    let cuts = match chunks {
        Some(chunks) => vec![Some(chunks.clone())],
        None if has_one_root => vec![None],
        None => CHUNKS.map(Chunks::equal).map(Some).to_vec(),
    };
    // The parts of a vector are cut, or those of each block.
    let blocks = match problem.collective.kind() {
        CollectiveKind::ReduceScatter | CollectiveKind::AllReduce if !has_one_root => {
            grounds.links.ranks.into()
        }
        _ => 1,
    };
    let least = problem.least()?;
    let mut candidates = Vec::new();
    let most_work = match trees {
        Some(_) => u64::MAX,
        None if has_one_root => MOST_GROWING,
        None => MOST_PACKING,
    };
    for &count in &counts {
        for chunks in &cuts {
            let cut = chunks.as_ref().map(Chunks::pieces);
            let pieces = u64::from(count) * u64::from(cut.unwrap_or(1));
            let transfers = grounds.transfers(count, cut.unwrap_or(FEW_CHUNKS));
            let is_least = Some(&count) == counts.first() && Some(chunks) == cuts.first();
            if !is_least && pieces.saturating_mul(blocks) > problem.size.get()
                || problem.fits(transfers).is_err()
                || cut.is_some_and(|own| own > 8 && cuts.len() > 1 && transfers > MOST_FINE)
            {
                continue;
            }
            let (grounds, problem, chunks) = (Rc::clone(grounds), *problem, chunks.clone());
            let pieces_of_tree = cut.unwrap_or(1);
            let bits = u128::from(problem.size.get()) * 8 / u128::from(blocks);
            let parts = grounds.parts.iter();
            let expected = parts.map(|part| part.expected(count, pieces_of_tree, bits));
            let expected = expected.into_iter().try_fold(Time::ZERO, Time::plus)?;
            // Trees with a relay each come first, then the optimum with as few pieces as it takes,
            // and then those of the fewest.
            let order = match (exact == Some(count), cut) {
                _ if relayed.contains(&count) => 0,
                (true, Some(1) | None) => 1,
                _ => pieces,
            };
            candidates.push(Candidate {
                name: named(grounds.roots, count, chunks.as_ref()).to_string(),
                slots: 1,
                least,
                estimate: least.max(expected).plus(Time::from_ps(order))?,
                transfers,
                make: Box::new(move |limit| {
                    // Full effort tries what only seems to be slower.
                    let limit_of_guesses = limit.filter(|_| problem.effort == Effort::Enough);
                    let enough = Time::from_ps(least.ps().saturating_add(least.ps() / ENOUGH));
                    if limit_of_guesses.is_some_and(|limit| limit <= enough) {
                        return Ok(Built::NotExpected("the plan chosen is near the bound"));
                    }
                    if limit_of_guesses.is_some_and(|limit| expected >= limit) {
                        return Ok(Built::NotExpected("its steps are longer"));
                    }
                    let more_than = exact.filter(|exact| *exact < count && cut != Some(1));
                    if limit_of_guesses.is_some()
                        && more_than.is_some_and(|exact| grounds.is_as_even(exact, count))
                    {
                        return Ok(Built::NotExpected("more trees do not even out the steps"));
                    }
                    let forests = grounds.forests(count, most_work)?;
                    let known = forests.iter();
                    let expected = known.map(|forest| forest.expected(pieces_of_tree));
                    let expected = expected.into_iter().try_fold(Time::ZERO, Time::plus)?;
                    if limit_of_guesses.is_some_and(|limit| expected >= limit) {
                        return Ok(Built::NotExpected("its steps are longer"));
                    }
                    let (plan, least) = match &chunks {
                        Some(chunks) => of_chunks(&grounds, &forests, chunks, &problem)?,
                        None => pipelined(&grounds, &forests, &problem)?,
                    };
                    if let Some(cut) = cut {
                        grounds.least.borrow_mut().insert((count, cut), least);
                    }
                    Ok(match limit {
                        Some(limit) if least >= limit => Built::AtLeast(least),
                        _ => plan.into(),
                    })
                }),
            });
        }
    }
    Ok(candidates)
}

/// A plan with a number of chunks, and a time that it cannot go below.
fn of_chunks(
    grounds: &Grounds<'_>,
    forests: &[Forest<'_>],
    chunks: &Chunks,
    problem: &PlanningProblem<'_>,
) -> Result<(Plan, Time), PlannerError> {
    let plan = scheduled(grounds, forests, chunks, problem)?;
    let least = lower_bound::plan_bound(&plan, problem)?;
    Ok((plan, least))
}

/// The plan of the chunks with which a pipeline of trees of one root is fastest.
fn pipelined(
    grounds: &Grounds<'_>,
    forests: &[Forest<'_>],
    problem: &PlanningProblem<'_>,
) -> Result<(Plan, Time), PlannerError> {
    let forest = forests.first();
    let count = forest.map_or(1, |forest| u64::from(forest.count));
    let most = u32::try_from(problem.size.get() / count).unwrap_or(u32::MAX);
    let most = match problem.effort {
        Effort::Full => most,
        Effort::Enough => {
            let cut = 2 * MANY_TRANSFERS / grounds.transfers(count as u32, 1).max(1);
            most.min(cut.max(1) as u32)
        }
    };
    let too_many = |pieces| grounds.transfers(count as u32, pieces) > MANY_TRANSFERS;
    let cuts = forest.map_or(vec![Chunks::equal(1)], |forest| {
        forest.fastest_chunks(problem.size, most, too_many)
    });
    let evaluation = Evaluation {
        problem,
        least: Time::ZERO,
    };
    let only = cuts.len() == 1;
    let mut fastest: Option<(Plan, Time)> = None;
    let mut limit: Option<Time> = None;
    for chunks in cuts {
        let (plan, least) = of_chunks(grounds, forests, &chunks, problem)?;
        if only {
            return Ok((plan, least));
        }
        if limit.is_some_and(|limit| least > limit) {
            continue;
        }
        let is_long = plan.schedule.len() as u64 > MOST_FINE;
        let time = match is_long {
            true => Some(least),
            false => evaluation.time(&plan, problem.size, limit)?,
        };
        if let Some(time) = time {
            // Few chunks are easier to send, where they take little longer.
            limit = Some(Time::from_ps(time.ps() - time.ps() / NEAR));
            fastest = Some((plan, least));
        }
    }
    fastest.ok_or_else(|| {
        unfit(
            PlacementProblem::Unfit,
            "no chunks take a time that can be known",
        )
    })
}

fn named(roots: Roots, trees: u32, chunks: Option<&Chunks>) -> Spec {
    let named = match roots {
        Roots::OfCollective => Spec::new(NAME),
        Roots::One => Spec::new(NAME).with("roots", "one"),
    };
    let named = named.with("trees", trees);
    match chunks {
        Some(chunks) => named.with("chunks", chunks),
        None => named,
    }
}

/// The plan that sends along forests, one after the other.
fn scheduled(
    grounds: &Grounds<'_>,
    forests: &[Forest<'_>],
    chunks: &Chunks,
    problem: &PlanningProblem<'_>,
) -> Result<Plan, PlannerError> {
    let (links, collective) = (&grounds.links, problem.collective);
    let count = forests.first().map_or(1, |forest| forest.count);
    let pieces = count.saturating_mul(chunks.pieces());
    let blocks = match collective.kind() {
        CollectiveKind::AllReduce if !grounds.has_one_root() => links.ranks,
        _ => 1,
    };
    problem.fits(grounds.transfers(count, chunks.pieces()))?;
    let collective = collective.with_pieces(pieces.saturating_mul(blocks))?;
    let mut schedule = Schedule::new(collective);
    let mut routes = NamedRoutes::default();
    for forest in forests {
        interrupt::check();
        let timed = forest.timed(collective, chunks);
        forest.assign(&timed, schedule.len(), &mut routes);
        schedule.append(&timed.schedule, 1);
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    let name = named(grounds.roots, count, Some(chunks)).to_string();
    Ok(Plan {
        routes,
        ..Plan::without_light(problem.fabric, schedule, name)
    })
}
