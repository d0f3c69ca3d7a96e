//! Messages of a slot, with their circuits.

use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::Circuit;

/// Bytes that are sent over one circuit in one slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// Index in the plan of the message's first transfer.
    pub(super) transfer: u32,
    /// Index of the leader of the message's light tree (see `trees`), or of the message itself.
    pub(super) leader: u32,
    pub(super) bytes: Bytes,
    pub(super) sending: Time,
    /// True if the message's circuit is the first circuit of `transfer`.
    pub(super) begins: bool,
    /// True if the message's circuit is the last circuit of `transfer`.
    pub(super) arrives: bool,
}

/// Messages of a slot; `hops`, `messages` and `circuits` are indexed by message.
#[derive(Default)]
pub(super) struct MessageBlock {
    pub(super) hops: Vec<Hop>,
    pub(super) messages: Vec<Message>,
    pub(super) circuits: Vec<Circuit>,
    /// Pairs of the indices of two messages of a light tree: the leader and a rider (see `trees`).
    /// Sorted by leader, and then by the rider's number of links.
    pub(super) riders: Vec<(u32, u32)>,
    /// Pairs of a message's index and a transfer that shares the message's circuit, sorted by
    /// index. The message's first transfer is not in the list.
    pub(super) joined: Vec<(u32, Message)>,
    /// Pairs of indices of messages that start together: the first message of a set, and any
    /// message of the set. Sorted; empty if each message starts alone.
    pub(super) start_sets: Vec<(u32, u32)>,
}

impl MessageBlock {
    /// Returns the index, hop, message and circuit of every message.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Hop, &Message, &Circuit)> {
        let columns = self.hops.iter().zip(&self.messages).zip(&self.circuits);
        let rows = (0u32..).zip(columns);
        rows.map(|(index, ((hop, message), circuit))| (index, hop, message, circuit))
    }

    /// Returns the transfers of a message as separate messages, the first transfer first.
    pub(super) fn parts_of(&self, index: u32) -> impl Iterator<Item = &Message> {
        let start = self.joined.partition_point(|&(message, _)| message < index);
        let joined = self.joined[start..].iter();
        let joined = joined.take_while(move |(message, _)| *message == index);
        std::iter::once(&self.messages[index as usize]).chain(joined.map(|(_, part)| part))
    }

    /// Returns the pairs of `start_sets` whose first message is `index`.
    pub(super) fn starting_with(&self, index: u32) -> &[(u32, u32)] {
        let start = self.start_sets.partition_point(|&(first, _)| first < index);
        let count = self.start_sets[start..].partition_point(|&(first, _)| first == index);
        &self.start_sets[start..start + count]
    }

    /// Returns the indices of all messages of the light tree with this leader; the leader is last.
    pub(super) fn members(&self, leader: u32) -> impl Iterator<Item = usize> + Clone + '_ {
        let riders = self.riders_of(leader).iter().map(|&(_, rider)| rider);
        riders.chain([leader]).map(|index| index as usize)
    }

    pub(super) fn riders_of(&self, leader: u32) -> &[(u32, u32)] {
        let start = self.riders.partition_point(|&(other, _)| other < leader);
        let count = self.riders[start..].partition_point(|&(other, _)| other == leader);
        &self.riders[start..start + count]
    }
}
