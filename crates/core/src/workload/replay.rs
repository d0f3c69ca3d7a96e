//! Replays a program over a cost model.
//!
//! Semantics. A node is ready when its dependencies are met. Work and sends need their processor, which
//! serves them in the order in which they become ready (at one instant: in order of events); a receive
//! begins when it is ready. An eager message is handed to the network after the overhead, and its send
//! ends then. A message above the eager limit is handed over when, besides, its receive has begun (both
//! ends ready, no cost for agreeing), and its send ends when it has left. A receive ends when it has
//! begun and its message has arrived, plus the overhead. Messages are matched in the order of the
//! program, so costs never change who receives what; whether ranks deadlock depends on the eager limit
//! alone.
//!
//! LogGOPSim differs in three things: it streams n - 1 bytes, we n; its receiver is blocked for the whole
//! length of a message that came before its receive, ours takes it at once; and its receiving port
//! serves messages when they are matched, ours when they come.
//!
//! Each event is one entry in a queue ordered by time, kind and node; events of the present instant go
//! through a first-in first-out queue beside it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::cost::{CostModel, Message};
use super::error::{Place, TraceError};
use super::program::{Call, FOLLOWS, NONE, NodeKind, Program};
use crate::units::{Bytes, Time, UnitError};

/// How to replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Local work takes numerator / denominator of the traced time, rounded down to a picosecond.
    pub compute_factor: (u32, u32),
    /// Whether to keep the begin and end of every call.
    pub timeline: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            compute_factor: (1, 1),
            timeline: false,
        }
    }
}

/// The calls of all ranks, in the order in which they ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    /// The rank.
    pub rank: Vec<u32>,
    /// The event of the trace, counted from 0 within its rank.
    pub event: Vec<u32>,
    /// What was called.
    pub call: Vec<Call>,
    /// When it was called; a rank's local work lies between calls.
    pub start: Vec<Time>,
    /// When it returned.
    pub end: Vec<Time>,
}

/// One entry per rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayedRanks {
    /// When its last node ended.
    pub finish: Vec<Time>,
    /// Local work, scaled.
    pub compute: Vec<Time>,
    /// Time inside each call, by the call's number. Where a program is no sequence (GOAL), nodes
    /// overlap: then it is the time from ready to end, summed over sends and over receives.
    pub in_call: Vec<[Time; Call::ALL.len()]>,
    /// Messages sent.
    pub messages: Vec<u64>,
    /// Bytes sent.
    pub bytes: Vec<u64>,
}

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// From the start to the end of the last node.
    pub time: Time,
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Events of the simulation.
    pub events: u64,
    /// Per rank.
    pub ranks: ReplayedRanks,
    /// Per call; empty where it was not asked for.
    pub timeline: Timeline,
}

/// Replays a program.
///
/// # Errors
/// A deadlock, with a chain of events that wait for one another; a time that leaves 64 bits; a compute
/// factor with denominator zero; bytes of all messages that leave 64 bits.
pub fn replay(
    program: &Program,
    model: &mut impl CostModel,
    settings: Settings,
) -> Result<Replayed, TraceError> {
    let mut engine = Engine::new(program, model, settings)?;
    engine.run()?;
    engine.result()
}

/// The kind of an event, in the upper half of its key; the node is in the lower.
const READY: u64 = 0;
const BEGIN: u64 = 1 << 32;
const LEAVE: u64 = 2 << 32;
const ARRIVE: u64 = 3 << 32;
const END: u64 = 4 << 32;

/// How far a node has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not begun.
    Idle,
    /// A receive has begun; or the send of a rendezvous has, and waits for the receive.
    Begun,
    /// The message has come before its receive began.
    Arrived,
    Ended,
}

struct Engine<'a, M> {
    program: &'a Program,
    model: &'a mut M,
    settings: Settings,
    overhead: u64,
    now: u64,
    later: BinaryHeap<Reverse<(u64, u64)>>,
    present: VecDeque<u64>,
    waits: Vec<u32>,
    phase: Vec<Phase>,
    /// When each node of a program that is no sequence was ready. Empty for sequences.
    ready: Vec<u64>,
    /// When each processor is free; those of rank r begin at `processor_starts[r]`.
    processors: Vec<u64>,
    processor_starts: Vec<u32>,
    /// Per rank: the present call (NONE at first) and when it began.
    present_call: Vec<(u32, u64)>,
    rank_of: RankOf,
    ended: usize,
    events: u64,
    ranks: ReplayedRanks,
    timeline: Timeline,
}

/// The rank of each node: a look-up by blocks of 64 nodes, then a step or two.
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

impl<'a, M: CostModel> Engine<'a, M> {
    fn new(program: &'a Program, model: &'a mut M, settings: Settings) -> Result<Self, TraceError> {
        if settings.compute_factor.1 == 0 {
            return Err(TraceError::Factor {
                numerator: settings.compute_factor.0,
            });
        }
        let ranks = program.ranks() as usize;
        let (nodes, in_order) = (&program.nodes, is_sequence(program));
        let mut processor_starts = vec![0u32];
        for rank in 0..ranks as u32 {
            let rank_nodes = program.rank_nodes(rank).iter();
            let highest = rank_nodes.map(|node| node.processor).max().unwrap_or(0);
            let last = *processor_starts.last().expect("never empty");
            processor_starts.push(last + u32::from(highest) + 1);
        }
        Ok(Engine {
            overhead: model.overhead().ps(),
            model,
            settings,
            now: 0,
            later: BinaryHeap::new(),
            present: VecDeque::new(),
            waits: program.waits.clone(),
            phase: vec![Phase::Idle; nodes.len()],
            ready: vec![0; if in_order { 0 } else { nodes.len() }],
            processors: vec![0; *processor_starts.last().expect("never empty") as usize],
            processor_starts,
            present_call: vec![(NONE, 0); ranks],
            rank_of: RankOf::new(program),
            ended: 0,
            events: 0,
            ranks: ReplayedRanks {
                finish: vec![Time::ZERO; ranks],
                compute: vec![Time::ZERO; ranks],
                in_call: vec![[Time::ZERO; Call::ALL.len()]; ranks],
                messages: vec![0; ranks],
                bytes: vec![0; ranks],
            },
            timeline: Timeline::default(),
            program,
        })
    }

    fn run(&mut self) -> Result<(), TraceError> {
        let free = (0..self.waits.len()).filter(|&node| self.waits[node] == 0);
        self.present.extend(free.map(|node| READY | node as u64));
        loop {
            let key = match self.present.pop_front() {
                Some(key) => key,
                None => {
                    let Some(Reverse((time, key))) = self.later.pop() else {
                        break;
                    };
                    self.now = time;
                    key
                }
            };
            self.events += 1;
            let node = key as u32;
            match key & !0xffff_ffff {
                READY => self.make_ready(node)?,
                BEGIN => self.begin(node)?,
                LEAVE => self.leave(node)?,
                ARRIVE => self.arrive(node)?,
                _ => self.end(node)?,
            }
        }
        if self.ended < self.program.len() {
            return Err(self.deadlock());
        }
        Ok(())
    }

    fn schedule(&mut self, time: u64, key: u64) {
        if time == self.now {
            self.present.push_back(key);
        } else {
            self.later.push(Reverse((time, key)));
        }
    }

    fn plus(&self, time: u64, duration: u64) -> Result<u64, TraceError> {
        time.checked_add(duration).ok_or_else(too_long)
    }

    /// Holds a node's processor for a while; returns when that begins.
    fn hold(&mut self, node: u32, rank: u32, duration: u64) -> Result<u64, TraceError> {
        let processor = self.program.nodes[node as usize].processor;
        let index = self.processor_starts[rank as usize] as usize + processor as usize;
        let start = self.processors[index].max(self.now);
        self.processors[index] = self.plus(start, duration)?;
        Ok(start)
    }

    fn work(&self, amount: u64) -> Result<u64, TraceError> {
        let (numerator, denominator) = self.settings.compute_factor;
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
        let plain = &self.program.nodes[node as usize];
        let held = match plain.kind {
            NodeKind::Receive => return self.begin(node),
            NodeKind::Send => self.overhead,
            NodeKind::Compute | NodeKind::Enter => self.work(plain.amount)?,
        };
        let rank = self.rank_of.get(self.program, node);
        let start = self.hold(node, rank, held)?;
        if start == self.now {
            return self.begin(node);
        }
        self.schedule(start, BEGIN | u64::from(node));
        Ok(())
    }

    fn begin(&mut self, node: u32) -> Result<(), TraceError> {
        self.release(node, FOLLOWS);
        let plain = self.program.nodes[node as usize];
        match plain.kind {
            NodeKind::Compute | NodeKind::Enter => {
                let rank = self.rank_of.get(self.program, node) as usize;
                let held = self.work(plain.amount)?;
                if plain.kind == NodeKind::Enter {
                    self.return_from_call(rank as u32);
                }
                let compute = &mut self.ranks.compute[rank];
                *compute = compute.plus(Time::from_ps(held))?;
                let end = self.plus(self.now, held)?;
                self.schedule(end, END | u64::from(node));
            }
            NodeKind::Send => {
                let handed = self.plus(self.now, self.overhead)?;
                self.schedule(handed, LEAVE | u64::from(node));
            }
            NodeKind::Receive => {
                let arrived = self.phase[node as usize] == Phase::Arrived;
                self.phase[node as usize] = Phase::Begun;
                if arrived {
                    return self.receive(node);
                }
                if self.phase[plain.partner as usize] == Phase::Begun {
                    return self.hand_over(plain.partner);
                }
            }
        }
        Ok(())
    }

    /// The overhead of a send is over.
    fn leave(&mut self, send: u32) -> Result<(), TraceError> {
        let plain = &self.program.nodes[send as usize];
        if self.model.is_eager(Bytes::new(plain.amount)) {
            self.hand_over(send)?;
            return self.end(send);
        }
        let receiver = self.phase[plain.partner as usize];
        self.phase[send as usize] = Phase::Begun;
        if receiver == Phase::Begun {
            return self.hand_over(send);
        }
        Ok(())
    }

    /// Gives a message to the network.
    fn hand_over(&mut self, send: u32) -> Result<(), TraceError> {
        let plain = self.program.nodes[send as usize];
        let source = self.rank_of.get(self.program, send);
        let message = Message {
            source,
            destination: plain.peer,
            bytes: Bytes::new(plain.amount),
            ready: Time::from_ps(self.now),
        };
        let delivery = self.model.send(message)?;
        self.ranks.messages[source as usize] += 1;
        let bytes = &mut self.ranks.bytes[source as usize];
        *bytes = bytes.checked_add(plain.amount).ok_or_else(too_many)?;
        self.schedule(delivery.arrives.ps(), ARRIVE | u64::from(plain.partner));
        if self.phase[send as usize] == Phase::Begun {
            self.schedule(delivery.leaves.ps(), END | u64::from(send));
        }
        Ok(())
    }

    fn arrive(&mut self, receive: u32) -> Result<(), TraceError> {
        if self.phase[receive as usize] == Phase::Begun {
            return self.receive(receive);
        }
        self.phase[receive as usize] = Phase::Arrived;
        Ok(())
    }

    /// A receive has begun and its message is there.
    fn receive(&mut self, receive: u32) -> Result<(), TraceError> {
        if self.overhead == 0 {
            return self.end(receive);
        }
        let rank = self.rank_of.get(self.program, receive);
        let start = self.hold(receive, rank, self.overhead)?;
        let end = self.plus(start, self.overhead)?;
        self.schedule(end, END | u64::from(receive));
        Ok(())
    }

    fn end(&mut self, node: u32) -> Result<(), TraceError> {
        self.phase[node as usize] = Phase::Ended;
        self.ended += 1;
        let plain = &self.program.nodes[node as usize];
        let rank = self.rank_of.get(self.program, node);
        self.ranks.finish[rank as usize] = Time::from_ps(self.now);
        if plain.kind == NodeKind::Enter {
            self.present_call[rank as usize] = (node, self.now);
        } else if let Some(&ready) = self.ready.get(node as usize) {
            self.record(rank, node, ready)?;
        }
        self.release(node, 0);
        Ok(())
    }

    /// Tells the dependents of a node's begin ([`FOLLOWS`]) or end (0).
    fn release(&mut self, node: u32, which: u32) {
        let starts = &self.program.dependent_starts;
        let range = starts[node as usize] as usize..starts[node as usize + 1] as usize;
        for &dependent in &self.program.dependents[range] {
            if dependent & FOLLOWS != which {
                continue;
            }
            let waits = &mut self.waits[(dependent & !FOLLOWS) as usize];
            *waits -= 1;
            if *waits == 0 {
                self.present
                    .push_back(READY | u64::from(dependent & !FOLLOWS));
            }
        }
    }

    /// The next call's local work begins: the present call is over.
    fn return_from_call(&mut self, rank: u32) {
        let (node, start) = self.present_call[rank as usize];
        if node != NONE {
            // Calls of a rank follow one another, so their times sum to less than the present.
            self.record(rank, node, start)
                .expect("the sum is below the present time");
        }
    }

    fn record(&mut self, rank: u32, node: u32, start: u64) -> Result<(), TraceError> {
        let plain = &self.program.nodes[node as usize];
        let inside = &mut self.ranks.in_call[rank as usize][plain.call as usize];
        let spent = Time::from_ps(self.now - start);
        *inside = inside.plus(spent)?;
        if self.settings.timeline {
            self.timeline.rank.push(rank);
            self.timeline.event.push(plain.event);
            self.timeline.call.push(plain.call);
            self.timeline.start.push(Time::from_ps(start));
            self.timeline.end.push(Time::from_ps(self.now));
        }
        Ok(())
    }

    /// Follows what waits for what until a node comes twice.
    fn deadlock(&self) -> TraceError {
        let mut awaited = vec![NONE; self.program.len()];
        for node in 0..self.program.len() as u32 {
            if self.phase[node as usize] == Phase::Ended {
                continue;
            }
            let starts = &self.program.dependent_starts;
            let range = starts[node as usize] as usize..starts[node as usize + 1] as usize;
            let begun = self.waits[node as usize] == 0;
            for &dependent in &self.program.dependents[range] {
                if !(begun && dependent & FOLLOWS != 0) {
                    awaited[(dependent & !FOLLOWS) as usize] = node;
                }
            }
        }
        let mut node = (0..self.program.len() as u32)
            .find(|&node| self.phase[node as usize] != Phase::Ended)
            .expect("some node has not ended");
        let mut seen = vec![false; self.program.len()];
        let mut waiting: Vec<Place> = Vec::new();
        while !seen[node as usize] {
            seen[node as usize] = true;
            let place = self.program.place(node);
            if waiting.last() != Some(&place) {
                waiting.push(place);
            }
            node = match self.waits[node as usize] {
                // It has begun and waits for its other end.
                0 => self.program.nodes[node as usize].partner,
                _ => awaited[node as usize],
            };
        }
        TraceError::Deadlock {
            stuck: self.program.len() - self.ended,
            waiting,
        }
    }

    fn result(self) -> Result<Replayed, TraceError> {
        let mut bytes = self.ranks.bytes.iter();
        let bytes = bytes.try_fold(0u64, |sum, &bytes| sum.checked_add(bytes));
        Ok(Replayed {
            time: self
                .ranks
                .finish
                .iter()
                .copied()
                .max()
                .unwrap_or(Time::ZERO),
            messages: self.ranks.messages.iter().sum(),
            bytes: bytes.ok_or_else(too_many)?,
            events: self.events,
            ranks: self.ranks,
            timeline: self.timeline,
        })
    }
}

/// Whether each rank does one call after another, each begun by [`NodeKind::Enter`].
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
