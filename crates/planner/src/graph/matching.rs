//! Greedy matching of links and chunks on the time-expanded graph.
//!
//! Data spreads from rank to rank; `search` matches, instant by instant, free links with chunks that the ranks at their
//! ends have and have not. What each link carries is decided once, so the work grows with what is delivered times the
//! channels into a rank. (TACOS, Won et al., MICRO 2024, made all_gathers so first; here a rank's channels are matched
//! by augmenting paths, and a torus is looked at from rank 0 alone.)
//!
//! An all_gather spreads all blocks, a broadcast that of the root. reduce_scatter and reduce run such a spread backwards
//! that was found with all links reversed; an all_reduce is both, one after the other.
//!
//! **Time.** Under the start rule `link` the matching follows the clock: a link is busy for its latency and a chunk's
//! bytes. Under the other rules ranks go step by step, and a link that is n times as fast as the slowest carries
//! n chunks in a step.

mod search;

use crate::graph::logical_links::Channels;
use crate::selection::contest::{Contender, Contest, ContestOutcome, Made};
use crate::{Planned, Planner, PlannerError, Question, Scope};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Fabric;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};
use opticoll_simulate::fluid::StartRule;
pub(crate) use search::{First, Found, Pace, Spread, search};
use search::{slots_into, translations};

/// The planner that matches links and chunks.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "chunks",
            "chunks that a block or the vector is cut into; of an all_reduce the part of each rank",
        )
        .range("1 to 4096")
        .default("the fastest of a few numbers"),
        OptionRecord::new(
            "seed",
            "seed of what is drawn where chunks are equally good",
        )
        .range("0 to 4294967295")
        .default("the best of a few"),
    ],
    by_size: true,
    ..Planner::new(
        NAME,
        "Matching",
        COLLECTIVES,
        "Greedy matching of links and chunks, instant by instant, on any graph",
        "after Won et al., TACOS: Topology-Aware Collective Algorithm Synthesizer, MICRO 2024",
        Scope::Any(applies, plan, contenders),
    )
};

const NAME: &str = "matching";

/// Returns whether a fabric has links whose channels are known.
pub(super) fn applies(fabric: &Fabric) -> bool {
    Channels::of(fabric, false).is_some()
}

/// What spreads from ranks to ranks, or is that backwards.
pub(crate) const COLLECTIVES: &[CollectiveKind] = &[
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllReduce,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

/// The most chunks of a block.
const MOST_CHUNKS: u32 = 4096;

/// Numbers of chunks that are tried.
const CHUNKS: [u32; 16] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024];

/// The part of the time that more chunks must save.
const WORTH: f64 = 0.03;

/// How many of them are made.
const TRIED: usize = 3;

/// Deliveries times channels that are looked at for a plan without options, and in all searches for one plan.
const MOST_WORK: u64 = 1 << 29;
const WORK: u64 = 1 << 20;

/// The most searches for one plan.
const SEARCHES: u64 = 24;

/// A spread that a collective consists of.
pub(crate) struct Part {
    pub(crate) channels: Channels,
    pub(crate) distances: Vec<u16>,
    pub(crate) backwards: bool,
}

/// The spreads of a collective, in the order in which they run.
///
/// # Errors
/// A fabric without links that flows share, or ranks that others cannot reach.
pub(crate) fn parts(
    fabric: &Fabric,
    kind: CollectiveKind,
    name: &'static str,
) -> Result<Vec<Part>, PlannerError> {
    let directions: &[bool] = match kind {
        CollectiveKind::AllReduce => &[true, false],
        CollectiveKind::ReduceScatter | CollectiveKind::Reduce => &[true],
        _ => &[false],
    };
    let part = |&backwards: &bool| {
        let channels = Channels::of(fabric, backwards).ok_or_else(|| {
            let reason = "it needs links between known ends that flows share".into();
            let ranks = fabric.ranks();
            AlgorithmError::Refused {
                name,
                ranks,
                reason,
            }
        })?;
        let distances = channels.distances().ok_or_else(|| {
            let sentence = "some ranks cannot be reached from others";
            PlacementError::new(PlacementProblem::Unfit, sentence)
        })?;
        Ok(Part {
            channels,
            distances,
            backwards,
        })
    };
    directions.iter().map(part).collect()
}

/// What spreads in the parts of a collective whose blocks are cut into so many chunks, and the collective itself.
///
/// # Errors
/// Too many chunks.
pub(crate) fn cut(
    collective: Collective,
    chunks: u32,
) -> Result<(Spread, Collective), PlannerError> {
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

/// The plan that makes the deliveries found for each part.
pub(crate) fn assembled(
    fabric: &Fabric,
    collective: Collective,
    spread: &Spread,
    parts: &[Part],
    found: &[Found],
    name: String,
) -> Plan {
    let mut schedule = Schedule::new(collective);
    for (part, found) in parts.iter().zip(found) {
        interrupt::check();
        let forwards = written(collective, spread, part, found);
        match part.backwards {
            true => schedule.append(&forwards.reversed(collective), 1),
            false => schedule.append(&forwards, 1),
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    Plan::without_light(fabric, schedule, name)
}

fn written(collective: Collective, spread: &Spread, part: &Part, found: &Found) -> Schedule {
    let channels = &part.channels;
    let grid = translations(channels, spread);
    let mut schedule = Schedule::new(collective);
    let times = if grid.is_some() {
        channels.ranks as usize
    } else {
        1
    };
    schedule.reserve(found.deliveries.len() * times);
    let mut deliveries = found.deliveries.iter().peekable();
    for step in 0..found.steps {
        schedule.begin_step();
        while let Some(one) = deliveries.next_if(|one| one.step == step) {
            let channel = &channels.all[one.channel as usize];
            let Some(grid) = grid else {
                schedule.push(Transfer::copy(one.chunk, channel.from, channel.to));
                continue;
            };
            let (block, piece) = (one.chunk / spread.pieces, one.chunk % spread.pieces);
            for by in 0..channels.ranks {
                let at = |place| grid.moved(place, by, false);
                let chunk = at(block) * spread.pieces + piece;
                schedule.push(Transfer::copy(chunk, at(channel.from), at(channel.to)));
            }
        }
    }
    schedule
}

/// The fewest steps in which all chunks can come over the links into some rank.
pub(crate) fn fewest_steps(part: &Part, spread: &Spread) -> u64 {
    let channels = &part.channels;
    let slowest = channels
        .all
        .iter()
        .map(|one| one.rate)
        .min()
        .unwrap_or(1)
        .max(1);
    let shares: Vec<u64> = channels.rates.iter().map(|rate| rate / slowest).collect();
    let ranks = match translations(channels, spread) {
        Some(_) => 0..1,
        None => 0..channels.ranks,
    };
    let steps = ranks.map(|rank| {
        let pieces = u64::from(spread.pieces);
        let missing = match spread.root {
            Some(root) if root == rank => 0,
            Some(_) => pieces,
            None => pieces * u64::from(channels.ranks - 1),
        };
        missing.div_ceil(slots_into(channels, &shares, rank).max(1))
    });
    let far = u64::from(part.distances.iter().copied().max().unwrap_or(0));
    let far = if spread.root.is_some() { far / 2 } else { far };
    steps.max().unwrap_or(0).max(far)
}

/// How much is looked at in a search.
pub(crate) fn work(part: &Part, spread: &Spread) -> u64 {
    let ranks = u64::from(part.channels.ranks);
    let blocks = if spread.root.is_some() { 1 } else { ranks };
    let folded = translations(&part.channels, spread).is_some();
    let channels = part.channels.all.len() as u64 / if folded { ranks } else { 1 };
    blocks * u64::from(spread.pieces) * channels
}

/// Whether a search takes too long. The time to assign chunks to the channels of a rank grows with
/// the square of their number.
pub(crate) fn is_large(part: &Part, spread: &Spread) -> bool {
    let into = part.channels.all.len() as u64 / u64::from(part.channels.ranks);
    work(part, spread).saturating_mul(into) > MOST_WORK
}

/// The best of a few searches.
fn best(part: &Part, spread: Spread, pace: Pace, seed: Option<u32>) -> Option<Found> {
    let searches = match seed {
        Some(_) => 1,
        None => (WORK / work(part, &spread).max(1)).clamp(2, SEARCHES),
    };
    let enough = match pace {
        Pace::Steps { .. } => fewest_steps(part, &spread),
        Pace::Clock { .. } => 0,
    };
    let mut best: Option<Found> = None;
    for search_number in 0..searches {
        let (first, seed) = match seed {
            Some(seed) => (First::Rarest, seed.into()),
            None if search_number % 2 == 0 => (First::Rarest, search_number / 2),
            None => (First::Farthest, search_number / 2),
        };
        let found = search(&part.channels, &part.distances, spread, pace, first, seed)?;
        let order = |found: &Found| (found.cost, found.steps);
        if best.as_ref().is_none_or(|best| order(&found) < order(best)) {
            best = Some(found);
        }
        if best
            .as_ref()
            .is_some_and(|best| u64::from(best.steps) <= enough)
        {
            break;
        }
    }
    best
}

/// The plan with a number of chunks.
fn matched(
    question: &Question<'_>,
    parts: &[Part],
    chunks: u32,
    seed: Option<u32>,
) -> Result<Plan, PlannerError> {
    let (spread, collective) = cut(question.collective, chunks)?;
    question.fits(transfers(question, chunks))?;
    let pace = match question.method.start {
        Some(StartRule::Link) => {
            let bytes = collective.range_bytes(question.size, 0, 1)?;
            let bytes =
                bytes.get() + u64::from(collective.uniform_chunk_bytes(question.size).is_none());
            Pace::Clock { bytes }
        }
        _ => Pace::Steps { within: None },
    };
    let found = parts.iter().map(|part| best(part, spread, pace, seed));
    let found: Option<Vec<Found>> = found.collect();
    let found = found.ok_or_else(|| {
        let sentence = "some ranks cannot be reached from others";
        PlacementError::new(PlacementProblem::Unfit, sentence)
    })?;
    let mut name = Spec::new(NAME).with("chunks", chunks);
    if let Some(seed) = seed {
        name = name.with("seed", seed);
    }
    let fabric = question.fabric;
    Ok(assembled(
        fabric,
        collective,
        &spread,
        parts,
        &found,
        name.to_string(),
    ))
}

/// The transfers of a plan.
pub(crate) fn transfers(question: &Question<'_>, chunks: u32) -> u64 {
    let ranks = u64::from(question.collective.ranks());
    let blocks = match question.collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        CollectiveKind::AllReduce => 2 * ranks,
        _ => ranks,
    };
    blocks
        .saturating_mul(ranks - 1)
        .saturating_mul(chunks.into())
}

/// The numbers of chunks that are worth trying, the most promising first, each with what it may take.
fn promising(question: &Question<'_>, parts: &[Part]) -> Vec<(u32, Time)> {
    let mut numbers = Vec::new();
    for chunks in CHUNKS {
        let Ok((spread, collective)) = cut(question.collective, chunks) else {
            continue;
        };
        let Ok(bytes) = collective.range_bytes(question.size, 0, 1) else {
            continue;
        };
        let too_small = chunks > 1 && collective.least_chunk_bytes(question.size).get() == 0;
        let too_many = transfers(question, chunks) > question.most_transfers;
        let too_long = parts.iter().any(|part| is_large(part, &spread));
        if too_small || too_many || too_long {
            continue;
        }
        let mut time = 0f64;
        for part in parts {
            let channels = &part.channels.all;
            let slowest = channels
                .iter()
                .map(|one| one.rate)
                .min()
                .unwrap_or(1)
                .max(1);
            let latency = channels.iter().map(|one| one.latency).max().unwrap_or(0);
            let step = latency as f64 + bytes.get() as f64 * 8e12 / slowest as f64;
            let mut steps = fewest_steps(part, &spread) as f64;
            if spread.root.is_some() {
                steps += f64::from(part.distances.iter().copied().max().unwrap_or(0));
            }
            time += steps * step;
        }
        // More chunks make larger plans.
        let enough = |&(_, before): &(u32, Time)| time >= before.ps() as f64 * (1.0 - WORTH);
        if !numbers.iter().any(enough) {
            numbers.push((chunks, Time::from_ps(time as u64)));
        }
    }
    numbers.sort_by_key(|&(_, time)| time);
    numbers.truncate(TRIED);
    numbers
}

fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    if question.fabric.ranks() < 2 {
        return Ok(Vec::new());
    }
    let Ok(parts) = parts(question.fabric, question.collective.kind(), NAME) else {
        return Ok(Vec::new());
    };
    let least = question.least()?;
    let numbers = promising(question, &parts);
    let parts = std::rc::Rc::new(parts);
    let contender = |(chunks, estimate): (u32, Time)| {
        let (parts, question) = (std::rc::Rc::clone(&parts), *question);
        Contender {
            name: Spec::new(NAME).with("chunks", chunks).to_string(),
            slots: 1,
            least,
            estimate: estimate.max(least),
            transfers: transfers(&question, chunks),
            make: Box::new(move |_| {
                let plan = matched(&question, &parts, chunks, None)?;
                Ok(Made::from(plan))
            }),
        }
    };
    Ok(numbers.into_iter().map(contender).collect())
}

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    if question.fabric.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let chunks = spec.count("chunks", 1, MOST_CHUNKS)?;
    let seed = spec.count("seed", 0, u32::MAX)?;
    if chunks.is_none() && seed.is_none() {
        let contest = Contest::new(question)?;
        let contenders = contenders(question)?;
        if !contenders.is_empty() {
            let ContestOutcome { fastest, .. } = contest.run(contenders, Vec::new())?;
            return Ok(fastest?.0.into());
        }
    }
    let parts = parts(question.fabric, question.collective.kind(), NAME)?;
    let number = promising(question, &parts).first().map_or(1, |one| one.0);
    Ok(matched(question, &parts, chunks.unwrap_or(number), seed)?.into())
}
