//! A relay tree whose lightpaths are spread over steps within each step's capacity.
//!
//! Every origin uses the same tree, rotated, so a lightpath of length l loads every link of its
//! direction with l, and a step and direction can hold lightpaths of total length c (channels). The
//! tree is made step by step: each gap between holders may stay or be split by lightpaths from its
//! ends, at a cost in length now and a price later (see [`crate::ring::relay_tree::prices`]); a knapsack over all gaps
//! picks the splits that leave the least to pay later within 2c, and each gap is then turned (which
//! end sends what) so that neither direction exceeds c. Prices are adjusted again after each step.

use crate::ring::relay_tree::knapsack::choose;
use crate::ring::relay_tree::prices::{PriceProblem, PriceTable, UNREACHED, adjust};
use crate::ring::relay_tree::split::Split;
use opticoll_base::interrupt;

/// A lightpath of the tree: from a rank at `parent` (an offset from the root, clockwise).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeEdge {
    /// The sender's offset from the root.
    pub(crate) parent: u32,
    /// Links.
    pub(crate) length: u32,
    /// Whether it goes clockwise.
    pub(crate) clockwise: bool,
    /// The step, from 0.
    pub(crate) step: u32,
    /// The piece of the block that it carries.
    pub(crate) piece: u32,
}

impl TreeEdge {
    /// The receiver's offset from the root.
    pub(crate) fn child(&self, ranks: u32) -> u32 {
        if self.clockwise {
            (self.parent + self.length) % ranks
        } else {
            (self.parent + ranks - self.length) % ranks
        }
    }
}

/// What a tree is asked for.
#[derive(Debug, Clone)]
pub(crate) struct TreeRequest {
    pub(crate) ranks: u32,
    /// How many trees, one for each piece of a block.
    pub(crate) pieces: u32,
    /// Total length per step and direction.
    pub(crate) channels: u32,
    pub(crate) steps: u32,
    /// Lengths that lightpaths may have, ascending, from 1.
    pub(crate) lengths: Vec<u32>,
    /// Rounds of price adjustment at first and after each step.
    pub(crate) rounds: (usize, usize),
    pub(crate) eagerness: f32,
    pub(crate) reserve: Reserve,
}

/// What is kept back for lengths that do not divide N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// Nothing.
    Nothing,
    /// One channel of each direction and step for lightpaths of length 1: they fill what others
    /// leave open at the end of a channel.
    Pad,
    /// One channel of each direction in every so many steps, for lightpaths that found no room.
    Rest(u32),
}

impl Reserve {
    /// The channels held back in a step, of those there are.
    fn channels(self, step: usize, channels: u32) -> u32 {
        match self {
            Reserve::Nothing => 0,
            Reserve::Pad => 1,
            Reserve::Rest(every) => u32::from(channels > 1 && (step + 1) % every as usize == 0),
        }
    }
}

/// A gap of the tree: `size` ranks without the block after the holder at `start`.
#[derive(Debug, Clone, Copy)]
struct TreeGap {
    start: u32,
    size: u32,
    piece: u32,
}

/// Table entries that price adjustment may fill: a tenth of a second or so.
const MOST_PRICED: usize = 400_000_000;

/// Least price over supply from where on no tree fits the steps. Rounding errors of the single-precision
/// sums stay far below a thousandth.
const MOST_RATIO: f32 = 1.002;

/// How often prices are adjusted again on the way, at most.
const MOST_ADJUSTMENTS: usize = 48;

impl TreeRequest {
    /// A request with as many rounds as are worth their time.
    pub(crate) fn new(
        (ranks, pieces): (u32, u32),
        channels: u32,
        steps: u32,
        lengths: Vec<u32>,
        reserve: Reserve,
    ) -> TreeRequest {
        let table = 2 * ranks as usize * steps as usize * lengths.len();
        // With many steps each is much like the next, and prices hardly matter.
        let affordable = match steps {
            0..128 => MOST_PRICED / table.max(1),
            _ => MOST_PRICED / 8 / table.max(1),
        };
        let later = affordable / (steps as usize).min(MOST_ADJUSTMENTS);
        TreeRequest {
            ranks,
            pieces,
            channels,
            steps,
            lengths,
            rounds: (affordable.clamp(10, 200), later.clamp(1, 20)),
            eagerness: 0.3,
            reserve,
        }
    }
}

/// The tree, or `None` where none was found in so few steps.
pub(crate) fn build(request: &TreeRequest) -> Option<Vec<TreeEdge>> {
    let steps = request.steps as usize;
    let capacity = match request.reserve {
        Reserve::Rest(every) => 2.0 * request.channels as f32 - 2.0 / every as f32,
        _ => 2.0 * request.channels as f32,
    };
    let capacity = vec![capacity; steps];
    let problem_from = |step: usize| PriceProblem {
        lengths: &request.lengths,
        capacity: &capacity[step..],
        left_over: UNREACHED,
        hopeless: MOST_RATIO,
    };
    let mut prices = vec![1.0; steps];
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
        &census(&gaps),
        &mut prices,
        first,
        request.eagerness,
    );
    if ratio > MOST_RATIO {
        return None;
    }
    let every = steps.div_ceil(MOST_ADJUSTMENTS);
    let mut edges = Vec::with_capacity((request.ranks as usize - 1) * request.pieces as usize);
    let mut table = PriceTable::new(&problem_from(0), &prices, request.ranks as usize - 1);
    let mut table_from = 0;
    for step in 0..steps {
        if gaps.is_empty() {
            break;
        }
        if step > 0 && step % every == 0 {
            let eagerness = request.eagerness / 2.0;
            let ratio = adjust(
                &problem_from(step),
                &census(&gaps),
                &mut prices[step..],
                later,
                eagerness,
            );
            // Whatever is chosen now, some gaps are left at the end.
            if ratio > MOST_RATIO {
                return None;
            }
            let most = gaps.iter().map(|gap| gap.size).max()? as usize;
            table = PriceTable::new(&problem_from(step), &prices[step..], most);
            table_from = step;
        }
        let later = table.values(step + 1 - table_from);
        let budget = request.channels - request.reserve.channels(step, request.channels);
        let sizes: Vec<u32> = gaps.iter().map(|gap| gap.size).collect();
        let mut chosen = choose(&request.lengths, budget, &sizes, later)?;
        if request.reserve == Reserve::Pad {
            pad(&gaps, &mut chosen, later, request.channels);
        }
        let mut next = Vec::new();
        for (gap, split) in gaps.iter().zip(&chosen) {
            interrupt::check();
            apply(
                request.ranks,
                *gap,
                split,
                step as u32,
                &mut edges,
                &mut next,
            );
        }
        gaps = next;
    }
    gaps.is_empty().then_some(edges)
}

/// Fills what is left of both directions with lightpaths of length 1, where they save most.
fn pad(gaps: &[TreeGap], chosen: &mut [Split], later: &[f32], channels: u32) {
    for direction in 0..2 {
        let cost = |split: &Split| [split.cost.0, split.cost.1][direction];
        let mut left = channels - chosen.iter().map(cost).sum::<u32>();
        while left > 0 {
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
            left -= 1;
        }
    }
}

/// How many ranks next to the near (0) or far (1) end of a gap a split leaves without the block, if
/// any.
fn open_beside(gap: &TreeGap, split: &Split, end: usize) -> Option<u32> {
    let (this, other) = if end == 0 {
        (&split.near, &split.far)
    } else {
        (&split.far, &split.near)
    };
    let open = match this.first() {
        Some(first) => first - 1,
        None => gap.size - other.last().unwrap_or(&0),
    };
    (open > 0).then_some(open)
}

/// How many gaps there are of each size.
fn census(gaps: &[TreeGap]) -> Vec<(usize, u32)> {
    let mut sizes: Vec<u32> = gaps.iter().map(|gap| gap.size).collect();
    sizes.sort_unstable();
    sizes
        .chunk_by(|one, other| one == other)
        .map(|same| (same[0] as usize, same.len() as u32))
        .collect()
}

/// Records the lightpaths of a split and the gaps that it leaves.
fn apply(
    ranks: u32,
    gap: TreeGap,
    split: &Split,
    step: u32,
    edges: &mut Vec<TreeEdge>,
    next: &mut Vec<TreeGap>,
) {
    let end = gap.start + gap.size + 1;
    let mut holders = vec![gap.start];
    for &length in &split.near {
        edges.push(TreeEdge {
            parent: gap.start % ranks,
            length,
            clockwise: true,
            step,
            piece: gap.piece,
        });
        holders.push(gap.start + length);
    }
    for &length in split.far.iter().rev() {
        edges.push(TreeEdge {
            parent: end % ranks,
            length,
            clockwise: false,
            step,
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
