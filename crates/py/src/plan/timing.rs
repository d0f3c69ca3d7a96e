//! Plans timed by simulators.

use opticoll::simulate::{self, SimulationError, fluid, packet};
use opticoll::units::Bytes;
use pyo3::prelude::*;

use super::Plan;
use crate::error::{IntoPyErr, UnitError};
use crate::interrupt;
use crate::method::{Settings, Size, method};
use crate::packets::{expected_tuple, watching};
use crate::table::Outcome;

impl Plan {
    /// The size given, else the plan's own.
    pub(crate) fn size_or(&self, size: Option<Size>) -> PyResult<Bytes> {
        match (size, self.representative().size) {
            (Some(size), _) => size.bytes(),
            (None, Some(size)) => Ok(size),
            (None, None) => Err(UnitError::new_err(
                "the plan has no size of its own; give one, such as `4MiB`",
            )),
        }
    }
}

/// `Plan.simulate`.
pub(super) fn simulate(
    py: Python<'_>,
    plan: &Plan,
    size: Option<Size>,
    watch: Option<&Py<PyAny>>,
    timeline: bool,
    settings: Option<Settings>,
) -> PyResult<Outcome> {
    let mut method = method(settings)?;
    if timeline {
        method.packet.options.timeline_bin = Some(simulate::TIMELINE_BIN);
    }
    let size = plan.size_or(size)?;
    let mut problem = None;
    let found = interrupt::run(py, || {
        let mut watch = watching(watch, &mut problem);
        simulate::run_watched(plan.whole(), size, &method, &mut watch)
    })?;
    match problem {
        Some(problem) => Err(problem),
        None => found
            .map(Outcome::from_core)
            .map_err(IntoPyErr::into_py_err),
    }
}

/// `Plan.expected_packets`.
pub(super) fn expected_packets(
    py: Python<'_>,
    plan: &Plan,
    size: Option<Size>,
    settings: Option<Settings>,
) -> PyResult<(u64, u64, u64)> {
    let method = method(settings)?;
    let size = plan.size_or(size)?;
    let plan = plan.representative();
    interrupt::run(py, || {
        let settings = simulate::packet_settings(&plan.fabric, &method)?;
        let work = packet::work_of(&plan.schedule, &plan.fabric, size, &settings);
        Ok(packet::expected(&plan.fabric, &work, &settings.options)?)
    })?
    .map(expected_tuple)
    .map_err(SimulationError::into_py_err)
}

/// `Plan.message_times`.
pub(super) fn message_times(
    py: Python<'_>,
    plan: &Plan,
    size: Option<Size>,
    start: &str,
) -> PyResult<Vec<(usize, u64, u64)>> {
    let rule = start.parse().map_err(IntoPyErr::into_py_err)?;
    let size = plan.size_or(size)?;
    let plain = fluid::FlowOptions::default();
    let times = interrupt::run(py, || {
        fluid::message_times(plan.representative(), size, rule, &plain)
    })?;
    let times = times.map_err(IntoPyErr::into_py_err)?;
    let told = |one: fluid::MessageTime| (one.transfer, one.start.ps(), one.end.ps());
    Ok(times.into_iter().map(told).collect())
}
