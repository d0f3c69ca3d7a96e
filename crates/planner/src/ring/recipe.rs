//! Recipes of plans of few slots on WDM rings. A planner estimates the times of its recipes and
//! builds the plans of the promising ones, or the plan of the recipe that options give.

use crate::selection::evaluation::{Built, Candidate, QUICK_TRANSFERS};
use crate::{FamilyFunctions, Planned, PlannerError, PlanningProblem, Scope};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::spec::Spec;
use opticoll_base::units::Time;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;
use opticoll_simulate::Policy;

/// Maximum number of plans that one planner builds for a selection.
const MAX_BUILT: usize = 3;

/// Number of transfers of a recipe from which on only the recipe of the least estimated time is
/// built.
const MIN_TRANSFERS_OF_SINGLE_PLAN: u64 = 1 << 20;

/// Largest accepted number of stripes, more than the number of channels of any fibre.
const MAX_STRIPES: u32 = 4096;

/// Minimum relative gain in time that justifies more transfers, as a divisor: 1/300.
const GAIN_DIVISOR: u64 = 300;

/// Relative excess of a searched plan's time over its minimum, as a divisor: 1/33. Half of 80
/// chosen plans took 5 % longer than their minimum.
const USUAL_EXCESS_DIVISOR: u64 = 33;

/// Recipe of a plan of few slots.
pub(crate) trait Recipe: Sized + 'static {
    /// Name of the planner.
    const NAME: &'static str;

    /// True if plans exist on rings with broken links.
    const SUPPORTS_CUTS: bool = false;

    /// Returns the maximum number of links of a lightpath of the plan.
    fn longest(&self, ring: &WdmRing) -> u32 {
        ring.ranks.saturating_sub(1)
    }

    /// Returns the specification of the recipe, with all options.
    fn spec(&self) -> Spec;

    /// Returns an upper bound on the number of transfers or of chunks of the plan, whichever is
    /// larger; for a pipelined plan, of its first chunks.
    fn transfers(&self, ranks: u64) -> u64;

    /// Returns the plan, on a ring without light trees or converters.
    ///
    /// # Errors
    /// More chunks than 32 bits can count.
    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError>;

    /// Returns the recipe that options give, or `None` if there are no options.
    ///
    /// # Errors
    /// Options that do not fit the ring or the collective.
    fn from_options(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<Self>, PlannerError>;

    /// Returns the recipes of the least estimated times for a error on a ring of two or more
    /// ranks; without cuts unless [`Recipe::SUPPORTS_CUTS`]. Recipes whose lightpaths exceed the
    /// reach of light are removed later.
    fn estimates(ring: &WdmRing, problem: &PlanningProblem<'_>) -> Vec<Estimate<Self>>;
}

/// Recipe with its estimates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Estimate<R> {
    /// Time in picoseconds.
    pub(crate) time: u64,
    pub(crate) slots: u64,
    pub(crate) recipe: R,
}

impl<R> Estimate<R> {
    /// Returns the estimated time, in picoseconds, without the propagation over half the ring in
    /// every slot: all lightpaths of a slot may be shorter.
    fn time_without_propagation(&self, ring: &WdmRing) -> u64 {
        let links = u64::from(ring.ranks / 2) * self.slots;
        let propagation = ring.least_propagation().map_or(u64::MAX, Time::ps);
        let propagation_of_slots = propagation.saturating_mul(links);
        self.time.saturating_sub(propagation_of_slots)
    }
}

/// Returns the scope of a planner whose plans are recipes.
pub(crate) const fn scope<R: Recipe>() -> Scope {
    Scope::Rings(FamilyFunctions::new(plan::<R>, candidates::<R>))
}

/// Returns candidates for the most promising recipes of a collective.
///
/// # Errors
/// A time beyond 64 bits.
pub(crate) fn candidates<'a, R: Recipe>(
    problem: &PlanningProblem<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    if ring.ranks < 2 {
        return Ok(Vec::new());
    }
    let mut estimates = feasible_estimates::<R>(ring, problem);
    estimates.sort_by_key(|estimate| estimate.time);
    let fastest = estimates.first().map_or(0, |estimate| estimate.time);
    estimates.retain(|estimate| estimate.time / 3 <= fastest / 2);
    let ranks = u64::from(ring.ranks);
    let is_large =
        |estimate: &Estimate<R>| estimate.recipe.transfers(ranks) >= MIN_TRANSFERS_OF_SINGLE_PLAN;
    let max_built = match estimates.iter().any(is_large) {
        true => 1,
        false => MAX_BUILT,
    };
    estimates.truncate(max_built);
    let problem = *problem;
    Ok(estimates
        .into_iter()
        .map(|estimate| Candidate {
            name: estimate.recipe.spec().to_string(),
            slots: 0,
            lower_bound: Time::ZERO,
            estimate: Time::from_ps(estimate.time),
            transfers: estimate.recipe.transfers(ranks),
            build: Box::new(move |limit| build_within(&problem, ring, &estimate, limit)),
        })
        .collect())
}

/// Returns a candidate whose recipes are searched only in its turn. They are expected to take at
/// least `min_time` picoseconds.
pub(crate) fn searched_contender<'a, R: Recipe>(
    problem: &PlanningProblem<'a>,
    ring: &'a WdmRing,
    min_time: u64,
) -> Candidate<'a> {
    let ranks = u64::from(ring.ranks);
    let problem = *problem;
    let expected = Time::from_ps(min_expected_time(min_time, problem.policy()));
    Candidate {
        name: R::NAME.into(),
        slots: 0,
        lower_bound: Time::ZERO,
        estimate: Time::from_ps(min_time.saturating_add(min_time / USUAL_EXCESS_DIVISOR)),
        transfers: problem.work(2 * ranks * ranks),
        build: Box::new(move |limit| {
            if limit.is_some_and(|limit| expected > limit) {
                return Ok(Built::NotExpected(LONGER));
            }
            let estimates = feasible_estimates::<R>(ring, &problem).into_iter();
            let Some(fastest) = estimates.min_by_key(|estimate| estimate.time) else {
                return Err(refuse::<R>(ring, "no recipe for it was found".into()));
            };
            build_within(&problem, ring, &fastest, limit)
        }),
    }
}

/// Builds the plan of a recipe, unless the recipe is large and is not expected to take less time
/// than `limit`.
fn build_within<R: Recipe>(
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
    estimate: &Estimate<R>,
    limit: Option<Time>,
) -> Result<Built, PlannerError> {
    let recipe = &estimate.recipe;
    let is_large = recipe.transfers(ring.ranks.into()) > QUICK_TRANSFERS;
    let min_time = min_expected_time(estimate.time_without_propagation(ring), problem.policy());
    match limit {
        Some(limit) if is_large && Time::from_ps(min_time) > limit => {
            Ok(Built::NotExpected(LONGER))
        }
        _ => Ok(build(problem, ring, recipe)?.into()),
    }
}

/// Reason why a plan is not built.
const LONGER: &str = "it is expected to take longer";

/// Returns a lower estimate of the plan's time in picoseconds, given the sum of its slot times.
/// Ports that do not wait for one another save at most a tenth; under `every_step` the estimate may
/// be too long by 1/[`GAIN_DIVISOR`].
fn min_expected_time(time: u64, policy: Policy) -> u64 {
    match policy {
        Policy::EveryStep => time - time / GAIN_DIVISOR,
        _ => time / 11 * 10,
    }
}

/// Returns the estimates of the recipes that are possible on the ring.
fn feasible_estimates<R: Recipe>(
    ring: &WdmRing,
    problem: &PlanningProblem<'_>,
) -> Vec<Estimate<R>> {
    if !ring.broken.is_empty() && !R::SUPPORTS_CUTS {
        return Vec::new();
    }
    let mut estimates = R::estimates(ring, problem);
    estimates.retain(|estimate| estimate.recipe.longest(ring) <= ring.longest());
    estimates
}

/// Returns the fastest recipe and, if it is a different one, the recipe of the fewest transfers
/// that takes nearly as long. Each estimate is given with its number of transfers.
pub(crate) fn fastest_and_smallest<R: Clone>(
    estimates: Vec<(u64, Estimate<R>)>,
) -> Vec<Estimate<R>> {
    let speed = |(transfers, estimate): &&(u64, Estimate<R>)| (estimate.time, *transfers);
    let Some(fastest) = estimates.iter().min_by_key(speed) else {
        return Vec::new();
    };
    let min_time = fastest.1.time;
    let nearly_fastest = estimates
        .iter()
        .filter(|(_, estimate)| estimate.time - min_time <= min_time / GAIN_DIVISOR);
    let smallest = nearly_fastest.min_by_key(|(transfers, estimate)| (*transfers, estimate.time));
    let smallest = smallest.filter(|smallest| smallest.0 < fastest.0);
    let chosen = [Some(fastest), smallest].into_iter().flatten();
    chosen.map(|(_, estimate)| estimate.clone()).collect()
}

/// Builds the plan of a recipe. A plan for a plain ring is also valid on a ring with the same
/// channels that has light trees or converters.
fn build<R: Recipe>(
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
    recipe: &R,
) -> Result<Plan, PlannerError> {
    problem.fits(recipe.transfers(ring.ranks.into()))?;
    let simple = WdmRing {
        multicast: false,
        converters: false,
        ..ring.clone()
    };
    let mut plan = recipe.plan(&simple, problem.collective)?;
    plan.fabric = problem.fabric.clone();
    Ok(plan)
}

fn refuse<R: Recipe>(ring: &WdmRing, reason: String) -> PlannerError {
    PlannerError::Algorithm(AlgorithmError::Refused {
        name: R::NAME,
        ranks: ring.ranks,
        reason,
    })
}

/// Returns the plan that a specification names: the recipe of its options or, without options, the
/// recipe of the least estimated time.
///
/// # Errors
/// Options that do not fit the ring or the collective; a ring without a recipe.
pub(crate) fn plan<R: Recipe>(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
) -> Result<Planned, PlannerError> {
    if !ring.broken.is_empty() && !R::SUPPORTS_CUTS {
        let reason =
            "it needs a ring without broken links; `faulty_ring` reroutes its plan around them";
        return Err(refuse::<R>(ring, reason.into()));
    }
    let too_far = |links: u32| {
        let reach = ring.longest();
        let reason = format!(
            "its lightpaths span up to {links} links, but the reach of light is {reach}; \
             `faulty_ring` relays them"
        );
        refuse::<R>(ring, reason)
    };
    if let Some(recipe) = R::from_options(spec, ring, problem.collective)? {
        let links = recipe.longest(ring);
        return match ring.ranks > 1 && links > ring.longest() {
            true => Err(too_far(links)),
            false => build(problem, ring, &recipe).map(Planned::from),
        };
    }
    if ring.ranks < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
    let estimates = feasible_estimates::<R>(ring, problem);
    let fastest = estimates.iter().min_by_key(|estimate| estimate.time);
    let Some(fastest) = fastest else {
        let most = problem.max_transfers;
        return Err(match ring.longest() < ring.ranks - 1 {
            true => too_far(ring.ranks - 1),
            false => PlannerError::NothingFits { most },
        });
    };
    build(problem, ring, &fastest.recipe).map(Planned::from)
}

/// Returns whether `chunks` can be cut into `parts` parts none of which has more than 3 % above the
/// mean number of chunks.
pub(crate) fn is_evenly_divisible(chunks: u128, parts: u32) -> bool {
    let parts = u128::from(parts);
    chunks.div_ceil(parts) * parts * 100 <= chunks * 103
}

/// Returns numbers as the text of an option, such as `16x8x8`.
pub(crate) fn joined(numbers: impl Iterator<Item = u32>) -> String {
    let texts: Vec<String> = numbers.map(|number| number.to_string()).collect();
    texts.join("x")
}

/// Reads the numbers of an option, joined by `x`, each at least 1; `None` if the option is not
/// given.
///
/// # Errors
/// A text that is not of this form.
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
    let error = || format!("must be whole numbers of at least 1, joined by x: {example}");
    Ok(Some(parsed.ok_or_else(|| spec.refuse(key, error()))?))
}

/// Reads `count` numbers of an option, all of them 1 if the option is not given.
///
/// # Errors
/// A text that is not of this form, or has another count.
pub(crate) fn numbers_for(
    spec: &Spec,
    key: &'static str,
    count: usize,
) -> Result<Vec<u32>, PlannerError> {
    let given = numbers(spec, key, "9x9")?.unwrap_or_else(|| vec![1; count]);
    if given.len() == count {
        return Ok(given);
    }
    let error = format!("needs one number for each level ({count} here), joined by x");
    Err(spec.refuse(key, error).into())
}

/// Reads the option `stripes` for `count` levels.
///
/// # Errors
/// As [`numbers_for`], or a number above 4,096.
pub(crate) fn stripes(spec: &Spec, count: usize) -> Result<Vec<u32>, PlannerError> {
    let stripes = numbers_for(spec, "stripes", count)?;
    if stripes.iter().any(|&stripes| stripes > MAX_STRIPES) {
        let error = format!("must be at most {MAX_STRIPES}");
        return Err(spec.refuse("stripes", error).into());
    }
    Ok(stripes)
}

/// Reads the radices with the stripes of each, of a recipe that must reach `ranks` ranks; `None` if
/// the option is not given.
///
/// # Errors
/// As [`stripes`], or radices whose tree has fewer ranks.
pub(crate) fn radices(spec: &Spec, ranks: u32) -> Result<Option<Vec<(u32, u32)>>, PlannerError> {
    let Some(radices) = numbers(spec, "radices", "9x9")? else {
        return Ok(None);
    };
    let stripes = stripes(spec, radices.len())?;
    if crate::ring::radix_tree::are_sufficient(ranks, radices.iter().copied()) {
        return Ok(Some(radices.into_iter().zip(stripes).collect()));
    }
    let error = format!("must reach all {ranks} ranks: their product must be at least {ranks}");
    Err(spec.refuse("radices", error).into())
}
