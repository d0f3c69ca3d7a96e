//! The plan that takes the least time, of all that are known here.
//!
//! Contenders are the named algorithms with every value that their options have to be tried, on rings of
//! wavelengths in as many stripes as there is room for; and the candidates of all other planners.
//! [`crate::selection::contest`] finds the fastest of them. What a named algorithm cannot go below follows from the formulas of its record before it is made, and
//! from the loads of its schedule before it is placed and timed (`least`).

use crate::building::striping::Striping;
use crate::selection::bounds::time_bound;
use crate::selection::contest::{
    Candidate, Contender, Contest, ContestOutcome, LARGE, LeftOut, Made, is_of_one,
};
use crate::{Effort, Planned, Planner, PlannerError, Question, Scope, ring_of, selection::least};
use opticoll_algorithms::{Algorithm, AlgorithmError};
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;
use opticoll_simulate::Simulator;

/// The planner that chooses.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "transfers",
            "maximum number of transfers of a plan; of representatives, if the plan is \
         rotation-symmetric",
        )
        .range("1 to 4294967295")
        .default("16777216"),
        OptionRecord::new(
            "budget",
            "time to search, counted as a million transfers planned and simulated in a \
         second",
        )
        .unit("time")
        .range("a time, such as 10s")
        .default("1min"),
        OptionRecord::new(
            "effort",
            "what to try: enough, plans that could save more than 1 % of the time if they have 4096 transfers, and more \
         than 5 % if they have a million; full, all that could be faster",
        )
        .range("enough, full")
        .default("enough"),
    ],
    by_size: true,
    takes_demands: true,
    chooses: true,
    ..Planner::new(
        "auto",
        "Auto",
        &CollectiveKind::ALL,
        "The fastest plan found for the size and the policy, of all that are known",
        "opticoll",
        Scope::Any(|_| true, plan, |_| Ok(Vec::new())),
    )
};

/// The transfers that are taken to be made and timed in a second, on whatever machine.
const WORK_PER_SECOND: u64 = 1_000_000;

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    let mut question = *question;
    if let Some(most) = spec.count("transfers", 1, u32::MAX)? {
        question.most_transfers = most.into();
    }
    if let Some(text) = spec.option("budget") {
        let budget: Time = text
            .parse()
            .map_err(|problem| spec.refuse("budget", problem))?;
        let work = u128::from(budget.ps()) * u128::from(WORK_PER_SECOND) / 1_000_000_000_000;
        question.most_work = u64::try_from(work).unwrap_or(u64::MAX);
    }
    question.effort = opticoll_algorithms::choice(spec, "effort", &Effort::ALL)?;
    choose(&question)
}

/// The fastest of all plans known for a collective.
///
/// # Errors
/// Settings that no simulator knows, ranks that nothing joins, or no plan at all.
pub(crate) fn choose(question: &Question<'_>) -> Result<Planned, PlannerError> {
    let (fabric, collective) = (question.fabric, &question.collective);
    let (size, method) = (question.size, question.method);
    let (contenders, least) = interrupt::join(
        || contenders(question),
        || least::of_collective(fabric, collective, size, method),
    );
    let (contenders, refused) = contenders?;
    let contest = Contest {
        question,
        least: least?,
    };
    let ContestOutcome {
        fastest,
        outcome,
        candidates,
    } = contest.run(contenders, refused)?;
    let (mut plan, _) = fastest?;
    plan.size = Some(question.size);
    Ok(Planned {
        reasons: reasons(&candidates, question)?,
        candidates,
        outcome,
        ..plan.into()
    })
}

/// All contenders, and what was refused.
fn contenders<'a>(question: &Question<'a>) -> Result<(Vec<Contender<'a>>, Refused), PlannerError> {
    // Named algorithms come first: of plans alike the simpler one is taken.
    let (mut contenders, mut refused) = named_contenders(question)?;
    for planner in question.planners() {
        let own = memory::attempt(|| planner.candidates(question));
        match own.unwrap_or_else(|much| Err(much.into())) {
            Ok(own) => contenders.extend(own),
            Err(error) => refused.push(left_out(&Spec::new(planner.name), Time::ZERO, error)?),
        }
    }
    Ok((contenders, refused))
}

/// Schedules of no more transfers are made at once, to see what they cannot go below.
const QUICKLY_MADE: u64 = 1 << 20;

/// On rings, named algorithms of more transfers are tried after the planners' plans.
const LATER: u64 = 1 << 12;

/// The estimate of named algorithms that come when a good time is known.
pub(crate) const LATER_NAMED: Time = Time::from_ps(u64::MAX - 1);

/// The most messages that start at once on links that they share: some 4 GB while they are simulated.
const MOST_AT_ONCE: u64 = 1 << 22;

type Refused = Vec<Candidate>;

/// All named algorithms of the collective, with what their options have to be tried; and those that do not run
/// here.
fn named_contenders<'a>(
    question: &Question<'a>,
) -> Result<(Vec<Contender<'a>>, Refused), PlannerError> {
    let (mut contenders, mut refused): (Vec<Contender<'a>>, Refused) = (Vec::new(), Vec::new());
    let (kind, ranks) = (question.collective.kind(), question.fabric.ranks());
    for record in
        opticoll_algorithms::records_for(question.fabric).filter(|one| one.collective == kind)
    {
        if (record.accepts)(ranks).is_err() {
            continue;
        }
        let mut finer = Finer::default();
        for spec in record.variants(question.fabric) {
            let mut least = Time::ZERO;
            if record.pieces(&spec).is_none() {
                finer = Finer::default();
            }
            match named_contender(record, &spec, &mut finer, question, &mut least) {
                Ok(one) => contenders.extend(one),
                Err(error) => refused.push(left_out(&spec, least, error)?),
            }
        }
    }
    Ok((contenders, refused))
}

/// Pipelines of one algorithm that are cut into more and more pieces: once their times at least rise, they rise on.
#[derive(Default)]
struct Finer {
    least: Option<Time>,
    rises: bool,
}

impl Finer {
    fn note(&mut self, least: Time) {
        self.rises = self.least.is_some_and(|coarser| least > coarser);
        self.least = Some(least);
    }
}

/// A named algorithm with values of its options; `None` where it has nothing to offer. `least` becomes what it cannot go
/// below, as far as that is known.
fn named_contender<'a>(
    record: &'static Algorithm,
    spec: &Spec,
    finer: &mut Finer,
    question: &Question<'a>,
    least: &mut Time,
) -> Result<Option<Contender<'a>>, PlannerError> {
    let ranks = question.fabric.ranks();
    let about = (record.transfers)(ranks);
    let on_ring = ring_of(question.fabric).is_some();
    // The formulas of records say enough there, until a good time is known.
    let on_grid = least::has_grid_slots(question)?;
    let pieces = record.pieces(spec);
    // Half as many pieces would do.
    if pieces.is_some_and(|pieces| pieces / 2 >= question.size.get().max(1)) {
        return Ok(None);
    }
    // Every rank sends every piece; of a vector once.
    let of_a_piece = match record.collective {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => about,
        _ => ranks.into(),
    };
    let mut transfers = pieces.map_or(about, |pieces| pieces.saturating_mul(of_a_piece));
    question.fits(transfers)?;
    let slots;
    (*least, slots) = least::by_formulas(record, spec, question)?;
    let mut expected = Time::ZERO;
    let quickly =
        !on_ring && !finer.rises && transfers <= if on_grid { LARGE } else { QUICKLY_MADE };
    let is_known = quickly || on_ring;
    if quickly {
        let known = match least::of_spec(spec, question) {
            // It is not for fabrics of this family.
            Err(PlannerError::Algorithm(AlgorithmError::WrongFamily(_))) => return Ok(None),
            known => known?,
        };
        *least = known.least.max(*least);
        expected = expected.max(known.expected);
        transfers = known.transfers;
        if pieces.is_some() {
            finer.note(*least);
        }
    }
    // Large ones come when a good time is known, which most of them cannot reach by their loads; on grids those of
    // few transfers come first.
    let is_large = on_ring && transfers > LATER;
    let estimate = match (is_known, question.fabric.network()) {
        _ if is_large => LATER_NAMED,
        (true, Some(_)) => *least,
        (true, None) => {
            let order = Time::from_ps(if on_ring { slots } else { transfers });
            order.max(*least).max(expected)
        }
        (false, _) => LATER_NAMED,
    };
    if question.fabric.network().is_some() {
        expected = least::of_question(question, slots.into());
    }
    if let (true, Some(coarser)) = (finer.rises && !quickly, finer.least) {
        expected = expected.max(coarser);
    }
    let (question, spec) = (*question, spec.clone());
    Ok(Some(Contender {
        name: spec.to_string(),
        slots,
        least: *least,
        estimate,
        transfers: question.work(transfers),
        make: Box::new(move |limit| {
            let is_slow = limit.is_some_and(|limit| expected >= limit);
            match is_slow && !is_known && question.effort == Effort::Enough {
                true => Ok(Made::NotExpected("its steps are longer")),
                false => make_named(record, &spec, &question, limit),
            }
        }),
    }))
}

/// What an error leaves out, where it says nothing of the others.
fn left_out(spec: &Spec, least: Time, error: PlannerError) -> Result<Candidate, PlannerError> {
    if !is_of_one(&error) {
        return Err(error);
    }
    Ok(Candidate {
        name: spec.to_string(),
        slots: 0,
        time: least,
        left_out: Some(LeftOut::Refused(error)),
    })
}

/// The plan of a named algorithm, or a time that it cannot go below where that is past the limit. On a ring
/// of wavelengths it is striped as far as there is room.
fn make_named(
    record: &Algorithm,
    spec: &Spec,
    question: &Question<'_>,
    limit: Option<Time>,
) -> Result<Made, PlannerError> {
    let is_slower = |least: Time| limit.is_some_and(|limit| least >= limit);
    if limit.is_some() {
        let least = least::before_it_is_made(record, spec, question)?;
        if is_slower(least) {
            return Ok(Made::AtLeast(least));
        }
    }
    let ranges = opticoll_algorithms::build_ranges(spec, question.collective, question.fabric)?;
    // A schedule of ranges has few transfers: it soon tells what cannot be fast enough.
    if limit.is_some() && !ranges.has_single_chunks() {
        let least = least::of_ranges(&ranges, question)?;
        if is_slower(least) {
            return Ok(Made::AtLeast(least));
        }
    }
    let schedule = opticoll_algorithms::carried(ranges, question.fabric)?;
    if limit.is_some() {
        let least = least::of_schedule(&schedule, question)?;
        if is_slower(least) {
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
    let plan = opticoll_placement::place_by_default(schedule, question.fabric, spec.to_string())?;
    if let Some(limit) = limit {
        let least = least::of_placed(&plan, question)?;
        if least >= limit {
            return Ok(Made::AtLeast(least));
        }
    }
    Ok(match Striping::widest(plan, question) {
        Ok(striping) => Made::Striped(striping.into()),
        Err(plan) => (*plan).into(),
    })
}

/// Why the first candidate was taken.
fn reasons(candidates: &[Candidate], question: &Question<'_>) -> Result<Vec<String>, PlannerError> {
    let Some(best) = candidates.first() else {
        return Ok(Vec::new());
    };
    let (fabric, method) = (question.fabric, question.method);
    let step = if fabric.has_light() { "slot" } else { "step" };
    let rule = (Simulator::chosen(fabric, method).rule)(fabric, method);
    let bound = match fabric.has_light() {
        true => time_bound(fabric, &question.collective, question.size, method)?,
        false => None,
    };
    let gap = bound.map_or(String::new(), |bound| {
        above(best.time, bound.time, bound.name)
    });
    let made = candidates.iter().filter(|one| one.left_out.is_none());
    let timed = made.clone().count();
    let mut reasons = vec![format!(
        "{} takes {} in {} {rule}, {}{gap}",
        best.name,
        best.time,
        plural(best.slots as usize, step),
        match timed {
            1 => "the only plan simulated".to_owned(),
            timed => format!("the least of {timed} plans simulated"),
        },
    )];
    if let Some(next) = made.clone().nth(1) {
        reasons.push(format!(
            "next is {} with {} and {} (simulated)",
            next.name,
            plural(next.slots as usize, step),
            next.time
        ));
    }
    let count = |kind: fn(&LeftOut) -> bool| {
        let left_out = candidates.iter().filter_map(|one| one.left_out.as_ref());
        left_out.filter(|&reason| kind(reason)).count()
    };
    let others = [
        (
            count(|reason| matches!(reason, LeftOut::Slower)),
            "cannot be faster",
        ),
        (
            count(|reason| matches!(reason, LeftOut::LittleGain)),
            "could save too little for so many transfers",
        ),
        (
            count(|reason| matches!(reason, LeftOut::Longer)),
            "given up as taking longer",
        ),
        (
            count(|reason| matches!(reason, LeftOut::NotExpected(_))),
            "expected to be slower",
        ),
        (
            count(|reason| matches!(reason, LeftOut::Refused(_))),
            "impossible here",
        ),
    ];
    let others: Vec<String> = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    if !others.is_empty() {
        reasons.push(format!("not simulated to the end: {}", others.join(", ")));
    }
    let over = candidates
        .iter()
        .filter(|one| matches!(one.left_out, Some(LeftOut::Budget { .. })));
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
