//! Schedules on a grid of rows and columns in which every rank sends by the same shifts.
//!
//! In slot s every rank sends to the rank x_s columns further in its row and, at the same time, to
//! the rank y_s rows further in its column. Each rank then receives once in each plane, so both
//! transceivers are busy. The plane that carries more blocks determines the length of the slot.
//!
//! * **all_gather.** The block of every rank spreads along the same tree ([`Spread`]), rotated to
//!   the rank. If rows and columns both have several ranks, the slots together are at least as long
//!   as ceil((N - 1) / 2) blocks. A reduce_scatter is the reverse.
//! * **gather.** The hops of an all_gather that lie on the way to the root. The root receives in
//!   each slot what it receives in the all_gather, and other ranks send no more. A scatter is the
//!   reverse.
//! * **all_to_all.** The block for the rank (i, j) further takes the same hops from every rank
//!   ([`Routes`]).

use super::group::{Group, Sequence};
use super::model::ShiftModel;
use super::routes::Routes;
use super::spread::{SlotHops, Spread};
use crate::building::claim_steps;
use crate::building::time_reversal::copying;
use crate::{PlannerError, PlanningProblem};
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Schedule, Transfer};

/// A hop: the rank that sends, the first chunk, and the rank that receives.
type Hop = (u32, u32, u32);

/// Builds the schedule of a sequence; `None` if the sequence does not reach all ranks.
///
/// # Errors
/// More transfers than allowed.
pub(super) fn build_schedule(
    problem: &PlanningProblem<'_>,
    model: &ShiftModel,
    sequence: &Sequence,
) -> Result<Option<Schedule>, PlannerError> {
    let (collective, group) = (problem.collective, model.group);
    let kind = collective.kind();
    let ranks = u64::from(group.ranks());
    if kind == CollectiveKind::AllToAll {
        let Some(routes) = Routes::of(sequence, model) else {
            return Ok(None);
        };
        problem.fits(routes.count())?;
        return Ok(Some(schedule_of_slots(
            collective,
            all_to_all_hops(group, &routes),
        )));
    }
    let Some(spread) = Spread::of(group, sequence) else {
        return Ok(None);
    };
    let outwards = match kind {
        CollectiveKind::Scatter | CollectiveKind::Gather => CollectiveKind::Gather,
        kind => copying(kind),
    };
    let copies = Collective::new(outwards, group.ranks())?.with_root(collective.root())?;
    let schedule = match kind {
        CollectiveKind::Scatter | CollectiveKind::Gather => {
            schedule_of_slots(copies, gather_hops(group, collective.root(), &spread))
        }
        _ => {
            problem.fits(ranks * (ranks - 1))?;
            schedule_of_slots(copies, all_gather_hops(group, &spread))
        }
    };
    Ok(Some(match kind == schedule.collective.kind() {
        true => schedule,
        false => schedule.reversed(collective),
    }))
}

/// Builds a schedule with a step for each slot. Hops of consecutive chunks between two ranks become
/// one transfer.
fn schedule_of_slots(collective: Collective, slots: impl Iterator<Item = Vec<Hop>>) -> Schedule {
    let mut schedule = Schedule::new(collective);
    for mut hops in slots {
        schedule.begin_step();
        hops.sort_unstable_by_key(|&(from, chunk, to)| (from, to, chunk));
        for run in hops.chunk_by(|hop, next| (hop.0, hop.1 + 1, hop.2) == *next) {
            let (from, chunk, to) = run[0];
            schedule.push(Transfer {
                count: run.len() as u32,
                ..Transfer::copy(chunk, from, to)
            });
        }
    }
    schedule.claims = claim_steps(&schedule);
    schedule
}

/// Returns the hops of an all_gather along a tree, slot by slot.
fn all_gather_hops(group: Group, spread: &Spread) -> impl Iterator<Item = Vec<Hop>> {
    spread.slots.iter().map(move |planes| {
        interrupt::check();
        let mut hops = Vec::new();
        for SlotHops { shift, senders } in planes {
            for rank in 0..group.ranks() {
                let to = group.plus(rank, *shift);
                let offsets = senders.iter();
                hops.extend(offsets.map(|&offset| (rank, group.minus(rank, offset), to)));
            }
        }
        hops
    })
}

/// Returns the hops of a gather along a tree, slot by slot: for each block the hops on its way to
/// the root.
fn gather_hops(group: Group, root: u32, spread: &Spread) -> impl Iterator<Item = Vec<Hop>> {
    // Slot and sender of the hop that reaches each rank.
    let mut arrivals = vec![None; group.ranks() as usize];
    for (slot, planes) in spread.slots.iter().enumerate() {
        for SlotHops { shift, senders } in planes {
            for &sender in senders {
                arrivals[group.plus(sender, *shift) as usize] = Some((slot, sender));
            }
        }
    }
    let mut sent = vec![Vec::new(); spread.slots.len()];
    for rank in 0..group.ranks() {
        interrupt::check();
        let block = group.minus(root, rank);
        let mut at = rank;
        while let Some((slot, sender)) = arrivals[at as usize] {
            sent[slot].push((group.plus(block, sender), block, group.plus(block, at)));
            at = sender;
        }
    }
    sent.into_iter()
}

/// Returns the hops of an all_to_all along routes, slot by slot.
fn all_to_all_hops(group: Group, routes: &Routes) -> impl Iterator<Item = Vec<Hop>> {
    let mut sent = vec![Vec::new(); routes.slots as usize];
    for (block, hops) in (0..).zip(&routes.hops) {
        interrupt::check();
        let mut at = 0;
        for hop in hops {
            let next = group.plus(at, hop.shift);
            let from_source = |source| {
                let chunk = source * group.ranks() + group.plus(source, block);
                (group.plus(source, at), chunk, group.plus(source, next))
            };
            sent[hop.slot as usize].extend((0..group.ranks()).map(from_source));
            at = next;
        }
    }
    sent.into_iter()
}
