//! Placement of schedules on a graph of fibres: a route, a fibre, a wavelength and a slot for every
//! transfer.
//!
//! The transfers of a step are placed one after the other, those with the most links first. A
//! transfer takes a route with the fewest links; among several such routes it takes one whose
//! links carry the smallest sum of transfers so far. Then it receives the earliest slot of the step
//! in which a channel is free on every link of its route and both ranks have a free transmitter or
//! receiver, and the lowest such channel (first fit). With converters the channels of the links
//! may differ, so that a slot only needs a free channel on every link. If the number of converters is
//! limited, a transfer uses them only where no channel is free on all links. Transfers that form a
//! light tree are placed together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::FxHashMap;

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
        let mut lightpaths = router.lightpaths(&plan.schedule, transfers, graph.multicast);
        lightpaths.sort_by_key(|lightpath| Reverse(lightpath.links.len()));
        let mut slots = StepSlots::new(graph);
        for lightpath in lightpaths {
            interrupt::check();
            for (transfer, route) in &lightpath.routes {
                check_reach(graph, *transfer, route.len())?;
            }
            let (slot, light) = slots.take(&lightpath);
            for (transfer, route) in &lightpath.routes {
                plan.slot[*transfer] = start + slot;
                plan.light[*transfer] = light.into();
                plan.routes.assign(*transfer, route);
            }
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

/// Lightpath or light tree before it has a slot and light.
struct Lightpath {
    source: u32,
    destinations: Vec<u32>,
    /// All links of the routes, each once.
    links: Vec<u32>,
    /// Transfers and their routes; several for a light tree.
    routes: Vec<(usize, Vec<u32>)>,
}

impl Lightpath {
    fn new(schedule: &Schedule, source: u32, routes: Vec<(usize, Vec<u32>)>) -> Lightpath {
        let destination = |(transfer, _): &(usize, Vec<u32>)| schedule.ends(*transfer).1;
        let mut links: Vec<u32> = Vec::new();
        for (_, route) in &routes {
            let first = links.len();
            links.extend_from_slice(route);
            let mut own = links.split_off(first);
            own.retain(|link| !links.contains(link));
            links.append(&mut own);
        }
        let mut destinations: Vec<u32> = routes.iter().map(destination).collect();
        destinations.sort_unstable();
        destinations.dedup();
        Lightpath {
            source,
            destinations,
            links,
            routes,
        }
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

    /// Returns a lightpath for each transfer of a step. If light may branch, transfers of the same
    /// chunks from one rank over the same first link become one light tree.
    fn lightpaths(
        &mut self,
        schedule: &Schedule,
        transfers: Range<usize>,
        branches: bool,
    ) -> Vec<Lightpath> {
        self.load.fill(0);
        let group = |transfer: usize| {
            let sent = schedule.transfer(transfer);
            let alone = (!branches).then_some(transfer);
            (sent.source, sent.chunk, sent.count, alone)
        };
        let mut order: Vec<usize> = transfers.collect();
        if branches {
            order.sort_by_cached_key(|&transfer| (group(transfer), transfer));
        }
        let mut lightpaths = Vec::new();
        for members in order.chunk_by(|&one, &other| group(one) == group(other)) {
            interrupt::check();
            let source = schedule.ends(members[0]).0;
            // The loads stay the same, so that the routes of the members form a tree.
            let routes = members.iter().map(|&transfer| {
                let route = self.route(schedule.ends(transfer));
                (transfer, route)
            });
            let mut routes: Vec<(usize, Vec<u32>)> = routes.collect();
            routes.sort_by_key(|(transfer, route)| (route.first().copied(), *transfer));
            let trees = routes.chunk_by(|one, other| one.1.first() == other.1.first());
            let first = lightpaths.len();
            lightpaths
                .extend(trees.map(|routes| Lightpath::new(schedule, source, routes.to_vec())));
            for lightpath in &lightpaths[first..] {
                let links = lightpath.links.iter();
                links.for_each(|&link| self.load[link as usize] += 1);
            }
        }
        lightpaths
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
    /// True if a channel is in use, indexed by slot and then by channel * links + link. Empty if
    /// converters assign all channels.
    lit: Vec<Vec<bool>>,
    /// Lightpaths on each fibre of a link, indexed by slot and then by fibre * links + link. Empty
    /// without converters.
    on_fibre: Vec<Vec<u32>>,
    /// Converters in use, indexed by slot and then by vertex, if their number is limited.
    converting: Vec<FxHashMap<u32, u32>>,
}

impl StepSlots<'_> {
    fn new(graph: &WdmGraph) -> StepSlots<'_> {
        StepSlots {
            graph,
            links: graph.fibre_links().links().len(),
            sent: Vec::new(),
            received: Vec::new(),
            lit: Vec::new(),
            on_fibre: Vec::new(),
            converting: Vec::new(),
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
        if self.graph.converters {
            let fibres = self.graph.fibres as usize;
            self.on_fibre.push(vec![0; fibres * self.links]);
        }
        if self.keeps_channels() {
            let channels = self.graph.channels() as usize;
            self.lit.push(vec![false; channels * self.links]);
        }
        self.converting.push(FxHashMap::default());
    }

    /// Reserves the earliest slot and the lowest channel for a lightpath.
    fn take(&mut self, lightpath: &Lightpath) -> (u32, GraphLight) {
        let source = lightpath.source as usize;
        let mut slot = 0;
        loop {
            interrupt::check();
            if slot == self.sent.len() {
                self.open();
            }
            let has_port = |used: u32, limit: Option<u32>| limit.is_none_or(|limit| used < limit);
            let received = &self.received[slot];
            let mut destinations = lightpath.destinations.iter();
            let has_ports = has_port(self.sent[slot][source], self.graph.transmitters)
                && destinations.all(|&destination| {
                    has_port(received[destination as usize], self.graph.receivers)
                });
            if let Some(light) = has_ports.then(|| self.light(slot, lightpath)).flatten() {
                self.sent[slot][source] += 1;
                for &destination in &lightpath.destinations {
                    self.received[slot][destination as usize] += 1;
                }
                return (slot as u32, light);
            }
            slot += 1;
        }
    }

    /// Returns whether lightpaths may keep their wavelength: unless the number of converters is
    /// unlimited.
    fn keeps_channels(&self) -> bool {
        !self.graph.converters || self.graph.converters_per_vertex.is_some()
    }

    /// Reserves the lowest channel that is free on all links of a lightpath, or converted light;
    /// `None` if there is none.
    fn light(&mut self, slot: usize, lightpath: &Lightpath) -> Option<GraphLight> {
        let (graph, links, route) = (self.graph, self.links, &lightpath.links);
        let has_room = |on_fibre: &[u32], fibre: u32| {
            let wavelengths = graph.wavelengths_of(fibre);
            let used = |&link: &u32| on_fibre[fibre as usize * links + link as usize];
            route.iter().all(|link| used(link) < wavelengths)
        };
        let count = |on_fibre: &mut [u32], fibre: u32| {
            let on_links = route.iter();
            on_links.for_each(|&link| on_fibre[fibre as usize * links + link as usize] += 1);
        };
        let mut on_fibre = self.on_fibre.get_mut(slot);
        if let Some(lit) = self.lit.get_mut(slot) {
            let on = |channel: u32, link: u32| channel as usize * links + link as usize;
            let mut channels = 0..graph.channels();
            let channel = channels.find(|&channel| {
                let fibre = u32::from(graph.channel(channel).0);
                route.iter().all(|&link| !lit[on(channel, link)])
                    && on_fibre.as_ref().is_none_or(|used| has_room(used, fibre))
            });
            if let Some(channel) = channel {
                route.iter().for_each(|&link| lit[on(channel, link)] = true);
                let (fibre, wavelength) = graph.channel(channel);
                on_fibre
                    .iter_mut()
                    .for_each(|used| count(used, u32::from(fibre)));
                return Some(GraphLight { fibre, wavelength });
            }
        }
        let used = on_fibre.as_mut()?;
        let network = graph.fibre_links();
        let starts = route.iter().filter_map(|&link| network.ends(link));
        let vertices = starts.map(|(vertex, _)| vertex);
        let vertices = vertices.filter(|&vertex| vertex != lightpath.source);
        let mut needed: FxHashMap<u32, u32> = FxHashMap::default();
        vertices.for_each(|vertex| *needed.entry(vertex).or_default() += 1);
        let converting = &mut self.converting[slot];
        if let Some(limit) = graph.converters_per_vertex {
            let in_use = |vertex: &u32| converting.get(vertex).copied().unwrap_or(0);
            if needed
                .iter()
                .any(|(vertex, more)| in_use(vertex) + more > limit)
            {
                return None;
            }
        }
        let fibre = (0..graph.fibres).find(|&fibre| has_room(used, fibre))?;
        count(used, fibre);
        for (vertex, more) in needed {
            *converting.entry(vertex).or_default() += more;
        }
        Some(GraphLight {
            fibre: fibre as u8,
            wavelength: CONVERTED,
        })
    }
}
