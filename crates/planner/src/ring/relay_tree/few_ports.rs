//! Relay trees for ranks with fewer ports than channels.
//!
//! Rotated to all ranks, every edge of a tree makes each rank send one lightpath and receive one in
//! the slot of the edge. With p ports a slot holds at most p edges, in addition to the limit c on
//! the sum of their lengths in each direction: S >= ceil((N - 1) / p).
//!
//! **Leaps.** An end that sends one lightpath of length g, and leaves the g - 1 ranks between for
//! lightpaths of length 1 in later slots, uses 2g - 1 channels per slot for g ranks. With g = p / 2
//! at both ends and p <= c + 1, every port is busy except in the first slots.
//!
//! **Delay.** Otherwise a tree is built for the limit on lengths alone, and its edges get new
//! slots. Each slot is filled, within its ports and channels, with edges whose parent has the
//! block, those with the most ranks behind them first.

use super::tree::{TreeEdge, TreeGap, apply};
use opticoll_base::interrupt;

/// Returns the tree of the fewest slots found whose slots have at most `ports` edges and total
/// lengths of at most `channels` per direction. One interval of ranks with the block grows by leaps
/// of one length at both ends; the skipped ranks are filled by the shortest edges. All lengths up
/// to `reach` are tried.
pub(crate) fn leaps(ranks: u32, channels: u32, ports: u32, reach: u32) -> Vec<TreeEdge> {
    let longest = channels.min(reach).min(ranks / 2).max(1);
    let trees = (1..=longest).map(|leap| leaping(ranks, channels, ports, leap, longest));
    let last_slot = |tree: &Vec<TreeEdge>| tree.last().map_or(0, |edge| edge.slot);
    trees.min_by_key(last_slot).unwrap_or_default()
}

/// Returns the tree that grows by leaps of `leap` links.
fn leaping(ranks: u32, channels: u32, ports: u32, leap: u32, reach: u32) -> Vec<TreeEdge> {
    let mut edges = Vec::new();
    let mut gaps = vec![TreeGap {
        start: 0,
        size: ranks - 1,
        piece: 0,
    }];
    for slot in 0.. {
        if gaps.is_empty() {
            break;
        }
        gaps.sort_by_key(|gap| (ranks - gap.size, gap.start));
        let sent = lengths(&gaps, channels, ports, leap, reach);
        let mut next = Vec::new();
        for (gap, sent) in gaps.iter().zip(&sent) {
            interrupt::check();
            let [near, far] = sent;
            apply(ranks, *gap, [near, far], slot, &mut edges, &mut next);
        }
        gaps = next;
    }
    edges
}

/// Returns the lengths that both ends of each gap send in one slot; the gaps are given by falling
/// size. A wide first gap gets a leap from either end; then the shortest lengths follow, those of
/// the largest gaps first.
fn lengths(
    gaps: &[TreeGap],
    channels: u32,
    ports: u32,
    leap: u32,
    reach: u32,
) -> Vec<[Vec<u32>; 2]> {
    let mut sent = vec![[Vec::new(), Vec::new()]; gaps.len()];
    let mut open: Vec<u32> = gaps.iter().map(|gap| gap.size).collect();
    let (mut room, mut free_ports) = ([channels; 2], ports);
    let has_leaps = leap > 1 && ports >= 2 && gaps[0].size > 2 * leap;
    if has_leaps {
        open[0] = 2 * (leap - 1);
        room = room.map(|room| room - leap);
        free_ports -= 2;
    }
    for length in 1..=reach {
        for (number, open) in open.iter_mut().enumerate() {
            interrupt::check();
            let is_skipped = has_leaps && number == 0 && length >= leap;
            for side in 0..2 {
                // An end sends length l only together with lengths 1, ..., l - 1.
                let from_end = &mut sent[number][side];
                let is_next = from_end.len() as u32 + 1 == length && !is_skipped;
                if is_next && free_ports > 0 && *open > 0 && room[side] >= length {
                    from_end.push(length);
                    room[side] -= length;
                    *open -= 1;
                    free_ports -= 1;
                }
            }
        }
    }
    if has_leaps {
        sent[0].iter_mut().for_each(|lengths| lengths.push(leap));
    }
    sent
}

/// Returns the edges of a tree with new slots that respect the limit on ports, in the order of the
/// new slots.
pub(crate) fn delayed(ranks: u32, tree: &[TreeEdge], channels: u32, ports: u32) -> Vec<TreeEdge> {
    let pieces = tree.iter().map(|edge| edge.piece + 1).max().unwrap_or(0);
    let index_of = |piece: u32, rank: u32| (piece * ranks + rank) as usize;
    let mut into: Vec<Option<usize>> = vec![None; (pieces * ranks) as usize];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); (pieces * ranks) as usize];
    for (index, edge) in tree.iter().enumerate() {
        into[index_of(edge.piece, edge.child(ranks))] = Some(index);
        out[index_of(edge.piece, edge.parent)].push(index);
    }
    // Numbers of ranks behind each edge, including its child. A later slot is never above an
    // earlier one.
    let mut order: Vec<usize> = (0..tree.len()).collect();
    order.sort_by_key(|&index| tree[index].slot);
    let mut behind = vec![1u32; tree.len()];
    for &index in order.iter().rev() {
        if let Some(above) = into[index_of(tree[index].piece, tree[index].parent)] {
            behind[above] += behind[index];
        }
    }
    let mut ready: Vec<usize> = (0..pieces)
        .flat_map(|piece| out[index_of(piece, 0)].clone())
        .collect();
    let mut moved = Vec::with_capacity(tree.len());
    let mut slot = 0;
    while !ready.is_empty() {
        ready.sort_by_key(|&index| (u32::MAX - behind[index], tree[index].length, index));
        let (mut free_ports, mut room) = (ports, [channels; 2]);
        let mut waiting = Vec::new();
        let mut next = Vec::new();
        for &index in &ready {
            interrupt::check();
            let edge = tree[index];
            let room = &mut room[usize::from(edge.clockwise)];
            if free_ports == 0 || *room < edge.length {
                waiting.push(index);
                continue;
            }
            free_ports -= 1;
            *room -= edge.length;
            moved.push(TreeEdge { slot, ..edge });
            next.extend(&out[index_of(edge.piece, edge.child(ranks))]);
        }
        ready = waiting;
        ready.append(&mut next);
        slot += 1;
    }
    moved
}
