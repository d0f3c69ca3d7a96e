//! Search for the fastest of many candidates without simulating all of them.
//!
//! Every candidate has a lower bound on its time and an estimate of its time. Candidates are built
//! and simulated in the order of their estimates. The *limit* is the time of the fastest plan so
//! far or, if several plans are wanted, of the slowest of these plans. A candidate whose bound
//! reaches the limit is left out, and a simulation that passes the limit is stopped. Neither
//! changes the result.
//!
//! Work is counted in transfers built or simulated, at the same rate on every machine. When the
//! budget is spent, the remaining candidates are left out and reported. Unless full effort is
//! requested, a candidate with many transfers that could save little time is left out as well, and
//! a candidate may report that it is not expected to be faster. A striped plan is timed by
//! simulating one of its stripes, and is built only if it may be the fastest plan
//! ([`crate::building::striping`]).
//!
//! If the problem has a condition, a plan that would be the fastest plan is tested. A plan that
//! does not meet the condition is refused, and sets no limit.
//!
//! If two plans have equal times, the plan with fewer slots wins, then the candidate that was
//! listed first.

use thiserror::Error;

use crate::building::striping::Striping;
use crate::{Effort, Planned, PlannerError, PlanningProblem};
use opticoll_base::memory;
use opticoll_base::units::{Bytes, Time};
use opticoll_plan::plan::Plan;
use opticoll_simulate::outcome::Outcome;
use opticoll_simulate::{Policy, SimulationError, Simulator};

/// A candidate with its time, or with the reason why it was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateResult {
    /// Specification, such as `relay_tree:pieces=2`.
    pub name: String,
    /// Number of slots; if no plan was built, a lower bound on this number, or 0.
    pub slots: u64,
    /// Simulated time; if the candidate was left out, a lower bound on the time.
    pub time: Time,
    /// Reason for leaving the candidate out; `None` if its plan was built and simulated.
    pub left_out: Option<LeftOut>,
}

/// Reason why a candidate was left out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeftOut {
    /// The lower bound is at least the time of the selected plan.
    #[error("cannot be faster than the plan chosen")]
    Slower,
    /// Even a plan with a time equal to the lower bound would save too little time.
    #[error("could save too little time for its number of transfers (auto:effort=full tries it)")]
    LittleGain,
    /// The simulation was stopped when it reached the time of the selected plan.
    #[error("takes longer than the plan chosen")]
    Longer,
    /// The work would exceed the budget.
    #[error("its {transfers} transfers exceed the budget")]
    Budget {
        /// Number of transfers to build and simulate.
        transfers: u64,
    },
    /// The plan is not expected to be faster, for the given reason.
    #[error("{0}")]
    NotExpected(&'static str),
    /// The candidate has no plan for this collective on this fabric.
    #[error(transparent)]
    Refused(PlannerError),
}

/// A plan that may be built.
pub(crate) struct Candidate<'a> {
    pub(crate) name: String,
    /// Lower bound on the number of slots; 0 if unknown.
    pub(crate) slots: u64,
    /// Lower bound on the time of this candidate; zero if none is known. The evaluation also
    /// applies the lower bound of the collective.
    pub(crate) lower_bound: Time,
    /// Estimate of the time. Candidates with low estimates are built first. An estimate below the
    /// lower bound only determines this order.
    pub(crate) estimate: Time,
    /// Approximate number of transfers to build and simulate.
    pub(crate) transfers: u64,
    /// Builds the plan. The argument is the time that the plan must not reach, if there is such a
    /// limit. The function may return a lower bound that reaches the limit instead of a plan.
    pub(crate) build: Box<dyn FnOnce(Option<Time>) -> Result<Built, PlannerError> + 'a>,
}

/// Result of building a candidate.
pub(crate) enum Built {
    Plan(Box<Plan>),
    /// A striped plan, which is timed by one of its stripes and built only if it wins.
    Striped(Box<Striping>),
    /// No plan: its time would be at least this time.
    AtLeast(Time),
    /// No plan, for this reason.
    NotExpected(&'static str),
}

impl From<Plan> for Built {
    fn from(plan: Plan) -> Built {
        Built::Plan(Box::new(plan))
    }
}

enum Timed {
    Plan(Box<Plan>, Box<Outcome>),
    /// A striped plan with a lower and an upper bound on its time.
    Striped(Box<Striping>, [Time; 2]),
    /// A plan whose time exceeds the limit, represented by its number of slots.
    Longer(u32),
    AtLeast(Time),
    NotExpected(&'static str),
}

struct Best {
    plan: Plan,
    time: Time,
    /// Outcome of the simulation, if all stripes of the plan were simulated.
    outcome: Option<Box<Outcome>>,
    place: usize,
}

/// A striped plan that may be the fastest plan. It is built when all candidates are timed.
struct TimedStripes {
    /// Index of the plan in the list of results.
    result: usize,
    place: usize,
    striping: Box<Striping>,
    times: [Time; 2],
}

impl TimedStripes {
    fn order(&self) -> (Time, u32, usize) {
        (self.times[0], self.striping.slots(), self.place)
    }
}

impl Best {
    fn order(&self) -> (Time, u32, usize) {
        (self.time, self.plan.slots(), self.place)
    }

    /// Returns the better of two plans: the faster plan; on a tie the plan with fewer slots, then
    /// the plan that was listed first.
    fn or(self, before: Option<Best>) -> Best {
        match before {
            Some(before) if before.order() < self.order() => before,
            _ => self,
        }
    }
}

pub(crate) struct Evaluation<'a> {
    pub(crate) problem: &'a PlanningProblem<'a>,
    /// Lower bound on the time of any plan of the collective.
    pub(crate) lower_bound: Time,
}

/// Result of an evaluation: the fastest plan with its time, and the results of all candidates in
/// order of their times.
pub(crate) struct EvaluationOutcome {
    pub(crate) fastest: Result<(Plan, Time), PlannerError>,
    /// Outcome of the simulation of circuits, or of flows over circuits, if the whole plan was
    /// simulated.
    pub(crate) outcome: Option<Box<Outcome>>,
    pub(crate) candidates: Vec<CandidateResult>,
}

/// Maximum number of transfers of a plan that is quick to build and simulate: 65,536, or 0.07 s at
/// 1,000,000 transfers per second.
pub(crate) const QUICK_TRANSFERS: u64 = 1 << 16;

/// Minimum number of transfers of plans that are built only if they may save at least 1 % of the
/// time, unless full effort is requested: 4,096, or 4 ms at 1,000,000 transfers per second.
/// Measured: this condition and the condition of [`TRANSFERS_FOR_5_PERCENT`] reduce the time to
/// plan an all_reduce of 1 MB on a crossbar of 64 ranks from 19.5 s to 0.6 s.
const TRANSFERS_FOR_1_PERCENT: u64 = 1 << 12;
/// Minimum number of transfers of plans that are built only if they may save at least 5 % of the
/// time: 1,048,576, or about one second at 1,000,000 transfers per second.
const TRANSFERS_FOR_5_PERCENT: u64 = 1 << 20;

/// Ratio of the limit to the expected time of a plan. From this ratio on, a simulation ignores the
/// limit, because checking the limit would cost more than it saves.
const UNLIMITED_RATIO: u64 = 4;

impl<'a> Evaluation<'a> {
    /// Creates the evaluation of a problem, and computes the lower bound of the collective.
    pub(crate) fn new(problem: &'a PlanningProblem<'a>) -> Result<Evaluation<'a>, PlannerError> {
        Ok(Evaluation {
            problem,
            lower_bound: problem.least()?,
        })
    }

    /// Returns the time that a plan must not reach: the time of the slowest of the `wanted` fastest
    /// plans, or the limit of the problem if this is less. Sorts `fastest`, the times of all plans,
    /// and truncates it to the `wanted` fastest.
    fn limit(&self, fastest: &mut Vec<Time>) -> Option<Time> {
        let wanted = self.problem.wanted.max(1);
        fastest.sort_unstable();
        fastest.truncate(wanted);
        let slowest = fastest.get(wanted - 1).copied();
        slowest.into_iter().chain(self.problem.limit).min()
    }

    /// Returns whether a candidate would save too little time for its number of transfers, compared
    /// to `limit`, even if its time were equal to `lower_bound`.
    fn gains_little(&self, lower_bound: Time, transfers: u64, limit: Time) -> bool {
        // A rotation-symmetric plan has the same lightpaths at every rank.
        let ranks = u64::from(self.problem.fabric.ranks());
        let min_gain = match transfers {
            _ if self.problem.effort == Effort::Full => return false,
            TRANSFERS_FOR_5_PERCENT.. => limit.ps() / 20,
            transfers if transfers.max(ranks * ranks) >= TRANSFERS_FOR_1_PERCENT => {
                limit.ps() / 100
            }
            _ => return false,
        };
        limit.ps().saturating_sub(lower_bound.ps()) <= min_gain
    }

    /// Returns the fastest candidate and the results of all candidates. `refused` contains the
    /// results of candidates that could not be created. Fails on errors that concern all
    /// candidates.
    pub(crate) fn run(
        &self,
        candidates: Vec<Candidate<'_>>,
        refused: Vec<CandidateResult>,
    ) -> Result<EvaluationOutcome, PlannerError> {
        let mut numbered: Vec<(usize, Candidate<'_>)> =
            candidates.into_iter().enumerate().collect();
        // On links, estimates are lower bounds or expected sums of steps. Many large plans may be
        // close to the bound; of these, the plan with the fewest transfers comes first. Candidates
        // that exceed the budget by themselves come last.
        let has_links = self.problem.fabric.network().is_some();
        let enough = Time::from_ps(
            self.lower_bound
                .ps()
                .saturating_add(self.lower_bound.ps() / 100),
        );
        numbered.sort_by_key(|(_, candidate)| {
            let promise = (
                candidate.estimate,
                candidate.lower_bound.max(self.lower_bound),
            );
            let is_too_large = candidate.transfers > self.problem.max_work;
            match has_links && candidate.transfers >= TRANSFERS_FOR_1_PERCENT {
                true => (
                    is_too_large,
                    candidate.estimate.max(enough),
                    candidate.transfers,
                    promise,
                ),
                false if has_links => (is_too_large, candidate.estimate.max(enough), 0, promise),
                false => (is_too_large, candidate.estimate, 0, promise),
            }
        });
        let mut best_plan: Option<Best> = None;
        let mut striped: Vec<TimedStripes> = Vec::new();
        let mut first_refusal = None;
        let mut results = Vec::with_capacity(numbered.len() + refused.len());
        for result in refused {
            if let Some(LeftOut::Refused(error)) = &result.left_out {
                first_refusal.get_or_insert(error.clone());
            }
            results.push((0, result));
        }
        let mut fastest = Vec::new();
        let mut work = 0u64;
        for (place, candidate) in numbered {
            let limit = self.limit(&mut fastest);
            let lower_bound = candidate.lower_bound.max(self.lower_bound);
            let mut result = CandidateResult {
                name: candidate.name,
                slots: candidate.slots,
                time: lower_bound,
                left_out: None,
            };
            match limit {
                Some(limit) if lower_bound >= limit => {
                    result.left_out = Some(LeftOut::Slower);
                }
                Some(limit) if self.gains_little(lower_bound, candidate.transfers, limit) => {
                    result.left_out = Some(LeftOut::LittleGain);
                }
                Some(_) if work.saturating_add(candidate.transfers) > self.problem.max_work => {
                    let transfers = candidate.transfers;
                    result.left_out = Some(LeftOut::Budget { transfers });
                }
                _ => {
                    (self.problem.watch)(&result.name);
                    let transfers = candidate.transfers;
                    let expected = candidate.estimate;
                    let timed = memory::attempt(|| {
                        self.time_built((candidate.build)(limit)?, expected, limit)
                    });
                    // A candidate that is refused or not expected to be faster has rarely built a
                    // plan, so it does not count as work.
                    if !matches!(timed, Err(_) | Ok(Err(_) | Ok(Timed::NotExpected(_)))) {
                        work = work.saturating_add(transfers);
                    }
                    match timed.unwrap_or_else(|much| Err(much.into())) {
                        Ok(Timed::AtLeast(lower_bound)) => {
                            result.time = lower_bound;
                            result.left_out = Some(LeftOut::Slower);
                        }
                        Ok(Timed::NotExpected(reason)) => {
                            result.left_out = Some(LeftOut::NotExpected(reason));
                        }
                        Ok(Timed::Plan(plan, outcome)) => {
                            let time = outcome.time;
                            result.time = time;
                            result.slots = plan.slots().into();
                            result.name.clone_from(&plan.algorithm);
                            let plan_found = Best {
                                plan: *plan,
                                time,
                                outcome: Some(outcome),
                                place,
                            };
                            if let Some(error) = self.unmet(&plan_found, best_plan.as_ref()) {
                                result.left_out = Some(LeftOut::Refused(error));
                            } else {
                                fastest.push(time);
                                best_plan = Some(plan_found.or(best_plan));
                            }
                        }
                        Ok(Timed::Striped(striping, times)) => {
                            let [lower_bound, most] = times;
                            fastest.push(most);
                            result.time = lower_bound;
                            result.slots = striping.slots().into();
                            result.name = striping.name()?;
                            striped.push(TimedStripes {
                                result: results.len(),
                                place,
                                striping,
                                times,
                            });
                        }
                        Ok(Timed::Longer(slots)) => {
                            result.slots = slots.into();
                            result.time = limit.unwrap_or_default();
                            result.left_out = Some(LeftOut::Longer);
                        }
                        Err(error) if concerns_one_candidate(&error) => {
                            first_refusal.get_or_insert(error.clone());
                            result.left_out = Some(LeftOut::Refused(error));
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            results.push((place, result));
        }
        striped.sort_by_key(TimedStripes::order);
        for stripes in striped {
            let (_, result) = &mut results[stripes.result];
            match self.build_stripes(stripes, best_plan.as_ref(), result) {
                Ok(built) => {
                    best_plan = built.map(|built| built.or(best_plan.take())).or(best_plan)
                }
                Err(error) if concerns_one_candidate(&error) => {
                    first_refusal.get_or_insert(error.clone());
                    result.left_out = Some(LeftOut::Refused(error));
                }
                Err(error) => return Err(error),
            }
        }
        results.sort_by_key(|(place, result)| {
            let place = result.left_out.is_none().then_some(*place);
            (result.left_out.is_some(), result.time, result.slots, place)
        });
        let candidates: Vec<_> = results.into_iter().map(|(_, result)| result).collect();
        let (best_plan, outcome) = match best_plan {
            Some(best_plan) => (Some((best_plan.plan, best_plan.time)), best_plan.outcome),
            None => (None, None),
        };
        // If no plan meets the condition, the error is that of the fastest plan.
        let unmet = candidates.iter().find_map(|result| match &result.left_out {
            Some(LeftOut::Refused(error @ PlannerError::Unmet(_))) => Some(error),
            _ => None,
        });
        let fastest = best_plan.ok_or_else(|| match unmet.cloned().or(first_refusal) {
            Some(PlannerError::Memory(much)) => memory::refuse(much),
            Some(other)
                if self.problem.limit.is_none()
                    && !matches!(other, PlannerError::TooLarge { .. }) =>
            {
                other
            }
            _ => PlannerError::NothingFits {
                most: self.problem.max_transfers,
            },
        });
        Ok(EvaluationOutcome {
            fastest,
            outcome: outcome.filter(|_| self.has_circuits()),
            candidates,
        })
    }

    /// Returns an error if a plan would be the best plan, but does not meet the condition of the
    /// problem.
    fn unmet(&self, found: &Best, best_plan: Option<&Best>) -> Option<PlannerError> {
        let condition = self.problem.condition?;
        match best_plan {
            Some(best_plan) if best_plan.order() < found.order() => None,
            _ => condition(&found.plan).err().map(PlannerError::Unmet),
        }
    }

    /// Returns the plan of the fastest candidate, with the results of all candidates.
    pub(crate) fn choose(&self, candidates: Vec<Candidate<'_>>) -> Result<Planned, PlannerError> {
        let outcome = self.run(candidates, Vec::new())?;
        Ok(Planned {
            candidates: outcome.candidates,
            ..outcome.fastest?.0.into()
        })
    }

    /// Simulates the plan of a candidate. If `built` reports that the plan is too slow, returns
    /// this report. `expected` is the estimate of the plan's time.
    fn time_built(
        &self,
        built: Built,
        expected: Time,
        limit: Option<Time>,
    ) -> Result<Timed, PlannerError> {
        let plan = match built {
            Built::AtLeast(lower_bound) => return Ok(Timed::AtLeast(lower_bound)),
            Built::NotExpected(reason) => return Ok(Timed::NotExpected(reason)),
            Built::Plan(plan) => plan,
            Built::Striped(striping) => {
                let sizes = striping.sizes(self.problem.size, self.has_barriers());
                let single = sizes[0] == sizes[1] || self.problem.wanted <= 1;
                // Only a plan that was built shows whether it meets the condition.
                let single = single && self.problem.condition.is_none();
                match self.is_timed_by_circuits() && single {
                    true => return self.time_stripe(striping, sizes, limit),
                    false => striping.plan()?.into(),
                }
            }
        };
        // Without barriers, the simulator scans all messages before it can stop early. This scan is
        // too slow if the plan is expected to take a small fraction of the limit. (An estimate
        // below the bound only determines an order.)
        let has_no_limit = |limit: Time| {
            expected >= self.lower_bound && expected.ps() <= limit.ps() / UNLIMITED_RATIO
        };
        let has_no_limit =
            self.is_timed_by_circuits() && !self.has_barriers() && limit.is_some_and(has_no_limit);
        let stop_at = limit.filter(|_| !has_no_limit);
        let outcome = self.outcome(&plan, self.problem.size, stop_at)?;
        let in_time =
            |outcome: &Outcome| !has_no_limit || limit.is_none_or(|limit| outcome.time <= limit);
        Ok(match outcome.filter(in_time) {
            Some(outcome) => Timed::Plan(plan, outcome.into()),
            None => Timed::Longer(plan.slots()),
        })
    }

    /// Simulates the plan of undivided chunks for two sizes, whose times bound the time of the
    /// striped plan from below and above.
    fn time_stripe(
        &self,
        striping: Box<Striping>,
        [smaller, larger]: [Bytes; 2],
        limit: Option<Time>,
    ) -> Result<Timed, PlannerError> {
        let Some(lower_bound) = self.time(&striping.whole, smaller, limit)? else {
            return Ok(Timed::Longer(striping.slots()));
        };
        if smaller == larger {
            return Ok(Timed::Striped(striping, [lower_bound, lower_bound]));
        }
        if limit.is_some_and(|limit| lower_bound > limit) {
            return Ok(Timed::AtLeast(lower_bound));
        }
        let most = self.time(&striping.whole, larger, None)?;
        Ok(Timed::Striped(
            striping,
            [lower_bound, most.unwrap_or(lower_bound)],
        ))
    }

    /// Builds a striped plan if it may be faster than `best_plan`, and returns it.
    fn build_stripes(
        &self,
        stripes: TimedStripes,
        best_plan: Option<&Best>,
        result: &mut CandidateResult,
    ) -> Result<Option<Best>, PlannerError> {
        let (place, [lower_bound, most]) = (stripes.place, stripes.times);
        let is_exact = lower_bound == most;
        if best_plan.is_some_and(|best_plan| best_plan.order() < stripes.order()) {
            result.left_out = (!is_exact).then_some(LeftOut::Slower);
            return Ok(None);
        }
        let built = memory::attempt(|| {
            let plan = stripes.striping.plan()?;
            let outcome = match is_exact {
                true => None,
                false => self.outcome(&plan, self.problem.size, None)?,
            };
            Ok::<_, PlannerError>(Best {
                plan,
                time: outcome.as_ref().map_or(lower_bound, |outcome| outcome.time),
                outcome: outcome.map(Box::new),
                place,
            })
        });
        let built = built.unwrap_or_else(|much| Err(much.into()))?;
        result.time = built.time;
        Ok(Some(built))
    }

    /// Returns whether plans are timed by a simulation of circuits. The outcome of such a
    /// simulation is returned with the selected plan, because another simulation would have the
    /// same outcome.
    fn has_circuits(&self) -> bool {
        let fabric = self.problem.fabric;
        self.is_timed_by_circuits() || (fabric.has_light() && fabric.network().is_none())
    }

    /// Returns whether the link loads of circuits determine the time of a slot.
    fn is_timed_by_circuits(&self) -> bool {
        let (fabric, method) = (self.problem.fabric, self.problem.method);
        fabric.has_light() && Simulator::selected(fabric, method).bounded_by_loads
    }

    /// Returns whether each slot starts only after the end of the previous slot.
    fn has_barriers(&self) -> bool {
        !matches!(self.problem.policy(), Policy::PerPort | Policy::Planes)
    }

    /// Returns the time of a plan, or `None` if it exceeds `limit`.
    pub(crate) fn time(
        &self,
        plan: &Plan,
        size: Bytes,
        limit: Option<Time>,
    ) -> Result<Option<Time>, PlannerError> {
        let outcome = self.outcome(plan, size, limit)?;
        Ok(outcome.map(|outcome| outcome.time))
    }

    /// Simulates a plan. Returns `None` if its time exceeds `limit`.
    fn outcome(
        &self,
        plan: &Plan,
        size: Bytes,
        limit: Option<Time>,
    ) -> Result<Option<Outcome>, PlannerError> {
        let mut method = self.problem.method.clone();
        method.fluid.record_flows = false;
        // The exact times of small plans are computed even if they are not the fastest, if this is
        // quick.
        let is_small = plan.len() as u64 <= QUICK_TRANSFERS;
        let is_quick = self.is_timed_by_circuits() && self.has_barriers() && is_small;
        method.limit = limit.filter(|_| !is_quick);
        let in_time = |time_ps: u64| limit.is_none_or(|limit| time_ps <= limit.ps());
        let outcome = opticoll_simulate::run_watched(plan, size, &method, &mut |progress| {
            in_time(progress.time_ps)
        });
        match outcome {
            Ok(outcome) => Ok(Some(outcome)),
            Err(SimulationError::Stopped(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns whether an error concerns one candidate only. Errors of settings concern all candidates.
pub(crate) fn concerns_one_candidate(error: &PlannerError) -> bool {
    use SimulationError::{Fabric, Setting, Unknown};
    !matches!(
        error,
        PlannerError::Simulation(Unknown { .. } | Fabric { .. } | Setting { .. })
    )
}
