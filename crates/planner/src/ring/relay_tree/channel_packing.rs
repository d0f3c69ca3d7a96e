//! Channel assignment for the rotations of a relay tree.
//!
//! A tree edge of l links has N rotations: one lightpath from every rank, all in the same slot. If
//! l divides N, these lightpaths need exactly l channels, and the edge is a representative of a
//! rotation-symmetric plan. For other lengths, list scheduling fills one channel of a slot after
//! another, along the ring. At every rank, it adds the first waiting lightpath that fits into the
//! channel. Lightpaths that do not fit wait for a later slot, as do all lightpaths that depend on
//! them.
//!
//! With many channels, [`Order::Longest`] is better, because lightpaths of one length join without
//! gaps. With few channels, [`Order::Earliest`] is better, because a single waiting lightpath
//! delays a large part of a slot.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::tree::TreeEdge;
use opticoll_base::interrupt;

/// Rotation of a tree edge (a lightpath), and its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacedLightpath {
    pub(crate) edge: u32,
    /// Rank whose block the lightpath carries.
    pub(crate) origin: u32,
    pub(crate) channel: u32,
}

/// Order in which waiting lightpaths are assigned to channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Longer lightpaths first. A lightpath is not assigned to a slot before the slot of its tree
    /// edge.
    Longest,
    /// Lightpaths whose tree edges have earlier slots first, then longer lightpaths first. A
    /// lightpath may be assigned to any slot after its source has received the block.
    Earliest,
}

impl Order {
    /// Both orders, in the sequence in which the planner tries them.
    pub(crate) const ALL: [Order; 2] = [Order::Longest, Order::Earliest];
}

/// Returns whether the length of every edge divides the number of ranks, as [`place_exactly`]
/// requires.
pub(crate) fn all_lengths_divide(ranks: u32, tree: &[TreeEdge]) -> bool {
    tree.iter().all(|edge| ranks % edge.length == 0)
}

/// Assigns channels to the rotations of all edges of the slot with index `slot`. Calls `add_edge`
/// for each edge, with the index of the first channel that the rotations of the edge occupy. The
/// length of every edge must divide the number of ranks. The edges of `tree` must be in the order
/// of their slots.
pub(crate) fn place_exactly(
    tree: &[TreeEdge],
    slot: u32,
    mut add_edge: impl FnMut(&TreeEdge, u32),
) {
    let mut occupied = [0, 0];
    let before = tree.partition_point(|edge| edge.slot < slot);
    for edge in tree[before..].iter().take_while(|edge| edge.slot == slot) {
        interrupt::check();
        let occupied = &mut occupied[usize::from(edge.clockwise)];
        add_edge(edge, *occupied);
        *occupied += edge.length;
    }
}

/// Lightpath without a channel. Lightpaths with lower `key` are assigned to channels first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    key: [u32; 2],
    edge: u32,
    origin: u32,
}

/// Waiting lightpaths of one direction.
struct WaitingLightpaths<'a> {
    tree: &'a [TreeEdge],
    /// Waiting lightpaths, indexed by source rank.
    by_source: Vec<BTreeSet<Waiting>>,
    clockwise: bool,
    order: Order,
}

impl WaitingLightpaths<'_> {
    /// Returns the rank that is `links` links after `rank` in the direction of the lightpaths.
    fn ahead(&self, rank: u32, links: u32) -> u32 {
        let ranks = self.by_source.len() as u32;
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
        let source = (origin + parent) as usize % self.by_source.len();
        self.by_source[source].insert(Waiting { key, edge, origin });
    }

    /// Fills one channel with waiting lightpaths, and calls `add_lightpath` for each lightpath. The
    /// first lightpath has the smallest `key[0]`. If several lightpaths have this key, the first
    /// starts nearest after `first_rank`. Returns the rank at which the last lightpath with this
    /// key ends. Returns `None` if no lightpath waits.
    fn fill(&mut self, first_rank: u32, mut add_lightpath: impl FnMut(Waiting)) -> Option<u32> {
        let ranks = self.by_source.len() as u32;
        let firsts = (0..ranks).filter_map(|links| {
            let first = self.by_source[self.ahead(first_rank, links) as usize].first()?;
            Some((first.key[0], links))
        });
        let (main_key, links) = firsts.min()?;
        let (start, mut passed) = (self.ahead(first_rank, links), 0);
        let mut end = start;
        while passed < ranks {
            interrupt::check();
            let rank = self.ahead(start, passed) as usize;
            let length = |waiting: &Waiting| self.tree[waiting.edge as usize].length;
            let fitting = self.by_source[rank]
                .iter()
                .find(|waiting| length(waiting) <= ranks - passed);
            let Some(lightpath) = fitting.copied() else {
                passed += 1;
                continue;
            };
            passed += length(&lightpath);
            self.by_source[rank].remove(&lightpath);
            if lightpath.key[0] == main_key {
                end = self.ahead(start, passed);
            }
            add_lightpath(lightpath);
        }
        Some(end)
    }
}

/// Assigns slots and channels to all rotations of all edges. Returns the lightpaths, indexed by
/// slot. Each entry is a pair: true if the lightpath is clockwise, and the lightpath. Returns
/// `None` if the lightpaths do not fit into `max_slots` slots.
pub(crate) fn place(
    ranks: u32,
    channels: u32,
    tree: &[TreeEdge],
    max_slots: u32,
    order: Order,
) -> Option<Vec<Vec<(bool, PlacedLightpath)>>> {
    let children = children(ranks, tree);
    let mut waiting = [false, true].map(|clockwise| WaitingLightpaths {
        tree,
        by_source: vec![BTreeSet::new(); ranks as usize],
        clockwise,
        order,
    });
    // Lightpaths whose source has the block, indexed by the first slot to which the lightpath may
    // be assigned. Each entry is the index of a tree edge and the origin of the block.
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
