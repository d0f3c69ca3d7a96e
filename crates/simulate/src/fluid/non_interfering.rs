//! Simulation of flows that never share a link. Such flows need neither rates nor a clock.
//!
//! # Recurrence
//!
//! A flow that has every link of its route to itself moves at the minimum rate C of these links. If
//! the flow may start at s, has the latency L and b bytes, it ends at
//!
//! ```text
//! e = s + L + b / C
//! ```
//!
//! In steps, s is the maximum of earlier ends e, as defined by the start rule
//! ([`super::StartRule`]). Ends therefore follow from earlier ends by sums and maxima, step by
//! step, independently of other simultaneous flows. No events are ordered by time, and flows of
//! many steps may be under way.
//!
//! # Condition
//!
//! Two flows *meet* if a link is on both routes and both flows are under way at the same time.
//! Consider two flows f and g of steps s < t whose routes have a link in common:
//!
//! * `step`: g starts when all flows of step s have ended, so f and g never meet.
//! * `rendezvous`: g starts when its source and its destination have ended their flows of step s,
//!   so f and g never meet if they have a rank in common.
//! * `sender`: g starts when its source has ended its flows of step s, so f and g never meet if the
//!   source of g is a rank of f. (This module requires that f and g have the same source.)
//!
//! No flows meet if no two flows of a step use the same link and each link has an *owner*: a rank
//! that, in the sense of the list above, all flows over the link have in common. Neighbours on a
//! ring (with any number of cables between them) and permutations on a switch fulfil this
//! condition. Steps that violate the condition are left to [`super::engine`]. The same applies if
//! the link gives each flow its whole rate, because the busy time of the link is then not the sum
//! of the times of its flows.
//!
//! # Repeated steps
//!
//! Suppose that all ranks are free at one instant before a step and at one instant after it. If the
//! next step has the same flows, its times are those of the step, shifted by the step's duration.
//!
//! # Agreement with the engine
//!
//! The sums are those that the engine computes, so the times agree up to rounding errors far below
//! a picosecond. There is one exception. The engine merges instants within its window ([`super`]),
//! so a chain of n flows may end up to 2 n windows earlier in the engine. A repeated step adds its
//! duration in one sum, and sums over flows (busy times, the profile) are added in another order.

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
use opticoll_plan::plan::routes::FABRIC_ROUTE;

/// Maximum length, in steps, of a cycle of repeated steps that this module leaves to
/// [`super::engine`]. The constant applies under the start rule `step` if flows are recorded: the
/// engine replays such steps, and a replay needs no record of each flow.
const MAX_CYCLE_STEPS: usize = 8;

/// Path of a flow. Flows with the same index in consecutive steps share the path and its sums.
pub(super) struct FlowPath {
    /// Source and destination rank.
    ends: (u32, u32),
    /// Sum of the latencies of the links (ps).
    pub(super) latency: f64,
    /// Rate in bytes per ps; infinite if the path has no links.
    pub(super) rate: f64,
    /// Number of links on the path whose rate flows share, without the links that give each flow
    /// their full rate.
    pub(super) shared: f64,
    /// Link that limits the rate.
    pub(super) bottleneck: Option<u32>,
    /// Index of the path's first link in [`NonInterfering::links`]; `to` is the index after the
    /// last link.
    from: u32,
    to: u32,
    bytes: u128,
    /// Total time (ps) for which the flows on the path have moved bytes.
    moving: f64,
    /// Latest end of the flows (ps).
    end: f64,
}

/// Ranks of which one may be the owner of a link (see the header of this module).
#[derive(Clone, Copy)]
struct Owner {
    /// Ranks that all flows over the link so far have in common; an entry is [`NONE`] if it is no
    /// longer such a rank.
    ranks: [u32; 2],
    /// Latest step that used the link, counted from 1; 0 if no step has used the link.
    step: u32,
}

/// State of the recurrence after a step.
struct NonInterfering<'a> {
    network: &'a dyn Network,
    rule: StartRule,
    owners: Vec<Owner>,
    /// Path of each flow of the step, indexed by flow.
    paths: Vec<FlowPath>,
    links: Vec<u32>,
    /// Instant (ps) at which a rank has ended all its flows of earlier steps, indexed by rank.
    free: Vec<f64>,
    /// Instant at which all flows of earlier steps have ended (ps).
    all_free: f64,
    /// Index and end (ps) of the flow that ended last at each rank, indexed by rank. Empty unless
    /// flows are recorded.
    last: Vec<(u32, f64)>,
    /// Start and end of each flow of the step (ps).
    spans: Vec<(f64, f64)>,
    /// Periods in which the step used links: start (ps), end (ps), and the rate (bytes per ps) at
    /// which flows moved bytes, summed over all shared links.
    uses: Vec<(f64, f64, f64)>,
    flows: Vec<StepFlow>,
    /// Index of the step's first flow, when the step was simulated and not repeated.
    first: u32,
    /// Instant (ps) at which all ranks were free before the step. If the step is repeated, this is
    /// the instant before the latest repetition.
    begin: f64,
    /// Duration of the step (ps), if all ranks were free at one instant before and after the step.
    duration: Option<f64>,
    /// End of each flow in ps after `begin`, if `duration` is known and flows are recorded.
    ends: Vec<f64>,
    /// Number of repetitions of the step that `paths`, `spans`, `uses` and `free` do not include.
    repetitions: u64,
    /// Time (ps) from the simulation of the step to its latest repetition.
    shift: f64,
}

/// Simulates flows in steps and returns the number of flows and the number of repeated steps. If
/// flows meet or steps repeat in a cycle of at most [`MAX_CYCLE_STEPS`], returns `None`; the ledger
/// is then invalid.
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
            // A step without flows needs no repetition, and shares its first index with the next
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
        // Ends never decrease, so this check finds the first end that exceeds 64 bits.
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

    /// Returns whether the flows have the same ranks as the flows of the previous step.
    fn has_paths_of(&self, flows: &[StepFlow]) -> bool {
        let same =
            |(flow, path): (&StepFlow, &FlowPath)| (flow.source, flow.destination) == path.ends;
        flows.len() == self.paths.len() && flows.iter().zip(&self.paths).all(same)
    }

    /// Determines the paths of a step's flows. Returns false if two of these flows may meet, or if
    /// a flow may meet a flow of an earlier step. `first` is the index of the first flow.
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
        // A flow waits for flows of earlier steps only, so the ends are stored after all starts.
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

    /// Adds the link use of the latest repetition of the step to the ledger.
    fn use_links(&self, ledger: &mut FlowLedger) {
        for &(from, to, used) in &self.uses {
            if used > 0.0 {
                ledger.flow_over(from + self.shift, to + self.shift, used);
            }
        }
    }

    fn repeat(&mut self, ledger: &mut FlowLedger) {
        let duration = self.duration.unwrap_or_default();
        self.repetitions += 1;
        self.shift += duration;
        self.begin = self.all_free;
        self.all_free += duration;
        self.use_links(ledger);
    }

    /// Adds the repetitions of the step to the sums of paths and ranks.
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

    /// Records each flow of the step that was simulated last.
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

    /// Records the latest repetition of the step.
    fn record_repetition(&mut self, first: u32, ledger: &mut FlowLedger) -> Result<(), FluidError> {
        let latest = ledger.last_flow;
        let flows = self.flows.iter();
        ledger.replay_flows(StepReplay {
            original: self.first,
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

    /// Returns the flow whose end allowed `flow` to start; `latest` is the flow that ended last.
    fn waited_for(&self, flow: &StepFlow, latest: u32) -> u32 {
        let [source, destination] =
            [flow.source, flow.destination].map(|rank| self.last[rank as usize]);
        self.rule.waited_for((source, destination), false, latest)
    }

    /// Writes the bytes and times of the paths to the ledger.
    fn write_paths(&self, ledger: &mut FlowLedger) {
        for path in &self.paths {
            let links = &self.links[path.links()];
            ledger.add_to_links(links, path.bytes, path.moving);
            ledger.replay_ranks(path.ends, path.bytes, 1, path.end);
        }
    }
}

/// Stores flow `index` as the last flow of its two ranks, unless another flow ended there later.
pub(super) fn note_last(last: &mut [(u32, f64)], flow: &StepFlow, index: u32, end: f64) {
    for rank in [flow.source, flow.destination] {
        let last = &mut last[rank as usize];
        if end >= last.1 {
            *last = (index, end);
        }
    }
}

impl FlowPath {
    /// Returns the range of the path's links in the list of all links.
    pub(super) fn links(&self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }

    /// Returns the path of a flow between the two ranks `ends` over the links `links[from..]`, in
    /// which `named` is the index of a route of the plan, or [`FABRIC_ROUTE`].
    pub(super) fn over_named(
        network: &dyn Network,
        (ends, named): ((u32, u32), u32),
        links: &[u32],
        from: usize,
    ) -> Result<FlowPath, FluidError> {
        let longest = match named {
            FABRIC_ROUTE => None,
            route => network.longest_part(route, FABRIC_ROUTE),
        };
        let mut path = FlowPath::over(network, ends, links, from)?;
        if let Some(longest) = longest {
            let part = links[from..from + longest].iter();
            let latencies = part.map(|&link| network.links()[link as usize].latency.ps() as f64);
            path.latency = latencies.sum();
        }
        Ok(path)
    }

    /// Returns the path between the two ranks `ends` over the links `links[from..]`.
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
    /// Adds a flow between the two ranks `ends`. Returns whether the link still has an owner and
    /// carries no other flow in `step`.
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
