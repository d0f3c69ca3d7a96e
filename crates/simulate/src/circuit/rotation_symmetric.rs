//! Rotation-symmetric plans, simulated by their representatives, which are the transfers of rank 0.
//!
//! **With barriers**, only the representatives are simulated. All rotations of a representative
//! take the same time, so the longest representative is the slot's longest lightpath. If two
//! representatives have one circuit in common, they have the same length, direction and first
//! channel, and therefore all circuits in common. Two slots have the same configuration exactly if
//! their circuits from rank 0 are the same.
//!
//! **Without barriers**, channels matter. Let c be the channel of a representative of l links. Its
//! rotation that starts at rank s uses channel c + (s mod l). Let Q be the least common multiple of
//! the lengths of all lightpaths. A rotation by Q ranks maps every transfer to a transfer on the
//! same channel. The simulation therefore repeats with period Q, and only the transfers from the
//! ranks below Q are simulated (see [`super::asynchronous`]). The transfers of every rank are in
//! the order of the representatives, as in the plan with all transfers.
//!
//! The result of a link (or rank) is the combined result of all links (or ranks) that are equal
//! modulo Q in the simulation of Q ranks. **Sizes:** If the number of chunks does not divide the
//! size, some rotations of a transfer are a byte larger than others. The simulation uses the
//! largest size for all rotations. With barriers and one chunk per lightpath, this changes no time.
//! Otherwise times can be too long, and bytes and busy times are always those of chunks that are
//! one byte too large.

use super::PlanRun;
use super::messages::Sizes;
use crate::SimulationError;
use crate::outcome::{Outcome, RankColumns};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError, gcd};
use opticoll_fabric::fabric::circuits::{Circuits, Lines, ReconfigurationCharge};
use opticoll_plan::plan::Plan;
use opticoll_plan::plan::repetition::chunks_per_rank;

/// Maximum number of simulated transfers, which need about 20 GB of memory.
const MAX_TRANSFERS: u64 = 1 << 28;

pub(super) fn simulate(
    plan: &Plan,
    circuits: &dyn Circuits,
    run: PlanRun,
) -> Result<Outcome, SimulationError> {
    let ranks = plan.fabric.ranks();
    let repeats = period(plan)?;
    let period = match run.charge {
        ReconfigurationCharge::ChangedPort | ReconfigurationCharge::ChangedPlane => repeats,
        _ => 1,
    };
    let transfers = plan.len() as u64 * u64::from(period);
    if transfers > MAX_TRANSFERS {
        let problem = format!(
            "without barriers a plan with lightpaths of different lengths is simulated as \
             {transfers} transfers, and the maximum is {MAX_TRANSFERS}; use another policy"
        );
        return Err(SimulationError::refused("too_large", problem));
    }
    let chunks = chunks_per_rank(&plan.schedule.collective);
    let sizes = chunks.map_or(Sizes::Exact, Sizes::MaxOfRotations);
    let copies = (ranks / period).into();
    let run = PlanRun {
        period,
        copies,
        sizes,
        ..run
    };
    let mut outcome = run.simulate(&plan.rotated_rows(period), circuits)?;
    outcome
        .slots
        .lightpaths
        .iter_mut()
        .for_each(|lightpaths| *lightpaths *= copies);
    complete_by_rotation(&mut outcome, circuits.lines(), period)?;
    for critical in &mut outcome.critical_path {
        let period = period as usize;
        let (representative, source) = (critical.transfer / period, critical.transfer % period);
        critical.transfer = representative * ranks as usize + source;
    }
    Ok(outcome)
}

/// Returns the least common multiple of the lengths (in links) of all lightpaths, or an error if
/// the rotations of a transfer do not fit the ring or its channels.
fn period(plan: &Plan) -> Result<u32, SimulationError> {
    let fabric = &plan.fabric;
    let Some(rotation) = fabric.rotation() else {
        return Ok(fabric.ranks());
    };
    let mut period = 1;
    for transfer in 0..plan.len() {
        interrupt::check();
        let span = plan.span(transfer);
        let refused = |problem| Err(SimulationError::Transfer { transfer, problem });
        if fabric.ranks() % span != 0 {
            return refused("its rotations do not divide the ring");
        }
        let light = plan.light[transfer];
        if rotation.rotate_back(light, span, 0).is_none() {
            return refused("its rotations need channels that do not exist");
        }
        // All lengths divide the number of ranks, and so does their common multiple.
        period = period / gcd(period.into(), span.into()) as u32 * span;
    }
    Ok(period)
}

/// Replaces the result of each link (and each rank) by the combined result of all links (and all
/// ranks) that are equal modulo `period`.
fn complete_by_rotation(outcome: &mut Outcome, lines: Lines, period: u32) -> Result<(), UnitError> {
    let [_, (_, columns)] = lines.shape;
    let (columns, period) = (columns as usize, period as usize);
    let add =
        |first: &u64, second: &u64| Bytes::new(*first).plus(Bytes::new(*second)).map(Bytes::get);
    for row in outcome.links.busy.chunks_mut(columns) {
        combine_modulo(row, period, |first: &Time, second| first.plus(*second))?;
    }
    for row in outcome.links.bytes.chunks_mut(columns) {
        combine_modulo(row, period, add)?;
    }
    let RankColumns {
        sent,
        received,
        finish,
    } = &mut outcome.ranks;
    combine_modulo(sent, period, add)?;
    combine_modulo(received, period, add)?;
    combine_modulo(finish, period, |first: &Time, second: &Time| {
        Ok::<_, UnitError>(*first.max(second))
    })
}

/// Combines the entries that are equal modulo `period`, and stores the result in each of them.
fn combine_modulo<T: Copy>(
    column: &mut [T],
    period: usize,
    join: impl Fn(&T, &T) -> Result<T, UnitError>,
) -> Result<(), UnitError> {
    for index in period..column.len() {
        column[index % period] = join(&column[index % period], &column[index])?;
    }
    for index in period..column.len() {
        column[index] = column[index % period];
    }
    Ok(())
}
