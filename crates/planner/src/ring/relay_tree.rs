//! Planner of relay trees: plans of all_gather, reduce_scatter (the time reversal of an all_gather)
//! and all_reduce (a reduce_scatter followed by an all_gather).

pub(crate) mod channel_packing;
pub(crate) mod few_ports;
pub(crate) mod gap_splits;
pub(crate) mod irregular_ring;
pub(crate) mod knapsack;
pub(crate) mod light_trees;
pub(crate) mod lightpath_requests;
pub(crate) mod linear_tree;
pub(crate) mod prices;
pub(crate) mod reachable;
pub(crate) mod rotations;
pub(crate) mod small_rings;
pub(crate) mod tree;

use self::rotations::on_ring;
use crate::building::{MAX_PARTS, time_reversal};
use crate::selection::evaluation::{Built, Candidate};
use crate::{
    ALL_GATHER_KINDS, FamilyFunctions, MAX_TRANSFERS, Planned, Planner, PlannerError,
    PlanningProblem, Scope, selection::candidate_bound,
};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_bounds::wdm_ring;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_simulate::Policy;

pub(crate) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new("pieces", "number of chunks of a block")
        .range("1 to 4096")
        .default("1")],
    ..Planner::new(
        "relay_tree",
        "Relay tree",
        ALL_GATHER_KINDS,
        "One tree of lightpaths, rotated to all ranks, with the fewest slots found",
        "opticoll; trees of lightpaths after Gu and Peng, TPDS 2003",
        Scope::Rings(FamilyFunctions::new(plan, candidates)),
    )
};

fn plan(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    ring: &WdmRing,
) -> Result<Planned, PlannerError> {
    let collective = problem.collective;
    let pieces = spec.count("pieces", 1, MAX_PARTS)?.unwrap_or(1);
    let gather = Collective::new(CollectiveKind::AllGather, collective.ranks())?;
    let gather = gather.with_pieces(pieces)?;
    let mut plan = from_all_gather(ring, collective.kind(), |ring| on_ring(ring, gather))?;
    plan.algorithm = spec.to_string();
    Ok(plan.into())
}

fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let Some(gathering) = Gathering::new(problem, ring) else {
        return Ok(Vec::new());
    };
    let variants = gathering.variants();
    variants
        .map(|(gather, max_transfers)| gathering.candidate(gather, max_transfers))
        .collect()
}

/// Planning problem of a collective whose plan is built from the plan of an all_gather.
struct Gathering<'a> {
    problem: PlanningProblem<'a>,
    ring: &'a WdmRing,
    /// Ring for which the all_gather is planned. For an all_gather, this is `ring`. For other
    /// collectives, this is the [reversed](irregular_ring::reversed) ring.
    gather_ring: WdmRing,
    /// Number of bytes of a block of the all_gather.
    block: u64,
    /// Number of slots of the plan per slot of the all_gather: 2 for an all_reduce on a ring
    /// without light trees, otherwise 1.
    times: u64,
}

impl<'a> Gathering<'a> {
    /// Creates the problem. Returns `None` if the ring has a single rank.
    fn new(problem: &PlanningProblem<'a>, ring: &'a WdmRing) -> Option<Gathering<'a>> {
        if ring.ranks < 2 {
            return None;
        }
        let ranks = u64::from(ring.ranks);
        let (block, times, gather_ring) = match problem.collective.kind() {
            CollectiveKind::AllGather => (problem.size.get(), 1, ring.clone()),
            kind => {
                // Only the all_gather of an all_reduce can use light trees.
                let is_doubled = kind == CollectiveKind::AllReduce && !ring.multicast;
                let block = problem.size.get() / ranks;
                (
                    block,
                    1 + u64::from(is_doubled),
                    irregular_ring::reversed(ring),
                )
            }
        };
        Some(Gathering {
            problem: *problem,
            ring,
            gather_ring,
            block,
            times,
        })
    }

    /// Returns the all_gathers that the planner tries, which differ in the number of pieces per
    /// block. Each entry is an all_gather and the maximum number of transfers of the plan. (If the
    /// plan is rotation-symmetric, only stored transfers count.) For whole blocks, the maximum is
    /// [`MAX_TRANSFERS`].
    fn variants(&self) -> impl Iterator<Item = (Collective, u64)> + '_ {
        let ranks = self.ring.ranks;
        let variant = move |pieces: u32| {
            let gather = Collective::new(CollectiveKind::AllGather, ranks).ok()?;
            let max_transfers = match pieces {
                1 => MAX_TRANSFERS,
                _ => self.problem.max_transfers,
            };
            let representatives = u64::from(ranks) * u64::from(pieces);
            let fits = match self.problem.keeps_representatives {
                true => representatives <= max_transfers,
                false => representatives * u64::from(ranks) < max_transfers,
            };
            let has_bytes = u64::from(pieces) <= self.block.max(1);
            Some((gather.with_pieces(pieces).ok()?, max_transfers)).filter(|_| fits && has_bytes)
        };
        let pieces = pieces_to_try(self.ring.channels());
        pieces.into_iter().map_while(variant)
    }

    fn piece(&self, gather: Collective) -> u64 {
        self.block / u64::from(gather.pieces())
    }

    /// Creates the candidate for `auto` whose plan is built from the all_gather `gather`. The plan
    /// has at most `max_transfers` transfers. (If the plan is rotation-symmetric, only stored
    /// transfers count.)
    fn candidate(
        &self,
        gather: Collective,
        max_transfers: u64,
    ) -> Result<Candidate<'a>, PlannerError> {
        let slots = self.times * wdm_ring::best(&self.gather_ring, &gather).steps;
        // If each channel carries a different piece, all slots use the same circuits.
        let configurations = match gather.pieces() >= self.ring.channels() {
            true => 1,
            false => slots,
        };
        let spec = match gather.pieces() {
            1 => Spec::new(PLANNER.name),
            pieces => Spec::new(PLANNER.name).with("pieces", pieces),
        };
        let (ring, policy) = (self.ring, self.problem.policy());
        let bytes = self.piece(gather).saturating_mul(slots);
        let least = match policy {
            Policy::PerPort => {
                // A rank receives the pieces of all other ranks over the channels of both
                // directions together.
                let pieces = u64::from(ring.ranks - 1) * u64::from(gather.pieces());
                let receive_slots = pieces.div_ceil(2 * u64::from(ring.channels()));
                let received = self.piece(gather).saturating_mul(receive_slots);
                candidate_bound::slots_time(ring, policy, receive_slots, received, 1)?
            }
            _ => candidate_bound::slots_time(ring, policy, slots, bytes, 1)?,
        };
        // All ports are busy, so a port waits for nearly every change of a configuration. In one
        // configuration, a rank receives at most one piece per channel.
        let received = self.times * u64::from(ring.ranks - 1) * u64::from(gather.pieces());
        let min_configurations = received.div_ceil(2 * u64::from(ring.channels()));
        let time_with = |configurations: u64| match policy {
            Policy::OnChange | Policy::PerPort => {
                let changes = ring
                    .reconfiguration
                    .times(configurations.saturating_sub(1))?;
                let steady: Time =
                    candidate_bound::slots_time(ring, Policy::OnChange, slots, bytes, 1)?;
                Ok(steady.plus(changes)?)
            }
            _ => Ok::<_, PlannerError>(least),
        };
        let estimate = time_with(configurations)?;
        let expected = time_with(configurations.min(min_configurations))?;
        let largest = self.block.div_ceil(gather.pieces().into());
        let excess = (largest - self.piece(gather)).saturating_mul(slots);
        let excess_time = candidate_bound::slots_time(ring, Policy::Free, 0, excess, 1)?;
        let estimate = estimate.plus(excess_time)?;
        let kind = self.problem.collective.kind();
        let transfers = u64::from(gather.chunks()) * u64::from(ring.ranks - 1);
        // Joining a rotation-symmetric plan to another plan costs nothing.
        let joined = self
            .problem
            .joined
            .filter(|_| !self.problem.keeps_representatives);
        let saves_little = joined.is_some_and(|joined| !joined.saves_enough(estimate, transfers));
        Ok(Candidate {
            name: spec.to_string(),
            slots,
            lower_bound: least,
            estimate,
            transfers: gather.chunks().into(),
            build: Box::new(move |limit| match limit {
                _ if saves_little => Ok(Built::NotExpected(
                    "it is expected to save too little time for its number of transfers",
                )),
                Some(limit) if expected > limit => Ok(Built::NotExpected(
                    "its circuits are expected to change too often",
                )),
                _ => {
                    let mut plan = from_all_gather(ring, kind, |ring| {
                        rotations::within(ring, gather, max_transfers)
                    })?;
                    plan.algorithm = spec.to_string();
                    Ok(plan.into())
                }
            }),
        })
    }
}

/// Returns the numbers of pieces per block that the planner tries, ascending. These are powers of
/// two, the numbers halfway between them, and four further numbers. With these four numbers, the
/// pieces fill all channels if circuits have up to 1, 2, 3 or 4 links. All numbers are at most
/// `channels`.
fn pieces_to_try(channels: u32) -> Vec<u32> {
    let powers = (0..31).map(|bit| 1u32 << bit);
    let halfway = (0..30).map(|bit| 3u32 << bit);
    let filling = [1, 3, 6, 10].map(|load| channels / load);
    let mut pieces: Vec<u32> = powers.chain(halfway).chain(filling).collect();
    pieces.retain(|pieces| (1..=channels).contains(pieces));
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

/// Builds the plan of a collective on `ring`. The function `make` plans an all_gather on a given
/// ring. A reduce_scatter is the time reversal of the all_gather. An all_reduce is the time
/// reversal followed by an all_gather.
fn from_all_gather(
    ring: &WdmRing,
    kind: CollectiveKind,
    make: impl Fn(&WdmRing) -> Result<Plan, PlannerError>,
) -> Result<Plan, PlannerError> {
    if !matches!(
        kind,
        CollectiveKind::ReduceScatter | CollectiveKind::AllReduce
    ) {
        return make(ring);
    }
    let gather_ring = irregular_ring::reversed(ring);
    let all_gather = make(&gather_ring)?;
    let mut reduce_scatter = time_reversal::reduce_scatter(&all_gather)?;
    if !ring.is_even() {
        reduce_scatter = reduce_scatter.into_expanded();
    }
    reduce_scatter.fabric = Fabric::new(ring.clone());
    if kind == CollectiveKind::ReduceScatter {
        return Ok(reduce_scatter);
    }
    if gather_ring == *ring {
        return time_reversal::joined(reduce_scatter, all_gather);
    }
    let all_gather = on_ring(ring, all_gather.schedule.collective)?;
    time_reversal::joined(reduce_scatter, all_gather)
}
