//! The lower bound that stands beside the time of a plan, for whatever a fabric and a method are.

use thiserror::Error;

use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_bounds::CircuitProblem;
use opticoll_bounds::TimeBound;
use opticoll_bounds::electrical;
use opticoll_bounds::electrical::{MAX_THOROUGH_STEPS, WitnessedBound};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::Network;
use opticoll_plan::collective::Collective;
use opticoll_simulate::{Method, default_policy};

/// A time that no plan goes below, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedBound {
    /// The time.
    pub time: Time,
    /// Which bound, such as `bandwidth`.
    pub name: &'static str,
    /// Under which conditions it holds.
    pub assumption: String,
}

/// Why there is no bound beside a time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoBound {
    /// Cables that nothing shares.
    #[error("none: a cable of a rank gives each message its whole rate, however many there are")]
    Unshared,
    /// No argument is known.
    #[error("none is known for this fabric")]
    Unknown,
    /// A time left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// The bound on the time of any plan of a collective that is soon known, for planners; `None` where none is. What stands beside
/// a time is [`stated_bound`].
///
/// # Errors
/// A time that leaves 64 bits.
pub fn time_bound(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &Method,
) -> Result<Option<TimeBound>, UnitError> {
    if fabric.circuits().is_some() {
        return of_circuits(
            fabric,
            collective,
            size,
            method,
            opticoll_bounds::time_bound,
        );
    }
    match on_links(fabric, collective, method) {
        Some((network, placed)) => electrical::best(network, &placed, size),
        None => Ok(None),
    }
}

/// Every bound on the time of any plan of a collective that is known, with what shows it; of an all_to_all with a demand over
/// circuits also that of plans in which no rank relays.
///
/// # Errors
/// A time that leaves 64 bits.
pub fn time_bounds(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &Method,
) -> Result<Vec<WitnessedBound>, UnitError> {
    if fabric.circuits().is_some() {
        let best = of_circuits(
            fabric,
            collective,
            size,
            method,
            opticoll_bounds::time_bound,
        )?;
        let direct = of_circuits(
            fabric,
            collective,
            size,
            method,
            opticoll_bounds::direct_bound,
        )?;
        let bare = |bound| WitnessedBound {
            bound,
            witness: None,
        };
        return Ok(best.into_iter().chain(direct).map(bare).collect());
    }
    match on_links(fabric, collective, method) {
        Some((network, placed)) => electrical::bounds(network, &placed, size, MAX_THOROUGH_STEPS),
        None => Ok(Vec::new()),
    }
}

/// The links of a fabric, and the collective as its ranks are placed there.
fn on_links<'a>(
    fabric: &'a Fabric,
    collective: &Collective,
    method: &Method,
) -> Option<(&'a dyn Network, Collective)> {
    let places = method.packet.placement.terminals(fabric.ranks());
    let placed = electrical::collective_as_placed(collective, &places)?;
    Some((fabric.network()?, placed))
}

/// A bound of a family with circuits.
type CircuitBound = fn(&Fabric, &CircuitProblem<'_>) -> Result<Option<TimeBound>, UnitError>;

fn of_circuits(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &Method,
    bound: CircuitBound,
) -> Result<Option<TimeBound>, UnitError> {
    let policy = method.policy.unwrap_or(default_policy(fabric));
    let circuits = fabric.circuits();
    // Under a policy that the fabric does not know nothing runs.
    let Some(Ok(charge)) = circuits.map(|circuits| circuits.charge(policy.name())) else {
        return Ok(None);
    };
    let asked = CircuitProblem {
        collective,
        size,
        charge,
        paths: method.paths.unwrap_or_default(),
    };
    bound(fabric, &asked)
}

/// The bound that stands beside the times of a method: the greatest of [`time_bounds`] that holds for any plan.
///
/// # Errors
/// Why there is none.
pub fn stated_bound(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &Method,
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
    if let Some(words) = simulator.and_then(|one| (one.beside_bound)(fabric, method)) {
        assumption += &format!("; {words}");
    }
    Ok(StatedBound {
        time: bound.time,
        name: bound.name,
        assumption,
    })
}
