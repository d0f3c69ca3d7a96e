//! Reversal in time: turns an all_gather plan into a reduce_scatter plan, and both into an
//! all_reduce plan.
//!
//! The reversal of a lightpath leads from its destination to its source, in the opposite direction,
//! on the same links, fibre and wavelength. The order of the slots is reversed as well. Lightpaths
//! that do not collide before the reversal do not collide afterwards. In an all_gather, each block
//! spreads along a tree. The reversed tree sums up every rank's contribution to the block, each
//! exactly once, which is a reduce_scatter. The reduce_scatter followed by the all_gather is an
//! all_reduce of a vector that has as many chunks as the all_gather (Rabenseifner 2004).

use crate::PlannerError;
use crate::building::claim_steps;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_ring::WdmLight;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Schedule, Transfer};

/// Returns the reduce_scatter plan that reverses an all_gather plan. Both plans have the same
/// number of slots, with the same lengths in reverse order.
///
/// # Errors
/// Fails if the plan is not an all_gather plan.
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

/// Returns the all_reduce plan that consists of the reversed all_gather plan `gather` and then of
/// `gather` itself. If a block of `gather` has P pieces, each chunk is 1 / (N P) of the vector of N
/// ranks.
///
/// # Errors
/// Fails if the plan is not an all_gather plan, or if the result has more than 2^32 chunks.
pub fn all_reduce(gather: &Plan) -> Result<Plan, PlannerError> {
    joined(reduce_scatter(gather)?, gather.clone())
}

/// Joins a reduce_scatter plan and an all_gather plan with equally many pieces per block into an
/// all_reduce plan.
pub(crate) fn joined(scatter: Plan, gather: Plan) -> Result<Plan, PlannerError> {
    let hint = "an all_reduce is a reduce_scatter and an all_gather";
    let collective = check_all_gather(&gather, hint)?;
    let whole = Collective::new(CollectiveKind::AllReduce, collective.ranks())?
        .with_pieces(collective.chunks())?;
    Ok(
        match [&scatter, &gather].map(|half| half.repetition.is_rotation_symmetric()) {
            [true, true] => appended(scatter, &gather, whole),
            _ => appended(scatter.into_expanded(), &gather.expanded(), whole),
        },
    )
}

/// Returns a plan of `whole` with the transfers of `first` followed by the transfers of `second`.
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

/// Returns the collective whose time reversal is `kind`: all_gather for reduce_scatter, broadcast
/// for reduce, scatter for gather. Returns other collectives unchanged.
pub(crate) fn copying(kind: CollectiveKind) -> CollectiveKind {
    match kind {
        CollectiveKind::ReduceScatter => CollectiveKind::AllGather,
        CollectiveKind::Reduce => CollectiveKind::Broadcast,
        CollectiveKind::Gather => CollectiveKind::Scatter,
        kind => kind,
    }
}

/// Returns a plan of `collective`. If `collective` is the time reversal of another collective (see
/// [`copying`]), `copying` is a plan of that other collective, and is reversed. Otherwise returns
/// `copying` unchanged.
pub(crate) fn reversed_for(copying: Plan, collective: Collective) -> Result<Plan, PlannerError> {
    if copying.schedule.collective.kind() == collective.kind() {
        return Ok(copying);
    }
    let pieces = copying.schedule.collective.pieces();
    Ok(backwards(&copying, collective.with_pieces(pieces)?))
}

/// Reverses a plan: every lightpath is reversed, and so is the order of the slots. The plan must
/// deliver every chunk at most once to each rank. `reversed` is the collective of the result.
pub(crate) fn backwards(forward: &Plan, reversed: Collective) -> Plan {
    let slots = forward.slots();
    // `Schedule::reversed` keeps the order of the transfers within a step.
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

/// Rotates all representatives so that each has source 0. Each representative is rotated by its own
/// length, so it keeps its channel.
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
