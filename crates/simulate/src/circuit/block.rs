//! Messages of one slot, or of a part of a slot.

use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::Circuit;

/// Bytes that go over a circuit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// First transfer of the message, as an index into the plan.
    pub(super) transfer: u32,
    /// Index in its block of the message whose light it shares; its own index if it shares no other
    /// light.
    pub(super) leader: u32,
    /// Bytes carried.
    pub(super) bytes: Bytes,
    /// Transmission time of the bytes.
    pub(super) sending: Time,
    /// True if this is the first circuit of its transfer.
    pub(super) begins: bool,
    /// True if this is the last circuit of its transfer.
    pub(super) arrives: bool,
}

/// Messages of a slot, with a column each for hops, messages and circuits.
#[derive(Default)]
pub(super) struct MessageBlock {
    pub(super) hops: Vec<Hop>,
    pub(super) messages: Vec<Message>,
    pub(super) circuits: Vec<Circuit>,
    /// Pairs of a leader and a message that shares its light, sorted by leader and then by length.
    pub(super) riders: Vec<(u32, u32)>,
    /// Further transfers on the circuit of a message, with the message's index, sorted by index.
    pub(super) joined: Vec<(u32, Message)>,
    /// Pairs of the first message of a set that starts together and a message of that set, sorted;
    /// empty if each message starts by itself.
    pub(super) start_sets: Vec<(u32, u32)>,
}

impl MessageBlock {
    /// Returns every message with its index, hop and circuit.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Hop, &Message, &Circuit)> {
        let columns = self.hops.iter().zip(&self.messages).zip(&self.circuits);
        let rows = (0u32..).zip(columns);
        rows.map(|(place, ((hop, message), circuit))| (place, hop, message, circuit))
    }

    /// Returns the transfers of a message as single messages, starting with the first transfer.
    pub(super) fn parts_of(&self, place: u32) -> impl Iterator<Item = &Message> {
        let start = self.joined.partition_point(|&(message, _)| message < place);
        let joined = self.joined[start..].iter();
        let joined = joined.take_while(move |(message, _)| *message == place);
        std::iter::once(&self.messages[place as usize]).chain(joined.map(|(_, part)| part))
    }

    /// Returns the set of messages that start together if `place` is the first of them, otherwise
    /// an empty slice.
    pub(super) fn starting_with(&self, place: u32) -> &[(u32, u32)] {
        let start = self.start_sets.partition_point(|&(first, _)| first < place);
        let count = self.start_sets[start..].partition_point(|&(first, _)| first == place);
        &self.start_sets[start..start + count]
    }

    /// Returns the riders of a message, then the message.
    pub(super) fn members(&self, leader: u32) -> impl Iterator<Item = usize> + Clone + '_ {
        let riders = self.riders_of(leader).iter().map(|&(_, rider)| rider);
        riders.chain([leader]).map(|place| place as usize)
    }

    /// Returns the riders of a leader, sorted by length.
    pub(super) fn riders_of(&self, leader: u32) -> &[(u32, u32)] {
        let start = self.riders.partition_point(|&(other, _)| other < leader);
        let count = self.riders[start..].partition_point(|&(other, _)| other == leader);
        &self.riders[start..start + count]
    }
}
