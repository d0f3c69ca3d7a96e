//! A graph of fibres as the search sees it: links with the channels that are free, distances
//! between ranks, and translations.

use std::rc::Rc;

use opticoll_base::graph;
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_graph::{GraphLight, WdmGraph};
use opticoll_fabric::network::translations::Translations;

/// Set of channels of a link: bit c is channel c. A search uses at most as many channels of a link
/// as a set has bits.
pub(super) type Channels = u128;

/// Distance of ranks that light cannot join.
pub(super) const UNREACHABLE: u16 = u16::MAX;

/// Graph of fibres, in which some consecutive channels may count as one channel. If the graph is
/// reversed, all links lead from their end to their start.
#[derive(Clone)]
pub(super) struct LightGraph {
    pub(super) ranks: u32,
    /// Start and end of each link.
    pub(super) ends: Vec<(u32, u32)>,
    /// Links that lead to each vertex, as (link, start), indexed by vertex.
    pub(super) entering: Vec<Vec<(u32, u32)>>,
    /// Channels of each link.
    pub(super) usable: Vec<Channels>,
    /// Maximum number of lightpaths that a rank sends in a slot.
    pub(super) transmitters: u32,
    /// Maximum number of lightpaths that a rank receives in a slot.
    pub(super) receivers: u32,
    /// Maximum number of links of a lightpath.
    pub(super) reach: u32,
    /// Number of links between two ranks, indexed by start * ranks + end.
    distance: Rc<[u16]>,
    /// Propagation delay of each link, in picoseconds.
    pub(super) latency: Rc<[u64]>,
    /// Least propagation delay between two ranks in picoseconds, indexed as `distance`. Empty if
    /// no link has a delay.
    delay: Rc<[u64]>,
    /// Added to the distance between two ranks if their delay exceeds a limit; more than any
    /// distance ([`LightGraph::with_far_ranks`]).
    penalty: u16,
    /// Graph with a budget of losses or noise; `None` without budget.
    budget: Option<Rc<WdmGraph>>,
    /// Light of each channel of a link.
    lights: Rc<[GraphLight]>,
    /// Number of consecutive channels that the search treats as one channel.
    stripes: u32,
}

impl LightGraph {
    pub(super) fn new(graph: &WdmGraph, reversed: bool) -> LightGraph {
        let network = graph.fibre_links();
        let links = 0..network.links().len() as u32;
        let ends = links.map(|link| {
            let (from, to) = network.ends(link).unwrap_or_default();
            if reversed { (to, from) } else { (from, to) }
        });
        let ends: Vec<(u32, u32)> = ends.collect();
        let last = ends.iter().map(|ends| ends.0.max(ends.1) + 1).max();
        let vertices = last.unwrap_or(0).max(network.ranks());
        let mut entering = vec![Vec::new(); vertices as usize];
        for (link, &(from, to)) in (0u32..).zip(&ends) {
            entering[to as usize].push((link, from));
        }
        let [sent, received] = [graph.transmitters, graph.receivers];
        let [sent, received] = if reversed {
            [received, sent]
        } else {
            [sent, received]
        };
        let lights = (0..graph.channels()).map(|channel| {
            let (fibre, wavelength) = graph.channel(channel);
            GraphLight { fibre, wavelength }
        });
        let mut light_graph = LightGraph {
            ranks: network.ranks(),
            usable: vec![all_channels(graph.channels()); ends.len()],
            ends,
            entering,
            transmitters: sent.unwrap_or(u32::MAX),
            receivers: received.unwrap_or(u32::MAX),
            reach: graph.reach.unwrap_or(u32::MAX),
            distance: Rc::from([]),
            latency: network
                .links()
                .iter()
                .map(|link| link.latency.ps())
                .collect(),
            delay: Rc::from([]),
            penalty: UNREACHABLE,
            budget: graph.budget.is_some().then(|| Rc::new(graph.clone())),
            lights: lights.collect(),
            stripes: 1,
        };
        light_graph.distance = light_graph.distances(vertices);
        if light_graph.latency.iter().any(|&latency| latency > 0) {
            light_graph.delay = light_graph.delays(vertices);
        }
        light_graph
    }

    /// Returns the least delays between all ranks.
    fn delays(&self, vertices: u32) -> Rc<[u64]> {
        let mut leaving = vec![Vec::new(); vertices as usize];
        for (&(from, to), &latency) in self.ends.iter().zip(self.latency.iter()) {
            leaving[from as usize].push((to, latency, 0));
        }
        let mut delays = Vec::with_capacity(self.ranks as usize * self.ranks as usize);
        for source in 0..self.ranks {
            let reached = graph::shortest_lengths(&leaving, source);
            delays.extend(
                reached[..self.ranks as usize]
                    .iter()
                    .map(|reached| reached.0),
            );
        }
        delays.into()
    }

    /// Returns the graph in which ranks that no route of at most `max_delay` picoseconds joins are
    /// farther from one another than all other ranks. `weights` says how much farther, for each
    /// rank at which light arrives.
    pub(super) fn with_far_ranks(&self, max_delay: u64, weights: &[u16]) -> LightGraph {
        let greatest = self.distance.iter().max().copied().unwrap_or(0);
        let penalty = greatest.saturating_add(1);
        let pairs = self.distance.iter().zip(self.delay.iter());
        let distances = pairs.zip(weights.iter().cycle());
        let distances = distances.map(|((&distance, &delay), &weight)| match delay > max_delay {
            true => distance.saturating_add(penalty.saturating_mul(weight)),
            false => distance,
        });
        LightGraph {
            distance: distances.collect(),
            penalty,
            ..self.clone()
        }
    }

    /// Returns the number of links that `distance` stands for, and whether the ranks are far.
    pub(super) fn links_of(&self, distance: u16) -> (u16, bool) {
        match distance < self.penalty {
            true => (distance, false),
            false => (distance % self.penalty, true),
        }
    }

    /// Returns the least delay from a rank to another rank, in picoseconds.
    pub(super) fn delay(&self, from: u32, to: u32) -> u64 {
        let place = from as usize * self.ranks as usize + to as usize;
        self.delay.get(place).copied().unwrap_or(0)
    }

    /// Returns whether light over a path is strong enough, and within `max_delay` picoseconds.
    pub(super) fn allows(&self, links: &[u32], max_delay: u64) -> bool {
        let is_received = |graph: &Rc<WdmGraph>| graph.too_weak(links, 0).is_none();
        self.delay_of(links) <= max_delay && self.budget.as_ref().is_none_or(is_received)
    }

    /// Returns the delay of a path, in picoseconds.
    pub(super) fn delay_of(&self, links: &[u32]) -> u64 {
        let latencies = links.iter().map(|&link| self.latency[link as usize]);
        latencies.fold(0, u64::saturating_add)
    }

    /// Returns the greatest of the least delays from a rank to all ranks, in picoseconds.
    pub(super) fn farthest(&self, rank: u32) -> u64 {
        (0..self.ranks)
            .map(|to| self.delay(rank, to))
            .max()
            .unwrap_or(0)
    }

    /// Returns the distances between all ranks, found by breadth-first search.
    fn distances(&self, vertices: u32) -> Rc<[u16]> {
        let ranks = self.ranks as usize;
        let mut leaving = vec![Vec::new(); vertices as usize];
        for &(from, to) in &self.ends {
            leaving[from as usize].push(to);
        }
        let mut distance = Vec::with_capacity(ranks * ranks);
        for source in 0..self.ranks {
            interrupt::check();
            let next = |vertex: u32| leaving[vertex as usize].iter().copied();
            let from_source = graph::distances(vertices as usize, source, next);
            let links = |&links: &u32| u16::try_from(links).unwrap_or(UNREACHABLE);
            distance.extend(from_source[..ranks].iter().map(links));
        }
        distance.into()
    }

    /// Returns the graph in which `stripes` consecutive channels count as one channel.
    pub(super) fn striped(&self, stripes: u32) -> LightGraph {
        let limited = |ports: u32| match ports {
            u32::MAX => u32::MAX,
            ports => ports / stripes,
        };
        LightGraph {
            usable: vec![all_channels(self.channels() / stripes); self.ends.len()],
            transmitters: limited(self.transmitters),
            receivers: limited(self.receivers),
            stripes,
            ..self.clone()
        }
    }

    /// Returns the largest power of two that `ideal`, the channels and the ports allow as the
    /// number of stripes, and that divides `dividend`.
    pub(super) fn stripes(&self, ideal: u32, dividend: u32) -> u32 {
        let most = self.channels().min(self.transmitters).min(self.receivers);
        let powers = (0..31).map(|bit| 1u32 << bit);
        let least = self.channels().div_ceil(Channels::BITS);
        let fits = |stripes: &u32| *stripes <= ideal.max(least) && self.channels() % stripes == 0;
        let mut fits = powers
            .filter(fits)
            .filter(|stripes| *stripes <= most && dividend % stripes == 0);
        fits.next_back().unwrap_or(1)
    }

    /// Returns the distances from a rank to all ranks.
    pub(super) fn distances_from(&self, rank: u32) -> &[u16] {
        let ranks = self.ranks as usize;
        &self.distance[rank as usize * ranks..][..ranks]
    }

    /// Returns whether light can lead from every rank to every other rank.
    pub(super) fn is_connected(&self) -> bool {
        !self.distance.contains(&UNREACHABLE)
    }

    /// Returns the greatest distance from a rank to a rank.
    pub(super) fn eccentricity(&self, rank: u32) -> u16 {
        let distances = self.distances_from(rank).iter();
        distances.copied().max().unwrap_or(0)
    }

    /// Returns the `count` ranks with the smallest sums of distances to all ranks, in ascending
    /// order of these sums. If `by_delay`, the delays to their farthest ranks come first.
    pub(super) fn central_ranks(&self, count: u32, by_delay: bool) -> Vec<u32> {
        let mut ranks: Vec<u32> = (0..self.ranks).collect();
        ranks.sort_by_key(|&rank| {
            let distances = self.distances_from(rank).iter();
            let sum = distances.map(|&distance| u64::from(distance)).sum::<u64>();
            (if by_delay { self.farthest(rank) } else { 0 }, sum)
        });
        ranks.truncate(count as usize);
        ranks
    }

    /// Returns the number of lightpaths that can end at a rank in a slot.
    pub(super) fn received_at_once(&self, rank: u32) -> u32 {
        let entering = self.entering[rank as usize].iter();
        let channels = entering.map(|&(link, _)| self.usable[link as usize].count_ones());
        channels.sum::<u32>().min(self.receivers)
    }

    /// Returns the number of lightpaths that can start at a rank in a slot.
    pub(super) fn sent_at_once(&self, rank: u32) -> u32 {
        let leaving = self.ends.iter().zip(&self.usable);
        let leaving = leaving.filter(|(ends, _)| ends.0 == rank);
        let channels: u32 = leaving.map(|(_, usable)| usable.count_ones()).sum();
        channels.min(self.transmitters)
    }

    /// Returns the light of a stripe of channel `channel`.
    pub(super) fn light(&self, channel: u32, stripe: u32) -> GraphLight {
        self.lights[(channel * self.stripes + stripe) as usize]
    }

    /// Returns the number of channels of a link.
    fn channels(&self) -> u32 {
        self.lights.len() as u32
    }
}

/// Returns the set of the channels of a link with `count` channels, at most 128.
fn all_channels(count: u32) -> Channels {
    Channels::MAX >> (Channels::BITS - count.clamp(1, Channels::BITS))
}

/// Translations of a graph, which map links to links.
pub(super) struct Turns {
    translations: Translations,
    /// Start of each link, and the index of the link in `link_at[start]`.
    place: Vec<(u32, u32)>,
    /// Links that leave each rank, in the same order at every rank.
    link_at: Vec<Vec<u32>>,
}

impl Turns {
    /// Returns the translations, or `None` if a translation does not map links to links.
    pub(super) fn new(graph: &LightGraph, translations: &Translations) -> Option<Turns> {
        let ranks = graph.ranks;
        if translations.ranks() != ranks || graph.entering.len() != ranks as usize {
            return None;
        }
        // Links of each rank, sorted by the translation from their start to their end.
        let mut sorted: Vec<Vec<(u32, u32)>> = vec![Vec::new(); ranks as usize];
        for (link, &(from, to)) in (0u32..).zip(&graph.ends) {
            let by = translations.moved(to, from, true);
            sorted[from as usize].push((by, link));
        }
        sorted.iter_mut().for_each(|links| links.sort_unstable());
        let shape = |links: &[(u32, u32)]| links.iter().map(|link| link.0).collect::<Vec<u32>>();
        let first = shape(&sorted[0]);
        if sorted.iter().any(|links| shape(links) != first) {
            return None;
        }
        let mut place = vec![(0, 0); graph.ends.len()];
        for (rank, links) in (0u32..).zip(&sorted) {
            for (index, &(_, link)) in (0u32..).zip(links) {
                place[link as usize] = (rank, index);
            }
        }
        let link_at = sorted
            .into_iter()
            .map(|links| links.into_iter().map(|(_, link)| link).collect());
        Some(Turns {
            translations: translations.clone(),
            place,
            link_at: link_at.collect(),
        })
    }

    pub(super) fn rank(&self, rank: u32, by: u32) -> u32 {
        self.translations.moved(rank, by, false)
    }

    pub(super) fn link(&self, link: u32, by: u32) -> u32 {
        let (start, index) = self.place[link as usize];
        self.link_at[self.rank(start, by) as usize][index as usize]
    }

    /// Returns the translation that maps `from` to `to`.
    pub(super) fn between(&self, from: u32, to: u32) -> u32 {
        self.translations.moved(to, from, true)
    }
}
