//! Shortest routes for an all_to_all, a scatter or a gather along a graph.
//!
//! A gather is the time reversal of a scatter on the graph with all circuits reversed.
//!
//! The number of slots is the diameter of the graph, so a block with the most hops makes one hop in
//! each slot, and other blocks may wait. If a block has several shortest routes, its route extends
//! the route to a predecessor of its destination, such that the total load of the circuits is
//! lowest. All blocks choose their routes again until none changes; then no single block can lower
//! the sum of squared loads. Finally blocks choose slots, in descending order of their numbers of
//! hops. For each hop, a block chooses the slot in which the load of the busiest circuit grows
//! least.

use std::cmp::Reverse;
use std::ops::Range;

use super::graphs::Graph;
use super::lights;
use crate::{PlannerError, PlanningProblem};
use opticoll_base::interrupt;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_plan::collective::{Collective, CollectiveKind, DemandMatrix};
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::{Schedule, Transfer};

const MAX_ROUNDS: usize = 8;

pub(super) fn plan(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    graph: &Graph,
) -> Result<Plan, PlannerError> {
    let ranks = graph.ranks();
    let kind = problem.collective.kind();
    let backwards = kind == CollectiveKind::Gather;
    let sources = match kind {
        CollectiveKind::AllToAll => (0..ranks).collect(),
        _ => vec![problem.collective.root()],
    };
    let reversed = backwards.then(|| graph.reversed());
    let forward_graph = reversed.as_ref().unwrap_or(graph);
    let hops: Vec<Vec<u32>> = sources
        .iter()
        .map(|rank| {
            interrupt::check();
            forward_graph.hops(*rank).into_iter().flatten().collect()
        })
        .collect();
    let total: u64 = hops.iter().flatten().map(|hops| u64::from(*hops)).sum();
    problem.fits(total)?;
    let diameter = hops.iter().flatten().copied().max().unwrap_or(1);
    let collective = cut(problem.collective, graph.parallel)?;
    let amounts = match collective.demand() {
        Some(demand) => demand.matrix(),
        None => vec![1; hops.len() * ranks as usize],
    };
    let routes = balance_routes(forward_graph, (&sources, &hops), &amounts);
    let hop_slots = assign_slots(&routes, &amounts, diameter as usize);
    let lights = lights(switch, graph);
    let mut schedule = Schedule::new(collective);
    schedule.begin_step();
    let (mut slots, mut light, mut relays) = (Vec::new(), Vec::new(), Vec::new());
    for (block, (route, own)) in (0u32..).zip(routes.iter().zip(&hop_slots)) {
        interrupt::check();
        if amounts[block as usize] == 0 {
            continue;
        }
        let mut crossings: Vec<(u32, u32, u32)> = route
            .iter()
            .zip(own)
            .map(|(crossing, slot)| match backwards {
                true => (crossing.to, crossing.from, diameter - 1 - slot),
                false => (crossing.from, crossing.to, *slot),
            })
            .collect();
        if backwards {
            crossings.reverse();
        }
        let (Some(&(source, ..)), Some(&(_, destination, _))) =
            (crossings.first(), crossings.last())
        else {
            continue;
        };
        for (number, chunks) in shares(
            collective.chunks_of_blocks(block..block + 1),
            graph.parallel,
        ) {
            let transfer = schedule.len() as u32;
            schedule.push(Transfer {
                count: chunks.len() as u32,
                ..Transfer::copy(chunks.start, source, destination)
            });
            for (place, &(from, to, slot)) in crossings.iter().enumerate() {
                let circuit_light = lights[&[from, to]][number];
                match place {
                    0 => {
                        slots.push(slot);
                        light.push(circuit_light);
                    }
                    _ => relays.push(Relay {
                        transfer,
                        rank: from,
                        light: circuit_light,
                        slot,
                    }),
                }
            }
        }
    }
    let mut plan = Plan::without_light(problem.fabric, schedule, graph.spec().to_string());
    plan.step_slots[0] = 0..diameter;
    plan.light = light;
    plan.slot = slots;
    plan.relays = relays;
    Ok(plan)
}

/// Returns the collective with each block cut into pieces for parallel circuits.
fn cut(collective: Collective, parallel: u32) -> Result<Collective, PlannerError> {
    let Some(demand) = collective.demand() else {
        return Ok(collective.with_pieces(collective.pieces() * parallel)?);
    };
    let parallel = u64::from(parallel);
    let pieces = demand.pairs().flat_map(|(source, destination, chunks)| {
        let amount: u64 = chunks.map(|chunk| demand.amount(chunk)).sum();
        let edge = move |piece: u64| amount * piece / parallel;
        (0..parallel)
            .map(move |piece| (source, destination, edge(piece + 1) - edge(piece)))
            .filter(|(_, _, amount)| *amount > 0)
    });
    let pieces: Vec<(u32, u32, u64)> = pieces.collect();
    let demand = DemandMatrix::new(demand.ranks(), pieces);
    let demand = demand.map_err(|error| PlannerError::CollectiveSize(error.into()))?;
    Ok(collective.without_demand().with_demand(demand)?)
}

/// Divides the chunks of a block among parallel circuits. Returns the number of each circuit with
/// its chunks.
fn shares(chunks: Range<u32>, parallel: u32) -> impl Iterator<Item = (usize, Range<u32>)> {
    let count = chunks.len() as u32;
    let edge = move |circuit: u32| chunks.start + count * circuit / parallel;
    (0..parallel)
        .map(move |circuit| (circuit as usize, edge(circuit)..edge(circuit + 1)))
        .filter(|(_, chunks)| !chunks.is_empty())
}

/// A circuit on the route of a block. `circuit` is the index of the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Crossing {
    from: u32,
    to: u32,
    circuit: usize,
}

/// Returns the circuits on the route of each block; indexed by block. The blocks of `sources[i]`
/// have the indices i N to i N + N - 1, ordered by destination. `hops[i]` is the number of hops
/// from `sources[i]` to each rank.
fn balance_routes(
    graph: &Graph,
    (sources, hops): (&[u32], &[Vec<u32>]),
    amounts: &[u64],
) -> Vec<Vec<Crossing>> {
    let ranks = graph.ranks();
    // Circuits into each rank; indexed by destination.
    let mut into: Vec<Vec<Crossing>> = vec![Vec::new(); ranks as usize];
    for (circuit, [from, to]) in graph.circuits().enumerate() {
        into[to as usize].push(Crossing { from, to, circuit });
    }
    let mut loads = vec![0u64; graph.circuits().count()];
    let mut routes: Vec<Vec<Crossing>> = vec![Vec::new(); hops.len() * ranks as usize];
    // Other ranks of each source, in ascending order of distance.
    let nearest = |(source, hops): (&u32, &Vec<u32>)| {
        let mut order: Vec<u32> = (0..ranks).filter(|rank| rank != source).collect();
        order.sort_by_key(|rank| hops[*rank as usize]);
        order
    };
    let orders: Vec<Vec<u32>> = sources.iter().zip(hops).map(nearest).collect();
    for _ in 0..MAX_ROUNDS {
        let mut changes = false;
        for (source, order) in orders.iter().enumerate() {
            interrupt::check();
            let (first_block, hops) = (source * ranks as usize, &hops[source]);
            for &rank in order {
                let block = first_block + rank as usize;
                let amount = amounts[block];
                routes[block]
                    .iter()
                    .for_each(|crossing| loads[crossing.circuit] -= amount);
                let predecessors = into[rank as usize].iter();
                let predecessors = predecessors
                    .filter(|crossing| hops[crossing.from as usize] < hops[rank as usize]);
                let load = |crossing: &&Crossing| {
                    let before = &routes[first_block + crossing.from as usize];
                    let before: u64 = before.iter().map(|crossing| loads[crossing.circuit]).sum();
                    before + loads[crossing.circuit]
                };
                if let Some(&last) = predecessors.min_by_key(load) {
                    let mut route = routes[first_block + last.from as usize].clone();
                    route.push(last);
                    changes |= route != routes[block];
                    routes[block] = route;
                }
                routes[block]
                    .iter()
                    .for_each(|crossing| loads[crossing.circuit] += amount);
            }
        }
        if !changes {
            break;
        }
    }
    routes
}

/// Returns the slot of every hop; indexed by block and then by hop.
fn assign_slots(routes: &[Vec<Crossing>], amounts: &[u64], slots: usize) -> Vec<Vec<u32>> {
    let mut order: Vec<usize> = (0..routes.len()).collect();
    order.sort_by_key(|block| Reverse((routes[*block].len(), amounts[*block])));
    let circuits = routes
        .iter()
        .flatten()
        .map(|crossing| crossing.circuit + 1)
        .max();
    let mut loads = vec![vec![0u64; circuits.unwrap_or(0)]; slots];
    let mut busiest = vec![0u64; slots];
    let mut hop_slots = vec![Vec::new(); routes.len()];
    for block in order {
        interrupt::check();
        let (mut first, amount) = (0, amounts[block]);
        for (place, crossing) in routes[block].iter().enumerate() {
            let last = slots - (routes[block].len() - place);
            let growth = |slot: &usize| {
                (loads[*slot][crossing.circuit] + amount).saturating_sub(busiest[*slot])
            };
            let slot = (first..=last).min_by_key(growth).unwrap_or(first);
            loads[slot][crossing.circuit] += amount;
            busiest[slot] = busiest[slot].max(loads[slot][crossing.circuit]);
            hop_slots[block].push(slot as u32);
            first = slot + 1;
        }
    }
    hop_slots
}
