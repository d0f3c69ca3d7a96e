//! Relaxing links until every equation holds; see [`super::super`] for why that ends.
//!
//! A link's equation is not looked at again unless the level of a class on it moved. For a full link
//! any such move breaks it. For one that is not full, the sum of what its classes take is kept, and
//! the equation holds until that exceeds the capacity. After n changes rounding has added at most
//! n 2^-53 of the capacity to it, so with fewer than 2^10 of them it is off by 2^-43: nothing
//! beside [`SAME_LEVEL`]. Then it is summed anew.
//!
//! Links come in the order of their levels, since levels depend on lower ones only. A link that was
//! full is taken at its old level, as most changes are small; one that was not, at the share of its
//! classes, and if its level turns out higher it waits for those below. The order bears on the work
//! alone. So that a link does not keep others waiting, it is relaxed [`MOST_TIMES`] times at most in
//! a round.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{LoadedLink, Origin, Presence, Shares};
use opticoll_base::interrupt;

/// Levels nearer than this, relatively, are one level: rounding errors start no cascade.
const SAME_LEVEL: f64 = 1.0 / (1u64 << 40) as f64;
/// Changes of a sum until it is summed anew.
const MOST_CHANGES: u16 = 1 << 10;
/// How often a link is relaxed in a round at most.
const MOST_TIMES: u8 = 16;

/// Links to relax.
#[derive(Default)]
pub(super) struct Unsettled {
    /// In the round to come, in no order.
    pub(super) next: Vec<u32>,
    /// In this round since its beginning, the lowest last; and those that have come since.
    round: Vec<u128>,
    come: BinaryHeap<Reverse<u128>>,
    /// Links that have been relaxed in this round.
    relaxed: Vec<u32>,
}

/// A link by level, then index. Levels are not negative, so that their bits are in their order.
fn entry(level: f64, link: u32) -> u128 {
    (u128::from(level.to_bits()) << 64) | u128::from(link)
}

impl Unsettled {
    fn push(&mut self, level: f64, link: u32) {
        self.come.push(Reverse(entry(level, link)));
    }

    fn lowest(&self) -> Option<u128> {
        let come = self.come.peek().map(|&Reverse(entry)| entry);
        match (self.round.last(), come) {
            (Some(&one), Some(other)) => Some(one.min(other)),
            (one, other) => one.copied().or(other),
        }
    }

    fn pop(&mut self) -> Option<u32> {
        let lowest = self.lowest()?;
        if self.round.last() == Some(&lowest) {
            self.round.pop();
        } else {
            self.come.pop();
        }
        Some(lowest as u32)
    }
}

impl Shares {
    /// Finds the rates that the changes since the last call have touched; `changed` is given the
    /// classes whose level moved.
    pub(in super::super) fn settle(&mut self, changed: &mut Vec<u32>) {
        let before = changed.len();
        while !self.unsettled.next.is_empty() {
            self.queue_round();
            while let Some(index) = self.unsettled.pop() {
                interrupt::check();
                let link = &mut self.links[index as usize];
                link.queued = false;
                if link.times == 0 {
                    self.unsettled.relaxed.push(index);
                }
                link.times += 1;
                self.relax(index, changed);
            }
            for index in self.unsettled.relaxed.drain(..) {
                self.links[index as usize].times = 0;
            }
        }
        for &class in &changed[before..] {
            self.classes[class as usize].told = false;
        }
    }

    /// Puts the links of a round into order.
    fn queue_round(&mut self) {
        let (links, on) = (&self.links, &self.on);
        let levels = &self.levels;
        let Unsettled { next, round, .. } = &mut self.unsettled;
        round.extend(next.drain(..).map(|index| {
            let place = index as usize;
            let share = links[place].capacity / on[place].len().max(1) as f64;
            let level = levels[place];
            entry(if level.is_finite() { level } else { share }, index)
        }));
        round.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// Gives a link the level that solves its equation, and its classes theirs.
    fn relax(&mut self, index: u32, changed: &mut Vec<u32>) {
        if self.is_left_alone(index) {
            return;
        }
        let before = std::mem::replace(&mut self.levels[index as usize], f64::INFINITY);
        self.find_bounds(index);
        let link = &mut self.links[index as usize];
        let level = snap(solve(link.capacity, before, &self.bounds), before);
        let waits = before.is_infinite() && level.is_finite();
        let lowest = self.unsettled.lowest();
        if waits && lowest.is_some_and(|lowest| lowest < entry(level, 0)) {
            link.queued = true;
            self.unsettled.push(level, index);
            return;
        }
        if level.is_infinite() {
            link.load = self
                .bounds
                .iter()
                .map(|(bound, weight)| bound * weight)
                .sum();
            link.changes = 0;
        }
        self.levels[index as usize] = level;
        self.bound_classes(index, changed);
    }

    /// Whether a link that is not full has one class, which others bound below its capacity: the
    /// most frequent of those that need not be relaxed.
    fn is_left_alone(&mut self, index: u32) -> bool {
        let [alone] = self.on[index as usize][..] else {
            return false;
        };
        let class = &self.classes[alone.class as usize];
        let load = class.weight * self.times(alone.hop as usize) * class.level;
        let link = &mut self.links[index as usize];
        (link.load, link.changes) = (load, 0);
        let bounds = class.bottleneck == index || self.levels[index as usize].is_finite();
        !bounds && link.load <= link.limit
    }

    /// By class on a link: the least level of its other links, and its weight. The link itself has
    /// the level infinity for now.
    fn find_bounds(&mut self, link: u32) {
        let (classes, hop_links, levels) =
            (&self.classes[..], &self.hop_links[..], &self.levels[..]);
        self.bounds.clear();
        self.bounds
            .extend(self.on[link as usize].iter().map(|presence| {
                let class = &classes[presence.class as usize];
                if class.bottleneck != link {
                    return (class.level, class.weight);
                }
                let hops = hop_links[class.range()].iter();
                let least = hops.fold(f64::INFINITY, |least, &hop| {
                    let level = levels[hop as usize];
                    if level < least { level } else { least }
                });
                (least, class.weight)
            }));
        if !self.hop_times.is_empty() {
            for (presence, bound) in self.on[link as usize].iter().zip(&mut self.bounds) {
                bound.1 *= self.hop_times[presence.hop as usize];
            }
        }
    }

    /// Brings the classes on a link up to date with its level.
    fn bound_classes(&mut self, by: u32, changed: &mut Vec<u32>) {
        // Borrowed one by one, which spares the innermost loop many loads.
        let (levels, hop_links) = (&self.levels[..], &self.hop_links[..]);
        let times = &self.hop_times[..];
        let (links, classes) = (&mut self.links[..], &mut self.classes[..]);
        let level = levels[by as usize];
        for (presence, &(elsewhere, _)) in self.on[by as usize].iter().zip(&self.bounds) {
            let class = &mut classes[presence.class as usize];
            let hops = &hop_links[class.range()];
            let mut to = level;
            if class.bottleneck == by {
                if elsewhere < level * (1.0 - SAME_LEVEL) {
                    to = elsewhere;
                    let other = hops.iter().find(|&&hop| levels[hop as usize] == to);
                    class.bottleneck = *other.unwrap_or(&by);
                }
            } else if class.level > level * (1.0 + SAME_LEVEL) {
                class.bottleneck = by;
            } else {
                continue;
            }
            if to == class.level {
                continue;
            }
            let change = class.weight * (to - class.level);
            class.level = to;
            if !std::mem::replace(&mut class.told, true) {
                changed.push(presence.class);
            }
            for (at, &hop) in hops.iter().enumerate() {
                let (link, level) = (&mut links[hop as usize], levels[hop as usize]);
                if link.queued || hop == by {
                    continue;
                }
                let change = match times {
                    [] => change,
                    times => change * times[class.first_hop as usize + at],
                };
                if link.stays_settled(level, change) {
                    continue;
                }
                if level.is_infinite() && is_free(hop, &self.on[hop as usize], &self.origins) {
                    continue;
                }
                link.queued = true;
                if link.times >= MOST_TIMES {
                    self.unsettled.next.push(hop);
                } else {
                    let level = if level.is_finite() { level } else { to };
                    self.unsettled.push(level, hop);
                }
            }
        }
    }

    /// The classes on a link take so much more of it, from outside of [`Shares::settle`].
    pub(super) fn load(&mut self, index: u32, change: f64) {
        let level = self.levels[index as usize];
        if self.links[index as usize].stays_settled(level, change) {
            return;
        }
        if level.is_finite() || !is_free(index, &self.on[index as usize], &self.origins) {
            self.unsettle(index);
        }
    }

    /// A link's equation may not hold any more.
    pub(super) fn unsettle(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if !std::mem::replace(&mut link.queued, true) {
            self.unsettled.next.push(index);
        }
    }
}

impl LoadedLink {
    /// Whether a link at a level stays settled as its classes take so much more of it.
    #[inline]
    fn stays_settled(&mut self, level: f64, change: f64) -> bool {
        if level.is_finite() {
            return false;
        }
        self.load += change;
        // A load above the capacity leaves rounding errors of its own size: it is to be summed anew.
        self.changes = if self.load <= self.limit {
            MOST_CHANGES.min(self.changes + 1)
        } else {
            MOST_CHANGES
        };
        self.changes < MOST_CHANGES
    }
}

/// Whether a link bounds nothing because its only class has a slower one.
fn is_free(link: u32, on: &[Presence], origins: &[Origin]) -> bool {
    matches!(on, [alone] if origins[alone.class as usize].slowest != link)
}

/// The level at which classes with these bounds and weights fill a link: the solution of
/// sum of W min(level, y) = capacity, or infinite where the sum never exceeds the capacity. The sum
/// is concave, so Newton's steps come up from below after the first one, and are done when they pass
/// no further y. What they pass from zero on is within the capacity but for rounding: so a step that leads
/// down there, or a sum that is too large above all y, is rounding, which a class of far less weight
/// than the others, or very many classes, can make larger than [`SAME_LEVEL`].
fn solve(capacity: f64, guess: f64, bounds: &[(f64, f64)]) -> f64 {
    let mut level = guess;
    let mut passed = f64::INFINITY;
    let mut from_zero = false;
    loop {
        interrupt::check();
        let (mut below, mut above) = (0.0, 0.0);
        for &(bound, weight) in bounds {
            if bound > level {
                above += weight;
            } else {
                below += weight * bound;
            }
        }
        if above == 0.0 && (below <= limit(capacity) || from_zero) {
            return f64::INFINITY;
        }
        let next = (capacity - below) / above;
        let falls = passed.is_finite() && next < level * (1.0 - SAME_LEVEL);
        let risen = passed.is_infinite() || next > level * (1.0 + SAME_LEVEL);
        if above == 0.0 || (falls && !from_zero) {
            // Far too high.
            (level, passed, from_zero) = (0.0, f64::INFINITY, true);
        } else if above == passed || !risen {
            return next.max(level);
        } else {
            (level, passed) = (next, above);
        }
    }
}

/// What a link that is not full carries at most.
pub(super) fn limit(capacity: f64) -> f64 {
    capacity * (1.0 + SAME_LEVEL)
}

/// The level `to` if `level` is the same but for rounding.
fn snap(level: f64, to: f64) -> f64 {
    let same = to.is_finite() && (level - to).abs() <= to * SAME_LEVEL;
    if same { to } else { level }
}

#[cfg(test)]
mod tests {
    use super::solve;

    #[test]
    fn equations_are_solved_where_rounding_is_large() {
        // 65536 equal terms sum to more than 1 + 2^-40 times what they are.
        let many = vec![(0.0125, 1.0); 65536];
        assert_eq!(solve(819.2, f64::INFINITY, &many), f64::INFINITY);
        // One class fills the link, and another one weighs less than its rounding errors.
        let tiny = [(1.0, 1.0), (f64::INFINITY, 1e-17)];
        assert_eq!(solve(1.0, f64::INFINITY, &tiny), 1.0);
    }
}
