//! The planner `auto`: the fastest plan among all algorithms and planners.
//!
//! The candidates are the algorithms, with every option value that their records list in `tries`,
//! and the candidates of all other planners. On WDM rings, algorithms use the maximum number of
//! stripes. [`crate::selection::evaluation`] selects the fastest candidate. The bounds of
//! [`crate::selection::candidate_bound`] exclude slow algorithms early: before the schedule is
//! built, by the formulas of the record; before the schedule is placed and simulated, by its link
//! loads.

use crate::building::striping::Striping;
use crate::selection::evaluation::{
    Built, Candidate, CandidateResult, Evaluation, EvaluationOutcome, LeftOut, QUICK_TRANSFERS,
    concerns_one_candidate,
};
use crate::selection::stated_bound::time_bound;
use crate::{
    Effort, Planned, Planner, PlannerError, PlanningProblem, Scope, ring_of,
    selection::candidate_bound,
};
use opticoll_algorithms::{Algorithm, AlgorithmError};
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;
use opticoll_simulate::Simulator;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "transfers",
            "maximum number of transfers of a plan, or of its representative if it is \
            rotation-symmetric",
        )
        .range("1 to 4294967295")
        .default("16777216"),
        OptionRecord::new(
            "budget",
            "limit of the search: a million transfers, planned and simulated, count as one second",
        )
        .unit("time")
        .range("a time, such as 10s")
        .default("1min"),
        OptionRecord::new(
            "effort",
            "plans to try: full, all plans that could be faster; enough, plans of 4096 \
            transfers or more only if they could save more than 1 % of the time, and of a \
            million or more only if more than 5 %",
        )
        .range("enough, full")
        .default("enough"),
    ],
    depends_on_size: true,
    takes_demands: true,
    chooses: true,
    ..Planner::new(
        "auto",
        "Auto",
        &CollectiveKind::ALL,
        "The fastest plan of all algorithms and planners for the size and the policy",
        "opticoll",
        Scope::Any(|_| true, plan, |_| Ok(Vec::new())),
    )
};

/// Number of transfers that count as one second of the option `budget`. The number is the same on
/// every machine, so the selection does not depend on the machine.
const WORK_PER_SECOND: u64 = 1_000_000;

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let mut problem = *problem;
    if let Some(max_transfers) = spec.count("transfers", 1, u32::MAX)? {
        problem.max_transfers = max_transfers.into();
    }
    if let Some(text) = spec.option("budget") {
        let budget: Time = text.parse().map_err(|error| spec.refuse("budget", error))?;
        let work = u128::from(budget.ps()) * u128::from(WORK_PER_SECOND) / 1_000_000_000_000;
        problem.max_work = u64::try_from(work).unwrap_or(u64::MAX);
    }
    problem.effort = opticoll_algorithms::choice(spec, "effort", &Effort::ALL)?;
    choose(&problem)
}

/// Selects the fastest plan for a collective, among those that meet the condition of the problem.
pub(crate) fn choose(problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let (fabric, collective) = (problem.fabric, &problem.collective);
    let (size, method) = (problem.size, problem.method);
    // The condition does not apply to plans of which a candidate consists.
    let of_parts = PlanningProblem {
        condition: None,
        ..*problem
    };
    let (candidates, lower_bound) = interrupt::join(
        || candidates(&of_parts),
        || candidate_bound::collective_bound(fabric, collective, size, method),
    );
    let (candidates, refused) = candidates?;
    let evaluation = Evaluation {
        problem,
        lower_bound: lower_bound?,
    };
    let EvaluationOutcome {
        fastest,
        outcome,
        candidates,
    } = evaluation.run(candidates, refused)?;
    let (mut plan, _) = fastest?;
    plan.size = Some(problem.size);
    Ok(Planned {
        reasons: reasons(&candidates, problem)?,
        candidates,
        outcome,
        ..plan.into()
    })
}

/// Returns all candidates, and the results of candidates that failed to be created.
fn candidates<'a>(
    problem: &PlanningProblem<'a>,
) -> Result<(Vec<Candidate<'a>>, Refused), PlannerError> {
    // Algorithms precede planners, so the simpler plan wins a tie.
    let (mut candidates, mut refused) = match problem.tried {
        None => named_candidates(problem)?,
        Some(_) => Default::default(),
    };
    for planner in problem.planners() {
        let planner_candidates = memory::attempt(|| planner.candidates(problem));
        match planner_candidates.unwrap_or_else(|much| Err(much.into())) {
            Ok(planner_candidates) => candidates.extend(planner_candidates),
            Err(error) => refused.push(left_out(&Spec::new(planner.name), Time::ZERO, error)?),
        }
    }
    Ok((candidates, refused))
}

/// Maximum number of transfers of a schedule that is built immediately to compute its lower bound:
/// about one second at 1,000,000 transfers per second.
const QUICK_SCHEDULE_TRANSFERS: u64 = 1 << 20;

/// Maximum number of transfers of an algorithm on a ring that is tried in the order of estimates.
/// Algorithms with more transfers are tried last.
const MAX_EARLY_TRANSFERS: u64 = 1 << 12;

/// Estimate for algorithms that are tried last: the second largest time.
pub(crate) const LATE_ESTIMATE: Time = Time::from_ps(u64::MAX - 1);

/// Maximum number of simultaneous messages on shared links, whose simulation needs about 4 GB.
const MAX_CONCURRENT_MESSAGES: u64 = 1 << 22;

type Refused = Vec<CandidateResult>;

/// Returns the candidates of all algorithms of the collective, with every option value to try, and
/// the results of candidates that failed.
fn named_candidates<'a>(
    problem: &PlanningProblem<'a>,
) -> Result<(Vec<Candidate<'a>>, Refused), PlannerError> {
    let (mut candidates, mut refused): (Vec<Candidate<'a>>, Refused) = (Vec::new(), Vec::new());
    let (kind, ranks) = (problem.collective.kind(), problem.fabric.ranks());
    for record in
        opticoll_algorithms::records_for(problem.fabric).filter(|record| record.collective == kind)
    {
        if (record.accepts)(ranks).is_err() {
            continue;
        }
        let mut piece_bounds = PieceBounds::default();
        for spec in record.variants(problem.fabric) {
            let mut lower_bound = Time::ZERO;
            if record.pieces(&spec).is_none() {
                piece_bounds = PieceBounds::default();
            }
            match named_candidate(record, &spec, &mut piece_bounds, problem, &mut lower_bound) {
                Ok(candidate) => candidates.extend(candidate),
                Err(error) => refused.push(left_out(&spec, lower_bound, error)?),
            }
        }
    }
    Ok((candidates, refused))
}

/// Lower bounds on the time of a pipeline algorithm, which is tried with more and more pieces. If
/// one increase of the number of pieces raises the bound, all later increases raise the bound.
#[derive(Default)]
struct PieceBounds {
    /// Lower bound for the latest number of pieces.
    lower_bound: Option<Time>,
    /// True if the latest increase of the number of pieces raised the bound.
    rises: bool,
}

impl PieceBounds {
    fn note(&mut self, lower_bound: Time) {
        self.rises = self
            .lower_bound
            .is_some_and(|coarser| lower_bound > coarser);
        self.lower_bound = Some(lower_bound);
    }
}

/// Returns the candidate of an algorithm with the option values of `spec`, or `None` if there is no
/// plan to try. Writes the largest lower bound on the time to `lower_bound`, even if the function
/// fails.
fn named_candidate<'a>(
    record: &'static Algorithm,
    spec: &Spec,
    piece_bounds: &mut PieceBounds,
    problem: &PlanningProblem<'a>,
    lower_bound: &mut Time,
) -> Result<Option<Candidate<'a>>, PlannerError> {
    let ranks = problem.fabric.ranks();
    let typical_transfers = (record.transfers)(ranks);
    let on_ring = ring_of(problem.fabric).is_some();
    // On a grid with slots, the formulas of records are tight enough until a good time is known.
    let has_grid_slots = candidate_bound::has_grid_slots(problem)?;
    let pieces = record.pieces(spec);
    // With half as many pieces, a piece already has at most one byte.
    if pieces.is_some_and(|pieces| pieces / 2 >= problem.size.get().max(1)) {
        return Ok(None);
    }
    // Every rank sends every piece of every block, and every piece of a vector once.
    let transfers_of_piece = match record.collective {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => typical_transfers,
        _ => ranks.into(),
    };
    let mut transfers = pieces.map_or(typical_transfers, |pieces| {
        pieces.saturating_mul(transfers_of_piece)
    });
    problem.fits(transfers)?;
    let slots;
    (*lower_bound, slots) = candidate_bound::formula_bound(record, spec, problem)?;
    let mut expected = Time::ZERO;
    let is_quick = !on_ring
        && !piece_bounds.rises
        && transfers
            <= if has_grid_slots {
                QUICK_TRANSFERS
            } else {
                QUICK_SCHEDULE_TRANSFERS
            };
    let is_known = is_quick || on_ring;
    if is_quick {
        let bound = match candidate_bound::spec_bound(spec, problem) {
            Err(PlannerError::Algorithm(AlgorithmError::WrongFamily(_))) => return Ok(None),
            bound => bound?,
        };
        *lower_bound = bound.least.max(*lower_bound);
        expected = expected.max(bound.expected);
        transfers = bound.transfers;
        if pieces.is_some() {
            piece_bounds.note(*lower_bound);
        }
    }
    // Large algorithms are tried last, because the link loads of most of them exclude the best
    // time. On grids, algorithms with few transfers come first.
    let is_large = on_ring && transfers > MAX_EARLY_TRANSFERS;
    let estimate = match (is_known, problem.fabric.network()) {
        _ if is_large => LATE_ESTIMATE,
        (true, Some(_)) => *lower_bound,
        (true, None) => {
            let order = Time::from_ps(if on_ring { slots } else { transfers });
            order.max(*lower_bound).max(expected)
        }
        (false, _) => LATE_ESTIMATE,
    };
    if problem.fabric.network().is_some() {
        expected = candidate_bound::estimate_steps(problem, slots.into());
    }
    if let (true, Some(coarser)) = (piece_bounds.rises && !is_quick, piece_bounds.lower_bound) {
        expected = expected.max(coarser);
    }
    let (problem, spec) = (*problem, spec.clone());
    Ok(Some(Candidate {
        name: spec.to_string(),
        slots,
        lower_bound: *lower_bound,
        estimate,
        transfers: problem.work(transfers),
        build: Box::new(move |limit| {
            let is_slow = limit.is_some_and(|limit| expected >= limit);
            match is_slow && !is_known && problem.effort == Effort::Enough {
                true => Ok(Built::NotExpected("its steps are longer")),
                false => build_named(record, &spec, &problem, limit),
            }
        }),
    }))
}

/// Returns the result of a candidate that failed, or the error if it concerns all candidates.
fn left_out(
    spec: &Spec,
    lower_bound: Time,
    error: PlannerError,
) -> Result<CandidateResult, PlannerError> {
    if !concerns_one_candidate(&error) {
        return Err(error);
    }
    Ok(CandidateResult {
        name: spec.to_string(),
        slots: 0,
        time: lower_bound,
        left_out: Some(LeftOut::Refused(error)),
    })
}

/// Builds the plan of an algorithm. A plan on a WDM ring has the maximum number of stripes. If a
/// lower bound on the plan's time reaches `limit`, returns this bound instead of the plan.
fn build_named(
    record: &Algorithm,
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    limit: Option<Time>,
) -> Result<Built, PlannerError> {
    let is_slower = |lower_bound: Time| limit.is_some_and(|limit| lower_bound >= limit);
    if limit.is_some() {
        let lower_bound = candidate_bound::record_bound(record, spec, problem)?;
        if is_slower(lower_bound) {
            return Ok(Built::AtLeast(lower_bound));
        }
    }
    let ranges = opticoll_algorithms::build_ranges(spec, problem.collective, problem.fabric)?;
    // Schedules of ranges have few transfers, so their bound is computed quickly.
    if limit.is_some() && !ranges.has_single_chunks() {
        let lower_bound = candidate_bound::ranges_bound(&ranges, problem)?;
        if is_slower(lower_bound) {
            return Ok(Built::AtLeast(lower_bound));
        }
    }
    let schedule = opticoll_algorithms::carried(ranges, problem.fabric)?;
    if limit.is_some() {
        let lower_bound = candidate_bound::schedule_bound(&schedule, problem)?;
        if is_slower(lower_bound) {
            return Ok(Built::AtLeast(lower_bound));
        }
    }
    if problem.fabric.network().is_some() {
        let at_once = (0..schedule.steps()).map(|step| schedule.step(step).len() as u64);
        let transfers = at_once.max().unwrap_or(0);
        if transfers > MAX_CONCURRENT_MESSAGES {
            let most = MAX_CONCURRENT_MESSAGES;
            return Err(PlannerError::TooLarge { transfers, most });
        }
    }
    let plan = opticoll_placement::place_by_default(schedule, problem.fabric, spec.to_string())?;
    if let Some(limit) = limit {
        let lower_bound = candidate_bound::placed_bound(&plan, problem)?;
        if lower_bound >= limit {
            return Ok(Built::AtLeast(lower_bound));
        }
    }
    Ok(match Striping::widest(plan, problem) {
        Ok(striping) => Built::Striped(striping.into()),
        Err(plan) => (*plan).into(),
    })
}

/// Returns the reasons, in sentences, for the selection of the first candidate.
pub(crate) fn reasons(
    candidates: &[CandidateResult],
    problem: &PlanningProblem<'_>,
) -> Result<Vec<String>, PlannerError> {
    let Some(best) = candidates.first() else {
        return Ok(Vec::new());
    };
    let (fabric, method) = (problem.fabric, problem.method);
    let step = if fabric.has_light() { "slot" } else { "step" };
    let rule = (Simulator::selected(fabric, method).rule)(fabric, method);
    let bound = match fabric.has_light() {
        true => time_bound(fabric, &problem.collective, problem.size, method)?,
        false => None,
    };
    let gap = bound.map_or(String::new(), |bound| {
        gap_text(best.time, bound.time, bound.name)
    });
    let simulated = candidates.iter().filter(|result| result.left_out.is_none());
    let timed = simulated.clone().count();
    let mut reasons = vec![format!(
        "{} takes {} in {} {rule}, {}{gap}",
        best.name,
        best.time,
        plural(best.slots as usize, step),
        match timed {
            1 => "the only simulated plan".to_owned(),
            timed => format!("the shortest time of {timed} simulated plans"),
        },
    )];
    if let Some(next) = simulated.clone().nth(1) {
        reasons.push(format!(
            "next is {} with {} and {} (simulated)",
            next.name,
            plural(next.slots as usize, step),
            next.time
        ));
    }
    let count = |kind: fn(&LeftOut) -> bool| {
        let left_out = candidates
            .iter()
            .filter_map(|result| result.left_out.as_ref());
        left_out.filter(|&reason| kind(reason)).count()
    };
    let others = [
        (
            count(|reason| matches!(reason, LeftOut::Slower)),
            "cannot be faster",
        ),
        (
            count(|reason| matches!(reason, LeftOut::LittleGain)),
            "could save too little time for the number of transfers",
        ),
        (
            count(|reason| matches!(reason, LeftOut::Longer)),
            "took longer than the plan chosen",
        ),
        (
            count(|reason| matches!(reason, LeftOut::NotExpected(_))),
            "would probably be slower",
        ),
        (
            count(|reason| matches!(reason, LeftOut::Refused(_))),
            "cannot run here",
        ),
    ];
    let others: Vec<String> = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|&(count, reason)| format!("{} that {reason}", plural(count, "candidate")))
        .collect();
    if !others.is_empty() {
        reasons.push(format!("not simulated to the end: {}", others.join(", ")));
    }
    let over_budget = candidates
        .iter()
        .filter(|result| matches!(result.left_out, Some(LeftOut::Budget { .. })));
    let over_budget: Vec<&str> = over_budget.map(|result| result.name.as_str()).collect();
    if !over_budget.is_empty() {
        reasons.push(format!(
            "not tried within the budget: {}; a larger budget (auto:budget=10min) includes them",
            over_budget.join(", ")
        ));
    }
    Ok(reasons)
}

fn gap_text(time: Time, bound: Time, name: &str) -> String {
    if bound == Time::ZERO {
        return String::new();
    }
    let gap = (time.seconds() / bound.seconds() - 1.0) * 100.0;
    format!(", {gap:.1} % above the {name} bound of {bound}")
}
