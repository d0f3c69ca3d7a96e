//! Choice of a split for every gap of a relay tree. The choice is a knapsack problem, because the
//! number of channels of each direction limits the total length of the lightpaths.

use super::gap_splits::{Split, best_by_total, end_options, splits};
use opticoll_base::interrupt;

/// Chooses the lightpaths of a slot: a split for every gap. The choice minimizes the total price of
/// reaching the remaining ranks in later slots. The lightpaths of each direction have a total
/// length of at most `channels` links. Returns `None` if the search fails.
///
/// `sizes` is the number of ranks of each gap. `later` is the price of reaching n consecutive ranks
/// in later slots, indexed by n. If there are many gaps, the minimum is approximate: the knapsack
/// problem has one capacity for both directions together, and some splits are then mirrored to
/// balance the directions.
pub(crate) fn choose(
    lengths: &[u32],
    channels: u32,
    sizes: &[u32],
    later: &[f32],
) -> Option<Vec<Split>> {
    let end_options = end_options(lengths, channels, later);
    let mut distinct = sizes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let options: Vec<Vec<Split>> = distinct
        .iter()
        .map(|&size| splits(channels, &end_options, later, size as usize))
        .collect();
    let options: Vec<&[Split]> = sizes
        .iter()
        .map(|size| &options[distinct.partition_point(|smaller| smaller < size)][..])
        .collect();
    let side = channels as usize + 1;
    let work: usize = options
        .iter()
        .map(|options| 2 * options.len() * side * side)
        .sum();
    if work <= MAX_TABLE_ENTRIES {
        return knapsack_of_two(&options, side);
    }
    let simple: Vec<Vec<Split>> = options
        .iter()
        .map(|options| best_by_total(options))
        .collect();
    let total = 2 * channels;
    (total - total / 16..=total).rev().find_map(|capacity| {
        let mut chosen = knapsack(&simple, capacity)?;
        balance(&mut chosen, channels).then_some(chosen)
    })
}

/// Maximum number of table entries of a knapsack problem with one capacity for each direction.
const MAX_TABLE_ENTRIES: usize = 20_000_000;

/// Chooses one split per gap, with the minimum total price of reaching the remaining ranks in later
/// slots. The lightpaths of both directions together have a total length of at most `capacity`
/// links. `options` is the possible splits, indexed by gap.
fn knapsack(options: &[Vec<Split>], capacity: u32) -> Option<Vec<Split>> {
    let capacity = capacity as usize;
    let mut best = vec![f32::INFINITY; capacity + 1];
    best[0] = 0.0;
    let mut picks: Vec<Vec<u16>> = Vec::with_capacity(options.len());
    let mut reached = 0;
    for options in options {
        let mut next = vec![f32::INFINITY; capacity + 1];
        let mut pick = vec![u16::MAX; capacity + 1];
        let longest = options.last().map_or(0, Split::total) as usize;
        for (index, split) in options.iter().enumerate() {
            interrupt::check();
            let cost = split.total() as usize;
            if cost > capacity {
                break;
            }
            for used in 0..=reached.min(capacity - cost) {
                let value = best[used] + split.later_price;
                if value < next[used + cost] {
                    next[used + cost] = value;
                    pick[used + cost] = index as u16;
                }
            }
        }
        reached = (reached + longest).min(capacity);
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

/// Chooses one split per gap, with the minimum total price of reaching the remaining ranks in later
/// slots. The lightpaths of each direction have a total length of less than `side` links. `options`
/// is the possible splits, indexed by gap. The mirror image of a split may also be chosen.
fn knapsack_of_two(options: &[&[Split]], side: usize) -> Option<Vec<Split>> {
    let mut best = vec![f32::INFINITY; side * side];
    best[0] = 0.0;
    let mut picks: Vec<Vec<u16>> = Vec::with_capacity(options.len());
    let lengths = |split: &Split, orientation: usize| {
        let (near, far) = (split.links.0 as usize, split.links.1 as usize);
        match orientation {
            0 => (near, far),
            _ => (far, near),
        }
    };
    for options in options {
        let mut next = vec![f32::INFINITY; side * side];
        let mut pick = vec![u16::MAX; side * side];
        for (index, split) in options.iter().enumerate() {
            interrupt::check();
            for orientation in 0..2 {
                let (near, far) = lengths(split, orientation);
                if (orientation == 1 && near == far) || near.max(far) >= side {
                    continue;
                }
                for used in 0..side - near {
                    let from = &best[used * side..(used + 1) * side - far];
                    let start = (used + near) * side + far;
                    let entries = start..start + from.len();
                    let row = next[entries.clone()].iter_mut().zip(&mut pick[entries]);
                    for ((next, pick), value) in row.zip(from) {
                        let value = value + split.later_price;
                        if value < *next {
                            *next = value;
                            *pick = (2 * index + orientation) as u16;
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
        let (near, far) = lengths(&split, index % 2);
        used -= near * side + far;
        if index % 2 == 1 {
            split.mirror();
        }
        chosen.push(split);
    }
    chosen.reverse();
    Some(chosen)
}

/// Mirrors some splits, to balance the total lengths of the two directions. Returns whether the
/// lightpaths of each direction then have a total length of at most `channels` links.
fn balance(chosen: &mut [Split], channels: u32) -> bool {
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    let difference = |split: &Split| i64::from(split.links.0) - i64::from(split.links.1);
    order.sort_by_key(|&index| -difference(&chosen[index]).abs());
    let mut excess = 0i64;
    for index in order {
        let split = &mut chosen[index];
        if excess * difference(split) > 0 {
            split.mirror();
        }
        excess += difference(split);
    }
    let near: u32 = chosen.iter().map(|split| split.links.0).sum();
    let far: u32 = chosen.iter().map(|split| split.links.1).sum();
    near.max(far) <= channels
}
