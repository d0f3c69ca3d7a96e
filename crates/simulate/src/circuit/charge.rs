//! What changes of circuits cost, slot by slot.

use super::PlanRun;
use super::block::MessageBlock;
use super::groups::CircuitGroups;
use super::settings::Settings;
use super::slots::SlotHops;
use crate::SimulationError;
use opticoll_base::ports::Ports;
use opticoll_base::units::{Time, UnitError};
use opticoll_fabric::fabric::circuits::{Change, Charge, Circuits, Tuning};
use opticoll_plan::plan::Plan;

/// What a policy has charged so far.
pub(super) struct Charging<'a> {
    slots: &'a SlotHops,
    circuits: &'a dyn Circuits,
    change: Change,
    state: ChargeState<'a>,
    /// Whether the next setting is the first, and there from the beginning.
    is_free: bool,
    reconfigurations: u64,
}

enum ChargeState<'a> {
    Never,
    EverySlot,
    NewSetting(Settings<'a>),
    EachCircuit,
    ChangedCircuit {
        /// With the slot after that of the last message.
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
            Charge::EverySlot => ChargeState::EverySlot,
            Charge::NewSetting => {
                let is_folded = run.period < plan.fabric.ranks();
                ChargeState::NewSetting(Settings::new(plan, is_folded))
            }
            Charge::EachCircuit => ChargeState::EachCircuit,
            Charge::ChangedCircuit => ChargeState::ChangedCircuit {
                transmitters: Ports::default(),
                tunings: Vec::new(),
            },
            Charge::Groups { each_slot } => ChargeState::Groups(CircuitGroups::new(
                plan, circuits, slots, each_slot, run.paths,
            )?),
            Charge::Never | Charge::ChangedPort | Charge::ChangedPlane => ChargeState::Never,
        };
        let change = circuits.change()?;
        Ok(Charging {
            slots,
            circuits,
            change,
            state,
            is_free: change.first_free,
            reconfigurations: 0,
        })
    }

    /// What all messages of a slot wait for.
    pub(super) fn before(&mut self, slot: u32) -> Result<Time, UnitError> {
        let charged = match &mut self.state {
            ChargeState::EverySlot => true,
            ChargeState::NewSetting(settings) => settings.enter(self.slots.of_slot(slot)),
            ChargeState::Groups(groups) => {
                let mut before = groups.enter(slot);
                if before.set_ups > 0 && std::mem::take(&mut self.is_free) {
                    before.set_ups = 0;
                }
                self.reconfigurations += before.set_ups;
                let released = self.change.release.times(before.releases)?;
                return released.plus(self.change.set_up.times(before.set_ups)?);
            }
            ChargeState::Never | ChargeState::EachCircuit | ChargeState::ChangedCircuit { .. } => {
                false
            }
        };
        if !charged {
            return Ok(Time::ZERO);
        }
        self.reconfigurations += u64::from(self.change.set_up > Time::ZERO);
        Ok(self.change.set_up)
    }

    /// Goes on to the messages of a block.
    pub(super) fn look_at(&mut self, block: &MessageBlock) {
        if let ChargeState::ChangedCircuit { tunings, .. } = &mut self.state {
            tunings.clear();
            self.circuits.tune(&block.hops, tunings);
        }
    }

    /// What one message of the block waits for beyond that, by its place.
    #[inline]
    pub(super) fn of(&mut self, place: u32, slot: u32) -> Time {
        let charged = match &mut self.state {
            ChargeState::EachCircuit => true,
            ChargeState::ChangedCircuit {
                transmitters,
                tunings,
            } => {
                let port = tunings[place as usize].transmitter;
                let taken = transmitters.take(port, |since| since);
                transmitters.set(port, taken.place, slot + 1);
                !taken.holds || taken.before.is_none_or(|(_, since)| since != slot)
            }
            _ => return Time::ZERO,
        };
        self.reconfigurations += u64::from(charged);
        match charged {
            true => self.change.set_up,
            false => Time::ZERO,
        }
    }

    /// What follows the last message of a slot.
    pub(super) fn after(&self, slot: u32) -> Time {
        match &self.state {
            ChargeState::Groups(groups) if groups.releases_after(slot) => self.change.release,
            _ => Time::ZERO,
        }
    }

    /// How often circuits were changed.
    pub(super) fn reconfigurations(&self) -> u64 {
        self.reconfigurations
    }
}
