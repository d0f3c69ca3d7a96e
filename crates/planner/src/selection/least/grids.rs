//! On grids whose slots follow one another: each slot takes a latency, with what is charged for it, and what a rank sends, or
//! receives, goes over its ports.
//!
//! A step takes as many slots at least as a rank has partners for each of its ports: on a grid of lightpaths a path serves both
//! ways; on a grid of switches a transceiver sends to one rank of its row or column at a time. Hops of relays are not counted.
//!
//! Where circuits that change are charged, a transmitter is tuned once at least for every rank of its row or column that it sends to, and sends
//! one burst after the other; all transmitters of a plane send what is relayed, once each.
//!
//! Where parts of a grid of switches are dead, hops are led around them, and partners say nothing.

use rustc_hash::FxHashSet;

use super::{PlannerError, Question};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::fabric::circuits::Charge;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wss_grid::{TunedLight, WssGrid};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::Simulator;

/// What a slot takes at least, and the ports of a rank.
pub(super) struct GridSlot<'a> {
    delay: Time,
    ports: u32,
    /// The grid, where it is one of switches.
    switches: Option<&'a WssGrid>,
    circuits: &'a dyn Circuits,
}

impl<'a> GridSlot<'a> {
    /// `None` on other fabrics, and where slots overlap.
    pub(super) fn of(question: &Question<'a>) -> Result<Option<GridSlot<'a>>, PlannerError> {
        let fabric = question.fabric;
        let is_bounded = Simulator::chosen(fabric, question.method).bounded_by_loads;
        let Some(circuits) = fabric.circuits().filter(|_| is_bounded) else {
            return Ok(None);
        };
        let (latency, ports, switches) = match fabric.circuit_machine() {
            Some(CircuitMachine::LightPathGrid(grid)) => (grid.latency, grid.ports, None),
            Some(CircuitMachine::WssGrid(grid)) => (grid.latency, 2, Some(grid)),
            _ => return Ok(None),
        };
        let Ok(charge) = circuits.charge(question.policy().name()) else {
            return Ok(None);
        };
        let change = circuits.change()?;
        let delay = match charge {
            Charge::EachCircuit => change.set_up.plus(latency)?,
            Charge::Groups { each_slot: true } => {
                change.set_up.plus(change.release)?.plus(latency)?
            }
            Charge::Never | Charge::Groups { each_slot: false } => latency,
            _ => return Ok(None),
        };
        Ok(Some(GridSlot {
            delay,
            ports,
            switches,
            circuits,
        }))
    }

    /// The time of so many slots in which a rank receives so many bytes.
    pub(super) fn time(&self, slots: u64, bytes: f64) -> Result<Time, PlannerError> {
        let bytes = Bytes::new((bytes / f64::from(self.ports)) as u64);
        let sending = u64::try_from(self.circuits.transmission().ps(bytes)).unwrap_or(u64::MAX);
        Ok(self.delay.times(slots)?.plus(Time::from_ps(sending))?)
    }
}

/// The transfers of a step; none in place of one with a rank that does not exist.
fn transfers(
    schedule: &Schedule,
    step: usize,
    ranks: u32,
) -> impl Iterator<Item = Option<Transfer>> {
    let transfers = schedule.columns(step).transfers();
    transfers.map(move |transfer| {
        let last = transfer.source.max(transfer.destination);
        (last < ranks).then_some(transfer)
    })
}

/// The time that the slots of all steps take at least.
pub(super) fn of_schedule(
    schedule: &Schedule,
    slot: &GridSlot<'_>,
    question: &Question<'_>,
) -> Result<Time, PlannerError> {
    let ranks = question.fabric.ranks();
    let switches = slot.switches;
    let is_whole = switches.is_some_and(WssGrid::is_whole);
    let smallest = schedule.collective.min_chunk_bytes(question.size).get();
    let mut time = Time::ZERO;
    let mut pairs = FxHashSet::default();
    for step in 0..schedule.steps() {
        pairs.clear();
        // Chunks that ranks send, and receive; partners by rank, on a grid of switches by plane.
        let mut chunks = vec![[0u64; 2]; ranks as usize];
        let mut partners = vec![[0u32; 2]; ranks as usize];
        for transfer in transfers(schedule, step, ranks) {
            let Some(transfer) = transfer else {
                return Ok(Time::ZERO);
            };
            let (source, destination) = (transfer.source, transfer.destination);
            chunks[source as usize][0] += u64::from(transfer.count);
            chunks[destination as usize][1] += u64::from(transfer.count);
            match switches {
                Some(grid) if is_whole => {
                    let plane = grid.shared_plane(source, destination);
                    if let Some(plane) = plane.filter(|_| pairs.insert((source, destination))) {
                        partners[source as usize][plane as usize] += 1;
                    }
                }
                None if pairs.insert((source.min(destination), source.max(destination))) => {
                    partners[source as usize][0] += 1;
                    partners[destination as usize][0] += 1;
                }
                _ => {}
            }
        }
        let most = partners.into_iter().flatten().max().unwrap_or(0);
        let at_once = if switches.is_some() { 1 } else { slot.ports };
        let slots = u64::from(most.div_ceil(at_once));
        let most = chunks.into_iter().flatten().max().unwrap_or(0);
        time = time.plus(slot.time(slots, smallest.saturating_mul(most) as f64)?)?;
    }
    Ok(time)
}

/// What the transmitters take that are tuned for a schedule.
pub(crate) struct Tuning {
    /// No plan takes less.
    pub(crate) least: Time,
    /// About what a plan takes.
    pub(crate) expected: Time,
}

/// The time that the busiest transmitter of a placed plan takes at least: it is tuned for every burst to another rank than the one in the slot
/// before.
pub(super) fn of_bursts(plan: &Plan, grid: &WssGrid, size: Bytes) -> Result<Time, PlannerError> {
    let smallest = plan.schedule.collective.min_chunk_bytes(size).get();
    // By transmitter, in the order of slots: receiver and chunks.
    let mut bursts: Vec<(u32, u32, u32, u32)> = Vec::with_capacity(plan.len());
    for step in 0..plan.schedule.steps() {
        let indices = plan.schedule.step(step);
        for (index, transfer) in indices.zip(plan.schedule.columns(step).transfers()) {
            bursts.extend(plan.hops_of(index).map(|hop| {
                let plane = u32::from(TunedLight::from(hop.light).plane);
                (2 * hop.from + plane, hop.slot, hop.to, transfer.count)
            }));
        }
    }
    bursts.sort_unstable();
    let tuned = grid.change()?.set_up;
    let mut longest = Time::ZERO;
    for own in bursts.chunk_by(|one, next| one.0 == next.0) {
        let keeps = |one: &(u32, u32, u32, u32), next: &(u32, u32, u32, u32)| {
            one.2 == next.2 && next.1 <= one.1 + 1
        };
        let changes = own.chunk_by(keeps).count() as u64;
        let chunks: u64 = own.iter().map(|burst| u64::from(burst.3)).sum();
        let bytes = Bytes::new(smallest.saturating_mul(chunks));
        let sending = u64::try_from(grid.transmission().ps(bytes)).unwrap_or(u64::MAX);
        longest = longest.max(tuned.times(changes)?.plus(Time::from_ps(sending))?);
    }
    Ok(longest)
}

/// What a transmitter sends, or all of a plane.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    /// Ranks sent to.
    partners: u64,
    /// Messages to another rank than the one before: what a rank sends to another in a step is one message.
    changes: u64,
    chunks: u64,
}

/// The time that the transmitters take at least: each is tuned once for every rank of its row or column that it sends to. A transfer to a
/// rank that shares no switch is sent once in each plane, by transmitters that the schedule does not tell: the busiest of a plane sends
/// no less than all of them on average.
///
/// A plan is expected to tune once more for every relayed message, and for every other one that goes to another rank than the message before.
pub(super) fn of_tuned(
    schedule: &Schedule,
    grid: &WssGrid,
    size: Bytes,
) -> Result<Tuning, PlannerError> {
    of_tuned_again(schedule, grid, schedule.collective.min_chunk_bytes(size), 1)
}

/// The same of a schedule so many times over, with chunks of `smallest` bytes at least.
fn of_tuned_again(
    schedule: &Schedule,
    grid: &WssGrid,
    smallest: Bytes,
    times: u64,
) -> Result<Tuning, PlannerError> {
    let unknown = Tuning {
        least: Time::ZERO,
        expected: Time::ZERO,
    };
    if !grid.is_whole() {
        return Ok(unknown);
    }
    let bytes_of_chunk = smallest.get().saturating_mul(times);
    let ranks = grid.ranks() as usize;
    // By rank and plane: what goes to ranks of its switch. Of a whole plane: what goes by way of relays.
    let mut sent = vec![[Sent::default(); 2]; ranks];
    let mut relayed = Sent::default();
    let mut last = vec![[u32::MAX; 2]; ranks];
    let mut pairs = FxHashSet::default();
    let mut messages = FxHashSet::default();
    for step in 0..schedule.steps() {
        messages.clear();
        for transfer in transfers(schedule, step, grid.ranks()) {
            let Some(transfer) = transfer else {
                return Ok(unknown);
            };
            let (source, destination) = (transfer.source, transfer.destination);
            let is_new = messages.insert((source, destination));
            let Some(plane) = grid.shared_plane(source, destination) else {
                relayed.changes += u64::from(is_new);
                relayed.chunks += u64::from(transfer.count);
                continue;
            };
            let own = &mut sent[source as usize][plane as usize];
            own.chunks += u64::from(transfer.count);
            if is_new {
                let last = &mut last[source as usize][plane as usize];
                own.changes += u64::from(std::mem::replace(last, destination) != destination);
                own.partners += u64::from(pairs.insert((source, destination)));
            }
        }
    }
    let tuned = grid.change()?.set_up;
    let time = |changes: u64, chunks: u64| {
        let bytes = Bytes::new(bytes_of_chunk.saturating_mul(chunks));
        let sending = u64::try_from(grid.transmission().ps(bytes)).unwrap_or(u64::MAX);
        Ok::<_, PlannerError>(tuned.times(changes)?.plus(Time::from_ps(sending))?)
    };
    let mut longest = unknown;
    for plane in [0, 1] {
        let mut all = relayed;
        for own in &sent {
            let own = own[plane];
            all.chunks += own.chunks;
            all.changes += own.changes;
            longest.least = longest.least.max(time(own.partners, own.chunks)?);
            let changes = own.changes.saturating_mul(times);
            longest.expected = longest.expected.max(time(changes, own.chunks)?);
        }
        let [changes, chunks] = [all.changes, all.chunks].map(|sum| sum / ranks as u64);
        longest.least = longest.least.max(time(u64::from(all.chunks > 0), chunks)?);
        let changes = changes.saturating_mul(times);
        longest.expected = longest.expected.max(time(changes, chunks)?);
    }
    longest.expected = longest.expected.max(longest.least);
    Ok(longest)
}
