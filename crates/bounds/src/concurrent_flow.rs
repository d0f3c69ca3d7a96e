//! Maximum concurrent flow: one block for each of some pairs of ranks at once, over whatever ways
//! are best.
//!
//! Let the links have rates c_e, and let T be the least time in which all blocks can cross. With
//! f_P the part of a pair's block that takes way P, and lengths y_e >= 0 as multipliers of the
//! links, (theorem E10)
//!
//! ```text
//! T = min of max over e of (sum of f_P over ways P with e) / c_e,  where the f_P of each pair sum up to 1
//!   = max over y of (sum over pairs of d_y(pair)) / (sum of c_e y_e)
//! ```
//!
//! with d_y the length of a shortest way. So *any* lengths give a bound, and any ways a time:
//! where both are the same fraction, it is the optimum, and the lengths are its proof. Both are
//! computed here with whole numbers.
//!
//! **Ways.** A block is cut into K chunks, each with a way of its own. Beginning with the routes
//! of the network, chunk by chunk is taken out and put on the way with the least increase of
//!
//! ```text
//! sum over e of (load_e / (K T' c_e))^p
//! ```
//!
//! where T' is a bound; p = 8, then 32, then 64, at which the sum is little more than its greatest
//! term (the exponential potentials of Garg and Koenemann, FOCS 1998, and Fleischer, SIAM Journal
//! on Discrete Mathematics 13, 2000, for whole chunks). From the second p on only chunks on links
//! near the greatest load are looked at, and a chunk moves also where that costs the same. Powers
//! are products, so that all machines compute the same.
//!
//! **Lengths.** Those tried are equal ones, one over the rates; at the ways found, and where
//! blocks are divided evenly among the ways of the fewest links, those of the full links alone and
//! the derivatives of the sum.

mod packing;
mod search;

use opticoll_base::graph;
use opticoll_base::interrupt;
use opticoll_fabric::network::{Network, Sharing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use packing::{Packing, power};
use search::Search;

/// A pair of ranks, source and destination.
pub type Pair = (u32, u32);

/// The pairs of ranks whose blocks must move, by source; `None` of a collective whose blocks have more than one source or
/// destination each.
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

/// So many blocks over a rate: a time of a block of one bit, where the rate is in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockTime {
    /// Blocks, or their sum over links with lengths.
    pub blocks: u128,
    /// Bits per second.
    pub rate: u128,
}

impl BlockTime {
    /// Whether it is less than another.
    pub fn is_below(self, other: BlockTime) -> bool {
        match (
            self.blocks.checked_mul(other.rate),
            other.blocks.checked_mul(self.rate),
        ) {
            (Some(own), Some(others)) => own < others,
            _ => self.seconds() < other.seconds(),
        }
    }

    /// In seconds for a block of one bit.
    pub fn seconds(self) -> f64 {
        self.blocks as f64 / self.rate as f64
    }
}

/// The links that blocks cross.
pub struct ConcurrentFlow<'a> {
    network: &'a dyn Network,
    rates: Vec<u64>,
    /// Per vertex: the links that lead away and where to; a half-duplex link is in both lists.
    away: Vec<Vec<(u32, u32)>>,
}

/// A way for each chunk of each pair.
pub struct ChunkWays {
    /// Chunks of a block.
    pub chunks: u32,
    /// The links of chunk k of pair p at `p * chunks + k`.
    pub ways: Vec<Box<[u32]>>,
    /// Chunks by link.
    pub loads: Vec<u64>,
    /// The greatest load over its rate.
    pub time: BlockTime,
}

/// The powers p of potentials, the passes over all chunks with each, and the part of the greatest load from which a link
/// counts as full.
const POTENTIALS: [(u32, u32, f64); 3] = [(3, 2, 0.0), (5, 6, 0.9), (6, 24, 1.0)];

/// Passes over all chunks that the work should do for; on large graphs one search then serves several chunks.
const PASSES: u64 = 8;

/// After so many passes that gain nothing the next power is taken.
const PATIENCE: u32 = 4;

/// Lengths are whole numbers up to this.
const LONGEST: f64 = (1u64 << 32) as f64;

impl<'a> ConcurrentFlow<'a> {
    /// `None` where it is not known where links lead, or flows do not share them.
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

    /// A bound by some lengths of the links: no ways take less. `None` where a pair is not joined, or numbers leave 128
    /// bits.
    pub fn bound(&self, pairs: &[Pair], lengths: &[u64]) -> Option<BlockTime> {
        let longest = lengths.iter().copied().max()?;
        // Then the sums along ways are exact.
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

    /// The greatest bound of a few lengths, with the lengths; more are tried where it is known by what part of the greatest
    /// use each link is used on good ways. `None` where a pair is not joined.
    pub fn best_bound(
        &self,
        pairs: &[Pair],
        uses: Option<&[f64]>,
    ) -> Option<(BlockTime, Vec<u64>)> {
        let least_rate = self.rates.iter().copied().min()? as f64;
        let mut tried = vec![vec![1; self.rates.len()]];
        let slowness = |rate: &u64| (LONGEST / (*rate as f64 / least_rate)).round() as u64;
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
                    (LONGEST * slowness * power(*own, squarings)).round() as u64
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

    /// Where the block of each pair is divided evenly among all ways of the fewest links, in floating point: the seconds for
    /// a block of one bit, and by what part of the greatest use each link is used. On graphs that look the same from every
    /// vertex, such as tori, often no ways are better.
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
            // Ways to each vertex, and what of all blocks ends there or passes on.
            let mut ways = vec![0.0; vertices];
            let mut passing = vec![0.0; vertices];
            ways[source as usize] = 1.0;
            for &from in &order {
                for &(_, to) in &self.away[from as usize] {
                    if nearer(from, to) {
                        ways[to as usize] += ways[from as usize];
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
                        let part = passing[to] * ways[from] / ways[to];
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

    /// Ways for the pairs, each in so many chunks; the search stops at a time that is known to be the least, or after
    /// about `most_work` steps over links. `None` where a pair is not joined.
    pub fn ways(
        &self,
        pairs: &[Pair],
        chunks: u32,
        least: BlockTime,
        most_work: u64,
    ) -> Option<ChunkWays> {
        let mut packing = Packing::new(self, pairs, chunks, least)?;
        let all = (packing.ways.len() as u64).saturating_mul(self.rates.len() as u64);
        let batch = (all / (most_work / PASSES).max(1)).max(1) as usize;
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
                if moved == 0 || since == PATIENCE {
                    break;
                }
            }
        }
        Some(packing.best())
    }

    /// By what part of the greatest use each link is used.
    pub fn uses(&self, ways: &ChunkWays) -> Vec<f64> {
        let own = ways.loads.iter().zip(&self.rates);
        let own = own.map(|(&load, &rate)| BlockTime {
            blocks: load.into(),
            rate: u128::from(rate) * u128::from(ways.chunks),
        });
        own.map(|own| own.seconds() / ways.time.seconds()).collect()
    }

    /// The vertex that a link leads to from another.
    fn other_end(&self, link: u32, from: u32) -> Option<u32> {
        let (one, other) = self.network.ends(link)?;
        match from == one {
            true => Some(other),
            false => (from == other).then_some(one),
        }
    }

    /// Whether a list of links joins a pair.
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
