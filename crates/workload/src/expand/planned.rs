//! Collectives on a fabric with circuits. A separate plan executes each collective, with the
//! lightpaths, slots and reconfigurations that the planner and the simulator of plans determine.
//!
//! A group of ranks plans on the part of the fabric that the group occupies ([`Fabric::part`]). If
//! the fabric looks the same from every rank, groups with the same relative positions share a plan.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{ChosenAlgorithm, CollectiveTarget, Expanded, Expansion, Ran, choice, kind};
use crate::error::{Place, TraceError};
use crate::program::{Call, Node, NodeKind, ProgramBuilder};
use crate::trace::Event;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::{Fabric, Hop};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::demand::DemandMatrix;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_simulate::TimingModel;
use opticoll_simulate::live::{OccupiedPart, PlannedCollective};

/// Cost of a plan: its simulated time, its messages and the bytes that ranks send.
#[derive(Debug)]
struct PlanCost {
    time: Time,
    messages: u64,
    /// Number of bytes that each rank of the part sends, indexed by rank of the part.
    sent: Vec<u64>,
    /// Links of the whole fabric that the plan uses on a graph of fibres; `None` elsewhere.
    links: Option<Arc<[u32]>>,
    algorithm: String,
}

impl PlanCost {
    /// Verifies and simulates a plan on a part of `fabric`.
    fn new(
        plan: &Plan,
        fabric: &Fabric,
        size: Bytes,
        method: &TimingModel,
        place: Place,
    ) -> Result<PlanCost, TraceError> {
        choice::prove(plan, place)?;
        let outcome = opticoll_simulate::run(plan, size, method);
        let outcome = outcome.map_err(|error| TraceError::at(place, error))?;
        let mut sent = outcome.ranks.sent;
        sent.resize(plan.fabric.ranks() as usize, 0);
        Ok(PlanCost {
            time: outcome.time,
            messages: outcome.slots.lightpaths.iter().sum(),
            sent,
            links: links_of(plan, fabric),
            algorithm: plan.algorithm.clone(),
        })
    }

    /// Returns the collective of the plan. `ranks` are its ranks in the whole fabric, and `span` is
    /// a range of ranks that includes them, as (first rank, number of ranks).
    fn planned(&self, ranks: &Arc<[u32]>, span: (u32, u32)) -> PlannedCollective {
        PlannedCollective {
            time: self.time,
            part: match &self.links {
                None => OccupiedPart::Span(span.0, span.1),
                Some(links) => OccupiedPart::Links {
                    ranks: ranks.clone(),
                    links: links.clone(),
                },
            },
        }
    }
}

/// Returns the links of `fabric` that the light of a plan passes, if the fabric is a graph of
/// fibres. The plan is made for a part of the fabric.
fn links_of(plan: &Plan, fabric: &Fabric) -> Option<Arc<[u32]>> {
    let graph = plan.fabric.downcast::<WdmGraph>()?;
    let mut used = vec![false; graph.fibre_links().links().len()];
    for (row, lightpath) in plan.lightpaths().enumerate() {
        let hop = Hop {
            from: lightpath.transfer.source,
            to: lightpath.transfer.destination,
            light: lightpath.light,
            route: plan.routes.number(row),
            slot: lightpath.slot,
        };
        for link in graph.route_of(&hop, &plan.routes) {
            used[link as usize] = true;
        }
    }
    let used = (0..).zip(used).filter(|(_, used)| *used);
    let used = used.filter_map(|(link, _)| fabric.link_in_part(plan.fabric.link_of_whole(link)));
    Some(used.collect())
}

/// Communicator that occupies a part of the fabric.
#[derive(Debug)]
struct Group {
    /// Part of the fabric on which the ranks plan.
    part: Fabric,
    /// Ranks of the members, sorted.
    ranks: Arc<[u32]>,
    /// Range of ranks whose links the group uses, as (first rank, number of ranks).
    span: (u32, u32),
    /// Rank in the part of each member, indexed by index of the member in the communicator.
    places: Vec<u32>,
}

impl Group {
    /// Determines the part of `fabric` that a communicator with these members occupies.
    fn new(fabric: &Fabric, members: &[u32], place: Place) -> Result<Group, TraceError> {
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        let number = |member| sorted.binary_search(member).expect("a member") as u32;
        let places = members.iter().map(number).collect();
        let (first, span) = (sorted[0], fabric.part_span(&sorted));
        let ranks = Arc::from(&*sorted);
        let circuits = fabric.circuits();
        if circuits.is_some_and(|circuits| circuits.rotation().is_some()) {
            sorted.iter_mut().for_each(|member| *member -= first);
        }
        let part = fabric
            .part(&sorted)
            .map_err(|error| TraceError::at(place, error))?;
        Ok(Group {
            part,
            ranks,
            span,
            places,
        })
    }
}

/// Key of the plan of a collective on a part of the fabric.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PlannedCall {
    kind: CollectiveKind,
    /// Root, as a rank of the part.
    root: u32,
    /// Size in bytes, as the collective defines it.
    size: u64,
    /// Size in bytes for which the plan is made.
    planned_size: u64,
    /// Number of bytes from rank i to rank j of the part, at index `i N + j` for a part of N ranks.
    /// Empty if these numbers are equal.
    demand: Vec<u64>,
}

/// Cache of the planned collectives of a program.
#[derive(Debug, Default)]
pub(super) struct PlannedCollectives {
    /// Group of each communicator, indexed by communicator.
    groups: FxHashMap<u32, Rc<Group>>,
    /// Cost of each plan, indexed by (specification of the part, key of the plan).
    costs: FxHashMap<(String, PlannedCall), Rc<PlanCost>>,
    /// Index of each collective in the program, and the cost of its plan. Indexed by (communicator,
    /// number of earlier collectives on the communicator).
    entered: FxHashMap<(u32, usize), (u64, Rc<PlanCost>)>,
}

impl PlannedCollectives {
    /// Returns the cost of the plan of a collective. Plans and simulates the collective unless the
    /// cost is cached.
    fn find(
        &mut self,
        spec: &Spec,
        fabric: &Fabric,
        target: CollectiveTarget<'_>,
        group: &Group,
        call: PlannedCall,
        place: Place,
    ) -> Result<Rc<PlanCost>, TraceError> {
        let key = (group.part.to_string(), call);
        if let Some(known) = self.costs.get(&key) {
            return Ok(known.clone());
        }
        let refused = |problem: &dyn std::fmt::Display| TraceError::at(place, problem);
        let call = &key.1;
        let ranks = group.part.ranks();
        let collective = Collective::new(call.kind, ranks)
            .and_then(|collective| collective.with_root(call.root));
        let mut collective = collective.map_err(|error| refused(&error))?;
        if !call.demand.is_empty() {
            let demand = DemandMatrix::from_matrix(ranks, &call.demand);
            let demand = demand.map_err(|error| refused(&error))?;
            let demanded = collective.with_demand(demand);
            collective = demanded.map_err(|error| refused(&error))?;
        }
        let method = target.method.cloned().unwrap_or_default();
        let planned_for = Bytes::new(call.planned_size.max(1));
        let plan = opticoll_planner::plan(spec, &group.part, collective, planned_for, &method);
        let plan = plan.map_err(|error| refused(&error))?.plan;
        let cost = PlanCost::new(&plan, fabric, Bytes::new(call.size), &method, place)?;
        let cost = Rc::new(cost);
        self.costs.insert(key, cost.clone());
        Ok(cost)
    }
}

impl Expansion<'_> {
    /// Enters a collective. Plans the collective unless another member has entered it already.
    /// `entered` is the number of earlier collectives on the communicator. `number` is the index of
    /// the member in the communicator. Returns the index of the collective in the program and the
    /// number of bytes that the member sends.
    pub(super) fn enter_planned(
        &mut self,
        fabric: &Fabric,
        place: Place,
        event: &Event,
        (entered, number): (usize, u32),
    ) -> Result<(u64, u64), TraceError> {
        let members = &self.trace.communicators[&event.communicator];
        let group = match self.planned.groups.get(&event.communicator) {
            Some(known) => known.clone(),
            None => {
                let group = Rc::new(Group::new(fabric, members, place)?);
                self.planned
                    .groups
                    .insert(event.communicator, group.clone());
                group
            }
        };
        let part_rank = group.places[number as usize] as usize;
        let key = (event.communicator, entered);
        if let Some((index, cost)) = self.planned.entered.get(&key) {
            return Ok((*index, cost.sent[part_rank]));
        }
        let kind = kind(event.call).expect("a collective");
        let root = members.iter().position(|&member| member == event.peer);
        let mut demand = self.demand(event, entered, &group);
        let even_block = || {
            let matrix = DemandMatrix::from_matrix(members.len() as u32, &demand);
            matrix.ok()?.even_block()
        };
        let various = event.call == Call::AllToAllVarious;
        let size = match (event.call, various.then(even_block).flatten()) {
            // Equal blocks need no demand. The size includes a rank's block for itself.
            (Call::AllToAllVarious, Some(block)) => {
                demand.clear();
                block.checked_mul(members.len() as u64)
            }
            (Call::AllToAllVarious, None) => {
                let rows = demand.chunks(members.len().max(1));
                let sum = |row: &[u64]| {
                    row.iter()
                        .try_fold(0u64, |sum, bytes| sum.checked_add(*bytes))
                };
                rows.map(sum).max().flatten()
            }
            // A plan has equal blocks, so each block takes the time of the largest block.
            (call, _) if call.has_own_blocks() => {
                let (_, most) = self.own_blocks(event.communicator, entered);
                let scatters = kind == CollectiveKind::ReduceScatter;
                most.checked_mul(if scatters { members.len() as u64 } else { 1 })
            }
            _ => Some(event.bytes),
        };
        let too_large = || TraceError::at(place, "its sizes exceed 64 bits");
        let size = size.ok_or_else(too_large)?;
        let spec = &self.algorithms.chosen[kind.name()];
        let planned_size = self.planned_size(spec, kind, size);
        let call = PlannedCall {
            kind,
            root: root.map_or(0, |root| group.places[root]),
            size,
            planned_size: planned_size.map_or(size, Bytes::get),
            demand: if size == 0 { Vec::new() } else { demand },
        };
        let cost = self
            .planned
            .find(spec, fabric, self.target, &group, call, place)?;
        let chosen = ChosenAlgorithm {
            collective: kind.name(),
            ranks: members.len() as u32,
            size: planned_size,
            algorithm: spec.to_string(),
            chosen: cost.algorithm.clone(),
        };
        let chosen = self.number_of(chosen);
        self.ran.insert((event.communicator, chosen));
        let planned = cost.planned(&group.ranks, group.span);
        let index = self.builder.add_collective(planned, cost.messages);
        let sent = cost.sent[part_rank];
        self.planned.entered.insert(key, (index, cost));
        Ok((index, sent))
    }

    /// Returns the demand of an Alltoallv, as in [`PlannedCall::demand`]. Returns an empty list for
    /// other collectives.
    fn demand(&self, event: &Event, nth: usize, group: &Group) -> Vec<u64> {
        if event.call != Call::AllToAllVarious {
            return Vec::new();
        }
        let ranks = group.places.len();
        let mut demand = vec![0; ranks * ranks];
        for (origin, row) in (0u32..).zip(&group.places) {
            for (target, column) in (0u32..).zip(&group.places) {
                let bytes = self.block_of_various(event.communicator, nth, origin, target);
                let cell = &mut demand[*row as usize * ranks + *column as usize];
                *cell = bytes.filter(|_| origin != target).unwrap_or(0);
            }
        }
        demand
    }
}

/// Returns the program in which all ranks execute `plan` once, for a collective of `size` bytes.
///
/// # Errors
/// Fails if the verifier or the simulator rejects the plan.
pub(crate) fn expand_plan(
    plan: &Plan,
    size: Bytes,
    method: &TimingModel,
) -> Result<Expanded, TraceError> {
    let place = Place {
        rank: 0,
        event: 0,
        line: 0,
    };
    let cost = PlanCost::new(plan, &plan.fabric, size, method, place)?;
    let (collective, ranks) = (plan.schedule.collective.kind(), plan.fabric.ranks());
    let call = Call::ALL
        .into_iter()
        .find(|&call| kind(call) == Some(collective));
    let mut builder = ProgramBuilder::new();
    let planned = cost.planned(&(0..ranks).collect(), (0, ranks));
    let index = builder.add_collective(planned, cost.messages);
    for sent in cost.sent {
        builder.begin_rank();
        builder.push(Node {
            call: call.expect("every collective is a call"),
            ..Node::work(NodeKind::Collective, index)
        })?;
        builder.join(index, sent);
    }
    Ok(Expanded {
        program: builder.finish()?,
        chosen: vec![ChosenAlgorithm {
            collective: collective.name(),
            ranks,
            size: Some(size),
            algorithm: cost.algorithm.clone(),
            chosen: cost.algorithm,
        }],
        ran: Ran::new(),
    })
}
