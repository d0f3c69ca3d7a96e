//! `Packets`: what a packet simulation measured; and traffic alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use opticoll::outcome::packets::{Class, Distribution, PacketOutcome};
use opticoll::simulate::packet::{self, Draws, Expected, Progress, Work};
use opticoll::simulate::{self, Method, SimulationError, background};
use opticoll::units::Time;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::IntoPyErr;
use crate::fabric::Fabric;
use crate::interrupt;
use crate::method::{Settings, method};

/// Thousandths whose times are given of every distribution.
const PER_MILLE: [u32; 6] = [100, 500, 900, 950, 990, 999];

/// What a packet simulation measured beyond times of steps, links and ranks.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Packets {
    packets: Arc<PacketOutcome>,
}

impl Packets {
    pub(crate) fn from_core(packets: Arc<PacketOutcome>) -> Packets {
        Packets { packets }
    }
}

fn picoseconds<'py>(py: Python<'py>, times: &[Time]) -> Bound<'py, PyArray1<u64>> {
    let column: Vec<u64> = times.iter().map(|time| time.ps()).collect();
    column.into_pyarray(py)
}

/// Number, mean, maximum, percentiles; and the bins that are not empty.
fn distribution<'py>(py: Python<'py>, times: &Distribution) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("count", times.count())?;
    found.set_item("mean_ps", times.mean().ps())?;
    found.set_item("max_ps", times.max().ps())?;
    let percentiles = PyDict::new(py);
    for thousandths in PER_MILLE {
        let percent = f64::from(thousandths) / 10.0;
        percentiles.set_item(format!("{percent}"), times.per_mille(thousandths).ps())?;
    }
    found.set_item("percentiles_ps", percentiles)?;
    // Lists, not arrays: what prints figures alone need not load numpy.
    let bins: Vec<(Time, Time, u64)> = times.bins().collect();
    let column = |pick: fn(&(Time, Time, u64)) -> u64| bins.iter().map(pick).collect::<Vec<u64>>();
    found.set_item("first_ps", column(|bin| bin.0.ps()))?;
    found.set_item("last_ps", column(|bin| bin.1.ps()))?;
    found.set_item("counts", column(|bin| bin.2))?;
    Ok(found)
}

#[pymethods]
impl Packets {
    #[getter]
    fn time_ps(&self) -> u64 {
        self.packets.time.ps()
    }

    #[getter]
    fn finish_ps<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        picoseconds(py, &self.packets.finish)
    }

    #[getter]
    fn mean_finish_ps(&self) -> u64 {
        self.packets.mean_finish().ps()
    }

    #[getter]
    fn message_latency<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        distribution(py, &self.packets.message_latency)
    }

    #[getter]
    fn background_latency<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        distribution(py, &self.packets.background_latency)
    }

    #[getter]
    fn chunk_latency<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        distribution(py, &self.packets.chunk_latency)
    }

    #[getter]
    fn mean_hops(&self) -> f64 {
        self.packets.mean_routers()
    }

    /// Counters by name.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let packets = &self.packets;
        let counts = PyDict::new(py);
        for (name, count) in [
            ("minimal_chunks", packets.minimal_chunks),
            ("detoured_chunks", packets.detoured_chunks),
            ("bytes_sent", packets.bytes_sent),
            ("bytes_delivered", packets.bytes_delivered),
            ("router_forwards", packets.forwards),
            ("events", packets.events),
        ] {
            counts.set_item(name, count)?;
        }
        Ok(counts)
    }

    /// Columns of virtual channels.
    #[getter]
    fn channels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let channels = &self.packets.channels;
        let columns = PyDict::new(py);
        columns.set_item("link", PyArray1::from_slice(py, &channels.link))?;
        columns.set_item("channel", PyArray1::from_slice(py, &channels.channel))?;
        columns.set_item("bytes", PyArray1::from_slice(py, &channels.bytes))?;
        columns.set_item("chunks", PyArray1::from_slice(py, &channels.chunks))?;
        columns.set_item("stall_ps", picoseconds(py, &channels.stall))?;
        let peaks = PyArray1::from_slice(py, &channels.peak_chunks);
        columns.set_item("peak_chunks", peaks)?;
        let capacities = PyArray1::from_slice(py, &channels.capacity_chunks);
        columns.set_item("capacity_chunks", capacities)?;
        Ok(columns)
    }

    /// Columns of links.
    #[getter]
    fn links<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        columns.set_item("busy_ps", picoseconds(py, &self.packets.busy))?;
        let bytes = self.packets.link_bytes();
        columns.set_item("bytes", bytes.into_pyarray(py))?;
        let stalls = self.packets.link_stalls();
        columns.set_item("stall_ps", picoseconds(py, &stalls))?;
        let classes = self.packets.classes.iter();
        let classes: Vec<&str> = classes.map(|class| class.name()).collect();
        columns.set_item("class", classes)?;
        Ok(columns)
    }

    /// Per class of link: links, bytes and stall time.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let packets = &self.packets;
        let (bytes, stalls) = (packets.link_bytes(), packets.link_stalls());
        let found = PyDict::new(py);
        for class in Class::ALL {
            let of_class = || {
                let links = packets.classes.iter().enumerate();
                links.filter(move |(_, other)| **other == class)
            };
            if of_class().next().is_none() {
                continue;
            }
            let one = PyDict::new(py);
            one.set_item("links", of_class().count())?;
            one.set_item(
                "bytes",
                of_class().map(|(link, _)| bytes[link]).sum::<u64>(),
            )?;
            let stall = of_class().map(|(link, _)| u128::from(stalls[link].ps()));
            one.set_item("stall_ps", stall.sum::<u128>())?;
            found.set_item(class.name(), one)?;
        }
        Ok(found)
    }

    #[getter]
    fn bottleneck(&self) -> Option<u32> {
        self.packets.bottleneck().map(|(link, _)| link)
    }

    #[getter]
    fn bottleneck_busy_ps(&self) -> u64 {
        self.packets.bottleneck().map_or(0, |(_, busy)| busy.ps())
    }

    /// Buffers and stalls over time, by class of link; none where it was not asked for.
    #[getter]
    fn timeline<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let timeline = &self.packets.timeline;
        if timeline.bin == Time::ZERO {
            return Ok(None);
        }
        let (held, stalled) = (PyDict::new(py), PyDict::new(py));
        for class in Class::ALL {
            let bytes = PyArray1::from_slice(py, &timeline.mean_bytes[class as usize]);
            held.set_item(class.name(), bytes)?;
            let times = picoseconds(py, &timeline.stalled[class as usize]);
            stalled.set_item(class.name(), times)?;
        }
        let found = PyDict::new(py);
        found.set_item("bin_ps", timeline.bin.ps())?;
        found.set_item("mean_bytes", held)?;
        found.set_item("stalled_ps", stalled)?;
        Ok(Some(found))
    }
}

/// Calls Python's `watch(events, messages_delivered, time_ps)`; keeps the first exception and then says
/// no.
pub(crate) fn watching<'a>(
    watch: Option<&'a Py<PyAny>>,
    problem: &'a mut Option<PyErr>,
) -> impl FnMut(&Progress) -> bool + 'a {
    move |progress| {
        Python::attach(|py| {
            let arguments = (
                progress.events,
                progress.messages_delivered,
                progress.time_ps,
            );
            let called = match watch {
                Some(watch) => watch.call1(py, arguments).map(drop),
                None => Ok(()),
            };
            if let Err(error) = called {
                *problem = Some(error);
            }
            problem.is_none()
        })
    }
}

/// Messages, chunks and about how many forwards by routers lie ahead.
pub(crate) fn expected_tuple(expected: Expected) -> (u64, u64, u64) {
    (expected.messages, expected.chunks, expected.forwards)
}

/// The work that traffic is, with the settings that are not its own.
fn work(
    fabric: &Fabric,
    traffic: &str,
    method: &Method,
) -> Result<(Work<'static>, packet::Settings), SimulationError> {
    let parsed = background::parse(traffic)?;
    let streams = parsed.iter();
    let streams: Result<Vec<_>, SimulationError> = streams
        .map(|one| one.packets(&fabric.fabric, Draws::Foreground))
        .collect();
    let work = Work {
        collective: None,
        traffic: streams?,
    };
    method.for_packets_alone()?;
    Ok((work, method.packet.clone()))
}

/// Traffic alone on a fabric, packet by packet.
#[pyfunction]
#[pyo3(signature = (fabric, traffic, *, watch = None, timeline = false, **settings))]
pub(crate) fn simulate_traffic(
    py: Python<'_>,
    fabric: &Fabric,
    traffic: &str,
    watch: Option<Py<PyAny>>,
    timeline: bool,
    settings: Option<Settings>,
) -> PyResult<Packets> {
    let method = method(settings)?;
    let (work, mut settings) = work(fabric, traffic, &method).map_err(IntoPyErr::into_py_err)?;
    if timeline {
        settings.options.timeline_bin = Some(simulate::TIMELINE_BIN);
    }
    let mut problem = None;
    let found = interrupt::run(py, || {
        let mut watch = watching(watch.as_ref(), &mut problem);
        packet::simulate_watched(&fabric.fabric, &work, &settings.options, &mut watch)
    })?;
    match (found, problem) {
        (_, Some(problem)) => Err(problem),
        (found, None) => found
            .map(|packets| Packets::from_core(Arc::new(packets)))
            .map_err(|error| SimulationError::from(error).into_py_err()),
    }
}

/// The work of [`simulate_traffic`] before it starts: messages, chunks, about how many forwards.
#[pyfunction]
#[pyo3(signature = (fabric, traffic, **settings))]
pub(crate) fn expected_traffic(
    fabric: &Fabric,
    traffic: &str,
    settings: Option<Settings>,
) -> PyResult<(u64, u64, u64)> {
    let method = method(settings)?;
    let (work, settings) = work(fabric, traffic, &method).map_err(IntoPyErr::into_py_err)?;
    packet::expected(&fabric.fabric, &work, &settings.options)
        .map(expected_tuple)
        .map_err(|error| SimulationError::from(error).into_py_err())
}

/// The names of patterns with what they are.
#[pyfunction]
pub(crate) fn traffic_patterns() -> BTreeMap<&'static str, &'static str> {
    background::PATTERNS.iter().copied().collect()
}
