//! What is peculiar to grids of tunable circuits: planning anew after failures, and several tasks.

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

/// After failures: the plan anew, picoseconds before and after.
///
/// Raises FabricError for failures that are none, AlgorithmError where nothing can be planned.
#[pyfunction]
#[pyo3(signature = (plan, failed, algorithm = "auto", size: "int | str | None" = None, **settings: "Unpack[Settings]"))]
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
    let asked: Spec = algorithm.parse().or_raise()?;
    let before = plan.rows();
    let left = families::after_failures(&before.fabric, failed).or_raise()?;
    let anew = interrupt::attempt(py, || {
        planned_anew::replan(before, &left, &asked, size, &method)
    })?;
    let (before, after) = (anew.before.ps(), anew.after.ps());
    let plan = Plan::from_planned(anew.planned, Some(&asked.to_string()), settings);
    Ok((plan, before, after))
}

/// When a task was admitted, started and ended, the arbiter's messages, ports and settings, a round.
type Admitted = (u64, u64, u64, u32, usize, usize, Outcome);

/// Tasks on one wss_grid: plan, bytes, rounds and picoseconds of the request of each.
///
/// Returns picoseconds admitted, started and ended, messages of the arbiter, ports, settings of switches, and one round.
/// Raises SimulationError.
#[pyfunction]
pub(crate) fn simulate_tasks(
    py: Python<'_>,
    tasks: Vec<(Py<Plan>, u64, u64, u64)>,
) -> PyResult<Vec<Admitted>> {
    let asked: Vec<Task<'_>> = tasks
        .iter()
        .map(|(plan, size, rounds, request)| Task {
            plan: plan.get().rows(),
            size: Bytes::new(*size),
            rounds: *rounds,
            request: Time::from_ps(*request),
        })
        .collect();
    let admissions = interrupt::attempt(py, || tasks::tasks(&asked))?;
    let told = admissions.into_iter().map(|one| {
        (
            one.admitted.ps(),
            one.start.ps(),
            one.end.ps(),
            one.arbiter_messages,
            one.configuration.ports().len(),
            one.configuration.settings().len(),
            Outcome::from_core(one.round),
        )
    });
    Ok(told.collect())
}

/// What is wrong with running plans side by side on one grid.
#[pyfunction]
pub(crate) fn task_conflicts(py: Python<'_>, plans: Vec<Py<Plan>>) -> PyResult<Vec<Violation>> {
    let plans: Vec<_> = plans.iter().map(|plan| plan.get().rows()).collect();
    let found = interrupt::run(py, || verify::tasks(&plans))?;
    Ok(found.into_iter().map(Violation::from_core).collect())
}
