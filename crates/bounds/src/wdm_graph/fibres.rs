//! Numbers of channels, rates and distances of a graph of fibres, as the bounds need them.

use std::cmp::Reverse;

use opticoll_base::graph;
use opticoll_base::interrupt;
use opticoll_base::units::Rate;
use opticoll_fabric::family::wdm_graph::WdmGraph;

/// Distance between two ranks that no lightpath joins.
pub(super) const NO_PATH: u32 = u32::MAX;

/// Directed link with all of its channels.
#[derive(Clone, Copy)]
pub(super) struct FibreLink {
    /// Index among the links of the network.
    pub(super) number: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Number of working channels.
    pub(super) channels: u64,
    /// Sum of the rates of all working channels, in bit/s.
    pub(super) rate: u128,
    /// Greatest rate of a channel, in bit/s.
    pub(super) fastest: u64,
    /// Propagation delay in picoseconds.
    pub(super) delay_ps: u64,
}

impl FibreLink {
    /// Returns the vertices at the start and at the end of the link; exchanges them if `backwards`.
    pub(super) fn ends(&self, backwards: bool) -> (u32, u32) {
        match backwards {
            true => (self.to, self.from),
            false => (self.from, self.to),
        }
    }
}

/// Lightpaths that a rank sends, or receives, at a time.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    /// Maximum number of lightpaths.
    pub(super) lightpaths: u64,
    /// Maximum sum of their rates, in bit/s.
    pub(super) rate: u128,
}

/// Links of a graph of fibres and the ports of its ranks.
pub(super) struct Fibres {
    pub(super) ranks: u32,
    pub(super) vertices: usize,
    /// Links in the order of the network's links. A link that leads in both directions counts as
    /// two links with all of its channels, which makes the bounds lower.
    pub(super) links: Vec<FibreLink>,
    /// Ports that send, indexed by rank.
    pub(super) senders: Vec<Ports>,
    /// Ports that receive, indexed by rank.
    pub(super) receivers: Vec<Ports>,
    /// Maximum number of links of a lightpath, if there is a limit.
    pub(super) reach: Option<u32>,
    /// True if light trees are possible.
    pub(super) has_light_trees: bool,
    /// True if translations map every rank to every other rank, and links to links with the same
    /// channels, rates and delays.
    pub(super) is_transitive: bool,
}

impl Fibres {
    pub(super) fn of(graph: &WdmGraph) -> Fibres {
        let network = graph.fibre_links();
        let ranks = network.ranks();
        let channels = u64::from(graph.channels());
        let slower = graph.slower.iter();
        let slower = slower.filter(|(channel, _)| graph.dead.binary_search(channel).is_err());
        let slower: Vec<Rate> = slower.map(|(_, rate)| *rate).collect();
        // No lightpath is faster than one of a single link.
        let one_hop = graph.reach_rates.first().map(|(_, rate)| *rate);
        let mut links = Vec::with_capacity(network.links().len());
        for (number, link) in (0u32..).zip(network.links()) {
            let (from, to) = network.ends(number).unwrap_or_default();
            let fastest = one_hop.map_or(link.rate, |rate| rate.min(link.rate));
            let slower = slower.iter().map(|rate| fastest.min(*rate));
            let full = u128::from(channels - slower.len() as u64);
            let full = full * u128::from(fastest.bits_per_second());
            let rate = slower.fold(full, |sum, rate| sum + u128::from(rate.bits_per_second()));
            let one_way = FibreLink {
                number,
                from,
                to,
                channels,
                rate,
                fastest: fastest.bits_per_second(),
                delay_ps: link.latency.ps(),
            };
            links.push(one_way);
            if network.leads_both_ways(number) {
                let (from, to) = (to, from);
                links.push(FibreLink {
                    from,
                    to,
                    ..one_way
                });
            }
        }
        let last = links.iter().map(|link| link.from.max(link.to) + 1).max();
        let vertices = last.unwrap_or(0).max(ranks) as usize;
        let is_transitive = network
            .translations()
            .is_some_and(|translations| translations.ranks() == ranks)
            && vertices == ranks as usize;
        Fibres {
            ranks,
            vertices,
            senders: ports(&links, ranks, graph.transmitters, |link| link.from),
            receivers: ports(&links, ranks, graph.receivers, |link| link.to),
            links,
            reach: graph.reach,
            has_light_trees: graph.multicast,
            is_transitive,
        }
    }

    /// Returns the total number of channels of all links.
    pub(super) fn channels(&self) -> u64 {
        self.links.iter().map(|link| link.channels).sum()
    }

    /// Returns the least propagation delay of a link, in picoseconds.
    pub(super) fn least_delay_ps(&self) -> u64 {
        let delays = self.links.iter().map(|link| link.delay_ps);
        delays.min().unwrap_or(0)
    }

    /// Returns the vertices next to each vertex, indexed by vertex: those to which links lead, or
    /// from which links lead if `backwards` is true.
    pub(super) fn neighbours(&self, backwards: bool) -> Vec<Vec<u32>> {
        let mut neighbours = vec![Vec::new(); self.vertices];
        for link in self.links.iter().filter(|link| link.channels > 0) {
            let (from, to) = link.ends(backwards);
            neighbours[from as usize].push(to);
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        neighbours
    }

    /// Returns the least number of links of a route from `rank` to each rank, indexed by rank, or
    /// of a route to `rank` with `neighbours` that lead backwards. [`NO_PATH`] if there is no
    /// route. Routes may be longer than the reach of light.
    pub(super) fn hops(&self, neighbours: &[Vec<u32>], rank: u32) -> Vec<u32> {
        let next = |vertex: u32| neighbours[vertex as usize].iter().copied();
        let mut hops = graph::distances(self.vertices, rank, next);
        hops.truncate(self.ranks as usize);
        hops
    }

    /// Returns the greatest number of links that data of a rank must cross to another rank, and
    /// the greatest propagation delay of a fastest route, in picoseconds. `root` is the rank from
    /// which data spread, or to which data go if `backwards` is true; `None` for all ranks. `None`
    /// if some rank cannot be reached.
    pub(super) fn farthest(&self, root: Option<u32>, backwards: bool) -> Option<(u64, u64)> {
        let neighbours = self.neighbours(backwards);
        let delay = self.least_delay_ps();
        let same_delays = self.links.iter().all(|link| link.delay_ps == delay);
        let firsts = match root {
            Some(root) => root..root + 1,
            None if self.is_transitive => 0..1,
            None => 0..self.ranks,
        };
        let (mut links, mut delays) = (0u64, 0u64);
        for first in firsts {
            interrupt::check();
            let farthest = *self.hops(&neighbours, first).iter().max()?;
            if farthest == NO_PATH {
                return None;
            }
            links = links.max(farthest.into());
            if !same_delays {
                delays = delays.max(self.longest_delay(first, backwards)?);
            }
        }
        if same_delays {
            delays = delay.saturating_mul(links);
        }
        Some((links, delays))
    }

    /// Returns the greatest propagation delay of the fastest routes from `first` to all ranks.
    fn longest_delay(&self, first: u32, backwards: bool) -> Option<u64> {
        let mut away = vec![Vec::new(); self.vertices];
        for link in self.links.iter().filter(|link| link.channels > 0) {
            let (from, to) = link.ends(backwards);
            away[from as usize].push((to, link.delay_ps, 0));
        }
        let reached = graph::shortest_lengths(&away, first);
        let delays = reached[..self.ranks as usize]
            .iter()
            .map(|reached| reached.0);
        delays.max()
    }
}

/// Returns the ports of each rank at the ends `end` of its links. `limit` is the maximum number of
/// lightpaths of a rank at a time.
fn ports(
    links: &[FibreLink],
    ranks: u32,
    limit: Option<u32>,
    end: impl Fn(&FibreLink) -> u32,
) -> Vec<Ports> {
    let mut at_rank = vec![Vec::new(); ranks as usize];
    for link in links.iter().filter(|link| link.channels > 0) {
        if let Some(channels) = at_rank.get_mut(end(link) as usize) {
            channels.push(*link);
        }
    }
    let ports = at_rank.into_iter().map(|mut channels| {
        let all: u64 = channels.iter().map(|link| link.channels).sum();
        let total: u128 = channels.iter().map(|link| link.rate).sum();
        let limit = limit.map_or(all, |limit| all.min(limit.into()));
        channels.sort_unstable_by_key(|link| Reverse(link.fastest));
        let (mut left, mut rate) = (limit, 0u128);
        for link in channels {
            let used = left.min(link.channels);
            rate += u128::from(used) * u128::from(link.fastest);
            left -= used;
        }
        Ports {
            lightpaths: limit,
            rate: rate.min(total),
        }
    });
    ports.collect()
}
