//! An all_reduce of fewer slots than halving and doubling, and of fewer bytes than recursive doubling, over lightpaths.
//!
//! N = 2^d ranks. In slot i they exchange along dimension i: in the first h slots halves of what is left of the vector, of which each rank
//! keeps one; then, in d - h slots, all that is left; and in h slots the halves backwards. With M the vector, d + h slots carry
//!
//! 2 (1 - 2^-h) M + (d - h) 2^-h M,
//!
//! one after the other. h = 0 is recursive doubling, h = d halving and doubling (Rabenseifner, ICCS 2004, who has halves alone).

use crate::selection::contest::{Contender, Made};
use crate::{Planned, Planner, PlannerError, Question};
use opticoll_core::algorithm::AlgorithmError;
use opticoll_core::collective::CollectiveKind;
use opticoll_core::fabric::circuits::Charge;
use opticoll_core::families;
use opticoll_core::family::light_path_grid::LightPathGrid;
use opticoll_core::interrupt;
use opticoll_core::plan::{AnyPlan, Plan};
use opticoll_core::schedule::{Action, Claims, Schedule, Transfer};
use opticoll_core::spec::{OptionRecord, Spec};
use opticoll_core::units::{Bytes, Time};

/// The planner of some halvings.
pub(crate) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "halvings",
        "exchanges of halves before and after those of all that is left",
    )
    .range("0 to the number of dimensions")
    .default("the number that takes the least time")],
    by_size: true,
    applies: |fabric| fabric.downcast::<LightPathGrid>().is_some(),
    candidates: contenders,
    ..Planner::new(
        NAME,
        "Halving exchange",
        &[CollectiveKind::AllReduce],
        "Halves are exchanged along some dimensions of a hypercube, and all that is left along the others",
        "opticoll; halves as in Rabenseifner, ICCS 2004",
        plan,
    )
};

const NAME: &str = "halving_exchange";

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    spec.only_declared(PLANNER.options)?;
    if question.collective.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let grid = needed(question)?;
    let halvings = match spec.count("halvings", 0, grid.ranks.ilog2())? {
        Some(halvings) => halvings,
        None => fewest(question, grid)?.0,
    };
    Ok(AnyPlan::Full(placed(question, halvings)?).into())
}

/// The grid that is asked about, if its ranks are a hypercube.
fn needed<'a>(question: &Question<'a>) -> Result<&'a LightPathGrid, AlgorithmError> {
    let refused = |reason: &str| AlgorithmError::Refused {
        name: NAME,
        ranks: question.collective.ranks(),
        reason: reason.into(),
    };
    let grid = question.fabric.downcast::<LightPathGrid>();
    let grid = grid.ok_or_else(|| refused("it plans on a light_path_grid"))?;
    match grid.ranks.is_power_of_two() {
        true => Ok(grid),
        false => Err(refused("it needs a power of two ranks")),
    }
}

/// The plan with the best number of halvings that neither recursive doubling nor halving and doubling has.
fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    let ranks = u64::from(question.collective.ranks());
    let Ok(grid) = needed(question) else {
        return Ok(Vec::new());
    };
    if ranks < 4 {
        return Ok(Vec::new());
    }
    let (halvings, time) = fewest(question, grid)?;
    if halvings == 0 || halvings == grid.ranks.ilog2() {
        return Ok(Vec::new());
    }
    let slots = u64::from(grid.ranks.ilog2() + halvings);
    let question = *question;
    Ok(vec![Contender {
        name: named(halvings),
        slots,
        least: Time::ZERO,
        estimate: Time::from_ps(time),
        transfers: question.work(slots * ranks),
        make: Box::new(move |_| {
            let plan = placed(&question, halvings)?;
            Ok(Made::from(AnyPlan::Full(plan)))
        }),
    }])
}

fn named(halvings: u32) -> String {
    let spec = Spec::new(NAME).with("halvings", halvings);
    spec.to_string()
}

/// The number of halvings that takes the least time, and that time in picoseconds.
fn fewest(question: &Question<'_>, grid: &LightPathGrid) -> Result<(u32, u64), PlannerError> {
    let dimensions = grid.ranks.ilog2();
    let charge = question.fabric.circuits();
    let charge = charge.and_then(|circuits| circuits.charge(question.policy().name()).ok());
    let set_up = match charge {
        Some(Charge::Never) => Time::ZERO,
        _ => grid.establish.plus(grid.release)?,
    };
    let per_slot = set_up.plus(grid.latency)?;
    let size = question.size.get();
    let sending = |halved: u32| {
        grid.rate
            .transmission(Bytes::new(size.div_ceil(1 << halved)))
    };
    let mut best: Option<(u32, u64)> = None;
    for halvings in 0..=dimensions {
        let mut time = per_slot.times(u64::from(dimensions + halvings))?;
        for halved in 1..=halvings {
            time = time.plus(sending(halved)?.times(2)?)?;
        }
        let whole = sending(halvings)?.times(u64::from(dimensions - halvings))?;
        let time = time.plus(whole)?.ps();
        if best.is_none_or(|(_, least)| time < least) {
            best = Some((halvings, time));
        }
    }
    best.ok_or(PlannerError::NotFound { pieces: 1 })
}

/// The plan with so many halvings.
fn placed(question: &Question<'_>, halvings: u32) -> Result<Plan, PlannerError> {
    let collective = question.collective;
    let ranks = collective.ranks();
    let dimensions = ranks.ilog2();
    question.fits(u64::from(ranks) * u64::from(dimensions + halvings))?;
    let pieces = 1 << halvings;
    let mut schedule = Schedule::new(collective.with_pieces(pieces)?);
    // What a rank keeps after so many halvings: the half that its bits say.
    let kept = |rank: u32, halved: u32| {
        let first = (0..halved).map(|bit| (rank >> bit & 1) * (pieces >> (bit + 1)));
        (first.sum::<u32>(), pieces >> halved)
    };
    let mut exchange = |dimension: u32, halved: u32, action: Action| {
        interrupt::check();
        schedule.begin_step();
        for source in 0..ranks {
            let destination = source ^ (1 << dimension);
            let kept = |rank| kept(rank, halved);
            schedule.push(Transfer::of_kept(action, source, destination, kept));
        }
    };
    for dimension in 0..halvings {
        exchange(dimension, dimension + 1, Action::Reduce);
    }
    for dimension in halvings..dimensions {
        exchange(dimension, halvings, Action::Reduce);
    }
    for dimension in (0..halvings).rev() {
        exchange(dimension, dimension + 1, Action::Copy);
    }
    schedule.claims = Claims {
        schedule_steps: Some(dimensions + halvings),
        ..Claims::default()
    };
    Ok(families::place_by_default(
        schedule,
        question.fabric,
        named(halvings),
    )?)
}
