//! What changes of circuits cost, slot by slot.

use super::groups::Groups;
use super::messages::Slots;
use super::settings::Settings;
use crate::fabric::Light;
use crate::fabric::circuits::{Change, Charge, Circuits, Message};
use crate::plan::Plan;
use crate::simulate::{Paths, SimulationError};
use crate::units::{Time, UnitError};

/// What a policy has charged so far.
pub(super) struct Charging<'a> {
    slots: &'a Slots,
    change: Change,
    state: State<'a>,
    reconfigurations: u64,
}

enum State<'a> {
    Never,
    EverySlot,
    NewSetting(Settings<'a>),
    EachCircuit,
    /// By transmitter: the circuit of its last message, and the slot after it.
    ChangedCircuit(Vec<Option<(u32, Light, u32)>>),
    Groups(Groups<'a>),
}

impl<'a> Charging<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        circuits: &'a dyn Circuits,
        slots: &'a Slots,
        charge: Charge,
        paths: Paths,
    ) -> Result<Charging<'a>, SimulationError> {
        let lines = circuits.lines();
        let state = match charge {
            Charge::EverySlot => State::EverySlot,
            Charge::NewSetting => State::NewSetting(Settings::new(plan)),
            Charge::EachCircuit => State::EachCircuit,
            Charge::ChangedCircuit => {
                State::ChangedCircuit(vec![None; lines.rows as usize * lines.ranks as usize])
            }
            Charge::Groups { each_slot } => {
                State::Groups(Groups::new(plan, circuits, slots, each_slot, paths))
            }
            Charge::Never | Charge::ChangedPort => State::Never,
        };
        Ok(Charging {
            slots,
            change: circuits.change()?,
            state,
            reconfigurations: 0,
        })
    }

    /// What all messages of a slot wait for.
    pub(super) fn before(&mut self, slot: u32) -> Result<Time, UnitError> {
        let charged = match &mut self.state {
            State::EverySlot => true,
            State::NewSetting(settings) => settings.enter(self.slots.of_slot(slot)),
            State::Groups(groups) => {
                let before = groups.enter(slot);
                self.reconfigurations += before.set_ups;
                let released = self.change.release.times(before.releases)?;
                return released.plus(self.change.set_up.times(before.set_ups)?);
            }
            State::Never | State::EachCircuit | State::ChangedCircuit(_) => false,
        };
        if !charged {
            return Ok(Time::ZERO);
        }
        self.reconfigurations += u64::from(self.change.set_up > Time::ZERO);
        Ok(self.change.set_up)
    }

    /// What one message waits for beyond that.
    pub(super) fn of(&mut self, message: &Message) -> Time {
        let charged = match &mut self.state {
            State::EachCircuit => true,
            State::ChangedCircuit(last) => {
                let hop = &message.hop;
                let transmitter = &mut last[message.lines[0].start as usize];
                let before = transmitter.replace((hop.to, hop.light, hop.slot + 1));
                before != Some((hop.to, hop.light, hop.slot))
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
            State::Groups(groups) if groups.releases_after(slot) => self.change.release,
            _ => Time::ZERO,
        }
    }

    /// How often circuits were changed.
    pub(super) fn reconfigurations(&self) -> u64 {
        self.reconfigurations
    }
}
