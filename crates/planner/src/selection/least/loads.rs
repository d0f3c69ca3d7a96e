//! Times that a schedule cannot go below on a ring of wavelengths, by what it loads the links with: see [`super`].
//!
//! **Ranges.** On a ring a lightpath carries a single chunk. Algorithms make schedules whose transfers are ranges of chunks, which are
//! cut into single chunks afterwards. The loads of the few ranges tell nearly the same as those of the many chunks, and sooner. The chunks of each range
//! are counted, and its bytes where some chunks are empty. Two things depend on how many transfers a step has:
//!
//! - What goes half around the ring goes either way. It is not counted.
//! - An all-to-all among a single set of ranks may go in circles. There, distances are counted, in the mean over all links.

use super::{of_slots, ring_of};
use crate::building::striping;
use crate::selection::contest::LARGE;
use crate::{PlannerError, Question};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::route;
use opticoll_placement::wdm_ring::route::all_to_all;
use opticoll_plan::schedule::{Schedule, StepColumns, Transfer};
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
    let mut new_pairs = NewPairs::of(schedule, policy);
    let smallest = smallest_chunk(schedule, question);
    let mut bytes = ByteLoads::of(schedule, ring, question, smallest);
    for step in 0..schedule.steps() {
        for index in schedule.step(step) {
            let (source, destination) = schedule.ends(index);
            let direction = WdmLight::from(light[index]).direction;
            loads.lay(source, destination, direction, 1);
            if let Some(bytes) = &mut bytes {
                bytes.lay(schedule.transfer(index), direction)?;
            }
            if new_pairs.take(source, destination) {
                lay(&mut new_pairs.changes, source, destination, direction, 1);
            }
        }
        loads.end_step();
        bytes.iter_mut().for_each(ByteLoads::end_step);
    }
    if policy == Policy::PerPort {
        let by_links = loads.time(ring, policy, smallest, loads.busiest())?;
        let by_pairs = new_pairs.busiest(&loads.carried, smallest, ring);
        return Ok(by_links.max(by_pairs));
    }
    let by_chunks = loads.time_of_single_chunks(ring, question, schedule.len() as u64, smallest)?;
    let by_bytes = bytes.map(|bytes| bytes.time(ring, loads.slots));
    Ok(by_chunks.max(by_bytes.transpose()?.unwrap_or_default()))
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
    let smallest = smallest_chunk(ranges, question);
    let mut bytes = ByteLoads::of(ranges, ring, question, smallest);
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
            if let Some(bytes) = &mut bytes {
                bytes.lay(transfer, direction)?;
            }
        }
        loads.end_step();
        bytes.iter_mut().for_each(ByteLoads::end_step);
    }
    let by_chunks = loads.time_of_single_chunks(ring, question, ranges.deliveries(), smallest)?;
    let by_bytes = bytes.map(|bytes| bytes.time(ring, loads.slots));
    Ok(by_chunks.max(by_bytes.transpose()?.unwrap_or_default()))
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
    let smallest = schedule.collective.min_chunk_bytes(question.size);
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
        lay(&mut self.changes, source, destination, direction, count);
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

    /// The same where slots follow one another and so many lightpaths carry single chunks of so many bytes, which may be cut into
    /// stripes.
    fn time_of_single_chunks(
        &self,
        ring: &WdmRing,
        question: &Question<'_>,
        lightpaths: u64,
        bytes: u64,
    ) -> Result<Time, PlannerError> {
        let by_links = self.time(ring, question.policy(), bytes, self.chunks)?;
        let room = self.channels / self.most.max(1);
        let by_slots = of_striped_slots(ring, question, [self.slots, room, lightpaths], bytes)?;
        Ok(by_slots.max(by_links))
    }
}

/// The bytes that the steps of a large schedule load the links with, where some chunks have none: there they tell more than the chunks.
struct ByteLoads<'a> {
    schedule: &'a Schedule,
    policy: Policy,
    size: Bytes,
    loads: StepLoads,
}

impl<'a> ByteLoads<'a> {
    fn of(
        schedule: &'a Schedule,
        ring: &WdmRing,
        question: &Question<'_>,
        smallest: u64,
    ) -> Option<ByteLoads<'a>> {
        let policy = question.policy();
        let is_known = smallest == 0 && policy != Policy::PerPort;
        (is_known && schedule.deliveries() > LARGE).then(|| ByteLoads {
            schedule,
            policy,
            size: question.size,
            loads: StepLoads::new(ring),
        })
    }

    /// Lays what a transfer carries over its links.
    fn lay(&mut self, transfer: Transfer, direction: Direction) -> Result<(), PlannerError> {
        let Transfer {
            chunk,
            count,
            source,
            destination,
            ..
        } = transfer;
        let bytes = self
            .schedule
            .collective
            .range_bytes(self.size, chunk, count)?;
        let bytes = i64::try_from(bytes.get()).unwrap_or(0);
        self.loads.lay(source, destination, direction, bytes);
        Ok(())
    }

    fn end_step(&mut self) {
        self.loads.end_step();
    }

    /// The time of so many slots.
    fn time(&self, ring: &WdmRing, slots: u64) -> Result<Time, PlannerError> {
        let StepLoads {
            chunks, channels, ..
        } = self.loads;
        Ok(shortly_before(of_slots(
            ring,
            self.policy,
            slots,
            chunks,
            channels,
        )?))
    }
}

/// The time that so many slots take at least, one after the other, where each of at least so many lightpaths is cut into as many stripes as
/// there is room for.
pub(super) fn of_striped_slots(
    ring: &WdmRing,
    question: &Question<'_>,
    [slots, room, lightpaths]: [u64; 3],
    bytes: u64,
) -> Result<Time, PlannerError> {
    let in_stripes = |stripes: u64| {
        let sent = bytes.div_ceil(stripes.max(1)).saturating_mul(slots);
        of_slots(ring, question.policy(), slots, sent, 1)
    };
    let by_room = in_stripes(room)?;
    if lightpaths <= LARGE {
        return Ok(by_room);
    }
    let allowed = striping::most_by_transfers(lightpaths, question);
    Ok(by_room.max(shortly_before(in_stripes(room.min(allowed))?)))
}

/// A picosecond less: a plan that takes just as long as the fastest is still timed, and may be the simpler one.
fn shortly_before(time: Time) -> Time {
    Time::from_ps(time.ps().saturating_sub(1))
}

/// Lays so many lightpaths over the links from one rank to another: what begins at each link less what ends there, by direction.
fn lay(changes: &mut [i64], source: u32, destination: u32, direction: Direction, count: i64) {
    let ranks = changes.len() / 2;
    // The links that light passes clockwise from `from` to `to`, or the other way around.
    let (changes, from, to) = match direction {
        Direction::Clockwise => (&mut changes[..ranks], source, destination),
        Direction::CounterClockwise => (&mut changes[ranks..], destination, source),
    };
    changes[from as usize] += count;
    changes[to as usize] -= count;
    if from > to {
        changes[0] += count;
    }
}

/// The time that a link takes at least, where circuits of so many pairs of ranks pass it, and so many bytes.
pub(super) fn time_of_pairs(ring: &WdmRing, pairs: u64, bytes: u64) -> Time {
    let channels = u128::from(ring.channels().max(1));
    let sending = ring.transmission().least(bytes.into(), channels);
    let set_up = u128::from(pairs) * u128::from(ring.reconfiguration.ps());
    let time = set_up / channels + sending.unwrap_or(0);
    Time::from_ps(u64::try_from(time).unwrap_or(u64::MAX))
}

/// The ranks between which there is a circuit, each pair by its first one.
struct NewPairs {
    ranks: usize,
    /// A bit for each pair; none where they are not looked at.
    seen: Vec<u64>,
    /// By direction and link: what begins there less what ends there.
    changes: Vec<i64>,
}

impl NewPairs {
    fn of(schedule: &Schedule, policy: Policy) -> NewPairs {
        let ranks = schedule.collective.ranks() as usize;
        let is_looked_at = policy == Policy::PerPort && ranks <= MOST_RANKS as usize;
        let pairs = if is_looked_at { ranks * ranks } else { 0 };
        NewPairs {
            ranks,
            seen: vec![0; pairs.div_ceil(64)],
            changes: vec![0; 2 * ranks],
        }
    }

    /// Whether a circuit is the first between two ranks.
    fn take(&mut self, source: u32, destination: u32) -> bool {
        let pair = source as usize * self.ranks + destination as usize;
        let Some(word) = self.seen.get_mut(pair / 64) else {
            return false;
        };
        let bit = 1 << (pair % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// The time that the busiest link takes at least, of those that carry so many chunks of at least so many bytes.
    fn busiest(&self, carried: &[u64], chunk: u64, ring: &WdmRing) -> Time {
        let times = self
            .loads()
            .zip(carried)
            .map(|(circuits, &chunks)| time_of_pairs(ring, circuits, chunks.saturating_mul(chunk)));
        times.max().unwrap_or_default()
    }

    /// By direction and link, how many pass it.
    fn loads(&self) -> impl Iterator<Item = u64> {
        self.changes.chunks(self.ranks).flat_map(|own| {
            own.iter().scan(0, |load, change| {
                *load += change;
                Some(*load as u64)
            })
        })
    }
}
