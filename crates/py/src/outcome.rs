//! `Outcome`.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use opticoll::outcome;
use opticoll::units::Time;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::packets::Packets;

/// Bytes by link and bin.
type LinkBytes<'py> = Bound<'py, PyArray2<f64>>;

/// What a simulation found.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Outcome {
    outcome: outcome::Outcome,
}

impl Outcome {
    pub(crate) fn from_core(outcome: outcome::Outcome) -> Outcome {
        Outcome { outcome }
    }

    fn flowing(&self) -> Option<&outcome::Flowing> {
        self.outcome.flowing.as_ref()
    }
}

fn picoseconds<'py>(py: Python<'py>, times: &[Time]) -> Bound<'py, PyArray1<u64>> {
    times
        .iter()
        .map(|time| time.ps())
        .collect::<Vec<u64>>()
        .into_pyarray(py)
}

#[pymethods]
impl Outcome {
    #[getter]
    fn time_ps(&self) -> u64 {
        self.outcome.time.ps()
    }

    #[getter]
    fn simulator(&self) -> &'static str {
        self.outcome.simulator
    }

    #[getter]
    fn policy(&self) -> Option<&'static str> {
        self.outcome.policy
    }

    #[getter]
    fn start(&self) -> Option<&'static str> {
        self.flowing().map(|flowing| flowing.start_rule)
    }

    #[getter]
    fn bottleneck(&self) -> Option<u32> {
        self.flowing()?.bottleneck
    }

    #[getter]
    fn most_loaded_link(&self) -> Option<u32> {
        self.flowing()?.most_loaded_link
    }

    #[getter]
    fn path_bottlenecks(&self) -> Vec<Option<u32>> {
        self.flowing()
            .map_or(Vec::new(), |flowing| flowing.path_bottlenecks.clone())
    }

    /// Every setting that differs from the plain model: (name, value, plain value).
    #[getter]
    fn settings(&self) -> Vec<(&'static str, String, &'static str)> {
        let settings = self.flowing().into_iter().flat_map(|one| &one.settings);
        settings
            .map(|one| (one.name, one.value.clone(), one.plain))
            .collect()
    }

    #[getter]
    fn reconfigurations(&self) -> u64 {
        self.outcome.reconfigurations
    }

    #[getter]
    fn utilisation(&self) -> f64 {
        self.outcome.utilisation
    }

    #[getter]
    fn slots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let slots = &self.outcome.slots;
        let columns = PyDict::new(py);
        columns.set_item("start_ps", picoseconds(py, &slots.start))?;
        columns.set_item("end_ps", picoseconds(py, &slots.end))?;
        columns.set_item(
            "reconfiguration_ps",
            picoseconds(py, &slots.reconfiguration),
        )?;
        columns.set_item("lightpaths", PyArray1::from_slice(py, &slots.lightpaths))?;
        Ok(columns)
    }

    #[getter]
    fn links<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let links = &self.outcome.links;
        if let Some(flowing) = self.flowing() {
            let columns = PyDict::new(py);
            columns.set_item("busy_ps", picoseconds(py, &links.busy))?;
            columns.set_item("bytes", PyArray1::from_slice(py, &links.bytes))?;
            let shares = PyArray1::from_slice(py, &flowing.link_utilisation);
            columns.set_item("utilisation", shares)?;
            return Ok(columns);
        }
        // A row for each way to leave a rank; a closed form has neither.
        let ranks = self.outcome.ranks.sent.len();
        let ways = links.bytes.len().checked_div(ranks).unwrap_or(2);
        let shape = [ways, ranks];
        let columns = PyDict::new(py);
        columns.set_item("busy_ps", picoseconds(py, &links.busy).reshape(shape)?)?;
        columns.set_item(
            "bytes",
            PyArray1::from_slice(py, &links.bytes).reshape(shape)?,
        )?;
        Ok(columns)
    }

    /// What each link carried over time: the length of a bin (ps), and bytes by link and bin.
    #[getter]
    fn link_use<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, LinkBytes<'py>)>> {
        let link_use = self.flowing().and_then(|flowing| flowing.link_use.as_ref());
        let Some(used) = link_use else {
            return Ok(None);
        };
        let shape = [self.outcome.links.bytes.len(), used.bins];
        let bytes = PyArray1::from_slice(py, &used.bytes).reshape(shape)?;
        Ok(Some((used.bin.ps(), bytes)))
    }

    #[getter]
    fn ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ranks = &self.outcome.ranks;
        let columns = PyDict::new(py);
        columns.set_item("sent_bytes", PyArray1::from_slice(py, &ranks.sent))?;
        columns.set_item("received_bytes", PyArray1::from_slice(py, &ranks.received))?;
        columns.set_item("finish_ps", picoseconds(py, &ranks.finish))?;
        Ok(columns)
    }

    /// What packets say beyond all that.
    #[getter]
    fn packets(&self) -> Option<Packets> {
        self.outcome.packets.clone().map(Packets::from_core)
    }

    /// What tuning and control cost on a grid of tunable circuits; none elsewhere.
    #[getter]
    fn tuned<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(tuned) = &self.outcome.tuned else {
            return Ok(None);
        };
        let values = PyDict::new(py);
        values.set_item("messages", PyArray1::from_slice(py, &tuned.messages))?;
        values.set_item("revocations", tuned.revocations)?;
        for (name, time) in [
            ("slow_switch_ps", tuned.slow_switch),
            ("path_transmission_ps", tuned.path_transmission),
            ("path_tuning_ps", tuned.path_tuning),
            ("path_control_ps", tuned.path_control),
            ("path_latency_ps", tuned.path_latency),
            ("path_waiting_ps", tuned.path_waiting),
        ] {
            values.set_item(name, time.ps())?;
        }
        Ok(Some(values))
    }

    /// Ends, light and times of every flow on a grid of tunable circuits under control.
    #[getter]
    fn tuned_flows<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(tuned) = &self.outcome.tuned else {
            return Ok(None);
        };
        let flows = &tuned.flows;
        let columns = PyDict::new(py);
        columns.set_item("source", PyArray1::from_slice(py, &flows.source))?;
        columns.set_item("destination", PyArray1::from_slice(py, &flows.destination))?;
        columns.set_item("fibre", PyArray1::from_slice(py, &flows.fibre))?;
        columns.set_item("wavelength", PyArray1::from_slice(py, &flows.wavelength))?;
        columns.set_item("begin_ps", picoseconds(py, &flows.begin))?;
        columns.set_item("start_ps", picoseconds(py, &flows.start))?;
        columns.set_item("sent_ps", picoseconds(py, &flows.sent))?;
        columns.set_item("end_ps", picoseconds(py, &flows.end))?;
        Ok(Some(columns))
    }

    #[getter]
    fn critical_path(&self) -> Vec<(usize, u64, u64)> {
        let path = self.outcome.critical_path.iter();
        path.map(|one| (one.transfer, one.start.ps(), one.end.ps()))
            .collect()
    }

    fn __repr__(&self) -> String {
        let outcome = &self.outcome;
        format!(
            "<Outcome {} ({}, {})>",
            outcome.time,
            outcome.policy.or(self.start()).unwrap_or_default(),
            outcome.simulator
        )
    }
}
