//! Configurations of a circuit switch that the planner tries.

use std::collections::BTreeSet;

use super::steps::Step;
use opticoll_base::interrupt;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Configuration {
    /// Destinations of each rank's circuits, in ascending order; indexed by source.
    pub(super) next: Vec<Vec<u32>>,
    /// Shift s if the circuits lead from every rank u to rank u + s, otherwise `None`.
    pub(super) shift: Option<u32>,
}

impl Configuration {
    fn new(circuits: &BTreeSet<[u32; 2]>, ranks: u32) -> Configuration {
        let mut next = vec![Vec::new(); ranks as usize];
        for [from, to] in circuits {
            next[*from as usize].push(*to);
        }
        let shift = next[0].first().copied();
        let is_shift = |shift: &u32| {
            let mut circuits = (0..ranks).zip(&next);
            circuits.all(|(rank, next)| next[..] == [(rank + shift) % ranks])
        };
        Configuration {
            shift: shift.filter(is_shift),
            next,
        }
    }

    /// Returns whether the configuration has a circuit for every message of a step.
    pub(super) fn joins_all(&self, step: &Step) -> bool {
        let mut messages = step.messages.iter();
        messages.all(|message| {
            self.next[message.from as usize]
                .binary_search(&message.to)
                .is_ok()
        })
    }
}

/// Returns the configurations to try. The first consists of cycles. For each step i, another
/// configuration has the circuits of the steps i, i + 1, ..., as far as the ports permit. A
/// configuration is left out if an earlier configuration contains all of its circuits.
pub(super) fn configurations(switch: &CircuitSwitch, steps: &[Step]) -> Vec<Configuration> {
    let ends = |step: &Step| -> BTreeSet<[u32; 2]> {
        let messages = step.messages.iter();
        messages.map(|message| [message.from, message.to]).collect()
    };
    let mut step_circuits: Vec<BTreeSet<[u32; 2]>> = steps.iter().map(ends).collect();
    // Consecutive steps over the same circuits count as one step.
    step_circuits.dedup();
    let mut configurations: Vec<BTreeSet<[u32; 2]>> = vec![cycles(switch)];
    for first in 0..step_circuits.len() {
        interrupt::check();
        let mut free = FreePorts::of(switch);
        let mut circuits_of_steps = BTreeSet::new();
        for ends in &step_circuits[first..] {
            let new: Vec<[u32; 2]> = ends.difference(&circuits_of_steps).copied().collect();
            if !new.iter().all(|ends| free.take(*ends)) {
                break;
            }
            circuits_of_steps.extend(new);
        }
        if configurations
            .iter()
            .all(|before| !circuits_of_steps.is_subset(before))
        {
            configurations.push(circuits_of_steps);
        }
    }
    configurations
        .iter()
        .map(|circuits| Configuration::new(circuits, switch.ranks))
        .collect()
}

/// Number of free outgoing ports of each rank, and number of free incoming ports of each rank; both
/// are indexed by rank.
struct FreePorts([Vec<u32>; 2]);

impl FreePorts {
    fn of(switch: &CircuitSwitch) -> FreePorts {
        let alive: Vec<u32> = (0..switch.ranks)
            .map(|rank| switch.ports_alive(rank))
            .collect();
        FreePorts([alive.clone(), alive])
    }

    /// Occupies the ports of a circuit if both ranks have a free port. Returns whether both had a
    /// free port.
    fn take(&mut self, ends: [u32; 2]) -> bool {
        let [out, into] = &mut self.0;
        let (out, into) = (&mut out[ends[0] as usize], &mut into[ends[1] as usize]);
        let fits = *out > 0 && *into > 0;
        if fits {
            *out -= 1;
            *into -= 1;
        }
        fits
    }
}

/// Returns the circuits of a cycle through all ranks, and of chords that skip about N^(i /
/// ceil(ports / 2)) ranks for i = 1, 2, .... With several ports, the circuits in the other
/// direction are included. Circuits of dead ports are left out.
fn cycles(switch: &CircuitSwitch) -> BTreeSet<[u32; 2]> {
    let (ranks, ports) = (switch.ranks, switch.ports);
    let mut shifts: Vec<u32> = Vec::new();
    let longest = f64::from(ranks).powf(1.0 / f64::from(ports.div_ceil(2)));
    let mut chord = 1.0f64;
    while shifts.len() < ports as usize && chord < f64::from(ranks) {
        let forth = (chord.round() as u32) % ranks;
        for shift in [forth, ranks - forth] {
            if !shifts.contains(&shift) && shift % ranks != 0 {
                shifts.push(shift);
            }
        }
        chord *= longest.max(2.0);
    }
    shifts.truncate(ports as usize);
    let mut free = FreePorts::of(switch);
    let circuits = shifts
        .iter()
        .flat_map(|shift| (0..ranks).map(move |rank| [rank, (rank + shift) % ranks]));
    circuits.filter(|ends| free.take(*ends)).collect()
}
