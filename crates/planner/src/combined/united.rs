//! Plans of several groups of ranks that carry out one kind of collective at the same time, united
//! to one plan on the whole fabric.
//!
//! All groups carry out the plan that was made for one of them, each with its own members. Step s
//! of the united plan has step s of every group.
//!
//! 1. **Side by side.** Each transfer keeps its light, its route and its slot. If the verifier
//!    accepts the plan, the groups disturb each other nowhere.
//! 2. **Placed anew.** Otherwise the placement of the whole fabric gives all transfers of a step
//!    routes, wavelengths or ports, and as many slots as they need.
//! 3. **In turns.** The groups are divided into 2, 4, 8, ... batches, each of which keeps the light
//!    of the group's plan, and the batches follow each other. The smallest number of batches that
//!    the verifier accepts is compared with the second way, and the faster plan is taken.
//!
//! **Chunks.** Chunks of different groups are different chunks. With C chunks in a group's plan,
//! chunk c of group i has number i C + c in an all_reduce of all ranks. The vector of this
//! all_reduce has the bytes of all groups, so every chunk keeps its bytes. If the blocks of an
//! all_to_all differ, the united plan is an all_to_all of all ranks whose demand between different
//! groups is zero.

use crate::PlannerError;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::{Fabric, Hop, Light};
use opticoll_fabric::family::gpu_servers::{GpuServers, ServersOnLight};
use opticoll_plan::collective::{Collective, CollectiveError, CollectiveKind, DemandMatrix};
use opticoll_plan::plan::routes::FABRIC_ROUTE;
use opticoll_plan::plan::{NamedRoutes, Plan, Relay, Repetition};
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::TimingModel;
use opticoll_verify::{Violation, verify, verify_groups};

/// Plan of several groups at the same time.
#[derive(Debug)]
pub struct UnitedPlan {
    /// Plan on the whole fabric.
    pub plan: Plan,
    /// Size with which the plan is simulated, so that every group has the bytes of its collective.
    pub size: Bytes,
    /// Rules that the plan breaks; empty if the plan is proved.
    pub violations: Vec<Violation>,
}

/// Unites the plans of `groups`, which have one rank for each rank of `plan`, in ascending order.
/// `plan` is made for a part of `fabric` and for a collective of `size` bytes. The fastest united
/// plan is selected by simulations with `method`.
///
/// # Errors
/// Fails if switches add or multicast, for a barrier, and if no simulation of a united plan is
/// possible.
pub fn unite(
    plan: &Plan,
    fabric: &Fabric,
    groups: &[Vec<u32>],
    size: Bytes,
    method: &TimingModel,
) -> Result<UnitedPlan, PlannerError> {
    let plan = plan.clone().into_expanded();
    if plan.schedule.is_in_network() {
        return Err(refused(&plan, "switches add or multicast its chunks"));
    }
    let union = Union::new(&plan, fabric, groups, size)?;
    let finish = |plan: Plan| UnitedPlan {
        violations: union.violations(&plan),
        size: union.size,
        plan,
    };
    let side_by_side = finish(union.batched(1));
    if side_by_side.violations.is_empty() {
        return Ok(side_by_side);
    }
    let placed = union.schedule(1);
    let placed = opticoll_placement::place_by_default(placed, fabric, plan.algorithm.clone());
    let placed = placed.ok().map(finish);
    let mut batches = 1;
    let in_turns = loop {
        batches *= 2;
        let tried = finish(union.batched(batches.min(groups.len())));
        if tried.violations.is_empty() || batches >= groups.len() {
            break tried;
        }
    };
    let proved = [placed, Some(in_turns)].into_iter().flatten();
    let mut proved = proved.filter(|united| united.violations.is_empty());
    let Some(first) = proved.next() else {
        return Ok(side_by_side);
    };
    let Some(second) = proved.next() else {
        return Ok(first);
    };
    let time = |united: &UnitedPlan| -> Result<Time, PlannerError> {
        Ok(opticoll_simulate::run(&united.plan, united.size, method)?.time)
    };
    Ok(if time(&first)? <= time(&second)? {
        first
    } else {
        second
    })
}

fn refused(plan: &Plan, reason: &str) -> PlannerError {
    let refused = AlgorithmError::Refused {
        name: "united",
        ranks: plan.fabric.ranks(),
        reason: format!(
            "{} cannot be united with the plans of other groups: {reason}",
            plan.algorithm
        ),
    };
    refused.into()
}

/// Groups that carry out one plan at the same time.
struct Union<'a> {
    plan: &'a Plan,
    fabric: &'a Fabric,
    groups: &'a [Vec<u32>],
    collective: Collective,
    size: Bytes,
    /// Numbers in the united plan of the chunks of each group, indexed by group and chunk. Empty if
    /// chunks are numbered group by group.
    chunks: Vec<Vec<u32>>,
}

impl<'a> Union<'a> {
    fn new(
        plan: &'a Plan,
        fabric: &'a Fabric,
        groups: &'a [Vec<u32>],
        size: Bytes,
    ) -> Result<Union<'a>, PlannerError> {
        let own = plan.schedule.collective;
        if own.kind() == CollectiveKind::Barrier {
            return Err(refused(plan, "a barrier has no bytes"));
        }
        let count = groups.len() as u32;
        let union = |collective, size, chunks| Union {
            plan,
            fabric,
            groups,
            collective,
            size,
            chunks,
        };
        let Some(demand) = own.demand() else {
            let chunks = own.chunks().checked_mul(count);
            let chunks = chunks.ok_or_else(|| refused(plan, "there are too many chunks"))?;
            let all = Collective::new(CollectiveKind::AllReduce, fabric.ranks())?;
            let bytes = own.range_bytes(size, 0, own.chunks())?.get();
            let bytes = bytes.checked_mul(count.into());
            let bytes = bytes.ok_or_else(|| refused(plan, "there are too many bytes"))?;
            return Ok(union(
                all.with_pieces(chunks)?,
                Bytes::new(bytes),
                Vec::new(),
            ));
        };
        let mut blocks = Vec::new();
        for (group, members) in groups.iter().enumerate() {
            for (source, destination, own) in demand.pairs() {
                let ends = (members[source as usize], members[destination as usize]);
                blocks.push((ends, group, own));
            }
        }
        blocks.sort_unstable_by_key(|(ends, ..)| *ends);
        let mut chunks = vec![vec![0; own.chunks() as usize]; groups.len()];
        let mut united = Vec::new();
        for ((source, destination), group, own) in blocks {
            for chunk in own {
                chunks[group][chunk as usize] = united.len() as u32;
                united.push((source, destination, demand.amount(chunk)));
            }
        }
        let all = Collective::new(CollectiveKind::AllToAll, fabric.ranks())?;
        let united = DemandMatrix::new(fabric.ranks(), united).map_err(CollectiveError::from)?;
        Ok(union(all.with_demand(united)?, size, chunks))
    }

    fn violations(&self, plan: &Plan) -> Vec<Violation> {
        match self.chunks.is_empty() {
            true => verify_groups(plan, self.groups, self.plan.schedule.collective),
            false => verify(plan),
        }
    }

    /// Returns the groups in each of `count` batches: every `count`-th group, since neighbouring
    /// groups share most.
    fn batch(&self, batch: usize, count: usize) -> impl Iterator<Item = usize> + use<> {
        (batch..self.groups.len()).step_by(count)
    }

    /// Returns the transfers of the united plan.
    fn schedule(&self, batches: usize) -> Schedule {
        let mut united = Schedule::new(self.collective);
        let own = &self.plan.schedule;
        for batch in 0..batches {
            for step in 0..own.steps() {
                united.begin_step();
                for group in self.batch(batch, batches) {
                    interrupt::check();
                    for index in own.step(step) {
                        united.push(self.transfer(group, own.transfer(index)));
                    }
                }
            }
        }
        united
    }

    fn transfer(&self, group: usize, own: Transfer) -> Transfer {
        let members = &self.groups[group];
        let chunk = match self.chunks.get(group) {
            None => group as u32 * self.plan.schedule.collective.chunks() + own.chunk,
            Some(chunks) => chunks[own.chunk as usize],
        };
        Transfer {
            chunk,
            source: members[own.source as usize],
            destination: members[own.destination as usize],
            ..own
        }
    }

    /// Returns the plan in which `batches` batches of groups follow each other, and each group
    /// keeps the light, routes and slots of its plan.
    fn batched(&self, batches: usize) -> Plan {
        let (own, slots) = (self.plan, self.plan.slots());
        let mut united = Plan {
            fabric: self.fabric.clone(),
            schedule: self.schedule(batches),
            algorithm: own.algorithm.clone(),
            size: None,
            light: Vec::new(),
            slot: Vec::new(),
            step_slots: Vec::new(),
            relays: Vec::new(),
            routes: NamedRoutes::default(),
            repetition: Repetition::NONE,
        };
        for batch in 0..batches {
            let shift = batch as u32 * slots;
            let shifted = own.step_slots.iter();
            united
                .step_slots
                .extend(shifted.map(|range| range.start + shift..range.end + shift));
            for step in 0..own.schedule.steps() {
                for group in self.batch(batch, batches) {
                    interrupt::check();
                    for index in own.schedule.step(step) {
                        self.add(&mut united, group, index, shift);
                    }
                }
            }
        }
        united
    }

    /// Adds light, slot, route and relays of a transfer of the group's plan.
    fn add(&self, united: &mut Plan, group: usize, index: usize, shift: u32) {
        let (own, members) = (self.plan, &self.groups[group]);
        let number = united.slot.len();
        united.slot.push(own.slot[index] + shift);
        let servers = self.fabric.downcast::<ServersOnLight>();
        if self.fabric.has_light() {
            let packet = servers.map_or(Light::NONE, ServersOnLight::packet);
            united.light.push(if own.has_light() {
                own.light[index]
            } else {
                packet
            });
        }
        if let Some(route) = own.routes.of(index) {
            let (source, destination) = own.schedule.ends(index);
            let ends = [members[source as usize], members[destination as usize]];
            let of_part = route.iter().map(|&link| own.fabric.link_of_whole(link));
            let mut links: Vec<u32> = of_part.collect();
            let joined = self.fabric.downcast::<GpuServers>();
            let joined = joined.filter(|_| own.fabric.family() != self.fabric.family());
            if let Some(route) = joined.and_then(|servers| servers.route_outside(ends, &links)) {
                links = route;
            } else if let Some(servers) = servers {
                // A link of copy k of the network between servers has its number in one copy, plus
                // k times the links of a copy.
                let hop = Hop {
                    from: ends[0],
                    to: ends[1],
                    light: own.light_of(index),
                    route: FABRIC_ROUTE,
                    slot: 0,
                };
                let copy = servers.hop_on_copy(&hop).map_or(0, |(copy, _)| copy);
                let network = servers.outside().fabric.routed_links();
                let first = copy * network.map_or(0, |network| network.links().len() as u32);
                links.iter_mut().for_each(|link| *link += first);
            }
            united.routes.assign(number, &links);
        }
        united
            .relays
            .extend(own.relays_of(index).iter().map(|relay| Relay {
                transfer: number as u32,
                rank: members[relay.rank as usize],
                slot: relay.slot + shift,
                ..*relay
            }));
    }
}
