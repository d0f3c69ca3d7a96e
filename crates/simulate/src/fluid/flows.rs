//! Flows that wait for each other.

use super::FluidError;
use super::conversion::bytes_per_ps;
use super::ledger::FlowLedger;
use super::program::{FlowEnd, FlowProgram, FlowStart};
use crate::outcome::NONE;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Rate, Time};
use opticoll_plan::plan::routes::FABRIC_ROUTE;

/// Bytes that flow from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Sending rank.
    pub source: u32,
    /// Receiving rank, which differs from the sending rank.
    pub destination: u32,
    /// Size. A flow of 0 bytes takes only the latency of its route.
    pub bytes: Bytes,
    /// Earliest start.
    pub release: Time,
    /// Maximum rate; `None` if only the links limit the rate.
    pub rate_cap: Option<Rate>,
}

/// List of flows, each with the flows for which it waits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flows {
    flows: Vec<Flow>,
    after_starts: Vec<usize>,
    after: Vec<u32>,
}

impl Flow {
    /// Creates a flow that may start at time 0 and whose rate only the links limit.
    pub const fn new(source: u32, destination: u32, bytes: Bytes) -> Flow {
        Flow {
            source,
            destination,
            bytes,
            release: Time::ZERO,
            rate_cap: None,
        }
    }
}

impl Flows {
    /// Adds a flow that starts when all flows `after` have ended. Flows are numbered from 0 in the
    /// order in which they are added; `after` may contain flows that are added later.
    pub fn push(&mut self, flow: Flow, after: &[u32]) {
        self.after_starts.push(self.after.len());
        self.after.extend_from_slice(after);
        self.flows.push(flow);
    }

    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Returns whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Returns the flow with index `index`.
    pub fn flow(&self, index: usize) -> Flow {
        self.flows[index]
    }

    /// Returns the indices of the flows for which flow `index` waits.
    pub fn after(&self, index: usize) -> &[u32] {
        let end = self.after_starts.get(index + 1);
        &self.after[self.after_starts[index]..end.copied().unwrap_or(self.after.len())]
    }
}

/// Program of flows that wait for each other.
pub(super) struct Dependencies<'a> {
    flows: &'a Flows,
    /// Number of flows for which each flow still waits, indexed by flow.
    waits: Vec<u32>,
    /// Index in `dependents` of the first flow that waits for each flow; the last entry is the
    /// number of dependents.
    starts: Vec<usize>,
    dependents: Vec<u32>,
    begun: bool,
}

impl<'a> Dependencies<'a> {
    pub(super) fn new(flows: &'a Flows, ranks: u32) -> Result<Dependencies<'a>, FluidError> {
        if flows.len() >= NONE as usize {
            return Err(FluidError::TooMany);
        }
        let mut starts = vec![0; flows.len() + 1];
        let mut waits = Vec::with_capacity(flows.len());
        for (index, flow) in flows.flows.iter().enumerate() {
            interrupt::check();
            super::check_ends(index, flow.source, flow.destination, ranks)?;
            waits.push(flows.after(index).len() as u32);
            for &before in flows.after(index) {
                if before as usize >= flows.len() {
                    return Err(FluidError::UnknownDependency {
                        flow: index,
                        after: before,
                        flows: flows.len(),
                    });
                }
                starts[before as usize + 1] += 1;
            }
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut dependents = vec![0; flows.after.len()];
        for index in 0..flows.len() {
            interrupt::check();
            for &before in flows.after(index) {
                dependents[next[before as usize]] = index as u32;
                next[before as usize] += 1;
            }
        }
        let dependencies = Dependencies {
            flows,
            waits,
            starts,
            dependents,
            begun: false,
        };
        dependencies.check_acyclic()?;
        Ok(dependencies)
    }

    /// Returns an error if flows wait for each other in a cycle. The check lets flows end one after
    /// the other as if they took no time. A flow that cannot end waits for a cycle.
    fn check_acyclic(&self) -> Result<(), FluidError> {
        let mut waits = self.waits.clone();
        let mut free: Vec<u32> = (0u32..)
            .zip(&waits)
            .filter(|(_, waits)| **waits == 0)
            .map(|(flow, _)| flow)
            .collect();
        while let Some(flow) = free.pop() {
            interrupt::check();
            for &dependent in self.dependents(flow) {
                waits[dependent as usize] -= 1;
                if waits[dependent as usize] == 0 {
                    free.push(dependent);
                }
            }
        }
        let Some(mut flow) = waits.iter().position(|&waits| waits > 0) else {
            return Ok(());
        };
        // Each flow that cannot end waits for another such flow, so the walk back reaches a cycle.
        let mut seen = vec![false; waits.len()];
        while !std::mem::replace(&mut seen[flow], true) {
            let stuck = |before: &&u32| waits[**before as usize] > 0;
            let Some(&before) = self.flows.after(flow).iter().find(stuck) else {
                break;
            };
            flow = before as usize;
        }
        Err(FluidError::Cycle { flow })
    }

    fn dependents(&self, flow: u32) -> &[u32] {
        &self.dependents[self.starts[flow as usize]..self.starts[flow as usize + 1]]
    }

    fn message(&self, index: u32, now: f64) -> FlowStart {
        let flow = &self.flows.flows[index as usize];
        FlowStart {
            flow: index,
            source: flow.source,
            destination: flow.destination,
            route: FABRIC_ROUTE,
            bytes: flow.bytes.get(),
            cap: flow.rate_cap.map_or(f64::INFINITY, bytes_per_ps),
            start: now.max(flow.release.ps() as f64),
        }
    }
}

impl FlowProgram for Dependencies<'_> {
    fn advance(
        &mut self,
        now: f64,
        events: &[FlowEnd],
        _quiet: bool,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<f64, FluidError> {
        if !std::mem::replace(&mut self.begun, true) {
            for index in 0..self.flows.len() as u32 {
                interrupt::check();
                if self.waits[index as usize] == 0 {
                    let message = self.message(index, now);
                    ledger.start(index, message.start, NONE)?;
                    ready.push(message);
                }
            }
        }
        for event in events.iter().filter(|event| event.received) {
            for at in self.starts[event.flow as usize]..self.starts[event.flow as usize + 1] {
                let index = self.dependents[at];
                self.waits[index as usize] -= 1;
                if self.waits[index as usize] == 0 {
                    let message = self.message(index, now);
                    let released_later = message.start > now;
                    let waited_for = if released_later { NONE } else { event.flow };
                    ledger.start(index, message.start, waited_for)?;
                    ready.push(message);
                }
            }
        }
        Ok(now)
    }
}
