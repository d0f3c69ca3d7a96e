//! The switch grid of ODDL: switches, plans, verdicts of the verifier, and times with and without
//! control.

mod algorithms;
mod bounds;
mod controller;
mod planners;
mod tasks;
mod timing;

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::placement::PlacementError;
use opticoll::placement::wss_grid::placement::assign_on_grid;
use opticoll::plan::Plan;

pub(crate) use crate::placed as proved;

/// Returns the plan of a named algorithm, not verified.
fn planned(kind: CollectiveKind, algorithm: &str, fabric: &Fabric) -> Result<Plan, PlacementError> {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let schedule = opticoll::algorithms::build(&algorithm.parse().unwrap(), collective, fabric);
    let schedule = schedule.unwrap_or_else(|error| panic!("{algorithm} on {fabric}: {error}"));
    let grid = fabric.downcast().unwrap();
    assign_on_grid(schedule, fabric, grid, algorithm.into())
}
