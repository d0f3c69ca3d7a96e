//! Plans that follow each other on the same ports: the circuits with which a plan starts, and those
//! that it leaves behind.

use std::collections::BTreeMap;

use super::slots::{SlotHops, hop};
use crate::{Policy, SimulationError, require_circuits};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::fabric::circuits::ReconfigurationCharge;
use opticoll_plan::plan::Plan;

/// Number of circuits from a rank to another rank, indexed by the two ranks.
type CircuitCounts = BTreeMap<(u32, u32), u32>;

/// Returns the pairs of plans, by index, between which circuits are set up if the second plan
/// follows the first: a first circuit of the second plan is not among the last circuits of the
/// first plan. All plans are for the same circuit switch.
pub fn changes(plans: &[&Plan]) -> Vec<(usize, usize)> {
    let ends: Vec<EndCircuits> = plans.iter().map(|plan| EndCircuits::new(plan)).collect();
    let pairs =
        (0..plans.len()).flat_map(|before| (0..plans.len()).map(move |next| (before, next)));
    let is_changed = |&(before, next): &(usize, usize)| {
        let up = |circuit| ends[before].last.get(circuit).copied().unwrap_or(0);
        let mut needed = ends[next].first.iter();
        needed.any(|(circuit, count)| up(circuit) < *count)
    };
    pairs.filter(is_changed).collect()
}

/// First and last circuit of every port that a plan uses.
#[derive(Default)]
struct EndCircuits {
    first: CircuitCounts,
    last: CircuitCounts,
}

impl EndCircuits {
    /// Lists the circuits of a plan; none if the plan has no light.
    fn new(plan: &Plan) -> EndCircuits {
        let plan = plan.clone().into_expanded();
        let Some(circuits) = plan.fabric.circuits().filter(|_| plan.has_light()) else {
            return EndCircuits::default();
        };
        let slots = SlotHops::new(&plan);
        let (mut first, mut last) = (BTreeMap::new(), BTreeMap::new());
        for slot in 0..plan.slots() {
            for &index in slots.hops(slot) {
                let (hop, _) = hop(&plan, index);
                let tuning = circuits.tuning(&hop, &plan.routes);
                if !tuning.is_fixed {
                    let ends = (hop.from, hop.to);
                    first.entry(tuning.transmitter.pool).or_insert(ends);
                    last.insert(tuning.transmitter.pool, ends);
                }
            }
        }
        EndCircuits {
            first: counts(first),
            last: counts(last),
        }
    }
}

/// Counts equal circuits; `ports` has the circuit of each port.
fn counts(ports: BTreeMap<u64, (u32, u32)>) -> CircuitCounts {
    let mut counts = CircuitCounts::new();
    for ends in ports.into_values() {
        *counts.entry(ends).or_default() += 1;
    }
    counts
}

/// Returns the time to set up the first circuits of a plan if the simulated time of the plan does
/// not contain it, and zero otherwise.
///
/// # Errors
/// Fails if the fabric has no circuits, if it does not support `policy`, or if the time exceeds 64
/// bits.
pub fn free_setup(fabric: &Fabric, policy: Policy) -> Result<Time, SimulationError> {
    let circuits = require_circuits(fabric, "circuit")?;
    let refused = |reason| SimulationError::unsupported_policy("circuit", policy, reason);
    let charge = circuits.charge(policy.name()).map_err(refused)?;
    let change = circuits.change()?;
    let is_charged = matches!(
        charge,
        ReconfigurationCharge::Never | ReconfigurationCharge::EverySlot
    );
    Ok(match change.first_free && !is_charged {
        true => change.setup,
        false => Time::ZERO,
    })
}
