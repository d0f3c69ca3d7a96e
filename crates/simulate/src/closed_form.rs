//! The paper's formula: T = S (d/B + a), with S the paper's number of steps, d the bytes that the
//! paper charges to a step, B the rate of one wavelength and a the reconfiguration and O/E/O delay
//! (OpTree, Theorem 3). Propagation is not part of it.
//!
//! On a grid of lightpaths: the algorithm's [`opticoll_algorithms::light_path::PathFormula`], with k ports under `establish_release` and all
//! paths there under `free`. The paper's naive management is a grid with one port.

use super::{Policy, SimulationError};
use crate::outcome::Outcome;
use opticoll_algorithms::light_path::PathCost;
use opticoll_base::names::shown;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::{Charge, Circuits};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::Plan;

/// Why a plan with circuits has no formula.
pub(super) const NO_FORMULA: &str = "the papers have no formula for its circuits; use circuit";

/// The time that the paper's formula gives for the plan's algorithm, whatever the plan needs.
///
/// # Errors
/// No paper gives a number of steps; or the policy needs to know circuits.
pub fn simulate(plan: &Plan, size: Bytes, policy: Policy) -> Result<Outcome, SimulationError> {
    let circuits = super::needed_circuits(&plan.fabric, "closed_form")?;
    if plan.schedule.collective.demand().is_some() {
        return Err(no_claim(plan));
    }
    if circuits.is_degraded() {
        let problem = "a formula knows one rate, and parts of the fabric are slower; use the circuit simulator";
        return Err(SimulationError::refused("closed_form", problem));
    }
    let Some(latency) = circuits.formula_latency() else {
        return Err(SimulationError::Fabric {
            simulator: "closed_form",
            family: plan.fabric.family(),
            hint: NO_FORMULA,
        });
    };
    if let Some((_, Charge::Groups { .. })) = circuits.policies().first() {
        let (time, set_ups) = over_light_paths(plan, circuits, latency, size, policy)?;
        return Ok(outcome(policy, time, set_ups));
    }
    let claims = &plan.schedule.claims;
    let (Some(steps), Some((part, whole))) = (claims.paper_steps, claims.paper_step_share) else {
        return Err(no_claim(plan));
    };
    let (reconfiguration, charged) = match circuits.charge(policy.name()) {
        Ok(Charge::EverySlot) => (circuits.change()?.set_up, steps),
        Ok(Charge::Never) => (Time::ZERO, 0),
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
    let transmission = circuits.transmission().time(Bytes::new(bytes))?;
    let step = reconfiguration.plus(latency)?.plus(transmission)?;
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

/// The paper's formula for a collective over lightpaths, and how often it sets paths up.
fn over_light_paths(
    plan: &Plan,
    circuits: &dyn Circuits,
    latency: Time,
    size: Bytes,
    policy: Policy,
) -> Result<(Time, u64), SimulationError> {
    let ranks = plan.fabric.ranks();
    let ports = match circuits.charge(policy.name()) {
        // Every line is a port of a rank.
        Ok(Charge::Groups { each_slot: false }) => Some(circuits.lines().count() as u32 / ranks),
        Ok(Charge::Never) => None,
        _ => {
            return Err(SimulationError::policy(
                "closed_form",
                policy,
                "over lightpaths there are formulas for establish_release and free; the naive \
                         way is establish_release with ports=1",
            ));
        }
    };
    let kind = plan.schedule.collective.kind();
    let spec: Option<Spec> = plan.algorithm.parse().ok();
    let record = spec.and_then(|spec| opticoll_algorithms::find(kind, spec.name()).ok());
    let formula = record.and_then(|record| record.formula);
    let formula = formula
        .filter(|formula| formula.collectives.contains(&kind))
        .ok_or_else(|| no_claim(plan))?;
    // The formulas count what an all_gather brings to every rank, we the block of one.
    let bytes = match kind {
        CollectiveKind::AllGather => size.get().checked_mul(ranks.into()),
        _ => Some(size.get()),
    };
    let bytes = bytes.map(Bytes::new).ok_or_else(|| UnitError::Overflow {
        what: format!("{} blocks of {size}", ranks),
        smallest: "bytes",
    })?;
    let change = circuits.change()?;
    let cost = PathCost {
        latency,
        rate: circuits.transmission().rate,
        set_up: change.set_up.plus(change.release)?,
    };
    let time = formula.time(ranks, bytes, cost, ports)?;
    let set_ups = ports.map_or(0, |ports| (formula.set_ups)(ranks, ports));
    Ok((time, set_ups))
}

fn no_claim(plan: &Plan) -> SimulationError {
    let problem = format!(
        "no paper gives a number of steps for `{}`; use the circuit simulator",
        shown(&plan.algorithm)
    );
    SimulationError::refused("no_claim", problem)
}
