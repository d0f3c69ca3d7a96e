//! Functions for grids of tunable circuits: new plans after failures, and concurrent tasks.

use opticoll::families;
use opticoll::planner::replan as planned_anew;
use opticoll::simulate::tasks;
use opticoll::simulate::tasks::Task;
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::verify;
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::interrupt;
use crate::method::{Settings, Size, method};
use crate::plan::Plan;
use crate::table::Outcome;
use crate::violation::Violation;

/// Plans a collective anew after failures. Returns the new plan, the time of the old plan on the
/// old fabric, and the time of the new plan on the remaining fabric. Times are in picoseconds.
///
/// Raises FabricError for invalid failures, and AlgorithmError if no plan exists.
#[pyfunction]
#[pyo3(signature = (
    plan, failed, algorithm = "auto", size: "int | str | None" = None,
    **settings: "Unpack[Settings]"
))]
pub(crate) fn replan(
    py: Python<'_>,
    plan: &Plan,
    failed: &str,
    algorithm: &str,
    size: Option<Size>,
    settings: Option<Settings>,
) -> PyResult<(Plan, u64, u64)> {
    let method = method(settings.clone())?;
    let size = plan.size_or(size)?;
    let requested: Spec = algorithm.parse().or_raise()?;
    let before = plan.rows();
    let remaining = families::after_failures(&before.fabric, failed).or_raise()?;
    let replanned = interrupt::attempt(py, || {
        planned_anew::replan(before, &remaining, &requested, size, &method)
    })?;
    let (before, after) = (replanned.before.ps(), replanned.after.ps());
    let plan = Plan::from_planned(replanned.planned, Some(&requested.to_string()), settings);
    Ok((plan, before, after))
}

/// Result of a task: times of admission, start and end in picoseconds, number of messages of the
/// arbiter, number of ports, number of switch settings, and outcome of one round.
type Admitted = (u64, u64, u64, u32, usize, usize, Outcome);

/// Simulates tasks on one wss_grid. A task is (plan, bytes, number of rounds, time of its request
/// in picoseconds).
///
/// Returns for each task the times of admission, start and end in picoseconds, the number of
/// messages of the arbiter, the number of ports, the number of switch settings, and the outcome of
/// one round. Raises SimulationError.
#[pyfunction]
pub(crate) fn simulate_tasks(
    py: Python<'_>,
    tasks: Vec<(Py<Plan>, u64, u64, u64)>,
) -> PyResult<Vec<Admitted>> {
    let grid_tasks: Vec<Task<'_>> = tasks
        .iter()
        .map(|(plan, size, rounds, request)| Task {
            plan: plan.get().rows(),
            size: Bytes::new(*size),
            rounds: *rounds,
            request: Time::from_ps(*request),
        })
        .collect();
    let admissions = interrupt::attempt(py, || tasks::run_tasks(&grid_tasks))?;
    let rows = admissions.into_iter().map(|admission| {
        (
            admission.admitted.ps(),
            admission.start.ps(),
            admission.end.ps(),
            admission.arbiter_messages,
            admission.configuration.ports().len(),
            admission.configuration.settings().len(),
            Outcome::from_core(admission.round),
        )
    });
    Ok(rows.collect())
}

/// Returns the violations of plans that use one grid at the same time.
#[pyfunction]
pub(crate) fn task_conflicts(py: Python<'_>, plans: Vec<Py<Plan>>) -> PyResult<Vec<Violation>> {
    let plans: Vec<_> = plans.iter().map(|plan| plan.get().rows()).collect();
    let violations = interrupt::run(py, || verify::tasks(&plans))?;
    Ok(violations.into_iter().map(Violation::from_core).collect())
}
