//! Lower bounds on grids whose slots do not overlap. Each slot takes a latency plus the time that
//! the policy charges per slot. The bytes that a rank sends or receives pass through its ports.
//!
//! A step needs at least as many slots as a rank has partners per port. On a grid of lightpaths,
//! one path serves both directions. On a grid of switches, a transceiver sends to one rank of its
//! row or column at a time. Hops of relays are not counted.
//!
//! If changes of circuits are charged, a transmitter is tuned at least once for every rank of its
//! row or column to which it sends, and it sends one burst after another. All transmitters of a
//! plane together send the relayed data once.
//!
//! If parts of a grid of switches have failed, hops are routed around these parts, and the number
//! of partners gives no bound.

use rustc_hash::FxHashSet;

use super::{PlannerError, PlanningProblem};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::fabric::circuits::ReconfigurationCharge;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wss_grid::{TunedLight, WssGrid};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::Simulator;

/// Minimum duration of a slot without data, and the number of ports of a rank.
pub(super) struct GridSlot<'a> {
    delay: Time,
    ports: u32,
    /// The grid, if it is a grid of switches.
    switches: Option<&'a WssGrid>,
    circuits: &'a dyn Circuits,
}

impl<'a> GridSlot<'a> {
    /// Returns the slot of a problem's grid, or `None` if the fabric is not a grid or if slots may
    /// overlap.
    pub(super) fn of(problem: &PlanningProblem<'a>) -> Result<Option<GridSlot<'a>>, PlannerError> {
        let fabric = problem.fabric;
        let is_bounded = Simulator::selected(fabric, problem.method).bounded_by_loads;
        let Some(circuits) = fabric.circuits().filter(|_| is_bounded) else {
            return Ok(None);
        };
        let (latency, ports, switches) = match fabric.circuit_machine() {
            Some(CircuitMachine::LightpathGrid(grid)) => (grid.latency, grid.ports, None),
            Some(CircuitMachine::WssGrid(grid)) => (grid.latency, 2, Some(grid)),
            _ => return Ok(None),
        };
        let Ok(charge) = circuits.charge(problem.policy().name()) else {
            return Ok(None);
        };
        let change = circuits.change()?;
        let delay = match charge {
            ReconfigurationCharge::EachCircuit => change.setup.plus(latency)?,
            ReconfigurationCharge::Groups { each_slot: true } => {
                change.setup.plus(change.teardown)?.plus(latency)?
            }
            ReconfigurationCharge::Never | ReconfigurationCharge::Groups { each_slot: false } => {
                latency
            }
            _ => return Ok(None),
        };
        Ok(Some(GridSlot {
            delay,
            ports,
            switches,
            circuits,
        }))
    }

    /// Returns a lower bound on the time of `slots` slots in which a rank receives `bytes` bytes.
    pub(super) fn time(&self, slots: u64, bytes: f64) -> Result<Time, PlannerError> {
        let bytes = Bytes::new((bytes / f64::from(self.ports)) as u64);
        let sending = u64::try_from(self.circuits.transmission().ps(bytes)).unwrap_or(u64::MAX);
        Ok(self.delay.times(slots)?.plus(Time::from_ps(sending))?)
    }
}

/// Returns the transfers of a step. A transfer of a rank that does not exist is returned as `None`.
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

/// Returns a lower bound on the time of a schedule: the sum of the bounds of its steps.
pub(super) fn slots_bound(
    schedule: &Schedule,
    slot: &GridSlot<'_>,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    let ranks = problem.fabric.ranks();
    let switches = slot.switches;
    let is_whole = switches.is_some_and(WssGrid::is_whole);
    let smallest = schedule.collective.min_chunk_bytes(problem.size).get();
    let mut time = Time::ZERO;
    let mut pairs = FxHashSet::default();
    for step in 0..schedule.steps() {
        pairs.clear();
        // `chunks` is [number of chunks that the rank sends, number of chunks that it receives].
        // `partners` is the number of partners of the rank; on a grid of switches, in each plane.
        // Both are indexed by rank.
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
        let max_partners = partners.into_iter().flatten().max().unwrap_or(0);
        let at_once = if switches.is_some() { 1 } else { slot.ports };
        let slots = u64::from(max_partners.div_ceil(at_once));
        let max_chunks = chunks.into_iter().flatten().max().unwrap_or(0);
        time = time.plus(slot.time(slots, smallest.saturating_mul(max_chunks) as f64)?)?;
    }
    Ok(time)
}

/// Lower bound and estimate of a plan's time on a grid on which changes of circuits are charged.
pub(crate) struct Tuning {
    pub(crate) least: Time,
    pub(crate) expected: Time,
}

/// Returns the minimum time of the busiest transmitter of a placed plan. A transmitter is tuned
/// before a burst unless it sent to the same rank in the previous slot.
pub(super) fn burst_bound(plan: &Plan, grid: &WssGrid, size: Bytes) -> Result<Time, PlannerError> {
    let smallest = plan.schedule.collective.min_chunk_bytes(size).get();
    // (transmitter, slot, receiver, number of chunks) of each burst.
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
    let tuned = grid.change()?.setup;
    let mut longest = Time::ZERO;
    for transmitter_bursts in bursts.chunk_by(|burst, next| burst.0 == next.0) {
        let keeps = |burst: &(u32, u32, u32, u32), next: &(u32, u32, u32, u32)| {
            burst.2 == next.2 && next.1 <= burst.1 + 1
        };
        let changes = transmitter_bursts.chunk_by(keeps).count() as u64;
        let chunks: u64 = transmitter_bursts
            .iter()
            .map(|burst| u64::from(burst.3))
            .sum();
        let bytes = Bytes::new(smallest.saturating_mul(chunks));
        let sending = u64::try_from(grid.transmission().ps(bytes)).unwrap_or(u64::MAX);
        longest = longest.max(tuned.times(changes)?.plus(Time::from_ps(sending))?);
    }
    Ok(longest)
}

/// Traffic of a transmitter, or of all transmitters of a plane.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    /// Number of ranks to which the transmitter sends.
    partners: u64,
    /// Number of messages to a rank other than the receiver of the previous message. All transfers
    /// between two ranks in a step are one message.
    changes: u64,
    chunks: u64,
}

/// Returns a lower bound on the time of a schedule's plan, and an estimate of this time.
///
/// For the bound, each transmitter is tuned once for every rank of its row or column to which it
/// sends. A transfer between ranks that share no switch is sent once in each plane. The schedule
/// does not determine which transmitters send such relayed transfers, but the busiest transmitter
/// of a plane sends at least the mean over all transmitters.
///
/// For the estimate, a transmitter is also tuned for every relayed message, and whenever the
/// receiver differs from the receiver of the previous message.
pub(super) fn tuning_bound(
    schedule: &Schedule,
    grid: &WssGrid,
    size: Bytes,
) -> Result<Tuning, PlannerError> {
    let unknown = Tuning {
        least: Time::ZERO,
        expected: Time::ZERO,
    };
    if !grid.is_whole() {
        return Ok(unknown);
    }
    let smallest = schedule.collective.min_chunk_bytes(size).get();
    let ranks = grid.ranks() as usize;
    // `sent` is the traffic to ranks of the same switch; indexed by rank and then by plane.
    // `relayed` is the relayed traffic of a whole plane.
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
            let traffic = &mut sent[source as usize][plane as usize];
            traffic.chunks += u64::from(transfer.count);
            if is_new {
                let last = &mut last[source as usize][plane as usize];
                traffic.changes += u64::from(std::mem::replace(last, destination) != destination);
                traffic.partners += u64::from(pairs.insert((source, destination)));
            }
        }
    }
    let tuned = grid.change()?.setup;
    let time = |changes: u64, chunks: u64| {
        let bytes = Bytes::new(smallest.saturating_mul(chunks));
        let sending = u64::try_from(grid.transmission().ps(bytes)).unwrap_or(u64::MAX);
        Ok::<_, PlannerError>(tuned.times(changes)?.plus(Time::from_ps(sending))?)
    };
    let mut longest = unknown;
    for plane in [0, 1] {
        let mut plane_total = relayed;
        for traffic in &sent {
            let traffic = traffic[plane];
            plane_total.chunks += traffic.chunks;
            plane_total.changes += traffic.changes;
            longest.least = longest.least.max(time(traffic.partners, traffic.chunks)?);
            longest.expected = longest.expected.max(time(traffic.changes, traffic.chunks)?);
        }
        let [changes, chunks] =
            [plane_total.changes, plane_total.chunks].map(|sum| sum / ranks as u64);
        longest.least = longest
            .least
            .max(time(u64::from(plane_total.chunks > 0), chunks)?);
        longest.expected = longest.expected.max(time(changes, chunks)?);
    }
    longest.expected = longest.expected.max(longest.least);
    Ok(longest)
}
