//! Flows that never meet on a link, and so need neither solver nor clock.
//!
//! # The recurrence
//!
//! A flow that has every link of its route to itself moves at the least rate C of these links. If it
//! may start at s, waits for a latency L and has b bytes, it ends at
//!
//! ```text
//! e = s + L + b / C
//! ```
//!
//! and with steps, s is a maximum of earlier ends e, by the start rule ([`super::StartRule`]). So
//! ends follow from ends by sums and maxima alone, step by step, whatever happens at the same time
//! elsewhere: nothing has to be ordered by time, and flows of many steps may be under path.
//!
//! # When flows never meet
//!
//! Two flows of one step meet if a link lies on both of their routes. For two flows f and g of steps
//! s < t on one link:
//!
//! * `step`: g starts when all flows of step s have ended, so they never meet;
//! * `rendezvous`: g starts when both of its ends have ended their flows of step s, so the two never
//!   meet if they have an end in common;
//! * `sender`: g starts when its source has; so they never meet if that is an end of f. (Here it is asked
//!   that it be the source of both.)
//!
//! It is enough that all flows over a link, of whatever step, have one such rank in common, its
//! *owner*, and that no two of a step are on one link. Neighbours on a ring, whatever the cables between
//! them, and permutations on a switch are of that kind. Where a link has no owner, or two flows of a step
//! are on it, the steps are left to [`super::engine`]: even where each would have the link's whole rate, for
//! the time in which the link is busy is then not the sum of theirs.
//!
//! # Steps that come again
//!
//! If all ranks were free at one instant when a step began, and are so again when it has ended, and the
//! next step has the same flows, then all of it happens again, later by what the step took.
//!
//! # Agreement with the engine
//!
//! The same sums, so the same times but for rounding, far below a picosecond, except that the engine takes
//! instants within its window for one ([`super`]): a chain of n flows may end there up to 2 n windows
//! earlier. A step that came again adds its duration at once, and sums over flows (busy times, the profile)
//! are added in another order.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::flow_log::StepReplay;
use super::instant::{bytes_per_ps, to_time};
use super::ledger::FlowLedger;
use super::program::{StepFlow, Steps, check_count};
use super::{FlowOptions, FluidError, StartRule};
use crate::outcome::NONE;
use opticoll_base::interrupt;
use opticoll_fabric::network::{Network, Sharing};

/// Where flows are recorded, steps that come again and again after so many others at most are left to
/// [`super::engine`] under the rule `step`: it replays them, and the record of a replay costs nothing for each flow.
const CYCLE: usize = 8;

/// What all flows of a place in the steps have in common, and what they have done so far.
pub(super) struct FlowPath {
    ends: (u32, u32),
    /// Of the links together (ps).
    pub(super) latency: f64,
    /// Bytes per ps; infinite where there is no link.
    pub(super) rate: f64,
    /// Its links that are shared.
    pub(super) shared: f64,
    /// The link that bounds its flows.
    pub(super) bottleneck: Option<u32>,
    /// Its links in [`Disjoint::links`].
    from: u32,
    to: u32,
    bytes: u128,
    /// How long its flows have moved (ps).
    moving: f64,
    /// When its latest flow ended (ps).
    end: f64,
}

/// Whose flows a link carries.
#[derive(Clone, Copy)]
struct Owner {
    /// Ranks that all flows over the link so far have in common, or [`NONE`].
    ranks: [u32; 2],
    /// The latest step that used the link, counted from 1.
    step: u32,
}

struct Disjoint<'a> {
    network: &'a dyn Network,
    rule: StartRule,
    owners: Vec<Owner>,
    /// By flow of the step.
    paths: Vec<FlowPath>,
    links: Vec<u32>,
    /// By rank: when its flows of earlier steps have ended (ps).
    free: Vec<f64>,
    /// When all have.
    all_free: f64,
    /// By rank: the last flow that ended there, and when. Only where flows are recorded.
    last: Vec<(u32, f64)>,
    /// By flow of the step, when it might start and when it ended.
    spans: Vec<(f64, f64)>,
    /// From when to when the step used how much of the links' rates together (bytes per ps).
    uses: Vec<(f64, f64, f64)>,
    /// The flows of the step.
    flows: Vec<StepFlow>,
    /// The number of the first of them when they were carried out.
    first: u32,
    /// When all ranks were free before the step, the last time that it came (ps).
    begin: f64,
    /// How long the step took, if all ranks were free at one instant before it and after it (ps).
    duration: Option<f64>,
    /// By flow of such a step, when it ended after `begin` (ps). Only where flows are recorded.
    ends: Vec<f64>,
    /// How often the step came again, which `paths`, `spans`, `uses` and `free` do not know of yet.
    again: u64,
    /// How much later it was the last time (ps).
    shift: f64,
}

/// Runs flows in steps, to their number and that of the steps that came again; none where flows meet or
/// steps come again in a [`CYCLE`], and then the ledger means nothing.
///
/// # Errors
/// As [`super::simulate_steps`].
pub(super) fn run(
    network: &dyn Network,
    steps: &dyn Steps,
    rule: StartRule,
    options: &FlowOptions,
    ledger: &mut FlowLedger,
) -> Result<Option<(u64, u64)>, FluidError> {
    let mut disjoint = Disjoint::new(network, rule, ledger.records_flows());
    let (mut flows, mut first, mut repeated) = (Vec::new(), 0, 0);
    let (mut recent, mut again) = (VecDeque::with_capacity(CYCLE), 0);
    for step in 0..steps.steps() {
        interrupt::check();
        flows.clear();
        steps.step(step, &mut flows)?;
        check_count(flows.len(), first)?;
        if disjoint.duration.is_some() && disjoint.flows == flows {
            // Of a step without flows there is nothing to repeat, and its number is that of the next one's
            // first flow.
            if !flows.is_empty() {
                disjoint.repeat(ledger);
                repeated += 1;
                if ledger.records_flows() {
                    disjoint.record_again(first, ledger)?;
                }
            }
        } else {
            if rule == StartRule::Step && ledger.records_flows() {
                let hash = FxBuildHasher.hash_one(&flows);
                again += usize::from(recent.contains(&hash) && !flows.is_empty());
                if again > CYCLE {
                    return Ok(None);
                }
                recent.truncate(CYCLE - 1);
                recent.push_front(hash);
            }
            disjoint.catch_up();
            if !disjoint.are_known(&flows) {
                disjoint.write_down(ledger);
                if !disjoint.find_paths(&flows, first, step as u32 + 1)? {
                    return Ok(None);
                }
            }
            std::mem::swap(&mut disjoint.flows, &mut flows);
            disjoint.carry_out(ledger);
            if ledger.records_flows() {
                disjoint.record(first, ledger)?;
            }
        }
        // Later ends only move on: the first beyond 64 bits is an error.
        to_time(disjoint.all_free)?;
        options.check_limit(disjoint.all_free)?;
        first += disjoint.flows.len() as u32;
    }
    disjoint.catch_up();
    disjoint.write_down(ledger);
    ledger.last_end = disjoint.all_free;
    Ok(Some((u64::from(first), repeated)))
}

impl<'a> Disjoint<'a> {
    fn new(network: &'a dyn Network, rule: StartRule, records_flows: bool) -> Disjoint<'a> {
        let ranks = network.ranks() as usize;
        let unused = Owner {
            ranks: [NONE; 2],
            step: 0,
        };
        Disjoint {
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
            again: 0,
            shift: 0.0,
        }
    }

    /// Whether the flows go the paths of the step before.
    fn are_known(&self, flows: &[StepFlow]) -> bool {
        let same =
            |(flow, path): (&StepFlow, &FlowPath)| (flow.source, flow.destination) == path.ends;
        flows.len() == self.paths.len() && flows.iter().zip(&self.paths).all(same)
    }

    /// The paths of a step's flows; whether they meet neither one another nor those of earlier steps.
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

    /// When the flows of the step end, and what they carry.
    fn carry_out(&mut self, ledger: &mut FlowLedger) {
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

    /// Whether all ranks are free at one instant.
    fn is_even(&self) -> bool {
        self.free.iter().all(|&free| free == self.all_free)
    }

    fn use_links(&self, ledger: &mut FlowLedger) {
        for &(from, to, used) in &self.uses {
            if used > 0.0 {
                ledger.flow_over(from + self.shift, to + self.shift, used);
            }
        }
    }

    /// The step comes once more.
    fn repeat(&mut self, ledger: &mut FlowLedger) {
        let duration = self.duration.unwrap_or_default();
        self.again += 1;
        self.shift += duration;
        self.begin = self.all_free;
        self.all_free += duration;
        self.use_links(ledger);
    }

    /// Tells paths and ranks how often the step came again.
    fn catch_up(&mut self) {
        let (again, shift) = (
            std::mem::take(&mut self.again),
            std::mem::take(&mut self.shift),
        );
        if again == 0 {
            return;
        }
        for (flow, path) in self.flows.iter().zip(&mut self.paths) {
            if flow.bytes > 0 && path.rate.is_finite() {
                path.moving += again as f64 * (flow.bytes as f64 / path.rate);
            }
            path.bytes += u128::from(again) * u128::from(flow.bytes);
            path.end += shift;
        }
        self.free.fill(self.all_free);
    }

    /// Writes down each flow of the step that has been carried out.
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

    /// Writes down that the step came again.
    fn record_again(&mut self, first: u32, ledger: &mut FlowLedger) -> Result<(), FluidError> {
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

    /// The flow whose end let one start.
    fn waited_for(&self, flow: &StepFlow, latest: u32) -> u32 {
        let [source, destination] =
            [flow.source, flow.destination].map(|rank| self.last[rank as usize]);
        self.rule.waited_for((source, destination), false, latest)
    }

    /// Tells links and ranks what the paths have carried.
    fn write_down(&self, ledger: &mut FlowLedger) {
        for path in &self.paths {
            let links = &self.links[path.links()];
            ledger.add_to_links(links, path.bytes, path.moving);
            ledger.replay_ranks(path.ends, path.bytes, 1, path.end);
        }
    }
}

/// Takes down at its ranks that a flow has ended, if none ended there later.
pub(super) fn note_last(last: &mut [(u32, f64)], flow: &StepFlow, index: u32, end: f64) {
    for rank in [flow.source, flow.destination] {
        let last = &mut last[rank as usize];
        if end >= last.1 {
            *last = (index, end);
        }
    }
}

impl FlowPath {
    /// Where its links are among those of all paths.
    pub(super) fn links(&self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }

    /// The path between two ranks over the links from `from` on.
    pub(super) fn over(
        network: &dyn Network,
        ends: (u32, u32),
        links: &[u32],
        from: usize,
    ) -> Result<FlowPath, FluidError> {
        let (mut latency, mut shared) = (0.0, 0.0);
        // Of links equally slow, one that is shared is named.
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
    /// Takes one more flow with these ends; whether the link still has an owner, and the step no other
    /// flow on it.
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
