//! Functions that make plans.

use opticoll::planner::{self, PlanningTask};
use opticoll::spec::Spec;
use opticoll::units::Bytes;
use pyo3::prelude::*;
use std::sync::Mutex;

use crate::collective::{Demand, requested_collective};
use crate::error::OrRaise;
use crate::fabric::Fabric;
use crate::interrupt;
use crate::method::{Settings, method};
use crate::plan::Plan;
use crate::schedule::Schedule;

/// Makes a plan of a copy of a schedule: routes its transfers and assigns wavelengths.
#[pyfunction]
#[pyo3(signature = (schedule, fabric, algorithm, wavelength = "auto", size_bytes = None))]
pub(crate) fn make_plan(
    py: Python<'_>,
    schedule: &Bound<'_, Schedule>,
    fabric: Fabric,
    algorithm: String,
    wavelength: &str,
    size_bytes: Option<u64>,
) -> PyResult<Plan> {
    let schedule = schedule.get().lock().clone();
    let mut plan = interrupt::attempt(py, || {
        opticoll::placement::place(schedule, &fabric.fabric, wavelength, algorithm)
    })?;
    plan.size = size_bytes.map(Bytes::new);
    Ok(Plan::from_core(plan))
}

/// Makes a plan by an algorithm, whose schedule gets routes and wavelengths, or by a planner such
/// as relay_tree or auto.
///
/// A planner plans for `size_bytes` (default: 4 MiB) and for the settings. `auto` calls `watch`
/// with the name of each candidate before it builds the candidate. It selects the fastest plan for
/// which `refuse` returns None; otherwise `refuse` returns the reason.
#[pyfunction]
#[pyo3(name = "plan")]
#[pyo3(signature = (
    kind, fabric, algorithm, *, root = 0, wavelength = "auto", size_bytes = None,
    watch: "Callable[[str], object] | None" = None, demand = None,
    refuse: "Callable[[Plan], str | None] | None" = None,
    **settings: "Unpack[Settings]"
))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn plan_collective(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    algorithm: &str,
    root: u32,
    wavelength: &str,
    size_bytes: Option<u64>,
    watch: Option<Py<PyAny>>,
    demand: Option<Demand>,
    refuse: Option<Py<PyAny>>,
    settings: Option<Settings>,
) -> PyResult<Plan> {
    let method = method(settings.clone())?;
    let problem = Mutex::new(None);
    let note = |error: PyErr| {
        if let Ok(mut problem) = problem.lock() {
            problem.get_or_insert(error);
        }
    };
    let tell = |candidate: &str| {
        let Some(watch) = &watch else { return };
        let called = Python::attach(|py| watch.call1(py, (candidate,)).map(drop));
        let _ = called.map_err(note);
    };
    let refused = |plan: &opticoll::plan::Plan| {
        let Some(refuse) = &refuse else { return Ok(()) };
        let reason = Python::attach(|py| {
            let plan = Plan::from_core(plan.clone());
            refuse.call1(py, (plan,))?.extract::<Option<String>>(py)
        });
        match reason {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(reason),
            Err(error) => {
                note(error);
                Err(String::new())
            }
        }
    };
    let plan = interrupt::run(py, || {
        let collective = requested_collective(kind, fabric.fabric.ranks(), root, demand.as_ref())?;
        let spec: Spec = algorithm.parse().or_raise()?;
        let task = PlanningTask {
            fabric: &fabric.fabric,
            collective,
            size: size_bytes.map(Bytes::new),
            method: &method,
            assignment: wavelength,
            watch: &tell,
            condition: refuse.is_some().then_some(&refused),
        };
        let planned = planner::plan_task(&spec, &task).or_raise()?;
        let chooses =
            spec.depends_on_size() || planner::find(collective.kind(), spec.name()).is_some();
        let request = chooses.then_some(algorithm);
        Ok::<_, PyErr>(Plan::from_planned(planned, request, settings))
    })??;
    match problem.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(plan),
    }
}
