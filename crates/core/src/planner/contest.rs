//! The fastest of many ways to carry out a collective, found without timing all of them.
//!
//! Every contender has a time that no plan of it goes below, by an argument of its own, and an estimate. The
//! most promising is made and timed first. One that cannot be faster than the fastest so far is left out, and
//! a simulation that passes that time is given up; so neither changes the winner. What is made is counted in
//! work, transfers made or timed, at a pace that is the same on every machine: where the budget is spent, what
//! is left is left out, and said to be. A contender may also say of itself that it is not worth its making. Of plans
//! made that take the same time the one of fewer slots wins, then the one that comes first.

use super::PlannerError;
use crate::memory;
use crate::plan::AnyPlan;
use crate::simulate::fluid::FluidError;
use crate::simulate::packet::PacketError;
use crate::simulate::{self, Method, SimulationError};
use crate::units::{Bytes, Time};

/// One of the ways to carry the collective out, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// As typed, such as `relay_tree:pieces=2`.
    pub name: String,
    /// Its slots; where it was not made, the least it may take, if that is known.
    pub slots: u64,
    /// Its time: simulated, or what no plan of it goes below where it was not timed.
    pub time: Time,
    /// Whether it was made and timed.
    pub made: bool,
    /// Why it was left out; empty where it was not.
    pub left_out: String,
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
    NotWorth(&'static str),
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
    NotWorth(&'static str),
}

/// For what the contenders are made, and how long may be spent on it.
pub(super) struct Contest<'a> {
    /// No plan of the collective takes less.
    pub(super) least: Time,
    pub(super) size: Bytes,
    pub(super) method: &'a Method,
    /// The most transfers of a plan.
    pub(super) most_transfers: u64,
    /// The transfers that may be made and timed in all.
    pub(super) most_work: u64,
    /// Told what is made next.
    pub(super) watch: &'a dyn Fn(&str),
}

/// The fastest plan with its time, and what became of all contenders, the fastest first.
pub(super) struct Outcome {
    pub(super) fastest: Result<(AnyPlan, Time), PlannerError>,
    pub(super) candidates: Vec<Candidate>,
}

/// Why a contender was left out that a bound excludes.
const SLOWER: &str = "cannot be faster than the plan chosen";

/// The transfers that are taken to be made and timed in a second, on whatever machine.
pub(super) const WORK_PER_SECOND: u64 = 1_000_000;

impl Contest<'_> {
    /// The fastest of the contenders; `refused` are those that were left out before.
    ///
    /// # Errors
    /// What has nothing to do with one contender alone, such as a setting that no simulator knows.
    pub(super) fn run(
        &self,
        mut contenders: Vec<Contender<'_>>,
        refused: Vec<(Candidate, PlannerError)>,
    ) -> Result<Outcome, PlannerError> {
        contenders.sort_by_key(|one| (one.estimate, one.least));
        let mut best: Option<(AnyPlan, Time)> = None;
        let mut first_refusal = None;
        let mut candidates = Vec::with_capacity(contenders.len() + refused.len());
        for (candidate, error) in refused {
            candidates.push(candidate);
            first_refusal.get_or_insert(error);
        }
        let mut work = 0u64;
        for contender in contenders {
            let limit = best.as_ref().map(|(_, time)| *time);
            let mut candidate = Candidate {
                name: contender.name,
                slots: contender.slots,
                time: contender.least,
                made: false,
                left_out: String::new(),
            };
            match limit {
                Some(limit) if contender.least.max(self.least) >= limit => {
                    candidate.left_out = SLOWER.into();
                }
                Some(_) if work.saturating_add(contender.transfers) > self.most_work => {
                    let transfers = contender.transfers;
                    candidate.left_out =
                        format!("its {transfers} transfers are more than the budget allows");
                }
                _ => {
                    (self.watch)(&candidate.name);
                    work = work.saturating_add(contender.transfers);
                    let tried = memory::attempt(|| match (contender.make)(limit)? {
                        Made::Plan(plan) => {
                            let time = self.time(&plan, limit)?;
                            Ok(Tried::Plan(plan, time))
                        }
                        Made::AtLeast(least) => Ok(Tried::AtLeast(least)),
                        Made::NotWorth(reason) => Ok(Tried::NotWorth(reason)),
                    });
                    match tried.unwrap_or_else(|much| Err(much.into())) {
                        Ok(Tried::AtLeast(least)) => {
                            candidate.time = least;
                            candidate.left_out = SLOWER.into();
                        }
                        Ok(Tried::NotWorth(reason)) => candidate.left_out = reason.into(),
                        Ok(Tried::Plan(plan, Some(time))) => {
                            candidate.made = true;
                            candidate.time = time;
                            candidate.slots = plan.slots().into();
                            candidate.name.clone_from(&plan.kept().algorithm);
                            let order = (time, plan.slots());
                            if best
                                .as_ref()
                                .is_none_or(|(least, time)| order < (*time, least.slots()))
                            {
                                best = Some((*plan, time));
                            }
                        }
                        Ok(Tried::Plan(plan, None)) => {
                            candidate.slots = plan.slots().into();
                            candidate.time = limit.unwrap_or_default();
                            candidate.left_out = "takes longer than the plan chosen".into();
                        }
                        Err(error) if is_of_one(&error) => {
                            candidate.left_out = error.to_string();
                            first_refusal.get_or_insert(error);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            candidates.push(candidate);
        }
        candidates.sort_by_key(|one| (!one.made, one.time, one.slots));
        let fastest = best.ok_or_else(|| match first_refusal {
            None | Some(PlannerError::TooLarge { .. }) => PlannerError::NothingFits {
                most: self.most_transfers,
            },
            Some(PlannerError::Memory(much)) => memory::refuse(much),
            Some(other) => other,
        });
        Ok(Outcome {
            fastest,
            candidates,
        })
    }

    /// The time of a plan; none where that is past the limit.
    fn time(&self, plan: &AnyPlan, limit: Option<Time>) -> Result<Option<Time>, PlannerError> {
        let mut method = self.method.clone();
        method.fluid.record_flows = false;
        method.limit = limit;
        let in_time = |time_ps: u64| limit.is_none_or(|limit| time_ps <= limit.ps());
        let outcome = simulate::run_watched(plan, self.size, &method, &mut |progress| {
            in_time(progress.time_ps)
        });
        match outcome {
            Ok(outcome) => Ok(Some(outcome.time)),
            Err(
                SimulationError::TooLong { .. }
                | SimulationError::Fluid(FluidError::TooLong { .. })
                | SimulationError::Packet(PacketError::BrokenOff),
            ) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether an error says that one way to plan does not fit, and nothing of the others.
pub(super) fn is_of_one(error: &PlannerError) -> bool {
    matches!(
        error,
        PlannerError::Algorithm(_)
            | PlannerError::Wavelength(_)
            | PlannerError::Grid(_)
            | PlannerError::Ports(_)
            | PlannerError::NotFound { .. }
            | PlannerError::TooLarge { .. }
            | PlannerError::NothingFits { .. }
            | PlannerError::Unit(_)
            | PlannerError::Spec(_)
            | PlannerError::CollectiveSize(_)
            | PlannerError::Memory(_)
            | PlannerError::Simulation(
                SimulationError::Unit(_)
                    | SimulationError::TooLarge { .. }
                    | SimulationError::NoClaim { .. }
                    | SimulationError::Fluid(_)
                    | SimulationError::Packet(_)
            )
    )
}
