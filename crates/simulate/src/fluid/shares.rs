//! The max-min fair rates of classes of flows, kept up to date through starts and ends.
//!
//! The mathematics stands in [`super`]. Here: a link's *level* mu and a class's *level* x, that of a
//! flow of weight 1. At all times a class has the level of its bottleneck, the lowest of its route
//! but for rounding; [`relaxing`] finds the levels that solve the links' equations.

mod relaxing;

use relaxing::Unsettled;

const NONE: u32 = u32::MAX;

/// A class on a link, and the hop of the class that this is.
#[derive(Clone, Copy)]
struct Presence {
    class: u32,
    hop: u32,
}

struct ShareClass {
    level: f64,
    /// Of all its flows together.
    weight: f64,
    /// The link of whose level it is.
    bottleneck: u32,
    first_hop: u32,
    hops: u32,
    /// Whether it has been told that its level moved.
    told: bool,
}

/// What is seldom asked of a class.
struct Origin {
    private_link: u32,
    /// The first of its links with the least capacity.
    slowest: u32,
}

#[repr(align(32))]
struct LoadedLink {
    capacity: f64,
    /// The capacity, but for rounding.
    limit: f64,
    /// What its classes take. Kept only where the link is not full.
    load: f64,
    /// Changes of the load since it was last summed.
    changes: u16,
    /// How often it has been relaxed in this round.
    times: u8,
    /// Whether its equation may not hold.
    queued: bool,
}

/// Links, classes and their rates.
pub(super) struct Shares {
    links: Vec<LoadedLink>,
    /// By link; infinite where it is not full.
    levels: Vec<f64>,
    /// By link.
    on: Vec<Vec<Presence>>,
    classes: Vec<ShareClass>,
    /// By class.
    origins: Vec<Origin>,
    /// By hop of a class: the link, and the place of the class among those on the link.
    hop_links: Vec<u32>,
    hop_places: Vec<u32>,
    /// By hop of a class: how often its weight counts on the link. Empty where that is once everywhere.
    hop_times: Vec<f64>,
    free_classes: Vec<u32>,
    free_private_links: Vec<u32>,
    /// Freed stretches of hops, by their length: routes have few lengths.
    free_hops: Vec<Vec<u32>>,
    unsettled: Unsettled,
    /// Of the link that is being relaxed, by class: what its other links let it have, and its weight.
    bounds: Vec<(f64, f64)>,
}

impl Shares {
    /// Links by their capacities (bytes per ps, finite), without classes.
    pub(super) fn new(capacities: impl Iterator<Item = f64>) -> Shares {
        let links: Vec<LoadedLink> = capacities.map(LoadedLink::new).collect();
        Shares {
            on: links.iter().map(|_| Vec::new()).collect(),
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

    /// A class of flows over a route, without flows so far. A finite `cap` (bytes per ps) is a
    /// private link that all its flows share. On each link of the route the class's weight counts so many
    /// times, as that of a colour of flows does in a quotient; without times, once.
    pub(super) fn add_class(&mut self, route: &[u32], times: &[f64], cap: f64) -> u32 {
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
        if !times.is_empty() {
            self.hop_times.resize(self.hop_links.len(), 1.0);
        }
        let mut slowest = (f64::INFINITY, NONE);
        for (at, link) in all.enumerate() {
            let hop = first_hop as usize + at;
            self.hop_links[hop] = link;
            if let Some(own) = self.hop_times.get_mut(hop) {
                *own = times.get(at).copied().unwrap_or(1.0);
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
            told: false,
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
            self.on.push(Vec::new());
            self.links.len() as u32 - 1
        });
        self.links[link as usize] = LoadedLink::new(capacity);
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
        let hops = gone.hops as usize;
        if self.free_hops.len() <= hops {
            self.free_hops.resize(hops + 1, Vec::new());
        }
        self.free_hops[hops].push(gone.first_hop);
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
        let class = &self.classes[index as usize];
        let (weight, range) = (class.weight, class.range());
        let route = &self.hop_links[range.clone()];
        // A first guess: what its links let it have as they are now.
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
            let on = &mut self.on[link as usize];
            self.hop_places[at] = on.len() as u32;
            on.push(Presence {
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
            let on = &mut self.on[link as usize];
            on.swap_remove(place as usize);
            if let Some(moved) = on.get(place as usize) {
                self.hop_places[moved.hop as usize] = place;
            }
            if on.is_empty() {
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

    /// How often the weight of a hop's class counts on its link.
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
            limit: relaxing::limit(capacity),
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
