//! Functions on packet traffic that belongs to no collective.

use opticoll::simulate;
use opticoll::simulate::packet;
use opticoll::simulate::packet::{Draws, ExpectedWork, PacketProgress, PacketWork};
use opticoll::simulate::{SimulationError, TimingModel, background};
use pyo3::prelude::*;

use crate::error::{IntoPyErr, OrRaise};
use crate::fabric::Fabric;
use crate::interrupt::{self, Tell};
use crate::method::{Settings, method};
use crate::table::Outcome;

/// Reports the number of events, the number of delivered messages and the time in picoseconds to
/// Python. Returns whether to continue.
pub(crate) fn report(tell: &mut Tell<'_>, progress: &PacketProgress) -> bool {
    tell(&[
        progress.events,
        progress.messages_delivered,
        progress.time_ps,
    ])
}

/// Returns the expected numbers of messages, of chunks, and approximately of chunks that routers
/// forward.
pub(crate) fn expected_tuple(expected: ExpectedWork) -> (u64, u64, u64) {
    (expected.messages, expected.chunks, expected.forwards)
}

/// Returns the packets that the traffic sends, and the settings of the packet simulator.
fn work(
    fabric: &Fabric,
    traffic: &str,
    method: &TimingModel,
) -> Result<(PacketWork<'static>, packet::PacketSettings), SimulationError> {
    let parsed = background::parse(traffic)?;
    let streams = parsed.iter();
    let streams: Result<Vec<_>, SimulationError> = streams
        .map(|stream| stream.packets(&fabric.fabric, Draws::Foreground))
        .collect();
    let work = PacketWork {
        collective: None,
        traffic: streams?,
    };
    method.check_without_plan()?;
    Ok((work, method.packet.clone()))
}

/// Simulates traffic on a fabric, packet by packet, without a collective.
#[pyfunction]
#[pyo3(signature = (
    fabric, traffic, *, watch: "Callable[[int, int, int], None] | None" = None, timeline = false,
    **settings: "Unpack[Settings]"
))]
pub(crate) fn simulate_traffic(
    py: Python<'_>,
    fabric: &Fabric,
    traffic: &str,
    watch: Option<Py<PyAny>>,
    timeline: bool,
    settings: Option<Settings>,
) -> PyResult<Outcome> {
    let method = method(settings)?;
    let (work, mut settings) = work(fabric, traffic, &method).or_raise()?;
    if timeline {
        settings.options.timeline_bin = Some(simulate::TIMELINE_BIN);
    }
    interrupt::watched(py, watch, |tell| {
        let mut watch = |progress: &PacketProgress| report(tell, progress);
        packet::simulate_watched(&fabric.fabric, &work, &settings.options, &mut watch)
            .map_err(SimulationError::from)
    })
    .map(Outcome::from_core)
}

/// Forecasts the work of `simulate_traffic`: the number of messages, the number of chunks, and the
/// approximate number of forwards by routers.
#[pyfunction]
#[pyo3(signature = (fabric, traffic, **settings: "Unpack[Settings]"))]
pub(crate) fn expected_traffic(
    fabric: &Fabric,
    traffic: &str,
    settings: Option<Settings>,
) -> PyResult<(u64, u64, u64)> {
    let method = method(settings)?;
    let (work, settings) = work(fabric, traffic, &method).or_raise()?;
    packet::expected_work(&fabric.fabric, &work, &settings.options)
        .map(expected_tuple)
        .map_err(|error| SimulationError::from(error).into_py_err())
}
