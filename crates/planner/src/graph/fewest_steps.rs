//! Few steps first, then bandwidth: for sizes at which latencies count most.
//!
//! A spread over channels (see [`crate::graph::matching`]) takes as many steps as the farthest two ranks are apart, d, and no
//! fewer. Within a number of steps the links should carry few chunks: what a step costs is its latency and the chunks of its
//! busiest link. So in each step links carry only as many chunks as would be needed if what is left came evenly in the
//! steps to come, and those that have come farthest first; where that leaves some rank behind, more per step.

use std::rc::Rc;

use crate::graph::matching::{self, First, Found, Pace, Part, Spread};
use crate::selection::contest::{Contender, Contest, ContestOutcome, Made};
use crate::{
    Planned, Planner, PlannerError, Question, Scope, graph::logical_links as channels,
    selection::least,
};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::plan::Plan;

/// The planner of few steps.
pub(crate) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "steps",
        "steps of each spread, at least the hops between the farthest ranks",
    )
    .range("1 to 4294967295")
    .default("the fastest of a few numbers")],
    by_size: true,
    ..Planner::new(
        NAME,
        "Fewest steps",
        matching::COLLECTIVES,
        "As few steps as ranks are hops apart, then as few chunks per link as that allows, on any graph",
        "opticoll; optimal trade-offs by search in Cai et al., SCCL, PPoPP 2021",
        Scope::Any(matching::applies, plan, contenders),
    )
};

const NAME: &str = "fewest_steps";

/// How many times what is needed on average links may carry in a step: the first that does is taken.
const MORE: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 1e9];

/// Searches for each of them, where plans are small.
const SEARCHES: u64 = 16;

/// Deliveries times channels that are looked at in all searches for a plan.
const WORK: u64 = 1 << 20;

/// The spread that loads links least among those found.
fn best(part: &Part, spread: Spread, steps: u32) -> Option<Found> {
    let searches = (WORK / matching::work(part, &spread).max(1)).clamp(1, SEARCHES);
    for more in MORE {
        let within = Some((steps, more));
        let found = (0..searches).filter_map(|seed| {
            let pace = Pace::Steps { within };
            let first = First::Farthest;
            matching::search(&part.channels, &part.distances, spread, pace, first, seed)
        });
        let best = found.min_by_key(|found| (found.cost, found.steps));
        if best.is_some() {
            return best;
        }
    }
    None
}

fn spread_in(question: &Question<'_>, parts: &[Part], steps: u32) -> Result<Plan, PlannerError> {
    let (spread, collective) = matching::cut(question.collective, 1)?;
    question.fits(matching::transfers(question, 1))?;
    let found: Option<Vec<Found>> = parts.iter().map(|part| best(part, spread, steps)).collect();
    let found = found.ok_or_else(|| {
        let sentence = format!("some ranks are more than {steps} steps apart");
        PlacementError::new(PlacementProblem::Unfit, &sentence)
    })?;
    let name = Spec::new(NAME).with("steps", steps).to_string();
    Ok(matching::assembled(
        question.fabric,
        collective,
        &spread,
        parts,
        &found,
        name,
    ))
}

/// The hops between the farthest ranks that anything spreads between.
fn farthest(question: &Question<'_>, parts: &[Part]) -> u32 {
    let far = parts.iter().map(|part| {
        let ranks = part.channels.ranks as usize;
        match matching::cut(question.collective, 1) {
            Ok((
                Spread {
                    root: Some(root), ..
                },
                _,
            )) => part.distances[root as usize * ranks..][..ranks]
                .iter()
                .max(),
            _ => part.distances.iter().max(),
        }
    });
    far.flatten().max().copied().unwrap_or(0).into()
}

/// Plans of a few numbers of steps. None where channels are left out: through switches one step reaches all ranks.
fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    if question.fabric.ranks() < 2 || channels::are_some_left_out(question.fabric) {
        return Ok(Vec::new());
    }
    let kind = question.collective.kind();
    let Ok(parts) = matching::parts(question.fabric, kind, NAME) else {
        return Ok(Vec::new());
    };
    let (spread, _) = matching::cut(question.collective, 1)?;
    let is_large = parts.iter().any(|part| matching::is_large(part, &spread));
    let transfers = matching::transfers(question, 1);
    if is_large || transfers > question.most_transfers {
        return Ok(Vec::new());
    }
    let least = question.least()?;
    let far = farthest(question, &parts);
    let one_each = parts
        .iter()
        .map(|part| matching::fewest_steps(part, &spread))
        .max();
    let mut numbers = vec![far, far + far.div_ceil(4), far + far.div_ceil(2)];
    numbers.dedup();
    let ways = parts.len() as u128;
    let parts = Rc::new(parts);
    let mut contenders: Vec<Contender<'a>> = Vec::new();
    for (at, steps) in numbers.into_iter().enumerate() {
        if at > 0 && u64::from(steps) >= one_each.unwrap_or(0) {
            break;
        }
        let all_steps = u128::from(steps) * ways;
        let expected = least::of_question(question, all_steps);
        let (parts, question) = (Rc::clone(&parts), *question);
        contenders.push(Contender {
            name: Spec::new(NAME).with("steps", steps).to_string(),
            slots: 1,
            least,
            estimate: least.max(expected).plus(Time::from_ps(at as u64))?,
            transfers,
            make: Box::new(move |_| {
                let plan = spread_in(&question, &parts, steps)?;
                Ok(Made::from(plan))
            }),
        });
    }
    Ok(contenders)
}

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    if question.fabric.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let contenders = match spec.option("steps") {
        None => contenders(question)?,
        Some(_) => Vec::new(),
    };
    if contenders.is_empty() {
        let parts = matching::parts(question.fabric, question.collective.kind(), NAME)?;
        let far = farthest(question, &parts);
        let steps = spec.count("steps", 1, u32::MAX)?.unwrap_or(far);
        return Ok(spread_in(question, &parts, steps)?.into());
    }
    let ContestOutcome { fastest, .. } = Contest::new(question)?.run(contenders, Vec::new())?;
    Ok(fastest?.0.into())
}
