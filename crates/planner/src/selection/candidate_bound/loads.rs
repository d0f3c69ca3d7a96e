//! Lower bounds from the link loads of a schedule on a WDM ring: see [`super`].
//!
//! **Ranges.** On a ring a lightpath carries a single chunk. Algorithms build schedules whose
//! transfers are ranges of chunks, which are divided into single chunks afterwards. The loads of
//! the few ranges give nearly the same bound as the loads of the many chunks, and faster. The
//! chunks of each range are counted, and its bytes if some chunks are empty. Two decisions depend
//! on the number of transfers of a step:
//!
//! - A transfer half around the ring may use either direction. It is not counted.
//! - The lightpaths of an all-to-all among a single set of ranks may go either way around. For
//!   these, the bound uses the mean of distances over all links.

use super::{ring_of, slots_time};
use crate::building::striping;
use crate::selection::evaluation::QUICK_TRANSFERS;
use crate::{PlannerError, PlanningProblem};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::route;
use opticoll_placement::wdm_ring::route::all_to_all;
use opticoll_plan::schedule::{Schedule, StepColumns, Transfer};
use opticoll_simulate::{Policy, Simulator};

/// Maximum number of ranks for which a bit for each pair of ranks is stored (8 MiB) and for which
/// [`super`] searches the number of slots.
pub(super) const MAX_RANKS: u32 = 1 << 13;

/// Returns a lower bound on the time of the plan of a schedule of single chunks, whose lightpaths
/// take the same routes as its transfers; zero if nothing is known.
pub(super) fn load_bound(
    schedule: &Schedule,
    ring: &WdmRing,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    if !has_loads(ring) {
        return Ok(Time::ZERO);
    }
    let light = route::shortest_arcs(schedule, ring);
    let policy = problem.policy();
    let mut loads = StepLoads::new(ring);
    let mut new_pairs = NewPairs::of(schedule, policy);
    let smallest = smallest_chunk(schedule, problem);
    let mut bytes = ByteLoads::of(schedule, ring, problem, smallest);
    for step in 0..schedule.steps() {
        for index in schedule.step(step) {
            let (source, destination) = schedule.ends(index);
            let direction = WdmLight::from(light[index]).direction;
            loads.add_lightpaths(source, destination, direction, 1);
            if let Some(bytes) = &mut bytes {
                bytes.add_lightpaths(schedule.transfer(index), direction)?;
            }
            if new_pairs.insert(source, destination) {
                add_lightpaths(&mut new_pairs.changes, source, destination, direction, 1);
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
    let by_chunks = loads.single_chunks_time(ring, problem, schedule.len() as u64, smallest)?;
    let by_bytes = bytes.map(|bytes| bytes.time(ring, loads.slots));
    Ok(by_chunks.max(by_bytes.transpose()?.unwrap_or_default()))
}

/// Returns a lower bound on the time of the plan of a schedule of ranges, once these are divided
/// into single chunks; zero if nothing is known.
pub(crate) fn ranges_bound(
    ranges: &Schedule,
    problem: &PlanningProblem<'_>,
) -> Result<Time, PlannerError> {
    let Some(ring) = ring_of(problem.fabric).filter(|ring| has_loads(ring)) else {
        return Ok(Time::ZERO);
    };
    let bounded = Simulator::selected(problem.fabric, problem.method).bounded_by_loads;
    if !bounded || problem.policy() == Policy::PerPort {
        return Ok(Time::ZERO);
    }
    let smallest = smallest_chunk(ranges, problem);
    let mut bytes = ByteLoads::of(ranges, ring, problem, smallest);
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
            loads.add_lightpaths(source, destination, direction, transfer.count.into());
            if let Some(bytes) = &mut bytes {
                bytes.add_lightpaths(transfer, direction)?;
            }
        }
        loads.end_step();
        bytes.iter_mut().for_each(ByteLoads::end_step);
    }
    let by_chunks = loads.single_chunks_time(ring, problem, ranges.deliveries(), smallest)?;
    let by_bytes = bytes.map(|bytes| bytes.time(ring, loads.slots));
    Ok(by_chunks.max(by_bytes.transpose()?.unwrap_or_default()))
}

/// Returns the mean number of chunks on a link of both directions in a step, rounded up, if every
/// chunk takes the shorter way.
fn mean_distances(step: StepColumns<'_>, ring: &WdmRing) -> u64 {
    let distances = step.transfers().map(|transfer| {
        let hops = ring.hops(transfer.source, transfer.destination, Direction::Clockwise);
        u64::from(transfer.count) * u64::from(hops.min(ring.ranks - hops))
    });
    let links = 2 * u64::from(ring.ranks);
    distances.sum::<u64>().div_ceil(links)
}

/// Returns the bytes of the smallest chunk of a schedule.
fn smallest_chunk(schedule: &Schedule, problem: &PlanningProblem<'_>) -> u64 {
    let smallest = schedule.collective.min_chunk_bytes(problem.size);
    smallest.get()
}

/// Returns whether link loads determine times on a ring.
pub(super) fn has_loads(ring: &WdmRing) -> bool {
    !ring.multicast && ring.broken.is_empty()
}

/// Loads of the links of a ring in the steps of a schedule.
struct StepLoads {
    channels: u64,
    /// Lightpaths that begin at each link less those that end there, in this step; and chunks
    /// carried in all previous steps. Indexed by direction, then link.
    changes: Vec<i64>,
    carried: Vec<u64>,
    /// Sums over all previous steps: least number of slots, and loads of the busiest links; and the
    /// largest of these loads.
    slots: u64,
    chunks: u64,
    max_load: u64,
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
            max_load: 0,
        }
    }

    /// Adds `count` lightpaths from one rank to another to the step.
    fn add_lightpaths(&mut self, source: u32, destination: u32, direction: Direction, count: i64) {
        add_lightpaths(&mut self.changes, source, destination, direction, count);
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

    /// Adds a step whose busiest link has at least a given load.
    fn add(&mut self, load: u64) {
        self.slots += load.div_ceil(self.channels);
        self.chunks += load;
        self.max_load = self.max_load.max(load);
    }

    /// Returns the chunks carried by the busiest link over all steps.
    fn busiest(&self) -> u64 {
        self.carried.iter().copied().max().unwrap_or(0)
    }

    /// Returns the least time of all slots, if `chunks` chunks of `bytes` bytes each cross a link.
    fn time(
        &self,
        ring: &WdmRing,
        policy: Policy,
        bytes: u64,
        chunks: u64,
    ) -> Result<Time, PlannerError> {
        let bytes = bytes.saturating_mul(chunks);
        slots_time(ring, policy, self.slots, bytes, self.channels)
    }

    /// Returns the least time of all slots, if they follow one another and `lightpaths` lightpaths
    /// carry single chunks of `bytes` bytes each, which may be divided into stripes.
    fn single_chunks_time(
        &self,
        ring: &WdmRing,
        problem: &PlanningProblem<'_>,
        lightpaths: u64,
        bytes: u64,
    ) -> Result<Time, PlannerError> {
        let by_links = self.time(ring, problem.policy(), bytes, self.chunks)?;
        let room = self.channels / self.max_load.max(1);
        let by_slots = striped_slots_time(ring, problem, [self.slots, room, lightpaths], bytes)?;
        Ok(by_slots.max(by_links))
    }
}

/// Bytes on the links in the steps of a large schedule. If some chunks are empty, bytes give a
/// better bound than chunks.
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
        problem: &PlanningProblem<'_>,
        smallest: u64,
    ) -> Option<ByteLoads<'a>> {
        let policy = problem.policy();
        let is_known = smallest == 0 && policy != Policy::PerPort;
        (is_known && schedule.deliveries() > QUICK_TRANSFERS).then(|| ByteLoads {
            schedule,
            policy,
            size: problem.size,
            loads: StepLoads::new(ring),
        })
    }

    /// Adds the bytes of a transfer to its links.
    fn add_lightpaths(
        &mut self,
        transfer: Transfer,
        direction: Direction,
    ) -> Result<(), PlannerError> {
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
        self.loads
            .add_lightpaths(source, destination, direction, bytes);
        Ok(())
    }

    fn end_step(&mut self) {
        self.loads.end_step();
    }

    /// Returns the least time of `slots` slots.
    fn time(&self, ring: &WdmRing, slots: u64) -> Result<Time, PlannerError> {
        let StepLoads {
            chunks, channels, ..
        } = self.loads;
        Ok(just_below(slots_time(
            ring,
            self.policy,
            slots,
            chunks,
            channels,
        )?))
    }
}

/// Returns the least time of `slots` slots in sequence, if each of at least `lightpaths` lightpaths
/// is divided into the maximum number of stripes.
pub(super) fn striped_slots_time(
    ring: &WdmRing,
    problem: &PlanningProblem<'_>,
    [slots, room, lightpaths]: [u64; 3],
    bytes: u64,
) -> Result<Time, PlannerError> {
    let striped_time = |stripes: u64| {
        let sent = bytes.div_ceil(stripes.max(1)).saturating_mul(slots);
        slots_time(ring, problem.policy(), slots, sent, 1)
    };
    let by_room = striped_time(room)?;
    if lightpaths <= QUICK_TRANSFERS {
        return Ok(by_room);
    }
    let allowed = striping::max_by_transfers(lightpaths, problem);
    Ok(by_room.max(just_below(striped_time(room.min(allowed))?)))
}

/// Returns a time one picosecond less: a plan that takes exactly as long as the fastest plan is
/// still timed, and may be the simpler plan.
fn just_below(time: Time) -> Time {
    Time::from_ps(time.ps().saturating_sub(1))
}

/// Adds `count` lightpaths from one rank to another to `changes`: lightpaths that begin at each
/// link less those that end there, by direction.
fn add_lightpaths(
    changes: &mut [i64],
    source: u32,
    destination: u32,
    direction: Direction,
    count: i64,
) {
    let ranks = changes.len() / 2;
    // Light passes the links clockwise from `from` to `to`, or in the other direction.
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

/// Returns the least time of a link that circuits of `pairs` pairs of ranks pass, with `bytes`
/// bytes.
pub(super) fn pairs_time(ring: &WdmRing, pairs: u64, bytes: u64) -> Time {
    let channels = u128::from(ring.channels().max(1));
    let sending = ring.transmission().least(bytes.into(), channels);
    let set_up = u128::from(pairs) * u128::from(ring.reconfiguration.ps());
    let time = set_up / channels + sending.unwrap_or(0);
    Time::from_ps(u64::try_from(time).unwrap_or(u64::MAX))
}

/// Pairs of ranks with a circuit, and the loads of the links by the first circuit of each pair.
struct NewPairs {
    ranks: usize,
    /// A bit for each pair; empty if pairs are not recorded.
    seen: Vec<u64>,
    /// Circuits that begin at each link less those that end there, by direction and link.
    changes: Vec<i64>,
}

impl NewPairs {
    fn of(schedule: &Schedule, policy: Policy) -> NewPairs {
        let ranks = schedule.collective.ranks() as usize;
        let is_recorded = policy == Policy::PerPort && ranks <= MAX_RANKS as usize;
        let pairs = if is_recorded { ranks * ranks } else { 0 };
        NewPairs {
            ranks,
            seen: vec![0; pairs.div_ceil(64)],
            changes: vec![0; 2 * ranks],
        }
    }

    /// Records a circuit; returns whether it is the first between two ranks.
    fn insert(&mut self, source: u32, destination: u32) -> bool {
        let pair = source as usize * self.ranks + destination as usize;
        let Some(word) = self.seen.get_mut(pair / 64) else {
            return false;
        };
        let bit = 1 << (pair % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Returns the least time of the busiest link, given the chunks that each link carries and the
    /// least bytes of a chunk.
    fn busiest(&self, carried: &[u64], chunk: u64, ring: &WdmRing) -> Time {
        let times = self
            .loads()
            .zip(carried)
            .map(|(circuits, &chunks)| pairs_time(ring, circuits, chunks.saturating_mul(chunk)));
        times.max().unwrap_or_default()
    }

    /// Returns the number of circuits that pass each link, by direction and link.
    fn loads(&self) -> impl Iterator<Item = u64> {
        self.changes.chunks(self.ranks).flat_map(|link_changes| {
            link_changes.iter().scan(0, |load, change| {
                *load += change;
                Some(*load as u64)
            })
        })
    }
}
