//! The trees of OpTree: groups, radices, link loads, and the search for the best tree.
//!
//! ```
//! use opticoll_algorithms::optree::tree;
//! // The 16-rank example of the OpTree paper: 8 and 16 wavelengths for 4x4.
//! assert_eq!(tree::stage_loads(16, &[4, 4]), [8, 16]);
//! ```

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::one_stage;
use opticoll_base::interrupt;

/// The contiguous ranks `start .. start + len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// First rank.
    pub start: u32,
    /// Number of ranks, at least 1.
    pub len: u32,
}

impl Group {
    /// Returns the `radix` contiguous children of the group. Their sizes differ by at most one, and
    /// the larger children come first. A group with fewer than `radix` ranks is cut into single
    /// ranks.
    pub fn children(self, radix: u32) -> impl Iterator<Item = Group> {
        let parts = radix.min(self.len);
        let (size, larger) = (self.len / parts, self.len % parts);
        (0..parts).map(move |part| Group {
            start: self.start + part * size + part.min(larger),
            len: size + u32::from(part < larger),
        })
    }
}

/// Calls `visit(source, destination)` for every transfer of a stage that cuts `group` into `radix`
/// children: each rank of a child sends to one rank of every other child.
pub fn for_each_pair(group: Group, radix: u32, mut visit: impl FnMut(u32, u32)) {
    let children: Vec<Group> = group.children(radix).collect();
    for (index, from) in children.iter().enumerate() {
        for (other, to) in children.iter().enumerate() {
            if index == other {
                continue;
            }
            for position in 0..from.len {
                let matched = u64::from(position) * u64::from(to.len) / u64::from(from.len);
                visit(from.start + position, to.start + matched as u32);
            }
        }
    }
}

/// Parses radices such as `4x4x4`. Fails if their product is less than the number of ranks.
pub fn parse_radices(text: &str, ranks: u32) -> Result<Vec<u32>, String> {
    let radices: Vec<u32> = text
        .split('x')
        .map(|part| part.parse().ok().filter(|radix| *radix >= 2))
        .collect::<Option<_>>()
        .ok_or("must be whole numbers from 2 on with x between them, such as 4x4x4")?;
    let mut leaves = 1u64;
    for (stage, radix) in radices.iter().enumerate() {
        if stage > 0 && leaves >= u64::from(ranks) {
            return Err(format!(
                "{leaves} leaves after {stage} stages suffice for {ranks} ranks"
            ));
        }
        leaves = leaves.saturating_mul(u64::from(*radix));
    }
    if leaves < u64::from(ranks) {
        return Err(format!(
            "makes {leaves} leaves, fewer than the {ranks} ranks"
        ));
    }
    Ok(radices)
}

/// Returns the maximum number of stages that cut `ranks` ranks into single ranks: ceil(log2 N).
pub fn deepest(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

/// Returns the radices of the paper's tree of depth k. All k radices equal the smallest m such that
/// m^k is at least N. If fewer than k stages of radix m suffice, some radices are reduced so that
/// all k stages are used.
pub fn uniform_radices(ranks: u32, depth: u32) -> Vec<u32> {
    let leaves = |radices: &[u32]| {
        radices
            .iter()
            .fold(1u64, |leaves, &radix| leaves.saturating_mul(radix.into()))
    };
    let reaches = |radices: &[u32]| leaves(radices) >= u64::from(ranks);
    let radix = (2..=ranks.max(2)).find(|&radix| reaches(&vec![radix; depth as usize]));
    let mut radices = vec![radix.unwrap_or(2); depth as usize];
    // If the first k - 1 stages have at least N leaves, all k stages have at least 2 N leaves.
    // Reducing a radix by one, to at least 2, keeps at least two thirds of the leaves.
    while let Some((_, first)) = radices.split_last() {
        let Some(last_reducible) = radices.iter().rposition(|&radix| radix > 2) else {
            break;
        };
        if !reaches(first) {
            break;
        }
        radices[last_reducible] -= 1;
    }
    radices
}

/// Returns the load of the busiest link in each stage: a number of lightpaths, each with one block.
/// The load is a lower bound on the number of wavelengths per direction that the stage needs. The
/// parity of a rank determines the direction between opposite ranks here, so a load may differ by
/// one from the load of a finished plan.
pub fn stage_loads(ranks: u32, radices: &[u32]) -> Vec<u64> {
    let mut groups = vec![Group {
        start: 0,
        len: ranks,
    }];
    let mut held = vec![1u64; ranks as usize];
    let mut loads = Vec::new();
    for &radix in radices {
        if groups.iter().all(|group| group.len == 1) {
            break;
        }
        let mut received = held.clone();
        // Load of each link minus the load of the previous link; indexed by direction and then by
        // link.
        let mut change = [
            vec![0i64; ranks as usize + 1],
            vec![0i64; ranks as usize + 1],
        ];
        for group in &groups {
            for_each_pair(*group, radix, |source, destination| {
                let blocks = held[source as usize];
                received[destination as usize] += blocks;
                add_arc(&mut change, ranks, source, destination, blocks as i64);
            });
        }
        held = received;
        groups = groups
            .iter()
            .flat_map(|group| group.children(radix))
            .collect();
        loads.push(
            change
                .iter()
                .map(|change| max_load(change))
                .max()
                .unwrap_or(0),
        );
    }
    loads
}

/// Adds `load` to the links of the shorter route from `source` to `destination`. `change` has the
/// load of each link minus the load of the previous link; indexed by direction and then by link.
/// Between opposite ranks, the parity of the lower rank determines the direction.
fn add_arc(change: &mut [Vec<i64>; 2], ranks: u32, source: u32, destination: u32, load: i64) {
    let clockwise = (destination + ranks - source) % ranks;
    let is_clockwise = match (2 * clockwise).cmp(&ranks) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => source.min(destination) % 2 == 0,
    };
    let (direction, from, to) = if is_clockwise {
        (0, source, destination)
    } else {
        (1, destination, source)
    };
    add_links(&mut change[direction], from, to, load);
}

/// Adds `load` to the links from `from` to `to - 1`. `change` has the load of each link minus the
/// load of the previous link; indexed by link.
fn add_links(change: &mut [i64], from: u32, to: u32, load: i64) {
    change[from as usize] += load;
    change[to as usize] -= load;
    if from > to {
        change[0] += load;
    }
}

fn max_load(change: &[i64]) -> u64 {
    let mut load = 0;
    let loads = change.iter().map(|step| {
        load += step;
        load
    });
    loads.max().unwrap_or(0) as u64
}

/// Returns the radices of the tree with the fewest slots for `channels` wavelengths per direction.
/// Ties are resolved by the lowest load, then the fewest stages, then the fewest children.
///
/// A stage needs as many wavelengths as the load of its busiest link; stage 1 needs as many
/// wavelengths as first-fit assigns around the ring. The result is optimal (see `Search`) unless
/// the search reaches `MAX_WORK`. In this case the result is the best tree of the visited trees.
pub fn best_radices(ranks: u32, channels: u32) -> Vec<u32> {
    let mut search = Search {
        ranks: ranks.into(),
        channels: channels.into(),
        bounds: FxHashMap::default(),
        radices: Vec::new(),
        best: ([u64::MAX; 4], Vec::new()),
        work: 0,
    };
    search.extend((ranks, false), &[(0..=ranks).collect()], [0; 4]);
    search.best.1
}

/// Maximum work of a search: the number of visited ranks of groups and, in [`Search::first_fit`],
/// of visited links. The limit was not reached in any known search for up to 65,536 ranks with at
/// most one wavelength per rank.
const MAX_WORK: u64 = 1 << 27;

/// Cost of a tree: number of slots, sum of the stages' loads in blocks, number of stages, and sum
/// of the radices. Costs are compared in this order.
type Cost = [u64; 4];

/// Number of ranks of the smallest group of a level, and whether some groups of the level have one
/// more rank.
type Sizes = (u32, bool);

/// Number of blocks that the first i ranks of a group have together; indexed by i, which runs from
/// 0 to the number of ranks.
type Holdings = Vec<u32>;

/// Depth-first search over all lists of radices, in ascending order of their lower bounds.
///
/// Groups of a level differ in size by at most one. If the positions of two groups have equal
/// numbers of blocks, the groups cause equal link loads in all later stages. So the distinct
/// holdings of a level determine the cost of all later stages.
///
/// The search abandons a list of radices if its cost so far plus a bound on the later stages is not
/// below the best cost. The bound depends only on the sizes of groups. No position of a group has
/// more blocks than the position before it. This is true before stage 1, and every stage preserves
/// it. Position i of a child receives the blocks of one position of each sibling, i or i + 1, with
/// two exceptions: position 0 of a smaller child receives from two positions, and the last position
/// of a larger child receives nothing from smaller children. So the first o of s ranks have at
/// least o / s of the N blocks. If these o ranks form the first k of r children, they send all
/// their blocks to r - k children across one link, which therefore carries at least N o (r - k) / s
/// blocks.
///
/// In stage 1, the first k of r children, with o ranks together, send o (r - k) blocks to the other
/// children and receive (N - o) k blocks. These blocks cross two links in two directions, so some
/// link carries at least a quarter of the sum. Children of equal size need exactly this load.
/// Children of different sizes need the number of wavelengths that [`first_fit`] assigns.
struct Search {
    ranks: u64,
    channels: u64,
    /// Lower bound on the cost of all later stages; indexed by the sizes of the current groups.
    bounds: FxHashMap<Sizes, Cost>,
    /// Radices of the stages chosen so far.
    radices: Vec<u32>,
    best: (Cost, Vec<u32>),
    work: u64,
}

impl Search {
    fn cost(&self, load: u64, radix: u32) -> Cost {
        [load.div_ceil(self.channels), load, 1, radix.into()]
    }

    /// Returns a lower bound on the cost of a stage that cuts groups of these sizes into `radix`
    /// children. The stage is not stage 1.
    fn stage_bound(&self, (size, uneven): Sizes, radix: u32) -> Cost {
        let load = |size: u32| {
            let (size, radix) = (u64::from(size), u64::from(radix.min(size)));
            let half = radix / 2;
            let first = half * (size / radix) + half.min(size % radix);
            (self.ranks * first).div_ceil(size) * (radix - half)
        };
        self.cost(load(size.max(1)).max(load(size + u32::from(uneven))), radix)
    }

    /// Returns a lower bound on the cost of all remaining stages, given the group sizes after stage
    /// 1 or a later stage.
    fn bound(&mut self, sizes: Sizes) -> Cost {
        if let Some(&bound) = self.bounds.get(&sizes) {
            return bound;
        }
        let largest = sizes.0 + u32::from(sizes.1);
        let mut bound = [if largest > 1 { u64::MAX } else { 0 }; 4];
        for radix in 2..=largest {
            // For any sizes, the lower bound on the load grows with the radix.
            let lowest_load = self.ranks * one_stage::line_wavelengths(radix) / u64::from(radix);
            if self.cost(lowest_load, radix) >= bound {
                break;
            }
            let stage = self.stage_bound(sizes, radix);
            bound = bound.min(sum(stage, self.bound(cut_sizes(sizes, radix))));
        }
        self.bounds.insert(sizes, bound);
        bound
    }

    /// Tries all radices for the next stage. `groups` are the distinct holdings of the current
    /// groups, and `cost` is the cost of the stages so far.
    fn extend(&mut self, sizes: Sizes, groups: &[Holdings], cost: Cost) {
        let largest = sizes.0 + u32::from(sizes.1);
        if largest <= 1 {
            if cost < self.best.0 {
                self.best = (cost, self.radices.clone());
            }
            return;
        }
        let is_first = self.radices.is_empty();
        let mut candidates = Vec::new();
        for radix in 2..=largest {
            let stage = if is_first {
                self.cost(first_bound(self.ranks, radix.into()), radix)
            } else {
                self.stage_bound(sizes, radix)
            };
            let rest = self.bound(cut_sizes(sizes, radix));
            candidates.push((sum(cost, sum(stage, rest)), Reverse(radix)));
        }
        candidates.sort_unstable();
        for (bound, Reverse(radix)) in candidates {
            interrupt::check();
            let is_over = self.work > MAX_WORK && !self.best.1.is_empty();
            if bound >= self.best.0 || is_over {
                break;
            }
            let mut load = 0;
            let mut children = Vec::new();
            for group in groups {
                self.work += group.len() as u64;
                load = load.max(cut(group, radix, &mut children));
            }
            if is_first {
                load = first_bound(self.ranks, radix.into());
            }
            let sizes = cut_sizes(sizes, radix);
            let stage = self.cost(load, radix);
            if sum(cost, sum(stage, self.bound(sizes))) >= self.best.0 {
                continue;
            }
            children.sort_unstable();
            children.dedup();
            let best_before = self.best.clone();
            self.radices.push(radix);
            self.extend(sizes, &children, sum(cost, stage));
            self.radices.pop();
            // The best later stages do not depend on the number of wavelengths of stage 1. This
            // number is therefore computed only if the later stages can improve the best tree.
            if is_first && self.ranks % u64::from(radix) != 0 && self.best.0 < best_before.0 {
                let rest: Cost = std::array::from_fn(|part| self.best.0[part] - stage[part]);
                // A better tree needs fewer slots, or equally many slots and at most the same load.
                let fewer = (best_before.0[0] - rest[0] - 1).saturating_mul(self.channels);
                let with_equal_slots = best_before.0[1].saturating_sub(rest[1]);
                let max_wavelengths =
                    fewer.max(with_equal_slots.min(fewer.saturating_add(self.channels)));
                let first = self.first_fit(radix, max_wavelengths);
                self.best.0 = sum(self.cost(first, radix), rest);
                if self.best.0 >= best_before.0 {
                    self.best = best_before;
                }
            }
        }
    }

    /// Returns the number of wavelengths that [`first_fit`] assigns in stage 1, in the direction
    /// with more wavelengths. If this number exceeds `max_wavelengths`, the result is some number
    /// above `max_wavelengths`. If the search exceeds `MAX_WORK`, the result is [`first_bound`].
    fn first_fit(&mut self, radix: u32, max_wavelengths: u64) -> u64 {
        self.work += 2 * self.ranks * u64::from(radix).pow(2);
        if self.work > MAX_WORK {
            return first_bound(self.ranks, radix.into());
        }
        let ranks = self.ranks as u32;
        let directions = shorter_arcs(ranks, radix);
        let mut load = 0;
        for lightpaths in &directions {
            let mut change = vec![0; ranks as usize + 1];
            for &(links, first) in lightpaths {
                add_links(&mut change, first, (first + links) % ranks, 1);
            }
            load = load.max(max_load(&change));
        }
        if load > max_wavelengths {
            return load;
        }
        let wavelengths =
            directions.map(|lightpaths| first_fit(ranks, lightpaths, max_wavelengths));
        wavelengths[0].max(wavelengths[1])
    }
}

fn sum(first: Cost, second: Cost) -> Cost {
    std::array::from_fn(|part| first[part] + second[part])
}

fn cut_sizes((size, uneven): Sizes, radix: u32) -> Sizes {
    (size / radix, uneven || size % radix != 0)
}

/// Returns a lower bound on the load of the busiest link in stage 1.
fn first_bound(ranks: u64, radix: u64) -> u64 {
    let half = radix / 2;
    let first = half * (ranks / radix) + half.min(ranks % radix);
    (first * (radix - half) + (ranks - first) * half).div_ceil(4)
}

/// Cuts a group into `radix` children. Appends the holdings of one child of each size to
/// `children`, because children of equal size have equal holdings. Returns the load of the busiest
/// link between ranks of the group, as in [`stage_loads`].
fn cut(group: &[u32], radix: u32, children: &mut Vec<Holdings>) -> u64 {
    let size = group.len() - 1;
    let parts = size.min(radix as usize);
    let (smaller_size, larger) = (size / parts, size % parts);
    // The first ranks of a child receive the blocks of the same positions of all siblings. Position
    // 0 of a smaller child receives from positions 0 and 1 of a larger child.
    let child = |part: usize| {
        let start = part * smaller_size + part.min(larger);
        &group[start..=start + smaller_size + usize::from(part < larger)]
    };
    let held = |parts: std::ops::Range<usize>, child_size: usize| -> Holdings {
        let mut held = vec![0; child_size + 1];
        for part in parts {
            let child = child(part);
            for (held, until) in held.iter_mut().zip(child) {
                *held += until - child[0];
            }
        }
        held
    };
    let larger_holdings = held(0..larger, smaller_size + 1);
    let smaller_holdings = held(larger..parts, smaller_size);
    // Number of blocks that the larger children send to the first `ranks` ranks of a smaller child.
    let to_smaller = |ranks: usize| {
        if ranks > 0 {
            larger_holdings[ranks + 1]
        } else {
            0
        }
    };
    let received = [
        (0..=smaller_size + 1)
            .map(|ranks| larger_holdings[ranks] + smaller_holdings[ranks.min(smaller_size)])
            .collect(),
        (0..=smaller_size)
            .map(|ranks| smaller_holdings[ranks] + to_smaller(ranks))
            .collect::<Holdings>(),
    ];
    // The sums of `received`, restricted to the siblings before the current child.
    let mut earlier: [Holdings; 2] = [
        vec![0; smaller_size + 2],
        (0..=smaller_size).map(to_smaller).collect(),
    ];
    let mut load = 0;
    for part in 0..parts {
        let (child, kind) = (child(part), usize::from(part >= larger));
        let (before, after) = (part as u64, (parts - 1 - part) as u64);
        for ranks in 1..child.len() {
            let child_blocks = child[ranks] - child[0];
            let upwards =
                u64::from(child[ranks]) * after + u64::from(child[0] - earlier[kind][ranks]);
            let downwards = u64::from(group[size] - child[ranks]) * before
                + u64::from(received[kind][ranks] - earlier[kind][ranks] - child_blocks);
            load = load.max(upwards).max(downwards);
            earlier[kind][ranks] += child_blocks;
        }
    }
    let [larger_holdings, smaller_holdings] = received;
    children.extend((larger > 0).then_some(larger_holdings));
    children.push(smaller_holdings);
    load
}

/// Returns the lightpaths of stage 1, as (number of links, index of the first link); indexed by
/// direction.
fn shorter_arcs(ranks: u32, radix: u32) -> [Vec<(u32, u32)>; 2] {
    let (mut directions, mut opposite) = ([Vec::new(), Vec::new()], Vec::new());
    let ring = Group {
        start: 0,
        len: ranks,
    };
    for_each_pair(ring, radix, |source, destination| {
        let clockwise = (destination + ranks - source) % ranks;
        match clockwise.cmp(&(ranks - clockwise)) {
            Ordering::Less => directions[0].push((clockwise, source)),
            Ordering::Greater => directions[1].push((ranks - clockwise, destination)),
            Ordering::Equal => opposite.push((source.min(destination), source, destination)),
        }
    });
    opposite.sort_unstable();
    for (couple, pair) in opposite
        .chunk_by(|pair, other| pair.0 == other.0)
        .enumerate()
    {
        for &(_, source, destination) in pair {
            let first = [source, destination][couple % 2];
            directions[couple % 2].push((ranks / 2, first));
        }
    }
    directions
}

/// Returns the number of wavelengths that first-fit assigns to `lightpaths`, which all have the
/// same direction. The longest lightpaths are assigned first. If the number exceeds
/// `max_wavelengths`, returns `max_wavelengths + 1`.
fn first_fit(ranks: u32, mut lightpaths: Vec<(u32, u32)>, max_wavelengths: u64) -> u64 {
    lightpaths.sort_unstable_by_key(|&(links, first)| (Reverse(links), first));
    // Wavelengths of the lightpaths that start at each link and that end at each link; indexed by
    // link.
    let mut ring = vec![[const { Vec::<usize>::new() }; 2]; ranks as usize];
    // First and last link of the next lightpath. An earlier lightpath that shares a link with the
    // next lightpath is at least as long, so it covers at least one of these two links. `covered`
    // counts, per wavelength, how many of the two links are covered.
    let mut ends = [0; 2];
    let mut covered: Vec<u8> = Vec::new();
    // Queue that contains every usable wavelength and possibly blocked wavelengths.
    let mut free = BinaryHeap::new();
    let mut is_queued: Vec<bool> = Vec::new();
    for (links, first) in lightpaths {
        interrupt::check();
        let goals = [first, (first + links - 1) % ranks];
        for (end, goal) in ends.iter_mut().zip(goals) {
            while *end != goal {
                for &wavelength in &ring[*end as usize][1] {
                    covered[wavelength] -= 1;
                    if covered[wavelength] == 0 && !is_queued[wavelength] {
                        is_queued[wavelength] = true;
                        free.push(Reverse(wavelength));
                    }
                }
                *end = (*end + 1) % ranks;
                for &wavelength in &ring[*end as usize][0] {
                    covered[wavelength] += 1;
                }
            }
        }
        let wavelength = loop {
            let Some(Reverse(wavelength)) = free.pop() else {
                covered.push(0);
                is_queued.push(false);
                break covered.len() - 1;
            };
            is_queued[wavelength] = false;
            if covered[wavelength] == 0 {
                break wavelength;
            }
        };
        covered[wavelength] = 2;
        ring[goals[0] as usize][0].push(wavelength);
        ring[goals[1] as usize][1].push(wavelength);
        if covered.len() as u64 > max_wavelengths {
            break;
        }
    }
    covered.len() as u64
}
