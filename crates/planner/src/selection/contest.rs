//! The fastest of many ways to carry out a collective, found without timing all of them.
//!
//! Every contender has a time that no plan of it goes below, by an argument of its own, and an estimate. The
//! most promising is made and timed first. One that cannot be faster than the fastest so far (or the slowest of those wanted, where these
//! are several) is left out, and
//! a simulation that passes that time is given up; so neither changes the winner. What is made is counted in
//! work, transfers made or timed, at a pace that is the same on every machine: where the budget is spent, what
//! is left is left out, and said to be. So is one of many transfers that could save little of the time, unless full effort is asked for. A contender may also say of itself that it is not worth its making. A plan of stripes is timed by one of them, and cut when
//! nothing else can be faster (see [`crate::building::striping`]). Of plans
//! made that take the same time the one of fewer slots wins, then the one that was given first.

use thiserror::Error;

use crate::building::striping::Striping;
use crate::{Effort, PlannerError, Question};
use opticoll_base::memory;
use opticoll_base::units::{Bytes, Time};
use opticoll_plan::plan::Plan;
use opticoll_simulate::outcome::Outcome;
use opticoll_simulate::{Policy, SimulationError, Simulator};

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
    /// Even at its bound it would be next to no faster.
    #[error("could save next to nothing of the time (auto:effort=full tries it)")]
    LittleGain,
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
pub(crate) struct Contender<'a> {
    pub(crate) name: String,
    /// No plan of it has fewer.
    pub(crate) slots: u64,
    /// No plan of it takes less, by an argument of its own; zero where it knows none. The contest adds the bound of the collective.
    pub(crate) least: Time,
    /// What it may take; those of little are made first.
    pub(crate) estimate: Time,
    /// About how many transfers are made and timed.
    pub(crate) transfers: u64,
    /// Makes the plan; given the time of the fastest so far, it may say instead that it cannot be faster.
    pub(crate) make: Box<dyn FnOnce(Option<Time>) -> Result<Made, PlannerError> + 'a>,
}

/// What came of a contender.
pub(crate) enum Made {
    Plan(Box<Plan>),
    /// A plan of stripes, timed by one of them: only one that wins is written out.
    Striped(Box<Striping>),
    /// Nothing: it cannot go below this time.
    AtLeast(Time),
    /// Nothing, for this reason.
    NotExpected(&'static str),
}

impl From<Plan> for Made {
    fn from(plan: Plan) -> Made {
        Made::Plan(Box::new(plan))
    }
}

/// What came of making and timing one.
enum Tried {
    Plan(Box<Plan>, Box<Outcome>),
    /// Stripes that take so long at least, and so long at most.
    Striped(Box<Striping>, [Time; 2]),
    /// A plan of so many slots that takes longer than the limit.
    Longer(u32),
    AtLeast(Time),
    NotExpected(&'static str),
}

/// The fastest plan so far.
struct Best {
    plan: Plan,
    time: Time,
    /// Where all of it was simulated.
    outcome: Option<Box<Outcome>>,
    place: usize,
}

/// A plan of stripes that may be the fastest, and is cut when nothing else can be.
struct Uncut {
    /// Where its candidate is.
    candidate: usize,
    place: usize,
    striping: Box<Striping>,
    times: [Time; 2],
}

impl Uncut {
    fn order(&self) -> (Time, u32, usize) {
        (self.times[0], self.striping.slots(), self.place)
    }
}

impl Best {
    fn order(&self) -> (Time, u32, usize) {
        (self.time, self.plan.slots(), self.place)
    }

    /// The faster one; of equal ones that of fewer slots, then that given first.
    fn or(self, before: Option<Best>) -> Best {
        match before {
            Some(before) if before.order() < self.order() => before,
            _ => self,
        }
    }
}

/// For what the contenders are made.
pub(crate) struct Contest<'a> {
    pub(crate) question: &'a Question<'a>,
    /// No plan of the collective takes less.
    pub(crate) least: Time,
}

/// The fastest plan with its time, and what became of all contenders, the fastest first.
pub(crate) struct ContestOutcome {
    pub(crate) fastest: Result<(Plan, Time), PlannerError>,
    /// What the simulator of circuits, or of flows on them, said of it, where all of it was simulated.
    pub(crate) outcome: Option<Box<Outcome>>,
    pub(crate) candidates: Vec<Candidate>,
}

/// Plans of more transfers take long to make.
pub(crate) const LARGE: u64 = 1 << 16;

/// Unless full effort is asked for, a plan of so many transfers is not made for a gain of less than a hundredth of the
/// time, one of [`MANY`], which take a second, not for less than a twentieth.
const SOME: u64 = 1 << 12;
const MANY: u64 = 1 << 20;

/// Plans that are expected to take such a part of the limit are simulated without it.
const FAR: u64 = 4;

impl<'a> Contest<'a> {
    /// Of a question whose bound is not known yet.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    pub(crate) fn new(question: &'a Question<'a>) -> Result<Contest<'a>, PlannerError> {
        Ok(Contest {
            question,
            least: question.least()?,
        })
    }

    /// The time of the slowest of the plans wanted, once there are so many; `fastest` are the times of those made.
    fn limit(&self, fastest: &mut Vec<Time>) -> Option<Time> {
        let wanted = self.question.wanted.max(1);
        fastest.sort_unstable();
        fastest.truncate(wanted);
        let slowest = fastest.get(wanted - 1).copied();
        slowest.into_iter().chain(self.question.limit).min()
    }

    /// Whether a contender can save next to nothing of a time.
    fn gains_little(&self, least: Time, transfers: u64, limit: Time) -> bool {
        // A folded plan has as many lightpaths from every rank.
        let ranks = u64::from(self.question.fabric.ranks());
        let worth = match transfers {
            _ if self.question.effort == Effort::Full => return false,
            MANY.. => limit.ps() / 20,
            transfers if transfers.max(ranks * ranks) >= SOME => limit.ps() / 100,
            _ => return false,
        };
        limit.ps().saturating_sub(least.ps()) <= worth
    }

    /// The fastest of the contenders; `refused` are those that were left out before.
    ///
    /// # Errors
    /// What has nothing to do with one contender alone, such as a setting that no simulator knows.
    pub(crate) fn run(
        &self,
        contenders: Vec<Contender<'_>>,
        refused: Vec<Candidate>,
    ) -> Result<ContestOutcome, PlannerError> {
        let mut contenders: Vec<(usize, Contender<'_>)> =
            contenders.into_iter().enumerate().collect();
        // On links estimates are bounds, or what steps are expected to take: of large plans that
        // may all be good enough, the one of the fewest transfers comes first. Contenders that exceed the budget by themselves come last.
        let has_links = self.question.fabric.network().is_some();
        let enough = Time::from_ps(self.least.ps().saturating_add(self.least.ps() / 100));
        contenders.sort_by_key(|(_, one)| {
            let promise = (one.estimate, one.least.max(self.least));
            let is_too_large = one.transfers > self.question.most_work;
            match has_links && one.transfers >= SOME {
                true => (
                    is_too_large,
                    one.estimate.max(enough),
                    one.transfers,
                    promise,
                ),
                false if has_links => (is_too_large, one.estimate.max(enough), 0, promise),
                false => (is_too_large, one.estimate, 0, promise),
            }
        });
        let mut best: Option<Best> = None;
        let mut uncut: Vec<Uncut> = Vec::new();
        let mut first_refusal = None;
        let mut candidates = Vec::with_capacity(contenders.len() + refused.len());
        for candidate in refused {
            if let Some(LeftOut::Refused(error)) = &candidate.left_out {
                first_refusal.get_or_insert(error.clone());
            }
            candidates.push((0, candidate));
        }
        let mut fastest = Vec::new();
        let mut work = 0u64;
        for (place, contender) in contenders {
            let limit = self.limit(&mut fastest);
            let least = contender.least.max(self.least);
            let mut candidate = Candidate {
                name: contender.name,
                slots: contender.slots,
                time: least,
                left_out: None,
            };
            match limit {
                Some(limit) if least >= limit => {
                    candidate.left_out = Some(LeftOut::Slower);
                }
                Some(limit) if self.gains_little(least, contender.transfers, limit) => {
                    candidate.left_out = Some(LeftOut::LittleGain);
                }
                Some(_) if work.saturating_add(contender.transfers) > self.question.most_work => {
                    let transfers = contender.transfers;
                    candidate.left_out = Some(LeftOut::Budget { transfers });
                }
                _ => {
                    (self.question.watch)(&candidate.name);
                    let transfers = contender.transfers;
                    let expected = contender.estimate;
                    let tried =
                        memory::attempt(|| self.tried((contender.make)(limit)?, expected, limit));
                    // What is refused or not expected is seldom made.
                    if !matches!(tried, Err(_) | Ok(Err(_) | Ok(Tried::NotExpected(_)))) {
                        work = work.saturating_add(transfers);
                    }
                    match tried.unwrap_or_else(|much| Err(much.into())) {
                        Ok(Tried::AtLeast(least)) => {
                            candidate.time = least;
                            candidate.left_out = Some(LeftOut::Slower);
                        }
                        Ok(Tried::NotExpected(reason)) => {
                            candidate.left_out = Some(LeftOut::NotExpected(reason));
                        }
                        Ok(Tried::Plan(plan, outcome)) => {
                            let time = outcome.time;
                            fastest.push(time);
                            candidate.time = time;
                            candidate.slots = plan.slots().into();
                            candidate.name.clone_from(&plan.algorithm);
                            let one = Best {
                                plan: *plan,
                                time,
                                outcome: Some(outcome),
                                place,
                            };
                            best = Some(one.or(best));
                        }
                        Ok(Tried::Striped(striping, times)) => {
                            let [least, most] = times;
                            fastest.push(most);
                            candidate.time = least;
                            candidate.slots = striping.slots().into();
                            candidate.name = striping.name()?;
                            uncut.push(Uncut {
                                candidate: candidates.len(),
                                place,
                                striping,
                                times,
                            });
                        }
                        Ok(Tried::Longer(slots)) => {
                            candidate.slots = slots.into();
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
        uncut.sort_by_key(Uncut::order);
        for one in uncut {
            let (_, candidate) = &mut candidates[one.candidate];
            match self.cut(one, best.as_ref(), candidate) {
                Ok(cut) => best = cut.map(|cut| cut.or(best.take())).or(best),
                Err(error) if is_of_one(&error) => {
                    first_refusal.get_or_insert(error.clone());
                    candidate.left_out = Some(LeftOut::Refused(error));
                }
                Err(error) => return Err(error),
            }
        }
        candidates.sort_by_key(|(place, one)| {
            let place = one.left_out.is_none().then_some(*place);
            (one.left_out.is_some(), one.time, one.slots, place)
        });
        let candidates = candidates.into_iter().map(|(_, one)| one).collect();
        let (best, outcome) = match best {
            Some(best) => (Some((best.plan, best.time)), best.outcome),
            None => (None, None),
        };
        let fastest = best.ok_or_else(|| match first_refusal {
            Some(PlannerError::Memory(much)) => memory::refuse(much),
            Some(other)
                if self.question.limit.is_none()
                    && !matches!(other, PlannerError::TooLarge { .. }) =>
            {
                other
            }
            _ => PlannerError::NothingFits {
                most: self.question.most_transfers,
            },
        });
        Ok(ContestOutcome {
            fastest,
            outcome: outcome.filter(|_| self.has_circuits()),
            candidates,
        })
    }

    /// Times what was made.
    fn tried(
        &self,
        made: Made,
        expected: Time,
        limit: Option<Time>,
    ) -> Result<Tried, PlannerError> {
        let plan = match made {
            Made::AtLeast(least) => return Ok(Tried::AtLeast(least)),
            Made::NotExpected(reason) => return Ok(Tried::NotExpected(reason)),
            Made::Plan(plan) => plan,
            Made::Striped(striping) => {
                let sizes = striping.sizes(self.question.size, self.has_barriers());
                let single = sizes[0] == sizes[1] || self.question.wanted <= 1;
                match self.is_timed_by_circuits() && single {
                    true => return self.stripe(striping, sizes, limit),
                    false => striping.plan()?.into(),
                }
            }
        };
        // Without barriers, the simulator has to look through all messages before it can give a plan up early. That is not worth it
        // where the plan is expected to take a small part of the limit. (An estimate below the bound only gives an order.)
        let is_far = |limit: Time| expected >= self.least && expected.ps() <= limit.ps() / FAR;
        let is_far =
            self.is_timed_by_circuits() && !self.has_barriers() && limit.is_some_and(is_far);
        let given_up_past = limit.filter(|_| !is_far);
        let outcome = self.outcome(&plan, self.question.size, given_up_past)?;
        let in_time =
            |outcome: &Outcome| !is_far || limit.is_none_or(|limit| outcome.time <= limit);
        Ok(match outcome.filter(in_time) {
            Some(outcome) => Tried::Plan(plan, outcome.into()),
            None => Tried::Longer(plan.slots()),
        })
    }

    /// Times one stripe of all, with sizes in which it takes as long as the striped plan at least, and at most.
    fn stripe(
        &self,
        striping: Box<Striping>,
        [smaller, larger]: [Bytes; 2],
        limit: Option<Time>,
    ) -> Result<Tried, PlannerError> {
        let Some(least) = self.time(&striping.whole, smaller, limit)? else {
            return Ok(Tried::Longer(striping.slots()));
        };
        if smaller == larger {
            return Ok(Tried::Striped(striping, [least, least]));
        }
        if limit.is_some_and(|limit| least > limit) {
            return Ok(Tried::AtLeast(least));
        }
        let most = self.time(&striping.whole, larger, None)?;
        Ok(Tried::Striped(striping, [least, most.unwrap_or(least)]))
    }

    /// The plan of stripes, where it may be faster than the fastest of the others.
    fn cut(
        &self,
        uncut: Uncut,
        best: Option<&Best>,
        candidate: &mut Candidate,
    ) -> Result<Option<Best>, PlannerError> {
        let (place, [least, most]) = (uncut.place, uncut.times);
        let is_exact = least == most;
        if best.is_some_and(|best| best.order() < uncut.order()) {
            candidate.left_out = (!is_exact).then_some(LeftOut::Slower);
            return Ok(None);
        }
        let made = memory::attempt(|| {
            let plan = uncut.striping.plan()?;
            let outcome = match is_exact {
                true => None,
                false => self.outcome(&plan, self.question.size, None)?,
            };
            Ok::<_, PlannerError>(Best {
                plan,
                time: outcome.as_ref().map_or(least, |outcome| outcome.time),
                outcome: outcome.map(Box::new),
                place,
            })
        });
        let made = made.unwrap_or_else(|much| Err(much.into()))?;
        candidate.time = made.time;
        Ok(Some(made))
    }

    /// Whether a plan is timed on circuits, slot by slot or flow by flow, and so as it is whenever it is simulated.
    fn has_circuits(&self) -> bool {
        let fabric = self.question.fabric;
        self.is_timed_by_circuits() || (fabric.has_light() && fabric.network().is_none())
    }

    /// Whether a slot's time is that of its messages on their circuits.
    fn is_timed_by_circuits(&self) -> bool {
        let (fabric, method) = (self.question.fabric, self.question.method);
        fabric.has_light() && Simulator::chosen(fabric, method).bounded_by_loads
    }

    /// Whether slots follow one another.
    fn has_barriers(&self) -> bool {
        !matches!(self.question.policy(), Policy::PerPort | Policy::Planes)
    }

    /// The time of a plan; none where that is past the limit.
    pub(crate) fn time(
        &self,
        plan: &Plan,
        size: Bytes,
        limit: Option<Time>,
    ) -> Result<Option<Time>, PlannerError> {
        let outcome = self.outcome(plan, size, limit)?;
        Ok(outcome.map(|outcome| outcome.time))
    }

    /// What the simulator says of a plan; none where its time is past the limit.
    fn outcome(
        &self,
        plan: &Plan,
        size: Bytes,
        limit: Option<Time>,
    ) -> Result<Option<Outcome>, PlannerError> {
        let mut method = self.question.method.clone();
        method.fluid.record_flows = false;
        // The times of small plans that are not the fastest are worth knowing, where they are soon there.
        let is_small = plan.len() as u64 <= LARGE;
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

/// Whether an error says that one way to plan does not fit, and nothing of the others: all but those of settings.
pub(crate) fn is_of_one(error: &PlannerError) -> bool {
    use SimulationError::{Fabric, Setting, Unknown};
    !matches!(
        error,
        PlannerError::Simulation(Unknown { .. } | Fabric { .. } | Setting { .. })
    )
}
