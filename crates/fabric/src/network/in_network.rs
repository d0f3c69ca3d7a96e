//! Links of multicasts and aggregations, which switches carry out.
//!
//! A multicast leads from one rank, its *hub*, to several ranks. Every link of the union of its
//! routes carries the data once. A link from the first switch back to the hub carries the data as
//! well, because the hub is a member of the group of receivers, as in NVLink SHARP. An aggregation
//! leads from several ranks to its hub. Every link of the union of its routes carries the data
//! once, and so does a link from the hub to its switch, because the switch adds the part of the
//! hub, too.
//!
//! Switches can carry out a group if the routes of a multicast form a tree: they leave the hub over
//! one link, and every other link has one predecessor. The end of the first link, and every vertex
//! at which routes branch, must multicast. For an aggregation the same holds for the reversed links
//! and for switches that add.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{InNetwork, Network, vertices};

/// Links of a multicast or an aggregation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupLinks {
    /// Links, each once; the links of the route with the greatest latency come first.
    pub links: Vec<u32>,
    /// Number of links of the route with the greatest latency.
    pub longest: usize,
}

/// Finds the links of groups on a network.
pub struct GroupFinder<'a> {
    network: &'a dyn Network,
    /// Links from a vertex to another vertex, in ascending order.
    parallel: FxHashMap<(u32, u32), Vec<u32>>,
    /// Links before and after each link of the group, as seen from the hub.
    before: FxHashMap<u32, u32>,
    after: FxHashMap<u32, u32>,
}

/// Marker of the hub in place of a link.
const HUB: u32 = u32::MAX;

impl<'a> GroupFinder<'a> {
    /// Returns a finder for groups on `network`.
    pub fn new(network: &'a dyn Network) -> GroupFinder<'a> {
        let mut parallel: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
        let ranks = network.ranks();
        for (link, (from, to, _)) in (0u32..).zip(network.wiring().ends()) {
            if from < ranks || to < ranks {
                parallel.entry((from, to)).or_default().push(link);
            }
        }
        GroupFinder {
            network,
            parallel,
            before: FxHashMap::default(),
            after: FxHashMap::default(),
        }
    }

    /// Returns the links of the group that the routes form, or `None` if the switches cannot carry
    /// out the group. If `adds`, the group is an aggregation.
    pub fn links(&mut self, adds: bool, mut routes: Vec<Vec<u32>>) -> Option<GroupLinks> {
        let known = self.network.links();
        let latency = |link: &u32| known.get(*link as usize).map_or(0, |one| one.latency.ps());
        routes.sort_by_key(|route| Reverse(route.iter().map(latency).sum::<u64>()));
        self.before.clear();
        self.after.clear();
        let mut found = GroupLinks {
            links: Vec::new(),
            longest: routes.first()?.len(),
        };
        for route in &routes {
            let mut previous = HUB;
            for place in 0..route.len() {
                let link = route[if adds { route.len() - 1 - place } else { place }];
                let (near, far) = self.ends(link, adds)?;
                let is_new = !self.before.contains_key(&link);
                let branches = *self.after.entry(previous).or_insert(link) != link;
                let unable = previous == HUB && (branches || !self.is_able(far, adds))
                    || branches && !self.is_able(near, adds);
                if unable || *self.before.entry(link).or_insert(previous) != previous {
                    return None;
                }
                if is_new {
                    found.links.push(link);
                }
                previous = link;
            }
        }
        if adds {
            found.links[..found.longest].reverse();
        }
        found.links.push(self.back(*self.after.get(&HUB)?)?);
        Some(found)
    }

    /// Returns the link of the hub's own data: the opposite of the hub's link `first`. Of several
    /// parallel links, returns the link with the same number.
    fn back(&self, first: u32) -> Option<u32> {
        let (from, to) = self.network.ends(first)?;
        let forth = self.parallel.get(&(from, to))?;
        let back = self.parallel.get(&(to, from))?;
        let number = forth.iter().position(|link| *link == first)?;
        back.get(number).or(back.last()).copied()
    }

    /// Returns the ends of `link`, the end nearer to the hub first.
    fn ends(&self, link: u32, adds: bool) -> Option<(u32, u32)> {
        let (from, to) = self.network.ends(link)?;
        Some(if adds { (to, from) } else { (from, to) })
    }

    fn is_able(&self, vertex: u32, adds: bool) -> bool {
        let ability = self.network.switch_work(vertex);
        if adds {
            ability.adds()
        } else {
            ability.multicasts()
        }
    }
}

/// Returns the work that at least one switch of `network` does.
pub fn work_of_switches(network: &dyn Network) -> InNetwork {
    let switches = network.ranks()..vertices(network);
    let (mut multicasts, mut adds) = (false, false);
    for work in switches.map(|vertex| network.switch_work(vertex)) {
        multicasts |= work.multicasts();
        adds |= work.adds();
    }
    match (multicasts, adds) {
        (false, false) => InNetwork::None,
        (true, false) => InNetwork::Multicast,
        (false, true) => InNetwork::Reduce,
        (true, true) => InNetwork::Both,
    }
}

/// Returns the work of the switches of `network` in words that follow a list, such as `, switches
/// that add and multicast`; empty if they only forward.
pub(crate) fn described(network: &dyn Network) -> &'static str {
    match work_of_switches(network) {
        InNetwork::None => "",
        InNetwork::Multicast => ", switches that multicast",
        InNetwork::Reduce => ", switches that add",
        InNetwork::Both => ", switches that add and multicast",
    }
}
