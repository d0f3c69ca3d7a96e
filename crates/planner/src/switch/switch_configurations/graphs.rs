//! Settings of a circuit switch to try.

use std::collections::BTreeSet;

use super::steps::Step;
use opticoll_base::interrupt;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;

/// Circuits that are up at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// Ranks that the outgoing ports of each rank lead to, in order.
    pub(super) next: Vec<Vec<u32>>,
    /// Shift s if the setting is a circuit from every rank u to rank u + s.
    pub(super) shift: Option<u32>,
}

impl Setting {
    fn new(circuits: &BTreeSet<[u32; 2]>, ranks: u32) -> Setting {
        let mut next = vec![Vec::new(); ranks as usize];
        for [from, to] in circuits {
            next[*from as usize].push(*to);
        }
        let shift = next[0].first().copied();
        let is_shift = |shift: &u32| {
            let mut circuits = (0..ranks).zip(&next);
            circuits.all(|(rank, next)| next[..] == [(rank + shift) % ranks])
        };
        Setting {
            shift: shift.filter(is_shift),
            next,
        }
    }

    /// Returns whether there is a circuit for every message of a step.
    pub(super) fn joins_all(&self, step: &Step) -> bool {
        let mut messages = step.messages.iter();
        messages.all(|message| {
            self.next[message.from as usize]
                .binary_search(&message.to)
                .is_ok()
        })
    }
}

/// Returns, from each step on, the circuits of as many consecutive steps as the ports suffice for;
/// and cycles.
pub(super) fn settings(switch: &CircuitSwitch, steps: &[Step]) -> Vec<Setting> {
    let ends = |step: &Step| -> BTreeSet<[u32; 2]> {
        let messages = step.messages.iter();
        messages.map(|message| [message.from, message.to]).collect()
    };
    let mut step_circuits: Vec<BTreeSet<[u32; 2]>> = steps.iter().map(ends).collect();
    // Consecutive steps over the same circuits count once.
    step_circuits.dedup();
    let mut settings: Vec<BTreeSet<[u32; 2]>> = vec![cycles(switch)];
    for first in 0..step_circuits.len() {
        interrupt::check();
        let mut free = FreePorts::of(switch);
        let mut circuits_of_run = BTreeSet::new();
        for ends in &step_circuits[first..] {
            let new: Vec<[u32; 2]> = ends.difference(&circuits_of_run).copied().collect();
            if !new.iter().all(|ends| free.take(*ends)) {
                break;
            }
            circuits_of_run.extend(new);
        }
        if settings
            .iter()
            .all(|before| !circuits_of_run.is_subset(before))
        {
            settings.push(circuits_of_run);
        }
    }
    settings
        .iter()
        .map(|circuits| Setting::new(circuits, switch.ranks))
        .collect()
}

/// Outgoing and incoming ports that circuits leave.
struct FreePorts([Vec<u32>; 2]);

impl FreePorts {
    fn of(switch: &CircuitSwitch) -> FreePorts {
        let alive: Vec<u32> = (0..switch.ranks)
            .map(|rank| switch.ports_alive(rank))
            .collect();
        FreePorts([alive.clone(), alive])
    }

    /// Takes the ports of a circuit if both ends have one left; returns whether they had.
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

/// Returns a cycle through all ranks; with several ports also in the other direction, and with
/// chords of about a power of a root of N in both directions; without the circuits of dead ports.
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
