//! Maximum concurrent flow: a block for each of some pairs of ranks at the same time, over the best
//! routes (theorem E10).
//!
//! Links e have rates c_e, and T is the least time in which all blocks can cross. f_P is the part
//! of a pair's block that takes route P, so that the f_P of each pair sum up to 1; lengths y_e >= 0
//! are multipliers of the links, and d_y is the length of a shortest route.
//!
//! ```text
//! T = min of max over e of (sum of f_P over routes P with e) / c_e
//!   = max over y of (sum over pairs of d_y(pair)) / (sum of c_e y_e)
//! ```
//!
//! So *any* lengths give a lower bound, and any routes an upper bound. If both are the same
//! fraction, it is the optimum, and the lengths are its proof. Both are computed with whole
//! numbers.
//!
//! **Routes.** A block is cut into K chunks with a route each. The search begins with the routes of
//! the network. It takes one chunk at a time and puts it on the route with the least increase of
//!
//! ```text
//! sum over e of (load_e / (K T' c_e))^p
//! ```
//!
//! where T' is a lower bound and p is 8, then 32, then 64. At 64 the sum is little more than its
//! greatest term (the exponential potentials of Garg and Koenemann, FOCS 1998, and Fleischer, SIAM
//! Journal on Discrete Mathematics 13, 2000, for whole chunks). From the second p on, the search
//! examines only chunks on links near the greatest load, and also moves a chunk at equal cost.
//! Powers are products, so that all machines compute the same numbers.
//!
//! **Lengths.** The search tries equal lengths and lengths of one over the rates. Given the use of
//! the links by routes found, or by blocks divided evenly among the routes of the fewest links, it
//! also tries lengths on the full links alone and the derivatives of the sum.

mod packing;
mod search;

use opticoll_base::graph;
use opticoll_base::interrupt;
use opticoll_fabric::network::{Network, Sharing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use packing::{Packing, power};
use search::Search;

/// Pair of ranks: source and destination.
pub type Pair = (u32, u32);

/// Returns the pairs of ranks whose blocks must move, ordered by source; `None` for a collective
/// whose blocks have several sources or destinations each.
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

/// Number of blocks over a rate: the seconds that blocks of one bit take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockTime {
    /// Blocks, or their sum over links with lengths.
    pub blocks: u128,
    /// Rate in bit/s, or its sum over links with lengths.
    pub rate: u128,
}

impl BlockTime {
    /// Returns whether this time is less than another.
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

/// Links that blocks cross.
pub struct ConcurrentFlow<'a> {
    network: &'a dyn Network,
    rates: Vec<u64>,
    /// Number and other end of each link that leads away from a vertex; a half-duplex link is in
    /// the lists of both of its ends.
    away: Vec<Vec<(u32, u32)>>,
}

/// Route of each chunk of each pair.
pub struct ChunkRoutes {
    /// Chunks of a block.
    pub chunks: u32,
    /// Links of chunk k of pair p, at `p * chunks + k`.
    pub routes: Vec<Box<[u32]>>,
    /// Number of chunks on each link.
    pub loads: Vec<u64>,
    /// Greatest load over the rate of its link.
    pub time: BlockTime,
}

/// Potentials in their order: log2 of the power p, passes over all chunks, and the part of the
/// greatest load from which a link counts as full.
const POTENTIALS: [(u32, u32, f64); 3] = [(3, 2, 0.0), (5, 6, 0.9), (6, 24, 1.0)];

/// Number of passes over all chunks that the limit of work must permit. On large graphs one search
/// then serves several chunks.
const MIN_PASSES: u64 = 8;

/// Number of passes without a gain after which the next power is used.
const MAX_IDLE_PASSES: u32 = 4;

/// Greatest length of a link; lengths are whole numbers.
const MAX_LENGTH: f64 = (1u64 << 32) as f64;

impl<'a> ConcurrentFlow<'a> {
    /// Returns the links of a network; `None` if it does not know where they lead, or flows do not
    /// share them.
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

    /// Returns the lower bound that lengths of the links prove. `None` if a pair is not joined, or
    /// numbers exceed 128 bits.
    pub fn bound(&self, pairs: &[Pair], lengths: &[u64]) -> Option<BlockTime> {
        let longest = lengths.iter().copied().max()?;
        // Sums along routes are exact up to 2^53.
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

    /// Returns the greatest bound of a few lengths, with the lengths. `uses` holds the use of each
    /// link on good routes, relative to the greatest use, and adds more lengths to try. `None` if a
    /// pair is not joined.
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

    /// Divides the block of each pair evenly among all routes of the fewest links. Returns, in
    /// floating point, the seconds for blocks of one bit, and the use of each link relative to the
    /// greatest use. On graphs that look the same from every vertex, such as tori, often no routes
    /// are better.
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
            // Number of routes to each vertex, and the blocks that end there or pass through it.
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

    /// Searches routes for the pairs, with `chunks` chunks per block. The search ends at the time
    /// `least`, a known lower bound, or after about `most_work` steps over links. `None` if a pair
    /// is not joined.
    pub fn routes(
        &self,
        pairs: &[Pair],
        chunks: u32,
        least: BlockTime,
        most_work: u64,
    ) -> Option<ChunkRoutes> {
        let mut packing = Packing::new(self, pairs, chunks, least)?;
        let work_per_pass = (packing.routes.len() as u64).saturating_mul(self.rates.len() as u64);
        let batch = (work_per_pass / (most_work / MIN_PASSES).max(1)).max(1) as usize;
        let mut search = Search::new(self.away.len());
        for (squarings, passes, full) in POTENTIALS {
            packing.set_power(squarings);
            let mut since = 0;
            for _ in 0..passes {
                let time = packing.time();
                if !least.is_below(time) || search.work > most_work {
                    break;
                }
                let moved = packing.pass(&mut search, full, batch, most_work);
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

    /// Returns the use of each link relative to the greatest use.
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

    /// Returns the vertex at the other end of a link; `None` if `from` is no end of it.
    fn other_end(&self, link: u32, from: u32) -> Option<u32> {
        let (first, second) = self.network.ends(link)?;
        match from == first {
            true => Some(second),
            false => (from == second).then_some(first),
        }
    }

    /// Returns whether a list of links joins a pair.
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
