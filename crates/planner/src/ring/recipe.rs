//! Recipes: parameters of plans of few slots on WDM rings. A planner estimates the time of each
//! recipe, and builds plans only for the recipes with the shortest estimated times. If the user
//! specifies a recipe by options, the planner builds the plan of this recipe.

use crate::building::{GAIN_DIVISOR, MAX_CANDIDATES, MAX_PARTS, SEARCHED_TRANSFERS};
use crate::selection::evaluation::{Built, Candidate, QUICK_TRANSFERS};
use crate::{FamilyFunctions, Planned, PlannerError, PlanningProblem, Scope};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::spec::Spec;
use opticoll_base::units::Time;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;
use opticoll_simulate::Policy;

/// Divisor d: if only a lower bound b on the time of a plan is known, the estimated time is b + b /
/// d. (In the median of 80 plans, the excess over the bound was 5 %.)
const USUAL_EXCESS_DIVISOR: u64 = 33;

/// Parameters of a plan of few slots on a WDM ring.
pub(crate) trait Recipe: Sized + 'static {
    /// Name of the planner.
    const NAME: &'static str;

    /// True if the planner supports rings with broken links.
    const SUPPORTS_CUTS: bool = false;

    /// Returns the number of links of the plan's longest lightpath, or an upper bound on this
    /// number.
    fn longest(&self, ring: &WdmRing) -> u32 {
        ring.ranks.saturating_sub(1)
    }

    /// Returns the specification of the planner with all options of the recipe.
    fn spec(&self) -> Spec;

    /// Returns an upper bound on two numbers: the transfers that the plan stores, and the chunks.
    fn transfers(&self, ranks: u64) -> u64;

    /// Builds the plan. `ring` has neither light trees nor converters.
    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError>;

    /// Reads the recipe from the options of `spec`. Returns `None` if `spec` has no options.
    fn from_options(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<Self>, PlannerError>;

    /// Returns the recipes with the shortest estimated times. The ring must have at least two
    /// ranks. The ring may have broken links only if [`Recipe::SUPPORTS_CUTS`] is true. Lightpaths
    /// may exceed the reach, because the caller removes such recipes.
    fn estimates(ring: &WdmRing, problem: &PlanningProblem<'_>) -> Vec<Estimate<Self>>;
}

/// Recipe, with the estimated time and the number of slots of its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Estimate<R> {
    /// Estimated time of the plan in picoseconds.
    pub(crate) time: u64,
    pub(crate) slots: u64,
    pub(crate) recipe: R,
}

impl<R> Estimate<R> {
    /// Returns the estimated time, in picoseconds, minus the propagation time of lightpaths over
    /// half the ring. (The estimate assumes that every slot has a lightpath over half the ring.)
    fn time_without_propagation(&self, ring: &WdmRing) -> u64 {
        let links = u64::from(ring.ranks / 2) * self.slots;
        let propagation = ring.least_propagation().map_or(u64::MAX, Time::ps);
        let propagation_of_slots = propagation.saturating_mul(links);
        self.time.saturating_sub(propagation_of_slots)
    }
}

pub(crate) const fn scope<R: Recipe>() -> Scope {
    Scope::Rings(FamilyFunctions::new(plan::<R>, candidates::<R>))
}

/// Returns the recipes with the shortest estimated times as candidates for `auto`.
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
    // If one plan is large, only the plan with the shortest estimated time is built.
    let is_large =
        |estimate: &Estimate<R>| estimate.recipe.transfers(ranks) >= SEARCHED_TRANSFERS / 2;
    let max_built = match estimates.iter().any(is_large) {
        true => 1,
        false => MAX_CANDIDATES,
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

/// Returns a candidate that searches for its recipe only when `auto` requests the plan. The
/// expected sum of the plan's slot times is at least `min_time` picoseconds.
pub(crate) fn deferred_candidate<'a, R: Recipe>(
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

/// Builds the plan of a recipe. A large plan is not built if it is expected to take longer than
/// `limit`.
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

/// Printed reason for a plan that is not built because its expected time exceeds the limit.
const LONGER: &str = "it is expected to take longer";

/// Returns a lower estimate of a plan's time in picoseconds. `time` is the sum of the slot times in
/// picoseconds. (Under most policies, the plan may take less than this sum, because ports do not
/// wait for each other.)
fn min_expected_time(time: u64, policy: Policy) -> u64 {
    match policy {
        Policy::EveryStep => time - time / GAIN_DIVISOR,
        _ => time / 11 * 10,
    }
}

/// Returns the estimates of all recipes whose lightpaths do not exceed the reach.
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

/// Returns the fastest recipe. If other recipes are nearly as fast and have fewer transfers, also
/// returns the recipe with the fewest transfers. Each entry of `estimates` is the number of
/// transfers of a plan, and the estimate for the plan's recipe.
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

/// Builds the plan of a recipe for a ring without light trees and converters. (This plan is also
/// valid on a ring with light trees or converters.)
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
    PlannerError::Algorithm(AlgorithmError::refused(R::NAME, ring.ranks, reason))
}

/// Builds the plan of the recipe in the options of `spec`. If `spec` has no options, builds the
/// plan with the shortest estimated time.
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

/// Returns whether `chunks` chunks can be divided into `parts` parts such that the largest part has
/// at most 1.03 times the mean number of chunks.
pub(crate) fn is_evenly_divisible(chunks: u128, parts: u32) -> bool {
    let parts = u128::from(parts);
    chunks.div_ceil(parts) * parts * 100 <= chunks * 103
}

/// Formats numbers as the value of an option, such as `16x8x8`.
pub(crate) fn joined(numbers: impl Iterator<Item = u32>) -> String {
    let texts: Vec<String> = numbers.map(|number| number.to_string()).collect();
    texts.join("x")
}

/// Reads the value of option `key`: positive numbers joined by `x`. Returns `None` if `spec` does
/// not have the option.
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

/// Reads the value of option `key`: `count` positive numbers joined by `x`. If `spec` does not have
/// the option, returns `count` ones.
pub(crate) fn numbers_for(
    spec: &Spec,
    key: &'static str,
    count: usize,
) -> Result<Vec<u32>, PlannerError> {
    let numbers = numbers(spec, key, "9x9")?.unwrap_or_else(|| vec![1; count]);
    if numbers.len() == count {
        return Ok(numbers);
    }
    let error = format!("needs one number for each level ({count} here), joined by x");
    Err(spec.refuse(key, error).into())
}

/// Reads the option `stripes`, which has one number for each of `count` levels.
pub(crate) fn stripes(spec: &Spec, count: usize) -> Result<Vec<u32>, PlannerError> {
    let stripes = numbers_for(spec, "stripes", count)?;
    if stripes.iter().any(|&stripes| stripes > MAX_PARTS) {
        let error = format!("must be at most {MAX_PARTS}");
        return Err(spec.refuse("stripes", error).into());
    }
    Ok(stripes)
}

/// Reads the options `radices` and `stripes` of a radix tree over `ranks` ranks. Each entry of the
/// result is the radix and the number of stripes of a level. Returns `None` if `spec` does not have
/// the option `radices`.
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
