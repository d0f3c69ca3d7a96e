//! The two trees of [`super`], and the steps in which their edges are used.
//!
//! **Trees.** The n = N - 1 ranks other than the root occupy the positions 1 to n of a binary tree,
//! numbered in in-order. Let L be the largest power of two that divides position x. If L > 1, x has
//! the children x - L/2 and x + L/2; if x + L/2 exceeds n, the second child is x + L/4, and so on.
//! The top of the tree is the largest power of two that is at most n. Odd positions are leaves. In
//! the first tree, rank v (counted from the root) occupies position v. In the second tree, rank v <
//! n occupies position v + 1, and rank n occupies position 1. A rank at an even position of the
//! first tree is therefore a leaf of the second tree, so every rank has children in at most one
//! tree. The root sends to the tops of both trees.
//!
//! **Colours.** Every rank sends along at most two edges and receives along at most two edges. The
//! bipartite graph of senders and receivers therefore has degree at most two. Such a graph consists
//! of paths and even cycles, and two colours suffice such that edges of one colour share no sender
//! and no receiver. Edges of colour 0 are used in even steps, edges of colour 1 in odd steps. So
//! each rank sends at most once and receives at most once per step.
//!
//! **Groups.** The trees of a channel connect one rank of each group. From this rank a chain visits
//! the other ranks of the group. Each edge of a chain is used one step after the previous edge. The
//! pieces of the two trees reach a group in steps of different parity, so each rank of a chain
//! still sends once and receives once per step. If the switch of the group does the work, it joins
//! this rank and all others in one step, and it moves one piece per step.

use std::array;

/// Edge of a tree. Ranks are counted from the collective's root, which has number 0 here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DoubleTreeEdge {
    /// Index of the tree: 0 or 1.
    pub(super) tree: usize,
    pub(super) parent: u32,
    pub(super) child: u32,
    /// Step in which the tree's first piece travels down this edge. The next piece follows two
    /// steps later.
    pub(super) step: u32,
    /// True if the switch of a group carries out the edge, together with the parent's other edges
    /// in this group.
    pub(super) is_of_switch: bool,
}

/// Parts of a group between its rank in the trees and its other ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Chain,
    Switch,
}

/// Returns the edges of both trees on `ranks` ranks, parents before children. An edge is first used
/// after its parent received the first piece, in the next step of the edge's colour.
pub(super) fn edges(ranks: u32) -> Vec<DoubleTreeEdge> {
    let mut edges: Vec<DoubleTreeEdge> = (0..2).flat_map(|tree| tree_edges(ranks, tree)).collect();
    let colours = colours(ranks, &edges);
    // Step in which the first piece of a tree reaches a rank; indexed by tree and then by rank.
    // `None` for the root, which has all pieces from the start.
    let mut reached: [Vec<Option<u32>>; 2] = array::from_fn(|_| vec![None; ranks as usize]);
    for (edge, colour) in edges.iter_mut().zip(colours) {
        let ready = reached[edge.tree][edge.parent as usize].map_or(0, |step| step + 1);
        edge.step = ready + (ready + colour) % 2;
        reached[edge.tree][edge.child as usize] = Some(edge.step);
    }
    edges
}

/// Returns the edges of the channel with index `channel`, on `ranks` ranks in groups of `size`
/// ranks. Two trees connect the rank with index `channel` of every group. From this rank, a chain
/// or the switch of the group leads to the other ranks of the group.
pub(super) fn through_groups(
    ranks: u32,
    size: u32,
    channel: u32,
    within: Within,
) -> Vec<DoubleTreeEdge> {
    let rank = |group: u32, place: u32| group * size + (channel + place) % size;
    let between = edges(ranks / size);
    // (group, tree, first step in which the tree's first piece is available in the group).
    let at_root = (0..2).map(|tree| (0, tree, tree as u32));
    let at_child = |edge: &DoubleTreeEdge| (edge.child, edge.tree, edge.step + 1);
    let reached = at_root.chain(between.iter().map(at_child));
    let inside = reached.flat_map(|(group, tree, ready)| {
        (1..size).map(move |place| {
            let links_before = match within {
                Within::Chain => place - 1,
                Within::Switch => 0,
            };
            DoubleTreeEdge {
                tree,
                parent: rank(group, links_before),
                child: rank(group, place),
                step: ready + links_before,
                is_of_switch: within == Within::Switch,
            }
        })
    });
    let between = between.iter().map(|edge| DoubleTreeEdge {
        parent: rank(edge.parent, 0),
        child: rank(edge.child, 0),
        ..*edge
    });
    between.chain(inside).collect()
}

/// Returns the edges of one tree, parents before children.
fn tree_edges(ranks: u32, tree: usize) -> Vec<DoubleTreeEdge> {
    let places = ranks - 1;
    if places == 0 {
        return Vec::new();
    }
    let rank_at = |place: u32| match (tree, place) {
        (0, _) => place,
        (_, 1) => places,
        _ => place - 1,
    };
    let edge = |parent, child| DoubleTreeEdge {
        tree,
        parent,
        child,
        step: 0,
        is_of_switch: false,
    };
    let top = 1 << places.ilog2();
    let mut edges = vec![edge(0, rank_at(top))];
    let mut queue = vec![top];
    let mut next = 0;
    while let Some(&place) = queue.get(next) {
        next += 1;
        for child in children(place, places) {
            edges.push(edge(rank_at(place), rank_at(child)));
            queue.push(child);
        }
    }
    edges
}

/// Returns the positions of the children of position `place` (at most two) in a tree of `places`
/// positions.
fn children(place: u32, places: u32) -> impl Iterator<Item = u32> {
    let lowest = 1 << place.trailing_zeros();
    let left = (lowest > 1).then(|| place - lowest / 2);
    let mut below = lowest / 2;
    while below > 0 && place + below > places {
        below /= 2;
    }
    let right = (below > 0).then_some(place + below);
    left.into_iter().chain(right)
}

/// Returns a colour, 0 or 1, for each edge. Edges with a common sender or a common receiver have
/// different colours.
fn colours(ranks: u32, edges: &[DoubleTreeEdge]) -> Vec<u32> {
    let mut sender_edges = vec![Vec::new(); ranks as usize];
    let mut receiver_edges = vec![Vec::new(); ranks as usize];
    for (index, edge) in edges.iter().enumerate() {
        sender_edges[edge.parent as usize].push(index);
        receiver_edges[edge.child as usize].push(index);
    }
    let mut colours: Vec<Option<u32>> = vec![None; edges.len()];
    for first in 0..edges.len() {
        if colours[first].is_some() {
            continue;
        }
        colours[first] = Some(0);
        let mut open = vec![(first, 0)];
        while let Some((index, colour)) = open.pop() {
            let edge = edges[index];
            let adjacent = sender_edges[edge.parent as usize]
                .iter()
                .chain(&receiver_edges[edge.child as usize]);
            for &other in adjacent {
                if colours[other].is_none() {
                    colours[other] = Some(1 - colour);
                    open.push((other, 1 - colour));
                }
            }
        }
    }
    colours.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_children_in_one_tree_only_and_two_at_most() {
        for ranks in 1..400u32 {
            let edges = edges(ranks);
            assert_eq!(edges.len() as u32, 2 * (ranks - 1), "{ranks}");
            for rank in 1..ranks {
                let children = |tree| {
                    let in_tree = |edge: &&DoubleTreeEdge| edge.tree == tree && edge.parent == rank;
                    edges.iter().filter(in_tree).count()
                };
                let (first, second) = (children(0), children(1));
                assert!(
                    first.min(second) == 0 && first.max(second) <= 2,
                    "{rank} of {ranks}"
                );
                let parents = |tree| {
                    let in_tree = |edge: &&DoubleTreeEdge| edge.tree == tree && edge.child == rank;
                    edges.iter().filter(in_tree).count()
                };
                assert_eq!([parents(0), parents(1)], [1, 1], "{rank} of {ranks}");
            }
        }
    }

    #[test]
    fn in_a_step_a_rank_sends_once_and_receives_once() {
        for ranks in 2..400u32 {
            let edges = edges(ranks);
            for edge in &edges {
                for other in edges.iter().filter(|other| *other != edge) {
                    let apart = (edge.step + other.step) % 2 == 1;
                    let meet = edge.parent == other.parent || edge.child == other.child;
                    assert!(apart || !meet, "{edge:?} and {other:?} of {ranks}");
                }
            }
        }
    }

    #[test]
    fn trees_are_as_deep_as_the_logarithm() {
        for ranks in 2..400u32 {
            // The first hop waits at most one step. Each of the floor(log2 n) further hops takes at
            // most two steps.
            let max_step = 1 + 2 * (ranks - 1).ilog2();
            let last = edges(ranks).iter().map(|edge| edge.step).max();
            assert!(last <= Some(max_step), "{ranks}: {last:?}");
        }
    }
}
