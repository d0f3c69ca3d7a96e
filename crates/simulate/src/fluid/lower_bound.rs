//! Lower bound on the time of flows in steps, computed without rates.
//!
//! The bound is the maximum of two bounds:
//!
//! * **Chain of steps.** The recurrence of [`super::non_interfering`], in which every flow has all
//!   links of its route to itself. Other flows cannot make a flow faster, so no flow ends earlier
//!   than in the recurrence. In addition, all flows of a step that leave a rank (or enter it) over
//!   the same cable share this cable. The rank is not free before the earliest instant at which one
//!   of these flows could start to move, plus the time that the cable needs for their bytes.
//! * **Loads.** A link of capacity C that carries b bytes in total needs at least b / C, after the
//!   minimum latency of its flows. Under the start rule `link`, each flow occupies the link for the
//!   latency of its route plus its bytes at the rate of the route's slowest link. The bound is then
//!   the sum of these times, without the starts of the flows.
//!
//! Messages that are sent eagerly do not wait for their receivers, and end at their senders before
//! they arrive. If a message is small enough to be sent eagerly, only the bound by loads applies.

use super::conversion::{bytes_per_ps, to_time};
use super::non_interfering::FlowPath;
use super::program::{StepFlow, Steps};
use super::schedule::ScheduledSteps;
use super::{Endpoint, FlowOptions, FluidError, StartRule};
use crate::in_network::Groups;
use crate::outcome::NONE;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::network::{Network, Sharing};
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::plan::routes::FABRIC_ROUTE;
use opticoll_plan::schedule::Schedule;

/// Flows of one step that leave (or enter) a rank over one cable, and their bytes.
#[derive(Clone, Copy)]
struct CableDemand {
    rank: u32,
    /// Step to which the other fields refer, counted from 1.
    step: u32,
    /// Earliest instant at which one of the flows could start to move (ps).
    join: f64,
    bytes: u64,
}

impl CableDemand {
    const IDLE: CableDemand = CableDemand {
        rank: NONE,
        step: 0,
        join: f64::INFINITY,
        bytes: 0,
    };

    /// Adds a flow of `rank` in `step`. The flow could start to move at `join` (ps). Returns the
    /// earliest instant (ps) at which all flows of `rank` in this step can have ended. If an
    /// earlier flow of the step belongs to the other rank of the cable, ignores the flow and
    /// returns 0.
    fn add(&mut self, (rank, step): (u32, u32), join: f64, bytes: u64, capacity: f64) -> f64 {
        if self.step != step {
            *self = CableDemand {
                rank,
                step,
                ..CableDemand::IDLE
            };
        }
        if self.rank != rank {
            return 0.0;
        }
        self.join = self.join.min(join);
        self.bytes = self.bytes.saturating_add(bytes);
        self.join + self.bytes as f64 / capacity
    }
}

/// Bytes that a link carries in all steps, and the minimum latency of the flows on the link (ps).
#[derive(Clone, Copy)]
struct Load {
    bytes: u128,
    latency: f64,
    /// Time for which the link is in use if it carries one flow at a time (ps).
    busy: f64,
}

/// Returns a lower bound on the time of [`super::simulate_schedule`]. The bound is reduced by more
/// than the rounding errors of the simulator.
///
/// # Errors
/// A transfer leaves the network, or a size or time exceeds 64 bits.
pub fn schedule_lower_bound(
    network: &dyn Network,
    schedule: &Schedule,
    routes: &NamedRoutes,
    size: Bytes,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<Time, FluidError> {
    let groups = Groups::of(network, schedule, routes);
    let groups = groups.map_err(|transfer| FluidError::Group { transfer })?;
    let steps = ScheduledSteps::new(schedule, routes, &groups, size)?;
    let bound = bound_steps(&groups.on(network), &steps, rule, options)?;
    to_time((bound * (1.0 - 1e-7) - 1.0).max(0.0))
}

fn bound_steps(
    network: &dyn Network,
    steps: &dyn Steps,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<f64, FluidError> {
    let links = network.links();
    let capacities: Vec<f64> = links.iter().map(|link| bytes_per_ps(link.rate)).collect();
    let unused = Load {
        bytes: 0,
        latency: f64::INFINITY,
        busy: 0.0,
    };
    let mut loads = vec![unused; links.len()];
    let mut leaving = vec![CableDemand::IDLE; links.len()];
    let mut arriving = leaving.clone();
    // Earliest instant at which each rank is free, indexed by rank (ps).
    let mut free = vec![0.0f64; network.ranks() as usize];
    let mut all_free = 0.0f64;
    let mut smallest = u64::MAX;
    let (mut flows, mut before) = (Vec::new(), Vec::new());
    let (mut named, mut named_before): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let (mut routes, mut paths): (Vec<u32>, Vec<FlowPath>) = (Vec::new(), Vec::new());
    // Ranks of the step, each with an instant (ps) before which the rank is not free again.
    let mut ends: Vec<(u32, f64)> = Vec::new();
    let (mut first, mut members) = (0, Vec::new());
    for step in 0..steps.steps() {
        flows.clear();
        steps.step(step, &mut flows)?;
        named.clear();
        steps.routes(step, &mut named);
        if named != named_before || !same_ends(&flows, &before) {
            (routes, paths) = find_paths(network, &flows, &named, first)?;
        }
        ends.clear();
        members.clear();
        steps.members(step, &mut members);
        let mut further = members.iter().peekable();
        for (number, (flow, path)) in flows.iter().zip(&paths).enumerate() {
            let further = further.next_if(|one| one.flow == number);
            smallest = smallest.min(flow.bytes);
            let (source, destination) = (flow.source, flow.destination);
            let start = match rule {
                StartRule::Rendezvous => free[source as usize].max(free[destination as usize]),
                StartRule::Sender => free[source as usize],
                StartRule::Step => all_free,
                StartRule::Link => 0.0,
            };
            let mut start: f64 = start;
            for &rank in further.iter().flat_map(|one| &one.ranks) {
                let waits = match rule {
                    StartRule::Rendezvous => true,
                    StartRule::Sender => further.is_some_and(|one| one.send),
                    StartRule::Step | StartRule::Link => false,
                };
                if waits {
                    start = start.max(free[rank as usize]);
                }
            }
            let join = start + path.latency;
            let moving = match path.rate.is_finite() {
                true => flow.bytes as f64 / path.rate,
                false => 0.0,
            };
            ends.push((source, join + moving));
            ends.push((destination, join + moving));
            let others = further.iter().flat_map(|one| &one.ranks);
            ends.extend(others.map(|&rank| (rank, join + moving)));
            let route = &routes[path.links()];
            for &link in route {
                let load = &mut loads[link as usize];
                load.bytes += u128::from(flow.bytes);
                load.latency = load.latency.min(path.latency);
                load.busy += path.latency + moving;
            }
            let cables = [
                (route.first(), source, &mut leaving),
                (route.last(), destination, &mut arriving),
            ];
            for (link, rank, cables) in cables {
                let Some(link) = link.map(|&link| link as usize) else {
                    continue;
                };
                if links[link].sharing == Sharing::Shared {
                    let capacity = capacities[link];
                    let key = (rank, step as u32 + 1);
                    ends.push((rank, cables[link].add(key, join, flow.bytes, capacity)));
                }
            }
        }
        for &(rank, end) in &ends {
            let free = &mut free[rank as usize];
            *free = free.max(end);
            all_free = all_free.max(end);
        }
        first += flows.len();
        std::mem::swap(&mut flows, &mut before);
        std::mem::swap(&mut named, &mut named_before);
    }
    let eager = |endpoint: &Endpoint| smallest <= endpoint.eager_threshold.get();
    let mut bound = match options.endpoint.as_ref().is_some_and(eager) {
        true => 0.0,
        false => all_free,
    };
    for (load, link) in loads.iter().zip(links) {
        if load.bytes > 0 && link.sharing == Sharing::Shared {
            bound = bound.max(load.latency + load.bytes as f64 / bytes_per_ps(link.rate));
        }
        if rule == StartRule::Link {
            bound = bound.max(load.busy);
        }
    }
    Ok(bound)
}

fn same_ends(flows: &[StepFlow], others: &[StepFlow]) -> bool {
    let ends = |flow: &StepFlow| (flow.source, flow.destination);
    flows.iter().map(ends).eq(others.iter().map(ends))
}

/// Returns the links of all routes of a step's flows, and the path of each flow.
fn find_paths(
    network: &dyn Network,
    flows: &[StepFlow],
    named: &[u32],
    first: usize,
) -> Result<(Vec<u32>, Vec<FlowPath>), FluidError> {
    let (mut routes, mut paths) = (Vec::new(), Vec::with_capacity(flows.len()));
    for (index, flow) in flows.iter().enumerate() {
        let ends = (flow.source, flow.destination);
        super::check_ends(first + index, ends.0, ends.1, network.ranks())?;
        let from = routes.len();
        let route = named.get(index).copied().unwrap_or(FABRIC_ROUTE);
        match route {
            FABRIC_ROUTE => network.route(ends.0, ends.1, &mut routes),
            _ => network.route(route, FABRIC_ROUTE, &mut routes),
        }
        paths.push(FlowPath::over_named(network, (ends, route), &routes, from)?);
    }
    Ok((routes, paths))
}
