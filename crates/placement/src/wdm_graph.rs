//! Placement of schedules on a graph of fibres: a route, a fibre, a wavelength and a slot for every
//! transfer.
//!
//! A graph that forms a ring is placed as this ring ([`plan_of_graph`]). On other graphs:
//!
//! | assignment | choice |
//! |---|---|
//! | `auto` | `translated` routes if they need the fewest slots; else first fit, then tabu search |
//! | `optimal` | as `auto`; refuses a step with more slots than its routes and ports require |
//! | `first_fit` | the lowest channel that is free in the earliest slot, longest routes first |
//!
//! The modules state the methods: `routes` chooses routes by load, `translated` uses the symmetry
//! of tori, hypercubes and circulant graphs, `channels` finds free channels, `tabu` improves.

mod channels;
mod ring;
mod routes;
mod tabu;
#[cfg(test)]
mod tests;
mod translated;

use std::cmp::Reverse;
use std::ops::Range;

use crate::error::check_ends;
use crate::wdm_ring::placement::Assignment;
use crate::{PlacementError, PlacementProblem};
use channels::{Channels, StepColours};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_fabric::network::Network;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Schedule;
pub use ring::{plan_of_graph, plan_of_ring};
use routes::{Router, Routes};
use translated::Lattice;

/// Assigns a route, a channel and a slot to every transfer of a schedule, by the rule named
/// `assignment`, such as `first_fit`.
///
/// # Errors
/// A transfer does not go from one rank to a different rank, or no light leads there within the
/// reach. The assignment is unknown or does not apply.
pub fn place(
    schedule: Schedule,
    fabric: &Fabric,
    graph: &WdmGraph,
    assignment: &str,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let assignment = Assignment::parse(assignment)?;
    if assignment == Assignment::BestFit {
        let sentence = "`best_fit` measures free stretches around a ring: use first_fit";
        return Err(PlacementError::new(PlacementProblem::Assignment, sentence));
    }
    check_ends(&schedule, graph.fibre_links().ranks())?;
    let mut placement = StepPlacement::new(graph, assignment);
    let mut plan = Plan::without_light(fabric, schedule, algorithm);
    plan.light = vec![Light::NONE; plan.len()];
    let mut start = 0;
    for step in 0..plan.schedule.steps() {
        interrupt::check();
        let transfers = plan.schedule.step(step);
        let ends = transfers.clone().map(|index| plan.schedule.ends(index));
        let ends: Vec<(u32, u32)> = ends.collect();
        let chunks = transfers.clone().map(|index| {
            let transfer = plan.schedule.transfer(index);
            (transfer.chunk, transfer.count)
        });
        let chunks: Option<Vec<(u32, u32)>> = graph.multicast.then(|| chunks.collect());
        let placed = placement.place(&ends, chunks.as_deref()).map_err(|place| {
            let (transfer, (source, destination)) = (transfers.start + place, ends[place]);
            let sentence = format!(
                "transfer {transfer}: no light leads from rank {source} to rank {destination}"
            );
            PlacementError::new(PlacementProblem::Unfit, sentence)
        })?;
        if assignment == Assignment::Optimal
            && placed.slots > placement.least_slots(&placed.routes, &ends)
        {
            let sentence = format!(
                "step {step}: `optimal` found no placement with the number of slots that the loads \
                 of its links require; use first_fit"
            );
            return Err(PlacementError::new(PlacementProblem::Assignment, sentence));
        }
        for (place, transfer) in transfers.clone().enumerate() {
            interrupt::check();
            let (route, colour) = (placed.routes.get(place), placed.colours[place]);
            plan.slot[transfer] = start + placement.channels.slot(colour);
            plan.light[transfer] = placement.channels.light(colour).into();
            plan.routes.assign(transfer, route);
        }
        check_light(graph, &plan, transfers)?;
        plan.step_slots[step] = start..start + placed.slots;
        start += placed.slots;
    }
    Ok(plan)
}

/// Checks that the light of each transfer reaches its destination.
fn check_light(
    graph: &WdmGraph,
    plan: &Plan,
    transfers: Range<usize>,
) -> Result<(), PlacementError> {
    if graph.reach.is_none() && graph.budget.is_none() {
        return Ok(());
    }
    let route_of = |transfer: usize| plan.routes.of(transfer).unwrap_or_default();
    // Transfers of one light tree agree in all of these.
    let light = |&transfer: &usize| {
        let sent = plan.schedule.transfer(transfer);
        let first_link = route_of(transfer).first().copied();
        let chunks = (sent.source, sent.chunk, sent.count);
        let alone = (!graph.multicast).then_some(transfer);
        (
            plan.slot[transfer],
            plan.light[transfer],
            chunks,
            first_link,
            alone,
        )
    };
    let mut transfers: Vec<usize> = transfers.collect();
    transfers.sort_by_cached_key(light);
    for transfers in transfers.chunk_by(|one, other| light(one) == light(other)) {
        interrupt::check();
        let routes = transfers.iter().map(|&transfer| route_of(transfer));
        let routes: Vec<&[u32]> = routes.collect();
        let splits = graph.splits_before(&routes);
        for ((transfer, route), splits) in transfers.iter().zip(routes).zip(splits) {
            let links = route.len();
            // The reach that follows from a loss budget is no option, so the budget comes first.
            let problem = match (graph.too_weak(route, splits), graph.reach) {
                (Some(problem), _) => format!("and its light {problem}"),
                (None, Some(reach)) if links > reach as usize => {
                    format!("but the reach of light is {reach}")
                }
                (None, _) => continue,
            };
            let sent = plan.schedule.transfer(*transfer);
            let name = |rank: u32| graph.fibre_links().vertex_name(rank);
            let sentence = format!(
                "transfer {transfer} from {} to {} spans {links} links, {problem}; use an \
                 algorithm with shorter lightpaths, such as one_hop, whose lightpaths span one \
                 link",
                name(sent.source),
                name(sent.destination)
            );
            return Err(PlacementError::new(PlacementProblem::Unfit, sentence));
        }
    }
    Ok(())
}

/// Placement of one step after the other.
struct StepPlacement<'a> {
    graph: &'a WdmGraph,
    network: &'a dyn Network,
    assignment: Assignment,
    channels: Channels<'a>,
    router: Router,
    lattice: Option<Lattice>,
    reach: usize,
    /// Number of links that searches may still look at.
    budget: u64,
}

/// Routes and colours of a step.
struct Placed {
    routes: Routes,
    colours: Vec<u32>,
    slots: u32,
}

/// Number of links that the searches for better routes and colours of a plan look at, and that the
/// tabu search of a step looks at: about 0.2 s and 0.1 s.
const BUDGET: u64 = 1 << 25;
const STEP_BUDGET: u64 = 1 << 24;

/// Maximum number of transfers of a step for tabu search, and of alternative routes of a transfer.
const MAX_TABU_TRANSFERS: usize = 1 << 11;
const MAX_ALTERNATIVES: usize = 6;

impl<'a> StepPlacement<'a> {
    fn new(graph: &'a WdmGraph, assignment: Assignment) -> StepPlacement<'a> {
        let network = graph.fibre_links();
        let channels = Channels::new(graph);
        let is_free = channels.are_independent() && assignment != Assignment::FirstFit;
        StepPlacement {
            graph,
            network,
            assignment,
            router: Router::new(network),
            lattice: is_free.then(|| Lattice::new(network)).flatten(),
            reach: graph.reach.map_or(usize::MAX, |reach| reach as usize),
            budget: BUDGET,
            channels,
        }
    }

    /// Returns the least number of slots with the given routes.
    fn least_slots(&self, routes: &Routes, ends: &[(u32, u32)]) -> u32 {
        let load = routes.greatest_load(self.network.links().len());
        let ranks = self.network.ranks() as usize;
        self.channels.least_slots(load, ends, ranks)
    }

    /// Places a step. If light may branch, `chunks` has the chunks of each transfer. Fails with the
    /// index of a transfer without a path.
    fn place(
        &mut self,
        ends: &[(u32, u32)],
        chunks: Option<&[(u32, u32)]>,
    ) -> Result<Placed, usize> {
        if let Some(chunks) = chunks {
            return self.place_trees(ends, chunks);
        }
        let per_slot = self.channels.per_slot();
        let mut budget = self.budget.min(STEP_BUDGET);
        self.budget -= budget;
        let translated = self.lattice.as_ref();
        let translated = translated.and_then(|lattice| lattice.place(ends, per_slot, &mut budget));
        self.budget += budget;
        let translated = translated.map(|translated| {
            let placed = Placed {
                slots: translated.count.div_ceil(per_slot),
                routes: translated.routes,
                colours: translated.colours,
            };
            (translated.least_slots, placed)
        });
        let translated = match translated {
            Some((least, placed)) if placed.slots == least => return Ok(placed),
            other => other.map(|(_, placed)| placed),
        };
        let mut placed = self.first_fit(ends)?;
        if self.assignment != Assignment::FirstFit {
            self.improve(ends, &mut placed);
        }
        let better = translated.filter(|translated| translated.slots < placed.slots);
        Ok(better.unwrap_or(placed))
    }

    /// Places the transfers one after the other, those with the most links first, each with the
    /// lowest colour that is free. Colours by coordinates come first if they need no more slots.
    fn first_fit(&mut self, ends: &[(u32, u32)]) -> Result<Placed, usize> {
        let capacity = self.graph.channels();
        let budget = &mut self.budget;
        let routes = self.router.routes(self.network, ends, capacity, budget)?;
        if let Some(lattice) = &self.lattice {
            let slots = self.least_slots(&routes, ends);
            let most = slots * self.channels.per_slot();
            if let Some(colours) = lattice.coloured_by_sums(ends, &routes, most) {
                return Ok(Placed {
                    routes,
                    colours,
                    slots,
                });
            }
        }
        let mut order: Vec<u32> = (0..ends.len() as u32).collect();
        order.sort_by_key(|&place| Reverse(routes.get(place as usize).len()));
        let mut step = StepColours::new(&self.channels, self.router.vertices());
        let mut colours = vec![0; ends.len()];
        for place in order {
            let place = place as usize;
            let (source, destination) = ends[place];
            colours[place] = step.take(source, &[destination], routes.get(place));
        }
        Ok(Placed {
            routes,
            slots: step.slots(),
            colours,
        })
    }

    /// Places light trees one after the other, those with the most links first.
    fn place_trees(&mut self, ends: &[(u32, u32)], chunks: &[(u32, u32)]) -> Result<Placed, usize> {
        let (routes, mut trees) = self.router.trees(ends, chunks)?;
        trees.sort_by_key(|tree| Reverse(tree.links.len()));
        let mut step = StepColours::new(&self.channels, self.router.vertices());
        let mut colours = vec![0; ends.len()];
        for tree in &trees {
            let (source, _) = ends[tree.transfers[0]];
            let colour = step.take(source, &tree.destinations, &tree.links);
            let transfers = tree.transfers.iter();
            transfers.for_each(|&transfer| colours[transfer] = colour);
        }
        Ok(Placed {
            routes,
            slots: step.slots(),
            colours,
        })
    }

    /// Searches for placements of a small step with fewer and fewer slots.
    fn improve(&mut self, ends: &[(u32, u32)], placed: &mut Placed) {
        let is_small = ends.len() <= MAX_TABU_TRANSFERS && self.channels.are_independent();
        if !is_small || placed.slots == 1 || self.budget == 0 {
            return;
        }
        let all = ends.iter().enumerate().map(|(place, &ends)| {
            let first: Box<[u32]> = placed.routes.get(place).into();
            let mut routes = self.router.alternatives(ends, MAX_ALTERNATIVES);
            routes.retain(|route| *route != first && route.len() <= self.reach);
            routes.insert(0, first);
            routes
        });
        let alternatives: Vec<Vec<Box<[u32]>>> = all.collect();
        let shortest = alternatives.iter().map(|routes| {
            let links = routes.iter().map(|route| route.len() as u64);
            links.min().unwrap_or(0)
        });
        let (shortest, links) = (shortest.sum::<u64>(), self.network.links().len());
        let mut budget = self.budget.min(STEP_BUDGET);
        self.budget -= budget;
        // With so few colours that even routes of the fewest links fill all links, no search helps.
        let fits = |colours: u32| shortest <= u64::from(colours) * links as u64;
        while placed.slots > 1 && fits((placed.slots - 1) * self.channels.per_slot()) {
            let search = tabu::Search {
                alternatives: &alternatives,
                links,
                colours: (placed.slots - 1) * self.channels.per_slot(),
            };
            let start = placed.colours.iter();
            let start: Vec<(usize, u32)> = start.map(|&colour| (0, colour)).collect();
            let Some(chosen) = search.run(&start, &mut budget) else {
                return;
            };
            let mut routes = Routes::default();
            for (alternatives, (route, _)) in alternatives.iter().zip(&chosen) {
                routes.push(&alternatives[*route]);
            }
            *placed = Placed {
                routes,
                colours: chosen.into_iter().map(|(_, colour)| colour).collect(),
                slots: placed.slots - 1,
            };
        }
        self.budget += budget;
    }
}
