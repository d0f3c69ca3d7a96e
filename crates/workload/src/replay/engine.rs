//! Event loop of a replay: nodes that are ready, run, or have ended.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{CallSum, Calls, ReplaySettings, Replayed, ReplayedRanks, SentMessages, Timeline};
use crate::error::TraceError;
use crate::program::{Call, FOLLOWS, NONE, NodeKind, Program};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_simulate::live::{Live, MessageEvent, ReadyMessage};

/// Kinds of events, in the upper half of an event's 64-bit key. The lower half is the node.
const READY: u64 = 0;
const BEGIN: u64 = 1 << 32;
const LEAVE: u64 = 2 << 32;
const ARRIVE: u64 = 3 << 32;
const END: u64 = 4 << 32;

/// Progress of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NodePhase {
    /// Not started.
    Idle,
    /// A receive has started; or a send has started and waits for its receive.
    Begun,
    /// The message arrived before its receive started.
    Arrived,
    Ended,
}

pub(super) struct ReplayEngine<'a, C: ?Sized> {
    pub(super) program: &'a Program,
    network: &'a mut C,
    messages_in_network: u64,
    /// Number of members that have not yet entered a planned collective, indexed by collective.
    missing_members: Vec<u32>,
    /// Total number of messages of all planned collectives that have started.
    planned_messages: u64,
    network_events: Vec<MessageEvent>,
    settings: ReplaySettings,
    /// Factor of local work as (numerator, denominator), indexed by rank.
    factors: Vec<(u32, u32)>,
    overhead: u64,
    now: u64,
    /// Queue of events after the current time, as (time in picoseconds, key).
    later_events: BinaryHeap<Reverse<(u64, u64)>>,
    /// Keys of the events at the current time, in the order in which they are handled.
    current_events: VecDeque<u64>,
    pub(super) waits: Vec<u32>,
    pub(super) phase: Vec<NodePhase>,
    /// Time in picoseconds at which each node became ready; empty for a sequence of calls.
    ready: Vec<u64>,
    /// Time in picoseconds at which each processor becomes free. The processors of rank r start at
    /// index `processor_starts[r]`.
    processors: Vec<u64>,
    processor_starts: Vec<u32>,
    /// Node of the current call of each rank ([`NONE`] at first), and the start of the call in
    /// picoseconds, indexed by rank.
    current_call: Vec<(u32, u64)>,
    rank_of: RankOf,
    pub(super) ended: usize,
    events: u64,
    ranks: ReplayedRanks,
    /// Number of calls and time inside calls, indexed by rank and kind of call.
    call_totals: Vec<[(u64, Time); Call::ALL.len()]>,
    /// Messages sent, indexed by kind of call.
    sent: [SentMessages; Call::ALL.len()],
    timeline: Timeline,
}

/// Look-up of the rank of a node. `blocks[i]` is the rank of the node with index 64 i.
struct RankOf {
    blocks: Vec<u32>,
}

impl RankOf {
    fn new(program: &Program) -> RankOf {
        let blocks = (0..=program.len() / 64).map(|block| {
            let starts = &program.rank_starts;
            let after = starts.partition_point(|&start| start as usize <= block * 64);
            (after - 1).min(starts.len() - 2) as u32
        });
        RankOf {
            blocks: blocks.collect(),
        }
    }

    fn get(&self, program: &Program, node: u32) -> u32 {
        let mut rank = self.blocks[node as usize / 64];
        while program.rank_starts[rank as usize + 1] <= node {
            rank += 1;
        }
        rank
    }
}

impl<'a, C: Live + ?Sized> ReplayEngine<'a, C> {
    pub(super) fn new(
        program: &'a Program,
        network: &'a mut C,
        settings: ReplaySettings,
    ) -> Result<Self, TraceError> {
        let ranks = program.ranks() as usize;
        let mut factors = vec![settings.compute_factor; ranks];
        for (&rank, &factor) in &settings.rank_factors {
            let rank_factor = factors.get_mut(rank as usize);
            *rank_factor.ok_or_else(|| {
                TraceError::Refused(format!(
                    "rank {rank} has a factor of local work, but the trace has only {ranks} ranks, \
                     counted from 0"
                ))
            })? = factor;
        }
        if let Some(&(numerator, _)) = factors.iter().find(|(_, denominator)| *denominator == 0) {
            return Err(TraceError::Refused(format!(
                "the factor {numerator} / 0 of local work is not defined; write 1 / 1 for the \
                 traced time"
            )));
        }
        let (nodes, in_order) = (&program.nodes, is_sequence(program));
        let mut processor_starts = vec![0u32];
        for rank in 0..ranks as u32 {
            interrupt::check();
            let rank_nodes = program.rank_nodes(rank).iter();
            let highest = rank_nodes.map(|node| node.processor).max().unwrap_or(0);
            let last = *processor_starts.last().expect("never empty");
            processor_starts.push(last + u32::from(highest) + 1);
        }
        Ok(ReplayEngine {
            overhead: settings.ends.overhead.ps(),
            network,
            messages_in_network: 0,
            missing_members: program
                .joint_collectives
                .iter()
                .map(|collective| collective.members.len() as u32)
                .collect(),
            planned_messages: 0,
            network_events: Vec::new(),
            settings,
            factors,
            now: 0,
            later_events: BinaryHeap::new(),
            current_events: VecDeque::new(),
            waits: program.waits.clone(),
            phase: vec![NodePhase::Idle; nodes.len()],
            ready: vec![0; if in_order { 0 } else { nodes.len() }],
            processors: vec![0; *processor_starts.last().expect("never empty") as usize],
            processor_starts,
            current_call: vec![(NONE, 0); ranks],
            rank_of: RankOf::new(program),
            ended: 0,
            events: 0,
            ranks: ReplayedRanks {
                finish: vec![Time::ZERO; ranks],
                compute: vec![Time::ZERO; ranks],
                calls: vec![Time::ZERO; ranks],
                messages: vec![0; ranks],
                bytes: vec![0; ranks],
                setups: vec![0; ranks],
                setup: vec![Time::ZERO; ranks],
            },
            call_totals: vec![[(0, Time::ZERO); Call::ALL.len()]; ranks],
            sent: [SentMessages::default(); Call::ALL.len()],
            timeline: Timeline::default(),
            program,
        })
    }

    pub(super) fn run(&mut self) -> Result<(), TraceError> {
        let free = (0..self.waits.len()).filter(|&node| self.waits[node] == 0);
        self.current_events
            .extend(free.map(|node| READY | node as u64));
        loop {
            while let Some(key) = self.current_events.pop_front() {
                interrupt::check();
                self.process(key)?;
            }
            if self.ended == self.program.len() || !self.advance()? {
                break;
            }
        }
        if self.ended < self.program.len() {
            return Err(self.deadlock());
        }
        Ok(())
    }

    fn process(&mut self, key: u64) -> Result<(), TraceError> {
        self.events += 1;
        let node = key as u32;
        match key & !0xffff_ffff {
            READY => self.make_ready(node),
            BEGIN => self.begin(node),
            LEAVE => self.end_overhead(node),
            ARRIVE => self.arrive(node),
            _ => self.end(node),
        }
    }

    /// Advances to the next event of the replay or of the network, if there is one.
    fn advance(&mut self) -> Result<bool, TraceError> {
        let replay_time = self.later_events.peek().map(|Reverse((time, _))| *time);
        let network_time = self.network.next_time()?.map(Time::ps);
        match (replay_time, network_time) {
            (Some(time), network_time)
                if network_time.is_none_or(|network_time| time < network_time) =>
            {
                if let Some(Reverse((time, key))) = self.later_events.pop() {
                    self.now = time;
                    self.process(key)?;
                }
            }
            // If no message is in the network, events of the network have no effect.
            _ if replay_time.is_some() || self.messages_in_network > 0 => {
                self.now = self.now.max(network_time.unwrap_or(self.now));
                let mut network_events = std::mem::take(&mut self.network_events);
                self.network.advance(&mut network_events)?;
                for event in network_events.drain(..) {
                    self.handle(event);
                }
                self.network_events = network_events;
                return Ok(network_time.is_some());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn handle(&mut self, event: MessageEvent) {
        let time = event.time.ps().max(self.now);
        let program = self.program;
        let operation = &program.nodes[event.message as usize];
        if operation.kind == NodeKind::Collective {
            self.messages_in_network -= 1;
            for &(node, _) in &program.joint_collectives[operation.amount as usize].members {
                self.schedule(time, END | u64::from(node));
            }
            return;
        }
        if event.left && self.phase[event.message as usize] == NodePhase::Begun {
            self.schedule(time, END | u64::from(event.message));
        }
        if event.arrived {
            self.messages_in_network -= 1;
            let receive = self.program.nodes[event.message as usize].partner;
            self.schedule(time, ARRIVE | u64::from(receive));
        }
    }

    fn schedule(&mut self, time: u64, key: u64) {
        if time == self.now {
            self.current_events.push_back(key);
        } else {
            self.later_events.push(Reverse((time, key)));
        }
    }

    fn plus(&self, time: u64, duration: u64) -> Result<u64, TraceError> {
        time.checked_add(duration).ok_or_else(too_long)
    }

    /// Occupies the processor of `node` for `duration` picoseconds. Returns the start.
    fn occupy_processor(&mut self, node: u32, rank: u32, duration: u64) -> Result<u64, TraceError> {
        let processor = self.program.nodes[node as usize].processor;
        let index = self.processor_starts[rank as usize] as usize + processor as usize;
        let start = self.processors[index].max(self.now);
        self.processors[index] = self.plus(start, duration)?;
        Ok(start)
    }

    fn work(&self, rank: u32, amount: u64) -> Result<u64, TraceError> {
        let (numerator, denominator) = self.factors[rank as usize];
        if numerator == denominator {
            return Ok(amount);
        }
        let scaled = u128::from(amount) * u128::from(numerator) / u128::from(denominator);
        u64::try_from(scaled).map_err(|_| too_long())
    }

    fn make_ready(&mut self, node: u32) -> Result<(), TraceError> {
        if let Some(ready) = self.ready.get_mut(node as usize) {
            *ready = self.now;
        }
        let operation = &self.program.nodes[node as usize];
        let rank = self.rank_of.get(self.program, node);
        let held = match operation.kind {
            NodeKind::Receive | NodeKind::Collective => return self.begin(node),
            NodeKind::Send => self.overhead,
            NodeKind::Compute | NodeKind::Enter => self.work(rank, operation.amount)?,
            NodeKind::Setup => operation.amount,
        };
        let start = self.occupy_processor(node, rank, held)?;
        if start == self.now {
            return self.begin(node);
        }
        self.schedule(start, BEGIN | u64::from(node));
        Ok(())
    }

    fn begin(&mut self, node: u32) -> Result<(), TraceError> {
        self.meet_dependencies(node, FOLLOWS);
        let operation = self.program.nodes[node as usize];
        match operation.kind {
            NodeKind::Compute | NodeKind::Enter => {
                let rank = self.rank_of.get(self.program, node) as usize;
                let held = self.work(rank as u32, operation.amount)?;
                if operation.kind == NodeKind::Enter {
                    self.return_from_call(rank as u32);
                }
                let compute = &mut self.ranks.compute[rank];
                *compute = compute.plus(Time::from_ps(held))?;
                let end = self.plus(self.now, held)?;
                self.schedule(end, END | u64::from(node));
            }
            NodeKind::Setup => {
                let rank = self.rank_of.get(self.program, node) as usize;
                self.ranks.setups[rank] += u64::from(operation.tag);
                let spent = &mut self.ranks.setup[rank];
                *spent = spent.plus(Time::from_ps(operation.amount))?;
                let end = self.plus(self.now, operation.amount)?;
                self.schedule(end, END | u64::from(node));
            }
            NodeKind::Send => {
                let handed = self.plus(self.now, self.overhead)?;
                self.schedule(handed, LEAVE | u64::from(node));
            }
            NodeKind::Collective => {
                self.phase[node as usize] = NodePhase::Begun;
                let missing_members = &mut self.missing_members[operation.amount as usize];
                *missing_members -= 1;
                if *missing_members == 0 {
                    return self.begin_collective(node);
                }
            }
            NodeKind::Receive => {
                let arrived = self.phase[node as usize] == NodePhase::Arrived;
                self.phase[node as usize] = NodePhase::Begun;
                if arrived {
                    return self.receive(node);
                }
                if self.phase[operation.partner as usize] == NodePhase::Begun {
                    return self.send_to_network(operation.partner);
                }
            }
        }
        Ok(())
    }

    /// Starts a planned collective after its last member has entered it.
    fn begin_collective(&mut self, last: u32) -> Result<(), TraceError> {
        let program = self.program;
        let operation = &program.nodes[last as usize];
        let collective = &program.joint_collectives[operation.amount as usize];
        let begun =
            self.network
                .carry_out(last, collective.planned.clone(), Time::from_ps(self.now));
        begun.map_err(|error| TraceError::at(program.place(last), error))?;
        self.messages_in_network += 1;
        let sent = &mut self.sent[operation.call as usize];
        sent.messages += collective.messages;
        self.planned_messages += collective.messages;
        for &(node, bytes) in &collective.members {
            let rank = self.rank_of.get(program, node) as usize;
            for sum in [&mut self.ranks.bytes[rank], &mut sent.bytes] {
                *sum = sum.checked_add(bytes).ok_or_else(too_many)?;
            }
        }
        Ok(())
    }

    /// Ends the overhead of a send: passes the message to the network, or waits for the receive.
    fn end_overhead(&mut self, send: u32) -> Result<(), TraceError> {
        let operation = &self.program.nodes[send as usize];
        if !operation.is_rendezvous && self.settings.ends.is_eager(operation.amount) {
            self.send_to_network(send)?;
            return self.end(send);
        }
        let receiver = self.phase[operation.partner as usize];
        self.phase[send as usize] = NodePhase::Begun;
        if receiver == NodePhase::Begun {
            return self.send_to_network(send);
        }
        Ok(())
    }

    fn send_to_network(&mut self, send: u32) -> Result<(), TraceError> {
        let operation = self.program.nodes[send as usize];
        let source = self.rank_of.get(self.program, send);
        let message = ReadyMessage {
            source,
            destination: operation.peer,
            route: self.program.routes.number(send as usize),
            interfaces: [send, operation.partner].map(|node| self.program.interface(node)),
            bytes: Bytes::new(operation.amount),
            ready: Time::from_ps(self.now),
        };
        let delivery = self.network.send(send, message);
        let delivery = delivery.map_err(|error| TraceError::at(self.program.place(send), error))?;
        self.ranks.messages[source as usize] += 1;
        let bytes = &mut self.ranks.bytes[source as usize];
        *bytes = bytes.checked_add(operation.amount).ok_or_else(too_many)?;
        let sent = &mut self.sent[operation.call as usize];
        sent.messages += 1;
        sent.bytes = sent
            .bytes
            .checked_add(operation.amount)
            .ok_or_else(too_many)?;
        let Some(delivery) = delivery else {
            self.messages_in_network += 1;
            return Ok(());
        };
        self.schedule(delivery.arrives.ps(), ARRIVE | u64::from(operation.partner));
        if self.phase[send as usize] == NodePhase::Begun {
            self.schedule(delivery.leaves.ps(), END | u64::from(send));
        }
        Ok(())
    }

    fn arrive(&mut self, receive: u32) -> Result<(), TraceError> {
        if self.phase[receive as usize] == NodePhase::Begun {
            return self.receive(receive);
        }
        self.phase[receive as usize] = NodePhase::Arrived;
        Ok(())
    }

    /// Completes a receive that has started and whose message has arrived.
    fn receive(&mut self, receive: u32) -> Result<(), TraceError> {
        if self.overhead == 0 {
            return self.end(receive);
        }
        let rank = self.rank_of.get(self.program, receive);
        let start = self.occupy_processor(receive, rank, self.overhead)?;
        let end = self.plus(start, self.overhead)?;
        self.schedule(end, END | u64::from(receive));
        Ok(())
    }

    fn end(&mut self, node: u32) -> Result<(), TraceError> {
        self.phase[node as usize] = NodePhase::Ended;
        self.ended += 1;
        let operation = &self.program.nodes[node as usize];
        let rank = self.rank_of.get(self.program, node);
        self.ranks.finish[rank as usize] = Time::from_ps(self.now);
        if operation.kind == NodeKind::Enter {
            self.current_call[rank as usize] = (node, self.now);
        } else if let Some(&ready) = self.ready.get(node as usize) {
            self.record(rank, node, ready)?;
        }
        self.meet_dependencies(node, 0);
        Ok(())
    }

    /// Removes the dependency on `node` from all nodes that wait for its start (`which` =
    /// [`FOLLOWS`]) or for its end (`which` = 0).
    fn meet_dependencies(&mut self, node: u32, which: u32) {
        let starts = &self.program.dependent_starts;
        let range = starts[node as usize] as usize..starts[node as usize + 1] as usize;
        for &dependent in &self.program.dependents[range] {
            if dependent & FOLLOWS != which {
                continue;
            }
            let waits = &mut self.waits[(dependent & !FOLLOWS) as usize];
            *waits -= 1;
            if *waits == 0 {
                self.current_events
                    .push_back(READY | u64::from(dependent & !FOLLOWS));
            }
        }
    }

    /// Ends the current call of `rank`, because the local work of the next call starts.
    fn return_from_call(&mut self, rank: u32) {
        let (node, start) = self.current_call[rank as usize];
        if node != NONE {
            // The calls of a rank do not overlap, so their sum is below the current time.
            self.record(rank, node, start)
                .expect("the sum is below the current time");
        }
    }

    /// Adds a call that ends now to the totals and, if requested, to the timeline.
    fn record(&mut self, rank: u32, node: u32, start: u64) -> Result<(), TraceError> {
        let operation = &self.program.nodes[node as usize];
        let (count, inside) = &mut self.call_totals[rank as usize][operation.call as usize];
        let spent = Time::from_ps(self.now - start);
        *inside = inside.plus(spent)?;
        *count += 1;
        if self.settings.timeline {
            self.timeline.rank.push(rank);
            self.timeline.event.push(operation.event);
            self.timeline.call.push(operation.call);
            self.timeline.start.push(Time::from_ps(start));
            self.timeline.end.push(Time::from_ps(self.now));
        }
        Ok(())
    }

    /// Returns the result, with sums over ranks and kinds of calls.
    pub(super) fn result(mut self) -> Result<Replayed, TraceError> {
        let mut bytes = self.ranks.bytes.iter();
        let bytes = bytes.try_fold(0u64, |sum, &bytes| sum.checked_add(bytes));
        let bytes = bytes.ok_or_else(too_many)?;
        for (calls, call_totals) in self.ranks.calls.iter_mut().zip(&self.call_totals) {
            for (_, inside) in call_totals {
                *calls = calls.plus(*inside)?;
            }
        }
        let (mut kinds, mut calls) = (Vec::new(), Calls::default());
        for (number, call) in Call::ALL.into_iter().enumerate() {
            let call_totals = || self.call_totals.iter().map(|rank| rank[number]);
            let count: u64 = call_totals().map(|(count, _)| count).sum();
            if count == 0 {
                continue;
            }
            kinds.push(CallSum {
                call: call.name(),
                calls: count,
                messages: self.sent[number].messages,
                bytes: self.sent[number].bytes,
                total: call_totals()
                    .map(|(_, inside)| u128::from(inside.ps()))
                    .sum(),
                longest: call_totals()
                    .map(|(_, inside)| inside)
                    .max()
                    .unwrap_or(Time::ZERO),
            });
            calls.calls.extend(call_totals().map(|(count, _)| count));
            calls.time.extend(call_totals().map(|(_, inside)| inside));
        }
        calls.shape = vec![("call", kinds.len()), ("rank", self.call_totals.len())];
        let finish = self.ranks.finish.iter().copied();
        Ok(Replayed {
            time: finish.max().unwrap_or(Time::ZERO),
            messages: self.ranks.messages.iter().sum::<u64>() + self.planned_messages,
            bytes,
            events: self.events,
            ranks: self.ranks,
            kinds,
            calls,
            timeline: self.timeline,
        })
    }
}

/// Returns whether each rank executes one call after another ([`NodeKind::Enter`]).
fn is_sequence(program: &Program) -> bool {
    program
        .nodes
        .iter()
        .any(|node| node.kind == NodeKind::Enter)
}

fn too_long() -> TraceError {
    TraceError::Units(UnitError::Overflow {
        what: "the time of the replay".into(),
        smallest: "picoseconds",
    })
}

fn too_many() -> TraceError {
    TraceError::Units(UnitError::Overflow {
        what: "the sum of all messages".into(),
        smallest: "bytes",
    })
}
