//! Settings of a circuit switch that are worth a try.

use std::collections::BTreeSet;

use super::steps::Step;
use opticoll_base::interrupt;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;

/// Circuits that are up together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// By rank: the ranks that its ports out lead to, in order.
    pub(super) next: Vec<Vec<u32>>,
    /// Where each rank's one circuit leads so many ranks on.
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
            let mut alone = (0..ranks).zip(&next);
            alone.all(|(rank, next)| next[..] == [(rank + shift) % ranks])
        };
        Setting {
            shift: shift.filter(is_shift),
            next,
        }
    }

    /// Whether there is a circuit for every message of a step.
    pub(super) fn joins_all(&self, step: &Step) -> bool {
        let mut messages = step.messages.iter();
        messages.all(|one| self.next[one.from as usize].binary_search(&one.to).is_ok())
    }
}

/// The circuits of as many consecutive steps as fit the ports, from each step on; and cycles.
pub(super) fn settings(switch: &CircuitSwitch, steps: &[Step]) -> Vec<Setting> {
    let ends = |step: &Step| -> BTreeSet<[u32; 2]> {
        let messages = step.messages.iter();
        messages.map(|one| [one.from, one.to]).collect()
    };
    let mut of_steps: Vec<BTreeSet<[u32; 2]>> = steps.iter().map(ends).collect();
    // Steps over the same circuits, one after the other, count once.
    of_steps.dedup();
    let mut found: Vec<BTreeSet<[u32; 2]>> = vec![cycles(switch)];
    for first in 0..of_steps.len() {
        interrupt::check();
        let mut left = PortsLeft::of(switch);
        let mut together = BTreeSet::new();
        for ends in &of_steps[first..] {
            let new: Vec<[u32; 2]> = ends.difference(&together).copied().collect();
            if !new.iter().all(|ends| left.take(*ends)) {
                break;
            }
            together.extend(new);
        }
        if found.iter().all(|before| !together.is_subset(before)) {
            found.push(together);
        }
    }
    found
        .iter()
        .map(|circuits| Setting::new(circuits, switch.ranks))
        .collect()
}

/// The ports that circuits leave.
struct PortsLeft([Vec<u32>; 2]);

impl PortsLeft {
    fn of(switch: &CircuitSwitch) -> PortsLeft {
        let alive: Vec<u32> = (0..switch.ranks)
            .map(|rank| switch.ports_alive(rank))
            .collect();
        PortsLeft([alive.clone(), alive])
    }

    /// Takes the ports of a circuit, where both ends have one left.
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

/// A cycle through all ranks, with several ports also back, and over chords of about a power of N
/// from both; without the circuits of dead ports.
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
    let mut left = PortsLeft::of(switch);
    let all = shifts
        .iter()
        .flat_map(|shift| (0..ranks).map(move |rank| [rank, (rank + shift) % ranks]));
    all.filter(|ends| left.take(*ends)).collect()
}
