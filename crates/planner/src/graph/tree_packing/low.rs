//! Low trees of one root: all of them grow at once, level by level.
//!
//! Each tree j holds a set R(j) of ranks, at first the root alone. All can be completed, no link lying in more trees than
//! it has capacity c for, if and only if for each set X of ranks (Edmonds, Edge-disjoint branchings, 1973)
//!
//! ```text
//! in(X) >= number of trees j whose R(j) and X have no rank in common
//! ```
//!
//! Tree i may take the edge (x, y) if every X with y and without x keeps that: if the trees other than i, each with a supply
//! of one unit that may enter at any rank of its R(j), and x without limit can send one unit more to y than there are other
//! trees. Both sides of the condition fall as trees grow, the left at least as fast, so that an edge once refused to
//! a tree stays refused to it.
//!
//! Trees take edges in turn, one each, and all take what they can from their ranks at one distance from the root
//! before any goes on to the next. So a tree is no higher because another was grown before it.

use std::cmp::Reverse;

use super::pack::Tree;
use opticoll_base::interrupt;
use opticoll_bounds::throughput::flow::{Flow, UNLIMITED};

/// Rounds over all ranks in which edges are exchanged.
const MOST_ROUNDS: usize = 20;

/// A tree that grows.
struct Growing {
    tree: Tree,
    held: Vec<bool>,
    /// Edges from its last ranks, the best last.
    edges: Vec<(u32, u32)>,
    /// The ranks that they lead to.
    upcoming: Vec<u32>,
}

/// A number of trees of a root; `None` where the graph has no room for them, or flows look at more links than `most_work`.
pub(super) fn trees(
    capacities: &[(u32, u32, u128)],
    (ranks, root, count): (u32, u32, u32),
    most_work: u64,
) -> Option<Vec<Tree>> {
    let mut next = vec![Vec::new(); ranks as usize];
    let mut out = vec![0u128; ranks as usize];
    for &(from, to, capacity) in capacities {
        next[from as usize].push(to);
        out[from as usize] += capacity;
    }
    for beside in &mut next {
        beside.sort_unstable();
        beside.dedup();
    }
    // A vertex for each tree, from which its supply enters.
    let entries =
        (ranks..ranks + count).flat_map(|tree| (0..ranks).map(move |rank| (tree, rank, 0)));
    let links: Vec<(u32, u32, u128)> = capacities.iter().copied().chain(entries).collect();
    let mut flow = Flow::new((ranks + count) as usize, &links);
    let mut growing: Vec<Growing> = Vec::new();
    for tree in 0..count {
        flow.set_supply(ranks + tree, 1);
        flow.change(ranks + tree, root, UNLIMITED as i128);
        let mut held = vec![false; ranks as usize];
        held[root as usize] = true;
        growing.push(Growing {
            tree: Tree {
                root,
                edges: Vec::new(),
            },
            held,
            edges: Vec::new(),
            upcoming: vec![root],
        });
    }
    let mut incomplete = count;
    while incomplete > 0 {
        for (number, own) in (0u32..).zip(&mut growing) {
            let level = std::mem::take(&mut own.upcoming);
            let edges = level.iter().flat_map(|from| {
                let beside = next[*from as usize].iter();
                beside.map(|to| (*from, *to))
            });
            let mut edges: Vec<(u32, u32)> = edges
                .filter(|(from, to)| !own.held[*to as usize] && flow.room(*from, *to) > 0)
                .collect();
            // Each tree begins elsewhere.
            let turn = |rank: u32| (rank + ranks - number * ranks / count) % ranks;
            edges.sort_by_key(|&(from, to)| {
                (
                    Reverse((out[to as usize], flow.room(from, to))),
                    turn(to),
                    turn(from),
                )
            });
            edges.reverse();
            own.edges = edges;
        }
        let before = growing
            .iter()
            .map(|one| one.tree.edges.len())
            .sum::<usize>();
        let mut any = true;
        while any {
            any = false;
            for (number, own) in (0u32..).zip(&mut growing) {
                while let Some((from, to)) = own.edges.pop() {
                    if own.held[to as usize] || flow.room(from, to) == 0 {
                        continue;
                    }
                    if flow.work > most_work {
                        return None;
                    }
                    if !leaves_room(&mut flow, (from, to), ranks + number, incomplete) {
                        continue;
                    }
                    flow.change(from, to, -1);
                    flow.change(ranks + number, to, UNLIMITED as i128);
                    out[from as usize] -= 1;
                    own.held[to as usize] = true;
                    own.upcoming.push(to);
                    own.tree.edges.push((from, to));
                    if own.tree.edges.len() as u32 == ranks - 1 {
                        flow.set_supply(ranks + number, 0);
                        own.edges.clear();
                        incomplete -= 1;
                    }
                    any = true;
                    break;
                }
            }
        }
        if before
            == growing
                .iter()
                .map(|one| one.tree.edges.len())
                .sum::<usize>()
        {
            return None;
        }
    }
    let mut trees: Vec<Tree> = growing.into_iter().map(|one| one.tree).collect();
    let mut left = Vec::new();
    for &(from, to, _) in capacities {
        let room = flow.room(from, to).min(count.into());
        left.extend((0..room).map(|_| (from, to)));
    }
    lower(&mut trees, ranks, &left);
    Some(trees)
}

/// Whether all other trees have room where one of them takes an edge; of `incomplete` trees.
fn leaves_room(flow: &mut Flow, (from, to): (u32, u32), tree: u32, incomplete: u32) -> bool {
    flow.set_supply(tree, 0);
    flow.set_supply(from, UNLIMITED);
    let wanted = u128::from(incomplete);
    let sent = flow.send(to, wanted);
    flow.clear();
    flow.set_supply(from, 0);
    flow.set_supply(tree, 1);
    sent >= wanted
}

/// Trees with what is looked up while their edges are exchanged.
pub(super) struct Rooted {
    root: u32,
    /// By tree and rank: the rank before it, the edges from the root, and those of the longest way below.
    pub(super) before: Vec<Vec<u32>>,
    depth: Vec<Vec<u32>>,
    below: Vec<Vec<u32>>,
}

/// Exchanges edges to one rank between two trees, or for an edge that no tree has, where this makes the longest way over
/// that rank shorter. `left` are the edges that no tree has.
fn lower(trees: &mut [Tree], ranks: u32, left: &[(u32, u32)]) {
    let Some(root) = trees.first().map(|tree| tree.root) else {
        return;
    };
    let mut rooted = Rooted::of(trees, ranks, root);
    let mut free = vec![Vec::new(); ranks as usize];
    for &(from, to) in left {
        free[to as usize].push(from);
    }
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
    pub(super) fn of(trees: &[Tree], ranks: u32, root: u32) -> Rooted {
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
    pub(super) fn leads_to(&self, tree: usize, from: u32, to: u32) -> bool {
        let mut at = to;
        while at != self.root && at != from {
            at = self.before[tree][at as usize];
        }
        at == from
    }

    /// The edges of the longest way over a rank, if `before` came before it.
    pub(super) fn longest(&self, tree: usize, rank: u32, before: u32) -> u32 {
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

    /// Gives a rank another one before it in a tree, and finds what is above and below all ranks anew.
    pub(super) fn hang(&mut self, tree: usize, rank: u32, before: u32) {
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
    pub(super) fn write_to(&self, trees: &mut [Tree]) {
        for (number, tree) in trees.iter_mut().enumerate() {
            let (before, depth) = (&self.before[number], &self.depth[number]);
            let others = (0..before.len() as u32).filter(|rank| *rank != self.root);
            tree.edges = others.map(|rank| (before[rank as usize], rank)).collect();
            tree.edges
                .sort_by_key(|edge| (depth[edge.1 as usize], *edge));
        }
    }
}
