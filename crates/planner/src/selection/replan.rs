//! Plans after the failure of a part of the fabric.

use crate::{Planned, PlannerError};
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wss_grid::WavelengthPlan;
use opticoll_placement::PlacementProblem;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_simulate::Method;
use opticoll_verify::{Violation, verify};

fn has_root(kind: CollectiveKind) -> bool {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
    matches!(kind, Broadcast | Reduce | Gather | Scatter)
}

/// A new plan on the rest of the fabric.
pub struct Replanned {
    /// The plan, and the candidates if `auto` chose it. Its fabric names the wavelength plan in
    /// use.
    pub planned: Planned,
    /// Findings of the verifier; empty for a correct plan.
    pub violations: Vec<Violation>,
    /// Time on the fabric before the failure.
    pub before: Time,
    /// Time on the rest of the fabric.
    pub after: Time,
}

impl Replanned {
    /// Returns the ratio of the time after the failure to the time before.
    pub fn slowdown(&self) -> f64 {
        self.after.seconds() / self.before.seconds()
    }
}

/// Makes a plan by `algorithm` on the rest of a fabric after failures. A grid of tunable circuits
/// keeps its wavelength plan if it can, else it gets a wavelength plan that connects any two ports.
/// Ranks keep their data, so the root stays the same.
///
/// # Errors
/// A root that has left, ranks that cannot reach each other, wavelengths that the lasers lack, or
/// the errors of a simulation.
pub fn replan(
    before: &Plan,
    rest: &Fabric,
    algorithm: &Spec,
    size: Bytes,
    method: &Method,
) -> Result<Replanned, PlannerError> {
    let collective = before.schedule.collective;
    let node = before.fabric.node(collective.root());
    let mut ranks = 0..rest.ranks();
    let root = match ranks.find(|rank| rest.node(*rank) == node) {
        Some(root) => root,
        None if has_root(collective.kind()) => return Err(PlannerError::RootLeft { node }),
        None => 0,
    };
    let mut collective = Collective::new(collective.kind(), rest.ranks())?.with_root(root)?;
    if let Some(demand) = before.schedule.collective.demand() {
        collective = collective.with_demand(demand.whole_blocks())?;
    }
    let on = |fabric: &Fabric| crate::plan(algorithm, fabric, collective, size, method);
    let mut planned = on(rest);
    if let Some(CircuitMachine::WssGrid(grid)) = rest.circuit_machine() {
        for wavelengths in [WavelengthPlan::EdgeColouring, WavelengthPlan::Cyclic] {
            let is_unfit = matches!(
                &planned,
                Err(PlannerError::Placement(error)) if error.problem == PlacementProblem::Unfit
            );
            if is_unfit && wavelengths != grid.plan {
                planned = on(&Fabric::new(grid.with_plan(wavelengths)));
            }
        }
    }
    let planned = planned?;
    Ok(Replanned {
        violations: verify(&planned.plan),
        before: opticoll_simulate::run(before, size, method)?.time,
        after: opticoll_simulate::run(&planned.plan, size, method)?.time,
        planned,
    })
}
