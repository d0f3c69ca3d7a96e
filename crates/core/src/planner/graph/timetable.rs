//! Which piece goes over which edge of its tree in which step.
//!
//! A step is as long as the slowest link in use needs for one piece. In each step every link may carry as many pieces as
//! it has time for; what is left of that time over whole pieces is kept for the next step. A piece goes over an edge in a
//! step after that in which it came to its start. Pieces go first over routes with the link that has the most time of
//! work before it, and among those the piece with the longest way before it (Hu, Operations Research 9, 1961: highest
//! level first), so that links are not idle at the end.
//!
//! In a step each link has no more pieces than it can carry in the step's time, so that with fair shares of links
//! the step takes no longer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::pack::Tree;
use crate::collective::Collective;
use crate::interrupt;
use crate::network::Network;
use crate::schedule::{Schedule, Transfer};

/// The pieces that wait at a rank for the next, the one with the longest way before it first.
type Waiting = BinaryHeap<(u32, Reverse<(u32, u32)>)>;

/// What is known before the steps are made.
pub(super) struct Timetable<'a> {
    network: &'a dyn Network,
    trees: &'a [Tree],
    reversed: bool,
}

/// A tree by its ranks.
struct Below {
    /// By rank: the ranks that it sends to.
    next: Vec<Vec<u32>>,
    /// By rank: edges below it, at most.
    height: Vec<u32>,
}

impl<'a> Timetable<'a> {
    pub(super) fn new(network: &'a dyn Network, trees: &'a [Tree], reversed: bool) -> Self {
        Timetable {
            network,
            trees,
            reversed,
        }
    }

    /// The steps, as if every tree spread its pieces; `first_chunk` says the first of the chunks of a tree.
    pub(super) fn schedule(
        &self,
        collective: Collective,
        chunks: u32,
        first_chunk: impl Fn(usize) -> u32,
    ) -> Schedule {
        let ranks = self.network.ranks() as usize;
        let below: Vec<Below> = self
            .trees
            .iter()
            .map(|tree| Below::of(tree, ranks))
            .collect();
        let mut routes: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for edge in self.trees.iter().flat_map(|tree| &tree.edges) {
            routes.entry(*edge).or_insert_with(|| {
                let (from, to) = if self.reversed {
                    (edge.1, edge.0)
                } else {
                    *edge
                };
                let mut route = Vec::new();
                self.network.route(from, to, &mut route);
                route
            });
        }
        let links = self.network.links();
        let rate = |link: u32| u128::from(links[link as usize].rate.bits_per_second());
        // What a piece takes of the time of a link in one step.
        let cost = routes.values().flatten().map(|link| rate(*link)).min();
        let cost = cost.unwrap_or(1);
        // Pieces that each link has yet to carry.
        let mut remaining = vec![0u128; links.len()];
        for edge in self.trees.iter().flat_map(|tree| &tree.edges) {
            for link in &routes[edge] {
                remaining[*link as usize] += u128::from(chunks);
            }
        }
        let mut credit = vec![0u128; links.len()];
        let mut used: Vec<u32> = routes.values().flatten().copied().collect();
        used.sort_unstable();
        used.dedup();
        let mut waiting: BTreeMap<(u32, u32), Waiting> = BTreeMap::new();
        let send = |waiting: &mut BTreeMap<(u32, u32), Waiting>, tree: u32, chunk: u32, from| {
            let own = &below[tree as usize];
            for &to in &own.next[from as usize] {
                let key = (own.height[to as usize], Reverse((chunk, tree)));
                waiting.entry((from, to)).or_default().push(key);
            }
        };
        for (number, tree) in (0u32..).zip(self.trees) {
            for chunk in 0..chunks {
                send(&mut waiting, number, chunk, tree.root);
            }
        }
        let mut schedule = Schedule::new(collective);
        let mut step = 0usize;
        while !waiting.is_empty() {
            interrupt::check();
            schedule.begin_step();
            for &link in &used {
                let own = &mut credit[link as usize];
                *own = (*own).min(cost - 1) + rate(link);
            }
            let mut pairs: Vec<(u32, (u32, u32))> = waiting
                .iter()
                .filter_map(|(ends, pieces)| Some((pieces.peek()?.0, *ends)))
                .collect();
            pairs.sort_by_key(|&(height, (from, to))| {
                let route = routes[&(from, to)].iter();
                // A millionth of what a bit per second carries is fine enough for an order.
                let ahead = route.map(|link| remaining[*link as usize] * 1_000_000 / rate(*link));
                let turn = (to as usize + ranks - from as usize + step) % ranks;
                (Reverse(ahead.max()), Reverse(height), turn, from)
            });
            let mut arrived = Vec::new();
            // One piece of each pair in turn, as long as links have time.
            while !pairs.is_empty() {
                pairs.retain(|&(_, ends)| {
                    let route = &routes[&ends];
                    if route.iter().any(|link| credit[*link as usize] < cost) {
                        return false;
                    }
                    let Some(pieces) = waiting.get_mut(&ends) else {
                        return false;
                    };
                    let Some((_, Reverse((chunk, tree)))) = pieces.pop() else {
                        return false;
                    };
                    for link in route {
                        credit[*link as usize] -= cost;
                        remaining[*link as usize] -= 1;
                    }
                    let number = first_chunk(tree as usize) + chunk;
                    schedule.push(Transfer::copy(number, ends.0, ends.1));
                    arrived.push((tree, chunk, ends.1));
                    true
                });
            }
            waiting.retain(|_, pieces| !pieces.is_empty());
            for (tree, chunk, at) in arrived {
                send(&mut waiting, tree, chunk, at);
            }
            step += 1;
        }
        schedule
    }
}

impl Below {
    fn of(tree: &Tree, ranks: usize) -> Below {
        let mut below = Below {
            next: vec![Vec::new(); ranks],
            height: vec![0; ranks],
        };
        for &(from, to) in tree.edges.iter().rev() {
            let height = below.height[to as usize] + 1;
            let own = &mut below.height[from as usize];
            *own = (*own).max(height);
            below.next[from as usize].push(to);
        }
        below
    }
}
