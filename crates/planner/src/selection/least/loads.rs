//! Times that a schedule cannot go below on a ring of wavelengths, by what it loads the links with: see [`super`].
//!
//! **Ranges.** On a ring a lightpath carries a single chunk. Algorithms make schedules whose transfers are ranges of chunks, which
//! are cut into single chunks afterwards. The loads of the few ranges tell nearly the same as those of the many chunks, and
//! sooner. Two things depend on how many transfers a step has:
//!
//! - What goes half around the ring goes either way. It is not counted.
//! - An all-to-all among a single set of ranks may go in circles. There, distances are counted, in the mean over all links.

use super::{of_slots, ring_of};
use crate::{PlannerError, Question};
use opticoll_base::units::Time;
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::route;
use opticoll_placement::wdm_ring::route::all_to_all;
use opticoll_plan::schedule::{Schedule, StepColumns};
use opticoll_simulate::{Policy, Simulator};

/// Named algorithms of more ranks have too many transfers.
pub(super) const MOST_RANKS: u32 = 1 << 13;

/// A time that the plan of a schedule of single chunks cannot go below whose lightpaths are routed as its transfers are; zero where
/// nothing is known.
pub(super) fn by_loads(
    schedule: &Schedule,
    ring: &WdmRing,
    question: &Question<'_>,
) -> Result<Time, PlannerError> {
    if !has_loads(ring) {
        return Ok(Time::ZERO);
    }
    let light = route::shortest_arcs(schedule, ring);
    let policy = question.policy();
    let mut loads = StepLoads::new(ring);
    for step in 0..schedule.steps() {
        for index in schedule.step(step) {
            let (source, destination) = schedule.ends(index);
            let direction = WdmLight::from(light[index]).direction;
            loads.lay(source, destination, direction, 1);
        }
        loads.end_step();
    }
    let smallest = smallest_chunk(schedule, question);
    match policy {
        Policy::PerPort => loads.time(ring, policy, smallest, loads.busiest()),
        _ => loads.time_of_single_chunks(ring, policy, smallest),
    }
}

/// A time that the plan of a schedule of ranges cannot go below once these are cut into single chunks; zero where nothing is known.
pub(crate) fn of_ranges(ranges: &Schedule, question: &Question<'_>) -> Result<Time, PlannerError> {
    let Some(ring) = ring_of(question.fabric).filter(|ring| has_loads(ring)) else {
        return Ok(Time::ZERO);
    };
    let bounded = Simulator::chosen(question.fabric, question.method).bounded_by_loads;
    if !bounded || question.policy() == Policy::PerPort {
        return Ok(Time::ZERO);
    }
    let mut loads = StepLoads::new(ring);
    for step in 0..ranges.steps() {
        let columns = ranges.columns(step);
        let sets = all_to_all::groups(columns, ring.ranks);
        if sets.is_some_and(|sets| sets.len() == 1) {
            loads.add(mean_distances(columns, ring));
            continue;
        }
        for transfer in columns.transfers() {
            let (source, destination) = (transfer.source, transfer.destination);
            let Some(direction) = route::shorter_way(source, destination, ring.ranks) else {
                continue;
            };
            loads.lay(source, destination, direction, transfer.count.into());
        }
        loads.end_step();
    }
    loads.time_of_single_chunks(ring, question.policy(), smallest_chunk(ranges, question))
}

/// The distances that all chunks of a step go, in the mean over the links of both directions, rounded up.
fn mean_distances(step: StepColumns<'_>, ring: &WdmRing) -> u64 {
    let distances = step.transfers().map(|transfer| {
        let hops = ring.hops(transfer.source, transfer.destination, Direction::Clockwise);
        u64::from(transfer.count) * u64::from(hops.min(ring.ranks - hops))
    });
    let links = 2 * u64::from(ring.ranks);
    distances.sum::<u64>().div_ceil(links)
}

/// The bytes of the smallest chunk of a schedule.
fn smallest_chunk(schedule: &Schedule, question: &Question<'_>) -> u64 {
    let smallest = schedule.collective.least_chunk_bytes(question.size);
    smallest.get()
}

/// Whether the loads of links tell times on a ring.
pub(super) fn has_loads(ring: &WdmRing) -> bool {
    !ring.multicast && ring.broken.is_empty()
}

/// What the steps of a schedule load the links of a ring with.
struct StepLoads {
    channels: u64,
    /// By direction and link: what begins there less what ends there in this step, and what was carried in all steps before.
    changes: Vec<i64>,
    carried: Vec<u64>,
    /// Of all steps before: slots, and the loads of their busiest links, added up and the greatest.
    slots: u64,
    chunks: u64,
    most: u64,
}

impl StepLoads {
    fn new(ring: &WdmRing) -> StepLoads {
        let links = 2 * ring.ranks as usize;
        StepLoads {
            channels: u64::from(ring.channels()).max(1),
            changes: vec![0; links],
            carried: vec![0; links],
            slots: 0,
            chunks: 0,
            most: 0,
        }
    }

    /// Lays so many lightpaths over the links from one rank to another in this step.
    fn lay(&mut self, source: u32, destination: u32, direction: Direction, count: i64) {
        let ranks = self.changes.len() / 2;
        // The links that light passes clockwise from `from` to `to`, or the other way around.
        let (changes, from, to) = match direction {
            Direction::Clockwise => (&mut self.changes[..ranks], source, destination),
            Direction::CounterClockwise => (&mut self.changes[ranks..], destination, source),
        };
        changes[from as usize] += count;
        changes[to as usize] -= count;
        if from > to {
            changes[0] += count;
        }
    }

    /// Ends a step.
    fn end_step(&mut self) {
        let ranks = self.changes.len() / 2;
        let mut greatest = 0;
        let directions = self.changes.chunks(ranks);
        for (own, carried) in directions.zip(self.carried.chunks_mut(ranks)) {
            let mut load = 0;
            for (change, carried) in own.iter().zip(carried) {
                load += change;
                greatest = greatest.max(load);
                *carried += load as u64;
            }
        }
        self.changes.fill(0);
        self.add(greatest as u64);
    }

    /// Adds a step whose busiest link has such a load at least.
    fn add(&mut self, load: u64) {
        self.slots += load.div_ceil(self.channels);
        self.chunks += load;
        self.most = self.most.max(load);
    }

    /// What the link carries that is the busiest one over all steps.
    fn busiest(&self) -> u64 {
        self.carried.iter().copied().max().unwrap_or(0)
    }

    /// The time of all slots in which so many chunks of so many bytes go over a link.
    fn time(
        &self,
        ring: &WdmRing,
        policy: Policy,
        bytes: u64,
        chunks: u64,
    ) -> Result<Time, PlannerError> {
        let bytes = bytes.saturating_mul(chunks);
        of_slots(ring, policy, self.slots, bytes, self.channels)
    }

    /// The same where slots follow one another and lightpaths carry single chunks of so many bytes, which may be cut into as
    /// many stripes as there is room for.
    fn time_of_single_chunks(
        &self,
        ring: &WdmRing,
        policy: Policy,
        bytes: u64,
    ) -> Result<Time, PlannerError> {
        let by_links = self.time(ring, policy, bytes, self.chunks)?;
        let stripes = (self.channels / self.most.max(1)).max(1);
        let sent = bytes.div_ceil(stripes).saturating_mul(self.slots);
        Ok(by_links.max(of_slots(ring, policy, self.slots, sent, 1)?))
    }
}
