//! Trees of one root, improved by exchanges of their edges.
//!
//! **Low.** Packed trees ([`Packing`]) of one root grow one after the other, so that the last ones
//! take what edges are left and are higher than the first. An edge to a rank is therefore exchanged
//! with one of another tree to the same rank, or with one that no tree has, as long as this makes
//! the longest way over that rank shorter.
//!
//! **Balanced.** Low trees take what links have. Where as low trees do with less on the busiest
//! links before and after the bottleneck, chunks of unequal sizes (`chunks`) shorten the first and
//! the last steps. So an edge to a rank is replaced by one from another rank if the busiest of the
//! links that it gives up was busier than each of those that it takes will be, if no tree becomes
//! higher than the highest was, and if the message takes no more latency. Each exchange makes the
//! loads of links more even, so that the search ends.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::channels::{Channel, Channels};
use super::pack::{Packing, Tree};
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

/// Rounds over all ranks in which edges are exchanged.
const MOST_ROUNDS: usize = 20;

/// The loads of so many edges at most are balanced: trees times the square of the number of ranks.
const MOST_BALANCED: usize = 1 << 24;

/// Returns so many trees of a root; `None` where the graph has no room for them, or packing takes
/// more than `most_work` steps over links.
pub(super) fn low_trees(
    capacities: &[(u32, u32, u128)],
    (ranks, root, count): (u32, u32, u32),
    most_work: u64,
) -> Option<Vec<Tree>> {
    let mut wanted = vec![0; ranks as usize];
    wanted[root as usize] = count;
    let mut trees = Packing::new(capacities, wanted).pack(most_work)?;
    let mut room: BTreeMap<(u32, u32), u128> = BTreeMap::new();
    for &(from, to, capacity) in capacities {
        *room.entry((from, to)).or_default() += capacity;
    }
    for edge in trees.iter().flat_map(|tree| &tree.edges) {
        room.entry(*edge).and_modify(|room| *room -= 1);
    }
    // By rank: where edges begin that no tree has.
    let mut free = vec![Vec::new(); ranks as usize];
    for ((from, to), room) in room {
        free[to as usize].extend((0..room.min(count.into())).map(|_| from));
    }
    lower(&mut trees, &mut free);
    Some(trees)
}

/// Moves edges of trees, which run backwards where they are `reversed`, with their channels, to
/// links that have less to do.
pub(super) fn balance_loads(
    network: &dyn Network,
    trees: &mut [Tree],
    channels: &mut Channels,
    reversed: bool,
) {
    let ranks = network.ranks();
    let Some(root) = trees.first().map(|tree| tree.root) else {
        return;
    };
    if trees.len() * (ranks as usize).pow(2) > MOST_BALANCED {
        return;
    }
    let links = network.links();
    let mut load = vec![0u32; links.len()];
    // By tree and rank: the channel to the rank.
    let mut to: Vec<Vec<u32>> = vec![vec![0; ranks as usize]; trees.len()];
    for ((tree, own), into) in trees.iter().zip(&channels.of).zip(&mut to) {
        for (edge, channel) in tree.edges.iter().zip(own) {
            into[edge.1 as usize] = *channel;
            for link in &channels.all[*channel as usize].route {
                load[*link as usize] += 1;
            }
        }
    }
    let mut numbers: FxHashMap<(u32, u32), u32> = (0u32..)
        .zip(&channels.all)
        .filter(|(_, channel)| !channel.is_named)
        .map(|(number, channel)| (channel.ends, number))
        .collect();
    let busy =
        |load: u32, link: u32| f64::from(load) / links[link as usize].rate.bits_per_second() as f64;
    let latency = |route: &[u32]| {
        let of_links = route.iter().map(|link| links[*link as usize].latency.ps());
        of_links.sum::<u64>()
    };
    let mut rooted = Rooted::of(trees, ranks, root);
    let highest = trees.iter().map(Tree::height).max().unwrap_or(0) as u32;
    let mut route = Vec::new();
    for _ in 0..MOST_ROUNDS {
        let mut any = false;
        for (tree, into) in to.iter_mut().enumerate() {
            interrupt::check();
            for rank in (0..ranks).filter(|rank| *rank != root) {
                let old = &channels.all[into[rank as usize] as usize].route;
                let (old, most) = (old.clone(), latency(old));
                let mut best: Option<(f64, u32, Vec<u32>)> = None;
                for before in (0..ranks).filter(|before| *before != rank) {
                    if rooted.longest(tree, rank, before) > highest
                        || before == rooted.before[tree][rank as usize]
                        || rooted.leads_to(tree, rank, before)
                    {
                        continue;
                    }
                    let (from, at) = if reversed {
                        (rank, before)
                    } else {
                        (before, rank)
                    };
                    route.clear();
                    network.route(from, at, &mut route);
                    if latency(&route) > most {
                        continue;
                    }
                    let only = |one: &[u32], other: &[u32], more: u32| {
                        let links = one.iter().filter(|link| !other.contains(link));
                        let busy = links.map(|link| busy(load[*link as usize] + more, *link));
                        busy.fold(0.0, f64::max)
                    };
                    let will_be = only(&route, &old, 1);
                    if will_be
                        < best
                            .as_ref()
                            .map_or_else(|| only(&old, &route, 0), |best| best.0)
                    {
                        best = Some((will_be, before, route.clone()));
                    }
                }
                let Some((_, before, new)) = best else {
                    continue;
                };
                any = true;
                old.iter().for_each(|link| load[*link as usize] -= 1);
                new.iter().for_each(|link| load[*link as usize] += 1);
                rooted.hang(tree, rank, before);
                let ends = (before, rank);
                into[rank as usize] = *numbers.entry(ends).or_insert_with(|| {
                    channels.all.push(Channel {
                        ends,
                        route: new,
                        is_named: false,
                    });
                    channels.all.len() as u32 - 1
                });
            }
        }
        if !any {
            break;
        }
    }
    rooted.write_to(trees);
    for ((tree, own), into) in trees.iter().zip(&mut channels.of).zip(&to) {
        *own = tree
            .edges
            .iter()
            .map(|edge| into[edge.1 as usize])
            .collect();
    }
}

/// Trees with what is looked up while their edges are exchanged.
struct Rooted {
    root: u32,
    /// By tree and rank: the rank before it, the edges from the root, and those of the longest way
    /// below.
    before: Vec<Vec<u32>>,
    depth: Vec<Vec<u32>>,
    below: Vec<Vec<u32>>,
}

/// Exchanges edges to one rank between two trees, or for one of `free` that no tree has.
fn lower(trees: &mut [Tree], free: &mut [Vec<u32>]) {
    let Some(root) = trees.first().map(|tree| tree.root) else {
        return;
    };
    let ranks = free.len() as u32;
    let mut rooted = Rooted::of(trees, ranks, root);
    for _ in 0..MOST_ROUNDS {
        let mut any = false;
        for rank in (0..ranks).filter(|rank| *rank != root) {
            interrupt::check();
            for one in 0..trees.len() {
                for new in &mut free[rank as usize] {
                    let old = rooted.before[one][rank as usize];
                    if rooted.depth[one][*new as usize] < rooted.depth[one][old as usize]
                        && !rooted.leads_to(one, rank, *new)
                    {
                        rooted.hang(one, rank, *new);
                        *new = old;
                        any = true;
                    }
                }
                for other in 0..trees.len() {
                    any |= one != other && rooted.exchange(one, other, rank);
                }
            }
        }
        if !any {
            break;
        }
    }
    rooted.write_to(trees);
}

impl Rooted {
    fn of(trees: &[Tree], ranks: u32, root: u32) -> Rooted {
        let zeros = vec![vec![0; ranks as usize]; trees.len()];
        let mut rooted = Rooted {
            root,
            before: zeros.clone(),
            depth: zeros.clone(),
            below: zeros,
        };
        for (number, tree) in trees.iter().enumerate() {
            for &(from, to) in &tree.edges {
                rooted.before[number][to as usize] = from;
                rooted.depth[number][to as usize] = rooted.depth[number][from as usize] + 1;
            }
            for &(from, to) in tree.edges.iter().rev() {
                let below = rooted.below[number][to as usize] + 1;
                let own = &mut rooted.below[number][from as usize];
                *own = (*own).max(below);
            }
        }
        rooted
    }

    /// Whether a tree leads from one rank to another.
    fn leads_to(&self, tree: usize, from: u32, to: u32) -> bool {
        let mut at = to;
        while at != self.root && at != from {
            at = self.before[tree][at as usize];
        }
        at == from
    }

    /// The edges of the longest way over a rank, if `before` came before it.
    fn longest(&self, tree: usize, rank: u32, before: u32) -> u32 {
        self.depth[tree][before as usize] + 1 + self.below[tree][rank as usize]
    }

    /// Exchanges the edges of two trees to a rank, where the longest ways become shorter.
    fn exchange(&mut self, one: usize, other: usize, rank: u32) -> bool {
        let (first, second) = (
            self.before[one][rank as usize],
            self.before[other][rank as usize],
        );
        let before = (
            self.longest(one, rank, first),
            self.longest(other, rank, second),
        );
        let after = (
            self.longest(one, rank, second),
            self.longest(other, rank, first),
        );
        let is_lower = (after.0.max(after.1), after.0 + after.1)
            < (before.0.max(before.1), before.0 + before.1);
        if first == second
            || !is_lower
            || self.leads_to(one, rank, second)
            || self.leads_to(other, rank, first)
        {
            return false;
        }
        self.hang(one, rank, second);
        self.hang(other, rank, first);
        true
    }

    /// Gives a rank another one before it in a tree, and finds what is above and below all ranks
    /// anew.
    fn hang(&mut self, tree: usize, rank: u32, before: u32) {
        self.before[tree][rank as usize] = before;
        let ranks = self.before[tree].len() as u32;
        let mut order: Vec<u32> = Vec::with_capacity(ranks as usize);
        let mut next = vec![Vec::new(); ranks as usize];
        for rank in (0..ranks).filter(|rank| *rank != self.root) {
            next[self.before[tree][rank as usize] as usize].push(rank);
        }
        order.push(self.root);
        let mut place = 0;
        while let Some(&at) = order.get(place) {
            place += 1;
            for &to in &next[at as usize] {
                self.depth[tree][to as usize] = self.depth[tree][at as usize] + 1;
                order.push(to);
            }
        }
        self.below[tree].fill(0);
        for &at in order[1..].iter().rev() {
            let below = self.below[tree][at as usize] + 1;
            let own = &mut self.below[tree][self.before[tree][at as usize] as usize];
            *own = (*own).max(below);
        }
    }

    /// Writes the edges of the trees, those near the root first.
    fn write_to(&self, trees: &mut [Tree]) {
        for (number, tree) in trees.iter_mut().enumerate() {
            let (before, depth) = (&self.before[number], &self.depth[number]);
            let others = (0..before.len() as u32).filter(|rank| *rank != self.root);
            tree.edges = others.map(|rank| (before[rank as usize], rank)).collect();
            tree.edges
                .sort_by_key(|edge| (depth[edge.1 as usize], *edge));
        }
    }
}
