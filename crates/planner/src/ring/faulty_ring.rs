//! Plans for rings with cut cables, with a limited reach of light, or with light trees: the plan of
//! a ring without any of these, rerouted around cuts and relayed.
//!
//! **Around a cut.** A lightpath that would cross a cut takes the other direction. Take a plan for
//! a ring without faults and with c' channels per direction. In a slot at most c' lightpaths of
//! each direction cross the place of the cut. In the other direction they add at most c' to the
//! load of any link. With one cut, c' = floor(c / 2) leaves room for both directions. A plan that
//! is near a lower bound on the ring with half the channels is near the bound on the line, whose
//! last link and whose middle carry half as much as those of a ring.
//!
//! **Relays.** A lightpath longer than the reach of light becomes several lightpaths in successive
//! slots. A rank that relays chunks keeps them, so that no later lightpath brings them to this rank
//! again. Transfers that become useless are removed, so that the plan can run backwards. Each
//! lightpath takes the earliest slot after those that bring its chunks in which a channel and ports
//! are free: list scheduling ([`crate::ring::relay_tree::lightpath_requests`]), in the order of the
//! slots of the original plan.
//!
//! **Combining.** Chunks that are only copied can wait at any rank. Therefore reduce_scatter,
//! reduce and gather are time reversals of an all_gather, a broadcast and a scatter on the ring
//! with reversed cuts. An all_reduce keeps every slot together and cannot contain lightpaths beyond
//! the reach of light; in this case its two phases are planned one by one by
//! [`crate::combined::two_phases`].

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::building::assembly::{Assembly, Move};
use crate::building::time_reversal::{self, copying};
use crate::ring::relay_tree::lightpath_requests::{
    self, LightpathRequest, Occupancy, PlacedRequest,
};
use crate::selection::evaluation::{Built, Candidate, Evaluation, EvaluationOutcome};
use crate::selection::named::{flat, nested};
use crate::{
    FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope,
    ring::relay_tree::irregular_ring,
};

use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::placement;
use opticoll_plan::collective::{Collective, CollectiveKind, Holders};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Transfer;

pub(crate) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "plan",
        "algorithm planned on the ring without cuts, limits of reach and light trees, such as \
             hierarchical/groups=9",
    )
    .range("algorithms of the collective, or of its copying half if it combines data")
    .default("the fastest found")],
    depends_on_size: true,
    ..Planner::new(
        NAME,
        "Detour",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::AllReduce,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
            CollectiveKind::AllToAll,
        ],
        "The plan of a ring without faults, rerouted around cuts and relayed beyond the reach of \
         light",
        "opticoll; list scheduling: Graham, SIAM Journal on Applied Mathematics 1969",
        Scope::Rings(FamilyFunctions {
            // Other rings need no detour.
            applies: needs_detour,
            ..FamilyFunctions::new(plan, candidates)
        }),
    )
};

const NAME: &str = "faulty_ring";

/// Maximum number of plans of the ring without faults that are rerouted, the fastest first.
const MAX_PLANS: usize = 4;

/// Maximum number of transfers that are placed anew, which takes some seconds of list scheduling.
/// At least one transfer for each pair of ranks is always allowed.
const MAX_PLACED_TRANSFERS: u64 = 1 << 18;

fn max_transfers(ring: &WdmRing) -> u64 {
    MAX_PLACED_TRANSFERS.max(u64::from(ring.ranks) * u64::from(ring.ranks))
}

/// Returns the name of a plan with fewer pieces if a transfer of each piece on every channel to
/// every rank would exceed the limit.
fn with_fewer_pieces(name: String, ring: &WdmRing) -> String {
    let transfers_per_piece = u64::from(ring.ranks) * u64::from(ring.channels()).max(1);
    let max_pieces = (max_transfers(ring) / transfers_per_piece).max(1);
    let Ok(spec) = name.parse::<Spec>() else {
        return name;
    };
    match spec.value::<u64>("pieces") {
        Ok(Some(pieces)) if pieces > max_pieces => {
            let spec = spec.without("pieces").with("pieces", max_pieces);
            spec.to_string()
        }
        _ => name,
    }
}

/// Returns whether the ring has broken links or a limited reach of light.
fn needs_detour(ring: &WdmRing) -> bool {
    ring.ranks > 1 && (!ring.broken.is_empty() || ring.longest() < ring.ranks - 1)
}

/// Returns the ring on which the copying collective runs, and the ring without faults.
fn rings(ring: &WdmRing, kind: CollectiveKind) -> (WdmRing, WdmRing) {
    let faulty = match copying(kind) == kind {
        true => ring.clone(),
        false => irregular_ring::reversed(ring),
    };
    // A lightpath keeps its channel, may carry several transfers, and delivers only at its end.
    let faulty = WdmRing {
        multicast: false,
        converters: false,
        ..faulty
    };
    let cuts = Direction::BOTH.map(|direction| {
        let broken = ring.broken.iter();
        broken.filter(|link| link.direction == direction).count()
    });
    let share = 1 + cuts[0].max(cuts[1]).min(1) as u32;
    let whole = WdmRing {
        fibres: 1,
        wavelengths: (ring.channels() / share).clamp(1, u32::from(CONVERTED) - 1),
        converters: false,
        multicast: false,
        reach: None,
        budget: None,
        broken: Vec::new(),
        cuts: Vec::new(),
        dead: Vec::new(),
        ports: ring.ports.filter(|_| irregular_ring::has_few_ports(ring)),
        ..ring.clone()
    };
    (faulty, whole)
}

/// Returns the planning error of the ring without faults.
fn inner<'a>(
    problem: &PlanningProblem<'a>,
    whole: &'a Fabric,
) -> Result<PlanningProblem<'a>, PlannerError> {
    let collective = problem.collective;
    let kind = collective.kind();
    let block = Bytes::new(problem.size.get().div_ceil(u64::from(collective.ranks())));
    Ok(PlanningProblem {
        fabric: whole,
        collective: Collective::new(copying(kind), collective.ranks())?
            .with_root(collective.root())?,
        size: match kind {
            CollectiveKind::ReduceScatter => block,
            _ => problem.size,
        },
        max_work: problem.max_work / 2,
        ..*problem
    })
}

fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    if !needs_detour(ring) {
        return Ok(Vec::new());
    }
    let (faulty, whole) = rings(ring, problem.collective.kind());
    let is_all_reduce = problem.collective.kind() == CollectiveKind::AllReduce;
    if is_all_reduce && faulty.longest() < faulty.ranks - 1 {
        return Ok(Vec::new());
    }
    let whole_fabric = Fabric::new(whole.clone());
    let inner = inner(problem, &whole_fabric)?;
    let inner = PlanningProblem {
        limit: None,
        joined: None,
        wanted: MAX_PLANS,
        ..inner
    };
    let mut plans: Vec<(String, Time)> = match inner.fastest() {
        Ok(planned) => {
            let timed = planned.candidates.into_iter();
            let timed = timed.filter(|candidate| candidate.left_out.is_none());
            let timed = timed.take(MAX_PLANS);
            timed
                .map(|candidate| (with_fewer_pieces(candidate.name, ring), candidate.time))
                .collect()
        }
        Err(_) => Vec::new(),
    };
    let slowest = plans.iter().map(|(_, time)| *time).max();
    let direct = opticoll_algorithms::find(inner.collective.kind(), "direct");
    if direct.is_ok() && !plans.iter().any(|(name, _)| name == "direct") {
        plans.push(("direct".into(), slowest.unwrap_or(Time::ZERO)));
    }
    let least = problem.least()?;
    let transfers = u64::from(ring.ranks) * u64::from(ring.ranks);
    let mut candidates: Vec<Candidate<'a>> = Vec::new();
    for (name, time) in plans {
        let spec = Spec::new(NAME).with("plan", flat(&name));
        let problem = *problem;
        candidates.push(Candidate {
            name: spec.to_string(),
            slots: 1,
            lower_bound: least,
            estimate: time.max(least),
            transfers,
            build: Box::new(move |_| adapt(&spec, &problem, ring).map(Built::from)),
        });
    }
    Ok(candidates)
}

fn plan(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
) -> Result<Planned, PlannerError> {
    if problem.fabric.ranks() < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
    let candidates = match spec.option("plan") {
        None => candidates(problem, ring)?,
        Some(_) => Vec::new(),
    };
    if candidates.is_empty() {
        return adapt(spec, problem, ring).map(Planned::from);
    }
    let EvaluationOutcome { fastest, .. } =
        Evaluation::new(problem)?.run(candidates, Vec::new())?;
    Ok(fastest?.0.into())
}

/// Adapts the plan that a specification names to the faults of the ring.
fn adapt(spec: &Spec, problem: &PlanningProblem<'_>, ring: &WdmRing) -> Result<Plan, PlannerError> {
    let kind = problem.collective.kind();
    let (faulty, whole) = rings(ring, kind);
    let fabric = Fabric::new(whole.clone());
    let inner = inner(problem, &fabric)?;
    let planned = match spec.option("plan") {
        Some(text) => inner.solve(&nested(text)?)?,
        None => inner.fastest()?,
    };
    let (transfers, most) = (planned.plan.transfers(), max_transfers(ring));
    if transfers > most {
        return Err(PlannerError::TooLarge { transfers, most });
    }
    let planned = planned.plan.into_expanded();
    let mut plan = match kind {
        CollectiveKind::AllReduce => reroute(ring, &planned)?,
        _ => relay(&faulty, &planned, &inner)?,
    };
    plan = time_reversal::reversed_for(plan, problem.collective)?;
    plan.fabric = problem.fabric.clone();
    let named = Spec::new(NAME).with("plan", flat(&planned.algorithm));
    plan.algorithm = named.to_string();
    Ok(plan)
}

/// Returns the error of a lightpath for which both directions are cut.
fn broken(index: usize, transfer: &Transfer) -> PlannerError {
    PlannerError::Placement(placement::broken(
        index,
        transfer.source,
        transfer.destination,
    ))
}

/// Returns the direction of a lightpath, or the opposite one if the first is cut; `None` if both
/// are cut.
fn intact_direction(
    ring: &WdmRing,
    transfer: &Transfer,
    direction: Direction,
) -> Option<Direction> {
    let directions = [direction, direction.opposite()];
    let (source, destination) = (transfer.source, transfer.destination);
    let is_whole = |direction: &Direction| ring.is_whole(source, destination, *direction);
    directions.into_iter().find(is_whole)
}

/// Reroutes the lightpaths of a plan around cuts, slot by slot.
fn reroute(ring: &WdmRing, planned: &Plan) -> Result<Plan, PlannerError> {
    let mut assembly = Assembly::new(ring, planned.schedule.collective);
    // Rebuild the plan step by step, because a rank sends what it had at the beginning of the step
    // in all slots of the step.
    for step in 0..planned.schedule.steps() {
        let indices = planned.schedule.step(step);
        let moves: Result<Vec<Move>, PlannerError> = indices
            .map(|index| {
                let transfer = planned.schedule.transfer(index);
                let direction = WdmLight::from(planned.light[index]).direction;
                let direction = intact_direction(ring, &transfer, direction)
                    .ok_or_else(|| broken(index, &transfer))?;
                Ok((transfer, direction))
            })
            .collect();
        assembly.step(&moves?)?;
    }
    Ok(assembly.finish(String::new()))
}

/// Returns the indices of the lightpaths of each slot.
fn lightpaths_by_slot(plan: &Plan) -> Vec<Vec<usize>> {
    let mut slots = vec![Vec::new(); plan.slots() as usize];
    for (index, &slot) in plan.slot.iter().enumerate() {
        interrupt::check();
        slots[slot as usize].push(index);
    }
    slots
}

/// Reroutes the lightpaths of a plan that only copies around cuts, and splits them at the reach of
/// light.
fn relay(
    ring: &WdmRing,
    planned: &Plan,
    problem: &PlanningProblem<'_>,
) -> Result<Plan, PlannerError> {
    let collective = planned.schedule.collective;
    let mut relay = RelayState {
        ring,
        collective,
        held: FxHashSet::default(),
        hops: Vec::new(),
        transfers: 0,
    };
    for (slot, mut indices) in (0..).zip(lightpaths_by_slot(planned)) {
        // Transfers that share a lightpath continue to share it.
        let lightpath = |index: &usize| (planned.schedule.ends(*index), planned.light[*index]);
        indices.sort_by_key(lightpath);
        let mut moves = Vec::with_capacity(indices.len());
        for sharing in indices.chunk_by(|one, other| lightpath(one) == lightpath(other)) {
            let first = planned.schedule.transfer(sharing[0]);
            let direction = WdmLight::from(planned.light[sharing[0]]).direction;
            let direction = intact_direction(ring, &first, direction)
                .ok_or_else(|| broken(sharing[0], &first))?;
            let chunks = sharing.iter().map(|&index| {
                let transfer = planned.schedule.transfer(index);
                (transfer.chunk, transfer.count)
            });
            moves.push((first, direction, chunks.collect::<Vec<_>>()));
        }
        moves.sort_by_key(|(transfer, direction, _)| relay.order(transfer, *direction));
        for (transfer, direction, chunks) in moves {
            relay.send(&transfer, direction, &chunks, slot);
        }
        problem.fits(relay.transfers)?;
    }
    let hops = useful_hops(ring, collective, relay.hops);
    // Early slots may be long: the slots of the plan without cuts may take less time.
    let choices = [0, u32::MAX].map(|max_earliest| place(ring, &hops, max_earliest));
    let time = |placed: &Vec<PlacedRequest>| time(problem, ring, collective, &hops, placed);
    let fastest = choices.into_iter().min_by_key(time).unwrap_or_default();
    let (mut requests, mut placed) = (Vec::new(), Vec::new());
    for (hop, placed_hop) in hops.iter().zip(fastest) {
        requests.extend(hop.requests());
        placed.resize(requests.len(), placed_hop);
    }
    Ok(lightpath_requests::plan(
        ring, collective, &requests, &placed, NAME,
    ))
}

/// Lightpath within the reach of light, with the runs of chunks that it carries one after the
/// other.
struct RelayHop {
    /// Request of the lightpath, with the chunks of its first run.
    request: LightpathRequest,
    /// Runs of consecutive chunks, each as its first chunk and its length.
    runs: Vec<(u32, u32)>,
}

impl RelayHop {
    fn requests(&self) -> impl Iterator<Item = LightpathRequest> + '_ {
        let request = |&(chunk, count): &(u32, u32)| LightpathRequest {
            chunk,
            count,
            ..self.request
        };
        self.runs.iter().map(request)
    }

    fn chunks(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs
            .iter()
            .flat_map(|&(chunk, count)| chunk..chunk + count)
    }
}

/// Returns the lightpaths with those chunks that the receiving rank must have at the end or sends
/// on.
fn useful_hops(ring: &WdmRing, collective: Collective, hops: Vec<RelayHop>) -> Vec<RelayHop> {
    let mut sent: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut useful = Vec::with_capacity(hops.len());
    for hop in hops.into_iter().rev() {
        let request = hop.request;
        let rank = request.at(ring.ranks, request.length);
        let is_used = |chunk: u32| match collective.after(chunk) {
            Holders::One(last) if last != rank => sent.contains(&(rank, chunk)),
            _ => true,
        };
        let used_runs = hop
            .runs
            .iter()
            .flat_map(|&(chunk, count)| runs(chunk, count, is_used));
        let used = RelayHop {
            request,
            runs: used_runs.collect(),
        };
        if !used.runs.is_empty() {
            sent.extend(used.chunks().map(|chunk| (request.source, chunk)));
            useful.push(used);
        }
    }
    useful.reverse();
    useful
}

/// Returns the time of the slots of placed lightpaths, in picoseconds.
fn time(
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
    collective: Collective,
    hops: &[RelayHop],
    placed: &[PlacedRequest],
) -> u128 {
    let mut bytes_by_slot: BTreeMap<u32, u64> = BTreeMap::new();
    for (hop, placed) in hops.iter().zip(placed) {
        let chunks = hop.chunks();
        let bytes = chunks.map(|chunk| collective.chunk_bytes(problem.size, chunk).get());
        let max_bytes = bytes_by_slot.entry(placed.slot).or_default();
        *max_bytes = bytes.sum::<u64>().max(*max_bytes);
    }
    let cost = problem.slot_cost(ring);
    let slots = bytes_by_slot.into_values();
    let times = slots.map(|bytes| u128::from(cost.slots(1, Bytes::new(bytes), 0)));
    times.sum()
}

/// Places each lightpath in the earliest slot after those that bring its chunks, and not before its
/// slot in the plan without cuts, or `max_earliest` if that slot comes earlier.
fn place(ring: &WdmRing, hops: &[RelayHop], max_earliest: u32) -> Vec<PlacedRequest> {
    let mut occupancy = Occupancy::new(ring);
    // The first slot in which a rank can send a chunk that it received.
    let mut ready: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let place_hop = |hop: &RelayHop| {
        let request = &hop.request;
        let slots = hop
            .chunks()
            .filter_map(|chunk| ready.get(&(request.source, chunk)));
        let earliest = request.earliest.min(max_earliest);
        let from = slots.copied().fold(earliest, u32::max);
        // The number of slots is not limited, so that a free one always exists.
        let placed = occupancy.take(request, from, u32::MAX).unwrap_or_default();
        let rank = request.at(ring.ranks, request.length);
        ready.extend(hop.chunks().map(|chunk| ((rank, chunk), placed.slot + 1)));
        placed
    };
    hops.iter().map(place_hop).collect()
}

/// Returns the runs of consecutive chunks for which `is_selected` holds, each as its first chunk
/// and its length.
fn runs(first: u32, count: u32, is_selected: impl Fn(u32) -> bool) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for chunk in (first..first + count).filter(|&chunk| is_selected(chunk)) {
        interrupt::check();
        match runs.last_mut() {
            Some((first, count)) if *first + *count == chunk => *count += 1,
            _ => runs.push((chunk, 1)),
        }
    }
    runs
}

/// Lightpaths that have been added, each within the reach of light.
struct RelayState<'a> {
    ring: &'a WdmRing,
    collective: Collective,
    /// Pairs of a rank and a chunk that the rank has received.
    held: FxHashSet<(u32, u32)>,
    hops: Vec<RelayHop>,
    /// Number of runs of all lightpaths.
    transfers: u64,
}

impl RelayState<'_> {
    /// Returns the key by which lightpaths are placed: from a cut on by left ends, because this
    /// order colours intervals without loss; on a ring without a cut the longest first.
    fn order(&self, transfer: &Transfer, direction: Direction) -> (Direction, u32, u32) {
        let ranks = self.ring.ranks;
        let hops = self
            .ring
            .hops(transfer.source, transfer.destination, direction);
        let cut = self
            .ring
            .broken
            .iter()
            .find(|link| link.direction == direction);
        let first = match direction {
            Direction::Clockwise => transfer.source,
            Direction::CounterClockwise => transfer.destination,
        };
        match cut {
            Some(cut) => {
                let left = (first + ranks - (cut.position + 1) % ranks) % ranks;
                (direction, left, ranks - hops)
            }
            None => (direction, ranks - hops, first),
        }
    }

    fn is_held(&self, rank: u32, chunk: u32) -> bool {
        self.collective.before(chunk) == Holders::One(rank) || self.held.contains(&(rank, chunk))
    }

    /// Sends chunks from rank to rank, each time as far as light reaches.
    fn send(
        &mut self,
        transfer: &Transfer,
        direction: Direction,
        chunks: &[(u32, u32)],
        slot: u32,
    ) {
        let links = self
            .ring
            .hops(transfer.source, transfer.destination, direction);
        let reach = self.ring.longest();
        let mut source = transfer.source;
        for behind in (0..links).step_by(reach as usize) {
            let request = LightpathRequest {
                chunk: transfer.chunk,
                count: transfer.count,
                source,
                direction,
                length: reach.min(links - behind),
                shared: false,
                earliest: slot,
                after: None,
            };
            let next = request.at(self.ring.ranks, request.length);
            let is_missing = |chunk: u32| !self.is_held(next, chunk);
            let missing = chunks
                .iter()
                .flat_map(|&(chunk, count)| runs(chunk, count, is_missing));
            let hop = RelayHop {
                request,
                runs: missing.collect(),
            };
            if !hop.runs.is_empty() {
                self.held.extend(hop.chunks().map(|chunk| (next, chunk)));
                self.transfers += hop.runs.len() as u64;
                self.hops.push(hop);
            }
            source = next;
        }
    }
}
