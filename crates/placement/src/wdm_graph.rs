//! Placement of schedules on a graph of fibres: a route, a fibre, a wavelength and a slot for every
//! transfer.
//!
//! The transfers of a step are placed one after the other, those with the most links first. A
//! transfer takes a route with the fewest links; among several such routes it takes one whose
//! links carry the smallest sum of transfers so far. Then it receives the earliest slot of the step
//! in which a channel is free on every link of its route and both ranks have a free transmitter or
//! receiver, and the lowest such channel (first fit). With converters the channels of the links
//! may differ, so that a slot only needs a free channel on every link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::check_ends;
use crate::{PlacementError, PlacementProblem};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_graph::{CONVERTED, GraphLight, WdmGraph};
use opticoll_fabric::network::Network;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;

/// Assigns a route, a channel and a slot to every transfer of a schedule.
///
/// # Errors
/// A transfer does not go from one rank to a different rank, or its route exceeds the reach.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    graph: &WdmGraph,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    check_ends(&schedule, graph.fibre_links().ranks())?;
    let mut router = Router::new(graph.fibre_links());
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut start = 0;
    for step in 0..plan.schedule.steps() {
        let transfers = plan.schedule.step(step);
        let ends: Vec<(u32, u32)> = transfers
            .clone()
            .map(|index| plan.schedule.ends(index))
            .collect();
        let routes = router.routes(&ends);
        let mut order: Vec<usize> = (0..ends.len()).collect();
        order.sort_by_key(|&place| Reverse(routes[place].len()));
        let mut slots = StepSlots::new(graph);
        for place in order {
            interrupt::check();
            let (transfer, route) = (transfers.start + place, &routes[place]);
            check_reach(graph, transfer, route.len())?;
            let (slot, light) = slots.take(ends[place], route);
            plan.slot[transfer] = start + slot;
            plan.light[transfer] = light.into();
            plan.routes.assign(transfer, route);
        }
        let end = start + slots.count();
        plan.step_slots[step] = start..end;
        start = end;
    }
    Ok(plan)
}

fn check_reach(graph: &WdmGraph, transfer: usize, links: usize) -> Result<(), PlacementError> {
    match graph.reach {
        Some(reach) if links > reach as usize => {
            let sentence = format!(
                "transfer {transfer} spans {links} links, but the reach of light is {reach}; use \
                 an algorithm with shorter lightpaths"
            );
            Err(PlacementError::new(PlacementProblem::Unfit, sentence))
        }
        _ => Ok(()),
    }
}

/// Search for routes with the fewest links.
struct Router {
    /// Links that leave each vertex, with the vertex at their end, indexed by vertex.
    leaving: Vec<Vec<(u32, u32)>>,
    /// Number of transfers of the step that cross each link, indexed by link.
    load: Vec<u64>,
}

impl Router {
    fn new(network: &dyn Network) -> Router {
        let links = network.links().len();
        let mut leaving = vec![Vec::new(); network.ranks() as usize];
        for link in 0..links as u32 {
            let Some((from, to)) = network.ends(link) else {
                continue;
            };
            let last = from.max(to) as usize;
            leaving.resize(leaving.len().max(last + 1), Vec::new());
            leaving[from as usize].push((link, to));
        }
        Router {
            leaving,
            load: vec![0; links],
        }
    }

    /// Returns a route for each pair of a source and a destination.
    fn routes(&mut self, ends: &[(u32, u32)]) -> Vec<Vec<u32>> {
        self.load.fill(0);
        let routes = ends.iter().map(|&ends| {
            interrupt::check();
            let route = self.route(ends);
            route.iter().for_each(|&link| self.load[link as usize] += 1);
            route
        });
        routes.collect()
    }

    /// Returns the route with the fewest links, and the smallest sum of loads among these.
    fn route(&self, (source, destination): (u32, u32)) -> Vec<u32> {
        // Dijkstra's algorithm with costs (links, load).
        let mut reached = vec![None; self.leaving.len()];
        let mut queue = BinaryHeap::from([(Reverse((0u32, 0u64)), source, None)]);
        while let Some((Reverse((links, load)), vertex, by)) = queue.pop() {
            if reached[vertex as usize].is_some() {
                continue;
            }
            reached[vertex as usize] = Some(by);
            if vertex == destination {
                break;
            }
            for &(link, to) in &self.leaving[vertex as usize] {
                if reached[to as usize].is_none() {
                    let cost = (links + 1, load + self.load[link as usize]);
                    queue.push((Reverse(cost), to, Some((link, vertex))));
                }
            }
        }
        let (mut route, mut vertex) = (Vec::new(), destination);
        while let Some(Some((link, before))) = reached[vertex as usize] {
            route.push(link);
            vertex = before;
        }
        route.reverse();
        route
    }
}

/// Channels and ports in use in the slots of a step.
struct StepSlots<'a> {
    graph: &'a WdmGraph,
    /// Number of links.
    links: usize,
    /// Lightpaths that each rank sends and receives, indexed by slot and then by rank.
    sent: Vec<Vec<u32>>,
    received: Vec<Vec<u32>>,
    /// True if a channel is in use, indexed by slot and then by channel * links + link.
    lit: Vec<Vec<bool>>,
    /// Converted lightpaths on each fibre of a link, indexed by slot and then by fibre * links +
    /// link.
    converted: Vec<Vec<u32>>,
}

impl StepSlots<'_> {
    fn new(graph: &WdmGraph) -> StepSlots<'_> {
        StepSlots {
            graph,
            links: graph.fibre_links().links().len(),
            sent: Vec::new(),
            received: Vec::new(),
            lit: Vec::new(),
            converted: Vec::new(),
        }
    }

    /// Returns the number of slots, at least 1, because an empty step needs a slot.
    fn count(&self) -> u32 {
        (self.sent.len() as u32).max(1)
    }

    fn open(&mut self) {
        let ranks = self.graph.fibre_links().ranks() as usize;
        self.sent.push(vec![0; ranks]);
        self.received.push(vec![0; ranks]);
        let fibres = self.graph.fibres as usize * self.links;
        match self.graph.converters {
            true => self.converted.push(vec![0; fibres]),
            false => self
                .lit
                .push(vec![false; fibres * self.graph.wavelengths as usize]),
        }
    }

    /// Reserves the earliest slot and the lowest channel for a lightpath.
    fn take(&mut self, (source, destination): (u32, u32), route: &[u32]) -> (u32, GraphLight) {
        let (source, destination) = (source as usize, destination as usize);
        let mut slot = 0;
        loop {
            interrupt::check();
            if slot == self.sent.len() {
                self.open();
            }
            let has_port = |used: u32, limit: Option<u32>| limit.is_none_or(|limit| used < limit);
            let has_ports = has_port(self.sent[slot][source], self.graph.transmitters)
                && has_port(self.received[slot][destination], self.graph.receivers);
            if let Some(light) = has_ports.then(|| self.light(slot, route)).flatten() {
                self.sent[slot][source] += 1;
                self.received[slot][destination] += 1;
                return (slot as u32, light);
            }
            slot += 1;
        }
    }

    /// Reserves the lowest channel that is free on all links of a route; `None` if there is none.
    fn light(&mut self, slot: usize, route: &[u32]) -> Option<GraphLight> {
        let links = self.links;
        if self.graph.converters {
            let used = &mut self.converted[slot];
            let on = |fibre: u32, link: u32| fibre as usize * links + link as usize;
            let mut fibres = 0..self.graph.fibres;
            let fibre = fibres.find(|&fibre| {
                let mut route = route.iter();
                route.all(|&link| used[on(fibre, link)] < self.graph.wavelengths)
            })?;
            route.iter().for_each(|&link| used[on(fibre, link)] += 1);
            return Some(GraphLight {
                fibre: fibre as u8,
                wavelength: CONVERTED,
            });
        }
        let lit = &mut self.lit[slot];
        let on = |channel: u32, link: u32| channel as usize * links + link as usize;
        let mut channels = 0..self.graph.channels();
        let channel =
            channels.find(|&channel| route.iter().all(|&link| !lit[on(channel, link)]))?;
        route.iter().for_each(|&link| lit[on(channel, link)] = true);
        Some(GraphLight {
            fibre: (channel / self.graph.wavelengths) as u8,
            wavelength: (channel % self.graph.wavelengths) as u16,
        })
    }
}
