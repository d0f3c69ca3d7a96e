//! Packs spanning trees into a graph of ranks so that every root has as many as it wants.
//!
//! Let c(x, y) be whole capacities, and let there be trees to be grown, each with the set R of the
//! ranks that it holds; at first its root alone. All of them can be completed, no link lying in
//! more trees than it has capacity, if and only if for each set X of ranks (Edmonds, Edge-disjoint
//! branchings, 1973; Frank's form with sets of roots)
//!
//! ```text
//! in(X) >= number of trees whose R and X have no rank in common
//! ```
//!
//! So there is always an edge that a tree can take next. It is searched for breadth first, so that
//! trees stay low. Many trees are first grown over the links with the most capacity left, and then
//! looked at whether the condition holds for what is left: by one flow for each rank, most of them
//! short (`lacking`). Where it does not, fewer trees are kept. Where not even one can be, it is
//! grown once more, and each edge (x, y) is checked by one flow: with x as a source without limit,
//! and a supply at every root of as many trees as it still wants, y must get one more than all
//! these trees. (As in ForestColl, arXiv 2402.06787, whose flows carry several equal trees at
//! once.)

use rustc_hash::FxHashMap;

use opticoll_bounds::throughput::flow::{Flow, UNLIMITED};

/// A spanning tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) root: u32,
    /// From and to, in an order in which each comes after that which leads to it.
    pub(super) edges: Vec<(u32, u32)>,
}

impl Tree {
    /// By edge: how many come before it on the way from the root.
    pub(super) fn depths(&self) -> Vec<usize> {
        let mut depth = FxHashMap::from_iter([(self.root, 0)]);
        let edges = self.edges.iter();
        edges
            .map(|(from, to)| {
                let own = depth[from];
                depth.insert(*to, own + 1);
                own
            })
            .collect()
    }

    /// The edges on the longest way.
    pub(super) fn height(&self) -> usize {
        self.depths().into_iter().max().map_or(0, |most| most + 1)
    }
}

/// A graph of ranks whose capacity is taken up by trees.
pub(super) struct Packing {
    ranks: u32,
    flow: Flow,
    /// By rank: the ranks that it has links to.
    next: Vec<Vec<u32>>,
    /// By rank: trees that it still wants.
    wanted: Vec<u32>,
    /// Ranks, those beside one another close together.
    order: Vec<u32>,
}

impl Packing {
    /// A graph with whole capacities, and the number of trees that each rank wants.
    pub(super) fn new(capacities: &[(u32, u32, u128)], wanted: Vec<u32>) -> Packing {
        let ranks = wanted.len() as u32;
        let mut next = vec![Vec::new(); ranks as usize];
        for &(from, to, _) in capacities {
            next[from as usize].push(to);
        }
        for beside in &mut next {
            beside.sort_unstable();
            beside.dedup();
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

    /// The trees, of all roots in turn; `None` where the graph has no room for them, or flows look
    /// at more links than `most_work`.
    pub(super) fn pack(mut self, most_work: u64) -> Option<Vec<Tree>> {
        let mut roots = Vec::new();
        let most = self.wanted.iter().copied().max().unwrap_or(0);
        for turn in 0..most {
            let own = (0u32..).zip(&self.wanted);
            roots.extend(
                own.filter(|(_, count)| **count > turn)
                    .map(|(root, _)| root),
            );
        }
        self.flow.max_work = most_work;
        let mut trees: Vec<Tree> = Vec::with_capacity(roots.len());
        // Trees that are grown before it is looked at whether they leave room for the others.
        let mut together = roots.len();
        while trees.len() < roots.len() {
            if self.flow.gave_up() {
                return None;
            }
            let before = trees.len();
            let end = roots.len().min(before + together);
            while trees.len() < end {
                let Some(tree) = self.grow_freely(roots[trees.len()]) else {
                    break;
                };
                trees.push(tree);
            }
            // Whatever leaves room after many trees did so after fewer.
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
                    together = 1;
                }
                grown => together = 2 * grown,
            }
        }
        Some(trees)
    }

    /// Whether what is left has room for all trees that are still wanted.
    fn has_room(&mut self) -> bool {
        let left = self.left();
        let order = std::mem::take(&mut self.order);
        let fits = left == 0 || self.flow.lacking(&order, left).is_none();
        self.order = order;
        fits
    }

    /// Counts a tree of a root as no longer wanted, or as wanted again.
    fn want(&mut self, root: u32, count: u32) {
        self.wanted[root as usize] = count;
        self.flow.set_supply(root, count.into());
    }

    fn take_back(&mut self, tree: &Tree) {
        for &(from, to) in &tree.edges {
            self.flow.change(from, to, 1);
        }
        self.want(tree.root, self.wanted[tree.root as usize] + 1);
    }

    /// Trees that are still wanted.
    fn left(&self) -> u128 {
        self.wanted.iter().map(|count| u128::from(*count)).sum()
    }

    /// A tree over the links with the most room, if there is one.
    fn grow_freely(&mut self, root: u32) -> Option<Tree> {
        let mut edges = Vec::new();
        let mut held = vec![false; self.ranks as usize];
        held[root as usize] = true;
        let mut level = vec![root];
        while !level.is_empty() && edges.len() + 1 < self.ranks as usize {
            // Of each rank that can be reached, the one of the level with the most room towards it.
            let mut nearest: Vec<(u32, u32, u128)> = Vec::new();
            for &from in &level {
                self.flow.work += self.next[from as usize].len() as u64;
                let beside = self.next[from as usize].iter();
                for &to in beside.filter(|to| !held[**to as usize]) {
                    let room = self.flow.room(from, to);
                    if room > 0 {
                        nearest.push((to, from, room));
                    }
                }
            }
            nearest.sort_by_key(|&(to, _, room)| (to, std::cmp::Reverse(room)));
            nearest.dedup_by_key(|one| one.0);
            level = nearest.iter().map(|one| one.0).collect();
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
        self.want(root, self.wanted[root as usize] - 1);
        Some(Tree { root, edges })
    }

    /// A tree of which each edge leaves room for all others.
    fn grow_carefully(&mut self, root: u32) -> Option<Tree> {
        let mut edges = Vec::new();
        let mut held = vec![false; self.ranks as usize];
        held[root as usize] = true;
        let mut members = vec![root];
        self.want(root, self.wanted[root as usize] - 1);
        let wanted = self.left() + 1;
        // From each member on, the links that were refused: what is left only becomes less.
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
