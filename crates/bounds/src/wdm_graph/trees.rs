//! Lengths of relay trees on a graph of fibres: lower bounds on C_S(v), the least total length of a
//! tree of lightpaths of depth at most S that spans all ranks from rank v (theorems W4 and W5).
//! Links and lightpaths may have other lengths in other slots.
//!
//! For S = 1 the length is the sum of the distances from v. For more slots [`moats`](super::moats)
//! proves a bound. With equal lengths and prices in all slots, the bound also holds for fewer
//! slots, since C_S then does not rise with S.

use super::fibres::{FibreLink, Fibres, NO_PATH};
use super::moats::{self, Order, Slot, Trees};
use super::recent::Recent;
use opticoll_base::{graph, interrupt};
use opticoll_fabric::family::wdm_graph::WdmGraph;

/// Maximum number of ranks for which the distances of all pairs of ranks are stored.
pub(super) const MAX_RANKS: u32 = 1 << 11;

/// Maximum number of slacks that the search examines for all roots and one number of slots: about
/// 0.1 s.
const MAX_WORK: u64 = 100_000_000;

/// Maximum number of slacks in memory, 128 MB.
const MAX_SLACKS: u64 = 1 << 25;

/// Approximate number of times that a complete search examines each slack.
const VISITS: u64 = 6;

/// Factor by which steps of weight 1 take more work than steps as far as the slack permits. Seen on
/// rings, tori, meshes and hypercubes.
const EVEN_VISITS: u64 = 4;

/// Maximum number of slots for which trees are searched. In more slots, only the shortest
/// lightpaths to each rank count.
pub(super) const MAX_SLOTS: u64 = 64;

/// Number of slots up to which each number of slots has a search of its own on large graphs.
const FINE_SLOTS: u64 = 4;

/// Maximum number of ranks with which a graph does not count as large.
const MAX_SMALL_RANKS: u32 = 200;

/// Length of a link, so that weights of moats may be fractions of a link.
pub(super) const LINK: u64 = 8;

/// Lower bounds on the lengths of trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Sum over all roots.
    pub(super) sum: u64,
    /// Least length over all roots.
    pub(super) least: u64,
}

/// Lengths of the links.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    /// Every link has the length [`LINK`].
    Links,
    /// Length of each link, in the order of the links; [`LINK`] on average.
    Given(Vec<u32>),
}

/// Trees of a collective.
pub(super) struct RelayTrees<'a> {
    graph: &'a WdmGraph,
    fibres: &'a Fibres,
    metric: Metric,
    /// True if data go towards the root.
    backwards: bool,
    /// Root of all trees; `None` if each rank is the root of a tree.
    root: Option<u32>,
}

/// Arguments of a search: metric, direction, root, prices of the slots (none for any number of
/// slots).
type Key = (Metric, bool, Option<u32>, Vec<u32>);

/// Cached lengths; `None` if no tree reaches all ranks in so few slots.
static LENGTHS: Recent<Key, Option<Lengths>> = Recent::new();

impl RelayTrees<'_> {
    /// Returns the trees from `root`, or from every rank if `root` is `None`. If `backwards`, data
    /// go along the trees to the root.
    pub(super) fn new<'a>(
        graph: &'a WdmGraph,
        fibres: &'a Fibres,
        metric: Metric,
        backwards: bool,
        root: Option<u32>,
    ) -> RelayTrees<'a> {
        RelayTrees {
            graph,
            fibres,
            metric,
            backwards,
            root,
        }
    }

    /// Returns the sum of `of_link` times length over all links.
    pub(super) fn capacity(&self, of_link: impl Fn(&FibreLink) -> u128) -> u128 {
        let links = self.fibres.links.iter().enumerate();
        links
            .map(|(place, link)| of_link(link) * u128::from(self.length(place)))
            .sum()
    }

    /// Returns the least length of a link.
    pub(super) fn shortest_link(&self) -> u32 {
        let links = 0..self.fibres.links.len();
        links.map(|link| self.length(link)).min().unwrap_or(0)
    }

    /// Returns lower bounds on the lengths of trees with any number of slots.
    pub(super) fn shortest(&self) -> Option<Lengths> {
        self.priced(&[])
    }

    /// Returns lower bounds on the lengths of trees of at most `slots` slots. `None` if no tree
    /// reaches all ranks in so few slots.
    pub(super) fn within(&self, slots: u64) -> Option<Lengths> {
        let is_large = self.fibres.ranks > MAX_SMALL_RANKS;
        let searched = match slots {
            _ if slots > MAX_SLOTS => 0,
            // Lengths for more slots are also lower bounds for these slots.
            _ if is_large && slots > FINE_SLOTS => slots.next_power_of_two(),
            _ => slots,
        };
        self.priced(&vec![1; searched as usize])
    }

    /// Returns lower bounds on the lengths of trees. Lightpaths of a slot are as long as their
    /// routes times the price of the slot. `None` if no tree reaches all ranks in so few slots.
    /// Without prices, trees may have any number of slots, and lightpaths are as long as their
    /// routes.
    pub(super) fn priced(&self, prices: &[u32]) -> Option<Lengths> {
        let key = (
            self.metric.clone(),
            self.backwards,
            self.root,
            prices.to_vec(),
        );
        LENGTHS.get(self.graph, key, || self.searched(prices))
    }

    fn length(&self, link: usize) -> u32 {
        match &self.metric {
            Metric::Links => LINK as u32,
            Metric::Given(lengths) => lengths[link],
        }
    }

    fn searched(&self, prices: &[u32]) -> Option<Lengths> {
        let ranks = self.fibres.ranks;
        let (roots, copies) = match self.root {
            Some(root) => (root..root + 1, 1),
            None if self.fibres.is_transitive => (0..1, u64::from(ranks)),
            None => (0..ranks, 1),
        };
        let cheapest = prices.iter().copied().min().unwrap_or(1);
        if ranks > MAX_RANKS {
            let least = match self.metric {
                Metric::Links => u64::from(ranks - 1) * LINK * u64::from(cheapest),
                Metric::Given(_) => 0,
            };
            return Some(Lengths {
                sum: least * roots.len() as u64 * copies,
                least,
            });
        }
        let paths = self.paths();
        let count = ranks as usize;
        // Length of the cheapest lightpath that leads to each rank, indexed by rank.
        let nearest = |to: usize| {
            let others = (0..count).filter(|&from| from != to);
            others.map(|from| paths[from * count + to]).min()
        };
        let nearest: Vec<u32> = (0..count).filter_map(nearest).collect();
        let slacks = prices.len() as u64 * u64::from(ranks) * u64::from(ranks);
        let is_searched = prices.len() > 1 && slacks <= MAX_SLACKS;
        // Only some of many roots are searched; for each other root, each rank counts the cheapest
        // lightpath that leads to it.
        let affordable = (MAX_WORK / (VISITS * slacks).max(1)).max(1) as usize;
        let every = roots.len().div_ceil(affordable);
        let each = MAX_WORK / roots.len().min(affordable) as u64;
        let slot = |price: &u32| Slot {
            routes: &paths,
            price: *price,
            at_root: 0,
        };
        let slots: Vec<Slot<'_>> = prices.iter().map(slot).collect();
        let mut lengths = Lengths {
            sum: 0,
            least: u64::MAX,
        };
        for root in roots {
            interrupt::check();
            let mut length = 0u64;
            for (rank, &nearest) in nearest.iter().enumerate() {
                let own = match prices.len() {
                    _ if rank == root as usize => 0,
                    1 => paths[root as usize * count + rank],
                    _ => nearest,
                };
                if own == NO_PATH {
                    return None;
                }
                length += u64::from(own) * u64::from(cheapest);
            }
            if is_searched && (root as usize) % every == 0 {
                length = length.max(self.proved(&slots, root, each)?);
            }
            if self.metric == Metric::Links && prices.iter().all(|price| *price == 1) {
                // The length is a whole number of links.
                length = length.next_multiple_of(LINK);
            }
            lengths.sum += length * copies;
            lengths.least = lengths.least.min(length);
        }
        Some(lengths)
    }

    /// Returns the greatest length that moats prove. `None` if no tree reaches all ranks.
    fn proved(&self, slots: &[Slot<'_>], root: u32, max_work: u64) -> Option<u64> {
        let trees = Trees {
            ranks: self.fibres.ranks as usize,
            root: root as usize,
            slots,
        };
        let smallest = moats::least_length(&trees, Order::Smallest, max_work)?;
        let dearest = slots.iter().map(|slot| slot.price).max().unwrap_or(1);
        let even_work = smallest.work * EVEN_VISITS * u64::from(dearest);
        if smallest.work + even_work > max_work {
            return Some(smallest.length);
        }
        let even = moats::least_length(&trees, Order::Even(1), max_work)?;
        Some(smallest.length.max(even.length))
    }

    /// Returns the length of a shortest lightpath between each two ranks a and b, in the direction
    /// of the data away from the root, at the index a * ranks + b.
    fn paths(&self) -> Vec<u32> {
        match &self.metric {
            Metric::Links => {
                let hops = self.hops().into_iter().flatten();
                hops.map(|links| match links {
                    NO_PATH => NO_PATH,
                    links => links * LINK as u32,
                })
                .collect()
            }
            Metric::Given(lengths) => self.routes(|link| lengths[link]).lengths,
        }
    }

    /// Returns the number of links of a shortest lightpath from each rank to each rank.
    fn hops(&self) -> Vec<Vec<u32>> {
        let neighbours = self.fibres.neighbours(self.backwards);
        let reach = self.fibres.reach.unwrap_or(NO_PATH - 1);
        let of_rank = |rank: u32| {
            let mut hops = self.fibres.hops(&neighbours, rank);
            for links in hops.iter_mut().filter(|links| **links > reach) {
                *links = NO_PATH;
            }
            hops
        };
        (0..self.fibres.ranks).map(of_rank).collect()
    }

    /// Returns shortest routes between ranks, with the length of each link.
    pub(super) fn routes(&self, of_link: impl Fn(usize) -> u32) -> Routes {
        let ranks = self.fibres.ranks as usize;
        let mut away = vec![Vec::new(); self.fibres.vertices];
        for (place, link) in self.fibres.links.iter().enumerate() {
            let (from, to) = link.ends(self.backwards);
            away[from as usize].push((to, of_link(place).into(), place as u32));
        }
        let mut routes = Routes {
            lengths: Vec::with_capacity(ranks * ranks),
            last: Vec::with_capacity(ranks),
        };
        for (rank, hops) in (0u32..).zip(self.hops()) {
            let reached = graph::shortest_lengths(&away, rank);
            let pairs = hops.iter().zip(&reached);
            let lengths = pairs.map(|(&links, (length, _))| match links {
                NO_PATH => NO_PATH,
                _ => u32::try_from(*length).unwrap_or(NO_PATH),
            });
            routes.lengths.extend(lengths);
            let last = reached.iter().map(|(_, link)| link.unwrap_or(0));
            routes.last.push(last.collect());
        }
        routes
    }
}

/// Shortest routes between ranks, in the direction of the data away from the root.
pub(super) struct Routes {
    /// Length of a shortest route from rank a to rank b, at the index a * ranks + b; [`NO_PATH`] if
    /// no lightpath reaches rank b.
    pub(super) lengths: Vec<u32>,
    /// Last link of the route to each vertex, indexed by the first rank and the vertex.
    last: Vec<Vec<u32>>,
}

impl Routes {
    /// Returns the links of the route between two ranks. `start` returns the vertex at the start of
    /// a link.
    pub(super) fn links(
        &self,
        from: usize,
        to: usize,
        start: impl Fn(usize) -> u32,
    ) -> impl Iterator<Item = usize> {
        let mut at = to;
        std::iter::from_fn(move || {
            (at != from).then(|| {
                let link = self.last[from][at] as usize;
                at = start(link) as usize;
                link
            })
        })
    }
}
