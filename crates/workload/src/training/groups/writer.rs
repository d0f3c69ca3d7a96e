//! Writer of the trace of an iteration: the computation, the messages and the waiting of each rank.
//!
//! A rank has a device, which computes, and streams beside the device: one for the exchanges of
//! each kind of group. An exchange starts after the device's latest event, and the device waits for
//! its end at once, after some computing, or at the end of the iteration ([`exchange`]).
//! Collectives among replicas run one after another in the order in which they become ready.
//!
//! The collectives of an iteration depend on the sharding:
//!
//! * nothing: an all_reduce of each bucket of gradients, as soon as the backward pass of the last
//!   micro-batch has finished the layers of the bucket.
//! * optimizer: a reduce_scatter of each bucket at the same time as above, and an all_gather of the
//!   bucket's parameters after all buckets, or during the next forward pass ([`gather`]).
//! * gradients: a reduce_scatter of each bucket for every micro-batch, because no rank can store
//!   all gradients; the same all_gather.
//! * parameters: the same reduce_scatter for every micro-batch. Before the forward or backward pass
//!   of a unit of layers, an all_gather of the unit's parameters. No all_gather at the end.
//!
//! Rajbhandari et al., arXiv:1910.02054, section 7, count the same volumes. An all_reduce, or a
//! reduce_scatter with an all_gather, moves 2 values per parameter. With sharded parameters, 3
//! values per parameter are moved, because parameters are gathered twice.
//!
//! A collective either consists of simulated messages, or takes a given time ([`Carrier`]). With
//! given times, one rank represents all ranks that do the same at the same time: the ranks of its
//! tensor-parallel group, and those with the same index in their expert-parallel groups, or all if
//! all experts receive the same number of tokens.

mod attention;
mod exchange;
mod experts;
mod gather;
mod tensor;

use std::collections::BTreeMap;

use super::super::TrainingError;
use super::super::buckets::Bucket;
use super::super::practice::Recompute;
use super::pipeline::{Pass, one_forward_one_backward};
use super::program::{Carrier, GroupCollective, GroupedTrace, GroupedTraining, MessageUse, Role};
use super::stages::Stage;
use super::{GroupKind, Groups, RankPlace, Sharding};
use crate::program::Call;
use crate::trace::Event;
use exchange::stream;
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;
use opticoll_simulate::circuit::succession::{Direction, RankPorts};

/// Index of the device among the processors of a rank. [`exchange`] has the indices of the streams.
const DEVICE: u8 = 0;
/// Index of a processor that never works, for events that only wait.
const WAITS: u8 = 1;

/// Uses of ports at both ends of each message between stages, indexed by (sender, receiver, tag).
pub(super) type MessageUses = BTreeMap<(u32, u32, u32), Vec<MessageUse>>;

/// Communicators, one for each group of ranks.
#[derive(Default)]
pub(super) struct Communicators {
    /// Identifier of each communicator, indexed by members.
    numbers: BTreeMap<Vec<u32>, u32>,
    /// Members of each communicator, indexed by identifier.
    pub(super) members: BTreeMap<u32, Vec<u32>>,
    /// Index in [`Trace::various`](crate::trace::Trace::various) of the sizes of an exchange of
    /// tokens. Indexed by (exchange number, true if tokens return from the experts, source rank).
    pub(super) sizes: BTreeMap<(usize, bool, usize), u32>,
}

impl Communicators {
    fn number(&mut self, members: Vec<u32>) -> u32 {
        let next = self.numbers.len() as u32 + 1;
        let number = *self.numbers.entry(members.clone()).or_insert(next);
        self.members.entry(number).or_insert(members);
        number
    }
}

/// Writer of the events of one rank.
pub(super) struct RankWriter<'a> {
    training: &'a GroupedTraining,
    stage: &'a Stage,
    place: RankPlace,
    groups: Groups,
    carrier: Carrier<'a>,
    communicators: &'a mut Communicators,
    /// Communicator of the rank and its number of members, indexed by kind of group.
    rank_groups: BTreeMap<GroupKind, (u32, u32)>,
    events: Vec<Event>,
    after: Vec<Vec<u32>>,
    roles: Vec<Role>,
    /// Index of the latest event of the device.
    device: Option<u32>,
    /// Index of the event of the latest collective on each set of the rank's ports.
    latest: BTreeMap<usize, u32>,
    /// Circuits of each set of the rank's ports in each direction.
    ports: BTreeMap<(usize, Direction), RankPorts>,
    /// Number of setups of circuits from one collective to the next.
    setups: u64,
    /// Uses of ports by messages between stages.
    messages: Vec<((u32, u32, u32), MessageUse)>,
    /// Index of the event of the latest collective among replicas.
    replicas: Option<u32>,
    /// Indices of the events that gathered parameters, in order.
    gathered: Vec<Option<u32>>,
    sent_after: Vec<((u32, u32, u32), Option<u32>)>,
    /// Number of messages to the next rank of the context-parallel group.
    shifts: u32,
    pub(super) counts: BTreeMap<GroupCollective, u64>,
    /// Collectives among replicas that must wait for the end of the backward pass, if they may not
    /// overlap with computation. An entry consists of the kind of group, the kind of collective and
    /// the size in bytes.
    postponed: Vec<(GroupKind, CollectiveKind, u64)>,
}

impl<'a> RankWriter<'a> {
    pub(super) fn new(
        training: &'a GroupedTraining,
        groups: Groups,
        rank: u32,
        carrier: Carrier<'a>,
        communicators: &'a mut Communicators,
    ) -> RankWriter<'a> {
        let place = groups.place(rank);
        RankWriter {
            training,
            stage: &training.stages[place.stage as usize],
            place,
            groups,
            carrier,
            communicators,
            rank_groups: BTreeMap::new(),
            events: Vec::new(),
            after: Vec::new(),
            roles: Vec::new(),
            device: None,
            latest: BTreeMap::new(),
            ports: BTreeMap::new(),
            setups: 0,
            messages: Vec::new(),
            replicas: None,
            gathered: Vec::new(),
            sent_after: Vec::new(),
            shifts: 0,
            counts: BTreeMap::new(),
            postponed: Vec::new(),
        }
    }

    pub(super) fn close(self, written: &mut GroupedTrace, rank: u32, messages: &mut MessageUses) {
        for (message, end) in self.messages {
            messages.entry(message).or_default().push(end);
        }
        written.trace.ranks[rank as usize] = self.events;
        written.trace.after.push(self.after);
        written.roles.push(self.roles);
        written.sent_after.extend(self.sent_after);
        written.setups.push(self.setups);
    }

    fn push(
        &mut self,
        event: Event,
        after: impl IntoIterator<Item = Option<u32>>,
        role: Role,
    ) -> u32 {
        let mut after: Vec<u32> = after.into_iter().flatten().collect();
        after.sort_unstable();
        after.dedup();
        self.events.push(event);
        self.after.push(after);
        self.roles.push(role);
        self.events.len() as u32 - 1
    }

    /// Appends the next event of the device. This event waits for the device's previous event and
    /// for the event `besides`.
    fn push_on_device(&mut self, event: Event, besides: Option<u32>, role: Role) {
        let before = [self.device, besides];
        self.device = Some(self.push(event, before, role));
    }

    pub(super) fn iteration(&mut self) -> Result<(), TrainingError> {
        let practice = self.training.practice;
        let schedule = one_forward_one_backward(
            self.groups.pipeline,
            self.place.stage,
            self.training.micro_batches,
            practice.chunks,
            practice.overlap_experts,
        );
        let order = gather::Order::new(self, &schedule);
        for (number, passes) in schedule.into_iter().enumerate() {
            // Passes that run beside each other share the device, which computes what is ready
            // first. Each waits for its own exchanges only. Collectives among replicas keep the
            // order in which they are written, so passes take turns, unit by unit.
            let units = order.units(number);
            let mut ends = vec![self.device; passes.len()];
            for (pass, (units, end)) in passes.iter().zip(units.iter().zip(&mut ends)) {
                self.device = *end;
                // Gathering does not wait for activations.
                let first = units.first().and_then(|(_, turn)| *turn);
                self.gather(&order, first, passes.len())?;
                self.receive(*pass)?;
                *end = self.device;
            }
            for place in 0..units.iter().map(Vec::len).max().unwrap_or(0) {
                for (pass, (units, end)) in passes.iter().zip(units.iter().zip(&mut ends)) {
                    if let Some((unit, turn)) = units.get(place) {
                        self.device = *end;
                        let gathered = self.gather(&order, *turn, passes.len())?;
                        self.unit(*pass, *unit, gathered)?;
                        *end = self.device;
                    }
                }
            }
            for (pass, end) in passes.iter().zip(&mut ends) {
                self.device = *end;
                self.send(*pass)?;
                *end = self.device;
            }
            if ends.len() > 1 {
                self.device = Some(self.push(work(Time::ZERO, WAITS), ends, Role::Nothing));
            }
        }
        self.close_iteration()
    }

    /// Writes the forward or backward pass of a unit of layers, after the event `gathered`.
    fn unit(
        &mut self,
        pass: Pass,
        unit: usize,
        mut gathered: Option<u32>,
    ) -> Result<(), TrainingError> {
        let again = self.training.practice.recompute == Recompute::Full;
        if pass.backward && again && self.stage.units[unit].block {
            let forward = Pass {
                backward: false,
                ..pass
            };
            self.layers(forward, unit, &mut gathered)?;
        }
        self.layers(pass, unit, &mut gathered)
    }

    /// Writes the layers of a unit in the direction of the pass, after the event `gathered`, which
    /// is reset.
    fn layers(
        &mut self,
        pass: Pass,
        unit: usize,
        gathered: &mut Option<u32>,
    ) -> Result<(), TrainingError> {
        let unit = self.stage.units[unit];
        let layers: Vec<usize> = match pass.backward {
            false => (unit.first..unit.end).collect(),
            true => (unit.first..unit.end).rev().collect(),
        };
        let mut computing = Time::ZERO;
        for number in layers {
            let layer = &self.stage.layers[number];
            let times = match pass.backward {
                false => &layer.forward,
                true => &layer.backward,
            };
            let phase = self.training.loads.phase(pass.micro_batch);
            let expert = self.training.groups.expert;
            let place = phase * expert as usize + (self.groups.share(self.place) % expert) as usize;
            let mut time = times[place % times.len()];
            if layer.experts.is_some() {
                time = time.times(self.training.loads.chunks)?;
            }
            let exchanges = self.tensor_exchanges(layer, time, pass.backward);
            let middle = time.ps() - exchanges.beside_gather.ps() - exchanges.beside_sum.ps();
            let middle = Time::from_ps(middle);
            if let Some(kind) = exchanges.gather {
                self.compute(&mut computing, gathered);
                let exchange = self.start(self.among_tensor(kind), None)?;
                computing = exchanges.beside_gather;
                self.compute(&mut computing, gathered);
                self.wait(exchange);
            }
            match (layer.experts, layer.attention) {
                (Some(layer), _) => {
                    self.compute(&mut computing, gathered);
                    let number = self.training.loads.number(phase, layer);
                    self.experts(number, middle, gathered)?;
                }
                (None, Some(bytes)) if self.training.groups.context > 1 => {
                    self.attention(bytes, middle, pass.backward, &mut computing, gathered)?;
                }
                _ => computing = computing.plus(middle)?,
            }
            if let Some(kind) = exchanges.sum {
                self.compute(&mut computing, gathered);
                let exchange = self.start(self.among_tensor(kind), None)?;
                computing = exchanges.beside_sum;
                self.compute(&mut computing, gathered);
                self.wait(exchange);
            }
            if pass.backward && self.reduces(pass) {
                self.reduce(number, &mut computing, gathered)?;
            }
        }
        self.compute(&mut computing, gathered);
        Ok(())
    }

    /// Returns the bytes of a micro-batch's activations between two layers on one rank.
    fn share_of_tokens(&self) -> u64 {
        let ranks = self
            .training
            .practice
            .sequence_ranks(self.training.groups.tensor);
        self.training.activations.div_ceil(ranks)
    }

    /// Writes the accumulated time `computing` as one event of the device, after the event
    /// `gathered`. Resets both.
    fn compute(&mut self, computing: &mut Time, gathered: &mut Option<u32>) {
        if *computing == Time::ZERO && gathered.is_none() {
            return;
        }
        let time = std::mem::replace(computing, Time::ZERO);
        let event = Event {
            compute: time.ps(),
            processor: DEVICE,
            ..Event::NOTHING
        };
        self.push_on_device(event, gathered.take(), Role::Computing(time));
    }

    /// Returns whether the backward pass of a micro-batch reduces its gradients.
    fn reduces(&self, pass: Pass) -> bool {
        let every_micro_batch = self.training.sharding >= Sharding::Gradients;
        every_micro_batch || pass.micro_batch + 1 == self.training.micro_batches
    }

    /// Writes or postpones the collectives for the gradients that a layer completes.
    fn reduce(
        &mut self,
        layer: usize,
        computing: &mut Time,
        gathered: &mut Option<u32>,
    ) -> Result<(), TrainingError> {
        let kind = match self.training.sharding {
            Sharding::Nothing => CollectiveKind::AllReduce,
            _ => CollectiveKind::ReduceScatter,
        };
        let stage = self.stage;
        let complete = |bucket: &&Bucket| bucket.layer == layer;
        let dense = stage.dense.iter().filter(complete);
        let dense = dense.map(|bucket| (GroupKind::Data, kind, bucket.bytes.get()));
        let expert = stage.expert.iter().filter(complete);
        let expert = expert.map(|bucket| (GroupKind::ExpertData, kind, bucket.bytes.get()));
        // The copies of an expert are on different ranks of the expert-parallel group.
        let copied = stage.copied.iter().filter(complete);
        let sums = CollectiveKind::AllReduce;
        let copied = copied.map(|bucket| (GroupKind::Expert, sums, bucket.bytes.get()));
        for (group, kind, bytes) in copied.chain(dense).chain(expert) {
            if self.training.overlap {
                self.compute(computing, gathered);
                self.among_replicas(group, kind, bytes)?;
            } else {
                self.postponed.push((group, kind, bytes));
            }
        }
        Ok(())
    }

    /// Writes a collective among replicas. The collective follows the device's last event and the
    /// previous collective among replicas.
    fn among_replicas(
        &mut self,
        group: GroupKind,
        kind: CollectiveKind,
        bytes: u64,
    ) -> Result<(), TrainingError> {
        let ranks = self.training.groups.size(group);
        if ranks == 1 || bytes == 0 {
            return Ok(());
        }
        let collective = GroupCollective {
            group,
            kind: Some(kind),
            ranks,
            bytes,
            uneven: None,
        };
        self.replicas = Some(self.start(collective, self.replicas)?.last());
        Ok(())
    }

    /// Returns the pass before or after a pass of the same micro-batch in the direction of the
    /// data: the rank that executes the pass, and the tag of the message to it.
    fn neighbour(&self, pass: Pass, after: bool) -> Option<(u32, u32)> {
        let (stages, chunks) = (self.groups.pipeline, self.training.practice.chunks);
        let part = pass.chunk * stages + self.place.stage;
        let part = match pass.backward == after {
            true => part.checked_sub(1)?,
            false => part + 1,
        };
        let rank = self.groups.rank(RankPlace {
            stage: part % stages,
            ..self.place
        });
        let chunk = part / stages;
        (chunk < chunks).then(|| (rank, self.tag(Pass { chunk, ..pass })))
    }

    /// Returns the tag of the message to a pass.
    fn tag(&self, pass: Pass) -> u32 {
        let number = pass.micro_batch * u64::from(self.training.practice.chunks);
        let number = number + u64::from(pass.chunk);
        (2 * number + u64::from(pass.backward)) as u32
    }

    /// Returns the message between stages.
    fn message(&self) -> GroupCollective {
        GroupCollective {
            group: GroupKind::Pipeline,
            kind: None,
            ranks: 2,
            bytes: self.share_of_tokens(),
            uneven: None,
        }
    }

    fn receive(&mut self, pass: Pass) -> Result<(), TrainingError> {
        let Some((peer, _)) = self.neighbour(pass, false) else {
            return Ok(());
        };
        let tag = self.tag(pass);
        let event = Event {
            bytes: self.share_of_tokens(),
            peer,
            tag,
            call: Call::Receive,
            processor: stream(GroupKind::Pipeline),
            ..Event::NOTHING
        };
        let arrival = self.push(event, [], Role::Arrival { peer, tag });
        let role = Role::Stage { arrival };
        self.push_on_device(work(Time::ZERO, WAITS), Some(arrival), role);
        let rank = self.groups.rank(self.place);
        let sets_up = self.pass_message(peer, Direction::In);
        let end = MessageUse {
            event: None,
            sets_up,
        };
        self.messages.push(((peer, rank, tag), end));
        Ok(())
    }

    fn send(&mut self, pass: Pass) -> Result<(), TrainingError> {
        let Some((peer, tag)) = self.neighbour(pass, true) else {
            return Ok(());
        };
        let collective = self.message();
        *self.counts.entry(collective).or_default() += 1;
        let mut before = self.device;
        let rank = self.groups.rank(self.place);
        if let Some(time) = self.time(&collective)? {
            let free = self.latest_on_ports(&collective);
            let event = work(time, stream(GroupKind::Pipeline));
            let event = self.push(event, [before, free], Role::Nothing);
            self.hold_ports(&collective, time, event);
            let end = MessageUse {
                event: Some(event),
                sets_up: self.pass_message(peer, Direction::Out),
            };
            self.messages.push(((rank, peer, tag), end));
            before = Some(event);
        }
        self.sent_after.push(((rank, peer, tag), self.device));
        let event = Event {
            bytes: collective.bytes,
            peer,
            tag,
            call: Call::Send,
            processor: stream(GroupKind::Pipeline),
            ..Event::NOTHING
        };
        self.push(event, [before], Role::Nothing);
        Ok(())
    }

    /// Writes the collectives among replicas that follow the backward pass, the step of the
    /// optimizer, and the device's wait for all of these collectives.
    fn close_iteration(&mut self) -> Result<(), TrainingError> {
        for (group, kind, bytes) in std::mem::take(&mut self.postponed) {
            self.among_replicas(group, kind, bytes)?;
        }
        let step = self.training.optimizer[self.place.stage as usize];
        if step > Time::ZERO {
            self.push_on_device(work(step, DEVICE), self.replicas, Role::Computing(step));
        }
        self.gather_at_end()?;
        let last = self.replicas;
        let role = Role::Waiting(GroupKind::Data);
        self.push_on_device(work(Time::ZERO, WAITS), last, role);
        Ok(())
    }
}

fn work(time: Time, processor: u8) -> Event {
    Event {
        compute: time.ps(),
        processor,
        ..Event::NOTHING
    }
}
