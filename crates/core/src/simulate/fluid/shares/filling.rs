//! Filling anew what a change has touched, from the lowest level up.
//!
//! The queue holds each link that is not clean with a level below which it is not full, or with the
//! level at which it used to be full, if that comes first (see [`super::super`]). A link that loses
//! a class, or of which a class is stopped elsewhere, becomes full no earlier for that: it keeps its
//! place in the queue, and if it was not full before, it stays clean.
//!
//! Filling is over as soon as no class is released, no link that was full is yet to be found full
//! or passed, and none is over its capacity. *Proof:* a further link that became full would stop a
//! class. Were that released, there would be one left; were it stopped elsewhere, at a higher level,
//! the link would have to be over its capacity; were it stopped here before, the link would have
//! been full, and be yet to be found.

use std::cmp::Reverse;

use super::link::{LinkStage, SAME_LEVEL, Sum, snap};
use super::{ClassStage, Presence, Shares};

/// Events of a link: it may be full; or the level passes the one at which it used to be.
const FULL: u32 = 0;
const PASSES: u32 = 1;

/// An entry of the queue: by level, then event, then link. Levels are not negative, so that their
/// bits are in their order.
fn entry(level: f64, event: u32, link: u32) -> Reverse<u128> {
    let low = (u64::from(event) << 32) | u64::from(link);
    Reverse((u128::from(level.to_bits()) << 64) | u128::from(low))
}

fn entry_level(Reverse(entry): Reverse<u128>) -> f64 {
    f64::from_bits((entry >> 64) as u64)
}

impl Shares {
    /// Finds the rates that the changes since the last call have touched; `changed` is given the
    /// classes whose level moved.
    pub(in super::super) fn settle(&mut self, changed: &mut Vec<u32>) {
        (self.water, self.highest) = (0.0, 0.0);
        self.requeue();
        while self.unsettled > 0
            && let Some(next) = self.queue.pop()
        {
            let level = entry_level(next);
            let (event, index) = ((next.0 >> 32) as u32, next.0 as u32);
            if level != self.links[index as usize].queued {
                continue;
            }
            self.water = self.water.max(level);
            if event == PASSES {
                self.release(index);
            } else {
                self.saturate(index, changed);
            }
        }
        self.queue.clear();
        for &index in &self.dirty {
            let link = &mut self.links[index as usize];
            if link.stage == LinkStage::Dirty {
                link.level = f64::INFINITY;
            }
            link.stage = LinkStage::Clean;
            link.queued = f64::INFINITY;
            link.exact = false;
        }
        self.dirty.clear();
        for &class in &self.settled_anew {
            self.classes[class as usize].stage = ClassStage::Settled;
        }
        self.settled_anew.clear();
    }

    /// The level has passed the one at which this link used to be full, and it is not: what it
    /// bounded is bounded by it no more.
    fn release(&mut self, index: u32) {
        self.deal_with(index);
        let link = &mut self.links[index as usize];
        (link.level, link.queued) = (f64::INFINITY, f64::INFINITY);
        self.touch(index);
        for at in 0..self.on[index as usize].len() {
            let presence = self.on[index as usize][at];
            let class = &mut self.classes[presence.class as usize];
            if class.bottleneck != index || class.stage != ClassStage::Settled {
                continue;
            }
            // Two links may be full at one level; the other one may have been found first.
            if self.highest >= class.level && self.hand_over(presence.class, index) {
                continue;
            }
            let class = &mut self.classes[presence.class as usize];
            class.stage = ClassStage::Released;
            self.unsettled += 1;
            let (weight, level) = (class.weight, class.level);
            for at in class.range() {
                let hop = self.hop_links[at];
                if hop != index {
                    self.links[hop as usize].open(weight, level);
                    self.touch(hop);
                }
            }
        }
        self.requeue();
    }

    /// Bounds a class at the level it has by another link that was found full there, if there is
    /// one.
    fn hand_over(&mut self, index: u32, from: u32) -> bool {
        let class = &mut self.classes[index as usize];
        let mut hops = self.hop_links[class.range()].iter().copied();
        let other = hops.find(|&hop| {
            let link = &self.links[hop as usize];
            hop != from && link.stage == LinkStage::Final && link.level <= class.level
        });
        let Some(other) = other else {
            return false;
        };
        class.bottleneck = other;
        class.stage = ClassStage::Final;
        self.settled_anew.push(index);
        self.links[other as usize].open(class.weight, class.level);
        self.links[from as usize].close(class.weight, class.level);
        self.ease(from);
        true
    }

    /// A link has come to the front of the queue: its level is found, or it goes back with a
    /// better bound.
    fn saturate(&mut self, index: u32, changed: &mut Vec<u32>) {
        let link = &mut self.links[index as usize];
        let mut level = link.queued;
        link.queued = f64::INFINITY;
        if !link.exact {
            let next = self
                .queue
                .peek()
                .map_or(f64::INFINITY, |&next| entry_level(next));
            let next = next.min(link.level);
            let better = link.bound(self.water).max(level);
            if better.is_infinite() {
                self.deal_with(index);
                return;
            }
            if better > level && better > next {
                self.push(index, better);
                return;
            }
            level = if link.open_count > 0 && better >= link.top {
                better
            } else {
                self.exact_level(index)
            };
            if level.is_infinite() {
                self.deal_with(index);
                return;
            }
            if level > self.water && level > next {
                self.push(index, level);
                self.links[index as usize].exact = true;
                return;
            }
            self.water = self.water.max(level);
        }
        self.fill(index, level, changed);
    }

    /// A link is full at `level`.
    fn fill(&mut self, index: u32, level: f64, changed: &mut Vec<u32>) {
        self.deal_with(index);
        self.highest = self.highest.max(level);
        let link = &mut self.links[index as usize];
        link.stage = LinkStage::Final;
        (link.level, link.queued) = (level, f64::INFINITY);
        link.top = level;
        // Summed anew, so that rounding errors do not pile up.
        let (mut open, mut open_count, mut restricted) = (Sum::default(), 0, 0.0);
        for at in 0..self.on[index as usize].len() {
            let number = self.on[index as usize][at].class;
            let class = &self.classes[number as usize];
            let released = class.stage == ClassStage::Released;
            let bounded_here = class.bottleneck == index;
            let elsewhere = class.stage == ClassStage::Final
                || (!released && !bounded_here && class.level <= level);
            if elsewhere && !bounded_here {
                restricted += class.weight * class.level;
                continue;
            }
            open.add(class.weight);
            open_count += 1;
            if released {
                self.bound_released(number, index, level, changed);
            } else if !elsewhere {
                self.bound_lower(number, index, level, changed);
            }
        }
        let link = &mut self.links[index as usize];
        link.set_open(open, open_count);
        link.restricted = restricted;
        self.requeue();
    }

    /// Bounds a released class by a link that is full at `level`.
    fn bound_released(&mut self, index: u32, by: u32, level: f64, changed: &mut Vec<u32>) {
        let class = &mut self.classes[index as usize];
        if class.level != level {
            changed.push(index);
        }
        class.level = level;
        class.bottleneck = by;
        class.stage = ClassStage::Final;
        self.unsettled -= 1;
        self.settled_anew.push(index);
        for &hop in &self.hop_links[class.range()] {
            if hop == by {
                continue;
            }
            let link = &mut self.links[hop as usize];
            link.close(class.weight, level);
            link.exact = false;
            if link.is_over() && !link.pending && link.stage == LinkStage::Dirty {
                link.pending = true;
                self.unsettled += 1;
            }
        }
    }

    /// Bounds a class that nothing has released by a link that is full at `level`, not above the
    /// class's level from before.
    fn bound_lower(&mut self, index: u32, by: u32, level: f64, changed: &mut Vec<u32>) {
        let class = &mut self.classes[index as usize];
        let (before, old_bottleneck) = (class.level, class.bottleneck);
        class.level = level;
        class.bottleneck = by;
        class.stage = ClassStage::Final;
        self.settled_anew.push(index);
        if before == level && old_bottleneck == by {
            return;
        }
        changed.push(index);
        let weight = class.weight;
        for at in class.range() {
            let hop = self.hop_links[at];
            if hop == by {
                continue;
            }
            let link = &mut self.links[hop as usize];
            if hop == old_bottleneck {
                link.close(weight, level);
            } else {
                link.restrict(weight * (level - before), level);
            }
            self.ease(hop);
        }
    }

    /// The level at which a link is full if every class bounded elsewhere stays at its level:
    /// the solution of sum W_c min(level, y_c) = capacity. From a level m below it,
    /// (capacity - sum of the W_c y_c with y_c <= m) / (sum of the other W_c) lies between m and
    /// the solution, and is m only there.
    fn exact_level(&mut self, index: u32) -> f64 {
        let classes = &self.classes;
        let link = &mut self.links[index as usize];
        let on = &self.on[index as usize];
        let elsewhere = |presence: &Presence| {
            let class = &classes[presence.class as usize];
            let open = class.stage == ClassStage::Released
                || (class.bottleneck == index && class.stage == ClassStage::Settled);
            (if open { f64::INFINITY } else { class.level }, class.weight)
        };
        let mut level = self.water;
        let (mut open, mut restricted, mut count, mut top) = (Sum::default(), 0.0, 0, 0f64);
        let mut above = (0.0, 0.0);
        let mut next;
        for presence in on {
            let (y, weight) = elsewhere(presence);
            if y.is_infinite() {
                open.add(weight);
                count += 1;
            } else {
                restricted += weight * y;
                top = top.max(y);
                if y > level {
                    above = (above.0 + weight, above.1 + weight * y);
                }
            }
        }
        link.set_open(open, count);
        link.restricted = restricted;
        link.top = top;
        if count == 0 && !link.is_over() {
            return f64::INFINITY;
        }
        loop {
            next = (link.capacity - (restricted - above.1)) / (open.value() + above.0);
            if above.0 == 0.0 || next <= level * (1.0 + SAME_LEVEL) {
                break;
            }
            level = next;
            let passed = above.0;
            above = (0.0, 0.0);
            for presence in on {
                let (y, weight) = elsewhere(presence);
                if y.is_finite() && y > level {
                    above = (above.0 + weight, above.1 + weight * y);
                }
            }
            if above.0 == passed {
                break;
            }
        }
        snap(snap(next.max(self.water), self.water), link.level)
    }

    /// A link's level may be lower than before: it is to be queued anew.
    #[inline]
    pub(super) fn touch(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        link.exact = false;
        if !link.touched {
            link.touched = true;
            self.touched.push(index);
        }
        if link.stage == LinkStage::Clean {
            self.reach(index);
        }
    }

    /// A link is clean no longer.
    fn reach(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        link.stage = LinkStage::Dirty;
        self.dirty.push(index);
        if link.level.is_finite() {
            link.pending = true;
            self.unsettled += 1;
        }
    }

    /// A link's level is not lower than before.
    pub(super) fn ease(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        link.exact = false;
        match link.stage {
            LinkStage::Clean if link.level.is_finite() => self.touch(index),
            LinkStage::Dirty if link.is_over() && !link.pending => {
                link.pending = true;
                self.unsettled += 1;
            }
            _ => {}
        }
    }

    /// Filling need no longer go on because of this link.
    fn deal_with(&mut self, index: u32) {
        let pending = &mut self.links[index as usize].pending;
        self.unsettled -= usize::from(std::mem::take(pending));
    }

    /// Queues a link that is not full below `bound`; at the level at which it used to be full, if
    /// that comes first.
    fn push(&mut self, index: u32, bound: f64) {
        let link = &mut self.links[index as usize];
        let (level, event) = if bound > link.level {
            (link.level, PASSES)
        } else {
            (bound, FULL)
        };
        link.queued = level;
        self.queue.push(entry(level, event, index));
    }

    /// Queues every touched link at a level that is not above its true one.
    fn requeue(&mut self) {
        for at in 0..self.touched.len() {
            let index = self.touched[at];
            let link = &mut self.links[index as usize];
            link.touched = false;
            if link.stage == LinkStage::Final {
                continue;
            }
            // A link with one class bounds it no lower than the class's slowest link does.
            let never = matches!(self.on[index as usize][..], [alone]
                if self.origins[alone.class as usize].slowest != index);
            let bound = if never {
                f64::INFINITY
            } else {
                link.bound(self.water)
            };
            if bound.min(link.level) < link.queued {
                self.push(index, bound);
            }
            let link = &mut self.links[index as usize];
            if link.is_over() && !link.pending {
                link.pending = true;
                self.unsettled += 1;
            }
        }
        self.touched.clear();
    }
}
