//! Which circuits are set, slot after slot.

use rustc_hash::FxHashSet;

use crate::family::wdm_ring::WdmLight;
use crate::plan::Plan;

/// The setting in force: the circuits that were set up last.
pub(super) struct Settings<'a> {
    plan: &'a Plan,
    in_force: FxHashSet<u64>,
}

impl<'a> Settings<'a> {
    pub(super) fn new(plan: &'a Plan) -> Settings<'a> {
        Settings {
            plan,
            in_force: FxHashSet::default(),
        }
    }

    /// Moves to a slot's circuits; whether one of them was not set already.
    pub(super) fn enter(&mut self, transfers: &[u32]) -> bool {
        if transfers
            .iter()
            .all(|&transfer| self.in_force.contains(&self.circuit(transfer)))
        {
            return false;
        }
        let mut circuits = std::mem::take(&mut self.in_force);
        circuits.clear();
        circuits.extend(transfers.iter().map(|&transfer| self.circuit(transfer)));
        self.in_force = circuits;
        true
    }

    /// A number that equal settings share, whatever their order: the sum of a well-mixed 128-bit
    /// hash over the circuits. Two different settings share one with a chance of about 2^-128.
    pub(super) fn fingerprint(&self) -> u128 {
        self.in_force.iter().fold(0u128, |sum, &circuit| {
            let high = u128::from(mix(circuit ^ 0x9e37_79b9_7f4a_7c15));
            sum.wrapping_add(high << 64 | u128::from(mix(circuit)))
        })
    }

    /// Source, destination and light in one word (20 + 20 + 24 bits, of which fibres leave one unused).
    fn circuit(&self, transfer: u32) -> u64 {
        let index = transfer as usize;
        let light = WdmLight::from(self.plan.light[index]);
        let (source, destination) = self.plan.schedule.ends(index);
        let ends = u64::from(source) << 20 | u64::from(destination);
        let channel = (light.direction as u64) << 23
            | u64::from(light.fibre) << 16
            | u64::from(light.wavelength);
        ends << 24 | channel
    }
}

/// The finaliser of the SplitMix64 generator (Steele, Lea and Flood 2014).
fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
