//! Channels for the rotations of a relay tree.
//!
//! In its step a lightpath of length l is needed N times, once from every rank. Where l divides N,
//! l channels hold these exactly, and they are an orbit of a folded plan. What
//! does not divide N goes around the ring channel by channel, the longest lightpath that still fits
//! at every rank; what finds no room waits for a later step, with all that depends on it. Where that
//! takes too many steps, [`crate::ring::relay_tree::urgent`] is tried.

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

/// Whether every lightpath's length divides N, so that [`exactly`] applies.
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

/// What waits for a place in one direction: by length (longest first) and by first link, the
/// lightpaths as `edge * N + origin`.
struct WaitingByLength {
    ranks: u32,
    lengths: Vec<u32>,
    /// `queues[length index][link]`.
    queues: Vec<Vec<Vec<u64>>>,
    left: usize,
}

impl WaitingByLength {
    fn new(ranks: u32, lengths: &[u32]) -> WaitingByLength {
        WaitingByLength {
            ranks,
            lengths: lengths.to_vec(),
            queues: vec![vec![Vec::new(); ranks as usize]; lengths.len()],
            left: 0,
        }
    }

    fn push(&mut self, length: u32, link: u32, path: u64) {
        let at = self.lengths.iter().position(|known| *known == length);
        let Some(at) = at else { return };
        self.queues[at][link as usize].push(path);
        self.left += 1;
    }

    /// Fills one channel from a link on, with lightpaths of one length while they join without a
    /// gap, and with shorter ones where they do not; calls `put` for each. Returns where the last
    /// one of that length ended.
    fn tour(&mut self, main: usize, first: u32, mut put: impl FnMut(u64)) -> u32 {
        let mut passed = 0;
        let mut joint = first;
        while passed < self.ranks && self.left > 0 {
            interrupt::check();
            let link = (first + passed) % self.ranks;
            let room = self.ranks - passed;
            let fits = |at: &usize| {
                self.lengths[*at] <= room && !self.queues[*at][link as usize].is_empty()
            };
            let Some(at) = (main..self.lengths.len()).find(fits) else {
                passed += 1;
                continue;
            };
            if let Some(path) = self.queues[at][link as usize].pop() {
                put(path);
            }
            self.left -= 1;
            passed += self.lengths[at];
            if at == main {
                joint = (first + passed) % self.ranks;
            }
        }
        joint
    }

    /// The longest length of which a lightpath waits (as an index), and the first link from `from`
    /// on where one does.
    fn longest(&self, from: u32) -> Option<(usize, u32)> {
        self.queues.iter().enumerate().find_map(|(at, queue)| {
            (0..self.ranks)
                .map(|offset| (from + offset) % self.ranks)
                .find(|&link| !queue[link as usize].is_empty())
                .map(|link| (at, link))
        })
    }
}

/// Places all lightpaths, each in its step or a later one; one list per step. `None` where more
/// than `most` steps would be needed.
pub(crate) fn greedily(
    ranks: u32,
    channels: u32,
    tree: &[TreeEdge],
    most: u32,
) -> Option<Vec<Vec<(bool, PlacedLightpath)>>> {
    let mut lengths: Vec<u32> = tree.iter().map(|edge| edge.length).collect();
    lengths.sort_unstable_by(|one, other| other.cmp(one));
    lengths.dedup();
    let children = children(ranks, tree);
    let mut waiting = [
        WaitingByLength::new(ranks, &lengths),
        WaitingByLength::new(ranks, &lengths),
    ];
    // Lightpaths whose block has arrived at their source, by the step from which they may go.
    let mut due: Vec<Vec<u64>> = vec![Vec::new(); most as usize + 1];
    for (index, edge) in tree.iter().enumerate() {
        if edge.parent == 0 {
            let all = (0..ranks).map(|origin| index as u64 * u64::from(ranks) + u64::from(origin));
            due.get_mut(edge.step as usize)?.extend(all);
        }
    }
    let mut steps = Vec::new();
    let mut placed_in_all = 0;
    while placed_in_all < tree.len() * ranks as usize {
        interrupt::check();
        let step = steps.len();
        if step >= most as usize {
            return None;
        }
        for path in std::mem::take(&mut due[step]) {
            let (edge, origin) = split(ranks, path);
            let link = first_link(ranks, &tree[edge as usize], origin);
            let side = usize::from(tree[edge as usize].clockwise);
            waiting[side].push(tree[edge as usize].length, link, path);
        }
        let mut placed = Vec::new();
        for (side, waiting) in waiting.iter_mut().enumerate() {
            let mut first = 0;
            for channel in 0..channels {
                interrupt::check();
                let Some((main, start)) = waiting.longest(first) else {
                    break;
                };
                first = waiting.tour(main, start, |path| {
                    let (edge, origin) = split(ranks, path);
                    placed.push((
                        side == 1,
                        PlacedLightpath {
                            edge,
                            origin,
                            channel,
                        },
                    ));
                });
            }
        }
        for (_, path) in &placed {
            for &child in &children[path.edge as usize] {
                let from = (step + 1).max(tree[child as usize].step as usize);
                let path = u64::from(child) * u64::from(ranks) + u64::from(path.origin);
                due.get_mut(from)?.push(path);
            }
        }
        placed_in_all += placed.len();
        steps.push(placed);
    }
    Some(steps)
}

fn split(ranks: u32, path: u64) -> (u32, u32) {
    let ranks = u64::from(ranks);
    ((path / ranks) as u32, (path % ranks) as u32)
}

/// The lowest link of a lightpath, links numbered clockwise from 0 for both directions.
fn first_link(ranks: u32, edge: &TreeEdge, origin: u32) -> u32 {
    let source = (origin + edge.parent) % ranks;
    if edge.clockwise {
        source
    } else {
        (source + ranks - edge.length) % ranks
    }
}

/// For each edge those that start where it ends.
pub(crate) fn children(ranks: u32, tree: &[TreeEdge]) -> Vec<Vec<u32>> {
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
