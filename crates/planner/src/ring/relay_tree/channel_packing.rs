//! Channels for the rotations of a relay tree.
//!
//! In its slot a lightpath of length l is needed N times, once from every rank. If l divides N,
//! exactly l channels hold these lightpaths, and they are a representative of a rotation-symmetric
//! plan. Other lengths are placed by list scheduling: each channel of a slot is filled along the
//! ring, at every rank with the first waiting lightpath that still fits. A lightpath without room
//! waits for a later slot, together with all that depend on it.
//!
//! [`Order::Longest`] fills a channel with lightpaths of one length as far as they join without a
//! gap, which suits many channels. With few channels one remaining lightpath is a large part of a
//! slot; [`Order::Earliest`] then loses one slot where the other order loses every third.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::tree::TreeEdge;
use opticoll_base::interrupt;

/// Lightpath: an edge of the tree, rotated to its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacedLightpath {
    /// Index of the edge in the tree.
    pub(crate) edge: u32,
    /// Rank whose block the lightpath carries.
    pub(crate) origin: u32,
    /// Channel of the lightpath, numbered among the channels of its direction.
    pub(crate) channel: u32,
}

/// Order in which waiting lightpaths are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The longest lightpaths first, none before its slot in the tree.
    Longest,
    /// Lightpaths of the earliest slot in the tree first, of these the longest; each as soon as its
    /// block is at its source.
    Earliest,
}

impl Order {
    /// All orders, in the sequence in which they are tried.
    pub(crate) const ALL: [Order; 2] = [Order::Longest, Order::Earliest];
}

/// Returns whether the length of every lightpath divides N, so that [`place_exactly`] applies.
pub(crate) fn all_lengths_divide(ranks: u32, tree: &[TreeEdge]) -> bool {
    tree.iter().all(|edge| ranks % edge.length == 0)
}

/// Calls `put` for each edge of a slot, with the first of the channels that its rotations occupy,
/// if every length divides N. The edges of the tree are in the order of their slots.
pub(crate) fn place_exactly(tree: &[TreeEdge], slot: u32, mut put: impl FnMut(&TreeEdge, u32)) {
    let mut occupied = [0, 0];
    let before = tree.partition_point(|edge| edge.slot < slot);
    for edge in tree[before..].iter().take_while(|edge| edge.slot == slot) {
        interrupt::check();
        let occupied = &mut occupied[usize::from(edge.clockwise)];
        put(edge, *occupied);
        *occupied += edge.length;
    }
}

/// Waiting lightpath. The first one in the order is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    key: [u32; 2],
    edge: u32,
    origin: u32,
}

/// Waiting lightpaths of one direction, by the rank at which they start.
struct WaitingRanks<'a> {
    tree: &'a [TreeEdge],
    at: Vec<BTreeSet<Waiting>>,
    clockwise: bool,
    order: Order,
}

impl WaitingRanks<'_> {
    /// Returns the rank `links` links ahead of `rank`.
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
            slot,
            length,
            ..
        } = self.tree[edge as usize];
        let shortness = u32::MAX - length;
        let key = match self.order {
            Order::Longest => [shortness, slot],
            Order::Earliest => [slot, shortness],
        };
        let source = (origin + parent) as usize % self.at.len();
        self.at[source].insert(Waiting { key, edge, origin });
    }

    /// Fills one channel and calls `put` for each lightpath. Begins at the nearest rank from `from`
    /// on at which a lightpath of the foremost key waits. Returns the rank at which the last
    /// lightpath of this key ends, or `None` if nothing waits.
    fn fill(&mut self, from: u32, mut put: impl FnMut(Waiting)) -> Option<u32> {
        let ranks = self.at.len() as u32;
        let firsts = (0..ranks).filter_map(|links| {
            let first = self.at[self.ahead(from, links) as usize].first()?;
            Some((first.key[0], links))
        });
        let (main_key, links) = firsts.min()?;
        let (start, mut passed) = (self.ahead(from, links), 0);
        let mut end = start;
        while passed < ranks {
            interrupt::check();
            let here = self.ahead(start, passed) as usize;
            let length = |waiting: &Waiting| self.tree[waiting.edge as usize].length;
            let fitting = self.at[here]
                .iter()
                .find(|waiting| length(waiting) <= ranks - passed);
            let Some(lightpath) = fitting.copied() else {
                passed += 1;
                continue;
            };
            passed += length(&lightpath);
            self.at[here].remove(&lightpath);
            if lightpath.key[0] == main_key {
                end = self.ahead(start, passed);
            }
            put(lightpath);
        }
        Some(end)
    }
}

/// Places all lightpaths. Returns a list for each slot, in which each lightpath has the flag
/// whether it goes clockwise; `None` if more than `max_slots` slots are needed.
pub(crate) fn place(
    ranks: u32,
    channels: u32,
    tree: &[TreeEdge],
    max_slots: u32,
    order: Order,
) -> Option<Vec<Vec<(bool, PlacedLightpath)>>> {
    let children = children(ranks, tree);
    let mut waiting = [false, true].map(|clockwise| WaitingRanks {
        tree,
        at: vec![BTreeSet::new(); ranks as usize],
        clockwise,
        order,
    });
    // Lightpaths whose block has arrived at their source, by the slot from which on they may be
    // placed.
    let mut due: Vec<Vec<(u32, u32)>> = vec![Vec::new(); max_slots as usize + 1];
    let earliest_slot = |edge: u32, arrived: usize| match order {
        Order::Longest => arrived.max(tree[edge as usize].slot as usize),
        Order::Earliest => arrived,
    };
    for (edge, _) in (0..).zip(tree).filter(|(_, edge)| edge.parent == 0) {
        let due = due.get_mut(earliest_slot(edge, 0))?;
        due.extend((0..ranks).map(|origin| (edge, origin)));
    }
    let mut slots = Vec::new();
    let mut unplaced = tree.len() * ranks as usize;
    while unplaced > 0 {
        interrupt::check();
        let slot = slots.len();
        if slot >= max_slots as usize {
            return None;
        }
        for (edge, origin) in std::mem::take(&mut due[slot]) {
            waiting[usize::from(tree[edge as usize].clockwise)].push(edge, origin);
        }
        let mut placed = Vec::new();
        for waiting in &mut waiting {
            let (clockwise, mut from) = (waiting.clockwise, 0);
            for channel in 0..channels {
                let filled = waiting.fill(from, |Waiting { edge, origin, .. }| {
                    let path = PlacedLightpath {
                        edge,
                        origin,
                        channel,
                    };
                    placed.push((clockwise, path));
                });
                let Some(end) = filled else { break };
                from = end;
            }
        }
        for (_, path) in &placed {
            for &child in &children[path.edge as usize] {
                let due = due.get_mut(earliest_slot(child, slot + 1))?;
                due.push((child, path.origin));
            }
        }
        unplaced -= placed.len();
        slots.push(placed);
    }
    Some(slots)
}

/// Returns, for each edge, the edges that start where it ends.
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
