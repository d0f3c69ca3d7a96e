//! Which split for which gap: two knapsacks, one for each direction's channels.

use crate::ring::relay_tree::split::{Split, by_total, one_end, splits};
use opticoll_base::interrupt;

/// A split for every gap, within the capacity of both directions, turned already.
///
/// With few gaps the two directions are two budgets of one knapsack. With many, one knapsack over
/// the sum is enough, for there are always small splits to level the directions with.
///
/// `sizes` are those of the gaps, `later[n]` the price of filling a gap of n afterwards.
pub(crate) fn choose(
    lengths: &[u32],
    channels: u32,
    sizes: &[u32],
    later: &[f32],
) -> Option<Vec<Split>> {
    let one_end = one_end(lengths, channels, later);
    let mut distinct = sizes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let options: Vec<Vec<Split>> = distinct
        .iter()
        .map(|&size| splits(channels, &one_end, later, size as usize))
        .collect();
    let options: Vec<&[Split]> = sizes
        .iter()
        .map(|size| &options[distinct.partition_point(|known| known < size)][..])
        .collect();
    let side = channels as usize + 1;
    let work: usize = options
        .iter()
        .map(|options| 2 * options.len() * side * side)
        .sum();
    if work <= MOST_WORK {
        return knapsack_of_two(&options, side);
    }
    let simple: Vec<Vec<Split>> = options.iter().map(|options| by_total(options)).collect();
    let full = 2 * channels;
    (full - full / 16..=full).rev().find_map(|capacity| {
        let mut chosen = knapsack(&simple, capacity)?;
        turn(&mut chosen, channels).then_some(chosen)
    })
}

/// Table entries that a step may spend on the knapsack with two budgets.
const MOST_WORK: usize = 20_000_000;

/// One split per gap with the least total value among those with total cost up to `capacity`.
fn knapsack(options: &[Vec<Split>], capacity: u32) -> Option<Vec<Split>> {
    let capacity = capacity as usize;
    let mut best = vec![f32::INFINITY; capacity + 1];
    best[0] = 0.0;
    let mut picks: Vec<Vec<u16>> = Vec::with_capacity(options.len());
    let mut reached = 0;
    for options in options {
        let mut next = vec![f32::INFINITY; capacity + 1];
        let mut pick = vec![u16::MAX; capacity + 1];
        let most = options.last().map_or(0, Split::total) as usize;
        for (index, split) in options.iter().enumerate() {
            interrupt::check();
            let cost = split.total() as usize;
            if cost > capacity {
                break;
            }
            for used in 0..=reached.min(capacity - cost) {
                let value = best[used] + split.value;
                if value < next[used + cost] {
                    next[used + cost] = value;
                    pick[used + cost] = index as u16;
                }
            }
        }
        reached = (reached + most).min(capacity);
        best = next;
        picks.push(pick);
    }
    let mut used = (0..=capacity).min_by(|&one, &other| best[one].total_cmp(&best[other]))?;
    if best[used] == f32::INFINITY {
        return None;
    }
    let mut chosen = Vec::with_capacity(options.len());
    for (options, pick) in options.iter().zip(&picks).rev() {
        let split = &options[usize::from(pick[used])];
        used -= split.total() as usize;
        chosen.push(split.clone());
    }
    chosen.reverse();
    Some(chosen)
}

/// The same with the budget `side - 1` for each direction; splits come out turned.
fn knapsack_of_two(options: &[&[Split]], side: usize) -> Option<Vec<Split>> {
    let mut best = vec![f32::INFINITY; side * side];
    best[0] = 0.0;
    let mut picks: Vec<Vec<u16>> = Vec::with_capacity(options.len());
    let turned = |split: &Split, turn: usize| {
        let (near, far) = (split.cost.0 as usize, split.cost.1 as usize);
        if turn == 0 { (near, far) } else { (far, near) }
    };
    for options in options {
        let mut next = vec![f32::INFINITY; side * side];
        let mut pick = vec![u16::MAX; side * side];
        for (index, split) in options.iter().enumerate() {
            interrupt::check();
            for turn in 0..2 {
                let (one, other) = turned(split, turn);
                if (turn == 1 && one == other) || one.max(other) >= side {
                    continue;
                }
                for used in 0..side - one {
                    let from = &best[used * side..(used + 1) * side - other];
                    let start = (used + one) * side + other;
                    let places = start..start + from.len();
                    let row = next[places.clone()].iter_mut().zip(&mut pick[places]);
                    for ((next, pick), value) in row.zip(from) {
                        let value = value + split.value;
                        if value < *next {
                            *next = value;
                            *pick = (2 * index + turn) as u16;
                        }
                    }
                }
            }
        }
        best = next;
        picks.push(pick);
    }
    let mut used = (0..side * side).min_by(|&one, &other| best[one].total_cmp(&best[other]))?;
    if best[used] == f32::INFINITY {
        return None;
    }
    let mut chosen = Vec::with_capacity(options.len());
    for (options, pick) in options.iter().zip(&picks).rev() {
        let index = usize::from(pick[used]);
        let mut split = options[index / 2].clone();
        let (one, other) = turned(&split, index % 2);
        used -= one * side + other;
        if index % 2 == 1 {
            split.mirror();
        }
        chosen.push(split);
    }
    chosen.reverse();
    Some(chosen)
}

/// Mirrors splits so that neither direction exceeds `channels`; whether that was possible.
fn turn(chosen: &mut [Split], channels: u32) -> bool {
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    let lean = |split: &Split| i64::from(split.cost.0) - i64::from(split.cost.1);
    order.sort_by_key(|&index| -lean(&chosen[index]).abs());
    let mut balance = 0i64;
    for index in order {
        let split = &mut chosen[index];
        if balance * lean(split) > 0 {
            split.mirror();
        }
        balance += lean(split);
    }
    let near: u32 = chosen.iter().map(|split| split.cost.0).sum();
    let far: u32 = chosen.iter().map(|split| split.cost.1).sum();
    near.max(far) <= channels
}
