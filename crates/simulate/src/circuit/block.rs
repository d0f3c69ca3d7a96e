//! The messages of one slot, or some of them.

use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::Circuit;

/// What goes over a circuit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// The first of its transfers, as an index into the plan.
    pub(super) transfer: u32,
    /// The place in its block of the message with whose light it goes.
    pub(super) leader: u32,
    /// What it carries.
    pub(super) bytes: Bytes,
    /// Bytes over rate.
    pub(super) sending: Time,
    /// Whether its transfer begins here, and whether it arrives.
    pub(super) begins: bool,
    pub(super) arrives: bool,
}

/// Messages of one slot: a column each for them, their hops and their circuits.
#[derive(Default)]
pub(super) struct MessageBlock {
    pub(super) hops: Vec<Hop>,
    pub(super) messages: Vec<Message>,
    pub(super) circuits: Vec<Circuit>,
    /// Messages that go with the light of another, each behind that: by leader, and then by length.
    pub(super) riders: Vec<(u32, u32)>,
    /// What further transfers give to a message on the same circuit: by its place.
    pub(super) joined: Vec<(u32, Message)>,
    /// Each message behind the first of those that start together with it, in order; empty where each starts by itself.
    pub(super) together: Vec<(u32, u32)>,
}

impl MessageBlock {
    /// Every message with its place, hop and circuit.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Hop, &Message, &Circuit)> {
        let columns = self.hops.iter().zip(&self.messages).zip(&self.circuits);
        let rows = (0u32..).zip(columns);
        rows.map(|(place, ((hop, message), circuit))| (place, hop, message, circuit))
    }

    /// What the transfers of a message are alone, the first one's first.
    pub(super) fn parts_of(&self, place: u32) -> impl Iterator<Item = &Message> {
        let start = self.joined.partition_point(|&(one, _)| one < place);
        let joined = self.joined[start..].iter();
        let joined = joined.take_while(move |one| one.0 == place);
        std::iter::once(&self.messages[place as usize]).chain(joined.map(|one| &one.1))
    }

    /// The messages that start together, where that at a place is the first of them; otherwise none.
    pub(super) fn starting_with(&self, place: u32) -> &[(u32, u32)] {
        let start = self.together.partition_point(|&(one, _)| one < place);
        let count = self.together[start..].partition_point(|&(one, _)| one == place);
        &self.together[start..start + count]
    }

    /// A message and those that ride on its light, which comes last.
    pub(super) fn members(&self, leader: u32) -> impl Iterator<Item = usize> + Clone + '_ {
        let riders = self.riders_of(leader).iter().map(|&(_, rider)| rider);
        riders.chain([leader]).map(|place| place as usize)
    }

    /// The messages that go with the light of another, by length.
    pub(super) fn riders_of(&self, leader: u32) -> &[(u32, u32)] {
        let start = self.riders.partition_point(|&(one, _)| one < leader);
        let count = self.riders[start..].partition_point(|&(one, _)| one == leader);
        &self.riders[start..start + count]
    }
}
