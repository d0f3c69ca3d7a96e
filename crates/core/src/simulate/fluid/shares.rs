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

mod filling;
mod link;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use link::Link;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClassStage {
    /// At its level from before the change.
    Settled,
    /// Its bound from before is gone (or it is new).
    Released,
    /// Its new level is found.
    Final,
}

/// A class on a link, and the hop of the class that this is.
#[derive(Clone, Copy)]
struct Presence {
    class: u32,
    hop: u32,
}

struct Class {
    level: f64,
    /// Of all its flows together.
    weight: f64,
    bottleneck: u32,
    first_hop: u32,
    hops: u32,
    stage: ClassStage,
}

/// What filling seldom asks of a class.
struct Origin {
    private_link: u32,
    /// The first of its links with the least capacity.
    slowest: u32,
}

/// Links, classes and their rates.
pub(super) struct Shares {
    links: Vec<Link>,
    /// By link.
    on: Vec<Vec<Presence>>,
    classes: Vec<Class>,
    /// By class.
    origins: Vec<Origin>,
    /// By hop of a class: the link, and the place of the class among those on the link.
    hop_links: Vec<u32>,
    hop_places: Vec<u32>,
    free_classes: Vec<u32>,
    free_private_links: Vec<u32>,
    /// Freed stretches of hops, by the power of two that is their length.
    free_hops: Vec<Vec<u32>>,
    /// Levels at which links may be full or pass, see [`filling`].
    queue: BinaryHeap<Reverse<u128>>,
    water: f64,
    /// The highest level at which a link was found full in this filling.
    highest: f64,
    /// Released classes and pending links.
    unsettled: usize,
    dirty: Vec<u32>,
    touched: Vec<u32>,
    settled_anew: Vec<u32>,
}

impl Shares {
    /// Links by their capacities (bytes per ps, finite), without classes.
    pub(super) fn new(capacities: impl Iterator<Item = f64>) -> Shares {
        let links: Vec<Link> = capacities.map(Link::new).collect();
        Shares {
            on: links.iter().map(|_| Vec::new()).collect(),
            links,
            classes: Vec::new(),
            origins: Vec::new(),
            hop_links: Vec::new(),
            hop_places: Vec::new(),
            free_classes: Vec::new(),
            free_private_links: Vec::new(),
            free_hops: vec![Vec::new(); 33],
            queue: BinaryHeap::new(),
            water: 0.0,
            highest: 0.0,
            unsettled: 0,
            dirty: Vec::new(),
            touched: Vec::new(),
            settled_anew: Vec::new(),
        }
    }

    /// A class of flows over a route, without flows so far. A finite `cap` (bytes per ps) is a
    /// private link that all its flows share.
    pub(super) fn add_class(&mut self, route: &[u32], cap: f64) -> u32 {
        let private_link = if cap.is_finite() {
            self.add_private_link(cap)
        } else {
            NONE
        };
        let hops = route.len() + usize::from(private_link != NONE);
        let first_hop = self.take_hops(hops);
        let all = route
            .iter()
            .copied()
            .chain((private_link != NONE).then_some(private_link));
        let mut slowest = (f64::INFINITY, NONE);
        for (at, link) in all.enumerate() {
            self.hop_links[first_hop as usize + at] = link;
            let capacity = self.links[link as usize].capacity;
            if capacity < slowest.0 {
                slowest = (capacity, link);
            }
        }
        let class = Class {
            level: 0.0,
            weight: 0.0,
            bottleneck: NONE,
            first_hop,
            hops: hops as u32,
            stage: ClassStage::Settled,
        };
        let origin = Origin {
            private_link,
            slowest: slowest.1,
        };
        if let Some(free) = self.free_classes.pop() {
            self.classes[free as usize] = class;
            self.origins[free as usize] = origin;
            return free;
        }
        self.classes.push(class);
        self.origins.push(origin);
        self.classes.len() as u32 - 1
    }

    fn add_private_link(&mut self, capacity: f64) -> u32 {
        let link = self.free_private_links.pop().unwrap_or_else(|| {
            self.links.push(Link::new(capacity));
            self.on.push(Vec::new());
            self.links.len() as u32 - 1
        });
        self.links[link as usize] = Link::new(capacity);
        link
    }

    /// Forgets a class without flows.
    pub(super) fn remove_class(&mut self, class: u32) {
        let gone = &self.classes[class as usize];
        debug_assert!(gone.weight == 0.0);
        let private_link = self.origins[class as usize].private_link;
        if private_link != NONE {
            self.free_private_links.push(private_link);
        }
        self.free_hops[size_class(gone.hops as usize)].push(gone.first_hop);
        self.free_classes.push(class);
    }

    /// The links of a class, its private one left out.
    pub(super) fn route(&self, class: u32) -> impl Iterator<Item = u32> + '_ {
        let private = usize::from(self.origins[class as usize].private_link != NONE);
        let range = self.classes[class as usize].range();
        self.hop_links[range.start..range.end - private]
            .iter()
            .copied()
    }

    /// The level of a class.
    pub(super) fn level(&self, class: u32) -> f64 {
        self.classes[class as usize].level
    }

    /// The link that bounds a class. None when it is the class's own cap.
    pub(super) fn bottleneck(&self, class: u32) -> Option<u32> {
        let bottleneck = self.classes[class as usize].bottleneck;
        let private_link = self.origins[class as usize].private_link;
        (bottleneck != NONE && bottleneck != private_link).then_some(bottleneck)
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
        class.level = 0.0;
        if class.hops > 0 {
            class.stage = ClassStage::Released;
            self.unsettled += 1;
        }
        let (weight, range) = (class.weight, class.range());
        for at in range {
            let link = self.hop_links[at];
            let on = &mut self.on[link as usize];
            self.hop_places[at] = on.len() as u32;
            on.push(Presence {
                class: index,
                hop: at as u32,
            });
            self.links[link as usize].open(weight, 0.0);
            self.touch(link);
        }
    }

    fn detach(&mut self, index: u32, weight: f64) {
        let class = &mut self.classes[index as usize];
        let (bottleneck, level, range) = (class.bottleneck, class.level, class.range());
        let released = class.stage == ClassStage::Released;
        self.unsettled -= usize::from(released);
        class.stage = ClassStage::Settled;
        class.bottleneck = NONE;
        for at in range {
            let (index, place) = (self.hop_links[at], self.hop_places[at]);
            let on = &mut self.on[index as usize];
            on.swap_remove(place as usize);
            if let Some(moved) = on.get(place as usize) {
                self.hop_places[moved.hop as usize] = place;
            }
            let link = &mut self.links[index as usize];
            if on.is_empty() {
                link.empty();
            } else if released || bottleneck == index {
                link.remove_open(weight);
            } else {
                link.restricted -= weight * level;
            }
            self.ease(index);
        }
    }

    fn reweigh(&mut self, index: u32, change: f64) {
        let class = &self.classes[index as usize];
        let (released, bottleneck) = (class.stage == ClassStage::Released, class.bottleneck);
        let (level, range) = (class.level, class.range());
        for at in range {
            let hop = self.hop_links[at];
            let link = &mut self.links[hop as usize];
            if released || bottleneck == hop {
                link.add_open(change);
            } else {
                link.restricted += change * level;
            }
            self.touch(hop);
        }
    }

    fn take_hops(&mut self, count: usize) -> u32 {
        let size = size_class(count);
        self.free_hops[size].pop().unwrap_or_else(|| {
            let first = self.hop_links.len();
            self.hop_links.resize(first + (1 << size), NONE);
            self.hop_places.resize(first + (1 << size), NONE);
            first as u32
        })
    }
}

impl Class {
    fn range(&self) -> std::ops::Range<usize> {
        self.first_hop as usize..(self.first_hop + self.hops) as usize
    }
}

/// The power of two that holds `count` hops.
fn size_class(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests;
