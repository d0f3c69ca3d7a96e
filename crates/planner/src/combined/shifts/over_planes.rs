//! Schedules of shifts on a grid of rows and columns.
//!
//! In slot s, every rank sends to the rank x_s columns further in its row. At the same time, every
//! rank sends to the rank y_s rows further in its column. Each rank thus receives once in each
//! plane, and both transceivers are used. The plane with more blocks determines the length of the
//! slot.
//!
//! * **all_gather.** The blocks of all ranks use the same tree ([`ShiftTree`]), rotated. If rows
//!   and columns both have several ranks, the slots take at least the time of ceil((N - 1) / 2)
//!   blocks. A reduce_scatter is the time reversal.
//! * **gather.** The schedule consists of the hops of an all_gather that lie on the routes to the
//!   root. In each slot, the root receives the same blocks as in the all_gather, and no rank sends
//!   more blocks than in the all_gather. A scatter is the time reversal.
//! * **all_to_all.** All blocks for a destination at the same distance (in rows and columns) use
//!   the same hops, from every rank ([`Routes`]).

use super::group::{Group, Sequence};
use super::model::ShiftModel;
use super::routes::Routes;
use super::spread::{ShiftTree, SlotHops};
use crate::building::claim_steps;
use crate::building::time_reversal::copying;
use crate::{PlannerError, PlanningProblem};
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Schedule, Transfer};

/// Hop: the rank that sends, the index of the chunk, and the rank that receives.
type Hop = (u32, u32, u32);

/// Builds the schedule of a sequence of configurations. Returns `None` if the blocks cannot reach
/// all ranks.
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
    let Some(tree) = ShiftTree::of(group, sequence) else {
        return Ok(None);
    };
    let outwards = match kind {
        CollectiveKind::Scatter | CollectiveKind::Gather => CollectiveKind::Gather,
        kind => copying(kind),
    };
    let copies = Collective::new(outwards, group.ranks())?.with_root(collective.root())?;
    let schedule = match kind {
        CollectiveKind::Scatter | CollectiveKind::Gather => {
            schedule_of_slots(copies, gather_hops(group, collective.root(), &tree))
        }
        _ => {
            problem.fits(ranks * (ranks - 1))?;
            schedule_of_slots(copies, all_gather_hops(group, &tree))
        }
    };
    Ok(Some(match kind == schedule.collective.kind() {
        true => schedule,
        false => schedule.reversed(collective),
    }))
}

/// Builds a schedule with one step per slot. Hops of consecutive chunks between the same two ranks
/// are combined to one transfer.
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

fn all_gather_hops(group: Group, tree: &ShiftTree) -> impl Iterator<Item = Vec<Hop>> {
    tree.slots.iter().map(move |planes| {
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

/// Returns the hops of each slot of a gather: the hops of an all_gather along the tree that lie on
/// the routes to the root.
fn gather_hops(group: Group, root: u32, tree: &ShiftTree) -> impl Iterator<Item = Vec<Hop>> {
    let mut arrivals = vec![None; group.ranks() as usize];
    for (slot, planes) in tree.slots.iter().enumerate() {
        for SlotHops { shift, senders } in planes {
            for &sender in senders {
                arrivals[group.plus(sender, *shift) as usize] = Some((slot, sender));
            }
        }
    }
    let mut sent = vec![Vec::new(); tree.slots.len()];
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
