//! What one all_reduce by a plan costs, and which part of it is reconfiguration or control.
//!
//! - Circuits under a policy that charges slots: reconfiguration is what was charged.
//! - Grid of tunable circuits under distributed control: along the critical path, tuning and locking are
//!   reconfiguration; requests and grants in flight, and requests that wait in a queue, are control.
//! - Everything else: reconfiguration is what the same plan would be faster if circuits took no time to set
//!   up, control what it would be faster still if messages of control took none.

use super::Cost;
use opticoll_base::spec::Role;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::circuits::Charge;
use opticoll_plan::plan::Plan;
use opticoll_simulate::outcome::{Outcome, Tuned};
use opticoll_simulate::{Method, SimulationError};

/// Simulates a plan; returns the outcome beside its cost.
///
/// # Errors
/// As [`opticoll_simulate::run`]; the plan must have been verified.
pub fn of(plan: &Plan, size: Bytes, method: &Method) -> Result<(Cost, Outcome), SimulationError> {
    let outcome = opticoll_simulate::run(plan, size, method)?;
    let (reconfiguration, control) = split(plan, size, method, &outcome)?;
    let cost = Cost {
        time: outcome.time,
        reconfiguration,
        control,
    };
    Ok((cost, outcome))
}

/// Reconfiguration and control.
fn split(
    plan: &Plan,
    size: Bytes,
    method: &Method,
    outcome: &Outcome,
) -> Result<(Time, Time), SimulationError> {
    let fabric = &plan.fabric;
    let tuned = outcome.details.get::<Tuned>();
    if let Some(tuned) = tuned.filter(|tuned| !tuned.flows.source.is_empty()) {
        let control = tuned.path_control.plus(tuned.path_waiting)?;
        return Ok((tuned.path_tuning, control));
    }
    let Some(circuits) = fabric.circuits() else {
        return Ok((Time::ZERO, Time::ZERO));
    };
    let charge = outcome.policy.map(|policy| circuits.charge(policy));
    if let Some(Ok(Charge::EverySlot | Charge::NewSetting | Charge::Never)) = charge {
        let set_up = circuits.change()?.set_up;
        return Ok((set_up.times(outcome.reconfigurations)?, Time::ZERO));
    }
    let mut changed = plan.clone();
    let mut without = |role| {
        let fabric = &mut changed.fabric;
        *fabric = fabric.without(role);
        Ok::<_, SimulationError>(opticoll_simulate::run(&changed, size, method)?.time)
    };
    let still = without(Role::Reconfiguration)?;
    let reconfiguration = Time::from_ps(outcome.time.ps().saturating_sub(still.ps()));
    let least = without(Role::Control)?;
    let control = Time::from_ps(still.ps().saturating_sub(least.ps()));
    Ok((reconfiguration, control))
}
