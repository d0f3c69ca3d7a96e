//! The fastest of many ways to carry out a collective, found without timing all of them.
//!
//! Every contender has a time that no plan of it goes below, by an argument of its own, and an estimate. The
//! most promising is made and timed first. One that cannot be faster than the fastest so far is left out, and
//! a simulation that passes that time is given up; so neither changes the winner. What is made is counted in
//! work, transfers made or timed, at a pace that is the same on every machine: where the budget is spent, what
//! is left is left out, and said to be. So is a large one that could save a few thousandths of the time at most. A contender may also say of itself that it is not worth its making. Of plans
//! made that take the same time the one of fewer slots wins, then the one that was given first.

use thiserror::Error;

use super::{PlannerError, Question};
use crate::memory;
use crate::plan::AnyPlan;
use crate::simulate::{self, SimulationError};
use crate::units::Time;

/// One of the ways to carry the collective out, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// As typed, such as `relay_tree:pieces=2`.
    pub name: String,
    /// Its slots; where it was not made, the least it may take, if that is known.
    pub slots: u64,
    /// Its time: simulated, or what no plan of it goes below where it was not timed.
    pub time: Time,
    /// Why it was left out; `None` where it was made and timed.
    pub left_out: Option<LeftOut>,
}

/// Why a candidate was left out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeftOut {
    /// A bound excludes it.
    #[error("cannot be faster than the plan chosen")]
    Slower,
    /// Its simulation was given up.
    #[error("takes longer than the plan chosen")]
    Longer,
    /// Too much work.
    #[error("its {transfers} transfers are more than the budget allows")]
    Budget {
        /// What is made and timed.
        transfers: u64,
    },
    /// It is not expected to be faster.
    #[error("{0}")]
    NotExpected(&'static str),
    /// It does not run here.
    #[error(transparent)]
    Refused(PlannerError),
}

/// A way to carry the collective out that has not been made yet.
pub(super) struct Contender<'a> {
    pub(super) name: String,
    /// No plan of it has fewer.
    pub(super) slots: u64,
    /// No plan of it takes less.
    pub(super) least: Time,
    /// What it may take; those of little are made first.
    pub(super) estimate: Time,
    /// About how many transfers are made and timed.
    pub(super) transfers: u64,
    /// Makes the plan; given the time of the fastest so far, it may say instead that it cannot be faster.
    pub(super) make: Box<dyn FnOnce(Option<Time>) -> Result<Made, PlannerError> + 'a>,
}

/// What came of a contender.
pub(super) enum Made {
    Plan(Box<AnyPlan>),
    /// Nothing: it cannot go below this time.
    AtLeast(Time),
    /// Nothing, for this reason.
    NotExpected(&'static str),
}

impl From<AnyPlan> for Made {
    fn from(plan: AnyPlan) -> Made {
        Made::Plan(Box::new(plan))
    }
}

/// What came of making and timing one.
enum Tried {
    /// Its time; none where that is past the limit.
    Plan(Box<AnyPlan>, Option<Time>),
    AtLeast(Time),
    NotExpected(&'static str),
}

/// For what the contenders are made.
pub(super) struct Contest<'a> {
    pub(super) question: &'a Question<'a>,
    /// No plan of the collective takes less.
    pub(super) least: Time,
}

/// The fastest plan with its time, and what became of all contenders, the fastest first.
pub(super) struct ContestOutcome {
    pub(super) fastest: Result<(AnyPlan, Time), PlannerError>,
    pub(super) candidates: Vec<Candidate>,
}

/// Plans of more transfers are not made for a gain of less than one part in [`WORTH`].
const LARGE: u64 = 1 << 16;
const WORTH: u64 = 300;

impl Contest<'_> {
    /// Whether a large contender can save next to nothing of a time.
    fn gains_little(&self, least: Time, transfers: u64, limit: Time) -> bool {
        let least = least.max(self.least).ps();
        // A folded plan has as many lightpaths from every rank.
        let ranks = u64::from(self.question.fabric.ranks());
        transfers.max(ranks * ranks) > LARGE
            && limit.ps() - least.min(limit.ps()) <= limit.ps() / WORTH
    }

    /// The fastest of the contenders; `refused` are those that were left out before.
    ///
    /// # Errors
    /// What has nothing to do with one contender alone, such as a setting that no simulator knows.
    pub(super) fn run(
        &self,
        contenders: Vec<Contender<'_>>,
        refused: Vec<Candidate>,
    ) -> Result<ContestOutcome, PlannerError> {
        let mut contenders: Vec<(usize, Contender<'_>)> =
            contenders.into_iter().enumerate().collect();
        contenders.sort_by_key(|(_, one)| (one.estimate, one.least));
        let mut best: Option<(AnyPlan, Time)> = None;
        let mut best_place = 0;
        let mut first_refusal = None;
        let mut candidates = Vec::with_capacity(contenders.len() + refused.len());
        for candidate in refused {
            if let Some(LeftOut::Refused(error)) = &candidate.left_out {
                first_refusal.get_or_insert(error.clone());
            }
            candidates.push((0, candidate));
        }
        let mut work = 0u64;
        for (place, contender) in contenders {
            let limit = best.as_ref().map(|(_, time)| *time);
            let mut candidate = Candidate {
                name: contender.name,
                slots: contender.slots,
                time: contender.least,
                left_out: None,
            };
            match limit {
                Some(limit) if contender.least.max(self.least) >= limit => {
                    candidate.left_out = Some(LeftOut::Slower);
                }
                Some(limit) if self.gains_little(contender.least, contender.transfers, limit) => {
                    let reason = "could save a few thousandths of the time at most";
                    candidate.left_out = Some(LeftOut::NotExpected(reason));
                }
                Some(_) if work.saturating_add(contender.transfers) > self.question.most_work => {
                    let transfers = contender.transfers;
                    candidate.left_out = Some(LeftOut::Budget { transfers });
                }
                _ => {
                    (self.question.watch)(&candidate.name);
                    work = work.saturating_add(contender.transfers);
                    let tried = memory::attempt(|| match (contender.make)(limit)? {
                        Made::Plan(plan) => {
                            let time = self.time(&plan, limit)?;
                            Ok(Tried::Plan(plan, time))
                        }
                        Made::AtLeast(least) => Ok(Tried::AtLeast(least)),
                        Made::NotExpected(reason) => Ok(Tried::NotExpected(reason)),
                    });
                    match tried.unwrap_or_else(|much| Err(much.into())) {
                        Ok(Tried::AtLeast(least)) => {
                            candidate.time = least;
                            candidate.left_out = Some(LeftOut::Slower);
                        }
                        Ok(Tried::NotExpected(reason)) => {
                            candidate.left_out = Some(LeftOut::NotExpected(reason));
                        }
                        Ok(Tried::Plan(plan, Some(time))) => {
                            candidate.time = time;
                            candidate.slots = plan.slots().into();
                            candidate.name.clone_from(&plan.representative().algorithm);
                            let order = (time, plan.slots(), place);
                            if best.as_ref().is_none_or(|(least, time)| {
                                order < (*time, least.slots(), best_place)
                            }) {
                                best = Some((*plan, time));
                                best_place = place;
                            }
                        }
                        Ok(Tried::Plan(plan, None)) => {
                            candidate.slots = plan.slots().into();
                            candidate.time = limit.unwrap_or_default();
                            candidate.left_out = Some(LeftOut::Longer);
                        }
                        Err(error) if is_of_one(&error) => {
                            first_refusal.get_or_insert(error.clone());
                            candidate.left_out = Some(LeftOut::Refused(error));
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            candidates.push((place, candidate));
        }
        candidates.sort_by_key(|(place, one)| {
            let place = one.left_out.is_none().then_some(*place);
            (one.left_out.is_some(), one.time, one.slots, place)
        });
        let candidates = candidates.into_iter().map(|(_, one)| one).collect();
        let fastest = best.ok_or_else(|| match first_refusal {
            None | Some(PlannerError::TooLarge { .. }) => PlannerError::NothingFits {
                most: self.question.most_transfers,
            },
            Some(PlannerError::Memory(much)) => memory::refuse(much),
            Some(other) => other,
        });
        Ok(ContestOutcome {
            fastest,
            candidates,
        })
    }

    /// The time of a plan; none where that is past the limit.
    pub(super) fn time(
        &self,
        plan: &AnyPlan,
        limit: Option<Time>,
    ) -> Result<Option<Time>, PlannerError> {
        let mut method = self.question.method.clone();
        method.fluid.record_flows = false;
        method.limit = limit;
        let in_time = |time_ps: u64| limit.is_none_or(|limit| time_ps <= limit.ps());
        let outcome = simulate::run_watched(plan, self.question.size, &method, &mut |progress| {
            in_time(progress.time_ps)
        });
        match outcome {
            Ok(outcome) => Ok(Some(outcome.time)),
            Err(SimulationError::Stopped(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether an error says that one way to plan does not fit, and nothing of the others.
pub(super) fn is_of_one(error: &PlannerError) -> bool {
    matches!(
        error,
        PlannerError::Algorithm(_)
            | PlannerError::Placement(_)
            | PlannerError::NotFound { .. }
            | PlannerError::TooLarge { .. }
            | PlannerError::NothingFits { .. }
            | PlannerError::Unit(_)
            | PlannerError::Spec(_)
            | PlannerError::CollectiveSize(_)
            | PlannerError::Memory(_)
            | PlannerError::Simulation(SimulationError::Unit(_) | SimulationError::Refused { .. })
    )
}
