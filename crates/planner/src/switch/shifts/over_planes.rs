//! Schedules on a grid of rows and columns in which every rank sends by the same shifts.
//!
//! In slot s every rank sends to the rank x_s columns on in its row and to the rank y_s rows on in
//! its column, at once. Each rank then receives once in each plane, so that both transceivers are
//! busy. A slot takes as long as the greater of its two numbers of blocks.
//!
//! * **all_gather.** The block of every rank spreads by the same tree ([`Spread`]), rotated to its
//!   rank. If rows and columns both have several ranks, (N - 1) / 2 blocks, rounded up, are the
//!   least in all. reduce_scatter is the same backwards.
//! * **gather.** Of all hops of an all_gather those on the way to the root, which receives in each
//!   slot what it receives in the all_gather, while others send no more. scatter is the same
//!   backwards.
//! * **all_to_all.** The block for the rank (i, j) places on takes the same hops from every rank
//!   ([`Ways`]).

use super::group::{Group, Sequence};
use super::spread::{SlotHops, Spread};
use super::ways::{Price, Ways};
use crate::building::time_reversal::copying;
use crate::{PlannerError, Question};
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// A hop: the rank that sends, the first chunk, and the rank that receives.
type Hop = (u32, u32, u32);

/// Returns the schedule of a sequence; `None` where it does not lead to all ranks.
///
/// # Errors
/// More transfers than are allowed.
pub(super) fn scheduled(
    question: &Question<'_>,
    price: &Price,
    sequence: &Sequence,
) -> Result<Option<Schedule>, PlannerError> {
    let (collective, group) = (question.collective, price.group);
    let kind = collective.kind();
    let ranks = u64::from(group.ranks());
    if kind == CollectiveKind::AllToAll {
        let Some(ways) = Ways::of(sequence, price) else {
            return Ok(None);
        };
        question.fits(ways.count())?;
        return Ok(Some(in_slots(collective, exchanged(group, &ways))));
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
            in_slots(copies, gathered(group, collective.root(), &spread))
        }
        _ => {
            question.fits(ranks * (ranks - 1))?;
            in_slots(copies, all_gathered(group, &spread))
        }
    };
    Ok(Some(match kind == schedule.collective.kind() {
        true => schedule,
        false => schedule.reversed(collective),
    }))
}

/// Builds a schedule of a step for each slot. Hops of consecutive chunks between two ranks are one
/// transfer.
fn in_slots(collective: Collective, slots: impl Iterator<Item = Vec<Hop>>) -> Schedule {
    let mut schedule = Schedule::new(collective);
    for mut hops in slots {
        schedule.begin_step();
        hops.sort_unstable_by_key(|&(from, chunk, to)| (from, to, chunk));
        for run in hops.chunk_by(|one, next| (one.0, one.1 + 1, one.2) == *next) {
            let (from, chunk, to) = run[0];
            schedule.push(Transfer {
                count: run.len() as u32,
                ..Transfer::copy(chunk, from, to)
            });
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    schedule
}

/// Returns the hops of an all_gather by a tree.
fn all_gathered(group: Group, spread: &Spread) -> impl Iterator<Item = Vec<Hop>> {
    spread.slots.iter().map(move |planes| {
        interrupt::check();
        let mut hops = Vec::new();
        for SlotHops { shift, senders } in planes {
            for rank in 0..group.ranks() {
                let to = group.plus(rank, *shift);
                let own = senders.iter();
                hops.extend(own.map(|&offset| (rank, group.minus(rank, offset), to)));
            }
        }
        hops
    })
}

/// Returns the hops of a gather by a tree: for each block those on its way to the root.
fn gathered(group: Group, root: u32, spread: &Spread) -> impl Iterator<Item = Vec<Hop>> {
    // By rank: the slot and the sender of the hop that comes to it.
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

/// Returns the hops of an all_to_all by ways.
fn exchanged(group: Group, ways: &Ways) -> impl Iterator<Item = Vec<Hop>> {
    let mut sent = vec![Vec::new(); ways.slots as usize];
    for (block, hops) in (0..).zip(&ways.hops) {
        interrupt::check();
        let mut at = 0;
        for hop in hops {
            let next = group.plus(at, hop.shift);
            let of_source = |source| {
                let chunk = source * group.ranks() + group.plus(source, block);
                (group.plus(source, at), chunk, group.plus(source, next))
            };
            sent[hop.slot as usize].extend((0..group.ranks()).map(of_source));
            at = next;
        }
    }
    sent.into_iter()
}
