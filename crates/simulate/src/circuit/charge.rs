//! Reconfiguration time that a policy charges, slot by slot.

use super::PlanRun;
use super::block::MessageBlock;
use super::configuration::Configuration;
use super::groups::CircuitGroups;
use super::slots::{SlotHops, hop};
use crate::SimulationError;
use opticoll_base::ports::Ports;
use opticoll_base::units::{Time, UnitError};
use opticoll_fabric::fabric::circuits::{Change, Circuits, ReconfigurationCharge, Tuning};
use opticoll_plan::plan::Plan;

/// Charging rule of a policy. The state advances slot by slot.
pub(super) struct Charging<'a> {
    plan: &'a Plan,
    slots: &'a SlotHops,
    circuits: &'a dyn Circuits,
    change: Change,
    state: ChargeState<'a>,
    /// True if the next setup is the first, and the first setup is free.
    is_free: bool,
    reconfigurations: u64,
}

enum ChargeState<'a> {
    Never,
    EverySlot,
    NewConfiguration(Box<Configuration<'a>>),
    EachCircuit,
    ChangedCircuit {
        /// Slot after the last slot with a message, for each transmitter.
        transmitters: Ports<u32>,
        tunings: Vec<Tuning>,
    },
    Groups(CircuitGroups<'a>),
}

impl<'a> Charging<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        circuits: &'a dyn Circuits,
        slots: &'a SlotHops,
        run: PlanRun,
    ) -> Result<Charging<'a>, SimulationError> {
        let state = match run.charge {
            ReconfigurationCharge::EverySlot => ChargeState::EverySlot,
            ReconfigurationCharge::NewConfiguration => {
                let is_rotation_symmetric = run.period < plan.fabric.ranks();
                let configuration = Configuration::new(plan, is_rotation_symmetric);
                ChargeState::NewConfiguration(Box::new(configuration))
            }
            ReconfigurationCharge::EachCircuit => ChargeState::EachCircuit,
            ReconfigurationCharge::ChangedCircuit => ChargeState::ChangedCircuit {
                transmitters: Ports::default(),
                tunings: Vec::new(),
            },
            ReconfigurationCharge::Groups { each_slot } => ChargeState::Groups(CircuitGroups::new(
                plan, circuits, slots, each_slot, run.paths,
            )?),
            ReconfigurationCharge::Never
            | ReconfigurationCharge::ChangedPort
            | ReconfigurationCharge::ChangedPlane => ChargeState::Never,
        };
        let change = circuits.change()?;
        Ok(Charging {
            plan,
            slots,
            circuits,
            change,
            state,
            is_free: change.first_free,
            reconfigurations: 0,
        })
    }

    /// Returns the reconfiguration time before a slot, for which all messages of the slot wait.
    pub(super) fn charge_before(&mut self, slot: u32) -> Result<Time, UnitError> {
        let charged = match &mut self.state {
            ChargeState::EverySlot => !self.has_packets_only(slot),
            ChargeState::NewConfiguration(configuration) => {
                configuration.enter(self.slots.hops(slot))
            }
            ChargeState::Groups(groups) => {
                let mut changes = groups.enter(slot);
                if changes.setups > 0 && std::mem::take(&mut self.is_free) {
                    changes.setups = 0;
                }
                self.reconfigurations += changes.setups;
                let released = self.change.teardown.times(changes.releases)?;
                return released.plus(self.change.setup.times(changes.setups)?);
            }
            ChargeState::Never | ChargeState::EachCircuit | ChargeState::ChangedCircuit { .. } => {
                false
            }
        };
        if !charged {
            return Ok(Time::ZERO);
        }
        self.reconfigurations += u64::from(self.change.setup > Time::ZERO);
        Ok(self.change.setup)
    }

    /// Returns whether a slot has messages and all of them use the side network, which has no
    /// circuits to set.
    fn has_packets_only(&self, slot: u32) -> bool {
        let Some((packet, _)) = self.circuits.side_network() else {
            return false;
        };
        let mut hops = self.slots.hops(slot).iter().peekable();
        hops.peek().is_some() && hops.all(|&index| hop(self.plan, index).0.light == packet)
    }

    /// Stores the ports of a block's messages for [`Charging::message_charge`].
    pub(super) fn load_block(&mut self, block: &MessageBlock) {
        if let ChargeState::ChangedCircuit { tunings, .. } = &mut self.state {
            tunings.clear();
            let hops = block.hops.iter();
            tunings.extend(hops.map(|hop| self.circuits.tuning(hop, &self.plan.routes)));
        }
    }

    /// Returns the reconfiguration time before the message `index` of the block.
    #[inline]
    pub(super) fn message_charge(&mut self, index: u32, slot: u32) -> Time {
        let charged = match &mut self.state {
            ChargeState::EachCircuit => true,
            ChargeState::ChangedCircuit {
                transmitters,
                tunings,
            } => {
                let port = tunings[index as usize].transmitter;
                let taken = transmitters.take(port, |since| since);
                transmitters.set(port, taken.place, slot + 1);
                !taken.holds || taken.before.is_none_or(|(_, since)| since != slot)
            }
            _ => return Time::ZERO,
        };
        self.reconfigurations += u64::from(charged);
        match charged {
            true => self.change.setup,
            false => Time::ZERO,
        }
    }

    /// Returns the time to release circuits after the last message of a slot.
    pub(super) fn charge_after(&self, slot: u32) -> Time {
        match &self.state {
            ChargeState::Groups(groups) if groups.releases_after(slot) => self.change.teardown,
            _ => Time::ZERO,
        }
    }

    pub(super) fn reconfigurations(&self) -> u64 {
        self.reconfigurations
    }
}
