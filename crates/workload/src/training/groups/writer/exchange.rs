//! Exchanges beside the device: collectives of groups of ranks, and messages between the ranks of a
//! context-parallel group.

use std::ops::Range;

use super::super::super::TrainingError;
use super::super::program::{Carrier, GroupCollective, Role};
use super::super::{GroupKind, RankPlace};
use super::{RankWriter, WAITS, work};
use crate::program::Call;
use crate::trace::Event;
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;
use opticoll_simulate::circuit::succession::{Direction, RankCircuits};

/// Exchange that has started.
pub(super) struct Exchange {
    group: GroupKind,
    /// Events of the exchange; the last one ends with the exchange.
    events: Range<u32>,
    /// Latest event of the device when the exchange started.
    device: Option<u32>,
}

impl Exchange {
    /// Returns the index of the event that ends with the exchange.
    pub(super) fn last(&self) -> u32 {
        self.events.end - 1
    }
}

/// Returns the index of the processor that executes the exchanges of a kind of group.
pub(super) fn stream(group: GroupKind) -> u8 {
    match group {
        GroupKind::Tensor => 2,
        GroupKind::Context => 3,
        GroupKind::Expert => 4,
        GroupKind::Pipeline => 5,
        GroupKind::Data | GroupKind::ExpertData => 6,
    }
}

impl RankWriter<'_> {
    /// Writes an exchange for which the device waits.
    pub(super) fn blocking(&mut self, collective: GroupCollective) -> Result<(), TrainingError> {
        let exchange = self.start(collective, None)?;
        self.wait(exchange);
        Ok(())
    }

    /// Writes an exchange that starts after the device's latest event and after the event
    /// `besides`.
    pub(super) fn start(
        &mut self,
        collective: GroupCollective,
        besides: Option<u32>,
    ) -> Result<Exchange, TrainingError> {
        *self.counts.entry(collective).or_default() += 1;
        let processor = match collective.kind {
            // Copies of an expert add up their gradients on the stream of the replicas.
            Some(CollectiveKind::AllReduce) if collective.group == GroupKind::Expert => {
                stream(GroupKind::Data)
            }
            _ => stream(collective.group),
        };
        let role = Role::Beside(collective.group);
        let first = self.events.len() as u32;
        let before = [self.device, besides];
        match (self.time(&collective)?, collective.kind) {
            (Some(time), _) => {
                let free = self.latest_on_ports(&collective);
                let setup = self.pass_collective(&collective, time);
                let before = [self.device, besides, free];
                let barrier = self.barrier(collective.group, processor);
                let before = match barrier {
                    Some(event) => [Some(self.push(event, before, role)), None, None],
                    None => before,
                };
                let event = self.push(work(time.plus(setup)?, processor), before, role);
                self.hold_ports(&collective, time, event);
            }
            (None, Some(_)) => {
                let event = self.event(&collective, processor);
                self.push(event, before, role);
            }
            (None, None) => self.shift(collective.bytes, before),
        }
        Ok(Exchange {
            group: collective.group,
            events: first..self.events.len() as u32,
            device: self.device,
        })
    }

    /// Returns the event that ends the latest collective on the ports of a collective, if ports are
    /// shared.
    pub(super) fn latest_on_ports(&self, next: &GroupCollective) -> Option<u32> {
        let Carrier::Times(_, shared) = self.carrier else {
            return None;
        };
        self.latest.get(&shared?.set_of[next]).copied()
    }

    /// Notes that the ports of a collective are in use until the event `last`, unless nothing is
    /// sent.
    pub(super) fn hold_ports(&mut self, used: &GroupCollective, time: Time, last: u32) {
        if let (Carrier::Times(_, Some(shared)), true) = (self.carrier, time > Time::ZERO) {
            self.latest.insert(shared.set_of[used], last);
        }
    }

    /// Returns the time to set up circuits before a collective, and notes the circuits that it
    /// leaves.
    fn pass_collective(&mut self, collective: &GroupCollective, time: Time) -> Time {
        let Carrier::Times(_, Some(shared)) = self.carrier else {
            return Time::ZERO;
        };
        let Some(circuits) = shared.circuits.get(collective) else {
            return Time::ZERO;
        };
        let rank = self.training.groups.rank(self.place);
        let set = shared.set_of[collective];
        let mut sets_up = false;
        for direction in [Direction::Out, Direction::In] {
            if let Some(next) = circuits.rank_circuits(rank, direction) {
                let ports = self.ports.entry((set, direction)).or_default();
                sets_up |= ports.pass(next, shared.ports);
            }
        }
        self.setups += u64::from(sets_up);
        match sets_up && time > Time::ZERO {
            true => shared.setup,
            false => Time::ZERO,
        }
    }

    /// Returns whether circuits of the rank must be set up before a message between stages, and
    /// notes the circuits of the message. `peer` is the rank at the other end.
    pub(super) fn pass_message(&mut self, peer: u32, direction: Direction) -> bool {
        let Carrier::Times(_, Some(shared)) = self.carrier else {
            return false;
        };
        let message = self.message();
        let Some(circuits) = shared.circuits.get(&message) else {
            return false;
        };
        // Plans name the ranks of the fabric, of which the trace may have a part.
        let peer = self.training.groups.rank(self.groups.place(peer));
        let peers = vec![peer; circuits.max_ports()];
        let next = RankCircuits {
            first: peers.clone(),
            ports: peers.len(),
            last: peers,
        };
        let ports = self.ports.entry((shared.set_of[&message], direction));
        ports.or_default().pass(&next, shared.ports)
    }

    /// Writes the device's wait for the end of an exchange.
    pub(super) fn wait(&mut self, exchange: Exchange) {
        let last = Some(exchange.last());
        if self.device == exchange.device {
            // Nothing is computed in the meantime, so the exchange is the device's next event.
            for event in exchange.events {
                let role = &mut self.roles[event as usize];
                *role = match *role {
                    Role::Beside(group) => Role::Blocking(group),
                    _ if Some(event) == last => Role::Waiting(exchange.group),
                    other => other,
                };
            }
            self.device = last;
        } else {
            let role = Role::Waiting(exchange.group);
            self.push_on_device(work(Time::ZERO, WAITS), last, role);
        }
    }

    /// Writes a message of `bytes` to the next rank of the context-parallel group, and one from the
    /// rank before.
    fn shift(&mut self, bytes: u64, before: [Option<u32>; 2]) {
        let ranks = self.groups.context;
        let rank = |distance: u32| {
            self.groups.rank(RankPlace {
                context: (self.place.context + distance) % ranks,
                ..self.place
            })
        };
        let (next, previous) = (rank(1), rank(ranks - 1));
        let message = Event {
            bytes,
            tag: self.shifts,
            processor: stream(GroupKind::Context),
            ..Event::NOTHING
        };
        let sent = Event {
            peer: next,
            call: Call::Send,
            ..message
        };
        let received = Event {
            peer: previous,
            call: Call::Receive,
            ..message
        };
        self.shifts += 1;
        let sent = self.push(sent, before, Role::Nothing);
        let received = self.push(received, before, Role::Beside(GroupKind::Context));
        let both = [Some(sent), Some(received)];
        self.push(work(Time::ZERO, WAITS), both, Role::Nothing);
    }

    /// Returns the given time of a collective, or `None` if the collective is sent as messages.
    pub(super) fn time(&self, collective: &GroupCollective) -> Result<Option<Time>, TrainingError> {
        match self.carrier {
            Carrier::Replay => Ok(None),
            Carrier::Times(times, _) => {
                let time = times.get(collective).copied();
                let missing = || {
                    let kind = collective.kind.map_or("message", CollectiveKind::name);
                    let group = collective.group.name();
                    TrainingError::Groups(format!(
                        "the time of the {kind} of {} bytes of {group} groups is not given",
                        collective.bytes
                    ))
                };
                time.map(Some).ok_or_else(missing)
            }
        }
    }

    /// Returns the communicator of the rank's group of this kind, and the number of members that
    /// the group has in the trace.
    fn group(&mut self, kind: GroupKind) -> (u32, u32) {
        if let Some(&group) = self.rank_groups.get(&kind) {
            return group;
        }
        let members = self.groups.members(kind, self.place);
        let ranks = members.len() as u32;
        let group = (self.communicators.number(members), ranks);
        self.rank_groups.insert(kind, group);
        group
    }

    /// Returns the event in which the rank enters a collective.
    fn event(&mut self, collective: &GroupCollective, processor: u8) -> Event {
        let (communicator, _) = self.group(collective.group);
        let call = match collective.kind {
            Some(CollectiveKind::AllReduce) => Call::AllReduce,
            Some(CollectiveKind::ReduceScatter) => Call::ReduceScatter,
            Some(CollectiveKind::AllGather) => Call::AllGather,
            Some(CollectiveKind::AllToAll) if collective.uneven.is_some() => Call::AllToAllVarious,
            Some(CollectiveKind::AllToAll) => Call::AllToAll,
            _ => Call::Local,
        };
        let sizes = collective.uneven.and_then(|(number, back)| {
            let source = self.groups.share(self.place) % self.training.groups.expert;
            let key = (number, back, source as usize);
            self.communicators.sizes.get(&key).copied()
        });
        Event {
            bytes: collective.bytes,
            communicator,
            request: sizes.unwrap_or(Event::NOTHING.request),
            call,
            processor,
            ..Event::NOTHING
        }
    }

    /// Returns a barrier of the group's members in the trace, or `None` for a single member.
    fn barrier(&mut self, group: GroupKind, processor: u8) -> Option<Event> {
        let (communicator, members) = self.group(group);
        (members > 1).then_some(Event {
            communicator,
            call: Call::Barrier,
            processor,
            ..Event::NOTHING
        })
    }
}
