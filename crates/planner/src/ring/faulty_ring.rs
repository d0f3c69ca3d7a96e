//! Plans for rings with cut cables or a limited reach. The planner first plans the collective on
//! the *fault-free ring*: the ring without cuts, without a limited reach and without light trees.
//! Then the planner adapts this plan: it reroutes lightpaths around cuts and splits lightpaths at
//! relay ranks.
//!
//! **Cuts.** A lightpath whose route is cut uses the opposite direction instead. Let the fault-free
//! ring have c' channels per direction. In each slot, at most c' lightpaths of each direction cross
//! the position of the cut. If these lightpaths use the opposite direction, they increase the load
//! of every link by at most c'. With one cut, the planner uses c' = floor(c / 2), so that c
//! channels suffice.
//!
//! **Relays.** A lightpath that exceeds the reach is split into several lightpaths in successive
//! slots. Relay ranks store the chunks, and later lightpaths do not send these chunks to the relays
//! again. The planner removes transfers whose chunks are not needed, because the time reversal
//! requires this. List scheduling ([`crate::ring::relay_tree::lightpath_requests`]) assigns the
//! lightpaths to slots, in the order of the slots of the original plan. Each lightpath is assigned
//! to the first slot in which its source has the chunks and a channel and ports are free.
//!
//! **Collectives with additions.** Plans of reduce_scatter, reduce and gather are the time
//! reversals of plans of all_gather, broadcast and scatter on a ring with reversed cuts. (In plans
//! that only copy, chunks can wait at any rank.) In an all_reduce, the lightpaths of a slot must
//! remain in the same slot, so lightpaths cannot be split. If lightpaths exceed the reach,
//! [`crate::combined::two_phases`] plans the two phases of the all_reduce separately.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::building::PLANS_OF_PART;
use crate::building::assembly::{Assembly, Move};
use crate::building::time_reversal::{self, copying};
use crate::ring::relay_tree::lightpath_requests::{
    self, LightpathRequest, Occupancy, PlacedRequest,
};
use crate::selection::evaluation::{Built, Candidate, Evaluation, EvaluationOutcome};
use crate::{
    FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope,
    ring::relay_tree::irregular_ring,
};

use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec, flat, nested};
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
    .range("algorithms of the collective, or of its time reversal if the collective adds data")
    .default("the fastest found")],
    depends_on_size: true,
    ..Planner::new(
        "faulty_ring",
        "Faulty ring",
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
        "Plan of a ring without faults, rerouted around cuts, with relays where light does \
        not reach",
        "opticoll; list scheduling: Graham, SIAM Journal on Applied Mathematics 1969",
        Scope::Rings(FamilyFunctions {
            applies: needs_detour,
            ..FamilyFunctions::new(plan, candidates)
        }),
    )
};

/// Maximum number of transfers of a plan that the planner adapts. (List scheduling of this number
/// of transfers takes a few seconds.)
const MAX_PLACED_TRANSFERS: u64 = 1 << 18;

/// Returns the maximum number of transfers of a plan that the planner adapts. Plans with one
/// transfer per pair of ranks are always allowed.
fn max_transfers(ring: &WdmRing) -> u64 {
    MAX_PLACED_TRANSFERS.max(u64::from(ring.ranks) * u64::from(ring.ranks))
}

/// Returns `name`, the specification of a plan, with a smaller option `pieces` if needed. With one
/// transfer per piece, channel and rank, the plan then has at most [`max_transfers`] transfers.
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

/// Returns whether the ring has broken links or a reach of fewer than N - 1 links.
fn needs_detour(ring: &WdmRing) -> bool {
    ring.ranks > 1 && (!ring.broken.is_empty() || ring.longest() < ring.ranks - 1)
}

/// Returns the faulty ring for which the plan is adapted, and the fault-free ring. If `kind` adds
/// data, the adapted plan will be reversed in time. The faulty ring then has its cuts in the
/// opposite direction.
fn rings(ring: &WdmRing, kind: CollectiveKind) -> (WdmRing, WdmRing) {
    let faulty = match copying(kind) == kind {
        true => ring.clone(),
        false => irregular_ring::reversed(ring),
    };
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

/// Returns the planning problem on the fault-free ring `whole`. If the collective adds data, the
/// problem is to plan the time reversal of the collective, which only copies.
fn fault_free_problem<'a>(
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
    let inner = fault_free_problem(problem, &whole_fabric)?;
    let inner = PlanningProblem {
        limit: None,
        joined: None,
        wanted: PLANS_OF_PART,
        ..inner
    };
    let mut plans: Vec<(String, Time)> = match inner.fastest() {
        Ok(planned) => {
            let timed = planned.candidates.into_iter();
            let timed = timed.filter(|candidate| candidate.left_out.is_none());
            let timed = timed.take(PLANS_OF_PART);
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
        let spec = Spec::new(PLANNER.name).with("plan", flat(&name));
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

/// Adapts a plan to the faulty ring: the plan that the option `plan` of `spec` names. Without this
/// option, adapts the fastest plan of the fault-free ring.
fn adapt(spec: &Spec, problem: &PlanningProblem<'_>, ring: &WdmRing) -> Result<Plan, PlannerError> {
    let kind = problem.collective.kind();
    let (faulty, whole) = rings(ring, kind);
    let fabric = Fabric::new(whole.clone());
    let inner = fault_free_problem(problem, &fabric)?;
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
    let named = Spec::new(PLANNER.name).with("plan", flat(&planned.algorithm));
    plan.algorithm = named.to_string();
    Ok(plan)
}

fn broken(index: usize, transfer: &Transfer) -> PlannerError {
    PlannerError::Placement(placement::broken(
        index,
        transfer.source,
        transfer.destination,
    ))
}

/// Returns `direction` if the route of `transfer` in this direction is not cut, otherwise the
/// opposite direction. Returns `None` if the routes in both directions are cut.
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

/// Reroutes the lightpaths of a plan around cuts. Lightpaths of different steps remain in different
/// slots.
fn reroute(ring: &WdmRing, planned: &Plan) -> Result<Plan, PlannerError> {
    let mut assembly = Assembly::new(ring, planned.schedule.collective);
    // Ranks send the data that they had at the beginning of the step, so steps are not merged.
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

fn lightpaths_by_slot(plan: &Plan) -> Vec<Vec<usize>> {
    let mut slots = vec![Vec::new(); plan.slots() as usize];
    for (index, &slot) in plan.slot.iter().enumerate() {
        interrupt::check();
        slots[slot as usize].push(index);
    }
    slots
}

/// Adapts a plan that only copies: reroutes lightpaths around cuts, and splits lightpaths that
/// exceed the reach.
fn relay(
    ring: &WdmRing,
    planned: &Plan,
    problem: &PlanningProblem<'_>,
) -> Result<Plan, PlannerError> {
    let collective = planned.schedule.collective;
    let mut relay = RelayState {
        ring,
        collective,
        received: FxHashSet::default(),
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
    // Compare two placements: in the earliest possible slots, and not before the slots of the
    // original plan. (The first placement saves slots, but a slot may then have short and long
    // transfers.)
    let choices = [0, u32::MAX].map(|max_earliest| place(ring, &hops, max_earliest));
    let time = |placed: &Vec<PlacedRequest>| time(problem, ring, collective, &hops, placed);
    let fastest = choices.into_iter().min_by_key(time).unwrap_or_default();
    let (mut requests, mut placed) = (Vec::new(), Vec::new());
    for (hop, placed_hop) in hops.iter().zip(fastest) {
        requests.extend(hop.requests());
        placed.resize(requests.len(), placed_hop);
    }
    Ok(lightpath_requests::plan(
        ring,
        collective,
        &requests,
        &placed,
        PLANNER.name,
    ))
}

/// Lightpath that does not exceed the reach, and all chunks that the lightpath transmits.
struct RelayHop {
    /// Route of the lightpath, and the slot of the lightpath in the original plan.
    request: LightpathRequest,
    /// Runs of consecutive chunks. Each entry is the index of the first chunk and the number of
    /// chunks.
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

/// Removes unnecessary chunks from the lightpaths, and removes lightpaths that are then empty. A
/// chunk is necessary if the receiving rank forwards the chunk or must have the chunk at the end.
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

/// Returns the sum of the slot times in picoseconds, without propagation. `placed[i]` is the slot
/// and the channel of `hops[i]`.
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

/// Assigns each lightpath to the first slot in which its source has the chunks and in which a
/// channel and ports are free. No lightpath is assigned to a slot before its slot in the original
/// plan or before `max_earliest`, whichever is less.
fn place(ring: &WdmRing, hops: &[RelayHop], max_earliest: u32) -> Vec<PlacedRequest> {
    let mut occupancy = Occupancy::new(ring);
    let mut ready: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let place_hop = |hop: &RelayHop| {
        let request = &hop.request;
        let slots = hop
            .chunks()
            .filter_map(|chunk| ready.get(&(request.source, chunk)));
        let earliest = request.earliest.min(max_earliest);
        let from = slots.copied().fold(earliest, u32::max);
        let placed = occupancy.place(request, from, u32::MAX).unwrap_or_default();
        let rank = request.at(ring.ranks, request.length);
        ready.extend(hop.chunks().map(|chunk| ((rank, chunk), placed.slot + 1)));
        placed
    };
    hops.iter().map(place_hop).collect()
}

/// Tests `count` chunks from `first` on. Returns the runs of consecutive chunks for which
/// `is_selected` is true. Each entry is the index of the first chunk and the number of chunks.
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

struct RelayState<'a> {
    ring: &'a WdmRing,
    collective: Collective,
    /// Pairs of a rank and a chunk that the rank has received.
    received: FxHashSet<(u32, u32)>,
    hops: Vec<RelayHop>,
    /// Number of transfers of all lightpaths. (Each run of consecutive chunks is a transfer.)
    transfers: u64,
}

impl RelayState<'_> {
    /// Returns the sort key for the order in which lightpaths are assigned to channels. If links of
    /// `direction` are cut, the key is the distance of the lightpath from the cut: this order needs
    /// the fewest channels. Otherwise, longer lightpaths come first.
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

    fn has_chunk(&self, rank: u32, chunk: u32) -> bool {
        self.collective.before(chunk) == Holders::One(rank)
            || self.received.contains(&(rank, chunk))
    }

    /// Adds the lightpaths of `transfer`. If the route exceeds the reach, adds several successive
    /// lightpaths. Each entry of `chunks` is the index of a first chunk and a number of chunks.
    /// `slot` is the index of the slot in the original plan.
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
        for offset in (0..links).step_by(reach as usize) {
            let request = LightpathRequest {
                chunk: transfer.chunk,
                count: transfer.count,
                source,
                direction,
                length: reach.min(links - offset),
                shared: false,
                earliest: slot,
                after: None,
            };
            let next = request.at(self.ring.ranks, request.length);
            let is_missing = |chunk: u32| !self.has_chunk(next, chunk);
            let missing = chunks
                .iter()
                .flat_map(|&(chunk, count)| runs(chunk, count, is_missing));
            let hop = RelayHop {
                request,
                runs: missing.collect(),
            };
            if !hop.runs.is_empty() {
                self.received
                    .extend(hop.chunks().map(|chunk| (next, chunk)));
                self.transfers += hop.runs.len() as u64;
                self.hops.push(hop);
            }
            source = next;
        }
    }
}
