//! Lower bounds that are printed beside the time of a plan, for any fabric and method.

use thiserror::Error;

use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_bounds::CircuitProblem;
use opticoll_bounds::TimeBound;
use opticoll_bounds::electrical;
use opticoll_bounds::electrical::{MAX_THOROUGH_STEPS, WitnessedBound};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::Network;
use opticoll_plan::collective::Collective;
use opticoll_simulate::{TimingModel, default_policy};

/// A lower bound on the time of any plan, with its assumptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedBound {
    /// Minimum time of any plan.
    pub time: Time,
    /// Name of the bound, such as `bandwidth`.
    pub name: &'static str,
    /// Conditions under which the bound is valid.
    pub assumption: String,
}

/// Reason why no bound is printed beside a time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoBound {
    /// Every message uses the whole rate of its cable, regardless of other messages.
    #[error(
        "none: a cable of a rank gives each message its whole rate, regardless of the number of \
         messages"
    )]
    Unshared,
    /// No bound is known for the fabric.
    #[error("no bound is known for this fabric")]
    Unknown,
    /// A time exceeds 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Returns a lower bound on the time of any plan of a collective, or `None` if no bound is known.
/// This bound is quick to compute and planners use it; [`stated_bound`] returns the bound to print.
///
/// # Errors
/// Fails if a time exceeds 64 bits.
pub fn time_bound(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &TimingModel,
) -> Result<Option<TimeBound>, UnitError> {
    if fabric.circuits().is_some() {
        return match charged(fabric, collective, size, method) {
            Some(charged) => opticoll_bounds::time_bound(fabric, &charged),
            None => Ok(None),
        };
    }
    match placed_on_links(fabric, collective, method) {
        Some((network, placed)) => electrical::best(network, &placed, size),
        None => Ok(None),
    }
}

/// Returns every known lower bound on the time of any plan of a collective, with a witness that
/// proves it. For an all_to_all with a demand on a fabric of circuits, the list also contains the
/// bound on plans without relays.
///
/// # Errors
/// Fails if a time exceeds 64 bits.
pub fn time_bounds(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &TimingModel,
) -> Result<Vec<WitnessedBound>, UnitError> {
    if fabric.circuits().is_some() {
        let Some(charged) = charged(fabric, collective, size, method) else {
            return Ok(Vec::new());
        };
        let mut bounds = opticoll_bounds::time_bounds(fabric, &charged)?;
        let direct = opticoll_bounds::direct_bound(fabric, &charged)?;
        bounds.extend(direct.map(|bound| WitnessedBound {
            bound,
            witness: None,
        }));
        return Ok(bounds);
    }
    match placed_on_links(fabric, collective, method) {
        Some((network, placed)) => electrical::bounds(network, &placed, size, MAX_THOROUGH_STEPS),
        None => Ok(Vec::new()),
    }
}

/// Returns the network of a fabric, and the collective with its ranks renumbered by their positions
/// in the network.
fn placed_on_links<'a>(
    fabric: &'a Fabric,
    collective: &Collective,
    method: &TimingModel,
) -> Option<(&'a dyn Network, Collective)> {
    let places = method.packet.placement.terminals(fabric.ranks());
    let placed = electrical::collective_as_placed(collective, &places)?;
    Some((fabric.network()?, placed))
}

/// Returns the collective with the rule by which the policy of `method` charges reconfigurations.
/// `None` if the fabric does not support the policy, so that it has no plans.
fn charged<'a>(
    fabric: &Fabric,
    collective: &'a Collective,
    size: Bytes,
    method: &TimingModel,
) -> Option<CircuitProblem<'a>> {
    let policy = method.policy.unwrap_or(default_policy(fabric));
    let charge = fabric.circuits()?.charge(policy.name()).ok()?;
    Some(CircuitProblem {
        collective,
        size,
        charge,
        paths: method.paths.unwrap_or_default(),
    })
}

/// Returns the bound to print beside a time: the largest of [`time_bounds`] that applies to all
/// plans.
///
/// # Errors
/// Returns the reason if there is no bound to print.
pub fn stated_bound(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &TimingModel,
) -> Result<StatedBound, NoBound> {
    let bound = match fabric.circuits() {
        Some(_) => time_bound(fabric, collective, size, method)?,
        None => electrical::greatest(time_bounds(fabric, collective, size, method)?),
    };
    let bound = bound.ok_or(match fabric.network() {
        Some(_) => NoBound::Unshared,
        None => NoBound::Unknown,
    })?;
    let mut assumption = bound.assumption.to_owned();
    let simulator = method.simulator;
    if let Some(words) = simulator.and_then(|simulator| (simulator.bound_note)(fabric, method)) {
        assumption += &format!("; {words}");
    }
    Ok(StatedBound {
        time: bound.time,
        name: bound.name,
        assumption,
    })
}
