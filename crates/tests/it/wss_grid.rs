//! The switch grid of ODDL: switches, plans, what the verifier sees, time with and without control.

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
use opticoll::plan::{Plan, text};
use opticoll::verify::verify;

/// The plan of a named algorithm, not verified.
fn planned(kind: CollectiveKind, algorithm: &str, fabric: &Fabric) -> Result<Plan, PlacementError> {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let schedule = opticoll::algorithms::build(&algorithm.parse().unwrap(), collective, fabric);
    let schedule = schedule.unwrap_or_else(|error| panic!("{algorithm} on {fabric}: {error}"));
    let grid = fabric.downcast().unwrap();
    assign_on_grid(schedule, fabric, grid, algorithm.into())
}

/// A plan that is proved, and that its text says again.
pub(crate) fn proved(kind: CollectiveKind, algorithm: &str, fabric: &str) -> Plan {
    let fabric = Fabric::parse(fabric).unwrap();
    let plan = planned(kind, algorithm, &fabric)
        .unwrap_or_else(|error| panic!("{kind} by {algorithm} on {fabric}: {error}"));
    let violations = verify(&plan);
    let first = violations.first().map(|violation| &violation.sentence);
    assert_eq!(first, None, "{kind} by {algorithm} on {fabric}");
    let written = text::write(&plan);
    let read = text::read(&written).unwrap();
    assert_eq!(
        text::write(&read),
        written,
        "{kind} by {algorithm} on {fabric}"
    );
    assert_eq!(verify(&read), [], "{kind} by {algorithm} on {fabric}");
    plan
}
