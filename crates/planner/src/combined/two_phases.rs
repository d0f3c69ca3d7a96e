//! Two collectives one after the other that are a third: reduce_scatter and all_gather an all_reduce (Rabenseifner
//! 2004), scatter and all_gather a broadcast, reduce_scatter and gather a reduce (van de Geijn 1994).
//!
//! Each half is named as `NAME/OPTION=VALUE/OPTION=VALUE`, or is the fastest found for its own size.

use crate::building::assembly::Assembly;
use crate::building::time_reversal;
use crate::selection::auto::LATE_ESTIMATE;
use crate::selection::evaluation::{Built, Candidate, concerns_one_candidate};
use crate::selection::named::{flat, nested};
use crate::{
    Planned, Planner, PlannerError, PlanningProblem, Scope, ring::tree as rooted, ring_of,
};
use opticoll_algorithms::scatter_all_gather;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Claims, Schedule};
use opticoll_simulate::Policy;

/// The planner of two phases.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "first",
            "algorithm of the first phase, such as direct/order=at_once",
        )
        .range("algorithms of that collective")
        .default("the fastest found"),
        OptionRecord::new("second", "algorithm of the second phase")
            .range("algorithms of that collective")
            .default("the fastest found"),
    ],
    by_size: true,
    ..Planner::new(
        NAME,
        "Two phases",
        &[
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        "Reduce_scatter or scatter, then all_gather or gather, each as fast as found",
        "Rabenseifner, ICCS 2004; van de Geijn, Journal of Parallel and Distributed Computing 1994",
        Scope::Any(|_| true, plan, candidates),
    )
};

const NAME: &str = "two_phases";

/// The halves of a collective; none where it is not made of two.
fn halves(kind: CollectiveKind) -> Option<(CollectiveKind, CollectiveKind)> {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
    match kind {
        AllReduce => Some((ReduceScatter, AllGather)),
        Broadcast => Some((Scatter, AllGather)),
        Reduce => Some((ReduceScatter, Gather)),
        _ => None,
    }
}

/// The question for one half: an N-th of the size, but for a reduce_scatter, which has all of it.
fn half<'a>(
    kind: CollectiveKind,
    problem: &PlanningProblem<'a>,
) -> Result<PlanningProblem<'a>, PlannerError> {
    let whole = problem.collective;
    let part = Bytes::new(problem.size.get().div_ceil(u64::from(whole.ranks())));
    Ok(PlanningProblem {
        collective: Collective::new(kind, whole.ranks())?.with_root(whole.root())?,
        size: match kind {
            CollectiveKind::ReduceScatter => problem.size,
            _ => part,
        },
        // What is run backwards, or by others than its own ranks, goes by the routes of the fabric.
        may_name_routes: problem.may_name_routes && whole.kind() == CollectiveKind::AllReduce,
        // A scatter and a gather have a root, and are never folded.
        keeps_folds: problem.keeps_folds && whole.kind() == CollectiveKind::AllReduce,
        ..*problem
    })
}

/// A plan of the fastest halves as a contender, made last of all; on rings before named algorithms of many transfers, most of which
/// cannot reach its time; on grids, where halves come near to their bounds, in its turn.
///
/// # Errors
/// A time beyond 64 bits.
fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let Some((first, second)) = halves(problem.collective.kind()) else {
        return Ok(Vec::new());
    };
    if problem.collective.ranks() < 2 {
        return Ok(Vec::new());
    }
    // On links, and on tuned circuits, messages of the second phase may start while the first one ends, but most start
    // afterwards: less than two thirds of both bounds together is not to be expected.
    let mut expected = Time::ZERO;
    let on_grid = problem.fabric.planes().is_some();
    let mut estimate = match ring_of(problem.fabric) {
        Some(_) => LATE_ESTIMATE.ps() - 1,
        None => u64::MAX,
    };
    if on_grid || problem.fabric.network().is_some() {
        let (first, second) = (half(first, problem)?, half(second, problem)?);
        let both = first.least()?.plus(second.least()?)?;
        expected = Time::from_ps(both.ps() / 3 * 2);
        if on_grid {
            estimate = both.ps().saturating_add(both.ps() / ABOVE);
        }
    }
    let ranks = u64::from(problem.collective.ranks());
    // Along rows and columns blocks next to one another are one transfer.
    let transfers = problem.work(ranks * ranks)
        / if problem.fabric.planes().is_some() {
            8
        } else {
            1
        };
    let problem = PlanningProblem {
        most_work: problem.most_work / 2,
        ..*problem
    };
    Ok(vec![Candidate {
        name: NAME.into(),
        slots: 0,
        least: Time::ZERO,
        estimate: Time::from_ps(estimate),
        transfers,
        make: Box::new(move |limit| {
            // Two searches are not worth a thousandth.
            let least = problem.least()?;
            let expected = expected.max(least.plus(Time::from_ps(least.ps() / 1000))?);
            if limit.is_some_and(|limit| limit <= expected) {
                return Ok(Built::NotExpected(
                    "its two phases are not expected to be faster",
                ));
            }
            let problem = PlanningProblem { limit, ..problem };
            match plan(&Spec::new(NAME), &problem) {
                Err(PlannerError::NothingFits { .. }) if limit.is_some() => Ok(Built::NotExpected(
                    "its two phases take longer one after the other, or save too little for so many transfers",
                )),
                planned => planned.map(|planned| Built::from(planned.plan)),
            }
        }),
    }])
}

/// On grids two phases are expected to take so small a part more than both bounds together.
const ABOVE: u64 = 32;

/// Joined plans of more transfers take seconds to join, time and prove: they are to save a tenth of the time.
const QUICK_TRANSFERS: u64 = 1 << 22;

/// Over links, messages of unequal sizes are simulated one by one: more of them take minutes.
const MOST_UNEVEN: u64 = 1 << 20;

/// What a joined plan is made for: less time than a limit, of which one of its halves takes a part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinedLimit {
    limit: Time,
    /// The time of the other half.
    beside: Time,
    /// Whether the plan is not folded. With half of [`QUICK_TRANSFERS`] transfers it is to save a twentieth.
    is_written_out: bool,
}

impl JoinedLimit {
    /// Whether a half of so much time saves enough for as many transfers.
    pub(crate) fn is_worth(self, time: Time, transfers: u64) -> bool {
        let share = match transfers {
            transfers if transfers > QUICK_TRANSFERS => 10,
            transfers if self.is_written_out && transfers > QUICK_TRANSFERS / 2 => 20,
            _ => return true,
        };
        let longest = self.limit.ps() - self.limit.ps() / share;
        time.ps().saturating_add(self.beside.ps()) <= longest
    }
}

/// The plan that a spec names; a half that it leaves out is the fastest found.
///
/// # Errors
/// A half that is unknown or does not run here, or halves that do not fit one another.
fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let collective = problem.collective;
    let Some((first, second)) = halves(collective.kind()) else {
        return Err(PlannerError::Collective {
            kind: collective.kind(),
            hint: "two phases are an all_reduce, a broadcast or a reduce",
        });
    };
    if let Some(half) = mirrored(spec, problem)? {
        let gather = half.fastest()?.plan;
        let name = flat(&gather.algorithm);
        let mut joined = time_reversal::all_reduce(&gather)?;
        let name = Spec::new(NAME).with("first", &name).with("second", &name);
        joined.algorithm = name.to_string();
        joined.size = Some(problem.size);
        return Ok(joined.into());
    }
    let planned = |key: &'static str, kind: CollectiveKind, beside: Time| {
        let half = PlanningProblem {
            limit: limit_beside(problem, beside)?,
            ..half(kind, problem)?
        };
        let half = PlanningProblem {
            joined: problem.limit.map(|limit| JoinedLimit {
                limit,
                beside,
                is_written_out: !half.keeps_folds,
            }),
            ..half
        };
        let planned: Planned = match spec.option(key) {
            Some(text) => half.answer(&nested(text)?)?,
            None => half.fastest()?,
        };
        // The fastest, and the next ones, should it not fit the other half.
        let next = planned
            .candidates
            .iter()
            .filter(|one| one.left_out.is_none())
            .skip(1);
        let next: Vec<String> = next
            .take(MOST_TRIED - 1)
            .map(|one| one.name.clone())
            .collect();
        let time = planned.candidates.first().map(|one| one.time);
        Ok::<_, PlannerError>((half, planned.plan, next, time.unwrap_or_default()))
    };
    let least = half(second, problem)?.least()?;
    let (of_first, fastest, firsts, time) = planned("first", first, least)?;
    let (of_second, fastest_second, seconds, later) = planned("second", second, time)?;
    let transfers = fastest.transfers() + fastest_second.transfers();
    let joined = of_second.joined;
    // Of fewer bytes than ranks some messages are empty, and the others alike.
    let (bytes, ranks) = (problem.size.get(), u64::from(collective.ranks()));
    let is_even = bytes % ranks == 0 || bytes < ranks;
    let is_long = !is_even && transfers > MOST_UNEVEN && problem.fabric.network().is_some();
    if joined.is_some_and(|_| is_long)
        || joined.is_some_and(|joined| !joined.is_worth(later, transfers))
    {
        let most = problem.most_transfers;
        return Err(PlannerError::NothingFits { most });
    }
    let mut refused = None;
    for first in std::iter::once(None).chain(firsts.iter().map(Some)) {
        for second in std::iter::once(None).chain(seconds.iter().map(Some)) {
            let made =
                |name: Option<&String>, fastest: &Plan, half: &PlanningProblem<'_>| match name {
                    None => Ok(fastest.clone()),
                    Some(name) => half.answer(&name.parse()?).map(|planned| planned.plan),
                };
            let first = made(first, &fastest, &of_first)?;
            let second = made(second, &fastest_second, &of_second)?;
            let name = Spec::new(NAME)
                .with("first", flat(&first.algorithm))
                .with("second", flat(&second.algorithm));
            match join(problem, first, second) {
                Ok(mut joined) => {
                    joined.algorithm = name.to_string();
                    joined.size = Some(problem.size);
                    return Ok(joined.into());
                }
                Err(error) if concerns_one_candidate(&error) => _ = refused.get_or_insert(error),
                Err(error) => return Err(error),
            }
        }
    }
    Err(refused.unwrap_or(PlannerError::NothingFits {
        most: problem.most_transfers,
    }))
}

/// The all_gather that is both halves of an all_reduce on a ring whose slots follow one another: backwards it is a reduce_scatter that
/// takes as long, and no half is faster.
fn mirrored<'a>(
    spec: &Spec,
    problem: &PlanningProblem<'a>,
) -> Result<Option<PlanningProblem<'a>>, PlannerError> {
    let Some(ring) = ring_of(problem.fabric).filter(|ring| ring.is_even()) else {
        return Ok(None);
    };
    let has_barriers = matches!(
        problem.policy(),
        Policy::EveryStep | Policy::OnChange | Policy::Free
    );
    let is_all_reduce = problem.collective.kind() == CollectiveKind::AllReduce;
    if !has_barriers || !is_all_reduce || spec.options().next().is_some() {
        return Ok(None);
    }
    let shared = match problem.policy() {
        Policy::OnChange => ring.reconfiguration,
        _ => Time::ZERO,
    };
    let longest = problem.limit.map(|limit| limit.plus(shared)).transpose()?;
    Ok(Some(PlanningProblem {
        limit: longest.map(|longest| Time::from_ps(longest.ps().div_ceil(2))),
        ..half(CollectiveKind::AllGather, problem)?
    }))
}

/// The limit of one half on a ring, if the other takes as long as `beside`: with barriers the slots of both follow one another.
/// One reconfiguration may do for both where both send from every rank to every other; the circuits of a root are its own.
/// Ports do not wait for one another under `per_port`, but halves with a root are not expected to be faster there.
fn limit_beside(problem: &PlanningProblem<'_>, beside: Time) -> Result<Option<Time>, PlannerError> {
    let Some(ring) = ring_of(problem.fabric) else {
        return Ok(None);
    };
    let has_root = problem.collective.kind() != CollectiveKind::AllReduce;
    let (beside, shared) = match problem.policy() {
        Policy::Free | Policy::EveryStep => (beside, Time::ZERO),
        Policy::OnChange | Policy::PerPort if has_root => (beside, Time::ZERO),
        Policy::OnChange => (beside, ring.reconfiguration),
        _ => (Time::ZERO, ring.reconfiguration),
    };
    let longest = problem.limit.map(|limit| limit.plus(shared)).transpose()?;
    Ok(longest.map(|longest| Time::from_ps((longest.ps() + 1).saturating_sub(beside.ps()))))
}

/// How many of the fastest plans of a half are tried, since not all fit one another.
const MOST_TRIED: usize = 4;

fn join(problem: &PlanningProblem<'_>, first: Plan, second: Plan) -> Result<Plan, PlannerError> {
    let collective = problem.collective;
    if let Some(ring) = ring_of(problem.fabric) {
        return match collective.kind() {
            CollectiveKind::AllReduce => all_reduce_on_ring(problem, ring, first, second),
            CollectiveKind::Broadcast => broadcast_on_ring(problem, ring, first, second),
            _ => {
                problem.fits(first.transfers().saturating_add(second.transfers()))?;
                let (first, second) = (first.into_written_out(), second.into_written_out());
                rooted::reduce_scatter_gather(ring, collective, &first, &second)
            }
        };
    }
    let (first_plan, second_plan) = (first.into_written_out(), second.into_written_out());
    let (first, second) = (first_plan.schedule, second_plan.schedule);
    let mut schedule = match collective.kind() {
        CollectiveKind::AllReduce => {
            let (whole, by_first, by_second) = refined(collective, &first, &second)?;
            let mut schedule = Schedule::new(whole);
            schedule.append(&first, by_first);
            schedule.append(&second, by_second);
            schedule
        }
        CollectiveKind::Broadcast => {
            whole_parts(&first)?;
            whole_parts(&second)?;
            scatter_all_gather::composed(collective, &first, &second)?
        }
        _ => {
            whole_parts(&first)?;
            whole_parts(&second)?;
            // A reduce is a broadcast backwards.
            let ranks = collective.ranks();
            let of = |kind| Collective::new(kind, ranks)?.with_root(collective.root());
            let scattering = second.reversed(of(CollectiveKind::Scatter)?);
            let gathering = first.reversed(of(CollectiveKind::AllGather)?);
            let broadcast = of(CollectiveKind::Broadcast)?;
            let forward = scatter_all_gather::composed(broadcast, &scattering, &gathering)?;
            forward.reversed(collective.with_pieces(forward.collective.pieces())?)
        }
    };
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    let mut plan = opticoll_placement::place_by_default(schedule, problem.fabric, String::new())?;
    plan.routes.append(&first_plan.routes, 0);
    plan.routes.append(&second_plan.routes, first.len());
    Ok(plan)
}

/// The collective in as many chunks as both halves need, and how many of them a chunk of each is.
fn refined(
    collective: Collective,
    first: &Schedule,
    second: &Schedule,
) -> Result<(Collective, u32, u32), PlannerError> {
    let (one, other) = (first.collective.chunks(), second.collective.chunks());
    let chunks = rooted::least_common_multiple(one, other);
    Ok((
        collective.with_pieces(chunks)?,
        chunks / one,
        chunks / other,
    ))
}

/// Refuses blocks in pieces, which the parts of a vector are already.
fn whole_parts(half: &Schedule) -> Result<(), PlannerError> {
    match half.collective.pieces() {
        1 => Ok(()),
        pieces => {
            let sentence = format!(
                "a half that cuts blocks into {pieces} pieces does not compose; name a half of whole blocks"
            );
            Err(PlacementError::new(PlacementProblem::Unfit, &sentence).into())
        }
    }
}

fn all_reduce_on_ring(
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
    first: Plan,
    second: Plan,
) -> Result<Plan, PlannerError> {
    let chunks = |plan: &Plan| plan.schedule.collective.chunks();
    if chunks(&first) == chunks(&second) {
        return time_reversal::joined(first, second);
    }
    problem.fits(first.transfers().saturating_add(second.transfers()))?;
    let (first, second) = (first.into_written_out(), second.into_written_out());
    let (whole, by_first, by_second) =
        refined(problem.collective, &first.schedule, &second.schedule)?;
    let mut assembly = Assembly::new(ring, whole);
    assembly.append_refined(&first, by_first);
    assembly.append_refined(&second, by_second);
    Ok(assembly.finish(String::new()))
}

fn broadcast_on_ring(
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
    scatter: Plan,
    gather: Plan,
) -> Result<Plan, PlannerError> {
    problem.fits(scatter.transfers().saturating_add(gather.transfers()))?;
    let (scatter, gather): (Plan, Plan) = (scatter.into_written_out(), gather.into_written_out());
    let joined = rooted::scatter_all_gather(ring, problem.collective, &scatter, &gather)?;
    joined.ok_or(PlannerError::NotFound { pieces: 1 })
}
