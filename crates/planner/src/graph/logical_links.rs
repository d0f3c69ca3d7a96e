//! Logical links: pairs of ranks with a route that does not cross other ranks.
//!
//! The route of a *logical link* in the fabric crosses switches only. In a fabric without switches,
//! the logical links are the pairs of neighbours. If the routes of two logical links have a link in
//! common, they share the rate of this link.

use opticoll_base::{graph, interrupt, memory};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::translations::Translations;
use opticoll_fabric::network::{Network, Sharing};

/// Maximum number of logical links into a rank. A rank needs few sources, so the logical links with
/// the longest routes are left out.
const MAX_LINKS_INTO_RANK: usize = 64;

/// A pair of ranks whose route crosses no other rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogicalLink {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Sum of the latencies of the links on the route, in picoseconds.
    pub(crate) latency: u64,
    /// Rate of the slowest link on the route, in bits per second.
    pub(crate) rate: u64,
    first_link: u32,
    links: u32,
}

/// All logical links of a fabric, sorted by destination.
pub(crate) struct LogicalLinks {
    pub(crate) ranks: u32,
    /// True if the fabric has a switch.
    pub(crate) has_switches: bool,
    pub(crate) all: Vec<LogicalLink>,
    /// Index in `all` of the first logical link into each rank; indexed by rank. The last entry is
    /// the length of `all`.
    starts: Vec<u32>,
    routes: Vec<u32>,
    /// Rate of each physical link, in bits per second.
    pub(crate) rates: Vec<u64>,
    /// Translations of a grid or torus, if they map every logical link to a logical link.
    pub(crate) translations: Option<Translations>,
}

impl LogicalLinks {
    /// Returns the logical links. `None` if the ends of a link are unknown or if flows do not share
    /// links. If `backwards`, all links are reversed, for plans that are reversed in time.
    pub(crate) fn of(fabric: &Fabric, backwards: bool) -> Option<LogicalLinks> {
        let network = fabric.network()?;
        let ranks = network.ranks();
        let numbered = (0u32..).zip(network.links());
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); ranks as usize];
        let mut has_switches = false;
        let mut two_way = false;
        for (number, link) in numbered {
            let (from, to) = network.ends(number)?;
            if link.sharing != Sharing::Shared {
                return None;
            }
            has_switches |= from >= ranks || to >= ranks;
            two_way |= network.leads_both_ways(number);
            if from < ranks && to < ranks {
                neighbours[from as usize].push(to);
                neighbours[to as usize].push(from);
            }
        }
        let mut logical_links = LogicalLinks {
            ranks,
            has_switches,
            all: Vec::new(),
            starts: vec![0],
            routes: Vec::new(),
            rates: network
                .links()
                .iter()
                .map(|link| link.rate.bits_per_second())
                .collect(),
            translations: network.translations().filter(|_| !two_way).cloned(),
        };
        for to in 0..ranks {
            interrupt::check();
            let mut sources = std::mem::take(&mut neighbours[to as usize]);
            match has_switches {
                true => sources = (0..ranks).collect(),
                false => {
                    sources.sort_unstable();
                    sources.dedup();
                }
            }
            let mut into_rank: Vec<LogicalLink> = sources
                .into_iter()
                .filter(|&from| from != to)
                .filter_map(|from| logical_links.logical_link(network, from, to, backwards))
                .collect();
            // On a tie, the first rank after `to` comes first, so that different ranks leave out
            // different logical links.
            into_rank.sort_by_key(|logical_link| {
                (
                    logical_link.latency,
                    logical_link.links,
                    (logical_link.from + ranks - to) % ranks,
                )
            });
            into_rank.truncate(MAX_LINKS_INTO_RANK);
            logical_links.all.append(&mut into_rank);
            logical_links.starts.push(logical_links.all.len() as u32);
        }
        Some(logical_links)
    }

    fn logical_link(
        &mut self,
        network: &dyn Network,
        from: u32,
        to: u32,
        backwards: bool,
    ) -> Option<LogicalLink> {
        let first = self.routes.len();
        match backwards {
            false => network.route(from, to, &mut self.routes),
            true => network.route(to, from, &mut self.routes),
        }
        let route = &self.routes[first..];
        let ends = [from, to];
        let is_relay = |vertex: u32| vertex < self.ranks && !ends.contains(&vertex);
        let has_relay = route.iter().any(|&link| {
            let ends = network.ends(link);
            ends.is_none_or(|(one, other)| is_relay(one) || is_relay(other))
        });
        if has_relay || route.is_empty() {
            self.routes.truncate(first);
            return None;
        }
        let links = || route.iter().map(|&link| &network.links()[link as usize]);
        Some(LogicalLink {
            from,
            to,
            latency: links().map(|link| link.latency.ps()).sum(),
            rate: links().map(|link| link.rate.bits_per_second()).min()?,
            first_link: first as u32,
            links: route.len() as u32,
        })
    }

    /// Returns the indices of the logical links into a rank.
    pub(crate) fn into(&self, rank: u32) -> std::ops::Range<u32> {
        self.starts[rank as usize]..self.starts[rank as usize + 1]
    }

    /// Returns the physical links on the route of a logical link.
    pub(crate) fn route(&self, logical_link: u32) -> &[u32] {
        let LogicalLink {
            first_link, links, ..
        } = self.all[logical_link as usize];
        &self.routes[first_link as usize..(first_link + links) as usize]
    }

    /// Returns the rate of the slowest logical link in bits per second, at least 1.
    pub(crate) fn slowest_rate(&self) -> u64 {
        let rates = self.all.iter().map(|logical_link| logical_link.rate);
        rates.min().unwrap_or(1).max(1)
    }

    /// Returns the rate of each physical link as a multiple of the slowest logical link's rate,
    /// rounded down.
    pub(crate) fn rate_multiples(&self) -> Vec<u64> {
        let slowest = self.slowest_rate();
        self.rates.iter().map(|rate| rate / slowest).collect()
    }

    /// Returns the minimum number of logical links on a path between any two ranks, indexed by
    /// source times ranks plus destination. `None` if some rank cannot reach another rank.
    pub(crate) fn distances(&self) -> Option<Vec<u16>> {
        let ranks = self.ranks as usize;
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); ranks];
        for logical_link in &self.all {
            next[logical_link.from as usize].push(logical_link.to);
        }
        memory::check_forecast(
            "the table of distances between ranks",
            2 * (ranks as u64).pow(2),
        );
        let mut distances = Vec::with_capacity(ranks * ranks);
        for source in 0..self.ranks {
            let row = graph::distances(ranks, source, |rank| next[rank as usize].iter().copied());
            for distance in row {
                distances.push(u16::try_from(distance).ok()?);
            }
        }
        Some(distances)
    }
}
