//! Graphs of degree d, whose edges are the circuits of one configuration.
//!
//! | topology | circuits of rank u |
//! |---|---|
//! | ring | to u + 1, and with several ports to u - 1 |
//! | shifts | to u + s_1, ..., u + s_d |
//! | kautz | to -(d u + 1), ..., -(d u + d) |
//! | hypercube | to the ranks that differ from u in one bit |
//! | torus | to both neighbours in each of d / 2 dimensions, all longer than 2 |
//! | demand | as kautz; then changed to suit a demand |
//!
//! The diameter of `kautz` is at most ceil(log_d n) (Imase and Itoh 1983); for n = d^k + d^(k - 1),
//! `kautz` is a Kautz graph. `demand` first assigns free ports to the largest blocks. It then
//! exchanges the destinations of two circuits as long as this lowers the sum of bytes times hops.
//!
//! All numbers are modulo n. Circuits from a rank to itself, and duplicates, are left out.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::combined::shifts;
use opticoll_base::interrupt;
use opticoll_base::spec::{Spec, SpecError, whole_number};
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_plan::collective::DemandMatrix;

/// Rule that determines the circuits of each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Topology {
    Ring,
    /// Circuits to the ranks at these distances, or at the best distances of a search if `None`.
    Shifts(Option<Vec<u32>>),
    Kautz,
    Hypercube,
    Torus,
    Demand,
}

impl Topology {
    const ALL: [Topology; 6] = [
        Topology::Ring,
        Topology::Shifts(None),
        Topology::Kautz,
        Topology::Hypercube,
        Topology::Torus,
        Topology::Demand,
    ];

    pub(super) fn name(&self) -> &'static str {
        match self {
            Topology::Ring => "ring",
            Topology::Shifts(_) => "shifts",
            Topology::Kautz => "kautz",
            Topology::Hypercube => "hypercube",
            Topology::Torus => "torus",
            Topology::Demand => "demand",
        }
    }

    /// Returns the topology that a specification names, or `None` if no option names one.
    pub(super) fn named(spec: &Spec) -> Result<Option<Topology>, SpecError> {
        let topology = match spec.option("topology") {
            None => None,
            Some(name) => {
                let mut topologies = Topology::ALL.into_iter();
                let named = topologies
                    .find(|topology| topology.name() == name)
                    .ok_or_else(|| {
                        spec.refuse(
                            "topology",
                            "must be ring, shifts, kautz, hypercube, torus or demand",
                        )
                    })?;
                Some(named)
            }
        };
        let Some(text) = spec.option("shifts") else {
            return Ok(topology);
        };
        if topology.is_some_and(|topology| topology != Topology::Shifts(None)) {
            return Err(spec.refuse("shifts", "belongs to topology=shifts"));
        }
        let shifts: Option<Vec<u32>> = text.split('+').map(whole_number).collect();
        let shifts = shifts.ok_or_else(|| {
            spec.refuse("shifts", "must be whole numbers joined by +, such as 1+5")
        })?;
        Ok(Some(Topology::Shifts(Some(shifts))))
    }
}

pub(super) struct Graph {
    pub(super) topology: Topology,
    /// Destinations of the circuits of each rank, in ascending order; indexed by source.
    pub(super) next: Vec<Vec<u32>>,
    /// Number of parallel circuits in place of each circuit, which stripe its messages.
    pub(super) parallel: u32,
}

impl Graph {
    /// Returns the graphs of all topologies that the ports permit, without duplicates. `numbers`
    /// are numbers of parallel circuits. With parallel circuits, only rings and complete graphs are
    /// returned, because planning on all graphs took 1.6 times as long and gained 0.2 %. Of equal
    /// graphs, the one with the most parallel circuits is returned.
    pub(super) fn all(
        switch: &CircuitSwitch,
        demand: Option<&DemandMatrix>,
        numbers: RangeInclusive<u32>,
    ) -> Vec<Graph> {
        let mut graphs: Vec<Graph> = Vec::new();
        for parallel in numbers.rev() {
            let is_complete = switch.ports / parallel >= switch.ranks - 1;
            let topologies = Topology::ALL.iter().filter(|topology| match topology {
                Topology::Ring => true,
                Topology::Shifts(_) => parallel == 1 || is_complete,
                _ => parallel == 1,
            });
            for topology in topologies {
                if let Ok(graph) = Graph::new(topology, parallel, switch, demand) {
                    if graphs.iter().all(|other| other.next != graph.next) {
                        graphs.push(graph);
                    }
                }
            }
        }
        graphs
    }

    /// Builds the graph of a topology, with `parallel` ports for each circuit.
    pub(super) fn new(
        topology: &Topology,
        parallel: u32,
        switch: &CircuitSwitch,
        demand: Option<&DemandMatrix>,
    ) -> Result<Graph, String> {
        let switch = &CircuitSwitch {
            ports: switch.ports / parallel,
            ..switch.clone()
        };
        let (ranks, ports) = (switch.ranks, switch.ports);
        let shifted = |shifts: &[u32]| {
            circuits_of_rule(ranks, |rank| {
                shifts
                    .iter()
                    .map(|shift| rank + u64::from(*shift))
                    .collect()
            })
        };
        let mut topology = topology.clone();
        let next = match &topology {
            Topology::Ring if ports == 1 => shifted(&[1]),
            Topology::Ring => shifted(&[1, ranks - 1]),
            Topology::Shifts(Some(shifts)) => {
                let fit = shifts.iter().all(|shift| (1..ranks).contains(shift));
                if !fit || shifts.len() > ports as usize {
                    return Err(format!(
                        "must be at most {ports} numbers, each from 1 to {}",
                        ranks - 1
                    ));
                }
                shifted(shifts)
            }
            Topology::Shifts(None) => {
                let shifts = shifts::kept_setting_shifts(switch)
                    .ok_or_else(|| format!("no shifts for {ranks} ranks were found"))?;
                let next = shifted(&shifts);
                topology = Topology::Shifts(Some(shifts));
                next
            }
            Topology::Kautz => kautz(ranks, ports),
            Topology::Demand => {
                let demand = demand.ok_or("demand needs an all_to_all with a demand")?;
                for_demand(kautz(ranks, ports), demand, ports)
            }
            Topology::Hypercube => {
                if !ranks.is_power_of_two() || ranks.ilog2() > ports {
                    return Err(format!(
                        "hypercube needs a power of two as the number of ranks, and a port for \
                         each of its dimensions; there are {ranks} ranks and {ports} ports"
                    ));
                }
                let bits = ranks.ilog2();
                circuits_of_rule(ranks, |rank| {
                    (0..bits).map(|bit| rank ^ (1 << bit)).collect()
                })
            }
            Topology::Torus => {
                let dimensions = dimensions(ranks, ports / 2).ok_or_else(|| {
                    format!(
                        "torus needs {ranks} ranks to be a product of {} numbers above 2 each",
                        ports / 2
                    )
                })?;
                circuits_of_rule(ranks, |rank| torus(rank, &dimensions))
            }
        };
        let graph = Graph {
            topology,
            next,
            parallel,
        };
        match graph.is_connected() {
            true => Ok(graph),
            false => Err("does not lead to all ranks".into()),
        }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.next.len() as u32
    }

    pub(super) fn circuits(&self) -> impl Iterator<Item = [u32; 2]> + '_ {
        let ranks = (0u32..).zip(&self.next);
        ranks.flat_map(|(from, next)| next.iter().map(move |to| [from, *to]))
    }

    pub(super) fn reversed(&self) -> Graph {
        let mut next = vec![Vec::new(); self.next.len()];
        for [from, to] in self.circuits() {
            next[to as usize].push(from);
        }
        Graph {
            topology: self.topology.clone(),
            next,
            parallel: self.parallel,
        }
    }

    fn is_connected(&self) -> bool {
        let hops = self.hops(0);
        // Equally many circuits lead into and out of any set of ranks. So every rank that rank 0
        // reaches also reaches rank 0.
        hops.iter().all(Option::is_some)
    }

    /// Returns the number of circuits on a shortest route from rank `from` to each rank.
    pub(super) fn hops(&self, from: u32) -> Vec<Option<u32>> {
        let mut hops = vec![None; self.next.len()];
        hops[from as usize] = Some(0);
        let mut open = vec![from];
        let mut distance = 0;
        while !open.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for rank in open {
                for &to in &self.next[rank as usize] {
                    if hops[to as usize].is_none() {
                        hops[to as usize] = Some(distance);
                        next.push(to);
                    }
                }
            }
            open = next;
        }
        hops
    }
}

/// Maximum work of exchanging destinations, in hops times circuits. Measured: an all_to_all of 1
/// MiB with a Zipf demand of exponent 1.2 on 16 ranks with 4 ports takes 64.1 us (bound: 59.2 us),
/// and 214 us if the circuits do not depend on the demand.
const MAX_SWAPPING_WORK: u64 = 1 << 28;

fn kautz(ranks: u32, ports: u32) -> Vec<Vec<u32>> {
    circuits_of_rule(ranks, |rank| {
        let ranks = u64::from(ranks);
        let from = 1..=u64::from(ports);
        from.map(|port| (u64::from(ports) * rank + port) % ranks)
            .map(|back| ranks - back)
            .collect()
    })
}

/// Adds circuits to `next`, and exchanges destinations, so that large blocks need few hops.
fn for_demand(mut next: Vec<Vec<u32>>, demand: &DemandMatrix, ports: u32) -> Vec<Vec<u32>> {
    let ranks = next.len();
    let amounts = demand.matrix();
    let mut largest: Vec<usize> = (0..amounts.len()).collect();
    largest.sort_by_key(|pair| std::cmp::Reverse(amounts[*pair]));
    let mut into = vec![0; ranks];
    next.iter()
        .flatten()
        .for_each(|to| into[*to as usize] += 1u32);
    for pair in largest {
        let (from, to) = (pair / ranks, pair % ranks);
        let is_spare = (next[from].len() as u32) < ports && into[to] < ports;
        if amounts[pair] > 0 && from != to && is_spare && !next[from].contains(&(to as u32)) {
            next[from].push(to as u32);
            into[to] += 1;
        }
    }
    let topology = Topology::Demand;
    let mut graph = Graph {
        topology,
        next,
        parallel: 1,
    };
    let cost = |graph: &Graph| -> Option<u128> {
        let hops = (0..ranks as u32).flat_map(|rank| graph.hops(rank));
        let pairs = hops.zip(&amounts);
        pairs
            .map(|(hops, amount)| Some(u128::from(hops?) * u128::from(*amount)))
            .sum()
    };
    let Some(mut least) = cost(&graph) else {
        return graph.next;
    };
    let places: Vec<(usize, usize)> = (0..ranks)
        .flat_map(|from| (0..graph.next[from].len()).map(move |place| (from, place)))
        .collect();
    let mut work = 0;
    let mut changes = true;
    while changes {
        changes = false;
        for (at, &one) in places.iter().enumerate() {
            for &other in &places[at + 1..] {
                let heads = [one, other].map(|(from, place)| graph.next[from][place]);
                let leads =
                    |from: usize, to: u32| from as u32 == to || graph.next[from].contains(&to);
                if leads(one.0, heads[1]) || leads(other.0, heads[0]) {
                    continue;
                }
                interrupt::check();
                work += ranks as u64 * places.len() as u64;
                if work > MAX_SWAPPING_WORK {
                    return graph.next;
                }
                graph.next[one.0][one.1] = heads[1];
                graph.next[other.0][other.1] = heads[0];
                match cost(&graph) {
                    Some(cost) if cost < least => (least, changes) = (cost, true),
                    _ => {
                        graph.next[one.0][one.1] = heads[0];
                        graph.next[other.0][other.1] = heads[1];
                    }
                }
            }
        }
    }
    graph.next
}

/// Returns the destinations of the circuits of every rank; indexed by source. `rule(u)` lists the
/// destinations of rank u, which are then reduced modulo the number of ranks.
fn circuits_of_rule(ranks: u32, rule: impl Fn(u64) -> Vec<u64>) -> Vec<Vec<u32>> {
    let destinations = |rank: u32| {
        let to = rule(rank.into()).into_iter();
        let to: BTreeSet<u32> = to.map(|to| (to % u64::from(ranks)) as u32).collect();
        to.into_iter().filter(|to| *to != rank).collect()
    };
    (0..ranks).map(destinations).collect()
}

/// Returns `count` factors of the number of ranks, each above 2 and all as equal as possible, or
/// `None` if there are no such factors.
fn dimensions(ranks: u32, count: u32) -> Option<Vec<u32>> {
    match count {
        0 => (ranks == 1).then(Vec::new),
        1 => (ranks > 2).then(|| vec![ranks]),
        _ => {
            let even = f64::from(ranks).powf(1.0 / f64::from(count)).round() as u32;
            let mut sides: Vec<u32> = (3..=ranks / 3).filter(|side| ranks % side == 0).collect();
            sides.sort_by_key(|side| (side.abs_diff(even), *side));
            sides.into_iter().find_map(|side| {
                let mut factors = dimensions(ranks / side, count - 1)?;
                factors.push(side);
                Some(factors)
            })
        }
    }
}

/// Returns the neighbours of a rank in a torus. The coordinates of a rank are the digits of its
/// number; the first dimension is the lowest digit.
fn torus(rank: u64, dimensions: &[u32]) -> Vec<u64> {
    let mut unit = 1;
    let mut neighbours = Vec::new();
    for &side in dimensions {
        let side = u64::from(side);
        let digit = rank / unit % side;
        for to in [(digit + 1) % side, (digit + side - 1) % side] {
            neighbours.push(rank - digit * unit + to * unit);
        }
        unit *= side;
    }
    neighbours
}
