//! Placement of schedules on servers joined by light. Transfers within a server use its packet
//! network. All others use light: the schedule of each copy of the outside fabric is placed on the
//! outside by itself. A step has as many slots as it has on the copy with the most slots.

use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Hop, Light};
use opticoll_fabric::family::gpu_servers::ServersOnLight;
use opticoll_fabric::network::named_routes::FABRIC_ROUTE;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::{Schedule, Transfer};

use crate::error::check_ends;
use crate::{PlacementError, PlacementProblem};

/// Assigns light and slots to every transfer of a schedule. `assignment` is the rule for the
/// outside fabric.
///
/// # Errors
/// A transfer leads from one copy of the outside to another, or the outside cannot carry it.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    servers: &ServersOnLight,
    assignment: &str,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let outside = servers.outside();
    check_ends(&schedule, fabric.ranks())?;
    let refused = |sentence: String| PlacementError::new(PlacementProblem::Unfit, sentence);
    let chunks = schedule.collective.chunks();
    // Only the number of chunks matters here, so any collective with these chunks serves.
    let collective = Collective::new(CollectiveKind::Broadcast, outside.fabric.ranks());
    let collective = collective.and_then(|collective| collective.with_pieces(chunks));
    let collective = collective.map_err(|error| refused(error.to_string()))?;
    // For each copy: its schedule, and the index of each of its transfers in `schedule`.
    let mut copies: Vec<(Schedule, Vec<usize>)> = (0..outside.copies())
        .map(|_| (Schedule::new(collective), Vec::new()))
        .collect();
    for step in 0..schedule.steps() {
        interrupt::check();
        copies.iter_mut().for_each(|(own, _)| own.begin_step());
        for index in schedule.step(step) {
            let transfer = schedule.transfer(index);
            let (source, destination) = (transfer.source, transfer.destination);
            if outside.same_box(source, destination) {
                continue;
            }
            let hop = Hop {
                from: source,
                to: destination,
                light: Light::NONE,
                route: FABRIC_ROUTE,
                slot: 0,
            };
            let Some((copy, hop)) = servers.hop_on_copy(&hop) else {
                return Err(refused(format!(
                    "transfer {index}: ranks {source} and {destination} are on different rails of \
                     different servers (per_rail:outside=... runs an algorithm on each rail)"
                )));
            };
            let (own, indices) = &mut copies[copy as usize];
            own.push(Transfer {
                source: hop.from,
                destination: hop.to,
                ..transfer
            });
            indices.push(index);
        }
    }
    let mut placed = Vec::new();
    for (own, indices) in copies {
        let plan = crate::place(own, &outside.fabric, assignment, String::new())?;
        placed.push((plan, indices));
    }
    let copies = placed.iter().map(|(plan, indices)| OnCopy {
        plan,
        first_step: 0,
        moves: indices.iter().copied().enumerate().collect(),
    });
    let copies: Vec<OnCopy<'_>> = copies.collect();
    Ok(on_servers(schedule, fabric, servers, &copies, algorithm))
}

/// Plan of the outside fabric for one copy, and its place in the plan of the servers.
pub struct OnCopy<'a> {
    /// Plan of the outside fabric.
    pub plan: &'a Plan,
    /// Step of the servers' schedule that contains the first step of `plan`.
    pub first_step: usize,
    /// Pairs of indices: a transfer of `plan`, and the transfer of the servers' schedule that takes
    /// over its light and slot.
    pub moves: Vec<(usize, usize)>,
}

impl OnCopy<'_> {
    /// Returns the step of the plan that is in `step` of the servers' schedule.
    fn own_step(&self, step: usize) -> Option<usize> {
        let own = step.checked_sub(self.first_step);
        own.filter(|own| *own < self.plan.schedule.steps())
    }
}

/// Returns the plan of `schedule` on servers. `copies` has one entry for each copy of the outside,
/// in order, with the light of the transfers between servers. The packets that a rank sends in a
/// step are spread evenly over the slots of this step.
pub fn on_servers(
    schedule: Schedule,
    fabric: &Fabric,
    servers: &ServersOnLight,
    copies: &[OnCopy<'_>],
    algorithm: String,
) -> Plan {
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![servers.packet(); plan.len()];
    let mut start = 0;
    // Number of packets of each rank in a step, and how many of them have a slot.
    let mut packets = vec![[0u64; 2]; fabric.ranks() as usize];
    for step in 0..plan.schedule.steps() {
        interrupt::check();
        let slots = copies.iter().filter_map(|copy| {
            let own = copy.own_step(step)?;
            Some(copy.plan.step_slots[own].len() as u32)
        });
        let slots = slots.max().unwrap_or(0).max(1);
        plan.step_slots[step] = start..start + slots;
        let is_packet = |source, destination| servers.outside().same_box(source, destination);
        for index in plan.schedule.step(step) {
            let (source, destination) = plan.schedule.ends(index);
            packets[source as usize][0] += u64::from(is_packet(source, destination));
        }
        for index in plan.schedule.step(step) {
            let (source, destination) = plan.schedule.ends(index);
            let [count, placed] = &mut packets[source as usize];
            plan.slot[index] = start;
            if is_packet(source, destination) {
                plan.slot[index] += (*placed * u64::from(slots) / *count) as u32;
                *placed += 1;
            }
        }
        packets.fill([0; 2]);
        start += slots;
    }
    for (copy, own) in (0..).zip(copies) {
        add_light(&mut plan, servers, copy, own);
    }
    plan.relays.sort_by_key(|relay| relay.transfer);
    plan
}

/// Gives the transfers of copy `copy` their light, slots and routes.
fn add_light(plan: &mut Plan, servers: &ServersOnLight, copy: u32, own: &OnCopy<'_>) {
    let outside = servers.outside();
    let links = outside.fabric.routed_links();
    let links = links.map_or(0, |network| network.links().len() as u32);
    let steps = own.plan.schedule.steps();
    let ends = (0..steps).map(|step| own.plan.schedule.step(step).end);
    let ends: Vec<usize> = ends.collect();
    for &(place, index) in &own.moves {
        interrupt::check();
        let step = ends.partition_point(|&end| end <= place);
        let first = plan.step_slots[own.first_step + step].start;
        let moved = |slot: u32| slot - own.plan.step_slots[step].start + first;
        plan.light[index] = own.plan.light[place];
        plan.slot[index] = moved(own.plan.slot[place]);
        if let Some(route) = own.plan.routes.of(place) {
            let route: Vec<u32> = route.iter().map(|link| link + copy * links).collect();
            plan.routes.assign(index, &route);
        }
        let relays = own.plan.relays_of(place).iter().map(|relay| Relay {
            transfer: index as u32,
            rank: outside.rank(copy, relay.rank),
            slot: moved(relay.slot),
            ..*relay
        });
        plan.relays.extend(relays);
    }
}
