//! Packing of spanning trees into a graph of ranks, with a given number of trees per root.
//!
//! Let c(x, y) be whole capacities. For each tree that is being grown, let R be the set of its
//! ranks; at first R contains the root only. All trees can be completed, with no link in more trees
//! than its capacity, if and only if every set X of ranks satisfies (Edmonds, Edge-disjoint
//! branchings, 1973; Frank's form with sets of roots)
//!
//! ```text
//! in(X) >= number of trees whose R and X have no rank in common
//! ```
//!
//! Therefore there is always an edge by which a tree can grow. The search for this edge is
//! breadth-first, so that trees stay shallow. First, many trees grow along the links with the most
//! remaining capacity. Then one flow per rank (`lacking`), most of them short, checks whether the
//! condition is true for the remaining capacity. If it is not, half of these trees are removed, and
//! the check is repeated. If no tree remains, one tree is grown again, and one flow checks each
//! edge (x, y). In this flow, x is an unlimited source, and every root supplies as many units as it
//! still needs trees; y must receive one unit more than all these trees. (ForestColl, arXiv
//! 2402.06787, does the same with flows that handle several equal trees at a time.)

use rustc_hash::FxHashMap;

use opticoll_bounds::throughput::flow::{Flow, UNLIMITED};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) root: u32,
    /// Edges as (parent, child); the edge into a rank precedes the edges out of the rank.
    pub(super) edges: Vec<(u32, u32)>,
}

impl Tree {
    /// Returns, for each edge, the number of edges between the root and the edge's parent.
    pub(super) fn depths(&self) -> Vec<usize> {
        let mut depth = FxHashMap::from_iter([(self.root, 0)]);
        let edges = self.edges.iter();
        edges
            .map(|(from, to)| {
                let edge_depth = depth[from];
                depth.insert(*to, edge_depth + 1);
                edge_depth
            })
            .collect()
    }

    /// Returns the number of edges on the longest path from the root.
    pub(super) fn height(&self) -> usize {
        self.depths().into_iter().max().map_or(0, |most| most + 1)
    }
}

/// A graph of ranks with its remaining capacity.
pub(super) struct Packing {
    ranks: u32,
    flow: Flow,
    /// Ranks to which each rank has links; indexed by source.
    next: Vec<Vec<u32>>,
    /// Number of trees that each root still needs; indexed by rank.
    wanted: Vec<u32>,
    /// All ranks in breadth-first order.
    order: Vec<u32>,
}

impl Packing {
    /// Creates the packing. `wanted` is the number of trees per root, indexed by rank.
    pub(super) fn new(capacities: &[(u32, u32, u128)], wanted: Vec<u32>) -> Packing {
        let ranks = wanted.len() as u32;
        let mut next = vec![Vec::new(); ranks as usize];
        for &(from, to, _) in capacities {
            next[from as usize].push(to);
        }
        for neighbours in &mut next {
            neighbours.sort_unstable();
            neighbours.dedup();
        }
        let mut flow = Flow::new(ranks as usize, capacities);
        (0u32..)
            .zip(&wanted)
            .for_each(|(rank, count)| flow.set_supply(rank, (*count).into()));
        let mut order = vec![0];
        let mut reached = vec![false; ranks as usize];
        reached[0] = true;
        let mut place = 0;
        while let Some(&rank) = order.get(place) {
            place += 1;
            for &other in &next[rank as usize] {
                if !std::mem::replace(&mut reached[other as usize], true) {
                    order.push(other);
                }
            }
        }
        Packing {
            ranks,
            flow,
            next,
            wanted,
            order,
        }
    }

    /// Returns the trees: one tree of every root, then the next tree of every root, and so on.
    /// `None` if the graph has no room for the trees, or if the flows visit more than `max_work`
    /// links.
    pub(super) fn pack(mut self, max_work: u64) -> Option<Vec<Tree>> {
        let mut roots = Vec::new();
        let turns = self.wanted.iter().copied().max().unwrap_or(0);
        for turn in 0..turns {
            let wanted_of_rank = (0u32..).zip(&self.wanted);
            roots.extend(
                wanted_of_rank
                    .filter(|(_, count)| **count > turn)
                    .map(|(root, _)| root),
            );
        }
        self.flow.max_work = max_work;
        let mut trees: Vec<Tree> = Vec::with_capacity(roots.len());
        // Number of trees to grow before the next check.
        let mut batch = roots.len();
        while trees.len() < roots.len() {
            if self.flow.gave_up() {
                return None;
            }
            let before = trees.len();
            let end = roots.len().min(before + batch);
            while trees.len() < end {
                let Some(tree) = self.grow_freely(roots[trees.len()]) else {
                    break;
                };
                trees.push(tree);
            }
            // If there is room after many trees, there was also room after fewer trees.
            while !self.has_room() {
                let fewer = before + (trees.len() - before) / 2;
                trees.drain(fewer..).for_each(|tree| self.take_back(&tree));
                if trees.len() == before {
                    break;
                }
            }
            match trees.len() - before {
                0 => {
                    trees.push(self.grow_carefully(roots[before])?);
                    batch = 1;
                }
                grown => batch = 2 * grown,
            }
        }
        Some(trees)
    }

    /// Returns whether the remaining capacity has room for all trees that are still needed.
    fn has_room(&mut self) -> bool {
        let needed = self.needed();
        let order = std::mem::take(&mut self.order);
        let fits = needed == 0 || self.flow.lacking(&order, needed).is_none();
        self.order = order;
        fits
    }

    fn set_wanted(&mut self, root: u32, count: u32) {
        self.wanted[root as usize] = count;
        self.flow.set_supply(root, count.into());
    }

    fn take_back(&mut self, tree: &Tree) {
        for &(from, to) in &tree.edges {
            self.flow.change(from, to, 1);
        }
        self.set_wanted(tree.root, self.wanted[tree.root as usize] + 1);
    }

    fn needed(&self) -> u128 {
        self.wanted.iter().map(|count| u128::from(*count)).sum()
    }

    /// Grows a tree along the links with the most remaining capacity. `None` if the tree cannot
    /// reach all ranks.
    fn grow_freely(&mut self, root: u32) -> Option<Tree> {
        let mut edges = Vec::new();
        let mut is_reached = vec![false; self.ranks as usize];
        is_reached[root as usize] = true;
        let mut level = vec![root];
        while !level.is_empty() && edges.len() + 1 < self.ranks as usize {
            // (rank, parent, capacity) for each new rank; the parent has the link with the most
            // capacity.
            let mut nearest: Vec<(u32, u32, u128)> = Vec::new();
            for &from in &level {
                self.flow.work += self.next[from as usize].len() as u64;
                let neighbours = self.next[from as usize].iter();
                for &to in neighbours.filter(|to| !is_reached[**to as usize]) {
                    let room = self.flow.room(from, to);
                    if room > 0 {
                        nearest.push((to, from, room));
                    }
                }
            }
            nearest.sort_by_key(|&(to, _, room)| (to, std::cmp::Reverse(room)));
            nearest.dedup_by_key(|edge| edge.0);
            level = nearest.iter().map(|edge| edge.0).collect();
            for (to, from, _) in nearest {
                is_reached[to as usize] = true;
                edges.push((from, to));
            }
        }
        if edges.len() as u32 + 1 < self.ranks {
            return None;
        }
        for &(from, to) in &edges {
            self.flow.change(from, to, -1);
        }
        self.set_wanted(root, self.wanted[root as usize] - 1);
        Some(Tree { root, edges })
    }

    /// Grows a tree such that after each edge there is room for all other trees.
    fn grow_carefully(&mut self, root: u32) -> Option<Tree> {
        let mut edges = Vec::new();
        let mut is_reached = vec![false; self.ranks as usize];
        is_reached[root as usize] = true;
        let mut members = vec![root];
        self.set_wanted(root, self.wanted[root as usize] - 1);
        let wanted = self.needed() + 1;
        // Capacity only decreases, so a link that was refused need not be tried again. Each member
        // of the tree is a source once.
        let mut place = 0;
        while members.len() < self.ranks as usize {
            let from = *members.get(place)?;
            place += 1;
            let supply = u128::from(self.wanted[from as usize]);
            let mut nearest: Vec<(u128, u32)> = Vec::new();
            for &to in &self.next[from as usize] {
                let room = self.flow.room(from, to);
                if room > 0 && !is_reached[to as usize] {
                    nearest.push((room, to));
                }
            }
            nearest.sort_by_key(|&(room, to)| (std::cmp::Reverse(room), to));
            for (_, to) in nearest {
                self.flow.set_supply(from, UNLIMITED);
                let fits = members.len() == 1 || {
                    let sent = self.flow.send(to, wanted);
                    self.flow.clear();
                    sent >= wanted
                };
                self.flow.set_supply(from, supply);
                if fits {
                    self.flow.change(from, to, -1);
                    is_reached[to as usize] = true;
                    members.push(to);
                    edges.push((from, to));
                }
            }
        }
        Some(Tree { root, edges })
    }
}
