//! What one all_reduce by a plan costs, and which part of it is reconfiguration or control.
//!
//! On a ring of wavelengths whose policy charges slots, reconfiguration is what was charged. Without
//! barriers (`per_port`) it is what the same plan would be faster if circuits took no time to set up.

use super::Cost;
use crate::fabric::Fabric;
use crate::outcome::Outcome;
use crate::plan::{AnyPlan, PlanRef};
use crate::simulate::{self, Method, Policy, SimulationError};
use crate::units::{Bytes, Time};

/// Simulates a plan.
///
/// # Errors
/// As [`simulate::run`]; the plan must have been verified.
pub fn of<'a>(
    plan: impl Into<PlanRef<'a>>,
    size: Bytes,
    method: &Method,
) -> Result<Cost, SimulationError> {
    let plan = plan.into();
    let outcome = simulate::run(plan, size, method)?;
    Ok(Cost {
        time: outcome.time,
        reconfiguration: reconfiguration(plan, size, method, &outcome)?,
        control: Time::ZERO,
    })
}

fn reconfiguration(
    plan: PlanRef<'_>,
    size: Bytes,
    method: &Method,
    outcome: &Outcome,
) -> Result<Time, SimulationError> {
    let Some(ring) = plan.kept().fabric.ring() else {
        return Ok(Time::ZERO);
    };
    if outcome.policy != Some(Policy::PerPort.name()) {
        return Ok(ring.reconfiguration.times(outcome.reconfigurations)?);
    }
    let mut instant = match plan {
        PlanRef::Full(plan) => AnyPlan::Full(plan.clone()),
        PlanRef::Folded(plan) => AnyPlan::Folded(plan.clone()),
    };
    if let Fabric::WdmRing(ring) = &mut instant.kept_mut().fabric {
        ring.reconfiguration = Time::ZERO;
    }
    let without = simulate::run(&instant, size, method)?.time;
    Ok(Time::from_ps(
        outcome.time.ps().saturating_sub(without.ps()),
    ))
}
