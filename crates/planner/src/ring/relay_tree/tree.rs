//! Search of a relay tree whose lightpaths respect the capacity of every slot.
//!
//! Every owner uses the same tree, rotated. A lightpath of length l therefore loads every link of
//! its direction l times, and a slot has room for lightpaths of total length c in each direction,
//! with c channels. The tree is grown slot by slot. Each gap between ranks that have the block may
//! stay, or be split by lightpaths from its ends: a split costs length in this slot and leaves a
//! price for later slots ([`crate::ring::relay_tree::prices`]). A knapsack over all gaps picks the
//! splits that leave the least price within a total length of 2c. Each split may then be mirrored,
//! so that neither direction exceeds c. Prices are adjusted again after each slot.

use super::gap_splits::Split;
use super::knapsack::choose;
use super::prices::{IMPOSSIBLE, PriceProblem, PriceTable, adjust, count_by_size};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::Direction;

/// Lightpath of the tree. Ranks are given by their clockwise offsets from the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeEdge {
    /// Offset of the sender.
    pub(crate) parent: u32,
    /// Links of the lightpath.
    pub(crate) length: u32,
    /// True if the lightpath goes clockwise.
    pub(crate) clockwise: bool,
    /// Slot, from 0.
    pub(crate) slot: u32,
    /// Piece of the block that the lightpath carries.
    pub(crate) piece: u32,
}

impl TreeEdge {
    /// Returns the direction of the lightpath.
    pub(crate) fn direction(&self) -> Direction {
        Direction::BOTH[usize::from(!self.clockwise)]
    }

    /// Returns the offset of the receiver.
    pub(crate) fn child(&self, ranks: u32) -> u32 {
        if self.clockwise {
            (self.parent + self.length) % ranks
        } else {
            (self.parent + ranks - self.length) % ranks
        }
    }
}

/// Problem of a tree search.
#[derive(Debug, Clone)]
pub(crate) struct TreeRequest {
    pub(crate) ranks: u32,
    /// Number of trees: one for each piece of a block.
    pub(crate) pieces: u32,
    /// Maximum total length of the lightpaths of a slot in each direction, in links.
    pub(crate) channels: u32,
    pub(crate) slots: u32,
    /// Lengths that lightpaths may have, in links, ascending from 1.
    pub(crate) lengths: Vec<u32>,
    /// Rounds of price adjustment before the first slot, and after each slot.
    pub(crate) rounds: (usize, usize),
    /// Initial learning rate of the price adjustment.
    pub(crate) learning_rate: f32,
    pub(crate) reserve: Reserve,
}

/// Channels that are reserved because lengths do not divide the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// No channel.
    Nothing,
    /// A channel of each direction and slot, for lightpaths of length 1. They fill the open ends of
    /// channels.
    Pad,
    /// A channel of each direction in every n-th slot, for lightpaths that found no room.
    EveryNthSlot(u32),
}

impl Reserve {
    /// Returns the number of reserved channels of each direction in a slot.
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

/// Gap of the tree: `size` ranks without the block after the rank at offset `start`, which has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeGap {
    pub(crate) start: u32,
    pub(crate) size: u32,
    pub(crate) piece: u32,
}

/// Maximum number of table entries that one price adjustment fills: about a tenth of a second.
const MAX_TABLE_ENTRIES: usize = 400_000_000;

/// Maximum ratio of the least price of a tree to the total price of the slots' capacity: above it
/// no tree fits. The rounding errors of single-precision sums stay far below 0.001.
const MAX_PRICE_RATIO: f32 = 1.002;

/// Maximum number of slots after which prices are adjusted again.
const MAX_ADJUSTMENTS: usize = 48;

impl TreeRequest {
    /// Creates a error with as many rounds of price adjustment as fit into the limit of table
    /// entries.
    pub(crate) fn new(
        (ranks, pieces): (u32, u32),
        channels: u32,
        slots: u32,
        lengths: Vec<u32>,
        reserve: Reserve,
    ) -> TreeRequest {
        let table = 2 * ranks as usize * slots as usize * lengths.len();
        // With many slots, neighbouring slots differ little, and prices hardly matter.
        let affordable = match slots {
            0..128 => MAX_TABLE_ENTRIES / table.max(1),
            _ => MAX_TABLE_ENTRIES / 8 / table.max(1),
        };
        let later = affordable / (slots as usize).min(MAX_ADJUSTMENTS);
        TreeRequest {
            ranks,
            pieces,
            channels,
            slots,
            lengths,
            rounds: (affordable.clamp(10, 200), later.clamp(1, 20)),
            learning_rate: 0.3,
            reserve,
        }
    }
}

/// Returns the tree, or `None` if the search finds none with this number of slots. The edges are in
/// the order of their slots.
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
            // Whatever is chosen now, some ranks remain unreached at the end.
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

/// Fills the unused channels of both directions with lightpaths of length 1, where they save most.
fn pad(gaps: &[TreeGap], chosen: &mut [Split], later: &[f32], channels: u32) {
    for direction in 0..2 {
        let cost = |split: &Split| [split.cost.0, split.cost.1][direction];
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
                split.cost.0 += 1;
            } else {
                split.far.insert(0, 1);
                split.cost.1 += 1;
            }
            unused -= 1;
        }
    }
}

/// Returns the number of ranks without the block next to the near (0) or far (1) end of a gap after
/// a split, or `None` if there are none.
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

/// Returns the distinct sizes of gaps, ascending, each with its number of gaps.
fn sizes(gaps: &[TreeGap]) -> Vec<(usize, u32)> {
    count_by_size(gaps.iter().map(|gap| gap.size))
}

/// Adds the lightpaths of `lengths` from the near and the far end of a gap to `edges`, and the gaps
/// that remain to `next`. The lengths of an end ascend.
pub(crate) fn apply(
    ranks: u32,
    gap: TreeGap,
    [near, far]: [&[u32]; 2],
    slot: u32,
    edges: &mut Vec<TreeEdge>,
    next: &mut Vec<TreeGap>,
) {
    let end = gap.start + gap.size + 1;
    let mut holders = vec![gap.start];
    for &length in near {
        edges.push(TreeEdge {
            parent: gap.start % ranks,
            length,
            clockwise: true,
            slot,
            piece: gap.piece,
        });
        holders.push(gap.start + length);
    }
    for &length in far.iter().rev() {
        edges.push(TreeEdge {
            parent: end % ranks,
            length,
            clockwise: false,
            slot,
            piece: gap.piece,
        });
        holders.push(end - length);
    }
    holders.push(end);
    for pair in holders.windows(2) {
        if pair[1] > pair[0] + 1 {
            next.push(TreeGap {
                start: pair[0],
                size: pair[1] - pair[0] - 1,
                piece: gap.piece,
            });
        }
    }
}
