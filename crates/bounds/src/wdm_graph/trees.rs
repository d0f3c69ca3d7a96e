//! Lengths of relay trees on a graph of fibres: lower bounds on C_S(v), the least total length of a
//! tree of lightpaths of depth at most S that spans all ranks from rank v (theorems W4 and W5).
//!
//! For S = 1 the length is the sum of the distances from v. For more slots [`moats`](super::moats)
//! proves a bound. The bound also holds for fewer slots, since C_S does not rise with S.

use super::fibres::{Fibres, NO_PATH};
use super::moats::{self, Order, Trees};
use super::recent::Recent;
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_graph::WdmGraph;

/// Maximum number of ranks for which the distances of all pairs of ranks are stored.
const MAX_RANKS: u32 = 1 << 11;

/// Maximum number of slacks that the search examines for all roots and one number of slots: about
/// 0.1 s.
const MAX_WORK: u64 = 100_000_000;

/// Maximum number of slacks in memory, 128 MB.
const MAX_SLACKS: u64 = 1 << 25;

/// Approximate number of times that a complete search examines each slack.
const VISITS: u64 = 6;

/// Maximum number of slots for which trees are searched. In more slots, only the shortest
/// lightpaths to each rank count.
pub(super) const MAX_SLOTS: u64 = 64;

/// Number of slots up to which each number of slots has a search of its own on large graphs.
const FINE_SLOTS: u64 = 4;

/// Number of ranks from which on a graph counts as large.
const LARGE: u32 = 200;

/// Lower bounds on the lengths of trees, in links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Sum over all roots.
    pub(super) sum: u64,
    /// Least length over all roots.
    pub(super) least: u64,
    /// Number of roots.
    pub(super) roots: u64,
}

/// Trees of a collective.
pub(super) struct RelayTrees<'a> {
    graph: &'a WdmGraph,
    fibres: &'a Fibres,
    /// True if data go towards the root.
    backwards: bool,
    /// Root of all trees; `None` if each rank is the root of a tree.
    root: Option<u32>,
}

/// Arguments of a search: direction, root, number of slots (0 for any number).
type Key = (bool, Option<u32>, u64);

/// Cached lengths; `None` if no tree reaches all ranks in so few slots.
static LENGTHS: Recent<Key, Option<Lengths>> = Recent::new();

impl RelayTrees<'_> {
    /// Returns the trees from `root`, or from every rank if `root` is `None`. If `backwards`, data
    /// go along the trees to the root.
    pub(super) fn new<'a>(
        graph: &'a WdmGraph,
        fibres: &'a Fibres,
        backwards: bool,
        root: Option<u32>,
    ) -> RelayTrees<'a> {
        RelayTrees {
            graph,
            fibres,
            backwards,
            root,
        }
    }

    /// Returns lower bounds on the lengths of trees with any number of slots.
    pub(super) fn shortest(&self) -> Option<Lengths> {
        self.stored(0)
    }

    /// Returns lower bounds on the lengths of trees of at most `slots` slots. `None` if no tree
    /// reaches all ranks in so few slots.
    pub(super) fn within(&self, slots: u64) -> Option<Lengths> {
        let is_large = self.fibres.ranks > LARGE;
        let searched = match slots {
            _ if slots > MAX_SLOTS => 0,
            // Lengths for more slots are also lower bounds for these slots.
            _ if is_large && slots > FINE_SLOTS => slots.next_power_of_two(),
            _ => slots,
        };
        self.stored(searched)
    }

    fn stored(&self, slots: u64) -> Option<Lengths> {
        let key = (self.backwards, self.root, slots);
        LENGTHS.get(self.graph, key, || self.searched(slots))
    }

    /// Returns the lengths that a search proves. `slots` is 0 for any number of slots.
    fn searched(&self, slots: u64) -> Option<Lengths> {
        let ranks = self.fibres.ranks;
        let (roots, copies) = match self.root {
            Some(root) => (root..root + 1, 1),
            None if self.fibres.is_transitive => (0..1, u64::from(ranks)),
            None => (0..ranks, 1),
        };
        let least = u64::from(ranks - 1);
        if ranks > MAX_RANKS {
            let number = roots.len() as u64 * copies;
            return Some(Lengths {
                sum: least * number,
                least,
                roots: number,
            });
        }
        let paths = self.paths();
        let count = ranks as usize;
        let nearest = |to: usize| {
            let others = (0..count).filter(|&from| from != to);
            others.map(|from| paths[from * count + to]).min()
        };
        let nearest: Vec<u32> = (0..count).filter_map(nearest).collect();
        let slacks = slots * u64::from(ranks) * u64::from(ranks);
        let is_searched = slots > 1 && slacks <= MAX_SLACKS;
        // Only some of many roots are searched; for each other root, each rank counts the shortest
        // lightpath that leads to it.
        let affordable = (MAX_WORK / (VISITS * slacks).max(1)).max(1) as usize;
        let every = roots.len().div_ceil(affordable);
        let each = MAX_WORK / roots.len().min(affordable) as u64;
        let mut lengths = Lengths {
            sum: 0,
            least: u64::MAX,
            roots: 0,
        };
        for root in roots {
            interrupt::check();
            let mut length = 0u64;
            for (rank, &nearest) in nearest.iter().enumerate() {
                let own = match slots {
                    _ if rank == root as usize => 0,
                    1 => paths[root as usize * count + rank],
                    _ => nearest,
                };
                if own == NO_PATH {
                    return None;
                }
                length += u64::from(own);
            }
            if is_searched && (root as usize).is_multiple_of(every) {
                length = length.max(self.proved(&paths, root, slots, each)?);
            }
            lengths.sum += length * copies;
            lengths.least = lengths.least.min(length);
            lengths.roots += copies;
        }
        Some(lengths)
    }

    /// Returns the greatest length that moats prove. `None` if no tree reaches all ranks.
    fn proved(&self, paths: &[u32], root: u32, slots: u64, max_work: u64) -> Option<u64> {
        let trees = Trees {
            ranks: self.fibres.ranks as usize,
            lengths: paths,
            root: root as usize,
            slots: slots as usize,
        };
        let smallest = moats::least_length(&trees, Order::Smallest, max_work)?;
        // Seen on rings, tori, meshes and hypercubes: steps of one unit take at most half as many
        // times the work as a link has units.
        let even_work = smallest.work * u64::from(moats::UNITS) / 2;
        if smallest.work + even_work > max_work {
            return Some(smallest.links);
        }
        let even = moats::least_length(&trees, Order::Even, max_work)?;
        Some(smallest.links.max(even.links))
    }

    /// Returns the number of links of a shortest lightpath between each two ranks a and b, in the
    /// direction of the data away from the root, at the index a * ranks + b.
    fn paths(&self) -> Vec<u32> {
        let neighbours = self.fibres.neighbours(self.backwards);
        let reach = self.fibres.reach.unwrap_or(NO_PATH);
        let mut paths = Vec::with_capacity((self.fibres.ranks as usize).pow(2));
        for rank in 0..self.fibres.ranks {
            let hops = self.fibres.hops(&neighbours, rank);
            paths.extend(hops.iter().map(|&links| match links <= reach {
                true => links,
                false => NO_PATH,
            }));
        }
        paths
    }
}
