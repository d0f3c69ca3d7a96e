//! Relaxation of links until all equations hold; [`super::super`] proves that this terminates.
//!
//! The equation of a link is checked again only if the level of a class on the link has changed. If
//! the link is full, any such change violates the equation. If the link is not full, the sum of the
//! rates of its classes is stored, and the equation holds until this sum exceeds the capacity.
//! After n changes, rounding has added at most n 2^-53 of the capacity to the sum. With fewer than
//! 2^10 changes, the relative error is below 2^-43, which is negligible compared with
//! [`SAME_LEVEL`]. After 2^10 changes, the sum is computed from scratch.
//!
//! Links are relaxed in the order of their levels, because levels depend only on lower levels. A
//! link that was full is queued at its old level, because most changes are small. A link that was
//! not full is queued at its capacity divided by its number of classes. If its level turns out to
//! be higher, it is queued again, behind links with lower levels. The order affects only the work.
//! A link is relaxed at most [`MAX_RELAXATIONS`] times in a round, so that it does not delay other
//! links.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{LoadedLink, Origin, Presence, Shares};
use opticoll_base::interrupt;

/// Relative difference below which two levels count as equal, so that rounding errors do not
/// propagate.
const SAME_LEVEL: f64 = 1.0 / (1u64 << 40) as f64;
/// Number of changes of a link's load after which the load is computed from scratch.
const MAX_CHANGES: u16 = 1 << 10;
/// Maximum number of times that a link is relaxed in a round.
const MAX_RELAXATIONS: u8 = 16;

/// Links that must be relaxed.
#[derive(Default)]
pub(super) struct Unsettled {
    /// Links of the next round, in no particular order.
    pub(super) next: Vec<u32>,
    /// Sort keys of the links that were queued before this round, by descending level.
    round: Vec<u128>,
    /// Sort keys of the links that were queued during this round.
    added: BinaryHeap<Reverse<u128>>,
    /// Links that have been relaxed in this round.
    relaxed: Vec<u32>,
}

/// Returns a sort key that orders links by level, then by index. The bits of levels have the same
/// order as the levels, because levels are not negative.
fn sort_key(level: f64, link: u32) -> u128 {
    (u128::from(level.to_bits()) << 64) | u128::from(link)
}

impl Unsettled {
    fn push(&mut self, level: f64, link: u32) {
        self.added.push(Reverse(sort_key(level, link)));
    }

    fn lowest(&self) -> Option<u128> {
        let added = self.added.peek().map(|&Reverse(sort_key)| sort_key);
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
    /// Updates the levels after all changes, and appends the flow classes with new levels to
    /// `changed`.
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

    fn queue_round(&mut self) {
        let (links, presences) = (&self.links, &self.presences);
        let levels = &self.levels;
        let Unsettled { next, round, .. } = &mut self.unsettled;
        round.extend(next.drain(..).map(|index| {
            let place = index as usize;
            let share = links[place].capacity / presences[place].len().max(1) as f64;
            let level = levels[place];
            sort_key(if level.is_finite() { level } else { share }, index)
        }));
        round.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// Sets the level of a link to the solution of its equation, and updates its flow classes.
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
        if becomes_full && lowest.is_some_and(|lowest| lowest < sort_key(level, 0)) {
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

    /// Returns whether a link is not full and has a single flow class, whose bottleneck is another
    /// link. Such a link need not be relaxed. Most links that need not be relaxed are of this kind.
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

    /// Computes `bounds` for a link: for each flow class, the minimum level of the class's other
    /// links, and the weight of the class on the link. The level of the link itself must be
    /// infinite.
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

    /// Updates the levels of the flow classes on link `by`, after the level of link `by` has
    /// changed.
    fn bound_classes(&mut self, by: u32, changed: &mut Vec<u32>) {
        // Separate borrows save many loads in the innermost loop.
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

    /// Adds `change` to the load of a link. Called only outside of [`Shares::settle`].
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

    /// Queues a link whose equation may be violated.
    pub(super) fn unsettle(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if !std::mem::replace(&mut link.queued, true) {
            self.unsettled.next.push(index);
        }
    }
}

impl LoadedLink {
    /// Adds `change` to the load of the link, whose level is `level`. Returns whether the equation
    /// of the link still holds.
    #[inline]
    fn stays_settled(&mut self, level: f64, change: f64) -> bool {
        if level.is_finite() {
            return false;
        }
        self.load += change;
        // Rounding errors of a load above the capacity may be large, so the load is summed again.
        self.changes = if self.load <= self.limit {
            MAX_CHANGES.min(self.changes + 1)
        } else {
            MAX_CHANGES
        };
        self.changes < MAX_CHANGES
    }
}

/// Returns whether a link never limits a flow class, because its only class has a slower link.
fn is_never_full(link: u32, on: &[Presence], origins: &[Origin]) -> bool {
    matches!(on, [alone] if origins[alone.class as usize].slowest != link)
}

/// Returns the level that solves the equation of a link: the sum of weight * min(level, bound) over
/// the pairs (bound, weight) in `bounds` equals the capacity. Returns infinity if the sum is at
/// most the capacity for every level.
///
/// The sum is a concave function of the level, so Newton's method never raises the level above the
/// solution. Each iteration computes a new level; only the first iteration, from `guess`, may lower
/// the level. The method ends when no bound lies between the old level and the new level. It starts
/// again at level 0 if the sum exceeds the capacity although the level exceeds all bounds, or if a
/// later iteration lowers the level. After this start, both events can only be rounding errors.
/// Such errors exceed [`SAME_LEVEL`] if the weight of a flow class is far below the weights of
/// others, or if there are very many classes.
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

/// Returns the maximum load (bytes per ps) at which a link does not count as full.
pub(super) fn limit(capacity: f64) -> f64 {
    capacity * (1.0 + SAME_LEVEL)
}

/// Returns `to` if `level` equals `to` up to rounding, otherwise `level`.
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
        // One flow class fills the link; the weight of the other is below the rounding errors.
        let tiny = [(1.0, 1.0), (f64::INFINITY, 1e-17)];
        assert_eq!(solve(1.0, f64::INFINITY, &tiny), 1.0);
    }
}
