//! Folded plans, simulated through their symmetry.
//!
//! **With barriers** it is enough to simulate what rank 0 sends. All copies of an orbit take the same
//! time, so that the longest orbit is the slot's longest lightpath. The circuits of an orbit are those
//! of its lightpath from rank 0, turned; from any of them the length, the direction and the first
//! channel can be read off. Two orbits hence have all circuits in common or none, and the settings of
//! two slots compare as their circuits from rank 0 do.
//!
//! **Without barriers** channels matter. A copy is on channel `first + s mod l`, with s its source: a
//! rotation by Q, the least common multiple of all lengths, takes every copy to one on the same
//! channel. Everything thus repeats after Q ranks, and the copies from the ranks below Q are simulated
//! with that period (see [`super::asynchronous`]). Every rank meets its transfers in the order of the
//! orbits, as in the unfolded plan.
//!
//! What the transfers of Q ranks do to links and ranks, summed over those that are equal modulo Q, is
//! what all do to each. **Sizes** that are not a multiple of the chunks make some copies of an orbit a
//! byte larger than others. The largest then stands for all: with barriers, and one chunk on a lightpath, no time depends on it;
//! otherwise times, and in any case bytes and busy times, are those of chunks cut a byte too large.

use super::PlanRun;
use super::messages::Sizes;
use crate::SimulationError;
use crate::outcome::{Outcome, RankColumns};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::{Charge, Circuits, Lines};
use opticoll_plan::plan::Plan;
use opticoll_plan::plan::repetition::chunks_per_rank;

/// The most transfers of a quotient: some 20 GB.
const MOST_TRANSFERS: u64 = 1 << 28;

pub(super) fn simulate(
    plan: &Plan,
    circuits: &dyn Circuits,
    run: PlanRun,
) -> Result<Outcome, SimulationError> {
    let ranks = plan.fabric.ranks();
    let repeats = period(plan)?;
    let period = match run.charge {
        Charge::ChangedPort | Charge::ChangedPlane => repeats,
        _ => 1,
    };
    let transfers = plan.len() as u64 * u64::from(period);
    if transfers > MOST_TRANSFERS {
        let most = MOST_TRANSFERS;
        let problem = format!(
            "without barriers a plan with lightpaths of so many lengths is simulated as {transfers} \
             transfers: {most} at most; another policy will do"
        );
        return Err(SimulationError::refused("too_large", problem));
    }
    let chunks = chunks_per_rank(&plan.schedule.collective);
    let sizes = chunks.map_or(Sizes::Own, Sizes::MostOfRotations);
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
        let (orbit, source) = (critical.transfer / period, critical.transfer % period);
        critical.transfer = orbit * ranks as usize + source;
    }
    Ok(outcome)
}

/// The least common multiple of the channels that orbits take; an error where their rotations do not fit
/// onto the channels.
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
        period = period / gcd(period, span) * span;
    }
    Ok(period)
}

fn gcd(one: u32, other: u32) -> u32 {
    if one == 0 {
        other
    } else {
        gcd(other % one, one)
    }
}

/// Makes the columns of `period` ranks' transfers into those of all.
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

/// Joins the entries that are equal modulo the period, and puts the result in place of each.
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
