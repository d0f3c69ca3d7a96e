//! On grids whose slots follow one another: each slot takes a latency, with what is charged for it, and what a rank receives
//! goes over its ports.
//!
//! Where circuits that change are charged, a transmitter is tuned once at least for every rank of its row or column that it
//! sends to; all transmitters of a plane send what is relayed, once each.

use rustc_hash::FxHashSet;

use super::{PlannerError, Question};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::fabric::circuits::Charge;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wss_grid::WssGrid;
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::Simulator;

/// What a slot takes at least, and the ports of a rank.
pub(super) struct GridSlot<'a> {
    delay: Time,
    ports: u32,
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
        let (latency, ports) = match fabric.circuit_machine() {
            Some(CircuitMachine::LightPathGrid(grid)) => (grid.latency, grid.ports),
            Some(CircuitMachine::WssGrid(grid)) => (grid.latency, 2),
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

/// What the transmitters take that are tuned for a schedule.
pub(crate) struct Tuning {
    /// No plan takes less.
    pub(crate) least: Time,
    /// About what a plan takes.
    pub(crate) expected: Time,
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

/// The time that the transmitters take at least: each is tuned once for every rank of its row or column that it sends to. A
/// transfer to a rank that shares no switch is sent once in each plane, by transmitters that the schedule does not tell: the
/// busiest of a plane sends no less than all of them on average.
///
/// A plan is expected to tune once more for every relayed message, and for every other one that goes to another rank than the
/// message before.
pub(super) fn of_tuned(
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
    let bytes_of_chunk = schedule.collective.least_chunk_bytes(size).get();
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
            longest.expected = longest.expected.max(time(own.changes, own.chunks)?);
        }
        let [changes, chunks] = [all.changes, all.chunks].map(|sum| sum / ranks as u64);
        longest.least = longest.least.max(time(u64::from(all.chunks > 0), chunks)?);
        longest.expected = longest.expected.max(time(changes, chunks)?);
    }
    longest.expected = longest.expected.max(longest.least);
    Ok(longest)
}
