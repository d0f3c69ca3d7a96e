//! Cost of an all_reduce that a plan executes, divided into reconfiguration, control and data.
//!
//! - Circuits under a policy that charges slots: reconfiguration is the charged time.
//! - Grid of tunable circuits under distributed control: on the critical path, tuning and locking
//!   are reconfiguration; requests and grants in flight, and requests that wait in a queue, are
//!   control.
//! - Otherwise: reconfiguration is the time that the same plan would save if circuits needed no
//!   setup. Control is the time that the plan would save in addition if control messages took no
//!   time.

use super::Cost;
use opticoll_base::spec::Role;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::circuits::ReconfigurationCharge;
use opticoll_plan::plan::Plan;
use opticoll_simulate::outcome::{Outcome, Tuned};
use opticoll_simulate::{SimulationError, TimingModel};

/// Simulates a verified plan. Returns the cost of the plan and the outcome of the simulation.
pub fn simulate(
    plan: &Plan,
    size: Bytes,
    method: &TimingModel,
) -> Result<(Cost, Outcome), SimulationError> {
    let outcome = opticoll_simulate::run(plan, size, method)?;
    let (reconfiguration, control) = split(plan, size, method, &outcome)?;
    let cost = Cost {
        time: outcome.time,
        reconfiguration,
        control,
    };
    Ok((cost, outcome))
}

/// Returns the reconfiguration time and the control time of a simulated plan.
fn split(
    plan: &Plan,
    size: Bytes,
    method: &TimingModel,
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
    if let Some(Ok(
        ReconfigurationCharge::EverySlot
        | ReconfigurationCharge::NewConfiguration
        | ReconfigurationCharge::Never,
    )) = charge
    {
        let setup = circuits.change()?.setup;
        return Ok((setup.times(outcome.reconfigurations)?, Time::ZERO));
    }
    let mut changed = plan.clone();
    let mut without = |role| {
        let fabric = &mut changed.fabric;
        *fabric = fabric.without(role);
        Ok::<_, SimulationError>(opticoll_simulate::run(&changed, size, method)?.time)
    };
    let without_setup = without(Role::Reconfiguration)?;
    let reconfiguration = Time::from_ps(outcome.time.ps().saturating_sub(without_setup.ps()));
    let without_control = without(Role::Control)?;
    let control = Time::from_ps(without_setup.ps().saturating_sub(without_control.ps()));
    Ok((reconfiguration, control))
}
