//! Lower bounds on time and slots.

use opticoll::bound::{self, relay_tree::Costs};
use opticoll::collective::{self, CollectiveKind};
use opticoll::simulate;
use opticoll::units::Bytes;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::fabric::Fabric;
use crate::interrupt;

/// Why there is no bound beside a time.
const FORMULA: &str =
    "none: closed_form computes the paper's formula, which is not the time of a plan";
const UNSHARED: &str =
    "none: a cable of a rank gives each message its whole rate, however many there are";
const UNKNOWN: &str = "none is known for this fabric";

/// The lower bound on the time of any plan of a collective: (picoseconds, name, assumption); where there is
/// none, why.
#[pyfunction]
#[pyo3(signature = (kind, fabric, size_bytes, policy, root = 0, paths = None, simulator = None, placement = None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn time_bound(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    size_bytes: u64,
    policy: Option<&str>,
    root: u32,
    paths: Option<&str>,
    simulator: Option<&str>,
    placement: Option<&str>,
) -> PyResult<(Option<u64>, Option<&'static str>, String)> {
    let kind: CollectiveKind = kind.parse().map_err(IntoPyErr::into_py_err)?;
    let given = [
        ("simulator", simulator),
        ("policy", policy),
        ("paths", paths),
        ("placement", placement),
    ];
    let given = given
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)));
    let method = simulate::Method::from_settings(given).map_err(IntoPyErr::into_py_err)?;
    let policy = method
        .policy
        .unwrap_or(simulate::default_policy(&fabric.fabric));
    let size = Bytes::new(size_bytes);
    interrupt::run(py, || {
        let fabric = &fabric.fabric;
        let collective = collective::Collective::new(kind, fabric.ranks())
            .and_then(|collective| collective.with_root(root))
            .map_err(IntoPyErr::into_py_err)?;
        let places = method.packet.placement.terminals(fabric.ranks());
        let bound = match (fabric.ring(), fabric.network()) {
            _ if method.simulator == Some("closed_form") => {
                return Ok((None, None, FORMULA.into()));
            }
            (Some(ring), _) => bound::time::best(ring, &collective, size, policy.into()).map(Some),
            (None, Some(network)) => match bound::electrical::placed(&collective, &places) {
                Some(placed) => bound::electrical::best(network, &placed, size),
                None => Ok(None),
            },
            (None, None) => match (fabric.wss_grid(), fabric.light_path_grid()) {
                (Some(grid), _) => {
                    bound::wss_grid::best(grid, &collective, size, policy.into()).map(Some)
                }
                (None, Some(grid)) => {
                    let set_ups = (policy, method.paths.unwrap_or_default()).into();
                    bound::light_path_grid::best(grid, &collective, size, set_ups).map(Some)
                }
                (None, None) => Ok(None),
            },
        };
        let bound = bound.map_err(IntoPyErr::into_py_err)?;
        let Some(bound) = bound else {
            let electrical = fabric.network().is_some();
            return Ok((
                None,
                None,
                (if electrical { UNSHARED } else { UNKNOWN }).into(),
            ));
        };
        let mut assumption = bound.assumption.to_owned();
        match method.simulator {
            Some("packet") => {
                let place = if places.is_some() { "given" } else { "natural" };
                assumption += &format!("; ranks sit where the {place} placement puts them");
            }
            Some("fluid") => {
                let share = bound::electrical::ROUNDING;
                assumption += &format!("; times by fluid are rounded, by about {share:e} of them");
            }
            _ => {}
        }
        Ok((Some(bound.time.ps()), Some(bound.name), assumption))
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
