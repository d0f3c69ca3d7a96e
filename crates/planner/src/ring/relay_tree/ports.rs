//! Relay trees for ranks with fewer ports than channels.
//!
//! Rotated to all ranks, every edge of a tree makes each rank send one lightpath and receive one in the
//! edge's step. With p ports a step holds at most p edges, beside the limit of c on their lengths in
//! each direction: S >= ceil((N - 1) / p).
//!
//! **Leaps.** An end that sends one lightpath of length g, and leaves the g - 1 ranks between to be
//! filled by lightpaths of length 1 in later steps, takes 2g - 1 channels a step for g ranks. With
//! g = p / 2 at both ends every port is busy where p <= c + 1, but for the first steps.
//!
//! **Delay.** Otherwise a tree made for the lengths alone is taken, and its edges are given steps anew:
//! in each step, of the edges whose parent has the block, those with most ranks behind them first, as
//! many as there are ports and channels for.

use crate::ring::relay_tree::tree::TreeEdge;
use opticoll_base::interrupt;

/// The tree of fewest steps found whose steps have at most `ports` edges and total lengths of at most
/// `channels` per direction: one interval of ranks with the block grows by leaps of one length at both
/// ends, and what they leap over is filled by the shortest edges. All lengths up to `reach` are tried.
pub(crate) fn leaps(ranks: u32, channels: u32, ports: u32, reach: u32) -> Vec<TreeEdge> {
    let most = channels.min(reach).min(ranks / 2).max(1);
    let trees = (1..=most).map(|leap| leaping(ranks, channels, ports, leap, most));
    let steps = |tree: &Vec<TreeEdge>| tree.last().map_or(0, |edge| edge.step);
    trees.min_by_key(steps).unwrap_or_default()
}

/// Ranks without the block between two that have it, `size` of them after `start`.
#[derive(Debug, Clone, Copy)]
struct BlockGap {
    start: u32,
    size: u32,
}

fn leaping(ranks: u32, channels: u32, ports: u32, leap: u32, reach: u32) -> Vec<TreeEdge> {
    let mut edges = Vec::new();
    let mut gaps = vec![BlockGap {
        start: 0,
        size: ranks - 1,
    }];
    for step in 0.. {
        if gaps.is_empty() {
            break;
        }
        gaps.sort_by_key(|gap| (ranks - gap.size, gap.start));
        let sent = lengths(&gaps, channels, ports, leap, reach);
        let mut next = Vec::new();
        for (gap, sent) in gaps.iter().zip(&sent) {
            let ends = [gap.start, gap.start + gap.size + 1];
            let mut holders = ends.to_vec();
            holders.extend(sent[0].iter().map(|length| ends[0] + length));
            holders.extend(sent[1].iter().map(|length| ends[1] - length));
            holders.sort_unstable();
            let between = holders.windows(2).map(|pair| BlockGap {
                start: pair[0],
                size: pair[1] - pair[0] - 1,
            });
            next.extend(between.filter(|gap| gap.size > 0));
            for (side, lengths) in sent.iter().enumerate() {
                interrupt::check();
                edges.extend(lengths.iter().map(|&length| TreeEdge {
                    parent: ends[side] % ranks,
                    length,
                    clockwise: side == 0,
                    step,
                    piece: 0,
                }));
            }
        }
        gaps = next;
    }
    edges
}

/// What both ends of each gap (the largest first) send in one step, as lengths: a leap into the first
/// gap from either end while it is wide, and then the shortest ones, of the largest gaps first.
fn lengths(
    gaps: &[BlockGap],
    channels: u32,
    ports: u32,
    leap: u32,
    reach: u32,
) -> Vec<[Vec<u32>; 2]> {
    let mut sent = vec![[Vec::new(), Vec::new()]; gaps.len()];
    let mut open: Vec<u32> = gaps.iter().map(|gap| gap.size).collect();
    let (mut room, mut left) = ([channels; 2], ports);
    let leaps = leap > 1 && ports >= 2 && gaps[0].size > 2 * leap;
    if leaps {
        open[0] = 2 * (leap - 1);
        room = room.map(|room| room - leap);
        left -= 2;
    }
    for length in 1..=reach {
        for (number, open) in open.iter_mut().enumerate() {
            interrupt::check();
            let leapt_over = leaps && number == 0 && length >= leap;
            for side in 0..2 {
                // An end sends length l only beside 1, ..., l - 1.
                let own = &mut sent[number][side];
                let next = own.len() as u32 + 1 == length && !leapt_over;
                if next && left > 0 && *open > 0 && room[side] >= length {
                    own.push(length);
                    room[side] -= length;
                    *open -= 1;
                    left -= 1;
                }
            }
        }
    }
    if leaps {
        sent[0].iter_mut().for_each(|lengths| lengths.push(leap));
    }
    sent
}

/// The same tree with steps that respect the limit on ports, and how many there are.
pub(crate) fn delayed(
    ranks: u32,
    tree: &[TreeEdge],
    channels: u32,
    ports: u32,
) -> (Vec<TreeEdge>, u32) {
    let pieces = tree.iter().map(|edge| edge.piece + 1).max().unwrap_or(0);
    let place = |piece: u32, rank: u32| (piece * ranks + rank) as usize;
    let mut into: Vec<Option<usize>> = vec![None; (pieces * ranks) as usize];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); (pieces * ranks) as usize];
    for (index, edge) in tree.iter().enumerate() {
        into[place(edge.piece, edge.child(ranks))] = Some(index);
        out[place(edge.piece, edge.parent)].push(index);
    }
    // Ranks behind each edge, itself counted; a later step is never above an earlier one.
    let mut by_step: Vec<usize> = (0..tree.len()).collect();
    by_step.sort_by_key(|&index| tree[index].step);
    let mut behind = vec![1u32; tree.len()];
    for &index in by_step.iter().rev() {
        if let Some(above) = into[place(tree[index].piece, tree[index].parent)] {
            behind[above] += behind[index];
        }
    }
    let mut ready: Vec<usize> = (0..pieces)
        .flat_map(|piece| out[place(piece, 0)].clone())
        .collect();
    let mut moved = Vec::with_capacity(tree.len());
    let mut step = 0;
    while !ready.is_empty() {
        ready.sort_by_key(|&index| (u32::MAX - behind[index], tree[index].length, index));
        let (mut left, mut room) = (ports, [channels; 2]);
        let mut waiting = Vec::new();
        let mut next = Vec::new();
        for &index in &ready {
            interrupt::check();
            let edge = tree[index];
            let room = &mut room[usize::from(edge.clockwise)];
            if left == 0 || *room < edge.length {
                waiting.push(index);
                continue;
            }
            left -= 1;
            *room -= edge.length;
            moved.push(TreeEdge { step, ..edge });
            next.extend(&out[place(edge.piece, edge.child(ranks))]);
        }
        ready = waiting;
        ready.append(&mut next);
        step += 1;
    }
    (moved, step)
}
