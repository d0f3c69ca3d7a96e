//! Lower bounds on time and slots.

use opticoll::bounds::electrical::{Ratio, Witness, WitnessedBound, optimum, time_from_lengths};
use opticoll::bounds::wdm_ring::relay_tree::RelayCosts;
use opticoll::planner::{self, NoBound};
use opticoll::simulate;
use opticoll::simulate::SimulationError;
use opticoll::units::Bytes;
use pyo3::prelude::*;

use crate::collective::{Demand, asked};
use crate::error::{FabricError, IntoPyErr, OrRaise};
use crate::fabric::Fabric;
use crate::interrupt;

/// The lower bound on the time of any plan in picoseconds, its name and its assumption.
///
/// Without a bound two times None, and why, such as flows that do not share the cables of a rank.
/// With a placement of packets the root is where the placement puts it.
#[pyfunction]
#[pyo3(signature = (kind, fabric, size_bytes, policy, root = 0, paths = None, simulator = None, placement = None, demand = None))]
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
    let collective = asked(kind, fabric.fabric.ranks(), root, demand.as_ref())?;
    let given = [
        ("simulator", simulator),
        ("policy", policy),
        ("paths", paths),
        ("placement", placement),
    ];
    let given = given
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)));
    let method = simulate::Method::from_settings(given).or_raise()?;
    let size = Bytes::new(size_bytes);
    interrupt::run(py, || {
        match planner::stated_bound(&fabric.fabric, &collective, size, &method) {
            Ok(bound) => Ok((Some(bound.time.ps()), Some(bound.name), bound.assumption)),
            Err(NoBound::Unit(error)) => Err(error.into_py_err()),
            Err(none) => Ok((None, None, none.to_string())),
        }
    })?
}

/// The ranks on one side of a cut, of how many parts they are, and the names of the links into that side or out of it; or
/// no ranks, no parts, links, and the length of each.
type Shown = (Vec<u32>, u32, Vec<String>, Vec<u64>);

/// A time in picoseconds, a name, an assumption, and what shows it.
type NamedBound = (u64, &'static str, &'static str, Option<Shown>);

/// The policy for which they hold, None on electrical fabrics, and every lower bound on the time of any plan: the time
/// in picoseconds, the name, the assumption, and where it is a cut that shows the bound, the ranks on one side, of how
/// many parts they are, and the names of the links between the sides; where lengths of links do, their names and lengths.
/// With a demand over circuits also the bound `direct`, of plans in which no rank relays.
#[pyfunction]
#[pyo3(signature = (kind, fabric, size_bytes, root = 0, policy = None, paths = None, demand = None))]
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
    let collective = asked(kind, fabric.fabric.ranks(), root, demand.as_ref())?;
    let given = [("policy", policy), ("paths", paths)];
    let given = given
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)));
    let method = simulate::Method::from_settings(given).or_raise()?;
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
        let names = fabric
            .network()
            .map(|network| links.map(|link| network.link_name(link)).collect());
        (
            witness.ranks,
            witness.parts,
            names.unwrap_or_default(),
            witness.lengths,
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

/// Numerator and denominator.
type Fraction = (u128, u128);

/// The throughput optimum: seconds for 10^9 bytes of `size`, as two fractions (numerator, denominator); no plan takes
/// less than the first, and some plan no more than the second, which is None where no such plan is known. None where
/// nothing is known.
#[pyfunction]
#[pyo3(signature = (kind, fabric, root = 0))]
pub(crate) fn throughput_optimum(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    root: u32,
) -> PyResult<Option<(Fraction, Option<Fraction>)>> {
    let collective = asked(kind, fabric.fabric.ranks(), root, None)?;
    let network = fabric.fabric.network();
    let found = network.map(|network| interrupt::run(py, || optimum(network, &collective)));
    let Some(found) = found.transpose()?.flatten() else {
        return Ok(None);
    };
    let most = found.most.and_then(Ratio::seconds_per_gigabyte);
    Ok(found
        .least
        .seconds_per_gigabyte()
        .map(|least| (least, most)))
}

/// The time for a block of 10^9 bytes that multipliers of the links prove, in seconds, as a fraction: no plan takes
/// less. Of all_to_all, scatter and gather; None where they prove nothing.
#[pyfunction]
#[pyo3(signature = (kind, fabric, lengths, root = 0))]
pub(crate) fn concurrent_flow_bound(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    lengths: Vec<u64>,
    root: u32,
) -> PyResult<Option<Fraction>> {
    let collective = asked(kind, fabric.fabric.ranks(), root, None)?;
    let Some(network) = fabric.fabric.network() else {
        return Ok(None);
    };
    let proved = interrupt::run(py, || time_from_lengths(network, &collective, &lengths))?;
    Ok(proved.and_then(Ratio::seconds_per_gigabyte))
}

/// The lower bound on slots, its name and its assumption; blocks are whole.
#[pyfunction]
#[pyo3(signature = (kind, fabric, root = 0))]
pub(crate) fn slots_bound(
    py: Python<'_>,
    kind: &str,
    fabric: Fabric,
    root: u32,
) -> PyResult<(u64, &'static str, &'static str)> {
    let collective = asked(kind, fabric.fabric.ranks(), root, None)?;
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

/// C_1(N), ..., C_depth(N): the least total lengths of relay trees of a depth, in links.
#[pyfunction]
pub(crate) fn relay_tree_costs(py: Python<'_>, ranks: u32, depth: usize) -> PyResult<Vec<u64>> {
    interrupt::run(py, || RelayCosts::new(ranks).take(depth).collect())
}
