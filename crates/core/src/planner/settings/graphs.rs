//! Settings of a circuit switch that are worth a try.

use std::collections::BTreeSet;

use super::steps::Step;
use crate::family::circuit_switch::CircuitSwitch;

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

/// The circuits of consecutive steps as long as all fit the ports, from each step on; and cycles.
pub(super) fn settings(switch: &CircuitSwitch, steps: &[Step]) -> Vec<Setting> {
    let (ranks, ports) = (switch.ranks, switch.ports as usize);
    let mut found: Vec<BTreeSet<[u32; 2]>> = vec![cycles(ranks, switch.ports)];
    let fits = |circuits: &BTreeSet<[u32; 2]>| {
        let mut used = [0, 1].map(|_| vec![0usize; ranks as usize]);
        circuits.iter().all(|ends| {
            ends.iter().zip(&mut used).all(|(rank, used)| {
                used[*rank as usize] += 1;
                used[*rank as usize] <= ports
            })
        })
    };
    for first in 0..steps.len() {
        let mut together = BTreeSet::new();
        for step in &steps[first..] {
            let before = together.len();
            together.extend(step.messages.iter().map(|one| [one.from, one.to]));
            if !fits(&together) {
                break;
            }
            let is_more = together.len() > before;
            if is_more && !found.contains(&together) {
                found.push(together.clone());
            }
        }
    }
    let settings = found.iter().filter(|circuits| !circuits.is_empty());
    settings
        .map(|circuits| Setting::new(circuits, ranks))
        .collect()
}

/// A cycle through all ranks, with several ports also back, and over chords of about a power of N from both.
fn cycles(ranks: u32, ports: u32) -> BTreeSet<[u32; 2]> {
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
    let all = (0..ranks).flat_map(|rank| {
        shifts
            .iter()
            .map(move |shift| [rank, (rank + shift) % ranks])
    });
    all.collect()
}
