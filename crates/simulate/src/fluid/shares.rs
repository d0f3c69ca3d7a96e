//! Max-min fair rates of classes of flows, updated when flows start and end.
//!
//! [`super`] contains the theory. This module stores a *level* mu for each link and a *level* x for
//! each class, which is the rate of a flow of weight 1. A class always has the level of its
//! bottleneck, which is the lowest level on its route, up to rounding. [`relaxation`] computes the
//! levels that solve the equations of the links.

mod relaxation;

use crate::outcome::NONE;
use relaxation::Unsettled;

/// Entry in a link's list of flow classes: the index of the class, and the index of its hop over
/// this link.
#[derive(Clone, Copy)]
struct Presence {
    class: u32,
    hop: u32,
}

struct ShareClass {
    level: f64,
    /// Sum of the weights of the class's flows.
    weight: f64,
    /// Link that limits the level of the class.
    bottleneck: u32,
    first_hop: u32,
    hops: u32,
    /// True if the list of changed flow classes contains the class.
    is_listed: bool,
}

/// Properties of a flow class that are rarely used.
struct Origin {
    private_link: u32,
    /// First link of the route that has the minimum capacity.
    slowest: u32,
}

#[repr(align(32))]
struct LoadedLink {
    capacity: f64,
    /// Capacity plus the tolerance for rounding errors (bytes per ps).
    limit: f64,
    /// Sum of the rates of the flow classes on the link. Valid only if the link is not full.
    load: f64,
    /// Number of changes of `load` since `load` was last computed from scratch.
    changes: u16,
    /// Number of relaxations of the link in this round.
    times: u8,
    /// True if the link is queued because its equation may be violated.
    queued: bool,
}

/// Links and flow classes with their levels.
pub(super) struct Shares {
    links: Vec<LoadedLink>,
    /// Level of each link: the maximum rate per unit of weight. Infinite if the link is not full.
    levels: Vec<f64>,
    /// Flow classes on each link, indexed by link.
    presences: Vec<Vec<Presence>>,
    classes: Vec<ShareClass>,
    origins: Vec<Origin>,
    /// Link of each hop, indexed by hop. A hop is one link on the route of one flow class.
    hop_links: Vec<u32>,
    /// Position of each hop's flow class in the list of classes of the hop's link, indexed by hop.
    hop_places: Vec<u32>,
    /// Factor of a flow class's weight on the link of each hop, indexed by hop: the number of
    /// equivalent flows on the link that a flow stands for. Empty if all factors are 1.
    hop_times: Vec<f64>,
    free_classes: Vec<u32>,
    free_private_links: Vec<u32>,
    /// First hop of each free range of hops, indexed by the length of the range.
    free_hops: Vec<Vec<u32>>,
    unsettled: Unsettled,
    /// Pairs (bound, weight) of the flow classes on the link that is being relaxed. The bound is
    /// the minimum level of the class's other links; the weight is the weight of the class on the
    /// link.
    bounds: Vec<(f64, f64)>,
}

impl Shares {
    /// Creates links with the given finite capacities (bytes per ps). There are no flow classes
    /// yet.
    pub(super) fn new(capacities: impl Iterator<Item = f64>) -> Shares {
        let links: Vec<LoadedLink> = capacities.map(LoadedLink::new).collect();
        Shares {
            presences: links.iter().map(|_| Vec::new()).collect(),
            levels: vec![f64::INFINITY; links.len()],
            links,
            classes: Vec::new(),
            origins: Vec::new(),
            hop_links: Vec::new(),
            hop_places: Vec::new(),
            hop_times: Vec::new(),
            free_classes: Vec::new(),
            free_private_links: Vec::new(),
            free_hops: Vec::new(),
            unsettled: Unsettled::default(),
            bounds: Vec::new(),
        }
    }

    /// Adds a class of flows over `route` and returns its index. The class has no flows yet. A
    /// finite `cap` (bytes per ps) becomes an additional link that only this class uses. `times`
    /// contains a factor of the class's weight for each link of the route: the number of equivalent
    /// flows on the link that a flow of a quotient stands for. If `times` is empty, all factors are
    /// 1.
    pub(super) fn add_class(&mut self, route: &[u32], times: &[f64], cap: f64) -> u32 {
        let private_link = if cap.is_finite() {
            self.add_private_link(cap)
        } else {
            NONE
        };
        let hops = route.len() + usize::from(private_link != NONE);
        let first_hop = self.take_hops(hops);
        let links = route
            .iter()
            .copied()
            .chain((private_link != NONE).then_some(private_link));
        if !times.is_empty() {
            self.hop_times.resize(self.hop_links.len(), 1.0);
        }
        let mut slowest = (f64::INFINITY, NONE);
        for (at, link) in links.enumerate() {
            let hop = first_hop as usize + at;
            self.hop_links[hop] = link;
            if let Some(hop_times) = self.hop_times.get_mut(hop) {
                *hop_times = times.get(at).copied().unwrap_or(1.0);
            }
            let capacity = self.links[link as usize].capacity / self.times(hop);
            if capacity < slowest.0 {
                slowest = (capacity, link);
            }
        }
        let class = ShareClass {
            level: 0.0,
            weight: 0.0,
            bottleneck: NONE,
            first_hop,
            hops: hops as u32,
            is_listed: false,
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
            self.links.push(LoadedLink::new(capacity));
            self.levels.push(f64::INFINITY);
            self.presences.push(Vec::new());
            self.links.len() as u32 - 1
        });
        self.links[link as usize] = LoadedLink::new(capacity);
        link
    }

    /// Removes a class, which must not have flows.
    pub(super) fn remove_class(&mut self, class: u32) {
        let removed = &self.classes[class as usize];
        debug_assert!(removed.weight == 0.0);
        let private_link = self.origins[class as usize].private_link;
        if private_link != NONE {
            self.free_private_links.push(private_link);
        }
        let hops = removed.hops as usize;
        if self.free_hops.len() <= hops {
            self.free_hops.resize(hops + 1, Vec::new());
        }
        self.free_hops[hops].push(removed.first_hop);
        self.free_classes.push(class);
    }

    /// Returns the links of a flow class, without the link that represents the class's cap.
    pub(super) fn route(&self, class: u32) -> impl Iterator<Item = u32> + '_ {
        let private = usize::from(self.origins[class as usize].private_link != NONE);
        let range = self.classes[class as usize].range();
        self.hop_links[range.start..range.end - private]
            .iter()
            .copied()
    }

    /// Returns the level of a class of flows: the rate of a flow of weight 1.
    pub(super) fn level(&self, class: u32) -> f64 {
        self.classes[class as usize].level
    }

    /// Returns the link that limits the level of a flow class, or `None` if the class's own cap
    /// does.
    pub(super) fn bottleneck(&self, class: u32) -> Option<u32> {
        let bottleneck = self.classes[class as usize].bottleneck;
        let private_link = self.origins[class as usize].private_link;
        (bottleneck != NONE && bottleneck != private_link).then_some(bottleneck)
    }

    /// Sets the total weight of a class's flows. Levels are invalid until [`Shares::settle`].
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
        let class = &self.classes[index as usize];
        let (weight, range) = (class.weight, class.range());
        let route = &self.hop_links[range.clone()];
        // The first estimate is the level that the present levels of the links allow.
        let mut first = (f64::INFINITY, NONE);
        for &link in route {
            let level = self.levels[link as usize];
            if level < first.0 {
                first = (level, link);
            }
        }
        if first.1 == NONE {
            for (&index, hop) in route.iter().zip(range.clone()) {
                let link = &self.links[index as usize];
                let free = (link.capacity - link.load).max(0.0) / (weight * self.times(hop));
                if free < first.0 {
                    first = (free, index);
                }
            }
        }
        let class = &mut self.classes[index as usize];
        (class.level, class.bottleneck) = first;
        for at in range {
            let link = self.hop_links[at];
            let on_link = &mut self.presences[link as usize];
            self.hop_places[at] = on_link.len() as u32;
            on_link.push(Presence {
                class: index,
                hop: at as u32,
            });
            self.load(link, weight * self.times(at) * first.0);
        }
        if first.1 != NONE {
            self.unsettle(first.1);
        }
    }

    fn detach(&mut self, index: u32, weight: f64) {
        let class = &mut self.classes[index as usize];
        class.bottleneck = NONE;
        let (level, range) = (class.level, class.range());
        for at in range {
            let (link, place) = (self.hop_links[at], self.hop_places[at]);
            let on_link = &mut self.presences[link as usize];
            on_link.swap_remove(place as usize);
            if let Some(moved) = on_link.get(place as usize) {
                self.hop_places[moved.hop as usize] = place;
            }
            if on_link.is_empty() {
                self.levels[link as usize] = f64::INFINITY;
                self.links[link as usize].load = 0.0;
            } else {
                self.load(link, -weight * self.times(at) * level);
            }
        }
    }

    fn reweigh(&mut self, index: u32, change: f64) {
        let class = &self.classes[index as usize];
        let (level, range) = (class.level, class.range());
        for at in range {
            let link = self.hop_links[at];
            self.load(link, change * self.times(at) * level);
        }
    }

    /// Returns the factor of the class's weight on the link of `hop`.
    #[inline]
    fn times(&self, hop: usize) -> f64 {
        self.hop_times.get(hop).copied().unwrap_or(1.0)
    }

    fn take_hops(&mut self, count: usize) -> u32 {
        let free = self.free_hops.get_mut(count).and_then(Vec::pop);
        free.unwrap_or_else(|| {
            let first = self.hop_links.len();
            self.hop_links.resize(first + count, NONE);
            self.hop_places.resize(first + count, NONE);
            if !self.hop_times.is_empty() {
                self.hop_times.resize(first + count, 1.0);
            }
            first as u32
        })
    }
}

impl LoadedLink {
    fn new(capacity: f64) -> LoadedLink {
        LoadedLink {
            capacity,
            limit: relaxation::limit(capacity),
            load: 0.0,
            changes: 0,
            times: 0,
            queued: false,
        }
    }
}

impl ShareClass {
    fn range(&self) -> std::ops::Range<usize> {
        self.first_hop as usize..(self.first_hop + self.hops) as usize
    }
}

#[cfg(test)]
mod tests;
