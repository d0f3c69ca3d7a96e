//! Which piece goes over which edge of its tree in which step.
//!
//! A step is as long as the slowest link in use needs for m pieces. In each step every link may carry as many pieces as
//! it has time for; m is the least number for which little is lost where a link has time for no whole number. A piece goes over an edge in a
//! step after that in which it came to its start. Pieces go first over routes with the link that has the most time of
//! work before it, and among those the piece with the longest way before it (Hu, Operations Research 9, 1961: highest
//! level first), so that links are not idle at the end; or the piece that is due first in a steady flow.
//!
//! In a step each link has no more pieces than it can carry in the step's time. So the step takes no longer if links share
//! their rates among pieces. They share them among messages, and a message has all pieces that go from one rank to another in
//! the step: where a full link carries messages of unequal numbers of pieces, the step may take some percent longer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::channels::Channels;
use super::pack::Tree;
use crate::collective::Collective;
use crate::interrupt;
use crate::network::Network;
use crate::schedule::{Schedule, Transfer};
use crate::units::Time;

/// The pieces that wait for a channel, the one with the longest way before it first.
type Waiting = BinaryHeap<(u32, Reverse<(u32, u32)>)>;

/// What is known before the steps are made.
pub(super) struct Timetable<'a> {
    pub(super) network: &'a dyn Network,
    pub(super) trees: &'a [Tree],
    pub(super) channels: &'a Channels,
}

/// Steps, and the channel of each transfer; without channels where all go by the routes of the fabric.
pub(super) struct Timed {
    pub(super) schedule: Schedule,
    pub(super) channels: Vec<u32>,
}

/// Which of the pieces that wait goes first.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// That with the most edges before it.
    LongestWay,
    /// That which a steady flow of all trees would have sent first: if every link carries a piece of each of its trees in a
    /// period, it carries all of them in the least time.
    Due,
}

/// A tree by its ranks.
struct Below {
    /// By rank: the ranks that it sends to, and by which channels.
    next: Vec<Vec<(u32, u32)>>,
    /// By rank: edges below it, at most.
    height: Vec<u32>,
    /// By rank: edges from the root to it.
    depth: Vec<u32>,
}

impl Timetable<'_> {
    /// Steps in which links are busy; `first_chunk` says the first of the chunks of a tree. Of several chunks those with the
    /// longest way go first, or those that are due first, whichever takes fewer steps.
    pub(super) fn schedule(
        &self,
        collective: Collective,
        chunks: u32,
        first_chunk: impl Fn(usize) -> u32,
    ) -> Timed {
        let by_way = self.in_order(Order::LongestWay, collective, chunks, &first_chunk);
        if chunks == 1 {
            return by_way;
        }
        let by_due = self.in_order(Order::Due, collective, chunks, &first_chunk);
        match by_due.schedule.steps() < by_way.schedule.steps() {
            true => by_due,
            false => by_way,
        }
    }

    /// Each link in use, with the pieces that it carries in all, and its rate.
    fn loads(&self, chunks: u32) -> Vec<(u32, (u128, u128))> {
        let links = self.network.links();
        let mut pieces: BTreeMap<u32, u128> = BTreeMap::new();
        for channel in self.channels.of.iter().flatten() {
            for link in &self.channels.all[*channel as usize].route {
                *pieces.entry(*link).or_default() += u128::from(chunks);
            }
        }
        let loads = pieces.into_iter();
        let loads = loads.map(|(link, pieces)| {
            let rate = links[link as usize].rate.bits_per_second();
            (link, (pieces, u128::from(rate)))
        });
        loads.collect()
    }

    /// What the steps take at least if each one takes as long as the message of the least latency.
    pub(super) fn latency_of_steps(&self, chunks: u32) -> Time {
        let loads: Vec<(u128, u128)> = self
            .loads(chunks)
            .into_iter()
            .map(|(_, load)| load)
            .collect();
        let in_step = pieces_in_step(&loads);
        let steps = loads
            .iter()
            .zip(&in_step)
            .map(|(load, room)| load.0.div_ceil((*room).max(1)));
        let links = self.network.links();
        let latency = |route: &[u32]| -> u64 {
            route
                .iter()
                .map(|link| links[*link as usize].latency.ps())
                .sum()
        };
        let least = self
            .channels
            .all
            .iter()
            .map(|one| latency(&one.route))
            .min();
        let ps = steps.max().unwrap_or(0) * u128::from(least.unwrap_or(0));
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    fn in_order(
        &self,
        order: Order,
        collective: Collective,
        chunks: u32,
        first_chunk: impl Fn(usize) -> u32,
    ) -> Timed {
        let ranks = self.network.ranks() as usize;
        let trees = self.trees.iter().zip(&self.channels.of);
        let below: Vec<Below> = trees
            .map(|(tree, channels)| Below::of(tree, channels, ranks))
            .collect();
        let all = &self.channels.all;
        let (used, loads): (Vec<u32>, Vec<(u128, u128)>) = self.loads(chunks).into_iter().unzip();
        let links = self.network.links();
        let rate = |link: u32| u128::from(links[link as usize].rate.bits_per_second());
        let mut remaining = vec![0u128; links.len()];
        for (link, load) in used.iter().zip(&loads) {
            // Pieces that each link has yet to carry.
            remaining[*link as usize] = load.0;
        }
        let in_step = pieces_in_step(&loads);
        let mut room = vec![0u128; remaining.len()];
        let mut waiting: BTreeMap<u32, Waiting> = BTreeMap::new();
        let send = |waiting: &mut BTreeMap<u32, Waiting>, tree: u32, chunk: u32, from: u32| {
            let own = &below[tree as usize];
            for &(to, channel) in &own.next[from as usize] {
                let first = match order {
                    Order::LongestWay => own.height[to as usize],
                    // The first chunk comes to depth d in period d, the next ones a period later each.
                    Order::Due => u32::MAX - chunk - own.depth[to as usize],
                };
                let key = (first, Reverse((chunk, tree)));
                waiting.entry(channel).or_default().push(key);
            }
        };
        for (number, tree) in (0u32..).zip(self.trees) {
            for chunk in 0..chunks {
                send(&mut waiting, number, chunk, tree.root);
            }
        }
        let mut timed = Timed {
            schedule: Schedule::new(collective),
            channels: Vec::new(),
        };
        let mut step = 0usize;
        while !waiting.is_empty() {
            interrupt::check();
            timed.schedule.begin_step();
            for (link, pieces) in used.iter().zip(&in_step) {
                room[*link as usize] = *pieces;
            }
            let mut open: Vec<(u32, u32)> = waiting
                .iter()
                .filter_map(|(channel, pieces)| Some((pieces.peek()?.0, *channel)))
                .collect();
            open.sort_by_cached_key(|&(height, channel)| {
                let (from, to) = all[channel as usize].ends;
                let route = all[channel as usize].route.iter();
                // A millionth of what a bit per second carries is fine enough for an order.
                let ahead = route.map(|link| remaining[*link as usize] * 1_000_000 / rate(*link));
                let turn = (to as usize + ranks - from as usize + step) % ranks;
                (Reverse(ahead.max()), Reverse(height), turn, from, channel)
            });
            let mut arrived = Vec::new();
            // One piece of each channel in turn, as long as links have time.
            while !open.is_empty() {
                open.retain(|&(_, channel)| {
                    let (from, to) = all[channel as usize].ends;
                    let route = &all[channel as usize].route;
                    if route.iter().any(|link| room[*link as usize] == 0) {
                        return false;
                    }
                    let Some(pieces) = waiting.get_mut(&channel) else {
                        return false;
                    };
                    let Some((_, Reverse((chunk, tree)))) = pieces.pop() else {
                        return false;
                    };
                    for link in route {
                        room[*link as usize] -= 1;
                        remaining[*link as usize] -= 1;
                    }
                    timed.push(first_chunk(tree as usize) + chunk, (from, to), channel);
                    arrived.push((tree, chunk, to));
                    true
                });
            }
            waiting.retain(|_, pieces| !pieces.is_empty());
            for (tree, chunk, at) in arrived {
                send(&mut waiting, tree, chunk, at);
            }
            step += 1;
        }
        timed
    }

    pub(super) fn height(&self) -> usize {
        self.trees.iter().map(Tree::height).max().unwrap_or(1)
    }
}

/// The most pieces of the slowest link in a step.
const LONGEST_STEP: u128 = 16;

/// The pieces that links carry in a step at most, by the pieces that they have to carry and their rates.
///
/// In a step of m pieces of the slowest link, of rate s, a link of rate r carries floor(m r / s). If the busiest link needs
/// the time t for all, a link with n pieces should carry n m / (s t) in a step. The least m is taken with
/// which all do but for 2 %, or that comes nearest.
pub(super) fn pieces_in_step(loads: &[(u128, u128)]) -> Vec<u128> {
    let used = loads.iter().filter(|load| load.0 > 0);
    let slowest = used.map(|load| load.1).min().unwrap_or(1).max(1);
    let busiest = loads
        .iter()
        .copied()
        .max_by(|one, other| (one.0 * other.1).cmp(&(other.0 * one.1)));
    let (most, rate) = busiest.unwrap_or((1, 1));
    // Of what is wanted in a step of m pieces, in thousandths.
    let carried = |m: u128| {
        let shares = loads.iter().map(|&(pieces, own)| {
            let wanted = pieces * rate * m;
            (m * own / slowest * slowest * most * 1000)
                .checked_div(wanted)
                .unwrap_or(1000)
        });
        shares.min().unwrap_or(1000).min(1000)
    };
    let mut length = 1;
    for m in 1..=LONGEST_STEP {
        if carried(m) > carried(length) {
            length = m;
        }
        if carried(length) >= 980 {
            break;
        }
    }
    loads.iter().map(|load| length * load.1 / slowest).collect()
}

impl Timed {
    pub(super) fn push(&mut self, chunk: u32, (from, to): (u32, u32), channel: u32) {
        self.schedule.push(Transfer::copy(chunk, from, to));
        self.channels.push(channel);
    }

    /// The same backwards: steps in reverse order, source and destination exchanged.
    pub(super) fn reversed(&self, collective: Collective) -> Timed {
        let steps = (0..self.schedule.steps()).rev();
        let channels = steps.flat_map(|step| self.channels.get(self.schedule.step(step)));
        Timed {
            schedule: self.schedule.reversed(collective),
            channels: channels.flatten().copied().collect(),
        }
    }
}

impl Below {
    fn of(tree: &Tree, channels: &[u32], ranks: usize) -> Below {
        let mut below = Below {
            next: vec![Vec::new(); ranks],
            height: vec![0; ranks],
            depth: vec![0; ranks],
        };
        for &(from, to) in &tree.edges {
            below.depth[to as usize] = below.depth[from as usize] + 1;
        }
        for (&(from, to), &channel) in tree.edges.iter().zip(channels).rev() {
            let height = below.height[to as usize] + 1;
            let own = &mut below.height[from as usize];
            *own = (*own).max(height);
            below.next[from as usize].push((to, channel));
        }
        below
    }
}
