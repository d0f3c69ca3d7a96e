//! The plan that takes the least time, of all that are known here.
//!
//! Contenders are the named algorithms with every value that their options have to be tried, on rings of
//! wavelengths in as many stripes as there is room for; what the planner makes of its own (`light`); and two
//! algorithms one after the other, the fastest of each (`two_phases`). [`super::contest`] finds the fastest of
//! them. What a named algorithm cannot go below follows from the formulas of its record before it is made, and
//! from the loads of its schedule before it is placed and timed (`least`).

use super::contest::{Candidate, Contender, Contest, Made, Outcome, is_of_one};
use super::request::Planned;
use super::{PlannerError, least, light, named, striped, two_phases};
use crate::algorithm::{self, AlgorithmError};
use crate::bound::light_path_grid::SetUps;
use crate::bound::time::{self, Charge};
use crate::collective::Collective;
use crate::fabric::Fabric;
use crate::plan::AnyPlan;
use crate::simulate::{Method, Paths, Policy, default_policy};
use crate::spec::Spec;
use crate::units::{Bytes, Time};

impl From<Policy> for Charge {
    fn from(policy: Policy) -> Charge {
        match policy {
            Policy::EveryStep => Charge::EverySlot,
            Policy::OnChange => Charge::Once,
            // Lasers are tuned flow by flow, and nothing waits for the end of a slot.
            Policy::PerPort | Policy::TwoTier => Charge::OncePerPort,
            // Light paths are of a fabric that has charges of its own.
            Policy::Free | Policy::EstablishRelease => Charge::Never,
        }
    }
}

impl From<(Policy, Paths)> for SetUps {
    /// Policies of other fabrics charge nothing for light paths.
    fn from((policy, paths): (Policy, Paths)) -> SetUps {
        match (policy, paths) {
            (Policy::EveryStep, _) => SetUps::EverySlot,
            (Policy::EstablishRelease, Paths::Released) => SetUps::Released,
            (Policy::EstablishRelease, Paths::Kept) => SetUps::Kept,
            (Policy::EstablishRelease, Paths::Warm) => SetUps::Warm,
            _ => SetUps::Never,
        }
    }
}

/// What a plan is to be good for, on a ring of wavelengths.
#[derive(Clone, Copy)]
pub(super) struct Aim {
    /// The size of the collective: for all_gather the bytes of one rank's block.
    pub(super) size: Bytes,
    /// When reconfiguration is charged.
    pub(super) policy: Policy,
    /// The most transfers that a plan may have, or orbits where it is folded: what fits into memory.
    /// Each takes about 25 bytes.
    pub(super) most_transfers: u64,
}

/// What is to be planned, and how much may be spent on it.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) collective: Collective,
    pub(super) size: Bytes,
    pub(super) method: &'a Method,
    /// The most transfers of a plan.
    pub(super) most_transfers: u64,
    /// The most transfers made and timed in all.
    pub(super) most_work: u64,
    /// Told what is made next.
    pub(super) watch: &'a dyn Fn(&str),
}

impl Question<'_> {
    pub(super) fn policy(&self) -> Policy {
        self.method.policy.unwrap_or(default_policy(self.fabric))
    }

    pub(super) fn aim(&self) -> Aim {
        Aim {
            size: self.size,
            policy: self.policy(),
            most_transfers: self.most_transfers,
        }
    }
}

/// The fastest of all plans known for a collective.
///
/// # Errors
/// Settings that no simulator knows, ranks that nothing joins, or no plan at all.
pub(super) fn choose(question: &Question<'_>) -> Result<Planned, PlannerError> {
    let least = least::of_collective(question.collective, question.size, question)?;
    let contest = Contest {
        least,
        size: question.size,
        method: question.method,
        most_transfers: question.most_transfers,
        most_work: question.most_work,
        watch: question.watch,
    };
    let mut contenders = light::contenders(question)?;
    let (named, refused) = named_contenders(question)?;
    contenders.extend(named);
    contenders.extend(two_phases::contenders(question)?);
    let Outcome {
        fastest,
        candidates,
    } = contest.run(contenders, refused)?;
    let (mut plan, _) = fastest?;
    plan.kept_mut().size = Some(question.size);
    Ok(Planned {
        reasons: reasons(&candidates, question)?,
        plan,
        candidates,
    })
}

/// The work of making and timing so many transfers: on a grid of tunable circuits each is a chain of events.
pub(super) fn work(fabric: &Fabric, transfers: u64) -> u64 {
    match fabric.wss_grid() {
        Some(_) => transfers.saturating_mul(32),
        None => transfers,
    }
}

/// Schedules of no more transfers are made at once, to see what they cannot go below.
const QUICKLY_MADE: u64 = 1 << 23;

/// The most messages that start at once on links that they share: some 4 GB while they are simulated.
const MOST_AT_ONCE: u64 = 1 << 22;

type Refused = Vec<(Candidate, PlannerError)>;

/// All named algorithms of the collective, with what their options have to be tried; and those that do not run
/// here.
fn named_contenders<'a>(
    question: &Question<'a>,
) -> Result<(Vec<Contender<'a>>, Refused), PlannerError> {
    let (mut contenders, mut refused): (Vec<Contender<'a>>, Refused) = (Vec::new(), Vec::new());
    let kind = question.collective.kind();
    let on_ring = question.fabric.ring().is_some();
    for record in algorithm::records_for(question.fabric).filter(|one| one.collective == kind) {
        let ranks = question.fabric.ranks();
        let about = (record.transfers)(ranks);
        if (record.accepts)(question.fabric.ranks()).is_err() {
            continue;
        }
        for spec in record.variants() {
            let pieces = record.pieces(&spec);
            // Half as many pieces would do.
            if pieces.is_some_and(|pieces| pieces / 2 >= question.size.get().max(1)) {
                continue;
            }
            let mut transfers = pieces.map_or(about, |pieces| pieces.saturating_mul(ranks.into()));
            let (mut least, slots) = least::by_formulas(record, &spec, question)?;
            if transfers > question.most_transfers {
                let most = question.most_transfers;
                let error = PlannerError::TooLarge { transfers, most };
                refused.push((left_out(&spec, least, &error), error));
                continue;
            }
            let quickly = !on_ring && transfers <= QUICKLY_MADE;
            if quickly {
                match least::of_spec(&spec, question) {
                    Ok((known, length)) => {
                        least = least.max(known);
                        transfers = length;
                    }
                    // It is not for fabrics of this family.
                    Err(PlannerError::Algorithm(AlgorithmError::NotARing(_))) => continue,
                    Err(error) if is_of_one(&error) => {
                        refused.push((left_out(&spec, least, &error), error));
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            // Large ones, of which less is known, come when a good time is known; on grids those of few
            // transfers come first.
            let estimate = match (quickly || on_ring, question.fabric.network()) {
                (true, Some(_)) => least,
                (true, None) => least.max(Time::from_ps(if on_ring { slots } else { transfers })),
                (false, _) => Time::from_ps(u64::MAX - 1),
            };
            let transfers = work(question.fabric, transfers);
            let question = *question;
            contenders.push(Contender {
                name: spec.to_string(),
                slots,
                least,
                estimate,
                transfers,
                make: Box::new(move |limit| make_named(&spec, &question, limit)),
            });
        }
    }
    Ok((contenders, refused))
}

fn left_out(spec: &Spec, least: Time, error: &PlannerError) -> Candidate {
    Candidate {
        name: spec.to_string(),
        slots: 0,
        time: least,
        made: false,
        left_out: error.to_string(),
    }
}

/// The plan of a named algorithm, or a time that it cannot go below where that is past the limit. On a ring
/// of wavelengths it is striped as far as there is room.
fn make_named(
    spec: &Spec,
    question: &Question<'_>,
    limit: Option<Time>,
) -> Result<Made, PlannerError> {
    let schedule = algorithm::build(spec, question.collective, question.fabric)?;
    if limit.is_some() {
        let least = least::of_schedule(&schedule, question)?;
        if limit.is_some_and(|limit| least >= limit) {
            return Ok(Made::AtLeast(least));
        }
    }
    if question.fabric.network().is_some() {
        let at_once = (0..schedule.steps()).map(|step| schedule.step(step).len() as u64);
        let transfers = at_once.max().unwrap_or(0);
        if transfers > MOST_AT_ONCE {
            let most = MOST_AT_ONCE;
            return Err(PlannerError::TooLarge { transfers, most });
        }
    }
    let plan = named::lay_out(schedule, question.fabric, spec.to_string())?;
    let stripes = striped::most(&plan);
    if stripes == 1 {
        return Ok(AnyPlan::Full(plan).into());
    }
    let mut plan = match striped::plan(plan.clone(), stripes) {
        Ok(striped) if striped.kept().len() as u64 <= question.most_transfers => striped,
        _ => return Ok(AnyPlan::Full(plan).into()),
    };
    plan.kept_mut().algorithm = spec.clone().with(named::STRIPES, stripes).to_string();
    Ok(plan.into())
}

/// Why the first candidate was taken.
fn reasons(candidates: &[Candidate], question: &Question<'_>) -> Result<Vec<String>, PlannerError> {
    let Some(best) = candidates.first() else {
        return Ok(Vec::new());
    };
    let (fabric, method) = (question.fabric, question.method);
    let (steps, rule) = match (fabric.has_light(), method.simulator) {
        (true, _) => ("slots", format!(" under {}", question.policy().name())),
        (false, Some("packet")) => ("steps", " packet by packet".into()),
        (false, _) => {
            let start = method.start.unwrap_or_default();
            ("steps", format!(" under {}", start.name()))
        }
    };
    let gap = match fabric.ring() {
        Some(ring) => {
            let charge = question.policy().into();
            let bound = time::best(ring, &question.collective, question.size, charge)?;
            above(best.time, bound.time, bound.name)
        }
        None => String::new(),
    };
    let timed = candidates.iter().filter(|one| one.made).count();
    let mut reasons = vec![format!(
        "{} takes {} in {} {steps}{rule}, the least of {timed} plans simulated{gap}",
        best.name, best.time, best.slots,
    )];
    if let Some(next) = candidates.get(1).filter(|next| next.made) {
        reasons.push(format!(
            "next is {} with {} {steps} and {} (simulated)",
            next.name, next.slots, next.time
        ));
    }
    let slower = |one: &&Candidate| !one.made && one.left_out.contains("plan chosen");
    let slower = candidates.iter().filter(slower).count();
    if slower > 0 {
        reasons.push(format!(
            "{slower} others were left out, as none of them can be faster"
        ));
    }
    let over = candidates
        .iter()
        .filter(|one| one.left_out.contains("budget"));
    let over: Vec<&str> = over.map(|one| one.name.as_str()).collect();
    if !over.is_empty() {
        reasons.push(format!(
            "the budget left out {}; a larger one (auto:budget=10min) tries them",
            over.join(", ")
        ));
    }
    Ok(reasons)
}

fn above(time: Time, bound: Time, name: &str) -> String {
    if bound == Time::ZERO {
        return String::new();
    }
    let gap = (time.seconds() / bound.seconds() - 1.0) * 100.0;
    format!(", {gap:.1} % above the {name} bound of {bound}")
}
