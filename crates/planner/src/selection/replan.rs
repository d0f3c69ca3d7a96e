//! New plans after the failure of a part of the fabric.

use crate::{Planned, PlannerError};
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wss_grid::WavelengthPlan;
use opticoll_placement::PlacementProblem;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_simulate::TimingModel;
use opticoll_verify::{Violation, verify};

fn has_root(kind: CollectiveKind) -> bool {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
    matches!(kind, Broadcast | Reduce | Gather | Scatter)
}

/// Result of planning a collective again after a failure.
pub struct Replanned {
    /// The plan, with all candidates if `auto` selected it. On a grid of tunable circuits, the
    /// fabric in the plan states which wavelength plan is in use.
    pub planned: Planned,
    /// Findings of the verifier for the new plan; empty for a correct plan.
    pub violations: Vec<Violation>,
    /// Time of the old plan on the fabric before the failure.
    pub before: Time,
    /// Time of the new plan on the remaining fabric.
    pub after: Time,
}

impl Replanned {
    /// Returns the ratio of the time after the failure to the time before.
    pub fn slowdown(&self) -> f64 {
        self.after.seconds() / self.before.seconds()
    }
}

/// Plans a collective again after failures, on the fabric `remaining`. `before` is the plan before
/// the failures. A grid of tunable circuits keeps its wavelength plan if possible; otherwise
/// it uses a wavelength plan that connects any two ports. Ranks keep their data, so the root stays
/// on its node.
///
/// # Errors
/// Fails if the root has left, if ranks cannot reach each other, if lasers lack a wavelength, and
/// if a simulation fails.
pub fn replan(
    before: &Plan,
    remaining: &Fabric,
    algorithm: &Spec,
    size: Bytes,
    method: &TimingModel,
) -> Result<Replanned, PlannerError> {
    let collective = before.schedule.collective;
    let node = before.fabric.node(collective.root());
    let mut ranks = 0..remaining.ranks();
    let root = match ranks.find(|rank| remaining.node(*rank) == node) {
        Some(root) => root,
        None if has_root(collective.kind()) => return Err(PlannerError::RootLeft { node }),
        None => 0,
    };
    let mut collective = Collective::new(collective.kind(), remaining.ranks())?.with_root(root)?;
    if let Some(demand) = before.schedule.collective.demand() {
        collective = collective.with_demand(demand.whole_blocks())?;
    }
    let on = |fabric: &Fabric| crate::plan(algorithm, fabric, collective, size, method);
    let mut planned = on(remaining);
    if let Some(CircuitMachine::WssGrid(grid)) = remaining.circuit_machine() {
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
