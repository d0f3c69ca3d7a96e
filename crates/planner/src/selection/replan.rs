//! What becomes of a plan when a part of its fabric fails.

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

/// A plan anew on what is left of its fabric.
pub struct Replanned {
    /// The plan, and of `auto` what it was chosen from. Its fabric names the wavelength plan that was taken.
    pub planned: Planned,
    /// What the verifier says: nothing.
    pub violations: Vec<Violation>,
    /// The time on the fabric as it was.
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

/// Plans anew on what failures leave of the fabric of a plan: by `algorithm`. On
/// a grid of tunable circuits with the grid's wavelength plan, or else with one that joins any two ports. Ranks keep
/// what they had: the root is the same.
///
/// # Errors
/// A root that has left, ranks that nothing joins any more, wavelengths that the lasers lack, or what a
/// simulation refuses.
pub fn replan(
    before: &Plan,
    left: &Fabric,
    algorithm: &Spec,
    size: Bytes,
    method: &Method,
) -> Result<Replanned, PlannerError> {
    let collective = before.schedule.collective;
    let node = before.fabric.node(collective.root());
    let mut ranks = 0..left.ranks();
    let root = match ranks.find(|rank| left.node(*rank) == node) {
        Some(root) => root,
        None if has_root(collective.kind()) => return Err(PlannerError::RootLeft { node }),
        None => 0,
    };
    let mut collective = Collective::new(collective.kind(), left.ranks())?.with_root(root)?;
    if let Some(demand) = before.schedule.collective.demand() {
        collective = collective.with_demand(demand.whole_blocks())?;
    }
    let on = |fabric: &Fabric| crate::plan(algorithm, fabric, collective, size, method);
    let mut made = on(left);
    if let Some(CircuitMachine::WssGrid(grid)) = left.circuit_machine() {
        for wavelengths in [WavelengthPlan::EdgeColouring, WavelengthPlan::Cyclic] {
            if matches!(&made, Err(PlannerError::Placement(error)) if error.problem == PlacementProblem::Unfit)
                && wavelengths != grid.plan
            {
                made = on(&Fabric::new(grid.with_plan(wavelengths)));
            }
        }
    }
    let planned = made?;
    Ok(Replanned {
        violations: verify(&planned.plan),
        before: opticoll_simulate::run(before, size, method)?.time,
        after: opticoll_simulate::run(&planned.plan, size, method)?.time,
        planned,
    })
}
