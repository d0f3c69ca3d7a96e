//! Packing of spanning trees into a graph of ranks, with a given number of trees for each root.
//!
//! Let c(x, y) be whole capacities, and let R be the set of ranks of each tree that is being grown;
//! at first R is the root alone. All trees can be completed, with no link in more trees than its
//! capacity, if and only if for each set X of ranks (Edmonds, Edge-disjoint branchings, 1973;
//! Frank's form with sets of roots)
//!
//! ```text
//! in(X) >= number of trees whose R and X have no rank in common
//! ```
//!
//! There is therefore always an edge that a tree can take next. The search for it is breadth-first,
//! so that trees stay shallow. Many trees are first grown over the links with the most capacity
//! left; then one flow for each rank, most of them short (`lacking`), checks whether the condition
//! holds for the capacity left. If it does not, fewer trees are kept. If not even one tree can be
//! kept, the tree is grown again, and one flow checks each edge (x, y): with x as a source without
//! limit, and a supply at every root of as many trees as the root still needs, y must receive one
//! more than all these trees. (ForestColl, arXiv 2402.06787, does the same with flows that carry
//! several equal trees at a time.)

use rustc_hash::FxHashMap;

use opticoll_bounds::throughput::flow::{Flow, UNLIMITED};

/// A spanning tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) root: u32,
    /// Ends of the edges; each edge comes after the edge that leads to its start.
    pub(super) edges: Vec<(u32, u32)>,
}

impl Tree {
    /// Returns, for each edge, the number of edges between the root and its start.
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

    /// Returns the number of edges on the longest way.
    pub(super) fn height(&self) -> usize {
        self.depths().into_iter().max().map_or(0, |most| most + 1)
    }
}

/// A graph of ranks with the capacity that trees leave.
pub(super) struct Packing {
    ranks: u32,
    flow: Flow,
    /// Ranks to which each rank has links.
    next: Vec<Vec<u32>>,
    /// Number of trees that each rank still needs.
    wanted: Vec<u32>,
    /// Ranks in breadth-first order.
    order: Vec<u32>,
}

impl Packing {
    /// Creates the packing from whole capacities and the number of trees of each rank.
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

    /// Returns the trees, of all roots in turn; `None` if the graph has no room for them, or if
    /// flows pass more links than `max_work`.
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
        // Number of trees to grow before checking the room for the others.
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
            // If there is room after many trees, there was room after fewer trees.
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

    /// Returns whether the capacity left has room for all trees that are still needed.
    fn has_room(&mut self) -> bool {
        let needed = self.needed();
        let order = std::mem::take(&mut self.order);
        let fits = needed == 0 || self.flow.lacking(&order, needed).is_none();
        self.order = order;
        fits
    }

    /// Sets the number of trees that a root still needs.
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

    /// Returns the number of trees that are still needed.
    fn needed(&self) -> u128 {
        self.wanted.iter().map(|count| u128::from(*count)).sum()
    }

    /// Grows a tree over the links with the most room; `None` if there is no such tree.
    fn grow_freely(&mut self, root: u32) -> Option<Tree> {
        let mut edges = Vec::new();
        let mut held = vec![false; self.ranks as usize];
        held[root as usize] = true;
        let mut level = vec![root];
        while !level.is_empty() && edges.len() + 1 < self.ranks as usize {
            // For each rank in reach, the rank of the level with the most room towards it.
            let mut nearest: Vec<(u32, u32, u128)> = Vec::new();
            for &from in &level {
                self.flow.work += self.next[from as usize].len() as u64;
                let neighbours = self.next[from as usize].iter();
                for &to in neighbours.filter(|to| !held[**to as usize]) {
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
                held[to as usize] = true;
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

    /// Grows a tree of which each edge leaves room for all other trees.
    fn grow_carefully(&mut self, root: u32) -> Option<Tree> {
        let mut edges = Vec::new();
        let mut held = vec![false; self.ranks as usize];
        held[root as usize] = true;
        let mut members = vec![root];
        self.set_wanted(root, self.wanted[root as usize] - 1);
        let wanted = self.needed() + 1;
        // A refused link stays refused, because capacity only falls; each member is a source once.
        let mut place = 0;
        while members.len() < self.ranks as usize {
            let from = *members.get(place)?;
            place += 1;
            let supply = u128::from(self.wanted[from as usize]);
            let mut nearest: Vec<(u128, u32)> = Vec::new();
            for &to in &self.next[from as usize] {
                let room = self.flow.room(from, to);
                if room > 0 && !held[to as usize] {
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
                    held[to as usize] = true;
                    members.push(to);
                    edges.push((from, to));
                }
            }
        }
        Some(Tree { root, edges })
    }
}
