//! Simulation of flows under the start rule `link`: no two flows use a link at the same time.
//!
//! Flows of earlier steps use a link first. Within a step, flows are ordered by the time at which
//! their data arrived at the source (rounded to a picosecond), then by source, destination and
//! lowest chunk. Flows that are equal in all of these properties keep the order of the step. A flow
//! occupies its links from its start to its end: for the latency of its route plus the time of its
//! bytes at the rate of the slowest link. Flow f of step s starts when
//!
//! * the earlier flows on the links of its route have ended, and
//! * all flows of earlier steps that brought a chunk of f to the source of f have ended. (If the
//!   steps do not name chunks: all flows of earlier steps to the source of f.)
//!
//! Data that arrive for a later step are buffered until that step, so a flow never waits until
//! older data have been read. Each flow waits for earlier flows only. One pass over the steps, each
//! in the order above, therefore computes all times.

use rustc_hash::FxHashMap;

use super::ledger::FlowLedger;
use super::non_interfering::FlowPath;
use super::program::{StepFlow, Steps, check_count};
use super::{FlowOptions, FluidError, check_ends};
use crate::outcome::NONE;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;
use opticoll_plan::plan::routes::FABRIC_ROUTE;
use opticoll_plan::plan::{NamedRoutes, StepMessages};
use opticoll_plan::schedule::Schedule;

/// Pair of the end (ps) and the index of a flow.
type LastFlow = (f64, u32);

/// Simulates flows in steps and returns the number of flows. `chunks` contains the schedule and the
/// routes, which define the chunks of each flow; `None` if the steps name no chunks.
pub(super) fn run(
    network: &dyn Network,
    steps: &dyn Steps,
    chunks: Option<(&Schedule, &NamedRoutes)>,
    options: &FlowOptions,
    ledger: &mut FlowLedger,
) -> Result<u64, FluidError> {
    if !options.is_plain() {
        return Err(FluidError::UnsupportedByLinkRule);
    }
    let never: LastFlow = (0.0, NONE);
    let mut links = vec![never; network.links().len()];
    // Latest arrival of each chunk at each rank. The key is (rank, chunk).
    let mut arrived: FxHashMap<(u32, u32), LastFlow> = FxHashMap::default();
    let (mut flows, mut carried, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut route, mut named, mut first) = (Vec::new(), Vec::new(), 0u32);
    let mut members = Vec::new();
    for step in 0..steps.steps() {
        flows.clear();
        steps.step(step, &mut flows)?;
        check_count(flows.len(), first)?;
        carried.clear();
        named.clear();
        steps.routes(step, &mut named);
        members.clear();
        steps.members(step, &mut members);
        match chunks {
            Some((schedule, routes)) => list_chunks(schedule, routes, step, &mut carried),
            None => carried.extend((0..flows.len()).map(|flow| {
                let StepFlow {
                    source,
                    destination,
                    ..
                } = flows[flow];
                Carried {
                    flow,
                    source,
                    destination,
                    chunk: 0,
                    count: 1,
                }
            })),
        }
        starts.clear();
        starts.resize(flows.len(), never);
        for &Carried {
            flow,
            source,
            chunk,
            count,
            ..
        } in &carried
        {
            interrupt::check();
            for chunk in chunk..chunk + count {
                if let Some(last) = arrived.get(&(source, chunk)) {
                    starts[flow] = later(starts[flow], *last);
                }
            }
        }
        let mut lowest = vec![0; flows.len()];
        carried
            .iter()
            .rev()
            .for_each(|&Carried { flow, chunk, .. }| lowest[flow] = chunk);
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by(|&one, &other| {
            let ends = |flow: usize| (flows[flow].source, flows[flow].destination, lowest[flow]);
            let ready = |flow: usize| starts[flow].0.round();
            let earlier = ready(one).total_cmp(&ready(other));
            earlier.then_with(|| ends(one).cmp(&ends(other)))
        });
        // This loop replaces the start of each flow in `starts` by the end of the flow.
        for flow_in_step in order {
            interrupt::check();
            let (flow, last) = (&flows[flow_in_step], &mut starts[flow_in_step]);
            let index = first + flow_in_step as u32;
            let ends = (flow.source, flow.destination);
            check_ends(index as usize, ends.0, ends.1, network.ranks())?;
            route.clear();
            let number = named.get(flow_in_step).copied().unwrap_or(FABRIC_ROUTE);
            match number {
                FABRIC_ROUTE => network.route(ends.0, ends.1, &mut route),
                _ => network.route(number, FABRIC_ROUTE, &mut route),
            }
            let path = FlowPath::over_named(network, (ends, number), &route, 0)?;
            for &link in &route {
                *last = later(*last, links[link as usize]);
            }
            let (start, waited_for) = *last;
            let join = start + path.latency;
            let mut end = join;
            ledger.start(index, start, waited_for)?;
            if flow.bytes > 0 && path.rate.is_finite() {
                end += flow.bytes as f64 / path.rate;
                ledger.rate(index, path.rate, path.bottleneck);
                let used = path.rate * path.shared;
                if used > 0.0 {
                    ledger.flow_over(join, end, used);
                }
            }
            ledger.add_to_links(&route, flow.bytes.into(), end - join);
            ledger.end(index, ends, flow.bytes, end)?;
            for of_flow in members.iter().filter(|one| one.flow == flow_in_step) {
                let ranks = of_flow.ranks.iter();
                ranks.for_each(|&rank| ledger.end_at(rank, of_flow.send, flow.bytes, end));
            }
            options.check_limit(end)?;
            *last = (end, index);
            for &link in &route {
                links[link as usize] = *last;
            }
        }
        for &Carried {
            flow,
            destination,
            chunk,
            count,
            ..
        } in &carried
        {
            interrupt::check();
            for chunk in chunk..chunk + count {
                let last = arrived.entry((destination, chunk)).or_insert(never);
                *last = later(*last, starts[flow]);
            }
        }
        first += flows.len() as u32;
    }
    Ok(first.into())
}

fn later(one: LastFlow, other: LastFlow) -> LastFlow {
    if other.0 > one.0 { other } else { one }
}

/// Consecutive chunks that a flow carries from one rank to another.
struct Carried {
    /// Index of the flow in its step.
    flow: usize,
    source: u32,
    destination: u32,
    chunk: u32,
    count: u32,
}

/// Appends the chunks of all flows of a step to `carried`.
fn list_chunks(schedule: &Schedule, routes: &NamedRoutes, step: usize, carried: &mut Vec<Carried>) {
    let mut messages = StepMessages::of(schedule, routes, step);
    let mut next = 0;
    for (place, transfer) in schedule.columns(step).transfers().enumerate() {
        let flow = messages.earlier(place).unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        carried.push(Carried {
            flow,
            source: transfer.source,
            destination: transfer.destination,
            chunk: transfer.chunk,
            count: transfer.count,
        });
    }
}
