//! Relaxation of links until every equation holds; see [`super::super`] for the proof of
//! termination.
//!
//! A link's equation is checked again only if the level of a class on it has changed. Any such
//! change invalidates the equation of a full link. For a link that is not full, the sum of its
//! classes' rates is stored, and the equation holds until this sum exceeds the capacity. After n
//! changes, rounding has added at most n 2^-53 of the capacity to the sum. With fewer than 2^10
//! changes, the relative error is below 2^-43, which is negligible compared with [`SAME_LEVEL`].
//! Then the sum is computed again.
//!
//! Links are relaxed in the order of their levels, because levels depend only on lower levels. A
//! link that was full is queued at its old level, because most changes are small. A link that was
//! not full is queued at the equal share of its classes, and if its level turns out to be higher,
//! it waits for the links below. The order affects only the work. A link is relaxed at most
//! [`MAX_RELAXATIONS`] times in a round, so that it does not delay other links.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{LoadedLink, Origin, Presence, Shares};
use opticoll_base::interrupt;

/// Relative difference below which two levels are equal, so that rounding errors do not propagate.
const SAME_LEVEL: f64 = 1.0 / (1u64 << 40) as f64;
/// Number of changes of a sum after which it is computed again.
const MAX_CHANGES: u16 = 1 << 10;
/// Maximum number of times that a link is relaxed in a round.
const MAX_RELAXATIONS: u8 = 16;

/// Links to relax.
#[derive(Default)]
pub(super) struct Unsettled {
    /// Links of the next round, in no order.
    pub(super) next: Vec<u32>,
    /// Links of this round since its beginning, the lowest last.
    round: Vec<u128>,
    /// Links that were added during this round.
    added: BinaryHeap<Reverse<u128>>,
    /// Links that have been relaxed in this round.
    relaxed: Vec<u32>,
}

/// Returns a sort key by level, then index. The bits of levels have the order of the levels because
/// these are not negative.
fn entry(level: f64, link: u32) -> u128 {
    (u128::from(level.to_bits()) << 64) | u128::from(link)
}

impl Unsettled {
    fn push(&mut self, level: f64, link: u32) {
        self.added.push(Reverse(entry(level, link)));
    }

    fn lowest(&self) -> Option<u128> {
        let added = self.added.peek().map(|&Reverse(entry)| entry);
        match (self.round.last(), added) {
            (Some(&one), Some(other)) => Some(one.min(other)),
            (one, other) => one.copied().or(other),
        }
    }

    fn pop(&mut self) -> Option<u32> {
        let lowest = self.lowest()?;
        if self.round.last() == Some(&lowest) {
            self.round.pop();
        } else {
            self.added.pop();
        }
        Some(lowest as u32)
    }
}

impl Shares {
    /// Updates the rates after the changes since the last call, and appends the classes whose level
    /// has changed to `changed`.
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
            self.classes[class as usize].is_listed = false;
        }
    }

    /// Sorts the links of a round.
    fn queue_round(&mut self) {
        let (links, presences) = (&self.links, &self.presences);
        let levels = &self.levels;
        let Unsettled { next, round, .. } = &mut self.unsettled;
        round.extend(next.drain(..).map(|index| {
            let place = index as usize;
            let share = links[place].capacity / presences[place].len().max(1) as f64;
            let level = levels[place];
            entry(if level.is_finite() { level } else { share }, index)
        }));
        round.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// Sets a link to the level that solves its equation, and updates its classes.
    fn relax(&mut self, index: u32, changed: &mut Vec<u32>) {
        if self.is_slack(index) {
            return;
        }
        let before = std::mem::replace(&mut self.levels[index as usize], f64::INFINITY);
        self.find_bounds(index);
        let link = &mut self.links[index as usize];
        let level = snap(solve(link.capacity, before, &self.bounds), before);
        let becomes_full = before.is_infinite() && level.is_finite();
        let lowest = self.unsettled.lowest();
        if becomes_full && lowest.is_some_and(|lowest| lowest < entry(level, 0)) {
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

    /// Returns whether a link is not full and has a single class, which other links limit below its
    /// capacity. This is the most frequent case of a link that need not be relaxed.
    fn is_slack(&mut self, index: u32) -> bool {
        let [alone] = self.presences[index as usize][..] else {
            return false;
        };
        let class = &self.classes[alone.class as usize];
        let load = class.weight * self.times(alone.hop as usize) * class.level;
        let link = &mut self.links[index as usize];
        (link.load, link.changes) = (load, 0);
        let bounds = class.bottleneck == index || self.levels[index as usize].is_finite();
        !bounds && link.load <= link.limit
    }

    /// Computes, for each class on a link, the least level of its other links, and its weight. The
    /// link itself must have an infinite level.
    fn find_bounds(&mut self, link: u32) {
        let (classes, hop_links, levels) =
            (&self.classes[..], &self.hop_links[..], &self.levels[..]);
        self.bounds.clear();
        self.bounds
            .extend(self.presences[link as usize].iter().map(|presence| {
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
            for (presence, bound) in self.presences[link as usize].iter().zip(&mut self.bounds) {
                bound.1 *= self.hop_times[presence.hop as usize];
            }
        }
    }

    /// Updates the classes on a link to its level.
    fn bound_classes(&mut self, by: u32, changed: &mut Vec<u32>) {
        // Separate borrows, which save many loads in the innermost loop.
        let (levels, hop_links) = (&self.levels[..], &self.hop_links[..]);
        let times = &self.hop_times[..];
        let (links, classes) = (&mut self.links[..], &mut self.classes[..]);
        let level = levels[by as usize];
        for (presence, &(elsewhere, _)) in self.presences[by as usize].iter().zip(&self.bounds) {
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
            if !std::mem::replace(&mut class.is_listed, true) {
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
                if level.is_infinite()
                    && is_never_full(hop, &self.presences[hop as usize], &self.origins)
                {
                    continue;
                }
                link.queued = true;
                if link.times >= MAX_RELAXATIONS {
                    self.unsettled.next.push(hop);
                } else {
                    let level = if level.is_finite() { level } else { to };
                    self.unsettled.push(level, hop);
                }
            }
        }
    }

    /// Adds `change` to the load of a link, from outside [`Shares::settle`].
    pub(super) fn load(&mut self, index: u32, change: f64) {
        let level = self.levels[index as usize];
        if self.links[index as usize].stays_settled(level, change) {
            return;
        }
        let on_link = &self.presences[index as usize];
        if level.is_finite() || !is_never_full(index, on_link, &self.origins) {
            self.unsettle(index);
        }
    }

    /// Queues a link whose equation may not hold any more.
    pub(super) fn unsettle(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if !std::mem::replace(&mut link.queued, true) {
            self.unsettled.next.push(index);
        }
    }
}

impl LoadedLink {
    /// Returns whether a link with a level stays settled if its load changes by `change`.
    #[inline]
    fn stays_settled(&mut self, level: f64, change: f64) -> bool {
        if level.is_finite() {
            return false;
        }
        self.load += change;
        // A load above the capacity has rounding errors of its own size and must be summed again.
        self.changes = if self.load <= self.limit {
            MAX_CHANGES.min(self.changes + 1)
        } else {
            MAX_CHANGES
        };
        self.changes < MAX_CHANGES
    }
}

/// Returns whether a link never limits a class because its only class has a slower link.
fn is_never_full(link: u32, on: &[Presence], origins: &[Origin]) -> bool {
    matches!(on, [alone] if origins[alone.class as usize].slowest != link)
}

/// Returns the level at which classes with these bounds and weights fill a link: the solution of
/// sum of W min(level, y) = capacity (W: weight, y: bound), or infinity if the sum never exceeds
/// the capacity.
///
/// The sum is concave, so after the first step Newton's method approaches the solution from below,
/// and ends when a step passes no further y. A start from zero passes only bounds whose sum is
/// within the capacity. From there, a step that lowers the level, or a sum above all y that is too
/// large, is therefore a rounding error. Such errors exceed [`SAME_LEVEL`] if a class has far less
/// weight than others, or if there are very many classes.
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
            // The level is far too high.
            (level, passed, from_zero) = (0.0, f64::INFINITY, true);
        } else if above == passed || !risen {
            return next.max(level);
        } else {
            (level, passed) = (next, above);
        }
    }
}

/// Returns the maximum load of a link that is not full.
pub(super) fn limit(capacity: f64) -> f64 {
    capacity * (1.0 + SAME_LEVEL)
}

/// Returns `to` if `level` is equal to it up to rounding, otherwise `level`.
fn snap(level: f64, to: f64) -> f64 {
    let same = to.is_finite() && (level - to).abs() <= to * SAME_LEVEL;
    if same { to } else { level }
}

#[cfg(test)]
mod tests {
    use super::solve;

    #[test]
    fn equations_are_solved_where_rounding_is_large() {
        // The rounded sum of 65536 equal terms exceeds the exact sum by more than 2^-40.
        let many = vec![(0.0125, 1.0); 65536];
        assert_eq!(solve(819.2, f64::INFINITY, &many), f64::INFINITY);
        // One class fills the link; the weight of the other is below the rounding errors.
        let tiny = [(1.0, 1.0), (f64::INFINITY, 1e-17)];
        assert_eq!(solve(1.0, f64::INFINITY, &tiny), 1.0);
    }
}
