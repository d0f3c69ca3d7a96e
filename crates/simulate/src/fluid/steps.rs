//! Flows in steps, under a start rule. A repeated step is not simulated again.
//!
//! Ranks may be in different steps. A step is in memory only while some rank is in this step. The
//! flows of a rank in one step form a *group*. The groups of a rank are executed one after another.

mod replay;

use std::collections::VecDeque;

use replay::{RecordedStep, Watched};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ledger::FlowLedger;
use super::program::{FlowEnd, FlowMembers, FlowProgram, FlowStart, StepFlow, Steps, check_count};
use super::quotient_network::Quotient;
use super::{FluidError, StartRule};
use crate::outcome::NONE;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;
use opticoll_plan::plan::routes::FABRIC_ROUTE;

/// Flow of a step that has been loaded.
#[derive(Clone)]
struct LoadedFlow {
    flow: StepFlow,
    /// Number of ranks whose earlier steps must end before the flow starts.
    waits: u32,
    /// Number of sides, senders and receivers, at which the flow has not ended yet.
    ends: u8,
    source_group: u32,
    destination_group: u32,
    /// Index of the route that a plan names for the flow, or [`FABRIC_ROUTE`].
    route: u32,
    further: Option<FurtherRanks>,
}

/// Further ranks of a multicast or an aggregation, each with its group, and true if they send.
type FurtherRanks = (Box<[(u32, u32)]>, bool);

/// Flows of a rank in one step.
#[derive(Default)]
struct RankFlows {
    step: usize,
    /// Number of flows that have not ended at this rank yet.
    pending: u32,
    /// Index of the rank's next group, or [`NONE`].
    next: u32,
    /// Flows that may start only when the rank reaches this group.
    waiting: Vec<u32>,
}

pub(super) struct Stepped<'a> {
    steps: &'a dyn Steps,
    ranks: u32,
    rule: StartRule,
    /// Maximum size in bytes of messages that do not wait for their receivers.
    eager: Option<u64>,
    may_replay: bool,
    /// True if a rank stands for many ranks, so that a flow may lead from a rank to itself.
    is_quotient: bool,
    next_step: usize,
    next_flow: u32,
    buffer: Vec<StepFlow>,
    /// Indices of the routes that a plan names for the flows in `buffer`; empty if the plan names
    /// no routes.
    routes: Vec<u32>,
    /// Further ranks of the flows in `buffer`, in the order of flows.
    members: Vec<FlowMembers>,
    /// Flows in memory. The first of them has the index `first_loaded`.
    loaded: VecDeque<LoadedFlow>,
    first_loaded: u32,
    groups: Vec<RankFlows>,
    free_groups: Vec<u32>,
    /// Index of each rank's current group, or [`NONE`].
    current: Vec<u32>,
    /// Index of each rank's latest group in memory, or [`NONE`].
    newest: Vec<u32>,
    /// Ranks to be checked for a missing group. Every rank without a group in memory is in this
    /// list.
    idle: Vec<u32>,
    /// Index and end (ps) of the flow that ended last at each rank, indexed by rank. Empty unless
    /// flows are recorded.
    last: Vec<(u32, f64)>,
    seen: FxHashSet<u64>,
    replays: Vec<RecordedStep>,
    by_hash: FxHashMap<u64, u32>,
    replay_flows: usize,
    latest_replay: Option<u32>,
    watched: Option<Watched>,
    replayed: u64,
}

impl<'a> Stepped<'a> {
    pub(super) fn new(
        steps: &'a dyn Steps,
        ranks: u32,
        rule: StartRule,
        eager: Option<u64>,
        may_replay: bool,
    ) -> Stepped<'a> {
        Stepped {
            steps,
            ranks,
            rule,
            eager,
            may_replay,
            is_quotient: false,
            next_step: 0,
            next_flow: 0,
            buffer: Vec::new(),
            routes: Vec::new(),
            members: Vec::new(),
            loaded: VecDeque::new(),
            first_loaded: 0,
            groups: Vec::new(),
            free_groups: Vec::new(),
            current: vec![NONE; ranks as usize],
            newest: vec![NONE; ranks as usize],
            idle: (0..ranks).collect(),
            last: Vec::new(),
            seen: FxHashSet::default(),
            replays: Vec::new(),
            by_hash: FxHashMap::default(),
            replay_flows: 0,
            latest_replay: None,
            watched: None,
            replayed: 0,
        }
    }

    /// Creates the program of a quotient, in which each flow (or rank) stands for all equivalent
    /// flows (or ranks).
    pub(super) fn for_quotient(quotient: &'a Quotient, rule: StartRule) -> Stepped<'a> {
        Stepped {
            is_quotient: true,
            ..Stepped::new(quotient, quotient.ranks(), rule, None, false)
        }
    }

    /// Adds the totals of the replayed steps to the ledger. Returns the number of flows and the
    /// number of replayed steps.
    pub(super) fn close(self, ledger: &mut FlowLedger) -> (u64, u64) {
        for replay in self.replays.iter().filter(|replay| replay.times > 0) {
            interrupt::check();
            ledger.replay_links(&replay.period, replay.times);
            for (flow, end) in replay.flows.iter().zip(&replay.ends) {
                interrupt::check();
                let ends = (flow.source, flow.destination);
                let finish = replay.last_begin + end;
                ledger.replay_ranks(ends, flow.bytes.into(), replay.times, finish);
            }
        }
        (u64::from(self.next_flow), self.replayed)
    }

    /// Replays the next steps as long as they have been recorded, then loads the first step that
    /// has not been recorded. All earlier flows must have ended. Returns the instant (ps) at which
    /// the loaded step begins.
    fn begin_when_quiet(
        &mut self,
        mut now: f64,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<f64, FluidError> {
        self.finish_recording(now, ledger);
        while self.next_step < self.steps.steps() {
            interrupt::check();
            self.fill_buffer()?;
            let known = if self.may_replay { self.find() } else { None };
            if let Some(replay) = known {
                now = self.replay(replay, now, ledger)?;
                continue;
            }
            if self.may_replay && !self.buffer.is_empty() {
                self.begin_recording(now, ledger);
            }
            let is_empty = self.buffer.is_empty();
            self.load(now, ready, ledger)?;
            if !is_empty {
                break;
            }
        }
        Ok(now)
    }

    fn fill_buffer(&mut self) -> Result<(), FluidError> {
        self.buffer.clear();
        self.steps.step(self.next_step, &mut self.buffer)?;
        self.routes.clear();
        self.steps.routes(self.next_step, &mut self.routes);
        self.members.clear();
        self.steps.members(self.next_step, &mut self.members);
        check_count(self.buffer.len(), self.next_flow)
    }

    /// Loads the next step, whose flows are in `buffer`, and starts the flows that need not wait.
    fn load(
        &mut self,
        now: f64,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<(), FluidError> {
        let step = self.next_step;
        self.next_step += 1;
        let mut members = std::mem::take(&mut self.members).into_iter().peekable();
        for at in 0..self.buffer.len() {
            interrupt::check();
            let flow = self.buffer[at];
            let index = self.next_flow;
            if !self.is_quotient {
                super::check_ends(index as usize, flow.source, flow.destination, self.ranks)?;
            }
            self.next_flow += 1;
            let mut loaded = LoadedFlow {
                flow,
                waits: 0,
                ends: 2,
                source_group: NONE,
                destination_group: NONE,
                route: self.routes.get(at).copied().unwrap_or(FABRIC_ROUTE),
                further: None,
            };
            let further = members.next_if(|one| one.flow == at);
            if self.rule != StartRule::Step {
                let eager = self.eager.is_some_and(|limit| flow.bytes <= limit);
                let is_synchronous = self.rule == StartRule::Rendezvous && !eager;
                loaded.source_group = self.join_group(flow.source, step);
                loaded.destination_group = self.join_group(flow.destination, step);
                loaded.waits += u32::from(self.waits(index, flow.source, loaded.source_group));
                if is_synchronous {
                    let group = loaded.destination_group;
                    loaded.waits += u32::from(self.waits(index, flow.destination, group));
                }
                let mut joined = Vec::new();
                for &rank in further.iter().flat_map(|one| &one.ranks) {
                    let group = self.join_group(rank, step);
                    if is_synchronous || further.as_ref().is_some_and(|one| one.send) {
                        loaded.waits += u32::from(self.waits(index, rank, group));
                    }
                    joined.push((rank, group));
                }
                loaded.further = further.map(|one| (joined.into(), one.send));
            } else {
                let without_group = |one: FlowMembers| {
                    let ranks = one.ranks.iter().map(|&rank| (rank, NONE)).collect();
                    (ranks, one.send)
                };
                loaded.further = further.map(without_group);
            }
            let starts = loaded.waits == 0;
            self.loaded.push_back(loaded);
            if starts {
                self.start(index, now, ready, ledger)?;
            }
        }
        Ok(())
    }

    /// Returns the index of the group of `rank` in `step`, the newest step, after counting one more
    /// flow in the group.
    fn join_group(&mut self, rank: u32, step: usize) -> u32 {
        let newest = self.newest[rank as usize];
        let known = newest != NONE && self.groups[newest as usize].step == step;
        let group = if known {
            newest
        } else {
            let group = self.free_groups.pop().unwrap_or_else(|| {
                self.groups.push(RankFlows::default());
                self.groups.len() as u32 - 1
            });
            let state = &mut self.groups[group as usize];
            (state.step, state.pending, state.next) = (step, 0, NONE);
            if newest == NONE {
                self.current[rank as usize] = group;
            } else {
                self.groups[newest as usize].next = group;
            }
            self.newest[rank as usize] = group;
            group
        };
        self.groups[group as usize].pending += 1;
        group
    }

    /// Returns whether a flow must wait until `rank` reaches `group`. If so, adds the flow to the
    /// waiting flows of the group.
    fn waits(&mut self, flow: u32, rank: u32, group: u32) -> bool {
        let waits = self.current[rank as usize] != group;
        if waits {
            self.groups[group as usize].waiting.push(flow);
        }
        waits
    }

    fn start(
        &mut self,
        index: u32,
        now: f64,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<(), FluidError> {
        let loaded = &self.loaded[(index - self.first_loaded) as usize];
        let (flow, route) = (loaded.flow, loaded.route);
        if ledger.records_flows() {
            ledger.start(
                index,
                now,
                self.waited_for(&flow, loaded.further.as_ref(), ledger),
            )?;
        }
        ready.push(FlowStart {
            flow: index,
            source: flow.source,
            destination: flow.destination,
            route,
            bytes: flow.bytes,
            cap: f64::INFINITY,
            start: now,
        });
        Ok(())
    }

    /// Returns the index of the flow whose end allowed `flow`, with the ranks `further`, to start.
    fn waited_for(
        &self,
        flow: &StepFlow,
        further: Option<&FurtherRanks>,
        ledger: &FlowLedger,
    ) -> u32 {
        let last = |rank: u32| self.last[rank as usize];
        let mut ends = (last(flow.source), last(flow.destination));
        if let Some((ranks, send)) = further {
            let of_side = if *send { &mut ends.0 } else { &mut ends.1 };
            for &(rank, _) in ranks {
                let other = last(rank);
                if other.0 != NONE && (of_side.0 == NONE || other.1 > of_side.1) {
                    *of_side = other;
                }
            }
        }
        let eager = self.eager.is_some_and(|limit| flow.bytes <= limit);
        self.rule.waited_for(ends, eager, ledger.last_flow)
    }

    /// Handles the end of flow `index` at its source or at its destination.
    fn end_at(
        &mut self,
        index: u32,
        at_source: bool,
        now: f64,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<(), FluidError> {
        let loaded = &mut self.loaded[(index - self.first_loaded) as usize];
        loaded.ends -= 1;
        let (rank, group) = if at_source {
            (loaded.flow.source, loaded.source_group)
        } else {
            (loaded.flow.destination, loaded.destination_group)
        };
        let bytes = loaded.flow.bytes;
        let further = loaded.further.take_if(|(_, send)| *send == at_source);
        self.leave_group(index, (rank, group), now, ready, ledger)?;
        for &(rank, group) in further.iter().flat_map(|(ranks, _)| ranks) {
            ledger.end_at(rank, at_source, bytes, now);
            self.leave_group(index, (rank, group), now, ready, ledger)?;
        }
        Ok(())
    }

    /// Handles the end of flow `index` at a rank, where the flow belongs to the group `group`.
    fn leave_group(
        &mut self,
        index: u32,
        (rank, group): (u32, u32),
        now: f64,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<(), FluidError> {
        if let Some(last) = self.last.get_mut(rank as usize) {
            *last = (index, now);
        }
        if group == NONE {
            return Ok(());
        }
        self.groups[group as usize].pending -= 1;
        // The rank skips every group whose flows have all ended.
        loop {
            interrupt::check();
            let current = self.current[rank as usize];
            if current == NONE || self.groups[current as usize].pending > 0 {
                break;
            }
            let next = self.groups[current as usize].next;
            self.free_groups.push(current);
            self.current[rank as usize] = next;
            if next == NONE {
                self.newest[rank as usize] = NONE;
                self.idle.push(rank);
                break;
            }
            let mut waiting = std::mem::take(&mut self.groups[next as usize].waiting);
            for flow in waiting.drain(..) {
                let loaded = &mut self.loaded[(flow - self.first_loaded) as usize];
                loaded.waits -= 1;
                if loaded.waits == 0 {
                    self.start(flow, now, ready, ledger)?;
                }
            }
            self.groups[next as usize].waiting = waiting;
        }
        Ok(())
    }
}

impl FlowProgram for Stepped<'_> {
    fn advance(
        &mut self,
        mut now: f64,
        events: &[FlowEnd],
        quiet: bool,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<f64, FluidError> {
        if ledger.records_flows() && self.last.is_empty() {
            self.last = vec![(NONE, 0.0); self.ranks as usize];
        }
        for event in events {
            if event.received
                && let Some(watched) = &mut self.watched
                && let Some(end) = watched
                    .ends
                    .get_mut((event.flow - watched.first_flow) as usize)
            {
                *end = now - watched.begin;
            }
            if event.sent {
                self.end_at(event.flow, true, now, ready, ledger)?;
            }
            if event.received {
                self.end_at(event.flow, false, now, ready, ledger)?;
            }
        }
        while self.loaded.front().is_some_and(|loaded| loaded.ends == 0) {
            self.loaded.pop_front();
            self.first_loaded += 1;
        }
        if quiet && self.loaded.is_empty() {
            now = self.begin_when_quiet(now, ready, ledger)?;
        }
        // If a rank has no group, the rank's next step may not be in memory yet.
        while self.rule != StartRule::Step
            && self.next_step < self.steps.steps()
            && let Some(&rank) = self.idle.last()
        {
            if self.current[rank as usize] != NONE {
                self.idle.pop();
                continue;
            }
            self.fill_buffer()?;
            self.load(now, ready, ledger)?;
        }
        Ok(now)
    }
}
