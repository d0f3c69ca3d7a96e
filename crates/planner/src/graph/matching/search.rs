//! Chunks matched with channels, instant by instant.
//!
//! Whenever links are free, every rank takes over the channels to it what their sources have and it has not, no chunk
//! twice. For one rank that is a bipartite matching of channels and chunks, which is made as large as it can be by
//! augmenting paths. Among the chunks that a channel could carry the one with the fewest copies is taken, or the one
//! that has come farthest; where several are equal, a seed decides.
//!
//! *Folded:* where the translations of a grid move channels onto channels, the blocks that rank r has are those of
//! rank 0, translated by r. Then rank 0 alone is looked at: a neighbour u has block b if rank 0 has b - u.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::graph::logical_links::Channels;
use opticoll_base::interrupt;
use opticoll_fabric::network::translations::Translations;

/// What is to be spread: so many pieces of a block of each rank, or of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    pub(super) pieces: u32,
    /// `None`: every rank has a block.
    pub(super) root: Option<u32>,
}

/// When channels carry chunks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// All in steps. A link carries as many chunks in a step as its rate is times that of the slowest; where a
    /// number of steps is given, as many times that as the chunks left need.
    Steps {
        /// The number of steps, and how many times more than needed on average may go in each.
        within: Option<(u32, f64)>,
    },
    /// Each when its links are free, for its latency and so many bytes.
    Clock {
        /// Of a chunk.
        bytes: u64,
    },
}

/// Which chunk goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Rarest,
    Farthest,
}

/// A chunk over a channel in a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    pub(super) step: u32,
    pub(super) channel: u32,
    pub(super) chunk: u32,
}

/// What was found.
pub(super) struct Found {
    /// In the order of steps.
    pub(super) deliveries: Vec<Delivery>,
    pub(super) steps: u32,
    /// Of steps the chunks that the slowest links carry in all; of a clock the time (ps).
    pub(super) cost: u64,
}

/// Candidates that are compared for a channel.
const SAMPLES: usize = 16;

struct Search<'a> {
    channels: &'a Channels,
    distances: &'a [u16],
    spread: Spread,
    first: First,
    random: Pcg64Mcg,
    /// Of ranks that are looked at.
    rows: u32,
    words: usize,
    /// By rank and chunk, a bit: has it; has it or gets it.
    here: Vec<u64>,
    coming: Vec<u64>,
    /// By rank, chunks that it has, and those that it may not have yet.
    held: Vec<Vec<u32>>,
    missing: Vec<Vec<u32>>,
    left: Vec<u32>,
    copies: Vec<u32>,
    /// By channel to rank 0 and block: the block as its source sees it, and back. Empty where nothing is folded.
    seen: Vec<Vec<u32>>,
    unseen: Vec<Vec<u32>>,
    /// What this instant has assigned to the rank at hand: channel, chunk.
    assigned: Vec<(u32, u32)>,
    /// By channel: the last change of assignments for which it was tried, and how many there were.
    tried: Vec<u64>,
    changes: u64,
}

/// The blocks' translations, if a spread can be folded.
pub(super) fn translations<'a>(
    channels: &'a Channels,
    spread: &Spread,
) -> Option<&'a Translations> {
    let grid = channels.translations.as_ref();
    grid.filter(|_| spread.root.is_none())
}

/// Matches until every rank has every chunk; `None` where that cannot be, or not in the steps given.
pub(super) fn search(
    channels: &Channels,
    distances: &[u16],
    spread: Spread,
    pace: Pace,
    first: First,
    seed: u64,
) -> Option<Found> {
    let mut search = Search::new(channels, distances, spread, first, seed);
    match pace {
        Pace::Steps { within } => search.in_steps(within),
        Pace::Clock { bytes } => search.by_clock(bytes),
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
        channels: &'a Channels,
        distances: &'a [u16],
        spread: Spread,
        first: First,
        seed: u64,
    ) -> Search<'a> {
        let ranks = channels.ranks;
        let blocks = if spread.root.is_some() { 1 } else { ranks };
        let chunks = blocks * spread.pieces;
        let words = (chunks as usize).div_ceil(64);
        let folded = translations(channels, &spread);
        let rows = if folded.is_some() { 1 } else { ranks };
        let table = |back: bool| -> Vec<Vec<u32>> {
            let Some(grid) = folded else {
                return Vec::new();
            };
            let own = channels.into(0);
            let of = |channel: u32| {
                let from = channels.all[channel as usize].from;
                (0..ranks)
                    .map(|block| grid.moved(block, from, back))
                    .collect()
            };
            own.map(of).collect()
        };
        let mut search = Search {
            channels,
            distances,
            spread,
            first,
            random: Pcg64Mcg::seed_from_u64(seed),
            rows,
            words,
            here: vec![0; rows as usize * words],
            coming: vec![0; rows as usize * words],
            held: vec![Vec::new(); rows as usize],
            missing: vec![Vec::new(); rows as usize],
            left: vec![0; rows as usize],
            copies: vec![1; chunks as usize],
            seen: table(true),
            unseen: table(false),
            assigned: Vec::new(),
            tried: vec![0; channels.all.len()],
            changes: 0,
        };
        for rank in 0..rows {
            for chunk in 0..chunks {
                if spread.root.unwrap_or(chunk / spread.pieces) == rank {
                    set(&mut search.coming, words, rank, chunk);
                    search.arrive(rank, chunk);
                } else {
                    search.missing[rank as usize].push(chunk);
                    search.left[rank as usize] += 1;
                }
            }
        }
        search
    }

    fn arrive(&mut self, rank: u32, chunk: u32) {
        set(&mut self.here, self.words, rank, chunk);
        self.held[rank as usize].push(chunk);
    }

    /// The source of a channel among the rows, and a chunk as it sees it.
    fn source(&self, channel: u32) -> u32 {
        match self.seen.is_empty() {
            true => self.channels.all[channel as usize].from,
            false => 0,
        }
    }

    fn moved(&self, table: &[Vec<u32>], channel: u32, chunk: u32) -> u32 {
        let Some(blocks) = table.get(channel as usize) else {
            return chunk;
        };
        let pieces = self.spread.pieces;
        blocks[(chunk / pieces) as usize] * pieces + chunk % pieces
    }

    fn source_has(&self, channel: u32, chunk: u32) -> bool {
        let seen = self.moved(&self.seen, channel, chunk);
        is_set(&self.here, self.words, self.source(channel), seen)
    }

    /// The less, the sooner.
    fn key(&self, to: u32, chunk: u32) -> u32 {
        match self.first {
            First::Rarest => self.copies[chunk as usize],
            First::Farthest => {
                let origin = self.spread.root.unwrap_or(chunk / self.spread.pieces);
                let at = origin as usize * self.channels.ranks as usize + to as usize;
                u32::from(u16::MAX - self.distances[at])
            }
        }
    }

    /// A chunk for a channel that the rank at its end neither has nor gets.
    fn pick(&mut self, channel: u32) -> Option<u32> {
        let to = self.channels.all[channel as usize].to;
        let source = self.source(channel) as usize;
        let mut best: Option<(u32, u32)> = None;
        let mut samples = 0;
        let take = |best: &mut Option<(u32, u32)>, key: u32, chunk: u32| {
            if best.is_none_or(|(least, _)| key < least) {
                *best = Some((key, chunk));
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
                let chunk = self.moved(&self.unseen, channel, chunk);
                if !is_set(&self.coming, self.words, to, chunk) {
                    take(&mut best, self.key(to, chunk), chunk);
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
                if self.source_has(channel, chunk) {
                    take(&mut best, self.key(to, chunk), chunk);
                    samples += 1;
                    if samples == SAMPLES {
                        break;
                    }
                }
            }
        }
        best.map(|(_, chunk)| chunk)
    }

    /// Gives a channel a chunk, if need be one that another channel of this instant then gives up for another.
    fn assign(&mut self, channel: u32) -> bool {
        let to = self.channels.all[channel as usize].to;
        if let Some(chunk) = self.pick(channel) {
            set(&mut self.coming, self.words, to, chunk);
            self.copies[chunk as usize] += 1;
            self.left[to as usize] -= 1;
            self.assigned.push((channel, chunk));
            return true;
        }
        self.changes += 1;
        self.augment(channel)
    }

    fn augment(&mut self, channel: u32) -> bool {
        self.tried[channel as usize] = self.changes;
        for at in 0..self.assigned.len() {
            let (other, chunk) = self.assigned[at];
            if self.tried[other as usize] == self.changes || !self.source_has(channel, chunk) {
                continue;
            }
            self.assigned[at].0 = channel;
            let found = match self.pick(other) {
                Some(chunk) => {
                    let to = self.channels.all[channel as usize].to;
                    set(&mut self.coming, self.words, to, chunk);
                    self.copies[chunk as usize] += 1;
                    self.left[to as usize] -= 1;
                    self.assigned.push((other, chunk));
                    true
                }
                None => self.augment(other),
            };
            if found {
                return true;
            }
            self.assigned[at].0 = other;
        }
        false
    }

    /// Takes the ranks in a random order, each with its channels in a random order.
    fn shuffled(&mut self, order: &mut [u32]) {
        for at in (1..order.len()).rev() {
            let other = self.random.random_range(0..=at);
            order.swap(at, other);
        }
    }

    fn in_steps(&mut self, within: Option<(u32, f64)>) -> Option<Found> {
        let channels = self.channels;
        let slowest = channels
            .all
            .iter()
            .map(|one| one.rate)
            .min()
            .unwrap_or(1)
            .max(1);
        let shares: Vec<u64> = channels.rates.iter().map(|rate| rate / slowest).collect();
        let slots_into: Vec<u64> = (0..self.rows)
            .map(|rank| slots_into(channels, &shares, rank))
            .collect();
        let mut free = vec![0u64; shares.len()];
        let mut order: Vec<u32> = (0..self.rows).collect();
        let (mut deliveries, mut arrived) = (Vec::new(), Vec::new());
        let (mut step, mut cost) = (0u32, 0u64);
        while self.left.iter().any(|&left| left > 0) {
            interrupt::check();
            let mut turns = 1;
            if let Some((steps, more)) = within {
                let to_come = u64::from(steps.checked_sub(step).filter(|to_come| *to_come > 0)?);
                let needed = self.left.iter().zip(&slots_into);
                let needed =
                    needed.map(|(&left, slots)| u64::from(left).div_ceil((slots * to_come).max(1)));
                turns = (needed.max().unwrap_or(1) as f64 * more).ceil() as u64;
            }
            for (free, share) in free.iter_mut().zip(&shares) {
                *free = share * turns;
            }
            self.shuffled(&mut order);
            let mut used = 0;
            for &to in &order {
                interrupt::check();
                let mut own: Vec<u32> = channels.into(to).collect();
                self.assigned.clear();
                // Turn by turn, so that none takes what others need.
                while self.left[to as usize] > 0 && !own.is_empty() {
                    self.shuffled(&mut own);
                    own.retain(|&channel| {
                        let route = channels.route(channel);
                        let can = route.iter().all(|&link| free[link as usize] > 0)
                            && self.assign(channel);
                        if can {
                            for &link in route {
                                free[link as usize] -= 1;
                            }
                        }
                        can
                    });
                }
                for &(channel, chunk) in &self.assigned {
                    deliveries.push(Delivery {
                        step,
                        channel,
                        chunk,
                    });
                    arrived.push((to, chunk));
                    let slots = channels.route(channel).iter().map(|&link| {
                        let link = link as usize;
                        (turns * shares[link] - free[link]).div_ceil(shares[link].max(1))
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
        Some(Found {
            deliveries,
            steps: step,
            cost,
        })
    }

    fn by_clock(&mut self, bytes: u64) -> Option<Found> {
        let channels = self.channels;
        let duration = |channel: u32| {
            let channel = &channels.all[channel as usize];
            let moving = u128::from(bytes) * 8_000_000_000_000 / u128::from(channel.rate.max(1));
            channel
                .latency
                .saturating_add(u64::try_from(moving).unwrap_or(u64::MAX))
        };
        let links = channels.rates.len();
        let mut free = vec![0u64; links];
        // The step of the last flow of each link, from 1 on, and of each chunk that a rank has.
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
            self.shuffled(&mut order);
            for &to in &order {
                interrupt::check();
                if self.left[to as usize] == 0 {
                    continue;
                }
                let mut own: Vec<u32> = channels.into(to).collect();
                self.shuffled(&mut own);
                self.assigned.clear();
                // The fastest first, since what they carry others need not.
                own.sort_by_key(|&channel| duration(channel));
                for channel in own {
                    let route = channels.route(channel);
                    if route.iter().all(|&link| free[link as usize] <= now) && self.assign(channel)
                    {
                        let end = now.saturating_add(duration(channel));
                        for &link in route {
                            free[link as usize] = end;
                        }
                    }
                }
                for at in 0..self.assigned.len() {
                    let (channel, chunk) = self.assigned[at];
                    let seen = self.moved(&self.seen, channel, chunk);
                    let held = held_steps[self.source(channel) as usize * chunks + seen as usize];
                    let route = channels.route(channel);
                    let before = route.iter().map(|&link| link_steps[link as usize]).max();
                    let step = held.max(before.unwrap_or(0)) + 1;
                    for &link in route {
                        link_steps[link as usize] = step;
                    }
                    let end = now.saturating_add(duration(channel));
                    deliveries.push(Delivery {
                        step: step - 1,
                        channel,
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
        if self.left.iter().any(|&left| left > 0) {
            return None;
        }
        deliveries.sort_by_key(|one| one.step);
        Some(Found {
            deliveries,
            steps,
            cost: last,
        })
    }
}

/// The chunks that a rank can get in a step of one turn.
pub(super) fn slots_into(channels: &Channels, shares: &[u64], rank: u32) -> u64 {
    let own = channels.into(rank);
    let mut last: Vec<u32> = own
        .filter_map(|channel| channels.route(channel).last().copied())
        .collect();
    last.sort_unstable();
    last.dedup();
    last.into_iter().map(|link| shares[link as usize]).sum()
}
