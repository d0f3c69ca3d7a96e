//! The paper's formula: T = S (d/B + a), with S the paper's number of steps, d the bytes that the
//! paper charges to a step, B the rate of one wavelength and a the reconfiguration and O/E/O delay
//! (OpTree, Theorem 3). Propagation is not part of it.

use super::{Policy, SimulationError};
use crate::outcome::{LinkColumns, Outcome, RankColumns, SlotColumns};
use crate::plan::PlanRef;
use crate::units::{Bytes, Time, UnitError};

/// The time that the paper's formula gives for the plan's algorithm, whatever the plan needs.
///
/// # Errors
/// No paper gives a number of steps; or the policy needs to know circuits.
pub fn simulate<'a>(
    plan: impl Into<PlanRef<'a>>,
    size: Bytes,
    policy: Policy,
) -> Result<Outcome, SimulationError> {
    let given = plan.into();
    let plan = given.kept();
    let ring = super::needed_ring(&plan.fabric, "closed_form")?;
    let claims = &plan.schedule.claims;
    let (Some(steps), Some((part, whole))) = (claims.paper_steps, claims.paper_step_share) else {
        return Err(SimulationError::NoClaim {
            algorithm: plan.algorithm.clone(),
        });
    };
    let reconfiguration = match policy {
        Policy::EveryStep => ring.reconfiguration,
        Policy::Free => Time::ZERO,
        Policy::OnChange | Policy::PerPort | Policy::TwoTier => {
            return Err(SimulationError::Policy {
                simulator: "closed_form",
                policy: policy.name(),
                reason: "a formula knows no circuits; use every_step or free, or the circuit \
                         simulator",
            });
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
    Ok(Outcome {
        simulator: "closed_form",
        policy: Some(policy.name()),
        time: step.times(steps)?,
        reconfigurations: if policy == Policy::EveryStep {
            steps
        } else {
            0
        },
        utilisation: super::circuit::utilisation(given),
        slots: SlotColumns::default(),
        links: LinkColumns::default(),
        ranks: RankColumns::default(),
        critical_path: Vec::new(),
        flowing: None,
        packets: None,
        tuned: None,
    })
}
