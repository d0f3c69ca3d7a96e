//! Timetables: the step in which each piece crosses each edge of its tree.
//!
//! A step is as long as the slowest used link needs for m pieces. In each step a link may carry as
//! many pieces as it has time for; m is the smallest number with which rounding to whole pieces
//! loses little. A piece crosses an edge after the step in which it reached the edge's parent. One
//! of three rules decides which waiting piece goes first: the piece with the longest remaining path
//! (Hu, Operations Research 9, 1961: highest level first); the piece over the link with the most
//! remaining work, so that links are not idle at the end; or the piece that is due first in a
//! steady flow.
//!
//! In a step no link has more pieces than it can carry in the duration of the step. So the step
//! takes no longer if links share their rates among pieces. However, links share their rates among
//! messages, and a message contains all pieces from one rank to another rank in the step. If a
//! fully used link carries messages with different numbers of pieces, the step may take a few
//! percent longer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::edge_routes::EdgeRoutes;
use super::packing::Tree;
use opticoll_base::interrupt;
use opticoll_base::units::Time;
use opticoll_fabric::network::Network;
use opticoll_plan::collective::Collective;
use opticoll_plan::schedule::{Schedule, Transfer};

/// Pieces that wait for a route, in order of priority, as (priority, (chunk, tree)).
type Waiting = BinaryHeap<(u32, Reverse<(u32, u32)>)>;

pub(super) struct Timetable<'a> {
    pub(super) network: &'a dyn Network,
    pub(super) trees: &'a [Tree],
    pub(super) edge_routes: &'a EdgeRoutes,
    /// Routes towards the root, if pieces are first summed up along the same trees.
    pub(super) up: Option<&'a EdgeRoutes>,
}

/// A schedule, and the index of the route of each transfer.
pub(super) struct TimedSchedule {
    pub(super) schedule: Schedule,
    pub(super) edge_routes: Vec<u32>,
}

/// Rule for the order of waiting pieces.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// First the piece over the link with the most remaining work, then the piece with the longest
    /// remaining path.
    MostWork,
    /// First the piece with the longest remaining path, in edges.
    LongestWay,
    /// First the piece that a steady flow of all trees would send first. In such a flow, every link
    /// carries one piece of each of its trees per period, which needs the least time.
    Due,
}

struct Links {
    /// Used links, as (link, maximum number of pieces per step).
    used: Vec<(u32, u128)>,
    /// Time of a piece on each link, in thousandths of the time on the fastest used link.
    piece_time: Vec<u64>,
    /// Number of pieces that each link has yet to carry.
    remaining: Vec<u128>,
    /// Number of pieces that each link can still carry in the current step.
    room: Vec<u128>,
    /// Remaining work of each link at the beginning of the step: pieces times `piece_time`.
    ahead: Vec<u64>,
}

struct TreeIndex {
    /// Edges as (child, index of the route to the child), sorted by parent.
    next: Vec<(u32, u32)>,
    /// Index in `next` of the first child of each rank; indexed by rank. The last entry is the
    /// length of `next`.
    first: Vec<u32>,
    /// Number of edges on the longest path below each rank.
    height: Vec<u32>,
    /// Number of edges from the root to each rank.
    depth: Vec<u32>,
}

impl Timetable<'_> {
    /// Returns the schedule of the rule that needs the fewest steps. `chunks` is the number of
    /// chunks per tree, and `first_chunk` returns the index of a tree's first chunk in the
    /// collective.
    pub(super) fn schedule(
        &self,
        collective: Collective,
        chunks: u32,
        first_chunk: impl Fn(usize) -> u32,
    ) -> TimedSchedule {
        let ranks = self.network.ranks() as usize;
        let trees = self.trees.iter().zip(&self.edge_routes.of);
        let tree_indices: Vec<TreeIndex> = trees
            .map(|(tree, edge_routes)| TreeIndex::of(tree, edge_routes, ranks))
            .collect();
        let build = |order, limit| {
            self.run_in_order(
                order,
                &tree_indices,
                collective,
                chunks,
                &first_chunk,
                limit,
            )
        };
        let mut shortest = build(Order::MostWork, usize::MAX);
        for order in [Order::LongestWay, Order::Due] {
            let steps = shortest.schedule.steps();
            if chunks > 1 || matches!(order, Order::LongestWay) {
                let other = build(order, steps);
                if other.schedule.steps() < steps {
                    shortest = other;
                }
            }
        }
        shortest
    }

    /// Returns, for each used link, (link, (total number of pieces, rate in bits per second)).
    fn loads(&self, chunks: u32) -> Vec<(u32, (u128, u128))> {
        let links = self.network.links();
        let mut pieces: BTreeMap<u32, u128> = BTreeMap::new();
        for edge_route in self.edge_routes.of.iter().flatten() {
            for link in &self.edge_routes.all[*edge_route as usize].route {
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

    /// Returns a lower estimate of the total latency of all steps: every step has the smallest
    /// latency of any route.
    pub(super) fn latency_of_steps(&self, chunks: u32) -> Time {
        let loads: Vec<(u128, u128)> = self
            .loads(chunks)
            .into_iter()
            .map(|(_, load)| load)
            .collect();
        let pieces_per_step = pieces_in_step(&loads);
        let steps = loads
            .iter()
            .zip(&pieces_per_step)
            .map(|(load, room)| load.0.div_ceil((*room).max(1)));
        let links = self.network.links();
        let latency = |route: &[u32]| -> u64 {
            route
                .iter()
                .map(|link| links[*link as usize].latency.ps())
                .sum()
        };
        let least = self
            .edge_routes
            .all
            .iter()
            .map(|edge_route| latency(&edge_route.route))
            .min();
        let ps = steps.max().unwrap_or(0) * u128::from(least.unwrap_or(0));
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Returns the schedule of the rule `order`, stopped after `limit` steps.
    fn run_in_order(
        &self,
        order: Order,
        tree_indices: &[TreeIndex],
        collective: Collective,
        chunks: u32,
        first_chunk: impl Fn(usize) -> u32,
        limit: usize,
    ) -> TimedSchedule {
        let ranks = self.network.ranks() as usize;
        let edge_routes = &self.edge_routes.all;
        let loads = self.loads(chunks);
        let mut links = Links::new(&loads, self.network);
        let mut waiting: Vec<Waiting> = vec![Waiting::new(); edge_routes.len()];
        // Routes with waiting pieces, without duplicates.
        let mut busy: Vec<u32> = Vec::new();
        let send = |waiting: &mut [Waiting], busy: &mut Vec<u32>, tree: u32, chunk, from: u32| {
            let index = &tree_indices[tree as usize];
            for &(to, edge_route) in index.next(from) {
                let first = match order {
                    Order::MostWork | Order::LongestWay => index.height[to as usize],
                    // The first chunk reaches depth d in period d. Each later chunk arrives one
                    // period later.
                    Order::Due => u32::MAX - chunk - index.depth[to as usize],
                };
                let pieces = &mut waiting[edge_route as usize];
                if pieces.is_empty() {
                    busy.push(edge_route);
                }
                pieces.push((first, Reverse((chunk, tree))));
            }
        };
        for (number, tree) in (0u32..).zip(self.trees) {
            for chunk in 0..chunks {
                send(&mut waiting, &mut busy, number, chunk, tree.root);
            }
        }
        let mut timed = TimedSchedule {
            schedule: Schedule::new(collective),
            edge_routes: Vec::new(),
        };
        let mut open = Vec::new();
        let mut arrived = Vec::new();
        let mut step = 0usize;
        while !busy.is_empty() && step < limit {
            interrupt::check();
            timed.schedule.begin_step();
            links.begin_step();
            open.clear();
            open.extend(busy.iter().filter_map(|&edge_route| {
                let (first, _) = waiting[edge_route as usize].peek()?;
                let (from, to) = edge_routes[edge_route as usize].ends;
                let turn = (to as usize + ranks - from as usize + step) % ranks;
                let ahead = match order {
                    Order::MostWork => links.ahead(&edge_routes[edge_route as usize].route),
                    Order::LongestWay | Order::Due => 0,
                };
                // Sorting takes most of the time of a step, and comparing two numbers is faster
                // than comparing five.
                let key = u128::from(!ahead) << 64 | u128::from(!*first) << 32 | turn as u128;
                Some((key, u64::from(from) << 32 | u64::from(edge_route)))
            }));
            open.sort_unstable();
            // Routes send one piece each in turn, as long as links have room.
            while !open.is_empty() {
                open.retain(|&(_, edge_route)| {
                    let edge_route = edge_route as u32;
                    let waiting_route = &edge_routes[edge_route as usize];
                    if !links.have_room(&waiting_route.route) {
                        return false;
                    }
                    let Some((_, Reverse((chunk, tree)))) = waiting[edge_route as usize].pop()
                    else {
                        return false;
                    };
                    links.carry(&waiting_route.route);
                    timed.push(
                        first_chunk(tree as usize) + chunk,
                        waiting_route.ends,
                        edge_route,
                    );
                    arrived.push((tree, chunk, waiting_route.ends.1));
                    true
                });
            }
            busy.retain(|edge_route| !waiting[*edge_route as usize].is_empty());
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

/// Maximum number of pieces that the slowest link carries in a step.
pub(super) const MAX_STEP_PIECES: u128 = 16;

/// Returns the maximum number of pieces per step for each link. `loads` lists (total number of
/// pieces, rate) per link.
///
/// In a step in which the slowest link, with rate s, carries m pieces, a link with rate r can carry
/// floor(m r / s) pieces. If the busiest link needs time t in total, a link with n pieces should
/// carry n m / (s t) pieces per step. The function uses the smallest m with which all links reach
/// 98 % of this number, or the m with which they come closest.
fn pieces_in_step(loads: &[(u128, u128)]) -> Vec<u128> {
    let used = loads.iter().filter(|load| load.0 > 0);
    let slowest = used.map(|load| load.1).min().unwrap_or(1).max(1);
    let busiest = loads
        .iter()
        .copied()
        .max_by(|one, other| (one.0 * other.1).cmp(&(other.0 * one.1)));
    let (busiest_pieces, rate) = busiest.unwrap_or((1, 1));
    // Number of pieces that a link carries in a step, divided by the number that it should carry;
    // for the link with the smallest quotient, in thousandths.
    let carried = |m: u128| {
        let shares = loads.iter().map(|&(pieces, own)| {
            let wanted = pieces * rate * m;
            (m * own / slowest * slowest * busiest_pieces * 1000)
                .checked_div(wanted)
                .unwrap_or(1000)
        });
        shares.min().unwrap_or(1000).min(1000)
    };
    let mut length = 1;
    for m in 1..=MAX_STEP_PIECES {
        if carried(m) > carried(length) {
            length = m;
        }
        if carried(length) >= 980 {
            break;
        }
    }
    loads.iter().map(|load| length * load.1 / slowest).collect()
}

impl TimedSchedule {
    pub(super) fn push(&mut self, chunk: u32, (from, to): (u32, u32), edge_route: u32) {
        self.schedule.push(Transfer::copy(chunk, from, to));
        self.edge_routes.push(edge_route);
    }

    /// Appends a piece that is summed up along an edge, from child to parent.
    pub(super) fn push_up(&mut self, chunk: u32, (from, to): (u32, u32), edge_route: u32) {
        self.schedule.push(Transfer::reduce(chunk, to, from));
        self.edge_routes.push(edge_route);
    }

    /// Returns the time reversal, in which source and destination of every transfer are exchanged.
    pub(super) fn reversed(&self, collective: Collective) -> TimedSchedule {
        let steps = (0..self.schedule.steps()).rev();
        let edge_routes = steps.flat_map(|step| &self.edge_routes[self.schedule.step(step)]);
        TimedSchedule {
            schedule: self.schedule.reversed(collective),
            edge_routes: edge_routes.copied().collect(),
        }
    }
}

impl Links {
    fn new(loads: &[(u32, (u128, u128))], network: &dyn Network) -> Links {
        let links = network.links();
        let pieces_per_step =
            pieces_in_step(&loads.iter().map(|(_, load)| *load).collect::<Vec<_>>());
        let mut remaining = vec![0; links.len()];
        let mut piece_time = vec![0; links.len()];
        let fastest = loads.iter().map(|(_, (_, rate))| *rate).max().unwrap_or(1);
        for (link, (pieces, rate)) in loads {
            remaining[*link as usize] = *pieces;
            piece_time[*link as usize] = (1000 * fastest / rate) as u64;
        }
        Links {
            used: loads
                .iter()
                .map(|(link, _)| *link)
                .zip(pieces_per_step)
                .collect(),
            piece_time,
            remaining,
            room: vec![0; links.len()],
            ahead: vec![0; links.len()],
        }
    }

    fn begin_step(&mut self) {
        for &(link, pieces) in &self.used {
            let link = link as usize;
            self.room[link] = pieces;
            self.ahead[link] = self.remaining[link] as u64 * self.piece_time[link];
        }
    }

    fn ahead(&self, route: &[u32]) -> u64 {
        let ahead = route.iter().map(|link| self.ahead[*link as usize]);
        ahead.max().unwrap_or(0)
    }

    fn have_room(&self, route: &[u32]) -> bool {
        route.iter().all(|link| self.room[*link as usize] > 0)
    }

    fn carry(&mut self, route: &[u32]) {
        for link in route {
            self.room[*link as usize] -= 1;
            self.remaining[*link as usize] -= 1;
        }
    }
}

impl TreeIndex {
    fn of(tree: &Tree, edge_routes: &[u32], ranks: usize) -> TreeIndex {
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
        for (&(from, to), &edge_route) in tree.edges.iter().zip(edge_routes).rev() {
            let above = height[to as usize] + 1;
            height[from as usize] = above.max(height[from as usize]);
            let place = &mut free[from as usize];
            next[*place as usize] = (to, edge_route);
            *place += 1;
        }
        TreeIndex {
            next,
            first,
            height,
            depth,
        }
    }

    /// Returns (child, index of the route to the child) for the children of a rank.
    fn next(&self, rank: u32) -> &[(u32, u32)] {
        let rank = rank as usize;
        &self.next[self.first[rank] as usize..self.first[rank + 1] as usize]
    }
}
