//! What is still to be sent without barriers, so that a run is given up as soon as it cannot end in time.
//!
//! Messages pass a channel of a line one after the other, in the order of the plan. Each holds it from its start to its
//! end, and a message for which a port changes starts no earlier than a reconfiguration after the channel is free. Where each pool has
//! one port, the plan says which messages those are. So no run ends before the time from which a channel is free and all
//! that is still to pass it.

use std::ops::Range;

use super::block::MessageBlock;
use crate::SimulationError;
use opticoll_base::ports::PoolNumbers;
use opticoll_base::units::Time;
use opticoll_fabric::fabric::circuits::{Change, Port, Tuning};

/// By channel of a line: the time that it takes at least after what has passed it.
pub(super) struct Remaining {
    of_places: Vec<u64>,
    limit: Time,
}

/// What messages add to the channels of lines.
pub(super) struct Added {
    /// By channel of a line: what begins there less what ended before it.
    changes: Vec<u64>,
    /// So many more messages are added before the sums are looked at.
    unseen: usize,
    limit: Time,
}

impl Added {
    pub(super) fn new(places: usize, limit: Time) -> Added {
        Added {
            changes: vec![0; places + 1],
            unseen: places,
            limit,
        }
    }

    /// Adds a message to ranges of places.
    ///
    /// # Errors
    /// All messages so far do not end within the limit.
    pub(super) fn add(
        &mut self,
        places: [Range<usize>; 4],
        taken: Time,
    ) -> Result<(), SimulationError> {
        for Range { start, end } in places.into_iter().filter(|range| !range.is_empty()) {
            self.changes[start] = self.changes[start].wrapping_add(taken.ps());
            self.changes[end] = self.changes[end].wrapping_sub(taken.ps());
        }
        match self.unseen.checked_sub(1) {
            Some(unseen) => self.unseen = unseen,
            None => {
                self.unseen = self.changes.len();
                self.check()?;
            }
        }
        Ok(())
    }

    fn sums(&self) -> impl Iterator<Item = u64> {
        let changes = self.changes.iter();
        changes.scan(0u64, |sum, &change| {
            *sum = sum.wrapping_add(change);
            Some(*sum)
        })
    }

    fn check(&self) -> Result<(), SimulationError> {
        let most = Time::from_ps(self.sums().max().unwrap_or(0));
        super::give_up_past(Some(self.limit), most)
    }

    /// What is to pass each channel.
    ///
    /// # Errors
    /// It does not end within the limit.
    pub(super) fn remaining(self) -> Result<Remaining, SimulationError> {
        self.check()?;
        Ok(Remaining {
            of_places: self.sums().collect(),
            limit: self.limit,
        })
    }
}

impl Remaining {
    /// Lets a message pass ranges of places that takes so long and ends at a time.
    ///
    /// # Errors
    /// What is still to pass does not end within the limit.
    pub(super) fn pass(
        &mut self,
        places: [Range<usize>; 4],
        taken: Time,
        end: Time,
    ) -> Result<(), SimulationError> {
        let mut most = 0;
        for places in places {
            for left in &mut self.of_places[places] {
                *left = left.saturating_sub(taken.ps());
                most = most.max(*left);
            }
        }
        super::give_up_past(Some(self.limit), end.plus(Time::from_ps(most))?)
    }
}

/// Which messages change ports, as far as the plan says.
pub(super) struct PortStates {
    change: Change,
    pools: PoolNumbers,
    /// Of pools by number.
    states: Vec<u64>,
}

impl PortStates {
    pub(super) fn new(change: Change) -> PortStates {
        PortStates {
            change,
            pools: PoolNumbers::default(),
            states: Vec::new(),
        }
    }

    /// Sets the ports of a message and its riders: what it waits for at least.
    pub(super) fn enter(&mut self, block: &MessageBlock, tunings: &[Tuning], leader: u32) -> Time {
        let own = &tunings[leader as usize];
        let mut changes = self.set(own.transmitter);
        for member in block.members(leader) {
            changes |= self.set(tunings[member].receiver);
        }
        match changes && !own.is_fixed && are_alone(block, tunings, leader) {
            true => self.change.set_up,
            false => Time::ZERO,
        }
    }

    /// Whether a port changes.
    fn set(&mut self, port: Port) -> bool {
        let number = self.pools.number(port.pool) as usize;
        match self.states.get_mut(number) {
            Some(state) => std::mem::replace(state, port.state) != port.state,
            None => {
                self.states.push(port.state);
                !self.change.first_free
            }
        }
    }
}

/// Whether each port of a message and its riders is the only one of its pool.
pub(super) fn are_alone(block: &MessageBlock, tunings: &[Tuning], leader: u32) -> bool {
    let mut receivers = block.members(leader).map(|member| tunings[member].receiver);
    tunings[leader as usize].transmitter.size == 1 && receivers.all(|port| port.size == 1)
}
