//! Bursts of light: `simulate_bursts` and the theory beside it.

use std::collections::BTreeMap;

use opticoll::families::Medium;
use opticoll::simulate::burst;
use opticoll::simulate::burst::{BurstNetwork, BurstSettings, BurstWork, erlang};
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::interrupt;
use crate::table::Outcome;

/// Simulate bursts on a network with wavelengths; the settings are the records `burst_settings`, as text.
///
/// `progress` is called with bursts measured and to be measured; what it raises ends the run. The outcome does not
/// depend on the number of threads. Raises FabricError, or SimulationError with the attribute `setting` where one is at
/// fault.
#[pyfunction]
#[pyo3(signature = (fabric, settings, *, threads = 1, progress: "Callable[[int, int], object] | None" = None))]
pub(crate) fn simulate_bursts(
    py: Python<'_>,
    fabric: &str,
    settings: BTreeMap<String, String>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let texts = settings
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    let settings = BurstSettings::from_texts(texts).map_err(IntoPyErr::into_py_err)?;
    let network = network_of(py, fabric)?;
    let mut raised = None;
    let outcome = interrupt::run(py, || {
        burst::simulate(&network, &BurstWork::Random, &settings, threads, |one| {
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
            .map(Outcome::from_core)
            .map_err(IntoPyErr::into_py_err),
    }
}

/// The network of bursts that a specification names.
pub(crate) fn network_of(py: Python<'_>, fabric: &str) -> PyResult<BurstNetwork> {
    interrupt::run(py, || BurstNetwork::of(&Medium::parse(fabric)?))?
        .map_err(IntoPyErr::into_py_err)
}

/// The network in full words; raises what `simulate_bursts` would raise.
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
        burst::check(
            &network,
            &BurstWork::Random,
            &BurstSettings::from_texts(texts)?,
        )?;
        Ok(network.specification().to_owned())
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
pub(crate) fn burst_fixed_point(py: Python<'_>, fabric: &str, offered_load: f64) -> PyResult<f64> {
    let everyone = burst::Destinations::Everyone;
    interrupt::run(py, || {
        let network = BurstNetwork::of(&Medium::parse(fabric)?)?;
        Ok(erlang::fixed_point(&network, offered_load, everyone).loss)
    })?
    .map_err(|error: burst::BurstError| error.into_py_err())
}
