//! Port-limited collectives over light paths: plans, what the verifier sees, times against the paper's
//! formulas and against a slow simulation.

mod bounds;
mod exhaustive;
mod planners;
mod rules;
mod slow;
mod timing;

use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::placement::PlacementError;
use opticoll::placement::light_path_grid::placement::assign_ports;
use opticoll::plan::{Plan, text};
use opticoll::verify::verify;

/// The plan of a named algorithm, not verified.
fn planned(kind: CollectiveKind, algorithm: &str, fabric: &Fabric) -> Result<Plan, PlacementError> {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let schedule = algorithms::build(&algorithm.parse().unwrap(), collective, fabric);
    let schedule = schedule.unwrap_or_else(|error| panic!("{algorithm} on {fabric}: {error}"));
    let grid = fabric.downcast().unwrap();
    assign_ports(schedule, fabric, grid, algorithm.into())
}

/// A plan that is proved, and that its text says again.
pub(crate) fn proved(kind: CollectiveKind, algorithm: &str, fabric: &str) -> Plan {
    let fabric = Fabric::parse(fabric).unwrap();
    let case = format!("{kind} by {algorithm} on {fabric}");
    let plan = planned(kind, algorithm, &fabric).unwrap_or_else(|error| panic!("{case}: {error}"));
    let violations = verify(&plan);
    let first = violations.first().map(|violation| &violation.sentence);
    assert_eq!(first, None, "{case}");
    let written = text::write(&plan);
    let read = text::read(&written).unwrap_or_else(|error| panic!("{case}: {error}\n{written}"));
    assert_eq!(text::write(&read), written, "{case}");
    assert_eq!(verify(&read), [], "{case}");
    plan
}

/// The algorithms that need no wavelengths, with their collectives, where they run on so many ranks.
fn algorithms(ranks: u32) -> impl Iterator<Item = (CollectiveKind, &'static str)> {
    crate::general_algorithms()
        .filter(move |record| (record.accepts)(ranks).is_ok())
        .filter(|record| !["wrht", "one_stage"].contains(&record.name))
        .map(|record| (record.collective, record.name))
}
