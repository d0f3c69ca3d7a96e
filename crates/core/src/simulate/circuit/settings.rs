//! Which circuits are set, slot after slot.

use rustc_hash::FxHashSet;

use super::slots::hop;
use crate::fabric::Light;
use crate::hash::hash;
use crate::plan::Plan;

/// Both ends and the light of a circuit.
type CircuitEnds = (u64, u32);

/// The setting in force: the circuits that were set up last.
pub(super) struct Settings<'a> {
    plan: &'a Plan,
    /// The light of what goes over no circuit.
    beside: Option<Light>,
    in_force: FxHashSet<CircuitEnds>,
}

impl<'a> Settings<'a> {
    pub(super) fn new(plan: &'a Plan) -> Settings<'a> {
        let circuits = plan.fabric.circuits();
        let beside = circuits.and_then(|circuits| circuits.beside());
        Settings {
            plan,
            beside: beside.map(|(light, _)| light),
            in_force: FxHashSet::default(),
        }
    }

    /// Moves to a slot's circuits; whether one of them was not set already.
    pub(super) fn enter(&mut self, hops: &[u32]) -> bool {
        let (plan, beside) = (self.plan, self.beside);
        let circuits = hops.iter().map(|&index| hop(plan, index).0);
        let circuits = circuits.filter(|hop| beside != Some(hop.light));
        let circuits = circuits.map(|hop| -> CircuitEnds {
            (u64::from(hop.from) << 32 | u64::from(hop.to), hop.light.0)
        });
        if circuits.clone().all(|ends| self.in_force.contains(&ends)) {
            return false;
        }
        self.in_force.clear();
        self.in_force.extend(circuits);
        true
    }

    /// A number that equal settings share, whatever their order: the sum of a well-mixed 128-bit
    /// hash over the circuits. Two different settings share one with a chance of about 2^-128.
    pub(super) fn fingerprint(&self) -> u128 {
        self.in_force.iter().fold(0u128, |sum, &(ends, light)| {
            let light = hash(light.into());
            let high = u128::from(hash(ends ^ light ^ 0x9e37_79b9_7f4a_7c15));
            sum.wrapping_add(high << 64 | u128::from(hash(ends ^ light.rotate_left(32))))
        })
    }
}
