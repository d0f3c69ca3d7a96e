//! Matching of chunks with logical links, one point in time after another.
//!
//! Whenever links are idle, every rank receives chunks over its logical links. The source of the
//! logical link must have the chunk, the rank must lack it, and no chunk arrives twice. For one
//! rank this is a bipartite matching of logical links with chunks, which augmenting paths make as
//! large as possible. If a logical link can carry several chunks, it carries the chunk with the
//! fewest copies or, with `ChunkOrder::Farthest`, the chunk that has travelled the longest
//! distance. A seed breaks ties.
//!
//! *Symmetry:* if the translations of a grid map logical links to logical links, a translation by r
//! maps the blocks that rank 0 has to the blocks that rank r has. The search then handles rank 0
//! only: a neighbour u has block b if rank 0 has block b - u.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::graph::logical_links::LogicalLinks;
use opticoll_base::interrupt;
use opticoll_fabric::network::translations::Translations;

/// Blocks that all ranks must receive: the blocks of all ranks or of one rank, each divided into
/// `pieces` pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    pub(super) pieces: u32,
    /// Rank whose block spreads; `None` if every rank has a block.
    pub(super) root: Option<u32>,
}

/// Rule that determines when logical links carry chunks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Timing {
    /// All logical links proceed in steps. In a step, the slowest logical link carries at most m
    /// chunks, and a link that is n times as fast carries at most n m chunks. m is 1, unless a
    /// limited number of steps requires more.
    Steps {
        /// Maximum number of steps, and factor f. With f = 1, m is just large enough to deliver the
        /// remaining chunks in the remaining steps on average; in general, m is f times this
        /// number.
        limit: Option<(u32, f64)>,
    },
    /// Logical links follow a clock. A logical link starts when its links are idle, and occupies
    /// them for its latency and the transmission time of a chunk.
    Clock {
        /// Number of bytes per chunk.
        bytes: u64,
    },
}

/// Rule that determines which of several chunks a logical link carries first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkOrder {
    Rarest,
    Farthest,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    pub(super) step: u32,
    pub(super) logical_link: u32,
    pub(super) chunk: u32,
}

pub(super) struct Matching {
    /// Deliveries, sorted by step.
    pub(super) deliveries: Vec<Delivery>,
    pub(super) steps: u32,
    /// Cost of the matching. With `Timing::Steps`, the total length of all steps, in transmission
    /// times of a chunk over the slowest logical link. With `Timing::Clock`, the time in
    /// picoseconds.
    pub(super) cost: u64,
}

/// Maximum number of chunks that are compared for a logical link.
const SAMPLES: usize = 16;

struct Search<'a> {
    logical_links: &'a LogicalLinks,
    distances: &'a [u16],
    spread: Spread,
    first: ChunkOrder,
    random: Pcg64Mcg,
    /// Number of ranks in the tables below: 1 if the spread is symmetric, otherwise the number of
    /// all ranks.
    rows: u32,
    words: usize,
    /// Bit sets of chunks, `words` words per rank. In `present` are the chunks that the rank has;
    /// in `coming`, also the chunks that it will receive.
    present: Vec<u64>,
    coming: Vec<u64>,
    /// Chunks that each rank has (`held`), and chunks that each rank lacks (`missing`); both are
    /// indexed by rank. Chunks that have arrived are removed from `missing` later.
    held: Vec<Vec<u32>>,
    missing: Vec<Vec<u32>>,
    lacking: Vec<u32>,
    copies: Vec<u32>,
    /// Translations of blocks; both are indexed by logical link and then by block. Let u be the
    /// source of the logical link. `source_blocks` maps block b to block b - u, which rank 0 has if
    /// u has b. `own_blocks` is the inverse map. Both are empty if the spread is not symmetric.
    source_blocks: Vec<Vec<u32>>,
    own_blocks: Vec<Vec<u32>>,
    /// Assignments into the current rank at the current time, as (logical link, chunk).
    assigned: Vec<(u32, u32)>,
    /// `tried` is the index of the last augmentation that visited each logical link; `changes` is
    /// the number of augmentations so far.
    tried: Vec<u64>,
    changes: u64,
}

/// Returns the translations of the fabric, or `None` if the spread is not symmetric under them.
pub(super) fn translations<'a>(
    logical_links: &'a LogicalLinks,
    spread: &Spread,
) -> Option<&'a Translations> {
    let grid = logical_links.translations.as_ref();
    grid.filter(|_| spread.root.is_none())
}

/// Returns a matching that delivers every chunk to every rank. `None` if this is impossible, or
/// impossible within the given number of steps.
pub(super) fn search(
    logical_links: &LogicalLinks,
    distances: &[u16],
    spread: Spread,
    timing: Timing,
    first: ChunkOrder,
    seed: u64,
) -> Option<Matching> {
    let mut search = Search::new(logical_links, distances, spread, first, seed);
    match timing {
        Timing::Steps { limit } => search.match_in_steps(limit),
        Timing::Clock { bytes } => search.match_on_clock(bytes),
    }
}

fn is_set(bits: &[u64], words: usize, row: u32, chunk: u32) -> bool {
    bits[row as usize * words + chunk as usize / 64] >> (chunk % 64) & 1 == 1
}

fn set(bits: &mut [u64], words: usize, row: u32, chunk: u32) {
    bits[row as usize * words + chunk as usize / 64] |= 1 << (chunk % 64);
}

impl<'a> Search<'a> {
    fn new(
        logical_links: &'a LogicalLinks,
        distances: &'a [u16],
        spread: Spread,
        first: ChunkOrder,
        seed: u64,
    ) -> Search<'a> {
        let ranks = logical_links.ranks;
        let blocks = if spread.root.is_some() { 1 } else { ranks };
        let chunks = blocks * spread.pieces;
        let words = (chunks as usize).div_ceil(64);
        let symmetry = translations(logical_links, &spread);
        let rows = if symmetry.is_some() { 1 } else { ranks };
        let table = |back: bool| -> Vec<Vec<u32>> {
            let Some(grid) = symmetry else {
                return Vec::new();
            };
            let into_rank = logical_links.into(0);
            let of = |logical_link: u32| {
                let from = logical_links.all[logical_link as usize].from;
                (0..ranks)
                    .map(|block| grid.moved(block, from, back))
                    .collect()
            };
            into_rank.map(of).collect()
        };
        let mut search = Search {
            logical_links,
            distances,
            spread,
            first,
            random: Pcg64Mcg::seed_from_u64(seed),
            rows,
            words,
            present: vec![0; rows as usize * words],
            coming: vec![0; rows as usize * words],
            held: vec![Vec::new(); rows as usize],
            missing: vec![Vec::new(); rows as usize],
            lacking: vec![0; rows as usize],
            copies: vec![1; chunks as usize],
            source_blocks: table(true),
            own_blocks: table(false),
            assigned: Vec::new(),
            tried: vec![0; logical_links.all.len()],
            changes: 0,
        };
        for rank in 0..rows {
            for chunk in 0..chunks {
                if spread.root.unwrap_or(chunk / spread.pieces) == rank {
                    set(&mut search.coming, words, rank, chunk);
                    search.arrive(rank, chunk);
                } else {
                    search.missing[rank as usize].push(chunk);
                    search.lacking[rank as usize] += 1;
                }
            }
        }
        search
    }

    fn arrive(&mut self, rank: u32, chunk: u32) {
        set(&mut self.present, self.words, rank, chunk);
        self.held[rank as usize].push(chunk);
    }

    /// Returns the rank whose table entries represent the source of a logical link: rank 0 if the
    /// spread is symmetric, otherwise the source.
    fn source(&self, logical_link: u32) -> u32 {
        match self.source_blocks.is_empty() {
            true => self.logical_links.all[logical_link as usize].from,
            false => 0,
        }
    }

    fn translated(&self, table: &[Vec<u32>], logical_link: u32, chunk: u32) -> u32 {
        let Some(blocks) = table.get(logical_link as usize) else {
            return chunk;
        };
        let pieces = self.spread.pieces;
        blocks[(chunk / pieces) as usize] * pieces + chunk % pieces
    }

    fn source_has(&self, logical_link: u32, chunk: u32) -> bool {
        let chunk = self.translated(&self.source_blocks, logical_link, chunk);
        is_set(&self.present, self.words, self.source(logical_link), chunk)
    }

    /// Returns the priority of a chunk for rank `to`. Chunks with smaller numbers go first.
    fn priority(&self, to: u32, chunk: u32) -> u32 {
        match self.first {
            ChunkOrder::Rarest => self.copies[chunk as usize],
            ChunkOrder::Farthest => {
                let origin = self.spread.root.unwrap_or(chunk / self.spread.pieces);
                let at = origin as usize * self.logical_links.ranks as usize + to as usize;
                u32::from(u16::MAX - self.distances[at])
            }
        }
    }

    /// Selects a chunk for a logical link. The source has the chunk, and the destination neither
    /// has nor will receive it.
    fn pick(&mut self, logical_link: u32) -> Option<u32> {
        let to = self.logical_links.all[logical_link as usize].to;
        let source = self.source(logical_link) as usize;
        let mut selected: Option<(u32, u32)> = None;
        let mut samples = 0;
        let take = |selected: &mut Option<(u32, u32)>, key: u32, chunk: u32| {
            if selected.is_none_or(|(least, _)| key < least) {
                *selected = Some((key, chunk));
            }
        };
        if self.held[source].len() <= self.missing[to as usize].len() {
            let held = self.held[source].len();
            let start = if held > 1 {
                self.random.random_range(0..held)
            } else {
                0
            };
            for at in 0..held {
                let chunk = self.held[source][(start + at) % held];
                let chunk = self.translated(&self.own_blocks, logical_link, chunk);
                if !is_set(&self.coming, self.words, to, chunk) {
                    take(&mut selected, self.priority(to, chunk), chunk);
                    samples += 1;
                    if samples == SAMPLES {
                        break;
                    }
                }
            }
        } else {
            let mut todo = self.missing[to as usize].len();
            let mut at = if todo > 1 {
                self.random.random_range(0..todo)
            } else {
                0
            };
            while todo > 0 {
                todo -= 1;
                let missing = &mut self.missing[to as usize];
                if at >= missing.len() {
                    at = 0;
                }
                let chunk = missing[at];
                if is_set(&self.coming, self.words, to, chunk) {
                    missing.swap_remove(at);
                    continue;
                }
                at += 1;
                if self.source_has(logical_link, chunk) {
                    take(&mut selected, self.priority(to, chunk), chunk);
                    samples += 1;
                    if samples == SAMPLES {
                        break;
                    }
                }
            }
        }
        selected.map(|(_, chunk)| chunk)
    }

    /// Assigns a chunk to a logical link. If necessary, other logical links into the same rank are
    /// reassigned at the current time. Returns whether a chunk was assigned.
    fn assign(&mut self, logical_link: u32) -> bool {
        let to = self.logical_links.all[logical_link as usize].to;
        if let Some(chunk) = self.pick(logical_link) {
            set(&mut self.coming, self.words, to, chunk);
            self.copies[chunk as usize] += 1;
            self.lacking[to as usize] -= 1;
            self.assigned.push((logical_link, chunk));
            return true;
        }
        self.changes += 1;
        self.augment(logical_link)
    }

    fn augment(&mut self, logical_link: u32) -> bool {
        self.tried[logical_link as usize] = self.changes;
        for at in 0..self.assigned.len() {
            let (other, chunk) = self.assigned[at];
            if self.tried[other as usize] == self.changes || !self.source_has(logical_link, chunk) {
                continue;
            }
            self.assigned[at].0 = logical_link;
            let is_assigned = match self.pick(other) {
                Some(chunk) => {
                    let to = self.logical_links.all[logical_link as usize].to;
                    set(&mut self.coming, self.words, to, chunk);
                    self.copies[chunk as usize] += 1;
                    self.lacking[to as usize] -= 1;
                    self.assigned.push((other, chunk));
                    true
                }
                None => self.augment(other),
            };
            if is_assigned {
                return true;
            }
            self.assigned[at].0 = other;
        }
        false
    }

    fn shuffle(&mut self, order: &mut [u32]) {
        for at in (1..order.len()).rev() {
            let other = self.random.random_range(0..=at);
            order.swap(at, other);
        }
    }

    fn match_in_steps(&mut self, limit: Option<(u32, f64)>) -> Option<Matching> {
        let logical_links = self.logical_links;
        let shares = logical_links.rate_multiples();
        let slots_into: Vec<u64> = (0..self.rows)
            .map(|rank| slots_into(logical_links, &shares, rank))
            .collect();
        let mut free = vec![0u64; shares.len()];
        let mut order: Vec<u32> = (0..self.rows).collect();
        let (mut deliveries, mut arrived) = (Vec::new(), Vec::new());
        let (mut step, mut cost) = (0u32, 0u64);
        while self.lacking.iter().any(|&lacking| lacking > 0) {
            interrupt::check();
            let mut multiple = 1;
            if let Some((steps, factor)) = limit {
                let steps_left = u64::from(
                    steps
                        .checked_sub(step)
                        .filter(|steps_left| *steps_left > 0)?,
                );
                let needed = self.lacking.iter().zip(&slots_into);
                let needed = needed.map(|(&lacking, slots)| {
                    u64::from(lacking).div_ceil((slots * steps_left).max(1))
                });
                multiple = (needed.max().unwrap_or(1) as f64 * factor).ceil() as u64;
            }
            for (free, share) in free.iter_mut().zip(&shares) {
                *free = share * multiple;
            }
            self.shuffle(&mut order);
            let mut used = 0;
            for &to in &order {
                interrupt::check();
                let mut into_rank: Vec<u32> = logical_links.into(to).collect();
                self.assigned.clear();
                // Logical links take turns, so that none takes the chunks that only another one
                // could carry.
                while self.lacking[to as usize] > 0 && !into_rank.is_empty() {
                    self.shuffle(&mut into_rank);
                    into_rank.retain(|&logical_link| {
                        let route = logical_links.route(logical_link);
                        let can = route.iter().all(|&link| free[link as usize] > 0)
                            && self.assign(logical_link);
                        if can {
                            for &link in route {
                                free[link as usize] -= 1;
                            }
                        }
                        can
                    });
                }
                for &(logical_link, chunk) in &self.assigned {
                    deliveries.push(Delivery {
                        step,
                        logical_link,
                        chunk,
                    });
                    arrived.push((to, chunk));
                    let slots = logical_links.route(logical_link).iter().map(|&link| {
                        let link = link as usize;
                        (multiple * shares[link] - free[link]).div_ceil(shares[link].max(1))
                    });
                    used = used.max(slots.max().unwrap_or(0));
                }
            }
            if arrived.is_empty() {
                return None;
            }
            for (rank, chunk) in arrived.drain(..) {
                self.arrive(rank, chunk);
            }
            cost += used;
            step += 1;
        }
        Some(Matching {
            deliveries,
            steps: step,
            cost,
        })
    }

    fn match_on_clock(&mut self, bytes: u64) -> Option<Matching> {
        let logical_links = self.logical_links;
        let duration = |logical_link: u32| {
            let logical_link = &logical_links.all[logical_link as usize];
            let moving =
                u128::from(bytes) * 8_000_000_000_000 / u128::from(logical_link.rate.max(1));
            logical_link
                .latency
                .saturating_add(u64::try_from(moving).unwrap_or(u64::MAX))
        };
        let links = logical_links.rates.len();
        let mut free = vec![0u64; links];
        // Step of the last message on each link, and step in which each rank received each chunk;
        // counted from 1.
        let mut link_steps = vec![0u32; links];
        let chunks = self.copies.len();
        let mut held_steps = vec![0u32; self.rows as usize * chunks];
        let mut order: Vec<u32> = (0..self.rows).collect();
        let mut deliveries = Vec::new();
        let mut arrivals: BinaryHeap<Reverse<(u64, u32, u32, u32)>> = BinaryHeap::new();
        let (mut now, mut last, mut steps) = (0u64, 0u64, 0u32);
        loop {
            interrupt::check();
            while let Some(&Reverse((time, to, chunk, step))) = arrivals.peek()
                && time <= now
            {
                arrivals.pop();
                held_steps[to as usize * chunks + chunk as usize] = step;
                self.arrive(to, chunk);
            }
            self.shuffle(&mut order);
            for &to in &order {
                interrupt::check();
                if self.lacking[to as usize] == 0 {
                    continue;
                }
                let mut into_rank: Vec<u32> = logical_links.into(to).collect();
                self.shuffle(&mut into_rank);
                self.assigned.clear();
                // Fast logical links go first, so that slower ones do not carry chunks that fast
                // ones could.
                into_rank.sort_by_key(|&logical_link| duration(logical_link));
                for logical_link in into_rank {
                    let route = logical_links.route(logical_link);
                    if route.iter().all(|&link| free[link as usize] <= now)
                        && self.assign(logical_link)
                    {
                        let end = now.saturating_add(duration(logical_link));
                        for &link in route {
                            free[link as usize] = end;
                        }
                    }
                }
                for at in 0..self.assigned.len() {
                    let (logical_link, chunk) = self.assigned[at];
                    let source_chunk = self.translated(&self.source_blocks, logical_link, chunk);
                    let held = held_steps
                        [self.source(logical_link) as usize * chunks + source_chunk as usize];
                    let route = logical_links.route(logical_link);
                    let before = route.iter().map(|&link| link_steps[link as usize]).max();
                    let step = held.max(before.unwrap_or(0)) + 1;
                    for &link in route {
                        link_steps[link as usize] = step;
                    }
                    let end = now.saturating_add(duration(logical_link));
                    deliveries.push(Delivery {
                        step: step - 1,
                        logical_link,
                        chunk,
                    });
                    arrivals.push(Reverse((end, to, chunk, step)));
                    (last, steps) = (last.max(end), steps.max(step));
                }
            }
            match arrivals.peek() {
                Some(Reverse((time, ..))) => now = *time,
                None => break,
            }
        }
        if self.lacking.iter().any(|&lacking| lacking > 0) {
            return None;
        }
        deliveries.sort_by_key(|delivery| delivery.step);
        Some(Matching {
            deliveries,
            steps,
            cost: last,
        })
    }
}

/// Returns the number of chunks per step that the rates of the links into a rank permit.
pub(super) fn slots_into(logical_links: &LogicalLinks, shares: &[u64], rank: u32) -> u64 {
    let into_rank = logical_links.into(rank);
    let mut last: Vec<u32> = into_rank
        .filter_map(|logical_link| logical_links.route(logical_link).last().copied())
        .collect();
    last.sort_unstable();
    last.dedup();
    last.into_iter().map(|link| shares[link as usize]).sum()
}
