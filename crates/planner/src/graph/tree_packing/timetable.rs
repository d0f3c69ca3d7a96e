//! Which piece goes over which edge of its tree in which step.
//!
//! A step is as long as the slowest link in use needs for m pieces. In each step every link may
//! carry as many pieces as it has time for; m is the least number for which little is lost where a
//! link has time for no whole number. A piece goes over an edge in a step after that in which it
//! came to its start. First goes the piece with the longest way before it (Hu, Operations Research
//! 9, 1961: highest level first), or over routes with the link that has the most work before it, so
//! that links are not idle at the end; or the piece that is due first in a steady flow.
//!
//! In a step each link has no more pieces than it can carry in the step's time. So the step takes
//! no longer if links share their rates among pieces. They share them among messages, and a message
//! has all pieces that go from one rank to another in the step: where a full link carries messages
//! of unequal numbers of pieces, the step may take some percent longer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::channels::Channels;
use super::pack::Tree;
use opticoll_base::interrupt;
use opticoll_base::units::Time;
use opticoll_fabric::network::Network;
use opticoll_plan::collective::Collective;
use opticoll_plan::schedule::{Schedule, Transfer};

/// The pieces that wait for a channel, the one with the longest way before it first.
type Waiting = BinaryHeap<(u32, Reverse<(u32, u32)>)>;

/// What is known before the steps are made.
pub(super) struct Timetable<'a> {
    pub(super) network: &'a dyn Network,
    pub(super) trees: &'a [Tree],
    pub(super) channels: &'a Channels,
    /// Those back, towards the root, where pieces are first summed up along the same trees.
    pub(super) up: Option<&'a Channels>,
}

/// Steps, and the channel of each transfer.
pub(super) struct Timed {
    pub(super) schedule: Schedule,
    pub(super) channels: Vec<u32>,
}

/// Which of the pieces that wait goes first.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// That whose route has the link with the most work before it, then that with the longest way.
    MostWork,
    /// That with the most edges before it.
    LongestWay,
    /// That which a steady flow of all trees would have sent first: if every link carries a piece
    /// of each of its trees in a period, it carries all of them in the least time.
    Due,
}

/// The pieces that links have yet to carry.
struct Links {
    /// Those in use, with the pieces that each may carry in a step.
    used: Vec<(u32, u128)>,
    /// By link: what a piece takes, in thousandths of what it takes on the fastest link in use.
    of_piece: Vec<u64>,
    /// By link: pieces that it has yet to carry.
    remaining: Vec<u128>,
    /// By link: pieces that it may yet carry in this step.
    room: Vec<u128>,
    /// By link: the work before it when the step began.
    ahead: Vec<u64>,
}

/// A tree by its ranks.
struct Below {
    /// The ranks that are sent to, and by which channels; those of one sender stand together.
    next: Vec<(u32, u32)>,
    /// By rank: where its own begin in `next`, and one entry more.
    first: Vec<u32>,
    /// By rank: edges below it, at most.
    height: Vec<u32>,
    /// By rank: edges from the root to it.
    depth: Vec<u32>,
}

impl Timetable<'_> {
    /// Steps in which links are busy; `first_chunk` says the first of the chunks of a tree. Of all
    /// orders that which takes the fewest steps.
    pub(super) fn schedule(
        &self,
        collective: Collective,
        chunks: u32,
        first_chunk: impl Fn(usize) -> u32,
    ) -> Timed {
        let ranks = self.network.ranks() as usize;
        let trees = self.trees.iter().zip(&self.channels.of);
        let below: Vec<Below> = trees
            .map(|(tree, channels)| Below::of(tree, channels, ranks))
            .collect();
        let made =
            |order, limit| self.in_order(order, &below, collective, chunks, &first_chunk, limit);
        let mut best = made(Order::MostWork, usize::MAX);
        for order in [Order::LongestWay, Order::Due] {
            let steps = best.schedule.steps();
            if chunks > 1 || matches!(order, Order::LongestWay) {
                let other = made(order, steps);
                if other.schedule.steps() < steps {
                    best = other;
                }
            }
        }
        best
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

    /// The steps in that order, the first `limit` where it takes more.
    fn in_order(
        &self,
        order: Order,
        below: &[Below],
        collective: Collective,
        chunks: u32,
        first_chunk: impl Fn(usize) -> u32,
        limit: usize,
    ) -> Timed {
        let ranks = self.network.ranks() as usize;
        let all = &self.channels.all;
        let loads = self.loads(chunks);
        let mut links = Links::new(&loads, self.network);
        let mut waiting: Vec<Waiting> = vec![Waiting::new(); all.len()];
        // Channels on which pieces wait, each once.
        let mut busy: Vec<u32> = Vec::new();
        let send = |waiting: &mut [Waiting], busy: &mut Vec<u32>, tree: u32, chunk, from: u32| {
            let own = &below[tree as usize];
            for &(to, channel) in own.next(from) {
                let first = match order {
                    Order::MostWork | Order::LongestWay => own.height[to as usize],
                    // The first chunk comes to depth d in period d, the next ones a period later
                    // each.
                    Order::Due => u32::MAX - chunk - own.depth[to as usize],
                };
                let pieces = &mut waiting[channel as usize];
                if pieces.is_empty() {
                    busy.push(channel);
                }
                pieces.push((first, Reverse((chunk, tree))));
            }
        };
        for (number, tree) in (0u32..).zip(self.trees) {
            for chunk in 0..chunks {
                send(&mut waiting, &mut busy, number, chunk, tree.root);
            }
        }
        let mut timed = Timed {
            schedule: Schedule::new(collective),
            channels: Vec::new(),
        };
        let mut open = Vec::new();
        let mut arrived = Vec::new();
        let mut step = 0usize;
        while !busy.is_empty() && step < limit {
            interrupt::check();
            timed.schedule.begin_step();
            links.begin_step();
            open.clear();
            open.extend(busy.iter().filter_map(|&channel| {
                let (first, _) = waiting[channel as usize].peek()?;
                let (from, to) = all[channel as usize].ends;
                let turn = (to as usize + ranks - from as usize + step) % ranks;
                let ahead = match order {
                    Order::MostWork => links.ahead(&all[channel as usize].route),
                    Order::LongestWay | Order::Due => 0,
                };
                // Two numbers compare faster than five, and sorting is most of the work of a step.
                let key = u128::from(!ahead) << 64 | u128::from(!*first) << 32 | turn as u128;
                Some((key, u64::from(from) << 32 | u64::from(channel)))
            }));
            open.sort_unstable();
            // One piece of each channel in turn, as long as links have time.
            while !open.is_empty() {
                open.retain(|&(_, channel)| {
                    let channel = channel as u32;
                    let one = &all[channel as usize];
                    if !links.have_room(&one.route) {
                        return false;
                    }
                    let Some((_, Reverse((chunk, tree)))) = waiting[channel as usize].pop() else {
                        return false;
                    };
                    links.carry(&one.route);
                    timed.push(first_chunk(tree as usize) + chunk, one.ends, channel);
                    arrived.push((tree, chunk, one.ends.1));
                    true
                });
            }
            busy.retain(|channel| !waiting[*channel as usize].is_empty());
            for (tree, chunk, at) in arrived.drain(..) {
                send(&mut waiting, &mut busy, tree, chunk, at);
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
pub(super) const LONGEST_STEP: u128 = 16;

/// The pieces that links carry in a step at most, by the pieces that they have to carry and their
/// rates.
///
/// In a step of m pieces of the slowest link, of rate s, a link of rate r carries floor(m r / s).
/// If the busiest link needs the time t for all, a link with n pieces should carry n m / (s t) in a
/// step. The least m is taken with which all do but for 2 %, or that comes nearest.
fn pieces_in_step(loads: &[(u128, u128)]) -> Vec<u128> {
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

    /// Sums a piece up, against the direction of an edge.
    pub(super) fn push_up(&mut self, chunk: u32, (from, to): (u32, u32), channel: u32) {
        self.schedule.push(Transfer::reduce(chunk, to, from));
        self.channels.push(channel);
    }

    /// The same backwards: steps in reverse order, source and destination exchanged.
    pub(super) fn reversed(&self, collective: Collective) -> Timed {
        let steps = (0..self.schedule.steps()).rev();
        let channels = steps.flat_map(|step| &self.channels[self.schedule.step(step)]);
        Timed {
            schedule: self.schedule.reversed(collective),
            channels: channels.copied().collect(),
        }
    }
}

impl Links {
    fn new(loads: &[(u32, (u128, u128))], network: &dyn Network) -> Links {
        let links = network.links();
        let in_step = pieces_in_step(&loads.iter().map(|(_, load)| *load).collect::<Vec<_>>());
        let mut remaining = vec![0; links.len()];
        let mut of_piece = vec![0; links.len()];
        let fastest = loads.iter().map(|(_, (_, rate))| *rate).max().unwrap_or(1);
        for (link, (pieces, rate)) in loads {
            remaining[*link as usize] = *pieces;
            of_piece[*link as usize] = (1000 * fastest / rate) as u64;
        }
        Links {
            used: loads.iter().map(|(link, _)| *link).zip(in_step).collect(),
            of_piece,
            remaining,
            room: vec![0; links.len()],
            ahead: vec![0; links.len()],
        }
    }

    fn begin_step(&mut self) {
        for &(link, pieces) in &self.used {
            let link = link as usize;
            self.room[link] = pieces;
            self.ahead[link] = self.remaining[link] as u64 * self.of_piece[link];
        }
    }

    fn ahead(&self, route: &[u32]) -> u64 {
        let ahead = route.iter().map(|link| self.ahead[*link as usize]);
        ahead.max().unwrap_or(0)
    }

    fn have_room(&self, route: &[u32]) -> bool {
        route.iter().all(|link| self.room[*link as usize] > 0)
    }

    /// Takes a piece along.
    fn carry(&mut self, route: &[u32]) {
        for link in route {
            self.room[*link as usize] -= 1;
            self.remaining[*link as usize] -= 1;
        }
    }
}

impl Below {
    fn of(tree: &Tree, channels: &[u32], ranks: usize) -> Below {
        let mut first = vec![0; ranks + 1];
        let mut depth = vec![0; ranks];
        let mut height = vec![0; ranks];
        for &(from, to) in &tree.edges {
            depth[to as usize] = depth[from as usize] + 1;
            first[from as usize + 1] += 1;
        }
        for rank in 0..ranks {
            first[rank + 1] += first[rank];
        }
        let mut free = first.clone();
        let mut next = vec![(0, 0); tree.edges.len()];
        for (&(from, to), &channel) in tree.edges.iter().zip(channels).rev() {
            let above = height[to as usize] + 1;
            height[from as usize] = above.max(height[from as usize]);
            let place = &mut free[from as usize];
            next[*place as usize] = (to, channel);
            *place += 1;
        }
        Below {
            next,
            first,
            height,
            depth,
        }
    }

    /// The ranks that one sends to, and by which channels.
    fn next(&self, rank: u32) -> &[(u32, u32)] {
        let rank = rank as usize;
        &self.next[self.first[rank] as usize..self.first[rank + 1] as usize]
    }
}
