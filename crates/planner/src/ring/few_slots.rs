//! Plans of few slots on rings of wavelengths: recipes with their estimated times, of which the promising ones
//! are made; and the same by name.

use crate::selection::contest::{Contender, LARGE, Made};
use crate::{OnMachine, Planned, PlannerError, Question, Scope};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::spec::Spec;
use opticoll_base::units::Time;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;
use opticoll_simulate::Policy;

/// At most so many are made for one choice.
const MOST_MADE: usize = 3;

/// Of recipes one of which has so many transfers only the one of least estimated time is made.
const VERY_LARGE: u64 = 1 << 20;

/// More stripes than that are more than any fibre has channels.
const MOST_STRIPES: u32 = 4096;

/// A larger plan must save one part in so many of the time.
const WORTH: u64 = 300;

/// A searched plan takes one part in so many longer than its least time, or more: half of 80 chosen ones took 5 % longer.
const USUAL_EXCESS: u64 = 33;

/// How a plan of few slots is made.
pub(crate) trait Recipe: Sized + 'static {
    /// The planner.
    const NAME: &'static str;

    /// Whether it knows what to do on rings with cuts.
    const AROUND_CUTS: bool = false;

    /// The most links of a lightpath of the plan.
    fn longest(&self, ring: &WdmRing) -> u32 {
        ring.ranks.saturating_sub(1)
    }

    /// As typed.
    fn spec(&self) -> Spec;

    /// The transfers or chunks of the plan, whichever are more, at most; of a pipelined plan those of its first chunks.
    fn transfers(&self, ranks: u64) -> u64;

    /// The plan, on a ring without light trees or converters.
    ///
    /// # Errors
    /// Chunks beyond 32 bits.
    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError>;

    /// The recipe that options give, if any.
    ///
    /// # Errors
    /// Options that do not fit the ring or the collective.
    fn given(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<Self>, PlannerError>;

    /// The recipes of least time for a question on a ring of two ranks or more without cuts; those whose lightpaths are
    /// longer than light reaches are left out.
    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<Self>>;
}

/// A recipe with its estimates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Estimate<R> {
    /// Picoseconds.
    pub(crate) time: u64,
    pub(crate) slots: u64,
    pub(crate) recipe: R,
}

impl<R> Estimate<R> {
    /// The time less what light takes over half the ring in every slot: lightpaths of a slot may all be shorter.
    fn without_light(&self, ring: &WdmRing) -> u64 {
        let links = u64::from(ring.ranks / 2) * self.slots;
        let propagation = ring.least_propagation().map_or(u64::MAX, Time::ps);
        let light = propagation.saturating_mul(links);
        self.time.saturating_sub(light)
    }
}

/// Returns the scope of a planner that is a recipe.
pub(crate) const fn scope<R: Recipe>() -> Scope {
    Scope::Rings(OnMachine::new(plan::<R>, contenders::<R>))
}

/// The most promising plans for a collective.
///
/// # Errors
/// A time beyond 64 bits.
pub(crate) fn contenders<'a, R: Recipe>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    if ring.ranks < 2 {
        return Ok(Vec::new());
    }
    let mut estimates = estimated::<R>(ring, question);
    estimates.sort_by_key(|estimate| estimate.time);
    let fastest = estimates.first().map_or(0, |estimate| estimate.time);
    estimates.retain(|estimate| estimate.time / 3 <= fastest / 2);
    let ranks = u64::from(ring.ranks);
    let is_large = |estimate: &Estimate<R>| estimate.recipe.transfers(ranks) >= VERY_LARGE;
    let most = match estimates.iter().any(is_large) {
        true => 1,
        false => MOST_MADE,
    };
    estimates.truncate(most);
    let question = *question;
    Ok(estimates
        .into_iter()
        .map(|estimate| Contender {
            name: estimate.recipe.spec().to_string(),
            slots: 0,
            least: Time::ZERO,
            estimate: Time::from_ps(estimate.time),
            transfers: estimate.recipe.transfers(ranks),
            make: Box::new(move |limit| made(&question, ring, &estimate, limit)),
        })
        .collect())
}

/// Returns a contender whose recipes are searched in its turn, as they are expected to take `least` picoseconds at least.
pub(crate) fn sought<'a, R: Recipe>(
    question: &Question<'a>,
    ring: &'a WdmRing,
    least: u64,
) -> Contender<'a> {
    let ranks = u64::from(ring.ranks);
    let question = *question;
    Contender {
        name: R::NAME.into(),
        slots: 0,
        least: Time::ZERO,
        estimate: Time::from_ps(least.saturating_add(least / USUAL_EXCESS)),
        transfers: question.work(2 * ranks * ranks),
        make: Box::new(move |limit| {
            if limit.is_some_and(|limit| Time::from_ps(slack(least, question.policy())) > limit) {
                return Ok(Made::NotExpected(LONGER));
            }
            let estimates = estimated::<R>(ring, &question).into_iter();
            let Some(fastest) = estimates.min_by_key(|estimate| estimate.time) else {
                return Err(refuse::<R>(ring, "no recipe for it was found".into()));
            };
            made(&question, ring, &fastest, limit)
        }),
    }
}

/// The plan of a recipe, unless it is large and is not expected to take less than the limit.
fn made<R: Recipe>(
    question: &Question<'_>,
    ring: &WdmRing,
    estimate: &Estimate<R>,
    limit: Option<Time>,
) -> Result<Made, PlannerError> {
    let recipe = &estimate.recipe;
    let is_large = recipe.transfers(ring.ranks.into()) > LARGE;
    let least = slack(estimate.without_light(ring), question.policy());
    match limit {
        Some(limit) if is_large && Time::from_ps(least) > limit => Ok(Made::NotExpected(LONGER)),
        _ => Ok(make(question, ring, recipe)?.into()),
    }
}

const LONGER: &str = "it is expected to take longer";

/// The least time that is expected where slots take so long one after the other. Ports that do not wait for one another save a tenth at most.
/// Under other policies, the estimate may be too long by one part in [`WORTH`].
fn slack(time: u64, policy: Policy) -> u64 {
    match policy {
        Policy::EveryStep => time - time / WORTH,
        _ => time / 11 * 10,
    }
}

/// The recipes that a ring has place for.
fn estimated<R: Recipe>(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<R>> {
    if !ring.broken.is_empty() && !R::AROUND_CUTS {
        return Vec::new();
    }
    let mut estimates = R::estimated(ring, question);
    estimates.retain(|estimate| estimate.recipe.longest(ring) <= ring.longest());
    estimates
}

/// The fastest of some recipes and, where that is another one, the one of fewest transfers that takes nearly as long; each beside
/// its transfers.
pub(crate) fn worth_their_size<R: Clone>(all: Vec<(u64, Estimate<R>)>) -> Vec<Estimate<R>> {
    let of_fastest = |(transfers, one): &&(u64, Estimate<R>)| (one.time, *transfers);
    let Some(fastest) = all.iter().min_by_key(of_fastest) else {
        return Vec::new();
    };
    let least = fastest.1.time;
    let near = all
        .iter()
        .filter(|(_, one)| one.time - least <= least / WORTH);
    let smallest = near.min_by_key(|(transfers, one)| (*transfers, one.time));
    let smallest = smallest.filter(|smallest| smallest.0 < fastest.0);
    let both = [Some(fastest), smallest].into_iter().flatten();
    both.map(|(_, estimate)| estimate.clone()).collect()
}

/// The plan of a recipe. One for a ring without light trees or converters holds on any with the same channels.
fn make<R: Recipe>(
    question: &Question<'_>,
    ring: &WdmRing,
    recipe: &R,
) -> Result<Plan, PlannerError> {
    question.fits(recipe.transfers(ring.ranks.into()))?;
    let simple = WdmRing {
        multicast: false,
        converters: false,
        ..ring.clone()
    };
    let mut plan = recipe.plan(&simple, question.collective)?;
    plan.fabric = question.fabric.clone();
    Ok(plan)
}

fn refuse<R: Recipe>(ring: &WdmRing, reason: String) -> PlannerError {
    PlannerError::Algorithm(AlgorithmError::Refused {
        name: R::NAME,
        ranks: ring.ranks,
        reason,
    })
}

/// The plan that a spec names; without options the one that is estimated to be the fastest.
///
/// # Errors
/// Options that do not fit the ring or the collective.
pub(crate) fn plan<R: Recipe>(
    spec: &Spec,
    question: &Question<'_>,
    ring: &WdmRing,
) -> Result<Planned, PlannerError> {
    if !ring.broken.is_empty() && !R::AROUND_CUTS {
        let reason = "it needs a ring without broken links; `detour` leads its plan around them";
        return Err(refuse::<R>(ring, reason.into()));
    }
    let too_far = |links: u32| {
        let reach = ring.longest();
        let reason = format!(
            "its lightpaths span up to {links} links, but light reaches {reach} only; `detour` relays them"
        );
        refuse::<R>(ring, reason)
    };
    if let Some(recipe) = R::given(spec, ring, question.collective)? {
        let links = recipe.longest(ring);
        return match ring.ranks > 1 && links > ring.longest() {
            true => Err(too_far(links)),
            false => make(question, ring, &recipe).map(Planned::from),
        };
    }
    if ring.ranks < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let estimates = estimated::<R>(ring, question);
    let fastest = estimates.iter().min_by_key(|estimate| estimate.time);
    let Some(fastest) = fastest else {
        let most = question.most_transfers;
        return Err(match ring.longest() < ring.ranks - 1 {
            true => too_far(ring.ranks - 1),
            false => PlannerError::NothingFits { most },
        });
    };
    make(question, ring, &fastest.recipe).map(Planned::from)
}

/// Numbers as an option has them: `16x8x8`.
pub(crate) fn joined(numbers: impl Iterator<Item = u32>) -> String {
    let texts: Vec<String> = numbers.map(|number| number.to_string()).collect();
    texts.join("x")
}

/// Numbers joined by `x`, each at least 1.
pub(crate) fn numbers(
    spec: &Spec,
    key: &'static str,
    example: &str,
) -> Result<Option<Vec<u32>>, PlannerError> {
    let Some(text) = spec.option(key) else {
        return Ok(None);
    };
    let parsed: Option<Vec<u32>> = text
        .split('x')
        .map(|number| number.parse().ok().filter(|&number: &u32| number > 0))
        .collect();
    let problem = || format!("must be whole numbers from 1 on, joined by x: {example}");
    Ok(Some(parsed.ok_or_else(|| spec.refuse(key, problem()))?))
}

/// As many numbers as `count`, all 1 where none are given.
pub(crate) fn numbers_for(
    spec: &Spec,
    key: &'static str,
    count: usize,
) -> Result<Vec<u32>, PlannerError> {
    let given = numbers(spec, key, "9x9")?.unwrap_or_else(|| vec![1; count]);
    if given.len() == count {
        return Ok(given);
    }
    let problem = format!("needs one number for each level ({count} here), joined by x");
    Err(spec.refuse(key, problem).into())
}

/// The stripes of so many levels.
pub(crate) fn stripes(spec: &Spec, count: usize) -> Result<Vec<u32>, PlannerError> {
    let stripes = numbers_for(spec, "stripes", count)?;
    if stripes.iter().any(|&stripes| stripes > MOST_STRIPES) {
        let problem = format!("must be {MOST_STRIPES} at most");
        return Err(spec.refuse("stripes", problem).into());
    }
    Ok(stripes)
}

/// Radices with the stripes of each, if they are given, of a recipe that reaches so many ranks by them.
pub(crate) fn radices(spec: &Spec, ranks: u32) -> Result<Option<Vec<(u32, u32)>>, PlannerError> {
    let Some(radices) = numbers(spec, "radices", "9x9")? else {
        return Ok(None);
    };
    let stripes = stripes(spec, radices.len())?;
    if crate::ring::unfold::reaches(ranks, radices.iter().copied()) {
        return Ok(Some(radices.into_iter().zip(stripes).collect()));
    }
    let problem = format!("must reach all {ranks} ranks: their product must not be less");
    Err(spec.refuse("radices", problem).into())
}
