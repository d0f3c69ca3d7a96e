//! Reversal in time: an all_gather plan as a reduce_scatter, and both as an all_reduce.
//!
//! Every lightpath is reversed: from its destination to its source, in the opposite direction, on
//! the same links, fibre and wavelength, in the mirrored slot. Lightpaths that did not collide do
//! not collide afterwards. The tree along which a block spread gathers every rank's contribution to
//! the block, each exactly once: a reduce_scatter. The reduce_scatter followed by the all_gather is
//! an all_reduce of a vector with one chunk for every chunk of the all_gather (Rabenseifner 2004).

use crate::PlannerError;
use crate::building::claim_steps;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_ring::WdmLight;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Schedule, Transfer};

/// Returns the reduce_scatter that reverses an all_gather plan; it has the same number of slots, of
/// the same lengths.
///
/// # Errors
/// A plan of another collective.
pub fn reduce_scatter(gather: &Plan) -> Result<Plan, PlannerError> {
    let collective = check_all_gather(gather, "reduce_scatter is an all_gather reversed")?;
    let reversed = Collective::new(CollectiveKind::ReduceScatter, collective.ranks())?
        .with_pieces(collective.pieces())?;
    if !gather.repetition.is_rotation_symmetric() {
        return Ok(backwards(&gather.expanded(), reversed));
    }
    let mut rows = backwards(gather, reversed);
    rotate_to_rank_0(&mut rows);
    Ok(rows.with_all_rotations())
}

/// Returns the all_reduce that runs an all_gather plan in reverse and then forwards, in twice the
/// slots. A chunk is 1 / (N P) of the vector, for N ranks and P pieces of a block in the
/// all_gather.
///
/// # Errors
/// A plan of another collective, or more than 2^32 chunks.
pub fn all_reduce(gather: &Plan) -> Result<Plan, PlannerError> {
    joined(reduce_scatter(gather)?, gather.clone())
}

/// Joins a reduce_scatter and an all_gather with the same number of pieces into an all_reduce.
pub(crate) fn joined(scatter: Plan, gather: Plan) -> Result<Plan, PlannerError> {
    let hint = "an all_reduce is a reduce_scatter and an all_gather";
    let collective = check_all_gather(&gather, hint)?;
    let whole = Collective::new(CollectiveKind::AllReduce, collective.ranks())?
        .with_pieces(collective.chunks())?;
    // Both halves number the chunks in the same way, and rotate them by the same number of ranks.
    Ok(
        match [&scatter, &gather].map(|half| half.repetition.is_rotation_symmetric()) {
            [true, true] => appended(scatter, &gather, whole),
            _ => appended(scatter.into_expanded(), &gather.expanded(), whole),
        },
    )
}

/// Appends the rows of one plan to the rows of another, for a given collective.
fn appended(mut first: Plan, second: &Plan, whole: Collective) -> Plan {
    let first_slots = first.slots();
    let mut schedule = Schedule::new(whole);
    schedule.reserve(first.len() + second.len());
    schedule.append(&first.schedule, 1);
    schedule.append(&second.schedule, 1);
    schedule.claims = claim_steps(&schedule);
    first.schedule = schedule;
    first.light.extend_from_slice(&second.light);
    first
        .slot
        .extend(second.slot.iter().map(|slot| first_slots + slot));
    let slots = second.step_slots.iter();
    first
        .step_slots
        .extend(slots.map(|range| first_slots + range.start..first_slots + range.end));
    first
}

/// Returns the collective that copies data along the reverse of the transfers that combine or
/// collect them; other collectives unchanged.
pub(crate) fn copying(kind: CollectiveKind) -> CollectiveKind {
    match kind {
        CollectiveKind::ReduceScatter => CollectiveKind::AllGather,
        CollectiveKind::Reduce => CollectiveKind::Broadcast,
        CollectiveKind::Gather => CollectiveKind::Scatter,
        kind => kind,
    }
}

/// Converts a plan of the copying collective to a plan of `collective` with the same number of
/// pieces; reverses the plan if the collective combines or collects.
///
/// # Errors
/// More than 2^32 chunks.
pub(crate) fn reversed_for(copying: Plan, collective: Collective) -> Result<Plan, PlannerError> {
    if copying.schedule.collective.kind() == collective.kind() {
        return Ok(copying);
    }
    let pieces = copying.schedule.collective.pieces();
    Ok(backwards(&copying, collective.with_pieces(pieces)?))
}

/// Reverses a plan: every lightpath is reversed, in the mirrored slot. The plan must deliver every
/// chunk at most once to each rank; `reversed` is the collective that the result carries out.
pub(crate) fn backwards(forward: &Plan, reversed: Collective) -> Plan {
    let slots = forward.slots();
    // `Schedule::reversed` takes the steps from the last to the first, each in its own order.
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
        repetition: Repetition::NONE,
    }
}

/// Rotates lightpaths so that each starts at rank 0. The rotation advances a lightpath by its
/// length, so its channel among the representatives stays the same.
fn rotate_to_rank_0(representatives: &mut Plan) {
    let collective = representatives.schedule.collective;
    let (ranks, pieces) = (collective.ranks(), collective.pieces());
    let rotated = |transfer: Transfer| {
        let block = (transfer.chunk / pieces + ranks - transfer.source) % ranks;
        Transfer {
            chunk: block * pieces + transfer.chunk % pieces,
            source: 0,
            destination: (transfer.destination + ranks - transfer.source) % ranks,
            ..transfer
        }
    };
    let mut schedule = Schedule::new(collective);
    schedule.claims = representatives.schedule.claims.clone();
    schedule.reserve(representatives.len());
    for step in 0..representatives.schedule.steps() {
        schedule.begin_step();
        let transfers = representatives.schedule.step(step);
        transfers
            .for_each(|index| schedule.push(rotated(representatives.schedule.transfer(index))));
    }
    representatives.schedule = schedule;
}

fn check_all_gather(plan: &Plan, hint: &'static str) -> Result<Collective, PlannerError> {
    let collective = plan.schedule.collective;
    if collective.kind() == CollectiveKind::AllGather {
        return Ok(collective);
    }
    Err(PlannerError::Collective {
        kind: collective.kind(),
        hint,
    })
}
