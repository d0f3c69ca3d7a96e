//! Bursts of light: `simulate_bursts` and the theory beside it.

use std::collections::BTreeMap;

use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use opticoll::fabric::Medium;
use opticoll::simulate::burst::{self, BurstNetwork, BurstSettings, Share, Work, erlang};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::IntoPyErr;
use crate::interrupt;

/// What a simulation of bursts found.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct BurstOutcome {
    outcome: burst::BurstOutcome,
    network: BurstNetwork,
}

/// Two columns of equal length, offered and lost.
fn shares<'py>(
    py: Python<'py>,
    shares: impl Iterator<Item = Share> + Clone,
) -> [(&'static str, Bound<'py, PyArray1<u64>>); 2] {
    let column = |of: fn(Share) -> u64| {
        let column: Vec<u64> = shares.clone().map(of).collect();
        column.into_pyarray(py)
    };
    [
        ("offered", column(|share| share.offered)),
        ("lost", column(|share| share.lost)),
    ]
}

#[pymethods]
impl BurstOutcome {
    #[getter]
    fn bursts(&self) -> u64 {
        self.outcome.bursts
    }

    #[getter]
    fn lost(&self) -> u64 {
        self.outcome.lost
    }

    #[getter]
    fn loss(&self) -> f64 {
        self.outcome.loss
    }

    #[getter]
    fn loss_low(&self) -> f64 {
        self.outcome.loss_low
    }

    #[getter]
    fn loss_high(&self) -> f64 {
        self.outcome.loss_high
    }

    #[getter]
    fn lost_at(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([
            ("links", self.outcome.lost_at_links),
            ("converters", self.outcome.lost_at_converters),
            ("receivers", self.outcome.lost_at_receivers),
        ])
    }

    #[getter]
    fn mean_wait_ps(&self) -> u64 {
        self.outcome.mean_wait.ps()
    }

    #[getter]
    fn simulated_seconds(&self) -> f64 {
        self.outcome.simulated_seconds
    }

    #[getter]
    fn network(&self) -> &str {
        self.network.spelling()
    }

    #[getter]
    fn by_hops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, column) in shares(py, self.outcome.by_hops.iter().copied()) {
            columns.set_item(name, column)?;
        }
        Ok(columns)
    }

    #[getter]
    fn by_pair<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let nodes = self.network.nodes() as usize;
        let columns = PyDict::new(py);
        for (name, column) in shares(py, self.outcome.by_pair.iter().copied()) {
            columns.set_item(name, column.reshape([nodes, nodes])?)?;
        }
        Ok(columns)
    }

    #[getter]
    fn moments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let moments = &self.outcome.moments;
        let ends: Vec<u64> = moments.iter().map(|moment| moment.end.ps()).collect();
        let columns = PyDict::new(py);
        columns.set_item("end_ps", ends.into_pyarray(py))?;
        for (name, column) in shares(py, moments.iter().map(|moment| moment.share)) {
            columns.set_item(name, column)?;
        }
        Ok(columns)
    }

    #[getter]
    fn links<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let links = &self.outcome.links;
        let column = |of: fn(&burst::LinkUse) -> f64| {
            let column: Vec<f64> = links.iter().map(of).collect();
            column.into_pyarray(py)
        };
        let refused: Vec<u64> = links.iter().map(|link| link.refused).collect();
        let columns = PyDict::new(py);
        columns.set_item("utilisation", column(|link| link.utilisation))?;
        columns.set_item("wasted", column(|link| link.wasted))?;
        columns.set_item("refused", refused.into_pyarray(py))?;
        Ok(columns)
    }

    #[getter]
    fn link_names(&self) -> Vec<&str> {
        let links = self.network.links().iter();
        links.map(|link| link.name.as_str()).collect()
    }

    fn __repr__(&self) -> String {
        let outcome = &self.outcome;
        format!("<BurstOutcome {} of {} lost>", outcome.lost, outcome.bursts)
    }
}

/// Simulates bursts on a network; the settings are those of `burst_settings`, as text.
#[pyfunction]
#[pyo3(signature = (fabric, settings, *, threads = 1, progress = None))]
pub(crate) fn simulate_bursts(
    py: Python<'_>,
    fabric: &str,
    settings: BTreeMap<String, String>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<BurstOutcome> {
    let texts = settings
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    let settings = BurstSettings::from_texts(texts).map_err(IntoPyErr::into_py_err)?;
    let network = network_of(py, fabric)?;
    let mut raised = None;
    let outcome = interrupt::run(py, || {
        burst::simulate(&network, &Work::Random, &settings, threads, |one| {
            let told = Python::attach(|py| match &progress {
                Some(progress) => progress.call1(py, (one.bursts, one.target)).map(|_| ()),
                None => Ok(()),
            });
            raised = told.err();
            raised.is_none()
        })
    })?;
    match (raised, outcome) {
        (Some(error), _) => Err(error),
        (None, outcome) => outcome
            .map(|outcome| BurstOutcome { outcome, network })
            .map_err(IntoPyErr::into_py_err),
    }
}

/// The network of bursts that a specification names.
pub(crate) fn network_of(py: Python<'_>, fabric: &str) -> PyResult<BurstNetwork> {
    interrupt::run(py, || BurstNetwork::of(&Medium::parse(fabric)?))?
        .map_err(IntoPyErr::into_py_err)
}

/// The network in full words; refuses what `simulate_bursts` would refuse.
#[pyfunction]
pub(crate) fn check_bursts(
    py: Python<'_>,
    fabric: &str,
    settings: BTreeMap<String, String>,
) -> PyResult<String> {
    interrupt::run(py, || {
        let network = BurstNetwork::of(&Medium::parse(fabric)?)?;
        let texts = settings
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        burst::check(&network, &Work::Random, &BurstSettings::from_texts(texts)?)?;
        Ok(network.spelling().to_owned())
    })?
    .map_err(|error: burst::BurstError| error.into_py_err())
}

/// Erlang's B.
#[pyfunction]
pub(crate) fn erlang_b(load: f64, servers: u32) -> f64 {
    erlang::erlang_b(load, servers)
}

/// Engset's call congestion.
#[pyfunction]
pub(crate) fn engset(sources: u32, load: f64, servers: u32) -> f64 {
    erlang::engset(sources, load, servers)
}

/// Loss of Poisson bursts to everyone with full conversion, by the reduced-load fixed point.
#[pyfunction]
pub(crate) fn burst_fixed_point(py: Python<'_>, fabric: &str, intensity: f64) -> PyResult<f64> {
    let everyone = burst::Destinations::Everyone;
    interrupt::run(py, || {
        let network = BurstNetwork::of(&Medium::parse(fabric)?)?;
        Ok(erlang::fixed_point(&network, intensity, everyone).loss)
    })?
    .map_err(|error: burst::BurstError| error.into_py_err())
}
