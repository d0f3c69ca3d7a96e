//! Bursts of light: `simulate_bursts` and the theory beside it.

use std::collections::BTreeMap;

use opticoll::families::Medium;
use opticoll::simulate::burst;
use opticoll::simulate::burst::{BurstNetwork, BurstSettings, BurstWork, erlang};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::interrupt;
use crate::method::texts;
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
    let settings = BurstSettings::from_texts(texts(&settings)).or_raise()?;
    let network = network_of(py, fabric)?;
    interrupt::watched(py, progress, |tell| {
        burst::simulate(&network, &BurstWork::Random, &settings, threads, |one| {
            tell(&[one.bursts, one.target])
        })
    })
    .map(Outcome::from_core)
}

/// The network of bursts that a specification names.
pub(crate) fn network_of(py: Python<'_>, fabric: &str) -> PyResult<BurstNetwork> {
    interrupt::attempt(py, || BurstNetwork::of(&Medium::parse(fabric)?))
}

/// The network in full words; raises what `simulate_bursts` would raise.
#[pyfunction]
pub(crate) fn check_bursts(
    py: Python<'_>,
    fabric: &str,
    settings: BTreeMap<String, String>,
) -> PyResult<String> {
    interrupt::attempt(py, || {
        let network = BurstNetwork::of(&Medium::parse(fabric)?)?;
        let settings = BurstSettings::from_texts(texts(&settings))?;
        burst::check(&network, &BurstWork::Random, &settings)?;
        Ok::<_, burst::BurstError>(network.specification().to_owned())
    })
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
    let network = network_of(py, fabric)?;
    interrupt::run(py, || {
        erlang::fixed_point(&network, offered_load, everyone).loss
    })
}
