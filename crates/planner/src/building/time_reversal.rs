//! An all_gather run backwards, and there and back.
//!
//! Every lightpath is turned round: from its end to its start, in the other direction, on the same
//! links, fibre and wavelength, in the mirrored slot. Lightpaths that did not collide do not collide
//! then. The tree along which a block spread now gathers every rank's contribution to it, each
//! exactly once: a reduce_scatter. Followed by the all_gather it is an all_reduce of the vector cut
//! into a chunk for every chunk of the all_gather (Rabenseifner's composition).

use crate::PlannerError;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_ring::WdmLight;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// The reduce_scatter that is an all_gather plan run backwards: as many slots, the same lengths.
///
/// # Errors
/// Another collective than an all_gather.
pub fn reduce_scatter(gather: &Plan) -> Result<Plan, PlannerError> {
    let collective = of_gather(gather, "reduce_scatter is an all_gather reversed")?;
    let reversed = Collective::new(CollectiveKind::ReduceScatter, collective.ranks())?
        .with_pieces(collective.pieces())?;
    if !gather.repetition.is_folded() {
        return Ok(backwards(&gather.written_out(), reversed));
    }
    let mut rows = backwards(gather, reversed);
    leave_rank_0(&mut rows);
    Ok(rows.with_all_rotations())
}

/// The all_reduce that runs an all_gather plan backwards and then forwards: twice the slots, chunks
/// of an N P-th of the vector, P the all_gather's pieces of a block.
///
/// # Errors
/// Another collective than an all_gather, or one of more than 2^32 chunks.
pub fn all_reduce(gather: &Plan) -> Result<Plan, PlannerError> {
    joined(reduce_scatter(gather)?, gather.clone())
}

/// The all_reduce of a reduce_scatter and an all_gather of as many pieces, one after the other.
pub(crate) fn joined(scatter: Plan, gather: Plan) -> Result<Plan, PlannerError> {
    let hint = "an all_reduce is a reduce_scatter and an all_gather";
    let collective = of_gather(&gather, hint)?;
    let whole = Collective::new(CollectiveKind::AllReduce, collective.ranks())?
        .with_pieces(collective.chunks())?;
    // Both halves number the chunks in one way, and turn them by as many.
    Ok(
        match [&scatter, &gather].map(|half| half.repetition.is_folded()) {
            [true, true] => appended(scatter, &gather, whole),
            _ => appended(scatter.into_written_out(), &gather.written_out(), whole),
        },
    )
}

/// The rows of one plan and then those of another, for a collective.
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

/// Returns the collective that copies from a rank what another one combines or collects there;
/// others themselves.
pub(crate) fn copying(kind: CollectiveKind) -> CollectiveKind {
    match kind {
        CollectiveKind::ReduceScatter => CollectiveKind::AllGather,
        CollectiveKind::Reduce => CollectiveKind::Broadcast,
        CollectiveKind::Gather => CollectiveKind::Scatter,
        kind => kind,
    }
}

/// Returns a plan of the copying collective as one of a collective, in as many pieces: backwards if
/// that combines.
///
/// # Errors
/// Chunks beyond 32 bits.
pub(crate) fn towards(copying: Plan, collective: Collective) -> Result<Plan, PlannerError> {
    if copying.schedule.collective.kind() == collective.kind() {
        return Ok(copying);
    }
    let pieces = copying.schedule.collective.pieces();
    Ok(backwards(&copying, collective.with_pieces(pieces)?))
}

/// A plan run backwards, every lightpath turned round, in the mirrored slot, for the collective that
/// this makes it carry out: every rank of the one must get every chunk once at most.
pub(crate) fn backwards(forward: &Plan, reversed: Collective) -> Plan {
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
        repetition: Repetition::NONE,
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
