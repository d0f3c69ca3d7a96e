//! A relay tree whose lightpaths are spread over steps within each step's capacity.
//!
//! Every origin uses the same tree, rotated, so a lightpath of length l loads every link of its
//! direction with l, and a step and direction can hold lightpaths of total length c (channels). The
//! tree is made step by step: each gap between holders may stay or be split by lightpaths from its
//! ends, at a cost in length now and a price later (see [`super::prices`]); a knapsack over all gaps
//! picks the splits that leave the least to pay later within 2c, and each gap is then turned (which
//! end sends what) so that neither direction exceeds c. Prices are adjusted again after each step.

use super::prices::{Problem, Table, UNREACHED, adjust};

/// A lightpath of the tree: from a rank at `parent` (an offset from the root, clockwise).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    /// The sender's offset from the root.
    pub(super) parent: u32,
    /// Links.
    pub(super) length: u32,
    /// Whether it goes clockwise.
    pub(super) clockwise: bool,
    /// The step, from 0.
    pub(super) step: u32,
    /// The piece of the block that it carries.
    pub(super) piece: u32,
}

impl Edge {
    /// The receiver's offset from the root.
    pub(super) fn child(&self, ranks: u32) -> u32 {
        if self.clockwise {
            (self.parent + self.length) % ranks
        } else {
            (self.parent + ranks - self.length) % ranks
        }
    }
}

/// What a tree is asked for.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) ranks: u32,
    /// How many trees, one for each piece of a block.
    pub(super) pieces: u32,
    /// Total length per step and direction.
    pub(super) channels: u32,
    pub(super) steps: u32,
    /// Lengths that lightpaths may have, ascending, from 1.
    pub(super) lengths: Vec<u32>,
    /// Rounds of price adjustment at first and after each step.
    pub(super) rounds: (usize, usize),
    pub(super) eagerness: f32,
    pub(super) reserve: Reserve,
}

/// What is kept back for lengths that do not divide N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reserve {
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
            Reserve::Rest(every) => {
                u32::from(channels > 1 && (step + 1).is_multiple_of(every as usize))
            }
        }
    }
}

/// A gap of the tree: `size` ranks without the block after the holder at `start`.
#[derive(Debug, Clone, Copy)]
struct Gap {
    start: u32,
    size: u32,
    piece: u32,
}

/// One way to split a gap: positions of new holders from one end and from the other.
#[derive(Debug, Clone, PartialEq)]
struct Split {
    cost: (u32, u32),
    value: f32,
    near: Vec<u32>,
    far: Vec<u32>,
}

impl Split {
    fn total(&self) -> u32 {
        self.cost.0 + self.cost.1
    }

    /// The same from the other ends.
    fn mirror(&mut self) {
        std::mem::swap(&mut self.near, &mut self.far);
        self.cost = (self.cost.1, self.cost.0);
    }
}

/// Table entries that price adjustment may fill: a tenth of a second or so.
const MOST_PRICED: usize = 400_000_000;

/// How often prices are adjusted again on the way, at most.
const MOST_ADJUSTMENTS: usize = 48;

impl Request {
    /// A request with as many rounds as are worth their time.
    pub(super) fn new(
        (ranks, pieces): (u32, u32),
        channels: u32,
        steps: u32,
        lengths: Vec<u32>,
        reserve: Reserve,
    ) -> Request {
        let table = 2 * ranks as usize * steps as usize * lengths.len();
        // With many steps each is much like the next, and prices hardly matter.
        let affordable = match steps {
            0..128 => MOST_PRICED / table.max(1),
            _ => MOST_PRICED / 8 / table.max(1),
        };
        let later = affordable / (steps as usize).min(MOST_ADJUSTMENTS);
        Request {
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
pub(super) fn build(request: &Request) -> Option<Vec<Edge>> {
    let problem = Problem {
        lengths: &request.lengths,
        capacity: match request.reserve {
            Reserve::Rest(every) => 2.0 * request.channels as f32 - 2.0 / every as f32,
            _ => 2.0 * request.channels as f32,
        },
    };
    let steps = request.steps as usize;
    let mut prices = vec![1.0; steps];
    let mut gaps: Vec<Gap> = (0..request.pieces)
        .map(|piece| Gap {
            start: 0,
            size: request.ranks - 1,
            piece,
        })
        .collect();
    let (first, later) = request.rounds;
    let ratio = adjust(
        &problem,
        &census(&gaps),
        &mut prices,
        first,
        request.eagerness,
    );
    // Rounding errors of the single-precision sums stay far below a thousandth.
    if ratio > 1.002 {
        return None;
    }
    let every = steps.div_ceil(MOST_ADJUSTMENTS);
    let mut edges = Vec::with_capacity((request.ranks as usize - 1) * request.pieces as usize);
    let mut table = Table::new(&problem, &prices, request.ranks as usize - 1);
    let mut table_from = 0;
    for step in 0..steps {
        if gaps.is_empty() {
            break;
        }
        if step > 0 && step.is_multiple_of(every) {
            let eagerness = request.eagerness / 2.0;
            adjust(
                &problem,
                &census(&gaps),
                &mut prices[step..],
                later,
                eagerness,
            );
            let most = gaps.iter().map(|gap| gap.size).max()? as usize;
            table = Table::new(&problem, &prices[step..], most);
            table_from = step;
        }
        let later = table.values(step + 1 - table_from);
        let budget = request.channels - request.reserve.channels(step, request.channels);
        let mut chosen = choose(request, budget, &gaps, later)?;
        if request.reserve == Reserve::Pad {
            pad(&gaps, &mut chosen, later, request.channels);
        }
        let mut next = Vec::new();
        for (gap, split) in gaps.iter().zip(&chosen) {
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
fn pad(gaps: &[Gap], chosen: &mut [Split], later: &[f32], channels: u32) {
    for direction in 0..2 {
        let cost = |split: &Split| [split.cost.0, split.cost.1][direction];
        let mut left = channels - chosen.iter().map(cost).sum::<u32>();
        while left > 0 {
            let saved = |(gap, split): (&Gap, &Split)| {
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
fn open_beside(gap: &Gap, split: &Split, end: usize) -> Option<u32> {
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
fn census(gaps: &[Gap]) -> Vec<(usize, u32)> {
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
    gap: Gap,
    split: &Split,
    step: u32,
    edges: &mut Vec<Edge>,
    next: &mut Vec<Gap>,
) {
    let end = gap.start + gap.size + 1;
    let mut holders = vec![gap.start];
    for &length in &split.near {
        edges.push(Edge {
            parent: gap.start % ranks,
            length,
            clockwise: true,
            step,
            piece: gap.piece,
        });
        holders.push(gap.start + length);
    }
    for &length in split.far.iter().rev() {
        edges.push(Edge {
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
            next.push(Gap {
                start: pair[0],
                size: pair[1] - pair[0] - 1,
                piece: gap.piece,
            });
        }
    }
}

/// A split for every gap, within the capacity of both directions, turned already.
///
/// With few gaps the two directions are two budgets of one knapsack. With many, one knapsack over
/// the sum is enough, for there are always small splits to level the directions with.
fn choose(request: &Request, channels: u32, gaps: &[Gap], later: &[f32]) -> Option<Vec<Split>> {
    let one_end = one_end(request, channels, later);
    let sizes = census(gaps);
    let options: Vec<(u32, Vec<Split>)> = sizes
        .iter()
        .map(|&(size, _)| (size as u32, splits(channels, &one_end, later, size)))
        .collect();
    let options: Vec<&[Split]> = gaps
        .iter()
        .map(|gap| &options[options.partition_point(|(size, _)| *size < gap.size)].1[..])
        .collect();
    let budgets = [channels as usize; 2];
    if work_of_two(&options, budgets) <= MOST_WORK {
        return knapsack_of_two(&options, budgets);
    }
    let simple: Vec<Vec<Split>> = options.iter().map(|options| by_total(options)).collect();
    let full = 2 * channels;
    (full - full / 16..=full).rev().find_map(|capacity| {
        let mut chosen = knapsack(&simple, capacity)?;
        if turn(&mut chosen, channels) {
            return Some(chosen);
        }
        reconsider(&options, chosen, channels)
    })
}

/// Chooses again, with two budgets, for the gaps whose splits cost most; the others keep theirs.
fn reconsider(options: &[&[Split]], chosen: Vec<Split>, channels: u32) -> Option<Vec<Split>> {
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(chosen[index].total()));
    let budgets = [channels as usize; 2];
    let mut again = 1;
    while again < order.len() {
        let some: Vec<&[Split]> = order[..=again]
            .iter()
            .map(|&index| options[index])
            .collect();
        if work_of_two(&some, budgets) > MOST_WORK {
            break;
        }
        again += 1;
    }
    let mut result = chosen;
    let mut rest: Vec<Split> = order[again..]
        .iter()
        .map(|&index| result[index].clone())
        .collect();
    if !turn(&mut rest, channels) {
        return None;
    }
    let spent = |side: fn(&Split) -> u32| rest.iter().map(side).sum::<u32>();
    let left = [spent(|split| split.cost.0), spent(|split| split.cost.1)]
        .map(|spent| (channels - spent) as usize);
    let some: Vec<&[Split]> = order[..again].iter().map(|&index| options[index]).collect();
    let picks = knapsack_of_two(&some, left)?;
    for (&index, split) in order.iter().zip(picks.into_iter().chain(rest)) {
        result[index] = split;
    }
    Some(result)
}

/// Table entries that [`knapsack_of_two`] goes through.
fn work_of_two(options: &[&[Split]], budgets: [usize; 2]) -> usize {
    let states = (budgets[0] + 1) * (budgets[1] + 1);
    options
        .iter()
        .map(|options| options.len() * 2 * states)
        .sum()
}

/// Table entries that a step may spend on the knapsack with two budgets.
const MOST_WORK: usize = 20_000_000;

/// Ways to place holders from one end: for each farthest position, cost against value, falling.
struct OneEnd {
    position: u32,
    ways: Vec<(u32, f32, Vec<u32>)>,
}

const MOST_WAYS: usize = 24;

fn one_end(request: &Request, channels: u32, later: &[f32]) -> Vec<OneEnd> {
    let mut ends = vec![OneEnd {
        position: 0,
        ways: vec![(0, 0.0, Vec::new())],
    }];
    for &length in &request.lengths {
        if length > channels {
            break;
        }
        let mut ways = Vec::new();
        for end in &ends {
            let Some(&fill) = later.get((length - end.position - 1) as usize) else {
                continue;
            };
            if fill >= UNREACHED {
                continue;
            }
            for (cost, value, chain) in &end.ways {
                if cost + length <= channels {
                    let mut chain = chain.clone();
                    chain.push(length);
                    ways.push((cost + length, value + fill, chain));
                }
            }
        }
        ways.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let mut kept: Vec<(u32, f32, Vec<u32>)> = Vec::new();
        for way in ways {
            if kept.last().is_none_or(|last| way.1 < last.1 - 1e-6) {
                kept.push(way);
            }
        }
        if kept.len() > MOST_WAYS {
            kept = lower_hull(kept);
        }
        ends.push(OneEnd {
            position: length,
            ways: kept,
        });
    }
    ends
}

/// The ways that are best at some price.
fn lower_hull(ways: Vec<(u32, f32, Vec<u32>)>) -> Vec<(u32, f32, Vec<u32>)> {
    let mut hull: Vec<(u32, f32, Vec<u32>)> = Vec::new();
    for way in ways {
        while let [.., a, b] = &hull[..] {
            let (ab, aw) = ((b.0 - a.0) as f32, (way.0 - a.0) as f32);
            if (b.1 - a.1) * aw < (way.1 - a.1) * ab {
                break;
            }
            hull.pop();
        }
        hull.push(way);
    }
    hull
}

/// The ways to split a gap of `size`, near end first with the farther reach, without those that cost
/// no less in both directions and have no better value; by rising total cost.
fn splits(channels: u32, ends: &[OneEnd], later: &[f32], size: usize) -> Vec<Split> {
    let side = channels as usize + 1;
    let mut best: Vec<(f32, [u16; 4])> = vec![(f32::INFINITY, [0; 4]); side * side];
    let mut met = Vec::new();
    for (near, near_end) in ends.iter().enumerate() {
        for (far, far_end) in ends.iter().enumerate().take(near + 1) {
            let taken = (near_end.position + far_end.position) as usize;
            if taken > size {
                break;
            }
            let rest = later[size - taken];
            if rest >= UNREACHED {
                continue;
            }
            for (one, (near_cost, near_value, _)) in near_end.ways.iter().enumerate() {
                for (other, (far_cost, far_value, _)) in far_end.ways.iter().enumerate() {
                    let value = near_value + far_value + rest;
                    let at = *near_cost as usize * side + *far_cost as usize;
                    if best[at].0 == f32::INFINITY {
                        met.push((near_cost + far_cost, at));
                    }
                    if value < best[at].0 {
                        best[at] = (value, [near, one, far, other].map(|index| index as u16));
                    }
                }
            }
        }
    }
    met.sort_unstable();
    let mut splits: Vec<Split> = Vec::new();
    for (_, at) in met {
        let (value, from) = best[at];
        let [near, one, far, other] = from.map(usize::from);
        let (near, far) = (&ends[near].ways[one], &ends[far].ways[other]);
        let cost = (near.0, far.0);
        let beaten = |known: &Split| {
            known.value <= value + 1e-6
                && (known.cost.0.max(known.cost.1) <= cost.0.max(cost.1))
                && (known.cost.0.min(known.cost.1) <= cost.0.min(cost.1))
        };
        if !splits.iter().any(beaten) {
            splits.push(Split {
                cost,
                value,
                near: near.2.clone(),
                far: far.2.clone(),
            });
        }
    }
    splits
}

/// Of splits by rising total cost, those that no cheaper one equals in value.
fn by_total(splits: &[Split]) -> Vec<Split> {
    let mut kept: Vec<Split> = Vec::new();
    for split in splits {
        match kept.last_mut() {
            Some(last) if split.value >= last.value => {}
            Some(last) if split.total() == last.total() => *last = split.clone(),
            _ => kept.push(split.clone()),
        }
    }
    kept
}

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

/// The same with a budget for each direction; splits come out turned.
fn knapsack_of_two(options: &[&[Split]], budgets: [usize; 2]) -> Option<Vec<Split>> {
    let [rows, side] = budgets.map(|budget| budget + 1);
    let mut best = vec![f32::INFINITY; rows * side];
    best[0] = 0.0;
    let mut picks: Vec<Vec<u16>> = Vec::with_capacity(options.len());
    let turned = |split: &Split, turn: usize| {
        let (near, far) = (split.cost.0 as usize, split.cost.1 as usize);
        if turn == 0 { (near, far) } else { (far, near) }
    };
    for options in options {
        let mut next = vec![f32::INFINITY; rows * side];
        let mut pick = vec![u16::MAX; rows * side];
        for (index, split) in options.iter().enumerate() {
            for turn in 0..2 {
                let (one, other) = turned(split, turn);
                if (turn == 1 && one == other) || one >= rows || other >= side {
                    continue;
                }
                for used in 0..rows - one {
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
    let mut used = (0..rows * side).min_by(|&one, &other| best[one].total_cmp(&best[other]))?;
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
