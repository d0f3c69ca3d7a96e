//! An all_gather run backwards, and there and back.
//!
//! Every lightpath is turned round: from its end to its start, in the other direction, on the same
//! links, fibre and wavelength, in the mirrored slot. Lightpaths that did not collide do not collide
//! then. The tree along which a block spread now gathers every rank's contribution to it, each
//! exactly once: a reduce_scatter. Followed by the all_gather it is an all_reduce of the vector cut
//! into a chunk for every chunk of the all_gather (Rabenseifner's composition).

use super::PlannerError;
use crate::collective::{Collective, CollectiveKind};
use crate::plan::Plan;
use crate::schedule::{Claims, Schedule, Transfer};

/// The reduce_scatter that is an all_gather plan run backwards: as many slots, the same lengths.
///
/// # Errors
/// Another collective than an all_gather.
pub fn reduce_scatter(gather: &Plan) -> Result<Plan, PlannerError> {
    let collective = of_gather(gather, "reduce_scatter is an all_gather reversed")?;
    let reversed = Collective::new(CollectiveKind::ReduceScatter, collective.ranks())?
        .with_pieces(collective.pieces())?;
    let schedule = gather.schedule.reversed(reversed);
    let slots = gather.slots();
    // `reversed` takes the steps from the last to the first, each in its own order.
    let order: Vec<usize> = (0..gather.schedule.steps())
        .rev()
        .flat_map(|step| gather.schedule.step(step))
        .collect();
    Ok(Plan {
        fabric: gather.fabric.clone(),
        schedule,
        algorithm: gather.algorithm.clone(),
        size: None,
        direction: order
            .iter()
            .map(|&index| gather.direction[index].opposite())
            .collect(),
        fibre: order.iter().map(|&index| gather.fibre[index]).collect(),
        wavelength: order
            .iter()
            .map(|&index| gather.wavelength[index])
            .collect(),
        slot: order
            .iter()
            .map(|&index| slots - 1 - gather.slot[index])
            .collect(),
        step_slots: gather
            .step_slots
            .iter()
            .rev()
            .map(|range| slots - range.end..slots - range.start)
            .collect(),
    })
}

/// The all_reduce that runs an all_gather plan backwards and then forwards: twice the slots, chunks
/// of an N P-th of the vector, P the all_gather's pieces of a block.
///
/// # Errors
/// Another collective than an all_gather, or one of more than 2^32 chunks.
pub fn all_reduce(gather: &Plan) -> Result<Plan, PlannerError> {
    joined(reduce_scatter(gather)?, gather)
}

/// The all_reduce of a reduce_scatter and an all_gather of as many pieces, one after the other.
pub(super) fn joined(scatter: Plan, gather: &Plan) -> Result<Plan, PlannerError> {
    let collective = of_gather(
        gather,
        "an all_reduce is a reduce_scatter and an all_gather",
    )?;
    let whole = Collective::new(CollectiveKind::AllReduce, collective.ranks())?
        .with_pieces(collective.chunks())?;
    let mut plan = scatter;
    let there = plan.slots();
    let mut schedule = Schedule::new(whole);
    schedule.reserve(plan.len() + gather.len());
    for part in [&plan.schedule, &gather.schedule] {
        for step in 0..part.steps() {
            schedule.begin_step();
            for index in part.step(step) {
                let transfer: Transfer = part.transfer(index);
                schedule.push(transfer);
            }
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    plan.schedule = schedule;
    plan.direction.extend_from_slice(&gather.direction);
    plan.fibre.extend_from_slice(&gather.fibre);
    plan.wavelength.extend_from_slice(&gather.wavelength);
    plan.slot
        .extend(gather.slot.iter().map(|slot| there + slot));
    let back = gather.step_slots.iter();
    plan.step_slots
        .extend(back.map(|range| there + range.start..there + range.end));
    Ok(plan)
}

fn of_gather(plan: &Plan, hint: &'static str) -> Result<Collective, PlannerError> {
    let collective = plan.schedule.collective;
    if collective.kind() == CollectiveKind::AllGather {
        return Ok(collective);
    }
    Err(PlannerError::Collective {
        kind: collective.kind(),
        hint,
    })
}
