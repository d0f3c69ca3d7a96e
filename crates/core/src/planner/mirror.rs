//! An all_gather run backwards, and there and back.
//!
//! Every lightpath is turned round: from its end to its start, in the other direction, on the same
//! links, fibre and wavelength, in the mirrored slot. Lightpaths that did not collide do not collide
//! then. The tree along which a block spread now gathers every rank's contribution to it, each
//! exactly once: a reduce_scatter. Followed by the all_gather it is an all_reduce of the vector cut
//! into a chunk for every chunk of the all_gather (Rabenseifner's composition).
//!
//! Circuits that stay up are set once if the first slot needs all of them: what a later slot adds is
//! charged again. An all_gather to floor(N / 2) ranks one way and a rank fewer the other ends with a
//! slot in which one direction rests, and backwards it would begin with that. So the direction that
//! rests at the end is first put off, to rest at the beginning, where the plan stays right with that.

use super::PlannerError;
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Light;
use crate::family::wdm_ring::{Direction, WdmLight};
use crate::interrupt;
use crate::plan::{AnyPlan, FoldedPlan, Lightpath, NamedRoutes, Plan};
use crate::schedule::{Claims, Schedule, Transfer};
use crate::verify::verify;

/// The reduce_scatter that is an all_gather plan run backwards: as many slots, the same lengths.
///
/// # Errors
/// Another collective than an all_gather.
pub fn reduce_scatter(gather: &AnyPlan) -> Result<AnyPlan, PlannerError> {
    let collective = of_gather(gather, "reduce_scatter is an all_gather reversed")?;
    let reversed = Collective::new(CollectiveKind::ReduceScatter, collective.ranks())?
        .with_pieces(collective.pieces())?;
    let gather = &put_off(gather).unwrap_or_else(|| gather.clone());
    Ok(match gather {
        AnyPlan::Full(plan) => AnyPlan::Full(backwards(plan, reversed)),
        AnyPlan::Folded(plan) => {
            let mut orbits = backwards(&plan.orbits, reversed);
            leave_rank_0(&mut orbits);
            AnyPlan::Folded(FoldedPlan { orbits })
        }
    })
}

/// The plan with every direction as late as its last lightpath allows; `None` where both are already,
/// or it does not stay right.
fn put_off(gather: &AnyPlan) -> Option<AnyPlan> {
    let plan = gather.representative();
    let slots = plan.slots();
    let one_each = plan.step_slots.len() == slots as usize;
    let direction_of = |light: Light| WdmLight::from(light).direction;
    let rests = Direction::BOTH.map(|direction| {
        let own = plan.slot.iter().zip(&plan.light);
        let last = own
            .filter(|(_, own)| direction_of(**own) == direction)
            .map(|(slot, _)| slot);
        last.max().map_or(0, |last| slots - 1 - last)
    });
    if !one_each || rests == [0, 0] {
        return None;
    }
    let mut of_slot: Vec<Vec<usize>> = vec![Vec::new(); slots as usize];
    for (index, slot) in plan.slot.iter().enumerate() {
        interrupt::check();
        of_slot[(slot + rests[direction_of(plan.light[index]) as usize]) as usize].push(index);
    }
    let mut late = plan.without_lightpaths();
    late.reserve(plan.len());
    for (slot, lightpaths) in (0..).zip(of_slot) {
        late.schedule.begin_step();
        for index in lightpaths {
            interrupt::check();
            late.push(Lightpath {
                slot,
                ..plan.lightpath(index)
            });
        }
    }
    let late = match gather {
        AnyPlan::Full(_) => AnyPlan::Full(late),
        AnyPlan::Folded(_) => AnyPlan::Folded(FoldedPlan { orbits: late }),
    };
    verify(&late).is_empty().then_some(late)
}

/// The all_reduce that runs an all_gather plan backwards and then forwards: twice the slots, chunks
/// of an N P-th of the vector, P the all_gather's pieces of a block.
///
/// # Errors
/// Another collective than an all_gather, or one of more than 2^32 chunks.
pub fn all_reduce(gather: &AnyPlan) -> Result<AnyPlan, PlannerError> {
    joined(reduce_scatter(gather)?, gather.clone())
}

/// The all_reduce of a reduce_scatter and an all_gather of as many pieces, one after the other.
pub(super) fn joined(scatter: AnyPlan, gather: AnyPlan) -> Result<AnyPlan, PlannerError> {
    let hint = "an all_reduce is a reduce_scatter and an all_gather";
    let collective = of_gather(&gather, hint)?;
    let whole = Collective::new(CollectiveKind::AllReduce, collective.ranks())?
        .with_pieces(collective.chunks())?;
    // Both halves number the chunks in one way, and turn them by as many.
    Ok(match (scatter, gather) {
        (AnyPlan::Folded(scatter), AnyPlan::Folded(gather)) => AnyPlan::Folded(FoldedPlan {
            orbits: appended(scatter.orbits, &gather.orbits, whole),
        }),
        (scatter, gather) => AnyPlan::Full(appended(scatter.unfold(), &gather.unfold(), whole)),
    })
}

/// The lightpaths of one plan and then those of another, for a collective.
fn appended(mut there: Plan, back: &Plan, whole: Collective) -> Plan {
    let turn = there.slots();
    let mut schedule = Schedule::new(whole);
    schedule.reserve(there.len() + back.len());
    schedule.append(&there.schedule, 1);
    schedule.append(&back.schedule, 1);
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    there.schedule = schedule;
    there.light.extend_from_slice(&back.light);
    there.slot.extend(back.slot.iter().map(|slot| turn + slot));
    let slots = back.step_slots.iter();
    there
        .step_slots
        .extend(slots.map(|range| turn + range.start..turn + range.end));
    there
}

/// A plan run backwards, every lightpath turned round, in the mirrored slot, for the collective that
/// this makes it carry out: every rank of the one must get every chunk once at most.
pub(super) fn backwards(forward: &Plan, reversed: Collective) -> Plan {
    let slots = forward.slots();
    // `reversed` takes the steps from the last to the first, each in its own order.
    let order: Vec<usize> = (0..forward.schedule.steps())
        .rev()
        .flat_map(|step| forward.schedule.step(step))
        .collect();
    Plan {
        fabric: forward.fabric.clone(),
        schedule: forward.schedule.reversed(reversed),
        algorithm: forward.algorithm.clone(),
        size: None,
        light: order
            .iter()
            .map(|&index| Light::from(WdmLight::from(forward.light[index]).opposite()))
            .collect(),
        slot: order
            .iter()
            .map(|&index| slots - 1 - forward.slot[index])
            .collect(),
        step_slots: forward
            .step_slots
            .iter()
            .rev()
            .map(|range| slots - range.end..slots - range.start)
            .collect(),
        relays: Vec::new(),
        routes: NamedRoutes::default(),
    }
}

/// Turns lightpaths to rank 0 as their new source. That is l ranks away from the old one, so that
/// each stays on the channel of its orbit that it is on.
fn leave_rank_0(orbits: &mut Plan) {
    let collective = orbits.schedule.collective;
    let (ranks, pieces) = (collective.ranks(), collective.pieces());
    let turned = |transfer: Transfer| {
        let block = (transfer.chunk / pieces + ranks - transfer.source) % ranks;
        Transfer {
            chunk: block * pieces + transfer.chunk % pieces,
            source: 0,
            destination: (transfer.destination + ranks - transfer.source) % ranks,
            ..transfer
        }
    };
    let mut schedule = Schedule::new(collective);
    schedule.claims = orbits.schedule.claims.clone();
    schedule.reserve(orbits.len());
    for step in 0..orbits.schedule.steps() {
        schedule.begin_step();
        let transfers = orbits.schedule.step(step);
        transfers.for_each(|index| schedule.push(turned(orbits.schedule.transfer(index))));
    }
    orbits.schedule = schedule;
}

fn of_gather(plan: &AnyPlan, hint: &'static str) -> Result<Collective, PlannerError> {
    let collective = plan.representative().schedule.collective;
    if collective.kind() == CollectiveKind::AllGather {
        return Ok(collective);
    }
    Err(PlannerError::Collective {
        kind: collective.kind(),
        hint,
    })
}
