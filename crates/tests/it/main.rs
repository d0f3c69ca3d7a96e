//! Integration tests: most are tables of cases for one check. Expected values come from theory and
//! from the published papers, never from a run of this code.

mod algorithms;
mod astra;
mod auto;
mod bill;
mod bound;
mod burst;
mod capabilities;
mod circuit_switch;
mod classic;
mod concurrent_flow;
mod conversion;
mod counts;
mod demand;
mod electrical;
mod fabrics;
mod few_slots;
mod fluid;
mod interrupt;
mod light;
mod lightpath_grid;
mod long_transfers;
mod loss;
mod matching;
mod optree;
mod packet;
mod passive_star;
mod pipelined;
mod placement;
mod plan_text;
mod planner;
mod port_formulas;
mod properties;
mod readers;
mod relay_forest;
mod rings_as_graphs;
mod rotation_symmetric;
mod routes;
mod schedule;
mod servers;
mod settings_bound;
mod simulate;
mod special_rings;
mod throughput;
mod timing_model;
mod topologies;
mod training;
mod training_groups;
mod training_models;
mod united;
mod units;
mod verify;
mod wavelengths;
mod wdm_graph;
mod workload;
mod wrht;
mod wss_grid;

use std::str::FromStr;

use opticoll::algorithms::Algorithm;
use opticoll::bounds::ReconfigurationCost;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Circuits;
use opticoll::fabric::{Fabric, Light};
use opticoll::family::wdm_ring::WdmRing;
use opticoll::placement::wdm_ring::placement as on_ring;
use opticoll::placement::wdm_ring::placement::Assignment;
use opticoll::placement::wdm_ring::route;
use opticoll::plan::{Plan, text};
use opticoll::planner::{Planned, plan as plan_by};
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::Bytes;
use proptest::prelude::ProptestConfig;

/// Returns every `step`-th case, or all cases if the environment variable `OPTICOLL_CASES` is
/// `all`, as `make validate` sets it. A step that shares no divisor with the lengths of the inner
/// loops meets all of their values.
fn some_of<T>(cases: impl IntoIterator<Item = T>, step: usize) -> impl Iterator<Item = T> {
    let all = std::env::var("OPTICOLL_CASES").is_ok_and(|cases| cases == "all");
    cases.into_iter().step_by(if all { 1 } else { step })
}

/// Returns the number of cases that [`some_of`] leaves of `count` cases.
fn share(count: usize, step: usize) -> usize {
    some_of(0..count, step).count()
}

/// Returns the configuration of a test with random cases that saves no failed case.
fn unsaved(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Returns a function that nested loops call once per case: it answers whether the case is left
/// out, as [`some_of`] would.
fn leaves_out(step: usize) -> impl FnMut() -> bool {
    let mut kept = some_of(0.., step).peekable();
    let mut cases = 0..;
    move || {
        let case = cases.next().unwrap_or(0);
        kept.next_if_eq(&case).is_none()
    }
}

/// Splits a table in text into rows. Cells are separated by ` | `; a line that begins with `    | `
/// continues the row of the line before. Lines that begin with `#` are remarks.
fn rows<const CELLS: usize>(table: &str) -> impl Iterator<Item = [&str; CELLS]> {
    let lines = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cells = lines.flat_map(|line| line.trim_start_matches("    | ").split(" | "));
    let cells: Vec<&str> = cells.collect();
    let rows = cells.chunks_exact(CELLS);
    assert!(
        rows.remainder().is_empty(),
        "a row has not {CELLS} cells: {table}"
    );
    let rows: Vec<[&str; CELLS]> = rows.map(|row| row.try_into().unwrap()).collect();
    rows.into_iter()
}

/// Reads a number in the cell of a table.
fn number<Number: FromStr>(cell: &str) -> Number {
    let number = cell.parse().ok();
    number.unwrap_or_else(|| panic!("`{cell}` is no number"))
}

/// Computes a sum of products in the cell of a table, such as `2*16 + 2*4`.
fn sum(cell: &str) -> u64 {
    let product = |term: &str| term.split('*').map(number::<u64>).product::<u64>();
    cell.split(" + ").map(product).sum()
}

/// Lists the algorithms that run on any fabric.
fn general_algorithms() -> impl Iterator<Item = &'static Algorithm> {
    let records = opticoll::algorithms::records().iter();
    records.filter(|record| record.families.is_empty())
}

/// Builds the plan of the named algorithm and wavelength assignment on a WDM ring.
fn plan_with(
    kind: CollectiveKind,
    algorithm: &str,
    fabric: &str,
    assignment: &str,
) -> Result<Plan, String> {
    let fabric = Fabric::parse(fabric).map_err(|error| error.to_string())?;
    let ring = fabric.downcast::<WdmRing>().unwrap();
    let collective = Collective::new(kind, ring.ranks).map_err(|error| error.to_string())?;
    let spec = algorithm.parse().map_err(|error| format!("{error}"))?;
    let schedule = opticoll::algorithms::build(&spec, collective, &fabric)
        .map_err(|error| error.to_string())?;
    let light = route::shortest_arcs(&schedule, ring);
    let assignment = Assignment::parse(assignment).map_err(|error| error.to_string())?;
    on_ring::assign(schedule, light, &fabric, assignment, algorithm.into())
        .map_err(|error| error.to_string())
}

/// Returns the least cost of reconfiguration under a policy, on a fabric that knows the policy.
fn reconfiguration_cost(circuits: &dyn Circuits, policy: Policy) -> ReconfigurationCost {
    circuits.charge(policy.name()).unwrap().into()
}

/// Changes light through a view of its fields.
fn change_light<View>(light: &mut Light, change: impl FnOnce(&mut View))
where
    View: From<Light>,
    Light: From<View>,
{
    let mut view = View::from(*light);
    change(&mut view);
    *light = Light::from(view);
}

/// Plans a collective on a fabric and verifies the plan; panics with the first violation otherwise.
#[track_caller]
fn proved_plan(
    spec: &str,
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &TimingModel,
) -> Planned {
    let case = format!("{spec} for {collective:?} on {fabric}");
    let planned = plan_by(&spec.parse().unwrap(), fabric, collective, size, method);
    let planned = planned.unwrap_or_else(|error| panic!("{case}: {error}"));
    let violations = opticoll::verify::verify(&planned.plan);
    let first = violations.first().map(|violation| &violation.sentence);
    assert_eq!(first, None, "{case}");
    planned
}

/// Returns the message with which planning a collective of 1 MiB is refused.
#[track_caller]
fn refusal(spec: &str, fabric: &Fabric, collective: Collective, policy: Option<Policy>) -> String {
    let method = TimingModel {
        policy,
        ..TimingModel::default()
    };
    let size = Bytes::new(1 << 20);
    let refused = plan_by(&spec.parse().unwrap(), fabric, collective, size, &method);
    let error = refused
        .err()
        .unwrap_or_else(|| panic!("{spec} on {fabric} has a plan"));
    error.to_string()
}

/// Returns a verified plan with the default wavelength assignment; panics with the violations
/// otherwise.
fn verified(kind: CollectiveKind, algorithm: &str, ranks: u32, wavelengths: u32) -> Plan {
    let fabric = format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}");
    verified_with(kind, algorithm, &fabric, "auto")
}

/// Returns a verified plan; panics with the violations otherwise.
fn verified_with(kind: CollectiveKind, algorithm: &str, fabric: &str, assignment: &str) -> Plan {
    let plan = plan_with(kind, algorithm, fabric, assignment)
        .unwrap_or_else(|error| panic!("{kind} {algorithm} on {fabric}: {error}"));
    let violations = opticoll::verify::verify(&plan);
    let sentences: Vec<&str> = violations
        .iter()
        .take(3)
        .map(|violation| violation.sentence.as_str())
        .collect();
    assert!(
        violations.is_empty(),
        "{kind} {algorithm} on {fabric}: {sentences:?}"
    );
    plan
}

/// Returns the plan of a named algorithm in its default placement, verified and read back from its
/// text.
fn placed(kind: CollectiveKind, algorithm: &str, fabric: &str) -> Plan {
    let fabric = Fabric::parse(fabric).unwrap();
    let case = format!("{kind} by {algorithm} on {fabric}");
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let schedule = opticoll::algorithms::build(&algorithm.parse().unwrap(), collective, &fabric);
    let schedule = schedule.unwrap_or_else(|error| panic!("{case}: {error}"));
    let plan = opticoll::placement::place_by_default(schedule, &fabric, algorithm.into());
    let plan = plan.unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(opticoll::verify::verify(&plan), [], "{case}");
    let written = text::write(&plan);
    let read = text::read(&written).unwrap_or_else(|error| panic!("{case}: {error}\n{written}"));
    assert_eq!(text::write(&read), written, "{case}");
    assert_eq!(opticoll::verify::verify(&read), [], "{case}");
    plan
}

/// Reads a plan written by hand: the collective and the slots of each step, such as `broadcast 1
/// 1`, then the lines of the slots.
fn handwritten(fabric: &str, head: &str, slots: &str) -> Plan {
    let ranks = Fabric::parse(fabric).unwrap().ranks();
    let transfers = slots.lines().filter(|line| !line.starts_with("slot"));
    let (kind, steps) = head.split_once(' ').unwrap();
    let text = format!(
        "opticoll plan 1\ncollective {kind} ranks={ranks} root=0 pieces=1\nfabric {fabric}\n\
         algorithm by hand\nsteps {steps}\n{slots}\nend {}\n",
        transfers.count()
    );
    text::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}
