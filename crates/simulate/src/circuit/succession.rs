//! Plans that follow each other on the same ports: the circuits with which a plan starts, and those
//! that it leaves behind.

use std::collections::BTreeMap;

use super::slots::{SlotHops, hop};
use crate::{Policy, SimulationError, require_circuits};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::circuits::{Circuits, ReconfigurationCharge};
use opticoll_fabric::fabric::{Fabric, Hop};
use opticoll_plan::plan::Plan;

/// Direction of the ports of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Ports that send.
    Out,
    /// Ports that receive.
    In,
}

/// Circuits of a rank's ports in one direction at both ends of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankCircuits {
    /// Ranks at the other ends of the circuits that are up when the plan starts, one for each port.
    pub first: Vec<u32>,
    /// Ranks at the other ends of the circuits that are up when the plan ends.
    pub last: Vec<u32>,
    /// Number of ports that the plan uses.
    pub ports: usize,
}

/// Circuits at both ends of a plan, indexed by rank and direction.
#[derive(Debug, Clone, Default)]
pub struct EndCircuits(BTreeMap<(u32, Direction), RankCircuits>);

impl EndCircuits {
    /// Lists the circuits of a plan; none if the plan has no light.
    ///
    /// A circuit is up when the plan starts if no earlier circuit uses one of its two ports.
    pub fn new(plan: &Plan) -> EndCircuits {
        let mut ranks = BTreeMap::<(u32, Direction), RankCircuits>::new();
        let mut up = BTreeMap::new();
        let mut used = BTreeMap::new();
        for_each_circuit(plan, |hop, out, into| {
            let before = [used.insert(out, ()), used.insert(into, ())];
            let ends = [
                (hop.from, Direction::Out, hop.to),
                (hop.to, Direction::In, hop.from),
            ];
            for ((rank, direction, peer), was_used) in ends.into_iter().zip(before) {
                let circuits = ranks.entry((rank, direction)).or_default();
                circuits.ports += usize::from(was_used.is_none());
                if before == [None, None] {
                    circuits.first.push(peer);
                }
            }
            // The circuit takes both of its ports from other circuits.
            up.retain(|&(other_out, other_into), _| other_out != out && other_into != into);
            up.insert((out, into), (hop.from, hop.to));
        });
        for (from, to) in up.into_values() {
            for (rank, direction, peer) in [(from, Direction::Out, to), (to, Direction::In, from)] {
                let circuits = ranks.entry((rank, direction)).or_default();
                circuits.last.push(peer);
            }
        }
        EndCircuits(ranks)
    }

    /// Returns the circuits of a rank in one direction; `None` if the plan uses no port there.
    pub fn rank_circuits(&self, rank: u32, direction: Direction) -> Option<&RankCircuits> {
        self.0.get(&(rank, direction))
    }

    /// Returns the largest number of ports that a rank uses in one direction.
    pub fn max_ports(&self) -> usize {
        self.0
            .values()
            .map(|circuits| circuits.ports)
            .max()
            .unwrap_or(0)
    }
}

/// Circuits of a rank's ports in one direction, from one plan to the next.
#[derive(Debug, Clone, Default)]
pub struct RankPorts {
    /// Ranks at the other ends of the circuits that are up; the circuits used latest stand last.
    up: Vec<u32>,
    /// Number of ports that were used before.
    used: usize,
}

impl RankPorts {
    /// Uses the circuits of a plan. Returns whether circuits must be set up before the plan. A port
    /// that was not used before has its circuit from the beginning. `ports` is the number of ports.
    pub fn pass(&mut self, next: &RankCircuits, ports: usize) -> bool {
        let mut others = self.up.clone();
        let mut missing = 0;
        for peer in &next.first {
            match others.iter().rposition(|other| other == peer) {
                Some(place) => drop(others.remove(place)),
                None => missing += 1,
            }
        }
        let unused = ports.saturating_sub(self.used);
        let reused = next.first.len() - missing;
        self.used += next.ports.saturating_sub(reused).min(unused);
        let kept = ports.saturating_sub(next.ports).min(others.len());
        self.up = others.split_off(others.len() - kept);
        self.up.extend(&next.last);
        missing > unused
    }
}

/// Returns whether all circuits of `plans` can be up at the same time: each port has one circuit.
pub fn agree(plans: &[&Plan]) -> bool {
    let mut joined = [BTreeMap::new(), BTreeMap::new()];
    let mut agreed = true;
    for plan in plans {
        for_each_circuit(plan, |_, out, into| {
            agreed &= *joined[0].entry(out).or_insert(into) == into;
            agreed &= *joined[1].entry(into).or_insert(out) == out;
        });
    }
    agreed
}

/// Calls `visit` for each circuit of each slot, with its hop and the numbers of its two ports.
fn for_each_circuit(plan: &Plan, mut visit: impl FnMut(&Hop, u64, u64)) {
    let plan = plan.clone().into_expanded();
    let Some(circuits) = plan.fabric.circuits().filter(|_| plan.has_light()) else {
        return;
    };
    let slots = SlotHops::new(&plan);
    let circuits: &dyn Circuits = circuits;
    for slot in 0..plan.slots() {
        for &index in slots.hops(slot) {
            let (hop, _) = hop(&plan, index);
            let tuning = circuits.tuning(&hop, &plan.routes);
            if !tuning.is_fixed {
                visit(&hop, tuning.transmitter.pool, tuning.receiver.pool);
            }
        }
    }
}

/// Returns the time of a setup between two plans; zero if `policy` charges no setup, or if the time
/// of each plan contains its first setup.
///
/// # Errors
/// Fails if the fabric has no circuits, if it does not support `policy`, or if the time exceeds 64
/// bits.
pub fn uncharged_setup(fabric: &Fabric, policy: Policy) -> Result<Time, SimulationError> {
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
