//! Lower bounds on the time of a schedule's plan, computed before the schedule is placed and
//! simulated.
//!
//! **On WDM rings.** A channel of rate B needs at least a + b / B for b bytes
//! ([`opticoll_fabric::fabric::transmission`]). Let delta be the propagation delay and R the
//! reconfiguration time. In a step, let L chunks of b bytes each cross some link, which has c
//! channels. The step needs at least ceil(L / c) slots. With or without stripes, L b bytes cross
//! the link over c channels. If slots do not overlap and each slot is charged R,
//!
//! ```text
//! T >= sum over steps of ceil(L / c) (R + a + delta) + L b / (c B)
//! ```
//!
//! R counts once under `on_change` and not at all under `free`. If lightpaths carry single chunks
//! and no step loads a link with more than m chunks, a chunk has at most floor(c / m) stripes. In
//! large schedules, the maximum number of transfers limits the stripes further. Each slot takes at
//! least the time of a stripe over one channel. Under `per_port` slots may overlap. Then T >= R +
//! a + delta. If circuits between D different pairs of ranks send X bytes over a link in all steps,
//! T >= (D R + X / B) / c as well: for each pair, a port is reconfigured at least once while its
//! channel is idle.
//!
//! On a ring, algorithms send single chunks. Consider an all_gather or reduce_scatter of whole
//! blocks in k stripes. Let C_S(N) be the minimum total length, in links, of a tree that carries a
//! block to all ranks in S slots. The plan needs S slots with C_S(N) <= 2 floor(c / k) S
//! ([`relay_tree`], theorem R5), and sends a k-th of a block in each slot. Hence T >= S (R + a +
//! delta + d / (k B)) for blocks of d bytes and the k that minimizes this expression. In an
//! all_to_all, the blocks of a rank cross floor(N^2 / 4) links (theorem R3) instead of C_S(N),
//! whatever ranks relay them.
//!
//! **On graphs of fibres.** In a step, let the chunks, each over a shortest route, cross H links in
//! total, and let all links have C channels. Then T >= sum over steps of ceil(H / C) R + H b / (C
//! B), with R as above, unless slots overlap or light trees share channels.
//!
//! **On electrical fabrics.** See [`fluid::schedule_lower_bound`]. In `bulk_synchronous`, every
//! step takes at least the least latency ([`bulk_synchronous::least_time`]).
//!
//! **From the formulas of a record.** A schedule of S steps needs at least S slots. The V bytes
//! that a rank receives arrive over its 2 c channels or over its cables. On a circuit switch with d
//! ports whose slots do not overlap, T >= S (alpha + delta) + V / (d B). The module [`grids`] has
//! similar bounds for grids.

mod grids;
mod loads;

pub(crate) use loads::ranges_bound;

use loads::{MAX_RANKS, has_loads, load_bound, pairs_time, striped_slots_time};

use crate::{PlannerError, PlanningProblem, ring_of, time_bound};
use opticoll_algorithms::{Algorithm, LinkLoadBound, formula};
use opticoll_base::graph;
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_bounds::wdm_ring::relay_tree;
use opticoll_fabric::fabric::circuits::ReconfigurationCharge;
use opticoll_fabric::fabric::{Circuits, Fabric, Transmission};
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_fabric::family::wss_grid::WssGrid;
use opticoll_fabric::library::Protocol;
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{NamedRoutes, Plan};
use opticoll_plan::schedule::Schedule;
use opticoll_simulate::packet::RankPlacement;
use opticoll_simulate::{Policy, SimulationError, Simulator, TimingModel, bulk_synchronous, fluid};

/// Returns a lower bound on the time of a ring's plan that has `slots` non-empty slots and sends
/// `bytes` bytes over `channels` channels.
pub(crate) fn slots_time(
    ring: &WdmRing,
    policy: Policy,
    slots: u64,
    bytes: u64,
    channels: u64,
) -> Result<Time, PlannerError> {
    let transmission = ring.transmission();
    let hop = transmission.latency().plus(ring.least_propagation()?)?;
    let sending = transmission.least((bytes / channels.max(1)).into(), 1);
    let sending = sending.and_then(|sending| u64::try_from(sending).ok());
    let sending = Time::from_ps(sending.unwrap_or(u64::MAX));
    let once = match policy {
        _ if slots == 0 => Time::ZERO,
        Policy::Free | Policy::TwoTier | Policy::SetupTeardown => Time::ZERO,
        _ => ring.reconfiguration,
    };
    let setting_up = match policy {
        Policy::EveryStep => once.times(slots)?,
        _ => once,
    };
    let hops = match policy {
        Policy::PerPort => slots.min(1),
        _ => slots,
    };
    Ok(setting_up.plus(hop.times(hops)?)?.plus(sending)?)
}

/// Returns lower bounds on the time and on the number of slots of an algorithm's plan, from the
/// formulas in the algorithm's record. A bound is zero if the record has no formula for it.
pub(crate) fn formula_bound(
    record: &Algorithm,
    spec: &Spec,
    problem: &PlanningProblem<'_>,
) -> Result<(Time, u64), PlannerError> {
    let unknown = (Time::ZERO, 0);
    let ranks = problem.fabric.ranks();
    let has_demand = problem.collective.demand().is_some();
    // A piece has at least one byte. Slots of empty pieces send nothing.
    let max_pieces = problem.size.get().max(1);
    let pieces = record.pieces(spec).map(|pieces| pieces.min(max_pieces));
    if ranks < 2 || has_demand {
        return Ok(unknown);
    }
    let single_chunk_bound = match pieces {
        None | Some(1) => single_chunk_bound(problem)?,
        Some(_) => unknown,
    };
    let load_bound = load_formula_bound(record, spec, problem)?;
    let ring_bound = (
        single_chunk_bound.0.max(load_bound.0),
        single_chunk_bound.1.max(load_bound.1),
    );
    let is_plain = spec.options().count() == usize::from(pieces.is_some());
    if !is_plain {
        return Ok(ring_bound);
    }
    let mut values = formula::rank_variables(ranks);
    values.extend(pieces.map(|pieces| ('K', pieces as f64)));
    let exactly = |text: Option<&str>| text.and_then(|text| formula::value(text, &values));
    let slots = exactly(record.costs.steps).map_or(0, |steps| steps.round() as u64);
    // Each piece of a pipeline needs a step of its own. Along two trees, the last two pieces may
    // arrive in the same step.
    let slots = slots.max(pieces.unwrap_or(1) - 1);
    let blocks = exactly(record.costs.received).unwrap_or(0.0);
    let bytes =
        blocks * formula_unit_bytes(record.collective, problem.size, ranks) as f64 * (1.0 - 1e-9);
    if let Some(CircuitMachine::CircuitSwitch(switch)) = problem.fabric.circuit_machine() {
        // The network beside a switch sends bytes as well.
        if switch.packet_rate.is_some() {
            return Ok((Time::ZERO, slots));
        }
        return Ok((port_time(switch, problem.policy(), slots, bytes)?, slots));
    }
    let Some(ring) = ring_of(problem.fabric) else {
        // On a grid of switches, the schedules may differ from the schedules that the formulas
        // describe.
        let slot = match problem.fabric.planes() {
            None => grids::GridSlot::of(problem)?,
            Some(_) => None,
        };
        let least = slot.map(|slot| slot.time(slots, bytes)).transpose()?;
        let least = least.unwrap_or_else(|| {
            let in_network = record.name == Protocol::Nvls.name();
            steps_bound(problem, slots, in_network)
        });
        return Ok((least, slots));
    };
    let channels = 2 * u64::from(ring.channels());
    let least = slots_time(ring, problem.policy(), slots, bytes as u64, channels)?;
    Ok((least.max(ring_bound.0), slots.max(ring_bound.1)))
}

/// Returns lower bounds on the time and on the number of slots of an algorithm's plan on a ring,
/// from the link loads in the algorithm's record. The bounds are zero if the record has no link
/// loads.
fn load_formula_bound(
    record: &Algorithm,
    spec: &Spec,
    problem: &PlanningProblem<'_>,
) -> Result<(Time, u64), PlannerError> {
    let ring = ring_of(problem.fabric).filter(|ring| !ring.multicast);
    let shape = ring.and_then(WdmRing::ring_shape);
    let loads = match shape {
        Some(shape) => (record.link_load_bound)(spec, shape)?,
        None => None,
    };
    let (Some(ring), Some(loads)) = (ring, loads) else {
        return Ok((Time::ZERO, 0));
    };
    let bytes = chunk_bytes(record, problem).saturating_mul(counted_load(loads, problem));
    let channels = ring.channels().into();
    let time = slots_time(ring, problem.policy(), loads.slots, bytes, channels)?;
    Ok((time, loads.slots))
}

/// Returns the bytes of an algorithm's chunk: a block, or an N-th of the vector.
fn chunk_bytes(record: &Algorithm, problem: &PlanningProblem<'_>) -> u64 {
    let ranks = problem.fabric.ranks();
    match record.collective {
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => {
            problem.size.get() / u64::from(ranks)
        }
        kind => formula_unit_bytes(kind, problem.size, ranks),
    }
}

/// Returns the number of chunks that bound the time: the load of the busiest link, summed over the
/// steps. If slots overlap, steps with different busiest links may overlap as well. The load of the
/// busiest link after all steps is then used.
fn counted_load(loads: LinkLoadBound, problem: &PlanningProblem<'_>) -> u64 {
    match problem.policy() {
        Policy::PerPort => loads.busiest_link,
        _ => loads.step_maxima,
    }
}

/// Returns a lower bound on the time of an algorithm's plan without building the schedule; zero if
/// no bound is known.
pub(crate) fn record_bound(
    record: &Algorithm,
    spec: &Spec,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    let ranks = problem.fabric.ranks();
    let Some(ring) = ring_of(problem.fabric).filter(|ring| has_loads(ring)) else {
        return Ok(Time::ZERO);
    };
    let bounded = Simulator::selected(problem.fabric, problem.method).bounded_by_loads;
    if !bounded || ranks < 2 || problem.collective.demand().is_some() {
        return Ok(Time::ZERO);
    }
    let Some(shape) = ring.ring_shape() else {
        return Ok(Time::ZERO);
    };
    let Some(loads) = (record.link_load_bound)(spec, shape)? else {
        return Ok(Time::ZERO);
    };
    let chunk_bytes = chunk_bytes(record, problem);
    let bytes = chunk_bytes.saturating_mul(counted_load(loads, problem));
    let channels = u64::from(ring.channels());
    let by_links = slots_time(ring, problem.policy(), loads.slots, bytes, channels)?;
    if problem.policy() == Policy::PerPort {
        return Ok(by_links.max(pairs_time(ring, loads.pairs, bytes)));
    }
    // Every rank receives at least one chunk from every other rank.
    let lightpaths = u64::from(ranks) * u64::from(ranks - 1);
    let room = channels / loads.max_step_load.max(1);
    let by_slots = striped_slots_time(ring, problem, [loads.slots, room, lightpaths], chunk_bytes)?;
    Ok(by_links.max(by_slots))
}

/// Returns lower bounds on the time and on the number of slots of any plan on a ring in which each
/// block is a single chunk. The chunks may be divided into any number of stripes. The bounds are
/// zero if none is known.
fn single_chunk_bound(problem: &PlanningProblem<'_>) -> Result<(Time, u64), PlannerError> {
    let unknown = (Time::ZERO, 0);
    let (kind, policy) = (problem.collective.kind(), problem.policy());
    let is_simple = |ring: &&WdmRing| !ring.multicast && ring.ranks > 1;
    let Some(ring) = ring_of(problem.fabric).filter(is_simple) else {
        return Ok(unknown);
    };
    // Minimum number of links that the blocks of a rank cross if there are `slots` slots.
    let links = |slots: u64| match kind {
        CollectiveKind::AllToAll => u64::from(ring.ranks).pow(2) / 4,
        _ => relay_tree::cost(ring.ranks, slots),
    };
    let is_known = matches!(
        kind,
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll
    );
    if !is_known {
        return Ok(unknown);
    }
    if policy == Policy::PerPort || ring.ranks > MAX_RANKS {
        return Ok(unknown);
    }
    let (channels, block) = (
        ring.channels(),
        formula_unit_bytes(kind, problem.size, ring.ranks),
    );
    let mut least: Option<Time> = None;
    let mut slots = 1;
    for stripes in 1..=channels {
        let room = 2 * u64::from(channels / stripes);
        while links(slots) > room.saturating_mul(slots) {
            interrupt::check();
            slots += 1;
        }
        let sent = block.div_ceil(stripes.into()).saturating_mul(slots);
        let time = slots_time(ring, policy, slots, sent, 1)?;
        least = Some(least.map_or(time, |least| least.min(time)));
    }
    let mut whole = 1..;
    let room = 2 * u64::from(channels);
    let fewest = whole.find(|&slots| links(slots) <= room * slots);
    Ok((least.unwrap_or_default(), fewest.unwrap_or(0)))
}

/// Returns a lower bound on the time of `steps` steps over the ports of a switch in which a rank
/// receives `bytes` bytes.
fn port_time(
    switch: &CircuitSwitch,
    policy: Policy,
    steps: u64,
    bytes: f64,
) -> Result<Time, PlannerError> {
    let bytes = Bytes::new((bytes / f64::from(switch.ports)) as u64);
    let sending = u64::try_from(switch.transmission().ps(bytes)).unwrap_or(u64::MAX);
    let delays = switch.startup.plus(switch.latency)?.times(steps)?;
    Ok(match policy {
        // Steps overlap, because ports do not wait for each other.
        Policy::Planes | Policy::PerPort => Time::from_ps(sending),
        _ => delays.plus(Time::from_ps(sending))?,
    })
}

/// Returns the bytes of the unit in which formulas of records count: a block, or the vector.
fn formula_unit_bytes(kind: CollectiveKind, size: Bytes, ranks: u32) -> u64 {
    match kind {
        CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => size.get() / u64::from(ranks),
        CollectiveKind::Barrier => 0,
        _ => size.get(),
    }
}

/// Returns whether the fabric is a grid and slots do not overlap. In this case the formulas of
/// records bound the time.
pub(crate) fn has_grid_slots(problem: &PlanningProblem<'_>) -> Result<bool, PlannerError> {
    Ok(grids::GridSlot::of(problem)?.is_some())
}

pub(crate) struct SpecBound {
    pub(crate) least: Time,
    pub(crate) expected: Time,
    pub(crate) transfers: u64,
}

/// Builds the schedule of a specification and returns bounds on its plan.
pub(crate) fn spec_bound(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
) -> Result<SpecBound, PlannerError> {
    let schedule = opticoll_algorithms::build(spec, problem.collective, problem.fabric)?;
    let (least, expected) = match tuned_grid(problem) {
        Some(grid) => {
            let tuning = grids::tuning_bound(&schedule, grid, problem.size)?;
            (tuning.least, tuning.expected)
        }
        None => {
            let least = schedule_bound(&schedule, problem)?;
            (least, least)
        }
    };
    Ok(SpecBound {
        least,
        expected,
        transfers: schedule.len() as u64,
    })
}

/// Returns the grid of a problem if every change of a circuit is charged, otherwise `None`.
fn tuned_grid<'a>(problem: &PlanningProblem<'a>) -> Option<&'a WssGrid> {
    let is_tuned = problem.policy() == Policy::TwoTier && problem.collective.demand().is_none();
    match problem.fabric.circuit_machine() {
        Some(CircuitMachine::WssGrid(grid)) if is_tuned => Some(grid),
        _ => None,
    }
}

/// Returns a lower bound on the time of a schedule's plan; zero if no bound is known.
pub(crate) fn schedule_bound(
    schedule: &Schedule,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    routed_bound(schedule, &NamedRoutes::default(), problem)
}

/// Returns a lower bound on the time of a plan, whose routes may differ from the default routes.
pub(crate) fn plan_bound(plan: &Plan, problem: &PlanningProblem<'_>) -> Result<Time, PlannerError> {
    routed_bound(&plan.schedule, &plan.routes, problem)
}

/// Returns a lower bound on the time of a placed plan with default routes, from its bursts. Returns
/// zero unless the fabric is a grid on which every change of a circuit is charged.
pub(crate) fn placed_bound(
    plan: &Plan,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    match tuned_grid(problem) {
        Some(grid) => grids::burst_bound(plan, grid, problem.size),
        None => Ok(Time::ZERO),
    }
}

fn routed_bound(
    schedule: &Schedule,
    routes: &NamedRoutes,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    let has_demand = problem.collective.demand().is_some();
    if let Some(grid) = tuned_grid(problem) {
        return Ok(grids::tuning_bound(schedule, grid, problem.size)?.least);
    }
    if !Simulator::selected(problem.fabric, problem.method).bounded_by_loads {
        let steps = (0..schedule.steps()).filter(|&step| !schedule.step(step).is_empty());
        let steps = steps.count() as u64;
        return Ok(steps_bound(problem, steps, schedule.is_in_network()));
    }
    match problem.fabric.circuit_machine() {
        Some(CircuitMachine::WdmRing(ring)) => return load_bound(schedule, ring, problem),
        Some(CircuitMachine::CircuitSwitch(switch)) => {
            return port_bound(schedule, switch, problem);
        }
        Some(CircuitMachine::WdmGraph(graph)) => return fibres_bound(schedule, graph, problem),
        _ => {}
    }
    if let Some(slot) = grids::GridSlot::of(problem)?.filter(|_| !has_demand) {
        return grids::slots_bound(schedule, &slot, problem);
    }
    let Some(network) = problem.fabric.network() else {
        return Ok(Time::ZERO);
    };
    let rule = problem.method.start.unwrap_or_default();
    let options = &problem.method.fluid;
    fluid::schedule_lower_bound(network, schedule, routes, problem.size, rule, options)
        .map_err(|error| SimulationError::from(error).into())
}

/// Returns a lower bound on the time of a plan with `steps` steps in which messages are sent; zero
/// unless the simulator runs the steps one after another. If `in_network`, NVLS may run the plan.
fn steps_bound(problem: &PlanningProblem<'_>, steps: u64, in_network: bool) -> Time {
    let simulator = Simulator::selected(problem.fabric, problem.method);
    match (problem.fabric.network(), simulator.runs_steps) {
        (Some(network), true) => bulk_synchronous::least_time(network, steps, in_network),
        _ => Time::ZERO,
    }
}

/// Returns a lower bound on the time of a schedule's plan on a switch with d ports. A step in which
/// a rank has p partners needs at least p / d slots, and the bytes of a rank are sent over d ports.
/// Returns zero if slots may overlap.
fn port_bound(
    schedule: &Schedule,
    switch: &CircuitSwitch,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    let has_barriers = !matches!(problem.policy(), Policy::Planes | Policy::PerPort);
    let has_more = switch.packet_rate.is_some() || problem.collective.demand().is_some();
    if !has_barriers || has_more {
        return Ok(Time::ZERO);
    }
    let smallest = schedule.collective.min_chunk_bytes(problem.size).get();
    let mut time = Time::ZERO;
    let mut pairs = Vec::new();
    for step in 0..schedule.steps() {
        interrupt::check();
        pairs.clear();
        let mut chunks = vec![0u64; switch.ranks as usize];
        for index in schedule.step(step) {
            let transfer = schedule.transfer(index);
            chunks[transfer.source as usize] += u64::from(transfer.count);
            pairs.push((transfer.source, transfer.destination));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let partners = pairs
            .chunk_by(|one, other| one.0 == other.0)
            .map(<[_]>::len);
        let slots = (partners.max().unwrap_or(0) as u64).div_ceil(switch.ports.into());
        let max_chunks = chunks.into_iter().max().unwrap_or(0) / u64::from(switch.ports);
        let bytes = Bytes::new(smallest.saturating_mul(max_chunks));
        let sending = u64::try_from(switch.transmission().ps(bytes)).unwrap_or(u64::MAX);
        let startup = switch.startup.times(slots.min(1))?;
        let delays = startup.plus(switch.latency.times(slots)?)?;
        time = time.plus(delays)?.plus(Time::from_ps(sending))?;
    }
    Ok(time)
}

/// Returns a lower bound on the time of a schedule's plan on a graph of fibres; zero if none is
/// known.
fn fibres_bound(
    schedule: &Schedule,
    graph: &WdmGraph,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    if graph.multicast || problem.policy() == Policy::PerPort {
        return Ok(Time::ZERO);
    }
    let network = graph.fibre_links();
    let ends: Vec<(u32, u32)> = (0..network.links().len() as u32)
        .filter_map(|link| network.ends(link))
        .collect();
    let channels = u128::from(graph.channels()) * ends.len() as u128;
    let vertices = 1 + ends
        .iter()
        .map(|(from, to)| from.max(to))
        .max()
        .unwrap_or(&0);
    let mut leaving = vec![Vec::new(); vertices.max(network.ranks()) as usize];
    for (from, to) in ends {
        leaving[from as usize].push(to);
    }
    let distances = |rank: u32| {
        interrupt::check();
        graph::distances(leaving.len(), rank, |vertex| {
            leaving[vertex as usize].iter().copied()
        })
    };
    let distances: Vec<Vec<u32>> = (0..network.ranks()).map(distances).collect();
    let (mut slots, mut occupied) = (0u64, 0u128);
    for step in 0..schedule.steps() {
        interrupt::check();
        let links = schedule.step(step).map(|index| {
            let transfer = schedule.transfer(index);
            let hops = distances[transfer.source as usize][transfer.destination as usize];
            u128::from(hops) * u128::from(transfer.count)
        });
        let links: u128 = links.sum();
        slots += links.div_ceil(channels.max(1)) as u64;
        occupied += links;
    }
    let chunk = u128::from(schedule.collective.min_chunk_bytes(problem.size).get());
    let rates = network.links().iter().map(|link| link.rate);
    let fastest = Transmission {
        rate: rates.max().unwrap_or(graph.transmission().rate),
        ..graph.transmission()
    };
    let sending = fastest.least(chunk * occupied / channels.max(1), 1);
    let sending = sending.and_then(|sending| u64::try_from(sending).ok());
    let once = match problem.policy() {
        Policy::Free => Time::ZERO,
        _ => graph.reconfiguration,
    };
    let charged = match graph.charge(problem.policy().name()) {
        Ok(ReconfigurationCharge::EverySlot) => once.times(slots)?,
        _ => once,
    };
    Ok(charged.plus(Time::from_ps(sending.unwrap_or(u64::MAX)))?)
}

/// Returns a lower bound on the time of any plan of a collective with default placement of the
/// ranks; zero if no bound is known.
pub(crate) fn collective_bound(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &TimingModel,
) -> Result<Time, PlannerError> {
    let links = fabric.network().is_some();
    if links && method.packet.placement != RankPlacement::default() {
        return Ok(Time::ZERO);
    }
    let bound = time_bound(fabric, collective, size, method)?;
    let time = bound.map_or(Time::ZERO, |bound| bound.time);
    // The simulator rounds times on links.
    let rounded =
        |time: Time| Time::from_ps((time.ps() as f64 * (1.0 - 1e-9) - 1.0).max(0.0) as u64);
    Ok(if links { rounded(time) } else { time })
}

#[cfg(test)]
mod tests;

/// Estimates the time of `steps` steps: for each step the minimum latency of a link, plus the time
/// of `bits` bits at `rate` bits per second. Plans whose steps overlap may be faster.
pub(crate) fn estimate_transmission(
    network: &dyn Network,
    steps: u128,
    bits: u128,
    rate: u128,
) -> Time {
    let latency = network.links().iter().map(|link| link.latency.ps()).min();
    let ps = steps * u128::from(latency.unwrap_or(0)) + bits * 1_000_000_000_000 / rate.max(1);
    Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// Estimates the time of a problem: `steps` latencies, plus the number of bits that all ranks
/// receive, divided by the total rate of the links into ranks. Returns zero on a fabric without
/// links.
pub(crate) fn estimate_steps(problem: &PlanningProblem<'_>, steps: u128) -> Time {
    let Some(network) = problem.fabric.network() else {
        return Time::ZERO;
    };
    let ranks = u128::from(network.ranks());
    let bits = 8 * u128::from(problem.size.get());
    let into_all = match problem.collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::AllToAll => ranks * (ranks - 1) * bits,
        CollectiveKind::AllReduce => 2 * (ranks - 1) * bits,
        CollectiveKind::Barrier => 0,
        _ => (ranks - 1) * bits,
    };
    estimate_transmission(
        network,
        steps,
        into_all,
        rates_into(network).into_iter().sum(),
    )
}

/// Returns the total rate of the links into each rank, in bits per second; indexed by rank.
fn rates_into(network: &dyn Network) -> Vec<u128> {
    let mut into = vec![0u128; network.ranks() as usize];
    for (number, link) in (0u32..).zip(network.links()) {
        let Some((from, to)) = network.ends(number) else {
            continue;
        };
        let rate = u128::from(link.rate.bits_per_second());
        let ends = [Some(to), network.leads_both_ways(number).then_some(from)];
        for end in ends.into_iter().flatten() {
            if let Some(own) = into.get_mut(end as usize) {
                *own += rate;
            }
        }
    }
    into
}
