//! Plans with the optimum bandwidth term on any graph of links: packed spanning trees.
//!
//! The optimum time is 1 / x* = p / q seconds for a block of one bit
//! ([`throughput`](opticoll_bounds::throughput), theorem E8). Let g be the greatest common divisor
//! of all rates b. With U = p / gcd(q, g), all capacities U b are whole numbers, and k = U x* is a
//! whole number of trees per root. [`edge_splitting`] removes switches, and [`packing`] determines
//! the trees. [`timetable`] sends pieces along the trees, one k-th of a block on each tree, such
//! that links are busy and pieces with the longest remaining path go first.
//!
//! If the number k of trees is given, the plan generally does not reach the optimum. It then uses
//! the smallest U for which the capacities floor(U b) have room for k trees per root. Let b be the
//! rate of the slowest link. A block then takes at most 1 / x* + 1 / (k b) (ForestColl, arXiv
//! 2402.06787, section on fixed k), which is 1 + 1 / k times the optimum if 1 / x* >= 1 / b.
//!
//! An all_gather uses a forest with trees of every root. A broadcast uses shallow trees of one root
//! ([`edge_exchange`]), along which chunks follow one another ([`pipeline`]). A reduce_scatter or a
//! reduce is planned on reversed links and then reversed in time. An all_reduce is a reduce_scatter
//! followed by an all_gather.
//!
//! If ranks are connected directly, an all_reduce may also use trees of one root, along which
//! pieces are summed up and sent back at the same time. If each cable is in at most one of x trees,
//! each tree handles 1 / x of the vector. Such trees exist if every partition of the ranks has room
//! for them ([`spanning`](opticoll_bounds::throughput::spanning), theorem E9).
//!
//! An edge of a tree represents a path over switches. If the path differs from the default route of
//! the fabric, the plan names the path ([`edge_routes`]).

mod chunks;
mod edge_exchange;
mod edge_routes;
mod edge_splitting;
mod forest;
mod packing;
mod pipeline;
mod scatter_trees;
mod timetable;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::building::{MAX_PARTS, SEARCHED_TRANSFERS, claim_steps};
use crate::selection::evaluation::{Built, Candidate, Evaluation, EvaluationOutcome};
use crate::{
    Effort, Planned, Planner, PlannerError, PlanningProblem, Scope, selection::candidate_bound,
};
use chunks::Chunks;
use forest::{Forest, Links, PackingGraph, unfit};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Time, gcd};
use opticoll_placement::PlacementProblem;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{NamedRoutes, Plan};
use opticoll_plan::schedule::Schedule;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("trees", "number of trees of each root")
            .range("1 to 4096")
            .default(
                "the fastest of 1, 2, 4, 8 and the number k of the optimum; for trees of one root \
                 (broadcast, reduce, roots=one) the fastest of 1, 2, 4, k, 2 k, 4 k, 8 k and 16 k \
                 trees, at most 32, and of one tree through each other rank, or through each rank \
                 of the root's group",
            ),
        OptionRecord::new(
            "chunks",
            "number of chunks of a tree's part of a block",
        )
        .range("1 to 4096; for trees of one root also sizes, such as 1+2+4+2+1")
        .default(
            "the fastest of 1, 2, 4, 8, 16, 32 and 64; for trees of one root the fastest of four \
             numbers and of sizes that suit the latency",
        ),
        OptionRecord::new(
            "roots",
            "roots of an all_reduce: every, a reduce_scatter and then an all_gather; one, a root \
             along whose trees pieces are reduced and broadcast at the same time, if ranks are \
             connected directly",
        )
        .range("every, one")
        .default("every; the faster one if trees and chunks are not given either"),
    ],
    depends_on_size: true,
    ..Planner::new(
        "tree_packing",
        "Tree packing",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        "Spanning trees packed into the links of any graph, as many as the throughput optimum \
        has",
        "Edmonds, Edge-disjoint branchings, 1973; Zhao et al., ForestColl, arXiv 2402.06787",
        Scope::Any(|fabric| Links::of(fabric).is_some(), plan, candidates),
    )
};

/// Maximum number of trees per root if the option `trees` is not set. More trees would have small
/// pieces.
const MAX_CHOSEN_TREES: u32 = 256;

/// Maximum number of trees of one root to try, unless the optimum needs more.
const MAX_TREES_OF_ONE_ROOT: u32 = 32;

/// Maximum number of trees per root to try if every rank is a root, unless the optimum needs more.
/// Measured: an all_gather of 64 MiB on five servers of four GPUs takes 21.56 ms, and 31.21 ms
/// without additional trees.
const MAX_TREES_OF_EVERY_ROOT: u32 = 16;

/// Numbers of chunks per tree to try with trees of every root.
const CHUNK_NUMBERS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Minimum gain of a larger number of chunks: it must save 1 / `MIN_GAIN_DIVISOR` of the time.
const MIN_GAIN_DIVISOR: u64 = 100;

/// Number of chunks per tree that is assumed when transfers are counted before the number of chunks
/// is determined.
const ASSUMED_CHUNKS: u32 = 64;

/// Maximum number of transfers of plans with more than 8 chunks per tree, and of pipelines that are
/// simulated, if the number of chunks is not set (524,288: half a second at 1,000,000 transfers per
/// second).
const MAX_FINE_TRANSFERS: u64 = 1 << 19;

/// Distance from the lower bound at which the search for better trees ends: 1 / `BOUND_GAP_DIVISOR`
/// of the bound.
const BOUND_GAP_DIVISOR: u64 = 1000;

/// Maximum work of packing trees of every root for candidates of `auto`, in visited links.
const MAX_PACKING_WORK: u64 = 20_000_000;

/// Maximum work of packing trees of one root for candidates of `auto`, in visited links.
const MAX_PACKING_WORK_OF_ONE_ROOT: u64 = 200_000_000;

/// Graphs in which forests are packed for the parts of a collective: the reversed graph, the
/// original graph, or both. Results are cached.
struct PackingGraphs<'a> {
    links: Rc<Links<'a>>,
    parts: Vec<PackingGraph<'a>>,
    roots: Roots,
    /// True if messages may use routes that differ from the default routes of the fabric.
    may_name_routes: bool,
    /// Forests of all parts; indexed by the number of trees per root.
    forests_by_count: RefCell<BTreeMap<u32, ForestsOrError<'a>>>,
    /// Lower bounds on the times of built plans; indexed by (number of trees per root, number of
    /// chunks per tree).
    least: RefCell<BTreeMap<(u32, u32), Time>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Roots {
    /// The root of the collective; every rank, if the collective has no root.
    OfCollective,
    /// A single root that the planner selects, for an all_reduce.
    One,
}

impl Roots {
    const ALL: [(&'static str, Roots); 2] = [("every", Roots::OfCollective), ("one", Roots::One)];
}

/// A forest for each part, or the reason why packing failed.
type ForestsOrError<'a> = Result<Rc<Vec<Forest<'a>>>, PlannerError>;

impl<'a> PackingGraphs<'a> {
    fn new(
        links: Links<'a>,
        problem: &PlanningProblem<'_>,
        roots: Roots,
        max_search: u64,
    ) -> Result<PackingGraphs<'a>, PlannerError> {
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
            Roots::One => vec![PackingGraph::up_and_down(&links, max_search)?],
            Roots::OfCollective => {
                let parts = reversed.iter();
                let parts =
                    parts.map(|reversed| PackingGraph::new(&links, root, *reversed, max_search));
                parts.collect::<Result<_, _>>()?
            }
        };
        Ok(PackingGraphs {
            parts,
            roots,
            links,
            may_name_routes: problem.may_name_routes,
            forests_by_count: RefCell::default(),
            least: RefCell::default(),
        })
    }

    /// Returns the minimum number of trees per root that reaches the optimum.
    fn trees(&self) -> u128 {
        let mut trees = 1u128;
        for part in &self.parts {
            let part_trees = part.trees();
            trees = (trees / gcd(trees, part_trees)).saturating_mul(part_trees);
        }
        trees
    }

    /// Returns the number of trees in each forest of [`PackingGraph::relay_trees`]. The list is
    /// empty if the collective has several parts.
    fn relay_counts(&self) -> Vec<u32> {
        let first_part = self
            .parts
            .first()
            .map(PackingGraph::relay_trees)
            .unwrap_or_default();
        let counts = first_part.iter().map(|trees| trees.len() as u32);
        counts.filter(|_| self.parts.len() == 1).collect()
    }

    fn forests(&self, count: u32, max_work: u64) -> ForestsOrError<'a> {
        let mut forests_by_count = self.forests_by_count.borrow_mut();
        // If packing fewer trees needs too much work, so does packing more trees.
        let failed = forests_by_count.range(..=count).map(|(_, forests)| forests);
        let failed = failed.into_iter().find(|forests| forests.is_err());
        let failed =
            failed.filter(|_| max_work < u64::MAX && !self.relay_counts().contains(&count));
        if let Some(failed) = failed {
            return failed.clone();
        }
        let forests = forests_by_count.entry(count).or_insert_with(|| {
            let forests = self
                .parts
                .iter()
                .map(|part| part.forest(count, self.may_name_routes, max_work));
            let forests: Option<_> = forests.collect();
            forests.map(Rc::new).ok_or_else(|| {
                let sentence = format!(
                    "no forest with {count} trees of each root was found; none exists if links \
                     into and out of a switch differ in rate"
                );
                unfit(PlacementProblem::Unfit, &sentence)
            })
        });
        forests.clone()
    }

    /// Returns whether `count` trees per root with one chunk per tree take at least as long as
    /// `exact` trees per root with about `count / exact` chunks per tree.
    fn more_trees_save_nothing(&self, exact: u32, count: u32) -> bool {
        let least = self.least.borrow();
        let times = (
            least.get(&(exact, (count / exact).next_power_of_two())),
            least.get(&(count, 1)),
        );
        matches!(times, (Some(exact), Some(more)) if more >= exact)
    }

    fn has_one_root(&self) -> bool {
        self.parts.iter().any(|part| part.root.is_some())
    }

    /// Returns the number of transfers of a plan over all parts, for `count` trees per root and
    /// `chunks` chunks per tree.
    fn transfers(&self, count: u32, chunks: u32) -> u64 {
        let roots = if self.has_one_root() {
            1
        } else {
            self.links.ranks
        };
        let phases = match self.roots {
            Roots::One => 2,
            Roots::OfCollective => self.parts.len() as u64,
        };
        let trees = u64::from(count) * u64::from(roots) * phases;
        (trees * u64::from(chunks)).saturating_mul(u64::from(self.links.ranks - 1))
    }
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let Some(links) = Links::of(problem.fabric) else {
        return Err(AlgorithmError::refused(
            PLANNER.name,
            problem.collective.ranks(),
            "it needs links between known ends that flows share",
        )
        .into());
    };
    let roots = opticoll_algorithms::choice(spec, "roots", &Roots::ALL)?;
    if roots == Roots::One && problem.collective.kind() != CollectiveKind::AllReduce {
        let rule = "roots can be chosen for an all_reduce only";
        return Err(AlgorithmError::from(spec.refuse("roots", rule)).into());
    }
    let graphs = Rc::new(PackingGraphs::new(links.clone(), problem, roots, u64::MAX)?);
    let trees = spec.count("trees", 1, MAX_PARTS)?;
    let chunks: Option<Chunks> = spec.value("chunks")?;
    if chunks.as_ref().is_some_and(|sizes| sizes.count().is_none()) && !graphs.has_one_root() {
        let rule = "must be a whole number: only trees of one root take chunks of several sizes";
        return Err(AlgorithmError::from(spec.refuse("chunks", rule)).into());
    }
    if let (Some(trees), Some(chunks)) = (trees, &chunks) {
        let forests = graphs.forests(trees, u64::MAX)?;
        return Ok(build(&graphs, &forests, chunks, problem)?.into());
    }
    let mut candidates = candidates_of(&graphs, trees, chunks.as_ref(), problem)?;
    let has_no_option = ["roots", "trees", "chunks"]
        .iter()
        .all(|name| spec.option(name).is_none());
    if has_no_option && problem.collective.kind() == CollectiveKind::AllReduce {
        match PackingGraphs::new(links, problem, Roots::One, super::MAX_SEARCH) {
            Ok(graphs) => candidates.extend(candidates_of(&Rc::new(graphs), None, None, problem)?),
            Err(PlannerError::Placement(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if candidates.is_empty() {
        let pieces = chunks.as_ref().map_or(1, Chunks::pieces);
        problem.fits(graphs.transfers(trees.unwrap_or(1), pieces))?;
    }
    let evaluation = Evaluation::new(problem)?;
    let EvaluationOutcome { fastest, .. } = evaluation.run(candidates, Vec::new())?;
    Ok(fastest?.0.into())
}

/// Returns candidates with several numbers of trees. There are none if the graph is too large.
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
        match PackingGraphs::new(links.clone(), problem, roots, super::MAX_SEARCH) {
            Ok(graphs) => candidates.extend(candidates_of(&Rc::new(graphs), None, None, problem)?),
            Err(PlannerError::Placement(_)) => {}
            Err(error) => return Err(error),
        }
    }
    candidates.retain(|candidate| candidate.transfers <= problem.max_work);
    Ok(candidates)
}

/// Returns candidates with the given numbers of trees per root and of chunks per tree. If a number
/// is not given, several numbers are tried.
fn candidates_of<'a>(
    graphs: &Rc<PackingGraphs<'a>>,
    trees: Option<u32>,
    chunks: Option<&Chunks>,
    problem: &PlanningProblem<'a>,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let exact = u32::try_from(graphs.trees()).ok();
    let exact = exact.filter(|exact| *exact <= MAX_CHOSEN_TREES);
    let has_one_root = graphs.has_one_root();
    let relay_counts = graphs.relay_counts();
    let mut counts: Vec<u32> = match (trees, exact) {
        (Some(trees), _) => vec![trees],
        // Trees with relays of their own need no removal of switches, which takes long.
        (None, _) if !relay_counts.is_empty() && problem.effort == Effort::Enough => {
            relay_counts.clone()
        }
        (None, None) => vec![1, 2, 4, 8],
        // If one root has more trees, the trees are shallower.
        (None, Some(exact)) if has_one_root => {
            let more = [1, 2, 4, 8, 16].map(|times| times * exact);
            let more = more
                .into_iter()
                .filter(|more| *more <= MAX_TREES_OF_ONE_ROOT.max(exact));
            more.chain([1, 2, 4]).chain(relay_counts.clone()).collect()
        }
        // With more trees than the optimum needs, the steps have more equal lengths.
        (None, Some(exact)) => {
            let more = [1, 2, 3, 4].map(|times| times * exact);
            let more = more
                .into_iter()
                .filter(|more| *more <= MAX_TREES_OF_EVERY_ROOT.max(exact));
            let fewer = [1, 2, 4, 8].into_iter().filter(|fewer| *fewer < exact);
            fewer.chain(more).collect()
        }
    };
    counts.sort_unstable();
    counts.dedup();
    let chunk_choices = match chunks {
        Some(chunks) => vec![Some(chunks.clone())],
        None if has_one_root => vec![None],
        None => CHUNK_NUMBERS.map(Chunks::equal).map(Some).to_vec(),
    };
    // An all_reduce divides its vector into blocks only if every rank is a root.
    let blocks = match problem.collective.kind() {
        CollectiveKind::ReduceScatter | CollectiveKind::AllReduce if !has_one_root => {
            graphs.links.ranks.into()
        }
        _ => 1,
    };
    let least = problem.least()?;
    let mut candidates = Vec::new();
    let max_work = match trees {
        Some(_) => u64::MAX,
        None if has_one_root => MAX_PACKING_WORK_OF_ONE_ROOT,
        None => MAX_PACKING_WORK,
    };
    for &count in &counts {
        for chunks in &chunk_choices {
            let pieces_of_part = chunks.as_ref().map(Chunks::pieces);
            let pieces = u64::from(count) * u64::from(pieces_of_part.unwrap_or(1));
            let transfers = graphs.transfers(count, pieces_of_part.unwrap_or(ASSUMED_CHUNKS));
            let is_least = Some(&count) == counts.first() && Some(chunks) == chunk_choices.first();
            if !is_least && pieces.saturating_mul(blocks) > problem.size.get()
                || problem.fits(transfers).is_err()
                || pieces_of_part.is_some_and(|pieces| {
                    pieces > 8 && chunk_choices.len() > 1 && transfers > MAX_FINE_TRANSFERS
                })
            {
                continue;
            }
            let (graphs, problem, chunks) = (Rc::clone(graphs), *problem, chunks.clone());
            let pieces_of_tree = pieces_of_part.unwrap_or(1);
            let bits = u128::from(problem.size.get()) * 8 / u128::from(blocks);
            let parts = graphs.parts.iter();
            let expected = parts.map(|part| part.expected(count, pieces_of_tree, bits));
            let expected = expected.into_iter().try_fold(Time::ZERO, Time::plus)?;
            // The order is: trees with relays of their own, then the optimum with the fewest
            // pieces, then other plans in ascending order of their number of pieces.
            let order = match (exact == Some(count), pieces_of_part) {
                _ if relay_counts.contains(&count) => 0,
                (true, Some(1) | None) => 1,
                _ => pieces,
            };
            candidates.push(Candidate {
                name: spec_of(graphs.roots, count, chunks.as_ref()).to_string(),
                slots: 1,
                lower_bound: least,
                estimate: least.max(expected).plus(Time::from_ps(order))?,
                transfers,
                build: Box::new(move |limit| {
                    // Full effort also builds candidates that are only estimated to be slower.
                    let guess_limit = limit.filter(|_| problem.effort == Effort::Enough);
                    let enough =
                        Time::from_ps(least.ps().saturating_add(least.ps() / BOUND_GAP_DIVISOR));
                    if guess_limit.is_some_and(|limit| limit <= enough) {
                        return Ok(Built::NotExpected("the plan chosen is near the bound"));
                    }
                    if guess_limit.is_some_and(|limit| expected >= limit) {
                        return Ok(Built::NotExpected("its steps are longer"));
                    }
                    let more_than =
                        exact.filter(|exact| *exact < count && pieces_of_part != Some(1));
                    if guess_limit.is_some()
                        && more_than
                            .is_some_and(|exact| graphs.more_trees_save_nothing(exact, count))
                    {
                        return Ok(Built::NotExpected("more trees do not even out the steps"));
                    }
                    let forests = graphs.forests(count, max_work)?;
                    let forest_times = forests.iter();
                    let expected = forest_times.map(|forest| forest.expected(pieces_of_tree));
                    let expected = expected.into_iter().try_fold(Time::ZERO, Time::plus)?;
                    if guess_limit.is_some_and(|limit| expected >= limit) {
                        return Ok(Built::NotExpected("its steps are longer"));
                    }
                    let (plan, least) = match &chunks {
                        Some(chunks) => build_with_bound(&graphs, &forests, chunks, &problem)?,
                        None => fastest_pipeline(&graphs, &forests, &problem)?,
                    };
                    if let Some(pieces_of_part) = pieces_of_part {
                        graphs
                            .least
                            .borrow_mut()
                            .insert((count, pieces_of_part), least);
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

fn build_with_bound(
    graphs: &PackingGraphs<'_>,
    forests: &[Forest<'_>],
    chunks: &Chunks,
    problem: &PlanningProblem<'_>,
) -> Result<(Plan, Time), PlannerError> {
    let plan = build(graphs, forests, chunks, problem)?;
    let least = candidate_bound::plan_bound(&plan, problem)?;
    Ok((plan, least))
}

/// Builds plans with several choices of chunks for a pipeline along trees of one root, and returns
/// the fastest plan with a lower bound on its time.
fn fastest_pipeline(
    graphs: &PackingGraphs<'_>,
    forests: &[Forest<'_>],
    problem: &PlanningProblem<'_>,
) -> Result<(Plan, Time), PlannerError> {
    let forest = forests.first();
    let count = forest.map_or(1, |forest| u64::from(forest.count));
    let max_pieces = u32::try_from(problem.size.get() / count).unwrap_or(u32::MAX);
    let max_pieces = match problem.effort {
        Effort::Full => max_pieces,
        Effort::Enough => {
            let chunks = 2 * SEARCHED_TRANSFERS / graphs.transfers(count as u32, 1).max(1);
            max_pieces.min(chunks.max(1) as u32)
        }
    };
    let too_many = |pieces| graphs.transfers(count as u32, pieces) > SEARCHED_TRANSFERS;
    let chunk_choices = forest.map_or(vec![Chunks::equal(1)], |forest| {
        forest.fastest_chunks(problem.size, max_pieces, too_many)
    });
    let evaluation = Evaluation {
        problem,
        lower_bound: Time::ZERO,
    };
    let only = chunk_choices.len() == 1;
    let mut fastest: Option<(Plan, Time)> = None;
    let mut limit: Option<Time> = None;
    for chunks in chunk_choices {
        let (plan, least) = build_with_bound(graphs, forests, &chunks, problem)?;
        if only {
            return Ok((plan, least));
        }
        if limit.is_some_and(|limit| least > limit) {
            continue;
        }
        let is_long = plan.schedule.len() as u64 > MAX_FINE_TRANSFERS;
        let time = match is_long {
            true => Some(least),
            false => evaluation.time(&plan, problem.size, limit)?,
        };
        if let Some(time) = time {
            // A plan with more chunks must be faster by 1 / `MIN_GAIN_DIVISOR`.
            limit = Some(Time::from_ps(time.ps() - time.ps() / MIN_GAIN_DIVISOR));
            fastest = Some((plan, least));
        }
    }
    fastest.ok_or_else(|| {
        unfit(
            PlacementProblem::Unfit,
            "no number of chunks has a time that can be computed",
        )
    })
}

fn spec_of(roots: Roots, trees: u32, chunks: Option<&Chunks>) -> Spec {
    let named = match roots {
        Roots::OfCollective => Spec::new(PLANNER.name),
        Roots::One => Spec::new(PLANNER.name).with("roots", "one"),
    };
    let named = named.with("trees", trees);
    match chunks {
        Some(chunks) => named.with("chunks", chunks),
        None => named,
    }
}

fn build(
    graphs: &PackingGraphs<'_>,
    forests: &[Forest<'_>],
    chunks: &Chunks,
    problem: &PlanningProblem<'_>,
) -> Result<Plan, PlannerError> {
    let (links, collective) = (&graphs.links, problem.collective);
    let count = forests.first().map_or(1, |forest| forest.count);
    let pieces = count.saturating_mul(chunks.pieces());
    let blocks = match collective.kind() {
        CollectiveKind::AllReduce if !graphs.has_one_root() => links.ranks,
        _ => 1,
    };
    problem.fits(graphs.transfers(count, chunks.pieces()))?;
    let collective = collective.with_pieces(pieces.saturating_mul(blocks))?;
    let mut schedule = Schedule::new(collective);
    let mut routes = NamedRoutes::default();
    for forest in forests {
        interrupt::check();
        let timed = forest.timed(collective, chunks);
        forest.assign(&timed, schedule.len(), &mut routes);
        schedule.append(&timed.schedule, 1);
    }
    schedule.claims = claim_steps(&schedule);
    let name = spec_of(graphs.roots, count, Some(chunks)).to_string();
    Ok(Plan {
        routes,
        ..Plan::without_light(problem.fabric, schedule, name)
    })
}
