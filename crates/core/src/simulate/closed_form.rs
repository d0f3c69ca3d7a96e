//! The paper's formula: T = S (d/B + a), with S the paper's number of steps, d the bytes that the
//! paper charges to a step, B the rate of one wavelength and a the reconfiguration and O/E/O delay
//! (OpTree, Theorem 3). Propagation is not part of it.
//!
//! On a grid of light paths: the algorithm's [`algorithm::light_path::PathFormula`], with k ports under `establish_release` and all
//! paths there under `free`. The paper's naive management is a grid with one port.

use super::{Policy, SimulationError};
use crate::algorithm::{self, light_path::PathCost};
use crate::collective::CollectiveKind;
use crate::fabric::Fabric;
use crate::family::light_path_grid::LightPathGrid;
use crate::family::wdm_ring::WdmRing;
use crate::outcome::Outcome;
use crate::plan::{Plan, PlanRef};
use crate::spec::Spec;
use crate::spelling::shown;
use crate::units::{Bytes, Time, UnitError};

/// Whether papers give formulas for plans on a fabric.
pub fn has_formulas(fabric: &Fabric) -> bool {
    fabric.downcast::<WdmRing>().is_some() || fabric.downcast::<LightPathGrid>().is_some()
}

/// The time that the paper's formula gives for the plan's algorithm, whatever the plan needs.
///
/// # Errors
/// No paper gives a number of steps; or the policy needs to know circuits.
pub fn simulate<'a>(
    plan: impl Into<PlanRef<'a>>,
    size: Bytes,
    policy: Policy,
) -> Result<Outcome, SimulationError> {
    let plan = plan.into().kept();
    if let Some(grid) = plan.fabric.downcast::<LightPathGrid>() {
        let (time, set_ups) = over_light_paths(plan, grid, size, policy)?;
        return Ok(outcome(policy, time, set_ups));
    }
    let ring = super::needed::<WdmRing>(&plan.fabric, "closed_form")?;
    let claims = &plan.schedule.claims;
    let (Some(steps), Some((part, whole))) = (claims.paper_steps, claims.paper_step_share) else {
        return Err(no_claim(plan));
    };
    let reconfiguration = match policy {
        Policy::EveryStep => ring.reconfiguration,
        Policy::Free => Time::ZERO,
        _ => {
            return Err(SimulationError::policy(
                "closed_form",
                policy,
                "a formula knows no circuits; use every_step or free, or the circuit \
                         simulator",
            ));
        }
    };
    // The largest part where the size does not divide evenly.
    let bytes = (u128::from(size.get()) * u128::from(part)).div_ceil(u128::from(whole));
    let bytes = u64::try_from(bytes).map_err(|_| UnitError::Overflow {
        what: format!("{part}/{whole} of {size}"),
        smallest: "bytes",
    })?;
    let transmission = ring.rate.transmission(Bytes::new(bytes))?;
    let step = reconfiguration.plus(ring.conversion)?.plus(transmission)?;
    let charged = match policy {
        Policy::EveryStep => steps,
        _ => 0,
    };
    Ok(outcome(policy, step.times(steps)?, charged))
}

/// What a formula gives: no columns and no utilisation.
fn outcome(policy: Policy, time: Time, reconfigurations: u64) -> Outcome {
    Outcome {
        policy: Some(policy.name()),
        time,
        reconfigurations,
        ..Outcome::default()
    }
}

/// The paper's formula for a collective over light paths, and how often it sets paths up.
fn over_light_paths(
    plan: &Plan,
    grid: &LightPathGrid,
    size: Bytes,
    policy: Policy,
) -> Result<(Time, u64), SimulationError> {
    let ports = match policy {
        Policy::EstablishRelease => Some(grid.ports),
        Policy::Free => None,
        _ => {
            return Err(SimulationError::policy(
                "closed_form",
                policy,
                "over light paths there are formulas for establish_release and free; the naive \
                         way is establish_release with ports=1",
            ));
        }
    };
    let kind = plan.schedule.collective.kind();
    let spec: Option<Spec> = plan.algorithm.parse().ok();
    let record = spec.and_then(|spec| algorithm::find(kind, spec.name()).ok());
    let formula = record.and_then(|record| record.formula);
    let formula = formula
        .filter(|formula| formula.collectives.contains(&kind))
        .ok_or_else(|| no_claim(plan))?;
    // The formulas count what an all_gather brings to every rank, we the block of one.
    let bytes = match kind {
        CollectiveKind::AllGather => size.get().checked_mul(grid.ranks.into()),
        _ => Some(size.get()),
    };
    let bytes = bytes.map(Bytes::new).ok_or_else(|| UnitError::Overflow {
        what: format!("{} blocks of {size}", grid.ranks),
        smallest: "bytes",
    })?;
    let cost = PathCost {
        latency: grid.latency,
        rate: grid.rate,
        set_up: grid.establish.plus(grid.release)?,
    };
    let time = formula.time(grid.ranks, bytes, cost, ports)?;
    let set_ups = ports.map_or(0, |ports| (formula.set_ups)(grid.ranks, ports));
    Ok((time, set_ups))
}

fn no_claim(plan: &Plan) -> SimulationError {
    let problem = format!(
        "no paper gives a number of steps for `{}`; use the circuit simulator",
        shown(&plan.algorithm)
    );
    SimulationError::refused("no_claim", problem)
}
