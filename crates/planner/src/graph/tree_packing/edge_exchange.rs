//! Improvement of trees of one root by exchanges of edges.
//!
//! **Shallow trees.** Packed trees ([`Packing`]) of one root grow one after another. The last trees
//! must use the remaining edges, so they are higher than the first trees. An edge to a rank is
//! therefore exchanged with an edge of another tree to the same rank, or with an unused edge, as
//! long as this shortens the longest path through the rank.
//!
//! **Balanced loads.** Among trees of equal height, lower loads on the links before and after the
//! busiest link are better: then chunks of unequal sizes ([`chunks`](super::chunks)) shorten the
//! first and the last steps. An edge to a rank is replaced by an edge from another rank under three
//! conditions. Of the links that only the old edge uses, let the busiest be a. After the
//! replacement, every link that only the new edge uses must be less busy than a was before. No tree
//! may become higher than the highest tree. The latency of the message must not increase. Each
//! replacement evens out the loads of links, so the search ends.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::edge_routes::{EdgeRoute, EdgeRoutes};
use super::packing::{Packing, Tree};
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

const MAX_ROUNDS: usize = 20;

/// Maximum product of the number of trees and the squared number of ranks for which loads are
/// balanced.
const MAX_BALANCED_EDGES: usize = 1 << 24;

/// Returns `count` shallow trees of a root. `None` if the graph has no room for them, or if packing
/// visits more than `max_work` links.
pub(super) fn shallow_trees(
    capacities: &[(u32, u32, u128)],
    (ranks, root, count): (u32, u32, u32),
    max_work: u64,
) -> Option<Vec<Tree>> {
    let mut wanted = vec![0; ranks as usize];
    wanted[root as usize] = count;
    let mut trees = Packing::new(capacities, wanted).pack(max_work)?;
    let mut room: BTreeMap<(u32, u32), u128> = BTreeMap::new();
    for &(from, to, capacity) in capacities {
        *room.entry((from, to)).or_default() += capacity;
    }
    for edge in trees.iter().flat_map(|tree| &tree.edges) {
        room.entry(*edge).and_modify(|room| *room -= 1);
    }
    // Sources of the unused edges into each rank; indexed by destination.
    let mut free = vec![Vec::new(); ranks as usize];
    for ((from, to), room) in room {
        free[to as usize].extend((0..room.min(count.into())).map(|_| from));
    }
    make_shallow(&mut trees, &mut free);
    Some(trees)
}

/// Replaces edges of trees, with their routes, by edges over links with lower loads. If `reversed`,
/// messages travel against the direction of the edges.
pub(super) fn balance_loads(
    network: &dyn Network,
    trees: &mut [Tree],
    edge_routes: &mut EdgeRoutes,
    reversed: bool,
) {
    let ranks = network.ranks();
    let Some(root) = trees.first().map(|tree| tree.root) else {
        return;
    };
    if trees.len() * (ranks as usize).pow(2) > MAX_BALANCED_EDGES {
        return;
    }
    let links = network.links();
    let mut load = vec![0u32; links.len()];
    // Route of the edge into each rank; indexed by tree and then by rank.
    let mut to: Vec<Vec<u32>> = vec![vec![0; ranks as usize]; trees.len()];
    for ((tree, routes_of_tree), into) in trees.iter().zip(&edge_routes.of).zip(&mut to) {
        for (edge, edge_route) in tree.edges.iter().zip(routes_of_tree) {
            into[edge.1 as usize] = *edge_route;
            for link in &edge_routes.all[*edge_route as usize].route {
                load[*link as usize] += 1;
            }
        }
    }
    let mut numbers: FxHashMap<(u32, u32), u32> = (0u32..)
        .zip(&edge_routes.all)
        .filter(|(_, edge_route)| !edge_route.is_named)
        .map(|(number, edge_route)| (edge_route.ends, number))
        .collect();
    let busy =
        |load: u32, link: u32| f64::from(load) / links[link as usize].rate.bits_per_second() as f64;
    let latency = |route: &[u32]| {
        let latencies = route.iter().map(|link| links[*link as usize].latency.ps());
        latencies.sum::<u64>()
    };
    let mut tables = TreeTables::of(trees, ranks, root);
    let highest = trees.iter().map(Tree::height).max().unwrap_or(0) as u32;
    let mut route = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for (tree, into) in to.iter_mut().enumerate() {
            interrupt::check();
            for rank in (0..ranks).filter(|rank| *rank != root) {
                let old = &edge_routes.all[into[rank as usize] as usize].route;
                let (old, max_latency) = (old.clone(), latency(old));
                let mut replacement: Option<(f64, u32, Vec<u32>)> = None;
                for parent in (0..ranks).filter(|parent| *parent != rank) {
                    if tables.longest(tree, rank, parent) > highest
                        || parent == tables.parent[tree][rank as usize]
                        || tables.leads_to(tree, rank, parent)
                    {
                        continue;
                    }
                    let (from, at) = if reversed {
                        (rank, parent)
                    } else {
                        (parent, rank)
                    };
                    route.clear();
                    network.route(from, at, &mut route);
                    if latency(&route) > max_latency {
                        continue;
                    }
                    let only = |one: &[u32], other: &[u32], more: u32| {
                        let links = one.iter().filter(|link| !other.contains(link));
                        let busy = links.map(|link| busy(load[*link as usize] + more, *link));
                        busy.fold(0.0, f64::max)
                    };
                    let will_be = only(&route, &old, 1);
                    if will_be
                        < replacement
                            .as_ref()
                            .map_or_else(|| only(&old, &route, 0), |replacement| replacement.0)
                    {
                        replacement = Some((will_be, parent, route.clone()));
                    }
                }
                let Some((_, parent, new)) = replacement else {
                    continue;
                };
                changed = true;
                old.iter().for_each(|link| load[*link as usize] -= 1);
                new.iter().for_each(|link| load[*link as usize] += 1);
                tables.set_parent(tree, rank, parent);
                let ends = (parent, rank);
                into[rank as usize] = *numbers.entry(ends).or_insert_with(|| {
                    edge_routes.all.push(EdgeRoute {
                        ends,
                        route: new,
                        is_named: false,
                    });
                    edge_routes.all.len() as u32 - 1
                });
            }
        }
        if !changed {
            break;
        }
    }
    tables.write_to(trees);
    for ((tree, routes_of_tree), into) in trees.iter().zip(&mut edge_routes.of).zip(&to) {
        *routes_of_tree = tree
            .edges
            .iter()
            .map(|edge| into[edge.1 as usize])
            .collect();
    }
}

struct TreeTables {
    root: u32,
    /// Three tables, indexed by tree and then by rank. `parent` is the parent of the rank; `depth`
    /// is the number of edges from the root to the rank; `below` is the number of edges on the
    /// longest path below the rank.
    parent: Vec<Vec<u32>>,
    depth: Vec<Vec<u32>>,
    below: Vec<Vec<u32>>,
}

/// Makes trees shallower. Either two trees exchange their edges into the same rank, or a tree
/// exchanges an edge for an unused edge in `free`. `free` lists the sources of unused edges;
/// indexed by destination.
fn make_shallow(trees: &mut [Tree], free: &mut [Vec<u32>]) {
    let Some(root) = trees.first().map(|tree| tree.root) else {
        return;
    };
    let ranks = free.len() as u32;
    let mut tables = TreeTables::of(trees, ranks, root);
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for rank in (0..ranks).filter(|rank| *rank != root) {
            interrupt::check();
            for one in 0..trees.len() {
                for new in &mut free[rank as usize] {
                    let old = tables.parent[one][rank as usize];
                    if tables.depth[one][*new as usize] < tables.depth[one][old as usize]
                        && !tables.leads_to(one, rank, *new)
                    {
                        tables.set_parent(one, rank, *new);
                        *new = old;
                        changed = true;
                    }
                }
                for other in 0..trees.len() {
                    changed |= one != other && tables.exchange(one, other, rank);
                }
            }
        }
        if !changed {
            break;
        }
    }
    tables.write_to(trees);
}

impl TreeTables {
    fn of(trees: &[Tree], ranks: u32, root: u32) -> TreeTables {
        let zeros = vec![vec![0; ranks as usize]; trees.len()];
        let mut tables = TreeTables {
            root,
            parent: zeros.clone(),
            depth: zeros.clone(),
            below: zeros,
        };
        for (number, tree) in trees.iter().enumerate() {
            for &(from, to) in &tree.edges {
                tables.parent[number][to as usize] = from;
                tables.depth[number][to as usize] = tables.depth[number][from as usize] + 1;
            }
            for &(from, to) in tree.edges.iter().rev() {
                let below = tables.below[number][to as usize] + 1;
                let height = &mut tables.below[number][from as usize];
                *height = (*height).max(below);
            }
        }
        tables
    }

    /// Returns whether the path of a tree from the root to rank `to` contains rank `from`.
    fn leads_to(&self, tree: usize, from: u32, to: u32) -> bool {
        let mut at = to;
        while at != self.root && at != from {
            at = self.parent[tree][at as usize];
        }
        at == from
    }

    /// Returns the number of edges of the longest path through a rank if its parent were `parent`.
    fn longest(&self, tree: usize, rank: u32, parent: u32) -> u32 {
        self.depth[tree][parent as usize] + 1 + self.below[tree][rank as usize]
    }

    /// Exchanges the edges of trees `one` and `other` into a rank if this shortens the longest
    /// paths. Returns whether the edges were exchanged.
    fn exchange(&mut self, one: usize, other: usize, rank: u32) -> bool {
        let (first, second) = (
            self.parent[one][rank as usize],
            self.parent[other][rank as usize],
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
        self.set_parent(one, rank, second);
        self.set_parent(other, rank, first);
        true
    }

    fn set_parent(&mut self, tree: usize, rank: u32, parent: u32) {
        self.parent[tree][rank as usize] = parent;
        let ranks = self.parent[tree].len() as u32;
        let mut order: Vec<u32> = Vec::with_capacity(ranks as usize);
        let mut next = vec![Vec::new(); ranks as usize];
        for rank in (0..ranks).filter(|rank| *rank != self.root) {
            next[self.parent[tree][rank as usize] as usize].push(rank);
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
            let height = &mut self.below[tree][self.parent[tree][at as usize] as usize];
            *height = (*height).max(below);
        }
    }

    /// Writes the edges back into the trees, edges near the root first.
    fn write_to(&self, trees: &mut [Tree]) {
        for (number, tree) in trees.iter_mut().enumerate() {
            let (parent, depth) = (&self.parent[number], &self.depth[number]);
            let others = (0..parent.len() as u32).filter(|rank| *rank != self.root);
            tree.edges = others.map(|rank| (parent[rank as usize], rank)).collect();
            tree.edges
                .sort_by_key(|edge| (depth[edge.1 as usize], *edge));
        }
    }
}
