//! Relay trees for ranks with fewer ports than channels.
//!
//! A tree is rotated to all ranks. For each edge, every rank therefore sends one lightpath and
//! receives one lightpath in the slot of the edge. With p ports, a slot can therefore have at most
//! p edges. In addition, the total length of the edges of a slot is at most c links in each
//! direction. The limit on edges implies S >= ceil((N - 1) / p) slots. There are two methods:
//!
//! - **Leaps.** The ranks that have the block form an interval. An end of the interval sends a
//!   lightpath of g links (a *leap*). The g - 1 ranks on its route receive the block in later slots
//!   over lightpaths of one link. The leap and these lightpaths use 2g - 1 channels for g ranks.
//!   With g = p / 2 at both ends and p <= c + 1, every port is used except in the first slots.
//! - **Delay.** The planner builds a tree for the limit on lengths alone, and then assigns new
//!   slots to the edges. Each slot receives edges whose parents have the block, up to the limits of
//!   ports and channels. Edges with the most descendants come first.

use super::tree::{TreeEdge, TreeGap, apply};
use opticoll_base::interrupt;

/// Builds trees with different lengths of leaps. Returns the tree with the fewest slots. Leaps have
/// at most `reach` links. A slot has at most `ports` edges. The edges of a slot have a total length
/// of at most `channels` links per direction.
pub(crate) fn leaps(ranks: u32, channels: u32, ports: u32, reach: u32) -> Vec<TreeEdge> {
    let longest = channels.min(reach).min(ranks / 2).max(1);
    let trees = (1..=longest).map(|leap| leaping(ranks, channels, ports, leap, longest));
    let last_slot = |tree: &Vec<TreeEdge>| tree.last().map_or(0, |edge| edge.slot);
    trees.min_by_key(last_slot).unwrap_or_default()
}

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

/// Chooses the lightpaths of one slot. If the first gap is large enough, both ends of this gap send
/// leaps of `leap` links. After the leaps, the shortest lightpaths are chosen. `gaps` is in
/// descending order of size. For each gap, returns the lengths, in links, of the lightpaths from
/// its two ends.
fn lengths(
    gaps: &[TreeGap],
    channels: u32,
    ports: u32,
    leap: u32,
    reach: u32,
) -> Vec<[Vec<u32>; 2]> {
    let mut sent = vec![[Vec::new(), Vec::new()]; gaps.len()];
    let mut open: Vec<u32> = gaps.iter().map(|gap| gap.size).collect();
    let (mut free_channels, mut free_ports) = ([channels; 2], ports);
    let has_leaps = leap > 1 && ports >= 2 && gaps[0].size > 2 * leap;
    if has_leaps {
        open[0] = 2 * (leap - 1);
        free_channels = free_channels.map(|channels| channels - leap);
        free_ports -= 2;
    }
    for length in 1..=reach {
        for (number, open) in open.iter_mut().enumerate() {
            interrupt::check();
            let is_skipped = has_leaps && number == 0 && length >= leap;
            for side in 0..2 {
                // An end sends a lightpath of l links only if it also sends lightpaths of 1, ...,
                // l - 1 links.
                let from_end = &mut sent[number][side];
                let is_next = from_end.len() as u32 + 1 == length && !is_skipped;
                if is_next && free_ports > 0 && *open > 0 && free_channels[side] >= length {
                    from_end.push(length);
                    free_channels[side] -= length;
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

/// Assigns new slots to the edges of a tree. Each slot has at most `ports` edges. The edges of a
/// slot have a total length of at most `channels` links per direction. Returns the edges in the
/// order of their slots.
pub(crate) fn delayed(ranks: u32, tree: &[TreeEdge], channels: u32, ports: u32) -> Vec<TreeEdge> {
    let pieces = tree.iter().map(|edge| edge.piece + 1).max().unwrap_or(0);
    let index_of = |piece: u32, rank: u32| (piece * ranks + rank) as usize;
    let mut into: Vec<Option<usize>> = vec![None; (pieces * ranks) as usize];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); (pieces * ranks) as usize];
    for (index, edge) in tree.iter().enumerate() {
        into[index_of(edge.piece, edge.child(ranks))] = Some(index);
        out[index_of(edge.piece, edge.parent)].push(index);
    }
    // Number of ranks that receive the block through each edge. (Descendants of an edge have later
    // slots.)
    let mut order: Vec<usize> = (0..tree.len()).collect();
    order.sort_by_key(|&index| tree[index].slot);
    let mut descendants = vec![1u32; tree.len()];
    for &index in order.iter().rev() {
        if let Some(above) = into[index_of(tree[index].piece, tree[index].parent)] {
            descendants[above] += descendants[index];
        }
    }
    let mut ready: Vec<usize> = (0..pieces)
        .flat_map(|piece| out[index_of(piece, 0)].clone())
        .collect();
    let mut moved = Vec::with_capacity(tree.len());
    let mut slot = 0;
    while !ready.is_empty() {
        ready.sort_by_key(|&index| (u32::MAX - descendants[index], tree[index].length, index));
        let (mut free_ports, mut free_channels) = (ports, [channels; 2]);
        let mut waiting = Vec::new();
        let mut next = Vec::new();
        for &index in &ready {
            interrupt::check();
            let edge = tree[index];
            let free_channels = &mut free_channels[usize::from(edge.clockwise)];
            if free_ports == 0 || *free_channels < edge.length {
                waiting.push(index);
                continue;
            }
            free_ports -= 1;
            *free_channels -= edge.length;
            moved.push(TreeEdge { slot, ..edge });
            next.extend(&out[index_of(edge.piece, edge.child(ranks))]);
        }
        ready = waiting;
        ready.append(&mut next);
        slot += 1;
    }
    moved
}
