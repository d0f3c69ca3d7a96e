//! Lower bounds on time and slots.

use opticoll::bounds::electrical::{Ratio, Witness, WitnessedBound, optimum, time_from_lengths};
use opticoll::bounds::wdm_ring::relay_tree::RelayCosts;
use opticoll::planner::{self, NoBound};
use opticoll::simulate;
use opticoll::simulate::SimulationError;
use opticoll::units::Bytes;
use pyo3::prelude::*;

use crate::collective::{Demand, requested_collective};
use crate::error::{FabricError, IntoPyErr, OrRaise};
use crate::fabric::Fabric;
use crate::interrupt;
use crate::method::method_with;

/// Returns a lower bound on the time of any plan: picoseconds, name of the bound, assumption.
///
/// Without a bound, returns None, None and the reason, for example that flows do not share the
/// cables of a rank. `placement`, which the packet simulator uses, also moves the root.
#[pyfunction]
#[pyo3(signature = (
    kind, fabric, size_bytes, policy, root = 0, paths = None, simulator = None, placement = None,
    demand = None
))]
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
    demand: Option<Demand>,
) -> PyResult<(Option<u64>, Option<&'static str>, String)> {
    let collective = requested_collective(kind, fabric.fabric.ranks(), root, demand.as_ref())?;
    let method = method_with([
        ("simulator", simulator),
        ("policy", policy),
        ("paths", paths),
        ("placement", placement),
    ])?;
    let size = Bytes::new(size_bytes);
    interrupt::run(py, || {
        match planner::stated_bound(&fabric.fabric, &collective, size, &method) {
            Ok(bound) => Ok((Some(bound.time.ps()), Some(bound.name), bound.assumption)),
            Err(NoBound::Unit(error)) => Err(error.into_py_err()),
            Err(none) => Ok((None, None, none.to_string())),
        }
    })?
}

/// Witness of a bound as (ranks, number of parts, links, lengths of the links). For a cut: the
/// ranks on one side, the number of parts that they belong to, the names of the links between the
/// sides, and no lengths. For link lengths: no ranks, 0, the names of the links, and their lengths.
/// For trees of lightpaths, the last entry is (number of slots, links of all trees, number of
/// trees).
type WitnessRow = (
    Vec<u32>,
    u32,
    Vec<String>,
    Vec<u64>,
    Option<(u64, u64, u64)>,
);

/// A bound as (time in picoseconds, name, assumption, witness).
type NamedBound = (u64, &'static str, &'static str, Option<WitnessRow>);

/// Returns the policy to which the bounds apply (None on electrical fabrics), and every lower bound
/// on the time of any plan.
///
/// A bound has a time in picoseconds, a name, an assumption and a witness. The witness of a cut has
/// the ranks on one side, the number of parts that these ranks form, and the names of the links
/// between the sides. The witness of link lengths has the names and the lengths of links. The
/// witness of trees of lightpaths has the number of slots, the links of all trees, and the number
/// of trees. With a demand over circuits, the list contains the bound `direct`, which applies only
/// to plans without relays.
#[pyfunction]
#[pyo3(signature = (
    kind, fabric, size_bytes, root = 0, policy = None, paths = None, demand = None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn time_bounds(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    size_bytes: u64,
    root: u32,
    policy: Option<&str>,
    paths: Option<&str>,
    demand: Option<Demand>,
) -> PyResult<(Option<&'static str>, Vec<NamedBound>)> {
    let collective = requested_collective(kind, fabric.fabric.ranks(), root, demand.as_ref())?;
    let method = method_with([("policy", policy), ("paths", paths)])?;
    let (fabric, size) = (fabric.fabric, Bytes::new(size_bytes));
    let simulator = simulate::Simulator::of(&fabric, &method).or_raise()?;
    let policy = method.policy.unwrap_or(simulate::default_policy(&fabric));
    if let Some(circuits) = fabric.circuits() {
        let refused = |reason| SimulationError::unsupported_policy(simulator.name, policy, reason);
        let charge = circuits.charge(policy.name()).map_err(refused);
        charge.or_raise()?;
    }
    let bounds = interrupt::attempt(py, || {
        planner::time_bounds(&fabric, &collective, size, &method)
    })?;
    let named = |witness: Witness| {
        let links = witness.links.into_iter();
        let fibres = fabric
            .circuits()
            .and_then(|circuits| circuits.fibre_links());
        let network = fabric.network().or(fibres);
        let names = network.map(|network| links.map(|link| network.link_name(link)).collect());
        (
            witness.ranks,
            witness.parts,
            names.unwrap_or_default(),
            witness.lengths,
            witness.trees.map(|one| (one.slots, one.links, one.trees)),
        )
    };
    let bounds = bounds
        .into_iter()
        .map(|WitnessedBound { bound, witness }| {
            let time_ps = bound.time.ps();
            (time_ps, bound.name, bound.assumption, witness.map(named))
        })
        .collect();
    Ok((fabric.has_light().then(|| policy.name()), bounds))
}

/// A fraction as (numerator, denominator).
type Fraction = (u128, u128);

/// Returns the throughput optimum in seconds for 10^9 bytes, as two fractions (numerator,
/// denominator).
///
/// No plan takes less time than the first fraction. Some plan takes at most the second fraction,
/// which is None if no such plan is known. Returns None if not even a lower bound is known.
#[pyfunction]
#[pyo3(signature = (kind, fabric, root = 0))]
pub(crate) fn throughput_optimum(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    root: u32,
) -> PyResult<Option<(Fraction, Option<Fraction>)>> {
    let collective = requested_collective(kind, fabric.fabric.ranks(), root, None)?;
    let network = fabric.fabric.network();
    let optimum_range = network.map(|network| interrupt::run(py, || optimum(network, &collective)));
    let Some(optimum_range) = optimum_range.transpose()?.flatten() else {
        return Ok(None);
    };
    let upper = optimum_range.most.and_then(Ratio::seconds_per_gigabyte);
    let lower = optimum_range.least.seconds_per_gigabyte();
    Ok(lower.map(|lower| (lower, upper)))
}

/// Returns the lower bound that `lengths`, a length for each link, prove for all_to_all, scatter
/// and gather: the time per block of 10^9 bytes in seconds, as a fraction. Returns None if
/// `lengths` prove no bound.
#[pyfunction]
#[pyo3(signature = (kind, fabric, lengths, root = 0))]
pub(crate) fn concurrent_flow_bound(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    lengths: Vec<u64>,
    root: u32,
) -> PyResult<Option<Fraction>> {
    let collective = requested_collective(kind, fabric.fabric.ranks(), root, None)?;
    let Some(network) = fabric.fabric.network() else {
        return Ok(None);
    };
    let proved = interrupt::run(py, || time_from_lengths(network, &collective, &lengths))?;
    Ok(proved.and_then(Ratio::seconds_per_gigabyte))
}

/// Returns the lower bound on the number of slots of plans that send whole blocks, with the bound's
/// name and assumption.
#[pyfunction]
#[pyo3(signature = (kind, fabric, root = 0))]
pub(crate) fn slots_bound(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    root: u32,
) -> PyResult<(u64, &'static str, &'static str)> {
    let collective = requested_collective(kind, fabric.fabric.ranks(), root, None)?;
    let fabric = fabric.fabric;
    let bound = interrupt::run(py, || {
        opticoll::bounds::slots_bound(&fabric, &collective, true)
    })?;
    let bound = bound.ok_or_else(|| {
        FabricError::new_err(format!(
            "no bound on slots is known for {}",
            fabric.family()
        ))
    })?;
    Ok((bound.steps, bound.name, bound.assumption))
}

/// Returns the minimum total lengths, in links, of relay trees over `ranks` ranks with depth 1, 2
/// and so on up to `depth`.
#[pyfunction]
pub(crate) fn relay_tree_costs(py: Python<'_>, ranks: u32, depth: usize) -> PyResult<Vec<u64>> {
    interrupt::run(py, || RelayCosts::new(ranks).take(depth).collect())
}
