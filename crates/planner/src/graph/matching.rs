//! Greedy matching of links and chunks on the time-expanded graph.
//!
//! Data spread from rank to rank. At each instant `search` matches free links with chunks that the
//! rank at one end has and the rank at the other end lacks. The chunk of each link is decided once,
//! so the work grows with the number of deliveries times the logical links into a rank. (TACOS, Won
//! et al., MICRO 2024, introduced the method for all_gathers; here the logical links of a rank are
//! matched by augmenting paths, and on a torus rank 0 represents all ranks.)
//!
//! An all_gather spreads all blocks, a broadcast the block of the root. A reduce_scatter or a
//! reduce is the reverse of such a spread with all links reversed; an all_reduce is both in
//! sequence.
//!
//! **Time.** Under the start rule `link` the matching follows the clock: a link is busy for its
//! latency and the bytes of a chunk. Under the other rules ranks proceed in steps, and a link that
//! is n times as fast as the slowest link carries n chunks in a step.
//!
//! **Few steps**, for sizes at which latencies dominate. A spread takes at least as many steps as
//! the largest distance between two ranks. A step costs its latency and the chunks of its busiest
//! link. If the number of steps is given, links carry in each step only as many chunks as needed if
//! the remaining chunks arrive evenly in the remaining steps; chunks that have come farthest go
//! first. If some rank does not receive all chunks in time, links carry more in each step.

mod search;

use std::rc::Rc;

use crate::building::claim_steps;
use crate::graph::logical_links::LogicalLinks;
use crate::selection::evaluation::{Built, Candidate, Evaluation, EvaluationOutcome};
use crate::{Planned, Planner, PlannerError, PlanningProblem, Scope, selection::candidate_bound};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Fabric;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::fluid::StartRule;
use search::{ChunkOrder, Matching, Spread, Timing, search, slots_into, translations};

/// Declaration of the planner that matches links and chunks.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "chunks",
            "number of chunks of a block or of the vector; for an all_reduce, of the part of each \
             rank",
        )
        .range("1 to 4096")
        .default("the fastest of a few numbers"),
        OptionRecord::new(
            "seed",
            "seed of the random choice among equally good chunks",
        )
        .range("0 to 4294967295")
        .default("the fastest of a few seeds"),
        OptionRecord::new(
            "steps",
            "number of steps in which each block spreads, with few chunks on each link: a number, \
             or the hops between the farthest ranks (fewest)",
        )
        .range("1 to 4294967295, fewest")
        .default(
            "the number that keeps links busy; without options, the faster plan of this number and \
             the fewest",
        ),
    ],
    by_size: true,
    ..Planner::new(
        NAME,
        "Matching",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        "Greedy matching of links and chunks, instant by instant or in few steps, on any graph",
        "after Won et al., TACOS: Topology-Aware Collective Algorithm Synthesizer, MICRO 2024; \
         Cai et al., SCCL, PPoPP 2021",
        Scope::Any(
            |fabric| LogicalLinks::of(fabric, false).is_some(),
            plan,
            candidates,
        ),
    )
};

const NAME: &str = "matching";

/// Maximum number of chunks of a block.
const MAX_CHUNKS: u32 = 4096;

/// Numbers of chunks to try without the option `chunks`.
const CHUNK_NUMBERS: [u32; 16] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024];

/// Minimum part of the time that a larger number of chunks must save.
const MIN_RELATIVE_GAIN: f64 = 0.03;

/// Maximum number of plans with different numbers of chunks.
const MAX_CHUNK_NUMBERS: usize = 3;

/// Maximum work of a search without options, in deliveries times logical links times logical links
/// into a rank.
const MAX_WORK: u64 = 1 << 29;
/// Maximum work of all searches for one plan, in deliveries times logical links.
const SEARCHES_WORK: u64 = 1 << 20;

/// Maximum number of searches with different seeds for one plan.
const MAX_SEARCHES: u64 = 24;

/// Factors on the number of chunks that links carry in a step if the number of steps is given,
/// relative to the number needed on average. The first factor with which all ranks receive all
/// chunks is taken.
const LOAD_FACTORS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 1e9];

/// Options of a search.
#[derive(Debug, Clone, Copy)]
struct Variant {
    chunks: u32,
    seed: Option<u32>,
    steps: Option<u32>,
}

impl Variant {
    fn spec(self) -> Spec {
        let mut spec = Spec::new(NAME).with("chunks", self.chunks);
        for (name, value) in [("seed", self.seed), ("steps", self.steps)] {
            if let Some(value) = value {
                spec = spec.with(name, value);
            }
        }
        spec
    }
}

/// A spread that is a part of a collective.
struct Part {
    logical_links: LogicalLinks,
    distances: Vec<u16>,
    backwards: bool,
}

/// Returns the spreads of a collective, in the order in which they run.
///
/// # Errors
/// A fabric without links that flows share, or ranks that cannot be reached.
fn parts(fabric: &Fabric, kind: CollectiveKind) -> Result<Vec<Part>, PlannerError> {
    let directions: &[bool] = match kind {
        CollectiveKind::AllReduce => &[true, false],
        CollectiveKind::ReduceScatter | CollectiveKind::Reduce => &[true],
        _ => &[false],
    };
    let part = |&backwards: &bool| {
        let logical_links = LogicalLinks::of(fabric, backwards).ok_or_else(|| {
            let reason = "it needs links between known ends that flows share".into();
            AlgorithmError::Refused {
                name: NAME,
                ranks: fabric.ranks(),
                reason,
            }
        })?;
        let distances = logical_links.distances().ok_or_else(|| {
            let sentence = "some ranks cannot be reached from others";
            PlacementError::new(PlacementProblem::Unfit, sentence)
        })?;
        Ok(Part {
            logical_links,
            distances,
            backwards,
        })
    };
    directions.iter().map(part).collect()
}

/// Returns the spread of each part of a collective whose blocks are divided into `chunks` chunks,
/// and the collective with these chunks.
///
/// # Errors
/// Too many chunks.
fn divide(collective: Collective, chunks: u32) -> Result<(Spread, Collective), PlannerError> {
    let (root, blocks) = match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => (Some(collective.root()), 1),
        CollectiveKind::AllReduce => (None, collective.ranks()),
        _ => (None, 1),
    };
    let spread = Spread {
        pieces: chunks,
        root,
    };
    let pieces = chunks.saturating_mul(blocks);
    Ok((spread, collective.with_pieces(pieces)?))
}

/// Builds the plan from the deliveries of each part.
fn assemble(
    fabric: &Fabric,
    collective: Collective,
    spread: &Spread,
    parts: &[Part],
    found: &[Matching],
    name: String,
) -> Plan {
    let mut schedule = Schedule::new(collective);
    for (part, found) in parts.iter().zip(found) {
        interrupt::check();
        let forwards = write_schedule(collective, spread, part, found);
        match part.backwards {
            true => schedule.append(&forwards.reversed(collective), 1),
            false => schedule.append(&forwards, 1),
        }
    }
    schedule.claims = claim_steps(&schedule);
    Plan::without_light(fabric, schedule, name)
}

fn write_schedule(
    collective: Collective,
    spread: &Spread,
    part: &Part,
    found: &Matching,
) -> Schedule {
    let logical_links = &part.logical_links;
    let grid = translations(logical_links, spread);
    let mut schedule = Schedule::new(collective);
    let times = if grid.is_some() {
        logical_links.ranks as usize
    } else {
        1
    };
    schedule.reserve(found.deliveries.len() * times);
    let mut deliveries = found.deliveries.iter().peekable();
    for step in 0..found.steps {
        schedule.begin_step();
        while let Some(delivery) = deliveries.next_if(|delivery| delivery.step == step) {
            let logical_link = &logical_links.all[delivery.logical_link as usize];
            let Some(grid) = grid else {
                schedule.push(Transfer::copy(
                    delivery.chunk,
                    logical_link.from,
                    logical_link.to,
                ));
                continue;
            };
            let (block, piece) = (
                delivery.chunk / spread.pieces,
                delivery.chunk % spread.pieces,
            );
            for by in 0..logical_links.ranks {
                let at = |place| grid.moved(place, by, false);
                let chunk = at(block) * spread.pieces + piece;
                schedule.push(Transfer::copy(
                    chunk,
                    at(logical_link.from),
                    at(logical_link.to),
                ));
            }
        }
    }
    schedule
}

/// Returns the least number of steps in which all chunks can cross the links into each rank.
fn least_steps(part: &Part, spread: &Spread) -> u64 {
    let logical_links = &part.logical_links;
    let shares = logical_links.shares();
    let ranks = match translations(logical_links, spread) {
        Some(_) => 0..1,
        None => 0..logical_links.ranks,
    };
    let steps = ranks.map(|rank| {
        let pieces = u64::from(spread.pieces);
        let missing = match spread.root {
            Some(root) if root == rank => 0,
            Some(_) => pieces,
            None => pieces * u64::from(logical_links.ranks - 1),
        };
        missing.div_ceil(slots_into(logical_links, &shares, rank).max(1))
    });
    let farthest = u64::from(part.distances.iter().copied().max().unwrap_or(0));
    let farthest = if spread.root.is_some() {
        farthest / 2
    } else {
        farthest
    };
    steps.max().unwrap_or(0).max(farthest)
}

/// Returns the work of a search, in deliveries times logical links.
fn work(part: &Part, spread: &Spread) -> u64 {
    let ranks = u64::from(part.logical_links.ranks);
    let blocks = if spread.root.is_some() { 1 } else { ranks };
    let is_symmetric = translations(&part.logical_links, spread).is_some();
    let logical_links = part.logical_links.all.len() as u64 / if is_symmetric { ranks } else { 1 };
    blocks * u64::from(spread.pieces) * logical_links
}

/// Returns whether a search takes too long. The time to assign chunks to the logical links of a
/// rank grows with the square of their number.
fn is_large(part: &Part, spread: &Spread) -> bool {
    let into = part.logical_links.all.len() as u64 / u64::from(part.logical_links.ranks);
    work(part, spread).saturating_mul(into) > MAX_WORK
}

/// Returns the best of a few searches; `None` if no search delivers all chunks.
fn best(part: &Part, spread: Spread, timing: Timing, variant: Variant) -> Option<Matching> {
    let searches = (SEARCHES_WORK / work(part, &spread).max(1)).clamp(2, MAX_SEARCHES);
    let seeds = match variant.seed {
        Some(seed) => u64::from(seed)..u64::from(seed) + 1,
        None => 0..searches,
    };
    let run = |timing, first, seed| {
        search(
            &part.logical_links,
            &part.distances,
            spread,
            timing,
            first,
            seed,
        )
    };
    let order = |found: &Matching| (found.cost, found.steps);
    if let Some(steps) = variant.steps {
        return LOAD_FACTORS.into_iter().find_map(|factor| {
            let limit = Some((steps, factor));
            let timing = Timing::Steps { limit };
            let found = seeds.clone();
            let found = found.filter_map(|seed| run(timing, ChunkOrder::Farthest, seed));
            found.min_by_key(order)
        });
    }
    let enough = match timing {
        Timing::Steps { .. } => least_steps(part, &spread),
        Timing::Clock { .. } => 0,
    };
    let mut best: Option<Matching> = None;
    for seed in seeds {
        let found = run(timing, ChunkOrder::Rarest, seed)?;
        let is_enough = u64::from(found.steps) <= enough;
        if best.as_ref().is_none_or(|best| order(&found) < order(best)) {
            best = Some(found);
        }
        if is_enough {
            break;
        }
    }
    best
}

/// Builds the plan of a variant.
fn build(
    problem: &PlanningProblem<'_>,
    parts: &[Part],
    variant: Variant,
) -> Result<Plan, PlannerError> {
    let (spread, collective) = divide(problem.collective, variant.chunks)?;
    problem.fits(transfers(problem, variant.chunks))?;
    let timing = match problem.method.start {
        Some(StartRule::Link) => {
            let bytes = collective.range_bytes(problem.size, 0, 1)?;
            let bytes =
                bytes.get() + u64::from(collective.uniform_chunk_bytes(problem.size).is_none());
            Timing::Clock { bytes }
        }
        _ => Timing::Steps { limit: None },
    };
    let found = parts.iter().map(|part| best(part, spread, timing, variant));
    let found: Option<Vec<Matching>> = found.collect();
    let found = found.ok_or_else(|| {
        let sentence = match variant.steps {
            Some(steps) => format!("some ranks are more than {steps} steps apart"),
            None => "some ranks cannot be reached from others".into(),
        };
        PlacementError::new(PlacementProblem::Unfit, &sentence)
    })?;
    Ok(assemble(
        problem.fabric,
        collective,
        &spread,
        parts,
        &found,
        variant.spec().to_string(),
    ))
}

/// Returns the largest number of hops between ranks of a spread.
fn hops_apart(problem: &PlanningProblem<'_>, parts: &[Part]) -> u32 {
    let root = divide(problem.collective, 1)
        .ok()
        .and_then(|(spread, _)| spread.root);
    let farthest = parts.iter().filter_map(|part| {
        let ranks = part.logical_links.ranks as usize;
        let distances = match root {
            Some(root) => &part.distances[root as usize * ranks..][..ranks],
            None => &part.distances[..],
        };
        distances.iter().max()
    });
    farthest.max().copied().unwrap_or(0).into()
}

/// Returns the number of transfers of a plan.
fn transfers(problem: &PlanningProblem<'_>, chunks: u32) -> u64 {
    let ranks = u64::from(problem.collective.ranks());
    let blocks = match problem.collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        CollectiveKind::AllReduce => 2 * ranks,
        _ => ranks,
    };
    blocks
        .saturating_mul(ranks - 1)
        .saturating_mul(chunks.into())
}

/// Returns the numbers of chunks to try with their estimated times, the least time first.
fn chunk_numbers(problem: &PlanningProblem<'_>, parts: &[Part]) -> Vec<(u32, Time)> {
    let mut numbers = Vec::new();
    for chunks in CHUNK_NUMBERS {
        let Ok((spread, collective)) = divide(problem.collective, chunks) else {
            continue;
        };
        let Ok(bytes) = collective.range_bytes(problem.size, 0, 1) else {
            continue;
        };
        let too_small = chunks > 1 && collective.min_chunk_bytes(problem.size).get() == 0;
        let too_many = transfers(problem, chunks) > problem.max_transfers;
        let too_long = parts.iter().any(|part| is_large(part, &spread));
        if too_small || too_many || too_long {
            continue;
        }
        let mut time = 0f64;
        for part in parts {
            let logical_links = &part.logical_links.all;
            let slowest = part.logical_links.slowest_rate();
            let latency = logical_links
                .iter()
                .map(|logical_link| logical_link.latency)
                .max()
                .unwrap_or(0);
            let step = latency as f64 + bytes.get() as f64 * 8e12 / slowest as f64;
            let mut steps = least_steps(part, &spread) as f64;
            if spread.root.is_some() {
                steps += f64::from(part.distances.iter().copied().max().unwrap_or(0));
            }
            time += steps * step;
        }
        // More chunks make larger plans.
        let is_no_gain =
            |&(_, before): &(u32, Time)| time >= before.ps() as f64 * (1.0 - MIN_RELATIVE_GAIN);
        if !numbers.iter().any(is_no_gain) {
            numbers.push((chunks, Time::from_ps(time as u64)));
        }
    }
    numbers.sort_by_key(|&(_, time)| time);
    numbers.truncate(MAX_CHUNK_NUMBERS);
    numbers
}

/// Returns plans of a few numbers of chunks; on fabrics without switches also of a few numbers of
/// steps. Through switches one step reaches all ranks.
fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    if problem.fabric.ranks() < 2 {
        return Ok(Vec::new());
    }
    let Ok(parts) = parts(problem.fabric, problem.collective.kind()) else {
        return Ok(Vec::new());
    };
    let least = problem.least()?;
    let numbers = chunk_numbers(problem, &parts).into_iter();
    let mut variants: Vec<(Variant, Time)> = numbers
        .map(|(chunks, estimate)| {
            let (seed, steps) = (None, None);
            let variant = Variant {
                chunks,
                seed,
                steps,
            };
            (variant, estimate)
        })
        .collect();
    let (spread, _) = divide(problem.collective, 1)?;
    let has_steps = |part: &Part| !part.logical_links.has_switches && !is_large(part, &spread);
    if parts.iter().all(has_steps) && transfers(problem, 1) <= problem.max_transfers {
        let farthest = hops_apart(problem, &parts);
        let busy = parts.iter().map(|part| least_steps(part, &spread)).max();
        let mut numbers = vec![
            farthest,
            farthest + farthest.div_ceil(4),
            farthest + farthest.div_ceil(2),
        ];
        numbers.dedup();
        // In more steps links are as busy as without a given number.
        numbers.retain(|steps| {
            *steps == farthest || busy.is_some_and(|busy| u64::from(*steps) < busy)
        });
        for (place, steps) in (0..).zip(numbers) {
            let variant = Variant {
                chunks: 1,
                seed: None,
                steps: Some(steps),
            };
            let all_steps = u128::from(steps) * parts.len() as u128;
            let estimate = candidate_bound::estimate_steps(problem, all_steps).max(least);
            variants.push((variant, estimate.plus(Time::from_ps(place))?));
        }
    }
    let parts = Rc::new(parts);
    let candidate = |(variant, estimate): (Variant, Time)| {
        let (parts, problem) = (Rc::clone(&parts), *problem);
        Candidate {
            name: variant.spec().to_string(),
            slots: 1,
            least,
            estimate: estimate.max(least),
            transfers: transfers(&problem, variant.chunks),
            make: Box::new(move |_| Ok(Built::from(build(&problem, &parts, variant)?))),
        }
    };
    Ok(variants.into_iter().map(candidate).collect())
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    if problem.fabric.ranks() < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
    if spec.options().next().is_none() {
        let evaluation = Evaluation::new(problem)?;
        let candidates = candidates(problem)?;
        if !candidates.is_empty() {
            let EvaluationOutcome { fastest, .. } = evaluation.run(candidates, Vec::new())?;
            return Ok(fastest?.0.into());
        }
    }
    let parts = parts(problem.fabric, problem.collective.kind())?;
    let steps = match spec.option("steps") {
        Some("fewest") => Some(hops_apart(problem, &parts)),
        _ => spec.count("steps", 1, u32::MAX)?,
    };
    let chosen = match steps {
        Some(_) => 1,
        None => chunk_numbers(problem, &parts)
            .first()
            .map_or(1, |number| number.0),
    };
    let variant = Variant {
        chunks: spec.count("chunks", 1, MAX_CHUNKS)?.unwrap_or(chosen),
        seed: spec.count("seed", 0, u32::MAX)?,
        steps,
    };
    Ok(build(problem, &parts, variant)?.into())
}
