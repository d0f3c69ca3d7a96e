//! The functions that make schedules and plans.

use opticoll::algorithm;
use opticoll::collective::{self, CollectiveKind};
use opticoll::plan::{self, AnyPlan};
use opticoll::planner;
use opticoll::route;
use opticoll::spec::{Spec, SpecError};
use opticoll::units::Bytes;
use opticoll::wavelength::light_path_grid::assign_ports;
use opticoll::wavelength::wss_grid::assign_on_grid;
use opticoll::wavelength::{self, Assignment};
use opticoll::{fabric, schedule};
use pyo3::prelude::*;
use std::sync::Mutex;

use crate::collective::Collective;
use crate::error::{AlgorithmError, IntoPyErr, WavelengthError};
use crate::fabric::Fabric;
use crate::interrupt;
use crate::method::{Settings, method};
use crate::plan::Plan;
use crate::schedule::Schedule;

/// The schedule that an algorithm makes.
#[pyfunction]
pub(crate) fn build_schedule(
    py: Python<'_>,
    collective: Collective,
    fabric: Fabric,
    algorithm: &str,
) -> PyResult<Schedule> {
    interrupt::run(py, || {
        build(collective.collective, &fabric.fabric, algorithm)
    })?
    .map(Schedule::from_core)
}

/// Routes and wavelengths for a schedule.
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
    interrupt::run(py, || {
        lay_out(schedule, &fabric.fabric, algorithm, wavelength, size_bytes)
    })?
}

/// Schedule, routes and wavelengths in one.
#[pyfunction]
#[pyo3(name = "plan")]
#[pyo3(signature = (
    kind, fabric, algorithm, *, root = 0, wavelength = "auto", size_bytes = None, watch = None,
    **settings
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
    settings: Option<Settings>,
) -> PyResult<Plan> {
    let method = method(settings)?;
    let problem = Mutex::new(None);
    let tell = |candidate: &str| {
        let Some(watch) = &watch else { return };
        let told = Python::attach(|py| watch.call1(py, (candidate,)).map(drop));
        if let (Err(error), Ok(mut problem)) = (told, problem.lock()) {
            problem.get_or_insert(error);
        }
    };
    let plan = interrupt::run(py, || {
        let kind: CollectiveKind = kind.parse().map_err(IntoPyErr::into_py_err)?;
        let collective = collective::Collective::new(kind, fabric.fabric.ranks())
            .and_then(|collective| collective.with_root(root))
            .map_err(IntoPyErr::into_py_err)?;
        let spec: Spec = algorithm.parse().map_err(SpecError::into_py_err)?;
        planner::names::check(kind, spec.name()).map_err(IntoPyErr::into_py_err)?;
        let by_planner = planner::find(kind, spec.name()).is_some();
        if by_planner || wavelength == "auto" {
            if wavelength != "auto" {
                let name = spec.name();
                Assignment::parse(wavelength).map_err(IntoPyErr::into_py_err)?;
                return Err(AlgorithmError::new_err(format!(
                    "`{name}` assigns wavelengths by itself: leave the assignment `{wavelength}` out, \
                     or name another algorithm"
                )));
            }
            if spec.name() == "auto" && method.simulator == Some("closed_form") {
                return Err(AlgorithmError::new_err(
                    "closed_form has the formulas of papers, and `auto` takes plans that no paper \
                     has: name an algorithm, such as `ring`",
                ));
            }
            let size = Bytes::new(size_bytes.unwrap_or(DEFAULT_SIZE));
            let planned =
                planner::plan_watched(&spec, &fabric.fabric, collective, size, &method, &tell);
            let mut planned = planned.map_err(IntoPyErr::into_py_err)?;
            if !by_planner {
                planned.plan.kept_mut().size = size_bytes.map(Bytes::new);
            }
            let asked = match by_planner {
                true => algorithm.to_owned(),
                false => planned.plan.kept().algorithm.clone(),
            };
            return Ok(Plan::from_planned(planned, &asked));
        }
        let schedule = build(collective, &fabric.fabric, algorithm)?;
        lay_out(
            schedule,
            &fabric.fabric,
            algorithm.to_owned(),
            wavelength,
            size_bytes,
        )
    })??;
    match problem.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(plan),
    }
}

/// What the planner plans for where no size is given: 4 MiB.
const DEFAULT_SIZE: u64 = 4 << 20;

fn build(
    collective: collective::Collective,
    fabric: &fabric::Fabric,
    algorithm: &str,
) -> PyResult<schedule::Schedule> {
    let spec = algorithm.parse().map_err(SpecError::into_py_err)?;
    algorithm::build(&spec, collective, fabric).map_err(IntoPyErr::into_py_err)
}

fn lay_out(
    schedule: schedule::Schedule,
    fabric: &fabric::Fabric,
    algorithm: String,
    wavelength: &str,
    size_bytes: Option<u64>,
) -> PyResult<Plan> {
    let assignment = Assignment::parse(wavelength).map_err(IntoPyErr::into_py_err)?;
    let Some(ring) = fabric.ring() else {
        if wavelength != "auto" {
            let why = match fabric {
                fabric::Fabric::WssGrid(_) => "assigns wavelengths by its wavelength plan",
                fabric::Fabric::LightPathGrid(_) => {
                    "has light paths whose wavelengths nothing says"
                }
                _ => "is an electrical fabric without wavelengths",
            };
            return Err(WavelengthError::new_err(format!(
                "{} {why}: leave the assignment `{wavelength}` out",
                fabric.family()
            )));
        }
        if fabric.wss_grid().is_some() {
            let mut plan =
                assign_on_grid(schedule, fabric, algorithm).map_err(IntoPyErr::into_py_err)?;
            plan.size = size_bytes.map(Bytes::new);
            return Ok(Plan::from_core(AnyPlan::Full(plan)));
        }
        let mut plan = match fabric.light_path_grid() {
            Some(_) => assign_ports(schedule, fabric, algorithm).map_err(IntoPyErr::into_py_err)?,
            None => plan::Plan::without_light(fabric, schedule, algorithm),
        };
        plan.size = size_bytes.map(Bytes::new);
        return Ok(Plan::from_core(AnyPlan::Full(plan)));
    };
    let light = route::shortest_arcs(&schedule, ring);
    let mut plan = wavelength::assign(schedule, light, fabric, assignment, algorithm)
        .map_err(IntoPyErr::into_py_err)?;
    plan.size = size_bytes.map(Bytes::new);
    Ok(Plan::from_core(AnyPlan::Full(plan)))
}
