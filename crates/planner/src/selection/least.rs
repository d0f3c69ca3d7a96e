//! Times that the plan of a schedule cannot go below, found before it is placed and timed.
//!
//! **On a ring of wavelengths.** Let a step's lightpaths, routed as they will be, load some link with L chunks
//! of b bytes, in a direction of c channels of rate B. The step takes ceil(L / c) slots at least, each with its
//! reconfiguration R, if charged, and a + delta (a
//! and 1 / B as in [`opticoll_fabric::fabric::transmission`]). Cut into stripes or not, L b bytes cross that link over c
//! channels. So where slots follow one another
//!
//! ```text
//! T >= sum over steps of ceil(L / c) (R + a + delta) + L b / (c B)
//! ```
//!
//! with R once under `on_change`, and without it under `free`. Where lightpaths carry single chunks and no step loads a link with more
//! than m of them, a chunk is cut into floor(c / m) stripes at most, and of large schedules into no more than make as many transfers as are allowed;
//! each slot takes the bytes of a stripe over a channel at least. Under `per_port` slots may overlap: what holds
//! is R + a + delta and, with D circuits between different ranks that pass a link and X bytes over all steps, (D R + X / B) / c: a port is set
//! to each circuit once at least while its channel is free, and then bytes are sent.
//!
//! Named algorithms send single chunks on a ring, so that an all_gather or reduce_scatter of whole blocks, in k stripes, takes S slots with
//! C_S(N) <= 2 floor(c / k) S at least (see [`relay_tree`]), in each of which a k-th of a block is sent:
//! T >= S (R + a + delta + d / (k B)) for the k with which this is least. In an all_to_all a rank's blocks take floor(N^2 / 4) links in
//! place of C_S(N), whatever ranks relay them.
//!
//! **On electrical fabrics.** See [`fluid::least_schedule`].
//!
//! **By the formulas of a record.** A schedule of S steps takes S slots at least, and where a rank receives V
//! bytes, these come in over its channels, 2 c of them, or over its cables. On a circuit switch of d ports, where slots follow one
//! another, T >= S (alpha + delta) + V / (d B), and so on grids (`least/grids`).

mod grids;
mod loads;

pub(crate) use loads::of_ranges;

use loads::{MOST_RANKS, by_loads, has_loads, of_striped_slots, time_of_pairs};

use crate::{PlannerError, Question, ring_of, time_bound};
use opticoll_algorithms::{Algorithm, LeastLoads, formula};
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_bounds::wdm_ring::relay_tree;
use opticoll_fabric::fabric::{Circuits, Fabric};
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_fabric::family::wss_grid::WssGrid;
use opticoll_fabric::network::Network;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{NamedRoutes, Plan};
use opticoll_plan::schedule::Schedule;
use opticoll_simulate::packet::RankPlacement;
use opticoll_simulate::{Method, Policy, SimulationError, Simulator, fluid};

/// The time that so many slots of a ring take at least, each with something to send, and so many bytes over
/// `channels` channels beside it.
pub(crate) fn of_slots(
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
        Policy::Free | Policy::TwoTier | Policy::EstablishRelease => Time::ZERO,
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

/// A time that the plan of an algorithm cannot go below, with the fewest slots it may take, as far as its
/// record says; zero where it says nothing.
pub(crate) fn by_formulas(
    record: &Algorithm,
    spec: &Spec,
    question: &Question<'_>,
) -> Result<(Time, u64), PlannerError> {
    let nothing = (Time::ZERO, 0);
    let ranks = question.fabric.ranks();
    let has_demand = question.collective.demand().is_some();
    // Pieces are a byte at least: slots of others are empty.
    let most = question.size.get().max(1);
    let pieces = record.pieces(spec).map(|pieces| pieces.min(most));
    if ranks < 2 || has_demand {
        return Ok(nothing);
    }
    let in_single_chunks = match pieces {
        None | Some(1) => in_single_chunks(question)?,
        Some(_) => nothing,
    };
    let by_loads = by_load_formula(record, spec, question)?;
    let known = (
        in_single_chunks.0.max(by_loads.0),
        in_single_chunks.1.max(by_loads.1),
    );
    let is_plain = spec.options().count() == usize::from(pieces.is_some());
    if !is_plain {
        return Ok(known);
    }
    let mut values = formula::of_ranks(ranks);
    values.extend(pieces.map(|pieces| ('K', pieces as f64)));
    let exactly = |text: Option<&str>| text.and_then(|text| formula::value(text, &values));
    let slots = exactly(record.costs.steps).map_or(0, |steps| steps.round() as u64);
    // Pieces that follow one another take a step each; along two trees the last two may arrive together.
    let slots = slots.max(pieces.unwrap_or(1) - 1);
    let blocks = exactly(record.costs.received).unwrap_or(0.0);
    let bytes = blocks * unit(record.collective, question.size, ranks) as f64 * (1.0 - 1e-9);
    if let Some(CircuitMachine::CircuitSwitch(switch)) = question.fabric.circuit_machine() {
        // A network beside the switch carries bytes, too.
        if switch.beside_rate.is_some() {
            return Ok((Time::ZERO, slots));
        }
        return Ok((over_ports(switch, question.policy(), slots, bytes)?, slots));
    }
    let Some(ring) = ring_of(question.fabric) else {
        // On a grid of switches some schedules are others than the formulas are about.
        let slot = match question.fabric.planes() {
            None => grids::GridSlot::of(question)?,
            Some(_) => None,
        };
        let least = slot.map(|slot| slot.time(slots, bytes)).transpose()?;
        return Ok((least.unwrap_or(Time::ZERO), slots));
    };
    let channels = 2 * u64::from(ring.channels());
    let least = of_slots(ring, question.policy(), slots, bytes as u64, channels)?;
    Ok((least.max(known.0), slots.max(known.1)))
}

/// The time and the slots of an algorithm on a ring at least, by the loads that its record knows; zero where it knows none.
fn by_load_formula(
    record: &Algorithm,
    spec: &Spec,
    question: &Question<'_>,
) -> Result<(Time, u64), PlannerError> {
    let ring = ring_of(question.fabric).filter(|ring| !ring.multicast);
    let shape = ring.and_then(WdmRing::ring_shape);
    let loads = match shape {
        Some(shape) => (record.least_loads)(spec, shape)?,
        None => None,
    };
    let (Some(ring), Some(loads)) = (ring, loads) else {
        return Ok((Time::ZERO, 0));
    };
    let bytes = chunk(record, question).saturating_mul(loaded(loads, question));
    let channels = ring.channels().into();
    let time = of_slots(ring, question.policy(), loads.slots, bytes, channels)?;
    Ok((time, loads.slots))
}

/// The bytes of a chunk of an algorithm: a block, or a part of the vector.
fn chunk(record: &Algorithm, question: &Question<'_>) -> u64 {
    let ranks = question.fabric.ranks();
    match record.collective {
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => {
            question.size.get() / u64::from(ranks)
        }
        kind => unit(kind, question.size, ranks),
    }
}

/// The chunks over a link that count. Where slots overlap, steps whose busiest links are different ones may do so.
fn loaded(loads: LeastLoads, question: &Question<'_>) -> u64 {
    match question.policy() {
        Policy::PerPort => loads.busiest,
        _ => loads.by_step,
    }
}

/// What [`of_schedule`] says of a schedule at least, before it is made; zero where nothing is known.
pub(crate) fn before_it_is_made(
    record: &Algorithm,
    spec: &Spec,
    question: &Question<'_>,
) -> Result<Time, PlannerError> {
    let ranks = question.fabric.ranks();
    let Some(ring) = ring_of(question.fabric).filter(|ring| has_loads(ring)) else {
        return Ok(Time::ZERO);
    };
    let bounded = Simulator::chosen(question.fabric, question.method).bounded_by_loads;
    if !bounded || ranks < 2 || question.collective.demand().is_some() {
        return Ok(Time::ZERO);
    }
    let Some(shape) = ring.ring_shape() else {
        return Ok(Time::ZERO);
    };
    let Some(loads) = (record.least_loads)(spec, shape)? else {
        return Ok(Time::ZERO);
    };
    let chunk = chunk(record, question);
    let bytes = chunk.saturating_mul(loaded(loads, question));
    let channels = u64::from(ring.channels());
    let by_links = of_slots(ring, question.policy(), loads.slots, bytes, channels)?;
    if question.policy() == Policy::PerPort {
        return Ok(by_links.max(time_of_pairs(ring, loads.pairs, bytes)));
    }
    // Every rank gets a chunk from every other at least.
    let lightpaths = u64::from(ranks) * u64::from(ranks - 1);
    let room = channels / loads.most.max(1);
    let by_slots = of_striped_slots(ring, question, [loads.slots, room, lightpaths], chunk)?;
    Ok(by_links.max(by_slots))
}

/// The time and the slots that single chunks take on a ring at least, of whole blocks in any number of stripes; zero where nothing
/// is known.
fn in_single_chunks(question: &Question<'_>) -> Result<(Time, u64), PlannerError> {
    let nothing = (Time::ZERO, 0);
    let (kind, policy) = (question.collective.kind(), question.policy());
    let is_simple = |ring: &&WdmRing| !ring.multicast && ring.ranks > 1;
    let Some(ring) = ring_of(question.fabric).filter(is_simple) else {
        return Ok(nothing);
    };
    // The links that the blocks of a rank take at least in so many slots.
    let links = |slots: u64| match kind {
        CollectiveKind::AllToAll => u64::from(ring.ranks).pow(2) / 4,
        _ => relay_tree::cost(ring.ranks, slots),
    };
    let is_known = matches!(
        kind,
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll
    );
    if !is_known {
        return Ok(nothing);
    }
    if policy == Policy::PerPort || ring.ranks > MOST_RANKS {
        return Ok(nothing);
    }
    let (channels, block) = (ring.channels(), unit(kind, question.size, ring.ranks));
    let mut least: Option<Time> = None;
    let mut slots = 1;
    for stripes in 1..=channels {
        let room = 2 * u64::from(channels / stripes);
        while links(slots) > room.saturating_mul(slots) {
            interrupt::check();
            slots += 1;
        }
        let sent = block.div_ceil(stripes.into()).saturating_mul(slots);
        let time = of_slots(ring, policy, slots, sent, 1)?;
        least = Some(least.map_or(time, |least| least.min(time)));
    }
    let mut whole = 1..;
    let room = 2 * u64::from(channels);
    let fewest = whole.find(|&slots| links(slots) <= room * slots);
    Ok((least.unwrap_or_default(), fewest.unwrap_or(0)))
}

/// The time that so many steps take over the ports of a switch at least, in which a rank receives so many bytes.
fn over_ports(
    switch: &CircuitSwitch,
    policy: Policy,
    steps: u64,
    bytes: f64,
) -> Result<Time, PlannerError> {
    let bytes = Bytes::new((bytes / f64::from(switch.ports)) as u64);
    let sending = u64::try_from(switch.transmission().ps(bytes)).unwrap_or(u64::MAX);
    let delays = switch.startup.plus(switch.latency)?.times(steps)?;
    Ok(match policy {
        // Without barriers steps overlap.
        Policy::Planes | Policy::PerPort => Time::from_ps(sending),
        _ => delays.plus(Time::from_ps(sending))?,
    })
}

/// The bytes of what the formulas of records count: a block, or the vector.
fn unit(kind: CollectiveKind, size: Bytes, ranks: u32) -> u64 {
    match kind {
        CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => size.get() / u64::from(ranks),
        CollectiveKind::Barrier => 0,
        _ => size.get(),
    }
}

/// Whether slots follow one another on a grid, where the formulas of records tell what they take.
pub(crate) fn has_grid_slots(question: &Question<'_>) -> Result<bool, PlannerError> {
    Ok(grids::GridSlot::of(question)?.is_some())
}

/// What is known of the schedule that a spec names.
pub(crate) struct OfSpec {
    /// No plan of it takes less.
    pub(crate) least: Time,
    /// What a plan of it may take.
    pub(crate) expected: Time,
    pub(crate) transfers: u64,
}

/// The same for the schedule that a spec names.
pub(crate) fn of_spec(spec: &Spec, question: &Question<'_>) -> Result<OfSpec, PlannerError> {
    let schedule = opticoll_algorithms::build(spec, question.collective, question.fabric)?;
    let (least, expected) = match tuned_grid(question) {
        Some(grid) => {
            let tuning = grids::of_tuned(&schedule, grid, question.size)?;
            (tuning.least, tuning.expected)
        }
        None => {
            let least = of_schedule(&schedule, question)?;
            (least, least)
        }
    };
    Ok(OfSpec {
        least,
        expected,
        transfers: schedule.len() as u64,
    })
}

/// The grid of a question where circuits that change are charged.
fn tuned_grid<'a>(question: &Question<'a>) -> Option<&'a WssGrid> {
    let is_tuned = question.policy() == Policy::TwoTier && question.collective.demand().is_none();
    match question.fabric.circuit_machine() {
        Some(CircuitMachine::WssGrid(grid)) if is_tuned => Some(grid),
        _ => None,
    }
}

/// A time that the plan of a schedule cannot go below; zero where nothing is known.
pub(crate) fn of_schedule(
    schedule: &Schedule,
    question: &Question<'_>,
) -> Result<Time, PlannerError> {
    over_routes(schedule, &NamedRoutes::default(), question)
}

/// The same of a plan, which may name routes.
pub(crate) fn of_plan(plan: &Plan, question: &Question<'_>) -> Result<Time, PlannerError> {
    over_routes(&plan.schedule, &plan.routes, question)
}

/// The same of a placed plan without routes of its own, where its bursts tell more than its schedule; zero elsewhere.
pub(crate) fn of_placed(plan: &Plan, question: &Question<'_>) -> Result<Time, PlannerError> {
    match tuned_grid(question) {
        Some(grid) => grids::of_bursts(plan, grid, question.size),
        None => Ok(Time::ZERO),
    }
}

fn over_routes(
    schedule: &Schedule,
    routes: &NamedRoutes,
    question: &Question<'_>,
) -> Result<Time, PlannerError> {
    let has_demand = question.collective.demand().is_some();
    if let Some(grid) = tuned_grid(question) {
        return Ok(grids::of_tuned(schedule, grid, question.size)?.least);
    }
    if !Simulator::chosen(question.fabric, question.method).bounded_by_loads {
        return Ok(Time::ZERO);
    }
    match question.fabric.circuit_machine() {
        Some(CircuitMachine::WdmRing(ring)) => return by_loads(schedule, ring, question),
        Some(CircuitMachine::CircuitSwitch(switch)) => return by_ports(schedule, switch, question),
        _ => {}
    }
    if let Some(slot) = grids::GridSlot::of(question)?.filter(|_| !has_demand) {
        return grids::of_schedule(schedule, &slot, question);
    }
    let Some(network) = question.fabric.network() else {
        return Ok(Time::ZERO);
    };
    let rule = question.method.start.unwrap_or_default();
    let options = &question.method.fluid;
    fluid::least_schedule(network, schedule, routes, question.size, rule, options)
        .map_err(|error| SimulationError::from(error).into())
}

/// Of each step on a switch whose slots follow one another: a slot for every d ranks that one sends to, and what it sends over
/// d ports.
fn by_ports(
    schedule: &Schedule,
    switch: &CircuitSwitch,
    question: &Question<'_>,
) -> Result<Time, PlannerError> {
    let has_barriers = !matches!(question.policy(), Policy::Planes | Policy::PerPort);
    let has_more = switch.beside_rate.is_some() || question.collective.demand().is_some();
    if !has_barriers || has_more {
        return Ok(Time::ZERO);
    }
    let smallest = schedule.collective.min_chunk_bytes(question.size).get();
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
        let most = chunks.into_iter().max().unwrap_or(0) / u64::from(switch.ports);
        let bytes = Bytes::new(smallest.saturating_mul(most));
        let sending = u64::try_from(switch.transmission().ps(bytes)).unwrap_or(u64::MAX);
        let startup = switch.startup.times(slots.min(1))?;
        let delays = startup.plus(switch.latency.times(slots)?)?;
        time = time.plus(delays)?.plus(Time::from_ps(sending))?;
    }
    Ok(time)
}

/// A time that no plan of a collective goes below; zero where nothing is known. Ranks sit at their
/// natural places.
pub(crate) fn of_collective(
    fabric: &Fabric,
    collective: &Collective,
    size: Bytes,
    method: &Method,
) -> Result<Time, PlannerError> {
    let links = fabric.network().is_some();
    if links && method.packet.placement != RankPlacement::default() {
        return Ok(Time::ZERO);
    }
    let best = time_bound(fabric, collective, size, method)?;
    let time = best.map_or(Time::ZERO, |best| best.time);
    // Times on links are rounded when they are simulated.
    let rounded =
        |time: Time| Time::from_ps((time.ps() as f64 * (1.0 - 1e-9) - 1.0).max(0.0) as u64);
    Ok(if links { rounded(time) } else { time })
}

#[cfg(test)]
mod tests;

/// An estimate of the time of `steps` one after the other: the least latency of a link for each,
/// and `bits` at `rate`. Plans whose steps overlap may take less.
pub(crate) fn of_steps(network: &dyn Network, steps: u128, bits: u128, rate: u128) -> Time {
    let latency = network.links().iter().map(|link| link.latency.ps()).min();
    let ps = steps * u128::from(latency.unwrap_or(0)) + bits * 1_000_000_000_000 / rate.max(1);
    Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// The same estimate for a question: all ranks together take in the bits that they need. Zero
/// without links.
pub(crate) fn of_question(question: &Question<'_>, steps: u128) -> Time {
    let Some(network) = question.fabric.network() else {
        return Time::ZERO;
    };
    let ranks = u128::from(network.ranks());
    let bits = 8 * u128::from(question.size.get());
    let into_all = match question.collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::AllToAll => ranks * (ranks - 1) * bits,
        CollectiveKind::AllReduce => 2 * (ranks - 1) * bits,
        CollectiveKind::Barrier => 0,
        _ => (ranks - 1) * bits,
    };
    of_steps(
        network,
        steps,
        into_all,
        rates_into(network).into_iter().sum(),
    )
}

/// By rank: bits per second of the links that lead to it.
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
