//! Collectives that consist of two phases with separate plans: an all_reduce is a reduce_scatter
//! and an all_gather (Rabenseifner 2004), a broadcast is a scatter and an all_gather, and a reduce
//! is a reduce_scatter and a gather (van de Geijn 1994).
//!
//! The options `first` and `second` name the plan of a phase as `NAME/OPTION=VALUE/OPTION=VALUE`.
//! If a phase has no option, the planner uses the fastest plan of the phase.

use crate::building::assembly::Assembly;
use crate::building::time_reversal;
use crate::building::{PLANS_OF_PART, claim_steps};
use crate::selection::auto::LATE_ESTIMATE;
use crate::selection::evaluation::{Built, Candidate, concerns_one_candidate};
use crate::{
    Planned, Planner, PlannerError, PlanningProblem, Scope, ring::tree as rooted, ring_of,
};
use opticoll_algorithms::scatter_all_gather;
use opticoll_base::spec::{OptionRecord, Spec, flat, nested};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;
use opticoll_simulate::Policy;

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
    depends_on_size: true,
    ..Planner::new(
        "two_phases",
        "Two phases",
        &[
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        "The fastest reduce_scatter or scatter found, then the fastest all_gather or gather",
        "Rabenseifner, ICCS 2004; van de Geijn, Journal of Parallel and Distributed Computing 1994",
        Scope::Any(|_| true, plan, candidates),
    )
};

/// Returns the two phases of a collective. Returns `None` if the collective does not consist of two
/// phases.
fn phases(kind: CollectiveKind) -> Option<(CollectiveKind, CollectiveKind)> {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
    match kind {
        AllReduce => Some((ReduceScatter, AllGather)),
        Broadcast => Some((Scatter, AllGather)),
        Reduce => Some((ReduceScatter, Gather)),
        _ => None,
    }
}

/// Returns the planning problem of the phase `kind`. A reduce_scatter has the size of the
/// collective; other phases have this size divided by the number of ranks.
fn phase_problem<'a>(
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
        // Other phases may be reversed or moved to other ranks, which changes their routes.
        may_name_routes: problem.may_name_routes && whole.kind() == CollectiveKind::AllReduce,
        // A scatter and a gather have a root, so they have no rotation symmetry.
        keeps_representatives: problem.keeps_representatives
            && whole.kind() == CollectiveKind::AllReduce,
        ..*problem
    })
}

/// Returns the plan of the two fastest phases as a candidate. `auto` usually tries this candidate
/// last. (On rings, `auto` tries it before algorithms with many transfers. On grids, its turn
/// depends on its estimated time.)
fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let Some((first, second)) = phases(problem.collective.kind()) else {
        return Ok(Vec::new());
    };
    if problem.collective.ranks() < 2 {
        return Ok(Vec::new());
    }
    // On links and on tuned circuits, the two phases may overlap. A time below two thirds of the
    // sum of both bounds is not expected.
    let mut expected = Time::ZERO;
    let is_grid = problem.fabric.planes().is_some();
    let mut estimate = match ring_of(problem.fabric) {
        Some(_) => LATE_ESTIMATE.ps() - 1,
        None => u64::MAX,
    };
    if is_grid || problem.fabric.network().is_some() {
        let (first, second) = (
            phase_problem(first, problem)?,
            phase_problem(second, problem)?,
        );
        let sum = first.least()?.plus(second.least()?)?;
        expected = Time::from_ps(sum.ps() / 3 * 2);
        if is_grid {
            estimate = sum.ps().saturating_add(sum.ps() / BOUND_EXCESS_DIVISOR);
        }
    }
    let ranks = u64::from(problem.collective.ranks());
    // Along rows and columns, consecutive blocks are one transfer.
    let transfers = problem.work(ranks * ranks)
        / if problem.fabric.planes().is_some() {
            8
        } else {
            1
        };
    let problem = PlanningProblem {
        max_work: problem.max_work / 2,
        ..*problem
    };
    Ok(vec![Candidate {
        name: PLANNER.name.into(),
        slots: 0,
        lower_bound: Time::ZERO,
        estimate: Time::from_ps(estimate),
        transfers,
        build: Box::new(move |limit| {
            // A gain of less than 0.1 % does not justify the search for two plans.
            let least = problem.least()?;
            let expected = expected.max(least.plus(Time::from_ps(least.ps() / 1000))?);
            if limit.is_some_and(|limit| limit <= expected) {
                return Ok(Built::NotExpected(
                    "its two phases are not expected to be faster",
                ));
            }
            let problem = PlanningProblem { limit, ..problem };
            match plan(&Spec::new(PLANNER.name), &problem) {
                Err(PlannerError::NothingFits { .. }) if limit.is_some() => Ok(Built::NotExpected(
                    "its two phases take longer one after the other, or save too little time for \
                     their number of transfers",
                )),
                planned => planned.map(|planned| Built::from(planned.plan)),
            }
        }),
    }])
}

/// Divisor d: on a grid, the time of two phases is estimated as the sum of the lower bounds of both
/// phases plus 1/d of this sum.
const BOUND_EXCESS_DIVISOR: u64 = 32;

/// Maximum number of transfers of a plan that `auto` always builds. (Joining, timing and verifying
/// 4,194,304 transfers takes about 4 s.) A larger plan is built only if it is faster than the time
/// limit by a tenth.
const QUICK_TRANSFERS: u64 = 1 << 22;

/// Maximum number of transfers over links if chunks have unequal sizes. (The simulator then handles
/// every message separately, and more transfers take minutes.)
const MAX_UNEVEN_TRANSFERS: u64 = 1 << 20;

/// Condition on the total time of two phases, for the search of one phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinedLimit {
    /// Maximum total time of both phases.
    limit: Time,
    other_time: Time,
    /// True if the plan is not rotation-symmetric. If such a plan has more than half of
    /// [`QUICK_TRANSFERS`] transfers, it must be faster than the limit by a twentieth.
    is_written_out: bool,
}

impl JoinedLimit {
    /// Returns whether a phase of duration `time` keeps the total time sufficiently below the
    /// limit. The required saving depends on the number of transfers of the joined plan.
    pub(crate) fn saves_enough(self, time: Time, transfers: u64) -> bool {
        let share = match transfers {
            transfers if transfers > QUICK_TRANSFERS => 10,
            transfers if self.is_written_out && transfers > QUICK_TRANSFERS / 2 => 20,
            _ => return true,
        };
        let longest = self.limit.ps() - self.limit.ps() / share;
        time.ps().saturating_add(self.other_time.ps()) <= longest
    }
}

/// Builds the plan with the options in `spec`. A phase without an option uses the fastest plan.
fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let collective = problem.collective;
    let Some((first, second)) = phases(collective.kind()) else {
        return Err(PlannerError::Collective {
            kind: collective.kind(),
            hint: "two_phases plans an all_reduce, a broadcast or a reduce",
        });
    };
    if let Some(shared) = shared_phase(spec, problem)? {
        let gather = shared.fastest()?.plan;
        let name = flat(&gather.algorithm);
        let mut joined = time_reversal::all_reduce(&gather)?;
        let name = Spec::new(PLANNER.name)
            .with("first", &name)
            .with("second", &name);
        joined.algorithm = name.to_string();
        joined.size = Some(problem.size);
        return Ok(joined.into());
    }
    let planned = |key: &'static str, kind: CollectiveKind, other_time: Time| {
        let phase = PlanningProblem {
            limit: phase_limit(problem, other_time)?,
            ..phase_problem(kind, problem)?
        };
        let phase = PlanningProblem {
            joined: problem.limit.map(|limit| JoinedLimit {
                limit,
                other_time,
                is_written_out: !phase.keeps_representatives,
            }),
            ..phase
        };
        let planned: Planned = match spec.option(key) {
            Some(text) => phase.solve(&nested(text)?)?,
            None => phase.fastest()?,
        };
        let next = planned
            .candidates
            .iter()
            .filter(|candidate| candidate.left_out.is_none())
            .skip(1);
        let next: Vec<String> = next
            .take(PLANS_OF_PART - 1)
            .map(|candidate| candidate.name.clone())
            .collect();
        let time = planned.candidates.first().map(|candidate| candidate.time);
        Ok::<_, PlannerError>((phase, planned.plan, next, time.unwrap_or_default()))
    };
    let least = phase_problem(second, problem)?.least()?;
    let (first_problem, fastest, firsts, time) = planned("first", first, least)?;
    let (second_problem, fastest_second, seconds, second_time) = planned("second", second, time)?;
    let transfers = fastest.transfers() + fastest_second.transfers();
    let joined = second_problem.joined;
    // If a vector has fewer bytes than ranks, some messages are empty and the others have the same
    // size.
    let (bytes, ranks) = (problem.size.get(), u64::from(collective.ranks()));
    let is_even = bytes % ranks == 0 || bytes < ranks;
    let is_long =
        !is_even && transfers > MAX_UNEVEN_TRANSFERS && problem.fabric.network().is_some();
    if joined.is_some_and(|_| is_long)
        || joined.is_some_and(|joined| !joined.saves_enough(second_time, transfers))
    {
        let most = problem.max_transfers;
        return Err(PlannerError::NothingFits { most });
    }
    let mut refused = None;
    for first in std::iter::once(None).chain(firsts.iter().map(Some)) {
        for second in std::iter::once(None).chain(seconds.iter().map(Some)) {
            let build =
                |name: Option<&String>, fastest: &Plan, phase: &PlanningProblem<'_>| match name {
                    None => Ok(fastest.clone()),
                    Some(name) => phase.solve(&name.parse()?).map(|planned| planned.plan),
                };
            let first = build(first, &fastest, &first_problem)?;
            let second = build(second, &fastest_second, &second_problem)?;
            let name = Spec::new(PLANNER.name)
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
        most: problem.max_transfers,
    }))
}

/// Returns the planning problem of an all_gather that can serve as both phases of an all_reduce:
/// the first phase is the time reversal of the all_gather. Returns `None` if other phases may be
/// faster.
fn shared_phase<'a>(
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
        ..phase_problem(CollectiveKind::AllGather, problem)?
    }))
}

/// Returns the maximum time of one phase on a ring if the other phase takes `other_time`. Returns
/// `None` if the problem has no limit, or on other fabrics.
///
/// Under most policies, the phases run one after the other. The phases of an all_reduce may share
/// one reconfiguration under `on_change`, and may also overlap under `per_port`.
fn phase_limit(
    problem: &PlanningProblem<'_>,
    other_time: Time,
) -> Result<Option<Time>, PlannerError> {
    let Some(ring) = ring_of(problem.fabric) else {
        return Ok(None);
    };
    let has_root = problem.collective.kind() != CollectiveKind::AllReduce;
    let (other_time, shared) = match problem.policy() {
        Policy::Free | Policy::EveryStep => (other_time, Time::ZERO),
        Policy::OnChange | Policy::PerPort if has_root => (other_time, Time::ZERO),
        Policy::OnChange => (other_time, ring.reconfiguration),
        _ => (Time::ZERO, ring.reconfiguration),
    };
    let longest = problem.limit.map(|limit| limit.plus(shared)).transpose()?;
    Ok(longest.map(|longest| Time::from_ps((longest.ps() + 1).saturating_sub(other_time.ps()))))
}

fn join(problem: &PlanningProblem<'_>, first: Plan, second: Plan) -> Result<Plan, PlannerError> {
    let collective = problem.collective;
    if let Some(ring) = ring_of(problem.fabric) {
        return match collective.kind() {
            CollectiveKind::AllReduce => all_reduce_on_ring(problem, ring, first, second),
            CollectiveKind::Broadcast => broadcast_on_ring(problem, ring, first, second),
            _ => {
                problem.fits(first.transfers().saturating_add(second.transfers()))?;
                let (first, second) = (first.into_expanded(), second.into_expanded());
                rooted::reduce_scatter_gather(ring, collective, &first, &second)
            }
        };
    }
    let (first_plan, second_plan) = (first.into_expanded(), second.into_expanded());
    let (first, second) = (first_plan.schedule, second_plan.schedule);
    let mut schedule = match collective.kind() {
        CollectiveKind::AllReduce => {
            let (whole, first_factor, second_factor) = common_pieces(collective, &first, &second)?;
            let mut schedule = Schedule::new(whole);
            schedule.append(&first, first_factor);
            schedule.append(&second, second_factor);
            schedule
        }
        CollectiveKind::Broadcast => {
            check_whole_blocks(&first)?;
            check_whole_blocks(&second)?;
            scatter_all_gather::composed(collective, &first, &second)?
        }
        _ => {
            check_whole_blocks(&first)?;
            check_whole_blocks(&second)?;
            let ranks = collective.ranks();
            let of = |kind| Collective::new(kind, ranks)?.with_root(collective.root());
            let scattering = second.reversed(of(CollectiveKind::Scatter)?);
            let gathering = first.reversed(of(CollectiveKind::AllGather)?);
            let broadcast = of(CollectiveKind::Broadcast)?;
            let forward = scatter_all_gather::composed(broadcast, &scattering, &gathering)?;
            forward.reversed(collective.with_pieces(forward.collective.pieces())?)
        }
    };
    schedule.claims = claim_steps(&schedule);
    let mut plan = opticoll_placement::place_by_default(schedule, problem.fabric, String::new())?;
    plan.routes.append(&first_plan.routes, 0);
    plan.routes.append(&second_plan.routes, first.len());
    Ok(plan)
}

/// Returns the collective whose number of chunks is the least common multiple of the numbers of
/// chunks of both plans. Also returns the factors by which these two numbers are multiplied.
fn common_pieces(
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

fn check_whole_blocks(phase: &Schedule) -> Result<(), PlannerError> {
    match phase.collective.pieces() {
        1 => Ok(()),
        pieces => {
            let sentence = format!(
                "a phase that cuts blocks into {pieces} pieces cannot be combined; name a phase \
                 with whole blocks"
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
    let (first, second) = (first.into_expanded(), second.into_expanded());
    let (whole, first_factor, second_factor) =
        common_pieces(problem.collective, &first.schedule, &second.schedule)?;
    let mut assembly = Assembly::new(ring, whole);
    assembly.append_with_factor(&first, first_factor);
    assembly.append_with_factor(&second, second_factor);
    Ok(assembly.finish(String::new()))
}

fn broadcast_on_ring(
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
    scatter: Plan,
    gather: Plan,
) -> Result<Plan, PlannerError> {
    problem.fits(scatter.transfers().saturating_add(gather.transfers()))?;
    let (scatter, gather): (Plan, Plan) = (scatter.into_expanded(), gather.into_expanded());
    let joined = rooted::scatter_all_gather(ring, problem.collective, &scatter, &gather)?;
    joined.ok_or(PlannerError::NotFound { pieces: 1 })
}
