//! Plans on a grid of rows and columns in which every rank does the same.
//!
//! The places of a whole grid of n rows and m columns are a torus. In slot s every rank sends to the rank x_s columns on in
//! its row and to the rank y_s rows on in its column, at once: the *shifts* of the slot. Each rank then receives once in each
//! plane, so that every slot is one for all ranks, and both transceivers are busy.
//!
//! * **all_gather.** Every block spreads by the same tree, rotated to its rank. In slot s it can come to all places that are
//!   a shift away from those that have it; a place that both planes reach is given to the plane that carries less. A slot takes as long as
//!   the greater of its two numbers of blocks, so that (N - 1) / 2 blocks, rounded up, are the least in all. reduce_scatter is the same backwards.
//! * **gather.** Of the all_gather what comes to the root (`rooted`). scatter is the same backwards.
//! * **all_to_all.** The block for the rank (i, j) places on takes the same hops from every rank: of the shifts of the slots some,
//!   in their order, that add up to (i, j) (`ways`).
//! * **barrier.** Every rank signals by both shifts of each slot until something of each has come to all.
//!
//! Where only circuits that change are charged and ranks do not wait for the end of a slot, all slots may have the same shifts, by
//! one column and by one row: after n + m - 2 slots all have heard of all, over circuits that are tuned once.
//!
//! More slots cost more charges, fewer of them more imbalance or more hops. Which shifts are tried: `search`.

mod rooted;
mod search;
mod spread;
mod torus;
mod ways;

use crate::selection::contest::{Contender, Made};
use crate::{OnMachine, Planned, Planner, PlannerError, Question, Scope, ensure};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::circuits::Circuits;
use opticoll_fabric::family::wss_grid::WssGrid;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};
use opticoll_simulate::Policy;
use search::Price;
use spread::Spread;
use torus::{Sequence, Torus};
use ways::Ways;

/// The planner of shifts in both planes.
pub(crate) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "shifts",
        "shift along the row and along the column in each slot, such as 3.1x1.2; 0 sends nothing",
    )
    .range("pairs of numbers below the columns and the rows, joined by x")
    .default("the fastest found")],
    by_size: true,
    ..Planner::new(
        NAME,
        "Plane shifts",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
            CollectiveKind::AllToAll,
            CollectiveKind::Barrier,
        ],
        "Every rank sends by the same shifts along its row and its column at once",
        "opticoll; growth as in Bruck et al., IEEE Transactions on Parallel and Distributed Systems 1997",
        Scope::Grids(OnMachine::new(plan, contenders)),
    )
};

const NAME: &str = "plane_shifts";

/// The most ranks that sequences are searched for.
const MOST_RANKS: u32 = 4096;

fn plan(spec: &Spec, question: &Question<'_>, grid: &WssGrid) -> Result<Planned, PlannerError> {
    if question.collective.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    check_whole(grid)?;
    let torus = torus_of(grid);
    let sequence = match spec.option("shifts") {
        Some(text) => {
            let rule = "must be pairs of a shift along the row and one along the column, as 3.1x1.2: numbers \
                        below the columns and the rows";
            Sequence::parse(text, torus).ok_or_else(|| spec.refuse("shifts", rule))?
        }
        None => {
            let price = price(question, grid)?;
            let best = search::best(torus, question.collective.kind(), &price);
            best.ok_or(PlannerError::NotFound { pieces: 1 })?.0
        }
    };
    let schedule = scheduled(question, torus, &sequence)?;
    let schedule = schedule
        .ok_or_else(|| spec.refuse("shifts", "do not lead from every rank to all others"))?;
    let plan = opticoll_placement::place_by_default(schedule, question.fabric, named(&sequence))?;
    Ok(plan.into())
}

fn named(sequence: &Sequence) -> String {
    let spec = Spec::new(NAME).with("shifts", sequence.text());
    spec.to_string()
}

/// Refuses a grid in which some place has no rank whose transceivers work, or of too many ranks.
fn check_whole(grid: &WssGrid) -> Result<(), AlgorithmError> {
    let reason = format!("its search is for {MOST_RANKS} ranks at most");
    ensure(grid.ranks() <= MOST_RANKS, NAME, grid.ranks(), reason)?;
    let reason = "every place of the grid must have a rank whose two transceivers work";
    ensure(grid.is_whole(), NAME, grid.ranks(), reason)
}

fn torus_of(grid: &WssGrid) -> Torus {
    Torus {
        rows: grid.rows,
        columns: grid.columns,
    }
}

/// The best sequence that the search comes to.
fn contenders<'a>(
    question: &Question<'a>,
    grid: &'a WssGrid,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let ranks = grid.ranks();
    let torus = torus_of(grid);
    let kind = question.collective.kind();
    let all = u64::from(ranks) * u64::from(ranks - 1);
    let blocks = match kind {
        CollectiveKind::Barrier => ranks.into(),
        CollectiveKind::Scatter | CollectiveKind::Gather => 8 * u64::from(ranks),
        CollectiveKind::AllToAll => 2 * all,
        _ => all,
    };
    if check_whole(grid).is_err() || ranks < 2 || blocks > question.most_transfers {
        return Ok(Vec::new());
    }
    let price = price(question, grid)?;
    let found = search::best(torus, kind, &price);
    let kept = keeps_circuits(question).then(|| search::steady(torus, kind, &price));
    let contenders = found.into_iter().chain(kept).map(|(sequence, time)| {
        let question = *question;
        let tuned = least_tuned(&question, grid, &sequence)?;
        Ok(Contender {
            name: named(&sequence),
            slots: sequence.slots.len() as u64,
            least: tuned,
            estimate: Time::from_ps(time),
            // Blocks next to one another are one transfer.
            transfers: question.work(blocks) / 8,
            make: Box::new(move |_| {
                let schedule = scheduled(&question, torus, &sequence)?;
                let schedule = schedule.ok_or(PlannerError::NotFound { pieces: 1 })?;
                let plan = opticoll_placement::place_by_default(
                    schedule,
                    question.fabric,
                    named(&sequence),
                )?;
                Ok(Made::from(plan))
            }),
        })
    });
    contenders.collect()
}

/// The time that a sequence takes at least where circuits that change are charged: a transmitter of one of the planes is tuned for each
/// shift that is not the one before, and sends all blocks of its plane. Zero for collectives whose ranks do not all send the same.
fn least_tuned(
    question: &Question<'_>,
    grid: &WssGrid,
    sequence: &Sequence,
) -> Result<Time, PlannerError> {
    let kind = question.collective.kind();
    let block = match kind {
        CollectiveKind::AllGather => question.size.get(),
        CollectiveKind::ReduceScatter => question.size.get() / u64::from(grid.ranks()),
        _ => return Ok(Time::ZERO),
    };
    let spread = match question.policy() {
        Policy::TwoTier => Spread::of(torus_of(grid), sequence),
        _ => None,
    };
    let set_up = grid.change()?.set_up;
    let mut least = Time::ZERO;
    for plane in [0, 1] {
        let slots = spread.iter().flat_map(|spread| &spread.slots);
        let mut shifts: Vec<u32> = Vec::new();
        let mut blocks = 0;
        for of_plane in slots.map(|hops| &hops[plane]) {
            if !of_plane.senders.is_empty() {
                shifts.push(of_plane.shift);
                blocks += of_plane.senders.len() as u64;
            }
        }
        shifts.dedup();
        let bytes = Bytes::new(block.saturating_mul(blocks));
        let sending = u64::try_from(grid.transmission().ps(bytes)).unwrap_or(u64::MAX);
        let tuned = set_up.times(shifts.len() as u64)?;
        least = least.max(tuned.plus(Time::from_ps(sending))?);
    }
    Ok(least)
}

/// Whether circuits that do not change may save time: those of a scatter are asked for one after the other, as its blocks come.
fn keeps_circuits(question: &Question<'_>) -> bool {
    let kind = question.collective.kind();
    let is_steady = !matches!(kind, CollectiveKind::AllToAll | CollectiveKind::Scatter);
    is_steady && question.policy() == Policy::TwoTier
}

/// What slots and blocks cost, as the simulator `circuit` has it.
fn price(question: &Question<'_>, grid: &WssGrid) -> Result<Price, PlannerError> {
    let set_up = match question.policy() {
        Policy::Free => Time::ZERO,
        _ => grid.change()?.set_up,
    };
    let block = match question.collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::Scatter | CollectiveKind::Gather => {
            question.size
        }
        CollectiveKind::Barrier => Bytes::new(0),
        _ => Bytes::new(question.size.get().div_ceil(grid.ranks().into())),
    };
    Ok(Price {
        slot: set_up.plus(grid.latency)?.ps(),
        block: u64::try_from(grid.transmission().ps(block)).unwrap_or(u64::MAX),
    })
}

/// The schedule of a sequence; none where it does not lead to all ranks.
///
/// # Errors
/// More transfers than are allowed.
fn scheduled(
    question: &Question<'_>,
    torus: Torus,
    sequence: &Sequence,
) -> Result<Option<Schedule>, PlannerError> {
    let collective = question.collective;
    let ranks = u64::from(torus.places());
    let schedule = match collective.kind() {
        CollectiveKind::Barrier => {
            let Some(spread) = Spread::of(torus, sequence) else {
                return Ok(None);
            };
            signals(collective, torus, &spread)
        }
        CollectiveKind::AllToAll => {
            let Some(ways) = Ways::of(torus, sequence) else {
                return Ok(None);
            };
            question.fits(ranks.saturating_mul(ways.hops()))?;
            exchanged(collective, torus, &ways)
        }
        kind => {
            let Some(spread) = Spread::of(torus, sequence) else {
                return Ok(None);
            };
            if matches!(kind, CollectiveKind::Scatter | CollectiveKind::Gather) {
                let gather = Collective::new(CollectiveKind::Gather, torus.places())?;
                let gather = gather.with_root(collective.root())?;
                let gathered = rooted::gathered(gather, torus, &spread);
                return Ok(Some(match kind {
                    CollectiveKind::Scatter => gathered.reversed(collective),
                    _ => gathered,
                }));
            }
            question.fits(ranks * (ranks - 1))?;
            let gather = Collective::new(CollectiveKind::AllGather, torus.places())?;
            let gathered = gathered(gather, torus, &spread);
            match kind {
                CollectiveKind::ReduceScatter => gathered.reversed(collective),
                _ => gathered,
            }
        }
    };
    Ok(Some(schedule))
}

/// The transfers of a slot: from each rank, by each shift, the chunks that `chunks` tells of the rank.
fn push_slot(
    schedule: &mut Schedule,
    torus: Torus,
    hops: &[spread::SlotHops; 2],
    mut chunks: impl FnMut(u32, usize, &mut Vec<u32>),
) {
    schedule.begin_step();
    let mut sent = Vec::new();
    for rank in 0..torus.places() {
        interrupt::check();
        for (plane, of_plane) in hops.iter().enumerate() {
            sent.clear();
            chunks(rank, plane, &mut sent);
            sent.sort_unstable();
            for run in sent.chunk_by(|one, next| one + 1 == *next) {
                schedule.push(Transfer {
                    count: run.len() as u32,
                    ..Transfer::copy(run[0], rank, torus.plus(rank, of_plane.shift))
                });
            }
        }
    }
}

fn claim(mut schedule: Schedule) -> Schedule {
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    schedule
}

/// The all_gather by a tree.
fn gathered(collective: Collective, torus: Torus, spread: &Spread) -> Schedule {
    let mut schedule = Schedule::new(collective);
    for hops in &spread.slots {
        push_slot(&mut schedule, torus, hops, |rank, plane, sent| {
            let senders = hops[plane].senders.iter();
            sent.extend(senders.map(|&offset| torus.minus(rank, offset)));
        });
    }
    claim(schedule)
}

/// The all_to_all by ways.
fn exchanged(collective: Collective, torus: Torus, ways: &Ways) -> Schedule {
    let mut schedule = Schedule::new(collective);
    for (hops, blocks) in ways.slots.iter().zip(&ways.blocks) {
        push_slot(&mut schedule, torus, hops, |rank, plane, sent| {
            let senders = hops[plane].senders.iter().zip(&blocks[plane]);
            sent.extend(senders.map(|(&before, &block)| {
                let source = torus.minus(rank, before);
                source * torus.places() + torus.plus(source, block)
            }));
        });
    }
    claim(schedule)
}

/// The barrier: signals by all shifts of the slots.
fn signals(collective: Collective, torus: Torus, spread: &Spread) -> Schedule {
    let mut schedule = Schedule::new(collective);
    for hops in &spread.slots {
        schedule.begin_step();
        for rank in 0..torus.places() {
            for of_plane in hops.iter().filter(|of_plane| !of_plane.senders.is_empty()) {
                schedule.push(Transfer::reduce(0, rank, torus.plus(rank, of_plane.shift)));
            }
        }
    }
    claim(schedule)
}
