//! Lower bounds on time and slots.

use opticoll::bound::{self, relay_tree::Costs};
use opticoll::collective::{self, CollectiveKind};
use opticoll::simulate::{self, Paths};
use opticoll::units::Bytes;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::fabric::Fabric;
use crate::interrupt;

/// The lower bound on the time of any plan of a collective: (picoseconds, name, assumption), if one is
/// known.
#[pyfunction]
#[pyo3(signature = (kind, fabric, size_bytes, policy, root = 0, paths = None))]
pub(crate) fn time_bound(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    size_bytes: u64,
    policy: Option<&str>,
    root: u32,
    paths: Option<&str>,
) -> PyResult<Option<(u64, &'static str, &'static str)>> {
    let kind: CollectiveKind = kind.parse().map_err(IntoPyErr::into_py_err)?;
    let policy = match policy {
        Some(policy) => policy
            .parse()
            .map_err(simulate::SimulationError::into_py_err)?,
        None => simulate::default_policy(&fabric.fabric),
    };
    let paths: Paths = match paths {
        Some(paths) => paths
            .parse()
            .map_err(simulate::SimulationError::into_py_err)?,
        None => Paths::default(),
    };
    let size = Bytes::new(size_bytes);
    interrupt::run(py, || {
        let fabric = &fabric.fabric;
        let collective = collective::Collective::new(kind, fabric.ranks())
            .and_then(|collective| collective.with_root(root))
            .map_err(IntoPyErr::into_py_err)?;
        let bound = match (fabric.ring(), fabric.network()) {
            (Some(ring), _) => bound::time::best(ring, &collective, size, policy.into()).map(Some),
            (None, Some(network)) => bound::electrical::best(network, &collective, size),
            (None, None) => match (fabric.wss_grid(), fabric.light_path_grid()) {
                (Some(grid), _) => {
                    bound::wss_grid::best(grid, &collective, size, policy.into()).map(Some)
                }
                (None, Some(grid)) => {
                    let set_ups = (policy, paths).into();
                    bound::light_path_grid::best(grid, &collective, size, set_ups).map(Some)
                }
                (None, None) => Ok(None),
            },
        };
        bound
            .map(|bound| bound.map(|bound| (bound.time.ps(), bound.name, bound.assumption)))
            .map_err(IntoPyErr::into_py_err)
    })?
}

/// The lower bound on the slots of a collective in whole blocks: (slots, name, assumption).
#[pyfunction]
#[pyo3(signature = (kind, fabric, root = 0))]
pub(crate) fn slots_bound(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    root: u32,
) -> PyResult<(u64, &'static str, &'static str)> {
    let kind: CollectiveKind = kind.parse().map_err(IntoPyErr::into_py_err)?;
    let ring = fabric
        .fabric
        .needed_ring("a bound on slots")
        .map_err(IntoPyErr::into_py_err)?;
    let collective = collective::Collective::new(kind, ring.ranks)
        .and_then(|collective| collective.with_root(root))
        .map_err(IntoPyErr::into_py_err)?;
    let bound = interrupt::run(py, || bound::best(ring, &collective))?;
    Ok((bound.steps, bound.name, bound.assumption))
}

/// C_1(N), ..., C_depth(N): the least total lengths of relay trees of a depth, in links.
#[pyfunction]
pub(crate) fn relay_tree_costs(py: Python<'_>, ranks: u32, depth: usize) -> PyResult<Vec<u64>> {
    interrupt::run(py, || Costs::new(ranks).take(depth).collect())
}
