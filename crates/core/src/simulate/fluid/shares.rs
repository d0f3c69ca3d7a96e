//! The max-min fair rates of classes of flows, kept up to date through starts and ends.
//!
//! The mathematics stands in [`super`]. Here: a link's *level* mu, a class's *level* x (rate of a
//! flow of weight 1), and for every link the two sums from which its level follows without a look
//! at its classes,
//!
//! ```text
//! open       = sum of W_c       over classes c that this link bounds (or that nothing bounds yet)
//! restricted = sum of W_c * x_c over classes c bounded elsewhere
//! level      = (capacity - restricted) / open
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Levels nearer than this, relatively, are one level: rounding errors start no cascade.
const SAME_LEVEL: f64 = 1.0 / (1u64 << 40) as f64;

const NONE: u32 = u32::MAX;

/// Queue entries of a link: it saturates; or the level passes the one at which it used to.
const SATURATES: u8 = 0;
const PASSES: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkStage {
    /// Not reached by the change so far.
    Clean,
    /// Reached; its level is open.
    Dirty,
    /// Its new level is found.
    Final,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClassStage {
    /// At its level from before the change.
    Settled,
    /// Its bound from before is gone (or it is new).
    Released,
    /// Its new level is found.
    Final,
}

struct Link {
    capacity: f64,
    restricted: f64,
    open: f64,
    open_count: u32,
    /// Not below the level of any class bounded elsewhere.
    top: f64,
    stage: LinkStage,
    touched: bool,
    /// Whether `queued` is the level itself and not only a bound from below.
    exact: bool,
    /// Infinite where the link is not full.
    level: f64,
    /// The level of its valid entry in the queue, or infinite.
    queued: f64,
    on: Vec<Presence>,
}

/// A class on a link, and the hop of the class that this is.
#[derive(Clone, Copy)]
struct Presence {
    class: u32,
    hop: u32,
}

/// A link of a class, and the place of the class among those on the link.
#[derive(Clone, Copy)]
struct Hop {
    link: u32,
    place: u32,
}

struct Class {
    level: f64,
    /// Of all its flows together.
    weight: f64,
    bottleneck: u32,
    first_hop: u32,
    hops: u32,
    private_link: u32,
    /// The first of its links with the least capacity.
    slowest: u32,
    stage: ClassStage,
}

/// Links, classes and their rates.
pub(super) struct Shares {
    links: Vec<Link>,
    classes: Vec<Class>,
    hops: Vec<Hop>,
    free_classes: Vec<u32>,
    free_private_links: Vec<u32>,
    /// Freed stretches of `hops`, by the power of two that is their length.
    free_hops: Vec<Vec<u32>>,
    queue: BinaryHeap<Reverse<(u64, u8, u32)>>,
    water: f64,
    dirty: Vec<u32>,
    touched: Vec<u32>,
    settled_anew: Vec<u32>,
}

impl Shares {
    /// Links by their capacities (bytes per ps), without classes. An infinite capacity never
    /// binds.
    pub(super) fn new(capacities: impl Iterator<Item = f64>) -> Shares {
        Shares {
            links: capacities.map(Link::new).collect(),
            classes: Vec::new(),
            hops: Vec::new(),
            free_classes: Vec::new(),
            free_private_links: Vec::new(),
            free_hops: vec![Vec::new(); 33],
            queue: BinaryHeap::new(),
            water: 0.0,
            dirty: Vec::new(),
            touched: Vec::new(),
            settled_anew: Vec::new(),
        }
    }

    /// A class of flows over a route, without flows so far. A finite `cap` (bytes per ps) is a
    /// private link that all its flows share.
    pub(super) fn add_class(&mut self, route: &[u32], cap: f64) -> u32 {
        let private_link = if cap.is_finite() {
            let link = self.free_private_links.pop().unwrap_or_else(|| {
                self.links.push(Link::new(cap));
                self.links.len() as u32 - 1
            });
            self.links[link as usize].capacity = cap;
            link
        } else {
            NONE
        };
        let hops = route.len() + usize::from(private_link != NONE);
        let first_hop = self.take_hops(hops);
        let all = route
            .iter()
            .copied()
            .chain((private_link != NONE).then_some(private_link));
        for (at, link) in all.enumerate() {
            self.hops[first_hop as usize + at] = Hop { link, place: 0 };
        }
        let capacity = |hop: &Hop| self.links[hop.link as usize].capacity;
        let own = &self.hops[first_hop as usize..first_hop as usize + hops];
        let slowest = own
            .iter()
            .min_by(|one, other| capacity(one).total_cmp(&capacity(other)));
        let slowest = slowest.map_or(NONE, |hop| hop.link);
        let class = Class {
            level: 0.0,
            weight: 0.0,
            bottleneck: NONE,
            first_hop,
            hops: hops as u32,
            private_link,
            slowest,
            stage: ClassStage::Settled,
        };
        if let Some(free) = self.free_classes.pop() {
            self.classes[free as usize] = class;
            return free;
        }
        self.classes.push(class);
        self.classes.len() as u32 - 1
    }

    /// Forgets a class without flows.
    pub(super) fn remove_class(&mut self, class: u32) {
        let gone = &self.classes[class as usize];
        debug_assert!(gone.weight == 0.0);
        if gone.private_link != NONE {
            self.free_private_links.push(gone.private_link);
        }
        self.free_hops[size_class(gone.hops as usize)].push(gone.first_hop);
        self.free_classes.push(class);
    }

    /// The links of a class, its private one left out.
    pub(super) fn route(&self, class: u32) -> impl Iterator<Item = u32> + '_ {
        let class = &self.classes[class as usize];
        let private = usize::from(class.private_link != NONE);
        let range = class.range();
        self.hops[range.start..range.end - private]
            .iter()
            .map(|hop| hop.link)
    }

    /// The level of a class.
    pub(super) fn level(&self, class: u32) -> f64 {
        self.classes[class as usize].level
    }

    /// The link that bounds a class. None when it is the class's own cap.
    pub(super) fn bottleneck(&self, class: u32) -> Option<u32> {
        let class = &self.classes[class as usize];
        (class.bottleneck != NONE && class.bottleneck != class.private_link)
            .then_some(class.bottleneck)
    }

    /// Gives the flows of a class this weight in all. The rates are out of date until
    /// [`Shares::settle`].
    pub(super) fn set_weight(&mut self, class: u32, weight: f64) {
        let before = self.classes[class as usize].weight;
        self.classes[class as usize].weight = weight;
        if before == 0.0 && weight > 0.0 {
            self.attach(class);
        } else if before > 0.0 && weight == 0.0 {
            self.detach(class, before);
        } else {
            self.reweigh(class, weight - before);
        }
    }

    fn attach(&mut self, index: u32) {
        let class = &mut self.classes[index as usize];
        class.bottleneck = NONE;
        class.stage = ClassStage::Released;
        class.level = 0.0;
        let (weight, range) = (class.weight, class.range());
        for at in range {
            let hop = &mut self.hops[at];
            let link = &mut self.links[hop.link as usize];
            hop.place = link.on.len() as u32;
            link.on.push(Presence {
                class: index,
                hop: at as u32,
            });
            link.open += weight;
            link.open_count += 1;
            let link = hop.link;
            self.touch(link);
        }
    }

    fn detach(&mut self, index: u32, weight: f64) {
        let class = &mut self.classes[index as usize];
        let (bottleneck, level, range) = (class.bottleneck, class.level, class.range());
        let released = class.stage == ClassStage::Released;
        class.stage = ClassStage::Settled;
        class.bottleneck = NONE;
        for at in range {
            let hop = self.hops[at];
            let link = &mut self.links[hop.link as usize];
            link.on.swap_remove(hop.place as usize);
            if let Some(moved) = link.on.get(hop.place as usize) {
                self.hops[moved.hop as usize].place = hop.place;
            }
            if link.on.is_empty() {
                (link.open, link.open_count, link.restricted) = (0.0, 0, 0.0);
                link.top = 0.0;
            } else if released || bottleneck == hop.link {
                link.close(weight);
            } else {
                link.restricted -= weight * level;
            }
            self.touch(hop.link);
        }
    }

    fn reweigh(&mut self, index: u32, change: f64) {
        let class = &self.classes[index as usize];
        for at in class.range() {
            let hop = self.hops[at].link;
            let link = &mut self.links[hop as usize];
            if class.stage == ClassStage::Released || class.bottleneck == hop {
                link.open += change;
            } else {
                link.restricted += change * class.level;
            }
        }
        for at in self.classes[index as usize].range() {
            self.touch(self.hops[at].link);
        }
    }

    /// Finds the rates that the changes since the last call have touched; `changed` is given the
    /// classes whose level moved.
    pub(super) fn settle(&mut self, changed: &mut Vec<u32>) {
        self.water = 0.0;
        self.requeue();
        while let Some(Reverse((bits, event, link))) = self.queue.pop() {
            let level = f64::from_bits(bits);
            if self.links[link as usize].stage == LinkStage::Final {
                continue;
            }
            if event == PASSES {
                self.water = self.water.max(level);
                self.release(link);
            } else if level == self.links[link as usize].queued {
                self.water = self.water.max(level);
                self.saturate(link, changed);
            }
        }
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
        for at in 0..self.links[index as usize].on.len() {
            let presence = self.links[index as usize].on[at];
            let class = &self.classes[presence.class as usize];
            if class.bottleneck != index || class.stage != ClassStage::Settled {
                continue;
            }
            let (weight, level, range) = (class.weight, class.level, class.range());
            // Two links may be full at one level; the other one may have been found first.
            let other = self.hops[range.clone()]
                .iter()
                .map(|hop| hop.link)
                .find(|&link| {
                    let link_state = &self.links[link as usize];
                    link != index
                        && link_state.stage == LinkStage::Final
                        && link_state.level <= level
                });
            if let Some(other) = other {
                let bound = &mut self.links[other as usize];
                bound.restricted -= weight * level;
                bound.open += weight;
                bound.open_count += 1;
                let old = &mut self.links[index as usize];
                old.close(weight);
                old.restrict(weight * level, level);
                let class = &mut self.classes[presence.class as usize];
                class.bottleneck = other;
                class.stage = ClassStage::Final;
                self.settled_anew.push(presence.class);
                self.touch(index);
                continue;
            }
            self.classes[presence.class as usize].stage = ClassStage::Released;
            for at in range {
                let hop = self.hops[at].link;
                if hop == index {
                    continue;
                }
                let link = &mut self.links[hop as usize];
                link.restricted -= weight * level;
                link.open += weight;
                link.open_count += 1;
                self.touch(hop);
            }
        }
        self.requeue();
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
                .map_or(u64::MAX, |Reverse((bits, _, _))| *bits);
            let better = link.bound(self.water).max(level);
            if better.is_infinite() {
                return;
            }
            if better > level && better.to_bits() > next {
                link.queued = better;
                self.queue
                    .push(Reverse((better.to_bits(), SATURATES, index)));
                return;
            }
            level = if link.open_count > 0 && better >= link.top {
                better
            } else {
                self.exact_level(index)
            };
            if level.is_infinite() {
                return;
            }
            if level > self.water && level.to_bits() > next {
                let link = &mut self.links[index as usize];
                link.queued = level;
                link.exact = true;
                self.queue
                    .push(Reverse((level.to_bits(), SATURATES, index)));
                return;
            }
            self.water = self.water.max(level);
        }
        let link = &mut self.links[index as usize];
        link.stage = LinkStage::Final;
        link.level = level;
        link.top = level;
        // Summed anew, so that rounding errors do not pile up.
        let (mut open, mut restricted) = (0.0, 0.0);
        for at in 0..self.links[index as usize].on.len() {
            let class = self.links[index as usize].on[at].class;
            self.bound(class, index, level, changed);
            let class = &self.classes[class as usize];
            if class.bottleneck == index {
                open += class.weight;
            } else {
                restricted += class.weight * class.level;
            }
        }
        let link = &mut self.links[index as usize];
        (link.open, link.restricted) = (open, restricted);
        self.requeue();
    }

    /// Bounds a class at a link that is full at `level`, unless another link bounds it lower.
    fn bound(&mut self, index: u32, by: u32, level: f64, changed: &mut Vec<u32>) {
        let class = &mut self.classes[index as usize];
        let released = class.stage == ClassStage::Released;
        let before = class.level;
        let open_here = released || class.bottleneck == by;
        let lower = class.stage == ClassStage::Final || (!open_here && before <= level);
        if lower {
            return;
        }
        let old_bottleneck = class.bottleneck;
        let (weight, range) = (class.weight, class.range());
        class.level = level;
        class.bottleneck = by;
        class.stage = ClassStage::Final;
        self.settled_anew.push(index);
        if before != level {
            changed.push(index);
        }
        for at in range {
            let hop = self.hops[at].link;
            let link = &mut self.links[hop as usize];
            if hop == by {
                if !open_here {
                    link.restricted -= weight * before;
                    link.open += weight;
                    link.open_count += 1;
                }
            } else if released || old_bottleneck == hop {
                link.close(weight);
                link.restrict(weight * level, level);
                self.touch(hop);
            } else if before != level {
                link.restrict(weight * (level - before), level);
                self.touch(hop);
            }
        }
    }

    /// The level at which a link is full if every class bounded elsewhere stays at its level:
    /// the solution of sum W_c min(level, y_c) = capacity. From a level m below it,
    /// (capacity - sum of the W_c y_c with y_c <= m) / (sum of the other W_c) lies between m and
    /// the solution, and is m only there.
    fn exact_level(&mut self, index: u32) -> f64 {
        let classes = &self.classes;
        let link = &mut self.links[index as usize];
        let elsewhere = |presence: &Presence| {
            let class = &classes[presence.class as usize];
            let open = class.stage == ClassStage::Released
                || (class.bottleneck == index && class.stage == ClassStage::Settled);
            (if open { f64::INFINITY } else { class.level }, class.weight)
        };
        let mut level = self.water;
        let (mut open, mut restricted, mut count, mut top) = (0.0, 0.0, 0, 0f64);
        let mut above = (0.0, 0.0);
        let mut next;
        for presence in &link.on {
            let (y, weight) = elsewhere(presence);
            if y.is_infinite() {
                open += weight;
                count += 1;
            } else {
                restricted += weight * y;
                top = top.max(y);
                if y > level {
                    above = (above.0 + weight, above.1 + weight * y);
                }
            }
        }
        (link.open, link.restricted, link.open_count) = (open, restricted, count);
        link.top = top;
        if count == 0 && restricted <= link.capacity * (1.0 + SAME_LEVEL) {
            return f64::INFINITY;
        }
        loop {
            next = (link.capacity - (restricted - above.1)) / (open + above.0);
            if above.0 == 0.0 || next <= level * (1.0 + SAME_LEVEL) {
                break;
            }
            level = next;
            let passed = above.0;
            above = (0.0, 0.0);
            for presence in &link.on {
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

    fn touch(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if link.stage == LinkStage::Clean {
            link.stage = LinkStage::Dirty;
            self.dirty.push(index);
            if link.level.is_finite() {
                self.queue
                    .push(Reverse((link.level.to_bits(), PASSES, index)));
            }
        }
        link.exact = false;
        if !link.touched {
            link.touched = true;
            self.touched.push(index);
        }
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
            if let [alone] = link.on[..]
                && self.classes[alone.class as usize].slowest != index
            {
                continue;
            }
            let bound = link.bound(self.water);
            if bound < link.queued {
                link.queued = bound;
                self.queue
                    .push(Reverse((bound.to_bits(), SATURATES, index)));
            }
        }
        self.touched.clear();
    }

    fn take_hops(&mut self, count: usize) -> u32 {
        let size = size_class(count);
        self.free_hops[size].pop().unwrap_or_else(|| {
            let first = self.hops.len();
            self.hops
                .resize(first + (1 << size), Hop { link: 0, place: 0 });
            first as u32
        })
    }
}

impl Link {
    fn new(capacity: f64) -> Link {
        Link {
            capacity,
            restricted: 0.0,
            open: 0.0,
            open_count: 0,
            top: 0.0,
            stage: LinkStage::Clean,
            touched: false,
            exact: false,
            level: f64::INFINITY,
            queued: f64::INFINITY,
            on: Vec::new(),
        }
    }

    /// A level that its true one is not below, in constant time.
    fn bound(&self, water: f64) -> f64 {
        if self.open_count > 0 {
            let bound = (self.capacity - self.restricted) / self.open;
            snap(bound.max(water), self.level)
        } else if self.restricted > self.capacity * (1.0 + SAME_LEVEL) {
            water
        } else {
            f64::INFINITY
        }
    }

    /// A class at `level`, bounded elsewhere, takes so much (more) of the capacity.
    fn restrict(&mut self, amount: f64, level: f64) {
        self.restricted += amount;
        self.top = self.top.max(level);
    }

    /// A class of this weight is no longer open.
    fn close(&mut self, weight: f64) {
        self.open_count -= 1;
        self.open = if self.open_count == 0 {
            0.0
        } else {
            self.open - weight
        };
    }
}

impl Class {
    fn range(&self) -> std::ops::Range<usize> {
        self.first_hop as usize..(self.first_hop + self.hops) as usize
    }
}

/// The level `to` if `level` is the same but for rounding.
fn snap(level: f64, to: f64) -> f64 {
    let same = to.is_finite() && (level - to).abs() <= to * SAME_LEVEL;
    if same { to } else { level }
}

/// The power of two that holds `count` hops.
fn size_class(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests;
