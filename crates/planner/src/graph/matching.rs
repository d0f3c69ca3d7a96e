//! Greedy matching of links with chunks on the time-expanded graph.
//!
//! At each point in time, `search` matches idle links with chunks that the source of the link has
//! and the destination lacks. Every delivery is decided once, so the work grows with the number of
//! deliveries times the number of logical links per rank. (TACOS, Won et al., MICRO 2024,
//! introduced the method for all_gathers. Here augmenting paths match the logical links of a rank,
//! and on a torus rank 0 represents all ranks.)
//!
//! In an all_gather all blocks spread; in a broadcast the root's block spreads. A reduce_scatter or
//! a reduce is the time reversal of such a spread over reversed links. An all_reduce is a
//! reduce_scatter followed by an all_gather.
//!
//! **Time.** Under the start rule `link` the search simulates a clock: a chunk occupies a link for
//! its transmission time and the latency. Under the other rules ranks proceed in steps, and a link
//! that is n times as fast as the slowest link carries n chunks per step.
//!
//! **Few steps**, for sizes at which latencies dominate. A spread needs at least as many steps as
//! the largest distance between two ranks. A step takes its latency plus the time of the chunks on
//! its busiest link. If the number of steps is given, links carry only as many chunks per step as
//! are needed if the remaining chunks arrive evenly in the remaining steps. Chunks that have
//! travelled the longest distance go first. If some rank does not receive all chunks in time, the
//! search is repeated with more chunks per link and step.

mod search;

use std::rc::Rc;

use crate::building::{MAX_CANDIDATES, MAX_PARTS, claim_steps};
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
            "number of steps in which each block spreads; fewest, the number of hops between the \
             farthest ranks",
        )
        .range("1 to 4294967295, fewest")
        .default(
            "the number that keeps links busy; if no option is given, the faster one of this plan \
             and the plan of fewest",
        ),
    ],
    depends_on_size: true,
    ..Planner::new(
        "matching",
        "Matching",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        "Greedy assignment of chunks to free links, one instant after the other or in few steps",
        "after Won et al., TACOS: Topology-Aware Collective Algorithm Synthesizer, MICRO 2024; \
         Cai et al., SCCL, PPoPP 2021",
        Scope::Any(
            |fabric| LogicalLinks::of(fabric, false).is_some(),
            plan,
            candidates,
        ),
    )
};

/// Numbers of chunks per block to try if the option `chunks` is not set.
const CHUNK_NUMBERS: [u32; 16] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024];

/// Minimum fraction of the estimated time that a larger number of chunks per block must save.
const MIN_RELATIVE_GAIN: f64 = 0.03;

/// Maximum work of a search if no option is set: number of deliveries, times number of logical
/// links, times mean number of logical links into a rank.
const MAX_WORK: u64 = 1 << 29;
/// Maximum work of all searches for one plan: number of deliveries times number of logical links.
const SEARCHES_WORK: u64 = 1 << 20;

/// Maximum number of searches with different seeds for one plan.
const MAX_SEARCHES: u64 = 24;

/// Number of chunks that a search examines in the time in which a transfer is built and simulated,
/// 1 us. Measured: 4.6 to 5.3 chunks per ns, in searches for all_gathers of 128 to 512 chunks per
/// block on three servers of 8 GPUs.
const CHUNKS_PER_TRANSFER: u64 = 5_000;

/// Factors to try if the number of steps is given. A link may carry this factor times the number of
/// chunks per step that is needed on average. The search uses the first factor with which all ranks
/// receive all chunks.
const LOAD_FACTORS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 1e9];

/// Values of the planner's options.
#[derive(Debug, Clone, Copy)]
struct Variant {
    chunks: u32,
    seed: Option<u32>,
    steps: Option<u32>,
}

impl Variant {
    fn spec(self) -> Spec {
        let mut spec = Spec::new(PLANNER.name).with("chunks", self.chunks);
        for (name, value) in [("seed", self.seed), ("steps", self.steps)] {
            if let Some(value) = value {
                spec = spec.with(name, value);
            }
        }
        spec
    }
}

/// Part of a collective in which blocks spread to all ranks: one half of an all_reduce, or the
/// whole of another collective. If `backwards`, the spread is found on reversed links and then
/// reversed in time.
struct Part {
    logical_links: LogicalLinks,
    distances: Vec<u16>,
    backwards: bool,
}

/// Returns the parts of a collective, in the order of their execution. Fails if a rank is
/// unreachable, or if flows do not share links.
fn parts(fabric: &Fabric, kind: CollectiveKind) -> Result<Vec<Part>, PlannerError> {
    let directions: &[bool] = match kind {
        CollectiveKind::AllReduce => &[true, false],
        CollectiveKind::ReduceScatter | CollectiveKind::Reduce => &[true],
        _ => &[false],
    };
    let part = |&backwards: &bool| {
        let logical_links = LogicalLinks::of(fabric, backwards).ok_or_else(|| {
            let reason = "it needs links between known ends that flows share";
            AlgorithmError::refused(PLANNER.name, fabric.ranks(), reason)
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

/// Divides each block of a collective into `chunks` chunks. Returns the spread, which is the same
/// in every [`Part`], and the collective with these chunks.
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

/// Builds the plan. `matchings` has the deliveries of each part, in the order of `parts`.
fn assemble(
    fabric: &Fabric,
    collective: Collective,
    spread: &Spread,
    parts: &[Part],
    matchings: &[Matching],
    name: String,
) -> Plan {
    let mut schedule = Schedule::new(collective);
    for (part, matching) in parts.iter().zip(matchings) {
        interrupt::check();
        let forwards = write_schedule(collective, spread, part, matching);
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
    matching: &Matching,
) -> Schedule {
    let logical_links = &part.logical_links;
    let grid = translations(logical_links, spread);
    let mut schedule = Schedule::new(collective);
    let times = if grid.is_some() {
        logical_links.ranks as usize
    } else {
        1
    };
    schedule.reserve(matching.deliveries.len() * times);
    let mut deliveries = matching.deliveries.iter().peekable();
    for step in 0..matching.steps {
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

/// Returns a lower bound on the number of steps of a part. The bound follows from the number of
/// chunks that each rank must receive, and from the number of hops between the most distant ranks.
fn least_steps(part: &Part, spread: &Spread) -> u64 {
    let logical_links = &part.logical_links;
    let shares = logical_links.rate_multiples();
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

/// Returns the work of a search: number of deliveries times number of logical links.
fn work(part: &Part, spread: &Spread) -> u64 {
    let ranks = u64::from(part.logical_links.ranks);
    let blocks = if spread.root.is_some() { 1 } else { ranks };
    let is_symmetric = translations(&part.logical_links, spread).is_some();
    let logical_links = part.logical_links.all.len() as u64 / if is_symmetric { ranks } else { 1 };
    blocks * u64::from(spread.pieces) * logical_links
}

/// Returns the number of transfers whose simulation takes as long as all searches for one plan.
///
/// If a logical link has no chunk for its rank, the search examines all chunks that the source has
/// or the rank lacks: a quarter of all chunks on average. The search then tries to exchange chunks
/// with the other logical links into the rank, and may examine as many chunks for each of them.
fn transfers_of_searches(part: &Part, spread: &Spread) -> u64 {
    let logical_links = &part.logical_links;
    let into = logical_links.all.len() as u64 / u64::from(logical_links.ranks);
    let blocks = if spread.root.is_some() {
        1
    } else {
        logical_links.ranks
    };
    let chunks = u64::from(spread.pieces) * u64::from(blocks);
    let per_step = (work(part, spread) / chunks).saturating_mul(into) * (chunks / 4);
    least_steps(part, spread)
        .saturating_mul(per_step)
        .saturating_mul(searches(part, spread))
        / CHUNKS_PER_TRANSFER
}

/// Returns the number of searches for one plan.
fn searches(part: &Part, spread: &Spread) -> u64 {
    (SEARCHES_WORK / work(part, spread).max(1)).clamp(2, MAX_SEARCHES)
}

/// Returns whether a search takes too long. The time to assign chunks to a rank's logical links
/// grows with the square of their number.
fn takes_too_long(part: &Part, spread: &Spread) -> bool {
    let into = part.logical_links.all.len() as u64 / u64::from(part.logical_links.ranks);
    work(part, spread).saturating_mul(into) > MAX_WORK
}

/// Returns the matching with the lowest cost of several searches with different seeds. `None` if no
/// search delivers all chunks.
fn cheapest_matching(
    part: &Part,
    spread: Spread,
    timing: Timing,
    variant: Variant,
) -> Option<Matching> {
    let seeds = match variant.seed {
        Some(seed) => u64::from(seed)..u64::from(seed) + 1,
        None => 0..searches(part, &spread),
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
    let order = |matching: &Matching| (matching.cost, matching.steps);
    if let Some(steps) = variant.steps {
        return LOAD_FACTORS.into_iter().find_map(|factor| {
            let limit = Some((steps, factor));
            let timing = Timing::Steps { limit };
            let matchings = seeds.clone();
            let matchings = matchings.filter_map(|seed| run(timing, ChunkOrder::Farthest, seed));
            matchings.min_by_key(order)
        });
    }
    let enough = match timing {
        Timing::Steps { .. } => least_steps(part, &spread),
        Timing::Clock { .. } => 0,
    };
    let mut cheapest: Option<Matching> = None;
    for seed in seeds {
        let matching = run(timing, ChunkOrder::Rarest, seed)?;
        let is_enough = u64::from(matching.steps) <= enough;
        if cheapest
            .as_ref()
            .is_none_or(|cheapest| order(&matching) < order(cheapest))
        {
            cheapest = Some(matching);
        }
        if is_enough {
            break;
        }
    }
    cheapest
}

/// Returns the number of bytes of the largest chunk of a collective.
fn chunk_bytes(problem: &PlanningProblem<'_>, collective: Collective) -> Result<u64, PlannerError> {
    let least = collective.range_bytes(problem.size, 0, 1)?.get();
    let is_uniform = collective.uniform_chunk_bytes(problem.size).is_some();
    Ok(least + u64::from(!is_uniform))
}

fn build(
    problem: &PlanningProblem<'_>,
    parts: &[Part],
    variant: Variant,
) -> Result<Plan, PlannerError> {
    let (spread, collective) = divide(problem.collective, variant.chunks)?;
    problem.fits(transfers(problem, variant.chunks))?;
    let timing = match problem.method.start {
        Some(StartRule::Link) => {
            let bytes = chunk_bytes(problem, collective)?;
            Timing::Clock { bytes }
        }
        _ => Timing::Steps { limit: None },
    };
    let matchings = parts
        .iter()
        .map(|part| cheapest_matching(part, spread, timing, variant));
    let matchings: Option<Vec<Matching>> = matchings.collect();
    let matchings = matchings.ok_or_else(|| {
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
        &matchings,
        variant.spec().to_string(),
    ))
}

/// Returns the maximum number of hops that a chunk travels.
fn max_hops(problem: &PlanningProblem<'_>, parts: &[Part]) -> u32 {
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

/// Returns the pairs (number of chunks per block to try, estimated time), in ascending order of
/// time.
fn chunk_numbers(problem: &PlanningProblem<'_>, parts: &[Part]) -> Vec<(u32, Time)> {
    let mut numbers = Vec::new();
    for chunks in CHUNK_NUMBERS {
        let Ok((spread, collective)) = divide(problem.collective, chunks) else {
            continue;
        };
        let Ok(bytes) = chunk_bytes(problem, collective) else {
            continue;
        };
        let too_small = chunks > 1 && collective.min_chunk_bytes(problem.size).get() == 0;
        let too_many = transfers(problem, chunks) > problem.max_transfers;
        let too_long = parts.iter().any(|part| takes_too_long(part, &spread));
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
            let step = latency as f64 + bytes as f64 * 8e12 / slowest as f64;
            let mut steps = least_steps(part, &spread) as f64;
            if spread.root.is_some() {
                steps += f64::from(part.distances.iter().copied().max().unwrap_or(0));
            }
            time += steps * step;
        }
        // Plans with more chunks are larger, so they must save time.
        let is_no_gain =
            |&(_, before): &(u32, Time)| time >= before.ps() as f64 * (1.0 - MIN_RELATIVE_GAIN);
        if !numbers.iter().any(is_no_gain) {
            numbers.push((chunks, Time::from_ps(time as u64)));
        }
    }
    numbers.sort_by_key(|&(_, time)| time);
    numbers.truncate(MAX_CANDIDATES);
    numbers
}

/// Returns candidates with several numbers of chunks per block. On fabrics without switches, where
/// data need several hops, there are also candidates with several numbers of steps.
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
    let has_steps =
        |part: &Part| !part.logical_links.has_switches && !takes_too_long(part, &spread);
    if parts.iter().all(has_steps) && transfers(problem, 1) <= problem.max_transfers {
        let farthest = max_hops(problem, &parts);
        let busy = parts.iter().map(|part| least_steps(part, &spread)).max();
        let mut numbers = vec![
            farthest,
            farthest + farthest.div_ceil(4),
            farthest + farthest.div_ceil(2),
        ];
        numbers.dedup();
        // With more steps, links would be as busy as without a given number of steps.
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
        let searched = divide(problem.collective, variant.chunks).map_or(0, |(spread, _)| {
            let of_part = |part| transfers_of_searches(part, &spread);
            parts.iter().map(of_part).sum()
        });
        Candidate {
            name: variant.spec().to_string(),
            slots: 1,
            lower_bound: least,
            estimate: estimate.max(least),
            transfers: transfers(&problem, variant.chunks).max(searched),
            build: Box::new(move |_| Ok(Built::from(build(&problem, &parts, variant)?))),
        }
    };
    Ok(variants.into_iter().map(candidate).collect())
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
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
        Some("fewest") => Some(max_hops(problem, &parts)),
        _ => spec.count("steps", 1, u32::MAX)?,
    };
    let chosen = match steps {
        Some(_) => 1,
        None => chunk_numbers(problem, &parts)
            .first()
            .map_or(1, |number| number.0),
    };
    let variant = Variant {
        chunks: spec.count("chunks", 1, MAX_PARTS)?.unwrap_or(chosen),
        seed: spec.count("seed", 0, u32::MAX)?,
        steps,
    };
    Ok(build(problem, &parts, variant)?.into())
}
