//! Flows that never share a link, and therefore need neither rates nor a clock.
//!
//! # Recurrence
//!
//! A flow that has every link of its route to itself moves at the least rate C of these links. If
//! it may start at s, has the latency L and b bytes, it ends at
//!
//! ```text
//! e = s + L + b / C
//! ```
//!
//! and with steps, s is a maximum of earlier ends e, as defined by the start rule
//! ([`super::StartRule`]). Ends therefore follow from earlier ends by sums and maxima alone, step
//! by step, independently of simultaneous flows elsewhere. Nothing has to be ordered by time, and
//! flows of many steps may be under way.
//!
//! # Condition
//!
//! Two flows of one step meet if a link lies on both of their routes. For two flows f and g of
//! steps s < t on one link:
//!
//! * `step`: g starts when all flows of step s have ended, so f and g never meet.
//! * `rendezvous`: g starts when its source and its destination have ended their flows of step s,
//!   so f and g never meet if they have a rank in common.
//! * `sender`: g starts when its source has ended its flows of step s, so f and g never meet if the
//!   source of g is a rank of f. (This module requires that it is the source of both.)
//!
//! It is sufficient that all flows over a link, of all steps, have one such rank in common, the
//! link's *owner*, and that no two flows of a step use the same link. Neighbours on a ring (with
//! any number of cables between them) and permutations on a switch fulfil this condition. If a link
//! has no owner, or two flows of a step use it, the steps are left to [`super::engine`], even if
//! each flow would get the link's whole rate, because the busy time of the link is then not the sum
//! of the times of its flows.
//!
//! # Repeated steps
//!
//! If all ranks are free at the same instant when a step begins, and again when it has ended, and
//! the next step has the same flows, then the next step is the same, shifted by the duration of the
//! step.
//!
//! # Agreement with the engine
//!
//! The sums are those of the engine, so the times agree up to rounding errors far below a
//! picosecond. One exception is that the engine merges instants within its window ([`super`]): a
//! chain of n flows may end up to 2 n windows earlier there. A repeated step adds its duration at
//! once, and sums over flows (busy times, the profile) are added in another order.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::conversion::{bytes_per_ps, to_time};
use super::flow_log::StepReplay;
use super::ledger::FlowLedger;
use super::program::{StepFlow, Steps, check_count};
use super::{FlowOptions, FluidError, StartRule};
use crate::outcome::NONE;
use opticoll_base::interrupt;
use opticoll_fabric::network::{Network, Sharing};

/// Maximum length, in steps, of a cycle of steps that is left to [`super::engine`] under the rule
/// `step` if flows are recorded: the engine replays such steps, and a replay needs no record of
/// each flow.
const MAX_CYCLE_STEPS: usize = 8;

/// Path of the flows at one index of the steps, with the sums of these flows so far.
pub(super) struct FlowPath {
    /// Source and destination.
    ends: (u32, u32),
    /// Sum of the latencies of its links (ps).
    pub(super) latency: f64,
    /// Rate in bytes per ps; infinite if there is no link.
    pub(super) rate: f64,
    /// Number of its links that flows share.
    pub(super) shared: f64,
    /// Link that bounds its flows.
    pub(super) bottleneck: Option<u32>,
    /// Range of its links in [`NonInterfering::links`].
    from: u32,
    to: u32,
    bytes: u128,
    /// Total time for which its flows have moved (ps).
    moving: f64,
    /// End of its latest flow (ps).
    end: f64,
}

/// Owner of a link.
#[derive(Clone, Copy)]
struct Owner {
    /// Ranks that all flows over the link so far have in common, or [`NONE`].
    ranks: [u32; 2],
    /// Latest step that used the link, counted from 1.
    step: u32,
}

/// State of the recurrence, step by step.
struct NonInterfering<'a> {
    network: &'a dyn Network,
    rule: StartRule,
    owners: Vec<Owner>,
    /// Path of each flow of the step.
    paths: Vec<FlowPath>,
    links: Vec<u32>,
    /// Time at which the flows of earlier steps of each rank have ended (ps).
    free: Vec<f64>,
    /// Time at which all flows of earlier steps have ended (ps).
    all_free: f64,
    /// Last flow that ended at each rank, and its end (ps). Only if flows are recorded.
    last: Vec<(u32, f64)>,
    /// Start and end of each flow of the step (ps).
    spans: Vec<(f64, f64)>,
    /// Start, end and sum over links of the rate that the step used (bytes per ps).
    uses: Vec<(f64, f64, f64)>,
    /// Flows of the step.
    flows: Vec<StepFlow>,
    /// Index of the first flow when the step was simulated.
    first: u32,
    /// Time at which all ranks were free before the latest occurrence of the step (ps).
    begin: f64,
    /// Duration of the step, if all ranks were free at the same instant before it and after it
    /// (ps).
    duration: Option<f64>,
    /// End of each flow of such a step after `begin` (ps). Only if flows are recorded.
    ends: Vec<f64>,
    /// Number of repetitions of the step that `paths`, `spans`, `uses` and `free` do not contain
    /// yet.
    repetitions: u64,
    /// Shift of the latest repetition (ps).
    shift: f64,
}

/// Simulates flows in steps and returns the numbers of flows and of repeated steps. Returns `None`
/// if flows meet or steps repeat in a cycle of at most [`MAX_CYCLE_STEPS`] steps; the ledger is
/// then invalid.
///
/// # Errors
/// The errors of [`super::simulate_steps`].
pub(super) fn run(
    network: &dyn Network,
    steps: &dyn Steps,
    rule: StartRule,
    options: &FlowOptions,
    ledger: &mut FlowLedger,
) -> Result<Option<(u64, u64)>, FluidError> {
    let mut state = NonInterfering::new(network, rule, ledger.records_flows());
    let (mut flows, mut first, mut repeated) = (Vec::new(), 0, 0);
    let (mut recent, mut recurring) = (VecDeque::with_capacity(MAX_CYCLE_STEPS), 0);
    for step in 0..steps.steps() {
        interrupt::check();
        flows.clear();
        steps.step(step, &mut flows)?;
        check_count(flows.len(), first)?;
        if state.duration.is_some() && state.flows == flows {
            // A step without flows needs no repetition, and its first index is that of the next
            // step.
            if !flows.is_empty() {
                state.repeat(ledger);
                repeated += 1;
                if ledger.records_flows() {
                    state.record_repetition(first, ledger)?;
                }
            }
        } else {
            if rule == StartRule::Step && ledger.records_flows() {
                let hash = FxBuildHasher.hash_one(&flows);
                recurring += usize::from(recent.contains(&hash) && !flows.is_empty());
                if recurring > MAX_CYCLE_STEPS {
                    return Ok(None);
                }
                recent.truncate(MAX_CYCLE_STEPS - 1);
                recent.push_front(hash);
            }
            state.apply_repetitions();
            if !state.has_paths_of(&flows) {
                state.write_paths(ledger);
                if !state.find_paths(&flows, first, step as u32 + 1)? {
                    return Ok(None);
                }
            }
            std::mem::swap(&mut state.flows, &mut flows);
            state.simulate_step(ledger);
            if ledger.records_flows() {
                state.record(first, ledger)?;
            }
        }
        // Ends never decrease, so the first end beyond 64 bits is an error.
        to_time(state.all_free)?;
        options.check_limit(state.all_free)?;
        first += state.flows.len() as u32;
    }
    state.apply_repetitions();
    state.write_paths(ledger);
    ledger.last_end = state.all_free;
    Ok(Some((u64::from(first), repeated)))
}

impl<'a> NonInterfering<'a> {
    fn new(network: &'a dyn Network, rule: StartRule, records_flows: bool) -> NonInterfering<'a> {
        let ranks = network.ranks() as usize;
        let unused = Owner {
            ranks: [NONE; 2],
            step: 0,
        };
        NonInterfering {
            network,
            rule,
            owners: vec![unused; network.links().len()],
            paths: Vec::new(),
            links: Vec::new(),
            free: vec![0.0; ranks],
            all_free: 0.0,
            last: vec![(NONE, 0.0); if records_flows { ranks } else { 0 }],
            spans: Vec::new(),
            uses: Vec::new(),
            flows: Vec::new(),
            first: 0,
            begin: 0.0,
            duration: None,
            ends: Vec::new(),
            repetitions: 0,
            shift: 0.0,
        }
    }

    /// Returns whether the flows have the paths of the previous step.
    fn has_paths_of(&self, flows: &[StepFlow]) -> bool {
        let same =
            |(flow, path): (&StepFlow, &FlowPath)| (flow.source, flow.destination) == path.ends;
        flows.len() == self.paths.len() && flows.iter().zip(&self.paths).all(same)
    }

    /// Finds the paths of a step's flows; returns whether the flows meet neither each other nor
    /// flows of earlier steps.
    fn find_paths(
        &mut self,
        flows: &[StepFlow],
        first: u32,
        step: u32,
    ) -> Result<bool, FluidError> {
        self.paths.clear();
        self.links.clear();
        for (index, flow) in flows.iter().enumerate() {
            interrupt::check();
            let ends = (flow.source, flow.destination);
            let ranks = self.network.ranks();
            super::check_ends(first as usize + index, ends.0, ends.1, ranks)?;
            let from = self.links.len();
            self.network.route(ends.0, ends.1, &mut self.links);
            let path = FlowPath::over(self.network, ends, &self.links, from)?;
            for &link in &self.links[from..] {
                if !self.owners[link as usize].admits(ends, self.rule, step) {
                    return Ok(false);
                }
            }
            self.paths.push(path);
        }
        Ok(true)
    }

    /// Computes the ends of the step's flows and adds their bytes to the paths.
    fn simulate_step(&mut self, ledger: &mut FlowLedger) {
        self.begin = self.all_free;
        let even = self.is_even();
        self.spans.clear();
        self.uses.clear();
        for (flow, path) in self.flows.iter().zip(&mut self.paths) {
            interrupt::check();
            let source = self.free[flow.source as usize];
            let start = match self.rule {
                StartRule::Rendezvous => source.max(self.free[flow.destination as usize]),
                StartRule::Sender => source,
                StartRule::Step | StartRule::Link => self.all_free,
            };
            let join = start + path.latency;
            let mut end = join;
            if flow.bytes > 0 && path.rate.is_finite() {
                end += flow.bytes as f64 / path.rate;
                path.moving += end - join;
                let used = path.rate * path.shared;
                match self.uses.last_mut() {
                    Some(last) if (last.0, last.1) == (join, end) => last.2 += used,
                    _ => self.uses.push((join, end, used)),
                }
            }
            path.bytes += u128::from(flow.bytes);
            path.end = end;
            self.spans.push((start, end));
        }
        // The flows of a step wait for earlier steps only.
        for (flow, &(_, end)) in self.flows.iter().zip(&self.spans) {
            for rank in [flow.source, flow.destination] {
                let free = &mut self.free[rank as usize];
                *free = free.max(end);
            }
            self.all_free = self.all_free.max(end);
        }
        self.duration = (even && self.is_even()).then_some(self.all_free - self.begin);
        self.use_links(ledger);
    }

    /// Returns whether all ranks are free at the same instant.
    fn is_even(&self) -> bool {
        self.free.iter().all(|&free| free == self.all_free)
    }

    /// Adds the link use of the step to the ledger.
    fn use_links(&self, ledger: &mut FlowLedger) {
        for &(from, to, used) in &self.uses {
            if used > 0.0 {
                ledger.flow_over(from + self.shift, to + self.shift, used);
            }
        }
    }

    /// Repeats the step.
    fn repeat(&mut self, ledger: &mut FlowLedger) {
        let duration = self.duration.unwrap_or_default();
        self.repetitions += 1;
        self.shift += duration;
        self.begin = self.all_free;
        self.all_free += duration;
        self.use_links(ledger);
    }

    /// Adds the repetitions of the step to paths and ranks.
    fn apply_repetitions(&mut self) {
        let (repetitions, shift) = (
            std::mem::take(&mut self.repetitions),
            std::mem::take(&mut self.shift),
        );
        if repetitions == 0 {
            return;
        }
        for (flow, path) in self.flows.iter().zip(&mut self.paths) {
            if flow.bytes > 0 && path.rate.is_finite() {
                path.moving += repetitions as f64 * (flow.bytes as f64 / path.rate);
            }
            path.bytes += u128::from(repetitions) * u128::from(flow.bytes);
            path.end += shift;
        }
        self.free.fill(self.all_free);
    }

    /// Records each flow of the step that has been simulated.
    fn record(&mut self, first: u32, ledger: &mut FlowLedger) -> Result<(), FluidError> {
        let latest = ledger.last_flow;
        for (((flow, path), &(start, end)), index) in self
            .flows
            .iter()
            .zip(&self.paths)
            .zip(&self.spans)
            .zip(first..)
        {
            interrupt::check();
            ledger.start(index, start, self.waited_for(flow, latest))?;
            if flow.bytes > 0 && path.rate.is_finite() {
                ledger.rate(index, path.rate, path.bottleneck);
            }
            ledger.note_end(index, end)?;
        }
        for ((flow, &(_, end)), index) in self.flows.iter().zip(&self.spans).zip(first..) {
            interrupt::check();
            note_last(&mut self.last, flow, index, end);
        }
        self.first = first;
        self.ends.clear();
        if self.duration.is_some() {
            let ends = self.spans.iter().map(|span| span.1 - self.begin);
            self.ends.extend(ends);
        }
        Ok(())
    }

    /// Records that the step was repeated.
    fn record_repetition(&mut self, first: u32, ledger: &mut FlowLedger) -> Result<(), FluidError> {
        let latest = ledger.last_flow;
        let flows = self.flows.iter();
        ledger.replay_flows(StepReplay {
            like: self.first,
            first,
            begin: self.begin,
            ends: &self.ends,
            waited_for: flows.map(|flow| self.waited_for(flow, latest)).collect(),
        })?;
        for ((flow, after), index) in self.flows.iter().zip(&self.ends).zip(first..) {
            interrupt::check();
            note_last(&mut self.last, flow, index, self.begin + after);
        }
        Ok(())
    }

    /// Returns the flow whose end allowed `flow` to start.
    fn waited_for(&self, flow: &StepFlow, latest: u32) -> u32 {
        let [source, destination] =
            [flow.source, flow.destination].map(|rank| self.last[rank as usize]);
        self.rule.waited_for((source, destination), false, latest)
    }

    /// Writes the bytes and times of the paths to the ledger of links and ranks.
    fn write_paths(&self, ledger: &mut FlowLedger) {
        for path in &self.paths {
            let links = &self.links[path.links()];
            ledger.add_to_links(links, path.bytes, path.moving);
            ledger.replay_ranks(path.ends, path.bytes, 1, path.end);
        }
    }
}

/// Stores a flow as the last flow of its two ranks, unless a flow ended there later.
pub(super) fn note_last(last: &mut [(u32, f64)], flow: &StepFlow, index: u32, end: f64) {
    for rank in [flow.source, flow.destination] {
        let last = &mut last[rank as usize];
        if end >= last.1 {
            *last = (index, end);
        }
    }
}

impl FlowPath {
    /// Returns the range of its links among those of all paths.
    pub(super) fn links(&self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }

    /// Returns the path between two ranks over the links from index `from` on.
    pub(super) fn over(
        network: &dyn Network,
        ends: (u32, u32),
        links: &[u32],
        from: usize,
    ) -> Result<FlowPath, FluidError> {
        let (mut latency, mut shared) = (0.0, 0.0);
        // If several links are the slowest, a shared link is the bottleneck.
        let (mut slowest, mut bottleneck) = ((f64::INFINITY, true), None);
        let known = network.links();
        for &index in &links[from..] {
            let Some(link) = known.get(index as usize) else {
                return Err(FluidError::Link {
                    link: index,
                    source_rank: ends.0,
                    destination: ends.1,
                });
            };
            let per_flow = link.sharing == Sharing::PerFlow;
            latency += link.latency.ps() as f64;
            shared += f64::from(u8::from(!per_flow));
            let capacity = (bytes_per_ps(link.rate), per_flow);
            if capacity < slowest {
                (slowest, bottleneck) = (capacity, Some(index));
            }
        }
        Ok(FlowPath {
            ends,
            latency,
            rate: slowest.0,
            shared,
            bottleneck,
            from: from as u32,
            to: links.len() as u32,
            bytes: 0,
            moving: 0.0,
            end: 0.0,
        })
    }
}

impl Owner {
    /// Adds a flow with the given source and destination; returns whether the link still has an
    /// owner and no other flow in the step.
    fn admits(&mut self, ends: (u32, u32), rule: StartRule, step: u32) -> bool {
        let first = self.step == 0;
        if std::mem::replace(&mut self.step, step) == step {
            return false;
        }
        let common = match rule {
            StartRule::Step | StartRule::Link => return true,
            StartRule::Sender => [ends.0, NONE],
            StartRule::Rendezvous => [ends.0, ends.1],
        };
        if first {
            self.ranks = common;
        }
        for rank in &mut self.ranks {
            if !common.contains(rank) {
                *rank = NONE;
            }
        }
        self.ranks != [NONE; 2]
    }
}
