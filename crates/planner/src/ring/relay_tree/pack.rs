//! Channels for the rotations of a relay tree.
//!
//! In its step a lightpath of length l is needed N times, once from every rank. Where l divides N,
//! l channels hold these exactly, and they are an orbit of a folded plan. Other lengths are placed by list scheduling:
//! each channel of a step is filled along the ring, at every rank with the first waiting lightpath of an order that still
//! fits; a lightpath without room waits for a later step, with all that depends on it.
//!
//! [`Order::Longest`] fills a channel with lightpaths of one length, as far as they join without a gap, and
//! suits many channels. With few channels one lightpath left over is a large part of a step;
//! there [`Order::Urgent`] loses a step where the other order loses every third.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::ring::relay_tree::tree::TreeEdge;
use opticoll_base::interrupt;

/// One lightpath: an edge of the tree, rotated by its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacedLightpath {
    /// The edge's index in the tree.
    pub(crate) edge: u32,
    /// The rank whose block it carries.
    pub(crate) origin: u32,
    /// The channel, 0..channels.
    pub(crate) channel: u32,
}

/// The order in which waiting lightpaths get channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The longest first, none before its step in the tree.
    Longest,
    /// Those of the earliest step in the tree first, of these the longest; each as soon as its block is at its source.
    Urgent,
}

impl Order {
    /// Both, in the order in which they are tried.
    pub(crate) const ALL: [Order; 2] = [Order::Longest, Order::Urgent];
}

/// Returns whether every lightpath's length divides N, so that [`exactly`] applies.
pub(crate) fn divides(ranks: u32, tree: &[TreeEdge]) -> bool {
    tree.iter().all(|edge| ranks % edge.length == 0)
}

/// The edges of one step when every length divides N, each with the first of the channels that its
/// rotations take: called `put` for each. The edges of the tree are in the order of their steps.
pub(crate) fn exactly(tree: &[TreeEdge], step: u32, mut put: impl FnMut(&TreeEdge, u32)) {
    let mut taken = [0, 0];
    let before = tree.partition_point(|edge| edge.step < step);
    for edge in tree[before..].iter().take_while(|edge| edge.step == step) {
        interrupt::check();
        let taken = &mut taken[usize::from(edge.clockwise)];
        put(edge, *taken);
        *taken += edge.length;
    }
}

/// A waiting lightpath; the first in the order is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    key: [u32; 2],
    edge: u32,
    origin: u32,
}

/// The waiting lightpaths of one direction, by the rank at which they start.
struct WaitingRanks<'a> {
    tree: &'a [TreeEdge],
    at: Vec<BTreeSet<Waiting>>,
    clockwise: bool,
    order: Order,
}

impl WaitingRanks<'_> {
    /// Returns the rank so many links ahead of another.
    fn ahead(&self, rank: u32, links: u32) -> u32 {
        let ranks = self.at.len() as u32;
        match self.clockwise {
            true => (rank + links) % ranks,
            false => (rank + ranks - links % ranks) % ranks,
        }
    }

    fn push(&mut self, edge: u32, origin: u32) {
        let TreeEdge {
            parent,
            step,
            length,
            ..
        } = self.tree[edge as usize];
        let shortness = u32::MAX - length;
        let key = match self.order {
            Order::Longest => [shortness, step],
            Order::Urgent => [step, shortness],
        };
        let source = (origin + parent) as usize % self.at.len();
        self.at[source].insert(Waiting { key, edge, origin });
    }

    /// Fills one channel, from the nearest rank ahead of `from` on at which a first lightpath of the order waits, and calls
    /// `put` for each lightpath. Returns the rank at which the last one of its length or step ends, or `None`
    /// where nothing waits.
    fn fill(&mut self, from: u32, mut put: impl FnMut(Waiting)) -> Option<u32> {
        let ranks = self.at.len() as u32;
        let firsts = (0..ranks).filter_map(|links| {
            let first = self.at[self.ahead(from, links) as usize].first()?;
            Some((first.key[0], links))
        });
        let (main, links) = firsts.min()?;
        let (start, mut passed) = (self.ahead(from, links), 0);
        let mut joint = start;
        while passed < ranks {
            interrupt::check();
            let here = self.ahead(start, passed) as usize;
            let length = |one: &Waiting| self.tree[one.edge as usize].length;
            let fitting = self.at[here]
                .iter()
                .find(|one| length(one) <= ranks - passed);
            let Some(one) = fitting.copied() else {
                passed += 1;
                continue;
            };
            passed += length(&one);
            self.at[here].remove(&one);
            if one.key[0] == main {
                joint = self.ahead(start, passed);
            }
            put(one);
        }
        Some(joint)
    }
}

/// Places all lightpaths; one list per step, each with whether it goes clockwise. `None` where more
/// than `most` steps would be needed.
pub(crate) fn place(
    ranks: u32,
    channels: u32,
    tree: &[TreeEdge],
    most: u32,
    order: Order,
) -> Option<Vec<Vec<(bool, PlacedLightpath)>>> {
    let children = children(ranks, tree);
    let mut waiting = [false, true].map(|clockwise| WaitingRanks {
        tree,
        at: vec![BTreeSet::new(); ranks as usize],
        clockwise,
        order,
    });
    // Lightpaths whose block has arrived at their source, by the step from which they may go.
    let mut due: Vec<Vec<(u32, u32)>> = vec![Vec::new(); most as usize + 1];
    let from = |edge: u32, arrived: usize| match order {
        Order::Longest => arrived.max(tree[edge as usize].step as usize),
        Order::Urgent => arrived,
    };
    for (edge, _) in (0..).zip(tree).filter(|(_, edge)| edge.parent == 0) {
        let due = due.get_mut(from(edge, 0))?;
        due.extend((0..ranks).map(|origin| (edge, origin)));
    }
    let mut steps = Vec::new();
    let mut left = tree.len() * ranks as usize;
    while left > 0 {
        interrupt::check();
        let step = steps.len();
        if step >= most as usize {
            return None;
        }
        for (edge, origin) in std::mem::take(&mut due[step]) {
            waiting[usize::from(tree[edge as usize].clockwise)].push(edge, origin);
        }
        let mut placed = Vec::new();
        for waiting in &mut waiting {
            let (clockwise, mut joint) = (waiting.clockwise, 0);
            for channel in 0..channels {
                let filled = waiting.fill(joint, |Waiting { edge, origin, .. }| {
                    let path = PlacedLightpath {
                        edge,
                        origin,
                        channel,
                    };
                    placed.push((clockwise, path));
                });
                let Some(end) = filled else { break };
                joint = end;
            }
        }
        for (_, path) in &placed {
            for &child in &children[path.edge as usize] {
                let due = due.get_mut(from(child, step + 1))?;
                due.push((child, path.origin));
            }
        }
        left -= placed.len();
        steps.push(placed);
    }
    Some(steps)
}

/// For each edge those that start where it ends.
fn children(ranks: u32, tree: &[TreeEdge]) -> Vec<Vec<u32>> {
    let mut from = FxHashMap::default();
    for (index, edge) in tree.iter().enumerate() {
        let at = (edge.piece, edge.parent);
        from.entry(at).or_insert_with(Vec::new).push(index as u32);
    }
    tree.iter()
        .map(|edge| {
            let at = (edge.piece, edge.child(ranks));
            from.get(&at).cloned().unwrap_or_default()
        })
        .collect()
}
