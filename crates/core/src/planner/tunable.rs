//! What becomes of a plan on a grid of tunable circuits when something fails.

use super::{Planned, PlannerError};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Fabric;
use crate::family::wss_grid::WavelengthPlan;
use crate::family::wss_grid::WssGrid;
use crate::family::wss_grid::placement::GridError;
use crate::place::{PlacementError, PlacementProblem};
use crate::plan::Plan;
use crate::simulate::{self, Method};
use crate::spec::Spec;
use crate::units::{Bytes, Time};
use crate::verify::{Violation, verify};

fn has_root(kind: CollectiveKind) -> bool {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
    matches!(kind, Broadcast | Reduce | Gather | Scatter)
}

/// A plan anew on what is left of its grid.
pub struct Replanned {
    /// The plan, and of `auto` what it was chosen from. Its fabric names the wavelength plan that was taken.
    pub planned: Planned,
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

/// Plans anew on a grid on which transceivers or switch ports are dead or nodes are no longer allocated: by
/// `algorithm`, or else by the same, with the grid's wavelength plan, or else with one that joins any two
/// ports. Nodes keep what they had: the root is the same node.
///
/// # Errors
/// A root that has left, ranks that nothing joins any more, wavelengths that the lasers lack, or what a
/// simulation refuses.
pub fn replan(
    before: &Plan,
    left: &WssGrid,
    algorithm: Option<&Spec>,
    size: Bytes,
    method: &Method,
) -> Result<Replanned, PlannerError> {
    let own = before.algorithm.parse()?;
    let spec: &Spec = algorithm.unwrap_or(&own);
    let collective = before.schedule.collective;
    let grid = before
        .fabric
        .downcast::<WssGrid>()
        .ok_or(GridError::NotAGrid {
            family: before.fabric.family(),
        });
    let grid = grid.map_err(PlacementError::from)?;
    let node = grid.nodes.get(collective.root() as usize);
    let node = node.copied().unwrap_or_default();
    let root = match left.nodes.binary_search(&node) {
        Ok(root) => root as u32,
        Err(_) if has_root(collective.kind()) => return Err(PlannerError::RootLeft { node }),
        Err(_) => 0,
    };
    let collective = Collective::new(collective.kind(), left.ranks())?.with_root(root)?;
    let with = |wavelengths| {
        let fabric = Fabric::new(left.with_plan(wavelengths));
        super::plan(spec, &fabric, collective, size, method)
    };
    let mut made = with(left.plan);
    for wavelengths in [WavelengthPlan::EdgeColouring, WavelengthPlan::Cyclic] {
        if matches!(&made, Err(PlannerError::Placement(error)) if error.problem == PlacementProblem::Unfit)
            && wavelengths != left.plan
        {
            made = with(wavelengths);
        }
    }
    let planned = made?;
    Ok(Replanned {
        violations: verify(&planned.plan),
        before: simulate::run(before, size, method)?.time,
        after: simulate::run(&planned.plan, size, method)?.time,
        planned,
    })
}
