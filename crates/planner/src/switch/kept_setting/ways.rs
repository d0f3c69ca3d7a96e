//! All_to_all, scatter and gather along shortest ways of a graph.
//!
//! A gather is a scatter on the graph with all circuits reversed, carried out backwards.
//!
//! There are as many slots as the graph's diameter, so that a block of the farthest rank makes a
//! hop in each; the others may wait. Where there are several shortest ways, a block goes as one of
//! those to the ranks before its own, over the circuits with the fewest blocks in all, and all
//! choose again until none changes: no block alone then lessens the sum of their squares. Then
//! blocks take slots, those of the most hops first: of the slots in which a hop may be, the one
//! whose busiest circuit stays as it is, or else gets busier by least.

use std::cmp::Reverse;

use super::graphs::Graph;
use super::lights;
use crate::{PlannerError, PlanningProblem};
use opticoll_base::interrupt;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::{Schedule, Transfer};

/// How often ways are chosen at most.
const ROUNDS: usize = 8;

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
    let leading = reversed.as_ref().unwrap_or(graph);
    let hops: Vec<Vec<u32>> = sources
        .iter()
        .map(|rank| {
            interrupt::check();
            leading.hops(*rank).into_iter().flatten().collect()
        })
        .collect();
    let all: u64 = hops.iter().flatten().map(|hops| u64::from(*hops)).sum();
    problem.fits(all)?;
    let diameter = hops.iter().flatten().copied().max().unwrap_or(1);
    let collective = problem.collective;
    let amounts = match collective.demand() {
        Some(demand) => demand.matrix(),
        None => vec![1; hops.len() * ranks as usize],
    };
    let ways = balanced(leading, (&sources, &hops), &amounts);
    let slots_of = in_slots(&ways, &amounts, diameter as usize);
    let lights = lights(switch, graph);
    let mut schedule = Schedule::new(collective);
    schedule.begin_step();
    let (mut slots, mut light, mut relays) = (Vec::new(), Vec::new(), Vec::new());
    for (block, (way, own)) in (0u32..).zip(ways.iter().zip(&slots_of)) {
        interrupt::check();
        if amounts[block as usize] == 0 {
            continue;
        }
        let mut crossings: Vec<(u32, u32, u32)> = way
            .iter()
            .zip(own)
            .map(|(one, slot)| match backwards {
                true => (one.to, one.from, diameter - 1 - slot),
                false => (one.from, one.to, *slot),
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
        let transfer = schedule.len() as u32;
        let chunks = collective.chunks_of_blocks(block..block + 1);
        schedule.push(Transfer {
            count: chunks.len() as u32,
            ..Transfer::copy(chunks.start, source, destination)
        });
        for (place, (from, to, slot)) in crossings.into_iter().enumerate() {
            let own = lights[&[from, to]];
            match place {
                0 => {
                    slots.push(slot);
                    light.push(own);
                }
                _ => relays.push(Relay {
                    transfer,
                    rank: from,
                    light: own,
                    slot,
                }),
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

/// A circuit on the way of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Crossing {
    from: u32,
    to: u32,
    circuit: usize,
}

/// The circuits on the way of each block, by source and destination; `hops` are those from each
/// source.
fn balanced(
    graph: &Graph,
    (sources, hops): (&[u32], &[Vec<u32>]),
    amounts: &[u64],
) -> Vec<Vec<Crossing>> {
    let ranks = graph.ranks();
    // By rank: the circuits that lead to it.
    let mut into: Vec<Vec<Crossing>> = vec![Vec::new(); ranks as usize];
    for (circuit, [from, to]) in graph.circuits().enumerate() {
        into[to as usize].push(Crossing { from, to, circuit });
    }
    let mut loads = vec![0u64; graph.circuits().count()];
    let mut ways: Vec<Vec<Crossing>> = vec![Vec::new(); hops.len() * ranks as usize];
    // By source: the other ranks, the nearest first.
    let nearest = |(source, hops): (&u32, &Vec<u32>)| {
        let mut order: Vec<u32> = (0..ranks).filter(|rank| rank != source).collect();
        order.sort_by_key(|rank| hops[*rank as usize]);
        order
    };
    let orders: Vec<Vec<u32>> = sources.iter().zip(hops).map(nearest).collect();
    for _ in 0..ROUNDS {
        let mut changes = false;
        for (source, order) in orders.iter().enumerate() {
            interrupt::check();
            let (of_source, hops) = (source * ranks as usize, &hops[source]);
            for &rank in order {
                let own = of_source + rank as usize;
                let amount = amounts[own];
                ways[own]
                    .iter()
                    .for_each(|one| loads[one.circuit] -= amount);
                let near = into[rank as usize].iter();
                let near = near.filter(|one| hops[one.from as usize] < hops[rank as usize]);
                let load = |one: &&Crossing| {
                    let before = &ways[of_source + one.from as usize];
                    let before: u64 = before.iter().map(|one| loads[one.circuit]).sum();
                    before + loads[one.circuit]
                };
                if let Some(&last) = near.min_by_key(load) {
                    let mut way = ways[of_source + last.from as usize].clone();
                    way.push(last);
                    changes |= way != ways[own];
                    ways[own] = way;
                }
                ways[own]
                    .iter()
                    .for_each(|one| loads[one.circuit] += amount);
            }
        }
        if !changes {
            break;
        }
    }
    ways
}

/// The slots of all hops.
fn in_slots(ways: &[Vec<Crossing>], amounts: &[u64], slots: usize) -> Vec<Vec<u32>> {
    let mut order: Vec<usize> = (0..ways.len()).collect();
    order.sort_by_key(|block| Reverse((ways[*block].len(), amounts[*block])));
    let circuits = ways.iter().flatten().map(|one| one.circuit + 1).max();
    let mut loads = vec![vec![0u64; circuits.unwrap_or(0)]; slots];
    let mut busiest = vec![0u64; slots];
    let mut taken = vec![Vec::new(); ways.len()];
    for block in order {
        interrupt::check();
        let (mut first, amount) = (0, amounts[block]);
        for (place, one) in ways[block].iter().enumerate() {
            let last = slots - (ways[block].len() - place);
            let more =
                |slot: &usize| (loads[*slot][one.circuit] + amount).saturating_sub(busiest[*slot]);
            let slot = (first..=last).min_by_key(more).unwrap_or(first);
            loads[slot][one.circuit] += amount;
            busiest[slot] = busiest[slot].max(loads[slot][one.circuit]);
            taken[block].push(slot as u32);
            first = slot + 1;
        }
    }
    taken
}
