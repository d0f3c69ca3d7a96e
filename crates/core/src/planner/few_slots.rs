//! Plans of few slots on rings of wavelengths: recipes with their estimated times, of which the promising ones
//! are made; and the same by name.

use super::contest::Contender;
use super::{Planned, PlannerError, Question, least};
use crate::algorithm::AlgorithmError;
use crate::collective::Collective;
use crate::fabric::Fabric;
use crate::family::wdm_ring::WdmRing;
use crate::plan::{AnyPlan, Plan};
use crate::spec::Spec;
use crate::units::Time;

/// At most so many are made for one choice.
const MOST_MADE: usize = 3;

/// More stripes than that are more than any fibre has channels.
const MOST_STRIPES: u32 = 4096;

/// How a plan of few slots is made.
pub(super) trait Recipe: Sized + 'static {
    /// The planner.
    const NAME: &'static str;

    /// As typed.
    fn spec(&self) -> Spec;

    /// The transfers or chunks of the plan, whichever are more, at most.
    fn transfers(&self, ranks: u64) -> u64;

    /// The plan.
    ///
    /// # Errors
    /// Chunks beyond 32 bits.
    fn plan(&self, fabric: &Fabric, collective: Collective) -> Result<Plan, PlannerError>;

    /// The recipe that options give, if any.
    ///
    /// # Errors
    /// Options that do not fit the ring or the collective.
    fn given(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<Self>, PlannerError>;

    /// The recipes of least time for a question on a ring of two ranks or more.
    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<Self>>;
}

/// A recipe with its estimates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Estimate<R> {
    /// Picoseconds.
    pub(super) time: u64,
    pub(super) slots: u64,
    pub(super) recipe: R,
}

/// The most promising plans for a collective.
///
/// # Errors
/// A time beyond 64 bits.
pub(super) fn contenders<'a, R: Recipe>(
    question: &Question<'a>,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let Some(ring) = question
        .fabric
        .downcast::<WdmRing>()
        .filter(|ring| ring.ranks > 1)
    else {
        return Ok(Vec::new());
    };
    let mut estimates = match suits(ring) {
        true => R::estimated(ring, question),
        false => Vec::new(),
    };
    estimates.sort_by_key(|estimate| estimate.time);
    let fastest = estimates.first().map_or(0, |estimate| estimate.time);
    estimates.retain(|estimate| estimate.time / 3 <= fastest / 2);
    estimates.truncate(MOST_MADE);
    let least = least::of_collective(question)?;
    let ranks = u64::from(ring.ranks);
    let question = *question;
    Ok(estimates
        .into_iter()
        .map(|Estimate { time, recipe, .. }| Contender {
            name: recipe.spec().to_string(),
            slots: 0,
            least,
            estimate: Time::from_ps(time),
            transfers: recipe.transfers(ranks),
            make: Box::new(move |_| Ok(AnyPlan::Full(make(&question, &recipe)?).into())),
        })
        .collect())
}

/// Whether lightpaths may go from any rank to any other both ways, which all plans of few slots need,
/// and deliver at their end only: light trees cannot be run backwards.
pub(super) fn suits(ring: &WdmRing) -> bool {
    !ring.multicast
        && ring.broken.is_empty()
        && (ring.ranks < 2 || ring.longest() >= ring.ranks - 1)
}

fn make<R: Recipe>(question: &Question<'_>, recipe: &R) -> Result<Plan, PlannerError> {
    let transfers = recipe.transfers(u64::from(question.fabric.ranks()));
    question.fits(transfers)?;
    recipe.plan(question.fabric, question.collective)
}

/// The plan that a spec names; without options the one that is estimated to be the fastest.
///
/// # Errors
/// Options that do not fit the ring or the collective.
pub(super) fn plan<R: Recipe>(
    spec: &Spec,
    question: &Question<'_>,
) -> Result<Planned, PlannerError> {
    let ring = question.fabric.needed::<WdmRing>(R::NAME)?;
    if !suits(ring) {
        let reason =
            "it needs a ring without multicast, broken links or limits on how far light goes";
        return Err(AlgorithmError::Refused {
            name: R::NAME,
            ranks: ring.ranks,
            reason: reason.into(),
        }
        .into());
    }
    if let Some(recipe) = R::given(spec, ring, question.collective)? {
        return make(question, &recipe).map(Planned::from);
    }
    if ring.ranks < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let estimates = R::estimated(ring, question);
    let fastest = estimates.iter().min_by_key(|estimate| estimate.time);
    let most = question.most_transfers;
    let fastest = fastest.ok_or(PlannerError::NothingFits { most })?;
    make(question, &fastest.recipe).map(Planned::from)
}

/// Numbers as an option has them: `16x8x8`.
pub(super) fn joined(numbers: impl Iterator<Item = u32>) -> String {
    let texts: Vec<String> = numbers.map(|number| number.to_string()).collect();
    texts.join("x")
}

/// Numbers joined by `x`, each at least 1.
pub(super) fn numbers(
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
pub(super) fn numbers_for(
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
pub(super) fn stripes(spec: &Spec, count: usize) -> Result<Vec<u32>, PlannerError> {
    let stripes = numbers_for(spec, "stripes", count)?;
    if stripes.iter().any(|&stripes| stripes > MOST_STRIPES) {
        let problem = format!("must be {MOST_STRIPES} at most");
        return Err(spec.refuse("stripes", problem).into());
    }
    Ok(stripes)
}

/// Radices with the stripes of each, if they are given, of a recipe that reaches so many ranks by them.
pub(super) fn radices(spec: &Spec, ranks: u32) -> Result<Option<Vec<(u32, u32)>>, PlannerError> {
    let Some(radices) = numbers(spec, "radices", "9x9")? else {
        return Ok(None);
    };
    let stripes = stripes(spec, radices.len())?;
    if super::unfold::reaches(ranks, radices.iter().copied()) {
        return Ok(Some(radices.into_iter().zip(stripes).collect()));
    }
    let problem = format!("must reach all {ranks} ranks: their product must not be less");
    Err(spec.refuse("radices", problem).into())
}
