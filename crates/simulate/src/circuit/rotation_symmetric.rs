//! Rotation-symmetric plans, simulated by their representatives.
//!
//! **With barriers** only the transfers that leave rank 0 are simulated. All rotations of a
//! representative take the same time, so the longest representative is the slot's longest
//! lightpath. The circuits of a representative are the rotations of its lightpath from rank 0, and
//! the length, the direction and the first channel can be read off any of them. Two representatives
//! therefore have all circuits in common or none, and the configurations of two slots compare as
//! their circuits from rank 0 do.
//!
//! **Without barriers** channels matter. The rotation of a lightpath of length l to source s is on
//! channel `first + s mod l`. A rotation by Q, the least common multiple of all lengths, maps every
//! transfer to one on the same channel. The simulation therefore repeats with period Q, and only
//! the transfers from the ranks below Q are simulated (see [`super::asynchronous`]). Every rank
//! meets its transfers in the order of the representatives, as in the plan with all transfers.
//!
//! Sums over the transfers of Q ranks at all links (or ranks) that are equal modulo Q give the
//! columns of each of these links (or ranks). **Sizes** that are not a multiple of the chunks make
//! some rotations of a transfer a byte larger than others, and the largest then stands for all.
//! With barriers and one chunk per lightpath, this changes no time; otherwise times, and in any
//! case bytes and busy times, are those of chunks that are one byte too large.

use super::PlanRun;
use super::messages::Sizes;
use crate::SimulationError;
use crate::outcome::{Outcome, RankColumns};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError, gcd};
use opticoll_fabric::fabric::circuits::{Circuits, Lines, ReconfigurationCharge};
use opticoll_plan::plan::Plan;
use opticoll_plan::plan::repetition::chunks_per_rank;

/// Maximum number of transfers that are simulated, which take about 20 GB of memory.
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
    spread(&mut outcome, circuits.lines(), period)?;
    for critical in &mut outcome.critical_path {
        let period = period as usize;
        let (representative, source) = (critical.transfer / period, critical.transfer % period);
        critical.transfer = representative * ranks as usize + source;
    }
    Ok(outcome)
}

/// Returns the least common multiple of the lengths of all lightpaths, or an error if the rotations
/// of a transfer do not fit the ring or its channels.
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
        // Divisors of N have a common multiple that divides N.
        period = period / gcd(period.into(), span.into()) as u32 * span;
    }
    Ok(period)
}

/// Completes the columns, which so far count only the transfers from `period` sources: entries that
/// are equal modulo `period` are combined, and each of them gets the result.
fn spread(outcome: &mut Outcome, lines: Lines, period: u32) -> Result<(), UnitError> {
    let [_, (_, columns)] = lines.shape;
    let (columns, period) = (columns as usize, period as usize);
    let add = |one: &u64, other: &u64| Bytes::new(*one).plus(Bytes::new(*other)).map(Bytes::get);
    for row in outcome.links.busy.chunks_mut(columns) {
        repeat(row, period, |one: &Time, other| one.plus(*other))?;
    }
    for row in outcome.links.bytes.chunks_mut(columns) {
        repeat(row, period, add)?;
    }
    let RankColumns {
        sent,
        received,
        finish,
    } = &mut outcome.ranks;
    repeat(sent, period, add)?;
    repeat(received, period, add)?;
    repeat(finish, period, |one: &Time, other: &Time| {
        Ok::<_, UnitError>(*one.max(other))
    })
}

/// Joins the entries that are equal modulo the period, and stores the result in each of them.
fn repeat<T: Copy>(
    column: &mut [T],
    period: usize,
    join: impl Fn(&T, &T) -> Result<T, UnitError>,
) -> Result<(), UnitError> {
    for place in period..column.len() {
        column[place % period] = join(&column[place % period], &column[place])?;
    }
    for place in period..column.len() {
        column[place] = column[place % period];
    }
    Ok(())
}
