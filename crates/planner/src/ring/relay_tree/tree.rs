//! Search for a relay tree whose lightpaths respect the capacity of every slot.
//!
//! The blocks of all ranks use the same tree, rotated. If a lightpath of l links is rotated to all
//! ranks, l of its rotations pass each link of its direction. With c channels per direction, the
//! lightpaths of a slot may therefore have a total length of c links in each direction.
//!
//! The search adds one slot after another. A *gap* is a run of consecutive ranks that do not have
//! the block yet. In each slot, lightpaths from the ends of a gap may split the gap into smaller
//! gaps. Reaching the ranks of these gaps in later slots has a price
//! ([`crate::ring::relay_tree::prices`]). A split is chosen for every gap such that the total price
//! is low and the total length in each direction is at most c links ([`super::knapsack`]). Between
//! slots, the prices are adjusted to the remaining gaps.

use super::gap_splits::Split;
use super::knapsack::choose;
use super::prices::{IMPOSSIBLE, PriceProblem, PriceTable, adjust, count_by_size};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::Direction;

/// Lightpath of the tree for the block of rank 0. The blocks of other ranks use rotations of this
/// tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeEdge {
    /// Rank that sends rank 0's block over this edge.
    pub(crate) parent: u32,
    /// Number of links of the lightpath.
    pub(crate) length: u32,
    pub(crate) clockwise: bool,
    pub(crate) slot: u32,
    pub(crate) piece: u32,
}

impl TreeEdge {
    pub(crate) fn direction(&self) -> Direction {
        Direction::BOTH[usize::from(!self.clockwise)]
    }

    /// Returns the rank that receives rank 0's block over this edge.
    pub(crate) fn child(&self, ranks: u32) -> u32 {
        if self.clockwise {
            (self.parent + self.length) % ranks
        } else {
            (self.parent + ranks - self.length) % ranks
        }
    }
}

/// Parameters of a tree search.
#[derive(Debug, Clone)]
pub(crate) struct TreeRequest {
    pub(crate) ranks: u32,
    /// Number of pieces of a block. (The search builds a tree for each piece.)
    pub(crate) pieces: u32,
    /// Maximum total length of the lightpaths of a slot in each direction, in links.
    pub(crate) channels: u32,
    pub(crate) slots: u32,
    /// Lengths that lightpaths may have, in links, ascending from 1.
    pub(crate) lengths: Vec<u32>,
    /// Number of rounds of the price adjustment before the first slot, and number of rounds of each
    /// later price adjustment.
    pub(crate) rounds: (usize, usize),
    pub(crate) learning_rate: f32,
    pub(crate) reserve: Reserve,
}

/// Channels that the search reserves. (If a length does not divide the number of ranks, rotated
/// lightpaths of this length cannot fill their channels completely.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// No channels.
    Nothing,
    /// One channel of each direction in every slot, for lightpaths of one link. (Such lightpaths
    /// fit into short free ranges of channels.)
    Pad,
    /// One channel of each direction in every n-th slot, for lightpaths that found no free channel
    /// in earlier slots.
    EveryNthSlot(u32),
}

impl Reserve {
    fn channels(self, slot: usize, channels: u32) -> u32 {
        match self {
            Reserve::Nothing => 0,
            Reserve::Pad => 1,
            Reserve::EveryNthSlot(every) => {
                u32::from(channels > 1 && (slot + 1) % every as usize == 0)
            }
        }
    }
}

/// Gap: a run of consecutive ranks that do not have a piece of rank 0's block yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeGap {
    /// Rank before the gap. (This rank has the piece.)
    pub(crate) start: u32,
    pub(crate) size: u32,
    pub(crate) piece: u32,
}

/// Maximum number of table entries that one price adjustment computes. (The computation takes about
/// 0.1 s.)
const MAX_TABLE_ENTRIES: usize = 400_000_000;

/// Maximum ratio of the minimum price of a tree to the total price of the links of all slots. Above
/// this ratio, no tree exists. (The excess over 1 allows for rounding errors, which are far below
/// 0.001.)
const MAX_PRICE_RATIO: f32 = 1.002;

/// Maximum number of price adjustments after the first slot.
const MAX_ADJUSTMENTS: usize = 48;

impl TreeRequest {
    /// Creates the parameters of a search. [`MAX_TABLE_ENTRIES`] determines the numbers of rounds
    /// of price adjustments. `pieces` is the number of pieces of a block.
    pub(crate) fn new(
        (ranks, pieces): (u32, u32),
        channels: u32,
        slots: u32,
        lengths: Vec<u32>,
        reserve: Reserve,
    ) -> TreeRequest {
        let entries = 2 * ranks as usize * slots as usize * lengths.len();
        // With many slots, the prices of successive slots differ little, and few rounds suffice.
        let rounds = match slots {
            0..128 => MAX_TABLE_ENTRIES / entries.max(1),
            _ => MAX_TABLE_ENTRIES / 8 / entries.max(1),
        };
        let later_rounds = rounds / (slots as usize).min(MAX_ADJUSTMENTS);
        TreeRequest {
            ranks,
            pieces,
            channels,
            slots,
            lengths,
            rounds: (rounds.clamp(10, 200), later_rounds.clamp(1, 20)),
            learning_rate: 0.3,
            reserve,
        }
    }
}

/// Searches for a tree. Returns the edges in the order of their slots, or `None` if the search
/// fails.
pub(crate) fn build(request: &TreeRequest) -> Option<Vec<TreeEdge>> {
    let slots = request.slots as usize;
    let capacity = match request.reserve {
        Reserve::EveryNthSlot(every) => 2.0 * request.channels as f32 - 2.0 / every as f32,
        _ => 2.0 * request.channels as f32,
    };
    let capacity = vec![capacity; slots];
    let problem_from = |slot: usize| PriceProblem {
        lengths: &request.lengths,
        capacity: &capacity[slot..],
        unreached_price: IMPOSSIBLE,
        max_ratio: MAX_PRICE_RATIO,
    };
    let mut prices = vec![1.0; slots];
    let mut gaps: Vec<TreeGap> = (0..request.pieces)
        .map(|piece| TreeGap {
            start: 0,
            size: request.ranks - 1,
            piece,
        })
        .collect();
    let (first, later) = request.rounds;
    let ratio = adjust(
        &problem_from(0),
        &sizes(&gaps),
        &mut prices,
        first,
        request.learning_rate,
    );
    if ratio > MAX_PRICE_RATIO {
        return None;
    }
    let every = slots.div_ceil(MAX_ADJUSTMENTS);
    let mut edges = Vec::with_capacity((request.ranks as usize - 1) * request.pieces as usize);
    let mut table = PriceTable::new(&problem_from(0), &prices, request.ranks as usize - 1);
    let mut first_slot = 0;
    for slot in 0..slots {
        if gaps.is_empty() {
            break;
        }
        if slot > 0 && slot % every == 0 {
            let learning_rate = request.learning_rate / 2.0;
            let ratio = adjust(
                &problem_from(slot),
                &sizes(&gaps),
                &mut prices[slot..],
                later,
                learning_rate,
            );
            if ratio > MAX_PRICE_RATIO {
                return None;
            }
            let largest = gaps.iter().map(|gap| gap.size).max()? as usize;
            table = PriceTable::new(&problem_from(slot), &prices[slot..], largest);
            first_slot = slot;
        }
        let later = table.values(slot + 1 - first_slot);
        let budget = request.channels - request.reserve.channels(slot, request.channels);
        let gap_sizes: Vec<u32> = gaps.iter().map(|gap| gap.size).collect();
        let mut chosen = choose(&request.lengths, budget, &gap_sizes, later)?;
        if request.reserve == Reserve::Pad {
            pad(&gaps, &mut chosen, later, request.channels);
        }
        let mut next = Vec::new();
        for (gap, split) in gaps.iter().zip(&chosen) {
            interrupt::check();
            let lengths = [&split.near[..], &split.far];
            apply(
                request.ranks,
                *gap,
                lengths,
                slot as u32,
                &mut edges,
                &mut next,
            );
        }
        gaps = next;
    }
    gaps.is_empty().then_some(edges)
}

/// Adds lightpaths of one link to the splits of a slot until all channels are used or no gap needs
/// a lightpath. Each time, adds the lightpath that saves the most in later slots. `chosen` is
/// indexed like `gaps`. `later` is the price of reaching n consecutive ranks in later slots,
/// indexed by n.
fn pad(gaps: &[TreeGap], chosen: &mut [Split], later: &[f32], channels: u32) {
    for direction in 0..2 {
        let cost = |split: &Split| [split.links.0, split.links.1][direction];
        let mut unused = channels - chosen.iter().map(cost).sum::<u32>();
        while unused > 0 {
            interrupt::check();
            let saved = |(gap, split): (&TreeGap, &Split)| {
                let open = open_beside(gap, split, direction)?;
                Some(later[open as usize] - later[open as usize - 1])
            };
            let best = (0..gaps.len())
                .filter_map(|index| Some((saved((&gaps[index], &chosen[index]))?, index)))
                .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
            let Some((_, index)) = best else { break };
            let split = &mut chosen[index];
            if direction == 0 {
                split.near.insert(0, 1);
                split.links.0 += 1;
            } else {
                split.far.insert(0, 1);
                split.links.1 += 1;
            }
            unused -= 1;
        }
    }
}

/// Returns the number of consecutive unreached ranks next to an end of a gap, after the lightpaths
/// of `split`. `end` is 0 for the near end and 1 for the far end. Returns `None` if this number is
/// 0.
fn open_beside(gap: &TreeGap, split: &Split, end: usize) -> Option<u32> {
    let (same_end, other_end) = if end == 0 {
        (&split.near, &split.far)
    } else {
        (&split.far, &split.near)
    };
    let open = match same_end.first() {
        Some(first) => first - 1,
        None => gap.size - other_end.last().unwrap_or(&0),
    };
    (open > 0).then_some(open)
}

fn sizes(gaps: &[TreeGap]) -> Vec<(usize, u32)> {
    count_by_size(gaps.iter().map(|gap| gap.size))
}

/// Splits a gap by lightpaths from its two ends. Adds the lightpaths to `edges` and the remaining
/// gaps to `next`. `near` and `far` are the lengths, in links, ascending, of the lightpaths from
/// the near end and from the far end.
pub(crate) fn apply(
    ranks: u32,
    gap: TreeGap,
    [near, far]: [&[u32]; 2],
    slot: u32,
    edges: &mut Vec<TreeEdge>,
    next: &mut Vec<TreeGap>,
) {
    let end = gap.start + gap.size + 1;
    let mut reached = vec![gap.start];
    for &length in near {
        edges.push(TreeEdge {
            parent: gap.start % ranks,
            length,
            clockwise: true,
            slot,
            piece: gap.piece,
        });
        reached.push(gap.start + length);
    }
    for &length in far.iter().rev() {
        edges.push(TreeEdge {
            parent: end % ranks,
            length,
            clockwise: false,
            slot,
            piece: gap.piece,
        });
        reached.push(end - length);
    }
    reached.push(end);
    for pair in reached.windows(2) {
        if pair[1] > pair[0] + 1 {
            next.push(TreeGap {
                start: pair[0],
                size: pair[1] - pair[0] - 1,
                piece: gap.piece,
            });
        }
    }
}
