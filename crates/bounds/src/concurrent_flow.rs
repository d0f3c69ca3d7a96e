//! Maximum concurrent flow: the least time in which a block of each of some pairs of ranks can
//! cross the links at the same time, over the best routes (theorem E10).
//!
//! Links e have rates c_e, and T is the least time in which all blocks can cross. f_P is the share
//! of a pair's block that uses route P; the shares of each pair sum up to 1. The multipliers y_e >=
//! 0 of the links are called *lengths*, and d_y is the length of a pair's shortest route.
//!
//! ```text
//! T = min of max over e of (sum of f_P over routes P with e) / c_e
//!   = max over y of (sum over pairs of d_y(pair)) / (sum of c_e y_e)
//! ```
//!
//! Any lengths therefore give a lower bound, and any routes give an upper bound. If both bounds are
//! the same fraction, this fraction is the optimum, and the lengths prove it. Both bounds are
//! computed with whole numbers.
//!
//! **Routes.** A block is cut into K chunks, and each chunk has its own route. The search begins
//! with the routes of the network, or with shortest routes if these take less time. It then moves
//! one chunk at a time to the route that least increases the *potential*:
//!
//! ```text
//! sum over e of (load_e / (K T' c_e))^p
//! ```
//!
//! T' is a lower bound on T. The power p is 8, then 32, then 64. For p = 64, the potential is
//! little more than its greatest term (the exponential potentials of Garg and Koenemann, FOCS 1998,
//! and Fleischer, SIAM Journal on Discrete Mathematics 13, 2000, for whole chunks). The search also
//! moves a chunk to another route of equal cost. From p = 32 on, it examines only chunks on links
//! near the greatest load. Powers are products, so that all machines compute the same numbers.
//!
//! **Lengths.** The search tries equal lengths, and lengths proportional to 1 / c_e. If the loads
//! of good routes are known, it also tries lengths on the most loaded links alone, and the
//! derivatives of the potential. These routes are the routes of the search, or divide each block
//! evenly among all routes with the fewest links.

mod packing;
mod search;

use opticoll_base::graph;
use opticoll_base::interrupt;
use opticoll_fabric::network::{Network, Sharing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use packing::{Packing, power};
use search::Search;

/// Source rank and destination rank of a block.
pub type Pair = (u32, u32);

/// Returns the pairs of ranks whose blocks must move, ordered by source. `None` for a collective
/// whose blocks have several sources or several destinations.
pub fn pairs(collective: &Collective) -> Option<Vec<Pair>> {
    let (ranks, root) = (collective.ranks(), collective.root());
    let others = move |own: u32| (0..ranks).filter(move |rank| *rank != own);
    match collective.kind() {
        CollectiveKind::AllToAll => {
            let from = move |source: u32| others(source).map(move |to| (source, to));
            Some((0..ranks).flat_map(from).collect())
        }
        CollectiveKind::Scatter => Some(others(root).map(|rank| (root, rank)).collect()),
        CollectiveKind::Gather => Some(others(root).map(|rank| (rank, root)).collect()),
        _ => None,
    }
}

/// Time as a quotient of a number of blocks and a rate in bit/s. The quotient is the time in
/// seconds if each block has one bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockTime {
    /// Number of blocks that cross a link. If lengths of links prove the time: sum of the lengths
    /// of the shortest routes of all pairs.
    pub blocks: u128,
    /// Rate of the link in bit/s. If lengths of links prove the time: sum of rate times length over
    /// all links.
    pub rate: u128,
}

impl BlockTime {
    /// Returns whether this time is less than `other`.
    pub fn is_below(self, other: BlockTime) -> bool {
        match (
            self.blocks.checked_mul(other.rate),
            other.blocks.checked_mul(self.rate),
        ) {
            (Some(own), Some(others)) => own < others,
            _ => self.seconds() < other.seconds(),
        }
    }

    /// Returns the time in seconds for blocks of one bit.
    pub fn seconds(self) -> f64 {
        self.blocks as f64 / self.rate as f64
    }
}

/// Links of a network over which blocks flow at the same time.
pub struct ConcurrentFlow<'a> {
    network: &'a dyn Network,
    rates: Vec<u64>,
    /// Links that lead away from each vertex, indexed by vertex: (index of the link, vertex at the
    /// other end). A half-duplex link is in the lists of both of its ends.
    away: Vec<Vec<(u32, u32)>>,
}

/// Route of each chunk of each pair.
pub struct ChunkRoutes {
    /// Number of chunks of a block.
    pub chunks: u32,
    /// Links of each route. The route of chunk k of pair p has the index `p * chunks + k`.
    pub routes: Vec<Box<[u32]>>,
    /// Number of chunks on each link, indexed by link.
    pub loads: Vec<u64>,
    /// Greatest quotient of load and rate over all links: the time in which all blocks cross.
    pub time: BlockTime,
}

/// Stages of the search, in order: (log2 of the power of the potential, maximum number of passes
/// over all chunks, share of the greatest load from which on a link counts as full).
const POTENTIALS: [(u32, u32, f64); 3] = [(3, 2, 0.0), (5, 6, 0.9), (6, 24, 1.0)];

/// Minimum number of passes over all chunks that the limit of work must permit. On large graphs,
/// one search of shortest routes serves several chunks, so that this number is possible.
const MIN_PASSES: u64 = 8;

/// Number of passes without a gain after which the next power is used.
const MAX_IDLE_PASSES: u32 = 4;

/// Greatest length of a link. Lengths are whole numbers.
const MAX_LENGTH: f64 = (1u64 << 32) as f64;

impl<'a> ConcurrentFlow<'a> {
    /// Returns the links of `network`. `None` if the network does not know the ends of its links,
    /// or if a link gives every flow the whole rate.
    pub fn of(network: &'a dyn Network) -> Option<ConcurrentFlow<'a>> {
        let mut away = vec![Vec::new(); network.ranks() as usize];
        let mut rates = Vec::new();
        for (number, link) in (0u32..).zip(network.links()) {
            let (from, to) = network.ends(number)?;
            if link.sharing != Sharing::Shared {
                return None;
            }
            let vertices = from.max(to) as usize + 1;
            away.resize(away.len().max(vertices), Vec::new());
            away[from as usize].push((number, to));
            if network.leads_both_ways(number) {
                away[to as usize].push((number, from));
            }
            rates.push(link.rate.bits_per_second());
        }
        Some(ConcurrentFlow {
            network,
            rates,
            away,
        })
    }

    /// Returns the same links with other capacities in place of their rates, indexed by link. Every
    /// capacity must be positive.
    pub(crate) fn with_capacities(self, capacities: Vec<u64>) -> ConcurrentFlow<'a> {
        ConcurrentFlow {
            rates: capacities,
            ..self
        }
    }

    /// Returns the lower bound that the lengths of the links prove; `lengths` is indexed by link.
    /// `None` if some pair has no route, or if a number is too great to be exact.
    pub fn bound(&self, pairs: &[Pair], lengths: &[u64]) -> Option<BlockTime> {
        let longest = lengths.iter().copied().max()?;
        // Sums of lengths along routes are floating-point numbers, which are exact up to 2^53.
        if longest.checked_mul(self.away.len() as u64)? > 1 << 53 {
            return None;
        }
        let mut rate = 0u128;
        for (&length, &own) in lengths.iter().zip(&self.rates) {
            rate = rate.checked_add(u128::from(length) * u128::from(own))?;
        }
        let mut blocks = 0u128;
        let mut search = Search::new(self.away.len());
        for of_source in pairs.chunk_by(|one, other| one.0 == other.0) {
            interrupt::check();
            let source = of_source.first()?.0;
            if longest == 1 && !lengths.contains(&0) {
                let next = |vertex: u32| self.away[vertex as usize].iter().map(|(_, to)| *to);
                let hops = graph::distances(self.away.len(), source, next);
                for &(_, destination) in of_source {
                    let hops = hops[destination as usize];
                    blocks += u128::from((hops != graph::UNREACHED).then_some(hops)?);
                }
                continue;
            }
            search.from(self, source, None, |link| lengths[link as usize] as f64);
            for &(_, destination) in of_source {
                blocks += search.distance(destination)? as u128;
            }
        }
        (rate > 0).then_some(BlockTime { blocks, rate })
    }

    /// Tries several lengths of the links. Returns the greatest lower bound, and the lengths that
    /// prove this bound, indexed by link. `uses` has the use of each link by good routes, and
    /// suggests further lengths to try. The use of a link is its load over its rate, divided by the
    /// greatest such quotient of all links. `None` if some pair has no route.
    pub fn best_bound(
        &self,
        pairs: &[Pair],
        uses: Option<&[f64]>,
    ) -> Option<(BlockTime, Vec<u64>)> {
        let least_rate = self.rates.iter().copied().min()? as f64;
        let mut tried = vec![vec![1; self.rates.len()]];
        let slowness = |rate: &u64| (MAX_LENGTH / (*rate as f64 / least_rate)).round() as u64;
        if self.rates.iter().any(|rate| *rate as f64 != least_rate) {
            tried.push(self.rates.iter().map(slowness).collect());
        }
        if let Some(uses) = uses {
            for full in [1.0 - 1e-9, 0.98, 0.9] {
                tried.push(uses.iter().map(|own| u64::from(*own >= full)).collect());
            }
            for squarings in [3, 5, 6] {
                let lengths = uses.iter().zip(&self.rates).map(|(own, rate)| {
                    let slowness = least_rate / *rate as f64;
                    (MAX_LENGTH * slowness * power(*own, squarings)).round() as u64
                });
                tried.push(lengths.collect());
            }
        }
        let mut best: Option<(BlockTime, Vec<u64>)> = None;
        for lengths in tried {
            interrupt::check();
            if lengths.iter().all(|length| *length == 0) {
                continue;
            }
            let bound = self.bound(pairs, &lengths)?;
            if best.as_ref().is_none_or(|(best, _)| best.is_below(bound)) {
                best = Some((bound, lengths));
            }
        }
        best
    }

    /// Divides the block of each pair evenly among all routes with the fewest links. Returns the
    /// time in seconds for blocks of one bit, and the use of each link (see [`Self::best_bound`]).
    /// On graphs that look the same from every vertex, such as tori, often no other routes are
    /// faster. `None` if some pair has no route.
    pub fn evenly_divided(&self, pairs: &[Pair]) -> Option<(f64, Vec<f64>)> {
        let vertices = self.away.len();
        let mut loads = vec![0.0; self.rates.len()];
        let mut search = Search::new(vertices);
        for of_source in pairs.chunk_by(|one, other| one.0 == other.0) {
            interrupt::check();
            let source = of_source.first()?.0;
            search.from(self, source, None, |_| 1.0);
            let reached = (0..vertices as u32).filter(|vertex| search.distance(*vertex).is_some());
            let mut order: Vec<u32> = reached.collect();
            order.sort_by_key(|vertex| search.distance(*vertex).map(|hops| hops as u64));
            let nearer = |from: u32, to: u32| {
                search.distance(from).map(|hops| hops + 1.0) == search.distance(to)
            };
            // Number of shortest routes to each vertex; number of blocks that end at or pass each
            // vertex.
            let mut routes = vec![0.0; vertices];
            let mut passing = vec![0.0; vertices];
            routes[source as usize] = 1.0;
            for &from in &order {
                for &(_, to) in &self.away[from as usize] {
                    if nearer(from, to) {
                        routes[to as usize] += routes[from as usize];
                    }
                }
            }
            for &(_, destination) in of_source {
                search.distance(destination)?;
                passing[destination as usize] += 1.0;
            }
            for &from in order.iter().rev() {
                for &(link, to) in &self.away[from as usize] {
                    if nearer(from, to) {
                        let (from, to) = (from as usize, to as usize);
                        let part = passing[to] * routes[from] / routes[to];
                        loads[link as usize] += part;
                        passing[from] += part;
                    }
                }
            }
        }
        for (load, rate) in loads.iter_mut().zip(&self.rates) {
            *load /= *rate as f64;
        }
        let most = loads.iter().copied().fold(0.0, f64::max);
        loads.iter_mut().for_each(|own| *own /= most);
        Some((most, loads))
    }

    /// Searches routes for `pairs`, with `chunks` chunks per block. The search stops when the time
    /// reaches `least`, a known lower bound, or after about `max_work` link visits. `None` if
    /// some pair has no route.
    pub fn routes(
        &self,
        pairs: &[Pair],
        chunks: u32,
        least: BlockTime,
        max_work: u64,
    ) -> Option<ChunkRoutes> {
        let mut packing = Packing::new(self, pairs, chunks, least)?;
        let work_per_pass = (packing.routes.len() as u64).saturating_mul(self.rates.len() as u64);
        let batch = (work_per_pass / (max_work / MIN_PASSES).max(1)).max(1) as usize;
        let mut search = Search::new(self.away.len());
        for (squarings, passes, full) in POTENTIALS {
            packing.set_power(squarings);
            let mut since = 0;
            for _ in 0..passes {
                let time = packing.time();
                if !least.is_below(time) || search.work > max_work {
                    break;
                }
                let moved = packing.pass(&mut search, full, batch, max_work);
                since = if packing.time().is_below(time) {
                    0
                } else {
                    since + 1
                };
                if moved == 0 || since == MAX_IDLE_PASSES {
                    break;
                }
            }
        }
        Some(packing.best())
    }

    /// Returns the use of each link under `routes`, indexed by link: its load over its rate,
    /// divided by the greatest such quotient of all links.
    pub fn uses(&self, routes: &ChunkRoutes) -> Vec<f64> {
        let times = routes.loads.iter().zip(&self.rates);
        let times = times.map(|(&load, &rate)| BlockTime {
            blocks: load.into(),
            rate: u128::from(rate) * u128::from(routes.chunks),
        });
        times
            .map(|times| times.seconds() / routes.time.seconds())
            .collect()
    }

    /// Returns the vertex at the other end of `link`; `None` if `from` is not an end of `link`.
    fn other_end(&self, link: u32, from: u32) -> Option<u32> {
        let (first, second) = self.network.ends(link)?;
        match from == first {
            true => Some(second),
            false => (from == second).then_some(first),
        }
    }

    /// Returns whether the consecutive `links` form a route from `source` to `destination`.
    fn joins(&self, (source, destination): Pair, links: &[u32]) -> bool {
        let mut at = source;
        for &link in links {
            match self.other_end(link, at) {
                Some(next) => at = next,
                None => return false,
            }
        }
        at == destination
    }
}
