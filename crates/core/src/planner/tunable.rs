//! What becomes of a plan on a grid of tunable circuits when something fails.

use super::{PlannerError, named};
use crate::collective::Collective;
use crate::fabric::wss_grid::WavelengthPlan;
use crate::fabric::{Fabric, WssGrid};
use crate::plan::Plan;
use crate::simulate::{self, Method};
use crate::spec::Spec;
use crate::units::{Bytes, Time};
use crate::verify::{Violation, verify};

/// A plan anew on what is left of its grid.
pub struct Replanned {
    /// The plan. Its fabric names the wavelength plan that was taken.
    pub plan: Plan,
    /// What the verifier says: nothing.
    pub violations: Vec<Violation>,
    /// The time on the grid as it was.
    pub before: Time,
    /// The time on what is left.
    pub after: Time,
}

impl Replanned {
    /// By which factor the collective takes longer.
    pub fn slowdown(&self) -> f64 {
        self.after.seconds() / self.before.seconds()
    }
}

/// Plans anew, by the same algorithm, for a grid on which transceivers or switch ports are dead or nodes
/// are no longer allocated: with its wavelength plan, or else with one that joins any two ports.
///
/// # Errors
/// Ranks that nothing joins any more, or what a simulation refuses.
pub fn replan(
    plan: &Plan,
    left: &WssGrid,
    size: Bytes,
    method: &Method,
) -> Result<Replanned, PlannerError> {
    let spec: Spec = plan.algorithm.parse()?;
    let collective = plan.schedule.collective;
    let root = collective.root().min(left.ranks().saturating_sub(1));
    let collective = Collective::new(collective.kind(), left.ranks())?.with_root(root)?;
    let with = |wavelengths| {
        let fabric = Fabric::WssGrid(left.with_plan(wavelengths));
        named::plan(&spec, &fabric, collective)
    };
    let mut made = with(left.plan);
    for wavelengths in [WavelengthPlan::EdgeColouring, WavelengthPlan::Cyclic] {
        if matches!(made, Err(PlannerError::Grid(_))) && wavelengths != left.plan {
            made = with(wavelengths);
        }
    }
    let replanned = Plan {
        size: Some(size),
        ..made?
    };
    Ok(Replanned {
        violations: verify(&replanned),
        before: simulate::run(plan, size, method)?.time,
        after: simulate::run(&replanned, size, method)?.time,
        plan: replanned,
    })
}
