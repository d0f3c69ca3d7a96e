//! Lower bounds from the link loads of a schedule on a WDM ring; the header of [`super`] derives
//! them.
//!
//! **Ranges.** On a ring a lightpath carries a single chunk. Algorithms build schedules of ranges
//! of chunks, which are divided into single chunks afterwards. Counting the loads of the few ranges
//! gives nearly the same bound as counting the many chunks, and is faster. Each range counts with
//! its number of chunks, or with its bytes if some chunks are empty. The direction of two kinds of
//! transfers is not yet known:
//!
//! - A transfer half around the ring may use either direction, so it is not counted.
//! - The lightpaths of an all-to-all among one set of ranks may use either direction, so the bound
//!   uses the mean load over all links.

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

/// Maximum number of ranks for which [`NewPairs`] stores one bit per pair of ranks (8 MiB), and for
/// which [`super`] searches the number of slots.
pub(super) const MAX_RANKS: u32 = 1 << 13;

/// Returns a lower bound on the time of a schedule's plan; zero if no bound is known. Each transfer
/// of the schedule has a single chunk, and the lightpaths of the plan follow the shortest routes.
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

/// Returns a lower bound on the time of a schedule's plan; zero if no bound is known. The transfers
/// of `ranges` have ranges of chunks, which are divided into single chunks for the plan.
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
            loads.add(mean_link_load(columns, ring));
            continue;
        }
        for transfer in columns.transfers() {
            let (source, destination) = (transfer.source, transfer.destination);
            let Some(direction) = route::shorter_direction(source, destination, ring.ranks) else {
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

/// Returns the mean number of chunks per link and direction in a step, rounded up, if every chunk
/// travels in the direction with fewer hops.
fn mean_link_load(step: StepColumns<'_>, ring: &WdmRing) -> u64 {
    let distances = step.transfers().map(|transfer| {
        let hops = ring.hops(transfer.source, transfer.destination, Direction::Clockwise);
        u64::from(transfer.count) * u64::from(hops.min(ring.ranks - hops))
    });
    let links = 2 * u64::from(ring.ranks);
    distances.sum::<u64>().div_ceil(links)
}

fn smallest_chunk(schedule: &Schedule, problem: &PlanningProblem<'_>) -> u64 {
    let smallest = schedule.collective.min_chunk_bytes(problem.size);
    smallest.get()
}

/// Returns whether link loads bound the times on a ring.
pub(super) fn has_loads(ring: &WdmRing) -> bool {
    !ring.multicast && ring.broken.is_empty()
}

/// Loads of a ring's links, step by step. A load is a number of chunks (or, in [`ByteLoads`], of
/// bytes).
struct StepLoads {
    channels: u64,
    /// Load of each link minus the load of the previous link, in the current step; indexed by
    /// direction and then by link.
    changes: Vec<i64>,
    /// Load of each link, summed over all previous steps; indexed by direction and then by link.
    carried: Vec<u64>,
    /// Minimum number of slots of all previous steps together.
    slots: u64,
    /// Load of the busiest link of each step, summed over all previous steps.
    chunks: u64,
    /// Maximum load of a link in any step.
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

    /// Adds a load of `count` on all links from `source` to `destination` to the current step.
    fn add_lightpaths(&mut self, source: u32, destination: u32, direction: Direction, count: i64) {
        add_lightpaths(&mut self.changes, source, destination, direction, count);
    }

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

    /// Adds a step whose busiest link has at least the load `load`.
    fn add(&mut self, load: u64) {
        self.slots += load.div_ceil(self.channels);
        self.chunks += load;
        self.max_load = self.max_load.max(load);
    }

    /// Returns the load of the busiest link over all steps.
    fn busiest(&self) -> u64 {
        self.carried.iter().copied().max().unwrap_or(0)
    }

    /// Returns a lower bound on the time of all slots if `chunks` chunks of `bytes` bytes cross a
    /// link.
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

    /// Returns a lower bound on the time of all slots if slots do not overlap. There are
    /// `lightpaths` lightpaths. Each carries a single chunk of `bytes` bytes, which may be divided
    /// into stripes.
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

/// Link loads in bytes. If some chunks of a large schedule are empty, bytes give a better bound
/// than chunks.
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

    /// Adds the bytes of a transfer to the links of its route.
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

/// Returns a lower bound on the time of `slots` slots that do not overlap, with at least
/// `lightpaths` lightpaths of `bytes` bytes each. Each lightpath is divided into at most `room`
/// stripes, or fewer if the maximum number of transfers requires it.
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

/// Returns the time minus one picosecond. A plan as fast as the fastest plan is then still
/// simulated, and the simpler plan wins.
fn just_below(time: Time) -> Time {
    Time::from_ps(time.ps().saturating_sub(1))
}

/// Adds `count` to the load of every link from `source` to `destination` in a direction. Each entry
/// of `changes` is the load of a link minus the load of the previous link; `changes` is indexed by
/// direction and then by link.
fn add_lightpaths(
    changes: &mut [i64],
    source: u32,
    destination: u32,
    direction: Direction,
    count: i64,
) {
    let ranks = changes.len() / 2;
    // In either direction, a lightpath uses the links from `from` clockwise to `to`.
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

/// Returns a lower bound on the time in which circuits between `pairs` pairs of ranks send `bytes`
/// bytes over one link.
pub(super) fn pairs_time(ring: &WdmRing, pairs: u64, bytes: u64) -> Time {
    let channels = u128::from(ring.channels().max(1));
    let sending = ring.transmission().least(bytes.into(), channels);
    let setup = u128::from(pairs) * u128::from(ring.reconfiguration.ps());
    let time = setup / channels + sending.unwrap_or(0);
    Time::from_ps(u64::try_from(time).unwrap_or(u64::MAX))
}

/// Pairs of ranks that have had a circuit, and the number of these pairs whose first circuit uses
/// each link.
struct NewPairs {
    ranks: usize,
    /// A bit per pair of ranks; empty if pairs are not recorded.
    seen: Vec<u64>,
    /// Number of first circuits on each link minus the number on the previous link; indexed by
    /// direction and then by link.
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

    /// Records a circuit. Returns whether it is the first circuit from `source` to `destination`.
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

    /// Computes a lower bound on the time of each link, and returns the largest of these bounds.
    /// `carried` is the number of chunks on each link, and `chunk` is the minimum number of bytes
    /// of a chunk.
    fn busiest(&self, carried: &[u64], chunk: u64, ring: &WdmRing) -> Time {
        let times = self
            .loads()
            .zip(carried)
            .map(|(circuits, &chunks)| pairs_time(ring, circuits, chunks.saturating_mul(chunk)));
        times.max().unwrap_or_default()
    }

    /// Returns the number of pairs whose first circuit uses each link; indexed by direction and
    /// then by link.
    fn loads(&self) -> impl Iterator<Item = u64> {
        self.changes.chunks(self.ranks).flat_map(|link_changes| {
            link_changes.iter().scan(0, |load, change| {
                *load += change;
                Some(*load as u64)
            })
        })
    }
}
