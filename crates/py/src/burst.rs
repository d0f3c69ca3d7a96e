//! Functions on bursts of light: `simulate_bursts` and blocking formulas.

use std::collections::BTreeMap;

use opticoll::families::Medium;
use opticoll::simulate::burst;
use opticoll::simulate::burst::{BurstNetwork, BurstSettings, BurstWork, erlang};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::interrupt;
use crate::method::texts;
use crate::table::Outcome;

/// Simulates bursts on a network with wavelengths. `settings` are texts, by the names of the
/// records `burst_settings`.
///
/// `progress` is called with the number of bursts measured so far and the number to be measured; an
/// exception in `progress` ends the simulation. The outcome does not depend on the number of
/// threads. Raises FabricError, or SimulationError, whose attribute `setting` names the wrong
/// setting.
#[pyfunction]
#[pyo3(signature = (
    fabric, settings, *, threads = 1, progress: "Callable[[int, int], object] | None" = None
))]
pub(crate) fn simulate_bursts(
    py: Python<'_>,
    fabric: &str,
    settings: BTreeMap<String, String>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let settings = BurstSettings::from_texts(texts(&settings)).or_raise()?;
    let network = parse_network(py, fabric)?;
    interrupt::watched(py, progress, |tell| {
        burst::simulate(
            &network,
            &BurstWork::Random,
            &settings,
            threads,
            |progress| tell(&[progress.bursts, progress.target]),
        )
    })
    .map(Outcome::from_core)
}

/// Parses the specification of a burst-switched network.
pub(crate) fn parse_network(py: Python<'_>, fabric: &str) -> PyResult<BurstNetwork> {
    interrupt::attempt(py, || BurstNetwork::of(&Medium::parse(fabric)?))
}

/// Returns the complete specification of a burst-switched network. Raises the errors that
/// `simulate_bursts` would raise.
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

/// Returns the blocking probability of Erlang's B formula for an offered `load` in Erlang.
#[pyfunction]
pub(crate) fn erlang_b(load: f64, servers: u32) -> f64 {
    erlang::erlang_b(load, servers)
}

/// Returns the call congestion of Engset's formula: the share of calls that are blocked.
#[pyfunction]
pub(crate) fn engset(sources: u32, load: f64, servers: u32) -> f64 {
    erlang::engset(sources, load, servers)
}

/// Returns the burst loss ratio of Poisson bursts to all destinations, with full wavelength
/// conversion, by the reduced-load fixed point. `offered_load` is in Erlang per host.
#[pyfunction]
pub(crate) fn burst_fixed_point(py: Python<'_>, fabric: &str, offered_load: f64) -> PyResult<f64> {
    let everyone = burst::Destinations::Everyone;
    let network = parse_network(py, fabric)?;
    interrupt::run(py, || {
        erlang::fixed_point(&network, offered_load, everyone).loss
    })
}
